#!/usr/bin/env bash
# Searches for an input that a fuzz target does not stand: a crash, a sanitizer's report, a hang or more than 256 MiB. What it finds is
# left in build-folder/findings, what it learnt in build-folder/corpus.
#   search.sh build-folder target
# RICCI_FUZZ_SECONDS: how long; 10 if not given.
set -u
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "${1:?build folder}" && pwd) || exit 1
target=${2:?target}
mkdir -p "$build/corpus/$target" "$build/findings"
sed -n "/^# == $target$/,/^# == /p" "$here/words.dict" >"$build/corpus/$target.dict"
# The sanitizer holds freed memory back, which is not the program's.
export ASAN_OPTIONS=quarantine_size_mb=8:max_malloc_fill_size=0:detect_leaks=1 UBSAN_OPTIONS=print_stacktrace=1
# libFuzzer's clock goes on while the machine does something else, so a hang is half a minute.
exec "$build/ricci-fuzz-$target" -max_total_time="${RICCI_FUZZ_SECONDS:-10}" -timeout=30 -rss_limit_mb=256 -max_len=65536 -print_final_stats=1 \
  -verbosity=0 -artifact_prefix="$build/findings/$target-" -dict="$build/corpus/$target.dict" "$build/corpus/$target" "$here/seeds/$target"
