#!/usr/bin/env bash
# SIGINT and SIGTERM take effect, also in a long evaluation and while the output is not read. After a restart, an interrupted run ends with
# the bytes of an uninterrupted one.
#   interrupted.sh build-folder [signals in long steps]
. "$(dirname "$0")/../programs.sh" "$@"
tries=${2:-$(few_or_all 3 40)}
records() { sed -E 's/,"tokens_per_s.*//' "runs/$1/metrics.jsonl"; }
has_step() { grep -q "\"step\":$2," "runs/$1/metrics.jsonl" 2>/dev/null; }

# ---- Each evaluation is interrupted, the first one twice. The signal comes when the step before is recorded, or when the run has printed
# that it continues, so it interrupts the evaluation or the short step before it. On a busy machine an evaluation can end earlier: then the
# test restarts.
for number in {1..40}; do cat text.txt; done >many.txt
short=(tiny.yaml validation=many.txt model.ctx=64 model.d=32 eval_every=2 steps=4 checkpoint_every=3 threads=1 tokenizer=byte lr=1e-2)
accept 'evaluations in one piece' train "${short[@]}" name=evaluated
awaits() { grep -q awaits_evaluation "runs/left/checkpoints/step-0000000$1.safetensors" 2>/dev/null; }
# interrupt STEP CONDITION: sends SIGTERM when it is true; true if the step's evaluation was not yet complete.
interrupt() {
  start train "${short[@]}" name=left
  await "! kill -0 $background 2>/dev/null || { $2; }"
  kill -TERM $background 2>/dev/null
  ended
  [ $? = 143 ] && awaits "$1" && grep -q "^interrupted, saved after $1 steps" background.out
}
unrecorded=
for try in {1..20}; do
  rm -rf runs/left
  interrupt 2 'has_step left 1' && unrecorded=$(grep -c '"val_loss":null' runs/left/metrics.jsonl) &&
    interrupt 2 'grep -q "continues after step 2" background.out' && interrupt 4 'has_step left 3' && break
done
verdict 'SIGTERM in evaluations' "$(awaits 4 || shown background.out background.err)"
verdict 'their steps are recorded without them' "$([ "$unrecorded" = 2 ] || shown runs/left/metrics.jsonl)"
accept 'it continues' train "${short[@]}" name=left
verdict 'with the evaluation that was left' "$(grep -q '^step 4: .* validation ' out && grep -q '^saved after 4 steps' out || shown out)"
verdict 'the same model' "$(cmp runs/{evaluated,left}/model.safetensors 2>&1)"
verdict 'the same last checkpoint' "$(cmp runs/{evaluated,left}/checkpoints/step-00000004.safetensors 2>&1)"
verdict 'the same records, each once' "$(diff <(records evaluated) <(records left))"

# ---- A signal at a counted call that changes files
# train_until SIGNAL CALL ARGUMENT ...: returns the program's exit code.
train_until() {
  { RICCI_SIGNAL_AT="$1 $2" LD_PRELOAD=$build/libricci-signal-at.so "$build/ricci-train" tiny.yaml "${@:3}" >out 2>err </dev/null; } 2>/dev/null
}
long=(steps=40 eval_every=12 checkpoint_every=3 keep_checkpoints=2 model.dropout=0.2)
export RICCI_CALLS=$folder/calls
train_until 0 0 "${long[@]}" name=whole
unset RICCI_CALLS
for number in 1 2 3; do
  train_until 2 $(($(grep -c '' calls) / 5)) "${long[@]}" name=pieces
  code=$?
  verdict "Ctrl-C number $number" "$([ $code = 130 ] && grep -q '^interrupted, saved after [0-9]* steps' out || echo "exit code $code")"
done
accept 'the folder alone continues the run' train runs/pieces
verdict 'it tells from where' "$(grep -q '^continues after step [0-9]* of 40$' out || shown out)"
verdict 'the same checkpoints, model and records' "$(diff -r runs/{whole,pieces}/checkpoints 2>&1; cmp runs/{whole,pieces}/model.safetensors 2>&1; diff <(records whole) <(records pieces))"
accept 'the best checkpoint is kept' eval runs/pieces@best

# SIGTERM at the first calls, until it took effect before the first step at three of them. The text must be older than a second: a run
# stores the tokens of a newer text again, and the number of calls before the first step would change.
await '[ $(($(date +%s) - $(stat -c %Z text.txt))) -gt 1 ]'
accept 'two steps in one piece' train tiny.yaml name=straight
faults= saved=0
for ((call = 1; call <= 200 && saved < 3; ++call)); do
  rm -rf runs/early
  train_until 15 $call name=early
  code=$?
  [ $code = 143 ] || grep -q '^saved after' out || faults+=" call $call: exit code $code"
  ! grep -q '^interrupted, saved after 0 steps' out || saved=$((saved + 1))
  run train tiny.yaml name=early || faults+=" after call $call: $(cat err)"
  cmp -s runs/{straight,early}/model.safetensors || faults+=" after call $call: another model"
done
verdict 'SIGTERM before the first step' "$faults"
verdict 'at three calls it was heeded' "$([ $saved -ge 3 ] || echo "at $saved")"

# ---- A larger model. The signal, sent when the record of a step appears, comes while products are computed.
large=(tiny.yaml model.d=128 model.layers=4 model.heads=4 model.ctx=64 batch=12 steps="$(few_or_all 12 80)" checkpoint_every=0)
accept 'a larger run in one piece' train "${large[@]}" name=large_whole
record_count() { [ ! -e runs/large/metrics.jsonl ] && echo 0 || grep -c '' runs/large/metrics.jsonl; }
faults=
for ((number = 1; number <= $(few_or_all 3 12); ++number)); do
  before=$(record_count)
  start train "${large[@]}" name=large
  await '! kill -0 "$background" 2>/dev/null || [ "$(record_count)" -gt $((before + 1)) ]'
  kill -INT "$background" 2>/dev/null
  ended
  code=$?
  [ $code = 130 ] || { [ $code = 0 ] && grep -q '^saved after' background.out; } || faults+=" $number: exit code $code, $(tail -1 background.err)"
done
verdict 'a larger run, interrupted on the way' "$faults"
accept 'it continues to the end' train "${large[@]}" name=large
verdict 'it has the same weights as the run in one piece' "$(cmp runs/large{_whole,}/model.safetensors 2>&1)"

# ---- Steps of two seconds. A request gives the step one more second. A step that ends in it is kept, and a longer one is abandoned.
# Nothing is lost, even by a kill: the last step has the bytes of an uninterrupted run.
slow=(tiny.yaml model.ctx=256 model.d=64 model.dropout=0.1 batch=1 tokenizer=byte data=many.txt eval_batches=1 checkpoint_every=1)
accept 'short steps' train "${slow[@]}" name=speed steps=3
sequences=$(tail -1 runs/speed/metrics.jsonl | sed -E 's/.*"tokens_per_s":([0-9.]+).*/\1/' | awk '{ print int(1 + 2 * $1 / 256) }')
slow+=(accumulation="$sequences" steps=$([ "$tries" -lt 20 ] && echo 3 || echo 12) name=slow)
accept 'long steps in one piece' train "${slow[@]}" name=slow_whole
duration=$(sed -nE 's/.*saved after ([0-9]+) steps, ([0-9.]+) s of training.*/\2 \1/p' out | awk '{ print $1 / $2 }')
last_saved() { ls runs/slow/checkpoints 2>/dev/null | sed -nE 's/^step-0*([0-9]+)\..*/\1/p' | tail -1; }
reaches_the_end() {
  accept "$1" train "${slow[@]}"
  verdict 'with the bytes of the run in one piece' "$(diff -r runs/slow_whole/checkpoints runs/slow/checkpoints 2>&1; cmp runs/slow{_whole,}/model.safetensors 2>&1; diff <(records slow_whole) <(records slow))"
}
RANDOM=1 faults= kept=0 given_up=0 killed=0
for ((number = 1; number <= tries; ++number)); do
  before=$(last_saved)
  start train "${slow[@]}"
  await '! kill -0 "$background" 2>/dev/null || grep -q "tokens to train" background.out'
  sleep "$(awk "BEGIN { print 0.4 + $duration * ($number == 1 ? 0.1 : 1.2 * $RANDOM / 32768) }")"  # the first is early in a step
  signal=$([ $((number % 5)) = 0 ] && echo KILL || echo TERM)
  asked=$EPOCHREALTIME
  kill -$signal "$background" 2>/dev/null
  { ended; code=$?; } 2>/dev/null
  took=$(awk "BEGIN { print $EPOCHREALTIME - $asked }") after=$(last_saved)
  case $code in
    137) killed=$((killed + 1)) ;;
    143)
      if [ "${after:-0}" -gt "${before:-0}" ]; then kept=$((kept + 1)); else given_up=$((given_up + 1)); fi
      [ "${after:-0}" -gt "${before:-0}" ] || awk "BEGIN { exit $took < 1 }" || faults+=" $number: dropped a step after $took s" ;;
    0) reaches_the_end "interrupted $number times" && rm -rf runs/slow && continue ;;
    *) faults+=" $number: exit code $code, $(tail -1 background.err)" ;;
  esac
  [ "${after:-0}" -ge "${before:-0}" ] || faults+=" $number: lost step $before"
done
[ "$tries" -lt 20 ] || [ $((kept * given_up)) -gt 0 ] || faults+=' all kept or all given up'
verdict "$tries signals in long steps: $kept steps kept, $given_up given up, $killed killed" "$faults"
reaches_the_end 'it continues to the end'

# ---- The output is not read: the pipe is full
mkfifo unread
exec 3<>unread
"$build/ricci-train" tiny.yaml name=stalled optimizer=sgd schedule=constant lr=1e-30 steps=1000000 eval_every=1 eval_batches=1 checkpoint_every=0 >unread 2>err </dev/null & background=$!
await '[ -s runs/stalled/metrics.jsonl ]'
while dd if=/dev/zero bs=1 count=4096 oflag=nonblock >&3 2>/dev/null; do :; done
verdict 'it waits for its reader' "$(kill -0 $background || echo 'it ended')"
kill -TERM $background
ended
verdict 'SIGTERM while nobody reads' "$([ $? = 143 ] || shown err)"
exec 3>&-
accept 'it is saved' eval runs/stalled

echo "$failures failed"
exit $((failures > 0))
