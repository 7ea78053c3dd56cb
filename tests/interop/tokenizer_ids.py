#!/usr/bin/env python3
"""Tokenizers as SmolLM2, Qwen and Llama 3 have them: the ids of ricci-tokenize are those of the tokenizers package.
    tokenizer_ids.py check BUILD [TEXTS]     10,000 random texts for each, the token that starts a text included; their vocabularies are trained here
    tokenizer_ids.py make                    writes tests/data/tokenizers/vectors.jsonl: texts, their ids with the small vocabularies there, and the
                                             texts that come back
Needs tokenizers."""
import json
import random
import subprocess
import sys
import tempfile

from ricci import TESTS, TOKENIZERS, skip_without

try:
    from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, processors, trainers
except ImportError as missing:
    skip_without(missing)

LLAMA3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
QWEN2 = LLAMA3.replace("{1,3}", "")
# name: what divides a text, its normal form, the token that starts a text
KINDS = {
    "smollm": (pre_tokenizers.Digits(individual_digits=True), None, None),
    "qwen": (pre_tokenizers.Split(Regex(QWEN2), "isolated"), normalizers.NFC(), None),
    "llama3": (pre_tokenizers.Split(Regex(LLAMA3), "isolated"), None, "<|begin_of_text|>"),
}
SIGNS = "'.,;:!?-_()[]{}<>@#$%^&*+=/\\|~`\""
SPECIAL = ["<|begin_of_text|>", "<|endoftext|>", "<|im_start|>", "<|im_end|>"]


def trained(kind, vocab=700):
    divide, normal_form, first = KINDS[kind]
    tokenizer = Tokenizer(models.BPE(ignore_merges=kind == "llama3"))
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=kind == "smollm")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([divide, byte_level])
    if normal_form:
        tokenizer.normalizer = normal_form
    trainer = trainers.BpeTrainer(vocab_size=vocab, special_tokens=SPECIAL, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False)
    tokenizer.train([str(p) for p in sorted(TESTS.parent.glob("*/README.md"))], trainer)
    if first:
        template = processors.TemplateProcessing(single=f"{first} $A", pair=f"{first} $A {first}:1 $B:1",
                                                 special_tokens=[(first, tokenizer.token_to_id(first))])
        tokenizer.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), template])
    return tokenizer


EDGES = [
    "", " ", "   ", "\n", "\n\n", "\t", "\r\n", " \n \n", "hello world", " Hello", "Hello   World", "trailing   ", "   leading",
    "don't can't it's we're you've I'm they'll he'd", "IT'S WE'RE YOU'VE I'M THEY'LL HE'D", "x'sy 'tis 'twas", "it'\u017f long s",
    "a1b2c3 1234567890 12 345", "3.14159 1,000,000 $5.99 100% #1", "...!?;: --- *** (a) [b] {c}", "<|endoftext|>", "<|endoftext", "[MASK] [CLS][SEP] [mask] [UNK]",
    "a[MASK]b <|endoftext|>c", "na\u00efve caf\u00e9 r\u00e9sum\u00e9 \u00dcn\u00efc\u00f6d\u00e9 TEXT", "\u041f\u0440\u0438\u0432\u0435\u0442, \u043c\u0438\u0440", "\u3053\u3093\u306b\u3061\u306f\u4e16\u754c \u4f60\u597d",
    "\u05e9\u05dc\u05d5\u05dd \u05e2\u05d5\u05dc\u05dd", "\U0001f600\U0001f680 emoji \U0001f468\u200d\U0001f469\u200d\U0001f467", "e\u0301 a\u0308 combining", "\u0130stanbul \u0131\u015f\u0131k \u00df \u1e9e",
    "\u00a0nbsp\u2003em\u3000wide\u200bzero\u00adsoft", "\ufeffbom \ufffd replacement", "\x00nul \x07bell \x1funit \x7fdel \x85nel", "word" * 40, "x" * 101, "a " * 60,
    "int main() {\n  return 0;\n}\n", "for (int i = 0; i < n; ++i) x[i] += y[i] * 2.5e-3f;", "snake_case camelCase PascalCase kebab-case", "line one\nline two\r\nline three\n\n  indented\n\ttabbed  ",
    "punct.\n\nnext !\n", "tensor gradient attention tokenizer vocabulary checkpoint", "\u2028line\u2029paragraph", "\u00bd \u00b2 \u2167 \u0663 \u0967 numbers",
]


def random_text(draw, kinds, least):
    """kinds: of characters, with their weights."""
    return "".join(draw.choices([kind for kind, _ in kinds], [weight for _, weight in kinds])[0]() for _ in range(draw.randrange(least, 60)))


def one_of(draw, letters):
    return lambda: draw.choice(letters)


def between(draw, first, last):
    return lambda: chr(draw.randrange(first, last))


def settled(draw):
    """Characters that ICU and Hugging Face agree on: letters, digits and signs of long-settled blocks."""
    return [(one_of(draw, "abcdefghijklmnopqrstuvwxyz"), 12), (one_of(draw, "ETAOIN0123456789"), 4), (one_of(draw, " \n\t  "), 6),
            (one_of(draw, SIGNS), 3), (between(draw, 0xC0, 0x180), 1), (between(draw, 0x391, 0x3A1), 1), (between(draw, 0x410, 0x450), 1),
            (between(draw, 0x4E00, 0x9F00), 1), (between(draw, 0x1F600, 0x1F640), 1),
            (one_of(draw, ["the ", "tensor", "'s", "'ll", " 12", "\u0301", "\u00a0"]), 3)]


def all_kinds(draw):
    """Digits of several scripts, white space, words, CJK, emoji, accents, and the pieces that are special."""
    return [(one_of(draw, "abcdefghijklmnopqrstuvwxyzETAOIN"), 12), (one_of(draw, "0123456789"), 6),
            (one_of(draw, [" ", "  ", "\n", "\t", "\r\n", "\u00a0", "\u3000"]), 7), (one_of(draw, SIGNS), 3), (between(draw, 0x4E00, 0x9F00), 2),
            (between(draw, 0x1F600, 0x1F640), 1), (between(draw, 0xC0, 0x180), 1), (between(draw, 0x660, 0x66A), 1),
            (one_of(draw, "\u00bd\u00b2\u2167\u0967\u2028\u200d"), 1), (one_of(draw, ["the ", "tensor", "'s", "'LL", " 12", "e\u0301", " 3.14 ", "a 1  2   3"]), 4),
            (one_of(draw, SPECIAL), 0.3)]


def check(build, count):
    draw = random.Random(7)
    texts = [random_text(draw, all_kinds(draw), 0) for _ in range(count)]
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


def make():
    draw = random.Random(7)
    texts = EDGES + [random_text(draw, settled(draw), 1) for _ in range(80)]
    with open(TOKENIZERS.parent / "vectors.jsonl", "w") as out:
        for file in sorted(TOKENIZERS.glob("*.json")):
            tokenizer = Tokenizer.from_file(str(file))
            for text in texts:
                ids = tokenizer.encode(text, add_special_tokens=False).ids
                back = tokenizer.decode(ids, skip_special_tokens=False)
                out.write(json.dumps({"tokenizer": file.name, "text": text, "ids": ids, "decoded": back}) + "\n")


if __name__ == "__main__":
    if sys.argv[1:] == ["make"]:
        make()
    else:
        check(sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 10000)
