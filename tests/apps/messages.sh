#!/usr/bin/env bash
# Bad input to the programs: an exit code, one line on stderr with the fault and its position, no temporary files.
# Good input: plans, gradient checks, contexts and interruption.
#   messages.sh build-folder
. "$(dirname "$0")/outputs.sh" "$@"

# ---- A small trained run
accept 'train a small model' train tiny.yaml name=tiny
verdict 'what is printed fits on a terminal' "$(awk 'length > 80' out)"
trained=runs/tiny/model.safetensors
[ -s "$trained" ] || exit 1

# ---- Run files and overrides
printf 'name: bad\nmodel:\n  d: 16\n  heds: 2\n' >key.yaml
refuse 'unknown key' 1 "key\.yaml:4: unknown key 'model\.heds', the nearest known key is 'model\.heads'" train key.yaml
refuse 'unknown device' 1 "device: expected one of cpu, cuda, cuda_emulated, got 'tpu'" train tiny.yaml device=tpu
refuse 'vocabulary of another size' 1 'model\.vocab: 900, but the char tokenizer has 38 tokens; model\.vocab=0 uses them all' train tiny.yaml model.vocab=900
cp "$trained" before.safetensors
prints 'run that is trained already' '^runs/tiny: already finished after 2 steps; set a larger steps= to continue$' train tiny.yaml name=tiny
same 'the trained model is as it was' "$trained" before.safetensors

# ---- bf16 on a CPU without an instruction for it
slower='precision: f32 is faster on this CPU (no bf16 instructions);'
tells() { verdict "$1" "$([ "$(grep -cxF "$slower" out)" = "$2" ] || shown out)"; }  # NAME TIMES
RICCI_ISA=$(narrower avx2) accept 'a run in bf16' train tiny.yaml name=slower precision=bf16
tells 'which f32 would make faster' 1
RICCI_ISA=$(narrower avx2) accept 'a run in f32' train tiny.yaml name=faster
tells 'has no such line' 0
RICCI_ISA=$(narrower avx2) accept 'a run in bf16 on another device' train tiny.yaml name=elsewhere precision=bf16 device=cuda_emulated
tells 'neither' 0
if "$build/ricci-train" --version | grep -qE '^CPU +(avx512_bf16|amx)$'; then
  accept 'a run in bf16 on a CPU with the instruction' train tiny.yaml name=narrow precision=bf16
  tells 'neither' 0
else
  echo 'skipped: bf16 on a CPU with an instruction for it'
fi

# ---- Texts
echo short >short.txt
refuse 'no such text' 1 'neither none\.txt nor .*/data/none\.txt' train tiny.yaml data=none.txt
refuse 'text shorter than the context' 1 'short\.txt .*5 tokens.* context of 16 needs 17' train tiny.yaml data=short.txt
printf x >character.txt
refuse 'evaluation of one character' 1 'character\.txt .*1 tokens?.* 1 needs 2' eval runs/tiny --data character.txt
tr -d '\n' <text.txt >one_line.txt
refuse 'a prompt outside the vocabulary' 1 "sample\.prompt: .*'#' \(U\+0023\).* is not among .*; sample\.tokens=0 writes no sample" train tiny.yaml sample.tokens=5 sample.prompt='"#"'
refuse 'an empty prompt' 1 'sample\.prompt: is empty' train tiny.yaml sample.tokens=5 sample.prompt='""'
holds 'they are told before the training' [ ! -e runs/bad ]
prints 'the first token of the validation text takes the place of the default prompt' \
  "^samples continue from '(.)', the first token of the validation text$" train tiny.yaml name=one_line data=one_line.txt sample.tokens=5

# ---- A missing GPU, hidden if the machine has one
CUDA_VISIBLE_DEVICES= refuse 'training on no GPU' 1 'device cuda: ' train tiny.yaml device=cuda
CUDA_VISIBLE_DEVICES= prints 'gradient check on every device: a column for the missing one' '^gelu +[0-9]+ +[0-9.e-]+ +[0-9.e-]+ +no device$' check --op gelu
prints 'gradient check on one device: its column alone' '^op +cases +cpu$' check --op gelu --device cpu

# ---- A loss that is not finite: the step, the op and its source line
refuse 'infinite loss' 1 'step [0-9]+: the loss is -?(nan|inf): [a-z_]+ \([a-z][^ ]*:[0-9]+\): [0-9]+ of [0-9]+ elements' train tiny.yaml steps=8 lr=1e30
refuse 'infinite validation loss' 1 'step 1: the validation loss is -?(nan|inf); the last saved step is 0' train tiny.yaml steps=1 warmup=0 lr=1e30
verdict 'weights of which the loss is infinite are not saved' "$(ls runs/bad/checkpoints)"

# ---- Options of eval and generate
refuse 'context longer than trained' 1 'context: 17 exceeds model\.ctx = 16' eval runs/tiny --context 17
refuse 'batch of 0' 2 '--batch: .*0' eval runs/tiny --batch 0
refuse 'character outside the vocabulary' 1 "'#' \(U\+0023\) at byte 4 is not among" generate runs/tiny --prompt 'the #'
for value in -1 inf; do refuse "temperature of $value" 1 "temperature: expected 0 or more, got $value" generate runs/tiny --temperature $value; done
refuse 'seed beyond 64 bits' 2 '--seed: expected an integer of 0 or more, got 18446744073709551616' generate runs/tiny --seed 18446744073709551616
refuse 'too many threads' 2 '--threads: expected an integer from 0 to 1024, got 100000' generate runs/tiny --threads 100000
refuse 'top-k below 0' 1 'top-k: expected 0 or more, got -1' generate runs/tiny --top-k -1

# ---- Plans
prints 'a plan tells peak' '^held at the peak' plan tiny.yaml --memory 64MiB
narrow 'a plan'
shows 'largest batch' 'largest batch$'
accept 'the same as JSON' plan tiny.yaml --memory 64MiB --json
is 'and both ways to recompute' 2 grep -cE '"recompute": "(none|blocks)"' out
prints 'a tape' '^%[0-9]+\[.* embedding +<- constant tok.weight' plan tiny.yaml --tape
refuse 'a tape as JSON' 2 '--json excludes --tape' plan tiny.yaml --tape --json
# largest MEMORY [KEY]: the largest batches, without recomputation and with it.
largest() { run plan tiny.yaml --memory $1 --json ${2:-}; sed -nE 's/^ *"largest_batch": "?([^",]*)"?,?$/\1/p' out | xargs; }
is 'decimal units are so many bytes' "$(largest 405MB)" largest 405000000
holds 'and not binary ones' [ "$(largest 405MB)" != "$(largest 405MiB)" ]
is 'of batch_invariant any batch fits' 'any any' largest 64MiB batch_invariant=true
is 'or none, where no sequence does' '0 0' largest 64kB batch_invariant=true
short=(model.mixer=dispatcher model.levels=2 context=8)
run train tiny.yaml name=short "${short[@]}"
mv err train.err
run plan tiny.yaml "${short[@]}" --json
is 'a plan warns of the model' 'warning: model.levels: with 2 levels a layer spans 4 positions, but ctx: 8 needs 3 levels' cat err
same 'as the training does' train.err err
prints 'a plan explains the gradients' '^The backward pass allocates gradients, and the update frees them' plan tiny.yaml
# A step that does not fit is an error before it starts, with a batch that fits.
refuse 'a step that cannot fit' 1 'batch: 100,000,000 sequences of 16 tokens need more than the .* of available memory; the largest batch that leaves a tenth free is [0-9]+$' train tiny.yaml name=large batch=100000000
holds 'nothing was begun' [ ! -e runs/large/metrics.jsonl ]
if [ -n "${QEMU_LD_PREFIX:-}" ]; then echo 'skipped: ulimit -v under qemu'
else (ulimit -v 400000; refuse 'a step that ulimit -v has no room for' 1 'need more than the [23][0-9.]+ MiB of available memory; the largest batch' train tiny.yaml name=large batch=1000000)
fi
ranks=(plan tiny.yaml accumulation=5 --ranks 4)
prints 'a plan of 4 ranks' 'recompute: none; one of 4 ranks, with 2 x 2 of them$' "${ranks[@]}"
narrow 'a plan of 4 ranks'
shows 'the bytes of the sum' '^The ranks add up [0-9.]+ KiB of gradients in f32; each sends [0-9.]+ KiB in a ring\.$'
# sum_of KEY ARGUMENT ...: the value of this key for one way to recompute.
sum_of() { run "${@:2}" --json; sed -nE "s/^ *\"$1\": ([0-9.]+),?$/\1/p" out | head -1; }
bytes=$(sum_of sum_bytes "${ranks[@]}")
run "${ranks[@]}"
holds 'each rank sends 2 x 3 / 4 of the bytes' awk "/^The ranks/ { found = (\$5 > 0 && (\$13 / \$5 - 1.5)^2 < 4e-4) } END { exit !found }" out
is 'half of them in bf16' $((bytes / 2)) sum_of sum_bytes "${ranks[@]}" reduce_dtype=bf16
refuse 'ranks without work' 1 'accumulation: a step of 2 micro-batches cannot be shared by 4 ranks; a new run with accumulation=4 batch=1 reads the same sequences per step$' plan tiny.yaml accumulation=2 --ranks 4

# ---- A run with a context shorter than model.ctx
accept 'a run with a shorter context' train tiny.yaml name=shorter context=8
prints 'its evaluation has the context of the training' ', context 8, stride 8$' eval runs/shorter
mv out trained.out
prints 'all that the model takes is told beside it' ', context 16 \(trained with 8\), stride 16$' eval runs/shorter --context 16
holds 'and is another evaluation' [ "$(tail -n 1 out)" != "$(tail -n 1 trained.out)" ]
continue_text=(generate runs/shorter --prompt 'the quick brown fox' --tokens 40)
accept 'a text with the context of the training' "${continue_text[@]}"
mv out trained.out
accept 'with the same context, asked for' "${continue_text[@]}" --context 8
same 'is the same text' trained.out out
run "${continue_text[@]}" --context 16
is 'with all that the model takes it is told so' 'context 16 (trained with 8)' cat err
holds 'and is another text' eval '! cmp -s trained.out out'

# ---- Run folders
cp -r runs/tiny runs/broken
broken=runs/broken/model.safetensors
head -c 100 "$trained" >$broken
refuse 'model cut off in its header' 1 "$broken: is cut short; the header has [0-9]+ bytes" eval runs/broken
rm -r $broken runs/broken/checkpoints
refuse 'run without a model' 1 "$broken: No such file" eval runs/broken
cp "$trained" $broken
echo '{' >runs/broken/tokenizer.json
refuse 'corrupt tokenizer' 1 'runs/broken/tokenizer\.json: ' eval runs/broken
echo '{"name":"byte"}' >runs/broken/tokenizer.json
refuse 'tokenizer of another run' 1 "$broken: was trained with model\.vocab: 38, not 256" generate runs/broken
sed -i 's/^model:/&\n  vocab: 38/' runs/broken/config.yaml
refuse 'tokenizer of another size than the config tells' 1 'runs/broken/tokenizer\.json: has 256 tokens, but runs/broken/config\.yaml has model\.vocab = 38' generate runs/broken

# ---- ricci probe
# words NUMBER ...: i64 numbers below 256, or -1.
words() {
  local number
  for number; do
    if [ "$number" = -1 ]; then printf '\377\377\377\377\377\377\377\377'; else printf '%b\0\0\0\0\0\0\0' "\\x$(printf %x "$number")"; fi
  done
}
# input ID [NAME DTYPE SHAPE NUMBER ...]: a safetensors file of ids and targets, i64 [1 3], with this id in the middle; and another tensor.
input() {
  local i64='"dtype":"I64","shape":[1,3],"data_offsets"' more=
  [ $# = 1 ] || more=",\"$2\":{\"dtype\":\"$3\",\"shape\":$4,\"data_offsets\":[48,$((48 + 8 * ($# - 4)))]}"
  printf '\0\1\0\0\0\0\0\0%-256s' "{\"ids\":{$i64:[0,24]},\"targets\":{$i64:[24,48]}$more}" >in.safetensors
  words 1 "$1" 2 3 4 5 "${@:5}" >>in.safetensors
}
vocab=$(trained "$trained" model.vocab)
echo "model: {vocab: $vocab, d: 16, layers: 1, heads: 2, ctx: 16}" >model.yaml
sed 's/}/, positions: none}/' model.yaml >fewer.yaml
sed 's/ln_f\.bias/ln_g.bias/' "$trained" >renamed.safetensors
sed 's/"shape":\[64,16\]/"shape":[16,64]/' "$trained" >turned.safetensors
{ head -c 5000 "$trained" && printf '\125' && tail -c +5002 "$trained"; } >flipped.safetensors
# probe CONFIG WEIGHTS ACCEPT-OR-REFUSE ...
probe() { rm -f probe.safetensors && "${@:3}" probe --config "$1" --weights "$2" --input in.safetensors --output probe.safetensors; }
input $((vocab - 1))
probe model.yaml renamed.safetensors refuse 'missing tensor' 1 'tensor ln_f\.bias \[16\] is missing'
probe fewer.yaml "$trained" refuse 'surplus tensor' 1 'tensor pos\.weight \[16 16\] is not a parameter'
probe model.yaml turned.safetensors refuse 'misshapen tensor' 1 'is \[16 64\], expected \[64 16\]'
probe model.yaml flipped.safetensors refuse 'damaged weights' 1 'flipped\.safetensors: damaged: its bytes do not match'
while IFS='|' read -r name tensor fault; do
  input ${tensor/V/$vocab}
  [ -z "$fault" ] && probe model.yaml "$trained" accept "$name" || probe model.yaml "$trained" refuse "$name" 1 "$fault"
done <<END
the largest id|0|
an id outside the vocabulary|V|id $vocab at \[0 1\] is outside
a padded sequence|0 lengths I64 [1] 2|
length beyond the positions|0 lengths I64 [1] 4|lengths\[0\] is 4, expected 0 to 3
length below 0|0 lengths I64 [1] -1|lengths\[0\] is -1, expected 0 to 3
lengths of another batch|0 lengths I64 [2] 2 2|lengths \[2\] and ids \[1 3\] have different batch sizes
misshapen lengths|0 lengths I64 [1,1] 2|tensor lengths is \[1 1\], expected \[batch\]
lengths that are no integers|0 lengths F64 [1] 0|tensor lengths is f64, expected i64
END
cp "$trained" in.safetensors
probe model.yaml "$trained" refuse 'no ids' 1 'tensor ids is missing'
rm -f probe.safetensors

# ---- Evaluations and interruption
accept 'evaluations of some batches' train tiny.yaml name=some steps=6 eval_every=2 eval_batches=3
is 'all of them read the same tokens, the last too' 3 grep -c '(96 tokens)' out
{ await '[ -e closed ]' && "$build/ricci-train" tiny.yaml name=unread steps=8 eval_every=2 2>err </dev/null; } | { exec <&- && touch closed; }
holds 'output that nobody reads does not end a run' [ "${PIPESTATUS[0]}" = 0 -a -s runs/unread/model.safetensors ]

start train tiny.yaml name=stopped steps=1000000
await '[ -s runs/stopped/metrics.jsonl ]'
kill -INT "$background"
ended
code=$?
verdict 'Ctrl-C' "$([ $code = 130 ] && [ -z "$(leftovers)" ] || echo "exit code $code, left behind: $(leftovers)")"
accept 'the interrupted run is read' eval runs/stopped
finish
