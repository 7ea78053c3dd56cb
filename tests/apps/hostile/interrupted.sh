#!/usr/bin/env bash
# SIGTERM is heeded within two seconds: also in a long evaluation, and while nobody reads what is printed. What was interrupted
# ends, when it goes on, with the bytes of a run in one piece.
#   interrupted.sh build-folder
. "$(dirname "$0")/../programs.sh" "$@"
records() { sed -E 's/,"tokens_per_s.*//' "runs/$1/metrics.jsonl"; }

# heeded NAME: sends SIGTERM to $background, which has to end within 2 s and to say that it saved.
heeded() {
  local before=$EPOCHREALTIME code
  kill -TERM $background
  ended 40
  code=$?
  verdict "$1" "$(awk -v code=$code -v took="$EPOCHREALTIME $before" 'BEGIN { split(took, t, " "); if (code || t[1] - t[2] > 2) print "exit code " code ", " t[1] - t[2] " s" }')"
}

# ---- An evaluation that takes long: one sequence at a time
long=(tiny.yaml data=embedded model.d=256 model.layers=4 batch=1 eval_every=2 steps=4 checkpoint_every=0 threads=1)
start train "${long[@]}" name=evaluated
await 'grep -q "\"step\":1," runs/evaluated/metrics.jsonl 2>/dev/null'
sleep 0.5
verdict 'the evaluation of step 2 is under way' "$(kill -0 $background && [ "$(grep -c '' runs/evaluated/metrics.jsonl)" = 1 ] || echo no)"
heeded 'SIGTERM in an evaluation'
verdict 'it saved before it ended' "$(grep -q '^interrupted, saved after 2 steps' background.out || echo no)"
verdict 'the step is recorded without its evaluation' "$([ "$(grep -c '"val_loss":null' runs/evaluated/metrics.jsonl)" = 2 ] || shown runs/evaluated/metrics.jsonl)"

# ---- The same with one that is interrupted in each of its evaluations, and ends like a run in one piece
for number in {1..100}; do cat text.txt; done >many.txt
short=(tiny.yaml validation=many.txt model.ctx=64 model.d=32 batch=8 eval_every=2 steps=6 checkpoint_every=3 threads=1 tokenizer=byte lr=1e-2)
accept 'evaluations in one piece' train "${short[@]}" name=whole
left=0
for number in {1..9}; do
  start train "${short[@]}" name=pieces
  sleep 0.1$number
  kill -TERM $background 2>/dev/null
  ended 40
  code=$?
  [ $code = 0 ] || [ $code = 143 ] || verdict "interruption $number" "exit code $code"
  ! grep -q awaits_evaluation runs/pieces/checkpoints/* 2>/dev/null || left=$((left + 1))
done
verdict 'most of them in an evaluation' "$([ $left -ge 3 ] || echo "only $left")"
accept 'it goes on to its end' train "${short[@]}" name=pieces
verdict 'the same model' "$(cmp runs/{whole,pieces}/model.safetensors 2>&1)"
verdict 'the same last checkpoint' "$(cmp runs/{whole,pieces}/checkpoints/step-00000006.safetensors 2>&1)"
verdict 'the same records' "$(diff <(records whole) <(records pieces))"

# ---- SIGTERM at each of the first calls that change a file, most of them before the first step: what is left goes on
first=(tiny.yaml steps=2 threads=1)
accept 'two steps in one piece' train "${first[@]}" name=straight
faults= saved=0
for call in {1..45}; do
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

# ---- A run whose last evaluation was interrupted is not finished
last=(tiny.yaml data=embedded model.d=256 model.layers=4 batch=1 steps=2 checkpoint_every=0 threads=1)
start train "${last[@]}" name=last
await 'grep -q "\"step\":1," runs/last/metrics.jsonl 2>/dev/null'
sleep 0.5
heeded 'SIGTERM in the last evaluation'
accept 'it goes on' train "${last[@]}" name=last eval_batches=50
verdict 'with the evaluation that was left' "$(grep -q '^step 2: .* validation ' out && grep -q '^saved after 2 steps' out || echo no)"
verdict 'and records it once' "$([ "$(grep -c '"step":2,' runs/last/metrics.jsonl)" = 1 ] || shown runs/last/metrics.jsonl)"

# ---- A step that takes long is given up: its end is not waited for, and the run goes on from the step before
slow=(tiny.yaml model.ctx=2048 model.d=64 batch=1 accumulation=200 steps=2 tokenizer=byte data=many.txt eval_batches=1 threads=1 model.dropout=0.1 sample.tokens=0)
accept 'long steps in one piece' train "${slow[@]}" name=steps
start train "${slow[@]}" name=stopped
await 'grep -q "\"step\":1," runs/stopped/metrics.jsonl 2>/dev/null'
heeded 'SIGTERM in a long step'
verdict 'it saved the step before' "$(grep -q '^interrupted, saved after 1 steps' background.out || shown background.out)"
accept 'it goes on' train "${slow[@]}" name=stopped
verdict 'to the same model' "$(cmp runs/{steps,stopped}/model.safetensors 2>&1)"

# ---- Nobody reads what is printed
mkfifo unread
sleep 60 <unread & reader=$!
"$build/ricci-train" tiny.yaml name=stalled optimizer=sgd schedule=constant lr=1e-30 steps=1000000 eval_every=1 eval_batches=1 checkpoint_every=0 >unread 2>err </dev/null & background=$!
await '[ -s runs/stalled/metrics.jsonl ]'
stands() { local before=$(wc -c 2>/dev/null <runs/stalled/metrics.jsonl); sleep 0.4; [ -n "$before" ] && [ "$before" -gt 1000 ] && [ "$before" = "$(wc -c <runs/stalled/metrics.jsonl)" ]; }
await stands
verdict 'it waits for its reader' "$(kill -0 $background || echo 'it ended')"
heeded 'SIGTERM while nobody reads'
kill $reader
accept 'it is saved' eval runs/stalled

echo "$failures failed"
exit $((failures > 0))
