#!/usr/bin/env python3
"""Tokenizers as SmolLM2, Qwen and Llama 3 have them: the ids of ricci-tokenize are those of the tokenizers package.
    tokenizers.py BUILD [TEXTS]     10,000 random texts for each, the token that starts a text included
The vocabularies are trained here on the documentation of this project. Needs tokenizers, in a virtual environment outside of this tree."""
import json, pathlib, random, subprocess, sys, tempfile
sys.path = [p for p in sys.path if pathlib.Path(p or ".").resolve() != pathlib.Path(__file__).resolve().parent]  # this file has the package's name
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

ROOT = pathlib.Path(__file__).resolve().parents[2]
LLAMA3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
QWEN2 = LLAMA3.replace("{1,3}", "")
# name: what divides a text, its normal form, the token that starts a text
KINDS = {
    "smollm": (pre_tokenizers.Digits(individual_digits=True), None, None),
    "qwen": (pre_tokenizers.Split(Regex(QWEN2), "isolated"), normalizers.NFC(), None),
    "llama3": (pre_tokenizers.Split(Regex(LLAMA3), "isolated"), None, "<|begin_of_text|>"),
}
SPECIAL = ["<|begin_of_text|>", "<|endoftext|>", "<|im_start|>", "<|im_end|>"]


def trained(kind, vocab=700):
    divide, normal_form, first = KINDS[kind]
    tokenizer = Tokenizer(models.BPE(ignore_merges=kind == "llama3"))
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=kind == "smollm")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([divide, byte_level])
    if normal_form:
        tokenizer.normalizer = normal_form
    trainer = trainers.BpeTrainer(vocab_size=vocab, special_tokens=SPECIAL, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False)
    tokenizer.train([str(p) for p in sorted(ROOT.glob("*/README.md"))], trainer)
    if first:
        template = processors.TemplateProcessing(single=f"{first} $A", pair=f"{first} $A {first}:1 $B:1",
                                                 special_tokens=[(first, tokenizer.token_to_id(first))])
        tokenizer.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), template])
    return tokenizer


def random_text(draw):
    """Digits of several scripts, white space, words, CJK, emoji, accents, and the pieces that are special."""
    kinds = [
        lambda: draw.choice("abcdefghijklmnopqrstuvwxyzETAOIN"), lambda: draw.choice("0123456789"), lambda: draw.choice([" ", "  ", "\n", "\t", "\r\n", "\u00a0", "\u3000"]),
        lambda: draw.choice("'.,;:!?-_()[]{}<>@#$%^&*+=/\\|~`\""), lambda: chr(draw.randrange(0x4E00, 0x9F00)), lambda: chr(draw.randrange(0x1F600, 0x1F640)),
        lambda: chr(draw.randrange(0xC0, 0x180)), lambda: chr(draw.randrange(0x660, 0x66A)), lambda: draw.choice("\u00bd\u00b2\u2167\u0967\u2028\u200d"),
        lambda: draw.choice(["the ", "tensor", "'s", "'LL", " 12", "e\u0301", " 3.14 ", "a 1  2   3"]), lambda: draw.choice(SPECIAL),
    ]
    weights = [12, 6, 7, 3, 2, 1, 1, 1, 1, 4, 0.3]
    return "".join(draw.choices(kinds, weights)[0]() for _ in range(draw.randrange(0, 60)))


def check(build, count):
    draw = random.Random(7)
    texts = [random_text(draw) for _ in range(count)]
    for kind in KINDS:
        tokenizer = trained(kind)
        with tempfile.TemporaryDirectory() as scratch:
            file = f"{scratch}/tokenizer.json"
            tokenizer.save(file)

            def ricci(*words, data):
                done = subprocess.run([f"{build}/ricci-tokenize", *words, "--tokenizer", file], input=data, capture_output=True)
                return done.stdout if done.returncode == 0 else done.stderr

            def encoded(*words):
                lines = ricci("encode", "--jsonl", *words, data="".join(json.dumps({"text": t}) + "\n" for t in texts).encode())
                return [json.loads(line)["ids"] for line in lines.decode().splitlines()]

            for words, special in (((), False), (("--special",), True)):
                expected = [e.ids for e in tokenizer.encode_batch(texts, add_special_tokens=special)]
                different = [i for i, (a, b) in enumerate(zip(encoded(*words), expected, strict=True)) if a != b]
                assert not different, (kind, special, len(different), texts[different[0]])
            faults = 0
            for _ in range(50):  # text that is not UTF-8, which the package does not take
                data = bytes(draw.randrange(256) for _ in range(draw.randrange(1, 40))) + b"\xff 1"
                ids = ricci("encode", data=data)
                faults += (ricci("decode", data=ids) != data) if kind != "qwen" else (b"UTF-8" not in ids)
            assert faults == 0, (kind, faults)
            print(f"{kind}: {count} texts, the same ids with and without the first token; 50 that are not UTF-8 {'are refused' if kind == 'qwen' else 'come back'}")


if __name__ == "__main__":
    check(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 10000)
