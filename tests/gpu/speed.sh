# shellcheck shell=bash disable=SC2154,SC2034
# The parts of tests/gpu.sh that measure the speed of ricci, next to PyTorch and to the peaks that smoke measured. tests/gpu.sh reads this
# file.

of_card() { case $card in *H200*) echo "$2" ;; *H100*) echo "$1" ;; *) echo - ;; esac; }                  # text for an H100, for an H200

shown() { awk -v value="$1" -v unit="$2" 'BEGIN { if (unit == "GFLOP/s") printf "%.1f TFLOP/s", value / 1000; else print value, unit }'; }  # value unit

# ours unit theirs: how many times as fast, or, unless they are rates, as small, ours is; empty if one was not measured
times_of() {
  awk -v ours="$1" -v unit="$2" -v theirs="$3" \
    'BEGIN { if (ours > 0 && theirs > 0) printf "%.3f", unit ~ /\/s$/ ? ours / theirs : theirs / ours }'
}

percent_of_peak() {  # value unit: empty for other units, and if the peak was not measured
  local most=
  case $2 in
    GFLOP/s) most=$(value_of peaks square_8192_speed) ;;
    GB/s) most=$(value_of peaks copy_2GiB_bandwidth) ;;
  esac
  [ -z "$most" ] || awk -v value="$1" -v most="$most" 'BEGIN { printf "%.1f", 100 * value / most }'
}

at_least() { if [ -z "$1" ]; then echo -; else verdict awk -v value="$1" -v bar="$2" 'BEGIN { exit !(value >= bar) }'; fi; }  # value bar

# The row of a measure. Its bar in the table is its limit.
compare() {  # check value unit PyTorch's [ours without wgmma]
  local times gain percent bar verdict=-
  times=$(times_of "$2" "$3" "$4") gain=$(times_of "$2" "$3" "${5:-}") percent=$(percent_of_peak "$2" "$3") bar=$(bar_of "$1")
  case $bar in
    *' x PyTorch') verdict=$(at_least "$times" "${bar%% *}") ;;
    *' % of a copy') verdict=$(at_least "$percent" "${bar%% *}") ;;
  esac
  row "$1" "$(shown "$2" "$3")${times:+, $times x PyTorch}${gain:+, $gain x without wgmma}${percent:+, $percent % of peak}" "$verdict"
}

# both NAME PATTERN COMMAND SECONDS LOG ...: a call of ours or of torch, then the rows of the measures with matching names, with the known
# values of both. Logs are NAME for ours, NAME_torch, and NAME_mma for ours without wgmma.
both() {
  local code name value unit
  "${@:3}"
  code=$?
  while read -r name value unit; do
    compare "$name" "$value" "$unit" "$(value_of "$1_torch" "$name")" "$(value_of "$1_mma" "$name")"
  done < <(measures "$1" | grep -E "^($2)")
  [ $code != 0 ] || result "$(measures "$5" | wc -l) measures" -
  return $code
}

# ---- attention
part_attention() {
  local each options=(--device cuda --seconds 0.5)
  plan forward_hd64_causal '300 TFLOP/s' '0.95 x PyTorch'
  plan forward_backward_hd64_causal '234 TFLOP/s' '0.85 x PyTorch'
  for each in {forward,forward_backward}_hd{64_full,128_causal,128_full}; do plan "$each"; done
  step ours - - both attention . ours 40 attention bench-attention "${options[@]}"
  step PyTorch - - both attention . torch 40 attention_torch attention "${options[@]}"
  RICCI_WITHOUT_WGMMA=1 step 'without wgmma' - - both attention . ours 40 attention_mma bench-attention "${options[@]}"
}

# ---- gpt2: training of GPT-2 124M, 64 x 1024 tokens a step, in bf16
part_gpt2() {
  step plain - '470000 tokens/s' gpt2 gpt2_64x1024
  step 'PyTorch, compiled' - - torch_gpt2
  plan 'PyTorch, plain'
  step graph - - gpt2 gpt2_64x1024 --graph
  step 'ours to PyTorch' - '1 x PyTorch' compare_gpt2
  plan 'memory to PyTorch' - '1 x PyTorch'
}

gpt2() {  # case option...
  local name=${check//[ ,]/_} speed bar percent
  ours 40 "$name" bench-training "$1" --device cuda --dtype bf16 --steps 15 "${@:2}" || return
  speed=$(value_of "$name" "$1_speed") bar=$(bar_of "$check") percent=$(percent_of_peak "$(value_of "$name" "$1_products")" GFLOP/s)
  result "$speed tokens/s, $(value_of "$name" "$1_median") ms, $(value_of "$name" "$1_memory") MB${percent:+, $percent % of peak}" \
    "$(if [ "$bar" = - ]; then echo -; else at_least "$speed" "${bar%% *}"; fi)"
}

torch_gpt2() {
  local code kind speed
  torch 75 gpt2_torch train --dtype bf16 --batch 64 --seconds 6
  code=$?
  for kind in compiled plain; do
    speed=$(value_of gpt2_torch ${kind}_speed)
    [ -z "$speed" ] || row "PyTorch, $kind" "$speed tokens/s, $(value_of gpt2_torch ${kind}_memory) MB" -
  done
  return $code
}

# The fastest of ours next to compiled PyTorch.
compare_gpt2() {
  local name speed memory
  log=$logs/gpt2_torch.txt
  read -r speed name < <(for name in plain graph; do echo "$(value_of $name gpt2_64x1024_speed) $name"; done | sort -g | tail -n 1)
  memory=$(value_of gpt2_torch compiled_memory)
  has_torch || return
  if [ -z "$name" ] || [ -z "$memory" ]; then result 'one of them was not measured' unfinished; return; fi
  compare 'ours to PyTorch' "$speed" tokens/s "$(value_of gpt2_torch compiled_speed)"
  compare 'memory to PyTorch' "$(value_of "$name" gpt2_64x1024_memory)" MB "$memory"
}

# PyTorch compiles while the tests run and leave most of the GPU free. Later calls find the kernels in a folder.
warm_up() {
  export OMP_NUM_THREADS=8 TORCHINDUCTOR_COMPILE_THREADS=8
  torch 100 warm_gpt2 train --dtype bf16 --batch 64 --kinds compiled --seconds 0
  torch 100 warm_mixers mixers "${mixers[@]}" --dtype bf16 --device cuda --compile --steps 1
}

# ---- mixers, products: op by op next to compiled PyTorch
mixers=(shift_and_sum mixer_metric_1024 mixer_dispatcher_1024 mixer_sdp_1024 stack_dispatcher_1024 stack_sdp_1024)

part_mixers() {
  local name options=("${mixers[@]}" --device cuda --dtype bf16 --steps 20)
  plan shift_and_sum_forward '30 % of a copy' '50 % of a copy'
  plan shift_and_sum_forward_backward '13 % of a copy' '50 % of a copy'
  for name in "${mixers[@]:1}"; do plan "${name}_median"; done
  step ours - - both mixers '.*_median|shift' ours 35 mixers bench-mixers "${options[@]}"
  step 'PyTorch, compiled' - - both mixers '.*_median|shift' torch 45 mixers_torch mixers --compile "${options[@]}"
}

part_products() {
  local name names=(gpt2_16x1024_{qkv,proj,up,down,head}{,_dw}) options=(--device cuda --dtype bf16 --steps 20)
  for name in "${names[@]}"; do plan "${name}_speed"; done
  step ours - - both products '.*_speed' ours 25 products bench-products "${names[@]}" "${options[@]}"
  step PyTorch - - both products '.*_speed' torch 25 products_torch products "${names[@]}" "${options[@]}"
}

# ---- trace: a training step of GPT-2 op by op. Each op is waited for, so the sum is more than a step.
part_trace() { step 'all ops' - - trace_gpt2; }

trace_gpt2() {
  local op ms share
  RICCI_TRACE=1 ours 30 trace bench-training gpt2_64x1024 --device cuda --dtype bf16 --steps 10 || return
  while IFS=$'\t' read -r op ms share; do
    if [ "$op" = all ]; then result "$ms ms a step" -; else row "$op" "$ms ms a step, $share" -; fi
  done < <(traced_ops)
}

traced_ops() {  # op, milliseconds a step, share: from the table of RICCI_TRACE (cuda/trace.h), whose first 38 columns are the op
  awk '/^op +calls +ms / { table = 1; next }
    table { op = substr($0, 1, 38); sub(/ +$/, "", op); split(substr($0, 39), n, " "); if (n[3] + 0 >= 0.5) printf "%s\t%.2f\t%s\n", op, n[2] / 10, n[3] }' "$log"
}

# ---- kernels: how near our largest kernels in a step of GPT-2 come to the GPU's limits
part_kernels() { step ncu - - profile_kernels; }

profile_kernels() {
  local name value code wrapper=(ncu --csv --clock-control none --section SpeedOfLight --print-units base --kernel-name-base demangled
    --kernel-name 'regex:flash::|CrossEntropy|layer_norm|Tanh' --launch-count 80 --kill yes)
  has_tool ncu || return 0
  ours 45 ncu bench-training gpt2_64x1024 --device cuda --dtype bf16 --steps 1
  code=$?
  grep -a '^"' "$log" > "$OUT/ncu.csv"
  while IFS=$'\t' read -r name value; do row "$name" "$value" -; done < <(largest_kernels)
  [ -s "$OUT/ncu.csv" ] || return $((code ? code : 1))
  result "$(grep -c Duration "$OUT/ncu.csv") launches" -
}

largest_kernels() {  # kernel, ncu's words: six
  "$python" - "$OUT/ncu.csv" << 'PYTHON'
import collections, csv, re, sys

kernels = collections.defaultdict(lambda: collections.defaultdict(list))
milliseconds = {"n": 1e-6, "u": 1e-3, "s": 1e3}  # by the first letter of a unit
for row in csv.DictReader(open(sys.argv[1])):
    name = re.sub(r".*\brun<(.*)>\(.*", r"\1", row["Kernel Name"])
    name = re.sub(r"(\w+::)+(?=\w+::)", "", name.replace("ricci::", ""))[:60]  # its last namespace says of which op it is
    value = float(row["Metric Value"].replace(",", ""))
    if row["Metric Name"] == "Duration":
        value *= milliseconds.get(row["Metric Unit"][:1], 1)
    kernels[name][row["Metric Name"]].append(value)
means = {name: {metric: sum(of) / len(of) for metric, of in metrics.items()} for name, metrics in kernels.items()}
for name, of in sorted(means.items(), key=lambda item: -item[1].get("Duration", 0))[:6]:
    time, compute, memory = (of.get(metric, 0) for metric in ("Duration", "Compute (SM) Throughput", "Memory Throughput"))
    print(f"{name}\t{time:.3f} ms, {compute:.0f} % of compute, {memory:.0f} % of memory")
PYTHON
}
