#!/usr/bin/env bash
# What README.md says of files is so: links lead somewhere, the reading path has the files' numbers of lines, give or
# take a tenth, and the program and the op that it shows as examples stand in the code, line for line. GitHub runs its test command.
#   readme.sh
set -u
export LC_ALL=C
cd "$(dirname "$0")/../.." || exit 1
failures=0
fault() { echo "README.md: $1"; failures=$((failures + 1)); }

links=0
while read -r file; do
  links=$((links + 1))
  [ -e "$file" ] || fault "no file $file"
done < <(grep -oE '\]\([^) #:]+\)' README.md | tr -d '])(')

counts=0
while IFS='|' read -r _ link lines _; do
  file=$(sed -E 's/.*\(([^)]+)\).*/\1/' <<<"$link")
  counts=$((counts + 1))
  real=$(wc -l <"$file") said=$((lines))
  [ $((10 * (real > said ? real - said : said - real))) -le $real ] || fault "$file has $real lines, not $said"
done < <(grep -E '^\| \[`[^`]+`\]\([^)]+\) \| [0-9]+ \|' README.md)

# The added lines of the example, wherever they belong.
added=0
while IFS= read -r line; do
  added=$((added + 1))
  [ -z "$line" ] || grep -qxF -e "$line" ops/elements/{activations.h,formulas.h,relu.cu} || fault "not in the code: $line"
done < <(sed -n '/^```diff/,/^```$/{/^+/s/^+//p}' README.md)

# The program on the first screen is the example, whole.
diff <(sed -n '/^```cpp/,/^```$/p; /^## /q' README.md | grep -v '^```\|^## ') apps/examples/two_layer_net.cpp >/dev/null || fault 'its program is not apps/examples/two_layer_net.cpp'

grep -qE '^tests/run\.sh ' README.md && grep -qE '^ +tests/run\.sh$' .github/workflows/tests.yml || fault 'GitHub runs another test command'

[ $links -gt 10 ] && [ $counts -gt 10 ] && [ $added -gt 20 ] || fault "only $links links, $counts counts and $added lines were found"
echo "$links links, $counts counts, $added lines, $failures faults"
exit $((failures > 0))
