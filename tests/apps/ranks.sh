#!/usr/bin/env bash
# A training on several ranks, started by mpirun: the same bytes for any number of them, also if they change on the way, and if a rank
# is killed; and the line that each failure ends with. models/training/ranks_test.cpp has the families, mixers and dtypes.
#   ranks.sh build-folder
. "$(dirname "$0")/programs.sh" "$@"
"$build/ricci-train" --version | grep -qE 'Open MPI|MPICH' && command -v mpirun >/dev/null || needs MPI
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
mpirun=(mpirun)
mpirun --version | grep -q 'Open MPI' && mpirun+=(--oversubscribe)
RANDOM=1
export TERM=xterm  # its output is a file all the same

# begin N ARGUMENT ...: ricci-train on N ranks. first: a command in front of rank 0. finish: its exit code, 124 if it hangs; its output in
# out, in err its own lines and warnings.
first=()
begin() {
  local train=("$build/ricci-train" "${@:2}")
  "${mpirun[@]}" -n 1 "${first[@]}" "${train[@]}" : -n $(($1 - 1)) "${train[@]}" >out 2>all_err </dev/null &
  background=$!
}
finish() {
  local code=0
  await '! kill -0 $background 2>/dev/null' || { kill -KILL $background $(ours) && code=124; }
  wait $background 2>/dev/null || code=$((code ? code : $?))
  background=
  grep -E '^(ricci-train|warning): ' all_err >err
  return $code
}
together() { begin "$@" && finish; }
# The processes of this script: those that work in its folder.
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
  verdict "$1" "$([ "$2" != 0 ] && [ "$2" != 124 ] && nobody_left && [ "$(wc -l <err)" = 1 ] && grep -qE "^ricci-train: $3\$" err || { echo "exit code $2"; shown all_err; })"
}
refuses() {  # NAME N LINE ARGUMENT ...
  together "$2" "${@:4}"
  ends_with "$1" $? "$3"
}
# same NAME RUN RUN: checkpoints, model and what was measured of the steps.
numbers() { sed -E 's/.*("step":[0-9]+).*("train_loss":[^,]*,"val_loss":[^,]*,"val_accuracy":[^,]*,"lr":[^,]*,"grad_norm":[^,]*).*/\1 \2/' "runs/$1/metrics.jsonl"; }
same() {
  local file fault=
  for file in "runs/$2"/checkpoints/*.safetensors "runs/$2/model.safetensors"; do
    fault+=$(cmp "$file" "runs/$3${file#"runs/$2"}" 2>&1)
  done
  [ -s "runs/$2/model.safetensors" ] || fault+='no model'
  fault+=$(diff <(numbers "$2") <(numbers "$3"))
  verdict "$1" "$fault"
}

# Steps of 8 micro-batches, in 4 leaves, with dropout and a clip that acts.
cat >four.yaml <<'END'
name: bad
model: {d: 16, layers: 2, heads: 2, ctx: 16, dropout: 0.1}
data: text.txt
steps: 12
batch: 2
accumulation: 8
max_ranks: 4
clip: 0.5
lr: 0.01
threads: 1
eval_every: 4
checkpoint_every: 4
keep_checkpoints: 9
log_every: 1
sample: {tokens: 0}
END

# A run that is long. steps_of NAME; reaches NAME STEPS.
long=(four.yaml model.layers=1 steps=20000 schedule_steps=20000 eval_every=0 checkpoint_every=7 keep_checkpoints=2)
steps_of() { [ -f "runs/$1/metrics.jsonl" ] && wc -l <"runs/$1/metrics.jsonl" || echo 0; }
reaches() { await "[ \$(steps_of $1) -ge $2 ] || ! kill -0 $background 2>/dev/null"; }

# A rank that is stopped, in a folder of its own: the others wait for seconds, and the other tests run meanwhile. There are no saves,
# because the ranks wait for those of rank 0 without a limit.
stopped() {
  mkdir apart && cp text.txt four.yaml apart && cd apart || exit 1
  begin 3 "${long[@]}" name=stopped rank_timeout=3 checkpoint_every=0
  reaches stopped 5
  kill -STOP "$(pid_of 1)"
  finish
  ends_with 'rank 1 stopped' $? 'rank 1 on [^ ]+ does not answer: the other 2 have waited for it for 3 s \(rank_timeout\) in step [0-9,]+'
  exit $failures
}
stopped >apart.txt &
apart=$!

# shared NAME "RANKS" ARGUMENT ...: as one process, and the same on other numbers of ranks.
shared() {
  accept "$1, one process" train four.yaml "name=$1" "${@:3}"
  for n in $2; do
    trains "$1, $n ranks" "$n" four.yaml "name=$1-$n" "${@:3}"
    same "$1: $n ranks have the bytes of one process" "$1" "$1-$n"
  done
}
shared f32 '2 3'
verdict 'the clip acts' "$(sed -E 's/.*"grad_norm":([^,]*),.*/\1/' runs/f32/metrics.jsonl | awk '$1 <= 0.5')"
verdict 'other sums are other bits' "$(run train four.yaml name=one max_ranks=1; ! cmp -s runs/{f32,one}/model.safetensors || echo 'the same bytes')"
shared shuffled 3 order=shuffled weights='[]' precision=bf16
if everything; then
  shared columns 4 order=columns
  shared emulated 3 device=cuda_emulated steps=5 eval_batches=1 model.layers=1
  trains 'patience on three ranks' 3 four.yaml name=patient-3 eval_every=1 patience=2 lr=10 schedule=constant
  accept 'and on one' train four.yaml name=patient eval_every=1 patience=2 lr=10 schedule=constant
  same 'ends at the same step' patient patient-3
  trains 'samples on the way' 2 four.yaml name=samples-2 sample.tokens=5 sample.every=3
  same 'change nothing' f32 samples-2
  # The plan knows the memory: it differs by at most 5%.
  large=(four.yaml model.layers=4 model.d=192 model.ctx=64 steps=2 checkpoint_every=0 eval_batches=1)
  trains 'a larger model on 3 ranks' 3 "${large[@]}" name=large
  peak() { run plan "${large[@]}" "$@" --json; sed -nE 's/^ *"peak_bytes": ([0-9]+),?$/\1/p' out | head -1; }
  measured=$(tail -1 runs/large/metrics.jsonl | sed -E 's/.*"peak_bytes":([0-9]+).*/\1/') planned=$(peak --ranks 3)
  verdict 'holds what the plan says' "$(awk -v p="$planned" -v m="$measured" 'BEGIN { if (!(p > 0 && m > 0 && p <= 1.05 * m && m <= 1.05 * p)) print "planned " p ", measured " m }')"
  verdict 'and less than one process' "$([ "$(peak)" -gt $((planned * 105 / 100)) ] || shown out)"
fi

# ---- Continuing with another number of ranks
trains 'the first 4 steps on four ranks' 4 four.yaml name=parts steps=4 schedule_steps=12
accept 'then one process' train four.yaml name=parts steps=8 schedule_steps=12
trains 'then two' 2 runs/parts steps=12
same 'saved by 4, continued by 1 and 2: the bytes of the run in one piece' f32 parts

# ---- Ends of one rank
begin 3 "${long[@]}" name=polite
reaches polite 5
kill -USR1 $background
finish
verdict 'SIGUSR1 to the launcher: all save and leave' "$([ $? = 0 ] && grep -q 'interrupted, saved after' out && nobody_left || shown out all_err)"
last=$(ls runs/polite/checkpoints | tail -1 | tr -dc 0-9 | sed 's/^0*//')
accept 'as many steps in one process' train "${long[@]}" name=straight steps="$last"
verdict 'and the same bytes' "$(cmp runs/{polite,straight}/model.safetensors 2>&1)"

begin 2 "${long[@]}" name=full
reaches full 3
prlimit --pid "$(pid_of 0)" --fsize=4096
finish
ends_with 'rank 0 cannot write any more' $? 'rank 0 on [^ ]+: step [0-9]+: .*runs/full.*File too large.*'

# A rank is killed, and another number of ranks continues: rank 0 at a drawn call that changes files, the last rank when steps were taken.
steps=$(few_or_all 60 300) kills=$(few_or_all 2 24) hits=0
killed=("${long[@]}" checkpoint_every=3 steps=$steps schedule_steps=$steps name=killed)
for ((i = 0; i < kills; ++i)); do
  n=$((RANDOM % 3 + 2)) taken=$(steps_of killed)
  first=()
  [ $((i % 2)) = 1 ] || first=(env "RICCI_SIGNAL_AT=9 $((RANDOM % 60 + 20))" "LD_PRELOAD=$build/libricci-signal-at.so")
  begin $n "${killed[@]}"
  if [ $((i % 2)) = 1 ]; then
    reaches killed $((taken + 4))  # past a checkpoint
    kill -KILL "$(pid_of $((n - 1)))" 2>/dev/null
  fi
  finish
  code=$?
  [ $code = 0 ] || hits=$((hits + 1))
  [ $code != 124 ] && nobody_left || verdict "kill $i: an end" "$(ours)"
done
first=()
verdict "most of $kills kills hit" "$([ $hits -ge $((kills / 2)) ] || echo "$hits did")"
trains 'after them: to the end' 4 "${killed[@]}"
accept 'the same run in one piece' train "${killed[@]}" name=unkilled
verdict 'has the same bytes' "$(cmp runs/{killed,unkilled}/model.safetensors 2>&1)"
verdict 'and the same last checkpoint' "$(cmp runs/{killed,unkilled}/checkpoints/"$(printf 'step-%08d' $steps)".safetensors 2>&1)"

# ---- What cannot be
refuses 'a NaN' 3 'rank 0 on [^ ]+: step [0-9]+: .*; ricci-train .*runs/nan --replay computes it again' four.yaml name=nan lr=1e38 clip=0 schedule=constant
run train runs/nan --replay
verdict 'one process computes it again' "$([ $? = 1 ] && grep -qE '^ricci-train: step [0-9]+: (the loss|the gradient) is' err || shown err)"
refuses 'too few micro-batches' 4 'accumulation: a step of 1 micro-batch cannot be shared by 4 ranks; a new run with accumulation=4 batch=3 reads the same sequences per step' \
  four.yaml accumulation=1 batch=12 '~max_ranks'
refuses 'more ranks than max_ranks' 3 'runs/few: max_ranks: 2 is the most ranks this run can use, not 3; a new run can start from its weights: init=runs/few' \
  four.yaml name=few max_ranks=2
refuses 'a replay on several' 2 '--replay: runs as one process, but 2 were started' runs/nan --replay
refuses 'a mistake is told once' 3 'lr: -1, expected .*' four.yaml lr=-1
refuses 'a word that is no option, too' 3 '.*--nonsense.*' --nonsense

# Rank 0 sends an absolute path; this one leads every process to its own folder.
mkdir -p other && sed 's/the/a/' text.txt >other/text.txt && cp four.yaml other
first=(env -C other)
refuses 'rank 0 has another text' 2 'rank 1 on [^ ]+: text [0-9a-f]{16}, rank 0 on [^ ]+: [0-9a-f]{16}' four.yaml name=texts data=/proc/self/cwd/text.txt

wait $apart || failures=$((failures + 1))
cat apart.txt
echo "$failures failed"
exit $((failures > 0))
