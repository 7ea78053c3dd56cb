#!/usr/bin/env bash
# The scripts for machines with a GPU, on any machine: tests/gpu.sh with stubs in place of the GPU, nvcc and the programs, and
# tests/gpu/find_cublas.sh with packages of PyTorch that hold an empty library.
#   tests/gpu/scripts_test.sh          exit code 77: there is no python3
# shellcheck disable=SC2317  # functions are called through check
set -u
command -v python3 > /dev/null || { echo 'skipped: needs python3'; exit 77; }
source=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0
check() {  # what command...
  if "${@:2}"; then echo "ok: $1"; else echo "FAILED: $1"; failures=$((failures + 1)); fi
}
fails() { ! "$@" > /dev/null 2>&1; }
has() { grep -qE -- "$2" "$1"; }    # file pattern
lacks() { ! grep -qE -- "$2" "$1"; }
stub() {  # path: a program whose text is on stdin
  mkdir -p "$(dirname "$1")"
  { echo '#!/bin/sh'; cat; } > "$1"
  chmod +x "$1"
}

# ---- find_cublas.sh. RICCI_PYTHON sees a folder of packages; nvcc and ldconfig know nothing.
find_cublas() {  # version [what LD_LIBRARY_PATH holds]
  PATH=$work/empty:/usr/bin:/bin LD_LIBRARY_PATH=${2:-} PYTHONPATH=$work/packages "$source/tests/gpu/find_cublas.sh" "$1"
}
stub "$work/empty/ldconfig" <<< 'exit 0'
stub "$work/empty/nvcc" <<< 'exit 0'
stub "$work/empty/nvidia-smi" <<< 'exit 9'
mkdir -p "$work/packages/nvidia"/{cublas,cu13,cuda_nvrtc}/lib "$work/installed"
check 'no library: exit code 1' fails find_cublas 13
touch "$work/packages/nvidia/cu13/lib/libcublasLt.so.13" "$work/packages/nvidia/cublas/lib/libcublasLt.so.12"
first() { find_cublas "$1" | cut -d: -f1; }
check 'nvidia-cublas: nvidia/cu13/lib' test "$(first 13)" = "$work/packages/nvidia/cu13/lib"
check 'nvidia-cublas-cu12: nvidia/cublas/lib' test "$(first 12)" = "$work/packages/nvidia/cublas/lib"
check 'libraries of other packages stand beside it' grep -q ":$work/packages/nvidia/cuda_nvrtc/lib" <<< "$(find_cublas 12)"
check 'another version: exit code 1' fails find_cublas 14
touch "$work/installed/libcublasLt.so.14"
check 'in LD_LIBRARY_PATH: nothing to add' test "$(find_cublas 14 "$work/other:$work/installed" && echo found)" = $'\nfound'

# ---- gpu.sh. The tree is a copy of the scripts; programs write each call into the file `calls`.
tree=$work/tree
mkdir -p "$tree/tests" "$tree/apps"
cp -r "$source/tests/gpu.sh" "$source/tests/gpu" "$source/tests/bench" "$tree/tests"
cp -r "$source/apps/configs" "$tree/apps"
export CALLS=$work/calls
: > "$CALLS"
gpu() { (cd "$tree" && PATH=$work/bin:$work/empty:/usr/bin:/bin PYTHONPATH=$work/packages OUT=$work/out tests/gpu.sh "$@"); }
calls() { grep -c "$1" "$CALLS"; }  # pattern

gpu all > "$work/none.txt" 2>&1
parts='build trace train test attention graph sanitize bench'
check 'the parts come in this order' test "$(sed -n 's/^== \([a-z]*\).*/\1/p' "$work/none.txt" | xargs)" = "$parts"
rows() { awk -v part="$2" '$1 == part' "$1"; }  # file part
for part in ${parts#build }; do
  check "no GPU: every row of $part says so" test "$(rows "$work/none.txt" "$part" | grep -c .)" -gt 0 -a "$(rows "$work/none.txt" "$part" | grep -vc 'not measured: no GPU')" = 0
done
check 'benches without --device have no row' test "$(rows "$work/none.txt" bench | awk '{ print $2 }' | xargs)" = 'mixers products scales training'
gpu nothing 2> /dev/null
check 'a part that is none: exit code 2' test $? = 2

# The GPU and the programs arrive.
stub "$work/bin/nvidia-smi" <<< 'echo "GPU 0: stub"'
stub "$work/bin/nvcc" <<< 'echo "Cuda compilation tools, release 13.0, V13.0.1"'
for program in tests train check; do stub "$tree/build-gpu/ricci-$program" <<< "echo $program \"\$@\" >> \"\$CALLS\"; exit 1"; done
stub "$tree/build-gpu/ricci-bench-attention" <<'STUB'
echo "attention $* libraries $LD_LIBRARY_PATH without ${RICCI_WITHOUT_CUBLAS:-no}" >> "$CALLS"
sleep "${STUB_SECONDS:-0}"
echo "measure forward_hd64_causal 200 GFLOP/s"
STUB
stub "$tree/build-gpu/ricci-bench-training" <<'STUB'
echo "training $* trace ${RICCI_TRACE:-0}" >> "$CALLS"
echo "measure gpt2_64x1024_speed 500000 tokens/s"
[ -z "${RICCI_TRACE:-}" ] || cat >&2 <<'TABLE'
measured peak 236 GFLOP/s f32, memory 20.1 GB/s, 2 threads, avx512
op                                       calls         ms  share    ms/call   GFLOP/s  of peak    GB/s
linear                                     480      800.0  80.0%     1.6667    1000.0    20.0%   100.0
classifier_loss dw                          10      197.0  19.7%    19.7000
dropout                                     10        3.0   0.3%     0.3000
all                                        500     1000.0 100.0%     2.0000
TABLE
STUB
stub "$tree/python" <<'STUB'
[ "$1" = - ] && exec python3 "$@"
[ "$1" = -c ] && exit 0
echo "torch $*" >> "$CALLS"
echo "measure forward_hd64_causal 100 GFLOP/s"
STUB
export RICCI_PYTHON=$tree/python

gpu trace > "$work/trace.txt" 2>&1
check 'trace: the whole step' has "$work/trace.txt" '100\.00 ms per step, each op waited for'
check 'trace: an op' has "$work/trace.txt" '^trace +linear +80\.00 ms per step, 80\.0%'
check 'trace: the name of an op may have a space' has "$work/trace.txt" '^trace +classifier_loss dw +19\.70 ms per step, 19\.7%'
check 'trace: small ops are left out' lacks "$work/trace.txt" '^trace +dropout'
check 'trace runs GPT-2 64 x 1024 with RICCI_TRACE=1' has "$CALLS" 'training gpt2_64x1024 --device cuda --dtype bf16 --steps 10 trace 1'

STUB_SECONDS=8 RICCI_PART_SECONDS=6 gpu attention > "$work/cut.txt" 2>&1
check 'a part that is cut says so' has "$work/cut.txt" 'did not end, run it again'
gpu attention > "$work/whole.txt" 2>&1
check 'called again it goes on' has "$work/whole.txt" '200 GFLOP/s, 2.000 x PyTorch'
check 'programs find the cuBLASLt of the packages' has "$CALLS" "libraries $work/packages/nvidia/cu13/lib:"
check 'and are not told to go without' lacks "$CALLS" 'without 1'
ran=$(calls '^attention')
gpu attention > "$work/again.txt" 2>&1
check 'what was measured is not measured again' test "$(calls '^attention')" = "$ran"
check 'but stays in the table' has "$work/again.txt" '200 GFLOP/s, 2.000 x PyTorch'
sleep 0.01
touch "$tree/build-gpu/ricci-train"
gpu attention > /dev/null 2>&1
check 'until a program changes' test "$(calls '^attention')" = $((ran + 1))
rm "$work/packages/nvidia/cu13/lib/libcublasLt.so.13"
touch "$tree/build-gpu/ricci-train"
gpu attention > "$work/without.txt" 2>&1
check 'no cuBLASLt anywhere: the table says so' has "$work/without.txt" 'cuBLASLt: not found, our own kernels instead'
check 'and the programs take our kernels' has "$CALLS" 'without 1'
check 'a row that fails: exit code 1' fails gpu graph
check 'the other rows of the part are measured' has "$CALLS" 'training gpt2_4x1024 --device cuda --dtype bf16 --graph'

echo "$failures failed"
exit $((failures > 0))
