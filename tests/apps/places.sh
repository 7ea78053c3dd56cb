#!/usr/bin/env bash
# Locations of runs, texts and the cache, and the forms of run files and keys.
#   places.sh build-folder
. "$(dirname "$0")/outputs.sh" "$@"

# ---- Texts
mkdir -p corpora/deep files elsewhere
mv text.txt corpora/deep/
sed 's/^data: .*/data: deep\/text.txt/' tiny.yaml >files/run.yaml
RICCI_DATA=$PWD/corpora accept 'a text under $RICCI_DATA' train files/run.yaml name=found
accept 'a run remembers its text' eval runs/found
prints 'and goes on without $RICCI_DATA' 'saved after 4 steps' train runs/found steps=4
cd elsewhere || exit 1
accept 'from another folder, too' train ../runs/found steps=6
cd ..
mv corpora/deep corpora/moved
refuse 'a text that has moved' 1 'data: .*/corpora/deep/text\.txt does not exist' train runs/found steps=8
accept 'is given again' train runs/found steps=8 data=corpora/moved/text.txt
sed 's/fox/cat/' corpora/moved/text.txt >other.txt
refuse 'another text' 1 'the text changed since step 8' train runs/found steps=10 data=other.txt
mv corpora/moved corpora/again
refuse 'another text is no moved text' 1 'the text changed since step 8' train runs/found steps=10 data=other.txt

mkdir -p files/deep
sed 's/fox/owl/' corpora/again/text.txt >files/deep/text.txt
RICCI_DATA=$PWD/corpora accept 'a text beside the run file comes first' train files/run.yaml name=beside
is 'it is that text' "data: $PWD/files/deep/text.txt" grep data: runs/beside/config.yaml
cp files/deep/text.txt text.txt
accept 'a path on the command line is that of the folder one is in' train files/run.yaml name=here data=text.txt
is 'that text' "data: $PWD/text.txt" grep data: runs/here/config.yaml
accept 'a vocabulary' tokenize train text.txt --kind word --min-count 1 -o files/words.json
printf 'tokenizer: words.json\n' | cat files/run.yaml - >files/words.yaml
accept 'beside the run file is found there' train files/words.yaml name=words

# ---- Files named like a run's own
cp files/words.json tokenizer.json
accept 'a tokenizer.json of the user' train tiny.yaml name=named tokenizer=tokenizer.json
prints 'the run goes on' 'saved after 3 steps' train runs/named steps=3
accept 'with the first command' train tiny.yaml name=named tokenizer=tokenizer.json steps=4
cd elsewhere || exit 1
accept 'from another folder' train ../runs/named steps=5
cd ..
sed -i "s|^tokenizer: .*|tokenizer: tokenizer.json|" runs/named/config.yaml
accept 'as it was written before paths were complete' train runs/named steps=6
is 'is complete now' "tokenizer: $PWD/tokenizer.json" grep tokenizer: runs/named/config.yaml
cd files && cp ../runs/named/model.safetensors . && printf 'init: model.safetensors\ndata: deep/text.txt\n' | cat - <(grep -vE '^(data|model):' ../tiny.yaml) >init.yaml && cd ..
prints 'a run starts from weights beside the run file' "^starts from $PWD/files/model.safetensors" train files/init.yaml name=started tokenizer=tokenizer.json
accept 'goes on' train runs/started steps=3
prints 'the same again, in another run' "^starts from $PWD/files/model.safetensors" train runs/started/config.yaml name=again
prints 'a run by its name as init' 'starts from .*runs/named/' train init=named name=from_named data=text.txt steps=1 sample.tokens=0
mkdir named
accept 'a folder of the name of a run does not hide it' eval named --data text.txt
mkdir -p far/away && ln -s far/away link && cp text.txt far/beyond.txt
accept 'a path behind a link' train tiny.yaml name=linked data=link/../beyond.txt
RICCI_DATA=$PWD/corpora/again accept 'a finished run' train tiny.yaml name=done data=text.txt
mv text.txt moved.txt
refuse 'whose text has moved' 1 'text\.txt' eval done
accept 'continues with the new path' train done data=moved.txt steps=3
accept 'and is evaluated' eval done
mv moved.txt text.txt

# ---- Runs
accept 'runs elsewhere' train tiny.yaml name=far runs=elsewhere/runs
holds 'the run is there' [ -f elsewhere/runs/far/model.safetensors ]
RICCI_RUNS=$PWD/many accept 'runs under $RICCI_RUNS' train tiny.yaml name=third
RICCI_RUNS=$PWD/many prints 'a run by its name' 'nats per token' eval third
RICCI_RUNS=$PWD/many prints 'goes on by its name' 'saved after 3 steps' train third steps=3
refuse 'no run of this name' 1 'third: no such run folder' eval third
HOME=$PWD/home RICCI_CACHE=$PWD/cache accept 'the cache elsewhere' train tiny.yaml name=cached
holds 'holds the tokens' eval 'ls cache | grep ^shards-'
cp -r runs/cached first && touch file
for place in file /proc/self/none; do
  RICCI_CACHE=$place run train tiny.yaml name=uncached
  verdict "a cache that cannot be used: $place" "$([ $? = 0 ] && [ "$(grep -c '' err)" = 1 ] && grep -qE "^warning: (.*/)?$place: cannot be created: .*; the text is not cached: the next run will encode it again\$" err || echo no)"
  verdict 'the same model' "$(cmp first/model.safetensors runs/uncached/model.safetensors 2>&1)"
  rm -r runs/uncached
done
mkdir -m 1777 shared_cache && RICCI_CACHE=$PWD/shared_cache accept 'a cache that is shared' train tiny.yaml name=shared
is 'keeps its rights, and others can read it' '1777 755 755 644' eval 'echo $(stat -c %a shared_cache shared_cache/* shared_cache/*/shard-00000.tokens)'

# ---- Every program accepts a run name for its folder, and no C++ exception reaches a user
cd elsewhere && mkdir -p runs && cp -r ../runs/named runs/ && cp ../{text.txt,tiny.yaml} . || exit 1
while read -r words; do
  for name in named runs/named; do
    rm -rf runs/from exported
    run ${words//named/$name} || verdict "$words: $name" "exit code $?"
    sed -E "s#(runs/)?named#NAME#g; s#[0-9]+ (second|minute)s? *#AGE #; s#\bage +#age #; s#[0-9.,]+ (s|ms|tokens/s)\b##g; /process/d" out >"${name/\//-}.out"
    verdict "$words: no word of C++" "$(grep -E 'bad_|std::|basic_|filesystem error|terminate|vector::|stoi|stoll|exception' out err)"
  done
  same 'both are alike' named.out runs-named.out
done <<'END'
eval named --data text.txt
generate named --prompt the --tokens 3
inspect named --text the -o page.html
plot named -o a.svg
analyze memory named -o a.svg
analyze masks named -o a.svg
train named
train tiny.yaml name=from init=named data=text.txt
analyze frequency named --data text.txt
analyze shuffle named --data text.txt
analyze neighbours named --data text.txt --scales 4
analyze samples named --data text.txt --prompts 2 --prompt 4 --tokens 8
plan named
plan named batch=4 --json
convert export named exported
END
refuse 'memory of a run file in a drawing' 1 'a\.svg: is not written; the result has nothing to draw' analyze memory ../tiny.yaml -o a.svg
cd .. || exit 1

# ---- Keys
prints 'keys with two dashes' 'saved after 5 steps' train tiny.yaml --name=dashes --steps=5 --model.d=8
refuse 'a value behind a blank' 2 'not expected: --steps; keys of a run file are written as steps=VALUE' train tiny.yaml --steps 5
head -c 300000 /dev/zero | tr '\0' 'a' >large.txt
for text in large text; do refuse "$text.txt as run file" 1 "\($text\.txt is read as a run file; to train on it as a text, use data=$text\.txt\)" train $text.txt; done
: >empty.txt
refuse 'an empty text as run file' 1 'empty\.txt: contains no keys \(empty\.txt is read as a run file;' train empty.txt
accept 'two dashes alone' train -- tiny.yaml name=alone
refuse 'without anything it says what can be given' 2 'nothing to train; give a text \(data=my\.txt name=mine\) or a run file \(run\.yaml\) \(--help' train
holds 'and makes no run' [ ! -e runs/run ]
accept 'all threads' eval runs/found --data text.txt --threads 0
head -c 9 text.txt >short.txt
prints 'a text that is shorter than the context is one window' 'short.txt: 8 tokens, context 8 \(trained with 16\)' eval runs/found --data short.txt
accept 'a validation text that is shorter than the context' train tiny.yaml name=short validation=short.txt
finish
