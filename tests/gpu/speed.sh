# shellcheck shell=bash disable=SC2154
# The parts smoke, trace, mixers, attention and bench of tests/gpu.sh, which reads this file.

# ---- smoke: everything computes, and what the GPU can do at most
peak() { awk -v name="$1" '$1 == name { print $2 }' "$state/peaks" 2> /dev/null; }  # copy (GB/s) or product (GFLOP/s, bf16)

# The measured copy bandwidth and the speed of one large product: the floors that everything else is held against.
measure_peaks() {
  local log=$state/peaks.log copy product
  limited 60 "$bin/ricci-bench-products" copy_2GiB square_8192 --device cuda --dtype bf16 2>&1 | tee "$log"
  copy=$(value_of "$log" copy_2GiB_bandwidth) product=$(value_of "$log" square_8192_speed)
  if [ -z "$copy" ] || [ -z "$product" ]; then row "copy bandwidth" "failed, see smoke.log" FAIL; return; fi
  printf 'copy\t%s\nproduct\t%s\n' "$copy" "$product" > "$state/peaks"
  row "copy bandwidth" "$copy GB/s, read and written" -
  row "product peak, bf16" "$product GFLOP/s, 8192 x 8192 x 8192" -
}

# value unit: the value as a share of what the GPU was measured to do at most; empty for other units, and before that.
of_floor() {
  local most=
  case $2 in
    GFLOP/s) most=$(peak product) ;;
    GB/s) most=$(peak copy) ;;
  esac
  [ -z "$most" ] || awk -v value="$1" -v most="$most" 'BEGIN { printf ", %.1f %% of peak", 100 * value / most }'
}

part_smoke() {
  step "ricci-check on cuda" check_gradients
  step "copy bandwidth" measure_peaks
}

# ---- trace: where the time of a training step of GPT-2 goes, op by op
traced_steps=10

trace_gpt2() {
  local log=$state/trace.log all='GPT-2 64 x 1024, traced' op ms share
  RICCI_TRACE=1 limited 150 "$bin/ricci-bench-training" gpt2_64x1024 --device cuda --dtype bf16 --steps "$traced_steps" 2>&1 | tee "$log"
  ms=$(ops_of "$log" | awk -F'\t' '$1 == "all" { print $2 }')
  if [ -z "$ms" ]; then row "$all" "failed, see trace.log" FAIL; return; fi
  row "$all" "$ms ms per step, each op waited for" pass
  while IFS=$'\t' read -r op ms share; do row "$op" "$ms ms per step, $share" - -; done < <(ops_of "$log" | awk -F'\t' '$1 != "all" && $3 + 0 >= 0.5')
}

# log: op, milliseconds per step, share of all, from the table of RICCI_TRACE (cuda/trace.h); the first 38 columns are the op.
ops_of() {
  awk -v steps="$traced_steps" '/^op +calls +ms / { table = 1; next }
    table && match(substr($0, 39), /^ *[0-9]+ +[0-9.]+ +[0-9.]+%/) {
      op = substr($0, 1, 38); sub(/ +$/, "", op); split(substr($0, 39), number, " ")
      printf "%s\t%.2f\t%s\n", op, number[2] / steps, number[3]
    }' "$1"
}

part_trace() { step 'GPT-2 64 x 1024, traced' trace_gpt2; }

# ---- attention, mixers, bench: the programs of tests/bench
has_device() { grep -qs -e '"--device"' -e 'bench::add_options' "$1"; }  # a source or a script

other_benches() {  # that run on a GPU, apart from those that are parts of their own
  local source
  for source in tests/bench/*.cpp; do
    if [[ ! $source =~ (attention|mixers)\.cpp ]] && has_device "$source"; then basename "$source" .cpp; fi
  done
}

bench_one() { bench_as "$1" "$@"; }  # name option...: options of both programs

bench_as() {  # row name option...
  local program=$bin/ricci-bench-$2 script=tests/bench/torch/$2.py
  local ours=$state/bench.ours theirs=$state/bench.theirs check value unit times bar
  [ -x "$program" ] || { row "$1" "not measured: no ricci-bench-$2, see build" -; return; }
  limited 120 "$program" "${@:3}" --device cuda 2>&1 | tee "$ours" || { row "$1" "failed, see the log" FAIL; return; }
  : > "$theirs"
  ! has_device "$script" || run_torch 150 "$theirs" "$script" "${@:3}" --device cuda
  row "$1" "ran: $(measures "$ours" | wc -l) measures, PyTorch $(measures "$theirs" | wc -l)" pass
  while IFS=$'\t' read -r check value unit; do
    times=$(times_of "$value" "$unit" "$(value_of "$theirs" "$check")") bar=${bar_of["$2: $check"]:-}
    row "$2: $check" "$value $unit${times:+, $times x PyTorch}$(of_floor "$value" "$unit")" "$(verdict_of "$times" "$bar")" "${bar:--}${bar:+ x PyTorch}"
  done < <(measures "$ours")
}

part_attention() {
  step attention bench_one attention
  step 'attention, packed' bench_as 'attention, packed' attention --documents 8
}

# The op of the Dispatcher alone, which no peer has: half the bandwidth of a copy is the bar.
measure_shift_and_sum() {
  local log=$state/shift_and_sum.log pass speed share
  limited 60 "$bin/ricci-bench-mixers" shift_and_sum --device cuda --dtype bf16 2>&1 | tee "$log"
  for pass in forward forward_backward; do
    speed=$(value_of "$log" "shift_and_sum_$pass")
    share=$(awk -v speed="$speed" -v most="$(peak copy)" 'BEGIN { if (speed > 0 && most > 0) print speed / most }')
    if [ -z "$speed" ]; then row "shift_and_sum, $pass" "failed, see mixers.log" FAIL; continue; fi
    row "shift_and_sum, $pass" "$speed GB/s$(of_floor "$speed" GB/s)" "$(verdict_of "$share" 0.5)"
  done
}

# Each row is a step of its own, so that a call that ends early keeps what it has.
part_mixers() {
  local name
  step "shift_and_sum, forward_backward" measure_shift_and_sum
  while read -r name; do
    [ "$name" = shift_and_sum ] || step "mixers $name" bench_as "mixers $name" mixers "$name" --dtype bf16
  done < <("$bin/ricci-bench-mixers" --list --device cuda)
}

part_bench() {
  local name
  for name in $(other_benches); do step "$name" bench_one "$name" --dtype bf16; done
}
