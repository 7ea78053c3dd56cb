#!/usr/bin/env bash
# Each public op is defined in exactly one object: the CPU half comes from the C++ build, never from nvcc's.
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
exit $bad
