#!/usr/bin/env bash
# A classifier learns from TSV, JSONL and shards, with numbers or words as labels. ricci eval and ricci predict read these formats and
# agree. Errors of labels are one line.
#   classify.sh build-folder
. "$(dirname "$0")/outputs.sh" "$@"
RANDOM=1

# ---- Reviews: words determine the label
for ((i = 0; i < 200; ++i)); do
  positive=$((i * 7 % 3 == 0)) words=
  for ((w = RANDOM % 12 + 3; w > 0; --w)); do
    case $((RANDOM % 5 + 5 * positive)) in 0) words+=' awful' ;; 1) words+=' poor' ;; 5) words+=' good' ;; 6) words+=' great' ;; *) words+=' film' ;; esac
  done
  echo "$positive	${words# }"
done >numbers.tsv
sed 's/^0/negative/; s/^1/positive/' numbers.tsv >reviews.tsv
printf 'negative\t\npositive\tgood\nnegative\tpoor film\npositive\tgreat\nnegative\t\npositive\tgood film\n' >gaps.tsv
awk -F'\t' 'BEGIN { print "stars,body" } { printf "%s,\"%s\"\r\n", $1, $2 }' reviews.tsv >reviews.CSV
awk -F'\t' '{ printf "{\"stars\":\"%s\",\"body\":\"%s\"}\n", $1, $2 }' reviews.tsv | gzip >reviews.jsonl.gz
cut -f 2 reviews.tsv >texts.txt
accept 'a vocabulary' tokenize train texts.txt --kind word -o words.json
small=(model.family=classifier model.layers=1 model.heads=2 model.d=16 model.ctx=32 tokenizer=words.json batch=8 steps=40 eval_every=20 lr=1e-2)
tsv=(data=reviews.tsv format=tsv label_field=1)
names='labels=[negative, positive]'

accept 'TSV' train "${small[@]}" "${tsv[@]}" name=tsv model.dropout=0.1 sample.tokens=60
told=$(sed -nE 's/.*"val_accuracy":([0-9.]+),.*/\1/p' runs/tsv/metrics.jsonl | tail -1 | xargs printf '%.4f')
shows 'it tells loss and accuracy' "^step 40: train [0-9.]+, validation [0-9.]+, accuracy ${told/./\\.} \(20 documents\)\$"
holds 'it learns' awk '/^step 40: / { learnt = $6 + 0 < 0.3 } END { exit !learnt }' out
holds 'the model keeps the words' eval 'header runs/tsv/model.safetensors | grep -F "\"labels\":\"[\\\"negative\\\",\\\"positive\\\"]\""'
holds 'and the run file has none' eval '! grep ^labels: runs/tsv/config.yaml'
accept 'it goes on' train "${small[@]}" "${tsv[@]}" name=tsv model.dropout=0.1 steps=41
labelled=(prepare reviews.tsv --format tsv --label-field 1 --labels negative,positive --tokenizer words.json)
accept 'shards with labels' "${labelled[@]}" --output shards
accept 'words next to shards with their names' train "${small[@]}" data=shards format=tsv label_field=1 validation=reviews.tsv name=named
refuse 'shards with other names' 1 'labels: positive, negative, but the classes in .*/shards are negative, positive' \
  train "${small[@]}" data=shards 'labels=[positive, negative]' name=bad
accept 'shards of the other order' prepare reviews.tsv --format tsv --label-field 1 --labels positive,negative --tokenizer words.json --output turned
accept 'shards of numbers' prepare numbers.tsv --format tsv --label-field 1 --classes 2 --tokenizer words.json --output counted
refuse 'words without names next to shards' 1 "reviews\.tsv:[0-9]+: label '(negative|positive)' is not an integer from 0 to 1; list words in the key labels, such as \[no, yes\]" \
  train "${small[@]}" data=counted format=tsv label_field=1 validation=reviews.tsv name=unnamed
# alike NAME KEY=VALUE ...: training on the same documents gives the same weights.
alike() {
  accept "$1" train "${small[@]}" "name=$1" "${@:2}"
  verdict 'the same model' "$(cmp <(tensors runs/jsonl/model.safetensors) <(tensors "runs/$1/model.safetensors") 2>&1)"
}
alike jsonl data=reviews.jsonl.gz format=jsonl text_field=body label_field=stars
alike csv data=reviews.CSV text_field=body label_field=stars
alike words "${tsv[@]}"
alike numbers data=numbers.tsv format=tsv label_field=1 "$names"
alike plain data=numbers.tsv format=tsv label_field=1
alike shards data=shards "$names"
alike from_shards data=shards
prints 'the names of shards are those of the run' '^positive +negative 0\.[0-9]+  positive 0\.[0-9]+  good film$' predict from_shards 'good film'
refuse 'an evaluation on shards of the other order' 1 'labels: negative, positive, but the classes in .*turned are positive, negative' eval from_shards --data turned
alike numbered data=counted
prints 'shards without names' '^1 +0 0\.[0-9]+  1 0\.[0-9]+  good film$' predict numbered 'good film'
accept 'a vocabulary made from the documents' train "${small[@]}" "${tsv[@]}" name=made tokenizer=word steps=2
accept 'a mixture' train "${small[@]}" "${tsv[@]/#data=*/data=[reviews.tsv, reviews.tsv]}" name=mixed weights='[1, 2]' steps=2

# ---- Evaluation
prints 'evaluation on the documents that were left out' '^reviews\.tsv \(validation\): 20 documents, context 32$' eval words
shows 'by its numbers' '^[0-9.]* nats per document, accuracy [01]\.[0-9]*, macro F1 [01]\.[0-9]*$'
told=$(grep '"val_accuracy":[01]' runs/words/metrics.jsonl | tail -1 | sed -E 's/.*"val_accuracy":([0-9.]*).*/\1/')
shows 'with the accuracy that the training told' "accuracy $(printf '%.4f' "$told"), macro"
prints 'evaluation on a file, of all documents' '^reviews\.tsv: 200 documents' eval words --data reviews.tsv
cp out expected
sed -n '3,$p' out >matrix
accept 'smaller shards' "${labelled[@]}" --shard-tokens 500 --output smaller
accept 'evaluation on shards' eval words --data smaller
is 'is the same' "$(sed 's/^[^:]*:/smaller:/' expected)" cat out
prints 'two classifiers have their lines' '^words, reviews\.tsv: 200 documents' eval words numbers --data reviews.tsv
shows 'the second' '^numbers, reviews\.tsv: 200 documents'
verdict 'which fit on a terminal' "$(awk 'length > 80' out)"
prints 'as JSON, with the names of the labels' '"negative"' eval words numbers --data reviews.tsv --json
refuse 'windows of documents' 1 '--stride: runs/tsv scores documents separately, not in windows' eval runs/tsv --stride 3

# ---- Prediction
accept 'texts' predict words 'good great film' 'awful film'
is 'a line each' $'positive  negative P  positive P  good great film\nnegative  negative P  positive P  awful film' sed -E 's/[01]\.[0-9]{4}/P/g' out
verdict 'that fits on a terminal' "$(awk 'length > 80' out)"
verdict 'probabilities' "$(awk '{ if ($3 + $5 < 0.9998 || $3 + $5 > 1.0002) print }' out)"
cp out expected
printf 'good great film\r\nawful film\n' >lines.txt
"$build/ricci-predict" words --batch 1 <lines.txt >out 2>err
verdict 'stdin, one by one, is the same' "$(cmp expected out 2>&1)$(cat err)"
printf '{"id": 7, "body": "good great film"}\n{"body": ""}\n' | "$build/ricci-predict" jsonl --jsonl >out 2>err
is 'JSONL, with the other members' $'{"id":7,"body":"good great film","text":"good great film","class":1,"label":"positive","probabilities":{"negative":P,"positive":P}}\n{"body":"","text":"","class":null,"label":null,"probabilities":{}}' \
  sed -E 's/[01]\.[0-9]+/P/g' out
is 'an empty document is told' 'warning: stdin:2: has no tokens, and so no class' cat err
printf '{"body": "good film"}\n' | "$build/ricci-predict" csv --jsonl >out 2>err
shows 'the field of a run of CSV' '^\{"body":"good film","text":"good film","class":1,'
head -3 reviews.tsv | "$build/ricci-predict" tsv >out 2>err
head -3 texts.txt | "$build/ricci-predict" tsv >lines 2>&1
verdict 'lines with tabs have the columns of a run of TSV' "$(diff lines out)$(cat err)"
printf 'good film\n\nawful film\n' | "$build/ricci-predict" words >out 2>err
is 'it has a row, so that paste fits' $'positive\n-\nnegative' cut -d ' ' -f 1 out
accept 'a classifier of characters' train "${small[@]}" "${tsv[@]}" name=characters tokenizer=char steps=2
printf 'good film\nd\xc3\xa4d\nawful film\n' | "$build/ricci-predict" characters >out 2>err
is 'one unknown character' 1 echo "${PIPESTATUS[1]}"
shows 'is one line' "^ricci predict: stdin:2: char tokenizer: 'ä' \(U\+00E4\) at byte 1 is not among the [0-9]+ characters of the vocabulary$" err
is 'and costs only its document a class' $'film\ndäd -\nfilm' awk '{ print $NF ($1 == "-" ? " -" : "") }' out
printf '{"text": "good"}\n{"text": "d\xc3\xa4d", "id": 2}\n{"text": \n{"text": "awful"}\n' | "$build/ricci-predict" characters --jsonl >out 2>err
is 'in lines of JSON, too' 1 echo "${PIPESTATUS[1]}"
is 'with the error of each line' $'4\n"id":2,"class":null,"label":null,"probabilities":{},"error":"stdin:2: char\n"error":"stdin:3: invalid JSON' \
  eval "grep -c '' out; grep -oE '(\"id\":2.*)?\"error\":\"stdin:[23]: (char|invalid JSON)' out"
shows 'in one line' '^ricci predict: stdin:2: char tokenizer: ' err
printf '{"id": 1, "text": "good", "label": "bad", "error": "none", "class": null}\n\n{"id": 2, "body": "good"}\n{"id": 3, "text": 5}\n' | "$build/ricci-predict" characters --jsonl >out 2>err
is 'members with the name of a result are kept, a blank line is answered, and so is an object without a text' \
  $'{"id":1,"text":"good","input_label":"bad","input_error":"none","input_class":null,"class":P,"label":"P","probabilities":{"negative":P,"positive":P}}
{"text":"","class":null,"label":null,"probabilities":{}}
{"id":2,"body":"good","text":"{\\"id\\": 2, \\"body\\": \\"good\\"}","class":null,"label":null,"probabilities":{},"error":"stdin:3: has no text \\"text\\""}
{"id":3,"input_text":5,"text":"{\\"id\\": 3, \\"text\\": 5}","class":null,"label":null,"probabilities":{},"error":"stdin:4: has no text \\"text\\""}' \
  sed -E 's/[01]\.[0-9]+/P/g; s/"class":[01]/"class":P/; s/"label":"(posi|nega)tive"/"label":"P"/' out
printf '[1]\n{"text": "good"}\n' | "$build/ricci-predict" characters --jsonl --batch 1 >out 2>err
is 'a line that is no object' $'{"text":"[1]","class":null,"label":null,"probabilities":{},"error":"stdin:1: is not a JSON object"}\n2' eval 'head -1 out; grep -c "" out'
"$build/ricci-predict" words "$(printf 'good film %.0s' {1..20})" >out 2>err
is 'a long document is told' 'warning: 1 longer documents were cut after 32 tokens' cat err
"$build/ricci-predict" words --batch 7 <texts.txt >out 2>err
count() { paste <(cut -f 1 reviews.tsv) <(cut -d ' ' -f 1 out) | grep -cx "$1	$2"; }
verdict 'have the confusion matrix of ricci eval' "$(diff <(awk '{ $1 = $1; print }' matrix | cut -d ' ' -f 1-3) <(
  echo 'documents of class'
  for label in negative positive; do echo "$label $(count $label negative) $(count $label positive)"; done))"
shows 'under its headings' '^documents of class +as negative +as positive +precision +recall$' matrix
accept 'a run that writes' train tiny.yaml name=tiny
refuse 'is none' 1 'runs/tiny: is a language model, not a classifier; ricci generate continues a text' predict tiny a
"$build/ricci-predict" words --jsonl <lines.txt >out 2>err
shows 'a line that is not JSON is named' '^ricci predict: stdin:1: invalid JSON at byte 1 of ' err

# ---- Errors, in one line
bad=(train "${small[@]}" name=bad)
refuse 'another number of classes' 1 "model\.classes: 3, but reviews\.tsv has 2 distinct labels, from 'negative' to 'positive'; set model\.classes=2" "${bad[@]}" "${tsv[@]}" model.classes=3
refuse 'names of another number' 1 'labels: has 3 names, expected 2 \(model\.classes\)' "${bad[@]}" "${tsv[@]}" 'labels=[a, b, c]'
refuse 'names twice' 1 "labels: 'a' is empty or a duplicate" "${bad[@]}" "${tsv[@]}" 'labels=[a, a]'
refuse 'other names' 1 "reviews\.tsv:1: label 'positive' is not one of bad, good" "${bad[@]}" "${tsv[@]}" 'labels=[bad, good]'
refuse 'a text without labels' 1 'data: texts\.txt has no labels, but model\.family=classifier learns from labels' "${bad[@]}" data=texts.txt
accept 'shards without labels' prepare texts.txt --documents line --tokenizer words.json --output plain
refuse 'are refused' 1 'data: plain has no labels' "${bad[@]}" data=plain
refuse 'no field with the label' 1 'label_field: is not set, but a classifier \(model\.family\) learns from labelled documents' "${bad[@]}" data=reviews.tsv format=tsv
refuse 'a label that is no column' 1 "label_field: 'label' is not a column number \(the first column is 1\)" "${bad[@]}" data=reviews.tsv label_field=label text_field=2
refuse 'a field of plain text' 1 'label_field: is supported only by jsonl, tsv and csv, not by text' "${bad[@]}" data=reviews.tsv format=text label_field=1
echo '7	film' >>numbers.tsv
refuse 'a label out of range' 1 'numbers\.tsv:201: label 7 is out of range for 2 classes, expected 0 to 1; set more classes, or list all labels in the key labels, such as \[1, 2, 5\]$' "${bad[@]}" data=numbers.tsv format=tsv label_field=1
sed 's/^0/1/; t; s/^1/2/' numbers.tsv | head -200 >from_one.tsv
refuse 'labels from 1' 1 'from_one\.tsv:[0-9]+: label 2 is out of range for 2 classes, expected 0 to 1; set more classes, or list all labels' "${bad[@]}" data=from_one.tsv label_field=1
alike from_one data=from_one.tsv label_field=1 'labels=[1, 2]'
prints 'are named' '^2 +1 0\.[0-9]+  2 0\.[0-9]+  good film$' predict from_one 'good film'
refuse 'labels without a field' 1 'classes, labels: require the key label_field' prepare reviews.tsv --labels negative,positive --tokenizer words.json --output bad
refuse 'a field without classes' 1 'label_field: requires the key classes or labels' prepare reviews.tsv --label-field 1 --tokenizer words.json --output bad
refuse 'in an evaluation, too' 1 'numbers\.tsv:201: label 7 is out of range' eval plain --data numbers.tsv
accept 'shards of more classes' prepare numbers.tsv --format tsv --label-field 1 --classes 8 --tokenizer words.json --output more
refuse 'than the model has' 1 'data: more has labels of 8 classes, but model\.classes is 2' "${bad[@]}" data=more
refuse 'text of a classifier' 1 'runs/tsv: a classifier model writes no text; ricci predict prints the class of a text' generate runs/tsv --prompt film
holds 'is refused before the prompt is printed' [ ! -s out ]
accept 'a coarse model' train tiny.yaml name=coarse model.family=coarse model.scale=4
refuse 'text of a coarse model' 1 'a coarse model writes no text; ricci analyze completions shows what it predicts' generate runs/coarse --prompt film

# ---- Documents without text: both parts of gaps.tsv have one. A start that encodes them prints a line
# tells NAME PROGRAM ARGUMENT ...: exit code 0, and one line on stderr with their number.
tells() {
  run "${@:2}" || echo "exit code $?" >>err
  is "$1" 'warning: gaps.tsv: documents without text are left out: 2' cat err
}
gaps=("${small[@]}" "${tsv[@]/#data=*/data=gaps.tsv}" batch=2 steps=1)
await '[ $(($(date +%s) - $(stat -c %Z gaps.tsv))) -gt 3 ]'  # later the cache identifies it by its time
before=$(ls cache/ricci)
tells 'a training tells how many there are' train "${gaps[@]}" train_fraction=0.5 name=gaps
shards=$(ls cache/ricci)
holds 'it has made shards in the cache' [ "$shards" != "$before" ]
accept 'once: a training from the cache does not' train "${gaps[@]}" train_fraction=0.5 name=cached
is 'which are the same afterwards' "$shards" ls cache/ricci
tells 'an evaluation, too' eval words --data gaps.tsv
shows 'it reads the others' '^gaps\.tsv: 4 documents'
RICCI_CACHE=$PWD/other tells 'texts without such documents are not named' train "${gaps[@]}" validation=reviews.tsv name=beside
finish
