#!/usr/bin/env python3
"""Runs as GGUF files, compared with the packages that read such files.
    gguf_files.py BUILD     each kind of numbers: the tensors as the gguf package reads them, the ids and logits of llama.cpp
Needs gguf and numpy, and for the second half llama-cpp-python."""
import json
import os
import sys
import tempfile

from ricci import TESTS, TEXTS, TOKENIZERS, chat_ids, probe, read_tensors, run, skip_without, train_on_talks

try:
    import numpy as np
    from gguf import GGUFReader, GGMLQuantizationType, quants
except ImportError as missing:
    skip_without(missing)
try:
    import llama_cpp
except ImportError:
    llama_cpp = None


def train(build, folder, name, *keys):
    with open(f"{folder}/text.txt", "w") as out:
        out.writelines(path.read_text() for path in sorted(TESTS.parent.glob("*/README.md")))
    run(build, "train", f"name={name}", f"runs={folder}", f"data={folder}/text.txt", "steps=20", "batch=4", "model.ctx=64", "sample.tokens=0",
        "lr=1e-2", "threads=1", "eval_every=20", *keys)
    return f"{folder}/{name}"


NAMES = {"token_embd": "tok", "position_embd": "pos", "output_norm": "ln_f", "output": "head", "attn_norm": "ln1", "ffn_norm": "ln2", "attn_qkv": "mixer.qkv",
         "attn_output": "mixer.proj", "attn_q_norm": "mixer.q_norm", "attn_k_norm": "mixer.k_norm", "ffn_down": "fc_out"}


def find(weights, name, heads, kv_heads, width, gated, permuted):
    """Our tensor for their name, or None."""
    block, part, end = ("blocks." + name.split(".")[1] + ".", *name.split(".")[2:]) if name.startswith("blk.") else ("", *name.split("."))
    if part in ("attn_q", "attn_k", "attn_v"):
        qkv, q, kv = weights.get(f"{block}mixer.qkv.{end}"), heads * width, kv_heads * width
        if qkv is None:
            return None
        rows, count = {"attn_q": (qkv[:q], heads), "attn_k": (qkv[q : q + kv], kv_heads), "attn_v": (qkv[q + kv :], 0)}[part]
        return rows.reshape(count, 2, width // 2, -1).swapaxes(1, 2).reshape(rows.shape) if permuted and count else rows
    fc = weights.get(f"{block}fc.{end}")
    if part == "ffn_gate" or part == "ffn_up" and gated:
        return fc[: len(fc) // 2] if part == "ffn_gate" else fc[len(fc) // 2 :]
    return fc if part == "ffn_up" else weights.get(f"{block}{NAMES[part]}.{end}")


def check_keys(reader, kind, config):
    """The keys that llama.cpp reads, compared with the run's."""
    get = lambda key: reader.fields[key].contents() if key in reader.fields else None
    arch = get("general.architecture")
    assert arch == kind.split("_")[0], arch
    expected = {"block_count": 2, "context_length": 64, "embedding_length": int(config["d"]), "attention.head_count": int(config["heads"]),
                "feed_forward_length": 96}
    if arch != "gpt2":
        width = int(config["head_width"]) if config["head_width"] != "null" else int(config["d"]) // int(config["heads"])
        kv = int(config["kv_heads"]) if config["kv_heads"] != "null" else int(config["heads"])
        expected |= {"attention.head_count_kv": kv, "attention.key_length": width, "attention.value_length": width, "rope.dimension_count": width,
                     "rope.freq_base": float(config["rope_theta"]), "vocab_size": reader.tensors[0].data.shape[0]}
        assert abs(get(f"{arch}.attention.layer_norm_rms_epsilon") - float(config["norm_eps"])) < 1e-9
        linear = config.get("rope_scaling") == "linear"
        expected |= {"rope.scaling.type": "linear" if linear else None, "rope.scaling.factor": float(config["rope_factor"]) if linear else None}
    for key, value in expected.items():
        assert get(f"{arch}.{key}") == value, (key, get(f"{arch}.{key}"), value)
    return expected


def model_keys(run_folder):
    """The keys of the file, which omits defaults."""
    lines = open(f"{run_folder}/config.yaml").read().split("\n")
    return {"head_width": "null", "kv_heads": "null", "rope_theta": "10000"} | dict(line.strip().split("  #")[0].split(": ", 1) for line in lines if line.startswith("  ") and ": " in line)


def check_tensors(file, run_folder, numbers, kind):
    weights, seen, reader, config = read_tensors(f"{run_folder}/model.safetensors"), 0, GGUFReader(file), model_keys(run_folder)
    keys = check_keys(reader, kind, config)
    heads = keys["attention.head_count"], keys.get("attention.head_count_kv"), keys.get("attention.key_length")
    for tensor in reader.tensors:
        if tensor.name == "rope_freqs.weight":  # a C++ test computes them; here llama.cpp's logits depend on them
            continue
        expected = find(weights, tensor.name, *heads, "gpt2" not in kind, "llama" in kind)
        if expected is None:
            assert tensor.name.endswith(".bias") and not tensor.data.any(), tensor.name
            continue
        seen += expected.size
        kind_of = tensor.tensor_type
        wanted = {"f32": "F32", "f16": "F16", "bf16": "BF16", "q8_0": "Q8_0" if expected.shape[-1] % 32 == 0 else "F16"}[numbers]
        if expected.ndim < 2 or tensor.name == "position_embd.weight":
            wanted = "F32"
        assert kind_of == GGMLQuantizationType[wanted], (tensor.name, kind_of, wanted)
        assert quants.quantize(expected, kind_of).tobytes() == tensor.data.tobytes(), tensor.name
    assert seen == sum(w.size for w in weights.values()), "weights are missing"
    return len(reader.tensors)


def check_llama_cpp(build, file, run_folder, tolerance, scratch):
    model = llama_cpp.Llama(file, n_ctx=64, logits_all=True, verbose=False, n_threads=1)
    worst = 0
    for text in TEXTS:
        ids = json.loads(run(build, "tokenize", "encode", "--jsonl", "--special", "--tokenizer", f"{run_folder}/tokenizer.json",
                             data=json.dumps({"text": text})))["ids"]
        theirs = model.tokenize(text.encode(), add_bos=True, special=True)
        assert theirs == ids, (text, theirs, ids)
        model.reset()
        model.eval(ids)
        logits = np.array(model.scores[: len(ids)])
        worst = max(worst, float(np.abs(logits - probe(build, run_folder, np.array([ids]), scratch)["logits"][0]).max()))
    assert worst < tolerance, worst
    return worst


ROPE = ["model.preset=llama", "model.d=64", "model.norm_eps=1e-6", "model.kv_heads=2"]
LLAMA3 = ["model.rope_scaling=llama3", "model.rope_factor=4", "model.rope_trained_ctx=32", "model.rope_theta=500"]
KINDS = {
    "gpt2": ["model.d=64", "model.heads=2", "tokenizer=TOKENIZERS/gpt2.json", "model.activation=gelu_tanh"],
    "gpt2_without_biases": ["model.d=48", "model.heads=3", "tokenizer=TOKENIZERS/smollm.json", "model.bias=false", "model.norm_bias=false", "model.vocab=420"],
    "gpt2_untied": ["model.d=64", "model.heads=2", "tokenizer=TOKENIZERS/llama3.json", "model.tie=false"],
    "llama": [*ROPE, "model.heads=4", "tokenizer=TOKENIZERS/smollm.json"],
    "llama_llama3": [*ROPE, *LLAMA3, "model.heads=4", "tokenizer=TOKENIZERS/llama3.json", "model.tie=false"],
    "llama_linear": [*ROPE, "model.heads=2", "model.head_width=48", "model.rope_scaling=linear", "model.rope_factor=3", "tokenizer=TOKENIZERS/smollm.json", "model.vocab=420"],
    "qwen2": [*ROPE, "model.heads=8", "model.qkv_bias=true", "model.rope_theta=1e6", "tokenizer=TOKENIZERS/gpt2.json"],
    "qwen2_linear": [*ROPE, "model.heads=4", "model.qkv_bias=true", "model.rope_scaling=linear", "model.rope_factor=2", "tokenizer=TOKENIZERS/gpt2.json"],
    "qwen3": [*ROPE, "model.heads=4", "model.qk_norm=true", "model.head_width=24", "model.tie=false", "tokenizer=TOKENIZERS/gpt2.json"],
}


TALKS = [[{"role": role, "content": text} for role, text in talk] for talk in (
    [("user", "the quick fox")],
    [("system", " Be \"kind\".\n"), ("user", "it's a 'test' \\ \\n"), ("assistant", " caf\u00e9 "), ("user", "im_end")])]
CHATS = {"chatml": ["chatml"], "llama3": ["llama3"],
         "own": ["<|im_start|>", "sys '{content}'\n", 'Q: "{content}"\n\\', "A:\u00e9 {content}<|im_end|>\n", "<|im_end|>", "A:\u00e9 "]}


# Texts of tokens that end a text in llama.cpp without a key; the first list also names the end of an answer.
ANSWER_ENDS = {"<|eot_id|>", "<|im_end|>", "<|end|>", "<end_of_turn>", "<|endoftext|>", "<|end_of_text|>", "<EOT>", "_<EOT>", "[EOT]", "<end_of_utterance>",
               "<\uff5cend\u2581of\u2581sentence\uff5c>"}
OTHER_ENDS = {"<|return|>", "<|call|>", "<|flush|>", "<|calls|>", "</s>", "<|eom_id|>", "[EOS]", "<eos>", "<turn|>", "<|tool_response>", "[e~[", "<|fim_pad|>",
              "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]", "<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<REPO>", "<reponame>", "<|file_sep|>"}


def ends_in_llama_cpp(get):
    """The begin of a text and the ids that end one, as in llama.cpp's src/llama-vocab.cpp for a tokenizer of the model gpt2."""
    tokens, ids = get["tokenizer.ggml.tokens"], {}
    assert get["tokenizer.ggml.model"] == "gpt2" and len(set(tokens)) == len(tokens)
    for name, default in (("bos", 11), ("eos", 11), ("eot", None), ("eom", None)):
        default = default if default is not None and default < len(tokens) else None
        key = get.get(f"tokenizer.ggml.{name}_token_id", default)
        ids[name] = key if key is not None and key < len(tokens) else default
    named = {i for i, token in enumerate(tokens) if token in ANSWER_ENDS | OTHER_ENDS}
    return ids["bos"], {ids[name] for name in ("eos", "eot", "eom") if ids[name] is not None} | named, named


def ends_of_run(build, folder, file):
    """Exports the run, and returns the texts of llama.cpp's begin and ends; each end is a mark or in no text."""
    run(build, "convert", "export", folder, file, "--gguf", "f32")
    get = {key: field.contents() for key, field in GGUFReader(file).fields.items()}
    tokens, types = get["tokenizer.ggml.tokens"], get["tokenizer.ggml.token_type"]
    begin, ends, named = ends_in_llama_cpp(get)
    if llama_cpp:
        model = llama_cpp.Llama(file, n_ctx=64, verbose=False)
        vocabulary = llama_cpp.llama_model_get_vocab(model.model)
        assert {i for i in range(model.n_vocab()) if llama_cpp.llama_vocab_is_eog(vocabulary, i)} == ends, (folder, ends)
    for end in ends | {begin}:
        assert types[end] in (3, 4, 5) or tokens[end] == "\u00ff", (folder, end, tokens[end])  # control, added, no token; or the byte 0xFF
    return tokens[begin], {tokens[end] for end in ends - named}, {tokens[end] for end in named}


def check_ends(build, scratch, name, strings):
    """The token that ends an answer also ends it in the file."""
    answer = {"role": "assistant", "content": "yes"}
    folder = train_on_talks(build, scratch, f"chat_{name}", strings, [[*talk, answer] for talk in TALKS * 20])
    _, ends, named = ends_of_run(build, folder, f"{scratch}/{name}.gguf")
    assert {"llama3": "<|eot_id|>"}.get(name, "<|im_end|>") in ends | named, (name, ends)


def check_texts(build, scratch):
    """Runs on a text and on documents, with and without an end; llama.cpp's ends are the run's, or in no text."""
    for kind, keys, expected in (("plain", [], ("\u00ff", {"\u00ff"}, set())), ("padded", ["tokenizer=TOKENIZERS/gpt2.json", "model.vocab=999"], None),
                                 ("llama", [*ROPE, "model.heads=4"], ("\u00ff", {"\u00ff"}, set())),
                                 ("known", ["eos=document"], ("<eos>", set(), {"<eos>"}))):
        given = [] if any("tokenizer=" in key for key in keys) else ["tokenizer=bpe", "model.vocab=300"]
        folder = train(build, scratch, f"text_{kind}", "model.layers=1", *([] if kind == "llama" else ["model.d=32", "model.heads=2"]), *given,
                       *(key.replace("TOKENIZERS", str(TOKENIZERS)) for key in keys))
        found = ends_of_run(build, folder, f"{scratch}/text_{kind}.gguf")
        assert expected is None or found == expected, (kind, found)
    print("runs on a text: llama.cpp ends it where the run does, or at a token that no text has")


def check_chat(build, scratch, name, strings):
    """The file's template, filled in by Jinja and encoded by llama.cpp, gives the ids of ricci tokenize chat for messages without markers."""
    model = llama_cpp.Llama(f"{scratch}/{name}.gguf", n_ctx=256, verbose=False, n_threads=1)
    written = model.metadata["tokenizer.chat_template"]
    jinja = llama_cpp.llama_chat_format.Jinja2ChatFormatter(written, eos_token="", bos_token="", add_generation_prompt=False)
    for talk, line in zip(TALKS, chat_ids(build, f"{scratch}/tokenizer.json", strings, TALKS), strict=True):
        theirs = model.tokenize(jinja(messages=talk).prompt.encode(), add_bos=False, special=True)
        assert theirs == line["ids"], (name, theirs, line)
    return len(TALKS)


def main(build):
    build = os.path.abspath(build)
    with tempfile.TemporaryDirectory() as scratch:
        os.chdir(scratch)
        for kind, keys in KINDS.items():
            folder = train(build, scratch, kind, "model.layers=2", "model.ff=96", *(k.replace("TOKENIZERS", str(TOKENIZERS)) for k in keys))
            for numbers in ("f32", "f16", "bf16", "q8_0"):
                file = f"{scratch}/{kind}.{numbers}.gguf"
                run(build, "convert", "export", folder, file, "--gguf", numbers)
                line = f"{kind:20} {numbers:5} {check_tensors(file, folder, numbers, kind)} tensors are those of the gguf package, byte for byte"
                if llama_cpp:
                    tolerance = 5e-3 if numbers == "f32" else 0.3  # the others are rounded
                    line += f"; llama.cpp: the same ids, logits within {check_llama_cpp(build, file, folder, tolerance, scratch):.1e}"
                print(line)
        for name, strings in CHATS.items():
            check_ends(build, scratch, name, strings)
            if llama_cpp:
                print(f"{name:20} {check_chat(build, scratch, name, strings)} conversations have the same ids in llama.cpp")
        check_texts(build, scratch)
        print(f"{len(CHATS)} templates: the token that ends an answer is in the file")
    if not llama_cpp:
        print("skipped: llama-cpp-python is not installed")


if __name__ == "__main__":
    main(sys.argv[1])
