#!/usr/bin/env bash
# ricci-generate: where prompts come from, several texts, stop strings, lines of JSON, and samples while a model is trained.
#   generate.sh build-folder
. "$(dirname "$0")/programs.sh" "$@"

accept 'a small model' train tiny.yaml name=tiny steps=20
# Without draws, so that texts are equal where they should be.
greedy=(runs/tiny --temperature 0 --tokens 30)
# same NAME: stdout is the text in the file expected.
same() { verdict "$1" "$(cmp expected out 2>&1)"; }
# from_stdin INPUT ARGUMENT ...: ricci-generate with that input.
from_stdin() { printf "$1" | "$build/ricci-generate" "${@:2}" >out 2>err; }

# ---- Prompts
accept 'a prompt' generate "${greedy[@]}" --prompt $'the quick\nbrown'
cp out expected
verdict 'stands first' "$([ "$(head -c 15 out)" = $'the quick\nbrown' ] || echo 'another beginning')"
accept 'with escapes' generate "${greedy[@]}" --prompt 'the\x20quick\nbrown'
same 'is the same prompt'
printf 'the quick\nbrown' >prompt.txt
accept 'from a file' generate "${greedy[@]}" --prompt-file prompt.txt
same 'is the same prompt'
for option in --prompt --prompt-file; do
  from_stdin 'the quick\nbrown' "${greedy[@]}" $option -
  same "from stdin with $option"
done
refuse 'an unknown escape' 1 "--prompt: unknown escape '.q' at byte 4; two backslashes mean one" generate runs/tiny --prompt 'the \q'
refuse 'two prompts' 2 '--prompt' generate runs/tiny --prompt a --prompt-file prompt.txt
refuse 'no such file' 1 'none\.txt: No such file' generate runs/tiny --prompt-file none.txt
refuse 'an empty prompt' 1 "the prompt '' has no tokens for the char tokenizer" generate runs/tiny --prompt ''

# ---- Several texts
accept 'three texts' generate runs/tiny --prompt the --tokens 20 --samples 3 --seed 4
verdict 'have lines between them' "$([ "$(grep -c '^---------------$' out)" = 2 ] && [ "$(grep -c '^the' out)" -ge 3 ] || echo 'expected three texts and two lines')"
accept 'as lines of JSON' generate runs/tiny --prompt the --tokens 20 --samples 3 --seed 4 --jsonl
verdict 'with the number of the sample' "$([ "$(grep -oE '"sample": [0-9]' out | tr -d '\n')" = '"sample": 0"sample": 1"sample": 2' ] || echo 'expected three lines')"
verdict 'which are not alike' "$([ "$(grep -oE '"text": ".*"tokens"' out | sort -u | wc -l)" = 3 ] || echo 'expected three texts')"
cp out expected
accept 'the same seed' generate runs/tiny --prompt the --tokens 20 --samples 3 --seed 4 --jsonl --threads 2
same 'writes the same texts'
refuse 'no text' 2 '--samples' generate runs/tiny --samples 0
refuse 'too many texts' 1 'generate: 99999999 samples, expected 1 to 65536' generate runs/tiny --samples 99999999

# ---- Stop strings
whole=$("$build/ricci-generate" "${greedy[@]}" --prompt the)
text=${whole#the}
stop=${text:8:3}
printf 'the%s\n' "${text%%"$stop"*}" >expected
accept 'a stop string' generate "${greedy[@]}" --prompt the --stop "$stop" --stop never
same 'ends the text in front of it'
accept 'a stop string as JSON' generate "${greedy[@]}" --prompt the --stop "$stop" --jsonl
verdict 'is told' "$(grep -q '"end": "stop"}$' out || shown out)"
refuse 'an empty stop string' 1 'stop string: is empty' generate runs/tiny --stop ''

# ---- Lines
from_stdin '{"prompt": "the"}\n{"prompt": "fox", "id": 3}\n' "${greedy[@]}" --jsonl
verdict 'a line for each prompt' "$([ "$(grep -oE '^\{"prompt": "[a-z]+"' out | xargs)" = '{prompt: the {prompt: fox' ] || shown out)"
verdict 'with tokens and end' "$([ "$(grep -c '"tokens": 30, "end": "length"}$' out)" = 2 ] || shown out)"
from_stdin '{"prompt": "the"}\n{"text": "fox"}\n' "${greedy[@]}" --jsonl
verdict 'a line without a prompt is refused' "$([ $? = 1 ] && diff err - <<<'ricci-generate: line 2: expected an object with a text "prompt"')"
verdict 'and the lines before it are answered' "$([ "$(grep -c '' out)" = 1 ] || shown out)"
from_stdin 'the\n\nTHE\nfox' "${greedy[@]}" --interactive
verdict 'prompts line by line' "$([ $? = 0 ] && grep -q '^the' out && grep -q '^fox' out || shown out)"
verdict 'one that cannot be continued is told' "$(grep -qE "^ricci-generate: .*'T' \(U\+0054\) at byte 0 is not among" err || shown err)"
refuse 'texts and JSON' 1 '--interactive: shows texts, and --jsonl writes lines of JSON' generate runs/tiny --interactive --jsonl
refuse 'a prompt and lines' 1 '--interactive: the prompts are lines of stdin' generate runs/tiny --interactive --prompt the
run generate "${greedy[@]}" --prompt the --speed
verdict 'the speed is told when it is asked for' "$(grep -qE '^30 tokens, [0-9]+ tokens/s$' err || shown err)"

# ---- Log-probabilities
accept 'the most probable tokens' generate runs/tiny --temperature 0 --prompt 'the quick' --tokens 6 --jsonl
plain=$(sed 's/}$//' out)
accept 'with their log-probabilities' generate runs/tiny --temperature 0 --prompt 'the quick' --tokens 6 --jsonl --log-probabilities
verdict 'are the same text' "$(case $(cat out) in "$plain, \"log_probabilities\": ["*) ;; *) cat out ;; esac)"
verdict 'token by token' "$(python3 - "$(cat out)" <<'END'
import json, sys
line = json.loads(sys.argv[1]); tokens = line["log_probabilities"]
if len(tokens) != 6 or "".join(t["token"] for t in tokens) != line["text"] or not all(-9 < t["log_probability"] <= 0 for t in tokens): print(line)
END
)"
sed -E 's/.*: (-[0-9.e-]+)\}\]\}/\1/' out | cut -c 1-5 >last
accept 'as a table' generate runs/tiny --temperature 0 --prompt 'the quick' --tokens 6 --log-probabilities
verdict 'with the same numbers' "$(tail -1 out | awk '{ print $(NF - 1) }' | cut -c 1-5 | diff last -)"
verdict 'under headings' "$(grep -qE '^token +log-probability +sum$' out || shown out)"
printf 'the quick%s' "$(python3 -c "import json,sys; print(json.loads(sys.argv[1])['text'], end='')" "$plain}")" >scored.txt
"$build/ricci-generate" runs/tiny --temperature 0 --prompt 'the quick' --tokens 6 --log-probabilities --dtype f64 >out 2>err
"$build/ricci-eval" runs/tiny --data scored.txt --dtype f64 --from 8 --json >scored.json 2>>err
verdict 'their sum is that of ricci-eval' "$(python3 -c "
import json; scored = json.load(open('scored.json'))[0]; lines = open('out').read().split('\n')
total = float([line for line in lines if line][-1].split()[-1])
if scored['tokens'] != 6 or abs(total + scored['nats_per_token'] * 6) > 1e-3: print(total, scored)")"

# ---- Samples while a model is trained
accept 'a sample every 4 steps' train tiny.yaml name=sampled steps=10 sample.tokens=12 sample.every=4 sample.prompt=lazy
verdict 'each under a heading' "$(grep '^sample after' out | diff - <(printf 'sample after step %d:\n' 4 8 10))"
verdict 'two on the way and one at the end' "$([ "$(grep -c '^lazy' out)" = 3 ] || shown out)"
accept 'none on the way' train tiny.yaml name=plain steps=10 sample.tokens=12 sample.prompt=lazy
verdict 'changes no weight' "$(cmp runs/sampled/model.safetensors runs/plain/model.safetensors 2>&1)"
exit $((failures > 0))
