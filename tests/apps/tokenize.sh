#!/usr/bin/env bash
# ricci-tokenize: vocabularies from texts, lines of JSON in and out, errors in one line; and runs that are trained with them.
#   tokenize.sh build-folder
small=$(cd "$(dirname "$0")/../data/tokenizers/small" && pwd)
. "$(dirname "$0")/programs.sh" "$@"

# given NAME INPUT EXPECTED ARGUMENT ...: what ricci-tokenize writes for an input on stdin.
given() {
  printf "$2" | "$build/ricci-tokenize" "${@:4}" >out 2>err
  verdict "$1" "$([ "$(cat out; echo .)" = "$(printf "$3"; echo .)" ] || echo "expected $3")"
}

# refuse_input NAME INPUT PATTERN ARGUMENT ...: one line of error for an input on stdin.
refuse_input() {
  printf "$2" | "$build/ricci-tokenize" "${@:4}" >out 2>err
  local code=$?
  verdict "$1" "$([ $code = 1 ] && [ "$(grep -c '' err)" = 1 ] && grep -qE "^ricci-tokenize: $3" err || echo "exit code $code, expected one line with $3")"
}

# ---- Vocabularies
accept 'train BPE' tokenize train text.txt --vocab 290 -o bpe.json
verdict 'it tells what it made' "$(diff out - <<<'bpe.json: bpe, 290 tokens')"
accept 'the same on two threads' tokenize train text.txt --vocab 290 -o again.json --threads 2
verdict 'the files are equal' "$(cmp bpe.json again.json 2>&1)"
accept 'train WordPiece' tokenize train text.txt --kind wordpiece --vocab 90 --lowercase -o wordpiece.json
accept 'train words' tokenize train text.txt --kind word --min-count 1 --eos line -o word.json
accept 'keep what a text needs' tokenize train text.txt --from "$small/gpt2.json" -o fewer.json
accept 'keep everything' tokenize train text.txt --from "$small/gpt2.json" --keep-all -o all.json
verdict 'all pieces are there' "$(diff out - <<<'all.json: bpe, 600 tokens')"
accept 'tokens behind the vocabulary' tokenize train text.txt --from wordpiece.json --special '[NEW]' --special 'lazy dog' -o special.json
"$build/ricci-tokenize" encode --tokenizer special.json <<<'[NEW]lazy dog[NEW]' >out 2>err || echo "exit code $?" >>err
verdict 'such tokens are one id each, wherever they are' "$(awk 'NF == 3 && $1 == $3 && $2 == $1 + 1 { ++right } END { exit !(NR == 1 && right == 1) }' out && [ ! -s err ] || shown out err)"
refuse 'a token that the vocabulary has' 1 "special piece '\\[MASK\\]': the vocabulary has it already, as 4" tokenize train text.txt --from wordpiece.json --special '[MASK]'
refuse 'keep everything of nothing' 2 '--keep-all requires --from' tokenize train text.txt --vocab 290 --keep-all
accept 'count' tokenize count text.txt --tokenizer word.json
verdict 'ten words and <eos> in each of 60 lines' "$(grep -q '^text.txt: 660 tokens, 2811 bytes, ' out || echo 'expected 660 tokens')"
refuse 'no size' 1 'bpe tokenizer: the size of the vocabulary that is to be trained is not given' tokenize train text.txt
refuse 'unknown kind' 1 '--kind: expected one of char, byte, word, bpe, wordpiece, got morse' tokenize train text.txt --kind morse
refuse 'unknown pattern' 1 'split pattern: unknown name gpt9, known are gpt2, llama3, qwen2, smollm' tokenize train text.txt --vocab 300 --split gpt9
given 'bytes are their own ids' 'ab c' '97 98 32 99 \n' encode --tokenizer byte
refuse 'no command' 2 'a command is required: train, encode, decode, chat, count ' tokenize
printf 'caf\xe9\n' >latin1.txt
refuse 'text that is not UTF-8' 1 'latin1\.txt: wordpiece tokenizer: byte 3 \(value 0xe9\) is not valid UTF-8' tokenize train latin1.txt --kind wordpiece --vocab 60

# Every kind of tokenizer with every option of its training: another vocabulary, or an error that names the option.
declare -A size=([bpe]='--vocab 290' [wordpiece]='--vocab 90')
for kind in char byte word bpe wordpiece; do
  accept "a vocabulary of kind $kind" tokenize train text.txt --kind $kind ${size[$kind]:-} -o kind.json
  for option in "--vocab $([ $kind = word ] && echo 7 || echo 280)" '--min-count 100' '--special <zz>' '--split llama3' '--alphabet 5' '--lowercase'; do
    given=${size[$kind]:-}
    [ "${option% *}" != --vocab ] || given=
    if run tokenize train text.txt --kind $kind $given $option -o other.json; then
      verdict "$kind $option: another vocabulary" "$(! cmp -s kind.json other.json || echo 'the same')"
    else
      verdict "$kind $option: an error" "$(grep -qE "^ricci-tokenize: ${option% *}: --kind $kind does not read it, only [a-z, ]+$" err || echo 'expected a line that says so')"
    fi
  done
done
for option in '--kind word' '--vocab 280' '--min-count 3' '--split llama3' '--alphabet 5'; do
  refuse "$option beside --from" 2 "--from excludes ${option% *}|${option% *} excludes --from" tokenize train text.txt --from bpe.json $option
done
refuse 'a piece that stands nowhere' 2 '--eos-piece requires --eos' tokenize train text.txt --vocab 290 --eos-piece '<end>'
refuse 'lines of JSON and two bytes per id' 2 '--(jsonl|u16) excludes --(jsonl|u16)' tokenize encode --tokenizer bpe.json --jsonl --u16
refuse 'lines of JSON and a text' 2 '(--jsonl|texts) excludes (--jsonl|texts)' tokenize encode text.txt --tokenizer bpe.json --jsonl

# ---- Texts to ids and back
given 'lines of JSON' '{"text": "a\\u00e9"}\n{"x": [1], "text": ""}\n' '{"ids": [65, 128, 103]}\n{"ids": []}\n' encode --tokenizer "$small/gpt2.json" --jsonl
given 'lines of ids' '{"ids": [65, 128, 103]}\n{"ids": [128]}' '{"text": "a\\u00e9"}\n{"text": "\\ufffd"}\n' decode --tokenizer "$small/gpt2.json" --jsonl
given 'plain text' 'dog\n' '68 79 71 199 \n' encode --tokenizer "$small/gpt2.json"
given 'plain ids' '68 79\n71 199' 'dog\n' decode --tokenizer "$small/gpt2.json"
accept 'a file to two bytes per id' tokenize encode text.txt --tokenizer bpe.json --u16
verdict 'they are as many as ids' "$([ "$(wc -c <out)" = "$((2 * $("$build/ricci-tokenize" encode text.txt --tokenizer bpe.json | wc -w)))" ] || echo 'another number')"
"$build/ricci-tokenize" encode text.txt --tokenizer bpe.json | "$build/ricci-tokenize" decode --tokenizer bpe.json | cmp - text.txt >out 2>err
verdict 'a text comes back' "$(cat out err)"
template='"post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<|begin_of_text|>"}},{"Sequence":{"id":"A"}}]}'
sed "s/\"post_processor\":null/$template/" "$small/llama3.json" >first.json
given 'a first token is not shown' 'dog\n' '70 81 73 201 \n' encode --tokenizer first.json
given 'unless it is asked for' 'dog\n' '0 70 81 73 201 \n' encode --tokenizer first.json --special
given 'in lines of JSON, too' '{"text": ""}\n' '{"ids": [0]}\n' encode --tokenizer first.json --special --jsonl
accept 'and in files' tokenize encode text.txt --tokenizer first.json --special
verdict 'once' "$(tr ' ' '\n' <out | grep -cx 0 | diff - <(echo 1))"
accept 'it is not counted' tokenize count text.txt --tokenizer first.json
verdict 'as before' "$(mv out counted; run tokenize count text.txt --tokenizer "$small/llama3.json"; diff out counted)"
mkfifo ask
"$build/ricci-tokenize" encode --tokenizer "$small/gpt2.json" --jsonl <ask >answers 2>err &
background=$!
exec 7>ask
echo '{"text": "a"}' >&7
await '[ -s answers ]'
verdict 'a line is answered before the next is there' "$(diff answers - <<<'{"ids": [65]}')"
exec 7>&-
ended 100

# ---- Input that cannot be
refuse_input 'no JSON' '{"text": "a"}\n{"text": \n' 'line 2: JSON: not JSON: fault at byte [0-9]+ of 9' encode --tokenizer "$small/gpt2.json" --jsonl
verdict 'the lines before it are answered' "$(diff out - <<<'{"ids": [65]}')"
refuse_input 'no text' '{"words": "a"}\n' 'line 1: expected an object with a text "text"' encode --tokenizer "$small/gpt2.json" --jsonl
refuse_input 'JSON that is not UTF-8' '{"text": "\xe9"}\n' 'line 1: JSON: not JSON: fault at byte' encode --tokenizer "$small/gpt2.json" --jsonl
refuse_input 'an id that is none' '{"ids": [1, 600]}\n' 'line 1: bpe tokenizer: id 600 at index 1 is outside the vocabulary of 600' decode --tokenizer "$small/gpt2.json" --jsonl
refuse_input 'ids that are none' '1 two' "expected ids with blanks between them, got 'two'" decode --tokenizer "$small/gpt2.json"
refuse_input 'words that are not UTF-8' 'caf\xe9' 'word tokenizer: byte 3 \(value 0xe9\) is not valid UTF-8' encode --tokenizer word.json
echo '{"model": {"type": "Unigram", "vocab": []}}' >unigram.json
refuse 'an unsupported kind' 1 "unigram\.json: tokenizer\.json: the model 'Unigram' is not supported, supported are BPE, WordPiece and WordLevel" tokenize encode --tokenizer unigram.json
refuse 'no such file' 1 'none\.json: No such file' tokenize encode --tokenizer none.json
refuse 'lower case of a file that says itself' 1 'lower case is for a vocab\.txt' tokenize encode --tokenizer bpe.json --lowercase
refuse '<eos> of bytes' 1 'byte tokenizer: no piece can be added' tokenize encode --tokenizer "$(echo '{"name":"byte"}' >byte.json; echo byte.json)" --eos line

# ---- Runs
for kind in char byte word 'word eos=line' 'bpe model.vocab=290' 'wordpiece model.vocab=90' "$folder/wordpiece.json" "$small/llama3.json"; do
  accept "train with tokenizer=$kind" train tiny.yaml name=run tokenizer=$kind sample.tokens=5
  verdict 'a default prompt without tokens is replaced' "$(case $kind in word | wordpiece*) grep -qE "^sample\.prompt: has no tokens for the word(piece)? tokenizer; samples go on from '[a-z0-9]+', the first token of the validation text$" out || shown out ;;
    char | byte | bpe* | *llama3.json) grep sample.prompt out ;; esac)"
  accept 'continue a text' generate runs/run --prompt 'the quick' --tokens 12
  verdict 'the prompt stands first' "$(grep -q '^the quick' out || echo 'another beginning')"
  rm -rf runs/run
done
accept 'train with a first token, and with more rows than pieces' train tiny.yaml name=run tokenizer=first.json model.vocab=700 sample.tokens=5
accept 'continue nothing' generate runs/run --prompt '' --tokens 60 --temperature 9 --jsonl
verdict 'rows without a piece are not drawn' "$(grep -q '"tokens": 60, "end": "length"' out || shown out)"
accept 'its text is scored' eval runs/run --data text.txt
verdict 'from the first token on' "$(grep -q "^text.txt: $("$build/ricci-tokenize" encode text.txt --tokenizer first.json | wc -w) tokens, " out || shown out)"
sed 's/"special":true}/"special":true,"eos":true}/g' first.json >ends.json
accept 'a tokenizer with end tokens' train tiny.yaml name=ends tokenizer=ends.json model.vocab=700 sample.tokens=5
accept 'many texts' generate runs/ends --prompt 'the' --tokens 400 --temperature 9 --samples 8 --jsonl
verdict 'end where one is drawn, and do not show it' "$(grep -q '"end": "stop"' out && ! grep -qE '<\|(begin_of|end_of|endof)' out || shown out)"
refuse 'a vocabulary of another size than the model' 1 'model\.vocab: 77, but the bpe tokenizer has 600 tokens; 0 takes its number' train tiny.yaml tokenizer="$small/gpt2.json" model.vocab=77
refuse 'a vocabulary without its size' 1 'model\.vocab: 0, but the vocabulary of tokenizer: bpe is made here' train tiny.yaml tokenizer=bpe
refuse 'no such tokenizer' 1 "tokenizer: expected one of char, byte, word, bpe, wordpiece or a file, got 'chars'" train tiny.yaml tokenizer=chars
refuse 'a prompt without tokens' 1 'sample\.prompt: has no tokens for the word tokenizer' train tiny.yaml tokenizer=word sample.tokens=5 sample.prompt='" "'
exit $((failures > 0))
