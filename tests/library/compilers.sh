#!/usr/bin/env bash
# A compiler that is too old is refused when CMake runs, in one sentence.
#   compilers.sh build-folder
. "$(dirname "$0")/../apps/programs.sh" "$@"
root=$(sed -n 's/^ricci_SOURCE_DIR:STATIC=//p' "$build/CMakeCache.txt")
: >out >err
printf '#!/bin/sh\nexec g++ -U__GNUC__ -D__GNUC__=11 "$@"\n' >old-g++
chmod +x old-g++
command -v g++ >/dev/null || needs 'g++'
cmake -S "$root" -B refused -DCMAKE_CXX_COMPILER="$PWD/old-g++" >out 2>err && fault='was accepted' || fault=
tr -s '\n ' ' ' <err | grep -qE 'ricci is built with g\+\+ 12 or clang 14, or newer ones; this is GNU 11\.[0-9.]+ \([^ ]*old-g\+\+\)' || fault+=' another message'
verdict 'an old g++' "$fault"

echo "$failures failed"
exit $((failures > 0))
