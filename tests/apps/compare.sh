#!/usr/bin/env bash
# ricci-compare: a comparison of two small models from beginning to end, an interruption, and messages.
#   compare.sh build-folder
. "$(dirname "$0")/programs.sh" "$@"
command -v xmllint >/dev/null || needs 'xmllint (Debian: libxml2-utils)'

sed -i '/^name:/d; /^eval_every/d' tiny.yaml
cat >pair.yaml <<'END'
vanilla: [tiny.yaml, model.layers=3]
top-down: [tiny.yaml, model.family=topdown, "model.scales=[1, 4]"]
END
small=(pair.yaml steps=4 eval_every=2 checkpoint_every=2)

accept 'plans' compare "${small[@]}" --equal parameters --change ff --plan
verdict 'a row for each model, nothing trained' "$([ ! -e runs ] && awk 'NR == 2 { print NF } NR > 2 { print $1 }' out | diff - <(printf '9\nvanilla\ntop-down\n'))"

run compare "${small[@]}" --equal parameters --change ff --seeds 1,2 --json -o both.html
verdict 'two models, two seeds' "$([ $? = 0 ] && ls runs | xargs | diff - <(echo pair_top-down_1 pair_top-down_2 pair_vanilla_1 pair_vanilla_2))"
verdict 'what was run is told on stderr' "$(grep -c '^run [1-4] of 4: runs/pair_' err | diff - <(echo 4))"
verdict 'JSON on stdout, a model and a run each' "$(grep -cE '"(name|run)": ' out | diff - <(echo 6))"
verdict 'both seeds have weights of their own' "$(cmp -s runs/pair_vanilla_1/model.safetensors runs/pair_vanilla_2/model.safetensors && echo same)"
verdict 'the model is the changed one' "$(grep -qE '^  ff: [0-9]+$' runs/pair_top-down_1/config.yaml && ! grep -qE '^  ff: 64$' runs/pair_top-down_1/config.yaml || shown runs/pair_top-down_1/config.yaml)"
verdict 'with the interval over the seeds: two models in two panels, for pages and phones' "$(grep -o 'class="band f[01]"' both.html | wc -l | diff - <(echo 8))"
verdict 'a page with the table' "$(grep -q '<td>vanilla</td>' both.html && grep -q 'seconds of training' both.html || echo no)"

cp out first.json
accept 'again: nothing is left to train' compare "${small[@]}" --equal parameters --change ff --seeds 1,2 --json -o both.svg
verdict 'the same results' "$(diff <(grep -v '"command"' first.json) <(grep -v '"command"' out))"
verdict 'each run tells the build that trained it' "$(grep -cE '^ *"ricci [^,]+, commit [^,]+, .*, seed [12]"$' out | diff - <(echo 4))"
sed -i '1s/commit [^,]*/commit 0123456789/' runs/pair_vanilla_1/config.yaml
accept 'a run that another build trained' compare "${small[@]}" --equal parameters --change ff --seeds 1,2 --json
verdict 'tells that one, the others their own' "$(diff <(grep '^ *"ricci ' first.json | sed '1s/commit [^,]*/commit 0123456789/') <(grep '^ *"ricci ' out))"
verdict 'the report tells the build that made it' "$([ "$(grep '^ "build": "ricci' out)" = "$(grep '^ "build"' first.json)" ] || instead grep '"build' first.json out)"
verdict 'the drawing is XML' "$(xmllint --noout both.svg 2>&1)"
run compare "${small[@]}" --equal parameters --change ff --seeds 1,2,3
verdict 'one seed more: two trainings more' "$(grep -c '^run [56] of 6' err | diff - <(echo 2))"
verdict 'a table with the title' "$([ "$(head -1 out)" = 'pair, equal parameters' ] && [ "$(wc -l <out)" = 5 ] || shown out)"
verdict 'and the difference seed by seed' "$(tail -1 out | grep -qE '^top-down minus vanilla: [+-][0-9.]+ \+-[0-9.]+ nats/token \(95%, seed by seed\)$' || shown out)"

# ---- Interrupted: the child saves, and the same command goes on to the same bits
long=(pair.yaml steps=4000 eval_every=4000 checkpoint_every=0 log_every=1000 model.d=32)
start compare "${long[@]}" --name long
await '[ -s runs/long_vanilla_1/run_id ] && grep -q "^runs/long_vanilla_1: " background.err'
sleep 0.3
kill -INT "$background"
ended 300
verdict 'an interrupted comparison ends well' "$([ $? = 0 ] && grep -q '^interrupted in run 1 of 2; the same command goes on$' background.err || shown background.err)"
verdict 'the child has saved and ended' "$(ls runs/long_vanilla_1/checkpoints | grep -q safetensors || echo no)"
run compare "${long[@]}" --name long
verdict 'it goes on' "$([ $? = 0 ] && grep -q '^top-down ' out || echo no)"
run compare "${long[@]}" --name whole
verdict 'to the bits of one that was not interrupted' "$([ "$(tensors runs/long_vanilla_1/model.safetensors | sha256sum)" = "$(tensors runs/whole_vanilla_1/model.safetensors | sha256sum)" ] || echo no)"

# ---- Interrupted when the child cannot save yet: nothing is lost, and it is no error
# It reads a text and makes a vocabulary before its first step, for seconds.
for number in {1..30000}; do echo "the quick brown fox $((number * 7919 % 10007)) jumps over the lazy dog $((number * 104729 % 99991))"; done >long.txt
early=(pair.yaml data=long.txt tokenizer=bpe model.vocab=2000)
begun='grep -q "^run 1 of 2: " background.err'
start compare "${early[@]}" --name early
await "$begun"
kill -INT "$background"
ended 300
verdict 'an interruption at once ends well' "$([ $? = 0 ] && tail -1 background.err | grep -q '^interrupted in run 1 of 2; the same command goes on$' || shown background.err)"
verdict 'before the first step' "$([ ! -e runs/early_vanilla_1/metrics.jsonl ] || echo trained)"
# The request comes while the child is still a copy of this program.
RICCI_SIGNAL_FORKED=15 LD_PRELOAD=$build/libricci-signal-at.so start compare "${long[@]}" --name forked
ended 300
verdict 'so does one before the child is another program' "$([ $? = 0 ] && tail -1 background.err | grep -q '^interrupted in run 1 of 2; the same command goes on$' || shown background.err)"
verdict 'which is not forgotten' "$([ ! -e runs/forked_vanilla_1/metrics.jsonl ] || echo trained)"
RICCI_SIGNAL_ENDING=2 LD_PRELOAD=$build/libricci-signal-at.so start compare "${small[@]}" --name between
ended 300
verdict 'and one between two trainings' "$([ $? = 0 ] && tail -1 background.err | grep -q '^interrupted before run 2 of 2; the same command goes on$' || shown background.err)"
verdict 'does not begin the next' "$([ -e runs/between_vanilla_1/model.safetensors ] && [ ! -e runs/between_top-down_1 ] || instead ls runs)"

# ---- The child and the terminal
# ignores PROCESS SIGNAL, is_in PROCESS STATE (R, S, T: stopped), child_of PROCESS.
ignores() { (( 0x$(awk '/^SigIgn/ { print $2 }' "/proc/$1/status") >> ($2 - 1) & 1 )); }
is_in() { grep -q "^State:	$2" "/proc/$1/status"; }
child_of() { tr -d ' ' <"/proc/$1/task/$1/children"; }
(trap '' HUP; exec "$build/ricci-compare" "${long[@]}" steps=1000000 --name ignoring >background.out 2>background.err </dev/null) & background=$!
await '[ -s runs/ignoring_vanilla_1/run_id ] && grep -q "^runs/ignoring_vanilla_1: " background.err'
child=$(child_of "$background")
verdict 'SIGHUP that was ignored stays ignored in the child' "$(ignores "$child" 1 || shown "/proc/$child/status")"
verdict 'SIGTTOU does not stop the child' "$(ignores "$child" 22 || shown "/proc/$child/status")"
verdict 'SIGINT and SIGTERM end it' "$(! ignores "$child" 2 && ! ignores "$child" 15 || shown "/proc/$child/status")"
kill -HUP "$background"
sleep 0.2
verdict 'SIGHUP is ignored' "$(kill -0 "$background" && kill -0 "$child" || shown background.err)"
kill -INT "$background"
ended 300
verdict 'SIGINT is not' "$([ $? = 0 ] && tail -1 background.err | grep -q '^interrupted in run 1 of 2' || shown background.err)"
set -m  # a process group of its own, which a shell could continue: others are not stopped by SIGTSTP
start compare "${long[@]}" --name stopped
set +m
await '[ -s runs/stopped_vanilla_1/run_id ] && grep -q "^runs/stopped_vanilla_1: " background.err'
child=$(child_of "$background")
kill -TSTP "$background"
await "is_in $background T"
verdict 'Ctrl-Z stops the comparison and its training' "$(is_in "$background" T && is_in "$child" T || instead grep State "/proc/$background/status" "/proc/$child/status")"
kill -CONT "$background"
await "! is_in $child T"
verdict 'both go on' "$(! is_in "$background" T && ! is_in "$child" T || instead grep State "/proc/$background/status" "/proc/$child/status")"
ended 1200
verdict 'to the end' "$([ $? = 0 ] && grep -q '^top-down ' background.out || shown background.err)"
verdict 'and to the same bits' "$([ "$(tensors runs/stopped_vanilla_1/model.safetensors | sha256sum)" = "$(tensors runs/whole_vanilla_1/model.safetensors | sha256sum)" ] || echo no)"

# ---- The same tokens for all, whatever their losses leave out
cat >scored.yaml <<'END'
vanilla: tiny.yaml
top-down: [tiny.yaml, model.family=topdown, "model.scales=[1, 4]", model.loss_from=first_full]
END
few=(scored.yaml steps=4 eval_every=2)
run compare "${few[@]}" --json -o scored.html
verdict 'models whose losses leave different tokens out' "$([ $? = 0 ] && grep -q '"eval_from": 3' out || echo no)"
verdict 'are evaluated on the same' "$(sed -nE 's/.*validation [0-9.]+, .*\(([0-9,]+) tokens\).*/\1/p' err | sort | uniq -c | awk '{ print $1, $2 }' | diff - <(echo '4 227'))"
verdict 'the page tells which' "$(grep -q 'losses of the positions from 3 on of each window of 16' scored.html || echo no)"
cp out scored.json
accept 'as ricci-eval has it' eval runs/scored_vanilla_1 runs/scored_top-down_1 --checkpoint best --json
verdict 'the same losses' "$(diff <(sed -nE 's/^   "least_nats": (.*),/\1/p' scored.json | cut -c1-8) <(sed -nE 's/^ *"nats_per_token": (.*),/\1/p' out | cut -c1-8) && grep -c '"from": 3' out | diff - <(echo 2))"
accept 'one of them alone' compare "${few[@]}" --only vanilla --plan
verdict 'is scored as beside the others' "$(tail -1 out | diff - <(echo 'losses of the positions from 3 on of each window of 16'))"
accept 'before training' compare "${small[@]}" --plan --json
verdict 'there is no loss' "$(! grep -qE 'nats|perplexity|interval|runs' out || shown out)"

printf 'sdp: [tiny.yaml, model.heads=2]\nidentity: [tiny.yaml, model.heads=2, model.mixer=identity, "~model.heads"]\n' >mixers.yaml
accept 'a key taken back for one of them' compare mixers.yaml --plan
verdict 'both are planned' "$(grep -cE '^(sdp|identity) ' out | diff - <(echo 2))"

# ---- A grid
grid=(pair.yaml steps=4 eval_every=2 'lr=[1e-2, 1e-3]')
accept 'a grid before training' compare "${grid[@]}" 'batch=[2]' --only vanilla --plan
verdict 'has a row for each value' "$(awk 'NR > 2 { print $1 }' out | diff - <(printf 'vanilla_lr_%s_batch_2\n' 1e-2 1e-3))"
run compare "${grid[@]}" --only vanilla,top-down_lr_1e-3 --seeds 1,2 --json -o grid.html
verdict 'trains each' "$([ $? = 0 ] && ls -d runs/*lr* | xargs -n1 basename | xargs | diff - <(echo pair_top-down_lr_1e-3_1 pair_top-down_lr_1e-3_2 pair_vanilla_lr_1e-2_1 pair_vanilla_lr_1e-2_2 pair_vanilla_lr_1e-3_1 pair_vanilla_lr_1e-3_2))"
verdict 'with its value' "$(grep -h '^lr:' runs/pair_vanilla_lr_1e-[23]_1/config.yaml | xargs | diff - <(echo 'lr: 0.01 lr: 0.001'))"
verdict 'which the JSON has' "$(tr -d ' \n' <out | grep -oE '"grid":\{[^}]*\}' | xargs | diff - <(echo 'grid:{lr:1e-2} grid:{lr:1e-3} grid:{lr:1e-3}'))"
verdict 'the page has the rows and the differences' "$(grep -c '<td>[^<]*_lr_1e-3</td>\|_lr_1e-3 minus vanilla_lr_1e-2: ' grid.html | diff - <(echo 4))"

# ---- Messages
refuse 'no file' 1 'no comparison file given' compare
refuse 'no such file' 1 'none\.yaml: No such file' compare none.yaml
refuse 'nothing of a model' 1 'tiny\.yaml:[0-9]+: model: expected a run file, or a list of a run file and KEY=VALUE' compare tiny.yaml
echo 'a: nowhere.yaml' >lost.yaml
refuse 'a run file that is not there' 1 'nowhere\.yaml: No such file' compare lost.yaml
printf '"a\\x1b[31mb": tiny.yaml\n' >names.yaml
refuse 'a name with an escape sequence' 1 "names\.yaml:1: 'a \[31mb' cannot be a part of the name of a run" compare names.yaml
printf '"a\\nb": tiny.yaml\n' >names.yaml
refuse 'a name of two lines' 1 "names\.yaml:1: 'a b' cannot be a part of the name of a run" compare names.yaml
refuse 'a key that no run has' 1 "unknown key 'lrr'" compare pair.yaml lrr=1
printf 'a: tiny.yaml\nb: [tiny.yaml, batch=3]\n' >batches.yaml
refuse 'another batch' 1 'b: batch: 3, but a has 2: they would not read the same tokens' compare batches.yaml
printf 'a: [tiny.yaml, model.vocab=280]\nb: [tiny.yaml, model.vocab=300]\n' >vocabularies.yaml
refuse 'another vocabulary' 1 'b: model.vocab: 300, but a has 280: they would not read the same tokens' compare vocabularies.yaml tokenizer=bpe
printf 'a: tiny.yaml\nb: [tiny.yaml, model.family=coarse]\n' >losses.yaml
refuse 'losses of different things' 1 'b: model.family: coarse, whose loss is of the tokens of the next cell of 4, but a has a loss of the next token' compare losses.yaml
refuse 'the name of a run' 1 'name=x: the runs of a comparison have --name and --seeds' compare pair.yaml name=x
refuse 'a model that is not there' 1 "--only: no model is called 'top-dwn', the nearest is 'top-down'" compare pair.yaml --only vanilla,top-dwn
accept 'one of the models' compare pair.yaml --only top-down --plan
verdict 'it alone' "$(awk 'NR > 2 { print $1 }' out | diff - <(echo top-down))"
accept 'made equal' compare pair.yaml --equal parameters --change ff --plan
grep '^top-down ' out | tr -s ' ' >both.row
accept 'to the first model, though that is not chosen' compare pair.yaml --equal parameters --change ff --plan --only top-down
verdict 'as beside it' "$(grep '^top-down ' out | tr -s ' ' | diff both.row -)"
refuse 'a seed twice' 1 '--seeds: 2 is there twice' compare pair.yaml --seeds 2,1,2
refuse 'nothing to make equal' 1 "--equal: expected one of nothing, parameters, flops, memory, got 'speed'" compare pair.yaml --equal speed
refuse 'nothing to change' 1 "--change: expected one of width, ff, layers, got 'depth'" compare pair.yaml --change depth
refuse 'a drawing of an unknown kind' 1 'both\.pdf: expected a name that ends in \.svg, \.png or \.html' compare pair.yaml -o both.pdf
refuse 'a run of another config' 1 'runs/pair_vanilla_1: holds a run with lr: ' compare "${small[@]}" lr=0.5
run compare pair.yaml steps=8 lr=1e30 --name broken
verdict 'a training that fails' "$([ $? = 1 ] && tail -1 err | grep -q '^ricci-compare: runs/broken_vanilla_1: ricci-train ended with exit code 1$' || shown err)"

echo "$failures failed"
exit $((failures > 0))
