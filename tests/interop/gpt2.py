#!/usr/bin/env python3
"""GPT-2 of Hugging Face's transformers, with random weights, against ricci-convert.
    gpt2.py check BUILD     models of several kinds -> ricci -> back: logits here and there, and that the files, tokenizers among them, load there again
    gpt2.py make FOLDER     writes the small models and logits that tests/apps/interop/gpt2_test.cpp reads
Needs torch, transformers and safetensors, in a virtual environment outside of this tree."""
import json, os, subprocess, sys, tempfile
import torch, transformers
from safetensors.torch import load_file, save_file

transformers.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()
SMALL = dict(vocab_size=11, n_positions=9, n_embd=8, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=0)


def build(seed=1, bare=False, **changes):
    torch.manual_seed(seed)
    config = transformers.GPT2Config(**(SMALL | changes))
    model = (transformers.GPT2Model if bare else transformers.GPT2LMHeadModel)(config).eval()
    with torch.no_grad():  # larger than a fresh model's, and nowhere zero, so that every weight counts
        for p in model.parameters():
            p.copy_(torch.randn(p.shape) * 0.6 / config.n_embd**0.5 + (1 if p.dim() == 1 and p.mean() > 0.5 else 0))
    return model


def logits_of(model, ids):
    with torch.no_grad():
        if isinstance(model, transformers.GPT2Model):
            return model(ids).last_hidden_state @ model.wte.weight.T
        return model(ids).logits


def run(*words):
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)


def ricci_logits(build_folder, run_folder, ids, scratch):
    config = open(f"{run_folder}/config.yaml").read().split("\n")
    start = config.index("model:")
    lines = [config[start]]
    for line in config[start + 1:]:
        if not line.startswith(" "):
            break
        lines.append(line)
    open(f"{scratch}/model.yaml", "w").write("\n".join(lines) + "\n")
    save_file({"ids": ids, "targets": ids.clone()}, f"{scratch}/in.safetensors")
    run(f"{build_folder}/ricci-probe", "--config", f"{scratch}/model.yaml", "--weights", f"{run_folder}/model.safetensors",
        "--input", f"{scratch}/in.safetensors", "--output", f"{scratch}/out.safetensors", "--dtype", "f32")
    return load_file(f"{scratch}/out.safetensors")["logits"]


def check(build_folder):
    kinds = {
        "as GPT-2 is": {}, "gelu": dict(activation_function="gelu"), "relu": dict(activation_function="relu"),
        "gelu_pytorch_tanh": dict(activation_function="gelu_pytorch_tanh"), "untied": dict(tie_word_embeddings=False),
        "n_inner": dict(n_inner=20), "one head": dict(n_head=1), "without a head": dict(bare=True), "several files": dict(shard="2KB"),
        "f16": dict(dtype=torch.float16), "bf16": dict(dtype=torch.bfloat16),
        "wider": dict(vocab_size=300, n_positions=64, n_embd=96, n_layer=4, n_head=6),
        "GPT-2 124M": dict(vocab_size=50257, n_positions=1024, n_embd=768, n_layer=12, n_head=12),
    }
    worst = 0
    for name, changes in kinds.items():
        changes = dict(changes)
        shard, dtype = changes.pop("shard", "5GB"), changes.pop("dtype", torch.float32)
        model = build(**changes).to(dtype)
        with tempfile.TemporaryDirectory() as scratch:
            model.save_pretrained(f"{scratch}/theirs", max_shard_size=shard)
            run(f"{build_folder}/ricci-convert", "import", f"{scratch}/theirs", f"{scratch}/run")
            run(f"{build_folder}/ricci-convert", "export", f"{scratch}/run", f"{scratch}/back")
            ids = torch.randint(0, model.config.vocab_size, (3, min(64, model.config.n_positions)))
            expected = logits_of(model.double(), ids)
            ours = ricci_logits(build_folder, f"{scratch}/run", ids, scratch)
            again, report = transformers.GPT2LMHeadModel.from_pretrained(f"{scratch}/back", output_loading_info=True)
            assert not any(report[key] for key in ("missing_keys", "unexpected_keys", "mismatched_keys")), report
            auto = transformers.AutoModelForCausalLM.from_pretrained(f"{scratch}/back")
            scale = expected.abs().max().item()
            errors = [((x - expected).abs().max().item()) for x in (ours, logits_of(again.eval(), ids), logits_of(auto.eval(), ids))]
            worst = max(worst, *errors)
            print(f"{name:20} logits up to {scale:7.3f}, error here {errors[0]:.1e}, there again {errors[1]:.1e}")
            assert max(errors) < 1e-5, (name, errors)
    print(f"{len(kinds)} kinds, largest error {worst:.1e}")
    check_tokenizers(build_folder)


def check_tokenizers(build_folder):
    """A folder with a tokenizer of either form, there and back: the same ids."""
    small = os.path.join(os.path.dirname(__file__), "../data/tokenizers/small/gpt2.json")
    description = json.load(open(small))
    texts = ["the quick brown fox", " It's 2026, isn't it?\n\n", "caf\u00e9 \u4f60\u597d \U0001f642", "a<|endoftext|>b"]
    for form in ("tokenizer.json", "vocab.json and merges.txt"):
        with tempfile.TemporaryDirectory() as scratch:
            pieces = description["model"]["vocab"] | {added["content"]: added["id"] for added in description["added_tokens"]}
            build(vocab_size=len(pieces)).save_pretrained(f"{scratch}/theirs")
            if form == "tokenizer.json":
                json.dump(description, open(f"{scratch}/theirs/tokenizer.json", "w"))
            else:
                json.dump(pieces, open(f"{scratch}/theirs/vocab.json", "w"))
                merges = [m if isinstance(m, str) else " ".join(m) for m in description["model"]["merges"]]
                open(f"{scratch}/theirs/merges.txt", "w").write("#version: 0.2\n" + "\n".join(merges) + "\n")
            expected = [transformers.PreTrainedTokenizerFast(tokenizer_file=small)(text)["input_ids"] for text in texts[: 3 if "merges" in form else 4]]
            run(f"{build_folder}/ricci-convert", "import", f"{scratch}/theirs", f"{scratch}/run")
            run(f"{build_folder}/ricci-convert", "export", f"{scratch}/run", f"{scratch}/back")
            again = transformers.AutoTokenizer.from_pretrained(f"{scratch}/back")
            assert [again(text)["input_ids"] for text in texts[: len(expected)]] == expected, form
            config = transformers.AutoConfig.from_pretrained(f"{scratch}/back")
            assert config.eos_token_id == pieces["<|endoftext|>"], config
            print(f"tokenizer as {form}: the same ids of {len(expected)} texts there again")


def make(folder):
    for name, dtype, changes in [("gpt2", torch.float32, {}), ("untied_bf16", torch.bfloat16, dict(tie_word_embeddings=False, activation_function="gelu")),
                                 ("bare_f16", torch.float16, dict(bare=True, n_inner=12, activation_function="relu"))]:
        model = build(seed=3, **changes).to(dtype)
        place = f"{folder}/{name}"
        model.save_pretrained(place)
        if os.path.exists(f"{place}/generation_config.json"):
            os.remove(f"{place}/generation_config.json")
        ids = torch.randint(0, model.config.vocab_size, (2, model.config.n_positions))
        save_file({"ids": ids, "logits": logits_of(model.double(), ids).contiguous()}, f"{place}/logits.safetensors")


if __name__ == "__main__":
    {"check": check, "make": make}[sys.argv[1]](sys.argv[2])
