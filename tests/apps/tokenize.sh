#!/usr/bin/env bash
# ricci tokenize: vocabularies from texts, JSON lines in and out, errors in one line, and runs trained with the vocabularies.
#   tokenize.sh build-folder
. "$(dirname "$0")/outputs.sh" "$@"
small=$root/tests/data/tokenizers/small

# given NAME INPUT EXPECTED ARGUMENT ...: the output of ricci tokenize for an input on stdin.
given() {
  printf "$2" | "$build/ricci-tokenize" "${@:4}" >out 2>err
  verdict "$1" "$([ "$(cat out; echo .)" = "$(printf "$3"; echo .)" ] || echo "expected $3")"
}

# refuse_input NAME INPUT PATTERN ARGUMENT ...: one line of error for an input on stdin.
refuse_input() {
  printf "$2" | "$build/ricci-tokenize" "${@:4}" >out 2>err
  local code=$?
  verdict "$1" "$([ $code = 1 ] && [ "$(grep -c '' err)" = 1 ] && grep -qE "^ricci tokenize: $3" err || echo "exit code $code, expected one line with $3")"
}

# ---- Vocabularies
prints 'train BPE' '^bpe\.json: bpe, 290 tokens$' tokenize train text.txt --vocab 290 -o bpe.json
accept 'the same on two threads' tokenize train text.txt --vocab 290 -o again.json --threads 2
same 'the files are equal' bpe.json again.json
printf '%s\n' '[UNK]' the qu '##ick' br '##own' fox lazy dog jump '##s' over {0..9} '##'{0..9} zebra >vocab.txt
prints 'keep the pieces of WordPiece that a text needs' '^wordpiece\.json: wordpiece, 31 tokens$' tokenize train text.txt --from vocab.txt --lowercase -o wordpiece.json
accept 'train words' tokenize train text.txt --kind word --min-count 1 --eos line -o word.json
accept 'keep what a text needs' tokenize train text.txt --from "$small/gpt2.json" -o fewer.json
prints 'keep everything' '^all\.json: bpe, 600 tokens$' tokenize train text.txt --from "$small/gpt2.json" --keep-all -o all.json
accept 'tokens behind the vocabulary' tokenize train text.txt --from wordpiece.json --special '[NEW]' --special 'lazy dog' -o special.json
"$build/ricci-tokenize" encode --tokenizer special.json <<<'[NEW]lazy dog[NEW]' >out 2>err || echo "exit code $?" >>err
verdict 'such tokens are one id each, wherever they are' "$(awk 'NF == 3 && $1 == $3 && $2 == $1 + 1 { ++right } END { exit !(NR == 1 && right == 1) }' out && [ ! -s err ] || shown out err)"
refuse 'keep everything of nothing' 2 '--keep-all requires --from' tokenize train text.txt --vocab 290 --keep-all
prints 'count ten words and <eos> in each of 60 lines' '^text.txt: 660 tokens, 2811 bytes, ' tokenize count text.txt --tokenizer word.json
refuse 'unknown kind' 1 '--kind: expected one of char, byte, word, bpe, got morse' tokenize train text.txt --kind morse
given 'bytes are their own ids' 'ab c' '97 98 32 99 \n' encode --tokenizer byte
printf 'caf\xe9\n' >latin1.txt
refuse 'text that is not UTF-8' 1 'latin1\.txt: byte 3 \(value 0xe9\) is not valid UTF-8; encoding latin-1, or encoding bytes with tokenizer byte, reads any text' tokenize train latin1.txt --kind word

# The texts of JSONL, TSV and archives, without quotes, names and tabs.
awk '{ printf "{\"label\": %d, \"text\": \"%s\"}\n", NR % 2, $0 }' text.txt >lines.jsonl
awk '{ printf "%d\t%s\r\n\r\n", NR % 2, $0 }' text.txt >lines.tsv
mkdir members && awk '{ printf "%s", $0 >("members/" 1000 + NR ".txt") }' text.txt
tar -cf members.tar members && gzip -k lines.jsonl members.tar
accept 'train on JSONL' tokenize train lines.jsonl --vocab 290 -o jsonl.json
holds 'no piece is of JSON' eval '! grep -qE "[{}:]\"|\\\\\"" <(grep -oE "\"vocab\": *\{.*" jsonl.json | grep -oE "\"[^\"]{2,}\"")'
for texts in lines.jsonl.gz lines.tsv 'lines.tsv --text-field 2' members members.tar.gz 'lines.jsonl --format jsonl'; do
  accept "train on $texts" tokenize train $texts --vocab 290 -o other.json
  same 'gives the same tokenizer' jsonl.json other.json
  accept 'count them' tokenize count $texts --tokenizer jsonl.json
  counted=$(sed 's/.*: \([0-9]* tokens, [0-9]* bytes\).*/\1/' out)
  case $texts in members*) ends=59 ;; *) ends=0 ;; esac  # a line end separates files
  : "${first_count:=$counted}"
  read -r tokens _ text_bytes _ <<<"$first_count"
  is 'as many as in JSONL' "$((tokens + ends)) tokens, $((text_bytes + ends)) bytes" echo "$counted"
  accept 'prepare them' prepare ${texts/ --format jsonl/} --tokenizer jsonl.json --eos none --output "prepared $texts"
  is 'with as many tokens' "$((tokens + ends))" eval 'grep -oE "[0-9,]+ tokens" out | tr -d ", tokens"'
  accept 'encode them' tokenize encode $texts --tokenizer jsonl.json
  is 'and as many ids' "$((tokens + ends))" eval 'wc -w <out'
done
printf '{"messages": [{"role": "user", "content": "ab ab"}, {"role": "assistant", "content": "ab"}]}\n' >talk.jsonl
prints 'train on conversations' 'talks\.json: bpe, 257 tokens' tokenize train talk.jsonl --format messages --min-count 2 --vocab 300 -o talks.json
prints 'count their roles and contents' '^talk\.jsonl: 20 tokens, 20 bytes, 1\.000 bytes per token$' tokenize count talk.jsonl --format messages --tokenizer byte
accept 'a tokenizer with markers' tokenize train talk.jsonl --format messages --vocab 300 --special '<|im_start|>' --special '<|im_end|>' -o marked.json
"$build/ricci-tokenize" chat --tokenizer marked.json <talk.jsonl >out 2>err
verdict 'a conversation is ids, and 0 or 1 for each' "$(grep -qxE '\{"ids":\[[0-9,]+\],"answers":\[0,[01,]+,0\]\}' out || shown out err)"
refuse 'encode them' 1 '--format: the command chat encodes messages' tokenize encode talk.jsonl --format messages --tokenizer byte
refuse 'conversations as texts' 1 'talk\.jsonl:1: has no text "text"; format messages reads conversations' tokenize train talk.jsonl --vocab 300
refuse 'a pipe' 1 'data: /dev/fd/[0-9]+ is a pipe, expected a file or folder; a text is read more than once, so write it to a file first' tokenize count <(cat text.txt) --tokenizer byte

# Every kind of tokenizer with every option of its training: a different vocabulary, or an error that names the option.
declare -A size=([bpe]='--vocab 290')
for kind in char byte word bpe; do
  accept "a vocabulary of kind $kind" tokenize train text.txt --kind $kind ${size[$kind]:-} -o kind.json
  for option in "--vocab $([ $kind = word ] && echo 7 || echo 280)" '--min-count 100' '--special <zz>' '--split llama3'; do
    given=${size[$kind]:-}
    [ "${option% *}" != --vocab ] || given=
    if run tokenize train text.txt --kind $kind $given $option -o other.json; then
      verdict "$kind $option: another vocabulary" "$(! cmp -s kind.json other.json || echo 'the same')"
    else
      verdict "$kind $option: an error" "$(grep -qE "^ricci tokenize: ${option% *}: does not apply to --kind $kind, only to [a-z, ]+$" err || echo 'expected a line that says so')"
    fi
  done
done
for option in '--kind word' '--vocab 280' '--min-count 3' '--split llama3'; do
  refuse "$option beside --from" 2 "--from excludes ${option% *}|${option% *} excludes --from" tokenize train text.txt --from bpe.json $option
done
refuse 'lower case of a vocabulary that is made here' 2 '--lowercase requires --from' tokenize train text.txt --vocab 290 --lowercase
refuse 'lines of JSON and two bytes per id' 2 '--(jsonl|u16) excludes --(jsonl|u16)' tokenize encode --tokenizer bpe.json --jsonl --u16
refuse 'lines of JSON and a text' 2 '(--jsonl|texts) excludes (--jsonl|texts)' tokenize encode text.txt --tokenizer bpe.json --jsonl

# ---- Texts to ids and back
given 'lines of JSON' '\xef\xbb\xbf{"text": "a\\u00e9"}\r\n\n \r\n{"x": [1], "text": ""}\n\n' '{"ids":[65,128,103]}\n{"ids":[]}\n' encode --tokenizer "$small/gpt2.json" --jsonl
given 'lines of ids' '{"ids": [65, 128, 103]}\n{"ids": [128]}' '{"text":"a\\u00e9"}\n{"text":"\\ufffd"}\n' decode --tokenizer "$small/gpt2.json" --jsonl
given 'plain text' 'dog\n' '68 79 71 199 \n' encode --tokenizer "$small/gpt2.json"
given 'as another program saves it' '\xef\xbb\xbfdog\r\n' '68 79 71 199 \n' encode --tokenizer "$small/gpt2.json"
given 'or byte by byte' '\xef\xbb\xbf\r\n\0' '239 187 191 13 10 0 \n' encode --tokenizer byte --encoding bytes
given 'plain ids' '68 79\n71 199' 'dog\n' decode --tokenizer "$small/gpt2.json"
accept 'a file to two bytes per id' tokenize encode text.txt --tokenizer bpe.json --u16
pairs=$(wc -c <out)
accept 'and to ids' tokenize encode text.txt --tokenizer bpe.json
is 'which are as many' $((pairs / 2)) eval 'wc -w <out'
"$build/ricci-tokenize" decode --tokenizer bpe.json <out >back 2>err
same 'a text comes back' text.txt back
template='"post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<|begin_of_text|>"}},{"Sequence":{"id":"A"}}]}'
sed "s/\"post_processor\":null/$template/" "$small/llama3.json" >first.json
given 'a first token is not shown' 'dog\n' '70 81 73 201 \n' encode --tokenizer first.json
given 'unless it is asked for' 'dog\n' '0 70 81 73 201 \n' encode --tokenizer first.json --special
given 'in lines of JSON, too' '{"text": ""}\n' '{"ids":[0]}\n' encode --tokenizer first.json --special --jsonl
accept 'and in files' tokenize encode text.txt --tokenizer first.json --special
is 'once' 1 eval "tr ' ' '\n' <out | grep -cx 0"
accept 'it is not counted' tokenize count text.txt --tokenizer first.json
verdict 'as before' "$(mv out counted; run tokenize count text.txt --tokenizer "$small/llama3.json"; diff out counted)"
mkfifo ask
"$build/ricci-tokenize" encode --tokenizer "$small/gpt2.json" --jsonl <ask >answers 2>err &
background=$!
exec 7>ask
echo '{"text": "a"}' >&7
await '[ -s answers ]'
is 'a line is answered before the next is there' '{"ids":[65]}' cat answers
exec 7>&-
ended

# ---- Wrong input
refuse_input 'no JSON' '{"text": "a"}\n{"text": \n' 'line 2: JSON: invalid JSON at byte [0-9]+ of 9' encode --tokenizer "$small/gpt2.json" --jsonl
is 'each line is answered' $'{"ids":[65]}\n{"error":"line 2: JSON: invalid JSON' sed 's/JSON at.*/JSON/' out
accept 'characters' tokenize train text.txt --kind char -o char.json
refuse_input 'a character outside of the vocabulary' '{"text": "t"}\n{"text": "\xe2\x82\xac"}\n{"text": "e"}\n' 'line 2: char tokenizer: ' encode --tokenizer char.json --jsonl
is 'fails only its line' '3 1' eval 'echo $(grep -c "" out) $(grep -c "^{\"error\":\"line 2: char tokenizer: " out)'
refuse_input 'a value of Python' '{"text": NaN}\n' "line 1: JSON: invalid JSON at byte 10 of 13; JSON has no NaN" encode --tokenizer "$small/gpt2.json" --jsonl
refuse_input 'no text' '{"words": "a"}\n' 'line 1: expected an object with a string "text"' encode --tokenizer "$small/gpt2.json" --jsonl
refuse_input 'an id that is none' '{"ids": [1, 600]}\n' 'line 1: bpe tokenizer: id 600 at index 1 is outside the vocabulary of 600' decode --tokenizer "$small/gpt2.json" --jsonl
refuse_input 'ids that are none' '1 two' "expected ids separated by blanks, got 'two'" decode --tokenizer "$small/gpt2.json"

# ---- Runs
for kind in char byte word 'word eos=line' 'bpe model.vocab=290' "$folder/wordpiece.json" "$folder/vocab.txt" "$small/llama3.json"; do
  accept "train with tokenizer=$kind" train tiny.yaml name=run tokenizer=$kind sample.tokens=5
  verdict 'a default prompt without tokens is replaced' "$(case $kind in word | */wordpiece.json | */vocab.txt) grep -qE '^sample\.prompt: has no tokens for the word(piece)? tokenizer;$' out && grep -qE "^samples continue from '[a-z0-9]+', the first token of the validation text$" out || shown out ;;
    char | byte | bpe* | *llama3.json) grep sample.prompt out ;; esac)"
  prints 'the prompt stands first' '^the quick' generate runs/run --prompt 'the quick' --tokens 12
  rm -rf runs/run
done
refuse 'a run cannot make pieces of WordPiece' 1 "tokenizer: expected one of char, byte, word, bpe or a file, got 'wordpiece'" train tiny.yaml tokenizer=wordpiece model.vocab=90
accept 'train with a first token, and with more rows than pieces' train tiny.yaml name=run tokenizer=first.json model.vocab=700 sample.tokens=5
prints 'rows without a piece are not drawn' '"tokens":60,"end":"length"' generate runs/run --prompt '' --tokens 60 --temperature 9 --jsonl
prints 'a text is scored from the first token on' "^text.txt: $("$build/ricci-tokenize" encode text.txt --tokenizer first.json | wc -w | sed 's/...$/,&/') tokens, " eval runs/run --data text.txt
sed 's/"special":true}/"special":true,"eos":true}/g' first.json >ends.json
accept 'a tokenizer with end tokens' train tiny.yaml name=ends tokenizer=ends.json model.vocab=700 sample.tokens=5
prints 'texts end where one is drawn' '"end":"stop"' generate runs/ends --prompt 'the' --tokens 400 --temperature 9 --samples 8 --jsonl
holds 'and do not show it' eval "! grep -qE '<\|(begin_of|end_of|endof)' out"
refuse 'no such tokenizer' 1 "tokenizer: expected one of char, byte, word, bpe or a file, got 'chars'" train tiny.yaml tokenizer=chars
refuse 'a prompt without tokens' 1 'sample\.prompt: has no tokens for the word tokenizer' train tiny.yaml tokenizer=word sample.tokens=5 sample.prompt='" "'
finish
