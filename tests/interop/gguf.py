#!/usr/bin/env python3
"""Runs as GGUF files, against the packages that read such files.
    gguf.py BUILD     each kind of numbers: the tensors as the gguf package reads them, the ids and logits of llama.cpp
Needs gguf and numpy, and for the second half llama-cpp-python, in a virtual environment outside of this tree; what is missing is named."""
import json, os, pathlib, subprocess, sys, tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path = [p for p in sys.path if pathlib.Path(p or ".").resolve() != HERE]  # this file has the package's name
try:
    import numpy as np
    from gguf import GGUFReader, GGMLQuantizationType, quants
except ImportError as missing:
    print(f"skipped: {missing.name} is not installed")
    sys.exit(77)
try:
    import llama_cpp
except ImportError:
    llama_cpp = None
TEXTS = ["the quick brown fox", " It's 2026, isn't it?\n\n", "caf\u00e9 12345", "a<|endoftext|>b"]


def run(build, *words, data=None):
    done = subprocess.run([f"{build}/{words[0]}", *words[1:]], capture_output=True, input=data)
    assert done.returncode == 0, (words, done.stderr.decode())
    return done.stdout.decode()


def train(build, folder, name, *keys):
    open(f"{folder}/text.txt", "w").write("".join(p.read_text() for p in sorted(HERE.parents[1].glob("*/README.md"))))
    run(build, "ricci-train", f"name={name}", f"runs={folder}", f"data={folder}/text.txt", "steps=20", "batch=4", "model.ctx=64", "sample.tokens=0",
        "lr=1e-2", "threads=1", "eval_every=20", *keys)
    return f"{folder}/{name}"


def tensors(path):
    """By our names: safetensors, read by hand, as f32."""
    data = open(path, "rb").read()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    return {n: np.frombuffer(data[8 + size + t["data_offsets"][0] : 8 + size + t["data_offsets"][1]], "<f4").reshape(t["shape"])
            for n, t in header.items() if n != "__metadata__"}


def ours(name):
    for theirs, here in (("token_embd", "tok"), ("position_embd", "pos"), ("output_norm", "ln_f"), ("attn_norm", "ln1"), ("attn_qkv", "mixer.qkv"),
                         ("attn_output", "mixer.proj"), ("ffn_norm", "ln2"), ("ffn_up", "fc"), ("ffn_down", "fc_out"), ("output", "head"), ("blk.", "blocks.")):
        if theirs in name:
            name = name.replace(theirs, here, 1)
            if theirs == "output_norm" or theirs == "attn_output":
                break
    return name.replace("blk.", "blocks.")


def check_tensors(file, run_folder, numbers):
    weights, seen = tensors(f"{run_folder}/model.safetensors"), 0
    for tensor in GGUFReader(file).tensors:
        expected = weights.get(ours(tensor.name))
        if expected is None:
            assert tensor.name.endswith(".bias") and not tensor.data.any(), tensor.name
            continue
        seen += 1
        kind = tensor.tensor_type
        wanted = {"f32": "F32", "f16": "F16", "bf16": "BF16", "q8_0": "Q8_0" if expected.shape[-1] % 32 == 0 else "F16"}[numbers]
        if expected.ndim < 2 or tensor.name == "position_embd.weight":
            wanted = "F32"
        assert kind == GGMLQuantizationType[wanted], (tensor.name, kind, wanted)
        assert quants.quantize(expected, kind).tobytes() == tensor.data.tobytes(), tensor.name
    assert seen == len(weights), (seen, len(weights))
    return seen


def check_llama_cpp(build, file, run_folder, tolerance, scratch):
    model = llama_cpp.Llama(file, n_ctx=64, logits_all=True, verbose=False, n_threads=1)
    worst = 0
    for text in TEXTS:
        ids = json.loads(run(build, "ricci-tokenize", "encode", "--jsonl", "--special", "--tokenizer", f"{run_folder}/tokenizer.json",
                             data=json.dumps({"text": text}).encode()))["ids"]
        theirs = model.tokenize(text.encode(), add_bos=True, special=True)
        assert theirs == ids, (text, theirs, ids)
        model.reset()
        model.eval(ids)
        logits = np.array(model.scores[: len(ids)])
        np.save(f"{scratch}/logits.npy", logits)
        worst = max(worst, float(np.abs(logits - reference(build, run_folder, ids, scratch)).max()))
    assert worst < tolerance, worst
    return worst


def reference(build, run_folder, ids, scratch):
    """Logits of ricci-probe."""
    config = open(f"{run_folder}/config.yaml").read().split("\n")
    start = config.index("model:")
    end = next((i for i in range(start + 1, len(config)) if not config[i].startswith(" ")), len(config))
    rows = len(tensors(f"{run_folder}/model.safetensors")["tok.weight"])
    lines = [f"  vocab: {rows}" if line.strip().startswith("vocab:") else line for line in config[start:end]]
    open(f"{scratch}/model.yaml", "w").write("\n".join(lines) + "\n")
    row = np.array([ids], "<i8")
    header = json.dumps({n: {"dtype": "I64", "shape": list(row.shape), "data_offsets": [i * row.nbytes, (i + 1) * row.nbytes]} for i, n in enumerate(("ids", "targets"))})
    header += " " * (-len(header) % 8)
    open(f"{scratch}/in.safetensors", "wb").write(len(header).to_bytes(8, "little") + header.encode() + row.tobytes() * 2)
    run(build, "ricci-probe", "--config", f"{scratch}/model.yaml", "--weights", f"{run_folder}/model.safetensors", "--input", f"{scratch}/in.safetensors",
        "--output", f"{scratch}/out.safetensors", "--dtype", "f32")
    return tensors_of(f"{scratch}/out.safetensors", "logits")[0]


def tensors_of(path, name):
    data = open(path, "rb").read()
    size = int.from_bytes(data[:8], "little")
    t = json.loads(data[8 : 8 + size])[name]
    return np.frombuffer(data[8 + size + t["data_offsets"][0] : 8 + size + t["data_offsets"][1]], {"F32": "<f4", "F64": "<f8"}[t["dtype"]]).reshape(t["shape"])


KINDS = {
    "gpt2": ["model.d=64", "tokenizer=TOKENIZERS/gpt2.json", "model.activation=gelu_tanh"],
    "gpt2_without_biases": ["model.d=48", "model.heads=3", "tokenizer=TOKENIZERS/smollm.json", "model.bias=false", "model.norm_bias=false", "model.vocab=420"],
    "gpt2_untied": ["model.d=64", "tokenizer=TOKENIZERS/llama3.json", "model.tie=false"],
}


def main(build):
    build = os.path.abspath(build)
    with tempfile.TemporaryDirectory() as scratch:
        os.chdir(scratch)
        for kind, keys in KINDS.items():
            folder = train(build, scratch, kind, "model.layers=2", *(["model.heads=2"] if kind != "gpt2_without_biases" else []),
                           *(k.replace("TOKENIZERS", str(HERE.parent / "data/tokenizers/small")) for k in keys))
            for numbers in ("f32", "f16", "bf16", "q8_0"):
                file = f"{scratch}/{kind}.{numbers}.gguf"
                run(build, "ricci-convert", "export", folder, file, "--gguf", numbers)
                line = f"{kind:20} {numbers:5} {check_tensors(file, folder, numbers)} tensors are those of the gguf package, byte for byte"
                if llama_cpp:
                    tolerance = 5e-3 if numbers == "f32" else 0.3  # the others are rounded
                    line += f"; llama.cpp: the same ids, logits within {check_llama_cpp(build, file, folder, tolerance, scratch):.1e}"
                print(line)
    if not llama_cpp:
        print("skipped: llama-cpp-python is not installed")


if __name__ == "__main__":
    main(sys.argv[1])
