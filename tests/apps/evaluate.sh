#!/usr/bin/env bash
# ricci eval of one run and of multiple runs, as a line, a table and JSON.
#   evaluate.sh build-folder
. "$(dirname "$0")/outputs.sh" "$@"

# value KEY [NUMBER]: a number in the JSON of the file out, of the first run or a later one.
value() { sed -nE "s/^ *\"$1\": ([^,]*),?$/\1/p" out | sed -n "${2:-1}p"; }
accept 'a run' train tiny.yaml name=characters steps=4 lr=1e-2
accept 'one with other tokens' train tiny.yaml name=words steps=4 lr=1e-2 tokenizer=word eos=line

# ---- One run
printf 'the lazy dog jumps\nover the quick fox 1\n\nthe dog' >score.txt
prints 'a text is scored' '^score\.txt: 47 tokens, context 16, stride 16$' eval runs/characters --data score.txt
shows 'by its numbers' '^[0-9.]+ nats per token, perplexity [0-9.]+, [0-9.]+ bits per byte$'
mv out line.out
accept 'the same as JSON' eval runs/characters --data score.txt --json
is 'with the tokens and bytes of the text, and no words' $'47\n48' eval 'value tokens; value bytes; value words; value word_perplexity'
nats=$(value nats_per_token)
shows 'and the numbers of the line' "^$(printf '%.4f' "$nats") nats per token" line.out

# ---- A text's name chooses its format
awk '{ printf "{\"text\": \"%s\"}\n", $0 }' score.txt >score.NDJSON
prints 'lines of JSON' '^score\.NDJSON: 44 tokens, context 16, stride 16$' eval runs/characters --data score.NDJSON
mkdir -p mixed/below && cp score.txt mixed/a.txt && cp score.NDJSON mixed/below/b.ndjson
refuse 'a mixed folder' 1 'a\.txt:1: invalid JSON at byte [0-9]+ of [0-9]+ \(format jsonl because of b\.ndjson\)' eval runs/characters --data mixed
accept 'a run of lines of JSON' train tiny.yaml name=objects data=score.NDJSON steps=2 model.ctx=4
printf 'id,text\n1,"the dog\njumps"\n' >score.csv
prints 'reads a table by its name' '^score\.csv: ' eval runs/objects --data score.csv
refuse 'and another name as it was trained' 1 'score\.txt:1: invalid JSON' eval runs/objects --data score.txt
accept 'a text by name: its validation is one, too' train tiny.yaml name=mixed data=score.NDJSON validation=score.NDJSON steps=1 model.ctx=4
refuse 'a text with a validation of JSON' 1 'score\.txt:1: invalid JSON .* \(format jsonl because of score\.NDJSON\)' train tiny.yaml name=other data=score.txt validation=score.NDJSON
printf '{"text": "the dog"}\n%.0s' {1..9} >plain
run train tiny.yaml name=json data=plain steps=1 model.ctx=4
is 'a text that begins with JSON gets a line that names the format' 'warning: plain: is read as a text, but begins with a JSON object; format jsonl reads an object per line' cat err
accept 'but not if the format is given' train tiny.yaml name=given data=plain format=text steps=1 model.ctx=4
cp plain named.jsonl
accept 'which the name does not change' train tiny.yaml name=named data=named.jsonl format=text steps=1 model.ctx=4
same 'nor the tokens' runs/{given,named}/model.safetensors

# ---- Multiple runs
printf 'the lazy dog jumps\nover the quick fox\n\nthe dog' >known.txt
accept 'different tokens, one text' eval runs/characters runs/words --data known.txt --context 8 --stride 4 --json --words
is 'have the same bytes and words, and their own tokens' '46 46 10 10 45 13 4' eval 'echo $(value bytes) $(value bytes 2) $(value words) $(value words 2) $(value tokens) $(value tokens 2) $(value stride 2)'
is 'and the perplexity of a word is that of all tokens' "$(awk "BEGIN { printf \"%.6g\", exp($(value nats_per_token 2) * 13 / 10) }")" eval 'printf "%.6g\n" "$(value word_perplexity 2)"'
mv out both.out
accept 'as a table' eval runs/characters runs/words --data known.txt --context 8
verdict 'that fits on a terminal' "$(awk 'length > 80' out)"
is 'with the names of the runs' $'run\ncharacters\nwords' awk 'NR > 1 { print $1 }' out
is 'and no perplexity of a word' 1 eval 'grep -c "bits/byte$" out'
accept 'which is there if asked for' eval runs/characters runs/words --data known.txt --words
shows 'in a column' 'per word$'
accept 'the second alone' eval runs/words --data known.txt --context 8 --stride 4 --json --words
verdict 'has the same values' "$(diff <(sed '1d;$d' out) <(sed -n '/runs\/words/,$p' both.out | sed '$d' | sed '1i\ {'))"
accept 'words without a token for line ends' train tiny.yaml name=lineless steps=4 lr=1e-2 tokenizer=word
accept 'are scored' eval runs/lineless --data known.txt --json --words
is 'the text has as many words as tokens, but for the first, which nothing predicts' '10 9' eval 'echo $(value words) $(value tokens)'
printf 'the dog\n' >dog.txt
prints 'white space at the end of a text is followed by an empty word, as by Python' '^3 words, word perplexity ' eval runs/characters --data dog.txt --words
accept 'a run of bytes' train tiny.yaml name=bytes tokenizer=byte steps=1
printf '%060d' 0 >zeros.txt
prints 'has a perplexity per word that can be read' '^1 word, word perplexity [0-9.]+e[+][0-9]+$' eval runs/bytes --data zeros.txt --words

# ---- Words outside the vocabulary
printf 'the lazy zebra jumps the dog zebu over\n' >unknown.txt
accept 'a vocabulary of few words' train tiny.yaml name=few steps=2 tokenizer=word model.vocab=20
prints 'a text with other words is named so' '^[0-9.]+ nats per token, perplexity [0-9.]+, [1-9][0-9.]+% <unk>$' eval runs/few --data unknown.txt
is 'without bits per byte' 'no bits per byte: <unk> replaces words outside the vocabulary' sed -n 3p out
accept 'also as JSON' eval runs/few --data unknown.txt --words --json
is 'with the share, and nothing per byte or word' '0' eval 'grep -cE "bits_per_byte|word_perplexity|bytes" out'
is 'which is a part of 7 targets' 1 eval 'grep -c "\"unknown_share\": 0\." out'
accept 'next to a run that knows all' eval runs/words runs/characters --data score.txt
is 'it has no bits per byte in the table' $'words -\ncharacters 5' awk 'NR > 2 { print $1, substr($NF, 1, 1) }' out
refuse 'a run that is not there, after one that is' 1 'runs/none: no such run folder' eval runs/characters runs/none
holds 'prints nothing' [ ! -s out ]

# ---- The sorter
holds 'rows are drawn' "$build/sorter" sorting --rows 2000 --held-out 200
is 'as many as asked for' '2000 200' eval 'echo $(wc -l <sorting/train.jsonl) $(wc -l <sorting/held_out.jsonl)'
verdict 'no prompt is both learnt and held out' "$(comm -12 <(sort sorting/train.jsonl) <(sort sorting/held_out.jsonl))"
verdict 'each answer is the prompt in order' "$(tr -d '{}":,' <sorting/held_out.jsonl | while read -r _ prompt _ answer; do
  [ "$(fold -w 1 <<<"$prompt" | sort | tr -d '\n')" = "$answer" ] || echo "$prompt $answer"
done)"
holds 'the same seed' "$build/sorter" again --rows 2000 --held-out 200
holds 'draws the same rows' diff -r sorting again
# Long enough to sort some sequences, but not all.
pairs=(data=sorting/train.jsonl validation=sorting/held_out.jsonl format=pairs model.ctx=22)
prints 'train the sorter' '^[0-9]+\.[0-9]{2}% of the tokens right, exact answers: [0-9]+\.[0-9]%$' train tiny.yaml name=sorter "${pairs[@]}" sample.tokens=0 steps=60 batch=16 lr=1e-2
cp out train.out
prints 'it is evaluated on what is held out' '^held_out\.jsonl: 2,400 tokens, context 22$' eval runs/sorter
is 'as by the training' "$(grep -E '^[0-9.]+% of the tokens right, exact answers: [0-9.]+%$' out)" grep 'exact answers' train.out
accept 'as JSON' eval runs/sorter --json
told=$(sed -nE 's/.*"val_accuracy":([0-9.]+),.*/\1/p' runs/sorter/metrics.jsonl | tail -1)
is 'the records of the training have the part of exact answers' "$(printf %.10g "$told")" eval 'printf "%.10g\n" "$(value sequence_accuracy)"'
holds 'of which some are exact' eval '[[ $told = 0.*[1-9]* ]]'
# Generated answers are exact as often: as long as they are right, they are predicted from the true tokens.
prompts=$(sed -E 's/"prompt": "(.*)", .*/"prompt": "\1"}/' sorting/held_out.jsonl)
"$build/ricci-generate" runs/sorter --jsonl --temperature 0 --tokens 20 <<<"$prompts" >out 2>err
is 'and as many are written' "$(awk "BEGIN { print int(200 * $told + 0.5) }")" eval "paste -d ' ' <(sed -E 's/.*\"text\":\"([^\"]*)\".*/\1/' out) <(sed -E 's/.*\"answer\": \"(.*)\"}/\1/' sorting/held_out.jsonl) | awk '\$1 == \$2' | grep -c ''"
accept 'other pairs' eval runs/sorter --data sorting/train.jsonl --json
is 'have their number of tokens' 24000 value tokens
accept 'a context that cuts them' eval runs/sorter --context 15 --json
is 'leaves five tokens of each' 1000 value tokens
refuse 'windows of pairs' 1 '--stride: runs/sorter scores documents separately, not in windows' eval runs/sorter --stride 3
refuse 'a text' 1 "score\.txt:1: .*" eval runs/sorter --data score.txt
printf 'metric: [tiny.yaml, model.mixer=metric]\nidentity: [tiny.yaml, model.mixer=identity, "~model.heads"]\n' >mixers.yaml
sed -i '/^name:/d' tiny.yaml
run compare mixers.yaml "${pairs[@]}" sample.tokens=0 steps=60 batch=16 lr=1e-2
is 'a comparison of mixers has the exact answers of both' $'accuracy\nmetric\nidentity' awk '/ accuracy/ { on = 1; print "accuracy"; next } !NF { on = 0 } on { print $1 }' out

# ---- Multiple choice
cat >plain.jsonl <<'END'
{"context": "the", "choices": ["dog", "fox jumps"], "answer": 0}

{"context": "the lazy ", "choices": ["dog", "fox", "1"], "answer": "2", "other": 1}
{"context": "the quick fox jumps over the lazy dog", "choices": ["the", "jumps"], "answer": 1}
END
accept 'questions' eval runs/characters --choices plain.jsonl --json
cp out choices.json
# The log-probability of a choice is the difference between the full text and the context.
nats() {
  printf '%s' "$1" >one.txt
  run eval runs/characters --data one.txt --json && echo "$(value nats_per_token) * $(value tokens)"
}
log_probability() { awk "BEGIN { printf \"%.3f\n\", $(nats "$1") - $(nats "$1$2") }"; }
is 'the log-probability of a choice' "$(log_probability 'the' ' fox jumps')" awk '/^ *-[0-9.]+,?$/ && ++n == 2 { printf "%.3f\n", $1 }' choices.json
is 'a blank at the end of a context belongs to the choice' "$(log_probability 'the lazy' '  fox')" awk '/^ *-[0-9.]+,?$/ && ++n == 4 { printf "%.3f\n", $1 }' choices.json
is 'a context that is too long loses its start: the model reads 16 tokens' "$(log_probability 'he lazy dog' ' jumps')" \
  eval 'printf "%s\n" "{\"context\": \"over the lazy dog\", \"choices\": [\"jumps\", \"x\"], \"answer\": 0}" >long.jsonl; "$build/ricci-eval" runs/characters --choices long.jsonl --json | awk "/^ *-[0-9.]+,?\$/ && ++n == 1 { printf \"%.3f\\n\", \$1 }"'
# The shares, computed from these log-probabilities: characters and bytes of dog, fox jumps; dog, fox, 1; the, jumps.
shares() {
  awk '/^ *-[0-9.]+,?$/ { p[++n] = $1 + 0 }
    function best(first, last, by,  i, found) { found = first; for (i = first; i <= last; ++i) if (p[i] / (by ? size[i] : 1) > p[found] / (by ? size[found] : 1)) found = i; return found }
    END { split("3 9 3 3 1 3 5", size, " ")
      for (by = 0; by < 2; ++by) { m = ((best(1, 2, by) == 1) + (best(3, 5, by) == 5) + (best(6, 7, by) == 7)) / 3; printf "%.4f %.4f ", m, sqrt(m * (1 - m) / 2) } }' choices.json
}
is 'acc, acc_norm and their standard errors' "$(shares)" eval 'cp choices.json out; printf "%.4f %.4f %.4f %.4f " "$(value acc)" "$(value acc_stderr)" "$(value acc_norm)" "$(value acc_norm_stderr)"; echo'
head -n 1 plain.jsonl >one.jsonl
accept 'one question has no standard error' eval runs/characters --choices one.jsonl --json
holds 'in JSON' eval '! grep -q stderr out'
prints 'as a table of runs' '^characters +16  [01]\.[0-9]{4}  ±0\.[0-9]{4}  ' eval runs/characters runs/bytes --choices plain.jsonl
narrow 'of choices'
accept 'in batches of another size' eval runs/characters --choices plain.jsonl --json --batch 1
is 'the same shares' "$(shares)" eval 'printf "%.4f %.4f %.4f %.4f " "$(value acc)" "$(value acc_stderr)" "$(value acc_norm)" "$(value acc_norm_stderr)"; echo'
# Published tasks become lm-eval's texts.
cat >fields.jsonl <<'END'
{"ind": 1, "activity_label": "Dogs", "ctx_a": "A dog [x] runs.", "ctx_b": "the DOG", "ctx": "", "endings": ["sits [title] down", " jumps"], "label": "1"}
{"id": "a", "question": "Who jumps?", "choices": {"text": ["the fox", "the dog"], "label": ["A", "B"]}, "answerKey": "B"}
{"goal": "To jump", "sol1": "be a fox", "sol2": "sit", "label": 0}
END
cat >texts.jsonl <<'END'
{"context": "Dogs: A dog runs. The dog", "choices": ["sits.  down", "jumps"], "answer": 1}
{"context": "Question: Who jumps?\nAnswer:", "choices": ["the fox", "the dog"], "answer": 1}
{"context": "Question: To jump\nAnswer:", "choices": ["be a fox", "sit"], "answer": 0}
END
sed -i 's/sits\.  down/sits. down/' texts.jsonl
accept 'fields of HellaSwag, ARC and PIQA' eval runs/bytes --choices fields.jsonl --json
grep -v '"text"' out >fields.out
accept 'and their texts' eval runs/bytes --choices texts.jsonl --json
verdict 'are the same questions' "$(diff fields.out <(grep -v '"text"' out))"
# wrong NAME PATTERN LINE
wrong() { printf '%s\n' '{"context": "a", "choices": ["b", "c"], "answer": 0}' "$3" >wrong.jsonl && refuse "$1" 1 "wrong\.jsonl:2: $2" eval runs/bytes --choices wrong.jsonl; }
wrong 'no JSON' 'invalid JSON' 'text'
wrong 'no object' 'expected context, choices and answer, or the fields of HellaSwag, ARC or PIQA$' '["a", "b"]'
wrong 'another task' 'expected context, choices and answer' '{"query": "a", "choices": ["b", "c"], "gold": 1}'
wrong 'a missing field' 'answer: is missing$' '{"context": "a", "choices": ["b", "c"]}'
wrong 'a missing field of PIQA' 'sol2: is missing$' '{"goal": "a", "sol1": "b", "label": 1}'
wrong 'a wrong type' 'choices: "b", expected a list of strings$' '{"context": "a", "choices": "b", "answer": 0}'
wrong 'a label that is no number' 'label: "", expected an integer$' '{"goal": "a", "sol1": "b", "sol2": "c", "label": ""}'
wrong 'one choice' 'has 1 choice, expected 2 or more$' '{"context": "a", "choices": ["b"], "answer": 0}'
wrong 'an answer that is not there' 'the answer is not one of the 2 choices$' '{"context": "a", "choices": ["b", "c"], "answer": 2}'
wrong 'a hidden answer' 'the answer is not one of the 2 choices$' '{"goal": "a", "sol1": "b", "sol2": "c", "label": -1}'
wrong 'an answer key without a choice' 'the answer is not one of the 2 choices$' '{"question": "a", "choices": {"text": ["b", "c"], "label": ["A", "B"]}, "answerKey": "C"}'
wrong 'an empty context and no token that starts a text' 'the context has no tokens, and the byte tokenizer has no token that starts a text$' '{"context": " ", "choices": ["b", "c"], "answer": 0}'
wrong 'a choice that is longer than the context' "the choice 'bbbbbbbbbbbbbbbbbbbb' has 21 tokens after the context, expected 1 to 16$" '{"context": "a", "choices": ["bbbbbbbbbbbbbbbbbbbb", "c"], "answer": 0}'
echo >empty.jsonl
refuse 'no question' 1 'empty\.jsonl: has no questions$' eval runs/bytes --choices empty.jsonl
refuse 'no file' 1 'none\.jsonl' eval runs/bytes --choices none.jsonl
refuse 'questions and a text' 2 '--data' eval runs/bytes --choices plain.jsonl --data score.txt

# ---- Models that do not score all positions
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
refuse 'a text in front of the first position' 1 'eval_from: 3 is too large; a window of short\.txt has 3 positions, counted from 0' eval runs/from --data short.txt
refuse 'evaluations of no position' 1 'eval_from: 16, expected less than the 16 positions of a window' train tiny.yaml eval_from=16
refuse 'positions of pairs' 1 '--from: runs/sorter scores documents separately, not in windows' eval runs/sorter --from 3
refuse 'pairs that are evaluated from a position on' 1 'eval_from: is read only with a format without answers' train tiny.yaml "${pairs[@]}" eval_from=3
coarse=(model.family=coarse model.layers=1 sample.tokens=0)
accept 'train one that scores cells' train tiny.yaml name=coarse steps=2 model.scale=4 "${coarse[@]}"
refuse 'choices by cells' 1 '--choices: runs/coarse gives no probability of the next token \(model\.family: coarse\)' eval runs/coarse --choices plain.jsonl
refuse 'positions of cells' 1 '--from: runs/coarse scores cells, not positions' eval runs/coarse --data score.txt --from 3
# Windows of 13 tokens and a last one of 9, scored in cells of 4 but the first: 3 times 8, and 4.
prints 'a text whose last window ends early, without its padding' '^score\.txt: 28 tokens, context 13' eval runs/coarse --data score.txt --context 13
refuse 'cells of overlapping windows' 1 '--stride: runs/coarse scores cells, but overlapping windows would score them twice' eval runs/coarse --data score.txt --stride 8
refuse 'a context of one cell' 1 'evaluation: none of the [0-9]+ targets is scored' eval runs/coarse --data score.txt --context 7
refuse 'a training on contexts of one cell' 1 'context: 7 is too short for a coarse model to score a token' train tiny.yaml name=bad model.scale=4 "${coarse[@]}" context=7
refuse 'pairs, of which it knows no order' 1 'format: pairs, but a coarse model writes no text' train tiny.yaml name=bad "${pairs[@]}" "${coarse[@]}"

finish
