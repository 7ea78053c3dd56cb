#!/usr/bin/env bash
# A run that is killed at random moments, among them moments at which a checkpoint is being written, and started again
# each time, leaves the bytes of an uninterrupted run; so does one that is interrupted politely. With 1 and 2 threads.
#   resume.sh build-folder [seed]
. "$(dirname "$0")/programs.sh" "$@"
RANDOM=${2:-1}
long=(tiny.yaml steps=1200 eval_every=60 checkpoint_every=3 lr=1e-2 model.dropout=0.2)

# records NAME: what the metrics say, times and memory left out.
records() { sed -E 's/,"tokens_per_s.*//' "runs/$1/metrics.jsonl"; }

# same NAME: the run has the checkpoints, model and records of runs/whole, and nothing else is left.
same() {
  local files=runs/$1/checkpoints
  verdict "$1: the same checkpoints, byte for byte" "$(diff -rq runs/whole/checkpoints "$files" 2>&1)"
  verdict "$1: the same model" "$(cmp runs/{whole,"$1"}/model.safetensors 2>&1)"
  verdict "$1: the same records" "$(diff <(records whole) <(records "$1") 2>&1 | head -3)"
  verdict "$1: no leftovers" "$(find "runs/$1" -name '.*.tmp-*')"
}

begin_run() { "$build/ricci-train" "${long[@]}" "$@" >out 2>err </dev/null & background=$!; }
end_run() {  # end_run SIGNAL: the exit code is that of the program
  kill "-$1" "$background" 2>/dev/null
  wait "$background" 2>/dev/null
  local code=$?
  background=
  return $code
}
record_count() { local lines=(); [ ! -e "runs/$1/metrics.jsonl" ] || mapfile -t lines <"runs/$1/metrics.jsonl"; echo "${#lines[@]}"; }

# A run is under way once it has written as many records as are asked for.
wait_for_records() { while kill -0 "$background" 2>/dev/null && [ "$(record_count "$1")" -lt "$2" ]; do sleep 0.004; done; }
wait_for_write() {
  local found=()
  while kill -0 "$background" 2>/dev/null && [ ${#found[@]} = 0 ]; do found=("runs/$1"/checkpoints/.*.tmp-*); done
}

# killed NAME THREADS: 20 kills after random numbers of new records and random times, and 5 while a checkpoint is written.
killed() {
  local name=$1 kill code killed=0 cut_writes=0 cut
  shopt -s nullglob
  for kill in {1..25}; do
    begin_run name="$name" threads="$2"
    if [ $((kill % 5)) = 0 ]; then
      wait_for_write "$name"
    else
      wait_for_records "$name" $(($(record_count "$name") + RANDOM % 8))
      sleep "0.0$((RANDOM % 20 + 10))"
    fi
    end_run KILL
    [ $? != 137 ] || killed=$((killed + 1))
    cut=(runs/"$name"/checkpoints/.*.tmp-*)
    cut_writes=$((cut_writes + (${#cut[@]} > 0)))
  done
  shopt -u nullglob
  verdict "$name: killed 20 times and more" "$([ $killed -ge 20 ] || echo "only $killed times")"
  verdict "$name: killed while a checkpoint was written" "$([ $cut_writes -ge 1 ] || echo never)"
  echo "        $killed kills, $cut_writes of them while a checkpoint was written"
  accept "$name: the last start runs to the end" train "${long[@]}" name="$name" threads="$2"
  same "$name"
}

accept 'a run in one piece' train "${long[@]}" name=whole threads=1
accept 'its best checkpoint is kept' eval runs/whole --checkpoint best
verdict 'as many checkpoints as asked for' "$([ "$(ls runs/whole/checkpoints | wc -l)" -le 3 ] || ls runs/whole/checkpoints)"
killed one_thread 1
killed two_threads 2

for number in 1 2 3; do
  begin_run name=interrupted threads=1
  wait_for_records interrupted $(($(record_count interrupted) + 5))
  end_run INT
  code=$?
  verdict "Ctrl-C number $number" "$([ $code = 0 ] && grep -q '^interrupted, saved after [0-9]* steps' out || echo "exit code $code")"
done
accept 'the folder alone goes on with the run' train runs/interrupted
verdict 'it tells from where' "$(grep -q '; goes on after step [0-9]* of 1,200' out || echo no)"
same interrupted

echo "$failures failed"
exit $((failures > 0))
