# shellcheck shell=bash disable=SC2154
# The parts train and graph of tests/gpu.sh, which reads this file.

train_run() {  # seconds name key=value...: a fresh run in state/train
  local most=$1 name=$2
  shift 2
  mkdir -p "$state/train" && rm -rf "$state/train/runs/$name"
  (cd "$state/train" && limited "$most" "${wrapper[@]}" "$bin/ricci-train" "$root/apps/configs/quickstart.yaml" \
    name="$name" eval_every=0 sample.tokens=0 "$@")
}

values() { grep -oE "\"$2\":[^,}]+" "$state/train/runs/$1/metrics.jsonl" 2>/dev/null | cut -d: -f2; }  # run key

compare_losses() {
  local device compared
  for device in cpu cuda; do train_run 90 "f32_$device" device=$device precision=f32 steps=20 log_every=1; done
  compared=$(paste <(values f32_cpu train_loss) <(values f32_cuda train_loss) | awk '
    { error = $1 + 0 > 0 && $2 + 0 > 0 ? ($1 - $2) / $1 : 1e9; if (error < 0) error = -error }
    error > worst { worst = error }
    END { printf "%d %.1e", NR, worst }')
  row "f32 losses, cuda to cpu" "worst ${compared#* } in ${compared% *} steps" \
    "$(verdict awk -v n="${compared% *}" -v worst="${compared#* }" 'BEGIN { exit !(n == 20 && worst <= 1e-4) }')"
}

# Activations of terabytes. The program ends with an exit code and a single line.
run_out_of_memory() {
  local log=$state/train/out_of_memory.log code line
  train_run 90 out_of_memory device=cuda steps=1 batch=20000 model.ctx=4096 model.d=4096 model.heads=32 > "$log.out" 2> "$log"
  code=$? line=$(grep -a 'out of memory on cuda' "$log")
  cat "$log"
  row "out of memory" "exit code $code, $(wc -l < "$log") lines: $(cut -c1-90 <<< "${line:-no such line}")" \
    "$(verdict grep -qE 'on cuda: [a-z_]+[^;]* \([./a-z]+/[^)]*:[0-9]+\).* asked for .*; held: ' <<< "$line")"
}

# GPT-2 124M in bf16 on random tokens of context 1024; the same in PyTorch, plain and compiled, of which the faster counts.
run_gpt2() {  # batch log option...
  local log=$state/train/$2
  limited 90 "$bin/ricci-bench-training" "gpt2_${1}x1024" --device cuda --dtype bf16 "${@:3}" 2>&1 | tee "$log"
  measures "$log" | sed "s/^gpt2_${1}x1024_//" > "$log.measures"
}
of_gpt2() { awk -F'\t' -v name="$2" '$1 == name { print $2 }' "$state/train/$1.measures"; }  # log measure

# Compiled PyTorch is the bar. Without it there is no verdict: plain PyTorch is a much lower one.
run_torch_gpt2() {  # batch
  run_torch 240 "$state/train/torch.log" tests/bench/torch/train.py --dtype bf16 --batch "$1"
  best=
  if [ -n "$(value_of "$state/train/torch.log" compiled_speed)" ]; then
    best=$(measures "$state/train/torch.log" | sed -n 's/_speed\t/\t/p' | sort -t $'\t' -g -k 2 | tail -n 1 | cut -f1)
  fi
}
no_torch() {  # check: says why there is no verdict
  row "$1" "not measured: $(if [ -s "$state/train/torch.log" ]; then echo 'compiled PyTorch did not run, see the log'; else echo 'no PyTorch with CUDA'; fi)" -
}
of_torch() { value_of "$state/train/torch.log" "${best}_$1"; }

# check value unit PyTorch's bar: one of our measures as a multiple of PyTorch's.
torch_row() {
  local times
  times=$(times_of "$2" "$3" "$4")
  [ -n "$times" ] || return
  row "$1" "$times x PyTorch $best ($2 to $4 $3)" "$(verdict_of "$times" "$5")"
}

measure_gpt2() {
  local speed share
  run_gpt2 64 gpt2_64.log
  speed=$(of_gpt2 gpt2_64.log speed) share=$(of_gpt2 gpt2_64.log products)
  if [ -z "$speed" ]; then row "GPT-2, batch 64" "failed, see train.log" FAIL; return; fi
  row "GPT-2, batch 64" "$speed tokens/s, $(of_gpt2 gpt2_64.log memory) MB" "$(verdict_of "$speed" 470000)"
  row "batch 64, share of peak" "$share GFLOP/s of products$(of_floor "$share" GFLOP/s)" -
}

# What the products gain when their algorithms are timed, and when gelu is taken within them. The first run fills the file.
measure_gpt2_products() {
  local speed name options=(--tuned "$state/train/products.txt")
  for name in tuned fused; do
    [ "$name" = tuned ] || options+=(--fused-gelu)
    run_gpt2 64 "gpt2_64_$name.log" "${options[@]}"
    speed=$(of_gpt2 "gpt2_64_$name.log" speed)
    if [ -z "$speed" ]; then row "batch 64, $name" "failed, see train.log" FAIL; continue; fi
    row "batch 64, $name" "$speed tokens/s, $(times_of "$speed" tokens/s "$(of_gpt2 gpt2_64.log speed)") x the plain products" -
  done
}

compare_gpt2() {
  local speed best=
  speed=$(of_gpt2 gpt2_64.log speed)
  run_torch_gpt2 64
  if [ -z "$best" ]; then
    no_torch "batch 64, PyTorch"
    no_torch "batch 64, peak memory"
    return
  fi
  torch_row "batch 64, PyTorch" "$speed" tokens/s "$(of_torch speed)" 1
  torch_row "batch 64, peak memory" "$(of_gpt2 gpt2_64.log memory)" MB "$(of_torch memory)" 1
}

compare_gpt2_graph() {
  local speed best=
  run_gpt2 4 gpt2_4_graph.log --graph
  speed=$(of_gpt2 gpt2_4_graph.log speed)
  if [ -z "$speed" ]; then row "batch 4, cuda_graph" "failed, see graph.log" FAIL; return; fi
  run_torch_gpt2 4
  if [ -z "$best" ]; then
    no_torch "batch 4, cuda_graph"
    row "batch 4, graph alone" "$speed tokens/s" -
    return
  fi
  torch_row "batch 4, cuda_graph" "$speed" tokens/s "$(of_torch speed)" 2
}

compare_graph() {
  local graph equal
  for graph in false true; do train_run 90 "graph_$graph" device=cuda steps=20 log_every=1 model.dropout=0.1 cuda_graph=$graph; done
  equal=$(cmp "$state/train/runs/"graph_{false,true}/model.safetensors 2>&1 && echo "the same weights")
  row "cuda_graph, 20 steps" "$(tail -n 1 <<< "$equal" | sed "s|$state/train/runs/||g"), $(values graph_true train_loss | wc -l) losses" \
    "$(verdict test "$equal" = "the same weights" -a "$(values graph_true train_loss)" = "$(values graph_false train_loss)")"
}

measure_gpt2_no_graph() {
  run_gpt2 4 gpt2_4.log
  if [ -n "$(of_gpt2 gpt2_4.log speed)" ]; then row "batch 4, no graph" "$(of_gpt2 gpt2_4.log speed) tokens/s" -; else row "batch 4, no graph" "failed, see graph.log" FAIL; fi
}

part_train() {
  mkdir -p "$state/train"
  step "GPT-2, batch 64" measure_gpt2
  step "batch 64, fused" measure_gpt2_products
  least=120 step "batch 64, PyTorch" compare_gpt2
  step "f32 losses, cuda to cpu" compare_losses
  step "out of memory" run_out_of_memory
}

part_graph() {
  mkdir -p "$state/train"
  step "cuda_graph, 20 steps" compare_graph
  step "batch 4, no graph" measure_gpt2_no_graph
  least=120 step "batch 4, cuda_graph" compare_gpt2_graph
}
