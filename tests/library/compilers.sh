#!/usr/bin/env bash
# A compiler that is too old, or no g++, is refused when CMake runs, in one sentence.
#   compilers.sh build-folder
. "$(dirname "$0")/../apps/programs.sh" "$@"
root=$(sed -n 's/^ricci_SOURCE_DIR:STATIC=//p' "$build/CMakeCache.txt")
: >out >err
printf '#!/bin/sh\nexec g++ -U__GNUC__ -D__GNUC__=11 "$@"\n' >old-g++
chmod +x old-g++
command -v g++ >/dev/null || needs 'g++'
printf '#!/bin/sh\nexec g++ -D__clang__ -D__clang_major__=14 -D__clang_minor__=0 -D__clang_patchlevel__=6 "$@"\n' >other
chmod +x other
for compiler in old-g++:'GNU 11\.[0-9.]+' other:'Clang 14\.0\.6'; do
  cmake -S "$root" -B "refused-${compiler%%:*}" -DCMAKE_CXX_COMPILER="$PWD/${compiler%%:*}" >out 2>err && fault='was accepted' || fault=
  tr -s '\n ' ' ' <err | grep -qE "ricci is built with g\+\+ 12 or newer; this is ${compiler#*:} \([^ ]*\): -DCMAKE_CXX_COMPILER=g\+\+" || fault+=' another message'
  verdict "${compiler%%:*}" "$fault"
done

echo "$failures failed"
exit $((failures > 0))
