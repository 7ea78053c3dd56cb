#!/usr/bin/env bash
# One process at a time trains in a run folder, with or without links in it, and a reader always finds a checkpoint.
#   shared_folder.sh build-folder
. "$(dirname "$0")/../programs.sh" "$@"
rounds=$(few_or_all 6 40)  # calls of ricci eval during training
endless=(tiny.yaml steps=1000000 checkpoint_every=20 keep_checkpoints=1)
has_checkpoint() { ls "runs/$1/checkpoints" 2>/dev/null | grep -q '^step'; }

# ---- Many simultaneous starts: one of them trains, with the files of a single start
accept 'a run alone' train tiny.yaml name=alone steps=30
pids=
for number in {1..4}; do
  "$build/ricci-train" tiny.yaml name=many steps=30 >"out.$number" 2>"err.$number" </dev/null & pids+=" $!"
done
faults= trained=0 number=0
for pid in $pids; do
  wait "$pid"
  code=$? number=$((number + 1))
  if [ $code = 0 ]; then
    grep -q '^saved after 30 steps' "out.$number" && trained=$((trained + 1))
  else
    grep -qE 'runs/many: a different ricci train process is using it$' "err.$number" || faults+=" $(cat "err.$number")"
  fi
done
verdict 'four starts at once: the others are told' "$faults"
verdict 'one of them has trained' "$([ $trained = 1 ] || echo "$trained have")"
verdict 'its model is that of a run alone' "$(cmp runs/{alone,many}/model.safetensors 2>&1)"

# ---- A failed start leaves no files
refuse 'no such text' 1 'neither none\.txt' train tiny.yaml name=nothing data=none.txt
verdict 'no folder is left' "$([ ! -e runs/nothing ] || echo it is)"

# ---- Links inside a run folder lead to a larger disk, or into a store
saving=(schedule=constant checkpoint_every=4)
accept 'a run in one piece' train tiny.yaml name=whole steps=12 "${saving[@]}"
accept 'a run to link from' train tiny.yaml name=x2 steps=8 "${saving[@]}"
for name in config.yaml tokenizer.json metrics.jsonl model.safetensors checkpoints checkpoints/step-00000008.safetensors; do
  rm -rf runs/linked store kept && cp -r runs/x2 runs/linked && mkdir store && mv runs/linked/$name store/object && cp -r store kept
  ln -s "$PWD/store/object" runs/linked/$name
  accept "a model with a link in the place of $name" eval runs/linked
  accept "a run with a link in the place of $name" train tiny.yaml name=linked steps=12 "${saving[@]}"
  verdict 'the same model' "$(cmp runs/{whole,linked}/model.safetensors 2>&1)"
  case $name in
    checkpoints) verdict 'the new checkpoints are on the other disk' "$([ -L runs/linked/checkpoints ] && cmp <(tensors runs/whole/checkpoints/step-00000012.safetensors) <(tensors store/object/step-00000012.safetensors) 2>&1)" ;;
    metrics.jsonl) ;; # it grows in place
    *) verdict "what $name led to is as it was" "$(diff -r kept store 2>&1)" ;;
  esac
done
rm -rf runs/linked store && cp -r runs/x2 runs/linked && rm -r runs/linked/checkpoints runs/linked/model.safetensors && ln -s /nowhere runs/linked/checkpoints
refuse 'a disk that is not there' 1 'runs/linked/checkpoints: cannot be created: ' train tiny.yaml name=linked steps=12 "${saving[@]}"

# ---- A run folder is removed, renamed or replaced during training: the old run ends with one line, and the new one has only its own files
accept 'a run to compare with' train tiny.yaml name=expected steps=30
for what in removed renamed replaced; do
  rm -rf runs/lost away
  start train "${endless[@]}" name=lost
  await 'has_checkpoint lost'
  mv runs/lost away
  case $what in
    removed) rm -r away ;;
    replaced) accept 'a new run in its place' train tiny.yaml name=lost steps=30 ;;
  esac
  ended
  code=$?
  verdict "the folder was $what" "$([ $code = 1 ] || echo "exit code $code"; diff background.err - <<<'ricci train: runs/lost: the folder was removed or replaced since training began')"
  if [ $what = replaced ]; then
    verdict 'the new run is as it would be' "$(diff <(cd runs/expected && find . -name '*.safetensors' -exec md5sum {} +) <(cd runs/lost && find . -name '*.safetensors' -exec md5sum {} +))"
  else
    verdict 'no folder takes its place' "$([ ! -e runs/lost ] || ls runs/lost)"
  fi
done

# ---- Readers during training
start train "${endless[@]}" name=busy checkpoint_every=1 eval_every=3
await 'has_checkpoint busy'
faults=
for ((number = 1; number <= rounds; ++number)); do
  case $((number % 3)) in 0) which=best ;; *) which=last ;; esac
  run eval runs/busy@$which || faults+=" $number ($which): $(cat err)"
  kill -0 $background 2>/dev/null || faults+=" $number: the training ended"
done
verdict "ricci eval beside a training, $rounds times" "$faults"
kill -INT $background
ended
is 'the training is saved' 130 echo $?

echo "$failures failed"
exit $((failures > 0))
