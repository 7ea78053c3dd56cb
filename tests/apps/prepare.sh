#!/usr/bin/env bash
# Prepared corpora: ricci-prepare, and ricci-train on a shuffled mixture of two of them, killed at drawn moments and started again
# each time, leave the bytes of uninterrupted ones. The moments are calls that change files, counted (signal_at.cpp). Shards and
# inputs that are wrong end in one line that says what is.
#   prepare.sh build-folder [kills] [seed]
. "$(dirname "$0")/programs.sh" "$@"
kills=${2:-5}
RANDOM=${3:-1}

# until_call SIGNAL CALL PROGRAM ARGUMENT ...: the exit code is that of the program.
until_call() {
  { RICCI_SIGNAL_AT="$1 $2" LD_PRELOAD=$build/libricci-signal-at.so "$build/ricci-$3" "${@:4}" >out 2>err </dev/null; } 2>/dev/null
}

# killed NAME COMMAND ...: every start but the last is killed before it can do its share of the calls that a whole run makes.
killed() {
  local name=$1 kill code calls share survived=
  shift
  calls=$(grep -c '' calls)
  share=$((calls / (kills + 1)))
  verdict "$name: it changes files by $calls calls" "$([ "$share" -ge 5 ] || echo 'too few to be killed at')"
  for ((kill = 1; kill <= kills; ++kill)); do
    until_call 9 $((1 + RANDOM % share)) "$@"
    code=$?
    [ $code = 137 ] || survived+=" $kill: exit code $code"
  done
  verdict "$name: killed $kills times" "$survived"
  accept "$name: the last start runs to the end" "$@"
}

# ---- A corpus in several formats, with documents of all lengths
mkdir corpus
for ((i = 1; i <= 3000; ++i)); do echo "document $i says $((i * i * 7919 % 100003)) and $((i * 31 % 17))"; done >lines.txt
for ((i = 0; i < 30; ++i)); do sed -n "$((i * 100 + 1)),$((i * 100 + 100))p" lines.txt >corpus/part$i.txt; done
awk '{ printf "{\"id\":%d,\"body\":\"%s\",\"label\":%d}\n", NR, $0, NR % 3 }' lines.txt >lines.jsonl
awk '{ printf "%d\t%s\n", NR % 3, $0 }' lines.txt | gzip >lines.tsv.gz
tar -cf corpus.tar corpus && gzip corpus.tar

prepare=(prepare corpus --tokenizer byte --documents line --shard-tokens 2000)
export RICCI_CALLS=$folder/calls
until_call 0 0 "${prepare[@]}" --output whole --threads 1
verdict 'a corpus in one piece' "$([ $? = 0 ] && [ ! -s err ] || echo 'expected success and nothing on stderr')"
verdict 'it tells what it made' "$(grep -qE '^whole: [0-9,]+ tokens of 3,000 documents in [0-9]+ shards, vocabulary 256, 1.000 bytes per token$' out || shown out)"
verdict 'every file is synced before it is renamed, and its folder after' "$(awk '
  last == "rename" && $1 != "fsync" || $1 == "rename" && last != "fsync" { bad++ } $1 == "rename" { renamed++ } { last = $1 }
  END { if (bad || renamed < 30) print bad + 0 " of " renamed + 0 " are not" }' calls)"
unset RICCI_CALLS
accept 'the same on two threads' "${prepare[@]}" --output two --threads 2
verdict 'has the same bytes' "$(diff -rq whole two 2>&1)"
killed prepare "${prepare[@]}" --output killed
verdict 'a corpus whose preparation was killed has the same bytes, and no others' "$(diff -rq whole killed 2>&1)"
accept 'called once more' "${prepare[@]}" --output killed
verdict 'it finds all shards' "$(grep -qE '; [0-9]+ shards were there$' out || shown out)"

accept 'members of an archive are the same documents' prepare corpus.tar.gz --tokenizer byte --documents line --shard-tokens 2000 --output tar
verdict 'and the same number of tokens' "$(diff <(run prepare corpus --output whole "${prepare[@]:2}"; grep -oE '[0-9,]+ tokens of [0-9,]+ doc' out) <(run prepare corpus.tar.gz "${prepare[@]:2}" --output tar; grep -oE '[0-9,]+ tokens of [0-9,]+ doc' out))"
accept 'JSONL with labels' prepare lines.jsonl --format jsonl --text-field body --label-field label --classes 3 --tokenizer byte --output jsonl
accept 'TSV with labels, compressed' prepare lines.tsv.gz --format tsv --text-field 2 --label-field 1 --classes 3 --tokenizer byte --output tsv
verdict 'both are the same documents under the same labels' "$(cmp <(tail -c +129 jsonl/shard-00000.tokens) <(tail -c +129 tsv/shard-00000.tokens) 2>&1)"

# ---- Training on a shuffled mixture
long=(tiny.yaml data='[whole, jsonl]' weights='[3, 1]' order=shuffled shuffle_buffer=50 steps=60 eval_every=20 eval_batches=5 checkpoint_every=2 lr=1e-2 model.dropout=0.2)
export RICCI_CALLS=$folder/calls
until_call 0 0 train "${long[@]}" name=whole threads=1
verdict 'a training in one piece' "$([ $? = 0 ] && [ ! -s err ] || echo 'expected success and nothing on stderr')"
unset RICCI_CALLS
killed train train "${long[@]}" name=killed
verdict 'a training that was killed has the same checkpoints' "$(diff -rq runs/{whole,killed}/checkpoints 2>&1)"
verdict 'and the same model' "$(cmp runs/{whole,killed}/model.safetensors 2>&1)"
accept 'a training on packed documents' train "${long[@]}" pack=best name=packed threads=1
killed train train "${long[@]}" pack=best name=packed_killed
verdict 'killed, it has the same checkpoints and the same model' "$(diff -rq runs/{packed,packed_killed}/checkpoints 2>&1; cmp runs/{packed,packed_killed}/model.safetensors 2>&1)"
verdict 'and it is not the one without packing' "$(! cmp -s runs/{packed,whole}/model.safetensors || echo 'the same bytes')"
until_call 2 $(($(grep -c '' calls) / 2)) train "${long[@]}" name=interrupted threads=1
verdict 'Ctrl-C' "$(grep -q '^interrupted, saved after' out || shown out)"
accept 'the folder alone goes on with the run' train runs/interrupted
verdict 'it ends with the same model' "$(cmp runs/{whole,interrupted}/model.safetensors 2>&1)"
accept 'evaluation on its own validation documents' eval runs/whole
accept 'evaluation on shards' eval runs/whole --data tsv
accept 'shards and the tokenizer that is the default' train tiny.yaml name=default data=whole
verdict 'the default is passed over with a line' "$(grep -qE '^tokenizer: char is passed over; .*whole brings its own, a byte tokenizer of 256 tokens$' out || shown out)"
accept 'shards and their tokenizer' train tiny.yaml name=named data=whole tokenizer=whole/tokenizer.json
verdict 'nothing is passed over' "$(! grep 'passed over' out)"
tar -xOf corpus.tar.gz >members.txt
accept 'a text' train tiny.yaml name=text data=members.txt
accept 'the members of a tar archive are a text, too' train tiny.yaml name=archive data=corpus.tar.gz
verdict 'and it is the same' "$(cmp runs/{text,archive}/model.safetensors 2>&1)"
accept 'texts are mixed, too' train tiny.yaml name=texts data='[text.txt, lines.txt]' weights='[1, 2]' order=shuffled

# ---- What is wrong, in one line
shuffled=(train tiny.yaml order=shuffled)
refuse 'more weights than corpora' 1 'weights: 2 of them, but data has 1 entries' "${shuffled[@]}" data=whole weights='[1, 2]'
refuse 'weights without a sum' 1 'weights: their sum is not finite' "${shuffled[@]}" data='[whole, jsonl]' weights='[1e308, 1e308]'
refuse 'a weight of 0' 1 'weights: 0, expected more than 0' "${shuffled[@]}" data=whole weights='[0]'
refuse 'shards beside a text' 1 'data: .*whole holds shards and .*text\.txt is a text' "${shuffled[@]}" data='[whole, text.txt]'
accept 'the same text with another tokenizer' prepare corpus --documents line --output chars
refuse 'shards of different tokenizers' 1 'chars: the shards were made by another tokenizer, of 23 tokens, than the byte tokenizer of 256 tokens' "${shuffled[@]}" data='[whole, chars]'
refuse 'a vocabulary for tokens' 1 'tokenizer: bpe, but .*whole brings its own, a byte tokenizer of 256 tokens' train tiny.yaml data=whole tokenizer=bpe model.vocab=300
refuse 'another tokenizer for tokens' 1 'tokenizer: .*chars/tokenizer\.json, but .*whole brings its own, a byte tokenizer' train tiny.yaml data=whole tokenizer=chars/tokenizer.json
refuse 'a piece behind the lines of tokens' 1 'eos: line, but .*whole holds tokens already; ricci-prepare --eos makes such' train tiny.yaml data=whole tokenizer=bpe eos=line model.vocab=300
refuse 'a format of tokens' 1 'format: jsonl, but .*whole holds tokens already; ricci-prepare --format makes such' train tiny.yaml data=whole format=jsonl
{ perl -e 'print pack("l<256", 20240520, 1, 400), pack("S<400", map { 97 + $_ % 26 } 1 .. 400)'; } >foreign.bin
accept 'shards of another program' train tiny.yaml name=foreign data=foreign.bin validation=foreign.bin tokenizer=byte
for words in 'eos: line' 'format: jsonl'; do
  refuse "a key that means nothing for them ($words)" 1 "$words, but .*foreign\.bin holds tokens already" train tiny.yaml data=foreign.bin tokenizer=whole/tokenizer.json "${words/: /=}"
  refuse "nor for shards with their own ($words)" 1 "$words, but .*whole holds tokens already" train tiny.yaml data=whole tokenizer=whole/tokenizer.json "${words/: /=}"
done
refuse 'a field of tokens' 1 'text_field: ' train tiny.yaml data=whole text_field=nope
refuse 'a vocabulary that does not fit the model' 1 'model\.vocab: 300, but the byte tokenizer has 256 tokens' "${shuffled[@]}" data=whole model.vocab=300
refuse 'shards of another tokenizer than the model' 1 'chars: the shards were made by another tokenizer, of 23 tokens, than the byte' eval runs/whole --data chars
cp -r whole bad_shards && printf x | dd of=bad_shards/shard-00003.tokens bs=1 seek=500 conv=notrunc status=none
refuse 'an altered shard' 1 'bad_shards/shard-00003\.tokens: the shard was altered or damaged' train tiny.yaml data=bad_shards order=shuffled steps=2000
truncate -s -7 bad_shards/shard-00003.tokens
refuse 'a truncated shard' 1 'bad_shards/shard-00003\.tokens: the shard has [0-9]+ bytes instead of [0-9]+: it was cut short' "${shuffled[@]}" data=bad_shards
rm bad_shards/shard-00003.tokens
refuse 'a missing shard' 1 'bad_shards: shard shard-00003\.tokens of the corpus is missing' "${shuffled[@]}" data=bad_shards
refuse 'a label out of range' 1 'lines\.jsonl:2: label 2 is out of range: 2 classes have 0 to 1' prepare lines.jsonl --format jsonl --text-field body --label-field label --classes 2 --output bad_labels
printf 'caf\xe9\n' >latin.txt
refuse 'invalid UTF-8' 1 'latin\.txt: byte 3 \(value 0xe9\) is not valid UTF-8; --encoding latin-1' prepare latin.txt --output bad_text
accept 'Latin-1' prepare latin.txt --encoding latin-1 --output latin
refuse 'other settings in the same folder' 1 'whole: holds shards of other inputs, settings or tokenizer' prepare corpus --tokenizer byte --output whole
refuse 'no such input' 1 'neither none\.txt nor' prepare none.txt --output bad_input
refuse 'an unknown format' 1 '--format: expected one of text, jsonl, tsv, messages, got .xml.' prepare text.txt --format xml --output bad_format
refuse 'a piece that stands nowhere' 2 '--eos-piece requires --eos' prepare text.txt --tokenizer byte --eos-piece '<end>' --output bad_piece
refuse 'no output' 2 'output is required' prepare text.txt

echo "$failures failed"
exit $((failures > 0))
