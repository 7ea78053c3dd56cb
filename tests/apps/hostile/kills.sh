#!/usr/bin/env bash
# Each family and feed of ricci train, and the other programs that write, are killed at random calls that change files, and restarted. They
# write the bytes of an uninterrupted call. The calls are counted (signal_at.cpp), so clocks and the load of the machine have no effect.
#   kills.sh build-folder [kills [seed]]
# Without a number some of the commands are killed twice; with RICCI_TEST_ALL all of them, 14 times. Training runs with many checkpoints are
# killed three times as often.
models=$(cd "$(dirname "$0")/../../interop/models" && pwd) || exit 1
. "$(dirname "$0")/../programs.sh" "$@"
kills=${2:-$(few_or_all 2 14)}
RANDOM=${3:-1}

mkdir before
cd before
cp -r "$models/llama" hf
for ((i = 0; i < 80; ++i)); do
  printf '%d\tthe %s fox number %d\n' $((i % 3)) "$([ $((i % 3)) = 0 ] && echo quick || echo lazy)" $((i * i % 97)) >>labelled.tsv
  printf '{"messages": [{"role": "user", "content": "add %d"}, {"role": "assistant", "content": "it is %d"}]}\n' $i $((i + 1)) >>talks.jsonl
  printf '{"prompt": "add %d", "answer": "it is %d"}\n' $i $((i + 1)) >>pairs.jsonl
done
cp ../text.txt .
sed 's/^steps: .*/steps: 8/; s/^eval_every: .*/eval_every: 3/; /^name:/d' ../tiny.yaml >small.yaml
printf 'a: [small.yaml]\nb: [small.yaml, model.layers=2]\n' >pair.yaml
touch -d '1 hour ago' ./*
accept 'a tokenizer with markers' tokenize train talks.jsonl --format messages --vocab 300 --special '<|im_start|>' --special '<|im_end|>' -o markers.json
accept 'shards' prepare text.txt --documents line --tokenizer char --shard-tokens 600 -o shards
accept 'a run of before' train small.yaml name=old
cd ..
rm -rf before/runs/old/events.out.*

train='train small.yaml name=new checkpoint_every=2'
names='long two_threads decoder llama topdown bottomup retina coarse classifier messages pairs columns shuffled compare prepare tokenize import export'
[ $# -gt 1 ] || everything || names='long two_threads messages shuffled prepare import'
long='train small.yaml name=new steps=60 eval_every=12 checkpoint_every=3 lr=1e-2 model.dropout=0.2'
declare -A commands=(
  [long]="$long"
  [two_threads]="$long threads=2"
  [decoder]="$train model.dropout=0.1 tokenizer=bpe model.vocab=270"
  [llama]="$train model.preset=llama precision=bf16"
  [topdown]="$train model.family=topdown model.scales=[1,4] model.layers=[1,1]"
  [bottomup]="$train model.family=bottomup model.scales=[1,4] model.layers=[1,1]"
  [retina]="$train model.family=retina model.scales=[1,4] model.windows=0:4,4:16"
  [coarse]="$train model.family=coarse model.scale=4"
  [classifier]="$train model.family=classifier model.classes=3 data=labelled.tsv format=tsv label_field=1 tokenizer=word"
  [messages]="$train data=talks.jsonl format=messages tokenizer=markers.json model.ctx=64"
  [pairs]="$train data=pairs.jsonl format=pairs pack=best model.ctx=64"
  [columns]="$train order=columns model.mixer=metric"
  [shuffled]="$train data=[shards,shards] weights=[1,2] order=shuffled"
  [compare]='compare pair.yaml checkpoint_every=4 --json'
  [prepare]='prepare text.txt --tokenizer byte --documents line --shard-tokens 300 -o new'
  [tokenize]='tokenize train text.txt --vocab 270 -o markers.json'
  [import]='convert import hf runs/new'
  [export]='convert export runs/old new'
)

# started CALL: the command in the folder work, killed at that call of the program or of its child.
started() {
  (cd work && RICCI_SIGNAL_AT="9 $1" LD_PRELOAD=$build/libricci-signal-at.so \
    "$build/ricci-${command[0]}" "${command[@]:1}" >../out 2>../err </dev/null) 2>/dev/null
}
fresh() { rm -rf work cache && cp -a before work; }
total=0 cut=0 resumed=0
for name in $names; do
  read -ra command <<<"${commands[$name]}"
  fresh
  export RICCI_CALLS=$folder/calls
  started 0 || { verdict "$name: in one piece" "exit code $?" && continue; }
  unset RICCI_CALLS
  tree work >expected
  calls=$(grep -c '' calls)
  # At its last call an import or export has ended, and a second one is an error. A second start makes three folders fewer.
  [[ $name != @(im|ex)port ]] || calls=$((calls - 4))
  faults= hit=0 times=$kills
  [[ ${commands[$name]} != "$long"* ]] || times=$((3 * kills))
  fresh
  for ((start = 0; hit < times && start < 20 * times; ++start)); do
    started $((1 + RANDOM % calls))
    code=$?
    # A comparison ends with 1 if its training run is killed.
    if [ $code = 137 ] || { [ $name$code = compare1 ] && grep -q 'signal 9' err; }; then
      hit=$((hit + 1))
      [ -z "$(find work -path '*/checkpoints/.*.tmp-*')" ] || cut=$((cut + 1))
      ! grep -q 'continues after step' out || resumed=$((resumed + 1))
    elif [ $code = 0 ]; then
      tree work | diff expected - >difference || faults+=" start $start: $(head -3 difference | xargs)"
      fresh
    else
      faults+=" start $start: exit code $code, $(head -1 err)"
    fi
  done
  started 0 || faults+=" the last start: exit code $?, $(head -1 err)"
  tree work | diff expected - >difference || faults+=" at the end: $(head -3 difference | xargs)"
  faults+=$(find work -name '.*.tmp-*')
  : >out && : >err
  verdict "$name: $hit kills at one of $calls calls" "$faults$([ $hit -ge $times ] || echo ' too few')"
  [ "$name" != long ] || cp work/runs/new/model.safetensors .
  [ "$name" != two_threads ] || verdict 'two threads: the model of one' "$(cmp model.safetensors work/runs/new/model.safetensors 2>&1)"
  total=$((total + hit))
done
verdict "$total kills, $cut of them while a checkpoint was written, $resumed after a checkpoint was read" "$([ $cut -ge 1 ] && [ $resumed -ge 1 ] || echo 'too few')"

# ---- A new run is killed while it prepares its text: the next start continues in the cache, to the files of an uninterrupted start
yes "$(cat text.txt)" | head -c 10000000 >large.txt
await '[ $(($(date +%s) - $(stat -c %Z large.txt))) -gt 3 ]'  # from now on the cache identifies it by its time
first_start() {
  { LD_PRELOAD=$build/libricci-signal-at.so "$build/ricci-train" tiny.yaml data=large.txt tokenizer=byte eval_batches=1 name=first >out 2>err </dev/null; } 2>/dev/null
}
contents() { (cd cache/ricci && sha1sum */*); }
kept() { stat -c '%n %i' cache/ricci/*/shard-* 2>/dev/null; }
rm -rf cache
RICCI_CALLS=$folder/calls first_start
verdict 'a first start in one piece' "$([ $? = 0 ] && [ ! -s err ] || echo failed)"
contents >expected
last=$(grep -n 'rename.*shard-' calls | tail -1 | cut -d: -f1) times=$(few_or_all 6 20) faults= continued=0
for ((number = 1; number <= times; ++number)); do
  rm -rf cache runs/first
  RICCI_SIGNAL_AT="9 $((last * number / times))" first_start
  [ $? = 137 ] || faults+=" $number: not killed"
  kept >before_shards
  first_start || faults+=" $number: $(cat err)"
  contents | diff expected - >difference || faults+=" $number: $(head -3 difference | xargs)"
  kept | grep -qvxFf - before_shards && faults+=" $number: a sound shard was made again"
  [ ! -s before_shards ] || continued=$((continued + 1))
done
verdict "$times kills of a first start" "$faults$([ $continued -ge 2 ] || echo " $continued with shards")"

echo "$failures failed"
exit $((failures > 0))
