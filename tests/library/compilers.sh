#!/usr/bin/env bash
# CMake rejects a compiler that is too old, or of the wrong kind, in one sentence; clang 16 or newer is accepted.
#   compilers.sh build-folder
. "$(dirname "$0")/../apps/programs.sh" "$@"
root=$(sed -n 's/^ricci_SOURCE_DIR:STATIC=//p' "$build/CMakeCache.txt")
: >out >err
printf '#!/bin/sh\nexec g++ -U__GNUC__ -D__GNUC__=11 "$@"\n' >old-g++
command -v g++ >/dev/null || needs 'g++'
printf '#!/bin/sh\nexec g++ -D__clang__ -D__clang_major__=15 -D__clang_minor__=0 -D__clang_patchlevel__=7 "$@"\n' >old-clang
printf '#!/bin/sh\nexec g++ -D__INTEL_COMPILER=2021 -D__INTEL_COMPILER_UPDATE=7 "$@"\n' >other
chmod +x old-g++ old-clang other
for compiler in old-g++:'GNU 11\.[0-9.]+' old-clang:'Clang 15\.0\.7' other:'Intel 2021\.7\.0'; do
  cmake -S "$root" -B "refused-${compiler%%:*}" -DCMAKE_CXX_COMPILER="$PWD/${compiler%%:*}" >out 2>err && fault='was accepted' || fault=
  tr -s '\n ' ' ' <err | grep -qE "ricci is built with g\+\+ 12 or clang\+\+ 16, or a newer one; this is ${compiler#*:} \([^ ]*\): -DCMAKE_CXX_COMPILER=g\+\+" ||
    fault+=' another message'
  verdict "${compiler%%:*}" "$fault"
done
printf '#!/bin/sh\nexec g++ -D__clang__ -D__clang_major__=16 -D__clang_minor__=0 -D__clang_patchlevel__=0 "$@"\n' >new-clang
chmod +x new-clang
cmake -S "$root" -B accepted -DRICCI_CUDA=OFF -DCMAKE_CXX_COMPILER="$PWD/new-clang" >out 2>err || :
verdict 'clang 16' "$(grep -q -- '-- *compiler  *Clang 16\.0\.0' out || echo 'was refused')"

echo "$failures failed"
exit $((failures > 0))
