#!/usr/bin/env bash
# A run starts from a different one: copied keys and weights, different keys, and frozen parameters.
#   init.sh build-folder
. "$(dirname "$0")/../programs.sh" "$@"

# tensor FILE NAME: the bytes of a tensor, as a hash.
tensor() {
  local offsets
  offsets=$(header "$1" | grep -oE "\"${2//./\\.}\":\{[^}]*" | grep -oE '\[[0-9]+,[0-9]+\]$' | tr -d '[]')
  tensors "$1" | tail -c +$((${offsets%,*} + 1)) | head -c $((${offsets#*,} - ${offsets%,*})) | sha256sum
}
# starts TEXT: the first printed line.
starts() { awk 'NR > 1 && !/^  / { exit } NR > 1 { printf ";" substr($0, 2); next } { printf $0 } END { print "" }' out | diff - <(echo "starts from $PWD/$1"); }
names() { header "$1" | grep -oE '"[a-z_0-9.]+":\{"dtype"' | grep -oE '[a-z_0-9.]{2,}' | grep -v dtype | sort; }

accept 'the first run' train tiny.yaml name=first steps=4 model.layers=2 model.dropout=0.1 checkpoint_every=2
first=runs/first/model.safetensors
[ -s "$first" ] || exit 1
cat >next.yaml <<'END'
name: next
init: runs/first
data: text.txt
steps: 1
batch: 2
threads: 1
lr: 1e-30
min_lr: 1e-30
weight_decay: 0
warmup: 0
sample: {tokens: 0}
END

# ---- Copied keys
accept 'a run that starts from it' train next.yaml
verdict 'it tells so' "$(starts "$first")"
verdict 'its config names the keys of the first' "$(for key in 'd: 16' 'ctx: 16' 'heads: 2' 'layers: 2' 'dropout: 0.1'; do grep -qxF "  $key" runs/next/config.yaml || echo "$key"; done)"
verdict 'and none that follows from others' "$(grep -E '^  (ff|vocab|kv_heads|causal|activation):' runs/next/config.yaml)"
accept 'evaluation of the first' eval runs/first
mv out first.out
accept 'evaluation of the next' eval runs/next
verdict 'a learning rate of nothing leaves its loss' "$(diff first.out out)"
accept 'a finished run says so, and needs the first no more' train runs/next
mv runs/first runs/moved
accept 'a run that goes on needs the first no more' train runs/next steps=2
mv runs/moved runs/first
accept 'a checkpoint is a start' train next.yaml name=from_checkpoint init=runs/first/checkpoints/step-00000002.safetensors
verdict 'its weights are those' "$([ "$(tensor runs/from_checkpoint/model.safetensors tok.weight)" = "$(tensor runs/first/checkpoints/step-00000002.safetensors tok.weight)" ] || echo no)"
cp "$first" alone.safetensors
accept 'so is a file of weights' train next.yaml name=from_file init=alone.safetensors
verdict 'and it gives the same model' "$([ "$(tensors runs/from_file/model.safetensors | sha256sum)" = "$(tensors runs/next/model.safetensors | sha256sum)" ] || echo no)"
cp alone.safetensors damaged.safetensors
printf '\x40' | dd of=damaged.safetensors bs=1 seek=$(($(stat -c %s damaged.safetensors) - 40)) conv=notrunc status=none
refuse 'a damaged file of weights' 1 'damaged\.safetensors: damaged: its bytes do not match its checksum' train next.yaml name=bad init=damaged.safetensors
accept 'the resolved run file trains the same again' train runs/next/config.yaml name=again steps=2
verdict 'bit for bit' "$([ "$(tensors runs/again/model.safetensors | sha256sum)" = "$(tensors runs/next/model.safetensors | sha256sum)" ] || echo no)"

# ---- Derived values follow the keys of the new run
retina=(model.family=retina 'model.scales=[1, 4]' model.ctx=16)
accept 'a retina whose windows follow the context' train tiny.yaml name=retina "${retina[@]}" steps=1
cp runs/retina/model.safetensors retina.safetensors
windows() { trained "runs/$1/model.safetensors" model.windows; }
for start in runs/retina retina.safetensors; do
  accept "a run that starts from $start in that context" train next.yaml name=far init=$start model.ctx=64
  verdict 'it has the windows of that length' "$(diff <(windows far) - <<<'["0:64", "0:64"]')"
  verdict 'which are not said' "$(grep 'windows: \["' runs/far/config.yaml)"
  rm -rf runs/far
done
accept 'windows that were said' train tiny.yaml name=near "${retina[@]}" 'model.windows=[[0, 8], [8, 16]]' steps=1
accept 'a start from them' train next.yaml name=near2 init=runs/near model.ctx=64
verdict 'keeps them, as every reader of YAML reads them' "$(grep -qxF '  windows: ["0:8", "8:16"]' runs/near2/config.yaml || grep windows runs/near2/config.yaml)"
accept 'the same config with another tokenizer' train runs/first/config.yaml name=bytes tokenizer=byte steps=1
accept 'it is a start' train next.yaml name=from_bytes init=runs/bytes
verdict 'its tokenizer gives the size' "$(grep vocab runs/bytes/config.yaml runs/from_bytes/config.yaml)"
verdict 'and comes along' "$(cmp runs/bytes/tokenizer.json runs/from_bytes/tokenizer.json 2>&1)"
# parameters RUN_FILE...: the number in a plan.
parameters() { "$build/ricci-plan" "$@" --json | sed -nE 's/^ *"parameters": ([0-9]+),?$/\1/p' | head -1; }
printf 'aabb aabb aabb aabb aabb aabb aabb aabb aabb aabb' >few.txt
verdict 'a plan of a run that starts from another has its vocabulary' "$(diff <(parameters next.yaml data=few.txt) <(parameters runs/first/config.yaml))"
mv text.txt away.txt
verdict 'a plan of a run needs none of its text' "$(diff <(parameters runs/first/config.yaml) <(parameters runs/first/config.yaml model.vocab=38))"
mv away.txt text.txt
verdict 'a plan needs no run file' "$(parameters model.d=16 model.heads=1 data=text.txt | grep -qE '^[1-9]' || echo 'no number')"

# ---- Different keys
accept 'other heads' train next.yaml name=heads model.heads=4
verdict 'all weights fit' "$(starts "$first")"
accept 'another dropout' train next.yaml name=dropout model.dropout=0.5
accept 'a longer context' train next.yaml name=longer model.ctx=32
verdict 'it tells of the rows' "$(starts "$first; pos.weight: 16 of 32 rows")"
accept 'a shorter context' train next.yaml name=shorter model.ctx=8
verdict 'it has the first rows' "$(starts "$first; pos.weight: 8 of 8 rows")"
accept 'evaluation with the short context' eval runs/shorter
mv out shorter.out
accept 'which is the first with that context' eval runs/first --context 8
verdict 'the same loss' "$(diff <(grep -o '[0-9.]* nats' shorter.out) <(grep -o '[0-9.]* nats' out))"
accept 'a run of several scales' train tiny.yaml name=scales model.family=topdown 'model.scales=[1, 4]' model.layers=1 steps=1
scales=runs/scales/model.safetensors
for ctx in 32 3; do
  run train next.yaml name=scales_$ctx init=runs/scales model.ctx=$ctx
  verdict "in a context of $ctx" "$([ $? = 0 ] && [ "$(grep -c 'a cell of 4 tokens is longer than the context' err)" = $((ctx < 4)) ] || shown err)"
  kept=$((ctx < 16 ? ctx : 16))
  verdict 'the positions of each scale' "$(starts "$scales; stack.1.pos.weight: $kept of $ctx rows; stack.4.pos.weight: $((kept / 4)) of $((ctx / 4)) rows")"
done
accept 'a run of a Dispatcher' train tiny.yaml name=dispatcher model.mixer=dispatcher model.ctx=21 steps=1
longer=(train next.yaml name=levels init=runs/dispatcher model.ctx=43)
refuse 'a context that needs more levels' 1 'tensor blocks\.0\.mixer\.coef\.weight is \[10 16\], expected \[12 16\]' "${longer[@]}" name=bad
run "${longer[@]}" model.levels=5
verdict 'the levels that it has' "$([ $? = 0 ] || echo failed; diff err - <<<'warning: model.levels: with 5 levels a layer spans 32 positions, but ctx: 43 needs 6 levels')"
accept 'without a table of positions' train next.yaml name=sinusoidal init=runs/scales model.positions=sinusoidal
verdict 'it is left' "$(starts "$scales; not used: 2 tensors")"
accept 'and with one again' train next.yaml name=learned init=runs/sinusoidal model.positions=learned
verdict 'they are sampled' "$(starts "runs/sinusoidal/model.safetensors; stack.1.pos.weight: sampled; stack.4.pos.weight: sampled")"
refuse 'another width' 1 'tok\.weight is \[38 16\], expected \[38 32\]' train next.yaml name=bad model.d=32
refuse 'another inner width' 1 'blocks\.0\.fc\.weight is \[64 16\], expected \[40 16\]' train next.yaml name=bad model.ff=40
accept 'more blocks' train next.yaml name=deeper model.layers=3 model.bias=false
verdict 'the new one is sampled' "$(grep -q '^  sampled: [0-9]* tensors$' out && grep -q '^  not used: [0-9]* tensors$' out || shown out)"
strange='{"x":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}'
printf "\\x$(printf %x ${#strange})\\0\\0\\0\\0\\0\\0\\0%s\\0\\0\\0\\0" "$strange" >strange.safetensors
refuse 'weights of something else' 1 'strange\.safetensors: contains no parameter of this model' train next.yaml name=bad init=strange.safetensors
refuse 'a start that is not there' 1 'init: runs/none is neither a run folder nor a file' train next.yaml name=bad init=runs/none
accept 'another head' train next.yaml name=untied model.tie=false
verdict 'it is sampled' "$(starts "$first; head.weight: sampled")"
awk '{ print (NR % 3 ? "fox\t" : "dog\t") $0 }' text.txt >reviews.tsv
accept 'another family' train next.yaml name=classifier model.family=classifier data=reviews.tsv label_field=1
verdict 'its head is sampled, too' "$(starts "$first; head.weight: sampled")"
verdict 'it sees as the first does, though its family sees all by default' "$(grep -qx '  causal: true' runs/classifier/config.yaml || echo 'not causal')"
accept 'more classes' train next.yaml name=classes init=runs/classifier model.classes=3 data=reviews.tsv label_field=1 'labels=[dog, fox, none]'
verdict 'and again' "$(starts "runs/classifier/model.safetensors; head.weight: sampled")"

# ---- Other tokenizers
sed 's/fox/FOX/; s/dog/d√g/' text.txt >other.txt
sed 's/quick/Quick/' text.txt >same_size.txt
refuse 'a text outside of the vocabulary' 1 "'F' \(U\+0046\) at byte 16" train next.yaml name=bad data=other.txt
accept 'another vocabulary' tokenize train other.txt --kind char -o other.json
accept 'a start with it' train next.yaml name=vocabulary data=other.txt tokenizer=other.json
verdict 'its common tokens keep their rows' "$(starts "$first; tok.weight: 36 of 40 rows")"
refuse 'a file of another tokenizer' 1 'alone\.safetensors: was trained with a different tokenizer than this run.s; with tokenizer=char, the rows of its tokens are sampled' train next.yaml name=bad init=alone.safetensors data=same_size.txt
accept 'which was meant' train next.yaml name=drawn init=alone.safetensors data=same_size.txt tokenizer=char
verdict 'they are sampled' "$(starts "alone.safetensors; tok.weight: 0 of 38 rows")"
accept 'a run of words' train tiny.yaml name=words tokenizer=word steps=1
refuse 'an end of lines, which the tokenizer of the start does not have' 1 'init: .*/runs/words has eos = none, expected line; choose a tokenizer with this eos by tokenizer=FILE' train next.yaml name=bad init=runs/words eos=line

# ---- Frozen parameters
accept 'frozen parameters' train tiny.yaml name=frozen steps=3 'freeze=[tok, pos, blocks.*.ln1, blocks.0.fc.weight]' checkpoint_every=1
accept 'the same at its start' train tiny.yaml name=start steps=1 lr=1e-30 min_lr=1e-30 weight_decay=0
frozen='blocks.0.fc.weight blocks.0.ln1.bias blocks.0.ln1.weight pos.weight tok.weight'
for name in ${frozen/blocks.0.ln1.bias/} blocks.0.fc_out.weight ln_f.bias; do
  [ "$(tensor runs/frozen/model.safetensors $name)" = "$(tensor runs/start/model.safetensors $name)" ] && same=yes || same=no
  [[ " $frozen " = *" $name "* ]] && expected=yes || expected=no
  verdict "$name: stays as it was: $expected" "$([ $same = $expected ] || echo $same)"
done
checkpoint=runs/frozen/checkpoints/step-00000003.safetensors
verdict 'they have no optimizer state' "$(comm -12 <(names $checkpoint | sed -n 's/^optimizer\.\(.*\)\.[mv]$/\1/p' | sort -u) <(tr ' ' '\n' <<<"$frozen" | sort) | xargs)"
verdict 'the others have' "$(names $checkpoint | grep -qx 'optimizer.blocks.0.fc_out.weight.m' || echo none)"
accept 'interrupted after two steps' train tiny.yaml name=resumed steps=2 'freeze=[tok, pos, blocks.*.ln1, blocks.0.fc.weight]' schedule=constant
accept 'and gone on' train runs/resumed steps=3
accept 'without an interruption' train tiny.yaml name=whole steps=3 'freeze=[tok, pos, blocks.*.ln1, blocks.0.fc.weight]' schedule=constant
verdict 'gives the same bits' "$([ "$(tensors runs/resumed/model.safetensors | sha256sum)" = "$(tensors runs/whole/model.safetensors | sha256sum)" ] || echo no)"

# ---- A separate rate
small=(tiny.yaml steps=3 min_lr=0)
accept 'a rate of 0 for the tables' train "${small[@]}" name=slow 'lr_of={tok: 0, pos: 0}'
for name in tok.weight pos.weight blocks.0.fc_out.weight; do
  [ "$(tensor runs/slow/model.safetensors $name)" = "$(tensor runs/start/model.safetensors $name)" ] && same=yes || same=no
  [[ $name = blocks* ]] && expected=no || expected=yes
  verdict "$name: stays as it was: $expected" "$([ $same = $expected ] || echo $same)"
done
verdict 'they have an optimizer state' "$(names runs/slow/checkpoints/step-00000003.safetensors | grep -qx 'optimizer.tok.weight.m' || echo none)"
accept 'twice the rate, halved' train "${small[@]}" name=halved lr=0.002 'lr_of={"*": 3, tok: 0.5, pos: 0.5, blocks: 0.5, ln_f: 0.5}'
accept 'the rate itself' train "${small[@]}" name=whole_rate lr=0.001
verdict 'gives the same bits' "$([ "$(tensors runs/halved/model.safetensors | sha256sum)" = "$(tensors runs/whole_rate/model.safetensors | sha256sum)" ] || echo no)"
own=('lr_of={blocks.*.mixer: 0.3}' 'decay_of={tok: 0, blocks: 2}' schedule=constant)
accept 'factors, interrupted after two steps' train tiny.yaml name=parts "${own[@]}" steps=2
accept 'and gone on' train runs/parts steps=3
accept 'without an interruption' train tiny.yaml name=uncut steps=3 "${own[@]}"
verdict 'gives the same bits' "$([ "$(tensors runs/parts/model.safetensors | sha256sum)" = "$(tensors runs/uncut/model.safetensors | sha256sum)" ] || echo no)"
refuse 'other factors for the same run' 1 'contains a run with lr_of: \{"blocks\.\*\.mixer": 0\.3\}, not \{\};' train runs/parts steps=4 'lr_of={}'
refuse 'factors of nothing' 1 "lr_of: 'block' matches no trained parameter, the nearest is 'blocks'" train tiny.yaml 'lr_of={block: 1}'
refuse 'factors of a frozen table' 1 "decay_of: 'tok' matches no trained parameter" train tiny.yaml freeze=tok 'decay_of={tok: 1}'

accept 'only the last norm, recomputed in bf16' train tiny.yaml name=norm 'freeze=[tok, pos, blocks]' recompute=blocks precision=bf16
verdict 'the frozen parameters are told' "$(grep -q ' parameters (4,' out || instead head -1 out)"
refuse 'frozen parameters that are not there' 1 "freeze: 'blocks\.0\.fcc' matches no parameter, the nearest is 'blocks\.0\.fc'" train tiny.yaml 'freeze=[blocks.0.fcc]'
refuse 'nothing to train' 1 'freeze: no parameter is left to train' train tiny.yaml 'freeze=[tok, pos, blocks, ln_f]'
exit $((failures > 0))
