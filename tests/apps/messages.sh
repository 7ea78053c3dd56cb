#!/usr/bin/env bash
# Bad input to the programs: an exit code, one line on stderr that says what is wrong and where, nothing half-written.
# Good input: help, interruption, metrics, and weights that do not depend on the number of threads.
#   messages.sh build-folder
. "$(dirname "$0")/programs.sh" "$@"

# ---- A small trained run
accept 'train a small model' train tiny.yaml name=tiny
trained=runs/tiny/model.safetensors
[ -s "$trained" ] || exit 1

# ---- Run files and overrides
refuse 'no such run file' 1 'none\.yaml: No such file' train none.yaml
printf 'name: bad\nmodel:\n  d: 16\n  heds: 2\n' >key.yaml
refuse 'unknown key' 1 "key\.yaml:4: unknown key 'model\.heds', the nearest known key is 'model\.heads'" train key.yaml
printf 'name: bad\nsteps: two\n' >type.yaml
refuse 'wrong type' 1 "type\.yaml:2: steps: expected integer, got 'two'" train type.yaml
refuse 'mistyped override key' 1 "line: unknown key 'model\.laiers', .*'model\.layers'" train tiny.yaml model.laiers=2
refuse 'heads that do not divide d' 1 'model\.heads: 3 does not divide d = 16' train tiny.yaml model.heads=3
refuse 'context longer than model.ctx' 1 'context: 17 exceeds model\.ctx = 16' train tiny.yaml context=17
refuse 'unknown device' 1 "device: expected one of cpu, cuda, cuda_emulated, got 'tpu'" train tiny.yaml device=tpu
refuse 'graph on the cpu' 1 'cuda_graph: device cpu has no graphs, expected cuda' train tiny.yaml cuda_graph=true
refuse 'timed products on the cpu' 1 'tune_products: device cpu has no cuBLASLt, expected cuda' train tiny.yaml tune_products=true
refuse 'vocabulary of another size' 1 'model\.vocab: 900, but the char tokenizer has 38 tokens; 0 takes its number' train tiny.yaml model.vocab=900
refuse 'no name of a run file' 2 'the name of a run file is empty' train ''
refuse 'unknown option' 2 '--frob' train tiny.yaml --frob
refuse 'a key with dashes and without' 2 '--model\.layers=1 and ~model\.layers are about the same key: write both without dashes' train tiny.yaml '~model.layers' --model.layers=1
refuse 'a value of a key that is taken back' 1 "command line: ~lr takes the key back and has no value, expected ~lr, got '~lr=3'" train tiny.yaml '~lr=3'
cp "$trained" before.safetensors
accept 'run that is trained already' train tiny.yaml name=tiny
verdict 'it says so' "$(diff out - <<<'runs/tiny: finished after 2 steps already; a larger steps=... goes on')"
verdict 'the trained model is as it was' "$(cmp "$trained" before.safetensors 2>&1)"

# ---- Texts
: >empty.txt
echo short >short.txt
refuse 'no such text' 1 'neither none\.txt nor .*/data/none\.txt' train tiny.yaml data=none.txt
refuse 'empty text' 1 'empty\.txt is empty' train tiny.yaml data=empty.txt
refuse 'text shorter than the context' 1 'short\.txt .*5 tokens.* context of 16 needs 17' train tiny.yaml data=short.txt
printf x >character.txt
refuse 'evaluation of one character' 1 'character\.txt .*1 tokens?.* 1 needs 2' eval runs/tiny --data character.txt

tr -d '\n' <text.txt >one_line.txt
refuse 'a prompt outside the vocabulary' 1 "sample\.prompt: .*'#' \(U\+0023\).* is not among .*; sample\.tokens=0 writes no sample" train tiny.yaml sample.tokens=5 sample.prompt='"#"'
refuse 'an empty prompt' 1 'sample\.prompt: is empty' train tiny.yaml sample.tokens=5 sample.prompt='""'
verdict 'they are told before the training' "$([ ! -e runs/bad ] || echo 'a run was begun')"
accept 'the default prompt outside the vocabulary' train tiny.yaml name=one_line data=one_line.txt sample.tokens=5
verdict 'the first token of the validation text takes its place' "$(grep -qE "^sample\.prompt: .*U\+000A.* is not among .*; samples go on from '(.)', the first token of the validation text$" out || shown out)"

# ---- A GPU that is not there: hidden, should the machine have one
export CUDA_VISIBLE_DEVICES=
refuse 'training on no GPU' 1 'device cuda: ' train tiny.yaml device=cuda

# ---- A loss that is not finite: the step, the op and its place
nonfinite='step [0-9]+: the loss is -?(nan|inf): [a-z_]+ \([a-z][^ ]*:[0-9]+\): [0-9]+ of [0-9]+ elements'
refuse 'infinite loss' 1 "$nonfinite" train tiny.yaml steps=8 lr=1e30
refuse 'infinite loss without clipping' 1 "$nonfinite" train tiny.yaml steps=8 clip=0 lr=1e20

refuse 'infinite validation loss' 1 'step 1: the validation loss is -?(nan|inf); the last step saved is 0' train tiny.yaml steps=1 warmup=0 lr=1e30
verdict 'weights of which the loss is infinite are not saved' "$(ls runs/bad/checkpoints)"

# ---- Options of eval and generate
refuse 'context longer than trained' 1 'context: 17 is longer than the 16 tokens' eval runs/tiny --context 17
refuse 'no run given' 2 'run is required' eval
refuse 'batch of 0' 2 '--batch: .*0' eval runs/tiny --batch 0
refuse 'character outside the vocabulary' 1 "'#' \(U\+0023\) at byte 4 is not among" generate runs/tiny --prompt 'the #'
refuse 'temperature below 0' 1 'temperature: expected 0 or more, got -1' generate runs/tiny --temperature -1
refuse 'infinite temperature' 1 'temperature: expected 0 or more, got inf' generate runs/tiny --temperature inf
refuse 'tokens below 0' 2 '--tokens: expected an integer of 0 or more, got -1' generate runs/tiny --tokens -1
refuse 'seed below 0' 2 '--seed: expected an integer of 0 or more, got -1' generate runs/tiny --seed -1
refuse 'seed beyond 64 bits' 2 '--seed: expected an integer of 0 or more, got 18446744073709551616' generate runs/tiny --seed 18446744073709551616
refuse 'too many threads' 2 '--threads: expected an integer from 0 to 1024, got 100000' generate runs/tiny --threads 100000
refuse 'top-p of 0' 1 'top-p: expected more than 0 and at most 1, got 0' generate runs/tiny --top-p 0
refuse 'min-p above 1' 1 'min-p: expected 0 to 1, got 1.5' generate runs/tiny --min-p 1.5
refuse 'top-k below 0' 1 'top-k: expected 0 or more, got -1' generate runs/tiny --top-k -1

# ---- Plans
accept 'a plan' plan tiny.yaml --memory 64MiB
verdict 'tells peak and largest batch' "$(grep -q '^held at the peak' out && grep -q 'largest batch$' out || shown out)"
accept 'the same as JSON' plan tiny.yaml --json
verdict 'with the gradients of all parameters at one time' "$(tr -d ' ,' <out | awk -F: '/^"parameters"/ { least = 4 * $2 } /^"gradient_bytes"/ { if ($2 < least || $2 > 1.5 * least) print; ++rows } END { if (rows != 2) print rows }')"
verdict 'which the text has, too' "$(run plan tiny.yaml; grep -qE '^most of gradients +[0-9.]+ KiB$' out || shown out)"
accept 'a tape' plan tiny.yaml --tape
verdict 'is that of one micro-batch' "$([ "$(grep -cE '^%[0-9].* keeps [0-9]+ bytes$' out)" = "$(wc -l <out)" ] && grep -qE '^%[0-9]+\[.* embedding +<- constant tok.weight' out &&
  grep -qE '^%[0-9]+\[\] +classifier_loss +<- ' <(tail -n 1 out) || echo 'expected a line per op')"
refuse 'a tape as JSON' 2 '--json excludes --tape' plan tiny.yaml --tape --json
accept 'a plan as JSON' plan tiny.yaml --memory 64MiB --json
verdict 'has both ways to recompute' "$([ "$(grep -cE '"recompute": "(none|blocks)"' out)" = 2 ] && grep -q '"largest_batch": [1-9]' out || shown out)"
# bytes KEY SEQUENCES: the peak_bytes or process_bytes of such a batch; largest: the largest batches, without recomputation and with it.
bytes() { run plan tiny.yaml --json batch=$2; sed -nE "s/^ *\"$1\": ([0-9]+),?$/\1/p" out | head -1; }
largest() { sed -nE 's/^ *"largest_batch": "?([^",]*)"?,?$/\1/p' out | xargs; }
accept 'a plan for decimal units' plan tiny.yaml --memory 64MB --json
batch=$(largest | cut -d' ' -f1)
verdict 'its largest batch fits' "$([ "$(bytes peak_bytes $batch)" -le 64000000 ] || shown out)"
verdict 'and no larger one does' "$([ "$(bytes process_bytes $((batch + 1)))" -gt 64000000 ] || shown out)"
run plan tiny.yaml --memory 1GB --json
verdict 'is that for so many bytes' "$(decimal=$(largest); run plan tiny.yaml --memory 1000000000 --json; [ "$decimal" = "$(largest)" ] || echo "$decimal")"
verdict 'and not that for binary ones' "$(decimal=$(largest); run plan tiny.yaml --memory 1GiB --json; [ "$decimal" != "$(largest)" ] || echo "$decimal")"
accept 'a plan for batch_invariant' plan tiny.yaml --memory 64MiB --json batch_invariant=true
verdict 'any batch fits' "$([ "$(largest)" = 'any any' ] || shown out)"
accept 'or none' plan tiny.yaml --memory 64kB --json batch_invariant=true
verdict 'where no sequence does' "$([ "$(largest)" = '0 0' ] || shown out)"
short=(model.mixer=dispatcher model.levels=2 context=8)
run train tiny.yaml name=short "${short[@]}"
mv err train.err
run plan tiny.yaml "${short[@]}" --json
verdict 'a plan warns of the model' "$([ $? = 0 ] || echo failed; diff err - <<<'warning: model.levels: with 2 levels a layer reads 4 positions, but ctx is 8, which needs 3 levels')"
verdict 'as the training does' "$(diff train.err err)"
for device in cpu cuda_emulated; do
  accept "a plan of 4 ranks on $device" plan tiny.yaml accumulation=4 device=$device --ranks 4
  verdict 'says so' "$(grep -q ', recompute: none; of 4 ranks the one that holds the most$' out || shown out)"
done
refuse 'too few micro-batches' 1 'accumulation: a step of 1 micro-batch cannot be shared by 2 ranks; a new run with accumulation=2 batch=1 reads the same sequences per step$' plan tiny.yaml --ranks 2
refuse 'more ranks than max_ranks' 1 'max_ranks: 2 is the most ranks this run can use, not 4$' plan tiny.yaml accumulation=4 max_ranks=2 --ranks 4
refuse 'a graph on several ranks' 1 'cuda_graph: not with several ranks yet$' plan tiny.yaml accumulation=2 device=cuda cuda_graph=true --ranks 2
refuse 'no ranks' 2 '--ranks: expected an integer of at least 1, got 0' plan tiny.yaml --ranks 0
for option in --json '--memory 64MiB' '--ranks 2' tiny.yaml; do
  refuse "the published table with $option" 2 "(--published|${option% *}|run) excludes (--published|${option% *}|run)" plan --published $option
done
accept 'the published table' plan --published
verdict 'has the printed total of the vanilla model' "$(grep -qE '^vanilla, 12 layers .* 21\.26' out || shown out)"

# ---- A run whose context was shorter than what the model takes
accept 'a run with a shorter context' train tiny.yaml name=shorter context=8
accept 'its evaluation' eval runs/shorter
verdict 'has the context of the training' "$(grep -q ', context 8, stride 8: ' out || shown out)"
mv out trained.out
accept 'the same context, asked for' eval runs/shorter --context 8
verdict 'is the same evaluation' "$(diff trained.out out)"
accept 'all that the model takes' eval runs/shorter --context 16
verdict 'is told beside the context of the training' "$(grep -q ', context 16 (trained with 8), stride 16: ' out || shown out)"
verdict 'and is another evaluation' "$([ "$(grep -o ': .*' out)" != "$(grep -o ': .*' trained.out)" ] || shown out)"
continue_text=(generate runs/shorter --prompt 'the quick brown fox' --tokens 100)
accept 'a text with the context of the training' "${continue_text[@]}"
mv out trained.out
accept 'with the same context, asked for' "${continue_text[@]}" --context 8
verdict 'is the same text' "$(cmp trained.out out 2>&1)"
run "${continue_text[@]}" --context 16
verdict 'with all that the model takes it is told so' "$([ $? = 0 ] && diff err - <<<'context 16 (trained with 8)')"
verdict 'and is another text' "$(! cmp -s trained.out out || echo no)"

# ---- Run folders
refuse 'no such run' 1 'runs/none: no such run folder' eval runs/none
cp -r runs/tiny runs/broken
broken=runs/broken/model.safetensors
head -c 10000 "$trained" >$broken
refuse 'model cut off in its data' 1 "$broken: tensor .* outside the [0-9]+ bytes of data" generate runs/broken
head -c 100 "$trained" >$broken
refuse 'model cut off in its header' 1 "$broken: cut off: the header has [0-9]+ bytes" eval runs/broken
cp "$trained" $broken
printf x | dd of=$broken bs=1 seek=8 conv=notrunc status=none
refuse 'model with a corrupt header' 1 "$broken: the header is not JSON: fault at byte 1" eval runs/broken
printf '\377\377\377\377\377\377\377\177' | dd of=$broken bs=1 conv=notrunc status=none
refuse 'model with a corrupt length' 1 "$broken: .* a header of 9223372036854775807 bytes" eval runs/broken
{ cat "$trained"; echo more; } >$broken
refuse 'model with bytes after its end' 1 "$broken: bytes [0-9]+ to [0-9]+ .* no tensor" eval runs/broken
rm -r $broken runs/broken/checkpoints
refuse 'run without a model' 1 "$broken: No such file" eval runs/broken
cp "$trained" $broken
echo '{' >runs/broken/tokenizer.json
refuse 'corrupt tokenizer' 1 'runs/broken/tokenizer\.json: ' eval runs/broken
echo '{"name":"byte"}' >runs/broken/tokenizer.json
refuse 'tokenizer of another run' 1 "$broken: it was trained with model\.vocab: 38, not 256" generate runs/broken
sed -i 's/vocab: null  # /vocab: /' runs/broken/config.yaml
refuse 'tokenizer of another size than the config tells' 1 'runs/broken/tokenizer\.json: has 256 tokens, but runs/broken/config\.yaml has model\.vocab: ' generate runs/broken

# ---- ricci-probe
# pairs HIGHEST: a safetensors file of ids and targets, i64 [1 3], with the highest id in the middle.
pairs() {
  local header='"dtype":"I64","shape":[1,3],"data_offsets"'
  printf '\200\0\0\0\0\0\0\0%-128s' "{\"ids\":{$header:[0,24]},\"targets\":{$header:[24,48]}}"
  words 1 "$1" 2 3 4 5
}
# words NUMBER ...: i64 numbers below 256, or -1.
words() {
  local number
  for number; do
    if [ "$number" = -1 ]; then printf '\377\377\377\377\377\377\377\377'; else printf '%b\0\0\0\0\0\0\0' "\\x$(printf %x "$number")"; fi
  done
}
# padded DTYPE SHAPE NUMBER ...: the same with lengths, or with the tensor that `part` names.
padded() {
  local header='"dtype":"I64","shape":[1,3],"data_offsets"'
  printf '\0\1\0\0\0\0\0\0%-256s' "{\"ids\":{$header:[0,24]},\"targets\":{$header:[24,48]},\"${part:-lengths}\":{\"dtype\":\"$1\",\"shape\":$2,\"data_offsets\":[48,$((48 + 8 * ($# - 2)))]}}"
  words 1 0 2 3 4 5 "${@:3}"
}
vocab=$(sed -n 's/^  vocab: null  # //p' runs/tiny/config.yaml)
echo "model: {vocab: $vocab, d: 16, layers: 1, heads: 2, ctx: 16}" >model.yaml
sed 's/}/, positions: none}/' model.yaml >fewer.yaml
pairs $((vocab - 1)) >in.safetensors
pairs "$vocab" >outside.safetensors
sed 's/ln_f\.bias/ln_g.bias/' "$trained" >renamed.safetensors
sed 's/"shape":\[64,16\]/"shape":[16,64]/' "$trained" >turned.safetensors
# probe CONFIG WEIGHTS INPUT ACCEPT-OR-REFUSE ...
probe() { "${@:4}" probe --config "$1" --weights "$2" --input "$3" --output probe.safetensors; }
probe model.yaml "$trained" in.safetensors accept 'probe'
rm -f probe.safetensors
probe model.yaml renamed.safetensors in.safetensors refuse 'missing tensor' 1 'tensor ln_f\.bias \[16\] is missing'
probe fewer.yaml "$trained" in.safetensors refuse 'surplus tensor' 1 'tensor pos\.weight \[16 16\] is no parameter'
probe model.yaml turned.safetensors in.safetensors refuse 'misshapen tensor' 1 'is \[16 64\], expected \[64 16\]'
head -c 5000 "$trained" >flipped.safetensors
printf '\125' >>flipped.safetensors
tail -c +5002 "$trained" >>flipped.safetensors
probe model.yaml flipped.safetensors in.safetensors refuse 'damaged weights' 1 'flipped\.safetensors: damaged: its bytes do not match'
probe model.yaml "$trained" outside.safetensors refuse 'id outside the vocabulary' 1 "id $vocab at \[0 1\] is outside"
probe model.yaml "$trained" "$trained" refuse 'no ids' 1 'tensor ids is missing'
padded I64 '[1]' 2 >padded.safetensors
probe model.yaml "$trained" padded.safetensors accept 'probe of a padded sequence'
rm -f probe.safetensors
outside='length -?[0-9]+ at \[0\] of lengths is outside 0 \.\. 3'
padded I64 '[1]' 4 >padded.safetensors
probe model.yaml "$trained" padded.safetensors refuse 'length beyond the positions' 1 "padded\.safetensors: $outside"
padded I64 '[1]' -1 >padded.safetensors
probe model.yaml "$trained" padded.safetensors refuse 'length below 0' 1 "padded\.safetensors: $outside"
padded I64 '[2]' 2 2 >padded.safetensors
probe model.yaml "$trained" padded.safetensors refuse 'lengths of another batch' 1 'lengths \[2\] and ids \[1 3\] differ in their batch'
padded I64 '[1,1]' 2 >padded.safetensors
probe model.yaml "$trained" padded.safetensors refuse 'misshapen lengths' 1 'tensor lengths is \[1 1\], expected \[batch\]'
padded F64 '[1]' 0 >padded.safetensors
probe model.yaml "$trained" padded.safetensors refuse 'lengths that are no integers' 1 'tensor lengths is f64, expected i64'
part=documents padded I64 '[1,3]' 4 4 7 >packed.safetensors
probe model.yaml "$trained" packed.safetensors accept 'probe of packed documents'
rm -f probe.safetensors
part=documents padded I64 '[1,3]' 4 3 7 >packed.safetensors
probe model.yaml "$trained" packed.safetensors refuse 'documents that fall' 1 'document 3 at \[0 1\] of documents comes after 4'
part=documents padded I64 '[3,1]' 4 4 7 >packed.safetensors
probe model.yaml "$trained" packed.safetensors refuse 'documents of another batch' 1 'documents \[3 1\] and ids \[1 3\] differ'
part=documents padded I64 '[3]' 4 4 7 >packed.safetensors
probe model.yaml "$trained" packed.safetensors refuse 'misshapen documents' 1 'tensor documents is \[3\], expected \[batch position\]'

# ---- Help
# help PROGRAM WORD ...: --help mentions every word.
help() {
  local program=$1 word missing=
  shift
  run "$program" --help || missing="exit code $?"
  for word in --help --version "$@"; do grep -qF -e "$word" out || missing+=" no $word"; done
  verdict "help of $program" "$missing"
}
help train FILE KEY=VALUE --help-config
help eval run --data --context --stride --batch --json --precision --device --threads
help generate run --prompt --prompt-file --tokens --samples --stop --jsonl --interactive --speed --temperature --top-k --top-p --min-p --seed --precision --device --threads
help plan FILE KEY=VALUE --memory --ranks --json --published
help tokenize train encode decode count
help prepare --output --tokenizer --format --documents
help convert import export
help check
help plot runs --output --keys --x --smooth --log-x --log-y --title --theme --full-range
help inspect run --text --text-file --length --layers --heads --token --nearest --output --theme --context --checkpoint --precision --device --threads
help bench mixers --lengths --tokens --sequences --width --layers --heads --ff --alone --rounds --roofline --output --json --theme --precision --device --threads
help probe --config --weights --input --output --scores --precision --device
accept 'help-config' train --help-config
mv out defaults.yaml
small=(data=text.txt name=defaults steps=1 threads=1 sample.tokens=0 model.d=16 model.layers=1 model.ctx=16)
accept 'help-config is a run file' train defaults.yaml "${small[@]}"

# ---- Threads, metrics, interruption
same=(model.d=64 model.layers=2 model.dropout=0.1 batch=8 steps=3)
accept 'one thread' train tiny.yaml name=one threads=1 "${same[@]}"
accept 'two threads' train tiny.yaml name=two threads=2 "${same[@]}"
verdict 'the same weights on one thread and two' "$(cmp runs/{one,two}/model.safetensors 2>&1)"
sed -E 's/:(null|-?[0-9.e+-]+)([,}])/\2/g' runs/one/metrics.jsonl | uniq -c | tr -d ' ' >out
keys='3{"step","tokens","train_loss","val_loss","val_accuracy","lr","grad_norm","tokens_per_s","peak_bytes","reserved_bytes","ranks","exchange_ms","time"}'
verdict 'metrics of 3 steps' "$(diff out - <<<"$keys")"
accept 'a drawing' plot runs/one runs/two -o plot.svg
accept 'a page' plot runs/one --x time --log-y -o plot.html
refuse 'drawing of no run' 1 'runs/none: no such run' plot runs/none
refuse 'drawing of an unknown key' 1 "no run has 'train_los' among its metrics, the nearest is 'train_loss'" plot runs/one --keys train_los
refuse 'drawing of an unknown kind' 1 'plot.pdf: expected a name that ends in .svg, .png or .html' plot runs/one -o plot.pdf
for steps in nan -1 0.6 inf; do
  refuse "smoothing over $steps" 1 "--smooth: expected a number of steps from 1 to 1e9, or 0, got $steps" plot runs/one --smooth $steps
done
mkdir runs/new runs/weights
: >runs/new/metrics.jsonl
run plot runs/one runs/new runs/weights -o some.svg
verdict 'a drawing of runs of which two have no record' "$([ $? = 0 ] && [ -s some.svg ] || echo none)"
verdict 'which are named' "$(diff err - <<<$'left out: runs/new/metrics.jsonl: holds no record yet\nleft out: runs/weights: holds no metrics.jsonl, so no run has begun in it')"
refuse 'drawing of runs without a record' 1 'none of 2 runs has a record yet' plot runs/new runs/weights
rm -r runs/new runs/weights

cuts=(tiny.yaml steps=10 eval_every=5 batch_invariant=true)
accept 'batch_invariant, 1 batch of 8' train "${cuts[@]}" name=cut1 batch=8
accept 'batch_invariant, 4 batches of 2' train "${cuts[@]}" name=cut4 batch=2 accumulation=4
numbers() { header "$1" | grep -oE '"(step|best_step|best_loss|text_hash|optimizer_steps|random_[a-z]+)":"[^"]*"'; }
tens=(runs/{cut1,cut4}/checkpoints/step-00000010.safetensors)
verdict 'however divided: the same checkpoint, best evaluation included' \
  "$(cmp <(tensors ${tens[0]}) <(tensors ${tens[1]}) 2>&1; diff <(numbers ${tens[0]}) <(numbers ${tens[1]}); [ "$(numbers ${tens[0]} | wc -l)" = 8 ] || numbers ${tens[0]})"
accept 'evaluations of some batches' train tiny.yaml name=some steps=6 eval_every=2 eval_batches=3
verdict 'all of them read the same tokens, the last too' "$([ "$(grep -c '(96 tokens)' out)" = 3 ] || echo no)"

"$build/ricci-train" tiny.yaml name=unread steps=400 eval_every=4 2>err </dev/null | true
code=${PIPESTATUS[0]}
verdict 'output that nobody reads does not end a run' "$([ "$code" = 0 ] && [ -s runs/unread/model.safetensors ] || echo "exit code $code")"
export CUDA_VISIBLE_DEVICES=  # as if there were no GPU
refuse 'gradient check on no GPU' 1 'device cuda: ' check --device cuda --op gelu
accept 'gradient check on every device there is' check --op gelu
verdict 'its table has a column for the missing one' \
  "$(grep -qE '^op +cases +cpu +cuda_emulated +cuda$' out && grep -qE '^gelu +[0-9]+ +[0-9.e-]+ +[0-9.e-]+ +no device$' out || echo no)"
accept 'gradient check on one device' check --op gelu --device cpu
verdict 'its table has that column alone' "$(grep -qE '^op +cases +cpu$' out && grep -qE '^gelu +[0-9]+ +[0-9.e-]+$' out || echo no)"
unset CUDA_VISIBLE_DEVICES

"$build/ricci-train" tiny.yaml name=stopped steps=1000000 >out 2>err </dev/null &
background=$!
while kill -0 "$background" 2>/dev/null && [ ! -s runs/stopped/metrics.jsonl ]; do sleep 0.02; done
kill -INT "$background"
wait "$background"
code=$?
background=
verdict 'Ctrl-C' "$([ $code = 0 ] && [ -z "$(leftovers)" ] || echo "exit code $code, left behind: $(leftovers)")"
accept 'the interrupted run is read' eval runs/stopped

echo "$failures failed"
exit $((failures > 0))
