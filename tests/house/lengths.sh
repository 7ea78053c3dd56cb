#!/usr/bin/env bash
# A file of C++ has at most 500 lines, a line at most 140 columns, a function at most 80 lines, from the line that ends in its opening brace to its closing brace.
# The indentation finds them: a function ends at the first line that is a closing brace as far to the right as its beginning.
#   lengths.sh
set -u
cd "$(dirname "$0")/../.." || exit 1
files=$(find core cuda autograd ops models data apps tests -name '*.cpp' -o -name '*.h' -o -name '*.cu')
functions=$(awk '
  function name(line) { while (match(line, /^ *template <([^<>]|<[^<>]*>)*> /)) line = substr(line, RLENGTH + 1); return line }
  FNR == 1 { delete begin }
  { match($0, /^ */); indent = RLENGTH }
  /^ *}/ { if ($0 ~ /^ *}$/ && begin[indent] && FNR - begin[indent] >= 80) print FILENAME ":" begin[indent] ": " FNR - begin[indent] + 1 " lines"; begin[indent] = 0 }
  /[{]$/ && name($0) !~ /^ *((inline )?namespace|struct|class|union|enum|extern|}) ?/ { begin[indent] = FNR }' $files)
long=$(wc -l $files | awk '$2 != "total" && $1 > 500 { print $2 ": " $1 " lines" }')
[ "$(wc -w <<<"$files")" -gt 300 ] || { echo 'too few files were found'; exit 1; }
wide=$(LC_ALL=C.UTF-8 grep -nE '.{141}' $files | grep -vF 'R"(' | cut -d: -f1,2 | sed 's/$/: more than 140 columns/')
[ -z "$functions$long$wide" ] || { echo 'too long:'; printf '%s\n' "$long" "$functions" "$wide" | grep .; exit 1; }
