#!/usr/bin/env bash
# Every file of C++ is as clang-format writes it (.clang-format). Versions differ in what they write: the one of Debian 12 counts.
#   format.sh
set -u
cd "$(dirname "$0")/../.." || exit 1
version=$(clang-format --version 2>/dev/null | grep -oE 'version [0-9]+' | grep -oE '[0-9]+')
[ "$version" = 14 ] || { echo "skipped: house/format needs clang-format 14, found ${version:-none}"; exit 77; }
files=$(find core cuda autograd ops models data apps tests -name '*.cpp' -o -name '*.h' -o -name '*.cu')
[ "$(wc -w <<<"$files")" -gt 300 ] || { echo 'too few files were found'; exit 1; }
unformatted=$(xargs -P "$(nproc)" -n 40 clang-format --dry-run -Werror <<<"$files" 2>&1 | grep -oE '^[^:]+' | sort | uniq -c | awk '{ print $2 ": " $1 " places" }')
[ -z "$unformatted" ] || { echo 'not as "clang-format -i" writes it:'; echo "$unformatted"; exit 1; }
