#!/usr/bin/env bash
# All programs use the same names for weights (NAME, NAME@best, NAME@4, a folder or a file) and the same options for a text (--format,
# --encoding, --text-field and --label-field).
#   names.sh build-folder
. "$(dirname "$0")/outputs.sh" "$@"

# ---- Weights
accept 'a run with checkpoints' train tiny.yaml name=a steps=8 checkpoint_every=2 eval_every=2 keep_checkpoints=3 schedule=constant lr=0.5 warmup=12
steps=$(ls runs/a/checkpoints | sed -E 's/.*-0*([0-9]+)\..*/\1/' | xargs)
is 'the best one is not among the last' '2 4 6 8' echo "$steps"
file=runs/a/checkpoints/step-00000002.safetensors
# results FILE: the numbers of the last output, or the written text or files, without the name of the weights.
results() {
  if [ -d out.d ]; then cat out.d/{inspect.json,model.safetensors} 2>/dev/null | sed 's/"run": *"[^"]*"//'; else grep -oE '[0-9]+\.[0-9]{3,}' out || cat out; fi >"$1"
}
while read -r words; do
  rm -rf out.d && run ${words//NAME/a} && results last
  rm -rf out.d && run ${words//NAME/a@2} && results expected
  verdict "$words: not the last weights" "$(! cmp -s expected last || shown out err)"
  for name in a@best runs/a@2 runs/a@best $file $PWD/$file; do
    rm -rf out.d
    accept "$words: $name" ${words//NAME/$name}
    results found
    same 'the same weights' expected found
  done
done <<'WORDS'
eval NAME
generate NAME --prompt the --tokens 8 --temperature 0.9
inspect NAME --text the -o out.d
analyze shuffle NAME --data text.txt
convert export NAME out.d
WORDS
accept 'the last step by its name' eval a@last
mv out expected
accept 'which is that without a name' eval a
same 'the same' expected out
prints 'two steps of a run have their own names' '^a@best +[0-9]' eval a@best a
shows 'the other' '^a +[0-9]'
is 'as JSON' "\"run\": \"runs/a@best\""$'\n'"\"run\": \"runs/a\"" eval "'$build/ricci' eval a@best a --json | grep -oE '\"run\": \"[^\"]*\"'"
prints 'a plan' 'trained parameters' plan a@best
prints 'a start from the best' "^starts from $PWD/$file" train init=a@best name=b steps=1 data=text.txt sample.tokens=0
shows 'which the run remembers' "^init: \"$PWD/runs/a@best\"$" runs/b/config.yaml
accept 'so it continues from any folder' train b steps=2
mkdir -p files && printf 'init: ../runs/a@%s\nname: c\ndata: text.txt\nsteps: 1\nsample: {tokens: 0}\n' 2 >files/c.yaml
prints 'a name in a run file starts at its folder' "^starts from .*/$(basename "$file")" train files/c.yaml
refuse 'other weights of that run' 1 'contains a run with different initial weights than init: ' train files/c.yaml init=a steps=2
cp -r runs/a runs/a@best
prints 'a folder with such a name is first' '^starts from .*runs/a@best/model' train init=a@best name=d steps=1 data=text.txt sample.tokens=0
rm -rf runs/a@best
mkdir beside && echo 'not this' >beside/t && cp text.txt t@x && printf 'data: t@x\nname: e\nsteps: 1\nsample: {tokens: 0}\n' >beside/e.yaml
prints 'only weights have an @' 'tokens to train' train beside/e.yaml
mkdir elsewhere && cp -r runs/b elsewhere/b
prints 'a run elsewhere continues under its own name' '^elsewhere/b: ' train elsewhere/b name=b steps=3

refuse 'a training that continues from the best' 1 'runs/a@best: training continues from the last step; init=runs/a@best name=\.\.\. starts a new run from these weights' train a@best
refuse 'and from a file' 1 "$file: training continues from the last step" train "$file"
refuse 'a step that is not kept' 1 "runs/a: has no checkpoint '7', only best, last and steps $(sed 's/ /, /g' <<<"$steps")" eval a@7
refuse 'a name of nothing' 1 "runs/a: has no checkpoint 'bset'" generate a@bset
refuse 'a file that is not kept' 1 'runs/a: has no checkpoint .*step-00000007' eval runs/a/checkpoints/step-00000007.safetensors
refuse 'no such run' 1 "aa: no such run folder, the nearest is 'a'; runs has a, b, c" eval aa@best
refuse 'no such run to start from' 1 "init: aa@best is neither a run folder nor a file, the nearest is 'a'" train init=aa@best name=bad data=text.txt
for words in 'eval a' 'generate a' 'predict a' 'inspect a' 'analyze shuffle a' 'convert export a x'; do
  refuse "$words: the former option" 2 'no option --checkpoint; NAME@best or NAME@250 names the weights' $words --checkpoint best
done

# ---- Texts
for ((i = 0; i < 60; ++i)); do
  words=$((i % 3 ? 0 : 1))
  echo "$words,$([ $words = 1 ] && printf 'a good caf\xc3\xa9' || printf 'a poor caf\xc3\xa9') $i"
done >rows.txt
sed 's/,/\t/' rows.txt >rows.tsv
(echo stars,body && cat rows.txt) >rows.csv
sed -E 's/^(.),(.*)/{"stars": \1, "body": "\2", "text": "?"}/' rows.txt >rows.jsonl
cp rows.jsonl rows.data
iconv -f utf8 -t latin1 rows.jsonl >rows.latin1
learned=(model.family=classifier model.layers=1 model.heads=2 model.d=16 model.ctx=32 batch=8 steps=20 threads=1)
accept 'a classifier of TSV' train "${learned[@]}" name=reviews data=rows.tsv label_field=1
accept 'scores its own format' eval reviews --data rows.tsv
sed 1d out >expected
while read -r words; do
  accept "eval $words" eval reviews --data $words
  is 'the same scores' "$(cat expected)" sed 1d out
done <<'WORDS'
rows.csv --text-field body --label-field stars
rows.jsonl --text-field body --label-field stars
rows.data --format jsonl --text-field body --label-field stars
rows.latin1 --format jsonl --text-field body --label-field stars --encoding latin-1
WORDS
refuse 'labels without their field' 1 'require the key label_field' eval reviews --data rows.csv --text-field body
refuse 'fields of a plain text' 1 'text_field: only jsonl, tsv and csv have fields' eval reviews --data rows.txt --format text --text-field 1
refuse 'a format with answers' 1 '--format: pairs, but the run was trained with tsv' eval reviews --data rows.txt --format pairs

cut -f 2 rows.tsv >lines.txt
accept 'predictions of a file' predict reviews --data lines.txt --format text
mv out expected
while read -r words; do
  accept "predict $words" predict reviews --data $words
  same 'the same classes' expected out
done <<'WORDS'
rows.tsv
rows.csv --text-field body
rows.jsonl --text-field body --label-field stars
rows.data --format jsonl --text-field body
rows.latin1 --format jsonl --text-field body --encoding latin-1
WORDS
# of_lines NAME FILE OPTION ...: predictions for the lines of stdin are these.
of_lines() {
  "$build/ricci" predict reviews "${@:3}" <"$2" >out 2>err
  verdict "$1" "$(cmp expected out 2>&1)$(cat err)"
}
of_lines 'lines of TSV' rows.tsv
of_lines 'lines of JSON' rows.jsonl --format jsonl --text-field body
of_lines 'lines of text' lines.txt
"$build/ricci" predict reviews --jsonl --text-field body <rows.jsonl >out 2>err
shows 'the field of lines with results' '^\{"stars":1,"body":"a good café 0","input_text":"\?","text":"a good café 0",'
"$build/ricci" predict reviews --format csv <rows.csv >out 2>err
verdict 'stdin has no header' "$(grep -q 'ricci predict: --format: csv cannot be read from stdin; name a file with --data' err || shown err)"
accept 'a count, with the field of the labels' tokenize count rows.jsonl --tokenizer byte --text-field body --label-field stars
accept 'a language model' train tiny.yaml name=texts tokenizer=byte
accept 'scores JSONL in a file of another name' eval texts --data rows.data --format jsonl --text-field text
shows 'by its texts' '^rows.data: 60 tokens|^rows.data: 59 tokens'
refuse 'no other text is scored as well' 2 '--choices excludes --format|--format excludes --choices' eval texts --choices rows.jsonl --format jsonl

# ---- Lines with members
printf '{"id": 7, "prompt": "the", "text": "mine"}\n{"id": 8, "prompt": "fox"}\n' | "$build/ricci" generate texts --jsonl --tokens 3 >out 2>err
is 'generated lines keep the members' $'{"id":7,"prompt":"the","input_text":"mine","sample":0\n{"id":8,"prompt":"fox","sample":0' grep -oE '^\{"id".*"sample":0' out
finish
