#!/usr/bin/env bash
# Training on multiple ranks, started by mpirun: the losses of one process, the same bytes at each repetition and after each kill, and one
# line at each failure. models/training/ranks_test.cpp tests the families, mixers and dtypes.
#   ranks.sh build-folder [signals in long steps]
. "$(dirname "$0")/programs.sh" "$@"
tries=${2:-$(few_or_all 1 12)}
find_launcher
export TERM=xterm  # although its output is a file

# begin N ARGUMENT ...: ricci train on N ranks. first: a command before rank 0. finish: its exit code, 124 if it hangs; its output is in
# out, its lines and warnings in err.
first=()
begin() {
  local train=("$build/ricci-train" "${@:2}")
  "${launcher[@]}" -n 1 "${first[@]}" "${train[@]}" : -n $(($1 - 1)) "${train[@]}" >out 2>all_err </dev/null &
  background=$!
}
finish() {
  local code=0
  await '! kill -0 $background 2>/dev/null' || { kill -KILL $background $(ours) && code=124; }
  wait $background 2>/dev/null || code=$((code ? code : $?))
  background=
  grep -E '^(ricci train|warning): ' all_err >err
  return $code
}
together() { begin "$@" && finish; }
# The processes in the folder of this script or of one of its sections.
ours() { for pid in $(pgrep -x ricci-train); do [ "$(readlink "/proc/$pid/cwd")" = "$PWD" ] && echo "$pid"; done; }
nobody_left() { await '[ -z "$(ours)" ]'; }
pid_of() { for pid in $(ours); do tr '\0' '\n' <"/proc/$pid/environ" 2>/dev/null | grep -qxE "(OMPI_COMM_WORLD_RANK|PMI_RANK)=$1" && echo "$pid"; done; }
trains() {  # NAME N ARGUMENT ...
  local fault=
  together "${@:2}" || fault="exit code $?"
  [ ! -s err ] || fault+=' expected nothing on stderr'
  ! grep -q $'\x1b' out || fault+=' a moving bar'
  verdict "$1" "$fault"
}
ends_with() {  # NAME CODE LINE: the one line of a failure, after which no process is left
  verdict "$1" "$([ "$2" != 0 ] && [ "$2" != 124 ] && nobody_left && [ "$(wc -l <err)" = 1 ] && grep -qE "^ricci train: $3\$" err || { echo "exit code $2"; shown all_err; })"
}
refuses() {  # NAME N LINE ARGUMENT ...
  together "$2" "${@:4}"
  ends_with "$1" $? "$3"
}

# same NAME RUN RUN: checkpoints, model and the measurements of each step. near NAME RUN RUN FIRST ALL: the same steps; losses and norms of
# the gradient differ by at most FIRST in the first 5 steps, relatively, and losses by at most ALL in all.
numbers() { sed -E 's/.*"step":([0-9]+).*"train_loss":([^,]*),"val_loss":([^,]*),"val_accuracy":([^,]*),"lr":([^,]*),"grad_norm":([^,]*),.*/\1 \2 \3 \4 \5 \6/' "runs/$1/metrics.jsonl"; }
same() {
  local file fault=
  for file in "runs/$2"/checkpoints/*.safetensors "runs/$2/model.safetensors"; do
    fault+=$(cmp "$file" "runs/$3${file#"runs/$2"}" 2>&1)
  done
  [ -s "runs/$2/model.safetensors" ] || fault+='no model'
  fault+=$(diff <(numbers "$2") <(numbers "$3"))
  verdict "$1" "$fault"
}
near() {
  verdict "$1" "$(paste -d ' ' <(numbers "$2") <(numbers "$3") | awk -v first="$4" -v all="$5" '
    function differ(a, b, most) { return a == "null" || b == "null" ? a != b : (a - b) ^ 2 > (most * b) ^ 2 }
    NF != 12 || $1 != $7 || differ($2, $8, all) || differ($3, $9, all) || NR <= 5 && (differ($2, $8, first) || differ($6, $12, first))
    END { if (NR < 4) print NR " steps" }' | head -3)"
}

# Steps of 8 micro-batches, unevenly shared by 3 ranks, with dropout and an active clip. The learning rate is high enough to learn the text
# in 50 steps, so a wrong gradient changes the losses.
cat >eight.yaml <<'END'
name: bad
model: {d: 16, layers: 2, heads: 2, ctx: 16, dropout: 0.1}
data: text.txt
steps: 50
batch: 2
accumulation: 8
clip: 0.5
lr: 0.02
threads: 1
eval_every: 10
checkpoint_every: 10
keep_checkpoints: 9
log_every: 1
sample: {tokens: 0}
END

# A long run. steps_of NAME; reaches NAME STEPS.
long=(eight.yaml model.layers=1 steps=20000 schedule_steps=20000 eval_every=0 checkpoint_every=7 keep_checkpoints=2)
steps_of() { [ -f "runs/$1/metrics.jsonl" ] && wc -l <"runs/$1/metrics.jsonl" || echo 0; }
reaches() { await "[ \$(steps_of $1) -ge $2 ] || ! kill -0 $background 2>/dev/null"; }

# apart SECTION: starts a function in its own folder (a section mostly waits). told SECTION: its end.
declare -A section=()
apart() {
  (mkdir "$1" && cp text.txt eight.yaml "$1" && cd "$1" && "$1" && exit $((failures > 0))) >"$1.txt" &
  section[$1]=$!
}
told() {
  wait "${section[$1]}" || failures=$((failures + 1))
  cat "$1.txt"
}

# A rank is stopped between two steps, when it writes a record: the others wait for seconds. Nothing is saved: the ranks wait for rank 0's
# saves without a limit.
stopped() {
  first=(env 'RICCI_SIGNAL_AT=19 300' "LD_PRELOAD=$build/libricci-signal-at.so")
  begin 3 "${long[@]}" name=stopped rank_timeout=3 checkpoint_every=0
  finish
  ends_with 'rank 0 stopped' $? 'rank 0 on [^ ]+ does not answer: the other 2 have waited for it for 3 s \(rank_timeout\) in step [0-9,]+'
}

# ---- The losses of one process, and the bytes of a repetition
shared() {  # NAME "RANKS" FIRST ALL ARGUMENT ...
  accept "$1, one process" train eight.yaml "name=$1" "${@:5}"
  for n in $2; do
    trains "$1, $n ranks" "$n" eight.yaml "name=$1-$n" "${@:5}"
    near "$1: $n ranks have the losses of one process" "$1-$n" "$1" "$3" "$4"
  done
}
sums() {
  shared f32 '2 3 4' 1e-5 1e-3
  verdict 'the clip acts' "$(numbers f32 | awk '$6 <= 0.5')"
  verdict 'the run learns' "$(numbers f32 | awk '{ last = $2 } END { if (!(last < 1.5)) print last }')"
  trains 'on 3 ranks again' 3 eight.yaml name=again
  same 'has the same bytes' f32-3 again
  accept 'no dropout' train eight.yaml name=dry model.dropout=0
  verdict 'has other losses' "$(diff -q <(numbers f32) <(numbers dry) >/dev/null && echo 'the same')"
  shared bf16 2 1e-4 5e-3 precision=bf16
  trains 'gradients sent in bf16' 3 eight.yaml name=short reduce_dtype=bf16
  near 'lose little' short f32 5e-3 1e-3
  verdict 'but something' "$(diff -q <(numbers short) <(numbers f32-3) >/dev/null && echo 'the same')"
  # Answers of many lengths: the loss is the mean over all tokens, so a micro-batch with more tokens weighs more.
  for i in {1..60}; do
    printf '{"messages":[{"role":"user","content":"%s"},{"role":"assistant","content":"%s"}]}\n' "count to $i" "$(seq -s ' ' $((i * 7 % 23)))"
  done >talks.jsonl
  accept 'a vocabulary' tokenize train talks.jsonl --format messages --vocab 300 --special '<|im_start|>' --special '<|im_end|>' -o vocabulary.json
  shared talks 3 1e-5 1e-3 data=talks.jsonl format=messages tokenizer=vocabulary.json model.ctx=96

  everything || return 0
  shared shuffled '2 3 4' 1e-5 1e-3 order=shuffled weights='[]'
  shared columns '2 3 4' 1e-5 1e-3 order=columns
  shared emulated 2 1e-5 1e-3 device=cuda_emulated steps=5 eval_batches=1 model.layers=1
  trains 'on two processors' 2 eight.yaml name=cpu-2 steps=5 eval_batches=1 model.layers=1
  near 'the emulated device has the losses of a processor' emulated-2 cpu-2 1e-5 1e-5
  trains 'patience on three ranks' 3 eight.yaml name=patient-3 eval_every=1 patience=2 lr=10 schedule=constant
  accept 'and on one' train eight.yaml name=patient eval_every=1 patience=2 lr=10 schedule=constant
  near 'ends at the same step' patient-3 patient 1e-3 1
  trains 'samples on the way' 2 eight.yaml name=samples-2 sample.tokens=5 sample.every=3
  same 'change nothing' f32-2 samples-2
  # The planned memory differs by at most 5%.
  large=(eight.yaml model.layers=4 model.d=192 model.ctx=64 steps=2 checkpoint_every=0 eval_batches=1)
  trains 'a larger model on 3 ranks' 3 "${large[@]}" name=large
  run plan "${large[@]}" --ranks 3 --json
  planned=$(sed -nE 's/^ *"peak_bytes": ([0-9]+),?$/\1/p' out | head -1)
  measured=$(tail -1 runs/large/metrics.jsonl | sed -E 's/.*"peak_bytes":([0-9]+).*/\1/')
  verdict 'holds as much as the plan says' "$(awk -v p="$planned" -v m="$measured" 'BEGIN { if (!(p > 0 && m > 0 && p <= 1.05 * m && m <= 1.05 * p)) print "planned " p ", measured " m }')"
}

# ---- Ends of one rank, after which the run continues
ends() {
  for time in first second; do
    begin 3 "${long[@]}" name=polite
    reaches polite $(($(steps_of polite) + 5))
    kill -USR1 $background
    finish
    verdict "SIGUSR1 to the launcher, $time time: all save and leave" "$([ $? = 138 ] && grep -q 'interrupted, saved after' out && nobody_left || shown out all_err)"
  done
  trains 'as many steps in one piece' 3 "${long[@]}" name=straight steps="$(steps_of polite)"
  verdict 'have the same bytes' "$(cmp <(tensors runs/polite/model.safetensors) <(tensors runs/straight/model.safetensors) 2>&1)"

  begin 2 "${long[@]}" name=full
  reaches full 3
  prlimit --pid "$(pid_of 0)" --fsize=4096
  finish
  ends_with 'rank 0 cannot write any more' $? 'rank 0 on [^ ]+: step [0-9]+: .*runs/full.*File too large.*'

  # A different number of ranks continues after a kill.
  first=(env 'RICCI_SIGNAL_AT=9 300' "LD_PRELOAD=$build/libricci-signal-at.so")
  begin 4 eight.yaml name=parts steps=40 schedule_steps=50
  first=()
  finish
  verdict 'four ranks, killed' "$([ $? != 0 ] && nobody_left && [ "$(steps_of parts)" -gt 10 ] && [ "$(steps_of parts)" -lt 40 ] || steps_of parts)"
  accept 'then one process' train runs/parts
  trains 'then three ranks' 3 runs/parts steps=50
  accept 'all in one process' train eight.yaml name=whole
  near 'have the losses of one process' parts whole 1e-5 1e-3
}

# A rank is killed, or all are, and the same number of ranks continues: rank 0 at a random call that changes files, the last one or all
# after some steps.
kills() {
  RANDOM=1
  local steps=$(few_or_all 60 300) kills=$(few_or_all 3 24) hits=0 i taken code
  local killed=("${long[@]}" checkpoint_every=3 steps=$steps schedule_steps=$steps name=killed)
  for ((i = 0; i < kills; ++i)); do
    taken=$(steps_of killed) first=()
    [ $((i % 3)) != 0 ] || first=(env "RICCI_SIGNAL_AT=9 $((RANDOM % 400 + 100))" "LD_PRELOAD=$build/libricci-signal-at.so")
    begin 3 "${killed[@]}"
    [ $((i % 3)) = 0 ] || reaches killed $((taken + 4))  # past a checkpoint
    case $((i % 3)) in
      1) kill -KILL "$(pid_of 2)" 2>/dev/null ;;
      2) kill -KILL $(ours) 2>/dev/null ;;
    esac
    finish
    code=$?
    [ $code = 0 ] || hits=$((hits + 1))
    [ $code != 124 ] && nobody_left || verdict "kill $i: an end" "$(ours)"
  done
  first=()
  verdict "most of $kills kills hit" "$([ $hits -ge $((kills / 2)) ] || echo "$hits did")"
  trains 'after them: to the end' 3 "${killed[@]}"
  trains 'the same run in one piece' 3 "${killed[@]}" name=unkilled
  same 'has the same bytes' unkilled killed
}

# Steps of two seconds. A request ends a run of multiple ranks after the step, even a long one. Nothing is lost, even by a kill.
long_steps() {
  RANDOM=1
  local slow=(eight.yaml model.ctx=256 model.d=64 batch=1 accumulation=2 eval_every=0 checkpoint_every=1 steps=3 name=slow)
  local number before seen after code faults= kept=0 killed=0
  trains 'short steps' 2 "${slow[@]}" name=speed
  slow+=(accumulation="$(tail -1 runs/speed/metrics.jsonl | sed -E 's/.*"tokens_per_s":([0-9.]+).*/\1/' | awk '{ print 2 * int(1 + $1 / 256) }')")
  [ "$tries" -lt 12 ] || slow+=(steps=12)
  trains 'long steps in one piece' 2 "${slow[@]}" name=slow_whole
  for ((number = 1; number <= tries; ++number)); do
    before=$(last_saved)
    begin 2 "${slow[@]}"
    await "[ \$(last_saved) -gt $before ] || ! kill -0 $background 2>/dev/null"
    sleep "$(awk "BEGIN { print 0.3 + 1.3 * $RANDOM / 32768 }")"
    # Just after a save, a request would end the run without another step.
    await '[ -z "$(find runs/slow/checkpoints -newermt "0.3 seconds ago")" ]'
    seen=$(last_saved)
    if [ $((number % 4)) = 0 ]; then kill -KILL $(ours) 2>/dev/null; else kill -USR1 $background 2>/dev/null; fi
    finish
    code=$? after=$(last_saved)
    case $code in
      0) same "after $number signals" slow_whole slow && rm -rf runs/slow ;;
      138) [ "$after" -gt "$seen" ] && kept=$((kept + 1)) || faults+=" $number: step $((seen + 1)) was dropped" ;;
      *) [ $((number % 4)) = 0 ] && [ "$after" -ge "$seen" ] && killed=$((killed + 1)) || faults+=" $number: exit code $code, step $after after $seen" ;;
    esac
  done
  verdict "$tries signals in long steps: $kept steps kept, $killed killed" "$faults"
  trains 'the rest of the steps' 2 "${slow[@]}"
  same 'has the bytes of a run in one piece' slow_whole slow
}
last_saved() { ls runs/slow/checkpoints 2>/dev/null | sed -nE 's/^step-0*([0-9]+)\..*/\1/p' | tail -1 | grep . || echo 0; }

apart stopped
apart sums
apart ends
apart long_steps

# ---- Errors
refuses 'a NaN' 3 'rank 0 on [^ ]+: step [0-9]+: (the loss|the gradient) is .*: [a-z_]+ \([^ ]+:[0-9]+\): [0-9]+ of [0-9]+ elements.*' eight.yaml name=nan lr=1e38 clip=0 schedule=constant
refuses 'too few micro-batches' 4 'accumulation: a step of 1 micro-batch cannot be shared by 4 ranks; a new run with accumulation=4 batch=3 reads the same sequences per step' \
  eight.yaml accumulation=1 batch=12
refuses 'a mistake is told once' 3 'lr: -1, expected .*' eight.yaml lr=-1
refuses 'a word that is no option, too' 3 '.*--nonsense.*' --nonsense

# Rank 0 sends an absolute path; this path leads every process to its own folder.
mkdir other && sed 's/the/a/' text.txt >other/text.txt && cp eight.yaml other
first=(env -C other)
refuses 'rank 0 has another text' 2 'rank 1 on [^ ]+ has text [0-9a-f]{16}, but rank 0 on [^ ]+ has [0-9a-f]{16}' eight.yaml name=texts data=/proc/self/cwd/text.txt
first=()

apart kills
for one in sums ends kills stopped long_steps; do told $one; done
echo "$failures failed"
exit $((failures > 0))
