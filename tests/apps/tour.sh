#!/usr/bin/env bash
# Each stop of the tour's track 0 has a block with a command and what it prints. The commands run in the order of the page, in a folder that
# has only the build folder. A line `...` of a block means any lines, and a line that ends in `...` is the beginning of one.
#   tour.sh build-folder     with RICCI_TEST_ALL once more on narrower vectors
. "$(dirname "$0")/outputs.sh" "$@"
: >out >err

# Writes the blocks to 1, 2, ... without their fences, and prints the stops.
stops=$(awk '
  /^## / { track = /^## Track 0/ }
  !track { next }
  /^```/ { inside = !inside; if (inside) file = ++blocks; next }
  inside { print >file; next }
  /^\*\*[0-9]+\. / { print stop blocks - before; stop = $2 " "; before = blocks }
  END { print stop blocks - before }' "$root/apps/tour/README.md" | tail -n +2)
verdict 'each stop has a block' "$(grep ' 0$' <<<"$stops")"
holds 'of at least five stops' [ "$(wc -l <<<"$stops")" -ge 5 ]

# differs BLOCK OUTPUT: the first line that is not as the block has it.
differs() {
  awk '
    function fits(line, expected) { return expected ~ /[.][.][.]$/ ? index(line, substr(expected, 1, length(expected) - 3)) == 1 : line == expected }
    FNR == 1 { ++file }
    file == 1 { if (FNR > 1) expected[++lines] = $0; next }
    { while (expected[next_line + 1] == "...") any = ++next_line }
    fits($0, expected[next_line + 1]) && next_line < lines { ++next_line; any = 0; next }
    !any { wrong = 1; print "printed: " $0; exit }
    END {
      while (expected[next_line + 1] == "...") ++next_line
      if (wrong || next_line < lines) print "expected: " expected[next_line + 1]
    }' "$1" "$2"
}

holds 'the GPT by hand is equal to Model' "$build/gpt_by_hand"
for isa in '' $(few_or_all '' "$(narrower avx2) $(narrower baseline)"); do
  rm -rf reader && mkdir reader && ln -s "$build" reader/build
  limit=$((${isa:+5 * }seconds))  # narrower vectors need a multiple of the time
  for ((block = 1; ; ++block)); do
    [ -e $block ] || break
    command=$(sed -n '1s/^\$ //p' $block)
    fault=
    (cd reader && RICCI_ISA=$isa "$build/ricci-bounded" $limit $mebibytes bash -c "$command") >out 2>err </dev/null || fault="exit code $?"
    [ "$(wc -l <$block)" -gt 1 ] || fault+=' no output is shown'
    verdict "${isa:+$isa: }${command:-block $block has no command}" "$fault$(differs $block out)"
  done
done
finish
