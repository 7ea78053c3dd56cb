#!/usr/bin/env bash
# Conversations: a small model learns talks and answers others through ricci-generate --chat; killed and started again it ends with the
# same bytes. What is wrong with lines of messages ends in one line.
#   chat.sh build-folder
examples=$(cd "$(dirname "$0")/../../apps/examples" && pwd)
. "$(dirname "$0")/programs.sh" "$@"
RANDOM=2

"$examples/talks.sh" make talks 10
verdict 'talks are made' "$([ "$(sort -u talks/talks.jsonl | grep -c '')" = 500 ] && [ "$(grep -c '' talks/held_out.txt)" = 100 ] || echo 'other numbers')"
"$examples/talks.sh" make tickets 10 32
verdict 'questions may begin with numbers' "$(grep -oE 'Ticket [0-9]{32}: ' tickets/talks.jsonl | sort -u | grep -c '' | diff - <(echo 1000); for file in talks.jsonl plain.jsonl held_out.txt; do diff <(sed -E 's/Ticket [0-9]{32}: //g' tickets/$file) talks/$file; done)"
accept 'a vocabulary with the markers' tokenize train talks/talks.jsonl --vocab 400 --special '<|im_start|>' --special '<|im_end|>' -o talks/tokenizer.json

# ---- Learning
small=(data=talks/talks.jsonl format=messages tokenizer=talks/tokenizer.json model.layers=2 model.heads=4 model.d=64 model.ctx=96 batch=8 lr=3e-3 sample.tokens=0)
accept 'training' train "${small[@]}" steps=400 eval_every=400 name=talks
verdict 'counts are told before it' "$(head -1 out | diff - <(echo '500 conversations, 0 of them cut to a context of 96; 0 left out, which have no answer within it'))"
verdict 'the loss is that of answers' "$(grep -qE '^step 400: .*\(846 tokens\)$' out || shown out)"
told=$(sed -nE 's/^step 400: .*validation ([0-9.]+), .*/\1/p' out)
accept 'evaluation' eval runs/talks
verdict 'has the same loss' "$(grep -qF ": 846 tokens, context 96: $told nats per token" out || shown out)"
refuse 'windows' 1 '--stride: runs/talks reads whole conversations, not windows' eval runs/talks --stride 8
"$examples/talks.sh" score "$build" runs/talks talks 10 >out 2>err
verdict 'it answers talks that it has not seen' "$(diff out - <<<'10 of 10 talks')"

# ---- Turns with a cache, and lines of messages that are read as a whole
{ read -r first && read -r answer && read -r second && read -r follow; } <talks/held_out.txt
message() { printf '{"role": "%s", "content": "%s"}' "$1" "$2"; }
lines="{\"messages\": [$(message user "$first")]}
{\"messages\": [$(message user "$first"), $(message assistant "$answer"), $(message user "$second")]}"
"$build/ricci-generate" runs/talks --chat --jsonl --temperature 0 <<<"$lines" >out 2>err
verdict 'lines of messages have the same answers' "$(sed -E 's/.*"answer": "([^"]*)", "tokens": [0-9]+, "end": "stop".*/\1/' out | diff - <(printf '%s\n' "$answer" "$follow"))"
"$build/ricci-generate" runs/talks --chat --temperature 0 --tokens 2 <<<"$first"$'\n'"$second" >out 2>err
verdict 'an answer that is cut does not end the conversation' "$([ "$(grep -c '' out)" = 2 ] || echo 'expected two lines')"
accept 'another model' train tiny.yaml name=tiny steps=2
refuse 'a model that knows no template' 1 '--chat: runs/tiny did not learn conversations; --template names' generate runs/tiny --chat
refuse 'a prompt' 2 '--chat' generate runs/talks --chat --prompt a
refuse 'samples' 2 '--chat' generate runs/talks --chat --samples 2

# ---- Killed at drawn moments
short=("${small[@]}" steps=40 checkpoint_every=5 eval_every=20)
# killed_and_whole NAME WORD ...: a training in one piece as run NAME; the same as NAME_killed, killed 4 times.
killed_and_whole() {
  accept "a training, $1" train "${@:2}" "name=$1"
  for kill in {1..4}; do
    { RICCI_SIGNAL_AT="9 $((20 + RANDOM % 60))" LD_PRELOAD=$build/libricci-signal-at.so "$build/ricci-train" "${@:2}" "name=$1_killed" >out 2>err </dev/null; } 2>/dev/null
    [ $? = 137 ] || verdict "kill $kill of $1" 'it survived'
  done
  accept 'killed 4 times, it runs to the end' train "${@:2}" "name=$1_killed" threads=1
  verdict 'with the same model' "$(cmp "runs/$1/model.safetensors" "runs/$1_killed/model.safetensors" 2>&1)"
}
killed_and_whole whole "${short[@]}"
verdict 'the run keeps its template' "$(grep -q '^chat: .*chatml' runs/whole/config.yaml || instead grep chat runs/whole/config.yaml)"

# ---- Several conversations in a sequence
packed=("${short[@]}" pack=best batch=2)
killed_and_whole packed "${packed[@]}"
verdict 'it keeps the key' "$(grep -q '^pack: best' runs/packed/config.yaml || instead grep pack runs/packed/config.yaml)"
accept 'a mixer that hears by distance' train "${packed[@]}" name=dispatcher steps=3 model.mixer=dispatcher model.heads=1
accept 'its plan' plan "${packed[@]}" model.vocab=400
verdict 'has the starts in embeddings' "$(run plan "${packed[@]}" model.vocab=400 --tape; grep -c ' embedding ' out | diff - <(echo 2))"
refuse 'a mixer that does not know documents' 1 'model.mixer: metric, which does not keep packed documents apart, expected sdp, dispatcher, avgpool' train "${packed[@]}" name=bad model.mixer=metric
refuse 'several scales' 1 'model.family: topdown, which does not keep packed documents apart, expected decoder' train "${packed[@]}" name=bad model.family=topdown 'model.scales=[1,4]' '~model.layers'
refuse 'conversations in a stream' 1 'pack: stream, but format: messages has whole conversations, expected none or best' train "${short[@]}" name=bad pack=stream
refuse 'texts one by one' 1 'pack: none, but format: text has no conversations, expected stream or best' train tiny.yaml name=bad order=shuffled pack=none

accept 'short contexts' train "${small[@]}" context=14 steps=2 name=cut
verdict 'cut conversations are counted' "$(head -1 out | grep -qE '^[0-9,]+ conversations, [0-9,]+ of them cut to a context of 14; [1-9][0-9,]* left out' || instead head -1 out)"

# ---- What is refused
# refuse_line NAME PATTERN LINE
refuse_line() {
  printf '{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}\n%s\n' "$3" >bad.jsonl
  refuse "$1" 1 "$2" train "${small[@]}" data=bad.jsonl name=bad steps=1
}
refuse_line 'another role' "bad.jsonl:2: message 1: role 'tool', expected system, user, assistant" '{"messages": [{"role": "tool", "content": "a"}]}'
refuse_line 'a list' 'bad.jsonl:2: message 1: "content" is a list, expected a text' '{"messages": [{"role": "user", "content": [1]}]}'
refuse_line 'no conversation' 'bad.jsonl:2: expected an object with a list "messages"' '{"text": "a"}'
refuse_line 'nested JSON' 'bad.jsonl:2: JSON: the JSON is nested' "$(printf '%0200d' 0 | tr 0 '[')"
refuse_line 'no UTF-8' 'bad.jsonl: byte [0-9]+ .* is not' $'{"messages": [{"role": "user", "content": "\xff"}]}'
refuse_line 'a million messages' 'bad.jsonl:2: JSON: .*values' "$(awk 'BEGIN { printf "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}"; for (i = 1; i < 1000000; ++i) printf ",{\"role\": \"user\", \"content\": \"a\"}"; print "]}" }')"
refuse 'no markers' 1 'tokenizer: char, but format: messages needs one with the markers of chat' train data=talks/talks.jsonl format=messages name=bad
refuse 'an unknown template' 1 'chat: expected chatml, llama3, or the six strings' train "${small[@]}" chat=alpaca name=bad
refuse 'shards of them' 1 '--format: messages is read by ricci-train' prepare talks/talks.jsonl --format messages --output shards
exit $((failures > 0))
