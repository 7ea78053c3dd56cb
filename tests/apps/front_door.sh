#!/usr/bin/env bash
# ricci lists its commands with their descriptions, and runs them, also by links: with their arguments, exit codes and output.
# --help of each command fits a terminal and ends with examples. Errors for mistyped words give the nearest known word.
#   front_door.sh build-folder
. "$(dirname "$0")/outputs.sh" "$@"

# door NAME CODE PATTERN WORD ...: ricci ends with the exit code, and one line on stderr, or none if the pattern is empty.
door() {
  local name=$1 code=$2 pattern=$3 got fault=
  shift 3
  "$build/ricci-bounded" $seconds $mebibytes "$build/ricci" "$@" >out 2>err </dev/null
  got=$?
  [ "$got" = "$code" ] || fault="exit code $got, expected $code"
  [ "$(grep -c '' err)" = "$([ -z "$pattern" ] && echo 0 || echo 1)" ] || fault+=' another number of lines on stderr'
  grep -qE -e "$pattern" err || [ -z "$pattern" ] || fault+=" stderr does not match $pattern"
  verdict "$name" "$fault"
}

names=$(grep -rhoE '^const [a-z:]*Command [a-z:]*apps::[a-z]+_command[{]' "$root/apps" | sed 's/.*:://; s/_command.*//' | sort)
door 'the list' 0 ''
is 'every command, and no other' "$names" eval "sed -nE 's/^  ([a-z]+) .*/\\1/p' out | sort"
cp out list
for name in $names; do
  summary=$("$build/ricci" "$name" --help | sed '/^Usage:/,$d' | xargs -d '\n')
  holds "$name in its own words" grep -qF " $name $summary " <(tr -s ' \n' '  ' <list | tr -s ' ')
done
for word in help --help; do
  door "ricci $word" 0 '' $word
  same 'is the list' list out
done
door 'the version' 0 '' --version
is 'is that of a command' "$(cat out)" "$build/ricci-plan" --version
is 'names what was built, in short lines' "$(printf '%s\n' 'ricci 0.3.0' commit compiler CUDA MPI CPU)" sed -E '1!s/ .*//; s/.{81,}/long/' out
shows 'with the commit' '^commit   ([0-9a-f]{10}\+?|unknown)$'
shows 'and the instructions in use' '^CPU      (neon|baseline|avx2|avx512|avx512_bf16|amx)$'
"$build/ricci-train" --help >help
for words in 'help train' 'train --help'; do
  door "$words" 0 '' $words
  same 'is the help of the link' help out
done
mkdir links && ln -s "$build/ricci" links/ricci-eval && ln -s "$build/ricci" links/model
is 'a link in another folder' "$("$build/ricci" eval --help)" links/ricci-eval --help
is 'a link of another name' "$("$build/ricci")" links/model
door 'a run' 0 '' train tiny.yaml name=mine
holds 'trains' [ -s runs/mine/model.safetensors ]
door 'words with blanks and dashes' 0 '' generate mine --prompt 'the quick' --tokens 1
door 'an error of a program' 1 '^ricci train: .*none\.yaml: No such file' train none.yaml
door 'a mistake in the usage of a program' 2 '^ricci train: .*--frob' train --frob
door 'an unknown command' 2 "^ricci: no command 'trian', the nearest is 'train' \(--help lists the options\)$" trian run.yaml
door 'nothing that is near' 2 "^ricci: no command 'frobnicate' \(--help" frobnicate
door 'the help of an unknown command' 2 "^ricci: no command 'plit', the nearest is 'plot'" help plit
door 'an unknown option' 2 "^ricci: .*--frob" --frob
# ---- --help of every command, and of every command of a command
# described [COMMAND ...]: the lines are short, and the last two are examples with options from --help.
described() {
  local fault=
  "$build/ricci" "$@" --help >out 2>err </dev/null || fault="exit code $?"
  fault+=$(awk 'length > 80' out; grep -qzP '\n\n\n' out && echo ' two blank lines')
  tail -n 2 out >examples
  [ "$(grep -cE "^  ricci${1:+ $1}( |$)" examples)" = 2 ] || fault+=' there are no two examples at the end'
  for option in $(grep -oE -e ' --?[a-z][a-z-]*' examples); do
    grep -qE -e "^ +([-a-z,]*,)?$option(,| |$)" out known || fault+=" no option $option"
  done
  verdict "ricci $* --help" "$fault"
}
for name in $names; do
  commands=$("$build/ricci" "$name" --help | sed -n '/^Subcommands:/,/^$/s/^  \([a-z]*\) .*/\1/p')
  for command in $commands; do "$build/ricci" "$name" "$command" --help; done >known
  described "$name"
  for command in $commands; do described "$name" "$command"; done
  "$build/ricci" "$name" --man >out 2>err </dev/null
  verdict "$name --man" "$([ $? = 2 ] && grep -q -e "^ricci $name: .*--man" err || echo 'another end')"
done

# ---- Words as given
# 256 tokens for bytes follow </s>, those of !, ", ... from 1 upwards: [ is 59, I is 41.
accept 'a tokenizer without merges' tokenize train text.txt --kind bpe --vocab 257 --special '</s>' -o bytes.json
talk='{"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"yo"}]}'
ids='59,41,46,51,52,61,72,73,59,15,41,46,51,52,61,89,79,0'
template=('' '[SYS]{content}[/SYS]' '[INST]{content}[/INST]' '{content}</s>' '</s>' '')
is 'a template in brackets' "$ids" eval 'echo "$talk" | "$build/ricci-tokenize" chat --tokenizer bytes.json --template "${template[@]}" | sed -E "s/.*\"ids\":\[//; s/\].*//"'
for file in '[x].txt' '[a,b].txt' -d.txt 'e f'; do printf 'abc' >"./$file"; done
prints 'a file in brackets' '^\[a,b\]\.txt: 3 tokens' tokenize count '[a,b].txt' --tokenizer byte
prints 'files as they are named' '^\[x\]\.txt and 2 more: 11 tokens' tokenize count '[x].txt' 'e f' ./-d.txt --tokenizer byte
refuse 'a file that looks like an option' 2 'no option -d\.txt ' tokenize count 'e f' --tokenizer byte -- -d.txt
accept 'a run of bytes' train tiny.yaml name=bytes tokenizer=byte
prints 'a text in brackets' '^\[a, b\]' generate bytes --prompt '[a, b]' --tokens 0
prints 'a text with a dash' '^-x' generate bytes --prompt -x --tokens 0
prints 'and after an equals sign' '^--jsonl' generate bytes --prompt=--jsonl --tokens 0
refuse 'a value that is not there' 2 '--prompt=: the value is missing ' generate bytes --prompt= --tokens 0
accept 'a stop in brackets' generate bytes --prompt the --stop '[x]' --stop '[]' --tokens 1
prints 'a list stays a list' 'saved after 2 steps' train tiny.yaml name=two 'data=["[x].txt", text.txt]'
rm -r runs/{bytes,two}

# ---- Mistyped options and words
refuse 'the start of an option' 2 "no option --temperat, the nearest is '--temperature' " generate mine --prompt x --temperat 0.5
refuse 'with an equals sign' 2 "no option --stride-, the nearest is '--stride' " eval mine --stride-=5
refuse 'an option of an analysis' 2 "no option --bin, the nearest is '--bins' " analyze frequency mine --bin 5
refuse 'an option beside keys' 2 "not expected: --memry, the nearest is '--memory' " plan tiny.yaml --memry 8GiB
refuse 'a text without its option' 2 "not expected: 'The licence' " generate mine 'The licence'
refuse 'a list does not take the next word' 1 "pair\.yaml: No such file" compare --seeds 1,2 pair.yaml threads=1
refuse 'an unknown mixer' 1 "no mixer is called 'attention'; the mixers are sdp, .*dispatcher.*metric" bench attention
refuse 'an unknown command' 2 "no command 'frequncy', the nearest is 'frequency'; the commands are memory, frequency, .*, masks " analyze frequncy mine
refuse 'a command that is far from all' 2 "no command 'mine'; the commands are train, .*encode.* " tokenize mine --eos line
refuse 'an unknown metric' 1 "no run has the metric 'loss'; the metrics are step, .*train_loss, val_loss" plot mine --keys loss
refuse 'blanks around an equals sign' 2 '=: remove the blanks around the equals sign, as in data=my\.txt ' train data = my.txt

# ---- Mistyped runs, run files and tokenizers
mkdir elsewhere && cd elsewhere && refuse 'no run, and none there is' 1 'nosuch: no such run folder$' generate nosuch && cd ..
cp -r runs/mine runs/yours
refuse 'no such run' 1 'nosuch: no such run folder; runs has mine, yours$' generate nosuch
refuse 'one that is near' 1 "mien: no such run folder, the nearest is 'mine'; runs has mine, yours$" eval mien
for ((i = 0; i < 10; ++i)); do mkdir -p runs/run$i && cp runs/mine/config.yaml runs/run$i; done
refuse 'in a drawing' 1 "mien: no such run, the nearest is 'mine'; runs has mine, run0, .* and 2 more$" plot mien
refuse 'no such run file' 1 'shakespeare_char: no such run file, and no run of this name; runs has mine' train shakespeare_char
refuse 'one that is near, without its ending' 1 'tinny: no such run file, and no run of this name; .*; the nearest run file is tiny\.yaml$' train tinny
mkdir -p apps/configs/dispatcher && cp tiny.yaml apps/configs/dispatcher/word_level.yaml
refuse 'one among the configs' 1 'cannot read word_levl\.yaml: .*; the nearest run file is apps/configs/dispatcher/word_level\.yaml$' plan word_levl.yaml
rm -r apps
refuse 'a name of a tokenizer' 1 "tokenizer: expected one of .* or a file, got 'gpt2'; the file of GPT-2 is its tokenizer\.json or vocab\.bpe" train tiny.yaml tokenizer=gpt2
refuse 'a vocabulary without a size' 1 'tokenizer: bpe needs a vocabulary size, such as model\.vocab=4000' train tiny.yaml tokenizer=bpe
refuse 'no such vocabulary' 1 'tokenizer: ptb\.json does not exist; ricci tokenize train TEXT -o ptb\.json makes one \(the run file can begin with the command\)' train tiny.yaml tokenizer=ptb.json
for file in $(grep -rlE '^tokenizer: .*\.json' "$root/apps/configs/dispatcher"); do
  holds "the first lines of ${file##*/} have the command" grep -qzP "\n# +ricci tokenize train .* \\\\\n# .* -o $(sed -n 's/^tokenizer: //p' "$file")\n" "$file"
done
finish
