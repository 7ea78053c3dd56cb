#!/usr/bin/env bash
# ricci compare: a comparison of two small models from beginning to end, interruptions, and messages.
#   compare.sh build-folder
. "$(dirname "$0")/outputs.sh" "$@"
command -v xmllint >/dev/null || needs 'xmllint (Debian: libxml2-utils)'

sed -i '/^name:/d; /^eval_every/d' tiny.yaml
cat >pair.yaml <<'END'
vanilla: [tiny.yaml, model.layers=3]
top-down: [tiny.yaml, model.family=topdown, "model.scales=[1, 4]"]
END
small=(pair.yaml steps=4 eval_every=2 checkpoint_every=2)
equal=(compare "${small[@]}" --equal parameters --change ff)

accept 'plans' "${equal[@]}" --plan
is 'a row for each model' $'7\nvanilla\ntop-down' awk 'NR == 2 { print NF } NR > 2 { print $1 }' out
narrow 'plans'
holds 'nothing trained' [ ! -e runs ]
accept 'before training' compare "${small[@]}" --plan --json
holds 'there is no loss' eval "! grep -E 'nats|perplexity|interval|runs' out"

run "${equal[@]}" --seeds 1,2 --json
is 'two models, two seeds' $'pair_top-down_1\npair_top-down_2\npair_vanilla_1\npair_vanilla_2' ls runs
is 'what was run is told on stderr' 4 grep -c '^run [1-4] of 4: runs/pair_' err
holds 'both seeds have weights of their own' eval '! cmp -s runs/pair_vanilla_{1,2}/model.safetensors'
holds 'the model is the changed one' eval "grep -E '^  ff: [0-9]+$' runs/pair_top-down_1/config.yaml | grep -v ': 64'"
cp out first.json
accept 'again: nothing is left to train' "${equal[@]}" --seeds 1,2 --json -o both.svg
is 'the same results' "$(grep -v '"command"' first.json)" grep -v '"command"' out
verdict 'the drawing is XML' "$(xmllint --noout both.svg 2>&1)"
is 'each run tells the build that trained it' 4 grep -cE '^ *"ricci [^,]+, commit [^,]+, .*, seed [12]"$' out
sed -i '1s/commit [^,]*/commit 0123456789/' runs/pair_vanilla_1/config.yaml
accept 'a run that another build trained' "${equal[@]}" --seeds 1,2 --json
is 'tells that one, the others their own' "$(grep '^ *"ricci ' first.json | sed '1s/commit [^,]*/commit 0123456789/')" grep '^ *"ricci ' out
is 'the report tells the build that made it' "$(grep '^ "build": "ricci' first.json)" grep '^ "build"' out
run "${equal[@]}" --seeds 1,2,3
is 'one seed more: two trainings more' 2 grep -c '^run [56] of 6' err
is 'without samples of text' 0 grep -c '^sample after' err
narrow 'three seeds'
shows 'and the difference seed by seed' '^top-down minus vanilla: [+-][0-9.]+ ±[0-9.]+ nats/token \(95%, seed by seed\)$'

run compare "${small[@]}" --name sampled --only vanilla sample.tokens=5 -o sampled.html
is 'samples can be asked for' 1 grep -c '^sample after' err
shows 'the page is told' '^saved sampled\.html$'

# ---- Stopped and interrupted: the child saves, and the repeated command ends with the same bits
# ignores PROCESS SIGNAL, awaits PROCESS SIGNAL: sent, and not yet delivered. is_in PROCESS STATE (R, S, T: stopped).
has_signal() { (( 0x$(awk "/^$1/ { print \$2 }" "/proc/$2/status") >> ($3 - 1) & 1 )); }
ignores() { has_signal SigIgn "$@"; }
awaits() { has_signal ShdPnd "$@"; }
is_in() { grep -q "^State:	$2" "/proc/$1/status"; }
# begin NAME ARGUMENT ...: a comparison in its own process group, as a shell starts it; $child trains its first model, after at least a
# step.
begin() {
  set -m
  start compare "${slow[@]}" --name "$@"
  set +m
  await "[ -s runs/$1_slow_1/metrics.jsonl ]"
  child=$(tr -d ' ' <"/proc/$background/task/$background/children")
}
interrupted() { verdict "$1" "$([ "$2" = "$4" ] && tail -1 background.err | grep -qx "interrupted $3; repeat the command to continue" || shown background.err)"; }
saved() { holds "$1: the child has saved and ended" eval "ls runs/$1_slow_1/checkpoints | grep safetensors && ! kill -0 $child"; }
printf 'slow: [tiny.yaml, model.d=64, model.layers=6]\nfast: tiny.yaml\n' >slow.yaml
slow=(slow.yaml steps=400 batch=4 log_every=1 checkpoint_every=0)
begin long
kill -TSTP -- -"$background"
await "is_in $background T && is_in $child T"
holds 'Ctrl-Z stops the comparison and its training' eval "is_in $background T && is_in $child T"
kill -CONT -- -"$background"
await "! is_in $background T && ! is_in $child T"
kill -INT -- -"$background"
ended
interrupted 'Ctrl-C ends it well' $? 'in run 1 of 2' 130
saved long
for name in long whole; do
  run compare "${slow[@]}" --name $name --json
  verdict "$name runs to the end" "$([ $? = 0 ] && grep -q '"name": "fast"' out || echo no)"
  grep -E '^ *"(name|least_nats|perplexity|nats)":' out >$name.numbers
done
verdict 'to the bits of one that was not interrupted' "$(cmp <(tensors runs/long_slow_1/model.safetensors) <(tensors runs/whole_slow_1/model.safetensors) 2>&1)"
same 'and to the same table' long.numbers whole.numbers

# From any sender, to the comparison only or to both.
for signal in INT TERM; do
  begin only_$signal steps=1000000
  kill -$signal "$background"
  ended
  interrupted "$signal to the comparison only" $? 'in run 1 of 2' $((128 + $(kill -l $signal)))
  saved only_$signal
done
begin both steps=1000000
kill -TERM -- -"$background"
ended
interrupted 'TERM to both' $? 'in run 1 of 2' 143
saved both
begin twice steps=1000000
kill -STOP "$child" # it cannot save before the second one
kill -INT -- -"$background"
await '! awaits "$background" 2'
kill -INT -- -"$background"
ended
is 'the second Ctrl-C ends it' 130 echo $?
kill -CONT "$child"
await '! kill -0 "$child" 2>/dev/null'
holds 'and the child' eval '! kill -0 "$child"'

(trap '' HUP; exec "$build/ricci-compare" "${slow[@]}" steps=1000000 --name ignoring >background.out 2>background.err </dev/null) & background=$!
await '[ -s runs/ignoring_slow_1/metrics.jsonl ]'
child=$(tr -d ' ' <"/proc/$background/task/$background/children")
for process in "$background" "$child"; do holds 'SIGHUP that was ignored stays ignored' ignores "$process" 1; done
kill -HUP "$background"
records=$(grep -c '' runs/ignoring_slow_1/metrics.jsonl)
await '[ "$(grep -c "" runs/ignoring_slow_1/metrics.jsonl)" -gt $((records + 1)) ]'
holds 'SIGHUP is ignored' kill -0 "$background" "$child"
kill -TERM "$background"
ended
interrupted 'SIGTERM is not' $? 'in run 1 of 2' 143

# ---- Interrupted before the child can save: nothing is lost, without an error
# The child reads a text and makes a vocabulary before its first step, for seconds.
awk 'BEGIN { for (i = 1; i <= 30000; ++i) print "the quick brown fox " i * 7919 % 10007 " jumps over the lazy dog " i * 104729 % 99991 }' >long.txt
start compare pair.yaml data=long.txt tokenizer=bpe model.vocab=2000 --name early
await 'grep -q "^run 1 of 2: " background.err'
kill -INT "$background"
ended
interrupted 'an interruption at once ends well' $? 'in run 1 of 2' 130
holds 'before the first step' [ ! -e runs/early_vanilla_1/metrics.jsonl ]

# ---- A training run that ends without a model and without an interruption is an error
for end in 'KILL ricci train: ended by signal 9' 'TERM runs/alone_TERM_slow_1: the run is not finished; repeat the command to continue it'; do
  begin "alone_${end%% *}" steps=1000000
  kill -"${end%% *}" "$child"
  ended
  verdict "${end%% *} to the training only" "$([ $? = 1 ] && tail -1 background.err | grep -qx "ricci compare: ${end#* }" || shown background.err)"
done
# The training run ends while the comparison is stopped, so the request comes between two runs.
start compare pair.yaml data=long.txt tokenizer=bpe model.vocab=2000 --name between
await 'child=$(tr -d " " <"/proc/$background/task/$background/children"); [ -n "$child" ]'
kill -STOP "$background"
await "is_in $child Z"
kill -TERM "$background"
kill -CONT "$background"
ended
interrupted 'a request between two trainings' $? 'before run 2 of 2' 143
holds 'does not begin the next' [ -e runs/between_vanilla_1/model.safetensors -a ! -e runs/between_top-down_1 ]

# ---- All models score the same tokens
cat >scored.yaml <<'END'
vanilla: tiny.yaml
top-down: [tiny.yaml, model.family=topdown, "model.scales=[1, 4]", model.loss_from=first_full]
END
few=(scored.yaml steps=4 eval_every=2)
run compare "${few[@]}" --json
shows 'models whose losses leave different tokens out' '"eval_from": 3'
is 'are evaluated on the same' '4 227' eval "sed -nE 's/.*validation [0-9.]+, .*\(([0-9,]+) tokens\).*/\1/p' err | sort | uniq -c | awk '{ print \$1, \$2 }'"
least=$(sed -nE 's/^   "least_nats": (.*),/\1/p' out | cut -c1-8)
accept 'as ricci eval has it' eval runs/scored_vanilla_1@best runs/scored_top-down_1@best --json
is 'the same losses' "$least" eval "sed -nE 's/^ *\"nats_per_token\": (.*),/\1/p' out | cut -c1-8"
is 'from there on' 2 grep -c '"from": 3' out

# ---- A grid
grid=(pair.yaml steps=4 eval_every=2 'lr=[1e-2, 1e-3]')
run compare "${grid[@]}" --only vanilla,top-down_lr_1e-3 --seeds 1,2
is 'trains each' "$(printf 'pair_%s\n' top-down_lr_1e-3_{1,2} vanilla_lr_1e-{2,3}_{1,2})" eval "ls runs | grep lr"
is 'with its value' $'lr: 0.01\nlr: 0.001' grep -h '^lr:' runs/pair_vanilla_lr_1e-{2,3}_1/config.yaml

# ---- A sweep without a file
sweep=(compare tiny.yaml steps=4 eval_every=2 'lr=[1e-2, 1e-3]')
run "${sweep[@]}" --seeds 2
is 'a run file and two seeds' "$(printf 'tiny_lr_1e-%s\n' 2_1 2_2 3_1 3_2)" eval "ls runs | grep '^tiny_lr'"
shows 'the models have the values as names' '^lr_1e-3 '
accept 'again: nothing is left to train' "${sweep[@]}" --seeds 2 --json
shows 'the command line is told' '"command": "ricci-compare tiny.yaml steps=4 eval_every=2 lr=\[1e-2, 1e-3\] --seeds 2 --json"'
run compare data=embedded steps=2 model.d=8 model.layers=1 'model.heads=[1, 2]' eval_every=2
is 'keys alone' $'sweep_heads_1_1\nsweep_heads_2_1' eval "ls runs | grep sweep"
(echo 'name: mine' && cat tiny.yaml) >named.yaml
run compare named.yaml steps=4 eval_every=2 --seeds 2
is 'seeds of one model have its name' $'mine_1\nmine_2' eval "ls runs | grep mine"
refuse 'one model and one seed' 1 "nothing to compare: one model and one seed; give a list of values, such as 'lr=\[1e-3, 3e-4\]', or --seeds 3" compare tiny.yaml
refuse 'an unknown key' 1 "unknown key 'lrr', the nearest known key is 'lr'" compare tiny.yaml 'lrr=[1, 2]'
refuse 'a run file with another name' 1 'cannot read tine.yaml: No such file.*; the nearest run file is tiny.yaml' compare tine.yaml 'lr=[1, 2]'
refuse 'the number of seeds' 1 '--seeds: expected 1 to 20 seeds for each model, got 1337; to choose seeds, list them, such as 4,1337' compare tiny.yaml --seeds 1337

# ---- Messages
refuse 'nothing given' 1 'nothing to compare: one model and one seed' compare
echo 'a: nowhere.yaml' >lost.yaml
refuse 'a run file that is not there' 1 'nowhere\.yaml: No such file' compare lost.yaml
refuse 'the name of a run' 1 'name=x: use --name and --seeds instead' compare pair.yaml name=x
refuse 'a model that is not there' 1 "--only: no model is called 'top-dwn', the nearest is 'top-down'" compare pair.yaml --only vanilla,top-dwn
refuse 'a seed twice' 1 '--seeds: 2 is given twice' compare pair.yaml --seeds 2,1,2
refuse 'nothing to make equal' 1 "--equal: expected one of nothing, parameters, flops, memory, got 'speed'" compare pair.yaml --equal speed
refuse 'nothing to change' 1 "--change: expected one of width, ff, layers, got 'depth'" compare pair.yaml --change depth
refuse 'a drawing of an unknown kind' 1 'both\.pdf: expected a name that ends in \.svg or \.html' compare pair.yaml -o both.pdf
refuse 'a run of another config' 1 'runs/pair_vanilla_1: contains a run with lr: ' compare "${small[@]}" lr=0.5
run compare pair.yaml steps=8 lr=1e30 --name broken
verdict 'a training that fails' "$([ $? = 1 ] && tail -1 err | grep -q '^ricci compare: runs/broken_vanilla_1: ricci train ended with exit code 1$' || shown err)"
finish
