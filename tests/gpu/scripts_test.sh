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
calls() { grep -c -- "$1" "$CALLS"; }       # pattern
rows() { awk -v part="$2" '$1 == part' "$1"; }  # file part

gpu all > "$work/none.txt" 2>&1
parts='build smoke trace mixers attention train graph test sanitize bench'
check 'the parts come in this order' test "$(sed -n 's/^== \([a-z]*\).*/\1/p' "$work/none.txt" | xargs)" = "$parts"
check 'the table comes after each part' test "$(grep -c '^part  *check' "$work/none.txt")" = 10
for part in ${parts#build }; do
  last=$(tac "$work/none.txt" | awk '{ print } /^part  *check/ { exit }' | awk -v part="$part" '$1 == part')
  check "no GPU: every row of $part says so" test -n "$last" -a "$(grep -vc 'not measured: no GPU' <<< "$last")" = 0
done
check 'benches without --device have no row' test "$(gpu table 2> /dev/null | awk '$1 == "bench" { print $2 }' | xargs)" = 'products scales training'
gpu nothing 2> /dev/null
check 'a part that is none: exit code 2' test $? = 2

# The GPU and the programs arrive.
bin=$tree/build-gpu
stub "$work/bin/nvidia-smi" <<< 'echo "GPU 0: stub"'
stub "$work/bin/nvcc" <<< 'echo "Cuda compilation tools, release 13.0, V13.0.1"'
stub "$work/bin/nproc" <<< 'echo 2'
program() { { echo "echo $1 \"\$@\" trace \${RICCI_TRACE:-0} from \$0 >> \"\$CALLS\""; cat; } | stub "$bin/ricci-$1"; }  # name, text on stdin
for name in tests train; do program "$name" <<< 'exit 1'; done
program check <<'STUB'
[ "$1" = --list ] && printf '%s\n' relu gelu && exit
case $* in *--op*) echo 'relu wrong (tolerance'; exit ;; esac
echo 'relu f64 1.5e-9'
echo '2 ops, 0 wrong (tolerance 1e-6)'
STUB
program bench-products <<'STUB'
case $* in *copy*) echo 'measure copy_2GiB_bandwidth 4000 GB/s'; echo 'measure square_8192_speed 800000 GFLOP/s' ;; esac
STUB
program bench-attention <<'STUB'
echo "attention libraries $LD_LIBRARY_PATH without ${RICCI_WITHOUT_CUBLAS:-no}" >> "$CALLS"
sleep "${STUB_SECONDS:-0}"
case $* in
  *--documents*) echo "measure forward_hd64_packed 50000 GFLOP/s" ;;
  *) echo "measure forward_hd64_causal 200000 GFLOP/s" ;;
esac
STUB
program bench-mixers <<'STUB'
case $1 in
  --list) printf '%s\n' shift_and_sum mixer_dispatcher_512 ;;
  shift_and_sum) printf 'measure shift_and_sum_%s GB/s\n' 'forward 3000' 'forward_backward 1000' ;;
  *) echo "measure $1_median 2.000 ms" ;;
esac
STUB
program bench-training <<'STUB'
echo "measure ${1}_speed 500000 tokens/s"
echo "measure ${1}_products 400000 GFLOP/s"
echo "measure ${1}_memory 20000 MB"
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
case $1 in
  *attention.py) printf 'measure forward_hd64_%s GFLOP/s\n' 'causal 100000' 'packed 100000' ;;
  *train.py)
    [ -n "${STUB_PLAIN:-}" ] || printf 'measure compiled_speed 450000 tokens/s\nmeasure compiled_memory 30000 MB\n'
    printf 'measure plain_speed 300000 tokens/s\nmeasure plain_memory 40000 MB\n'
    sleep "${STUB_PLAIN:-0}"
    ;;
esac
STUB
export RICCI_PYTHON=$tree/python

gpu smoke > "$work/smoke.txt" 2>&1
check 'smoke: the peaks of this GPU' has "$work/smoke.txt" 'copy bandwidth +4000 GB/s'
check 'smoke: the gradient checks' has "$work/smoke.txt" 'ricci-check on cuda +2 ops, 0 wrong, worst 1.5e-9'
gpu mixers > "$work/mixers.txt" 2>&1
check 'each mixer runs alone, in bf16' has "$CALLS" '^bench-mixers mixer_dispatcher_512 --dtype bf16 --device cuda'
check 'and has its row' has "$work/mixers.txt" 'mixers: mixer_dispatcher_512_median +2.000 ms'
check 'the Dispatcher: half the bandwidth of a copy is the bar' has "$work/mixers.txt" 'shift_and_sum, forward +3000 GB/s, 75.0 % of peak .* pass'
check 'and below it is a failure' has "$work/mixers.txt" 'shift_and_sum, forward_backward +1000 GB/s, 25.0 % of peak .* FAIL'

gpu trace > "$work/trace.txt" 2>&1
check 'trace: the whole step' has "$work/trace.txt" '100\.00 ms per step, each op waited for'
check 'trace: an op' has "$work/trace.txt" '^trace +linear +80\.00 ms per step, 80\.0%'
check 'trace: the name of an op may have a space' has "$work/trace.txt" '^trace +classifier_loss dw +19\.70 ms per step, 19\.7%'
check 'trace: small ops are left out' lacks "$work/trace.txt" '^trace +dropout'
check 'trace runs GPT-2 64 x 1024 with RICCI_TRACE=1' has "$CALLS" 'training gpt2_64x1024 --device cuda --dtype bf16 --steps 10 trace 1'

# ---- Limits of time
STUB_SECONDS=8 RICCI_TOTAL_SECONDS=6 gpu attention > "$work/cut.txt" 2>&1
check 'a part that is cut says so' has "$work/cut.txt" 'did not end, run it again'
gpu attention > "$work/whole.txt" 2>&1
check 'called again it goes on' has "$work/whole.txt" '200000 GFLOP/s, 2.000 x PyTorch, 25.0 % of peak'
check 'packed documents are measured, too' has "$work/whole.txt" 'attention: forward_hd64_packed +50000 GFLOP/s, 0.500 x PyTorch'
ran=$(calls '^attention')
gpu attention > "$work/again.txt" 2>&1
check 'what was measured is not measured again' test "$(calls '^attention')" = "$ran"
check 'but stays in the table' has "$work/again.txt" '200000 GFLOP/s, 2.000 x PyTorch'
began=$SECONDS
touch "$bin/build.ninja"
stub "$work/bin/cmake" <<< 'sleep 4'
echo ricci_kernels > "$bin/build.ninja"
RICCI_TOTAL_SECONDS=7 STUB_SECONDS=60 gpu all > "$work/total.txt" 2>&1
check 'all parts together keep to the total' test $((SECONDS - began)) -lt 55
check 'and each of them has its table' test "$(grep -c '^part  *check' "$work/total.txt")" = 10

# ---- PyTorch, compiled, is the bar
STUB_PLAIN=2 gpu train > "$work/plain.txt" 2>&1
check 'plain PyTorch alone: no verdict' has "$work/plain.txt" 'batch 64, PyTorch +not measured: compiled PyTorch did not run'
check 'our own speed has one' has "$work/plain.txt" 'GPT-2, batch 64 +500000 tokens/s.* pass'
check 'share of the measured peak' has "$work/plain.txt" 'share of peak +400000 GFLOP/s of products, 50.0 % of peak'
check 'timed products, and gelu within them' has "$work/plain.txt" 'batch 64, fused +500000 tokens/s, 1.000 x the plain products'
check 'the second run has both' has "$CALLS" 'training gpt2_64x1024 .* --tuned .*products.txt --fused-gelu'
gpu train > "$work/compiled.txt" 2>&1
check 'compiled PyTorch: the next call has a verdict' has "$work/compiled.txt" 'batch 64, PyTorch +1.111 x PyTorch compiled .* pass'
check 'the peer has the same vocabulary and GELU' test "$(grep -cE '"vocab": 50304|approximate="tanh"' "$tree/tests/bench/torch/train.py")" = 2

# ---- A test file that does not compile stops the tests alone
mv "$bin/ricci-tests" "$work/kept"
gpu table > "$work/no_tests.txt" 2>&1
check 'no ricci-tests: only its part waits' test "$(grep -c 'no ricci-tests' "$work/no_tests.txt")" = "$(rows "$work/no_tests.txt" test | grep -c .)"
mv "$work/kept" "$bin/ricci-tests"

# ---- compute-sanitizer
stub "$work/bin/compute-sanitizer" <<< 'echo "========= Error: Device not supported"; exit 1'
gpu sanitize > "$work/refused.txt" 2>&1
check 'a refused sanitizer is no failure' test "$(rows "$work/refused.txt" sanitize | grep -c 'compute-sanitizer is refused here .* -$')" = 3
stub "$work/bin/compute-sanitizer" <<'STUB'
shift 2
"$@"
echo '========= ERROR SUMMARY: 0 errors'
STUB
rm -r "$bin/state/sanitize"
gpu sanitize > "$work/sanitize.txt" 2>&1
check 'ops that are clean' has "$work/sanitize.txt" 'memcheck, ops +2 clean, 0 with findings'

# ---- The archive of results, and programs that were taken along, on a second machine
cp "$work/out/results.tar" "$work/results.tar"
check 'results come back as two files' test "$(find "$work/out" -type f | wc -l)" = 2
mkdir -p "$work/build/programs"
cp "$bin"/ricci-* "$work/build/programs"
bash -c "$(sed -n '/^sources()/,/^}/p' "$tree/tests/gpu.sh"); cd '$tree' && sources" > "$work/build/programs/sources"
rm -r "$bin"
mkdir "$bin"
tar -czf "$bin/programs.tar.gz" -C "$work/build/programs" .
cp "$work/results.tar" "$bin/results.tar"
ran=$(calls '^attention')
gpu attention > "$work/second.txt" 2>&1
check 'a second machine reads the results back' has "$work/second.txt" 'goes on with build-gpu/results.tar'
check 'and measures nothing again' test "$(calls '^attention')" = "$ran"
check 'what other parts found is there, too' has "$work/second.txt" 'batch 64, PyTorch +1.111 x PyTorch compiled'
gpu build > "$work/taken.txt" 2>&1
check 'programs that start are not built' has "$work/taken.txt" '7 programs start here'
echo '// changed' > "$tree/tests/changed.cpp"
gpu table > "$work/sources.txt" 2>&1
check 'programs of other sources are not used' has "$work/sources.txt" 'other sources and is not used'
rm "$tree/tests/changed.cpp"
sed -i '$d' "$bin/programs/ricci-bench-attention"
gpu attention > "$work/changed.txt" 2>&1
check 'a changed program is measured again' test "$(calls '^attention')" = $((ran + 2))
check 'the rows of other programs stay' has "$work/changed.txt" 'batch 64, PyTorch +1.111 x PyTorch compiled'

# ---- cuBLASLt
check 'programs find the cuBLASLt of the packages' has "$CALLS" "libraries .*:$work/packages/nvidia/cu13/lib:"
check 'and are not told to go without' lacks "$CALLS" 'without 1'
rm "$work/packages/nvidia/cu13/lib/libcublasLt.so.13"
echo '# changed' >> "$bin/programs/ricci-bench-attention"
gpu attention > "$work/without.txt" 2>&1
check 'no cuBLASLt anywhere: the table says so' has "$work/without.txt" 'cuBLASLt: not found, our own kernels instead'
check 'and the programs take our kernels' has "$CALLS" 'without 1'
for part in trace train graph mixers bench; do
  check "no cuBLASLt: $part is not measured" test "$(rows "$work/without.txt" "$part" | grep -vc 'not measured: no cuBLASLt')" = 0
done

echo "$failures failed"
exit $((failures > 0))
