#!/usr/bin/env bash
# A run folder stores the user's settings, without derived values. Errors about it are one clear line each, and nothing is lost.
#   run_folder.sh build-folder
. "$(dirname "$0")/../programs.sh" "$@"
states=runs/tiny/checkpoints
newest=$states/step-00000008.safetensors

# unchanged NAME: runs/tiny is unchanged, byte for byte.
keep() { rm -rf kept && cp -r runs/tiny kept; }
unchanged() { verdict "$1: nothing is lost" "$(diff -r kept runs/tiny 2>&1)"; }

# refuse_tiny NAME PATTERN ARGUMENT ...: training in runs/tiny is refused and changes nothing.
refuse_tiny() {
  refuse "$1" 1 "$2" train tiny.yaml name=tiny steps=8 checkpoint_every=4 "${@:3}"
  unchanged "$1"
}

accept 'a small run' train tiny.yaml name=tiny steps=8 checkpoint_every=4
verdict 'its first line tells the build' "$(head -1 runs/tiny/config.yaml | grep -vE '^# ricci [0-9.]+, commit ([0-9a-f]{10}\+?|unknown), (g|clang)\+\+ [0-9].*, device cpu \((neon|baseline|avx2|avx512|avx512_bf16|amx)\), threads 1, seed 1337$')"
keep
printf '%s\n' 'name: tiny' 'model:' '  ctx: 16' '  d: 16' '  layers: 1' '  heads: 2' "data: $PWD/text.txt" 'batch: 2' 'steps: 8' 'threads: 1' \
  'eval_every: 0' 'log_every: 1' 'checkpoint_every: 4' 'sample:' '  tokens: 0' >expected
verdict 'below it are the keys that were given, and no other' "$(tail -n +2 runs/tiny/config.yaml | diff - expected)"

# ---- A different config
other='runs/tiny: contains a run with'
refuse_tiny 'another learning rate' "$other lr: 0\.001, not 0\.01; .*name=" lr=0.01
refuse_tiny 'a width that was not given' "$other model\.ff: 64, not 80; " model.ff=80
refuse_tiny 'fewer steps' 'runs/tiny: has already done 8 steps, more than steps = 4' steps=4
cp text.txt other.txt
sed 's/ 7$/ 9/' other.txt >text.txt
refuse_tiny 'one character of the text is another' 'runs/tiny: the text changed since step 8; ' steps=12
touch other.txt && cp other.txt text.txt
refuse 'a folder that is no run' 1 'cache/config\.yaml: No such file' train cache

# ---- Keys that can change
accept 'other intervals, more steps' train tiny.yaml name=tiny steps=12 checkpoint_every=2 eval_every=5 log_every=2 keep_checkpoints=3 threads=2
cp -r runs/tiny runs/elsewhere
narrow=$(narrower baseline)
RICCI_ISA=$narrow accept 'on vectors of another width' train tiny.yaml name=elsewhere steps=14
verdict 'the first line tells so' "$(head -1 runs/elsewhere/config.yaml | grep -vE "^# ricci .*, device cpu \\($narrow\\), threads 1, seed 1337\$"; tail -n +2 runs/elsewhere/config.yaml | grep '#')"
accept 'the same in one piece' train tiny.yaml name=straight steps=12
verdict 'is the same model' "$(cmp runs/{tiny,straight}/model.safetensors 2>&1)"
rm -rf runs/tiny && cp -r kept runs/tiny

# ---- Derived values are never stored as given: a different key gives a different value
# value RUN KEY: its value, or the shape if the key is a tensor.
value() {
  case $2 in *.weight) header runs/$1/model.safetensors | grep -oP "\"\Q$2\E\":{[^}]*\"shape\":\K[^]]*]" ;; *) trained runs/$1/model.safetensors "$2" ;; esac
}
# follows 'KEYS OF A RUN' 'KEYS OF THE NEXT' KEY VALUE VALUE: the value of the key follows from the others, in both runs.
follows() {
  rm -rf runs/first runs/next
  accept "a run with $1" train tiny.yaml name=first $1
  accept "its config with $2" train runs/first/config.yaml name=next $2
  verdict "another $3" "$(printf '%s\n' "$4" "$5" | diff - <(value first "$3"; value next "$3"))"
  verdict 'that neither config has' "$(grep -F -e "${3#*.}: $4" -e "${3#*.}: $5" runs/{first,next}/config.yaml)"
}
awk '{ print NR % 2 "\t" $0 }' text.txt >labels.tsv
follows '' model.d=32 model.ff 64 128
follows model.preset=llama model.d=96 model.ff 64 256
follows '' model.ctx=32 context 16 32
follows tokenizer=byte tokenizer=char model.vocab 256 38
follows 'model.preset=llama model.gated=false' model.preset=gpt model.positions rope learned
follows '' 'model.family=classifier data=labels.tsv label_field=1' model.causal true false
follows 'model.family=topdown model.scales=[1,4]' model.scales=[1,2,4] model.layers '[1, 1]' '[1, 1, 1]'
follows 'model.mixer=dispatcher model.heads=1' model.ctx=32 blocks.0.mixer.coef.weight '[4,16]' '[5,16]'  # 2^levels positions
follows model.head_width=8 model.heads=4 blocks.0.mixer.qkv.weight '[48,16]' '[96,16]'  # equal numbers of heads of keys and values
retina='model.family=retina model.scales=[1,4] model.heads=4'
follows "$retina" model.ctx=32 model.windows '["0:16", "0:16"]' '["0:32", "0:32"]'
follows "$retina" 'model.heads=8' model.head_groups '[0, 0, 1, 1]' '[0, 0, 0, 0, 1, 1, 1, 1]'

# ---- The user's text
said='name: said
model: {d: 16, layers: 1, heads: 2, ctx: 16}  # small
data: text.txt
steps:    4  # \xff, then more
batch: 2
threads: 1
sample: {tokens: 0}'
printf "$said" >said.yaml
accept 'a run file' train said.yaml 'sample.prompt="a\n"' log_every=2 checkpoint_every=2
sed -i 's/^steps: .*/# not higher\n&  # 3e-3 was too much/; s/^threads: 1/threads: 1 # one/' runs/said/config.yaml
cp runs/said/config.yaml noted.yaml
rm runs/said/model.safetensors
accept 'it is ended by its folder' train runs/said
verdict 'comments stay as they are while no key changes' "$(cmp noted.yaml runs/said/config.yaml 2>&1)"
accept 'it continues by its folder with more steps' train runs/said steps=6 '~log_every'
sed -e '/^#/d; s/ *#.*//; s/^steps: 4/steps: 6/; /^log_every/d' noted.yaml >expected
verdict 'its keys are those of before and of the command line' "$(tail -n +2 runs/said/config.yaml | diff expected -)"
accept 'it continues by its run file' train said.yaml steps=8
verdict 'whose keys are now the keys of the run' "$(grep -E 'prompt|checkpoint_every' runs/said/config.yaml; grep -qx 'steps: 8' runs/said/config.yaml || echo no)"
verdict 'no other file has them' "$(ls runs/said | grep -vE '^(checkpoints|config\.yaml|events\..*|metrics\.jsonl|model\.safetensors|tokenizer\.json)$')"

# ---- Documents: a run without the key eos continues without one; a vocabulary smaller than requested
for ((i = 0; i < 60; ++i)); do echo "{\"text\": \"the fox $i\"}"; done >documents.jsonl
for kind in char 'bpe model.vocab=300'; do
  documents=(train tiny.yaml data=documents.jsonl format=jsonl schedule=constant tokenizer=$kind)
  rm -rf runs/open runs/half
  accept "documents without an end ($kind)" "${documents[@]}" name=open eos=none steps=4
  accept 'the first half' "${documents[@]}" name=half eos=none steps=2
  sed -i /^eos:/d runs/half/config.yaml
  accept 'the rest' "${documents[@]}" name=half steps=4
  verdict 'is the same model' "$(cmp <(tensors runs/open/model.safetensors) <(tensors runs/half/model.safetensors) 2>&1)"
  sed -i '/^eos:/d; s/^steps: 4/steps: 5/' runs/half/config.yaml
  accept 'so does its folder' train runs/half
  accept 'the text is scored by its tokens' eval runs/half
done
fewer=(train tiny.yaml name=fewer tokenizer=bpe model.vocab=100000 schedule=constant)
accept 'a text of fewer tokens than asked for' "${fewer[@]}"
verdict 'the model has their number' "$(sed -nE 's/^runs.fewer: .* vocabulary ([0-9]+),.*/\1/p' out | diff - <(trained runs/fewer/model.safetensors model.vocab))"
accept 'the run file goes on with the run' "${fewer[@]}" steps=4
accept 'and so does its folder' train runs/fewer steps=6

# ---- Damage
# damage FILE BYTE: changes one byte.
damage() { printf '\125' | dd of="$1" bs=1 seek="$2" conv=notrunc status=none; }
size=$(stat -c %s $newest)
for place in 3 400 $((size - 1)); do
  rm -rf runs/damaged && cp -r kept runs/damaged
  damage runs/damaged/checkpoints/step-00000008.safetensors "$place"
  run train tiny.yaml name=damaged steps=12 checkpoint_every=4
  code=$?
  warning="^warning: runs/damaged/checkpoints/step-00000008\.safetensors: .*; using the checkpoint of step 4$"
  verdict "byte $place of the newest checkpoint damaged" "$([ $code = 0 ] && [ "$(grep -c '' err)" = 1 ] && grep -qE "$warning" err || echo "exit code $code")"
  verdict "byte $place: the same model in the end" "$(cmp runs/{straight,damaged}/model.safetensors 2>&1)"
done
rm -rf runs/damaged && cp -r kept runs/damaged
truncate -s 1000 runs/damaged/checkpoints/step-00000004.safetensors
: >runs/damaged/checkpoints/step-00000008.safetensors
refuse 'no sound checkpoint' 1 'step-00000008\.safetensors: .*; all 2 checkpoints are damaged' train tiny.yaml name=damaged steps=12
refuse 'the best of damaged ones' 1 'all 2 checkpoints are damaged' eval runs/damaged@best
rm -rf runs/damaged && cp -r kept runs/damaged
damage runs/damaged/model.safetensors 5000
refuse 'damaged model' 1 'runs/damaged/model\.safetensors: damaged: its bytes do not match' eval runs/damaged
run train tiny.yaml name=damaged steps=8
verdict 'damaged model: a warning' "$(grep -qE '^warning: runs/damaged/model\.safetensors: damaged: .*; it is written again$' err || echo no)"
verdict 'damaged model: it is written again' "$(cmp kept/model.safetensors runs/damaged/model.safetensors 2>&1)"
rm runs/damaged/model.safetensors
accept 'a finished run without its model' train tiny.yaml name=damaged steps=8
verdict 'the model is written again' "$(cmp kept/model.safetensors runs/damaged/model.safetensors 2>&1)"
refuse 'a step that is not kept' 1 "no checkpoint '5', only best, last and steps 4, 8" eval runs/damaged@5
rm -rf runs/damaged/checkpoints
refuse 'a model without checkpoints' 1 'runs/damaged: contains a trained model but no checkpoint' train tiny.yaml name=damaged

# ---- A checkpoint of a different run
accept 'a run of another seed' train tiny.yaml name=seed seed=7
cp runs/seed/checkpoints/*2.safetensors $states/step-00000009.safetensors
keep
refuse_tiny 'a checkpoint of another seed' "$other seed: 7, not 1337" steps=12
accept 'a wider run' train tiny.yaml name=wide model.d=32
rm $states/*
cp runs/wide/checkpoints/*2.safetensors $newest
rm runs/tiny/model.safetensors
keep
refuse_tiny 'a checkpoint of another shape' "$other model\.d: 32, not 16"
rm -rf runs/tiny && accept 'the small run again' train tiny.yaml name=tiny steps=8 checkpoint_every=4
keep

# ---- A config or a tokenizer that was edited after training
# edited FILE SED PATTERN PATTERN: the messages of an evaluation and of continued training.
edited() {
  rm -rf runs/edited && cp -r kept runs/edited && sed -i "$2" "runs/edited/$1"
  verdict "$1 after $2" "$(! diff -q kept runs/edited >/dev/null || echo 'is as it was')"
  if [ -n "$3" ]; then refuse "an evaluation after $2" 1 "runs/edited/model\.safetensors: $3" eval runs/edited; else accept "an evaluation after $2" eval runs/edited; fi
  [ -z "$3" ] || refuse "a text after $2" 1 "runs/edited/model\.safetensors: $3" generate runs/edited --prompt the
  [ -z "$3" ] || refuse "a checkpoint after $2" 1 "runs/edited/checkpoints/step-00000004\.safetensors: $3" eval runs/edited@4
  refuse "a training after $2" 1 "runs/edited: contains a run with $4" train runs/edited steps=12
}
was='was trained with'
edited config.yaml 's/heads: 2/heads: 4/' "$was model\.heads: 2, not 4" 'model\.heads: 2, not 4'
edited config.yaml '$acontext: 8' "$was context: 16, not 8" 'context: 16, not 8'
edited config.yaml '$aseed: 1' '' 'seed: 1337, not 1'
edited tokenizer.json 's/ab/ba/' "$was a different tokenizer" 'a different tokenizer'
rm -rf runs/edited

# ---- A run of an older version is an error in every program, and is listed
cp -r kept runs/older && sed -i '1s/ricci [0-9.]*/ricci 0.2.0/' runs/older/config.yaml
cp -r runs/older before
older='older/config\.yaml: was made by ricci 0\.2\.0; this version reads runs of 0\.3\.0 or later$'
for command in 'train runs/older' 'train older steps=20' 'train runs/older/config.yaml name=again' 'train init=older name=again' \
  'train init=runs/older/model.safetensors name=again' 'eval runs/older' 'generate older --prompt the' 'plan runs/older/config.yaml' \
  'convert export runs/older exported' 'inspect runs/older'; do
  refuse "an older version: $command" 1 "runs/$older" $command
done
verdict 'it is unchanged' "$(diff -r before runs/older 2>&1; ls -d runs/again exported 2>/dev/null)"
accept 'the list of runs' runs
verdict 'has it, with a note' "$(grep -q '^older ' out && grep -q '^runs/older/config.yaml: was made by ricci 0.2.0;' out || echo no)"
rm -rf runs/older

# ---- Checkpoints that a killed run left, and lost records
cp -r kept runs/pruned
last=$(ls runs/pruned/checkpoints | tail -1)
cp runs/pruned/checkpoints/$last runs/pruned/checkpoints/step-00000001.safetensors
accept 'a finished run is to keep one checkpoint' train runs/pruned keep_checkpoints=1
verdict 'only the last is left' "$(ls runs/pruned/checkpoints | diff - <(echo "$last"))"
rm runs/pruned/metrics.jsonl
run train runs/pruned keep_checkpoints=1 steps=12
verdict 'lost records are reported' "$([ $? = 0 ] && diff err - <<<"warning: runs/pruned/metrics.jsonl is missing: the records of $((10#${last//[!0-9]/})) steps are lost")"
rm -rf runs/pruned

# ---- Two processes
cp -r runs/tiny runs/busy
busy=(tiny.yaml name=busy steps=1000000 checkpoint_every=0)
start train "${busy[@]}"
await '! kill -0 "$background" 2>/dev/null || [ "$(grep -c "" runs/busy/metrics.jsonl)" -gt 8 ]'
refuse 'a run that is being trained' 1 'runs/busy: a different ricci train process is using it' train "${busy[@]}"
refuse 'a run that is being trained, by its folder' 1 'runs/busy: a different ricci train process is using it' train runs/busy
kill -KILL $background
wait $background 2>/dev/null
background=
rm -rf runs/busy

# ---- A limit on the size of files
limit=$((size / 1024 - 4))
limited() { (ulimit -f $limit && exec "$build/ricci-train" "$@") >out 2>err </dev/null; }
limited tiny.yaml name=tiny steps=12
verdict 'a limit on files' "$([ $? = 1 ] && grep -qx "ricci train: cannot write $states/step-00000012.safetensors: File too large (after [0-9]* bytes)" err || echo no)"
verdict 'a limit on files: no checkpoint is lost' "$(diff -r kept/checkpoints $states 2>&1; cmp kept/model.safetensors runs/tiny/model.safetensors 2>&1)"
accept 'without the limit it goes on' train tiny.yaml name=tiny steps=12
verdict 'without the limit: the same end' "$(cmp runs/{straight,tiny}/model.safetensors 2>&1)"

echo "$failures failed"
exit $((failures > 0))
