#!/usr/bin/env bash
# When a training ends by itself: patience with the validation loss, and a step that is not finite.
#   control.sh build-folder
. "$(dirname "$0")/../programs.sh" "$@"

# ---- Patience. A rate this high makes the validation loss worse after some steps.
early=(train tiny.yaml eval_every=2 checkpoint_every=3 lr=0.3 schedule=constant warmup=0 keep_checkpoints=1)
accept 'training without patience' "${early[@]}" name=whole steps=40
# The evaluation after which no better one came for 6 steps.
expected=$(grep -oE '"step":[0-9]+|"val_loss":[0-9.e+-]+' runs/whole/metrics.jsonl | awk -F: '
  /step/ { step = $2 } /val_loss/ { if (!best || $2 < best) { best = $2; at = step } else if (step - at >= 6) { print at, step; exit } }')
read -r best last <<<"$expected"
verdict 'the loss grows somewhere' "$([ -n "${last:-}" ] && [ "$last" -lt 40 ] || shown runs/whole/metrics.jsonl)"
run "${early[@]}" name=never steps=2 patience=6 eval_every=0
verdict 'patience without evaluations' "$(diff err - <<<'warning: patience: it ends no training, as eval_every: 0 evaluates at the end alone')"
accept 'training with patience' "${early[@]}" name=patient steps=40 patience=6
verdict 'it ends there' "$(tail -1 out | grep -qE "^no better validation loss since step $best, saved after $last steps, .*: runs/patient/model.safetensors" || instead tail -1 out)"
verdict 'with the checkpoints of the end and of the best' "$(ls runs/patient/checkpoints | xargs | diff - <(printf 'step-%08d.safetensors step-%08d.safetensors\n' $best $last))"
accept 'called again' train runs/patient
verdict 'it is finished' "$(diff out - <<<"runs/patient: finished after $last steps already; a larger patience=... goes on")"
accept 'it goes on where there is more patience' train runs/patient patience=1000
verdict 'to the bits of a training without' "$([ "$(tensors runs/patient/model.safetensors | sha256sum)" = "$(tensors runs/whole/model.safetensors | sha256sum)" ] || echo no)"
accept 'steps at first' "${early[@]}" name=divided steps=$((last - 1)) patience=6
accept 'and the rest' train runs/divided steps=40
verdict 'the end is the same' "$(tail -1 out | grep -q "since step $best, saved after $last steps" || instead tail -1 out)"

# ---- A step that is not finite
place='step ([0-9]+): the loss is -?(nan|inf): [a-z_]+ \([a-z][^ ]*:[0-9]+\): [0-9]+ of [0-9]+ elements'
for options in '' 'accumulation=2 model.dropout=0.2' 'precision=bf16 freeze=[pos]'; do
  rm -rf runs/burst
  run train tiny.yaml name=burst steps=8 lr=1e30 $options
  verdict "training fails: $options" "$(grep -qE "^ricci-train: $place.*; ricci-train runs/burst --replay computes it again$" err || echo 'expected a line with the op')"
  sed 's/; ricci-train .*//' err >told.err
  cp runs/burst/nonfinite.safetensors before.safetensors
  run train runs/burst --replay
  verdict 'the step fails again' "$([ $? = 1 ] && diff told.err err)"
  verdict 'the file stays' "$(cmp before.safetensors runs/burst/nonfinite.safetensors 2>&1)"
done
accept 'weights that are finite' train tiny.yaml name=sound steps=2
run train tiny.yaml name=overflow steps=8 lr=1e30 precision=bf16 model.dropout=0.1
verdict 'the step in other numbers tells of itself' "$(run train runs/overflow --replay precision=f32; [ $? = 1 ] && grep -qE "^ricci-train: $place" err || { [ ! -s err ] && grep -q ' is finite here: loss ' out; } || echo no)"
refuse 'a run without such a step' 1 'runs/sound: there is no nonfinite\.safetensors: no step of this run was other than finite' train runs/sound --replay
accept 'another run in the folder of one that failed' train tiny.yaml name=overflow steps=8
refuse 'does not take over its step' 1 'runs/overflow: there is no nonfinite\.safetensors' train runs/overflow --replay
truncate -s -1 runs/burst/nonfinite.safetensors
refuse 'a damaged file' 1 'nonfinite\.safetensors: ' train runs/burst --replay

# ---- Ctrl-Z: a pause is not time of training. The step that is stopped takes the time between two records, less the pause.
state() { sed 's/.*) //' "/proc/$background/stat" | cut -c1; }
set -m  # a process group of its own, as a terminal gives it
start train tiny.yaml name=paused steps=300
set +m
await '[ "$(grep -c "" runs/paused/metrics.jsonl 2>/dev/null)" -gt 5 ] 2>/dev/null'
kill -TSTP $background
await '[ "$(state)" = T ]'
verdict 'SIGTSTP stops it' "$([ "$(state)" = T ] || state)"
records=$(grep -c '' runs/paused/metrics.jsonl)
sleep 1  # the pause
kill -CONT $background
ended
verdict 'it goes on to its end' "$([ $? = 0 ] && [ ! -s background.err ] || shown background.err)"
verdict 'the time of the pause is not in the step' "$(sed -E 's/.*"tokens_per_s":([0-9.]+),.*"time":([0-9.]+).*/\1 \2/' runs/paused/metrics.jsonl |
  awk -v n="$records" 'NR == n { before = $2 } NR == n + 1 { gap = $2 - before; step = 32 / $1 }
    END { if (gap < 1 || step > gap - 0.99) print step " s of " gap " s between two records" }')"
exit $((failures > 0))
