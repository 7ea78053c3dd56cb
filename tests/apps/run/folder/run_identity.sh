#!/usr/bin/env bash
# A run writes into its own folder only, one process at a time, and follows no link out of it; and a reader beside a training
# always finds a checkpoint.
#   run_identity.sh build-folder
# RICCI_ROUNDS: how often ricci-eval reads beside a training; 40 if not given.
. "$(dirname "$0")/../../programs.sh" "$@"
rounds=${RICCI_ROUNDS:-40}
endless=(tiny.yaml steps=1000000 checkpoint_every=20 keep_checkpoints=1)
has_checkpoint() { ls "runs/$1/checkpoints" 2>/dev/null | grep -q '^step'; }
# remove FOLDER: also while somebody writes in it.
remove() { until rm -rf "$1" 2>/dev/null; do :; done; }

# ---- Removed, and another run of the same name begun
start train "${endless[@]}" name=x
await 'has_checkpoint x'
remove runs/x
accept 'a successor of a folder that was removed' train tiny.yaml name=x steps=8 checkpoint_every=2 keep_checkpoints=9 seed=7
cp -r runs/x kept
ended 100
code=$?
verdict 'the run whose folder was removed ends' "$([ $code = 1 ] && [ "$(grep -c '' background.err)" = 1 ] && grep -qE '^ricci-train: runs/x: (the folder was removed|its files were removed or replaced) while this run was at work in it$' background.err || echo "exit code $code, $(cat background.err)")"
verdict 'its successor is as it was' "$(diff -r kept runs/x 2>&1)"

# ---- Its content removed and another one put in its place
remove runs/x
start train "${endless[@]}" name=x checkpoint_every=0
await '[ "$(grep -c "" runs/x/metrics.jsonl 2>/dev/null)" -gt 5 ] 2>/dev/null'
refuse 'while a run is at work no other one begins' 1 'runs/x: another ricci-train is at work in it' train tiny.yaml name=x
rm -rf runs/x/* && cp -r kept/* runs/x
kill -INT $background
ended 100
code=$?
verdict 'the run whose files were replaced ends' "$([ $code = 1 ] && grep -qE '^ricci-train: runs/x: its files were removed or replaced while this run was at work in it$' background.err || echo "exit code $code, $(cat background.err)")"
verdict 'what was put there is as it was' "$(diff -r kept runs/x 2>&1)"

# ---- Moved: it goes on where its folder is
remove runs/x
start train "${endless[@]}" name=x
await 'has_checkpoint x'
mv runs/x runs/moved
accept 'another run where a folder was' train tiny.yaml name=x steps=8 checkpoint_every=2 keep_checkpoints=9 seed=7
seen=$(ls runs/moved/checkpoints)
await '[ "$(ls runs/moved/checkpoints)" != "$seen" ]'
kill -INT $background
ended 100
code=$?
verdict 'a run whose folder was moved goes on in it' "$([ $code = 0 ] && [ ! -s background.err ] && [ -s runs/moved/model.safetensors ] || echo "exit code $code")"
verdict 'not in the new one' "$(diff -r -x 'events*' -x metrics.jsonl -x run_id kept runs/x 2>&1)"

# ---- Many starts at once: one of them trains, and what is left is what one alone leaves
accept 'a run alone' train tiny.yaml name=alone steps=30
pids=
for number in {1..8}; do
  "$build/ricci-train" tiny.yaml name=many steps=30 >"out.$number" 2>"err.$number" </dev/null & pids+=" $!"
done
faults= trained=0 number=0
for pid in $pids; do
  wait "$pid"
  code=$? number=$((number + 1))
  if [ $code = 0 ]; then
    grep -q '^saved after 30 steps' "out.$number" && trained=$((trained + 1))
  else
    grep -qE 'runs/many: another ricci-train is at work in it$' "err.$number" || faults+=" $(cat "err.$number")"
  fi
done
verdict 'eight starts at once: the others are told' "$faults"
verdict 'one of them has trained' "$([ $trained = 1 ] || echo "$trained have")"
verdict 'its model is that of a run alone' "$(cmp runs/{alone,many}/model.safetensors 2>&1)"

# ---- A start that comes to nothing leaves nothing
refuse 'no such text' 1 'neither none\.txt' train tiny.yaml name=nothing data=none.txt
verdict 'no folder is left' "$([ ! -e runs/nothing ] || echo it is)"

# ---- Links inside a run folder are not followed
accept 'a run to link from' train tiny.yaml name=x2 steps=8 checkpoint_every=4
rm -rf kept && cp -r runs/x2 kept
for name in config.yaml run.yaml overrides.yaml tokenizer.json metrics.jsonl run_id model.safetensors checkpoints checkpoints/step-00000008.safetensors; do
  rm -rf runs/linked foreign && cp -r kept runs/linked && cp -r runs/linked/$name foreign && cp -r foreign foreign.kept
  rm -rf runs/linked/$name && ln -s "$PWD/foreign" runs/linked/$name
  if [ $name = checkpoints/step-00000008.safetensors ]; then
    run train tiny.yaml name=linked steps=12
    verdict "a link in the place of $name: passed over" "$(grep -qE '^warning: .*step-00000008\.safetensors: it is a symbolic link.*step 4 is used$' err || echo no)"
  else
    refuse "a link in the place of $name" 1 "runs/linked/$name: (it is )?a symbolic link" train tiny.yaml name=linked steps=12
  fi
  verdict "what $name led to is as it was" "$(diff -r foreign.kept foreign 2>&1)"
  rm -rf foreign foreign.kept
done

# ---- Readers beside a training
start train "${endless[@]}" name=busy checkpoint_every=1 eval_every=3
await 'has_checkpoint busy'
faults=
for ((number = 1; number <= rounds; ++number)); do
  case $((number % 3)) in 0) which=best ;; *) which=last ;; esac
  run eval runs/busy --checkpoint $which || faults+=" $number ($which): $(cat err)"
  kill -0 $background 2>/dev/null || faults+=" $number: the training ended"
done
verdict "ricci-eval beside a training, $rounds times" "$faults"
kill -INT $background
ended 100
verdict 'the training ends well' "$([ $? = 0 ] || echo no)"

# ---- What the user said
{ printf '# the third idea\r\n'; sed 's/^steps: .*/steps:    4  # \xff/' tiny.yaml; printf '\t # the end'; } >idea.yaml
accept 'a run file' train idea.yaml name=said 'sample.prompt="a\n"' log_every=2
verdict 'is kept byte for byte' "$(cmp idea.yaml runs/said/run.yaml 2>&1)"
overrides() { diff <(tail -n +2 runs/said/overrides.yaml) <(printf '%s\n' "$@"); }
verdict 'and so is the command line' "$(overrides '- "name=said"' '- "sample.prompt=\"a\\n\""' '- "log_every=2"')"
accept 'it goes on by its folder' train runs/said steps=6
verdict 'its run file stays' "$(cmp idea.yaml runs/said/run.yaml 2>&1)"
verdict 'what the command line says is added' "$(tail -1 runs/said/overrides.yaml | diff - <(echo '- "steps=6"'))"
accept 'it goes on by another file' train tiny.yaml name=said steps=8
verdict 'which takes the place of the first' "$(cmp tiny.yaml runs/said/run.yaml 2>&1; overrides '- "name=said"' '- "steps=8"')"
accept 'a run without a file' train name=unsaid data=text.txt model.d=16 model.layers=1 model.ctx=16 steps=1 eval_every=0 sample.tokens=0 threads=1
verdict 'has none' "$([ ! -e runs/unsaid/run.yaml ] && grep -qx -- '- "steps=1"' runs/unsaid/overrides.yaml || instead ls runs/unsaid)"

# ---- What somebody wrote into config.yaml
accept 'a run to be commented' train tiny.yaml name=noted steps=4
sed -i -e '1a # the run of the third idea' -e 's/^lr: .*/# not higher\n&  # 3e-3 was too much/' -e 's/^  heads: .*/&   # "two" # are enough/' runs/noted/config.yaml
echo '# the end' >>runs/noted/config.yaml
cp runs/noted/config.yaml noted.yaml
accept 'and with others' train tiny.yaml name=noted steps=8 log_every=2
verdict 'then the file as it was edited is kept' "$(cmp noted.yaml runs/noted/config.edited.yaml 2>&1)"
verdict 'and the keys are the new ones' "$(grep -E '^(steps|log_every)' runs/noted/config.yaml | diff - <(printf '%s\n' 'steps: 8' 'log_every: 2'))"

echo "$failures failed"
exit $((failures > 0))
