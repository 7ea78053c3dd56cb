"""Calls of ricci's programs, for the scripts that compare them with other packages. Each script needs its packages in a virtual environment
outside this tree, and is skipped without them."""
import json
import pathlib
import subprocess
import sys

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path.append(str(TESTS / "golden"))
import stored

TOKENIZERS = TESTS / "data/tokenizers/small"
TEXTS = ["the quick brown fox", " It's 2026, isn't it?\n\n", "caf\u00e9 12345", "a<|endoftext|>b"]
MARKERS = ["<|im_start|>", "<|im_end|>", "<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"]


def skip_without(missing):
    print(f"skipped: needs the Python package {missing.name}")
    sys.exit(77)


def run(build, program, *words, data=None):
    done = subprocess.run([f"{build}/ricci-{program}", *map(str, words)], capture_output=True, text=True, input=data)
    assert done.returncode == 0, (program, words, done.stderr)
    return done.stdout


def chat_ids(build, tokenizer, template, talks):
    """The lines of ricci tokenize chat: ids, and the scored tokens."""
    words = [word for text in template for word in ("--template", text)]
    lines = run(build, "tokenize", "chat", "--tokenizer", tokenizer, *words, data="".join(json.dumps({"messages": talk}) + "\n" for talk in talks))
    return [json.loads(line) for line in lines.splitlines()]


def talk(draw, content):
    messages = [{"role": "system", "content": content(draw)}] if draw.random() < 0.4 else []
    for _ in range(draw.randrange(1, 5)):
        messages += [{"role": "user", "content": content(draw)}, {"role": "assistant", "content": content(draw)}]
    return messages[:-1] if draw.random() < 0.2 else messages


def train_on_talks(build, scratch, name, chat, talks, *keys):
    """A run trained on these talks, with all markers in its tokenizer."""
    with open(f"{scratch}/talks.jsonl", "w") as out:
        out.writelines(json.dumps({"messages": each}) + "\n" for each in talks)
    run(build, "tokenize", "train", f"{scratch}/talks.jsonl", "--format", "messages", "--vocab", "400", *(w for m in MARKERS for w in ("--special", m)), "-o", f"{scratch}/tokenizer.json")
    texts = json.dumps(chat, ensure_ascii=False).replace("\u2028", "\\u2028")
    run(build, "train", f"name={name}", f"runs={scratch}", f"data={scratch}/talks.jsonl", "format=messages", f"tokenizer={scratch}/tokenizer.json",
        f"chat={texts}", "model.preset=llama", "model.layers=1", "model.d=32", "model.heads=2", "model.ctx=512", "batch=2", "steps=1", "sample.tokens=0",
        "threads=1", *keys)
    return f"{scratch}/{name}"


def read_tensors(path):
    """{name: numpy array}"""
    import numpy as np
    return {name: np.asarray(values).reshape(shape) for name, (_, shape, values) in stored.read_safetensors(path).items()}


def probe(build, run_folder, ids, scratch, targets=None):
    """{logits, loss, grad.NAME: numpy array} of a run, in f32."""
    import numpy as np
    lines = pathlib.Path(f"{run_folder}/config.yaml").read_text().split("\n")
    start = lines.index("model:")
    end = next((i for i in range(start + 1, len(lines)) if not lines[i].startswith(" ")), len(lines))
    rows = len(read_tensors(f"{run_folder}/model.safetensors")["tok.weight"])
    model = ["model:", f"  vocab: {rows}", *(line for line in lines[start + 1:end] if not line.strip().startswith("vocab:"))]
    pathlib.Path(f"{scratch}/model.yaml").write_text("\n".join(model) + "\n")
    given = {"ids": ids, "targets": ids if targets is None else targets}
    stored.write_safetensors(f"{scratch}/in.safetensors", {name: ("I64", list(x.shape), np.asarray(x, "<i8")) for name, x in given.items()})
    run(build, "probe", "--config", f"{scratch}/model.yaml", "--weights", f"{run_folder}/model.safetensors", "--input", f"{scratch}/in.safetensors",
        "--output", f"{scratch}/out.safetensors", "--dtype", "f32")
    return read_tensors(f"{scratch}/out.safetensors")
