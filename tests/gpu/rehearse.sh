#!/usr/bin/env bash
# Uses the package of `tests/gpu.sh pack` as the machine with the GPU will. A program that does not start there, or a test that the package
# lacks, costs minutes of that GPU. Only the libraries of C and C++ are there, and no GPU. In the end a stub replaces the CUDA runtime of
# the package, and the packed programs run on device cuda, with their kernels on the emulator (tests/cuda/stub).
#   rehearse.sh build-folder          exit code 77: the root folder cannot be changed here
# shellcheck disable=SC2317  # functions are called through check
set -u
export LC_ALL=C
build=$(cd "${1:?build folder}" && pwd) && cd "$(dirname "$0")/../.." && place=$(mktemp -d) || exit 1
trap 'rm -rf "$place"' EXIT
programs=$place/programs failures=0
# Kernels of the tests themselves, attention on tensor cores, the op with the most shared memory; and one that must not see the GPU.
tests=(cuda/ptx/ptx ops/attention/bf16 ops/shift_and_sum/shift_and_sum needs/GPU cuda/gpu_hidden)
training=(quickstart.yaml runs=/tmp steps=1 batch=2 model.layers=1 model.ctx=32 eval_every=0 sample.tokens=0 log_every=1)

check() {  # check NAME COMMAND ...
  if "${@:2}" > "$place/log" 2>&1; then echo "ok      $1"; return; fi
  echo "FAILED  $1"
  head -c 2000 "$place/log" | sed 's/^/          /'
  failures=$((failures + 1))
}
fails() { ! "$@"; }

# ---- A bare root
change_root=(unshare --mount --pid --fork --mount-proc)
"${change_root[@]}" --root / true 2> /dev/null || change_root=(unshare --map-root-user --mount --pid --fork --mount-proc)
"${change_root[@]}" --root / true 2> /dev/null || { echo 'skipped: needs the right to change the root folder'; exit 77; }
loader=$(readelf -l "$build/ricci" | sed -n 's/.*interpreter: \(.*\)\]/\1/p') libraries=lib/$(g++ -print-multiarch)
mkdir -p "$place${loader%/*}" "$place/$libraries" "$place"/{tmp,proc,dev} "$programs"
cp -L "$loader" "$place$loader"
for library in lib{c,m}.so.6 libdl.so.2 librt.so.1 libpthread.so.0 libstdc++.so.6 libgcc_s.so.1; do
  cp -L "$(g++ -print-file-name="$library")" "$place/$libraries"
done
tar -xzf "$build/programs.tar.gz" -C "$programs" && cp apps/configs/quickstart.yaml "$programs" || exit 1
inside() { env -i HOME=/tmp "$1" "${change_root[@]}" --root "$place" --wd /programs "${@:2}"; }  # variable=value program argument...

# ---- The programs start, and nothing is missing
starts() {  # program
  fails grep 'not found' <(inside LC_ALL=C "$loader" --list "$1") && inside LD_BIND_NOW=1 "$1" --help
}
refuses() {  # message program argument...
  fails inside LC_ALL=C "${@:2}" > "$place/refused" 2>&1 && grep "$1" "$place/refused"
}
# A test whose object calls available() can use a GPU.
reach_gpu() {
  (cd "$build/tests/CMakeFiles/ricci-tests.dir" && grep -rlF _ZN5ricci9availableENS_6DeviceE --include='*_test.cpp.o' .) |
    sed -E 's|^\./(.*)_test\.cpp\.o|\1|' | sort
}
packed() { ctest --test-dir "$programs" -N -L GPU | sed -nE 's/^ *Test +#[0-9]+: //p' | grep -vE '^needs/|^cuda/gpu_hidden$' | sort; }
# Programs that the packed tests call, and tests that the parts name.
missing() {
  local name
  grep -oE '\./ricci-[a-z-]+' "$programs/CTestTestfile.cmake" | sort -u | while read -r name; do
    [ -x "$programs/$name" ] || echo "$name"
  done
  grep -oE '\b(autograd|cuda|models|ops)(/[a-z0-9_]+)+\b' tests/gpu/checks.sh | sort -u | while read -r name; do
    [ -e "tests/${name%_test}_test.cpp" ] || echo "$name"
  done
}

for program in "$programs"/ricci-*; do check "${program##*/} starts" starts "./${program##*/}"; done
check 'the gradient checks are listed' inside LC_ALL=C ./ricci-check --list
check 'without a GPU it is said why' refuses 'no NVIDIA driver found' ./ricci-check --device cuda
check 'the tests that reach a GPU have the label, and no others' diff <(reach_gpu) <(packed)
check 'no program and no test is missing' diff /dev/null <(missing)
check 'no file names the build folder' fails grep -rlF "$build/" "$programs"

# ---- On the stub
test_on_stub() {  # test: as the GPU's machine runs it
  RICCI_TEST_DEVICES=cuda ctest --test-dir "$programs" -V -R "^$1\$" > "$place/tested" 2>&1
  local code=$?
  cat "$place/tested"
  [ "$code" = 0 ] && fails grep -E 'skipped on cuda|\*\*\*Skipped|No tests were found' "$place/tested"
}
same_losses() {
  awk 'match($0, /"train_loss":[0-9.]+/) { loss[++lines] = substr($0, RSTART + 13, RLENGTH - 13); print }
    END { error = loss[1] - loss[2]; exit !(lines == 2 && error * error < 1e-8) }' "$place"/tmp/{cpu,cuda}/metrics.jsonl
}
cp -L "$build"/stub/lib{cudart,cublasLt}.so.[0-9]* "$programs"
for each in "${tests[@]}"; do check "on the stub: $each" test_on_stub "$each"; done
for device in cpu cuda; do
  check "on the stub: a step on $device" inside LC_ALL=C ./ricci-train "${training[@]}" name=$device device=$device
done
check 'both steps have the same loss' same_losses

# All parts with the packed programs. On the emulator few of them end in time, but a program or an option that does not exist shows. The
# emulator has no PyTorch: a failure in the table.
first() {
  mkdir "$place/bin" && printf '#!/bin/sh\necho stub, 1\n' > "$place/bin/nvidia-smi" && chmod +x "$place/bin/nvidia-smi"
  RICCI_BUILD=$programs OUT=$place/out PATH=$place/bin:$PATH RICCI_TOTAL_SECONDS=28 tests/gpu.sh first > "$place/first" 2>&1
  grep -v '^smoke *PyTorch ' "$place/out/table.txt" > "$place/table"
  fails grep 'failed, exit code' "$place/table" && grep '^memory ' "$place/table"
}
check 'on the stub: every part of first' first

echo "$(packed | wc -l) test files have the label GPU; $failures failed"
exit $((failures > 0))
