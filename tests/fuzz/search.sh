#!/usr/bin/env bash
# Searches for an input that makes a fuzz target fail: a crash, a sanitizer's report, a hang or more than 256 MiB. Findings are in
# build-folder/findings, the learned inputs in build-folder/corpus.
#   search.sh build-folder target
# RICCI_FUZZ_SECONDS: the duration, by default 10.
set -u
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "${1:?build folder}" && pwd) || exit 1
target=${2:?target}
mkdir -p "$build/corpus/$target" "$build/findings"
sed -n "/^# == $target$/,/^# == /p" "$here/words.dict" >"$build/corpus/$target.dict"
# Inputs are files in memory: a call that waits for a busy disk looks like a hang.
TMPDIR=$(mktemp -d -p /dev/shm 2>/dev/null || mktemp -d) || exit 1
export TMPDIR
trap 'rm -rf "$TMPDIR"' EXIT
# The sanitizer holds freed memory back, not the program.
export ASAN_OPTIONS=quarantine_size_mb=8:max_malloc_fill_size=0:detect_leaks=1 UBSAN_OPTIONS=print_stacktrace=1
# libFuzzer's clock continues while the machine is busy, so a hang is half a minute.
"$build/ricci-fuzz-$target" -max_total_time="${RICCI_FUZZ_SECONDS:-10}" -timeout=30 -rss_limit_mb=256 -max_len=65536 -print_final_stats=1 \
  -verbosity=0 -artifact_prefix="$build/findings/$target-" -dict="$build/corpus/$target.dict" "$build/corpus/$target" "$here/seeds/$target"
