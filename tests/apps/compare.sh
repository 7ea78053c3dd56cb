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
verdict 'a row for each model, nothing trained' "$([ ! -e runs ] && awk 'NR == 2 { print NF } NR > 2 { print $1 }' out | diff - <(printf '8\nvanilla\ntop-down\n'))"

run compare "${small[@]}" --equal parameters --change ff --seeds 1,2 --json -o both.html
verdict 'two models, two seeds' "$([ $? = 0 ] && ls runs | xargs | diff - <(echo pair_top-down_1 pair_top-down_2 pair_vanilla_1 pair_vanilla_2))"
verdict 'what was run is told on stderr' "$(grep -c '^run [1-4] of 4: runs/pair_' err | diff - <(echo 4))"
verdict 'JSON on stdout, a model and a run each' "$(grep -cE '"(name|run)": ' out | diff - <(echo 6))"
verdict 'both seeds have weights of their own' "$(cmp -s runs/pair_vanilla_1/model.safetensors runs/pair_vanilla_2/model.safetensors && echo same)"
verdict 'the model is the changed one' "$(grep -qE '^  ff: [0-9]+$' runs/pair_top-down_1/config.yaml && ! grep -qE '^  ff: 64$' runs/pair_top-down_1/config.yaml || cat runs/pair_top-down_1/config.yaml)"
verdict 'a page with the table' "$(grep -q '<td>vanilla</td>' both.html && grep -q 'seconds of training' both.html || echo no)"

cp out first.json
accept 'again: nothing is left to train' compare "${small[@]}" --equal parameters --change ff --seeds 1,2 --json -o both.svg
verdict 'the same results' "$(diff <(grep -v '"command"' first.json) <(grep -v '"command"' out))"
verdict 'the drawing is XML' "$(xmllint --noout both.svg 2>&1)"
run compare "${small[@]}" --equal parameters --change ff --seeds 1,2,3
verdict 'one seed more: two trainings more' "$(grep -c '^run [56] of 6' err | diff - <(echo 2))"
verdict 'a table with the title' "$([ "$(head -1 out)" = 'pair, equal parameters' ] && [ "$(wc -l <out)" = 4 ] || cat out)"

# ---- Interrupted: the child saves, and the same command goes on to the same bits
long=(pair.yaml steps=4000 eval_every=4000 checkpoint_every=0 log_every=1000 model.d=32)
start compare "${long[@]}" --name long
await '[ -s runs/long_vanilla_1/run_id ] && grep -q "^runs/long_vanilla_1: " background.err'
sleep 0.3
kill -INT "$background"
ended 300
verdict 'an interrupted comparison ends well' "$([ $? = 0 ] && grep -q '^interrupted in run 1 of 2; the same command goes on$' background.err || cat background.err)"
verdict 'the child has saved and ended' "$(ls runs/long_vanilla_1/checkpoints | grep -q safetensors || echo no)"
run compare "${long[@]}" --name long
verdict 'it goes on' "$([ $? = 0 ] && grep -q '^top-down ' out || echo no)"
run compare "${long[@]}" --name whole
verdict 'to the bits of one that was not interrupted' "$([ "$(tensors runs/long_vanilla_1/model.safetensors | sha256sum)" = "$(tensors runs/whole_vanilla_1/model.safetensors | sha256sum)" ] || echo no)"

# ---- Messages
refuse 'no file' 1 'no comparison file given' compare
refuse 'no such file' 1 'none\.yaml: No such file' compare none.yaml
refuse 'nothing of a model' 1 'tiny\.yaml:[0-9]+: model: expected a run file, or a list of a run file and KEY=VALUE' compare tiny.yaml
echo 'a: nowhere.yaml' >lost.yaml
refuse 'a run file that is not there' 1 'nowhere\.yaml: No such file' compare lost.yaml
refuse 'a key that no run has' 1 "unknown key 'lrr'" compare pair.yaml lrr=1
printf 'a: tiny.yaml\nb: [tiny.yaml, batch=3]\n' >batches.yaml
refuse 'another batch' 1 'b: batch: 3, but a has 2: they would not read the same tokens' compare batches.yaml
refuse 'the name of a run' 1 'name=x: the runs of a comparison have --name and --seeds' compare pair.yaml name=x
refuse 'a model that is not there' 1 "--only: no model is called 'top-dwn', the nearest is 'top-down'" compare pair.yaml --only vanilla,top-dwn
accept 'one of the models' compare pair.yaml --only top-down --plan
verdict 'it alone' "$(awk 'NR > 2 { print $1 }' out | diff - <(echo top-down))"
refuse 'a seed twice' 1 '--seeds: 2 stands there twice' compare pair.yaml --seeds 2,1,2
refuse 'nothing to make equal' 1 "--equal: expected one of nothing, parameters, flops, memory, got 'speed'" compare pair.yaml --equal speed
refuse 'nothing to change' 1 "--change: expected one of width, ff, layers, got 'depth'" compare pair.yaml --change depth
refuse 'a drawing of an unknown kind' 1 'both\.png: expected a name that ends in \.svg or \.html' compare pair.yaml -o both.png
refuse 'a run of another config' 1 'runs/pair_vanilla_1: holds a run with lr: ' compare "${small[@]}" lr=0.5
run compare pair.yaml steps=8 lr=1e30 --name broken
verdict 'a training that fails' "$([ $? = 1 ] && tail -1 err | grep -q '^ricci-compare: runs/broken_vanilla_1: ricci-train ended with exit code 1$' || cat err)"

echo "$failures failed"
exit $((failures > 0))
