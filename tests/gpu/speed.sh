# shellcheck shell=bash disable=SC2154
# The parts trace, attention and bench of tests/gpu.sh, which reads this file.

# ---- trace: where the time of a training step of GPT-2 goes, op by op
traced_steps=10

trace_gpt2() {
  local log=$state/trace.log all='GPT-2 64 x 1024, traced' op ms share
  RICCI_TRACE=1 limited 150 "$build/ricci-bench-training" gpt2_64x1024 --device cuda --dtype bf16 --steps "$traced_steps" 2>&1 | tee "$log"
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

# ---- attention, bench: the programs of tests/bench
has_device() { grep -qs -e '"--device"' -e 'bench::add_options' "$1"; }  # a source or a script

other_benches() {  # that run on a GPU, apart from attention
  local source
  for source in tests/bench/*.cpp; do
    if [ "$source" != tests/bench/attention.cpp ] && has_device "$source"; then basename "$source" .cpp; fi
  done
}

bench_one() {  # name
  local program=$build/ricci-bench-$1 script=tests/bench/torch/$1.py
  local ours=$state/bench.ours theirs=$state/bench.theirs check value unit times bar
  limited 120 "$program" --device cuda 2>&1 | tee "$ours" || { row "$1" "failed, see the log" FAIL; return; }
  : > "$theirs"
  ! has_device "$script" || run_torch "$theirs" "$script" --device cuda
  row "$1" "ran: $(measures "$ours" | wc -l) measures, PyTorch $(measures "$theirs" | wc -l)" pass
  while IFS=$'\t' read -r check value unit; do
    times=$(times_of "$value" "$unit" "$(value_of "$theirs" "$check")") bar=${bar_of["$1: $check"]:-}
    row "$1: $check" "$value $unit${times:+, $times x PyTorch}" "$(verdict_of "$times" "$bar")" "${bar:--}${bar:+ x PyTorch}"
  done < <(measures "$ours")
}

part_attention() { step attention bench_one attention; }

part_bench() {
  local name
  for name in $(other_benches); do step "$name" bench_one "$name"; done
}
