#!/usr/bin/env bash
# The list of runs, and the page that is written while they train.
#   list.sh build-folder
. "$(dirname "$0")/../../programs.sh" "$@"
command -v python3 >/dev/null || needs python3

quiet=(tiny.yaml eval_every=2)
accept 'a run' train "${quiet[@]}" name=short steps=4
accept 'another run' train "${quiet[@]}" name=wide steps=6 model.d=32 lr=0.002
sed -i 's/^steps: .*/steps: 60/' runs/short/config.yaml # as if it had been stopped
start train "${quiet[@]}" name=long steps=1000000
await '[ -s runs/long/metrics.jsonl ]'
mkdir runs/weights runs/fresh && cp runs/wide/config.yaml runs/fresh/
accept 'the list' plot --list
cp out list
# state NAME STATE STEPS DIFFERENCES
state() { verdict "$1 is $2" "$(grep -qE "^$1 +$2 +[0-9,-]+ +$3 [^=]* $4$" list || shown list)"; }
# Two runs have 6 steps, and the other two one number each. Of the other keys each value is in two runs.
state short interrupted 60 'lr=0\.001 model\.d=16 steps=60'
state wide finished 6 'lr=0\.002 model\.d=32'
state long running 1,000,000 'lr=0\.001 model\.d=16 steps=1000000'
state fresh new 6 'lr=0\.002 model\.d=32'
accept 'a list without the one of two wide runs' plot --list short wide long
cp out list
state short interrupted 60 'steps=60'
state wide finished 6 'lr=0\.002 model\.d=32 steps=6'
accept 'the list' plot --list
cp out list
verdict 'a run without a record has no age' "$(grep -qE '^fresh +new +- +6 +- +- +- +- +lr=' list || shown list)"
verdict 'nothing else is a run' "$([ "$(grep -c '' list)" = 6 ] && grep -qx '4 runs' list || shown list)"
"$build/ricci" runs wide --json >out 2>err
verdict 'ricci runs' "$(python3 -c '
import json, math
run, = json.load(open("out"))
records = [json.loads(line) for line in open("runs/wide/metrics.jsonl")]
best = min((r for r in records if r["val_loss"] is not None), key=lambda r: r["val_loss"])
assert (run["name"], run["state"], run["step"], run["steps"], run["differs"]) == ("wide", "finished", 6, 6, {}), run
assert run["best"] == {"val_loss": best["val_loss"], "step": best["step"]} and run["train_loss"] == records[-1]["train_loss"], run
assert 0 <= run["age_seconds"] < 600, run' 2>&1)"
verdict 'a run that is trained goes on' "$(kill -0 $background 2>&1)"
run plot --list wide weights none
verdict 'folders that are no runs are named' "$([ $? = 0 ] && [ "$(grep -c '^left out: .*\(weights\|none\)' out)" = 2 ] || shown out err)"

trainer=$background
"$build/ricci-plot" --watch page.html >out 2>err </dev/null &
background=$!
await '[ -s page.html ]'
cp page.html first.html
await '! cmp -s page.html first.html'
kill -INT $background
ended 50
verdict 'a watched page ends with Ctrl-C' "$([ $? = 0 ] && [ "$(grep -c '' out)" = 1 ] && [ ! -s err ] || shown out err)"
verdict 'words of its table are to the left' "$(grep -q '<th>run</th><th class="left">state</th><th>step</th>' first.html && grep -q '<td>short</td><td class="left">interrupted</td><td>4</td>' first.html || echo no)"
verdict 'it loads itself again' "$(grep -q 'http-equiv="refresh" content="5"' first.html && grep -q 'class="curve' first.html && grep -q running first.html || echo no)"
verdict 'and the last one does not' "$(grep -c 'http-equiv="refresh"' page.html | grep -vx 0; grep -q 'class="curve' page.html || echo no curve)"
background=$trainer
kill -TERM $background
ended 600
refuse 'a list of no run' 1 'none: no such run folder' plot --list none
refuse 'JSON without a list' 2 '--json requires --list' plot wide --json
refuse 'neither runs nor a list' 2 'runs is required' plot
RICCI_RUNS=nowhere refuse 'no folder of runs' 1 'nowhere: there is no such folder of runs' plot --list
refuse 'a list as a drawing' 1 'a\.svg: expected a name that ends in \.html' plot --list -o a.svg
refuse 'a watched drawing' 1 'a\.svg: expected a name that ends in \.html' plot wide --watch a.svg
refuse 'a folder that is not there' 1 'no/page\.html: folder no: No such file' plot wide --watch no/page.html

echo "$failures failed"
exit $((failures > 0))
