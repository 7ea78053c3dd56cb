#!/usr/bin/env bash
# Two trainers that share a cache folder and have the same process number, as in two containers, one of them killed at a drawn call that
# changes files: the other one ends with the bytes of a run alone, and the cache is whole.
#   containers.sh build-folder [seed]
. "$(dirname "$0")/../programs.sh" "$@"
RANDOM=${2:-1}
contained=(unshare --pid --fork --mount-proc --kill-child)
"${contained[@]}" true 2>/dev/null || contained=(unshare --map-root-user --pid --fork --mount-proc --kill-child)
"${contained[@]}" true 2>/dev/null || needs 'the right to make PID namespaces'
contained+=(sh -c '"$@"; exit $?' -)  # a process 1 would ignore its own SIGKILL
verdict 'both have the same process number' "$("${contained[@]}" bash -c '[ $$ = 2 ] || echo $$')"

# contents FOLDER: every file of a cache with its checksum.
contents() { (cd "$1" && find . -type f -exec md5sum {} + | sort -k 2); }

# A text of 1 MB, which takes a while to read.
for number in {1..400}; do cat text.txt; done >large.txt
# The cache knows a text that has just been written by its contents, and later by its time: there would be two folders.
await '[ $(($(date +%s) - $(stat -c %Z large.txt))) -gt 5 ]'
shared=(tiny.yaml data=large.txt steps=3 eval_batches=2)
signal_at=(env "LD_PRELOAD=$build/libricci-signal-at.so")
"${signal_at[@]}" RICCI_CALLS="$folder/calls" "$build/ricci-train" "${shared[@]}" name=alone >out 2>err </dev/null
verdict 'a run alone' "$([ $? = 0 ] && [ ! -s err ] || echo failed)"
calls=$(grep -c '' calls)
mv cache cache.alone
killed=0 faults=
for number in {1..20}; do
  rm -rf cache runs/one runs/other
  at=$((1 + RANDOM % calls))
  "${contained[@]}" "${signal_at[@]}" RICCI_SIGNAL_AT="9 $at" "$build/ricci-train" "${shared[@]}" name=one >/dev/null 2>&1 </dev/null & background=$!
  "${contained[@]}" "$build/ricci-train" "${shared[@]}" name=other >out 2>err </dev/null & other=$!
  wait $background 2>/dev/null
  [ $? != 137 ] || killed=$((killed + 1))
  background=
  wait $other || faults+=" $number: the other one ended with $?: $(cat err)"
  cmp -s runs/{alone,other}/model.safetensors || faults+=" $number (call $at): another model"
  # What the killed one left goes with the next writing or reading; what counts is as it was made by one alone.
  run train "${shared[@]}" name=after$number || faults+=" $number: the next run ended with $?"
  cmp -s runs/{alone,after$number}/model.safetensors || faults+=" $number: another model from the cache"
  difference=$(diff <(contents cache.alone) <(contents cache)) || faults+=" $number (call $at): $difference"
done
verdict "20 times two trainers with one cache, one of them killed" "$faults"
verdict 'they were killed at work' "$([ $killed -gt 10 ] || echo "$killed killed")"
echo "        $killed killed"

echo "$failures failed"
exit $((failures > 0))
