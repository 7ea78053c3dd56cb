#!/usr/bin/env bash
# The pages (README.md, the README.md of each room, .github) agree with the files: links lead to a file and to a heading in it, and
# the program and the op that they show as examples are in the code, line for line. GitHub runs the test command of README.md, and the citation has the version of CMakeLists.txt.
#   readme.sh
set -u
export LC_ALL=C
cd "$(dirname "$0")/../.." || exit 1
failures=0
fault() { echo "$1: $2"; failures=$((failures + 1)); }
mapfile -t pages < <(echo README.md; find .github core cuda autograd ops models data apps tests -name '*.md' | sort)

# prose PAGE: its lines outside of code blocks. anchors PAGE: its headings as GitHub names them in links.
prose() { awk '/^```/ { code = !code; next } !code' "$1"; }
anchors() { prose "$1" | sed -nE 's/^#+ //p' | tr A-Z a-z | tr -cd 'a-z0-9 _\n-' | tr ' ' -; }

links=0
for page in "${pages[@]}"; do
  room=$(dirname "$page")
  while IFS= read -r link; do
    links=$((links + 1))
    file=$page
    [ "${link%%#*}" = '' ] || file=$room/${link%%#*}
    [ -e "$file" ] || { fault "$page" "no file $file"; continue; }
    [[ $link != *#* ]] || anchors "$file" | grep -qxF -e "${link#*#}" || fault "$page" "no heading #${link#*#} in $file"
  done < <(prose "$page" | grep -oE '\]\([^) ]+\)' | sed -E 's/^\]\((.*)\)$/\1/' | grep -vE '^https?:')
done

# The added lines of the example, wherever they belong.
added=0
while IFS= read -r line; do
  added=$((added + 1))
  [ -z "$line" ] || grep -qxF -e "$line" ops/elements/{activations.h,formulas.h,relu.cu} ops/checks/elements.cpp || fault ops/README.md "not in the code: $line"
done < <(sed -n '/^```diff/,/^```$/{/^+/s/^+//p}' ops/README.md)

# The ladders in the headers have the files' numbers of lines, and a time or a minus.
rungs=0 timed=0
while read -r file lines ms; do
  rungs=$((rungs + 1))
  [[ $ms != *[0-9]* ]] || timed=$((timed + 1))
  real=$(wc -l <"$file") || { fault ladders "no file $file"; continue; }
  [ $((10 * (real > lines ? real - lines : lines - real))) -le "$real" ] || fault ladders "$file has $real lines, not $lines"
done < <(cat ops/attention/attention.h cuda/gemm/gemm.h ops/shift_and_sum/shift_and_sum.h ops/rows/layer_norm.h |
  sed -nE 's|^//   ((ops\|cuda)/[^ ]+) +([0-9]+) +([-0-9. ]+)  .*|\1 \3 \4|p')
[ $rungs = 19 ] && [ $timed = 10 ] || fault ladders "$rungs rungs, $timed with a time, expected 19 and 10"

# The formula sheet has a row for every mixer and every family.
names=$(sed -nE 's/.*(kName = |\.name = )"([a-z_]+)".*/\2/p' models/mixers/*.h models/families/*.h | sort -u)
[ "$(wc -w <<<"$names")" -ge 15 ] || fault models 'too few mixers and families were found'
for name in $names; do
  grep -qE "^\| \[\`$name\`\]\((mixers|families)/" models/README.md || fault models/README.md "no formula of $name"
done

# The first page is short, begins with the commands, and shows lines of the example in their order.
[ "$(wc -l <README.md)" -lt 170 ] || fault README.md '170 lines or more'
head -n 30 README.md | grep -qx '```sh' || fault README.md 'no command in its first 30 lines'
program=$(sed -n '/^```cpp/,/^```$/p' README.md | grep -v '^```')
[ "$(wc -l <<<"$program")" -ge 12 ] && ! diff <(echo "$program") apps/examples/two_layer_net.cpp | grep -q '^<' ||
  fault README.md 'its program is not of apps/examples/two_layer_net.cpp'

for command in tests/run.sh 'tests/run.sh --all'; do
  grep -qE "(^|\`)$command(  |\`|$)" README.md && grep -qE "^ +$command\$" .github/workflows/tests.yml || fault README.md "it and the workflow do not both name $command"
done
version=$(sed -nE 's/^project\(ricci VERSION ([0-9.]+).*/\1/p' CMakeLists.txt)
grep -qx "version: $version" .github/CITATION.cff && grep -qF "version $version" README.md || fault .github/CITATION.cff "not version $version"

[ ${#pages[@]} -gt 10 ] && [ $links -gt 40 ] && [ $added -gt 20 ] ||
  fault pages "only ${#pages[@]} pages, $links links and $added lines were found"
echo "${#pages[@]} pages, $links links, $added lines, $failures faults"
exit $((failures > 0))
