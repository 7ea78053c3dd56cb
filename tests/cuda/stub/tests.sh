#!/usr/bin/env bash
# Runs the tests on the stub. They must run at least 90% of the lines of cuda/toolkit, counted by g++.
#   tests.sh build-folder compiler
set -u
cd "$1" || exit 1
counts=$(mktemp -d) && trap 'rm -rf "$counts"' EXIT
# ops/gradients compares with finite differences.
LD_LIBRARY_PATH=$PWD/stub GCOV_PREFIX=$counts ./ricci-toolkit-tests '--test-suite-exclude=needs *,broken NCCL' '--test-case-exclude=every backward *' || exit 1
mkdir "$counts/broken"
: >"$counts/broken/libnccl.so.2"
LD_LIBRARY_PATH=$counts/broken GCOV_PREFIX=$counts ./ricci-toolkit-tests '--test-suite=broken NCCL' || exit 1
[ "$2" = GNU ] || exit 0
objects=$(find "$PWD" -path '*ricci-stubbed-toolkit.dir*' -name '*.gcno')
[ -n "$objects" ] || { echo 'no object with counters was found'; exit 1; }
for object in $objects; do
  cp "$object" "$counts$(dirname "$object")/" 2>/dev/null || { echo "$object: none of it has run"; exit 1; }
done
cd "$counts" || exit 1
find "$counts" -name '*.gcda' -exec gcov -n {} + 2>/dev/null |
  awk '/^File .*cuda\/toolkit\/[a-z_]*\.cpp/ { name = $2; next }
       /^File/ { name = "" }
       /^Lines executed/ && name { split($0, part, /[:% ]+/); lines = $NF; sub(/.*of /, "", lines); printf "%s %s%% of %d\n", name, part[3], lines; ran += part[3] * lines / 100; all += lines }
       END { if (!all) { print "no counts"; exit 1 } printf "%.1f%% of %d lines\n", 100 * ran / all, all; exit 100 * ran / all < 90 }'
