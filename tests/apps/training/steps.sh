#!/usr/bin/env bash
# The effects of the run file on a step of ricci train: its learning rate and gradient clipping. And the ends of training: patience with the
# validation loss, and a step that is not finite.
#   steps.sh build-folder
. "$(dirname "$0")/../programs.sh" "$@"
plain=(tiny.yaml optimizer=sgd momentum=0 weight_decay=0 schedule=constant warmup=0 steps=1)
# column NAME KEY: the values of a metric, one line each.
column() { sed -E "s/.*\"$2\":([^,}]*).*/\\1/" "runs/$1/metrics.jsonl"; }
same_model() { verdict "$1" "$(cmp "runs/$2/model.safetensors" "runs/$3/model.safetensors" 2>&1)"; }
other_model() { verdict "$1" "$(! cmp -s "runs/$2/model.safetensors" "runs/$3/model.safetensors" || echo 'the same bytes')"; }

accept 'a schedule' train tiny.yaml name=schedule schedule=linear warmup=3 lr=1e-3 min_lr=0 steps=7
verdict 'the rate of step t is that of the schedule at t - 1' \
  "$(paste -d' ' - - <<<"$(column schedule lr; echo end)" | diff - <(printf '%s\n' '0.00025 0.0005' '0.00075 0.001' '0.00075 0.0005' '0.00025 end'))"

# A schedule keeps its end, even if the run continues for more steps.
rates() { column "$1" lr | tail -n +"${2:-1}" | xargs printf '%.6g\n' | xargs; }
falling=(tiny.yaml schedule=linear warmup=0 lr=1e-3 min_lr=1e-4)
accept 'a schedule to its end' train "${falling[@]}" name=falling steps=4
accept 'more steps' train "${falling[@]}" name=falling steps=6
verdict 'go on at the least rate' "$(diff <(rates falling) - <<<'0.001 0.000775 0.00055 0.000325 0.0001 0.0001')"
verdict 'which is told' "$(head -2 out | diff - <(printf '%s\n' 'the schedule ends at step 4: after it the learning rate is 0.0001;' 'schedule_steps=6 would end it later'))"
accept 'by its folder' train runs/falling steps=7
verdict 'it goes on so' "$(diff <(rates falling 6) - <<<'0.0001 0.0001')"
accept 'another end, asked for' train runs/falling steps=9 schedule_steps=16
verdict 'is that of the steps from there on' "$(diff <(rates falling 8) - <<<'0.00060625 0.00055')"
accept 'and is kept' train runs/falling steps=10
verdict 'in the checkpoint' "$(diff <(rates falling 10) - <<<'0.00049375')"
accept 'a run of a schedule that is longer than its steps' train "${falling[@]}" name=begun steps=2 schedule_steps=4
accept 'and its other steps' train "${falling[@]}" name=begun steps=4
accept 'a run in one piece' train "${falling[@]}" name=piece steps=4
verdict 'both have the same rates' "$(diff <(rates begun) <(rates piece))"

for steps in 4 6 12; do
  accept "a warm-up of 8 steps in $steps steps" train tiny.yaml name=rising warmup=8 steps=$steps
  last=$(rates rising | awk '{ print $NF }' | xargs printf '%.4g\n')
  if [ $steps -lt 8 ]; then told="the learning rate ends at $last, below lr: 0.001"; else told="after the warm-up the learning rate is $last"; fi
  verdict 'the rate that is told is that of the last step' "$(sed -n 2p out | diff - <(echo "$told"))"
done

accept 'a step without clipping' train "${plain[@]}" name=free clip=0 lr=0.1
norm=$(column free grad_norm)
half=$(awk "BEGIN { printf \"%.17g\", $norm / 2 }") twice=$(awk "BEGIN { printf \"%.17g\", $norm * 2 }")
accept 'clipped at half the norm' train "${plain[@]}" name=half clip="$half" lr=0.1
accept 'at half the rate' train "${plain[@]}" name=slow clip=0 lr=0.05
accept 'clipped at twice the norm' train "${plain[@]}" name=twice clip="$twice" lr=0.1
verdict 'the norm told is that before clipping' "$([ "$(column half grad_norm)" = "$norm" ] || column half grad_norm)"
same_model 'a gradient clipped at half its norm is half the gradient' half slow
same_model 'one that is shorter than the clip stays' twice free
other_model 'and half a gradient is another' half free

# ---- The norms of the parts of a model
watched=(tiny.yaml steps=5 model.layers=2 log_every=4 clip=0.5 checkpoint_every=1 keep_checkpoints=9)
accept 'a run' train "${watched[@]}" name=unwatched
accept 'with norms every two steps' train "${watched[@]}" name=watched norms_every=2
same_model 'trains as without' unwatched watched
verdict 'records have them every two steps' "$(grep -l '"grad_norm.tok":' runs/watched/metrics.jsonl >/dev/null || echo none
  grep '"weight_norm.blocks.1":' runs/watched/metrics.jsonl | grep -oE '^."step":[0-9]+' | diff - <(printf '{"step":%s\n' 2 4))"
verdict 'and none without' "$(! grep -o '_norm\.' runs/unwatched/metrics.jsonl)"
verdict 'the squares of all gradient norms add up' "$(tail -n +2 runs/watched/metrics.jsonl | grep grad_norm.tok | awk -F'[,:{}]' '{
  sum = all = 0
  for (i = 1; i < NF; i++) { if ($i ~ /"grad_norm\./) sum += $(i + 1) ^ 2; if ($i == "\"grad_norm\"") all = $(i + 1) ^ 2 }
  if (!(all > 0) || (sum / all - 1) ^ 2 > 1e-12) print sum, all }')"
accept 'a run that goes on' train "${watched[@]}" name=resumed steps=3 schedule_steps=5 norms_every=2
accept 'to its end' train runs/resumed steps=5
verdict 'has the records of one that does not' "$(diff <(sed -E 's/,"(tokens_per_s|peak_bytes|time)":[^,}]*//g' runs/watched/metrics.jsonl | grep weight_norm) \
  <(sed -E 's/,"(tokens_per_s|peak_bytes|time)":[^,}]*//g' runs/resumed/metrics.jsonl | grep weight_norm))"

sed 's/lazy dog/azy god/' text.txt >other.txt
accept 'a text of its own for validation' train "${plain[@]}" name=own validation=other.txt
accept 'that text, evaluated' eval runs/own --data other.txt
loss=$(printf '%.4f' "$(column own val_loss)")
verdict 'the loss is of that text' "$(grep -q "^$loss nats per token" out || echo "$loss")"
accept 'the part of the training text that is left for validation' train "${plain[@]}" name=part
accept 'evaluated' eval runs/part
verdict 'the loss is of that part' "$(grep -q "^$(printf '%.4f' "$(column part val_loss)") nats per token" out || column part val_loss)"
verdict 'which is another' "$([ "$(printf '%.4f' "$(column part val_loss)")" != "$loss" ] || echo "$loss")"

# ---- order: columns
# The training text has about 2,530 characters: 4 columns of 632 targets, an epoch of 40 windows of 16, the last of them half new.
columns=(tiny.yaml order=columns batch=4 schedule=constant warmup=0 steps=75 checkpoint_every=40)
accept 'columns' train "${columns[@]}" name=columns
accept 'the first half' train "${columns[@]}" name=halves steps=40
accept 'and the second' train "${columns[@]}" name=halves
same_model 'a run that goes on reads the windows of one that was not interrupted' columns halves
accept 'crops' train "${columns[@]}" name=crops order=crops
other_model 'which are others than crops' columns crops
refuse 'columns that are shorter than the context' 1 'in each of 900 columns, fewer than the context of' train "${columns[@]}" batch=900
refuse 'weights of columns' 1 'weights: is read only with order: shuffled' train "${columns[@]}" weights='[1]'

# ---- Patience. A rate this high makes the validation loss worse after some steps.
early=(train tiny.yaml eval_every=2 checkpoint_every=3 lr=0.3 schedule=constant warmup=0 keep_checkpoints=1)
accept 'training without patience' "${early[@]}" name=whole steps=40
# The evaluation without a better one for 6 steps.
expected=$(grep -oE '"step":[0-9]+|"val_loss":[0-9.e+-]+' runs/whole/metrics.jsonl | awk -F: '
  /step/ { step = $2 } /val_loss/ { if (!best || $2 < best) { best = $2; at = step } else if (step - at >= 6) { print at, step; exit } }')
read -r best last <<<"$expected"
verdict 'the loss grows somewhere' "$([ -n "${last:-}" ] && [ "$last" -lt 40 ] || shown runs/whole/metrics.jsonl)"
run "${early[@]}" name=never steps=2 patience=6 eval_every=0
verdict 'patience without evaluations' "$(diff err - <<<'warning: patience: has no effect with eval_every: 0 (evaluates only after the last step)')"
accept 'training with patience' "${early[@]}" name=patient steps=40 patience=6
verdict 'it ends there' "$(tail -n 2 out | grep -qE "^no better validation loss since step $best, saved after $last steps, .*:$" || instead tail -n 2 out)"
verdict 'with the checkpoints of the end and of the best' "$(ls runs/patient/checkpoints | xargs | diff - <(printf 'step-%08d.safetensors step-%08d.safetensors\n' $best $last))"
accept 'called again' train runs/patient
verdict 'it is finished' "$(diff out - <<<"runs/patient: already finished after $last steps; set a larger patience= to continue")"
accept 'it goes on where there is more patience' train runs/patient patience=1000
verdict 'to the bits of a training without' "$([ "$(tensors runs/patient/model.safetensors | sha256sum)" = "$(tensors runs/whole/model.safetensors | sha256sum)" ] || echo no)"
accept 'steps at first' "${early[@]}" name=divided steps=$((last - 1)) patience=6
accept 'and the rest' train runs/divided steps=40
verdict 'the end is the same' "$(tail -n 2 out | grep -q "since step $best, saved after $last steps" || instead tail -n 2 out)"

# ---- A step that is not finite
place='step ([0-9]+): the loss is -?(nan|inf): [a-z_]+ \([a-z][^ ]*:[0-9]+\): [0-9]+ of [0-9]+ elements'
for options in '' 'accumulation=2 model.dropout=0.2' 'precision=bf16 freeze=[pos]'; do
  rm -rf runs/burst
  run train tiny.yaml name=burst steps=8 lr=1e30 $options
  verdict "training fails: $options" "$([ $? = 1 ] && grep -qE "^ricci train: $place of its result are NaN or infinite$" err || echo 'expected a line with the op')"
  verdict 'in one line' "$([ "$(grep -c '' err)" = 1 ] || shown err)"
done
accept 'its folder is free for another run' train tiny.yaml name=burst steps=8

exit $((failures > 0))
