#!/usr/bin/env bash
# ricci plot: drawings for independent parsers and decoders, and the list of runs.
#   plot.sh build-folder
. "$(dirname "$0")/../outputs.sh" "$@"
command -v xmllint >/dev/null || needs 'xmllint (Debian: libxml2-utils)'
command -v python3 >/dev/null || needs python3

# ---- The list of runs
quiet=(tiny.yaml eval_every=2)
accept 'a run' train "${quiet[@]}" name=short steps=4
accept 'another run' train "${quiet[@]}" name=wide steps=6 model.d=32 lr=0.002
sed -i 's/^steps: .*/steps: 60/' runs/short/config.yaml # like an interrupted run
start train "${quiet[@]}" name=long steps=1000000
await '[ -s runs/long/metrics.jsonl ]'
mkdir runs/weights runs/fresh && cp runs/wide/config.yaml runs/fresh/
accept 'the list' plot --list
narrow 'the list'
# The most frequent value of these keys is in at most half of the runs.
shows 'short' '^short +interrupted +[0-9,-]+ +60 '
shows 'and its keys below' '^short +lr=0\.001 model\.d=16 steps=60$'
shows 'wide' '^wide +finished +[0-9,-]+ +6 '
shows 'and its keys' '^wide +lr=0\.002 model\.d=32 steps=6$'
is 'the running one is on top' long awk 'NR == 3 { print $1 }' out
shows 'long, with the time that is left' '^long +running +[0-9,-]+ +1,000,000 .* [0-9,]+ (second|minute|hour|day)s?$'
shows 'and its keys' '^long +lr=0\.001 model\.d=16 steps=1000000$'
shows 'a run without a record has no age' '^fresh +new +- +6 +- +- +-'
shows 'nothing else is a run' '^4 runs$'
is 'each in two lines' 12 grep -c '' out
accept 'a list without the one of two wide runs' plot --list short wide long
shows 'short' '^short +steps=60$'
shows 'wide' '^wide +lr=0\.002 model\.d=32 steps=6$'
"$build/ricci" runs wide --json >out 2>err
verdict 'ricci runs' "$(python3 -c '
import json
run, = json.load(open("out"))
records = [json.loads(line) for line in open("runs/wide/metrics.jsonl")]
best = min((r for r in records if r["val_loss"] is not None), key=lambda r: r["val_loss"])
assert (run["name"], run["state"], run["step"], run["steps"], run["differs"]) == ("wide", "finished", 6, 6, {}), run
assert run["best"] == {"val_loss": best["val_loss"], "step": best["step"]} and run["train_loss"] == records[-1]["train_loss"], run
assert run["age_seconds"] >= 0, run' 2>&1)"
prints 'patterns, order and limit' '^1 of 2 runs$' runs 's*' wide --sort loss --limit 1
holds 'a run that is trained goes on' kill -0 $background
prints 'folders that are no runs are named' '^none: no such run' plot --list wide weights none
shows 'both' 'runs/weights/config\.yaml: No such file'

# ---- Drawings
accept 'a run with a name to be escaped' train tiny.yaml 'name=a<b>&"c"' steps=5
for options in '' '--log-y --x tokens' '--keys lr,grad_norm --smooth 5'; do
  accept "a drawing $options" plot runs/wide 'runs/a<b>&"c"' -o plot.svg $options
  is 'it is an SVG drawing' svg xmllint --xpath 'name(/*)' plot.svg
  shows 'and is named' '^saved plot\.svg$'
done
shows 'its title names the runs' '>wide, a&lt;b&gt;&amp;&quot;c&quot;</text>' plot.svg
accept 'a drawing with a title' plot runs/wide --title 'On a plain' -o plot.svg
shows 'it has it' '>On a plain</text>' plot.svg
accept 'a run of another seed' train "${quiet[@]}" name=wide_2 steps=6 model.d=32 lr=0.002 seed=2
accept 'a drawing of two seeds' plot wide wide_2 -o plot.svg
shows 'one curve for both' '>wide \(2 seeds\)</text>' plot.svg
is 'in a band' 3 grep -c 'class="band f0"' plot.svg
accept 'a page' plot runs/wide --x time --log-y -o plot.html
verdict 'it is XML' "$(xmllint --noout plot.html 2>&1)"
shows 'with the list' '<td>wide</td>' plot.html
prints 'a drawing names paths that are no runs' 'runs/weights/config\.yaml: No such file' plot runs/wide runs/weights -o some.svg

kill -TERM $background
ended

# ---- A run that fails, until its next start
failing=(train tiny.yaml name=failing optimizer=sgd schedule=constant warmup=0)
refuse 'a loss that is not finite' 1 'step [2-9]: the loss is -?(nan|inf)' "${failing[@]}" lr=1e30 steps=20
failed=$(sed -nE 's/.*step ([2-9]): the loss is .*/failed at step \1/p' err)
prints 'its state is the step that the error names' "^failing +$failed +[0-9]+ +20 " plot --list failing wide
prints 'in JSON, too' "\"state\": \"$failed\"" plot --list failing --json
start "${failing[@]}" lr=1e-3 steps=1000000
await '[ -s runs/failing/metrics.jsonl ] && grep -q "\"step\":20," runs/failing/metrics.jsonl'
kill -KILL "$background"
ended
prints 'a run that is killed later is interrupted' '^failing +interrupted ' plot --list failing wide

# ---- Messages
refuse 'JSON without a list' 2 '--json requires --list' plot wide --json
refuse 'neither runs nor a list' 2 'runs is required' plot
RICCI_RUNS=nowhere prints 'no folder of runs' "^no runs in nowhere; 'ricci train data=my.txt name=mine' makes one$" runs
is 'in one line' 1 grep -c '' out
RICCI_RUNS=nowhere prints 'in JSON' '^\[\]$' plot --list --json
refuse 'a pattern that fits nothing' 1 'cmp3\*: no run in runs matches this pattern' runs 'cmp3*'
refuse 'an unknown order' 1 "--sort: expected one of age, loss, name, step, got 'speed'" runs --sort speed
refuse 'a list as a drawing' 1 'a\.svg: expected a name that ends in \.html' plot --list -o a.svg
refuse 'a folder that is not there' 1 'no/page\.html: folder no: No such file' plot wide -o no/page.html
refuse 'runs without a record' 1 'none of the 1 runs has a record yet' plot fresh
refuse 'a drawing of an unknown kind' 1 'plot.pdf: expected a name that ends in .svg or .html' plot runs/wide -o plot.pdf
for steps in nan -1 0.6 inf; do
  refuse "smoothing over $steps" 1 "--smooth: expected 0 or from 1 to 1e9 steps, got $steps" plot runs/wide --smooth $steps
done
refuse 'a drawing as PNG' 1 'plot\.png: .* \.svg or \.html; rsvg-convert --zoom 2 turns an SVG into a PNG$' plot runs/wide -o plot.png
refuse 'a PNG of what is a page' 1 'a\.png: expected a name that ends in \.html' analyze completions runs/wide -o a.png
finish
