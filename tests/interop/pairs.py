#!/usr/bin/env python3
"""Folders with vocab.json and merges.txt but no tokenizer.json: their other files say how a text is divided and which tokens are added.

    pairs.py check BUILD     each folder, and 100 random ones: the ids of ricci-tokenize are those of transformers' AutoTokenizer, of 300 random texts
    pairs.py make            writes tests/data/tokenizers/pairs.jsonl: the other files of each folder, a text and its ids

The pair is that of tests/data/tokenizers/small/gpt2.json. Needs transformers."""
import json
import pathlib
import random
import sys
import tempfile

from ricci import TESTS, TOKENIZERS, run, skip_without

try:
    import transformers
    from tokenizer_ids import random_text, settled
except ImportError as missing:
    skip_without(missing)

transformers.logging.set_verbosity_error()
MODEL = json.loads((TOKENIZERS / "gpt2.json").read_text())["model"]
SIZE = len(MODEL["vocab"])
TEXT = "it'S 12345 caf\u00e9 cafe\u0301\n\n \nx<|im_start|>user <mask> word</s>  a<|endoftext|>b<|im_end|>"


def token(content, **flags):  # of added_tokens_decoder and special_tokens_map.json
    return {"content": content, "lstrip": False, "normalized": False, "rstrip": False, "single_word": False, "special": True} | flags


def named(content, **flags):  # of a name in tokenizer_config.json
    return token(content, **flags) | {"__type": "AddedToken"}


CHAT = {str(SIZE): token("<|im_start|>"), str(SIZE + 1): token("<|im_end|>")}
QWEN2 = {"tokenizer_class": "Qwen2Tokenizer"}
# The files of a folder next to the pair.
FOLDERS = [
    {"config.json": {"model_type": "gpt2"}},
    {"config.json": {"model_type": "qwen2"}},
    {"config.json": {"model_type": "qwen3"}, "added_tokens.json": {"<|im_start|>": SIZE, "<|im_end|>": SIZE + 1}},
    {"config.json": {"model_type": "llama"}, "tokenizer_config.json": {"tokenizer_class": "GPT2Tokenizer"}},
    {"config.json": {"model_type": "gpt2", "tokenizer_class": "Qwen2TokenizerFast"}},
    {"tokenizer_config.json": QWEN2 | {"added_tokens_decoder": {"0": token("<|endoftext|>")} | CHAT}},
    {"config.json": {"model_type": "qwen2"}, "tokenizer_config.json": QWEN2 | {"added_tokens_decoder": CHAT, "add_prefix_space": False,
     "eos_token": "<|im_end|>", "bos_token": None, "unk_token": None, "additional_special_tokens": ["<|im_start|>", "<|im_end|>"]}},
    {"tokenizer_config.json": QWEN2, "added_tokens.json": {"<|im_start|>": SIZE, "<|im_end|>": SIZE + 1, "caf\u00e9": SIZE + 2},
     "special_tokens_map.json": {"additional_special_tokens": ["<|im_start|>"], "eos_token": token("<|im_end|>")}},
    # not read next to added_tokens_decoder
    {"tokenizer_config.json": QWEN2 | {"added_tokens_decoder": CHAT}, "added_tokens.json": {"word": SIZE + 2}, "special_tokens_map.json": {"pad_token": "x"}},
    {"tokenizer_config.json": {"tokenizer_class": "GPT2Tokenizer", "bos_token": "<|endoftext|>", "add_prefix_space": False}},
    {"tokenizer_config.json": {"tokenizer_class": "GPT2TokenizerFast", "add_prefix_space": True}},
    {"tokenizer_config.json": {"tokenizer_class": "GPT2Tokenizer", "pad_token": named("<mask>", lstrip=True, rstrip=True), "eos_token": "</s>"}},
    {"tokenizer_config.json": {"tokenizer_class": "GPT2Tokenizer"}, "special_tokens_map.json":
     {"unk_token": {"content": "word", "single_word": True, "lstrip": False, "rstrip": False, "normalized": True}, "eos_token": "</s>", "cls_token": "<mask>"}},
    {"tokenizer_config.json": {"tokenizer_class": "GPT2Tokenizer", "extra_special_tokens": {"image_token": "user"}}},
    {"tokenizer_config.json": {"tokenizer_class": "GPT2Tokenizer", "add_bos_token": True}},
    {"tokenizer_config.json": {"tokenizer_class": "CodeGenTokenizer", "additional_special_tokens": [named("  ", normalized=True), "user"]}},
    {"tokenizer_config.json": {"tokenizer_class": "GPT2Tokenizer", "bos_token": "<mask>", "eos_token": "</s>", "unk_token": "</s>"}},
]


def write(folder, files):
    folder = pathlib.Path(folder)
    (folder / "vocab.json").write_text(json.dumps(MODEL["vocab"]))
    (folder / "merges.txt").write_text("#version: 0.2\n" + "".join(" ".join(pair) + "\n" for pair in MODEL["merges"]))
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content))


def expected(files, texts, special=False):
    """The ids as transformers has them. It asks for a config.json, which a folder of a tokenizer only does without."""
    with tempfile.TemporaryDirectory() as folder:
        write(folder, files | ({} if "config.json" in files else {"config.json": {"model_type": ""}}))
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        return [ids_of(tokenizer, text, special) for text in texts]


def ids_of(tokenizer, text, special):
    """None if the package itself fails, as at tokens that take white space of one another."""
    try:
        return tokenizer(text, add_special_tokens=special)["input_ids"]
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        return None


WORDS = ["<|im_start|>", "<|im_end|>", "<|endoftext|>", "</s>", "<mask>", "user", "word", "it", "e\u0301", "caf\u00e9", "  ", "##", "\n\n"]


def random_folder(draw):
    """A class, tokens with ids, which follow the vocabulary as in files that transformers wrote, and tokens with names."""
    flags = lambda word: ({} if word in plain else {flag: draw.random() < 0.3 for flag in ("lstrip", "rstrip", "single_word", "normalized", "special")})
    config = {"tokenizer_class": draw.choice(["GPT2Tokenizer", "GPT2TokenizerFast", "CodeGenTokenizer", "Qwen2Tokenizer", "Qwen2TokenizerFast"])}
    files, names = {"tokenizer_config.json": config}, {}
    if draw.random() < 0.2 and "Qwen2" not in config["tokenizer_class"]:
        config["add_prefix_space"] = draw.random() < 0.5
    chosen = draw.sample(WORDS, draw.randrange(6))
    added, size = {}, SIZE
    for word in chosen:
        added[word] = MODEL["vocab"].get(word, size)
        size += word not in MODEL["vocab"]
    for key in draw.sample(["bos_token", "eos_token", "unk_token", "pad_token", "cls_token"], draw.randrange(4)):
        names[key] = draw.choice(chosen or WORDS)
    if draw.random() < 0.3:
        names["additional_special_tokens"] = draw.sample([word for word in WORDS if word not in names.values()], 2)
    # The class of Qwen2 in transformers 5 passes over the flags of tokens with a name, so files with such flags are not compared.
    named = ["<|endoftext|>", *(names.get("additional_special_tokens", []) + [name for name in names.values() if isinstance(name, str)])]
    plain = named if "Qwen2" in config["tokenizer_class"] else []
    if draw.random() < 0.5:
        config["added_tokens_decoder"] = {str(id): token(word) | flags(word) for word, id in added.items()}
        config |= names
    else:
        files["added_tokens.json"] = added
        forms = {word: token(word) | flags(word) if draw.random() < 0.3 else word for word in WORDS}  # one for each token, as in real files
        files["special_tokens_map.json"] = {key: forms[name] if isinstance(name, str) else name for key, name in names.items()}
    return files


def check(build):
    draw = random.Random(11)
    texts = [TEXT] + ["".join(random_text(draw, settled(draw), 0)[:20] + draw.choice(WORDS) for _ in range(3)) for _ in range(300)]
    folders = FOLDERS + [random_folder(draw) for _ in range(100)]
    for files in folders:
        with tempfile.TemporaryDirectory() as folder:
            write(folder, files)
            for words in ((), ("--special",)):
                lines = run(build, "tokenize", "encode", "--jsonl", *words, "--tokenizer", folder, data="".join(json.dumps({"text": t}) + "\n" for t in texts))
                ours = [json.loads(line)["ids"] for line in lines.splitlines()]
                theirs = expected(files, texts, bool(words))
                different = [i for i, (a, b) in enumerate(zip(ours, theirs, strict=True)) if a != b and b is not None]
                assert not different, (files, words, len(different), texts[different[0]], ours[different[0]], theirs[different[0]])
    print(f"{len(folders)} folders, {len(texts)} texts each, have the same ids with and without the first token")


def make():
    with open(TOKENIZERS.parent / "pairs.jsonl", "w") as out:
        for files in FOLDERS:
            out.write(json.dumps({"files": files, "text": TEXT, "ids": expected(files, [TEXT])[0], "special": expected(files, [TEXT], True)[0]}) + "\n")


if __name__ == "__main__":
    make() if sys.argv[1:] == ["make"] else check(sys.argv[2])
