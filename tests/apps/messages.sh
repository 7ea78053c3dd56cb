#!/usr/bin/env bash
# Bad input, given to the real programs: one clear line on stderr, a non-zero exit code, nothing half-written.
#   messages.sh build-folder
set -u
build=$(cd "$1" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
export XDG_CACHE_HOME=$work/cache
unset RICCI_DATA
failed=0

# refuses CODE 'part of the line' command...
refuses() {
  local code=$1 part=$2 got
  shift 2
  "$@" >out 2>err </dev/null
  got=$?
  if [ "$got" -eq "$code" ] && [ "$(wc -l <err)" -eq 1 ] && grep -qF -- "$part" err; then return; fi
  failed=1
  echo "FAILED: $*"
  echo "  expected exit code $code and one line with: $part"
  echo "  got exit code $got and:"
  sed 's/^/  | /' err
}
holds() {  # 'what' command...: the command succeeds
  local what=$1
  shift
  "$@" >out 2>err && return
  failed=1
  echo "FAILED: $what: $*"
  cat err
}

seq 400 | tr '\n' ' ' >text.txt
: >empty.txt
train() { "$build/ricci-train" name=new data=text.txt model.d=16 model.layers=1 model.heads=2 model.ctx=16 steps=3 threads=1 sample.tokens=0 eval_every=0 "$@"; }

refuses 1 'nope.txt is not there' train data=nope.txt
refuses 1 'empty.txt is empty' train data=empty.txt
refuses 1 'tokens, but a context of 4000 needs 4001' train model.ctx=4000
refuses 1 "unknown key 'model.windwo', the nearest known key is 'model.window'" train model.windwo=3
printf 'model:\n  haeds: 2\n' >typo.yaml
refuses 1 "typo.yaml:2: unknown key 'model.haeds', the nearest known key is 'model.heads'" "$build/ricci-train" typo.yaml
refuses 1 "steps: expected integer, got 'abc'" train steps=abc
refuses 1 'model.heads: 3 does not divide d = 16' train model.heads=3
refuses 1 'context: 32 exceeds model.ctx = 16' train context=32
refuses 1 "device: expected one of cpu, cuda, cuda_emulated, got 'tpu'" train device=tpu
refuses 1 'step 1: the loss is nan: linear (models/' train name=nan lr=1e30 clip=0 steps=20 log_every=100
[ ! -e runs/nan/model.safetensors ] || { echo "FAILED: a model was saved although the loss was not finite"; failed=1; }

holds 'training' train name=one
holds 'training with two threads' train name=two threads=2
cmp runs/one/model.safetensors runs/two/model.safetensors || { echo "FAILED: the number of threads changed the weights"; failed=1; }
refuses 1 'holds a trained model already' train name=one
keys='"step" "tokens" "train_loss" "val_loss" "lr" "grad_norm" "tokens_per_s" "peak_bytes" '
[ "$(tail -n 1 runs/one/metrics.jsonl | grep -oE '"[a-z_]+"' | tr '\n' ' ')" = "$keys" ] || { echo "FAILED: keys of metrics.jsonl"; failed=1; }

generate() { "$build/ricci-generate" "runs/$1" --tokens 5 --threads 1 "${@:2}"; }
refuses 1 "'x' (U+0078) at byte 0 is not among" generate one --prompt x
refuses 1 'top-p: expected more than 0' generate one --prompt 1 --top-p 0
refuses 1 'temperature: expected 0 or more' generate one --prompt 1 --temperature -1
refuses 1 'runs/none: no such run folder' generate none --prompt 1
refuses 1 'is longer than the 16 tokens the model was trained on' "$build/ricci-eval" runs/one --context 32
refuses 2 'run is required' "$build/ricci-eval"
cp -r runs/one runs/cut
head -c 500 runs/one/model.safetensors >runs/cut/model.safetensors
refuses 1 'runs/cut/model.safetensors: cut off' generate cut --prompt 1
printf '\377\377\377\377\377\377\377\177' | cat - runs/one/model.safetensors >runs/cut/model.safetensors
refuses 1 'runs/cut/model.safetensors:' generate cut --prompt 1

"$build/ricci-train" name=stopped data=text.txt model.d=16 model.layers=1 model.heads=2 model.ctx=16 steps=100000000 threads=1 eval_every=0 >out 2>err &
pid=$!
while [ ! -e runs/stopped/metrics.jsonl ] && kill -0 "$pid" 2>/dev/null; do sleep 0.1; done
sleep 0.5
kill -INT "$pid"
wait "$pid" || { echo "FAILED: exit code after an interrupt"; failed=1; }
holds 'a model saved at an interrupt' generate stopped --prompt 1
for app in train eval generate check probe; do holds 'help' "$build/ricci-$app" --help; done
holds 'help on the keys' "$build/ricci-train" --help-config

left=$(find . -name '*.tmp-*')
[ -z "$left" ] || { echo "FAILED: left behind: $left"; failed=1; }
[ "$failed" -eq 0 ] && echo "every message is as expected"
exit "$failed"
