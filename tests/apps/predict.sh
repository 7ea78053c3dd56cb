#!/usr/bin/env bash
# ricci-predict: labels that are words, documents from the command line, files, stdin and JSONL, and the same predictions as ricci-eval.
#   predict.sh build-folder
. "$(dirname "$0")/programs.sh" "$@"
for ((i = 0; i < 200; ++i)); do
  case $((i % 3)) in 0) echo "positive	good good great film $i" ;; *) echo "negative	awful poor film $i" ;; esac
done >reviews.tsv
awk -F'\t' '{ printf "{\"stars\":\"%s\",\"body\":\"%s\"}\n", $1, $2 }' reviews.tsv >reviews.jsonl
small=(model.family=classifier model.layers=1 model.heads=2 model.d=16 model.ctx=32 tokenizer=byte batch=8 steps=60 eval_every=0 lr=1e-2)
tsv=(data=reviews.tsv format=tsv label_field=1)

# ---- Labels that are words
accept 'words as labels' train "${small[@]}" "${tsv[@]}" name=words
verdict 'the run keeps them' "$(grep -qx 'labels: \[negative, positive\]' runs/words/config.yaml || instead grep labels runs/words/config.yaml)"
accept 'it goes on' train "${small[@]}" "${tsv[@]}" name=words steps=61
accept 'JSONL' train "${small[@]}" name=jsonl data=reviews.jsonl format=jsonl text_field=body label_field=stars
sed 's/^negative/0/; s/^positive/1/' reviews.tsv >numbers.tsv
accept 'numbers with names' train "${small[@]}" name=numbers data=numbers.tsv format=tsv label_field=1 'labels=[negative, positive]'
accept 'numbers without' train "${small[@]}" name=plain data=numbers.tsv format=tsv label_field=1
for name in numbers plain; do
  verdict "$name: the same model" "$(cmp <(tensors runs/jsonl/model.safetensors) <(tensors runs/$name/model.safetensors) 2>&1)"
done
accept 'shards' prepare reviews.tsv --format tsv --label-field 1 --labels negative,positive --tokenizer byte --output shards
accept 'of the same documents' train "${small[@]}" name=shards data=shards 'labels=[negative, positive]'
verdict 'give the same model' "$(cmp <(tensors runs/jsonl/model.safetensors) <(tensors runs/shards/model.safetensors) 2>&1)"
refuse 'another number of classes' 1 "model\.classes: 3, but reviews\.tsv has labels of 2 kinds, from 'negative' to 'positive'" train "${small[@]}" "${tsv[@]}" name=three model.classes=3
refuse 'names of another number' 1 'labels: 3 names, but model\.classes: 2' train "${small[@]}" "${tsv[@]}" name=three 'labels=[a, b, c]'
refuse 'names twice' 1 "labels: 'a', expected names that differ" train "${small[@]}" "${tsv[@]}" name=three 'labels=[a, a]'
refuse 'other names' 1 "reviews\.tsv:1: label 'positive' is none of bad, good" train "${small[@]}" "${tsv[@]}" name=other 'labels=[bad, good]'

# ---- Documents
accept 'texts' predict words 'good great film' 'awful film'
verdict 'a line each' "$(diff <(sed -E 's/[01]\.[0-9]{4}/P/g' out) <(printf 'positive  negative P  positive P  good great film\nnegative  negative P  positive P  awful film\n'))"
verdict 'probabilities' "$(awk '{ if ($3 + $5 < 0.9998 || $3 + $5 > 1.0002) print }' out)"
cp out expected
printf 'good great film\r\nawful film\n' >lines.txt
accept 'a file' predict runs/words --file lines.txt
verdict 'is the same' "$(cmp expected out 2>&1)"
"$build/ricci-predict" words --batch 1 <lines.txt >out 2>err
verdict 'stdin, one by one, is the same' "$(cmp expected out 2>&1)$(cat err)"
printf '{"body": "good great film"}\n{"body": ""}\n' | "$build/ricci-predict" jsonl --jsonl >out 2>err
verdict 'JSONL' "$(sed -E 's/[01]\.[0-9]+/P/g' out | diff - <(printf '%s\n' '{"text":"good great film","class":1,"label":"positive","probabilities":{"negative":P,"positive":P}}' '{"text":"","class":null,"label":null,"probabilities":{}}'))"
verdict 'an empty document is told' "$(diff err <(echo 'ricci-predict: stdin:2: has no tokens, and no class'))"
"$build/ricci-predict" words 'good great film good great film good great film' >out 2>err
verdict 'a long document is told' "$(diff err <(echo 'ricci-predict: of 1 longer documents the first 32 tokens are read'))"
accept 'a run that writes' train tiny.yaml name=tiny
refuse 'is none' 1 'runs/tiny: is no classifier, but writes text; ricci-generate continues a text' predict tiny a
refuse 'no file' 1 'cannot read none\.txt: No such file' predict words --file none.txt
refuse 'a line that is no JSON' 1 'lines\.txt:1: is not a JSON object' predict words --jsonl --file lines.txt

# ---- The same as ricci-eval
accept 'evaluation' eval words --data reviews.tsv
sed -n '2,$p' out >matrix
cut -f 2 reviews.tsv >texts.txt
accept 'prediction' predict words --file texts.txt --batch 7
count() { paste <(cut -f 1 reviews.tsv) <(cut -d ' ' -f 1 out) | grep -cx "$1	$2"; }
verdict 'the confusion matrix' "$(diff <(awk '{ $1 = $1; print }' matrix | cut -d ' ' -f 1-3) <(
  echo 'documents of class'
  for label in negative positive; do echo "$label $(count $label negative) $(count $label positive)"; done))"
verdict 'its headings' "$(head -1 matrix | grep -qE '^documents of class +as negative +as positive +precision +recall$' || instead head -1 matrix)"
accept 'evaluation as JSON' eval words --data reviews.tsv --json
verdict 'with the names' "$(tr -d '\n ' <out | grep -q '"classes":\["negative","positive"\]' || shown out)"

echo "$failures failed"
exit $((failures > 0))
