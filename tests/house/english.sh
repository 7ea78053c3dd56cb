#!/usr/bin/env bash
# Comments begin with the thing that they are about: not with "of", whose noun is the line of code beside it, and not with a clause of
# What, Which, How or Who. A comment over several lines may have such a word at the begin of a later line.
#   english.sh
set -u
cd "$(dirname "$0")/../.." || exit 1
files=$(find core cuda autograd ops models data apps -name '*.cpp' -o -name '*.h' -o -name '*.cu')
[ "$(wc -w <<<"$files")" -gt 300 ] || { echo 'too few files were found'; exit 1; }
faults() {
  awk '
    { comment = match($0, /\/\/ ?/) ? substr($0, RSTART + RLENGTH) : ""; alone = $0 ~ /^ *\/\//; goes_on = alone && before; before = alone }
    comment ~ /^[Oo]f / && !goes_on { print FILENAME ":" FNR ": a comment that begins with \"of\": " comment }
    comment ~ /^(What|Which|How|Who|Whether) / && alone && !goes_on && comment !~ /\?/ { print FILENAME ":" FNR ": a comment that begins with a clause: " comment }' "$@"
}
# A plain sentence passes, and each rule finds its example.
[ "$(printf '%s\n' 'int n;  // of a row' '// What it does.' 'int m;' '// The length' '// of a row.' | faults | wc -l)" = 2 ] || { echo 'the rules are broken'; exit 1; }
found=$(faults $files)
[ -z "$found" ] || { echo "$found"; exit 1; }
