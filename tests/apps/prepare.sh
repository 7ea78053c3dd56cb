#!/usr/bin/env bash
# Prepared corpora: ricci prepare, and ricci train on a shuffled mixture of two of them. Killed at random moments and restarted, they
# write the bytes of uninterrupted ones (hostile/kills.sh kills other feeds). Wrong shards and inputs give one line.
#   prepare.sh build-folder [kills] [seed]
. "$(dirname "$0")/outputs.sh" "$@"
kills=${2:-$(few_or_all 2 20)}
RANDOM=${3:-1}

# killed NAME COMMAND ...: every start except the last is killed before its share of the calls of a complete run.
killed() {
  local name=$1 kill share survived=
  shift
  share=$(($(grep -c '' calls) / (kills + 1)))
  for ((kill = 1; kill <= kills; ++kill)); do
    signalled "9 $((1 + RANDOM % share))" "$@"
    [ $? = 137 ] || survived+=" $kill: it survived;"
  done
  verdict "$name: killed $kills times" "$survived"
  accept "$name: the last start runs to the end" "$@"
}

# ---- A corpus in multiple formats, with documents of all lengths
mkdir corpus
for ((i = 1; i <= 900; ++i)); do echo "document $i says $((i * i * 7919 % 100003)) and $((i * 31 % 17))"; done >lines.txt
for ((i = 0; i < 9; ++i)); do sed -n "$((i * 100 + 1)),$((i * 100 + 100))p" lines.txt >corpus/part$i.txt; done
awk '{ printf "{\"id\":%d,\"body\":\"%s\",\"label\":%d}\n", NR, $0, NR % 3 }' lines.txt >lines.jsonl
awk '{ printf "%d\t%s\n", NR % 3, $0 }' lines.txt | gzip >lines.tsv.gz
tar -cf corpus.tar corpus && gzip corpus.tar

made=(--tokenizer byte --documents line --shard-tokens 2000)
RICCI_CALLS=$folder/calls signalled '0 0' prepare corpus "${made[@]}" --output whole --threads 1
shows 'a corpus in one piece' '^whole: [0-9,]+ tokens of 900 documents in ([2-9]|[0-9]{2,}) shards$'
shows 'of bytes' '^vocabulary 256, 1.000 bytes per token$'
tokens=$(grep -oE '[0-9,]+ tokens of [0-9,]+ doc' out)
accept 'the same on two threads' prepare corpus "${made[@]}" --output two --threads 2
verdict 'has the same bytes' "$(diff -rq whole two 2>&1)"
killed prepare prepare corpus "${made[@]}" --output killed
verdict 'a corpus whose preparation was killed has the same bytes, and no others' "$(diff -rq whole killed 2>&1)"
prints 'called once more it finds all shards' '; found [0-9]+ shards?$' prepare corpus "${made[@]}" --output killed
prints 'members of an archive are the same documents' "$tokens" prepare corpus.tar.gz "${made[@]}" --output tar
accept 'JSONL with labels' prepare lines.jsonl --format jsonl --text-field body --label-field label --classes 3 --tokenizer byte --output jsonl
accept 'TSV with labels, compressed' prepare lines.tsv.gz --format tsv --text-field 2 --label-field 1 --classes 3 --tokenizer byte --output tsv
verdict 'both are the same documents under the same labels' "$(cmp <(tail -c +129 jsonl/shard-00000.tokens) <(tail -c +129 tsv/shard-00000.tokens) 2>&1)"

# ---- Training on a shuffled mixture, with packed documents and without
long=(tiny.yaml data='[whole, jsonl]' weights='[3, 1]' order=shuffled shuffle_buffer=50 steps=30 eval_every=10 eval_batches=2 checkpoint_every=2 lr=1e-2 model.dropout=0.2)
accept 'a training in one piece' train "${long[@]}" name=whole threads=1
RICCI_CALLS=$folder/calls signalled '0 0' train "${long[@]}" pack=best name=packed threads=1
killed train train "${long[@]}" pack=best name=packed_killed
verdict 'killed, it has the same checkpoints and the same model' "$(diff -rq runs/{packed,packed_killed}/checkpoints 2>&1; cmp runs/{packed,packed_killed}/model.safetensors 2>&1)"
holds 'which is not that without packing' eval '! cmp -s runs/{packed,whole}/model.safetensors'
signalled "2 $(($(grep -c '' calls) / 2))" train "${long[@]}" name=interrupted threads=1
shows 'Ctrl-C' '^interrupted, saved after'
accept 'the folder alone goes on with the run' train runs/interrupted
same 'it ends with the same model' runs/{whole,interrupted}/model.safetensors
accept 'evaluation on its own validation documents' eval runs/whole
accept 'evaluation on shards' eval runs/whole --data tsv
for key in tokenizer=whole/tokenizer.json steps=2; do
  accept "shards have their tokenizer, $key" train tiny.yaml name=named_${#key} data=whole "$key"
  holds 'and no line is about it' eval "! grep tokenizer out"
done
tar -xOf corpus.tar.gz >members.txt
accept 'a text' train tiny.yaml name=text data=members.txt
accept 'the members of a tar archive are a text, too' train tiny.yaml name=archive data=corpus.tar.gz
same 'and it is the same' runs/{text,archive}/model.safetensors
accept 'texts are mixed, too' train tiny.yaml name=texts data='[text.txt, lines.txt]' weights='[1, 2]' order=shuffled

# ---- The end of documents
unlabelled=(prepare lines.jsonl --format jsonl --text-field body)
accept 'documents that follow each other' "${unlabelled[@]}" --output ended
is 'end with <eos>' '"behind":"document","piece":"<eos>"' grep -oE '"behind".*"piece":"[^"]*"' ended/tokenizer.json
is 'so do lines, which lose their line ends' "$(cat ended/tokenizer.json)" eval 'run prepare lines.txt --documents line --output ended_lines; cat ended_lines/tokenizer.json; echo'
accept 'without an end' "${unlabelled[@]}" --output open --eos none
prints 'they are there when nobody asks for one' '; found [0-9]+ shards?$' "${unlabelled[@]}" --output open
prints 'bytes have none, which is told' '^nothing separates the documents: the byte tokenizer has no end-of-text token;$' \
  "${unlabelled[@]}" --output bytes --tokenizer byte
accept 'a whole file' prepare text.txt --output file
accept 'and labelled documents' "${unlabelled[@]}" --label-field label --classes 3 --output labelled
for name in file labelled; do holds "have none: $name" eval "! grep -q behind $name/tokenizer.json"; done

# ---- Ids of two bytes without a header, as nanoGPT's train.bin
accept 'a tokenizer' tokenize train lines.txt --vocab 300 -o bpe.json
next=$(sed -E 's/.*, ([0-9]+) tokens/\1/' out)  # an id outside the vocabulary
sed -i 's/"added_tokens":\[/&{"id":'"$next"',"content":"<added>","special":true}/' bpe.json
"$build/ricci-tokenize" encode lines.txt --tokenizer bpe.json --u16 >train.bin
accept 'its ids' prepare train.bin --format u16 --tokenizer bpe.json --output ids
accept 'and its text' prepare lines.txt --tokenizer bpe.json --output same
verdict 'are the same shards' "$(cmp <(tail -c +129 ids/shard-00000.tokens) <(tail -c +129 same/shard-00000.tokens) 2>&1; cmp {ids,same}/tokenizer.json 2>&1)"
accept 'which are trained on' train tiny.yaml name=ids data=ids validation=same
refuse 'without the option' 1 "train\.bin: byte [0-9]+ .*nanoGPT's train.bin, which ricci prepare --format u16 reads" train tiny.yaml data=train.bin tokenizer=bpe model.vocab=300
refuse 'an id outside of the vocabulary' 1 'train\.bin: id [0-9]+ at byte [0-9]+ is outside the vocabulary of 256' prepare train.bin --format u16 --tokenizer byte --output bad_ids
# Not ids of two bytes: numbers of 4 or 8 bytes, the higher byte first, NumPy's files, shards of llm.c, a text.
write() { perl -e 'binmode STDOUT; print "'"$2"'", pack("'"$3"'", map { $_ * 7 % 290 + 1 } 1..99)' >"$1"; }
head -c 200 lines.txt >text.bin
while IFS='|' read -r file start form kind; do
  [ "$file" = text.bin ] || write "$file" "$start" "$form"
  refuse "no ids: $kind" 1 "${file/./\\.}: looks like $kind" prepare "$file" --format u16 --tokenizer bpe.json --output wide
done <<'END'
i32.bin||l<*|numbers of 4 bytes; numpy\.fromfile\(FILE, '<i4'\)\.astype\('<u2'\)\.tofile\(NEW\) converts them for ricci prepare --format u16$
i64.bin||q<*|numbers of 8 bytes; numpy\.fromfile\(FILE, '<i8'\)
big32.bin||l>*|numbers of 4 bytes; numpy\.fromfile\(FILE, '>i4'\)
big64.bin||q>*|numbers of 8 bytes; numpy\.fromfile\(FILE, '>i8'\)
big16.bin||n*|ids with the higher byte first; dd conv=swab swaps the bytes$
a.npy|\x93NUMPY\x01\0|v*|a NumPy array; numpy\.load\(FILE\)
a.npz|PK\x03\x04|v*|a zip archive, such as \.npz;
llm_c.bin|\x88\xd8\x34\x01|v*|an llm\.c shard; ricci train reads it directly$
text.bin|||a text; it needs no --format u16$
END
for file in i32.bin i64.bin a.npy a.npz; do
  refuse "a training names what it is, too: $file" 1 "${file/./\\.}: byte [0-9]+ .*; it looks like (numbers of [48] bytes|a NumPy array|a zip archive)" train tiny.yaml data=$file tokenizer=byte
done
gzip -k i32.bin
refuse 'compressed' 1 'i32\.bin\.gz: looks like numbers of 4 bytes' prepare i32.bin.gz --format u16 --tokenizer bpe.json --output wide
printf 'abc' >half.bin
refuse 'half an id' 1 'half\.bin: has 3 bytes, expected two for each id' prepare half.bin --format u16 --tokenizer bpe.json --output bad_half
for words in '--documents line' '--eos line' '--encoding latin-1'; do
  refuse "ids are no text: $words" 1 "${words% *}: applies only to texts; --format u16 reads each file as a document of token ids" \
    prepare train.bin --format u16 --tokenizer bpe.json $words --output bad_ids
done
refuse 'no tokenizer' 1 '--format u16: requires --tokenizer FILE, the tokenizer that made the ids' prepare train.bin --format u16 --output bad_ids

# ---- Documents with a mask: prepared, they train the same model as the file
awk '{ printf "{\"messages\": [{\"role\": \"user\", \"content\": \"%s\"}, {\"role\": \"assistant\", \"content\": \"%d\"}]}\n", $0, NR % 7 }' lines.txt | head -300 >talks.jsonl
awk '{ printf "{\"prompt\": \"%s\", \"answer\": \"%d\"}\n", $0, NR % 7 }' lines.txt | head -300 >pairs.jsonl
accept 'markers of chat' tokenize train lines.txt --vocab 300 --special '<|im_start|>' --special '<|im_end|>' -o marked.json
for format in messages pairs; do
  file=$([ $format = messages ] && echo talks.jsonl || echo pairs.jsonl)
  accept "$format" prepare $file --format $format --tokenizer marked.json --output $format
  for data in $file $format; do
    accept "a training on $data" train tiny.yaml name=$data data=$data format=$format tokenizer=$format/tokenizer.json model.ctx=96 eval_batches=2
  done
  same 'gives the same model' runs/{$file,$format}/model.safetensors
  accept 'in small shards' prepare $file --format $format --tokenizer marked.json --shard-tokens 2000 --output small_$format
  shows 'are whole documents' '^small_'$format': [0-9,]+ tokens of 300 documents in [0-9]+ shards$'
  for data in $file small_$format; do
    accept "evaluation on $data" eval runs/$format --data $data
    is 'finds the same answers' "${found:=$(sed '1s/^[^:]*//' out)}" sed '1s/^[^:]*//' out
  done
  unset found
  refuse 'as a text' 1 "format: text, but only the answers in $format are scored; expected messages or pairs" train tiny.yaml data=$format validation=$format
done
refuse 'tokens without a mask' 1 'format: pairs, but whole has no answers; ricci prepare --format pairs makes shards with answers' train tiny.yaml data=whole validation=whole format=pairs tokenizer=byte
refuse 'another template in the same folder' 1 'messages: contains shards with different inputs, settings or tokenizers' \
  prepare talks.jsonl --format messages --tokenizer marked.json --chat '<|im_start|>' '{content}' '{content}' '{content}<|im_end|>' '<|im_end|>' '' --output messages
refuse 'messages without markers' 1 '--tokenizer: format messages requires a tokenizer file with chat markers' prepare talks.jsonl --format messages --output bad_talks
refuse 'an end of messages' 1 '--eos: does not apply to format messages; the chat template has its own end tokens' prepare talks.jsonl --format messages --tokenizer marked.json --eos document --output bad_talks
refuse 'a template of other lines' 1 '--chat: applies only to messages, not to format pairs' prepare pairs.jsonl --format pairs --chat chatml --output bad_talks

# ---- Errors, in one line
refuse 'shards of one document are not split' 1 'file: a training fraction of 0\.9 leaves no documents for training or validation; set validation=\.\.\.' train tiny.yaml data=file
shuffled=(train tiny.yaml order=shuffled)
refuse 'more weights than corpora' 1 'weights: has 2 entries, expected 1 \(one for each entry of data\)' "${shuffled[@]}" data=whole weights='[1, 2]'
refuse 'shards beside a text' 1 'data: .*whole contains shards, but .*text\.txt is a text' "${shuffled[@]}" data='[whole, text.txt]'
accept 'the same text with another tokenizer' prepare corpus --documents line --output chars
refuse 'a vocabulary for tokens' 1 'tokenizer: bpe, but .*whole already contains a byte tokenizer of 256 tokens' train tiny.yaml data=whole tokenizer=bpe model.vocab=300
refuse 'another tokenizer for tokens' 1 'tokenizer: .*chars/tokenizer\.json, but .*whole already contains a byte tokenizer' train tiny.yaml data=whole tokenizer=chars/tokenizer.json
perl -e 'print pack("l<256", 20240520, 1, 400), pack("S<400", map { 97 + $_ % 26 } 1 .. 400)' >foreign.bin
accept 'shards of another program' train tiny.yaml name=foreign data=foreign.bin validation=foreign.bin tokenizer=byte
for words in 'eos: line' 'format: jsonl'; do
  for data in foreign.bin whole; do
    refuse "a key that means nothing for tokens ($words, $data)" 1 "$words, but .*$data already contains tokens; set --${words%%:*} in ricci prepare" \
      train tiny.yaml data=$data tokenizer=whole/tokenizer.json "${words/: /=}"
  done
done
refuse 'shards of another tokenizer than the model' 1 'chars: the shards were made by a different tokenizer of 23 tokens, not by the byte' eval runs/whole --data chars
cp -r whole bad_shards && printf x | dd of=bad_shards/shard-00003.tokens bs=1 seek=500 conv=notrunc status=none
refuse 'an altered shard' 1 'bad_shards/shard-00003\.tokens: the shard was altered or damaged' "${shuffled[@]}" data=bad_shards steps=2000
printf 'caf\xe9\n' >latin.txt
refuse 'no such tokenizer' 1 '--tokenizer: found neither gpt3 nor ' prepare text.txt --tokenizer gpt3 --output bad_tokenizer
refuse 'invalid UTF-8' 1 'latin\.txt: byte 3 \(value 0xe9\) is not valid UTF-8; encoding latin-1, or encoding bytes with tokenizer byte, reads any text' prepare latin.txt --output bad_text
refuse 'a pipe' 1 'data: /dev/fd/[0-9]+ is a pipe, expected a file or folder; a text is read more than once, so write it to a file first' prepare <(cat lines.txt) --output pipe
accept 'Latin-1' prepare latin.txt --encoding latin-1 --output latin
refuse 'other settings in the same folder' 1 'whole: contains shards with different inputs, settings or tokenizers' prepare corpus --tokenizer byte --output whole
refuse 'an unknown format' 1 '--format: expected one of text, jsonl, tsv, csv, messages, pairs, got .xml.' prepare text.txt --format xml --output bad_format
for program in 'prepare text.txt --tokenizer byte --output bad_piece' 'tokenize train text.txt --vocab 290'; do
  refuse 'a piece that stands nowhere' 2 '--eos-piece requires --eos' $program --eos-piece '<end>'
done
accept 'a folder whose name has escape sequences' prepare text.txt --output $'new\e[31m\xc2\x9b35m'
holds 'they are not printed' eval '! grep -qP "\x1b|\xc2\x9b" out'
finish
