#!/usr/bin/env bash
# ricci-eval of one run and of several, as a line, a table and JSON.
#   evaluate.sh build-folder
. "$(dirname "$0")/outputs.sh" "$@"

# value KEY [NUMBER]: a number out of the JSON in the file out, of the first run or of a later one.
value() { sed -nE "s/^ *\"$1\": ([^,]*),?$/\1/p" out | sed -n "${2:-1}p"; }
accept 'a run' train tiny.yaml name=characters steps=4 lr=1e-2
accept 'one with other tokens' train tiny.yaml name=words steps=4 lr=1e-2 tokenizer=word eos=line

# ---- One run
printf 'the lazy dog jumps\nover the quick fox 1\n\nthe dog' >score.txt
prints 'a text is scored' '^score\.txt: 47 tokens, context 16, stride 16$' eval runs/characters --data score.txt
shows 'by its numbers' '^[0-9.]+ nats per token, perplexity [0-9.]+, [0-9.]+ bits per byte$'
mv out line.out
accept 'the same as JSON' eval runs/characters --data score.txt --json
is 'with the tokens, bytes and words of the text' $'47\n48\n14' eval 'value tokens; value bytes; value words'
nats=$(value nats_per_token)
shows 'and the numbers of the line' "^$(printf '%.4f' "$nats") nats per token" line.out

# ---- The name of a text chooses its format
awk '{ printf "{\"text\": \"%s\"}\n", $0 }' score.txt >score.NDJSON
prints 'lines of JSON' '^score\.NDJSON: 44 tokens, context 16, stride 16$' eval runs/characters --data score.NDJSON
mkdir -p mixed/below && cp score.txt mixed/a.txt && cp score.NDJSON mixed/below/b.ndjson
refuse 'a mixed folder' 1 'a\.txt:1: not JSON: fault at byte [0-9]+ of [0-9]+ \(format jsonl because of b\.ndjson\)' eval runs/characters --data mixed
accept 'a run of lines of JSON' train tiny.yaml name=objects data=score.NDJSON steps=2 model.ctx=4
printf 'id,text\n1,"the dog\njumps"\n' >score.csv
prints 'reads a table by its name' '^score\.csv: ' eval runs/objects --data score.csv
refuse 'and another name as it was trained' 1 'score\.txt:1: not JSON' eval runs/objects --data score.txt
accept 'a text by name: its validation is one, too' train tiny.yaml name=mixed data=score.NDJSON validation=score.NDJSON steps=1 model.ctx=4
refuse 'a text with a validation of JSON' 1 'score\.txt:1: not JSON: .* \(format jsonl because of score\.NDJSON\)' train tiny.yaml name=other data=score.txt validation=score.NDJSON
printf '{"text": "the dog"}\n%.0s' {1..9} >plain
run train tiny.yaml name=json data=plain steps=1 model.ctx=4
is 'a text that begins with JSON gets a line that names the format' 'warning: plain: is read as a text, but begins with a JSON object; format jsonl reads an object per line' cat err
accept 'but not if the format is given' train tiny.yaml name=given data=plain format=text steps=1 model.ctx=4
cp plain named.jsonl
accept 'which the name does not change' train tiny.yaml name=named data=named.jsonl format=text steps=1 model.ctx=4
same 'nor the tokens' runs/{given,named}/model.safetensors

# ---- Several runs
accept 'different tokens, one text' eval runs/characters runs/words --data score.txt --context 8 --stride 4 --json
is 'have the same bytes and words, and their own tokens' '48 48 14 47 14 4' eval 'echo $(value bytes) $(value bytes 2) $(value words 2) $(value tokens) $(value tokens 2) $(value stride 2)'
mv out both.out
accept 'as a table' eval runs/characters runs/words --data score.txt --context 8
verdict 'that fits on a terminal' "$(awk 'length > 80' out)"
accept 'the second alone' eval runs/words --data score.txt --context 8 --stride 4 --json
verdict 'has the same values' "$(diff <(sed '1d;$d' out) <(sed -n '/runs\/words/,$p' both.out | sed '$d' | sed '1i\ {'))"
accept 'words without a token for line ends' train tiny.yaml name=lineless steps=4 lr=1e-2 tokenizer=word
accept 'are scored' eval runs/lineless --data score.txt --json
is 'the text has as many words as tokens, but for the first, which nothing predicts' '11 10' eval 'echo $(value words) $(value tokens)'
refuse 'a run that is not there, after one that is' 1 'runs/none: no such run folder' eval runs/characters runs/none
holds 'prints nothing' [ ! -s out ]

# ---- The sorter
holds 'rows are drawn' "$build/ricci-sorter" sorting --rows 2000 --held-out 200
is 'as many as asked for' '2000 200' eval 'echo $(wc -l <sorting/train.jsonl) $(wc -l <sorting/held_out.jsonl)'
verdict 'no prompt is both learnt and held out' "$(comm -12 <(sort sorting/train.jsonl) <(sort sorting/held_out.jsonl))"
verdict 'each answer is the prompt in order' "$(tr -d '{}":,' <sorting/held_out.jsonl | while read -r _ prompt _ answer; do
  [ "$(fold -w 1 <<<"$prompt" | sort | tr -d '\n')" = "$answer" ] || echo "$prompt $answer"
done)"
holds 'the same seed' "$build/ricci-sorter" again --rows 2000 --held-out 200
holds 'draws the same rows' diff -r sorting again
# Long enough that it sorts some of the sequences, but not all.
pairs=(data=sorting/train.jsonl validation=sorting/held_out.jsonl format=pairs model.ctx=22)
prints 'train the sorter' '^[0-9]+\.[0-9]{2}% of the tokens right, exact answers: [0-9]+\.[0-9]%$' train tiny.yaml name=sorter "${pairs[@]}" sample.tokens=0 steps=60 batch=16 lr=1e-2
cp out train.out
prints 'it is evaluated on what is held out' '^held_out\.jsonl: 2400 tokens, context 22$' eval runs/sorter
is 'as by the training' "$(grep -E '^[0-9.]+% of the tokens right, exact answers: [0-9.]+%$' out)" grep 'exact answers' train.out
accept 'as JSON' eval runs/sorter --json
told=$(sed -nE 's/.*"val_accuracy":([0-9.]+),.*/\1/p' runs/sorter/metrics.jsonl | tail -1)
is 'the records of the training have the part of exact answers' "$(printf %.10g "$told")" eval 'printf "%.10g\n" "$(value sequence_accuracy)"'
holds 'of which some are exact' eval '[[ $told = 0.*[1-9]* ]]'
# What it writes for a prompt is exact as often: the answer is predicted from its own tokens, which are the true ones as long as it is.
prompts=$(sed -E 's/"prompt": "(.*)", .*/"prompt": "\1"}/' sorting/held_out.jsonl)
"$build/ricci-generate" runs/sorter --jsonl --temperature 0 --tokens 20 <<<"$prompts" >out 2>err
is 'and as many are written' "$(awk "BEGIN { print int(200 * $told + 0.5) }")" eval "paste -d ' ' <(sed -E 's/.*\"text\":\"([^\"]*)\".*/\1/' out) <(sed -E 's/.*\"answer\": \"(.*)\"}/\1/' sorting/held_out.jsonl) | awk '\$1 == \$2' | grep -c ''"
accept 'other pairs' eval runs/sorter --data sorting/train.jsonl --json
is 'have their number of tokens' 24000 value tokens
accept 'a context that cuts them' eval runs/sorter --context 15 --json
is 'leaves five tokens of each' 1000 value tokens
refuse 'windows of pairs' 1 '--stride: runs/sorter reads whole documents, not windows' eval runs/sorter --stride 3
refuse 'a text' 1 "score\.txt:1: .*" eval runs/sorter --data score.txt
printf 'metric: [tiny.yaml, model.mixer=metric]\nidentity: [tiny.yaml, model.mixer=identity, "~model.heads"]\n' >mixers.yaml
sed -i '/^name:/d' tiny.yaml
run compare mixers.yaml "${pairs[@]}" sample.tokens=0 steps=60 batch=16 lr=1e-2
is 'a comparison of mixers has the exact answers of both' $'accuracy\nmetric\nidentity' awk 'NR == 2 && /accuracy/ { print "accuracy" } NR > 2 && NR < 5 { print $1 }' out

# ---- Models whose loss leaves positions out
accept 'train one that scores where every scale is heard' train tiny.yaml name=full steps=2 model.family=topdown 'model.scales=[1, 4]' model.layers=1 model.loss_from=first_full
prints 'on the tokens that it scores' '^score\.txt: 38 tokens, context 16, stride 16$' eval runs/full --data score.txt
full=$(sed -n 2p out)
holds 'without what is said of a whole text' eval 'grep -qE "^[0-9.]+ nats per token, perplexity [0-9.]+$" out && [ "$(grep -c "" out)" = 2 ]'
prints 'the same positions are named' '^score\.txt: 38 tokens, context 16, stride 16, from position 3$' eval runs/full --data score.txt --from 3
is 'and the same nats' "$full" sed -n 2p out
accept 'those of a model that would score more' eval runs/characters runs/full --data score.txt --from 3 --json
is 'are the same tokens, without what is said of a whole text' '38 38 3 3' eval 'echo $(value tokens; value tokens 2; value from; value from 2; grep bytes out)'
accept 'a sliding window' eval runs/characters --data score.txt --stride 4 --from 14 --json
is 'of which positions are left out' 17 value tokens  # 2 of each of 9 windows, the last of which ends early
accept 'train one that is evaluated from a position on' train tiny.yaml name=from steps=2 eval_from=3
cp out train.out
accept 'it is evaluated' eval runs/from --json
shows 'on the tokens of its training' "validation $(printf %.4f "$(value nats_per_token)"), .*\($(value tokens) tokens\)" train.out
is 'from there' 3 value from
prints 'on all if asked, with the bytes' '"bytes"' eval runs/from --from 0 --json
head -c 4 score.txt >short.txt
refuse 'a text in front of the first position' 1 'eval_from: 3, but a window of short\.txt has 3 positions, counted from 0' eval runs/from --data short.txt
refuse 'evaluations of no position' 1 'eval_from: 16, but a window has 16 positions, counted from 0' train tiny.yaml eval_from=16
refuse 'positions of pairs' 1 '--from: runs/sorter reads whole documents, not windows' eval runs/sorter --from 3
refuse 'pairs that are evaluated from a position on' 1 'eval_from: nothing reads it here, only a format without answers' train tiny.yaml "${pairs[@]}" eval_from=3
coarse=(model.family=coarse model.layers=1 sample.tokens=0)
accept 'train one that scores cells' train tiny.yaml name=coarse steps=2 model.scale=4 "${coarse[@]}"
refuse 'positions of cells' 1 '--from: runs/coarse scores cells, not positions' eval runs/coarse --data score.txt --from 3
# Windows of 13 tokens and a last one of 9, scored in cells of 4 but the first: 3 times 8, and 4.
prints 'a text whose last window ends early, without its padding' '^score\.txt: 28 tokens, context 13' eval runs/coarse --data score.txt --context 13
refuse 'cells of overlapping windows' 1 '--stride: runs/coarse scores cells; where windows overlap it would score them twice' eval runs/coarse --data score.txt --stride 8
refuse 'a context of one cell' 1 'evaluation: the loss counts none of' eval runs/coarse --data score.txt --context 7
refuse 'a training on contexts of one cell' 1 'context: 7, too short: the loss of model\.family: coarse counts no token of it' train tiny.yaml name=bad model.scale=4 "${coarse[@]}" context=7
refuse 'pairs, of which it knows no order' 1 'format: pairs, but model\.family: coarse writes no text' train tiny.yaml name=bad "${pairs[@]}" "${coarse[@]}"

finish
