#!/usr/bin/env bash
# ricci-analyze of trained runs: tables, JSON and drawings that other programs can read, and messages; numbers are held to a calculation by
# hand in tests/apps/analysis.
#   analyze.sh build-folder
. "$(dirname "$0")/programs.sh" "$@"
command -v xmllint >/dev/null || needs 'xmllint (Debian: libxml2-utils)'
command -v python3 >/dev/null || needs python3

# number FILE EXPRESSION: an expression over the JSON of the file, d.
number() { python3 -c 'import json, sys; d = json.load(open(sys.argv[1])); print(eval(sys.argv[2]))' "$1" "$2" 2>&1; }
# expect NAME FILE EXPRESSION: that is True.
expect() { verdict "$1" "$([ "$(number "$2" "$3")" = True ] || number "$2" "$3")"; }
drawn() { verdict "$1 is XML" "$(xmllint --noout "$1" 2>&1)"; }

sed 's/heads: 2, //' tiny.yaml >families.yaml
steps=(steps=8 lr=0.02 eval_every=4)
accept 'train a decoder' train tiny.yaml name=decoder "${steps[@]}"
accept 'train top-down' train families.yaml name=topdown model.family=topdown model.layers=1 'model.scales=[1, 4]' model.heads=2 "${steps[@]}"
accept 'train coarse' train families.yaml name=coarse model.family=coarse model.scale=4 model.heads=2 "${steps[@]}"
accept 'train coarse with smaller cells' train families.yaml name=coarser model.family=coarse model.scale=2 model.heads=2 "${steps[@]}"
accept 'train retina' train families.yaml name=retina model.family=retina 'model.scales=[1, 4]' 'model.windows=0:4, 4:16' model.heads=2 "${steps[@]}"

accept 'train top-down with wide cells' train families.yaml name=wide model.family=topdown model.layers=1 'model.scales=[1, 8]' model.heads=2 model.loss_from=first_full "${steps[@]}"

accept 'memory' analyze memory runs/decoder runs/topdown tiny.yaml --json m.json -o m.svg
drawn m.svg
expect 'a row for each, measured, with the recorded loss' m.json '[r["run"] for r in d] == ["decoder", "topdown", "bad"] and all(r["memory"] == "measured" for r in d) and "perplexity" in d[1] and "perplexity" not in d[2]'
accept 'memory, planned and evaluated' analyze memory runs/decoder --measured 1 --evaluate --batch 4 --json p.json -o p.html
verdict 'the page has the notes' "$(grep -qE '<p.*planned' p.html || shown p.html)"
expect 'it says so' p.json 'd[0]["memory"] == "planned" and d[0]["loss_from"] == "evaluated" and d[0]["working_bytes"] < d[0]["peak_bytes"]'

run eval runs/decoder --stride 8 --json && mv out eval.json
accept 'frequency' analyze frequency runs/decoder runs/topdown --bins 5 --json f.json -o f.svg
drawn f.svg
expect 'bins of equal mass' f.json 'all(abs(b["tokens"] - r["scored_tokens"] / 5) < 1e-6 for r in d for b in r["bins"])'
verdict 'whose mean is that of ricci-eval' "$(python3 -c 'import json
f, e = json.load(open("f.json"))[0], json.load(open("eval.json"))[0]
mean = sum(b["nats_per_token"] for b in f["bins"]) / 5
if f["scored_tokens"] != e["tokens"] or abs(mean - e["nats_per_token"]) > 1e-5: print(mean, e)')"

accept 'frequency in windows of which most is not scored' analyze frequency runs/decoder runs/wide --context 8 --bins 2 --json w.json
expect 'scores what is left of every window' w.json 'd[1]["scored_tokens"] > 0.9 * d[0]["scored_tokens"]'
verdict 'and says that it is less' "$(grep -qE '^wide scores [0-9,]+ tokens' out || shown out)"

accept 'shuffle' analyze shuffle runs/decoder runs/retina --windows 5 --json s.json -o s.svg
drawn s.svg
expect 'a row for each distance' s.json '[len(r["distances"]) for r in d] == [9, 9] and d[0]["windows"] == 5 and d[0]["shuffled"] == 8'

accept 'neighbours of the cells of a top-down model' analyze neighbours runs/topdown --queries 2 --nearest 2 --json n.json -o n.html
drawn n.html
expect 'of its own scale' n.json '[s["tokens"] for s in d["scales"]] == [4] and not d["scales"][0]["mean_of_tokens"] and [len(q["nearest"]) for q in d["scales"][0]["queries"]] == [2, 2]'
accept 'neighbours in a decoder' analyze neighbours runs/decoder --scales 2,8 --json n.json
expect 'which has no coarse scale' n.json 'all(s["mean_of_tokens"] for s in d["scales"])'
verdict 'and says so' "$(grep -q 'decoder has no blocks at this scale' out || shown out)"
accept 'neighbours in a short context, of the scales that fit' analyze neighbours runs/decoder --context 8 --json n.json
accept 'a scale named twice' analyze neighbours runs/decoder --scales 4,4,8 --json n2.json
expect 'is told once' n2.json '[s["tokens"] for s in d["scales"]] == [4, 8]'
expect 'which is one' n.json '[s["tokens"] for s in d["scales"]] == [4]'
accept 'neighbours in a retina' analyze neighbours runs/retina --scales 4
accept 'neighbours in a coarse model' analyze neighbours runs/coarse

accept 'completions' analyze completions runs/coarse --places 3 --top 5 --json c.json -o c.html
drawn c.html
expect 'so many tokens, the most probable first' c.json '[len(p["expected"]) for p in d["places"]] == [5, 5, 5] and all(p["expected"][0]["probability"] >= p["expected"][4]["probability"] > 0 for p in d["places"])'
accept 'completions of several runs' analyze completions runs/coarse runs/coarser --places 2 --json c2.json -o c2.html
expect 'an object for each' c2.json '[(r["run"], r["scale"], len(r["places"])) for r in d] == [("coarse", 4, 2), ("coarser", 2, 2)]'
verdict 'a table with the names of the runs' "$(sed 1d out | awk 'NR == 1 || NR == 2 || NR == 4 { print $1 }' | xargs | diff - <(echo run coarse coarser) && head -1 out | diff - <(echo 'the most probable tokens of the next cell'))"
verdict 'notes with their run' "$(grep -cE '^(coarse|coarser): [0-9.]+% of the tokens' out | diff - <(echo 2))"
drawn c2.html
accept 'neighbours in several runs' analyze neighbours runs/topdown runs/decoder --scales 4 --json n3.json
expect 'each with its own chunks' n3.json '[(r["run"], r["scales"][0]["mean_of_tokens"]) for r in d] == [("topdown", False), ("decoder", True)]'
verdict 'what holds for both is told once' "$(grep -c '^The cosine is' out | diff - <(echo 1))"
accept 'completions of a given text' analyze completions runs/coarse --text 'the quick brown fox '

samples=(--prompts 2 --prompt 4 --tokens 12 --timed 1 --training-tokens 2000)
accept 'samples, with a judge' analyze samples runs/decoder runs/topdown "${samples[@]}" --judge runs/retina --json g.json -o g.svg
drawn g.svg
expect 'each prompt with its completions' g.json 'all(len(r["texts"]) == 2 and len(r["texts"][0]["completions"]) == 3 and len(r["seconds"]) == 1 and r["samples"]["judge_perplexity"] > 1 for r in d)'
verdict 'shows the first text of two prompts' "$(grep -cE '^prompt [12]: ' out | diff - <(echo 2) && grep -cxE -- '--- (the text itself|decoder|topdown)' out | diff - <(echo 6))"
verdict 'the text itself has one row for all' "$(grep -c '^the text itself  ' out | diff - <(echo 1))"
mv g.json first.json
accept 'more of them, on a page' analyze samples runs/decoder runs/topdown "${samples[@]}" --shown 1 -o g.html
verdict 'beside each other' "$(grep -cE '^<div><h3>(the text itself|decoder|topdown)</h3><pre>' g.html | diff - <(echo 3))"
accept 'none of them' analyze samples runs/decoder "${samples[@]}" --shown 0
verdict 'are not shown' "$(! grep -q '^prompt [0-9]: ' out || shown out)"
accept 'the same samples' analyze samples runs/decoder runs/topdown "${samples[@]}" --judge runs/retina --json g.json
verdict 'again' "$(diff <(number first.json '[r["texts"] for r in d]') <(number g.json '[r["texts"] for r in d]'))"

for model in runs/topdown runs/retina runs/decoder; do accept "masks of $model" analyze masks $model --tokens 12 --json k.json -o k.svg; drawn k.svg; done
accept 'a GPT-2' train tiny.yaml name=bpe tokenizer=bpe model.vocab=280 "${steps[@]}"
accept 'export' convert export runs/bpe exported
accept 'import' convert import exported runs/imported
accept 'an imported judge' analyze samples runs/decoder "${samples[@]}" --judge runs/imported
refuse 'samples of an imported run' 1 'imported: has no training text' analyze samples runs/imported "${samples[@]}" --data text.txt
refuse 'frequency of an imported run' 1 'imported: has no training text' analyze frequency runs/imported --data text.txt

accept 'masks of several runs' analyze masks runs/topdown runs/retina families.yaml --tokens 12 --json k3.json -o k3.svg
drawn k3.svg
expect 'a model each' k3.json '[m["model"] for m in d] == ["runs/topdown", "runs/retina", "families.yaml"] and all(m["masks"] for m in d)'
verdict 'each has a title in the drawing' "$(grep -oE '>(runs/topdown: topdown|runs/retina: retina|families.yaml: decoder)[^<]*, 12 tokens<' k3.svg | wc -l | diff - <(echo 3))"
verdict 'and its name in the table' "$(awk 'NR > 2 { print $1 }' out | grep -cxE 'runs/topdown|runs/retina|families.yaml' | diff - <(echo 3))"
accept 'with keys for all' analyze masks runs/topdown runs/retina model.ctx=8
accept 'masks of a run file' analyze masks families.yaml model.family=bottomup 'model.scales=[1, 2, 4]' model.heads=2 -o k.html
drawn k.html
accept 'JSON on stdout' analyze masks runs/topdown --json -
expect 'and nothing else' out 'd["masks"][1]["rows"][3] == [0, 1]'

refuse 'no analysis' 2 'a command is required: memory, frequency, .*, masks ' analyze
refuse 'an unknown analysis' 2 "no command 'perplexity'; there are memory, frequency, .*, masks " analyze perplexity runs/decoder
refuse 'a run that is not there' 1 'runs/none' analyze frequency runs/none
refuse 'the wrong family' 1 'runs/coarse: model.family: coarse, expected decoder, topdown, bottomup, retina' analyze shuffle runs/coarse
refuse 'completions of a decoder' 1 'runs/decoder: model.family: decoder, expected coarse' analyze completions runs/decoder
refuse 'a text shorter than a cell' 1 '--text: 2 tokens, fewer than a cell of 4' analyze completions runs/coarse --text 'ab'
refuse 'a context shorter than a cell' 1 '--context: 2, fewer tokens than a cell of 4' analyze completions runs/coarse --context 2 --text 'the quick brown fox'
refuse 'and without a text' 1 '--context: 2, fewer tokens than a cell of 4' analyze completions runs/coarse --context 2
refuse 'a scale longer than the context' 1 '--scales: 32, but the context is 16' analyze neighbours runs/decoder --scales 32
refuse 'a scale finer than the model' 1 '--scales: 2, but the finest cells of coarse have 4 tokens' analyze neighbours runs/coarse --scales 2
refuse 'more prompts than the text has' 1 'samples: .* tokens, expected [0-9]+ for 500 prompts' analyze samples runs/decoder --prompts 500 --prompt 4 --tokens 12
refuse 'a mixer without attention' 1 'masks: the dispatcher mixer has no attention' analyze masks tiny.yaml model.mixer=dispatcher
refuse 'a drawing of an unknown kind' 1 'x\.pdf: expected a name that ends in \.svg, \.png or \.html' analyze shuffle runs/decoder -o x.pdf
refuse 'a drawing where there is a page' 1 'x\.svg: expected a name that ends in \.html' analyze completions runs/coarse -o x.svg
refuse 'a folder that is not there' 1 'none: No such file' analyze shuffle runs/decoder --json none/x.json
refuse 'an unknown theme' 1 "theme: expected auto, light or dark, got 'blue'" analyze masks runs/decoder --theme blue
refuse 'no bins' 2 '--bins: .*0' analyze frequency runs/decoder --bins 0

echo "$failures failed"
exit $((failures > 0))
