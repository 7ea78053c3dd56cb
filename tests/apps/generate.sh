#!/usr/bin/env bash
# ricci-generate: where prompts come from, several texts, stop strings, lines of JSON, and samples while a model is trained.
#   generate.sh build-folder
. "$(dirname "$0")/outputs.sh" "$@"

accept 'a small model' train tiny.yaml name=tiny steps=20
# Without draws, so that texts are equal where they should be.
greedy=(runs/tiny --temperature 0 --tokens 30)
# from_stdin INPUT ARGUMENT ...: ricci-generate with that input.
from_stdin() { printf "$1" | "$build/ricci-generate" "${@:2}" >out 2>err; }

# ---- Prompts
accept 'a prompt' generate "${greedy[@]}" --prompt $'the quick\nbrown'
cp out expected
is 'stands first' $'the quick\nbrown' eval 'head -c 15 out; echo'
printf 'the quick\nbrown' >prompt.txt
for words in '--prompt the\x20quick\nbrown' '--prompt-file prompt.txt' '--prompt -' '--prompt-file -'; do
  "$build/ricci-generate" "${greedy[@]}" $words <prompt.txt >out 2>err
  same "the same with $words" expected out
done
refuse 'an unknown escape' 1 "--prompt: unknown escape '.q' at byte 4; two backslashes mean one" generate runs/tiny --prompt 'the \q'
refuse 'two prompts' 2 '--prompt' generate runs/tiny --prompt a --prompt-file prompt.txt
refuse 'an empty prompt' 1 "the prompt '' has no tokens for the char tokenizer" generate runs/tiny --prompt ''

# ---- Several texts
several=(generate runs/tiny --prompt the --tokens 20 --samples 3 --seed 4)
accept 'three texts' "${several[@]}"
is 'have lines between them' 2 grep -c '^---------------$' out
accept 'as lines of JSON' "${several[@]}" --jsonl
is 'with the number of the sample' $'"sample": 0\n"sample": 1\n"sample": 2' grep -oE '"sample": [0-9]' out
is 'which are not alike' 3 eval "grep -oE '\"text\": \".*\"tokens\"' out | sort -u | wc -l"
cp out expected
accept 'the same seed' "${several[@]}" --jsonl --threads 2
same 'writes the same texts' expected out

# ---- Stop strings
whole=$("$build/ricci-generate" "${greedy[@]}" --prompt the)
text=${whole#the}
stop=${text:8:3}
printf 'the%s\n' "${text%%"$stop"*}" >expected
accept 'a stop string' generate "${greedy[@]}" --prompt the --stop "$stop" --stop never
same 'ends the text in front of it' expected out
prints 'and is told in JSON' '"end": "stop"}$' generate "${greedy[@]}" --prompt the --stop "$stop" --jsonl

# ---- Lines
from_stdin '{"prompt": "the"}\n{"prompt": "fox", "id": 3}\n' "${greedy[@]}" --jsonl
is 'a line for each prompt' $'{"prompt": "the"\n{"prompt": "fox"' grep -oE '^\{"prompt": "[a-z]+"' out
is 'with tokens and end' 2 grep -c '"tokens": 30, "end": "length"}$' out
from_stdin '{"prompt": "the"}\n{"text": "fox"}\n' "${greedy[@]}" --jsonl
verdict 'a line without a prompt is refused' "$([ $? = 1 ] && diff err - <<<'ricci-generate: line 2: expected an object with a text "prompt"')"
is 'and the lines before it are answered' 1 grep -c '' out
from_stdin 'the\n\nTHE\nfox' "${greedy[@]}" --interactive
is 'prompts line by line' 2 grep -cE '^(the|fox)' out
shows 'one that cannot be continued is told' "^ricci-generate: .*'T' \(U\+0054\) at byte 0 is not among" err
refuse 'texts and JSON' 1 '--interactive: shows texts, and --jsonl writes lines of JSON' generate runs/tiny --interactive --jsonl
refuse 'a prompt and lines' 1 '--interactive: the prompts are lines of stdin' generate runs/tiny --interactive --prompt the
run generate "${greedy[@]}" --prompt the --speed
shows 'the speed is told when it is asked for' '^30 tokens, [0-9]+ tokens/s$' err

# ---- Log-probabilities
probable=(generate runs/tiny --temperature 0 --prompt 'the quick' --tokens 6)
accept 'the most probable tokens' "${probable[@]}" --jsonl
plain=$(sed 's/}$//' out)
accept 'with their log-probabilities' "${probable[@]}" --jsonl --log-probabilities
verdict 'are the same text' "$(case $(cat out) in "$plain, \"log_probabilities\": ["*) ;; *) cat out ;; esac)"
verdict 'token by token' "$(python3 - "$(cat out)" <<'END'
import json, sys
line = json.loads(sys.argv[1]); tokens = line["log_probabilities"]
if len(tokens) != 6 or "".join(t["token"] for t in tokens) != line["text"] or not all(-9 < t["log_probability"] <= 0 for t in tokens): print(line)
open("scored.txt", "w").write("the quick" + line["text"])
END
)"
"$build/ricci-generate" "${probable[@]:1}" --log-probabilities --dtype f64 >out 2>err
shows 'as a table' '^token +log-probability +sum$'
"$build/ricci-eval" runs/tiny --data scored.txt --dtype f64 --from 8 --json >scored.json 2>>err
verdict 'their sum is that of ricci-eval' "$(python3 -c "
import json; scored = json.load(open('scored.json'))[0]; lines = open('out').read().split('\n')
total = float([line for line in lines if line][-1].split()[-1])
if scored['tokens'] != 6 or abs(total + scored['nats_per_token'] * 6) > 1e-3: print(total, scored)")"

# ---- Samples while a model is trained
accept 'a sample every 4 steps' train tiny.yaml name=sampled steps=10 sample.tokens=12 sample.every=4 sample.prompt=lazy
is 'each under a heading' $'sample after step 4:\nsample after step 8:\nsample after step 10:' grep '^sample after' out
is 'two on the way and one at the end' 3 grep -c '^lazy' out
accept 'none on the way' train tiny.yaml name=plain steps=10 sample.tokens=12 sample.prompt=lazy
same 'changes no weight' runs/{sampled,plain}/model.safetensors
finish
