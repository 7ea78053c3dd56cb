#!/usr/bin/env bash
# Two trainers that share a cache folder and have the same process number, as in two containers, one of them killed at a random
# moment: the other one ends with the bytes of a run alone, and the cache is whole.
#   containers.sh build-folder [seed]
# RICCI_ROUNDS: how often; 20 if not given.
. "$(dirname "$0")/../programs.sh" "$@"
RANDOM=${2:-$$}
rounds=${RICCI_ROUNDS:-20}
contained=(unshare --pid --fork --mount-proc --kill-child)
"${contained[@]}" true 2>/dev/null || contained=(unshare --map-root-user --pid --fork --mount-proc --kill-child)
"${contained[@]}" true 2>/dev/null || needs 'the right to make PID namespaces'
verdict 'both have the same process number' "$("${contained[@]}" sh -c '[ $$ = 1 ] || echo $$')"

# contents FOLDER: every file of a cache with its checksum; the random digits that end the name of a store are left out.
contents() { (cd "$1" && find . -type f -exec md5sum {} + | sed -E 's|(/shards-[0-9a-f]+)-[0-9a-f]+/|\1/|' | sort -k 2); }

# A text that takes a while to read: 3 MB, of which both have the same characters.
for number in {1..60}; do cat text.txt; done >many.txt
for number in {1..18}; do cat many.txt; done >large.txt
sleep 4  # a store of a file that has just been written does not say so, since it may change once more within the clock's tick
shared=(tiny.yaml data=large.txt steps=3 eval_batches=2)
before=$EPOCHREALTIME
accept 'a run alone' train "${shared[@]}" name=alone
whole=$(awk -v t="$EPOCHREALTIME $before" 'BEGIN { split(t, s, " "); printf "%d", (s[1] - s[2]) * 1000 }')
cp -r cache cache.alone
killed=0 faults= cold=0
for ((number = 1; number <= rounds; ++number)); do
  rm -rf cache runs/one runs/other
  "${contained[@]}" "$build/ricci-train" "${shared[@]}" name=one >/dev/null 2>&1 </dev/null & background=$!
  "${contained[@]}" "$build/ricci-train" "${shared[@]}" name=other >out 2>err </dev/null & other=$!
  delay=$((RANDOM % (whole + 20)))
  sleep "$((delay / 1000)).$(printf %03d $((delay % 1000)))"
  [ -e runs/one/model.safetensors ] || cold=$((cold + 1))
  kill -KILL $background 2>/dev/null && killed=$((killed + 1))
  wait $background 2>/dev/null
  background=
  wait $other || faults+=" $number: the other one ended with $?: $(cat err)"
  cmp -s runs/{alone,other}/model.safetensors || faults+=" $number (after $delay ms): another model"
  # What the killed one left goes with the next writing or reading; what counts is as it was made by one alone.
  run train "${shared[@]}" name=after$number || faults+=" $number: the next run ended with $?"
  cmp -s runs/{alone,after$number}/model.safetensors || faults+=" $number: another model from the cache"
  difference=$(diff <(contents cache.alone) <(contents cache)) || faults+=" $number (after $delay ms): $difference"
done
verdict "$rounds times two trainers with one cache, one of them killed" "$faults"
verdict 'they were killed at work' "$([ $killed -gt $((rounds / 2)) ] && [ $cold -gt 0 ] || echo "$killed killed, $cold of them before their end")"
echo "        $killed killed, $cold of them before their end"

echo "$failures failed"
exit $((failures > 0))
