#!/usr/bin/env bash
# Each public op is defined in exactly one object: the CPU half comes from the C++ build, never from nvcc's. And no program defines what
# the library of all programs defines: two objects of the library cannot, but of a program and a library the linker takes the program's.
#   one_definition.sh build-folder
set -u
cd "$(dirname "$0")/../.."
build=$1
headers=$(grep -rlE "^namespace ricci \{" ops --include="*.h")  # those of ricci::name are not public
names=$(cat $headers | grep -E '^(Tensor|std::array<Tensor, [0-9]+>|double|void) [a-z_]+\(.*[;,]$' | sed -E 's/^[^(]* ([a-z_]+)\(.*/\1/' | sort -u)
defined=$(find "$build" -name '*.o' -path '*ricci_*' -exec nm -A -C --defined-only {} + | grep ' T ricci::' | grep -vE 'ricci::[a-z_]+::')
bad=0
count=0
for name in $names; do
  where=$(echo "$defined" | grep -E " T ricci::$name(\[abi:[^]]*\])?\(" )
  overloads=$(echo "$where" | sed 's/.* T //' | sort | uniq -c | awk '$1 != 1')
  if [ -z "$where" ]; then
    echo "$name is declared and defined nowhere"; bad=1
  elif [ -n "$overloads" ]; then
    echo "$name is defined more than once:"; echo "$where"; bad=1
  fi
  count=$((count + 1))
done
[ "$count" -gt 0 ] || { echo "no public op was found"; exit 1; }
echo "$count public ops, each defined once"

# Some tests are built from the sources that they test, without the library.
strong() { find "$build" -name '*.o' "$@" -exec nm --defined-only {} + | awk '$2 ~ /^[TDBR]$/ && $3 != "main" { print $3 }' | sort -u; }
library=$(strong -path '*ricci_*_objects*')
programs=$(strong -path '*/ricci-*' ! -path '*portable*' ! -path '*toolkit*' ! -path '*ricci-bounded*')
both=$(comm -12 <(echo "$library") <(echo "$programs"))
[ -n "$programs" ] && [ "$(wc -l <<<"$library")" -gt 1000 ] || { echo "no symbols were found"; exit 1; }
[ -z "$both" ] || { echo "defined by a program and by the library:"; c++filt <<<"$both"; bad=1; }
exit $bad
