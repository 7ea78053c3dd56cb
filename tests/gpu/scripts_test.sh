#!/usr/bin/env bash
# The scripts for machines with a GPU, on any machine: tests/gpu.sh with stubs for the GPU, PyTorch, the tools and the programs, and
# tests/gpu/find_cublas.sh with packages of PyTorch that hold an empty library.
#   tests/gpu/scripts_test.sh          exit code 77: there is no python3
# shellcheck disable=SC2317  # functions are called through check
set -u
command -v python3 > /dev/null || { echo 'skipped: needs python3'; exit 77; }
source=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0
check() {  # check NAME COMMAND ...
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

# ---- The stubs: one program with many names. The files hang, fail and kill contain patterns of calls; it does what they name.
tree=$work/tree bin=$work/tree/build-gpu
export STUBS=$work/stubs
mkdir -p "$tree/tests/ops/attention/flash" "$tree/apps" "$bin" "$STUBS" "$work/bin"
touch "$STUBS"/{calls,hang,fail,kill}
cp -r "$source/tests/gpu.sh" "$source/tests/gpu" "$tree/tests"
cp -r "$source/apps/configs" "$tree/apps"
stub "$work/stub" << 'STUB'
name=${0##*/} name=${name#ricci-}
call="$name $* sync=${RICCI_SYNC:-} trace=${RICCI_TRACE:-} wgmma=${RICCI_WITHOUT_WGMMA:-}"
echo "$call devices=${RICCI_TEST_DEVICES:-} libraries=${LD_LIBRARY_PATH:-}" >> "$STUBS/calls"
for how in hang fail kill; do
  [ -s "$STUBS/$how" ] || continue
  grep -qE -f "$STUBS/$how" << CALL || continue
$call
CALL
  case $how in
    hang) trap '' TERM; sleep 1000 & wait; wait ;;
    fail) echo 'error: planted'; exit 1 ;;
    kill) kill -KILL 0 ;;
  esac
done
measured() { echo "measure $1 $2 $3"; }
loss() { for step in $(seq "$1"); do echo "{\"step\":$step,\"train_loss\":$((40 - step / 10)).5,\"x\":0}"; done; }
case $call in
  nvidia-smi*) echo 'NVIDIA H100 stub, 1.2.3' ;;
  compute-sanitizer* | ncu*)
    while [ "${1#-}" != "$1" ] || [ ! -x "$1" ]; do shift; done
    "$@"
    echo '========= ERROR SUMMARY: 0 errors'
    [ "$name" != ncu ] || cat "$STUBS/ncu.csv" ;;
  ctest*)
    echo ' 1/3 Test #1: core/tensor ......   Passed    0.02 sec'
    if [ -e "$STUBS/failing" ]; then
      echo '2: flash_test.cpp:12: ERROR: CHECK( got == 3 ) is NOT correct!'
      echo ' 2/3 Test #2: ops/attention/flash/flash ...***Failed    0.02 sec'
    fi
    echo ' 3/3 Test #3: needs/corpus .....***Skipped   0.02 sec' ;;
  check*--list*) printf '%s\n' relu gelu ;;
  check*) echo 'relu f64 1.5e-9'; echo '2 ops, 0 wrong (tolerance 1e-6)' ;;
  tests*) echo '[doctest] assertions:   42 |   42 passed |    0 failed |' ;;
  bench-products\ copy*) measured copy_2GiB_bandwidth 4000 GB/s; measured square_8192_speed 800000 GFLOP/s ;;
  bench-products*) for each in "$@"; do case $each in gpt2_*) measured "${each}_speed" 600000 GFLOP/s ;; esac; done ;;
  bench-attention*wgmma=1*) measured forward_hd64_causal 100000 GFLOP/s ;;
  bench-attention*)
    for each in hd64_full hd128_causal hd128_full; do measured forward_$each 50000 GFLOP/s; measured forward_backward_$each 90000 GFLOP/s; done
    measured forward_hd64_causal 200000 GFLOP/s
    measured forward_backward_hd64_causal 90000 GFLOP/s ;;
  bench-mixers*) measured shift_and_sum_forward 3000 GB/s; measured shift_and_sum_forward_backward 2000 GB/s; for each in "$@"; do case $each in *_1024) measured "${each}_median" 2.0 ms ;; esac; done ;;
  bench-training*trace=1*) cat "$STUBS/trace" ;;
  bench-training*) for of in 'speed 500000 tokens/s' 'median 131.1 ms' 'products 400000 GFLOP/s' 'memory 20000 MB'; do measured "$1_${of%% *}" ${of#* }; done ;;
  bench\ sdp*) printf '%s\n' 'sdp 8192 4 10.0' 'dispatcher 8192 4 8.0' 'sdp 16384 4 35.0' 'dispatcher 16384 4 16.0' ;;
  eval*) echo '3.6 nats per token, perplexity 36.500, 1.3 bits per byte, word perplexity 120.1' ;;
  train*/dispatcher/*graph=true*) echo 'error: no graph'; exit 1 ;;
  train*/dispatcher/*)
    run=runs/$(sed -n 's/^name: //p' "$1") steps=$(sed -n 's/^steps: //p' "${1%_*}_msa.yaml")
    [ -e "$run" ] || steps=$((steps / 2))
    mkdir -p "$run" && echo "{\"step\":$steps,\"val_loss\":3.6,\"tokens_per_s\":100000.5}" >> "$run/metrics.jsonl" ;;
  train*out_of_memory*) echo 'ricci train: out of memory on cuda: linear (ops/products/linear.cu:12) and so on asked for 9 TB; held: 3 GB'; exit 1 ;;
  train*)
    for each in "$@"; do case $each in name=*) run=${each#name=} ;; runs=*) runs=${each#runs=} ;; steps=*) steps=${each#steps=} ;; esac; done
    mkdir -p "$runs/$run" && loss "$steps" > "$runs/$run/metrics.jsonl" && echo weights > "$runs/$run/model.safetensors" ;;
  python*attention.py*) measured forward_hd64_causal 160000 GFLOP/s; measured forward_backward_hd64_causal 100000 GFLOP/s ;;
  python*train.py*) measured compiled_speed 450000 tokens/s; measured compiled_memory 30000 MB; measured plain_speed 300000 tokens/s; measured plain_memory 50000 MB; mkdir -p "$TORCHINDUCTOR_CACHE_DIR" ;;
  python*mixers.py*) measured mixer_sdp_1024_median 3.0 ms ;;
  python*products.py*) measured gpt2_16x1024_qkv_speed 500000 GFLOP/s ;;
  python*'import torch'*) echo 2.0 ;;
  python*) exec python3 "$@" ;;
esac
STUB
cat > "$STUBS/trace" << 'TABLE'
measured peak 236 GFLOP/s f32, memory 20.1 GB/s, 2 threads, avx512
op                                       calls         ms  share    ms/call   GFLOP/s  of peak    GB/s
linear                                     480      500.0  50.0%     1.0417    1000.0    20.0%   100.0
linear backward                            480      300.0  30.0%     0.6250
classifier_loss dw                          10      197.0  19.7%    19.7000
dropout                                     10        3.0   0.3%     0.3000
all                                        500     1000.0 100.0%     2.0000
TABLE
{
  echo '"ID","Kernel Name","Metric Name","Metric Unit","Metric Value"'
  kernel='void ricci::cuda_build::run<ricci::attention_kernels::flash::WarpgroupForwardKernel<64, 1, 0>>(T1)'
  for metric in Duration:320000 'Compute (SM) Throughput:61.5' 'Memory Throughput:40.2'; do echo "\"1\",\"$kernel\",\"${metric%:*}\",\"nsecond\",\"${metric#*:}\""; done
} > "$STUBS/ncu.csv"
for name in bench check eval tests tokenize train bench-products bench-attention bench-mixers bench-training; do cp "$work/stub" "$bin/ricci-$name"; done
for name in ctest compute-sanitizer ncu python; do cp "$work/stub" "$work/bin/$name"; done
stub "$work/bin/nproc" <<< 'echo 2'
stub "$work/bin/nvcc" <<< 'echo "Cuda compilation tools, release 13.0, V13.0.1"'

gpu() { (cd "$tree" && PATH=$work/bin:$work/empty:/usr/bin:/bin PYTHONPATH=$work/packages RICCI_PYTHON=python OUT=$work/out tests/gpu.sh "$@"); }
table=$work/out/table.txt
planned() { sed -nE '/^part /,$p' "$1" | cut -c1-44 | grep -vE '^(part|again +ops|trace {5}[^a].*|memcheck +memcheck|kernels +flash::.*|papers) ' | sort; }  # table: part, check
has_row() { grep -qE "^$1 +$2 .*$3\$" "$table"; }                                                                                       # part check end

# ---- No GPU: the table says so
check 'no GPU: exit code 1' fails gpu first
check 'no GPU: every row says so' test "$(grep -c '  no GPU  ' "$table")" = "$(planned "$table" | grep -c .)"
gpu all 2> /dev/null
check 'a word that is none: exit code 2' test $? = 2

# ---- Everything works
cp "$work/stub" "$work/bin/nvidia-smi"
gpu first > "$work/first.txt" 2>&1
check 'nothing to complain about: exit code 0' test $? = 0
cp "$table" "$work/whole"
check 'the device' has_row hello GPU 'NVIDIA H100 stub, .* pass'
check 'ours next to PyTorch' has_row attention forward_hd64_causal '200.0 TFLOP/s, 1.250 x PyTorch, 2.000 x without wgmma, 25.0 % of peak .* pass'
check 'without a mask, too' has_row attention forward_hd64_full '50.0 TFLOP/s, .*'
check 'the op of the Dispatcher: half the bandwidth of a copy' has_row mixers shift_and_sum_forward '75.0 % of peak .* pass'
check 'GPT-2 next to compiled PyTorch' has_row gpt2 'ours to PyTorch' '1.111 x PyTorch .* pass'
check 'our speed has a bar of its own' has_row gpt2 plain '500000 tokens/s.* 50.0 % of peak .* pass'
check 'a mixer' has_row mixers mixer_sdp_1024_median '2.0 ms, 1.500 x PyTorch .*'
check 'products' has_row products gpt2_16x1024_qkv_speed '600.0 TFLOP/s, 1.200 x PyTorch, .*'
check 'trace: the name of an op can have a space' has_row trace 'linear backward' '30.00 ms a step, 30.0% .*'
check 'trace: small ops are left out' lacks "$table" '^trace +dropout'
check 'losses' has_row train 'f32, 20 steps, cuda to cpu' 'worst 0.0e\+00 in 20 steps .* pass'
check 'the same weights with a graph' has_row graph 'cuda_graph, 20 steps' 'the same weights, 20 losses .* pass'
check 'memcheck of a test in bf16' has_row sanitize 'memcheck bf16' '0 errors; assertions: .* pass'
check 'tests see the GPU only' has "$STUBS/calls" '^tests .* devices=cuda'
check 'our programs find cuBLASLt' has "$STUBS/calls" "^bench-attention .* libraries=$work/packages/nvidia/cu13/lib:"
check 'PyTorch has its own libraries' has "$STUBS/calls" '^python .*attention.py .* libraries=$'
check 'PyTorch compiles while the tests run' has "$STUBS/calls" 'python .*train.py .*--kinds compiled'
check 'few files come back' test "$(cd "$work/out" && echo *)" = 'inductor.tar.gz results.tar sanitize.tgz table.txt'
while read -r each; do check "$each is a test" test -e "$source/tests/${each}_test.cpp"; done < \
  <(sed -n '/^sanitized=/,/)$/p' "$source/tests/gpu/checks.sh" | grep -oE '[a-z]+(/[a-z0-9_]+)+')
check 'the peer has the same vocabulary and GELU' test "$(grep -cE '"vocab": 50304|approximate="tanh"' "$source/tests/bench/torch/train.py")" = 2

# ---- Parts that fail and parts that are killed, with everything that they started, leave the others complete
declare -A calls=([hello]='^check --list' [smoke]='^bench-products copy' [test]='^ctest' [attention]='^bench-attention' [gpt2]='^bench-training .*--steps 15'
  [mixers]='^bench-mixers' [products]='^bench-products .*gpt2' [trace]='trace=1' [graph]='name=graph' [train]='name=f32_cuda' [sanitize]='memcheck' [memory]='name=out')
misfortune() {  # misfortune WAY PART ...: calls of the parts end this way
  local part
  : > "$STUBS/$1"
  for part in "${@:2}"; do echo "${calls[$part]}" >> "$STUBS/$1"; done
}
is_whole() { diff <(grep "^$1 " "$work/whole") <(grep "^$1 " "$table"); }  # part
ones=(hello smoke test gpt2 products graph sanitize) others=(attention mixers trace train memory)
misfortune kill "${ones[@]}"
misfortune fail "${others[@]}"
gpu first > "$work/first.txt" 2>&1
check 'failures and kills: exit code 1' test $? = 1
check 'every row is there' diff <(planned "$work/whole") <(planned "$table")
for part in "${ones[@]}"; do check "$part was killed" has "$table" "^$part .* unfinished$"; done
for part in "${others[@]}"; do check "$part failed, and says why" has "$table" "^$part .* (error: planted|no such line) .* FAIL$"; done
misfortune fail
misfortune kill "${others[@]}"
touch "$STUBS/failing"
gpu first > "$work/first.txt" 2>&1
for part in "${others[@]}"; do check "$part was killed" has "$table" "^$part .* unfinished$"; done
for part in hello smoke gpt2 products graph sanitize; do check "$part is whole" is_whole "$part"; done
check 'a failed test has its name in the table' has_row test 'ctest, label GPU' '1 of 3 passed, 1 skipped, failed: ops/attention/flash/flash .* FAIL'
check 'and runs again by itself' has "$STUBS/calls" '^ctest .* -R \^\(ops/attention/flash/flash\)\$ sync=1'
check 'if it is about attention, without wgmma' has "$STUBS/calls" '^ctest .* sync=1 trace= wgmma=1'
check 'and says why' has "$work/out/failures.txt" 'got == 3'

# ---- repairs, on another machine: failed tests under memcheck, the largest kernels, what did not end
misfortune kill
cp "$work/out/results.tar" "$work/out/inductor.tar.gz" "$work"
rm -r "$bin/state" "$bin/logs" "$bin/inductor" "$work/out"
cp "$work/results.tar" "$work/inductor.tar.gz" "$bin"
touch "$tree/tests/ops/attention/flash/flash_test.cpp"
gpu repairs > "$work/repairs.txt" 2>&1
check 'a failed test under memcheck' has_row memcheck 'memcheck flash' '0 errors; .* pass'
check 'the largest kernels' has_row kernels 'flash::WarpgroupForwardKernel<64, 1, 0>' '0.320 ms, 62 % of compute, 40 % of memory .*'
for part in "${others[@]}"; do check "$part ended" is_whole "$part"; done
check 'what had ended did not run again' lacks "$work/repairs.txt" '^-- (hello|test|gpt2)'
check 'the cache of PyTorch is back' test -d "$bin/inductor"

# ---- Everything hangs
misfortune hang "${!calls[@]}"
for word in first repairs; do
  began=$SECONDS
  RICCI_CLOCK=0.006 gpu $word > "$work/hang.txt" 2>&1
  check "$word: ends, although every program hangs" test $((SECONDS - began)) -le 30
  check "$word: a program that hangs is no failure, but not finished" lacks "$table" ' FAIL$'
  check "$word: every row is there" diff <(planned "$work/whole") <(planned "$table" | grep -vE '^(memcheck|kernels)')
done
misfortune hang
check 'no program is left' fails pgrep -f "$work/"

# ---- papers: an unfinished training run is scored at its epoch, and the next call continues it
export RICCI_DATA=$work/texts
gpu papers > "$work/papers.txt" 2>&1
check 'without the texts nothing is trained' has_row papers 'ptb_msa, perplexity' 'not measured: RICCI_DATA has no ptb/ptb.train.txt.gz .* -'
for each in ptb/ptb.train.txt wikitext-2/wiki.train.tokens; do mkdir -p "$RICCI_DATA/${each%/*}" && touch "$RICCI_DATA/$each.gz"; done
gpu papers > "$work/papers.txt" 2>&1
check 'figure 2 has a row for each length' has_row papers 'figure 2, 8192 tokens' 'attention 10.0 ms, Dispatcher 8.0 ms .*'
check 'figure 2: attention must grow faster' has_row papers 'figure 2' 'to 16384 tokens: attention 3.50 x, Dispatcher 2.00 x .* pass'
check 'half of a training' has_row papers 'ptb_dispatcher, perplexity' '36.500, epoch 30 of 60, 100000 tokens/s +35.40 published .* unfinished'
check 'if a step cannot be recorded, without the graph' has "$STUBS/calls" '^train .*/dispatcher/ptb_msa.yaml device=cuda precision=bf16 cuda_graph=false'
gpu papers > "$work/papers.txt" 2>&1
check 'the next call continues it' has_row papers 'ptb_dispatcher, perplexity' '36.500, epoch 60 of 60, 100000 tokens/s .* pass'
check 'and draws no figure again' test "$(grep -c '^bench sdp' "$STUBS/calls")" = 1
rm -r "$bin/state"/{papers,heading.papers}
calls[papers]='^train .*/dispatcher/'
misfortune fail papers
gpu papers > "$work/papers.txt" 2>&1
check 'a training that fails says why' has_row papers 'wikitext2_msa, perplexity' 'failed, exit code 1: error: planted .* FAIL'
misfortune fail
rm "$bin/state/heading.papers"
misfortune hang papers
began=$SECONDS
RICCI_CLOCK=0.006 gpu papers > "$work/papers.txt" 2>&1
check 'papers: ends, although every training hangs' test $((SECONDS - began)) -le 30
check 'and its row says so' has_row papers 'ptb_dispatcher, perplexity' '.* unfinished'
misfortune hang

# ---- A package of other sources, and no cuBLASLt
mkdir "$work/package" && cp "$bin"/ricci-* "$work/package" && echo 0123 > "$work/package/sources" && echo abcdef > "$work/package/commit"
tar -czf "$bin/programs.tar.gz" -C "$work/package" .
rm "$work/packages/nvidia/cu13/lib/libcublasLt.so.13" "$work/bin/compute-sanitizer"
misfortune kill smoke test attention gpt2 mixers products trace graph train memory
gpu first > "$work/other.txt" 2>&1
check 'programs of other sources are used, and the row says so' has_row hello programs '10, 2 ops \(of abcdef\) .* pass'
check 'the first line has both' has <(head -n 1 "$table") 'H100.* sources with checksum .*, programs of abcdef, checksum 0123'
check 'a tool that is not installed is no failure' has_row sanitize 'memcheck of bf16 training' 'no compute-sanitizer here .* -'
check 'no cuBLASLt: the table says so' has_row hello cuBLASLt 'not found.* FAIL'

echo "$failures failed"
exit $((failures > 0))
