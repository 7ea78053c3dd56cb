#!/usr/bin/env bash
# Paths and sizes in a run: a moved project continues, equal training in different folders writes equal files, and a vocabulary size that
# the text cannot fill is stored as requested.
#   moved.sh build-folder
. "$(dirname "$0")/../programs.sh" "$@"
# holds_no_path FOLDER: the weights of a run contain no path of this folder.
holds_no_path() { verdict "$1: its weights name no folder" "$(grep -laF "$folder" "$1"/model.safetensors "$1"/checkpoints/*)"; }

# ---- The requested size
export RICCI_CACHE=$folder/texts
asked=(train tiny.yaml name=asked tokenizer=bpe model.vocab=4000)
accept 'a vocabulary larger than the text' "${asked[@]}"
verdict 'the line about it' "$(grep -qE '^model.vocab: [0-9]+ instead of 4,000: this text has no more tokens for bpe$' out || shown out)"
size=$(trained runs/asked/model.safetensors model.vocab)
verdict 'the model has the size of the tokenizer' "$([ "$size" -lt 4000 ] || echo "$size")"
keeps_asked() {
  verdict 'config.yaml has what was asked for' "$(grep -qx '  vocab: 4000' runs/asked/config.yaml || grep vocab runs/asked/config.yaml)"
  verdict 'the text is in the cache once' "$(ls -d texts/shards-* | wc -l | diff - <(echo 1))"
}
keeps_asked
accept 'it is scored' eval asked
keeps_asked
accept 'it continues by its run file' "${asked[@]}" steps=3
keeps_asked
accept 'it continues by its folder' train runs/asked steps=4
keeps_asked
parameters() { "$build/ricci-plan" "$@" --json | grep -m1 '"parameters"'; }
verdict 'the plan of the run has its size' "$(diff <(parameters runs/asked/config.yaml) <(parameters tiny.yaml model.vocab=$size))"
accept 'a start from it' train init=asked name=grown data=text.txt steps=1 batch=2 sample.tokens=0 threads=1
verdict 'has its tokenizer' "$(cmp runs/{asked,grown}/tokenizer.json 2>&1)"

# ---- A moved project
accept 'a tokenizer' tokenize train text.txt --kind bpe --vocab 300 -o mine.json
accept 'a base' train tiny.yaml name=base tokenizer=mine.json steps=3
mkdir here
cp -r text.txt mine.json runs here
sed 's/^name: .*/name: next/' tiny.yaml >here/next.yaml
printf 'tokenizer: mine.json\neos: document\ninit: runs/base\n' >>here/next.yaml
cp -r here copy
in_folder() { (cd "$1" && "$build/ricci-train" "${@:2}") >out 2>err; }
follow() { in_folder "$@" || verdict "in $1: ${*:2}" failed; }
follow here next.yaml
follow copy next.yaml
for file in model.safetensors checkpoints/step-00000002.safetensors tokenizer.json; do
  verdict "two folders: the same $file" "$(cmp {here,copy}/runs/next/$file 2>&1)"
done
holds_no_path here/runs/next
mv here there
follow there next.yaml steps=4
verdict 'it continues' "$(grep -q '^continues after step 2 of 4' out || shown out err)"
verdict 'its config names the new places' "$(grep -F "$folder/here" there/runs/next/config.yaml)"
follow copy next.yaml steps=4
verdict 'to the same bytes' "$(cmp {there,copy}/runs/next/model.safetensors 2>&1)"
mv there/mine.json there/other.json
follow there next.yaml tokenizer=other.json steps=5
verdict 'a tokenizer under a different name continues' "$(grep -q '^continues after step 4 of 5' out || shown out err)"
mv there away
in_folder away runs/next steps=6
verdict 'a text that is gone' "$([ $? = 1 ] && diff err - <<<"ricci train: data: $folder/there/text.txt does not exist; if it was moved, name it with data=PATH")"
follow away runs/next steps=6 data=text.txt
verdict 'it continues where neither tokenizer nor init is at its place' "$(grep -q '^continues after step 5 of 6' out || shown out err)"
rm -rf away/runs/base
follow away runs/next steps=7
verdict 'and without its init' "$(grep -q '^continues after step 6 of 7' out || shown out err)"

# ---- A different tokenizer, or different weights
holds='ricci train: runs/next: contains a run with'
advice='; name=... starts a new run, and init=runs/next name=... trains this model further'
follow copy init=runs/base name=further data=text.txt steps=1 batch=2 sample.tokens=0 threads=1
"$build/ricci-tokenize" train text.txt --kind bpe --vocab 290 -o copy/less.json >out 2>err
in_folder copy next.yaml tokenizer=less.json steps=9
verdict 'a different tokenizer' "$(diff err - <<<"$holds a different tokenizer than tokenizer: $folder/copy/less.json$advice")"
in_folder copy next.yaml init=runs/further steps=9
verdict 'different weights' "$(diff err - <<<"$holds different initial weights than init: $folder/copy/runs/further$advice")"
cp copy/runs/base/model.safetensors copy/alone.safetensors
follow copy next.yaml init=alone.safetensors steps=9
verdict 'the same weights in a different file' "$(grep -q '^continues after step 4 of 9' out || shown out err)"

# ---- A compressed text, and a corpus that is moved while it is prepared
accept 'a run on a text' train tiny.yaml name=packed data=text.txt steps=2
gzip -k text.txt
accept 'its text is compressed' train runs/packed data=text.txt.gz steps=3
verdict 'it continues' "$(grep -q '^continues after step 2 of 3' out || shown out err)"
mkdir corpus
cp text.txt corpus/a.txt
tac text.txt >corpus/b.txt
accept 'prepare a corpus' prepare corpus -o shards --tokenizer byte --shard-tokens 400
mv shards whole
cp -r whole shards
rm shards/shard-00001.tokens shards/shard-00002.tokens
mv corpus elsewhere
accept 'prepare it after it was moved' prepare elsewhere -o shards --tokenizer byte --shard-tokens 400
verdict 'it continues' "$(grep -q 'found 1 shard' out || shown out)"
verdict 'to the same bytes' "$(diff -r whole shards)"

exit $((failures > 0))
