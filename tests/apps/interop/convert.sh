#!/usr/bin/env bash
# ricci-convert: a model of Hugging Face becomes a run that the other programs read, and a folder of theirs again.
#   convert.sh build-folder
models=$(cd "$(dirname "$0")/../../interop/models" && pwd) || exit 1
. "$(dirname "$0")/../programs.sh" "$@"
# names FILE: its tensors with dtypes and shapes.
names() { header "$1" | grep -oE '"[a-z_0-9.]+":\{"dtype":"[A-Z0-9]+","shape":\[[0-9,]*\]' | sort; }

# ---- Without a tokenizer
accept 'a folder of Hugging Face' convert import "$models/gpt2" runs/bare
verdict 'it tells what it made' "$(grep -qE '^runs/bare: [0-9,]+ parameters from .*/gpt2, no tokenizer, vocabulary 11, context 9$' out || shown out)"
refuse 'a text for a model without a tokenizer' 1 'runs/bare/tokenizer\.json: there is none' eval runs/bare --data text.txt
accept 'and back' convert export runs/bare back
verdict 'the same tensors' "$(diff <(names "$models/gpt2/model.safetensors") <(names back/model.safetensors))"
verdict 'for PyTorch' "$(header back/model.safetensors | grep -qF '"__metadata__":{"format":"pt"}' || header back/model.safetensors)"
verdict 'without a tokenizer' "$(ls back | xargs | diff - <(echo config.json model.safetensors))"
refuse 'a folder that holds a model' 1 'back: holds a model already \(config\.json\)' convert export runs/bare back
refuse 'a run that holds one' 1 'runs/bare: holds a trained model' convert import "$models/gpt2" runs/bare
accept 'back once more' convert import back runs/again
verdict 'bit for bit' "$([ "$(tensors runs/again/model.safetensors | sha256sum)" = "$(tensors runs/bare/model.safetensors | sha256sum)" ] || echo no)"

# ---- With one
cp -r "$models/gpt2" with
echo '{"name":"char","characters":"\nabcdefghi "}' >with/tokenizer.json
accept 'a folder with a tokenizer' convert import with runs/with
refuse 'an import of a run' 1 'runs/bare: is a run already; import reads folders of Hugging Face' convert import runs/bare runs/again
refuse 'an evaluation of an imported run without a text' 1 '--data: runs/with was imported and has no text of its own; name one to score' eval runs/with
refuse 'a look at an imported run without a text' 1 '--text: runs/with was imported and has no text of its own; give one' inspect runs/with
refuse 'a training in an imported run' 1 'runs/with: holds a trained model but no checkpoint to go on from; init=runs/with name=\.\.\. trains it further' train runs/with
refuse 'its config without a text' 1 'data: nothing given' train runs/with/config.yaml name=bad
for ((i = 0; i < 40; ++i)); do echo 'a bad cab hid a big fee'; done | tr -d 'f' >letters.txt
verdict 'names it in its keys' "$(grep -qx 'tokenizer: runs/with/tokenizer.json' runs/with/config.yaml || shown runs/with/config.yaml)"
accept 'its model scores a text' eval runs/with --data letters.txt
loss=$(grep -oE '[0-9.]+ nats' out)
accept 'writes one' generate runs/with --prompt 'a bad' --tokens 5
accept 'and is trained further' train init=runs/with name=tuned data=letters.txt steps=100 lr=1e-2 batch=4 threads=1 sample.tokens=0
verdict 'from its weights' "$(head -1 out | diff - <(echo "starts from $PWD/runs/with/model.safetensors"))"
accept 'the text, scored again' eval runs/tuned --data letters.txt
verdict 'with less loss' "$(awk -v a="${loss% nats}" -v b="$(grep -oE '[0-9.]+ nats' out)" 'BEGIN { if (!(b + 0 < a - 0.5)) print b ", before " a }')"
accept 'the last step goes out' convert export runs/tuned tuned
verdict 'without characters, which transformers has no tokenizer of' "$([ ! -e tuned/tokenizer.json ] && grep -q ', no tokenizer,' out || shown out)"
accept 'and a step by its number' convert export runs/tuned step --checkpoint 100
verdict 'which is the same' "$(cmp tuned/model.safetensors step/model.safetensors 2>&1)"
refuse 'a step that is not kept' 1 "no checkpoint '7'; there are best, last" convert export runs/tuned bad --checkpoint 7
verdict 'leaves no folder' "$([ ! -e bad ] || instead ls bad)"

accept 'a run with pieces' train tiny.yaml name=pieces tokenizer=bpe model.vocab=280
accept 'goes out' convert export runs/pieces pieces
verdict 'with its tokenizer' "$(cmp pieces/tokenizer.json runs/pieces/tokenizer.json 2>&1; [ -s pieces/tokenizer_config.json ] || echo no config)"
accept 'and comes back' convert import pieces runs/pieces_again
verdict 'as it was' "$([ "$(tensors runs/pieces_again/model.safetensors | sha256sum)" = "$(tensors runs/pieces/model.safetensors | sha256sum)" ] && cmp runs/pieces{,_again}/tokenizer.json 2>&1 || echo no)"

# ---- To llama.cpp
accept 'a run goes out as GGUF' convert export runs/pieces pieces.gguf --gguf q8_0
verdict 'one file, with its tokenizer' "$([ "$(head -c 4 pieces.gguf)" = GGUF ] && grep -q 'GGUF of gpt2, q8_0, bpe tokenizer, vocabulary 280,' out || shown out)"
refuse 'a file that is there' 1 'pieces\.gguf: is there already' convert export runs/pieces pieces.gguf --gguf q8_0
refuse 'other numbers' 1 '--gguf: expected f32, f16, bf16 or q8_0, got q4_0|--gguf: .*q4_0' convert export runs/pieces bad.gguf --gguf q4_0
refuse 'characters' 1 'the char tokenizer has no equivalent in GGUF; --without-tokenizer leaves it out' convert export runs/with bad.gguf --gguf f32
verdict 'which leaves no file' "$([ ! -e bad.gguf ] || instead ls bad.gguf)"
accept 'without them' convert export runs/with with.gguf --gguf f32 --without-tokenizer
accept 'a run with rotary positions' train tiny.yaml name=turning model.preset=llama model.kv_heads=1 model.window=8
refuse 'a window' 1 'model\.window: 8 has no equivalent in llama' convert export runs/turning bad.gguf --gguf f32
verdict 'which leaves no file either' "$([ ! -e bad.gguf ] || instead ls bad.gguf)"
accept 'without one' train tiny.yaml name=llama model.preset=llama model.kv_heads=1
accept 'it goes out' convert export runs/llama llama.gguf --gguf bf16 --without-tokenizer
verdict 'as llama' "$(grep -q '^llama\.gguf: .* GGUF of llama, bf16, no tokenizer, vocabulary [0-9]*, context [0-9]*$' out || shown out)"
refuse 'a folder without its tokenizer' 1 '--without-tokenizer: of an export, only --gguf reads it' convert export runs/with bad --without-tokenizer

# ---- Killed at each call that changes a file
killed() { { RICCI_SIGNAL_AT="9 $1" LD_PRELOAD=$build/libricci-signal-at.so "$build/ricci-convert" "${@:2}" >out 2>err </dev/null; } 2>/dev/null; }
faults= call=0
while rm -rf half && call=$((call + 1)) && ! killed $call export runs/pieces half; do
  [ -e half/config.json ] || run convert export runs/pieces half || faults+=" after call $call: $(cat err)"
  diff -r pieces half >out || faults+=" after call $call: $(cat out)"
  [ $call -lt 100 ] || break
done
verdict 'an export that was killed goes on to the same folder' "$([ $call -gt 10 ] || echo "only $call calls")$faults"
faults= call=0
while [ $call -lt 100 ] && rm -rf runs/half && call=$((call + 1)) && ! killed $call import with runs/half; do
  if [ -e runs/half/model.safetensors ]; then continue; fi
  run convert import "$models/gpt2" runs/half || faults+=" after call $call: $(cat err)"
  [ ! -e runs/half/tokenizer.json ] || faults+=" after call $call: the tokenizer of another model"
done
verdict 'an import that was killed leaves no tokenizer to the next one' "$([ $call -gt 10 ] || echo "only $call calls")$faults"
for name in model.safetensors.index.json vocab.json tokenizer_config.json model.safetensors; do
  rm -rf half && mkdir half && cp runs/bare/model.safetensors half/$name
  refuse "a folder with another $name" 1 "half: holds a model already \\($name\\)" convert export runs/pieces half
  verdict 'it is as it was' "$(cmp runs/bare/model.safetensors half/$name 2>&1; ls half | diff - <(echo $name))"
done

# ---- A tokenizer for a model that was imported without one
small=(data=letters.txt steps=1 batch=2 threads=1 sample.tokens=0 lr=1e-30 min_lr=1e-30 weight_decay=0)
accept 'training with a tokenizer of as many tokens' train init=runs/bare name=given tokenizer=with/tokenizer.json "${small[@]}"
verdict 'starts from all weights' "$(head -1 out | diff - <(echo "starts from $PWD/runs/bare/model.safetensors"))"
accept 'the text under both' eval runs/with runs/given --data letters.txt
verdict 'is the same' "$(awk 'NR > 1 { print $5 }' out | uniq | wc -l | diff - <(echo 1))"
refuse 'a tokenizer of another size' 1 'model\.vocab: 11, but the byte tokenizer has 256 tokens' train init=runs/bare name=bad tokenizer=byte "${small[@]}"

# ---- Weights of the Dispatcher paper's repository
attention=$models/attention/theirs.safetensors
accept 'a file of weights' convert import "$attention" runs/attention --heads 2 --context 16
verdict 'it tells what it made' "$(grep -qE '^runs/attention: [0-9,]+ parameters from .*theirs\.safetensors, no tokenizer, vocabulary 11, context 16$' out || shown out)"
accept 'is trained further' train init=runs/attention name=attention_tuned tokenizer=with/tokenizer.json "${small[@]}"
refuse 'attention without a context' 1 'attention does not record its context; choose it with --context' convert import "$attention" runs/bad
refuse 'another file' 1 'has neither .* nor .*; it is no model of the Dispatcher repository' convert import runs/with/model.safetensors runs/bad
refuse 'no tokenizer of a file' 1 '--without-tokenizer: .*theirs\.safetensors is a file of weights, which has none' convert import "$attention" runs/bad --heads 2 --context 16 --without-tokenizer
refuse 'heads of a folder' 1 '--heads and --context: with is no file of weights' convert import with runs/bad --heads 2

# ---- What cannot be
refuse 'a folder that is not there' 1 'cannot read none/config\.json: No such file' convert import none runs/bad
cp -r "$models/gpt2" broken
head -c 3000 "$models/gpt2/model.safetensors" >broken/model.safetensors
refuse 'a file that was cut' 1 'broken/model\.safetensors: ' convert import broken runs/bad
accept 'a run of another kind' train tiny.yaml name=other model.norm=post
refuse 'a run that GPT-2 cannot be' 1 'model\.norm: post has no equivalent in GPT-2' convert export runs/other bad
refuse 'no command' 2 'a command is required: import, export ' convert
refuse 'no folder to make' 2 'folder is required' convert export runs/bare
refuse 'a dropout of 1' 2 '--dropout: ' convert import "$models/gpt2" runs/bad --dropout 1
refuse 'a dropout that is no number' 2 '--dropout: .*got nan' convert import "$models/gpt2" runs/bad --dropout nan
exit $((failures > 0))
