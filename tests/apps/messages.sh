#!/usr/bin/env bash
# Bad input to the programs: each is refused with an exit code, one line on stderr that says what is wrong and where, and
# nothing half-written. Good input: help, interruption, metrics, and weights that do not depend on the number of threads.
#   messages.sh build-folder
set -u
export LC_ALL=C
build=$(cd "${1:?build folder}" && pwd) || exit 1
folder=$(mktemp -d) || exit 1
background=
cleanup() {
  [ -z "$background" ] || kill -KILL "$background" 2>/dev/null
  rm -rf "$folder"
}
trap cleanup EXIT
cd "$folder" || exit 1
export XDG_CACHE_HOME=$folder/cache RICCI_DATA=$folder/data
failures=0

# verdict NAME FAULT: an empty fault is none.
verdict() {
  if [ -z "$2" ]; then
    echo "ok      $1"
  else
    echo "FAILED  $1: $2"
    sed 's/^/          /' out err
    failures=$((failures + 1))
  fi
}

# run PROGRAM ARGUMENT ...: stdout to the file out, stderr to err; the exit code is that of ricci-PROGRAM.
run() {
  local program=$1
  shift
  timeout 60 "$build/ricci-$program" "$@" >out 2>err </dev/null
}

leftovers() { find . -name '*.tmp-*' -o -path './runs/bad/model.safetensors' -o -name 'probe.safetensors'; }

# refuse NAME CODE PATTERN PROGRAM ARGUMENT ...: the exit code, and the extended regular expression of the line.
refuse() {
  local name=$1 code=$2 pattern=$3 program=$4 got fault=
  shift 3
  rm -rf runs/bad
  run "$@"
  got=$?
  if [ "$got" != "$code" ]; then
    fault="exit code $got, expected $code"
  elif [ "$(grep -c '' err)" != 1 ]; then
    fault='expected one line on stderr'
  elif [ "$(wc -c <err)" -gt 250 ]; then
    fault='the line on stderr has more than 250 bytes'
  elif ! grep -qE "^ricci-$program: .*($pattern)" err; then
    fault="stderr does not match $pattern"
  elif [ -n "$(leftovers)" ]; then
    fault="left behind: $(leftovers)"
  fi
  verdict "$name" "$fault"
}

# accept NAME PROGRAM ARGUMENT ...: exit code 0 and nothing on stderr.
accept() {
  local name=$1 fault=
  shift
  run "$@" || fault="exit code $?"
  [ -n "$fault" ] || [ ! -s err ] || fault='expected nothing on stderr'
  verdict "$name" "$fault"
}

# ---- A small trained run
for number in {1..60}; do echo "the quick brown fox jumps over the lazy dog $number"; done >text.txt
cat >tiny.yaml <<'END'
name: bad
model: {d: 16, layers: 1, heads: 2, ctx: 16}
data: text.txt
steps: 2
batch: 2
threads: 1
eval_every: 0
log_every: 1
sample: {tokens: 0}
END
accept 'train a small model' train tiny.yaml name=tiny
trained=runs/tiny/model.safetensors
[ -s "$trained" ] || exit 1

# ---- Run files and overrides
refuse 'no such run file' 1 'none\.yaml: No such file' train none.yaml
printf 'steps: 3\nmodel:\n  d: 16\n  heds: 2\n' >key.yaml
refuse 'unknown key' 1 "key\.yaml:4: unknown key 'model\.heds', the nearest known key is 'model\.heads'" train key.yaml
printf 'name: bad\nsteps: two\n' >type.yaml
refuse 'wrong type' 1 "type\.yaml:2: steps: expected integer, got 'two'" train type.yaml
printf 'name: bad\nsteps: [\n' >broken.yaml
refuse 'not YAML' 1 'broken\.yaml:[0-9]+: not YAML' train broken.yaml
refuse 'mistyped override key' 1 "command line: unknown key 'model\.laiers', .*'model\.layers'" train tiny.yaml model.laiers=2
refuse 'wrong type of an override' 1 "command line: lr: expected number, got 'high'" train tiny.yaml lr=high
refuse 'heads that do not divide d' 1 'model\.heads: 3 does not divide d = 16' train tiny.yaml model.heads=3
refuse 'context longer than model.ctx' 1 'context: 17 exceeds model\.ctx = 16' train tiny.yaml context=17
refuse 'unknown device' 1 "device: expected one of cpu, cuda, cuda_emulated, got 'tpu'" train tiny.yaml device=tpu
refuse 'unknown option' 2 '--frob' train tiny.yaml --frob
refuse 'two run files' 2 'two run files: tiny\.yaml and key\.yaml' train tiny.yaml key.yaml
cp "$trained" before.safetensors
refuse 'run that is trained already' 1 'runs/tiny: holds a trained model already' train tiny.yaml name=tiny
cmp -s "$trained" before.safetensors
verdict 'the trained model is as it was' "$([ $? = 0 ] || echo "$trained changed")"

# ---- Texts
: >empty.txt
echo short >short.txt
refuse 'no such text' 1 'neither none\.txt nor .*/data/none\.txt' train tiny.yaml data=none.txt
refuse 'empty text' 1 'empty\.txt is empty' train tiny.yaml data=empty.txt
refuse 'text shorter than the context' 1 'short\.txt .*5 tokens.* context of 16 needs 17' train tiny.yaml data=short.txt
refuse 'evaluation of an empty text' 1 'empty\.txt is empty' eval runs/tiny --data empty.txt
refuse 'evaluation of too short a text' 1 'short\.txt .*6 tokens.* context of 16 needs 17' eval runs/tiny --data short.txt
refuse 'evaluation of a character it never saw' 1 "'#' \(U\+0023\)" eval runs/tiny --data tiny.yaml key.yaml <(echo '#')

# ---- A GPU that is not there: hidden, should the machine have one
export CUDA_VISIBLE_DEVICES=
refuse 'training on no GPU' 1 'device cuda: ' train tiny.yaml device=cuda
refuse 'evaluation on no GPU' 1 'device cuda: ' eval runs/tiny --device cuda
refuse 'generation on no GPU' 1 'device cuda: ' generate runs/tiny --device cuda

# ---- A loss that is not finite: the step, the op and its place
nonfinite='step [0-9]+: the loss is -?(nan|inf): [a-z_]+ \([^ ]+:[0-9]+\): [0-9]+ of [0-9]+ elements'
refuse 'infinite loss' 1 "$nonfinite" train tiny.yaml steps=8 lr=1e30
refuse 'infinite loss without clipping' 1 "$nonfinite" train tiny.yaml steps=8 clip=0 lr=1e20

# ---- Options of eval and generate
refuse 'context longer than trained' 1 'context: 17 is longer than the 16 tokens' eval runs/tiny --context 17
refuse 'batch of 0' 2 '--batch: .*0' eval runs/tiny --batch 0
refuse 'unknown device of eval' 1 "device: .*'tpu'" eval runs/tiny --device tpu
refuse 'no run given' 2 'run is required' eval
refuse 'character outside the vocabulary' 1 "'#' \(U\+0023\) at byte 4 is not among" generate runs/tiny --prompt 'the #'
refuse 'empty prompt' 1 'the prompt is empty' generate runs/tiny --prompt ''
refuse 'temperature below 0' 1 'temperature: expected 0 or more, got -1' generate runs/tiny --temperature -1
refuse 'top-p of 0' 1 'top-p: expected more than 0 and at most 1, got 0' generate runs/tiny --top-p 0
refuse 'top-k below 0' 1 'top-k: expected 0 or more, got -1' generate runs/tiny --top-k -1
refuse 'unknown option of generate' 2 '--frob' generate runs/tiny --frob

# ---- Run folders
refuse 'no such run' 1 'runs/none: no such run folder' eval runs/none
refuse 'no such run to generate from' 1 'runs/none: no such run folder' generate runs/none
cp -r runs/tiny runs/broken
broken=runs/broken/model.safetensors
head -c 10000 "$trained" >$broken
refuse 'model cut off in its data' 1 "$broken: tensor .* outside the [0-9]+ bytes of data" generate runs/broken
head -c 100 "$trained" >$broken
refuse 'model cut off in its header' 1 "$broken: cut off: the header has [0-9]+ bytes" eval runs/broken
: >$broken
refuse 'empty model' 1 "$broken: not a safetensors file: it has 0 bytes" eval runs/broken
cp "$trained" $broken
printf x | dd of=$broken bs=1 seek=8 conv=notrunc status=none
refuse 'model with a corrupt header' 1 "$broken: the header is not JSON: fault at byte 1" eval runs/broken
printf '\377\377\377\377\377\377\377\177' | dd of=$broken bs=1 conv=notrunc status=none
refuse 'model with a corrupt length' 1 "$broken: not a safetensors file: a header of 9223372036854775807 bytes" eval runs/broken
{ cat "$trained"; echo more; } >$broken
refuse 'model with bytes after its end' 1 "$broken: bytes [0-9]+ to [0-9]+ of the data belong to no tensor" eval runs/broken
rm $broken
refuse 'run without a model' 1 "$broken: No such file" eval runs/broken
cp "$trained" $broken
echo '{' >runs/broken/tokenizer.json
refuse 'corrupt tokenizer' 1 'runs/broken/tokenizer\.json: ' eval runs/broken

# ---- ricci-probe
# pairs HIGHEST: a safetensors file of ids and targets, i64 [1 3], with the highest id in the middle.
pairs() {
  local header id
  header='{"ids":{"dtype":"I64","shape":[1,3],"data_offsets":[0,24]},"targets":{"dtype":"I64","shape":[1,3],"data_offsets":[24,48]}}'
  for id in ${#header} -1 1 "$1" 2 3 4 5; do
    if [ "$id" = -1 ]; then printf %s "$header"; else printf "\\x$(printf %02x "$id")\\0\\0\\0\\0\\0\\0\\0"; fi
  done
}
probe() { echo --config "$1" --weights "$2" --input "$3" --output probe.safetensors; }
vocab=$(sed -n 's/^  vocab: //p' runs/tiny/config.yaml)
echo "model: {vocab: $vocab, d: 16, layers: 1, heads: 2, ctx: 16}" >model.yaml
sed 's/}/, positions: none}/' model.yaml >fewer.yaml
pairs $((vocab - 1)) >in.safetensors
pairs "$vocab" >outside.safetensors
sed 's/ln_f\.bias/ln_g.bias/' "$trained" >renamed.safetensors
sed 's/"shape":\[64,16\]/"shape":[16,64]/' "$trained" >turned.safetensors
# shellcheck disable=SC2046  # words without spaces
{
  accept 'probe' probe $(probe model.yaml "$trained" in.safetensors)
  rm -f probe.safetensors
  refuse 'probe: missing tensor' 1 'renamed\.safetensors: tensor ln_f\.bias \[16\] is missing' probe $(probe model.yaml renamed.safetensors in.safetensors)
  refuse 'probe: surplus tensor' 1 'tensor pos\.weight \[16 16\] is no parameter' probe $(probe fewer.yaml "$trained" in.safetensors)
  refuse 'probe: misshapen tensor' 1 'fc\.weight is \[16 64\], expected \[64 16\]' probe $(probe model.yaml turned.safetensors in.safetensors)
  refuse 'probe: id outside the vocabulary' 1 "id $vocab at \[0 1\] is outside the vocabulary of $vocab" probe $(probe model.yaml "$trained" outside.safetensors)
  refuse 'probe: no ids' 1 'tensor ids is missing' probe $(probe model.yaml "$trained" "$trained")
  refuse 'probe: no such weights' 1 'none: No such file' probe $(probe model.yaml none in.safetensors)
  refuse 'probe: unknown dtype' 2 '--dtype: f16' probe $(probe model.yaml "$trained" in.safetensors) --dtype f16
}

. "$OLDPWD/positive" 2>/dev/null
exit $((failures > 0))
