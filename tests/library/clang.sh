#!/usr/bin/env bash
# Clang 16 or newer compiles some files of each floor, among them the ones with vectors and assembly. tests/run.sh --clang builds everything
# with it and runs all tests.
#   clang.sh build-folder
. "$(dirname "$0")/../apps/programs.sh" "$@"
root=$(sed -n 's/^ricci_SOURCE_DIR:STATIC=//p' "$build/CMakeCache.txt")
clang=
for name in clang++ clang++-{25..16}; do
  version=$("$name" -dumpversion 2>/dev/null) && [ "${version%%.*}" -ge 16 ] && clang=$name && break
done
[ -n "$clang" ] || needs 'clang++ 16 or newer'
files=(core/tensor.cpp core/cpu/parallel.cpp cuda/gemm/blocked.cpp cuda/emulator/fiber.cpp autograd/tape.cpp ops/rows/softmax.cu
  ops/attention/cpu/{pack,products,weights}.cpp models/inspection/observation.cpp)
: >out >err
cmake -S "$root" -B by-clang -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_COMPILER="$clang" -DCMAKE_CXX_FLAGS=-Werror -DRICCI_CUDA=OFF \
  -DRICCI_PROGRAMS=OFF -DRICCI_PCH=OFF -DRICCI_UNITY=OFF >out 2>err && fault= || fault='cmake refuses it'
[ -n "$fault" ] || ninja -C by-clang $(printf "CMakeFiles/ricci_engine_objects.dir/%s.o " "${files[@]}") >out 2>err || fault='does not compile'
verdict "$clang" "$fault"

echo "$failures failed"
exit $((failures > 0))
