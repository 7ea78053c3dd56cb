# shellcheck shell=bash disable=SC2154
# The parts train and graph of tests/gpu.sh, which reads this file.

train_run() {  # seconds name key=value...: a fresh run in state/train
  local most=$1 name=$2
  shift 2
  mkdir -p "$state/train" && rm -rf "$state/train/runs/$name"
  (cd "$state/train" && limited "$most" "${wrapper[@]}" "$build/ricci-train" "$root/apps/configs/quickstart.yaml" \
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

# GPT-2's 12 layers of 768, on characters; of 45 s the last 30 count. PyTorch's figure, times `factor`, is the bar.
compare_speed() {  # row dtype factor batch key=value...
  local check=$1 dtype=$2 factor=$3 batch=$4 speed vocab best log
  shift 4
  log=$state/train/${dtype}_$batch.log
  local sizes=(model.layers=12 model.heads=12 model.d=768 model.ctx=1024 model.bias=true)
  train_run 45 "${dtype}_$batch" device=cuda precision="$dtype" batch="$batch" steps=1000000 log_every=5 lr=6e-4 "${sizes[@]}" "$@" 2>&1 | tee "$log"
  speed=$(values "${dtype}_$batch" tokens_per_s | tail -n 1 | cut -d. -f1) vocab=$(grep -oE 'vocabulary [0-9]+' "$log" | head -n 1)
  if [ -z "$speed" ] || [ -z "$vocab" ]; then row "$check" "failed, see the part's log" FAIL; return; fi
  run_torch "$state/train/torch.log" tests/bench/torch_train.py --dtype "$dtype" --vocab "${vocab#* }" --batch "$batch"
  best=$(measures "$state/train/torch.log" | cut -f2 | sort -g | tail -n 1)
  row "$check" "$speed tokens/s" - "PyTorch: not measured"
  [ -z "$best" ] || row "$check" "$speed tokens/s" "$(verdict awk -v us="$speed" -v bar="$best" -v factor="$factor" \
    'BEGIN { exit !(us >= factor * bar) }')" "$factor x PyTorch's $best tokens/s"
}

compare_graph() {
  local graph equal
  for graph in false true; do train_run 90 "graph_$graph" device=cuda steps=20 log_every=1 model.dropout=0 cuda_graph=$graph; done
  equal=$(cmp "$state/train/runs/"graph_{false,true}/model.safetensors 2>&1 && echo "the same weights")
  row "cuda_graph, 20 steps" "$(tail -n 1 <<< "$equal" | sed "s|$state/train/runs/||g"), $(values graph_true train_loss | wc -l) losses" \
    "$(verdict test "$equal" = "the same weights" -a "$(values graph_true train_loss)" = "$(values graph_false train_loss)")"
}

part_train() {
  compare_losses
  run_out_of_memory
  compare_speed "f32 speed" f32 1 16
  compare_speed "bf16 speed" bf16 1 16
}

part_graph() {
  compare_graph
  compare_speed "batch 4, cuda_graph" bf16 2 4 model.dropout=0 cuda_graph=true
}
