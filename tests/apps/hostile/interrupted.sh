#!/usr/bin/env bash
# SIGTERM is heeded also in a long evaluation, and while nobody reads what is printed. What was interrupted ends, when it is started again,
# with the bytes of a run in one piece.
#   interrupted.sh build-folder
. "$(dirname "$0")/../programs.sh" "$@"
records() { sed -E 's/,"tokens_per_s.*//' "runs/$1/metrics.jsonl"; }
has_step() { grep -q "\"step\":$2," "runs/$1/metrics.jsonl" 2>/dev/null; }

# ---- Each of the evaluations is interrupted, the first of them twice. The signal comes when the step before is recorded, or when the run
# has told that it continues, so that it meets the evaluation or the short step before it. A busy machine may let an evaluation end before:
# then all begins again.
for number in {1..40}; do cat text.txt; done >many.txt
short=(tiny.yaml validation=many.txt model.ctx=64 model.d=32 eval_every=2 steps=4 checkpoint_every=3 threads=1 tokenizer=byte lr=1e-2)
accept 'evaluations in one piece' train "${short[@]}" name=whole
awaits() { grep -q awaits_evaluation "runs/pieces/checkpoints/step-0000000$1.safetensors" 2>/dev/null; }
# interrupt STEP CONDITION: sends SIGTERM when it is true; true if the evaluation of the step is then still to be made.
interrupt() {
  start train "${short[@]}" name=pieces
  await "! kill -0 $background 2>/dev/null || { $2; }"
  kill -TERM $background 2>/dev/null
  ended && awaits "$1" && grep -q "^interrupted, saved after $1 steps" background.out
}
for try in {1..20}; do
  rm -rf runs/pieces
  interrupt 2 'has_step pieces 1' && unrecorded=$(grep -c '"val_loss":null' runs/pieces/metrics.jsonl) &&
    interrupt 2 'grep -q "goes on after step 2" background.out' && interrupt 4 'has_step pieces 3' && break
done
verdict 'SIGTERM in evaluations' "$(awaits 4 || shown background.out background.err)"
verdict 'their steps are recorded without them' "$([ "$unrecorded" = 2 ] || shown runs/pieces/metrics.jsonl)"
accept 'it continues' train "${short[@]}" name=pieces
verdict 'with the evaluation that was left' "$(grep -q '^step 4: .* validation ' out && grep -q '^saved after 4 steps' out || shown out)"
verdict 'the same model' "$(cmp runs/{whole,pieces}/model.safetensors 2>&1)"
verdict 'the same last checkpoint' "$(cmp runs/{whole,pieces}/checkpoints/step-00000004.safetensors 2>&1)"
verdict 'the same records, each once' "$(diff <(records whole) <(records pieces))"

# ---- SIGTERM at the first calls that change a file, most of them before the first step: what is left goes on
first=(tiny.yaml steps=2 threads=1)
accept 'two steps in one piece' train "${first[@]}" name=straight
faults= saved=0
for ((call = 1; call <= 45; call += $(few_or_all 4 1))); do
  rm -rf runs/early
  { RICCI_SIGNAL_AT="15 $call" LD_PRELOAD=$build/libricci-signal-at.so "$build/ricci-train" "${first[@]}" name=early >out 2>err </dev/null; } 2>/dev/null
  code=$?
  [ $code = 0 ] || [ $code = 143 ] || faults+=" call $call: exit code $code"
  ! grep -q 'saved after 0 steps' out || saved=$((saved + 1))
  run train "${first[@]}" name=early || faults+=" after call $call: $(cat err)"
  cmp -s runs/{straight,early}/model.safetensors || faults+=" after call $call: another model"
done
verdict 'SIGTERM before the first step' "$faults"
verdict 'at least one of them while it was heeded' "$([ $saved -ge 1 ] || echo none)"

# ---- A step that takes long is given up: its end is not waited for, and the run goes on from the step before
if everything; then
  slow=(tiny.yaml model.ctx=2048 model.d=64 batch=1 accumulation=400 steps=2 tokenizer=byte data=many.txt eval_batches=1 threads=1 model.dropout=0.1)
  accept 'long steps in one piece' train "${slow[@]}" name=steps
  start train "${slow[@]}" name=stopped
  await 'has_step stopped 1'
  kill -TERM $background
  ended
  verdict 'SIGTERM in a long step' "$([ $? = 0 ] && grep -q '^interrupted, saved after 1 steps' background.out || shown background.out)"
  accept 'it goes on' train "${slow[@]}" name=stopped
  verdict 'to the same model' "$(cmp runs/{steps,stopped}/model.safetensors 2>&1)"
fi

# ---- Nobody reads what is printed: the pipe is full
mkfifo unread
exec 3<>unread
"$build/ricci-train" tiny.yaml name=stalled optimizer=sgd schedule=constant lr=1e-30 steps=1000000 eval_every=1 eval_batches=1 checkpoint_every=0 >unread 2>err </dev/null & background=$!
await '[ -s runs/stalled/metrics.jsonl ]'
while dd if=/dev/zero bs=1 count=4096 oflag=nonblock >&3 2>/dev/null; do :; done
verdict 'it waits for its reader' "$(kill -0 $background || echo 'it ended')"
kill -TERM $background
ended
verdict 'SIGTERM while nobody reads' "$([ $? = 0 ] || shown err)"
exec 3>&-
accept 'it is saved' eval runs/stalled

echo "$failures failed"
exit $((failures > 0))
