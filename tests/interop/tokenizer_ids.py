#!/usr/bin/env python3
"""Tokenizers of the kinds of SmolLM2, Qwen, Llama 3, Llama 2 and Gemma: ricci tokenize gives the ids of the tokenizers package.
    tokenizer_ids.py check BUILD [TEXTS]     10,000 random texts for each, the token that starts a text included; their vocabularies are trained here.
    tokenizer_ids.py flags BUILD [COUNT]     200 random tokenizers with added tokens of all flags, 40 texts and a long one for each: ids, texts that
                                             come back, and ids of messages, which are those of the tokenizer without its added tokens
    tokenizer_ids.py make                    writes tests/data/tokenizers/vectors.jsonl: texts, their ids with the small vocabularies there, and the
                                             texts that come back; and flags.jsonl: 24 of the random tokenizers, their texts and ids
Needs tokenizers."""
import json
import pathlib
import random
import subprocess
import sys
import tempfile

from ricci import TESTS, TOKENIZERS, chat_ids, run, skip_without

try:
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
except ImportError as missing:
    skip_without(missing)

LLAMA3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
QWEN2 = LLAMA3.replace("{1,3}", "")
# name: the split of a text, its normal form, the token that starts a text
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
    """Digits of multiple scripts, white space, words, CJK, emoji, accents, and special tokens."""
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
            for _ in range(50):  # text that is not UTF-8; the package rejects it
                data = bytes(draw.randrange(256) for _ in range(draw.randrange(1, 40))) + b"\xff 1"
                ids = ricci("encode", "--encoding", "bytes", data=data)
                faults += (ricci("decode", data=ids) != data) if kind != "qwen" else (b"UTF-8" not in ids)
            assert faults == 0, (kind, faults)
            print(f"{kind}: {count} texts, the same ids with and without the first token; 50 that are not UTF-8 {'are refused' if kind == 'qwen' else 'come back'}")


BLANK, BYTES = "\u2581", [f"<0x{byte:02X}>" for byte in range(256)]
REPLACE, BACK = normalizers.Replace(" ", BLANK), [decoders.Replace(BLANK, " "), decoders.ByteFallback(), decoders.Fuse()]
STRIP = decoders.Strip(" ", 1, 0)
# name: normal form, the split of a text, decoder
FORMS = {
    "Llama 2, TinyLlama, Mistral": (normalizers.Sequence([normalizers.Prepend(BLANK), REPLACE]), None, [*BACK, STRIP]),
    "Gemma": (REPLACE, pre_tokenizers.Split(" ", "merged_with_previous"), BACK),
    "Replace": (REPLACE, None, BACK),
    "Metaspace first": (None, pre_tokenizers.Metaspace(BLANK, "first", False), [*BACK, STRIP]),
    "Metaspace always": (None, pre_tokenizers.Metaspace(BLANK, "always", False), [*BACK, STRIP]),
    "Metaspace never": (None, pre_tokenizers.Metaspace(BLANK, "never", False), BACK),
}
ADDED = ["<unk>", "<s>", "</s>", "<x y>", "er"]
HARD = ["", " ", "  ", "    ", " a", "  a", "a ", "a  b", "\n", "\n\n a", "\ta", "a\n  b", BLANK, f"a{BLANK}b", f" {BLANK} a", "<s>", "<s>a", "<s> a", "a<s>b", "a <s> b",
        " <s>", "<s> ", "<s><s> a", "</s><s>", "<unk>", "a<unk>b", "<0x41>", "a<0x41>b", "<x y>", "a <x y>b", "<x y>a", "\U0001f600 \U0001f468\u200d\U0001f469", "\u4e2d\u6587 \u4e2d",
        "\u00e9 e\u0301", "\u00a0a\u3000b", "the the  the", "her er", "er a", "x" * 99, "\x00\x7f", "\ufffd"]


def check_underscores(build, count):
    """Tokenizers of Llama 2's kind: their vocabulary is trained on words, and they encode full texts."""
    draw = random.Random(11)
    words = Tokenizer(models.BPE())
    words.pre_tokenizer = pre_tokenizers.Metaspace(BLANK, "always", True)
    words.train([str(p) for p in sorted(TESTS.parent.glob("*/README.md"))],
                trainers.BpeTrainer(vocab_size=900, limit_alphabet=80, special_tokens=["<unk>", "<s>", "</s>", *BYTES], show_progress=False))
    described = json.loads(words.to_str())["model"]
    for blanks in range(2, 9):  # runs, as in the vocabulary of Llama 2
        described["vocab"][BLANK * blanks] = len(described["vocab"])
        described["merges"] += [[BLANK * left, BLANK * (blanks - left)] for left in range(1, blanks)]
    texts = HARD + [random_text(draw, all_kinds(draw), 0) for _ in range(count)] + ["".join(draw.choices(HARD, k=6)) for _ in range(count)]
    texts += ["".join(draw.choices(HARD + ["the quick ", "brown  fox", "\n"], k=100000))]  # it is encoded in parts
    for name, (normal_form, divide, decoder) in FORMS.items():
        for normalized in (False, True):
            tokenizer = Tokenizer(models.BPE(described["vocab"], [tuple(pair) for pair in described["merges"]], unk_token="<unk>", fuse_unk=True, byte_fallback=True))
            tokenizer.decoder = decoders.Sequence(decoder)
            if normal_form:
                tokenizer.normalizer = normal_form
            if divide:
                tokenizer.pre_tokenizer = divide
            for content in ADDED:
                flags = dict(lstrip=content == "<x y>" and draw.random() < 0.5, rstrip=content == "</s>" and draw.random() < 0.5,
                             single_word=content == "er" and draw.random() < 0.5)
                tokenizer.add_special_tokens([AddedToken(content, normalized=normalized, special=True, **flags)])
            with tempfile.TemporaryDirectory() as scratch:
                tokenizer.save(f"{scratch}/tokenizer.json")

                def lines(command, data):
                    out = run(build, "tokenize", command, "--jsonl", "--tokenizer", f"{scratch}/tokenizer.json", data="".join(json.dumps(each) + "\n" for each in data))
                    return [json.loads(line) for line in out.splitlines()]

                expected = [encoded.ids for encoded in tokenizer.encode_batch(texts, add_special_tokens=False)]
                for text, ids, line in zip(texts, expected, lines("encode", [{"text": text} for text in texts]), strict=True):
                    assert line["ids"] == ids, (name, normalized, text[:200], line["ids"][:50], ids[:50])
                for text, ids, line in zip(texts, expected, lines("decode", [{"ids": ids} for ids in expected]), strict=True):
                    theirs = tokenizer.decode(ids, skip_special_tokens=False)
                    if normalized and normal_form and {*ids} & {tokenizer.token_to_id(added) for added in ADDED}:
                        continue  # the package decodes an added token in its normal form
                    assert line["text"] == theirs, (name, normalized, text[:200], line["text"][:200], theirs[:200], ids[:50])
                for text, ids in list(zip(texts, expected))[-4:]:  # as a file, in parts
                    if "\x00" not in text:
                        pathlib.Path(f"{scratch}/text").write_bytes(text.encode())
                        found = run(build, "tokenize", "encode", f"{scratch}/text", "--encoding", "bytes", "--tokenizer", f"{scratch}/tokenizer.json")
                        assert list(map(int, found.split())) == ids, (name, normalized, text[:200])
        print(f"{name}: {2 * len(texts)} texts, the same ids and texts")


CONTENTS = ["<a>", "<a>b", "low", "ow", "lower", "er", "###", "Low", "_", "7", "'s", "x y", " ", "  ", " <a>", "<a> ", "\n", "\t ", "\u3000", "a",
            "\u00e9", "e\u0301", "\u4e2d", "\u4e2d\u6587", "<|start|>", "<|start|>low", "##er", "."]
PARTS = CONTENTS + ["l", "o", "w", "e", "r", "A", "B", "LOW", "8", "?", "\u0301", "\u6587", "\u200d", "\u00bd", " ", " ", " ", "   ", "\n\n", "b c"]
WORDS = ["low", "lower", "###", "ow", "<a>", "wer", " low", " lo", "7_", "\u00e9", "\u4e2d\u6587", "'s", "x"]
END = "<|end|>"
PLAIN = ["", *["{content}" + END] * 3, END, ""]  # a template


def letters_of(text):
    return pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False).pre_tokenize_str(text)[0][0] if text else ""


def random_bpe(draw):
    all_parts = "".join(PARTS) + END
    accented = "".join(c + "\u0301" for c in all_parts)
    vocab = {letter: i for i, letter in enumerate(sorted(set(letters_of(all_parts + normalizers.NFC().normalize_str(accented)))))}
    unknown = "<unk>" if draw.random() < 0.3 else None
    if unknown:
        vocab[unknown] = vocab.pop(letters_of("w"))
    merges = []
    for _ in range(draw.randrange(12)):
        word = list(letters_of(draw.choice(WORDS)))
        for left, right in merges:
            for at in range(len(word) - 1, 0, -1):
                if word[at - 1:at + 1] == [left, right]:
                    word[at - 1:at + 1] = [left + right]
        at = draw.randrange(len(word))
        pair = tuple(word[at:at + 2])
        if len(pair) == 2 and pair not in merges and all(part in vocab for part in pair):
            merges.append(pair)
            vocab.setdefault("".join(pair), max(vocab.values()) + 1)
    for word in draw.sample(WORDS, 3):
        vocab.setdefault(letters_of(word), max(vocab.values()) + 1)
    divide, normal_form = draw.choice([(None, None), (KINDS["smollm"][0], None), (KINDS["llama3"][0], None), (KINDS["qwen"][0], normalizers.NFC())])
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=divide is None and draw.random() < 0.3, use_regex=divide in (None, KINDS["smollm"][0]))
    pre = pre_tokenizers.Sequence([divide, byte_level]) if divide else byte_level
    return models.BPE(vocab, merges, unk_token=unknown, ignore_merges=draw.random() < 0.5), normal_form, pre, decoders.ByteLevel()


def random_words(draw):
    """WordPiece, or words between white space."""
    letters = sorted(set("".join(PARTS)) - set(" \n\t"))
    if draw.random() < 0.3:
        return models.WordLevel({w: i for i, w in enumerate(["<unk>", *letters, "low", "lower", "<a>b", "###"])}, "<unk>"), None, pre_tokenizers.WhitespaceSplit(), None
    pieces = ["[UNK]", *letters, *["##" + letter for letter in letters if draw.random() < 0.8], "low", "##ow", "lo", "LO"]
    accents = draw.choice([None, True, False])
    normal_form = normalizers.BertNormalizer(lowercase=draw.random() < 0.5, strip_accents=accents, handle_chinese_chars=draw.random() < 0.7)
    return models.WordPiece({piece: i for i, piece in enumerate(pieces)}, unk_token="[UNK]"), normal_form, pre_tokenizers.BertPreTokenizer(), decoders.WordPiece()


def random_tokenizer(draw):
    """With added tokens of all flags, some of them in the vocabulary."""
    model, normal_form, divide, decoder = random_bpe(draw) if draw.random() < 0.7 else random_words(draw)
    described = json.loads(model.__getstate__())
    contents = draw.sample(CONTENTS, draw.randrange(1, 8))
    for content in contents:
        if draw.random() < 0.3:
            described["vocab"].setdefault(content, max(described["vocab"].values()) + 1)
    tokenizer = Tokenizer.from_str(json.dumps({"version": "1.0", "added_tokens": [], "model": described}))
    tokenizer.pre_tokenizer = divide
    if normal_form:
        tokenizer.normalizer = normal_form
    if decoder:
        tokenizer.decoder = decoder
    forms = set()
    for content in [END, *contents]:
        flags = {flag: content != END and draw.random() < 0.4 for flag in ("single_word", "lstrip", "rstrip", "normalized", "special")}
        form = (flags["normalized"], normal_form.normalize_str(content) if normal_form and flags["normalized"] else content)
        if form not in forms:  # the package finds either of two tokens with one form
            tokenizer.add_tokens([AddedToken(content, **flags)])
        forms.add(form)
    return tokenizer


def without_added(tokenizer):
    """The tokenizer without added tokens except the unknown one. None if a byte would have no token."""
    described = json.loads(tokenizer.to_str())
    model, added = described["model"], {token["content"] for token in described["added_tokens"]} | {END}
    gone = added - {model["unk_token"]}
    if model["type"] == "BPE" and model["unk_token"] is None and any(piece in model["vocab"] for piece in gone & set(pre_tokenizers.ByteLevel.alphabet())):
        return None
    model["vocab"] = {piece: i for piece, i in model["vocab"].items() if piece not in gone}
    if model["type"] == "BPE":
        model["merges"] = [m for m in model["merges"] if not gone & {*m, "".join(m)}]
    return Tokenizer.from_str(json.dumps({**described, "added_tokens": []}))


def ids_or_none(tokenizer, text):
    try:
        return tokenizer.encode(text, add_special_tokens=False).ids
    except BaseException as fault:  # two tokens with the same white space can end the package
        assert "bad split" in str(fault), fault
        return None


def flags_cases(draw, count, texts_each):
    """(tokenizer, its texts and ids, the tokenizer of its messages)"""
    for _ in range(count):
        tokenizer = random_tokenizer(draw)
        texts = ["".join(draw.choices(PARTS, k=draw.randrange(1, 12))) for _ in range(texts_each)]
        yield tokenizer, [(text, ids) for text in texts if (ids := ids_or_none(tokenizer, text)) is not None], without_added(tokenizer)


def check_flags(build, count):
    draw = random.Random(3)
    compared, refused, long_ones = 0, 0, 0
    for tokenizer, cases, plain in flags_cases(draw, count, 40):
        with tempfile.TemporaryDirectory() as scratch:
            file = f"{scratch}/tokenizer.json"
            tokenizer.save(file)
            described = json.loads(tokenizer.to_str())
            long_text = "".join(draw.choices(PARTS, k=40000))  # it is encoded in parts
            if (ids := ids_or_none(tokenizer, long_text)) is not None:
                long_ones += 1
                cases.append((long_text, ids))

            def lines(command, data, *words):
                out = run(build, "tokenize", command, *words, "--tokenizer", file, data="".join(json.dumps(each) + "\n" for each in data))
                return [json.loads(line) for line in out.splitlines()]

            found = lines("encode", [{"text": text} for text, _ in cases], "--jsonl")
            for (text, ids), line in zip(cases, found, strict=True):
                assert line["ids"] == ids, (text[:200], line["ids"][:50], ids[:50], tokenizer.to_str())
            compared += len(cases)
            # The package decodes an added token through the letters of bytes, and in its normal form.
            changed = tokenizer.normalizer.normalize_str if tokenizer.normalizer else str
            if all(t["content"].isascii() and (not t["normalized"] or changed(t["content"]) == t["content"]) for t in described["added_tokens"]):
                for (text, ids), line in zip(cases, lines("decode", [{"ids": ids} for _, ids in cases], "--jsonl"), strict=True):
                    assert line["text"] == tokenizer.decode(ids, skip_special_tokens=False), (text[:200], ids[:50], tokenizer.to_str())
            talks = [[{"role": "user", "content": text}] for text, _ in cases]
            if plain:
                for (text, _), line in zip(cases, chat_ids(build, file, PLAIN, talks), strict=True):
                    expected = plain.encode(text, add_special_tokens=False).ids + [tokenizer.token_to_id(END)]
                    assert line["ids"] == expected, (text[:200], line["ids"][:50], expected[:50], tokenizer.to_str())
            else:
                words = [word for each in PLAIN for word in ("--template", each)]
                done = subprocess.run([f"{build}/ricci-tokenize", "chat", "--tokenizer", file, *words], input="", capture_output=True, text=True)
                assert done.returncode == 1 and "leave it out of the added tokens" in done.stderr, done.stderr
                refused += 1
    print(f"{count} tokenizers, {compared} texts, {long_ones} of them of 100 KB: the same ids; {refused} of them have no messages, because a byte is an added token")


def make_flags():
    with open(TOKENIZERS.parent / "flags.jsonl", "w") as out:
        for tokenizer, cases, plain in flags_cases(random.Random(5), 24, 10):
            texts = [{"text": text, "ids": ids} for text, ids in cases]
            for each in texts:
                if plain:
                    each["message"] = plain.encode(each["text"], add_special_tokens=False).ids
            out.write(json.dumps({"tokenizer": json.loads(tokenizer.to_str()), "texts": texts}, ensure_ascii=False, separators=(",", ":")) + "\n")


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
        make_flags()
    elif sys.argv[1] == "flags":
        check_flags(sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 200)
    else:
        check(sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 10000)
        check_underscores(sys.argv[2], int(sys.argv[3]) // 4 if len(sys.argv) > 3 else 2500)
