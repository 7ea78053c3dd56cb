#!/usr/bin/env bash
# ricci convert: a Hugging Face model becomes a run for the other programs, and a Hugging Face folder again, or a file for llama.cpp. A
# folder's template selects the run's template if it is chatml or llama3. It is kept byte for byte and exported in the same form; a run's
# own template is exported in Jinja. In tests/interop/templates.py transformers reads them.
#   convert.sh build-folder
. "$(dirname "$0")/../outputs.sh" "$@"
models=$root/tests/interop/models
# alike NAME RUN RUN: two runs with the same weights.
alike() { verdict "$1" "$(cmp <(tensors "runs/$2/model.safetensors") <(tensors "runs/$3/model.safetensors") 2>&1)"; }

# ---- Without a tokenizer
prints 'a folder of Hugging Face' '^runs/bare: [0-9,]+ parameters from .*/gpt2$' convert import "$models/gpt2" runs/bare
shows 'and says what it has' '^no tokenizer, vocabulary 11, context 9$'
refuse 'a text for a model without a tokenizer' 1 'runs/bare/tokenizer\.json: is missing' eval runs/bare --data text.txt
accept 'and back' convert export runs/bare back
is 'without a tokenizer' $'config.json\nmodel.safetensors' ls back
refuse 'a folder that holds a model' 1 'back: already contains a model \(model\.safetensors\)' convert export runs/bare back
refuse 'a run that holds one' 1 'runs/bare: contains a trained model' convert import "$models/gpt2" runs/bare

# ---- With one
cp -r "$models/gpt2" with
echo '{"name":"char","characters":"\nabcdefghi "}' >with/tokenizer.json
accept 'a folder with a tokenizer' convert import with runs/with
refuse 'an import of a run' 1 'runs/bare: is already a run, expected a Hugging Face folder' convert import runs/bare runs/again
refuse 'an evaluation of an imported run without a text' 1 '--data: runs/with was imported and has no validation text; name a text to score' eval runs/with
refuse 'a look at an imported run without a text' 1 '--text: runs/with was imported without a text; give a text' inspect runs/with
refuse 'a training in an imported run' 1 'runs/with: contains a trained model but no checkpoint to continue from; init=runs/with name=\.\.\. trains it further' train runs/with
refuse 'its config without a text' 1 'data: is not set' train runs/with/config.yaml name=bad
for ((i = 0; i < 40; ++i)); do echo 'a bad cab hid a big fee'; done | tr -d 'f' >letters.txt
shows 'its config names the tokenizer' '^tokenizer: runs/with/tokenizer\.json$' runs/with/config.yaml
accept 'its model scores a text' eval runs/with --data letters.txt
loss=$(grep -oE '[0-9.]+ nats' out)
cp -r with nan && head -c -400 with/model.safetensors >nan/model.safetensors && head -c 400 /dev/zero | tr '\0' '\377' >>nan/model.safetensors
echo '{"context": "a bad", "choices": ["cab", "fee"], "answer": 0}' >questions.jsonl
accept 'a model of NaN' convert import nan runs/nan
refuse 'has no choice' 1 'runs/nan: the log-probability of a choice is NaN' eval runs/nan --choices questions.jsonl
accept 'writes one' generate runs/with --prompt 'a bad' --tokens 5
prints 'and is trained further from its weights' "^starts from $PWD/runs/with/model\.safetensors$" train init=runs/with name=tuned data=letters.txt steps=100 lr=1e-2 batch=4 threads=1 sample.tokens=0
accept 'the text, scored again' eval runs/tuned --data letters.txt
holds 'with less loss' awk "BEGIN { exit !($(grep -oE '[0-9.]+ nats' out | cut -d ' ' -f 1) < ${loss% nats} - 0.5) }"
prints 'the last step goes out without characters, which transformers has no tokenizer of' '^transformers has no tokenizer of the kind char$' convert export runs/tuned tuned
holds 'without a file of them' [ ! -e tuned/tokenizer.json ]
accept 'and a step by its number' convert export runs/tuned@100 step
same 'which is the same' tuned/model.safetensors step/model.safetensors
refuse 'a step that is not kept' 1 "no checkpoint '7', only best, last" convert export runs/tuned@7 bad
holds 'leaves no folder' [ ! -e bad ]

accept 'a run with pieces' train tiny.yaml name=pieces tokenizer=bpe model.vocab=280
accept 'goes out' convert export runs/pieces pieces
is 'with its tokenizer and without a template' $'config.json\nmodel.safetensors\ntokenizer.json\ntokenizer_config.json' ls pieces
accept 'and comes back' convert import pieces runs/pieces_again
alike 'as it was' pieces pieces_again
for file in pieces/tokenizer.json runs/pieces_again/tokenizer.json; do same "$file" runs/pieces/tokenizer.json $file; done

for ((i = 0; i < 60; ++i)); do echo '{"text": "a b"}'; done >documents.jsonl
accept 'a run whose documents end' train tiny.yaml data=documents.jsonl format=jsonl steps=60 lr=1e-2 name=ended tokenizer=bpe model.vocab=258
prints 'goes out with its tokenizer' ', bpe tokenizer,' convert export runs/ended ended
is 'a plain one' '{"version":' eval 'head -c 11 ended/tokenizer.json; echo'
is 'whose end the config names' '"eos_token_id": 0' grep -oE '"eos_token_id": [0-9]+' ended/config.json
is 'and so does the tokenizer' '"eos_token": "<eos>"' grep -oE '"eos_token": "[^"]*"' ended/tokenizer_config.json
accept 'it comes back' convert import ended runs/ended_again
prints 'and its texts end' '"text":" b","tokens":2,"end":"stop"' generate runs/ended_again --prompt a --temperature 0 --jsonl
accept 'a run whose lines end' train tiny.yaml name=lines tokenizer=bpe model.vocab=280 eos=line
prints 'goes out without its tokenizer, and why' '^transformers has no tokenizer that ends lines with a token$' convert export runs/lines lines

# ---- To llama.cpp
prints 'a run goes out as GGUF' 'GGUF of gpt2, q8_0, bpe tokenizer, vocabulary 280,' convert export runs/pieces pieces.gguf --gguf q8_0
is 'one file' GGUF eval 'head -c 4 pieces.gguf; echo'
refuse 'a file that is there' 1 'pieces\.gguf: already exists' convert export runs/pieces pieces.gguf --gguf q8_0
refuse 'GGUF comes in' 1 'pieces\.gguf: is a file, expected a Hugging Face folder' convert import pieces.gguf runs/bad
refuse 'a start from GGUF' 1 'pieces\.gguf: is a GGUF file, expected a safetensors file' train init=pieces.gguf data=text.txt name=bad
refuse 'a folder with the name of GGUF' 1 'bad\.gguf: add --gguf f16 to make a GGUF file' convert export runs/pieces bad.gguf
refuse 'other numbers' 1 '--gguf: expected f32, f16, bf16 or q8_0, got q4_0|--gguf: .*q4_0' convert export runs/pieces bad.gguf --gguf q4_0
accept 'without characters' convert export runs/with with.gguf --gguf f32 --without-tokenizer
refuse 'a folder without its tokenizer' 1 '--without-tokenizer: does not apply to an export without --gguf' convert export runs/with bad --without-tokenizer
for name in model.safetensors.index.json vocab.json tokenizer_config.json model.safetensors; do
  rm -rf half && mkdir half && cp runs/bare/model.safetensors half/$name
  refuse "a folder with another $name" 1 "half: already contains a model \\($name\\)" convert export runs/pieces half
  same 'it is as it was' runs/bare/model.safetensors half/$name
  is 'and alone' $name ls half
done

# ---- Errors
refuse 'a folder that is not there' 1 'none: no such folder; to get a model from the hub, run hf download none --local-dir FOLDER' convert import none runs/bad
cp -r "$models/gpt2" theirs
way='is a Hugging Face folder; ricci convert import theirs NAME turns it into a run'
refuse 'their folder in place of a run: to start from' 1 "theirs: $way" train init=theirs data=text.txt name=bad
refuse 'its weights' 1 "theirs/model\.safetensors: $way" train init=theirs/model.safetensors data=text.txt name=bad
refuse 'to train' 1 "theirs: $way" train theirs
refuse 'to write' 1 "theirs: $way" generate theirs
refuse 'to score' 1 "theirs: $way" eval theirs --data text.txt
refuse 'to plan' 1 "theirs: $way" plan theirs
refuse 'to inspect' 1 "theirs: $way" inspect theirs
refuse 'to export' 1 "theirs: $way" convert export theirs bad
cp -r "$models/gpt2/config.json" .
accept 'a config.json here is no such folder' generate runs/with --prompt 'a bad' --tokens 1
rm config.json
printf '\n\016' >tokenizer.model
for use in "train data=text.txt tokenizer=tokenizer.model name=bad" "tokenize encode text.txt --tokenizer tokenizer.model"; do
  refuse "a vocabulary of SentencePiece: $use" 1 'tokenizer\.model: is a SentencePiece vocabulary; AutoTokenizer' $use
done
refuse 'no folder to make' 2 'folder is required' convert export runs/bare
for dropout in 1 nan; do refuse "a dropout of $dropout" 2 "--dropout: .*$dropout" convert import "$models/gpt2" runs/bad --dropout $dropout; done

# ---- Our template is exported
"$root/apps/examples/talks.sh" make talks 10
markers=()
for marker in im_start im_end begin_of_text start_header_id end_header_id eot_id; do markers+=(--special "<|$marker|>"); done
accept 'a vocabulary with markers' tokenize train talks/talks.jsonl --format messages --vocab 400 "${markers[@]}" -o tokenizer.json
small=(data=talks/talks.jsonl format=messages tokenizer=tokenizer.json model.layers=1 model.heads=2 model.d=16 model.ctx=96 batch=2 steps=2 threads=1 sample.tokens=0)
accept 'a run' train "${small[@]}" name=own
accept 'it goes out' convert export runs/own own
verdict 'which is not twice there' "$(grep chat_template own/tokenizer_config.json)"
verdict 'with the token that ends an answer' "$(grep -oE '"eos_token_id": [0-9]+' own/config.json | diff - <(grep -oE '"id": ?[0-9]+[^{}]*im_end' tokenizer.json | grep -oE '^"id": ?[0-9]+' | sed -E 's/"id": ?/"eos_token_id": /'))"
shows 'with its template' 'message\["content"\] \+ "<\|im_end\|>.*add_generation_prompt' own/chat_template.jinja
accept 'and as GGUF' convert export runs/own own.gguf --gguf f32
holds 'with the same template' grep -aF "$(cat own/chat_template.jinja)" own.gguf

# ---- Their template is imported and exported
accept 'ours comes back' convert import own runs/base
accept 'and goes out' convert export runs/base base
same 'with the same template' {own,base}/chat_template.jinja
# theirs NAME [FILE [MEMBER]]: the folder NAME with this template, and with this member of tokenizer_config.json in the export's form.
theirs() {
  rm -rf "$1" && cp -r base "$1" && rm "$1/chat_template.jinja"
  [ -z "${2:-}" ] || printf %b "$2" >"$1/chat_template.jinja"
  [ -z "${3:-}" ] || printf '%s,\n  "chat_template": %s\n}\n' "$(head -n -1 base/tokenizer_config.json)" "$3" >"$1/tokenizer_config.json"
}
# comes NAME LINE: the folder is imported as run NAME with this line about its template, and exported unchanged.
comes() {
  accept "$1 comes in" convert import "$1" "runs/$1"
  is 'it tells of its template' "chat: $2"$'\nthe run keeps this template for exports' tail -n +3 out
  accept "$1 goes out" convert export "runs/$1" "$1_back"
  verdict 'as it was' "$(diff -r "$1" "$1_back")"
}
message="{{ '<|im_start|>' + message.role + '\\\\n' + message.content + '<|im_end|>\\\\n' }}"
jinja="{#- \\303\\251\\t\\r -#}\\r\\n{%- for message in messages %}$message{%- endfor %}\\n\\n"
header="'<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n'"
llama3="\"{# \\\"é\\u0001 #}{% set loop_messages = messages %}{% for message in loop_messages %}{% set content = $header + message['content'] | trim + '<|eot_id|>' %}{% if loop.index0 == 0 %}{% set content = bos_token + content %}{% endif %}{{ content }}{% endfor %}\""
theirs file "$jinja" && comes file 'chatml: file/chat_template.jinja is chatml'
same 'the run keeps it' {file,runs/file}/chat_template.jinja
is 'and its key' 'chat: chatml' grep ^chat runs/file/config.yaml
theirs member '' "$llama3" && sed -i '3a \  "bos_token": "<|begin_of_text|>",' member/tokenizer_config.json && sed -i 's/"bos_token_id": null/"bos_token_id": 2/' member/{generation_,}config.json && sed -i -E 's/"eos_token_id": ([0-9]+)/"eos_token_id": [\n    \1,\n    5\n  ]/' member/{generation_,}config.json
comes member 'llama3: member/tokenizer_config.json is llama3'
is 'the run keeps it' "{\"chat_template\": $llama3}" cat runs/member/chat_template.json
is 'and its key' 'chat: llama3' grep ^chat runs/member/config.yaml
theirs both "$jinja" "$llama3" && comes both 'chatml: both/chat_template.jinja is chatml'
theirs list '' '[
    {
      "name": "tools",
      "template": "[INST]"
    },
    {
      "name": "default",
      "template": "'"{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ '<|im_start|>system\\nHelp.<|im_end|>\\n' }}{% endif %}{{'<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n'}}{% endfor %}"'"
    }
  ]' && comes list $'chatml: list/tokenizer_config.json is chatml that adds a system message;\nhere this message belongs in the data'
theirs unknown '[INST] {{ messages[0].content }} [/INST]' && comes unknown 'none: unknown/chat_template.jinja is neither chatml nor llama3'
theirs begins "{{ bos_token }}$jinja" && comes begins 'none: begins/chat_template.jinja is neither chatml nor llama3'
verdict 'and no key' "$(grep '^chat' runs/unknown/config.yaml)"
theirs many "$jinja" && yes '{{x}}' | tr -d '\n' | head -c 4000000 >many/chat_template.jinja && comes many 'none: many/chat_template.jinja is neither chatml nor llama3'
theirs lacks "$jinja" && rm lacks/generation_config.json && cp pieces/* lacks/ && comes lacks 'none: lacks/chat_template.jinja is chatml, but its tokenizer lacks the markers'
theirs lone "$jinja" && rm lone/tokenizer.json
accept 'a folder without a tokenizer' convert import lone runs/lone
is 'has none' 'lone/chat_template.jinja: the template is not imported without a tokenizer' eval 'tail -n +3 out; ls runs/lone | grep chat'
accept 'a tokenizer that is left out' convert import file runs/left_out --without-tokenizer
verdict 'takes its template with it' "$(tail -n +3 out; ls runs/left_out | grep chat)"
accept 'an imported run goes out as GGUF' convert export runs/list list.gguf --gguf f32
holds 'with their template' eval "grep -qaF 'tokenizer.chat_template' list.gguf && grep -qaF 'Help.<|im_end|>' list.gguf"
rm -rf bad && theirs bad "a\\377"
refuse 'no UTF-8' 1 'bad/chat_template\.jinja: byte 1 \(value 0xff\) .*; add --without-tokenizer to omit the tokenizer' convert import bad runs/bad
theirs bad && truncate -s 17M bad/chat_template.jinja
refuse 'too long a template' 1 'bad/chat_template\.jinja: .*16777216.*; add --without-tokenizer to omit the tokenizer' convert import bad runs/bad
for member in 7 '{"default": "a"}' '["a"]' '[{"name": "a"}]'; do
  theirs bad '' "$member"
  refuse "a member $member" 1 'bad/tokenizer_config\.json: chat_template: expected a string, or a list of objects with a "name" and a "template"; add --without-tokenizer to omit the tokenizer' convert import bad runs/bad
done

# ---- Conversations, and further training
printf 'Where is the kite?\nWhat colour is it?\n' | "$build/ricci-generate" runs/file --chat --tokens 5 >out 2>err
verdict 'an imported run talks' "$([ $? = 0 ] && [ ! -s err ] && [ "$(grep -ac '' out)" -ge 2 ] || echo 'it does not')"
refuse 'one of unknown markers' 1 '--chat: runs/unknown has not learned conversations; .*with --template' generate runs/unknown --chat
more=(data=text.txt model.ctx=96 batch=2 steps=1 threads=1 sample.tokens=0)
accept 'training on texts' train init=runs/file name=further "${more[@]}"
accept 'one step more' train runs/further steps=2
same 'takes the template along' {file,runs/further}/chat_template.jinja
prints 'training on conversations' "^starts from $PWD/runs/member/model\.safetensors$" train "${small[@]}" tokenizer=runs/member/tokenizer.json init=runs/member name=talking
is 'learns ours of its markers' 'chat: llama3' eval 'grep ^chat runs/talking/config.yaml; ls runs/talking | grep chat_template'
refuse 'a template that nothing reads' 1 'chat: is read only with init, or format: messages' train tiny.yaml chat=llama3

# ---- Killed at calls that change a file: at each in the long run
faults= call=1 step=$(few_or_all 4 1)
while rm -rf runs/half && ! signalled "9 $call" convert import both runs/half && [ $call -lt 200 ]; do
  call=$((call + step))
  if [ -e runs/half/model.safetensors ]; then continue; fi
  run convert import "$models/gpt2" runs/half || faults+=" before call $call: $(cat err)"
  faults+=$(ls runs/half | grep -E 'chat_template|tokenizer')
done
verdict 'an import that was killed leaves no tokenizer and no template to the next one' "$([ $call -gt 10 ] || echo "only $call calls")$faults"
faults= call=1
while rm -rf half && ! signalled "9 $call" convert export runs/both half && [ $call -lt 200 ]; do
  call=$((call + step))
  [ -e half/model.safetensors ] || run convert export runs/both half || faults+=" before call $call: $(cat err)"
  faults+=$(diff -r both half)
done
verdict 'an export that was killed goes on to the same folder' "$([ $call -gt 10 ] || echo "only $call calls")$faults"
finish
