#!/usr/bin/env bash
# ricci-eval of one run and of several, as a line, a table and JSON; and what ricci-probe tells of a classifier.
#   evaluate.sh build-folder
golden=$(cd "$(dirname "$0")/../golden" && pwd) || exit 1
. "$(dirname "$0")/programs.sh" "$@"

# value KEY [NUMBER]: a number out of the JSON in the file out, of the first run or of a later one.
value() { sed -nE "s/^ *\"$1\": ([^,]*),?$/\1/p" out | sed -n "${2:-1}p"; }
# near EXPECTED GOT: equal to ten digits.
near() { awk -v a="$1" -v b="$2" 'BEGIN { d = a - b; if (d < 0) d = -d; if (a == "" || b == "" || d > 1e-10 * (a < 0 ? -a : a)) print b ", expected " a }'; }

accept 'a run' train tiny.yaml name=characters steps=20 lr=1e-2
accept 'one with other tokens' train tiny.yaml name=words steps=20 lr=1e-2 tokenizer=word eos=line
accept 'one on another text' train tiny.yaml name=bytes steps=1 tokenizer=byte context=8

# ---- One run
printf 'the lazy dog jumps\nover the quick fox 1\n\nthe dog' >score.txt
accept 'a text is scored' eval runs/characters --data score.txt
line='^score\.txt: 47 tokens, context 16, stride 16: [0-9.]+ nats per token, perplexity [0-9.]+, [0-9.]+ bits per byte$'
verdict 'as a line' "$(grep -qE "$line" out || shown out)"
mv out line.out
accept 'the same as JSON' eval runs/characters --data score.txt --json
verdict 'with the tokens, bytes and words of the text' "$(diff <(value tokens; value bytes; value words) <(printf '47\n48\n14\n'))"
nats=$(value nats_per_token)
verdict 'the perplexity' "$(near "$(awk -v n="$nats" 'BEGIN { printf "%.15g", exp(n) }')" "$(value perplexity)")"
verdict 'the bits per byte' "$(near "$(awk -v n="$nats" 'BEGIN { printf "%.15g", n * 47 / 48 / log(2) }')" "$(value bits_per_byte)")"
verdict 'the perplexity per word' "$(near "$(awk -v n="$nats" 'BEGIN { printf "%.15g", exp(n * 47 / 14) }')" "$(value word_perplexity)")"
verdict 'and the numbers of the line' "$(grep -qF ": $(printf '%.4f' "$nats") nats per token" line.out || shown line.out)"

# ---- Several runs
accept 'each on its own validation text' eval runs/characters runs/bytes
verdict 'a row each' "$(awk 'NR == 1 { next } { print $1, $3, $4, $NF }' <(sed 's/ (validation)//' out) | diff - <(printf 'runs/%s text.txt\n' 'characters 16 16' 'bytes 8 8'))"
verdict 'under their names' "$(head -1 out | tr -s ' ' | diff - <(echo 'run tokens context stride nats/token perplexity bits/byte word perplexity text'))"
accept 'different tokens, one text' eval runs/characters runs/words --data score.txt --context 8 --stride 4 --json
verdict 'have the same bytes and words' "$([ "$(value bytes)" = "$(value bytes 2)" ] && [ "$(value words 2)" = 14 ] || shown out)"
verdict 'and their own tokens' "$([ "$(value tokens)" = 47 ] && [ "$(value tokens 2)" = 14 ] && [ "$(value stride 2)" = 4 ] || shown out)"
mv out both.out
accept 'the second alone' eval runs/words --data score.txt --context 8 --stride 4 --json
verdict 'has the same values' "$(diff <(sed '1d;$d' out) <(sed -n '/runs\/words/,$p' both.out | sed '$d' | sed '1i\ {'))"
refuse 'a run that is not there, after one that is' 1 'runs/none: no such run folder' eval runs/characters runs/none
verdict 'prints nothing' "$([ ! -s out ] || shown out)"

# ---- The sorter
# Long enough that it sorts some of the sequences, but not all.
accept 'train the sorter' train tiny.yaml name=sorter data=sorter model.ctx=21 sample.tokens=0 steps=60 batch=16 lr=1e-2
accept 'it is evaluated' eval runs/sorter
verdict 'on what is held out' "$(grep -qE '^sorter \(held out\): 11264 tokens, context 21: [0-9.]+ nats .*, [0-9.]+% of the tokens and [0-9.]+% of the sequences right$' out || shown out)"
accept 'as JSON' eval runs/sorter --json
verdict 'with both accuracies' "$(grep -q '"token_accuracy": 0' out && grep -q '"sequence_accuracy": 0' out || shown out)"
told=$(sed -nE 's/.*"val_accuracy":([0-9.]+),.*/\1/p' runs/sorter/metrics.jsonl | tail -1)
verdict 'the records of the training have that of the sequences' "$([[ $told = 0.*[1-9]* ]] && near "$(value sequence_accuracy)" "$told" || echo "'$told'")"
refuse 'windows of rows' 1 '--stride: runs/sorter reads whole rows, not windows' eval runs/sorter --stride 3
refuse 'rows of another length' 1 '--context: runs/sorter reads whole rows of 21 tokens' eval runs/characters runs/sorter --context 8
refuse 'rows out of a text' 1 '--data: runs/sorter sorts, and is scored on the generated rows that its training left out' eval runs/sorter --data score.txt

# ---- Models whose loss leaves positions out
accept 'train one that scores where every scale is heard' train tiny.yaml name=full steps=2 model.family=topdown 'model.scales=[1, 4]' model.layers=1 model.loss_from=first_full
accept 'it is evaluated' eval runs/full --data score.txt
verdict 'on the tokens that it scores, without what is said of a whole text' \
  "$(grep -qE '^score\.txt: 38 tokens, context 16, stride 16: [0-9.]+ nats per token, perplexity [0-9.]+$' out || shown out)"
full=$(sed -nE 's/.*: ([0-9.]+) nats.*/\1/p' out)
accept 'the same positions are named' eval runs/full --data score.txt --from 3
verdict 'and the same nats' "$(grep -qE "^score\.txt: 38 tokens, context 16, stride 16, from position 3: $full nats per token, perplexity [0-9.]+$" out || shown out)"
accept 'those of a model that would score more' eval runs/characters runs/full --data score.txt --from 3 --json
verdict 'are the same tokens' "$(diff <(value tokens; value tokens 2; value from; value from 2) <(printf '38\n38\n3\n3\n'))"
verdict 'without what is said of a whole text' "$(! grep -q bytes out || shown out)"
accept 'a sliding window' eval runs/characters --data score.txt --stride 4 --from 14 --json
verdict 'of which positions are left out' "$(diff <(value tokens) <(echo 17))"  # 2 of each of 9 windows, the last of which ends early
accept 'train one that is evaluated from a position on' train tiny.yaml name=from steps=2 eval_from=3
cp out train.out
accept 'it is evaluated' eval runs/from --json
verdict 'on the tokens of its training' "$(grep -qE "validation $(printf %.4f "$(value nats_per_token)"), .*\($(value tokens) tokens\)" train.out && [ "$(value from)" = 3 ] || shown train.out out)"
accept 'on all if asked' eval runs/from --from 0 --json
verdict 'with the bytes' "$(grep -q '"bytes"' out && ! grep -q '"from"' out || shown out)"
head -c 4 score.txt >short.txt
refuse 'a text in front of the first position' 1 'eval_from: 3, but a window of short\.txt has 3 positions, counted from 0' eval runs/from --data short.txt
refuse 'a position behind the window' 1 'eval_from: 16, but a window of score\.txt has 16 positions, counted from 0' eval runs/from --data score.txt --from 16
refuse 'evaluations of no position' 1 'eval_from: 16, but a window has 16 positions, counted from 0' train tiny.yaml eval_from=16
refuse 'positions of rows' 1 '--from: runs/sorter reads whole rows, not windows' eval runs/sorter --from 3
refuse 'rows that are evaluated from a position on' 1 'eval_from' train tiny.yaml data=sorter model.ctx=21 sample.tokens=0 eval_from=3
accept 'train one that scores cells' train tiny.yaml name=coarse steps=2 model.family=coarse model.scale=4 model.layers=1 sample.tokens=0
refuse 'positions of cells' 1 '--from: runs/coarse scores cells, not positions' eval runs/coarse --data score.txt --from 3
accept 'a text whose last window ends early' eval runs/coarse --data score.txt --context 13
# Windows of 13 tokens and a last one of 9, scored in cells of 4 but the first: 3 times 8, and 4.
verdict 'without its padding' "$(grep -qE '^score\.txt: 28 tokens, context 13.*, perplexity [0-9.]+$' out || shown out)"
refuse 'cells of overlapping windows' 1 '--stride: runs/coarse scores cells, and would score those where windows overlap several times' eval runs/coarse --data score.txt --stride 8
refuse 'a context of one cell' 1 'evaluation: the loss counts none of' eval runs/coarse --data score.txt --context 7
refuse 'a training on contexts of one cell' 1 'context: 7, too short: the loss of model\.family: coarse counts no token of it' \
  train tiny.yaml name=bad model.family=coarse model.scale=4 model.layers=1 sample.tokens=0 context=7
refuse 'the sorter, of which it knows no order' 1 'data: sorter, but model\.family: coarse does not predict in which order tokens come' \
  train tiny.yaml name=bad data=sorter model.family=coarse sample.tokens=0 model.ctx=21

# ---- A classifier
# probed CASE [WORD...]: the words of a call of ricci-probe on a stored case.
probed() { python3 "$golden/stored.py" "$1" "$1" && words=(probe --config "$1/model.yaml" --weights "$1/weights.safetensors" --input "$1/in.safetensors" --output probe.out "${@:2}"); }
probed classifier_avgpool
accept 'the scores of a classifier' "${words[@]}" --scores
# It predicts 0, 1 and 1; the targets are 1, none and 1.
verdict 'by hand' "$(sed -E 's/"nats_per_sequence":0\.83277164507[0-9]*,//' out | diff - <(echo '{"sequences":2,"accuracy":0.5,"macro_precision":0.5,"macro_recall":0.25,"macro_f1":0.3333333333333333,"confusion":[[0,0],[1,1]]}'))"
accept 'without them' "${words[@]}"
verdict 'nothing is printed' "$([ ! -s out ] || shown out)"
probed gpt --scores
refuse 'the scores of another family' 1 '--scores: the scores of a classifier, but model\.family is decoder' "${words[@]}"
exit $((failures > 0))
