#!/usr/bin/env bash
# Every command of all README.md files, word for word and in order, in a fresh folder: the lines of shell blocks, and code in backticks that
# starts with build/. Then their run files. The reader's files (texts, a GPT-2, runs to compare) are made here in small. Functions shorten
# the work of the programs: a few steps, small benchmarks. The first two commands are not run: tests/run.sh runs this test.
#   readme.sh build-folder
. "$(dirname "$0")/outputs.sh" "$@"
mapfile -t pages < <(echo "$root/README.md" && find "$root"/{core,cuda,autograd,ops,models,data,apps,tests} -name README.md | sort)
export HOME=$folder/home
mkdir "$HOME"
ln -s "$build" build
ln -s "$root/apps" apps
: >out >err

# ---- The reader's files
mkdir -p path/to corpora/tinyshakespeare corpora/wikitext-2 corpus
(cd "$root" && cat "${pages[@]}" core/*.h autograd/*.h models/*.h) >my.txt
{ for _ in {1..40}; do printf 'ROMEO:\nBut soft, what light?\n\nJULIET:\nAy me! 40 - &c.\n\n'; done; head -c 20000 my.txt; } >corpora/tinyshakespeare/input.txt
(cd "$root" && cat ops/*/*.h ops/*/*.cu data/*/*.cpp apps/*/*.cpp) >source.txt
gzip -c source.txt >corpora/wikitext-2/wiki.train.tokens.gz
head -c 40000 my.txt | gzip >corpora/wikitext-2/wiki.valid.tokens.gz
{ printf '%s\n' '[PAD]' '[UNK]' '[CLS]' '[SEP]' '[MASK]'; for letter in {a..z} {0..9} , . : '<' '>'; do printf '%s\n##%s\n' "$letter" "$letter"; done; } >bert-base-cased-vocab.txt
cp my.txt corpus/one.txt
tar czf more.tar.gz corpus/one.txt
awk '{ gsub(/[\\"]/, ""); gsub(/\t/, " "); printf "{\"body\": \"%s\"}\n", $0 }' corpora/tinyshakespeare/input.txt | zstd -q >web.jsonl.zst
awk 'NF { printf "%d\t%s\n", NR % 2, $0 }' corpora/tinyshakespeare/input.txt | tr -d '\r' >reviews.tsv
{ echo stars,review; awk 'NF { gsub(/"/, "\"\""); printf "%d,\"%s\"\n", NR % 2, $0 }' corpora/tinyshakespeare/input.txt | tr -d '\r'; } >reviews.csv
small=(model.d=16 model.layers=1 model.heads=2 steps=2 batch=2 eval_batches=2 sample.tokens=0)
accept 'a GPT-2 to import' train data=my.txt name=source tokenizer=bpe model.vocab=300 model.ctx=256 "${small[@]}"
accept 'in a folder' convert export runs/source path/to/gpt2
accept 'its ids' tokenize encode my.txt --tokenizer path/to/gpt2 --u16 && cp out train.bin
for name in vanilla quickstart; do accept "runs/$name" train data=my.txt name=$name "${small[@]}"; done
accept 'runs/topdown' train data=my.txt name=topdown model.family=topdown 'model.scales=[1, 4]' "${small[@]}" 'model.layers=[1, 1]'

# ---- Shorter work
train() {
  local few=(steps=3 eval_batches=2)
  [[ $* = *classifier* ]] || few+=(sample.tokens=5)
  command build/ricci train "$@" "${few[@]}"
}
compare() { command build/ricci compare "${@/#1,2,3/1,2}" steps=2 warmup=1 eval_every=0 eval_batches=1 batch=2 model.vocab=300 model.d=16; }
bench() {
  local words=(--lengths 8,16 --width 16 --layers 1 --rounds 1) tokens=(--tokens 16)
  while [ $# -gt 0 ]; do
    case $1 in
      --lengths | --tokens | --width | --layers | --rounds) shift ;;
      --sequences) words+=("$1") tokens=() ;;
      cuda) words+=(cuda_emulated) ;;
      *) words+=("$1") ;;
    esac
    shift
  done
  command build/ricci bench "${words[@]}" "${tokens[@]}"
}
analyze() {
  local few=()
  [ "$1" != samples ] || few=(--prompts 2 --prompt 8 --tokens 16)
  command build/ricci analyze "$@" "${few[@]}"
}
build/ricci() { case ${1:-} in train | compare | bench | analyze) "$@" ;; *) command build/ricci "$@" ;; esac; }

# ---- The commands
# A pipe fails if any of its programs does.
set -o pipefail
commands=0
while IFS= read -r line; do
  case $line in
    apps/quickstart.sh* | tests/run.sh*) continue ;;
    'cmake -S'*) everything || { echo 'skipped: the build of the examples needs tests/run.sh --all' && continue; } ;;
  esac
  commands=$((commands + 1))
  fault=
  eval "${line//\/path\/to\/corpora/$folder/corpora}" >out 2>err </dev/null || fault="exit code $?"
  verdict "${line%% #*}" "$fault"
done < <(awk '
  FNR == 1 { block = "" }
  /^```/ { block = block == "" ? $0 : ""; next }
  block == "```sh"
  block == "" { while (match($0, /`build\/[^`]*`/)) { print substr($0, RSTART + 1, RLENGTH - 2); $0 = substr($0, RSTART + RLENGTH) } }' "${pages[@]}")
holds "$commands commands" [ $commands -gt 25 ]
holds 'the command for a text of your own' [ -s runs/mine/model.safetensors ]

# ---- The run files
awk '/^```/ { if ($0 == "```yaml") file = "readme" ++count ".yaml"; else file = ""; next } file != "" { print >file }' "${pages[@]}"
for file in readme*.yaml; do
  fault=
  build/ricci train "$file" >out 2>err </dev/null || fault="exit code $?"
  [ -n "$(find runs -name model.safetensors -newer "$file")" ] || fault+=' no model.safetensors'
  verdict "$file: $(head -n 1 "$file")" "$fault"
done
finish
