#!/usr/bin/env bash
# A training on several ranks, started by mpirun: the same bytes for any number of them, also where they change on the way, and where a rank
# is killed; and the line with which each failure ends.
#   ranks.sh build-folder
. "$(dirname "$0")/programs.sh" "$@"
"$build/ricci-train" --version | grep -qE 'Open MPI|MPICH' && command -v mpirun >/dev/null || needs MPI
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
spread=()
mpirun --version | grep -q 'Open MPI' && spread=(--oversubscribe)
RANDOM=1

# together N ARGUMENT ...: ricci-train on N ranks; its output in out, in err its own lines and warnings.
together() {
  timeout -k 5 120 mpirun "${spread[@]}" -n "$1" "$build/ricci-train" "${@:2}" >out 2>all_err </dev/null
  local code=$?
  background=
  grep -E '^(ricci-train|warning): ' all_err >err
  return $code
}
# The processes of this script alone: those that work in its folder.
ours() { for pid in $(pgrep -x ricci-train); do [ "$(readlink "/proc/$pid/cwd")" = "$folder" ] && echo "$pid"; done; }
nobody_left() {
  for _ in {1..100}; do
    ours >left
    [ -s left ] || return 0
    sleep 0.1
  done
  return 1
}
trains() {  # NAME N ARGUMENT ...
  local fault=
  together "${@:2}" || fault="exit code $?"
  [ ! -s err ] || fault+=' expected nothing on stderr'
  verdict "$1" "$fault"
}
refuses() {  # NAME N LINE ARGUMENT ...
  together "$2" "${@:4}"
  local code=$?
  verdict "$1" "$([ $code != 0 ] && [ $code != 124 ] && nobody_left && [ "$(wc -l <err)" = 1 ] && grep -qE "^ricci-train: $3\$" err || echo "exit code $code")"
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

# 20 steps of 8 micro-batches, in 4 leaves, with dropout and a clip that acts.
cat >four.yaml <<'END'
name: bad
model: {d: 16, layers: 2, heads: 2, ctx: 16, dropout: 0.1}
data: text.txt
steps: 20
batch: 2
accumulation: 8
max_ranks: 4
clip: 0.5
lr: 0.01
threads: 1
eval_every: 10
checkpoint_every: 5
keep_checkpoints: 9
log_every: 1
sample: {tokens: 0}
END

# shared NAME "RANKS" ARGUMENT ...: as one process, and the same on other numbers of ranks.
shared() {
  accept "$1, one process" train four.yaml "name=$1" "${@:3}"
  for n in $2; do
    trains "$1, $n ranks" "$n" four.yaml "name=$1-$n" "${@:3}"
    same "$1: $n ranks have the bytes of one process" "$1" "$1-$n"
    rm -rf "runs/$1-$n"
  done
}
words=(model.family=classifier model.layers=1 format=tsv label_field=1 eval_every=10)
for i in {1..200}; do echo "$((i % 2))	$(for w in $(seq $((RANDOM % 12 + 3))); do printf '%s ' $((i % 2 ? RANDOM % 6 : RANDOM % 4 + 4)); done)"; done >labelled.tsv

shared f32 '2 3 4'
verdict 'the clip acts' "$(sed -E 's/.*"grad_norm":([^,]*),.*/\1/' runs/f32/metrics.jsonl | awk '$1 <= 0.5')"
verdict 'other sums are other bits' "$(run train four.yaml name=one max_ranks=1; ! cmp -s runs/{f32,one}/model.safetensors || echo 'the same bytes')"
shared bf16 '2 3' precision=bf16
shared recompute 3 recompute=blocks precision=bf16
shared invariant 3 batch_invariant=true batch=4 accumulation=2
shared frozen 4 'freeze=[tok,blocks.0.mixer]'
shared sgd 3 optimizer=sgd lr=0.1
shared untied 3 model.tie=false
shared dispatcher 2 model.mixer=dispatcher
shared columns 3 order=columns
shared shuffled 3 order=shuffled weights='[]'
shared topdown 3 model.family=topdown model.layers=1 model.scales='[1, 4]' model.bag_weights='[0.1]' model.loss_from=first_full
shared classes 3 data=labelled.tsv "${words[@]}"
[ -n "${RICCI_RANKS_QUICK:-}" ] || shared emulated 3 device=cuda_emulated steps=5 eval_batches=1 model.layers=1

# ---- Going on with another number of ranks
accept 'a run of 20 steps' train four.yaml name=whole eval_every=5
trains 'its first 5 on four ranks' 4 four.yaml name=parts eval_every=5 steps=5 schedule_steps=20
accept 'then one process' train four.yaml name=parts eval_every=5 steps=10 schedule_steps=20
trains 'then three' 3 four.yaml name=parts eval_every=5 steps=15 schedule_steps=20
trains 'then two' 2 runs/parts steps=20
same 'saved by 4, continued by 1, 3 and 2: the bytes of the run in one piece' whole parts
trains 'nothing is left to do' 3 runs/parts
verdict 'which is said' "$(grep -q 'finished after 20 steps already' out || shown out)"
trains 'patience on three ranks' 3 four.yaml name=patient-3 eval_every=1 patience=2 lr=10 schedule=constant
accept 'and on one' train four.yaml name=patient eval_every=1 patience=2 lr=10 schedule=constant
same 'ends at the same step' patient patient-3
trains 'samples on the way' 2 four.yaml name=samples-2 sample.tokens=5 sample.every=3
same 'change nothing' f32 samples-2

# ---- Memory
# within PLANNED MEASURED: they differ by at most 5%.
within() { awk -v p="$1" -v m="$2" 'BEGIN { exit !(p > 0 && m > 0 && p <= 1.05 * m && m <= 1.05 * p) }' || echo "planned $1, measured $2"; }
large=(four.yaml model.layers=4 model.d=192 model.ctx=64 steps=2 checkpoint_every=0 eval_batches=1)
for ranks in 2 3; do
  trains "a larger model on $ranks ranks" $ranks "${large[@]}" name=large-$ranks
  run plan "${large[@]}" --ranks $ranks --json
  planned=$(sed -nE 's/^ *"peak_bytes": ([0-9]+),?$/\1/p' out | head -1)
  verdict 'holds what the plan says' "$(within "$planned" "$(tail -1 "runs/large-$ranks/metrics.jsonl" | sed -E 's/.*"peak_bytes":([0-9]+).*/\1/')")"
  verdict 'and less than one process' "$(run plan "${large[@]}" --json; [ "$(sed -nE 's/^ *"peak_bytes": ([0-9]+),?$/\1/p' out | head -1)" -gt $((planned * 105 / 100)) ] || shown out)"
done

# ---- Ends of one rank
# A long run, in the background; $launcher is mpirun.
long=(four.yaml steps=20000 schedule_steps=20000 eval_every=0 checkpoint_every=7 keep_checkpoints=2 log_every=1)
begin() {  # N ARGUMENT ...
  mpirun "${spread[@]}" -n "$1" "$build/ricci-train" "${@:2}" >out 2>all_err </dev/null &
  launcher=$! background=$!
}
finish() {  # the exit code of mpirun, 124 where it is still there after a minute
  for _ in {1..600}; do kill -0 $launcher 2>/dev/null || break; sleep 0.1; done
  if kill -0 $launcher 2>/dev/null; then
    kill -KILL $launcher $(ours)
    wait $launcher 2>/dev/null
    background=
    return 124
  fi
  wait $launcher 2>/dev/null
  local code=$?
  grep -E '^(ricci-train|warning): ' all_err >err
  return $code
}
pid_of() { for pid in $(ours); do tr '\0' '\n' <"/proc/$pid/environ" 2>/dev/null | grep -qxE "(OMPI_COMM_WORLD_RANK|PMI_RANK)=$1" && echo "$pid"; done; }

steps_of() { [ -f "runs/$1/metrics.jsonl" ] && wc -l <"runs/$1/metrics.jsonl" || echo 0; }

begin 3 "${long[@]}" name=polite
await '[ "$(steps_of polite)" -ge 5 ]'
kill -USR1 $launcher
finish
verdict 'SIGUSR1 to the launcher: all save and leave' "$([ $? = 0 ] && grep -q 'interrupted, saved after' out && nobody_left || shown out all_err)"
last=$(ls runs/polite/checkpoints | tail -1 | tr -dc 0-9 | sed 's/^0*//')
accept 'as many steps in one process' train "${long[@]}" name=straight steps="$last"
verdict 'and the same bytes' "$(cmp runs/{polite,straight}/model.safetensors 2>&1)"

# Without saves: while rank 0 writes the others wait without a limit.
for rank in 1 0; do
  begin 3 "${long[@]}" name=stopped-$rank rank_timeout=5 checkpoint_every=0
  await "[ \"\$(steps_of stopped-$rank)\" -ge 5 ]"
  kill -STOP "$(pid_of $rank)"
  begun=$SECONDS
  finish
  code=$?
  verdict "rank $rank stopped" "$([ $code != 0 ] && [ $code != 124 ] && nobody_left &&
    grep -qE "^ricci-train: rank $rank on [^ ]+ does not answer: the other 2 have waited for it for 5 s \\(rank_timeout\\) in step [0-9,]+\$" err || shown all_err)"
  verdict "within 15 s" "$([ $((SECONDS - begun)) -le 16 ] || echo "$((SECONDS - begun)) s")"
done

begin 2 "${long[@]}" name=gone
await '[ "$(steps_of gone)" -ge 3 ]'
rm -rf runs/gone
finish
verdict 'the folder is taken away' "$([ $? != 0 ] && nobody_left && [ "$(wc -l <err)" = 1 ] && grep -qE '^ricci-train: rank 0 on [^ ]+: step [0-9]+: .*runs/gone' err || shown all_err)"

begin 2 "${long[@]}" name=full
await '[ "$(steps_of full)" -ge 3 ]'
prlimit --pid "$(pid_of 0)" --fsize=4096
finish
verdict 'rank 0 cannot write any more' "$([ $? != 0 ] && nobody_left && [ "$(wc -l <err)" = 1 ] && grep -qE '^ricci-train: rank 0 on [^ ]+: step [0-9]+: .*runs/full.*File too large' err || shown all_err)"

# A random rank is killed at a random moment, and another number of ranks goes on.
steps=600 kills=20 hits=0
killed=("${long[@]}" checkpoint_every=3 steps=$steps schedule_steps=$steps name=killed)
for ((i = 0; i < kills; ++i)); do
  before=$(steps_of killed) n=$((RANDOM % 3 + 2))
  begin $n "${killed[@]}"
  await "[ \"\$(steps_of killed)\" -gt $((before + 4)) ] || ! kill -0 $launcher 2>/dev/null" # past the checkpoint
  sleep 0.0$((RANDOM % 10))
  kill -KILL "$(pid_of $((RANDOM % n)))" 2>/dev/null
  finish
  code=$?
  [ $code = 0 ] || ((++hits))
  nobody_left || verdict "kill $i: nobody is left" "$(cat left)"
  [ $code != 124 ] || verdict "kill $i: an end" 'still there after a minute'
done
verdict 'most of 20 kills hit' "$([ $hits -ge 15 ] || echo "$hits did")"
trains 'after 20 kills: to the end' 4 "${killed[@]}"
accept 'the same run in one piece' train "${killed[@]}" name=unkilled
verdict 'has the same bytes' "$(cmp runs/{killed,unkilled}/model.safetensors 2>&1)"
verdict 'and the same last checkpoint' "$(cmp runs/{killed,unkilled}/checkpoints/step-00000$steps.safetensors 2>&1)"

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
mkdir -p other && sed 's/the/a/' text.txt >other/text.txt
words=("$build/ricci-train" four.yaml name=texts data=/proc/self/cwd/text.txt)
timeout -k 5 60 mpirun "${spread[@]}" -n 1 "${words[@]}" : -n 1 bash -c 'cd other && exec "$@"' - "${words[@]}" >out 2>all_err </dev/null
code=$?
grep -E '^(ricci-train|warning): ' all_err >err
verdict 'rank 1 has another text' "$([ $code != 0 ] && [ $code != 124 ] && nobody_left && [ "$(wc -l <err)" = 1 ] &&
  grep -qE '^ricci-train: rank 1 on [^ ]+: text [0-9a-f]{16}, rank 0 on [^ ]+: [0-9a-f]{16}$' err || shown all_err)"

echo "$failures failed"
exit $((failures > 0))
