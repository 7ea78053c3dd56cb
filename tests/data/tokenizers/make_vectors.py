#!/usr/bin/env python3
"""Makes vectors.jsonl: texts, and what Hugging Face's tokenizers make of them with the small vocabularies in this folder.

    pip install tokenizers
    python make_vectors.py

Each line holds the name of a vocabulary, a text, its ids, and the text that comes back. The vocabularies are ricci's own, made
from the sources and the documentation of this project, see small/README.md.
"""
import json
import pathlib
import random
import unicodedata

from tokenizers import Tokenizer

here = pathlib.Path(__file__).resolve().parent

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


def random_text(draw):
    """Characters that ICU and Hugging Face agree on: letters, digits and signs of long-settled blocks."""
    kinds = [
        lambda: draw.choice("abcdefghijklmnopqrstuvwxyz"), lambda: draw.choice("ETAOIN0123456789"), lambda: draw.choice(" \n\t  "),
        lambda: draw.choice("'.,;:!?-_()[]{}<>@#$%^&*+=/\\|~`\""), lambda: chr(draw.randrange(0xC0, 0x180)), lambda: chr(draw.randrange(0x391, 0x3A1)),
        lambda: chr(draw.randrange(0x410, 0x450)), lambda: chr(draw.randrange(0x4E00, 0x9F00)), lambda: chr(draw.randrange(0x1F600, 0x1F640)),
        lambda: draw.choice(["the ", "tensor", "'s", "'ll", " 12", "\u0301", "\u00a0"]),
    ]
    weights = [12, 4, 6, 3, 1, 1, 1, 1, 1, 3]
    return "".join(draw.choices(kinds, weights)[0]() for _ in range(draw.randrange(1, 60)))


def main():
    draw = random.Random(7)
    texts = EDGES + [random_text(draw) for _ in range(80)]
    assert all(unicodedata.category(c) not in ("Cs",) for t in texts for c in t)
    with open(here / "vectors.jsonl", "w") as out:
        for file in sorted((here / "small").glob("*.json")):
            tokenizer = Tokenizer.from_file(str(file))
            for text in texts:
                ids = tokenizer.encode(text, add_special_tokens=False).ids
                back = tokenizer.decode(ids, skip_special_tokens=False)
                out.write(json.dumps({"tokenizer": file.name, "text": text, "ids": ids, "decoded": back}) + "\n")


main()
