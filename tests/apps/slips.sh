#!/usr/bin/env bash
# What a user types by mistake is answered with what was meant: options, names of runs, mixers, tokenizers.
#   slips.sh build-folder
. "$(dirname "$0")/programs.sh" "$@"
root=$(sed -n 's/^ricci_SOURCE_DIR:STATIC=//p' "$build/CMakeCache.txt")
refuse 'no run, and none there is' 1 'nosuch: no such run folder$' generate nosuch
accept 'a run' train tiny.yaml name=mine
accept 'another' train tiny.yaml name=yours

# ---- Options
refuse 'the start of an option' 2 "no option --temperat, the nearest is '--temperature' " generate mine --prompt x --temperat 0.5
refuse 'the start of two options' 2 "no option --temp, the nearest is '--template' or '--temperature' " generate mine --prompt x --temp 0.5
refuse 'the name elsewhere' 2 "no option --max-tokens, the nearest is '--tokens' " generate mine --prompt x --max-tokens 5
refuse 'with an equals sign' 2 "no option --stride-, the nearest is '--stride' " eval mine --stride-=5
refuse 'an option of an analysis' 2 "no option --bin, the nearest is '--bins' " analyze frequency mine --bin 5
refuse 'an option beside keys' 2 "not expected: --memry, the nearest is '--memory' " plan tiny.yaml --memry 8GiB
refuse 'a text without its option' 2 "not expected: 'The licence'; a text to continue is given as --prompt 'The licence' " generate mine 'The licence'
refuse 'a list does not take the next word' 1 "pair\.yaml: No such file" compare --seeds 1,2 pair.yaml threads=1
refuse 'an unknown mixer' 1 "no mixer is called 'attention'; there are sdp, .*dispatcher.*metric" bench attention
refuse 'an unknown command' 2 "no command 'frequncy', the nearest is 'frequency'; there are memory, frequency, .*, masks " analyze frequncy mine
refuse 'a command that is far from all' 2 "no command 'mine'; there are train, .*encode.* " tokenize mine --eos line
refuse 'an unknown metric' 1 "no run has 'loss' among its metrics; there are step, .*train_loss, val_loss" plot mine --keys loss
refuse 'blanks around an equals sign' 2 '=: a key and its value have no blanks around the equals sign, as data=my\.txt ' train data = my.txt

# ---- Runs, run files and tokenizers
refuse 'no such run' 1 'nosuch: no such run folder; runs has mine, yours$' generate nosuch
refuse 'one that is near' 1 "mien: no such run folder, the nearest is 'mine'; runs has mine, yours$" eval mien
for ((i = 0; i < 10; ++i)); do mkdir -p runs/run$i && cp runs/mine/config.yaml runs/run$i; done
refuse 'in a drawing' 1 "mien: no such run, the nearest is 'mine'; runs has mine, run0, .* and 2 more$" plot mien
refuse 'many runs' 1 'nosuch: no such run folder; runs has mine, run0, .*, run8 and 2 more$' generate nosuch
refuse 'no such run file' 1 'shakespeare_char: no such run file, and no run of this name; runs has mine' train shakespeare_char
refuse 'the files that there are' 1 'cannot read nothing\.yaml: No such file or directory; run files are tiny\.yaml$' train nothing.yaml
refuse 'one that is near, without its ending' 1 'tinny: no such run file, and no run of this name; .*; the nearest run file is tiny\.yaml$' train tinny
mkdir -p apps/configs/ptb && cp tiny.yaml apps/configs/ptb/word_level.yaml
refuse 'one among the configs' 1 'cannot read word_levl\.yaml: .*; the nearest run file is apps/configs/ptb/word_level\.yaml$' plan word_levl.yaml
refuse 'for an analysis, too' 1 'the nearest run file is apps/configs/ptb/word_level\.yaml$' analyze masks ptb/word_level
rm -r apps
refuse 'a name of a tokenizer' 1 "tokenizer: expected one of .* or a file, got 'gpt2'; the file of GPT-2 is its tokenizer\.json or vocab\.bpe" train tiny.yaml tokenizer=gpt2
refuse 'a vocabulary without a size' 1 'it needs the number of its tokens, as in model\.vocab=4000' train tiny.yaml tokenizer=bpe
refuse 'no such vocabulary' 1 'tokenizer: ptb\.json is not there; ricci-tokenize train TEXT -o ptb\.json makes one, and the first lines of a run file may' train tiny.yaml tokenizer=ptb.json
missing=
for file in $(grep -rlE '^tokenizer: .*\.json' "$root/apps/configs/"{1bw,ptb,wikitext2,wikitext103}); do
  grep -qE "^# +ricci-tokenize train .* -o $(sed -n 's/^tokenizer: //p' "$file")\$" "$file" || missing+=" $file"
done
verdict 'the first lines of published run files have the command' "$missing"

echo "$failures failed"
exit $((failures > 0))
