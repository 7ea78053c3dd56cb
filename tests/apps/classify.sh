#!/usr/bin/env bash
# A classifier learns from JSONL, TSV and shards with labels; killed and started again it ends with the same bytes; ricci-eval reads
# the same formats. What is wrong with labels ends in one line.
#   classify.sh build-folder
. "$(dirname "$0")/programs.sh" "$@"
RANDOM=1

# ---- Reviews: the words tell the label
for ((i = 0; i < 400; ++i)); do
  words=
  for ((w = RANDOM % 12 + 3; w > 0; --w)); do
    case $((RANDOM % 5 + 5 * (i * 7 % 3 == 0))) in
      0) words+=" awful" ;; 1) words+=" poor" ;; 5) words+=" good" ;; 6) words+=" great" ;; *) words+=" film" ;;
    esac
  done
  echo "$((i * 7 % 3 == 0))	${words# }"
done >reviews.tsv
awk -F'\t' '{ printf "{\"stars\":%d,\"body\":\"%s\"}\n", $1, $2 }' reviews.tsv | gzip >reviews.jsonl.gz
head -c 3000 reviews.tsv | cut -f 2 >words.txt
printf '0\t\n1\tgood\n0\tpoor film\n1\tgreat\n0\t\n1\tgood film\n' >gaps.tsv
accept 'a vocabulary' tokenize train words.txt --kind word -o words.json

small=(model.family=classifier model.layers=1 model.heads=2 model.d=16 model.ctx=32 tokenizer=words.json batch=8 steps=60 eval_every=20 checkpoint_every=5 lr=1e-2 model.dropout=0.1)
tsv=(data=reviews.tsv format=tsv label_field=1)
jsonl=(data=reviews.jsonl.gz format=jsonl text_field=body label_field=stars)

accept 'TSV' train "${small[@]}" "${tsv[@]}" name=tsv
told=$(sed -nE 's/.*"val_accuracy":([0-9.]+),.*/\1/p' runs/tsv/metrics.jsonl | tail -1 | xargs printf '%.4f')
verdict 'it tells loss and accuracy' "$(grep -qE "^step 60: train [0-9.]+, validation [0-9.]+, accuracy ${told/./\\.} \(40 documents\)\$" out || echo "not $told")"
verdict 'it learns' "$(awk '/^step 60: / { learnt = $6 + 0 < 0.3 } END { exit learnt }' out && cat out)"
accept 'JSONL, compressed' train "${small[@]}" "${jsonl[@]}" name=jsonl threads=1
verdict 'the same documents give the same model' "$(cmp runs/{tsv,jsonl}/model.safetensors 2>&1)"
accept 'shards with labels' prepare reviews.tsv --format tsv --label-field 1 --classes 2 --tokenizer words.json --shard-tokens 500 --output shards
accept 'a classifier on shards' train "${small[@]}" data=shards name=shards
accept 'a vocabulary made from the documents' train "${small[@]}" "${tsv[@]}" name=words tokenizer=word
accept 'a mixture' train "${small[@]}" "${tsv[@]}" name=mixed data='[reviews.tsv, reviews.tsv]' weights='[1, 2]'

# ---- Killed at drawn moments
for kill in {1..6}; do
  { RICCI_SIGNAL_AT="9 $((20 + RANDOM % 60))" LD_PRELOAD=$build/libricci-signal-at.so "$build/ricci-train" "${small[@]}" "${tsv[@]}" name=killed >out 2>err </dev/null; } 2>/dev/null
  [ $? = 137 ] || verdict "kill $kill" 'it survived'
done
accept 'killed 6 times, it runs to the end' train "${small[@]}" "${tsv[@]}" name=killed
verdict 'with the same model' "$(cmp runs/{tsv,killed}/model.safetensors 2>&1)"

# ---- Evaluation
accept 'evaluation on the documents that were left out' eval runs/tsv
verdict 'which are 40' "$(grep -q '^reviews\.tsv (validation): 40 documents, context 32: [0-9.]* nats per document, accuracy [01]\.[0-9]*, macro F1 [01]\.[0-9]*$' out || shown out)"
told=$(sed -nE 's/.*accuracy ([0-9.]*), macro.*/\1/p' out)
verdict 'with the accuracy that the training told' "$(grep '"val_accuracy":[01]' runs/tsv/metrics.jsonl | tail -1 | sed -E 's/.*"val_accuracy":([0-9.]*).*/\1/' | xargs printf '%.4f' | diff - <(printf '%.4f' "$told"))"
accept 'evaluation on a file' eval runs/tsv --data reviews.tsv
verdict 'of all documents' "$(grep -q '^reviews\.tsv: 400 documents' out || shown out)"
cp out expected
accept 'as JSON' eval runs/tsv --data reviews.tsv --json
counts='"sequences":400,.*"confusion":\[\[[0-9]+,[0-9]+\],\[[0-9]+,[0-9]+\]\]\}'
verdict 'with the counts' "$(tr -d '\n ' <out | grep -qE '^\[\{"run":"runs/tsv","text":"reviews\.tsv","context":32,'"$counts"'\]$' || shown out)"
accept 'two classifiers as JSON' eval runs/tsv runs/killed --data reviews.tsv --json
verdict 'are one list' "$(tr -d '\n ' <out | grep -qE '^\[\{"run":"runs/tsv",.*'"$counts"',\{"run":"runs/killed",.*'"$counts"'\]$' || shown out)"
accept 'two classifiers' eval runs/tsv runs/killed --data reviews.tsv
verdict 'have a line each' "$([ "$(grep -cE '^runs/(tsv|killed), reviews\.tsv: 400 documents' out)" = 2 ] || shown out)"
accept 'evaluation on shards' eval runs/tsv --data shards
verdict 'is the same' "$(diff <(sed 's/^[^:]*//' expected) <(sed 's/^[^:]*//' out))"
refuse 'windows of documents' 1 '--stride: runs/tsv reads whole documents, not windows' eval runs/tsv --stride 3

# ---- Documents without text: both parts of gaps.tsv have one
# tells NAME PROGRAM ARGUMENT ...: exit code 0, and one line on stderr, which counts them.
tells() {
  local fault=
  run "${@:2}" || fault="exit code $?"
  [ "$(cat err)" = 'warning: gaps.tsv: documents without text, which are left out: 2' ] || fault+=' expected one line with their number'
  verdict "$1" "$fault"
}
gaps=("${small[@]}" "${tsv[@]}" data=gaps.tsv batch=2 steps=1)
await '[ $(($(date +%s) - $(stat -c %Z gaps.tsv))) -gt 5 ]'  # the cache takes no file that was changed in the last seconds
before=$(ls cache/ricci)
tells 'a training tells how many there are' train "${gaps[@]}" train_fraction=0.5 name=gaps
stores=$(ls cache/ricci)
verdict 'it has made a store' "$([ "$stores" != "$before" ] || instead ls cache/ricci)"
tells 'a training from the cache, too' train "${gaps[@]}" train_fraction=0.5 name=cached
verdict 'the store is the same' "$(diff <(echo "$stores") <(ls cache/ricci))"
tells 'an evaluation, too' eval runs/tsv --data gaps.tsv
verdict 'it reads the others' "$(grep -q '^gaps\.tsv: 4 documents' out || shown out)"
tells 'texts without such documents are not named' train "${gaps[@]}" validation=reviews.tsv name=beside

# ---- What is wrong, in one line
refuse 'a text without labels' 1 'data: words\.txt \(train\) has no labels, but model\.family: classifier learns from them' train "${small[@]}" data=words.txt
accept 'shards without labels' prepare words.txt --documents line --tokenizer words.json --output plain
refuse 'are refused' 1 'data: plain \(train\) has no labels' train "${small[@]}" data=plain
refuse 'no field with the label' 1 'label_field: not given, but model\.family: classifier learns from labelled documents' train "${small[@]}" data=reviews.tsv format=tsv
refuse 'a field of plain text' 1 'label_field: only jsonl and tsv have fields, but format: text' train "${small[@]}" data=reviews.tsv label_field=1
echo '7	film' >>reviews.tsv
refuse 'a label out of range' 1 'reviews\.tsv:401: label 7 is out of range: 2 classes have 0 to 1' train "${small[@]}" "${tsv[@]}" name=range
refuse 'in an evaluation, too' 1 'reviews\.tsv:401: label 7 is out of range' eval runs/tsv --data reviews.tsv
accept 'shards of more classes' prepare reviews.tsv --format tsv --label-field 1 --classes 8 --tokenizer words.json --output more
refuse 'than the model has' 1 'data: more \(train\) has labels of 8 classes, but model\.classes: 2' train "${small[@]}" data=more
refuse 'a sample of a classifier' 1 'sample\.tokens: 5, but model\.family: classifier writes no text' train "${small[@]}" "${tsv[@]}" sample.tokens=5
refuse 'text of a classifier' 1 'runs/tsv: model\.family: classifier writes no text; ricci-predict prints the class of a text' generate runs/tsv --prompt film
verdict 'is refused before the prompt is printed' "$(cat out)"
accept 'a coarse model' train tiny.yaml name=coarse model.family=coarse model.scale=4
refuse 'text of a coarse model' 1 'model\.family: coarse writes no text; ricci-analyze completions shows what it predicts' generate runs/coarse --prompt film

echo "$failures failed"
exit $((failures > 0))
