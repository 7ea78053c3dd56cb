#!/usr/bin/env python3
"""Compares the numbers of ricci eval with EleutherAI's lm_eval on the same models, exported by ricci convert:

    lm_eval_numbers.py BUILD

acc, acc_norm, acc_bytes, their standard errors and the log-probability of each choice of 100 questions, for the fields of HellaSwag, ARC and PIQA
and plain ones; word and byte perplexity of documents. All files are local. Needs lm_eval, torch and transformers.
"""
import json
import logging
import math
import os
import pathlib
import random
import sys
import tempfile

from ricci import TESTS, TOKENIZERS, run, skip_without

os.environ |= {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false", "TQDM_DISABLE": "1"}
try:
    import accelerate
    import lm_eval
    import lm_eval.models.huggingface
    import transformers
    from lm_eval.tasks.hellaswag.utils import process_docs
    from lm_eval.tasks.wikitext.preprocess_wikitext import process_results
except ImportError as missing:
    skip_without(missing)

transformers.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()
logging.disable(logging.WARNING)
QUESTIONS, CONTEXT = 100, 48
SHARES = ["acc", "acc_norm", "acc_bytes"]
WORDS = ["the", "model", "reads", "a", "text", "na\u00efve", "caf\u00e9", "\u4e16\u754c", "42", "don't", "tape", "(x)", "gradient", "\u00a0", "e\u0301", "Token"]
DOCUMENTS = ["The tape records.", " two  words\n", "\n\nlines\n \nand\tmore\n\n", "\u00a0caf\u00e9\u2003na\u00efve\u3000\u4e16\u754c", "a\x1cb\x1fc\x85d", "\u200bzero \ufeff",
             "= Title = \n \n A <unk> text . \n"]


def phrase(draw, least, most):
    return " ".join(draw.choice(WORDS) for _ in range(draw.randrange(least, most)))


# ---- The fields of a line, and the task of lm_eval that reads them
def plain(draw, answer, choices):
    context = "A " + phrase(draw, 1, 60) + draw.choice(["", "", " ", "  ", "\n", ":\n", "\u00a0 "])
    return {"context": draw.choice([""] + 20 * [context]), "choices": choices, "answer": answer}


def hellaswag(draw, answer, choices):
    marks = ["", " [title]", "[header] ", " [step]", "[not closed", "[of\ntwo lines] "]
    return {"ind": 1, "activity_label": phrase(draw, 1, 3), "ctx_a": phrase(draw, 3, 20) + draw.choice(marks) + " Then.", "ctx_b": draw.choice(["", "he And ", "THE  [x] dog"]),
            "ctx": "is not read", "endings": [draw.choice([" ", ""]) + each + draw.choice(marks) for each in choices], "label": str(answer)}


def arc(draw, answer, choices):
    labels = draw.choice(["ABCDE", "12345"])[:len(choices)]
    return {"id": "Mercury_1", "question": phrase(draw, 1, 30), "choices": {"text": choices, "label": list(labels)}, "answerKey": labels[answer]}


def piqa(draw, answer, choices):
    return {"goal": phrase(draw, 1, 20), "sol1": choices[0], "sol2": choices[1], "label": answer % 2}


TASKS = {
    plain: {"doc_to_text": "{{context}}", "doc_to_target": "{{answer}}", "doc_to_choice": "choices"},
    hellaswag: {"process_docs": process_docs, "doc_to_text": "{{query}}", "doc_to_target": "{{label}}", "doc_to_choice": "choices"},
    arc: {"doc_to_text": "Question: {{question}}\nAnswer:", "doc_to_target": "{{choices.label.index(answerKey)}}", "doc_to_choice": "{{choices.text}}"},
    piqa: {"doc_to_text": "Question: {{goal}}\nAnswer:", "doc_to_target": "label", "doc_to_choice": "{{[sol1, sol2]}}"},
}


def local(name, path, **keys):
    return {"task": name, "dataset_path": "json", "dataset_kwargs": {"data_files": {"test": str(path)}}, "test_split": "test", **keys}


def evaluate(model, task):
    found = lm_eval.simple_evaluate(model=model, tasks=[task], bootstrap_iters=0 if task["output_type"] != "multiple_choice" else 1, log_samples=True,
                                    cache_requests=False, verbosity="ERROR")
    return found["results"][task["task"]], found["samples"][task["task"]]


def close(name, got, expected, tolerance=1e-4):
    assert abs(got - expected) <= tolerance * max(1, abs(expected)), f"{name}: {got}, lm_eval: {expected}"


def check_choices(build, folder, model, name, make):
    draw = random.Random(name + make.__name__)
    path = pathlib.Path(f"{folder}/{name}_{make.__name__}.jsonl")
    with open(path, "w") as out:
        for _ in range(QUESTIONS):
            choices = [phrase(draw, 1, 8) for _ in range(4)]
            out.write(json.dumps(make(draw, draw.randrange(4), choices)) + "\n")
    task = local(f"{name}_{make.__name__}", path, output_type="multiple_choice", **TASKS[make],
                 metric_list=[{"metric": each, "aggregation": "mean", "higher_is_better": True} for each in SHARES])
    theirs, samples = evaluate(model, task)
    ours = json.loads(run(build, "eval", f"{folder}/{name}", "--choices", path, "--json", "--batch", "7"))[0]
    assert ours["questions"] == len(samples) == QUESTIONS
    for share in SHARES:
        close(f"{path.name}: {share}", ours[share], theirs[f"{share},none"])
        close(f"{path.name}: standard error of {share}", ours[share + "_stderr"], theirs[f"{share}_stderr,none"])
    for sample in samples:
        got, expected = ours["log_probabilities"][sample["doc_id"]], [float(response[0][0]) for response in sample["resps"]]
        assert len(got) == len(expected)
        for each in zip(got, expected):
            close(f"{path.name}:{sample['doc_id'] + 1}", *each)
    print(f"{path.name}: " + ", ".join(f"{share} {ours[share]:.4f} \u00b1 {ours[share + '_stderr']:.4f}" for share in SHARES))


def long_document(model):
    """Three full windows. In lm_eval an incomplete last window also contains tokens of the window before; here only with --stride."""
    text = (TESTS / "README.md").read_text()
    return next(text[:end] for end in range(2 * CONTEXT, len(text)) if len(model.tok_encode(text[:end])) == 3 * CONTEXT)


def check_documents(build, folder, name):
    """lm_eval also predicts the first token, from the token that starts a text. ricci eval does so if the text has that token. If a tokenizer
    adds it, lm_eval also predicts it from a second one, unless add_bos_token is False."""
    model = lm_eval.models.huggingface.HFLM(pretrained=f"{folder}/{name}_hf", device="cpu", batch_size=64, add_bos_token=False)
    start = "" if name == "llama" else model.tokenizer.decode(model.prefix_token_id)
    documents = [*DOCUMENTS, long_document(model)]
    pages = pathlib.Path(f"{folder}/{name}_pages.jsonl")
    pages.write_text("".join(json.dumps({"page": text}) + "\n" for text in documents))
    task = local(pages.stem, pages, output_type="loglikelihood_rolling", doc_to_text="", doc_to_target="{{page}}", process_results=process_results,
                 metric_list=[{"metric": each} for each in ("word_perplexity", "byte_perplexity", "bits_per_byte")])
    theirs, samples = evaluate(model, task)
    nats = words = size = 0
    for sample, text in zip(sorted(samples, key=lambda each: each["doc_id"]), documents, strict=True):
        path = pathlib.Path(f"{folder}/{name}.txt")
        path.write_bytes((start + text).encode())
        ours = json.loads(run(build, "eval", f"{folder}/{name}", "--data", path, "--words", "--json"))[0]
        (log_probability, their_words), (_, their_size) = sample["word_perplexity"], sample["byte_perplexity"]
        assert (ours["words"], ours["bytes"] - len(start)) == (their_words, their_size), (text, ours, their_words, their_size)
        close(f"{text!r}: log-probability", -ours["nats_per_token"] * ours["tokens"], log_probability)
        if not start:
            close(f"{text!r}: perplexity of a word", math.log(ours["word_perplexity"]), -log_probability / their_words)
            close(f"{text!r}: bits per byte", ours["bits_per_byte"], -log_probability / their_size / math.log(2))
        nats, words, size = nats + ours["nats_per_token"] * ours["tokens"], words + ours["words"], size + ours["bytes"] - len(start)
    close(f"{name}: perplexity of a word", math.exp(nats / words), theirs["word_perplexity,none"])
    close(f"{name}: perplexity of a byte", math.exp(nats / size), theirs["byte_perplexity,none"])
    close(f"{name}: bits per byte", nats / size / math.log(2), theirs["bits_per_byte,none"])
    print(f"{name}: word perplexity {theirs['word_perplexity,none']:.6g}, bits per byte {theirs['bits_per_byte,none']:.4f}")


# ---- The models: folder/NAME is the run, folder/NAME_hf the model for transformers
def exported(build, folder, name):
    keys = ["tokenizer=bpe", "model.vocab=400", "model.preset=gpt", "model.d=32", "model.layers=2", "model.heads=2", f"model.ctx={CONTEXT}", "batch=4",
            "eos=document", "steps=60", "sample.tokens=0", "threads=1"]
    run(build, "train", f"name={name}", f"runs={folder}", f"data={TESTS / 'README.md'}", *keys)
    run(build, "convert", "export", f"{folder}/{name}", f"{folder}/{name}_hf")


def imported(config, tokenizer, start, is_added):
    def make(build, folder, name):
        transformers.set_seed(1)
        transformers.AutoModelForCausalLM.from_config(config).save_pretrained(f"{folder}/{name}_hf")
        description = json.loads((TOKENIZERS / tokenizer).read_text())
        special = {"SpecialToken": {"id": start, "type_id": 0}}
        if is_added:
            description["post_processor"] = {"type": "TemplateProcessing", "single": [special, {"Sequence": {"id": "A", "type_id": 0}}],
                                             "pair": [special, {"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
                                             "special_tokens": {start: {"id": start, "ids": [0], "tokens": [start]}}}
        pathlib.Path(f"{folder}/{name}_hf/tokenizer.json").write_text(json.dumps(description))
        keys = {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": start, "eos_token": "<|endoftext|>"}
        pathlib.Path(f"{folder}/{name}_hf/tokenizer_config.json").write_text(json.dumps(keys))
        run(build, "convert", "import", f"{folder}/{name}_hf", f"{folder}/{name}")
    return make


MODELS = {
    "exported": exported,
    "gpt2": imported(transformers.GPT2Config(vocab_size=600, n_positions=CONTEXT, n_embd=32, n_layer=2, n_head=2, initializer_range=0.3, bos_token_id=0, eos_token_id=0), "gpt2.json", "<|endoftext|>", False),
    "llama": imported(transformers.LlamaConfig(vocab_size=600, max_position_embeddings=CONTEXT, hidden_size=32, intermediate_size=48, num_hidden_layers=2,
                                               num_attention_heads=2, initializer_range=0.3, bos_token_id=0, eos_token_id=2), "llama3.json", "<|begin_of_text|>", True),
}

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        for name, make in MODELS.items():
            make(sys.argv[1], folder, name)
            model = lm_eval.models.huggingface.HFLM(pretrained=f"{folder}/{name}_hf", device="cpu", batch_size=64)
            for questions in TASKS if name == "exported" else [plain]:
                check_choices(sys.argv[1], folder, model, name, questions)
            if name != "exported":
                check_documents(sys.argv[1], folder, name)
