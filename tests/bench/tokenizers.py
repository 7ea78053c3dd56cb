#!/usr/bin/env python3
"""ricci's tokenizers in turn with Hugging Face's tokenizers and tiktoken, on one text and the same number of threads.

    pip install tokenizers tiktoken
    python tokenizers.py --bench build/ricci-bench-tokenizers --text wiki.train.tokens --gpt2 FOLDER [--threads 2] [--rounds 3]

FOLDER holds GPT-2's vocab.bpe and encoder.json. Every peer gets the text in the form that is fastest for it: Hugging Face's
tokenizers and tiktoken a list of lines or of larger pieces, whichever is faster, on all threads. Prints medians over the rounds.
"""
import argparse
import os
import statistics
import subprocess
import sys
import time

sys.path = [p for p in sys.path if os.path.abspath(p or ".") != os.path.dirname(os.path.abspath(__file__))]  # this file has the name of a package


def seconds(function):
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def pieces_of(text, size):
    """Lines, joined to pieces of at least so many characters."""
    pieces, piece, length = [], [], 0
    for line in text.splitlines(keepends=True):
        piece.append(line)
        length += len(line)
        if length >= size:
            pieces.append("".join(piece))
            piece, length = [], 0
    return pieces + (["".join(piece)] if piece else [])


def peers(options):
    """The measures of one round by name."""
    import tiktoken
    import tiktoken.load
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

    text = open(options.text, encoding="utf-8", newline="").read()
    megabytes = len(text.encode()) / 1e6
    merges, vocabulary = options.gpt2 + "/vocab.bpe", options.gpt2 + "/encoder.json"
    forms = [pieces_of(text, 1), pieces_of(text, 10_000), pieces_of(text, 300_000)]

    def hf():
        tokenizer = Tokenizer(models.BPE.from_file(vocabulary, merges))
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        return tokenizer

    def best(run):
        """Megabytes per second of the fastest form, the median of three."""
        return max(megabytes / statistics.median(seconds(lambda: run(form)) for _ in range(3)) for form in forms)

    found = {}
    tokenizer = hf()
    found["hf", "encode_bpe"] = best(lambda form: tokenizer.encode_batch_fast(form, add_special_tokens=False))
    encoding = tiktoken.Encoding("gpt2-files", pat_str=r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s""",
                                 mergeable_ranks=tiktoken.load.data_gym_to_mergeable_bpe_ranks(merges, vocabulary), special_tokens={})
    found["tiktoken", "encode_bpe"] = best(lambda form: encoding.encode_ordinary_batch(form, num_threads=options.threads))
    ids = encoding.encode_ordinary(text)
    found["tiktoken", "decode_bpe"] = megabytes / statistics.median(seconds(lambda: encoding.decode(ids)) for _ in range(3))

    def train_bpe():
        trained = Tokenizer(models.BPE())
        trained.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        trainer = trainers.BpeTrainer(vocab_size=256 + 8000, min_frequency=2, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False)
        trained.train_from_iterator(forms[1], trainer)

    def train_wordpiece():
        trained = Tokenizer(models.WordPiece(unk_token="[UNK]"))
        trained.normalizer, trained.pre_tokenizer = normalizers.BertNormalizer(lowercase=True), pre_tokenizers.BertPreTokenizer()
        trainer = trainers.WordPieceTrainer(vocab_size=8000, min_frequency=2, special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"], show_progress=False)
        trained.train_from_iterator(forms[1], trainer)
        return trained

    found["hf", "train_bpe_8000"] = seconds(train_bpe)
    found["hf", "train_wordpiece_8000"] = seconds(train_wordpiece)
    wordpiece = train_wordpiece()
    found["hf", "encode_wordpiece"] = best(lambda form: wordpiece.encode_batch_fast(form, add_special_tokens=False))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bench", default="build/ricci-bench-tokenizers")
    parser.add_argument("--text", required=True)
    parser.add_argument("--gpt2", required=True)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: options.threads])  # for every program that runs here
    os.environ.update(RAYON_NUM_THREADS=str(options.threads), TOKENIZERS_PARALLELISM="true")
    rounds = {}
    for _ in range(options.rounds):
        command = [options.bench, options.text, options.gpt2 + "/vocab.bpe"]
        for line in subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines():
            _, name, value, _ = line.split()
            rounds.setdefault(("ricci", name), []).append(float(value))
        for key, value in peers(options).items():
            rounds.setdefault(key, []).append(value)
    medians = {key: statistics.median(values) for key, values in rounds.items()}
    for (who, name), value in sorted(medians.items(), key=lambda item: (item[0][1], item[0][0] != "ricci")):
        own = medians["ricci", name]
        faster = own / value if "code" in name else value / own
        unit = "MB/s" if "code" in name else "s"
        print(f"{name:22}{who:10}{value:10.4g} {unit:5}" + ("" if who == "ricci" else f"ricci is {faster:.1f} times as fast"))


main()
