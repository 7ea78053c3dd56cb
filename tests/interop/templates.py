#!/usr/bin/env python3
"""Templates of conversations of exported runs, and of imported models that are exported again, as transformers reads them.

    python tests/interop/templates.py build

A run's own template is written by Jinja and compared with its strings: 200 drawn talks, with and without a prompt for an answer, and their
ids with ricci-tokenize chat. Messages of templates whose ids are compared end with markers, as a tokenizer may join plain texts.
"""
import json
import pathlib
import random
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path = [p for p in sys.path if pathlib.Path(p or ".").resolve() != HERE]  # other files here have names of packages
try:
    import transformers
except ImportError:
    print("skipped: needs the Python package transformers")
    sys.exit(77)

transformers.logging.set_verbosity_error()
MARKERS = ["<|im_start|>", "<|im_end|>", "<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"]
CHATML = ["", *(f"<|im_start|>{role}\n{{content}}<|im_end|>\n" for role in ("system", "user", "assistant")), "<|im_end|>", "<|im_start|>assistant\n"]
LLAMA3 = ["<|begin_of_text|>", *(f"<|start_header_id|>{role}<|end_header_id|>\n\n{{content}}<|eot_id|>" for role in ("system", "user", "assistant")),
          "<|eot_id|>", "<|start_header_id|>assistant<|end_header_id|>\n\n"]
WILD = "'\" \\ \\n \\u0041 {{ x }} {% raw %} {# y #} -%} }} %} \r\n \t \x01 \u2028 caf\u00e9 \U0001f600 \\"
# The key chat, its six strings, and whether ids are compared.
CHATS = {
    "chatml": (["chatml"], CHATML, True),
    "llama3": (["llama3"], LLAMA3, True),
    "marked": ([t.replace("\n", " '\"\\{{%}}\u00e9 ") for t in CHATML], [t.replace("\n", " '\"\\{{%}}\u00e9 ") for t in CHATML], True),
    "wild": ([WILD, WILD + "{content}", "{content}" + WILD, "A{content}<|im_end|>" + WILD, "<|im_end|>", "A"],) * 2 + (False,),
}
WORDS = ["tensor", "the", "don't", "42", "na\u00efve", "\u4e16\u754c", "\U0001f600", "{{", "}}", "{% if %}", "'", '"', "\\", "\n", "\n\n", "\t", "  ", "user", "im_end"]


def run(build, program, *words, data=None):
    done = subprocess.run([f"{build}/ricci-{program}", *words], input=data, capture_output=True, text=True)
    assert done.returncode == 0, (program, words, done.stderr)
    return done.stdout


def yaml_list(texts):
    return json.dumps(texts, ensure_ascii=False).replace("\u2028", "\\u2028")


def talk(draw):
    def content():
        return "".join(draw.choice(WORDS) + draw.choice(["", " "]) for _ in range(draw.randrange(0, 10)))

    messages = [{"role": "system", "content": content()}] if draw.random() < 0.4 else []
    for _ in range(draw.randrange(1, 5)):
        messages += [{"role": "user", "content": content()}, {"role": "assistant", "content": content()}]
    return messages[:-1] if draw.random() < 0.3 else messages


def expected(strings, trims, messages, asks):
    forms = dict(zip(("system", "user", "assistant"), strings[1:4]))
    texts = [forms[m["role"]].replace("{content}", m["content"].strip() if trims else m["content"]) for m in messages]
    return strings[0] + "".join(texts) + (strings[5] if asks else "")


def check_own(build, scratch, name, talks):
    """Of the template of a run, written by an export."""
    chat, strings, compares_ids = CHATS[name]
    folder = f"{scratch}/theirs_{name}"
    run(build, "train", f"name={name}", f"runs={scratch}", f"data={scratch}/talks.jsonl", "format=messages", f"tokenizer={scratch}/tokenizer.json",
        f"chat={yaml_list(chat)}", "model.preset=llama", "model.layers=1", "model.d=16", "model.heads=2", "model.ctx=512", "batch=2", "steps=1",
        "sample.tokens=0", "threads=1")
    run(build, "convert", "export", f"{scratch}/{name}", folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    for asks in (False, True):
        for each in talks:
            text = tokenizer.apply_chat_template(each, tokenize=False, add_generation_prompt=asks)
            assert text == expected(strings, name == "llama3", each, asks), (name, each, text)
    if compares_ids:
        template = [word for text in chat for word in ("--template", text)]
        lines = run(build, "tokenize", "chat", "--tokenizer", f"{scratch}/tokenizer.json", *template, data="".join(json.dumps({"messages": t}) + "\n" for t in talks))
        answer = json.loads(run(build, "tokenize", "encode", "--jsonl", "--tokenizer", f"{scratch}/tokenizer.json", data=json.dumps({"text": strings[5]})))["ids"]
        for each, line in zip(talks, lines.splitlines(), strict=True):
            for asks in (False, True):
                ids = tokenizer.apply_chat_template(each, add_generation_prompt=asks, return_dict=False)
                assert ids == json.loads(line)["ids"] + answer * asks, (name, each, ids, line)
    ends = transformers.AutoConfig.from_pretrained(folder).eos_token_id
    assert tokenizer.convert_tokens_to_ids(strings[4]) in (ends if isinstance(ends, list) else [ends]), ends
    try:
        tokenizer.apply_chat_template([{"role": "tool", "content": "a"}], tokenize=False)
        assert False, "a role that we refuse"
    except Exception as error:
        assert "a role other than system, user and assistant" in str(error), error
    print(f"{name:8} {len(talks)} talks have the same texts{' and ids' if compares_ids else ''}, with and without a prompt for an answer")


def check_imported(build, scratch):
    """A template of theirs comes back as transformers read it in the first folder."""
    theirs = f"{scratch}/theirs_chatml"
    first = "{%- for m in messages %}\r\n{{ '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>' }} caf\u00e9 \U0001f600\n{%- endfor %}\n\n"
    plain = json.load(open(f"{theirs}/tokenizer_config.json"))
    forms = {"a file": (first, None), "a member": (None, first), "both": (first, "another"),
             "a list": (None, [{"name": "tool_use", "template": "tools <|im_start|>"}, {"name": "default", "template": first}])}
    for i, (form, (file, member)) in enumerate(forms.items()):
        pathlib.Path(f"{theirs}/chat_template.jinja").unlink(missing_ok=True)
        if file is not None:
            pathlib.Path(f"{theirs}/chat_template.jinja").write_bytes(file.encode())
        json.dump(plain | ({} if member is None else {"chat_template": member}), open(f"{theirs}/tokenizer_config.json", "w"))
        before = transformers.AutoTokenizer.from_pretrained(theirs).chat_template
        told = run(build, "convert", "import", theirs, f"{scratch}/run_{i}")
        assert "\nchat: chatml: " in told, told
        run(build, "convert", "export", f"{scratch}/run_{i}", f"{scratch}/back_{i}")
        assert transformers.AutoTokenizer.from_pretrained(f"{scratch}/back_{i}").chat_template == before, form
        written = json.load(open(f"{scratch}/back_{i}/tokenizer_config.json"))
        assert written.get("chat_template") == member, (form, written)
        print(f"{form:8} is the same again")


def main(build):
    draw = random.Random(5)
    talks = [talk(draw) for _ in range(200)]
    with tempfile.TemporaryDirectory() as scratch:
        with open(f"{scratch}/talks.jsonl", "w") as out:
            out.writelines(json.dumps({"messages": t}) + "\n" for t in talks)
        run(build, "tokenize", "train", f"{scratch}/talks.jsonl", "--vocab", "400", *(w for m in MARKERS for w in ("--special", m)), "-o", f"{scratch}/tokenizer.json")
        for name in CHATS:
            check_own(build, scratch, name, talks)
        check_imported(build, scratch)


main(str(pathlib.Path(sys.argv[1]).resolve()))
