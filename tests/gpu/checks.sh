# shellcheck shell=bash disable=SC2154,SC2034
# The parts of tests/gpu.sh that check whether ricci computes correctly on the GPU. tests/gpu.sh reads this file.

# ---- hello, smoke: what is here, and whether anything computes
part_hello() {
  step GPU - found show_gpu
  step programs - start show_programs
  step cuBLASLt - found show_cublas
}
show_gpu() { result "$card, $(nvidia-smi --query-gpu=memory.total,clocks.max.sm,power.limit --format=csv,noheader | head -n 1), $(nproc) cores" pass; }
show_programs() { ours 15 programs check --list && result "$(find "$bin" -maxdepth 1 -name 'ricci-*' | wc -l), $(wc -l < "$log") ops" pass; }
show_cublas() { if [ "$libraries" = none ]; then result 'not found, our own kernels instead' FAIL; else result "found${libraries:+ in ${libraries%%:*}}" pass; fi; }

part_smoke() {
  step 'one kernel' - right check_gradients 15 --op relu
  step 'copy of 1 GiB' "$(of_card '3000 GB/s' '4300 GB/s')" - measure_peaks
  plan 'product of 8192, bf16' "$(of_card '798 TFLOP/s' '780 TFLOP/s')" -
  step 'gradients of all ops, f64' - '0 wrong' check_gradients 30
  step PyTorch - found show_torch
}

check_gradients() {  # seconds option...
  local code worst
  ours "$1" "gradients$#" check --device cuda "${@:2}"
  code=$? worst=$(awk '$3 ~ /e[-+]/ && $3 > worst { worst = $3 } END { print worst }' "$log")
  was_stopped $code && return $code
  result "$(grep -aoE '^[0-9]+ ops?, -?[0-9]+ wrong' "$log" || last_line), worst ${worst:-not measured}" "$(verdict test $code = 0 -a -n "$worst")"
}

measure_peaks() {
  local copy product
  ours 25 peaks bench-products copy_2GiB square_8192 --device cuda --dtype bf16 --steps 20 || return
  copy=$(value_of peaks copy_2GiB_bandwidth) product=$(value_of peaks square_8192_speed)
  result "$copy GB/s, read and written" -
  row 'product of 8192, bf16' "$(shown "$product" GFLOP/s)" -
}

show_torch() { log=$logs/torch.txt; has_torch && result "$(cat "$state/torch")" pass; }

# ---- test, again: the tests with the label GPU, and each failed one again
part_test() {
  local -x RICCI_TEST_DEVICES=cuda OMP_NUM_THREADS=2
  step 'instructions without wgmma' - '0 failed' run_test ptx '--test-case-exclude=wgmma*'
  step 'wgmma' - '0 failed' run_test wgmma '--test-case=wgmma*'
  step 'ctest, label GPU' - '0 failed' run_tests
  plan 'skipped on cuda' - 0
}

run_test() {  # log option
  local code
  ours 25 "$1" tests "--source-file=*tests/cuda/ptx/ptx_test.cpp" "$2"
  code=$?
  was_stopped $code && return $code
  result "$(assertions || echo "exit code $code: $(last_line)")" "$(verdict passed $code)"
}
assertions() { grep -aoE 'assertions: +[0-9]+ \| +[0-9]+ passed \| +[0-9]+ failed' "$log" | tr -s ' '; }  # from a doctest log
passed() { [ "$1" = 0 ] && assertions | grep -q ' [1-9][0-9]* passed | 0 failed'; }                         # exit code

run_ctest() {  # seconds log option...
  log=$logs/$2.txt
  LD_LIBRARY_PATH=$libraries limited "$1" ctest --test-dir "$bin" -L GPU -V --timeout $((45 * second / 1000 + 1)) "${@:3}" > "$log" 2>&1
}
ended() { awk -v how="$1" '/^ *[0-9]+\/[0-9]+ Test +#/ && $0 ~ how { print $4 }' "$log"; }  # pattern: the tests that ended so
failed='[*][*][*](Failed|Timeout|Exception|Not)'

run_tests() {
  local code passed all names cuda
  run_ctest 70 ctest -j "$(($(nproc) > 4 ? $(nproc) - 4 : 2))"
  code=$? passed=$(ended ' Passed ' | wc -l) all=$(awk '/^ *[0-9]+\/[0-9]+ Test +#/ { split($1, of, "/"); print of[2]; exit }' "$log")
  ended "$failed" > "$state/failed"
  details >> "$state/failures"
  names=$(xargs < "$state/failed") cuda=$(grep -ac 'skipped on cuda:' "$log")
  [ -n "$all" ] || return $code
  row 'skipped on cuda' "$cuda" "$(verdict test "$cuda" = 0)"
  result "$passed of $all passed, $(ended Skipped | wc -l) skipped, failed: ${names:-none}" "$(verdict test -z "$names")"
  if was_stopped $code && [ -z "$names" ]; then result "$passed of $all passed until the limit" unfinished; fi
}

# Lines of a ctest log that show why its tests failed.
details() {
  awk -v failed="$failed" '
    /^ *[0-9]+\/[0-9]+ Test +#/ && $0 ~ failed { id = $3 $4; sub(/^#?/, "", id); sub(/:.*/, "", id); name[id] = $0 }
    match($0, /^[0-9]+: /) && /rror|FATAL|values:|logged:|TEST CASE:|exception|ignal| got / {
      id = substr($0, 1, RLENGTH - 2)
      if (++lines[id] <= 14) text[id] = text[id] "\n  " substr($0, RLENGTH + 1, 300)
    }
    END { for (id in name) print "== " name[id] text[id] }' "$log"
}

part_again() {
  local -x RICCI_TEST_DEVICES=cuda OMP_NUM_THREADS=2 RICCI_SYNC=1
  step 'each failure by itself' - passes run_again
}

run_again() {
  local name most=12 attention code
  [ -s "$state/failed" ] || { result 'nothing failed' pass; return; }
  run_ctest 18 again -j 8 -R "^($(head -n $most "$state/failed" | paste -sd'|'))\$"
  code=$?
  { echo '-- again, with RICCI_SYNC=1'; details; } >> "$state/failures"
  result "$(ended ' Passed ' | wc -l) pass, $(ended "$failed" | wc -l) fail$(! was_stopped $code || echo ', then the time ended')" FAIL
  while read -r name; do row "$name" "passes with RICCI_SYNC=1" -; done < <(ended ' Passed ')
  while read -r name; do
    row "$name" "$(details | grep -A 14 " $name " | grep -m 1 rror | cut -c1-150 | xargs -0)" FAIL
  done < <(ended "$failed")
  attention=$(grep -E 'attention|wgmma' "$state/failed" | head -n $most | paste -sd'|')
  [ -n "$attention" ] || return
  RICCI_WITHOUT_WGMMA=1 run_ctest 12 without_wgmma -j 8 -R "^($attention)\$"
  row 'attention without wgmma' "$(ended ' Passed ' | wc -l) pass, fail: $(ended "$failed" | xargs)" -
}

# ---- train, graph, memory: small training runs by ricci train
train() {  # seconds name key=value...: a fresh run of the quickstart
  rm -rf "$state/train/$2"
  ours "$1" "$2" train apps/configs/quickstart.yaml name="$2" runs="$state/train" eval_every=0 sample.tokens=0 log_every=1 "${@:3}"
}
losses() { grep -oE '"train_loss":[^,}]+' "$state/train/$1/metrics.jsonl" 2> /dev/null | cut -d: -f2; }  # name

part_train() {
  step 'f32, 20 steps, cuda to cpu' - '1e-4 relative' compare_f32
  step 'bf16, 300 steps, cuda to cpu' - 'at most 2 % more' compare_bf16  # with heads of width 64, which wgmma computes
}

on_both() {  # name precision key=value...: the same training on cuda and, in f32, on the cpu
  local code
  train 30 "$1_cpu" device=cpu "${@:3}" &
  train 30 "$1_cuda" device=cuda precision="$2" "${@:3}"
  code=$?
  wait
  return $code
}

compare_f32() {
  local compared
  on_both f32 f32 steps=20 || return
  compared=$(paste <(losses f32_cpu) <(losses f32_cuda) | awk '
    { error = $1 + 0 > 0 && $2 + 0 > 0 ? ($1 - $2) / $1 : 1e9; if (error < 0) error = -error }
    error > worst { worst = error }
    END { printf "%d %.1e", NR, worst }')
  result "worst ${compared#* } in ${compared% *} steps" \
    "$(verdict awk -v n="${compared% *}" -v worst="${compared#* }" 'BEGIN { exit !(n == 20 && worst <= 1e-4) }')"
}

compare_bf16() {
  local cpu cuda
  on_both bf16 bf16 steps=300 model.heads=2 || return
  cpu=$(last_losses bf16_cpu) cuda=$(last_losses bf16_cuda)
  result "from $(losses bf16_cuda | head -n 1 | cut -c1-6) to $cuda, f32 on the cpu to $cpu" \
    "$(verdict awk -v cpu="$cpu" -v cuda="$cuda" 'BEGIN { exit !(cuda > 0 && cpu > 0 && cuda <= 1.02 * cpu) }')"
}
last_losses() { losses "$1" | tail -n 20 | awk '{ sum += $1 } END { if (NR) printf "%.4f", sum / NR }'; }

part_graph() {
  step 'cuda_graph, 20 steps' - 'the same weights' compare_graph
  step 'batch 4' - - gpt2 gpt2_4x1024
  step 'batch 4, graph' - - gpt2 gpt2_4x1024 --graph
}

compare_graph() {
  local graph equal
  for graph in false true; do train 15 "graph_$graph" device=cuda steps=20 model.dropout=0.1 cuda_graph=$graph || return; done
  equal=$(cmp "$state"/train/graph_{false,true}/model.safetensors 2>&1 && echo 'the same weights')
  result "$(tail -n 1 <<< "$equal" | sed "s|$state/train/||g"), $(losses graph_true | wc -l) losses" \
    "$(verdict test "$equal" = 'the same weights' -a "$(losses graph_true)" = "$(losses graph_false)")"
}

# Activations of hundreds of gigabytes: the program ends with an exit code and a line.
part_memory() { step 'out of memory' - 'one line with the op' run_out_of_memory; }
run_out_of_memory() {
  local code line
  train 14 out_of_memory device=cuda steps=1 batch=20000 model.ctx=1024 model.d=1024 model.heads=8
  code=$? line=$(grep -a 'out of memory on cuda' "$log")
  was_stopped $code && return $code
  result "exit code $code: $(cut -c1-110 <<< "${line:-no such line}")" \
    "$(verdict grep -qE 'on cuda: [a-z_]+[^;]* \([./a-z]+/[^)]*:[0-9]+\).* asked for .*; held: ' <<< "$line")"
}

# ---- sanitize, memcheck: tests under compute-sanitizer, all together
sanitized=(memcheck:{ops/attention/bf16,cuda/ptx/ptx,ops/shift_and_sum/shift_and_sum,ops/rows/norms,ops/products/classifier,ops/embedding/embedding}
  racecheck:{ops/attention/bf16,ops/shift_and_sum/shift_and_sum,ops/rows/norms})

part_sanitize() {
  local each
  step compute-sanitizer - - sanitize 40 "${sanitized[@]}"
  for each in "${sanitized[@]}"; do plan "${each/:*\// }" - '0 errors'; done
  step 'memcheck of bf16 training' - '0 errors' sanitize_training
}

has_tool() { command -v "$1" > /dev/null || { result "no $1 here" -; return 1; }; }

sanitize_training() {
  local wrapper=(compute-sanitizer --tool memcheck)
  has_tool compute-sanitizer || return 0
  train 25 sanitized device=cuda precision=bf16 model.heads=2 steps=2 batch=4 || return
  result "$(grep -o 'ERROR SUMMARY: .*' "$log")" "$(verdict grep -q 'ERROR SUMMARY: 0 ' "$log")"
}

part_memcheck() { step 'failed tests' - - sanitize_failed; }
sanitize_failed() {
  local names=() name
  while read -r name; do [ ! -e "tests/${name}_test.cpp" ] || names+=("memcheck:$name"); done < <(head -n 8 "$state/failed" 2> /dev/null)
  if [ ${#names[@]} = 0 ]; then result none -; else sanitize 50 "${names[@]}"; fi
}

sanitize() {  # seconds TOOL:TEST...
  local -x RICCI_TEST_DEVICES=cuda OMP_NUM_THREADS=2
  local each
  has_tool compute-sanitizer || return 0
  for each in "${@:2}"; do sanitize_one "$1" "$each" & done
  wait
  for each in "${@:2}"; do judge_sanitized "$each"; done
  log=
  result "$(($# - 1)) tests" -
  (cd "$logs" && tar -czf "$OUT/sanitize.tgz" -- *check.*.txt)
}

sanitize_one() {  # seconds TOOL:TEST
  local wrapper=(compute-sanitizer --tool "${2%%:*}" --print-limit 20)
  ours "$1" "${2//[:\/]/.}" tests "--source-file=*tests/${2#*:}_test.cpp"
  echo "exit code $?" >> "$log"
}

judge_sanitized() {  # TOOL:TEST
  local summary row=${1/:*\// }
  log=$logs/${1//[:\/]/.}.txt
  summary=$(grep -aoE '(ERROR|RACECHECK) SUMMARY: .*' "$log" | tail -n 1)
  if [ -n "$summary" ]; then
    row "$row" "${summary#*: }; $(assertions)" "$(verdict test -n "$(grep ': 0 ' <<< "$summary")" -a -n "$(assertions | grep ' [1-9][0-9]* passed')")"
  elif grep -qE 'not supported|Unable to attach|Failed to initialize' "$log"; then
    row "$row" 'compute-sanitizer is refused here' -
  elif was_stopped "$(sed -n 's/^exit code //p' "$log")"; then
    row "$row" "stopped at its limit, $(grep -ac '^========= .*[Ee]rror' "$log") lines of errors" unfinished
  else
    row "$row" "failed: $(last_line)" FAIL
  fi
}
