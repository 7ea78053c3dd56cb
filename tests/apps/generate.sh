#!/usr/bin/env bash
# ricci generate: prompts, multiple texts, stop strings, JSON lines, and samples during training. A small model learns conversations and
# answers others; packed, killed and restarted, it ends with the same bytes. A wrong line of messages gives one line of error.
#   generate.sh build-folder
. "$(dirname "$0")/outputs.sh" "$@"

accept 'a small model' train tiny.yaml name=tiny steps=20
# Temperature 0, so texts are equal.
greedy=(runs/tiny --temperature 0 --tokens 30)
# from_stdin INPUT ARGUMENT ...: ricci generate with that input.
from_stdin() { printf "$1" | "$build/ricci-generate" "${@:2}" >out 2>err; }

# ---- Prompts
accept 'a prompt' generate "${greedy[@]}" --prompt $'the quick\nbrown'
cp out expected
is 'stands first' $'the quick\nbrown' eval 'head -c 15 out; echo'
printf 'the quick\nbrown' >prompt.txt
for words in '--prompt-file prompt.txt' '--prompt -' '--prompt-file -'; do
  "$build/ricci-generate" "${greedy[@]}" $words <prompt.txt >out 2>err
  same "the same with $words" expected out
done
printf '\xef\xbb\xbfthe quick\r\nbrown' >windows.txt
for words in '--prompt-file windows.txt' '--prompt -' '--prompt-file -'; do
  "$build/ricci-generate" "${greedy[@]}" $words <windows.txt >out 2>err
  same "line ends and a mark of Windows are read as in every text, $words" expected out
done
printf 'caf\xe9' >latin1.txt
refuse 'a prompt that is no text' 1 'latin1\.txt: byte 3 \(value 0xe9\) is not valid UTF-8' generate runs/tiny --prompt-file latin1.txt
refuse 'an unknown escape' 1 "--prompt: unknown escape '.q' at byte 4; " generate runs/tiny --prompt 'the \q'
refuse 'two prompts' 2 '--prompt' generate runs/tiny --prompt a --prompt-file prompt.txt
refuse 'an empty prompt' 1 "the prompt '' has no tokens for the char tokenizer" generate runs/tiny --prompt ''

# ---- A terminal does not get escape sequences of a text
accept 'a model of bytes' train tiny.yaml name=bytes tokenizer=byte
escape=(generate runs/bytes --prompt $'a\x1b[2Jb\xc2\x9b''\n\tc' --tokens 0)
accept 'a prompt with an escape sequence' "${escape[@]}"
is 'is written as it is' $'a\x1b[2Jb\xc2\x9b\n\tc' cat out
python3 -c 'import pty, sys; pty.spawn(sys.argv[1:])' "$build/ricci-generate" "${escape[@]:1}" </dev/null >out 2>err
is 'but not to a terminal' $'a [2Jb  \n\tc' eval "head -2 out | tr -d '\r'"

# ---- Multiple texts
several=(generate runs/tiny --prompt the --tokens 20 --samples 3 --seed 4)
accept 'three texts' "${several[@]}"
is 'have lines between them' 2 grep -c '^---------------$' out
accept 'as lines of JSON' "${several[@]}" --jsonl
is 'with the number of the sample' $'"sample":0\n"sample":1\n"sample":2' grep -oE '"sample":[0-9]' out
is 'which are not alike' 3 eval "grep -oE '\"text\":\".*\"tokens\"' out | sort -u | wc -l"
cp out expected
accept 'the same seed' "${several[@]}" --jsonl --threads 2
same 'writes the same texts' expected out

# ---- Stop strings
whole=$("$build/ricci-generate" "${greedy[@]}" --prompt the)
text=${whole#the}
stop=${text:8:3}
printf 'the%s\n' "${text%%"$stop"*}" >expected
accept 'a stop string' generate "${greedy[@]}" --prompt the --stop "$stop" --stop never
same 'ends the text in front of it' expected out
prints 'and is told in JSON' '"end":"stop"}$' generate "${greedy[@]}" --prompt the --stop "$stop" --jsonl

# ---- The end of documents ends a text
for ((i = 0; i < 60; ++i)); do echo '{"text": "a b"}'; done >documents.jsonl
printf '[UNK]\na\nb\n' >vocab.txt
for kind in char 'word' 'bpe model.vocab=1000' "$folder/vocab.txt eos=document"; do
  rm -rf runs/ended
  accept "documents: $kind" train tiny.yaml name=ended data=documents.jsonl format=jsonl steps=200 lr=1e-2 tokenizer=$kind \
    sample.tokens=20 sample.temperature=0
  is 'its sample is one of them' 'a b' sed '1,/^sample after step 200:$/d' out
  prints 'a text ends where they do' '"text":" ?b","tokens":[23],"end":"stop"' generate runs/ended --prompt a --temperature 0 --jsonl
done

# ---- Lines
from_stdin '\xef\xbb\xbf{"prompt": "the"}\r\n\r\n  \n{"prompt": "fox", "id": 3}\n\n' "${greedy[@]}" --jsonl
is 'a line for each prompt' $'{"prompt":"the"\n{"prompt":"fox"' grep -oE '^\{"prompt":"[a-z]+"' out
is 'with tokens and end' 2 grep -c '"tokens":30,"end":"length"}$' out
from_stdin '{"prompt": "the"}\n\n{"text": "fox"}\n' "${greedy[@]}" --jsonl
verdict 'a line without a prompt is refused' "$([ $? = 1 ] && diff err - <<<'ricci generate: line 3: expected an object with a string "prompt"')"
is 'and each line is answered' $'{"prompt":"the"\n{"error":"line 3: expected an object with a string \\"prompt\\""}' sed 's/,.*//' out
from_stdin '{"prompt": "the"}\n{"prompt": "\xe2\x82\xac"}\n{"prompt": "fox"}\n' "${greedy[@]}" --jsonl
verdict 'an unknown character fails only its line' "$([ $? = 1 ] && grep -q '^ricci generate: line 2: char tokenizer: ' err && [ "$(grep -c '"prompt":' out)" = 2 ] || cat out err)"
# ---- Samples while a model is trained
accept 'a sample every 4 steps' train tiny.yaml name=sampled steps=10 sample.tokens=12 sample.every=4 sample.prompt=lazy
is 'each under a heading' $'sample after step 4:\nsample after step 8:\nsample after step 10:' grep '^sample after' out
is 'two on the way and one at the end' 3 grep -c '^lazy' out
accept 'none on the way' train tiny.yaml name=plain steps=10 sample.tokens=12 sample.prompt=lazy
same 'changes no weight' runs/{sampled,plain}/model.safetensors

# ---- Conversations
talks=$root/apps/examples/talks.sh
RANDOM=2
"$talks" make talks 10
is 'talks are made' '500 100' eval 'echo $(sort -u talks/talks.jsonl | wc -l) $(wc -l <talks/held_out.txt)'
"$talks" make tickets 10 32
verdict 'questions may begin with numbers' "$(grep -oE 'Ticket [0-9]{32}: ' tickets/talks.jsonl | sort -u | grep -c '' | diff - <(echo 1000); for file in talks.jsonl plain.jsonl held_out.txt; do diff <(sed -E 's/Ticket [0-9]{32}: //g' tickets/$file) talks/$file; done)"
accept 'a vocabulary with the markers' tokenize train talks/talks.jsonl --format messages --vocab 400 --special '<|im_start|>' --special '<|im_end|>' -o talks/tokenizer.json

small=(data=talks/talks.jsonl format=messages tokenizer=talks/tokenizer.json model.layers=2 model.heads=4 model.d=64 model.ctx=96 batch=8 lr=3e-3 sample.tokens=0)
prints 'training, with counts told before it' '^500 conversations$' train "${small[@]}" steps=400 eval_every=400 name=talks
shows 'the loss is that of answers' '^step 400: .*\(784 tokens\)$'
told=$(sed -nE 's/^step 400: .*validation ([0-9.]+), .*/\1/p' out)
prints 'evaluation has the same loss' "^$told nats per token" eval runs/talks
refuse 'windows' 1 '--stride: runs/talks scores conversations separately, not in windows' eval runs/talks --stride 8
is 'it answers talks that it has not seen' '10 of 10 talks' "$talks" score "$build" runs/talks talks 10

# ---- Turns with a cache, and complete lines of messages
{ read -r first && read -r answer && read -r second && read -r follow; } <talks/held_out.txt
message() { printf '{"role": "%s", "content": "%s"}' "$1" "$2"; }
lines="{\"messages\": [$(message user "$first")]}
{\"messages\": [$(message user "$first"), $(message assistant "$answer"), $(message user "$second")]}"
"$build/ricci-generate" runs/talks --chat --jsonl --temperature 0 <<<"$lines" >out 2>err
is 'lines of messages have the same answers' "$answer"$'\n'"$follow" sed -E 's/.*"answer":"([^"]*)","tokens":[0-9]+,"end":"stop".*/\1/' out
"$build/ricci-generate" runs/talks --chat --temperature 0 --tokens 2 <<<"$first"$'\n'"$second" >out 2>err
is 'an answer that is cut does not end the conversation' 2 grep -c '' out
accept 'a text ends where an answer does' generate runs/talks --temperature 0 --tokens 90 --jsonl --prompt "$(printf '<|im_start|>user\\n%s<|im_end|>\\n<|im_start|>assistant\\n' "$first")"
is 'as in the export' "$answer stop" sed -E 's/.*"text":"([^"]*)","tokens":[0-9]+,"end":"([a-z]*)".*/\1 \2/' out
accept 'a run that continues, with a sample' train runs/talks steps=401 sample.tokens=60
first_held=$(sed -n '/^sample after step 401:$/,$p' out)
verdict 'the sample answers the first question of the validation text' "$(case $first_held in *'<|im_start|>user'$'\n'*'<|im_end|>'*'<|im_start|>assistant'$'\n'[A-Z]*.) ;; *) echo "$first_held" ;; esac)"
accept 'a prompt that was given' train runs/talks steps=402 sample.prompt=Where
is 'is continued as it is' 1 grep -c '^Where' out
refuse 'a model that knows no template' 1 '--chat: runs/tiny has not learned conversations; .*with --template' generate runs/tiny --chat
refuse 'a prompt' 2 '--chat' generate runs/talks --chat --prompt a
refuse 'samples' 2 '--chat' generate runs/talks --chat --samples 2

# ---- Multiple conversations in a sequence, killed at random moments
packed=("${small[@]}" model.d=16 model.layers=1 steps=20 checkpoint_every=5 eval_every=10 pack=best batch=2)
accept 'packed conversations' train "${packed[@]}" name=packed
for ((kill = $(few_or_all 2 8); kill > 0; --kill)); do
  signalled "9 $((20 + RANDOM % 30))" train "${packed[@]}" name=killed
  [ $? = 137 ] || verdict "kill $kill" 'it survived'
done
accept 'killed, they are read to the end' train "${packed[@]}" name=killed threads=1
same 'with the same model' runs/{packed,killed}/model.safetensors
shows 'the run keeps the packing' '^pack: best' runs/packed/config.yaml
is 'and its template' chatml trained runs/packed/checkpoints/step-00000020.safetensors chat
refuse 'conversations in a stream' 1 'pack: stream, but format messages must not cut conversations, expected none or best' train "${small[@]}" name=bad pack=stream
refuse 'texts one by one' 1 'pack: none requires a format with answers, not text; expected stream or best' train tiny.yaml name=bad order=shuffled pack=none
prints 'cut conversations are counted' '^[0-9,]+ conversations, [1-9][0-9,]* cut at 14 tokens,$' train "${packed[@]}" pack=none context=14 steps=2 name=cut

# ---- Pairs of a prompt and its answer: all words of three letters, reversed
for a in a b c d; do for b in a b c d; do for c in a b c d; do echo "{\"id\": 1, \"prompt\": \"$a$b$c.\", \"answer\": \"$c$b$a\"}"; done; done; done | shuf --random-source=<(yes) >pairs.jsonl
pairs=(data=pairs.jsonl format=pairs name=pairs model.layers=2 model.heads=2 model.d=32 model.ctx=16 batch=16 lr=1e-2 steps=300)
accept 'pairs are learned' train "${pairs[@]}" sample.temperature=0
is 'the sample is a prompt of the validation text and its answer' 1 grep -cxE '([a-d])([a-d])([a-d])\.\3\2\1' out
"$build/ricci-generate" runs/pairs --jsonl --temperature 0 <pairs.jsonl >out 2>err
verdict 'each answer ends with <eos>, as it was learned' "$(python3 -c '
import json
for given, written in zip(open("pairs.jsonl"), open("out"), strict=True):
    given, written = json.loads(given), json.loads(written)
    if (written["text"], written["tokens"], written["end"]) != (given["answer"], 4, "stop"): print(given, written)' 2>&1)"
prints 'evaluation counts them' 'exact answers: 100\.0%' eval runs/pairs
refuse 'other objects' 1 'talks.jsonl:1: expected an object with the string members "prompt" and "answer"' train "${pairs[@]/#data=*/data=talks/talks.jsonl}" name=bad
refuse 'pairs without their format' 1 'pairs.jsonl:1: has no text "text"; format pairs reads prompts and answers' train data=pairs.jsonl name=bad

# ---- Errors
# refuse_line NAME PATTERN LINE
refuse_line() {
  printf '{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}\n%s\n' "$3" >bad.jsonl
  refuse "$1" 1 "$2" train "${small[@]/#data=*/data=bad.jsonl}" name=bad steps=1
}
refuse_line 'another role' "bad.jsonl:2: message 1: role 'tool', expected system, user, assistant" '{"messages": [{"role": "tool", "content": "a"}]}'
refuse_line 'no UTF-8' 'bad.jsonl: byte [0-9]+ .* is not' $'{"messages": [{"role": "user", "content": "\xff"}]}'
refuse_line 'a million messages' 'bad.jsonl:2: JSON: .*values' "$(awk 'BEGIN { printf "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}"; for (i = 1; i < 1000000; ++i) printf ",{\"role\": \"user\", \"content\": \"a\"}"; print "]}" }')"
refuse 'no markers' 1 'tokenizer: char, but format messages needs a tokenizer with chat markers' train data=talks/talks.jsonl format=messages name=bad
finish
