#!/usr/bin/env bash
# The puzzles of apps/tour: without its solution each fails with the line that its text promises, with it each passes.
#   puzzles.sh build-folder
root=$(cd "$(dirname "$0")/../.." && pwd)
. "$(dirname "$0")/programs.sh" "$@"

count=0
for file in "$root"/apps/tour/puzzles/*.cu; do
  name=$(basename "$file" .cu)
  number=$((10#${name%%_*}))
  count=$((count + 1))
  promised=$(sed -n 's|^// Unsolved: ||p' "$file")
  fault=
  [ "$(wc -l <<<"$promised")" = 1 ] && [ ${#promised} -ge 15 ] || fault='its text promises no message;'
  [ "$(wc -l <"$file")" -le 80 ] || fault+=' more than 80 lines;'
  [ -s "$root/apps/tour/puzzles/solutions/$name.inc" ] || fault+=' it has no solution;'
  # Messages name a file as the compiler was given it; the promise leaves its folder out.
  run puzzles "$number" && fault+=' the hole passes;'
  [ "$(sed -E 's|[^ ]*apps/tour/puzzles/||g' out | grep -cF -- "$promised")" = 1 ] || fault+=" expected $promised;"
  grep -q "^puzzle $number, " out || fault+=' it does not name itself;'
  run puzzles-solved "$number" || fault+=" exit code $? of the solution;"
  grep -qE "^puzzle $number, .*: solved$" out || fault+=' the solution does not pass;'
  verdict "$name" "$fault"
done
verdict 'there are twelve' "$([ $count = 12 ] || echo "$count were found")"

run puzzles
verdict 'all in one call' "$([ $? = 1 ] && [ "$(cut -d, -f1 out | tr '\n' ' ')" = "$(seq -f 'puzzle %g' -s ' ' 12) " ] || echo 'expected twelve lines')"
run puzzles-solved
verdict 'all solutions in one call' "$([ $? = 0 ] && [ "$(grep -c ': solved$' out)" = 12 ] || echo 'expected twelve solved ones')"
for word in 13 0 3x ''; do
  run puzzles "$word"
  code=$?
  verdict "puzzle '$word'" "$([ $code = 2 ] && [ "$(cat err)" = "ricci-puzzles: '$word', expected a number from 1 to 12" ] || echo "exit code $code")"
done

echo "$failures failed"
exit $((failures > 0))
