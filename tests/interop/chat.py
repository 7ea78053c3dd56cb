#!/usr/bin/env python3
"""Compares ricci-tokenize chat with the chat templates of transformers: ids, and the tokens that count, on 200 drawn talks.

    pip install transformers
    python tests/interop/chat.py build/ricci-tokenize
    python tests/interop/chat.py build/ricci-tokenize --store     # writes tests/data/tokenizers/talks.jsonl, the vectors of a test

The vocabularies are those in tests/data/tokenizers/small, with the markers of each template as added tokens.
"""
import json
import pathlib
import random
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path = [p for p in sys.path if pathlib.Path(p or ".").resolve() != HERE]  # other files here have names of packages
from tokenizers import AddedToken, Tokenizer
from transformers import PreTrainedTokenizerFast

tests = HERE.parent
# As published, without the system messages that some models insert; {% generation %} names what an assistant says.
CHATML = ("{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n'}}{% if message['role'] == 'assistant' %}"
          "{% generation %}{{message['content'] + '<|im_end|>'}}{% endgeneration %}{{'\n'}}"
          "{% else %}{{message['content'] + '<|im_end|>' + '\n'}}{% endif %}{% endfor %}")
LLAMA3 = ("{% for message in messages %}{% if loop.index0 == 0 %}{{'<|begin_of_text|>'}}{% endif %}"
          "{{'<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n'}}{% if message['role'] == 'assistant' %}"
          "{% generation %}{{message['content'] | trim + '<|eot_id|>'}}{% endgeneration %}"
          "{% else %}{{message['content'] | trim + '<|eot_id|>'}}{% endif %}{% endfor %}")
TEMPLATES = {
    "chatml": ("gpt2.json", CHATML, ["<|im_start|>", "<|im_end|>"]),
    "llama3": ("llama3.json", LLAMA3, ["<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"]),
}
WORDS = ["tensor", "the", "a gradient", "don't", "42", "3.14", "naïve", "café", "Привет", "世界", "😀", "e\u0301", "x = y;", "::", "\n", "\n\n", "\t", "  ", "(text)", "user", "assistant"]


def content(draw):
    text = "".join(draw.choice(WORDS) + draw.choice(["", " ", " "]) for _ in range(draw.randrange(0, 12)))
    return draw.choice(["", " ", "\n", "\n\n", "  \n"]) + text if draw.random() < 0.3 else text


def talk(draw):
    messages = [{"role": "system", "content": content(draw)}] if draw.random() < 0.4 else []
    for _ in range(draw.randrange(1, 5)):
        messages += [{"role": "user", "content": content(draw)}, {"role": "assistant", "content": content(draw)}]
    return messages[:-1] if draw.random() < 0.2 else messages


def main():
    program, draw, wrong, stored = sys.argv[1], random.Random(3), 0, []
    talks = [talk(draw) for _ in range(200)]
    for name, (file, template, markers) in TEMPLATES.items():
        tokenizer = Tokenizer.from_file(str(tests / "data/tokenizers/small" / file))
        tokenizer.add_special_tokens([AddedToken(marker, special=True, normalized=False) for marker in markers])
        with tempfile.TemporaryDirectory() as folder:
            path = folder + "/tokenizer.json"
            tokenizer.save(path)
            lines = "".join(json.dumps({"messages": each}) + "\n" for each in talks)
            ours = subprocess.run([program, "chat", "--tokenizer", path, "--template", name], input=lines, text=True, capture_output=True, check=True)
        reference = PreTrainedTokenizerFast(tokenizer_object=tokenizer)
        for each, line in zip(talks, ours.stdout.splitlines(), strict=True):
            theirs = reference.apply_chat_template(
                each, chat_template=template, tokenize=True, return_dict=True, return_assistant_tokens_mask=True)
            expected = {"ids": list(theirs["input_ids"]), "answers": list(theirs["assistant_masks"])}
            wrong += json.loads(line) != expected
            if json.loads(line) != expected:
                print(json.dumps({"messages": each}), line, json.dumps(expected), sep="\n", file=sys.stderr)
            stored.append({"template": name, "tokenizer": file, "markers": markers, "messages": each, **expected})
    if "--store" in sys.argv:
        with open(tests / "data/tokenizers/talks.jsonl", "w") as out:
            out.writelines(json.dumps(each) + "\n" for each in stored[:40] + stored[200:240])
    print(f"{len(stored) - wrong} of {len(stored)} talks have the same ids and the same tokens that count")
    sys.exit(wrong > 0)


main()
