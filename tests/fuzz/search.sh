#!/usr/bin/env bash
# Searches for an input that a fuzz target does not stand: a crash, a sanitizer's report, more than 1 s or 256 MiB. What it finds is
# left in build-folder/findings, what it learnt in build-folder/corpus.
#   search.sh build-folder target
# RICCI_FUZZ_SECONDS: how long; 10 if not given.
set -u
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "${1:?build folder}" && pwd) || exit 1
target=${2:?target}
fuzz=$build/ricci-fuzz-$target
mkdir -p "$build/corpus/$target" "$build/findings"
# The sanitizer holds freed memory back, which is not the program's.
export ASAN_OPTIONS=quarantine_size_mb=8:max_malloc_fill_size=0:detect_leaks=1 UBSAN_OPTIONS=print_stacktrace=1

# libFuzzer's clock goes on while the machine does something else. An input that takes less than a second of processor time when
# it is read alone is no finding, and the search goes on.
late=70  # the exit code of libFuzzer after an input that took too long
is_quick() { (ulimit -t 1 && exec "$fuzz" "$1") >/dev/null 2>&1; }
end=$((SECONDS + ${RICCI_FUZZ_SECONDS:-10}))
while [ $SECONDS -lt $end ]; do
  "$fuzz" -max_total_time=$((end - SECONDS)) -timeout=1 -timeout_exitcode=$late -rss_limit_mb=256 -max_len=65536 -print_final_stats=1 \
    -verbosity=0 -artifact_prefix="$build/findings/$target-" -dict="$here/$target.dict" "$build/corpus/$target" "$here/seeds/$target"
  code=$?
  [ $code = $late ] || exit $code
  for input in "$build/findings/$target-timeout-"*; do
    is_quick "$input" || exit $code
    rm "$input"
  done
done
