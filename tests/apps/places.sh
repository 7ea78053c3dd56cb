#!/usr/bin/env bash
# Where runs, texts and the cache lie, and how a run file and keys are given.
#   places.sh build-folder
. "$(dirname "$0")/programs.sh" "$@"
ends_at() { verdict "$1" "$(grep -qF "saved after $2 steps" out || shown out)"; }

# ---- Texts
mkdir -p corpora/deep files elsewhere
mv text.txt corpora/deep/
sed 's/^data: .*/data: deep\/text.txt/' tiny.yaml >files/run.yaml
RICCI_DATA=$PWD/corpora accept 'a text under $RICCI_DATA' train files/run.yaml name=found
accept 'a run remembers its text' eval runs/found
accept 'and goes on without $RICCI_DATA' train runs/found steps=4
ends_at 'to the end' 4
cd elsewhere || exit 1
accept 'from another folder, too' train ../runs/found steps=6
cd ..
mv corpora/deep corpora/moved
refuse 'a text that has moved' 1 'data: .*/corpora/deep/text\.txt is not there' train runs/found steps=8
accept 'is given again' train runs/found steps=8 data=corpora/moved/text.txt
sed 's/fox/cat/' corpora/moved/text.txt >other.txt
refuse 'another text' 1 'holds a run with data: .*/moved/text\.txt, not .*/other\.txt' train runs/found steps=10 data=other.txt
mv corpora/moved corpora/again
refuse 'another text is no moved text' 1 'the text changed since step 8' train runs/found steps=10 data=other.txt

mkdir -p files/deep
sed 's/fox/owl/' corpora/again/text.txt >files/deep/text.txt
RICCI_DATA=$PWD/corpora accept 'a text beside the run file comes first' train files/run.yaml name=beside
verdict 'it is that text' "$(grep -qx "data: $PWD/files/deep/text.txt" runs/beside/config.yaml || instead grep data: runs/beside/config.yaml)"
cp files/deep/text.txt text.txt
accept 'a path on the command line is that of the folder one is in' train files/run.yaml name=here data=text.txt
verdict 'that text' "$(grep -qx "data: $PWD/text.txt" runs/here/config.yaml || instead grep data: runs/here/config.yaml)"
accept 'a vocabulary' tokenize train text.txt --kind word --min-count 1 -o files/words.json
accept 'beside the run file' train files/run.yaml name=words tokenizer=byte
printf 'tokenizer: words.json\n' | cat files/run.yaml - >files/words.yaml
accept 'is found there' train files/words.yaml name=words2

# ---- Files named like a run's own
cp files/words.json tokenizer.json
accept 'a tokenizer.json of the user' train tiny.yaml name=named tokenizer=tokenizer.json
accept 'the run goes on' train runs/named steps=3
ends_at 'after its steps' 3
accept 'with the first command' train tiny.yaml name=named tokenizer=tokenizer.json steps=4
cd elsewhere || exit 1
accept 'from another folder' train ../runs/named steps=5
cd ..
sed -i "s|^tokenizer: .*|tokenizer: tokenizer.json|" runs/named/config.yaml
accept 'as it was written before paths were complete' train runs/named steps=6
verdict 'is complete now' "$(grep -qx "tokenizer: $PWD/tokenizer.json" runs/named/config.yaml || instead grep tokenizer: runs/named/config.yaml)"
cd files && cp ../runs/named/model.safetensors . && printf 'init: model.safetensors\ndata: deep/text.txt\n' | cat - <(grep -vE '^(data|model):' ../tiny.yaml) >init.yaml && cd ..
accept 'weights beside the run file' train files/init.yaml name=started tokenizer=tokenizer.json
verdict 'are what it starts from' "$(grep -q "^starts from $PWD/files/model.safetensors" out || shown out)"
accept 'goes on' train runs/started steps=3
accept 'the same again, in another run' train runs/started/config.yaml name=again
verdict 'starts from the same' "$(grep -q "^starts from $PWD/files/model.safetensors" out || shown out)"
accept 'a run by its name as init' train init=named name=from_named data=text.txt steps=1 sample.tokens=0
verdict 'is that run' "$(grep -q 'starts from .*runs/named/' out || shown out)"
mkdir named
accept 'a folder of the name of a run does not hide it' eval named --data text.txt
mkdir -p far/away && ln -s far/away link && cp text.txt far/beyond.txt
accept 'a path behind a link' train tiny.yaml name=linked data=link/../beyond.txt
RICCI_DATA=$PWD/corpora/again accept 'a finished run' train tiny.yaml name=done data=text.txt
mv text.txt moved.txt
refuse 'whose text has moved' 1 'text\.txt is not there' eval done
accept 'is told where it is now' train done data=moved.txt
verdict 'and that it is finished' "$(grep -qF 'finished after 2 steps already' out || shown out)"
accept 'and is evaluated' eval done
refuse 'but not another text' 1 'holds a run with data: .*/moved\.txt, not .*/other\.txt' train done data=other.txt
mv moved.txt text.txt

# ---- Runs
accept 'runs elsewhere' train tiny.yaml name=far runs=elsewhere/runs
verdict 'the run is there' "$([ -f elsewhere/runs/far/model.safetensors ] || instead ls elsewhere)"
RICCI_RUNS=$PWD/many accept 'runs under $RICCI_RUNS' train tiny.yaml name=third
RICCI_RUNS=$PWD/many accept 'a run by its name' eval third
verdict 'that run' "$(grep -q 'nats per token' out || shown out)"
RICCI_RUNS=$PWD/many accept 'goes on by its name' train third steps=3
ends_at 'after its steps' 3
accept 'a run in runs by its name' eval found --data text.txt
accept 'drawn by its name' plot found -o found.svg
refuse 'no run of this name' 1 'fourth: no such run folder' eval fourth
HOME=$PWD/home RICCI_CACHE=$PWD/cache accept 'the cache elsewhere' train tiny.yaml name=cached
verdict 'holds the tokens' "$(ls cache | grep -q '^shards-' || instead ls cache)"

# ---- Every program takes the name of a run for its folder, and no exception of C++ reaches a user
cd elsewhere && mkdir -p runs && cp -r ../runs/named runs/ && cp ../{text.txt,tiny.yaml} . || exit 1
programs=('eval named --data text.txt' 'generate named --prompt the --tokens 3' 'inspect named --text the -o page.html' 'plot named -o a.svg'
  'analyze memory named -o a.svg' 'analyze masks named -o a.svg' 'train named' 'train tiny.yaml name=from init=named data=text.txt'
  'analyze frequency named --data text.txt' 'analyze shuffle named --data text.txt' 'analyze neighbours named --data text.txt --scales 4'
  'analyze samples named --data text.txt --prompts 2 --prompt 4 --tokens 8 --timed 0' 'plan named' 'plan named batch=4 --json'
  'convert export named exported')
for words in "${programs[@]}"; do
  for name in named runs/named; do
    rm -rf runs/from exported
    run ${words//named/$name}
    code=$?
    sed -E "s#(runs/)?named#NAME#g; s#[0-9.,]+ (s|ms|tokens/s)\b##g; /process/d" out >"${name/\//-}.out"
    verdict "$words: $name" "$([ $code = 0 ] || echo "exit code $code")"
    verdict 'no word of C++' "$(grep -E 'bad_|std::|basic_|filesystem error|terminate|vector::|stoi|stoll|exception' out err)"
  done
  verdict 'both are alike' "$(diff named.out runs-named.out)"
done
for words in 'analyze memory ../tiny.yaml -o a.svg' 'analyze memory ../tiny.yaml --evaluate'; do
  run $words
  verdict "$words" "$([ $? = 1 ] && [ "$(grep -c '' err)" = 1 ] && grep -qE 'a\.svg: not written, as nothing that was found can be drawn|--evaluate: .*tiny\.yaml is a run file, which has no weights' err || shown err)"
done
cd .. || exit 1

# ---- Keys
accept 'keys with two dashes' train tiny.yaml --name=dashes --steps=5 --model.d=8
ends_at 'are keys' 5
refuse 'a value behind a blank' 2 'not expected: --steps; keys of a run file are given as steps=VALUE' train tiny.yaml --steps 5
head -c 300000 /dev/zero | tr '\0' 'a' >large.txt
refuse 'a large text as run file' 1 'large\.txt is read as a run file, data=large\.txt trains on it as a text' train large.txt
: >empty.txt
refuse 'an empty text as run file' 1 'empty\.txt: there is no key in it; empty\.txt is read as a run file' train empty.txt
accept 'two dashes alone' train -- tiny.yaml name=alone
refuse '--replay alone' 1 'replay: expected the folder of a run' train --replay
start train && await 'grep -q "tokens/s\|loss" background.out background.err'
kill -INT "$background" && ended 100
verdict 'without anything it says what it does' "$(grep -q '^No run file and no keys: a small model learns the text of this project' background.out || shown background.out)"
refuse 'a text as run file' 1 'text\.txt is read as a run file, data=text\.txt trains on it as a text' train text.txt
accept 'all threads' eval runs/found --data text.txt --threads 0
head -c 9 text.txt >short.txt
accept 'a text that is shorter than the context' eval runs/found --data short.txt
verdict 'is one window' "$(grep -qF 'short.txt: 8 tokens, context 8 (trained with 16)' out || shown out)"
accept 'a validation text that is shorter than the context' train tiny.yaml name=short validation=short.txt

echo "$failures failed"
exit $((failures > 0))
