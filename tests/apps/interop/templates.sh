#!/usr/bin/env bash
# Templates of conversations in the exchange with Hugging Face: a folder's template names ours by its markers, is kept byte for byte and
# comes back in the form in which it came; the template of a run goes out in Jinja. tests/interop/templates.py has transformers read them.
#   templates.sh build-folder
examples=$(cd "$(dirname "$0")/../../../apps/examples" && pwd)
. "$(dirname "$0")/../programs.sh" "$@"

"$examples/talks.sh" make talks 10
markers=()
for marker in im_start im_end begin_of_text start_header_id end_header_id eot_id; do markers+=(--special "<|$marker|>"); done
accept 'a vocabulary with markers' tokenize train talks/talks.jsonl --vocab 400 "${markers[@]}" -o tokenizer.json
small=(data=talks/talks.jsonl format=messages tokenizer=tokenizer.json model.layers=1 model.heads=2 model.d=16 model.ctx=96 batch=2 steps=2 threads=1 sample.tokens=0)
accept 'a run' train "${small[@]}" name=own
accept 'another with six strings' train "${small[@]}" name=six 'chat=["<|im_start|>", "S\t{content}<|im_end|>\n", "\"{{{content}}}\"\\<|im_end|>", "A{content}<|im_end|>%}", "<|im_end|>", "A"]'

# ---- Ours goes out
accept 'it goes out' convert export runs/own own
chatml='{{ "" }}{% for message in messages %}'
for role in system user assistant; do
  [ $role = system ] && chatml+='{% if message["role"] == "system" %}' || chatml+="{% elif message[\"role\"] == \"$role\" %}"
  chatml+="{{ \"<|im_start|>$role\\n\" + message[\"content\"] + \"<|im_end|>\\n\" }}"
done
refusal='{% else %}{{ raise_exception("a role other than system, user and assistant") }}{% endif %}{% endfor %}'
chatml+="$refusal"'{% if add_generation_prompt %}{{ "<|im_start|>assistant\n" }}{% endif %}'
verdict 'with its template' "$(cmp own/chat_template.jinja <(printf %s "$chatml") 2>&1)"
verdict 'which is not twice there' "$(grep chat_template own/tokenizer_config.json)"
verdict 'with the token that ends an answer' "$(grep -oE '"eos_token_id": [0-9]+' own/config.json | diff - <(grep -oE '"id": ?[0-9]+[^{}]*im_end' tokenizer.json | grep -oE '^"id": ?[0-9]+' | sed -E 's/"id": ?/"eos_token_id": /'))"
accept 'six strings go out' convert export runs/six six
verdict 'with their escapes' "$(grep -qF '{{ "S\t" + message["content"] + "<|im_end|>\n" }}{% elif message["role"] == "user" %}{{ "\"{{" + message["content"] + "}}\"\\<|im_end|>" }}{% elif message["role"] == "assistant" %}{{ "A" + message["content"] + "<|im_end|>%}" }}' six/chat_template.jinja || shown six/chat_template.jinja)"
accept 'and as GGUF' convert export runs/own own.gguf --gguf f32
verdict 'with the same template' "$(grep -qaF "$chatml" own.gguf || echo no)"
accept 'a run of texts' train tiny.yaml name=texts tokenizer=bpe model.vocab=280
accept 'goes out, too' convert export runs/texts texts
verdict 'without a template' "$(ls texts | xargs | diff - <(echo config.json model.safetensors tokenizer.json tokenizer_config.json))"

# ---- Theirs comes in and goes out
accept 'ours comes back' convert import own runs/base
accept 'and goes out' convert export runs/base base
verdict 'with the same template' "$(cmp own/chat_template.jinja base/chat_template.jinja 2>&1)"
# theirs NAME [FILE [MEMBER]]: the folder NAME with this template, and this member of tokenizer_config.json as export writes it.
theirs() {
  rm -rf "$1" && cp -r base "$1" && rm "$1/chat_template.jinja"
  [ -z "${2:-}" ] || printf %b "$2" >"$1/chat_template.jinja"
  [ -z "${3:-}" ] || printf %s "$(head -n -1 base/tokenizer_config.json)" >"$1/tokenizer_config.json"
  [ -z "${3:-}" ] || printf ',\n  "chat_template": %s\n}\n' "$3" >>"$1/tokenizer_config.json"
}
# comes NAME LINE: it is imported as run NAME with this line about its template, and goes out again as it was.
comes() {
  accept "$1 comes in" convert import "$1" "runs/$1"
  verdict 'it tells of its template' "$(tail -n +2 out | diff - <(echo "$2"))"
  accept "$1 goes out" convert export "runs/$1" "$1_back"
  verdict 'as it was' "$(diff -r "$1" "$1_back")"
}
kept='; the run keeps this template for exports'
jinja="{%- for m in messages %}\\r\\n{{ '<|im_start|>' + m.role + '\\\\n' + m.content + '<|im_end|>' }}\\303\\251\\t{%- endfor %}\\n\\n"
theirs file "$jinja" && comes file "chat: chatml: file/chat_template.jinja has the markers of chatml$kept"
verdict 'the run keeps it' "$(cmp file/chat_template.jinja runs/file/chat_template.jinja 2>&1; grep -qx 'chat: chatml' runs/file/config.yaml || instead grep chat runs/file/config.yaml)"
llama3='"{{ bos_token }}<|start_header_id|>user<|end_header_id|>\n\n\"é\u0001\\\\<|eot_id|>"'
theirs member '' "$llama3" && comes member "chat: llama3: member/tokenizer_config.json has the markers of llama3$kept"
verdict 'the run keeps it' "$(cmp runs/member/chat_template.json <(echo "{\"chat_template\": $llama3}") 2>&1; grep -qx 'chat: llama3' runs/member/config.yaml || instead grep chat runs/member/config.yaml)"
theirs both "$jinja" "$llama3" && comes both "chat: chatml: both/chat_template.jinja has the markers of chatml$kept"
theirs list '' '[{"name":"tools","template":"[INST]"},{"name":"default","template":"<|im_start|>a<|im_end|>"}]' && comes list "chat: chatml: list/tokenizer_config.json has the markers of chatml$kept"
theirs unknown '[INST] {{ messages[0].content }} [/INST]' && comes unknown "chat: none: unknown/chat_template.jinja has the markers of neither chatml nor llama3$kept"
verdict 'and no key' "$(grep '^chat' runs/unknown/config.yaml)"
theirs phi '<|im_start|>user<|im_sep|>a<|im_end|>' && comes phi "chat: none: phi/chat_template.jinja has the markers of neither chatml nor llama3$kept"
theirs large "$(printf '%010000000d' 0)<|im_start|><|im_end|>" && comes large "chat: chatml: large/chat_template.jinja has the markers of chatml$kept"
theirs lacks "$jinja" && cp texts/* lacks/
comes lacks "chat: none: lacks/chat_template.jinja has the markers of chatml, which its tokenizer lacks$kept"
theirs more "$jinja" && mkdir more/additional_chat_templates
accept 'a folder of templates beside it' convert import more runs/more
verdict 'is named' "$(tail -n +2 out | diff - <(echo "chat: chatml: more/chat_template.jinja has the markers of chatml$kept, and not additional_chat_templates"))"
theirs bare "$jinja" && rm bare/tokenizer.json
accept 'a folder without a tokenizer' convert import bare runs/bare
verdict 'has none' "$(tail -n +2 out | diff - <(echo 'bare/chat_template.jinja: its template is left out, as the folder has no tokenizer'); ls runs/bare | grep chat)"
accept 'a tokenizer that is left out' convert import file runs/left_out --without-tokenizer
verdict 'takes its template with it' "$(tail -n +2 out; ls runs/left_out | grep chat)"
accept 'an imported run goes out as GGUF' convert export runs/list list.gguf --gguf f32
verdict 'with their template' "$(grep -qaF 'tokenizer.chat_template' list.gguf && grep -qaF '<|im_start|>a<|im_end|>' list.gguf || echo no)"

# ---- Mistakes
rm -rf bad && theirs bad "a\\377"
refuse 'no UTF-8' 1 'bad/chat_template\.jinja: byte 1 \(value 0xff\) .*; --without-tokenizer leaves it out' convert import bad runs/bad
theirs bad && truncate -s 17M bad/chat_template.jinja
refuse 'too long a template' 1 'bad/chat_template\.jinja: .*16777216.*; --without-tokenizer leaves it out' convert import bad runs/bad
for member in 7 '{"default": "a"}' '["a"]' '[{"name": "a"}]'; do
  theirs bad '' "$member"
  refuse "a member $member" 1 'bad/tokenizer_config\.json: chat_template: expected a text, or a list of objects with a "name" and a "template"; --without-tokenizer leaves it out' convert import bad runs/bad
done

# ---- Talking, and training further
printf 'Where is the kite?\nWhat colour is it?\n' | "$build/ricci-generate" runs/file --chat --tokens 5 >out 2>err
verdict 'an imported run talks' "$([ $? = 0 ] && [ ! -s err ] && [ "$(grep -ac '' out)" -ge 2 ] || echo 'it does not')"
refuse 'one of unknown markers' 1 '--chat: runs/unknown did not learn conversations; --template names' generate runs/unknown --chat
more=(data=text.txt model.ctx=96 batch=2 steps=1 threads=1 sample.tokens=0)
accept 'training on texts' train init=runs/file name=further "${more[@]}"
verdict 'takes the template along' "$(cmp file/chat_template.jinja runs/further/chat_template.jinja 2>&1; grep -qx 'chat: chatml' runs/further/config.yaml || instead grep chat runs/further/config.yaml; head -1 out | diff - <(echo "starts from $PWD/runs/file/model.safetensors"))"
accept 'one step more' train runs/further steps=2
verdict 'leaves it there' "$(cmp file/chat_template.jinja runs/further/chat_template.jinja 2>&1)"
accept 'it goes out' convert export runs/further further
verdict 'with it' "$(cmp file/chat_template.jinja further/chat_template.jinja 2>&1)"
accept 'training on conversations' train "${small[@]}" tokenizer=runs/member/tokenizer.json init=runs/member name=talking
verdict 'learns ours of its markers' "$(grep -qx 'chat: llama3' runs/talking/config.yaml || instead grep chat runs/talking/config.yaml; ls runs/talking | grep chat_template)"
verdict 'and says so' "$(grep -qx "starts from $PWD/runs/member/model.safetensors; its imported template of conversations is not taken over" out || shown out)"
accept 'it goes out' convert export runs/talking talking
verdict 'with ours' "$(grep -qF '{{ "<|begin_of_text|>" }}' talking/chat_template.jinja || shown talking/chat_template.jinja; grep chat_template talking/tokenizer_config.json)"
accept 'training on texts after conversations' train init=runs/own name=after "${more[@]}"
verdict 'keeps the key' "$(grep -qx 'chat: chatml' runs/after/config.yaml || instead grep chat runs/after/config.yaml)"
refuse 'a template that nothing reads' 1 'chat: nothing reads it here, only init, or format: messages' train tiny.yaml chat=llama3

# ---- Killed at each call that changes a file
killed() { { RICCI_SIGNAL_AT="9 $1" LD_PRELOAD=$build/libricci-signal-at.so "$build/ricci-convert" "${@:2}" >out 2>err </dev/null; } 2>/dev/null; }
faults= call=0
while [ $call -lt 200 ] && rm -rf runs/half && call=$((call + 1)) && ! killed $call import both runs/half; do
  if [ -e runs/half/model.safetensors ]; then continue; fi
  run convert import texts runs/half || faults+=" after call $call: $(cat err)"
  faults+=$(ls runs/half | grep chat_template)
done
verdict 'an import that was killed leaves no template to the next one' "$([ $call -gt 10 ] || echo "only $call calls")$faults"
faults= call=0
while [ $call -lt 200 ] && rm -rf half && call=$((call + 1)) && ! killed $call export runs/both half; do
  [ -e half/config.json ] || run convert export runs/both half || faults+=" after call $call: $(cat err)"
  faults+=$(diff -r both half)
done
verdict 'an export that was killed goes on to the same folder' "$([ $call -gt 10 ] || echo "only $call calls")$faults"
exit $((failures > 0))
