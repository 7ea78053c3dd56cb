#!/usr/bin/env bash
# A run that is killed at drawn moments, most of them while a checkpoint is being written, and started again each time,
# leaves the bytes of an uninterrupted run; so does one that is interrupted politely. With 1 and 2 threads. The moments are
# calls that change files, counted (signal_at.cpp), so that no clock and no load of the machine has a part in it.
#   resume.sh build-folder [seed]
. "$(dirname "$0")/../programs.sh" "$@"
RANDOM=${2:-1}
kills=$(few_or_all 6 100)
long=(tiny.yaml steps="$(few_or_all 60 960)" eval_every=12 checkpoint_every=3 lr=1e-2 model.dropout=0.2)

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

# train_until SIGNAL CALL ARGUMENT ...: the exit code is that of the program.
train_until() {
  { RICCI_SIGNAL_AT="$1 $2" LD_PRELOAD=$build/libricci-signal-at.so "$build/ricci-train" "${long[@]}" "${@:3}" >out 2>err </dev/null; } 2>/dev/null
}

# killed NAME THREADS: every start but the last is killed before it can do its share of the work, some of them at once.
killed() {
  local name=$1 kill code at survived= cut cut_writes=0 resumed=0
  shopt -s nullglob
  for ((kill = 1; kill <= kills; ++kill)); do
    at=$((1 + RANDOM % (kill % 5 ? share : 12)))
    train_until 9 "$at" name="$name" threads="$2"
    code=$?
    [ $code = 137 ] || survived+=" $kill at call $at: exit code $code"
    cut=(runs/"$name"/checkpoints/.*.tmp-*)
    cut_writes=$((cut_writes + (${#cut[@]} > 0)))
    ! grep -q 'goes on after step' out || resumed=$((resumed + 1))
  done
  shopt -u nullglob
  verdict "$name: killed $kills times" "$survived"
  verdict "$name: killed while a checkpoint was written" "$([ $cut_writes -ge $((kills / 5)) ] || echo "only $cut_writes times")"
  verdict "$name: went on from a checkpoint" "$([ $resumed -ge $((kills / 5)) ] || echo "only $resumed times")"
  echo "        $cut_writes kills while a checkpoint was written, $resumed starts from a checkpoint"
  accept "$name: the last start runs to the end" train "${long[@]}" name="$name" threads="$2"
  same "$name"
}

export RICCI_CALLS=$folder/calls
train_until 0 0 name=whole threads=1
verdict 'a run in one piece' "$([ $? = 0 ] && [ ! -s err ] || echo "exit code $?")"
unset RICCI_CALLS
calls=$(grep -c '' calls)
share=$((calls / (kills + 1)))  # of a start: less than its part, had all starts the same
verdict "it changes files by $calls calls" "$([ "$share" -ge 50 ] || echo 'too few to be killed at')"
# A power failure must find under the new name what was written, so the file is synced before its renaming, the folder after.
verdict 'every file is synced before it is renamed, and its folder after' "$(awk '
  last == "rename" && $1 != "fsync" || $1 == "rename" && last != "fsync" { bad++ } $1 == "rename" { renamed++ } { last = $1 }
  END { if (bad || renamed < 20) print bad + 0 " of " renamed + 0 " are not" }' calls)"
accept 'its best checkpoint is kept' eval runs/whole --checkpoint best
verdict 'as many checkpoints as asked for' "$([ "$(ls runs/whole/checkpoints | wc -l)" -le 3 ] || instead ls runs/whole/checkpoints)"
killed one_thread 1
killed two_threads 2

for number in 1 2 3; do
  train_until 2 $((calls / 5)) name=interrupted threads=1
  code=$?
  verdict "Ctrl-C number $number" "$([ $code = 0 ] && grep -q '^interrupted, saved after [0-9]* steps' out || echo "exit code $code")"
done
accept 'the folder alone goes on with the run' train runs/interrupted
verdict 'it tells from where' "$(grep -qE '; goes on after step [0-9]* of (60|960)' out || echo no)"
same interrupted

# A larger model, whose products a library computes in its own way: a signal must not disturb what they hold. It comes while they are
# computed, because it is sent when the records of the step before appear.
large=(tiny.yaml model.d=128 model.layers=4 model.heads=4 model.ctx=64 batch=12 steps="$(few_or_all 16 80)" checkpoint_every=0)
accept 'a larger run in one piece' train "${large[@]}" name=large_whole
record_count() { [ ! -e runs/large/metrics.jsonl ] && echo 0 || grep -c '' runs/large/metrics.jsonl; }
faults=
for ((number = 1; number <= $(few_or_all 3 12); ++number)); do
  records_before=$(record_count)
  start train "${large[@]}" name=large
  await '! kill -0 "$background" 2>/dev/null || [ "$(record_count)" -gt $((records_before + 1)) ]'
  kill -INT "$background" 2>/dev/null
  ended || faults+=" $number: exit code $?, $(tail -1 background.err)"
done
verdict 'a larger run, interrupted on the way' "$faults"
accept 'it goes on to the end' train "${large[@]}" name=large
verdict 'it has the same weights as the run in one piece' "$(cmp runs/large{_whole,}/model.safetensors 2>&1)"

echo "$failures failed"
exit $((failures > 0))
