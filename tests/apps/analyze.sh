#!/usr/bin/env bash
# ricci inspect and ricci analyze of trained runs: tables, JSON, pages and drawings that other programs can read, and messages.
# tests/apps/lab compares the numbers with a calculation by hand.
#   analyze.sh build-folder
. "$(dirname "$0")/outputs.sh" "$@"
command -v xmllint >/dev/null || needs 'xmllint (Debian: libxml2-utils)'
command -v python3 >/dev/null || needs python3
sed 's/heads: 2, //' tiny.yaml >families.yaml

# ---- ricci inspect
# well_formed NAME FOLDER DRAWINGS: this number of drawings, all of them and the page XML, and no temporary files.
well_formed() {
  local fault
  fault=$(xmllint --noout "$2"/*.svg "$2"/index.html 2>&1)
  [ "$(find "$2" -name '*.svg' | wc -l)" = "$3" ] || fault+=" not $3 drawings: $(ls "$2" | tr '\n' ' ')"
  [ -z "$(leftovers)" ] || fault+=" left behind: $(leftovers)"
  verdict "$1" "$fault"
}

printf 'a <b> & "c" ]]> </svg>\n%.0s' {1..30} >marks.txt
# Metric: scores, matrix and distances of each head, and a spectrum of the layer. Dispatcher: scores and coefficients. Others: scores and a
# matrix of each query head, and a spectrum. Top-down has two layers, bottom-up also an aggregation layer.
while read -r name layers drawings heads keys; do
  accept "train $name" train tiny.yaml steps=1 data=marks.txt name=$name model.heads=$heads ${keys:-model.mixer=$name}
  prints "inspect $name" "^runs/$name: [a-z]+; layers: $layers, heads: $heads, tokens of text: 16$" inspect runs/$name -o $name.out
  narrow "inspect $name"
  well_formed "drawings and page of $name" $name.out $drawings
done <<'END'
metric 1 7 2
dispatcher 1 4 2
llama 1 9 4 model.preset=llama model.kv_heads=2
topdown 2 10 2 model.family=topdown model.scales=[1,4]
bottomup 3 15 2 model.family=bottomup model.scales=[1,4]
retina 1 5 2 model.family=retina model.scales=[1,4]
coarse 1 5 2 model.family=coarse model.scale=4
END
is 'a matrix says that it is without the rotation' 4 eval "grep -l 'Wq Wk^T without the rotation' llama.out/*_matrix.svg | wc -l"
shows 'and the page why' 'a rotation comes between Wq and Wk\.' llama.out/index.html
accept 'no scores at all' train families.yaml name=none model.mixer=identity
prints 'is told' '^identity has neither scores, coefficients nor a metric: it mixes all texts in$' inspect runs/none -o none.out
verdict 'and a page without drawings' "$(xmllint --noout none.out/index.html 2>&1; ls none.out | diff - <(printf 'index.html\ninspect.json\n'))"
is 'layers say what they are of' $'<h2>Layer 0 (aggregation)\n<h2>Layer 1\n<h2>Layer 2 (cells of 4)' eval "grep -o '<h2>Layer [^:]*' bottomup.out/index.html | uniq"
is 'a head of coarse cells sees those that are complete' 1 \
  grep -co '"key_tokens":4,"scores":\[\[0.0,0.0,0.0,0.0\],\[0.0,0.0,0.0,0.0\],\[0.0,0.0,0.0,0.0\],\[1.0,0.0,0.0,0.0\]' retina.out/inspect.json

printf 'b & a\n' >few.txt
prints 'a text in a file, a head, tokens' 'heads: 1, tokens of text: 4$' inspect runs/metric --text-file few.txt --heads 1 --token '<' --token b --nearest 2 --dtype f64 --length 4 -o some.out
well_formed 'drawings of one head' some.out 4
verdict 'a written report is replaced' "$(run inspect runs/metric --heads 1 -o some.out || shown err; leftovers)"
accept 'the best checkpoint on an emulated GPU' inspect runs/dispatcher@best --device cuda_emulated --length 3 -o emulated.out
prints 'a head and a layer named twice count once' 'layers: 1, heads: 1,' inspect runs/metric --layers 0,0 --heads 1,1 -o twice.out

touch empty.txt file.out
refuse 'an empty file' 1 '--text-file: is empty' inspect runs/metric --text-file empty.txt
refuse 'an empty text' 1 '--text: is empty' inspect runs/metric --text ''
refuse 'two texts' 2 '--text' inspect runs/metric --text a --text-file few.txt
refuse 'a layer that is not there' 1 '--layers: 1, but the model has 1 layers' inspect runs/metric --layers 1
refuse 'a file in the place of the folder' 1 'file\.out' inspect runs/metric -o file.out
holds 'nothing was written for those' [ ! -e inspection ]

# ---- ricci analyze
rm -rf runs
# fits NAME FILE EXPRESSION: an expression over the JSON of the file, d, is True.
fits() { is "$1" True python3 -c 'import json, sys; d = json.load(open(sys.argv[1])); print(eval(sys.argv[2]))' "$2" "$3"; }
# analysis NAME EXPRESSION ENDING ARGUMENT ...: ricci analyze writes JSON that fits the expression, and a drawing or page in XML.
analysis() {
  accept "$1" analyze "${@:4}" --json analysis.json -o "drawing.$3"
  narrow "$1"
  fits "$1: JSON" analysis.json "$2"
  verdict "$1: XML" "$(xmllint --noout "drawing.$3" 2>&1)"
}

# model NAME KEY=VALUE ...: a trained run of this name.
model() { accept "train $1" train families.yaml name=$1 model.heads=2 steps=8 lr=0.02 eval_every=4 "${@:2}"; }
model decoder
model topdown model.family=topdown model.layers=1 'model.scales=[1, 4]'
model wide model.family=topdown model.layers=1 'model.scales=[1, 8]' model.loss_from=first_full
model coarse model.family=coarse model.scale=4
model coarser model.family=coarse model.scale=2
model retina model.family=retina 'model.scales=[1, 4]' 'model.windows=0:4, 4:16'

analysis 'memory: a row for each, with the recorded loss' \
  '[r["run"] for r in d] == ["decoder", "topdown", "bad"] and "perplexity" in d[1] and "perplexity" not in d[2]' \
  svg memory runs/decoder runs/topdown tiny.yaml
analysis 'memory, another batch' 'd[0]["working_bytes"] < d[0]["peak_bytes"]' html memory runs/decoder --batch 4
shows 'the page has the notes' '<p.*dry run' drawing.html

accept 'an evaluation' eval runs/decoder --stride 8 --json
mv out eval.json
analysis 'frequency: bins of equal mass' 'all(abs(b["tokens"] - r["scored_tokens"] / 5) < 1e-6 for r in d for b in r["bins"])' svg frequency runs/decoder runs/topdown --bins 5
fits 'whose mean is that of ricci eval' analysis.json '(lambda f, e: f["scored_tokens"] == e["tokens"] and
  abs(sum(b["nats_per_token"] for b in f["bins"]) / 5 - e["nats_per_token"]) < 1e-5)(d[0], json.load(open("eval.json"))[0])'
analysis 'frequency in windows of which most is not scored: what is left of every window' 'd[1]["scored_tokens"] > 0.9 * d[0]["scored_tokens"]' svg frequency runs/decoder runs/wide --context 8 --bins 2
shows 'and says how much' '^wide: [0-9,]+ tokens scored'

analysis 'shuffle: a row for each distance' '[len(r["distances"]) for r in d] == [9, 9] and d[0]["windows"] == 5 and d[0]["shuffled"] == 8' svg shuffle runs/decoder runs/retina --windows 5

analysis 'neighbours of the cells of a top-down model, of its own scale' \
  '[s["tokens"] for s in d[0]["scales"]] == [4] and not d[0]["scales"][0]["mean_of_tokens"] and [len(q["nearest"]) for q in d[0]["scales"][0]["queries"]] == [2, 2]' \
  html neighbours runs/topdown --queries 2 --nearest 2
analysis 'neighbours in a decoder, which has no coarse scale' 'all(s["mean_of_tokens"] for s in d[0]["scales"])' html neighbours runs/decoder --scales 2,8
shows 'and says so' 'no blocks at this scale'
analysis 'neighbours in several runs, each with its own chunks' '[(r["run"], r["scales"][0]["mean_of_tokens"]) for r in d] == [("topdown", False), ("decoder", True)]' \
  html neighbours runs/topdown runs/decoder --scales 4
is 'a note for both is printed once' 1 grep -c '^Cosines are' out
accept 'neighbours in a retina' analyze neighbours runs/retina --scales 4
accept 'neighbours in a coarse model' analyze neighbours runs/coarse

analysis 'completions: so many tokens, the most probable first' \
  '[len(p["expected"]) for p in d[0]["places"]] == [5, 5, 5] and all(p["expected"][0]["probability"] >= p["expected"][4]["probability"] > 0 for p in d[0]["places"])' \
  html completions runs/coarse --places 3 --top 5
analysis 'completions of several runs: an object for each' '[(r["run"], r["scale"], len(r["places"])) for r in d] == [("coarse", 4, 2), ("coarser", 2, 2)]' \
  html completions runs/coarse runs/coarser --places 2
is 'a table with the names of the runs' $'the most probable tokens of the next cell\nrun\ncoarse\ncoarser' eval "awk 'NR == 1 { print } NR == 2 || NR == 3 || NR == 5 { print \$1 }' out"
is 'notes with their run' 2 grep -cE '^(coarse|coarser): [0-9.]+% of the tokens' out

samples=(--prompts 2 --prompt 4 --tokens 12)
analysis 'samples: each prompt with its completions' \
  'all(len(r["texts"]) == 2 and len(r["texts"][0]["completions"]) == 3 and len(r["samples"]["repeated"]) == 4 for r in d)' \
  svg samples runs/decoder runs/topdown "${samples[@]}"
is 'the text itself has one row for all' 1 grep -c '^the text  ' out
mv analysis.json first.json
analysis 'the same samples again' '[r["texts"] for r in d] == [r["texts"] for r in json.load(open("first.json"))]' html samples runs/decoder runs/topdown "${samples[@]}"
accept 'a GPT-2' train tiny.yaml name=bpe tokenizer=bpe model.vocab=280
accept 'export' convert export runs/bpe exported
accept 'import' convert import exported runs/imported
accept 'samples of an imported run' analyze samples runs/imported "${samples[@]}" --data text.txt
refuse 'frequency of an imported run' 1 'imported: has no training text' analyze frequency runs/imported --data text.txt

analysis 'masks of several runs: a model each' '[m["model"] for m in d] == ["runs/topdown", "runs/retina", "families.yaml"] and all(m["masks"] for m in d)' \
  svg masks runs/topdown runs/retina families.yaml --tokens 12
is 'each has a title in the drawing' 3 eval "grep -oE '>(topdown: topdown|retina: retina|families.yaml: decoder)[^<]*, 12 tokens<' drawing.svg | wc -l"
is 'and its name in the table' 3 eval "awk 'NR > 2 { print \$1 }' out | grep -cxE 'topdown|retina|families.yaml'"
accept 'with keys for all' analyze masks runs/topdown runs/retina model.ctx=8
analysis 'masks of a run file' 'len(d[0]["masks"]) > 1' html masks families.yaml model.family=bottomup 'model.scales=[1, 2, 4]' model.heads=2
accept 'JSON on stdout' analyze masks runs/topdown --json -
fits 'and nothing else' out 'd[0]["masks"][1]["rows"][3] == [0, 1]'

refuse 'no analysis' 2 'A subcommand is required' analyze
refuse 'the wrong family' 1 'runs/coarse: model.family: coarse, expected decoder, topdown, bottomup, retina' analyze shuffle runs/coarse
refuse 'completions of a decoder' 1 'runs/decoder: model.family: decoder, expected coarse' analyze completions runs/decoder
refuse 'a context shorter than a cell' 1 '--context: 2 is shorter than a cell of 4 tokens' analyze completions runs/coarse --context 2
refuse 'a scale longer than the context' 1 '--scales: 32, expected at most the context of 16' analyze neighbours runs/decoder --scales 32
refuse 'a scale finer than the model' 1 '--scales: 2 does not fit coarse, expected a multiple of 4 tokens' analyze neighbours runs/coarse --scales 2
refuse 'more prompts than the text has' 1 'tokens, expected 8000 for 500 windows of 16' analyze samples runs/decoder --prompts 500 --prompt 4 --tokens 12
printf 'the quick\n' >short.txt
for each in frequency shuffle neighbours; do refuse "$each of a short text" 1 'short\.txt.* tokens, ' analyze $each runs/decoder --data short.txt; done
refuse 'a drawing of an unknown kind' 1 'x\.pdf: expected a name that ends in \.svg or \.html' analyze shuffle runs/decoder -o x.pdf
finish
