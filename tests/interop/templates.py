#!/usr/bin/env python3
"""Chat templates, as transformers reads them.

    templates.py BUILD             all checks
    templates.py BUILD --store     writes tests/data/tokenizers/conversations.jsonl, the vectors of a test

Published templates, filled in by transformers, give the ids and scored tokens of ricci tokenize chat. A run's own template, written by an
export, gives the texts of its strings and their ids, with and without a prompt for an answer. An imported template is named chatml or llama3
only if transformers writes the same conversations with it as with ours, except for a system message that it adds.
If ids are compared, messages end with markers: a tokenizer can join plain texts. Needs transformers.
"""
import json
import pathlib
import random
import shutil
import sys
import tempfile

from ricci import TESTS, TOKENIZERS, chat_ids, run, skip_without, talk, train_on_talks

try:
    import transformers
    from tokenizers import AddedToken, Tokenizer
except ImportError as missing:
    skip_without(missing)

transformers.logging.set_verbosity_error()
# As published, without the system messages that some models insert; {% generation %} marks an assistant's text.
CHATML = ("{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n'}}{% if message['role'] == 'assistant' %}"
          "{% generation %}{{message['content'] + '<|im_end|>'}}{% endgeneration %}{{'\n'}}"
          "{% else %}{{message['content'] + '<|im_end|>' + '\n'}}{% endif %}{% endfor %}")
LLAMA3 = ("{% for message in messages %}{% if loop.index0 == 0 %}{{'<|begin_of_text|>'}}{% endif %}"
          "{{'<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n'}}{% if message['role'] == 'assistant' %}"
          "{% generation %}{{message['content'] | trim + '<|eot_id|>'}}{% endgeneration %}"
          "{% else %}{{message['content'] | trim + '<|eot_id|>'}}{% endif %}{% endfor %}")
PUBLISHED = {
    "chatml": ("gpt2.json", CHATML, ["<|im_start|>", "<|im_end|>"]),
    "llama3": ("llama3.json", LLAMA3, ["<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"]),
}
OWN_CHATML = ["", *(f"<|im_start|>{role}\n{{content}}<|im_end|>\n" for role in ("system", "user", "assistant")), "<|im_end|>", "<|im_start|>assistant\n"]
OWN_LLAMA3 = ["<|begin_of_text|>", *(f"<|start_header_id|>{role}<|end_header_id|>\n\n{{content}}<|eot_id|>" for role in ("system", "user", "assistant")),
          "<|eot_id|>", "<|start_header_id|>assistant<|end_header_id|>\n\n"]
SHORT = ("{% for message in messages %}{{'<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n'}}{% endfor %}"
         "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}")
ASSISTANT = "{{ '<|im_start|>system\\nYou are a helpful assistant.<|im_end|>\\n' }}"
QWEN25 = """{%- if tools %}
    {{- '<|im_start|>system\\n' }}
    {%- if messages[0]['role'] == 'system' %}
        {{- messages[0]['content'] }}
    {%- else %}
        {{- 'You are a helpful assistant.' }}
    {%- endif %}
    {%- for tool in tools %}
        {{- "\\n" }}
        {{- tool | tojson }}
    {%- endfor %}
    {{- "<|im_end|>\\n" }}
{%- else %}
    {%- if messages[0]['role'] == 'system' %}
        {{- '<|im_start|>system\\n' + messages[0]['content'] + '<|im_end|>\\n' }}
    {%- else %}
        {{- '<|im_start|>system\\nYou are a helpful assistant.<|im_end|>\\n' }}
    {%- endif %}
{%- endif %}
{%- for message in messages %}
    {%- if (message.role == "user") or (message.role == "system" and not loop.first) or (message.role == "assistant" and not message.tool_calls) %}
        {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>' + '\\n' }}
    {%- elif message.role == "assistant" %}
        {{- '<|im_start|>' + message.role }}
        {%- for tool_call in message.tool_calls %}
            {{- tool_call.name }}
        {%- endfor %}
        {{- '<|im_end|>\\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}
"""
META = ("{% set loop_messages = messages %}{% for message in loop_messages %}{% set content = '<|start_header_id|>' + message['role'] + "
        "'<|end_header_id|>\\n\\n'+ message['content'] | trim + '<|eot_id|>' %}{% if loop.index0 == 0 %}{% set content = bos_token + content %}{% endif %}"
        "{{ content }}{% endfor %}{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{% endif %}")
# Templates of models on the hub, and single changes: the import's answer.
IMPORTED = {
    "short": (SHORT, "chatml"),
    "one output": (SHORT.replace("' + '", ""), "chatml"),
    "quotes": (SHORT.replace("'", '"'), "chatml"),
    "members": (SHORT.replace("['role']", ".role").replace("['content']", ".content"), "chatml"),
    "line ends in strings": (SHORT.replace("\\n", "\n"), "chatml"),
    "Llama 3, line ends in strings": (META.replace("\\n", "\n"), "llama3"),
    "comment": ("{# by us #}" + SHORT, "chatml"),
    "lines": (SHORT.replace("{%", "\n{%-").replace("{{", "\n    {{-") + "\n", "chatml"),
    "line ends": (SHORT.replace("%}", "%}\n").replace("}}", "-}}\n"), "chatml"),
    "two outputs": (SHORT.replace(" + message['content']", "}}{{ message['content']"), "chatml"),
    "no prompt": (SHORT.split("{% if")[0], "chatml"),
    "default": ("{% if not add_generation_prompt is defined %}{% set add_generation_prompt = false %}{% endif %}" + SHORT, "chatml"),
    "Qwen2": (SHORT.replace("%}{{", "%}{% if loop.first and messages[0]['role'] != 'system' %}" + ASSISTANT + "{% endif %}{{", 1), "chatml"),
    "Qwen2.5": (QWEN25, "chatml"),
    "Llama 3": (META, "llama3"),
    "Llama 3, always a prompt": (META.replace("{% if add_generation_prompt %}", "")[:-len("{% endif %}")], "llama3"),
    "bos": ("{{ bos_token }}" + SHORT, "none"),
    "bos in the first": (SHORT.replace("{{'", "{{ (bos_token if loop.first else '') + '", 1), "none"),
    "other roles": (SHORT.replace("message['role']", "{'user': 'human', 'assistant': 'gpt', 'system': 'system'}[message['role']]"), "none"),
    "role upper": (SHORT.replace("message['role']", "message['role'] | upper"), "none"),
    "no line end": (SHORT.replace(" + '\\n'}}", "}}"), "none"),
    "two line ends": (SHORT.replace("<|im_end|>", "<|im_end|>\\n"), "none"),
    "blank in a string": (SHORT.replace("<|im_start|>'", "<|im_start|> '", 1), "none"),
    "trimmed": (SHORT.replace("message['content']", "message['content'] | trim"), "none"),
    "stripped": (SHORT.replace("message['content']", "message['content'].strip()"), "none"),
    "text between": (SHORT.replace("{% endfor", " {% endfor"), "none"),
    "lines without a minus": (SHORT.replace("{{", "\n  {{").replace("{%", "\n{%"), "none"),
    "text around": ("A talk:\n" + SHORT, "none"),
    "date": ("{{ '<|im_start|>system\\nToday is 1 May.<|im_end|>\\n' }}" + SHORT, "none"),
    "no system": (SHORT.replace("{{'", "{% if message['role'] != 'system' %}{{'", 1).replace("{% endfor", "{% endif %}{% endfor"), "none"),
    "thinks": (SHORT.replace("message['content'] +", "('<think></think>' if message['role'] == 'assistant' else '') + message['content'] +"), "none"),
    "comment only": ("{# <|im_start|> <|im_end|> #}{% for message in messages %}[INST] {{ message['content'] }} [/INST]{% endfor %}", "none"),
    "set only": ("{% set start = '<|im_start|>' %}{% set end = '<|im_end|>' %}{% for message in messages %}{{ message['content'] }}{% endfor %}", "none"),
    "eos": (SHORT.replace("{% endfor %}", "{% endfor %}{{ eos_token }}"), "none"),
    "Phi": (SHORT.replace("+ '\\n' + message['content']", "+ '<|im_sep|>' + message['content']"), "none"),
    "Llama 3, untrimmed": (META.replace(" | trim", ""), "none"),
    "Llama 3, one line end": (META.replace("\\n\\n", "\\n"), "none"),
    "Llama 3, no bos": (META.replace("{% set content = bos_token + content %}", ""), "none"),
    "Llama 3.2, a date": (META.replace("{% set loop", "{{ bos_token + '<|start_header_id|>system<|end_header_id|>\\n\\nToday<|eot_id|>' }}{% set loop"), "none"),
}
WILD = "'\" \\ \\n \\u0041 {{ x }} {% raw %} {# y #} -%} }} %} \r\n \t \x01 \u2028 caf\u00e9 \U0001f600 \\"
# The key chat, its six strings, and whether ids are compared.
CHATS = {
    "chatml": (["chatml"], OWN_CHATML, True),
    "llama3": (["llama3"], OWN_LLAMA3, True),
    "marked": ([t.replace("\n", " '\"\\{{%}}\u00e9 ") for t in OWN_CHATML],) * 2 + (True,),
    "wild": ([WILD, WILD + "{content}", "{content}" + WILD, "A{content}<|im_end|>" + WILD, "<|im_end|>", "A"],) * 2 + (False,),
}
PUBLISHED_WORDS = ["tensor", "the", "a gradient", "don't", "42", "3.14", "naïve", "café", "Привет", "世界", "😀", "e\u0301", "x = y;", "::", "\n", "\n\n", "\t", "  ", "(text)", "user", "assistant"]
WORDS = ["tensor", "the", "don't", "42", "na\u00efve", "\u4e16\u754c", "\U0001f600", "{{", "}}", "{% if %}", "'", '"', "\\", "\n", "\n\n", "\t", "  ", "user", "im_end"]


def content(draw):
    return "".join(draw.choice(WORDS) + draw.choice(["", " "]) for _ in range(draw.randrange(0, 10)))


def published_content(draw):
    text = "".join(draw.choice(PUBLISHED_WORDS) + draw.choice(["", " ", " "]) for _ in range(draw.randrange(0, 12)))
    return draw.choice(["", " ", "\n", "\n\n", "  \n"]) + text if draw.random() < 0.3 else text


def check_published(build, stores):
    draw, stored = random.Random(3), []
    talks = [talk(draw, published_content) for _ in range(200)]
    for name, (file, template, markers) in PUBLISHED.items():
        tokenizer = Tokenizer.from_file(str(TOKENIZERS / file))
        tokenizer.add_special_tokens([AddedToken(marker, special=True, normalized=False) for marker in markers])
        with tempfile.TemporaryDirectory() as folder:
            tokenizer.save(f"{folder}/tokenizer.json")
            ours = chat_ids(build, f"{folder}/tokenizer.json", [name], talks)
        reference = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer)
        for each, line in zip(talks, ours, strict=True):
            theirs = reference.apply_chat_template(each, chat_template=template, tokenize=True, return_dict=True, return_assistant_tokens_mask=True)
            expected_line = {"ids": list(theirs["input_ids"]), "answers": list(theirs["assistant_masks"])}
            assert json.dumps(line) == json.dumps(expected_line), (name, each, line, expected_line)  # True == 1, but not as text
            stored.append({"template": name, "tokenizer": file, "markers": markers, "messages": each, **expected_line})
    if stores:
        with open(TESTS / "data/tokenizers/conversations.jsonl", "w") as out:
            out.writelines(json.dumps(each) + "\n" for each in stored[:40] + stored[200:240])
    print(f"{len(stored)} talks have the same ids and the same tokens that count")


def expected(strings, trims, messages, asks):
    forms = dict(zip(("system", "user", "assistant"), strings[1:4]))
    texts = [forms[m["role"]].replace("{content}", m["content"].strip() if trims else m["content"]) for m in messages]
    return strings[0] + "".join(texts) + (strings[5] if asks else "")


def check_own(build, scratch, name, talks):
    """Checks a run's template, written by an export."""
    chat, strings, compares_ids = CHATS[name]
    folder = f"{scratch}/theirs_{name}"
    run(build, "convert", "export", train_on_talks(build, scratch, name, chat, talks), folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    for asks in (False, True):
        for each in talks:
            text = tokenizer.apply_chat_template(each, tokenize=False, add_generation_prompt=asks)
            assert text == expected(strings, name == "llama3", each, asks), (name, each, text)
    if compares_ids:
        lines = chat_ids(build, f"{scratch}/tokenizer.json", chat, talks)
        answer = json.loads(run(build, "tokenize", "encode", "--jsonl", "--tokenizer", f"{scratch}/tokenizer.json", data=json.dumps({"text": strings[5]})))["ids"]
        for each, line in zip(talks, lines, strict=True):
            for asks in (False, True):
                ids = tokenizer.apply_chat_template(each, add_generation_prompt=asks, return_dict=False)
                assert ids == line["ids"] + answer * asks, (name, each, ids, line)
    for config in (transformers.AutoConfig, transformers.GenerationConfig):  # generate reads the second
        ends = config.from_pretrained(folder).eos_token_id
        assert tokenizer.convert_tokens_to_ids(strings[4]) in (ends if isinstance(ends, list) else [ends]), ends
    try:
        tokenizer.apply_chat_template([{"role": "tool", "content": "a"}], tokenize=False)
        assert False, "a role that we refuse"
    except Exception as error:
        assert "a role other than system, user and assistant" in str(error), error
    print(f"{name:8} {len(talks)} talks have the same texts{' and ids' if compares_ids else ''}, with and without a prompt for an answer")


def system_added(text, before, after):
    """The text between these two at the front."""
    start = len(before)
    return text[start:text.index(after, start)] if text.startswith(before) and after in text[start:] else None


def check_imported(build, scratch):
    """Checks templates in imported folders."""
    talks = [[{"role": role, "content": content} for role, content in zip(roles, (" a\n", "b  c ", "\td", "e"))] for roles in (
        ["user"], ["user", "assistant"], ["user", "assistant", "user", "assistant"], ["system", "user"], ["system", "user", "assistant", "user"])]
    source, folder = f"{scratch}/theirs_llama3", pathlib.Path(f"{scratch}/changed")
    none_though_equal = []
    for name, (template, verdict) in IMPORTED.items():
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(source, folder)
        (folder / "chat_template.jinja").write_text(template)
        settings = json.loads((folder / "tokenizer_config.json").read_text())
        settings["bos_token"] = "<|begin_of_text|>"
        (folder / "tokenizer_config.json").write_text(json.dumps(settings))
        printed = run(build, "convert", "import", folder, f"{scratch}/imported {name}")
        said = next(line for line in printed.split("\n") if line.startswith("chat: ")).split(":")[1].strip()
        assert said == verdict, (name, printed)
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        fits, adds = {}, {}
        for ours, strings in (("chatml", OWN_CHATML), ("llama3", OWN_LLAMA3)):
            before, after = strings[0] + strings[1].split("{content}")[0], strings[1].split("{content}")[1]
            added = system_added(tokenizer.apply_chat_template(talks[0], tokenize=False), before, after)
            fits[ours], adds[ours] = True, added is not None
            for each in talks:
                with_system = each if each[0]["role"] == "system" or added is None else [{"role": "system", "content": added}] + each
                for asks in (True, False):
                    text = tokenizer.apply_chat_template(each, tokenize=False, add_generation_prompt=asks)
                    likely = [expected(strings, ours == "llama3", with_system, a) for a in {asks, True}]
                    no_prompt = asks and "add_generation_prompt" not in template and text == expected(strings, ours == "llama3", with_system, False)
                    fits[ours] &= text in likely or no_prompt
            assert ("adds a system message" in printed) == adds.get(said, False), (name, printed)
        assert said == "none" or fits[said], (name, said)
        if said == "none" and any(fits.values()):
            none_though_equal.append(name)
    print(f"{len(IMPORTED)} templates come in as what transformers writes with them; none although it would be one of ours: {none_though_equal}")


def main(build, *options):
    check_published(build, "--store" in options)
    draw = random.Random(5)
    talks = [talk(draw, content) for _ in range(200)]
    with tempfile.TemporaryDirectory() as scratch:
        for name in CHATS:
            check_own(build, scratch, name, talks)
        check_imported(build, scratch)


main(str(pathlib.Path(sys.argv[1]).resolve()), *sys.argv[2:])
