#!/usr/bin/env bash
# Accidental or hostile files, arguments and environments: one clear line in little memory, or the correct result; never a crash, a hang or
# a silent wrong result.
#   files.sh build-folder
. "$(dirname "$0")/../programs.sh" "$@"
mebibytes=300
accept 'a small run' train tiny.yaml name=tiny steps=4 checkpoint_every=2
rm -rf kept && cp -r runs/tiny kept
# fresh: runs/odd is the small run.
fresh() { rm -rf runs/odd && cp -r kept runs/odd; }

echo "model: {vocab: 38, d: 16, layers: 1, heads: 2, ctx: 16}" >model.yaml

# ---- Pipes, devices and files of a terabyte instead of files
mkfifo pipe
truncate -s 1T huge
for place in pipe /dev/zero; do
  refuse "$place as a run file" 1 "cannot read $place: not a regular file" train $place
  refuse "$place as a text" 1 "data: .*$place is (a pipe, expected a file or folder;|neither a file nor a folder)" train tiny.yaml data=$place
  refuse "$place as metrics" 1 "cannot read $place: not a regular file" plot $place
  refuse "$place as weights" 1 "cannot read $place: not a regular file" probe --config model.yaml --weights $place --input $place --output probe.safetensors
done
refuse 'a terabyte as a run file' 1 'cannot read huge: it has more than [0-9]+ bytes' train huge
refuse 'a terabyte of metrics' 1 'cannot read huge: it has more than [0-9]+ bytes' plot huge
refuse 'a terabyte of weights' 1 'huge: the header: invalid JSON' probe --config model.yaml --weights huge --input huge --output probe.safetensors
for name in config.yaml tokenizer.json metrics.jsonl; do
  fresh; rm runs/odd/$name; mkfifo runs/odd/$name
  refuse "$name is a pipe" 1 "cannot read runs/odd/$name: not a regular file" train runs/odd steps=8 checkpoint_every=2
done
fresh; rm runs/odd/tokenizer.json; truncate -s 1T runs/odd/tokenizer.json
refuse 'tokenizer.json is a terabyte' 1 'cannot read runs/odd/tokenizer.json: it has more than [0-9]+ bytes' eval runs/odd
fresh; rm -r runs/odd/checkpoints; mkfifo runs/odd/checkpoints
refuse 'the folder of checkpoints is a pipe' 1 'folder runs/odd/checkpoints: cannot be listed: Not a directory' eval runs/odd

# ---- Links to themselves, and YAML that overflows a stack
ln -s itself itself
refuse 'a link to itself' 1 'data: cannot read itself: Too many levels of symbolic links' train tiny.yaml data=itself
refuse 'a run that is a link to itself' 1 'cannot read itself: Too many levels of symbolic links' eval itself
refuse 'records of a link to itself' 1 'cannot read itself: Too many levels of symbolic links' plot itself
echo '{name: bad}, {steps: 1}' >comma.yaml
refuse 'a run file of two mappings' 1 "comma\.yaml:1: not YAML: unexpected ','" train comma.yaml
refuse 'a run file of two mappings, in a probe' 1 "comma\.yaml:1: not YAML: unexpected ','" probe --config comma.yaml --weights x --input x --output probe.safetensors
printf '{a: %.0s' {1..10000} >deep.yaml
refuse 'a deep run file' 1 'deep\.yaml:1: lists and mappings are nested more than 32 deep' train deep.yaml
refuse 'a deep override' 1 'lists and mappings are nested more than 32 deep' train tiny.yaml "data=$(cat deep.yaml)"

# ---- System errors: the path and the reason
name=$(printf 'x%.0s' {1..300})
for words in "train $name" "train $name/x" "plot $name" "probe --config $name --weights a --input b --output probe.safetensors"; do
  run $words
  verdict "a name of 300 letters (${words:0:10})" "$([ $? = 1 ] && [ "$(grep -c '' err)" = 1 ] && grep -qE "^ricci [a-z]+: (cannot read x{300}(/x)?: File name too long|x{300}: no such run)" err || echo no)"
done
refuse 'a run file below a file' 1 'cannot read text\.txt/x\.yaml: Not a directory' train text.txt/x.yaml
refuse 'a text below a file' 1 'data: found neither text\.txt/x nor .*/data/text\.txt/x ' train tiny.yaml data=text.txt/x
refuse 'a drawing in a folder that is not there' 1 'cannot write none/x\.svg: folder none: No such file or directory' plot runs/tiny -o none/x.svg
printf '\x28\xb5\x2f\xfd junk' >junk.zst
refuse 'a .zst of junk' 1 'data: cannot read .*/junk\.zst: Zstd decompression failed' train tiny.yaml data=junk.zst
faults=
for limit in $(few_or_all '3 5 8' '3 4 5 6 7 8 9 10 11 12'); do
  rm -rf runs/bad
  (ulimit -n $limit && exec "$build/ricci-train" tiny.yaml) >out 2>err </dev/null
  code=$?
  [ $code = 0 ] || [ $code = 127 ] || { [ "$(grep -c '' err)" = 1 ] && grep -qE '^ricci train: (.*[a-z_]+[./].*|folder [a-z/]+): Too many open files' err; } || faults+=" $limit: exit code $code, $(cat err)"
done
rm -rf runs/bad
verdict 'under limits of open files' "$faults"
for place in XDG_CACHE_HOME HOME; do
  (unset XDG_CACHE_HOME; export $place=/$name; run train tiny.yaml name=$place; exit $?)
  verdict "$place is a name of 300 letters" "$([ $? = 0 ] && [ "$(grep -c '' err)" = 1 ] && grep -q '^warning: .*: File name too long; the text is not cached: the next run will encode it again$' err || echo no)"
done
(unset XDG_CACHE_HOME HOME; export TMPDIR=/$name; accept 'TMPDIR is a name of 300 letters' train tiny.yaml name=TMPDIR; exit $failures) || failures=$((failures + 1))

# ---- Messages are short and do not move the cursor
long=$(printf 'x%.0s' {1..100000})
for words in "train $long" "train tiny.yaml $long=1" "train tiny.yaml data=$long" "eval $long" "plot runs/tiny --keys $long" "generate runs/tiny --prompt $long#"; do
  run $words
  verdict "a long message (${words:0:30})" "$([ "$(grep -c '' err)" = 1 ] && [ "$(wc -c <err)" -lt 1100 ] && [ ! -e runs/bad ] || echo "$(wc -c <err) bytes")"
done
fresh; printf '{"name":"\\u001b[2J\\u0007"}' >runs/odd/tokenizer.json
run eval runs/odd
verdict 'no control character in a message' "$([ "$(grep -c '' err)" = 1 ] && ! LC_ALL=C grep -q $'[\x01-\x09\x0b-\x1f\x7f]' err || shown -v err)"

# ---- Caches and environments
accept 'a run on a text' train tiny.yaml name=before
for file in cache/ricci/*.tokens; do printf '\1' | dd of="$file" bs=1 seek=40 conv=notrunc status=none; done
accept 'tokens that were changed in the cache' train tiny.yaml name=changed
verdict 'are not trained on' "$(cmp runs/{before,changed}/model.safetensors 2>&1)"
cp -p text.txt other.txt
tr 'a-m' 'b-ma' <other.txt >text.txt && touch -r other.txt text.txt
accept 'a text of the same size and time but other letters' train tiny.yaml name=letters
verdict 'is read again' "$(! cmp -s runs/{before,letters}/model.safetensors || echo no)"
cp -p other.txt text.txt
mkdir -m 1777 shared_tmp
for place in "$PWD/shared_tmp" /nonexistent; do
  (unset XDG_CACHE_HOME HOME; export TMPDIR=$place; accept "no home, and temporary files in $place" train tiny.yaml name=homeless; exit $failures) || failures=$((failures + 1))
  verdict 'the same model, and nothing is left over' "$(cmp runs/{before,homeless}/model.safetensors 2>&1; ls -A shared_tmp)"
  rm -rf runs/homeless
done
gzip -kn text.txt
accept 'a compressed text' train tiny.yaml data=text.txt.gz name=packed
verdict 'is the text' "$(cmp runs/{before,packed}/model.safetensors 2>&1)"
printf '\125' | dd of=text.txt.gz bs=1 seek=200 conv=notrunc status=none
refuse 'a .gz that is damaged' 1 'data: cannot read .*/text\.txt\.gz: ' train tiny.yaml data=text.txt.gz

# ---- A bomb: a word of 60 MB in 60 KB, under this script's memory limit of five times that
head -c 60000000 /dev/zero | tr '\0' a | gzip >bomb.gz
for kind in $(few_or_all word 'bpe word'); do
  accept "$kind pieces of one long word" tokenize train bomb.gz --kind $kind --vocab 300 -o bomb.$kind.json
  accept 'counts its tokens' tokenize count bomb.gz --tokenizer bomb.$kind.json
done
accept 'a store of it' train tiny.yaml name=bomb data=bomb.gz tokenizer=bomb.word.json

# ---- Numbers
accept 'an evaluation' eval runs/tiny
cp out expected
accept 'in batches of 2^63 - 1' eval runs/tiny --batch 9223372036854775807
verdict 'the same loss' "$(diff expected out)"
refuse 'a context of 2^63 - 1' 1 'context: 9223372036854775807 exceeds model\.ctx = 16' eval runs/tiny --context 9223372036854775807
refuse 'a stride of 2^63 - 1' 1 'stride 9223372036854775807 is not between 1 and the context 16' eval runs/tiny --stride 9223372036854775807
refuse 'more steps than can be' 1 'steps: ' train tiny.yaml steps=9223372036854775807
for size in model.d=4611686018427387904 model.d=2147483646 model.layers=9223372036854775807 model.ctx=9223372036854775807 model.ff=9223372036854775807; do
  refuse "a model larger than any memory ($size)" 1 'larger than any memory|out of memory|or less' train tiny.yaml $size
done
refuse 'a tolerance that is no number' 1 '--tolerance: expected a number above 0, got nan' check --op gelu --tolerance nan
refuse 'a tolerance of 0' 1 '--tolerance: expected a number above 0, got 0' check --op gelu --tolerance 0
accept 'evaluations of 2^63 - 1 batches' train tiny.yaml name=all eval_batches=9223372036854775807
verdict 'are of all there are' "$(grep -q '(281 tokens)' out || shown out)"

# ---- A text with zeros
for number in {1..300}; do printf 'a\0b\0c'; done >zeros
accept 'a sample with zeros in it' train tiny.yaml data=zeros encoding=bytes name=zeros steps=30 lr=1e-2 sample.tokens=50 sample.prompt=a
verdict 'is told to its end' "$([ "$(tr -d '\n' <out | sed 's/.*sample after step 30://' | wc -c)" = 51 ] && [ "$(tr -cd '\0' <out | wc -c)" -gt 5 ] || echo no)"

# ---- Environments
for variable in ORDER=x SEED=-1 WORKERS=0 LAZY=2; do
  run() { env RICCI_EMULATOR_$variable "$build/ricci-bounded" $seconds $mebibytes "$build/ricci-$1" "${@:2}" >out 2>err </dev/null; }
  refuse "RICCI_EMULATOR_$variable" 1 "RICCI_EMULATOR_${variable%=*}: expected " check --op gelu --device cuda_emulated
done
run() { "$build/ricci-bounded" $seconds $mebibytes bash -c "ulimit -v $limit; exec \"\$@\"" - "$build/ricci-$1" "${@:2}" >out 2>err </dev/null; }
faults= enough=
# limited KIBIBYTES: a run under that limit of address space. It ends with success, one line, or the loader's error. code: its exit code.
limited() {
  limit=$1
  rm -rf runs/limited
  run train tiny.yaml name=limited model.d=64 batch=8 threads=2
  code=$?
  [ $code -le 1 ] || [ $code = 127 ] || faults+=" $limit: exit code $code"  # 127: no space for the program's libraries
  [ $code != 1 ] || [ "$(grep -c '' err)" = 1 ] || faults+=" $limit: $(cat err)"
}
for ((kibibytes = 90000; kibibytes <= 260000; kibibytes += $(few_or_all 30000 10000))); do
  limited $kibibytes
  [ $code != 0 ] || enough=${enough:-$kibibytes}
done
verdict 'under limits of address space' "$faults"
faults=
[ -n "$enough" ] || faults=' no limit was enough'
for ((step = 1; step <= 40; step += $(few_or_all 13 1))); do
  limited $((${enough:-260000} + step * 1000))
  [ $code = 0 ] || faults+=" $limit: exit code $code"
done
verdict 'whatever is more than enough is enough: threads take no room from one another' "$faults"
run() { "$build/ricci-bounded" $seconds $mebibytes "$build/ricci-$1" "${@:2}" >out 2>err </dev/null; }

# ---- Names
accept 'a name with an equals sign' train tiny.yaml name=x=y
accept 'goes on by its folder' train runs/x=y steps=4
verdict 'with what it was' "$(grep -q 'continues after step 2 of 4' out || shown out)"

echo "$failures failed"
exit $((failures > 0))
