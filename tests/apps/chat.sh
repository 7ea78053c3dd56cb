#!/usr/bin/env bash
# Conversations: a small model learns talks and answers others through ricci-generate --chat; packed, killed and started again it ends
# with the same bytes. What is wrong with lines of messages ends in one line.
#   chat.sh build-folder
. "$(dirname "$0")/outputs.sh" "$@"
talks=$root/apps/examples/talks.sh
RANDOM=2

"$talks" make talks 10
is 'talks are made' '500 100' eval 'echo $(sort -u talks/talks.jsonl | wc -l) $(wc -l <talks/held_out.txt)'
"$talks" make tickets 10 32
verdict 'questions may begin with numbers' "$(grep -oE 'Ticket [0-9]{32}: ' tickets/talks.jsonl | sort -u | grep -c '' | diff - <(echo 1000); for file in talks.jsonl plain.jsonl held_out.txt; do diff <(sed -E 's/Ticket [0-9]{32}: //g' tickets/$file) talks/$file; done)"
accept 'a vocabulary with the markers' tokenize train talks/talks.jsonl --vocab 400 --special '<|im_start|>' --special '<|im_end|>' -o talks/tokenizer.json

# ---- Learning
small=(data=talks/talks.jsonl format=messages tokenizer=talks/tokenizer.json model.layers=2 model.heads=4 model.d=64 model.ctx=96 batch=8 lr=3e-3 sample.tokens=0)
prints 'training, with counts told before it' '^500 conversations, 0 of them cut to a context of 96; 0 left out, which have no answer within it$' train "${small[@]}" steps=400 eval_every=400 name=talks
shows 'the loss is that of answers' '^step 400: .*\(846 tokens\)$'
told=$(sed -nE 's/^step 400: .*validation ([0-9.]+), .*/\1/p' out)
prints 'evaluation has the same loss' ": 846 tokens, context 96: $told nats per token" eval runs/talks
refuse 'windows' 1 '--stride: runs/talks reads whole conversations, not windows' eval runs/talks --stride 8
is 'it answers talks that it has not seen' '10 of 10 talks' "$talks" score "$build" runs/talks talks 10

# ---- Turns with a cache, and lines of messages that are read as a whole
{ read -r first && read -r answer && read -r second && read -r follow; } <talks/held_out.txt
message() { printf '{"role": "%s", "content": "%s"}' "$1" "$2"; }
lines="{\"messages\": [$(message user "$first")]}
{\"messages\": [$(message user "$first"), $(message assistant "$answer"), $(message user "$second")]}"
"$build/ricci-generate" runs/talks --chat --jsonl --temperature 0 <<<"$lines" >out 2>err
is 'lines of messages have the same answers' "$answer"$'\n'"$follow" sed -E 's/.*"answer": "([^"]*)", "tokens": [0-9]+, "end": "stop".*/\1/' out
"$build/ricci-generate" runs/talks --chat --temperature 0 --tokens 2 <<<"$first"$'\n'"$second" >out 2>err
is 'an answer that is cut does not end the conversation' 2 grep -c '' out
accept 'another model' train tiny.yaml name=tiny steps=2
refuse 'a model that knows no template' 1 '--chat: runs/tiny did not learn conversations; --template names' generate runs/tiny --chat
refuse 'a prompt' 2 '--chat' generate runs/talks --chat --prompt a
refuse 'samples' 2 '--chat' generate runs/talks --chat --samples 2

# ---- Several conversations in a sequence, killed at drawn moments
packed=("${small[@]}" model.d=16 model.layers=1 steps=20 checkpoint_every=5 eval_every=10 pack=best batch=2)
accept 'packed conversations' train "${packed[@]}" name=packed
for ((kill = $(few_or_all 2 8); kill > 0; --kill)); do
  signalled "9 $((20 + RANDOM % 30))" train "${packed[@]}" name=killed
  [ $? = 137 ] || verdict "kill $kill" 'it survived'
done
accept 'killed, they are read to the end' train "${packed[@]}" name=killed threads=1
same 'with the same model' runs/{packed,killed}/model.safetensors
shows 'the run keeps the packing' '^pack: best' runs/packed/config.yaml
shows 'and its template' '^chat: .*chatml' runs/packed/config.yaml
accept 'a mixer that hears by distance' train "${packed[@]}" name=dispatcher steps=3 model.mixer=dispatcher model.heads=1
accept 'its plan' plan "${packed[@]}" model.vocab=400 --tape
is 'has the starts in embeddings' 2 grep -c ' embedding ' out
refuse 'conversations in a stream' 1 'pack: stream, but format: messages has whole conversations, expected none or best' train "${small[@]}" name=bad pack=stream
refuse 'texts one by one' 1 'pack: none, but format: text has no conversations, expected stream or best' train tiny.yaml name=bad order=shuffled pack=none
prints 'cut conversations are counted' '^[0-9,]+ conversations, [0-9,]+ of them cut to a context of 14; [1-9][0-9,]* left out' train "${packed[@]}" pack=none context=14 steps=2 name=cut

# ---- What is refused
# refuse_line NAME PATTERN LINE
refuse_line() {
  printf '{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}\n%s\n' "$3" >bad.jsonl
  refuse "$1" 1 "$2" train "${small[@]}" data=bad.jsonl name=bad steps=1
}
refuse_line 'another role' "bad.jsonl:2: message 1: role 'tool', expected system, user, assistant" '{"messages": [{"role": "tool", "content": "a"}]}'
refuse_line 'no UTF-8' 'bad.jsonl: byte [0-9]+ .* is not' $'{"messages": [{"role": "user", "content": "\xff"}]}'
refuse_line 'a million messages' 'bad.jsonl:2: JSON: .*values' "$(awk 'BEGIN { printf "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}"; for (i = 1; i < 1000000; ++i) printf ",{\"role\": \"user\", \"content\": \"a\"}"; print "]}" }')"
refuse 'no markers' 1 'tokenizer: char, but format: messages needs one with the markers of chat' train data=talks/talks.jsonl format=messages name=bad
refuse 'shards of them' 1 '--format: messages is read by ricci-train' prepare talks/talks.jsonl --format messages --output shards
finish
