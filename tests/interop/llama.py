#!/usr/bin/env python3
"""Llama, Qwen2 and Qwen3 of Hugging Face's transformers, with random weights, against ricci-convert.
    llama.py check BUILD     models of several kinds -> ricci -> back: logits, gradients and greedy texts here, logits there again
    llama.py make FOLDER     writes the small models and logits that tests/apps/interop/llama_test.cpp reads
Needs torch, transformers and safetensors, in a virtual environment outside of this tree; what is missing is named."""
import json, os, pathlib, subprocess, sys, tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path = [p for p in sys.path if pathlib.Path(p or ".").resolve() != HERE]  # other files here have names of packages
try:
    import torch, transformers
    from safetensors.torch import load_file, save_file
except ImportError as missing:
    print(f"skipped: {missing.name} is not installed")
    sys.exit(77)

transformers.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()
KINDS = {"llama": (transformers.LlamaConfig, transformers.LlamaForCausalLM, transformers.LlamaModel),
         "qwen2": (transformers.Qwen2Config, transformers.Qwen2ForCausalLM, transformers.Qwen2Model),
         "qwen3": (transformers.Qwen3Config, transformers.Qwen3ForCausalLM, transformers.Qwen3Model)}
TOKENIZER = HERE.parent / "data/tokenizers/small/smollm.json"
PROMPTS = ["the quick brown fox", " It's 2026, isn't it?"]


def build(kind, seed=1, bare=False, **keys):
    torch.manual_seed(seed)
    config_type, with_head, without_head = KINDS[kind]
    config = config_type(**keys)
    model = (without_head if bare else with_head)(config).eval()
    with torch.no_grad():  # larger than a fresh model's, and nowhere zero, so that every weight counts
        for name, p in model.named_parameters():
            p.copy_(torch.randn(p.shape) * 0.3 + 1 if "norm" in name else torch.randn(p.shape) * 0.9 / config.hidden_size**0.5)
    return model


def read_again(model, folder):
    """In f32: .to(bfloat16) rounded the frequencies of the rotation, too, which files do not hold."""
    return type(model).from_pretrained(folder, dtype=torch.float32).eval()


def logits_of(model, ids):
    if type(model).__name__.endswith("Model"):
        return model(ids).last_hidden_state @ model.embed_tokens.weight.T
    return model(ids).logits


def hub_form(folder):
    """config.json as the hub has it: rope_theta and rope_scaling in place of rope_parameters."""
    config = json.load(open(f"{folder}/config.json"))
    rope = config.pop("rope_parameters")
    config["rope_theta"] = rope.pop("rope_theta")
    if "rope_type" in rope and rope["rope_type"] == "linear":
        rope["type"] = rope.pop("rope_type")  # the older name
    config["rope_scaling"] = None if rope == {"rope_type": "default"} else rope
    config["torch_dtype"] = config.pop("dtype", "float32")
    json.dump(config, open(f"{folder}/config.json", "w"), indent=2)


def run(*words):
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, (words, done.stderr)
    return done.stdout


def probe(build_folder, run_folder, ids, targets, scratch):
    lines = open(f"{run_folder}/config.yaml").read().split("\n")
    start = lines.index("model:")
    end = next(i for i in range(start + 1, len(lines)) if not lines[i].startswith(" "))
    open(f"{scratch}/model.yaml", "w").write("\n".join(lines[start:end]) + "\n")
    save_file({"ids": ids, "targets": targets}, f"{scratch}/in.safetensors")
    run(f"{build_folder}/ricci-probe", "--config", f"{scratch}/model.yaml", "--weights", f"{run_folder}/model.safetensors",
        "--input", f"{scratch}/in.safetensors", "--output", f"{scratch}/out.safetensors", "--dtype", "f32")
    return load_file(f"{scratch}/out.safetensors")


def largest_gradient_error(model, ids, targets, ours):
    """Relative to the largest number of each gradient; theirs, put together as ours are."""
    model.zero_grad()
    torch.nn.functional.cross_entropy(logits_of(model, ids).flatten(0, 1), targets.flatten()).backward()
    theirs = {n.removeprefix("model."): p.grad for n, p in model.named_parameters()}

    def name(n, i):
        at = f"layers.{i}."
        for end in ("weight", "bias"):
            if n == f"mixer.qkv.{end}":
                return [f"{at}self_attn.{x}_proj.{end}" for x in "qkv"]
        return {"mixer.proj.weight": [at + "self_attn.o_proj.weight"], "mixer.q_norm.weight": [at + "self_attn.q_norm.weight"],
                "mixer.k_norm.weight": [at + "self_attn.k_norm.weight"], "fc.weight": [at + "mlp.gate_proj.weight", at + "mlp.up_proj.weight"],
                "fc_out.weight": [at + "mlp.down_proj.weight"], "ln1.weight": [at + "input_layernorm.weight"],
                "ln2.weight": [at + "post_attention_layernorm.weight"]}[n]

    worst, seen = 0, 0
    for full, grad in ours.items():
        if not full.startswith("grad."):
            continue
        part = full.removeprefix("grad.").split(".", 2)
        names = name(part[2], part[1]) if part[0] == "blocks" else [{"tok": "embed_tokens.weight", "ln_f": "norm.weight", "head": "lm_head.weight"}[part[0]]]
        expected = torch.cat([theirs[n] for n in names])
        worst = max(worst, ((grad - expected).abs().max() / expected.abs().max()).item())
        seen += len(names)
    assert seen == len(theirs), (seen, len(theirs))
    return worst


def same_texts(build_folder, model, run_folder):
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_file=str(TOKENIZER))
    for prompt in PROMPTS:
        ids = torch.tensor([tokenizer(prompt)["input_ids"]])
        written = model.generate(ids, max_new_tokens=24, do_sample=False, attention_mask=torch.ones_like(ids), pad_token_id=0,
                                 suppress_tokens=list(range(len(tokenizer), model.config.vocab_size)) or None)[0, ids.shape[1]:]
        lines = run(f"{build_folder}/ricci-generate", run_folder, "--prompt", prompt, "--tokens", "24", "--temperature", "0", "--jsonl", "--log-probabilities")
        ours = [token["id"] for token in json.loads(lines)["log_probabilities"]]
        assert ours == written.tolist()[: len(ours)] and len(ours) in (24, len(written), len(written) - 1), (prompt, ours, written.tolist())


def check(build_folder):
    pieces = 1 + max(max(json.load(open(TOKENIZER))["model"]["vocab"].values()), *(t["id"] for t in json.load(open(TOKENIZER))["added_tokens"]))
    base = dict(vocab_size=pieces, max_position_embeddings=128, hidden_size=48, intermediate_size=80, num_hidden_layers=3, num_attention_heads=4,
                num_key_value_heads=2, bos_token_id=None, eos_token_id=None, tie_word_embeddings=True)
    llama3 = dict(rope_type="llama3", rope_theta=5e5, factor=32.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=16)
    untied = dict(tie_word_embeddings=False)
    kinds = {
        "llama": ("llama", {}), "llama, hub": ("llama", dict(hub=True)), "llama untied": ("llama", untied),
        "llama, heads of 20": ("llama", dict(head_dim=20)), "llama, no groups": ("llama", dict(num_key_value_heads=4)),
        "llama linear, hub": ("llama", dict(hub=True, rope_parameters=dict(rope_type="linear", rope_theta=2e4, factor=3.0))),
        "llama linear": ("llama", dict(rope_parameters=dict(rope_type="linear", rope_theta=2e4, factor=3.0))),
        "llama3": ("llama", dict(rope_parameters=llama3)), "llama3, hub": ("llama", dict(hub=True, rope_parameters=llama3)),
        "llama, bf16": ("llama", dict(dtype=torch.bfloat16)), "llama, f16": ("llama", dict(dtype=torch.float16)),
        "llama, several files": ("llama", dict(shard="20KB", **untied)), "llama, no head": ("llama", dict(bare=True)),
        "llama, padded": ("llama", dict(vocab_size=pieces + 21)), "llama, eps 1e-3": ("llama", dict(rms_norm_eps=1e-3)),
        "llama, head twice": ("llama", dict(twice=True)),
        "qwen2": ("qwen2", dict(rope_parameters=dict(rope_type="default", rope_theta=1e6))),
        "qwen2, hub, untied": ("qwen2", dict(hub=True, **untied)), "qwen2, padded": ("qwen2", dict(vocab_size=pieces + 9, hidden_size=96)),
        "qwen3": ("qwen3", dict(head_dim=16, num_key_value_heads=1)),
        "qwen3, hub, untied": ("qwen3", dict(hub=True, head_dim=32, hidden_size=64, rope_parameters=dict(rope_type="default", rope_theta=1e6), **untied)),
    }
    worst = [0, 0, 0]
    for name, (kind, changes) in kinds.items():
        keys = base | changes
        shard, dtype, hub, twice = keys.pop("shard", "5GB"), keys.pop("dtype", torch.float32), keys.pop("hub", False), keys.pop("twice", False)
        model = build(kind, **keys).to(dtype)
        with tempfile.TemporaryDirectory() as scratch:
            model.save_pretrained(f"{scratch}/theirs", max_shard_size=shard)
            if hub:
                hub_form(f"{scratch}/theirs")
            if twice:
                weights = load_file(f"{scratch}/theirs/model.safetensors")
                save_file(weights | {"lm_head.weight": weights["model.embed_tokens.weight"].clone()}, f"{scratch}/theirs/model.safetensors", {"format": "pt"})
            (pathlib.Path(scratch) / "theirs/tokenizer.json").write_bytes(TOKENIZER.read_bytes())
            run(f"{build_folder}/ricci-convert", "import", f"{scratch}/theirs", f"{scratch}/run")
            run(f"{build_folder}/ricci-convert", "export", f"{scratch}/run", f"{scratch}/back")
            model = read_again(model, f"{scratch}/theirs")
            ids, targets = (torch.randint(0, model.config.vocab_size, (3, 100)) for _ in range(2))
            ours = probe(build_folder, f"{scratch}/run", ids, targets, scratch)
            again, report = transformers.AutoModelForCausalLM.from_pretrained(f"{scratch}/back", output_loading_info=True)
            assert not any(report[key] for key in ("missing_keys", "unexpected_keys", "mismatched_keys")), report
            assert again.config.model_type == kind, again.config
            with torch.no_grad():
                expected = logits_of(model, ids)
                errors = [(x - expected).abs().max().item() for x in (ours["logits"], logits_of(again.eval(), ids))]
            errors.append(largest_gradient_error(model, ids, targets, ours))
            if not keys.get("bare"):
                same_texts(build_folder, model, f"{scratch}/run")
            worst = [max(pair) for pair in zip(worst, errors)]
            print(f"{name:22} logits up to {expected.abs().max().item():6.2f}, error here {errors[0]:.1e}, there again {errors[1]:.1e}, gradients {errors[2]:.1e}")
            assert max(errors[:2]) < 1e-4 and errors[2] < 2e-4, (name, errors)
    print(f"{len(kinds)} kinds, largest errors: logits {worst[0]:.1e}, there again {worst[1]:.1e}, gradients {worst[2]:.1e}; the same greedy texts of 24 tokens")


def make(folder):
    small = dict(vocab_size=11, max_position_embeddings=9, hidden_size=8, intermediate_size=12, num_hidden_layers=2, num_attention_heads=2,
                 num_key_value_heads=1, bos_token_id=0, eos_token_id=[0, 3])
    llama3 = dict(rope_type="llama3", rope_theta=5e2, factor=4.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=16)
    for name, kind, dtype, changes in [("llama", "llama", torch.float32, dict(tie_word_embeddings=True, rope_parameters=llama3)),
                                       ("qwen2_bf16", "qwen2", torch.bfloat16, dict(hub=True, tie_word_embeddings=True)),
                                       ("qwen3", "qwen3", torch.float32, dict(head_dim=6, tie_word_embeddings=False))]:
        hub = changes.pop("hub", False)
        model = build(kind, seed=3, **small, **changes).to(dtype)
        place = f"{folder}/{name}"
        model.save_pretrained(place)
        if hub:
            hub_form(place)
        if os.path.exists(f"{place}/generation_config.json"):
            os.remove(f"{place}/generation_config.json")
        ids = torch.randint(0, 11, (2, 9), generator=torch.Generator().manual_seed(3))
        with torch.no_grad():
            save_file({"ids": ids, "logits": logits_of(read_again(model, place).double(), ids).double().contiguous()}, f"{place}/logits.safetensors")


if __name__ == "__main__":
    {"check": check, "make": make}[sys.argv[1]](sys.argv[2])
