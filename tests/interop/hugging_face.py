#!/usr/bin/env python3
"""Hugging Face's GPT-2, Llama, Qwen2 and Qwen3 with random weights, compared with ricci convert.
    hugging_face.py check BUILD     models of several kinds -> ricci -> back: logits here and there again; gradients and greedy texts of all but GPT-2
    hugging_face.py make FOLDER     writes the small models that tests/apps/interop reads, and their logits in one file
Needs torch, transformers and safetensors."""
import json
import os
import pathlib
import sys
import tempfile

from ricci import TEXTS, TOKENIZERS, probe, run, skip_without

try:
    import torch
    import transformers
    from safetensors.torch import load_file, save_file
except ImportError as missing:
    skip_without(missing)

transformers.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()
TYPES = {"gpt2": (transformers.GPT2Config, transformers.GPT2LMHeadModel, transformers.GPT2Model),
         "llama": (transformers.LlamaConfig, transformers.LlamaForCausalLM, transformers.LlamaModel),
         "qwen2": (transformers.Qwen2Config, transformers.Qwen2ForCausalLM, transformers.Qwen2Model),
         "qwen3": (transformers.Qwen3Config, transformers.Qwen3ForCausalLM, transformers.Qwen3Model)}
TOKENIZER = TOKENIZERS / "smollm.json"


def build(kind, seed=1, bare=False, **keys):
    torch.manual_seed(seed)
    config_type, with_head, without_head = TYPES[kind]
    config = config_type(**keys)
    model = (without_head if bare else with_head)(config).eval()
    with torch.no_grad():  # larger than initial values and nowhere zero, so every weight has an effect
        for name, p in model.named_parameters():
            is_gain, noise = "norm" in name or "ln_" in name and name.endswith("weight"), torch.randn(p.shape)
            if is_gain and kind != "gpt2":
                p.copy_(noise * 0.3 + 1)
            else:
                p.copy_(noise * (0.6 if kind == "gpt2" else 0.9) / config.hidden_size**0.5 + is_gain)
    return model


def logits_of(model, ids):
    if model.get_output_embeddings() is None:
        return model(ids).last_hidden_state @ model.get_input_embeddings().weight.T
    return model(ids).logits


def hub_form(folder):
    """config.json in the hub's form: rope_theta and rope_scaling instead of rope_parameters."""
    config = json.load(open(f"{folder}/config.json"))
    rope = config.pop("rope_parameters")
    config["rope_theta"] = rope.pop("rope_theta")
    if "rope_type" in rope and rope["rope_type"] == "linear":
        rope["type"] = rope.pop("rope_type")  # the older name
    config["rope_scaling"] = None if rope == {"rope_type": "default"} else rope
    config["torch_dtype"] = config.pop("dtype", "float32")
    json.dump(config, open(f"{folder}/config.json", "w"), indent=2)


def save(folder, kind, dtype=torch.float32, hub=False, shard="5GB", twice=None, only_head=False, config=None, **keys):
    """Writes a model, and returns it as read in f32: .to(bfloat16) also rounds the rotation frequencies, which are not in files."""
    model = build(kind, **keys).to(dtype)
    model.save_pretrained(folder, max_shard_size=shard)
    if hub:
        hub_form(folder)
    if twice or only_head:
        weights = load_file(f"{folder}/model.safetensors")
        table = "transformer.wte.weight" if kind == "gpt2" else "model.embed_tokens.weight"
        weights["lm_head.weight"] = weights[table] * (twice or 1)
        if only_head:
            del weights[table]
        save_file(weights, f"{folder}/model.safetensors", {"format": "pt"})
    if config:
        own = json.load(open(f"{folder}/config.json")) | config
        json.dump(own, open(f"{folder}/config.json", "w"), indent=2)
    return type(model).from_pretrained(folder, dtype=torch.float32).eval()


def largest_gradient_error(model, ids, targets, ours):
    """Relative to the largest number of each gradient; theirs in our layout."""
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
        worst = max(worst, ((torch.tensor(grad) - expected).abs().max() / expected.abs().max()).item())
        seen += len(names)
    assert seen == len(theirs), (seen, len(theirs))
    return worst


def check_texts(build_folder, model, run_folder):
    """The same greedy texts of 24 tokens."""
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_file=str(TOKENIZER))
    for prompt in ("the quick brown fox", " It's 2026, isn't it?"):
        ids = torch.tensor([tokenizer(prompt)["input_ids"]])
        written = model.generate(ids, max_new_tokens=24, do_sample=False, attention_mask=torch.ones_like(ids), pad_token_id=0,
                                 suppress_tokens=list(range(len(tokenizer), model.config.vocab_size)) or None)[0, ids.shape[1]:]
        lines = run(build_folder, "generate", run_folder, "--prompt", prompt, "--tokens", "24", "--temperature", "0", "--jsonl")
        ours = json.loads(lines)
        theirs = tokenizer.decode(written.tolist()[: ours["tokens"] - (ours["end"] == "stop")], clean_up_tokenization_spaces=False)
        # Bytes that are not UTF-8 are shown differently.
        assert ours["text"].replace("\ufffd", "") == theirs.replace("\ufffd", ""), (prompt, ours, written.tolist())


def kinds():
    """{name: (type, changes)}"""
    pieces = len(transformers.PreTrainedTokenizerFast(tokenizer_file=str(TOKENIZER)))
    gpt2 = dict(vocab_size=11, n_positions=9, n_embd=8, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=0)
    base = dict(vocab_size=pieces, max_position_embeddings=128, hidden_size=48, intermediate_size=80, num_hidden_layers=3, num_attention_heads=4,
                num_key_value_heads=2, bos_token_id=None, eos_token_id=None, tie_word_embeddings=True)
    llama3 = dict(rope_type="llama3", rope_theta=5e5, factor=32.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=16)
    linear = dict(rope_type="linear", rope_theta=2e4, factor=3.0)
    far = dict(rope_type="default", rope_theta=1e6)
    untied, f16, bf16 = dict(tie_word_embeddings=False), dict(dtype=torch.float16), dict(dtype=torch.bfloat16)
    changes = {
        "gpt2": {}, "gpt2, gelu": dict(activation_function="gelu"), "gpt2, relu": dict(activation_function="relu"),
        "gpt2, gelu_pytorch_tanh": dict(activation_function="gelu_pytorch_tanh"), "gpt2, untied": untied, "gpt2, n_inner": dict(n_inner=20),
        "gpt2, one head": dict(n_head=1), "gpt2, no head": dict(bare=True), "gpt2, several files": dict(shard="2KB"), "gpt2, f16": f16, "gpt2, bf16": bf16,
        "gpt2, wider": dict(vocab_size=300, n_positions=64, n_embd=96, n_layer=4, n_head=6),
        "gpt2, 124M": dict(vocab_size=50257, n_positions=1024, n_embd=768, n_layer=12, n_head=12),
        "llama": {}, "llama, hub": dict(hub=True), "llama, untied": untied, "llama, heads of 20": dict(head_dim=20),
        "llama, no groups": dict(num_key_value_heads=4), "llama, linear, hub": dict(hub=True, rope_parameters=linear),
        "llama, linear": dict(rope_parameters=linear), "llama, llama3": dict(rope_parameters=llama3),
        "llama, llama3, hub": dict(hub=True, rope_parameters=llama3), "llama, bf16": bf16, "llama, f16": f16,
        "llama, several files": dict(shard="20KB", **untied), "llama, no head": dict(bare=True), "llama, padded": dict(vocab_size=pieces + 21),
        "llama, eps 1e-3": dict(rms_norm_eps=1e-3), "llama, head twice": dict(twice=1),
        "gpt2, own head": dict(twice=0.7), "llama, own head": dict(twice=1.5), "qwen2, own head": dict(twice=-1), "qwen3, own head": dict(twice=0.5, head_dim=16),
        "gpt2, only head": dict(only_head=True), "llama, only head": dict(only_head=True),
        "llama, rope_scaling next to it": dict(config=dict(rope_scaling=dict(rope_type="linear", factor=4.0))),
        "llama, rope_scaling and theta": dict(config=dict(rope_scaling=dict(type="linear", factor=2.0), rope_theta=700.0), rope_parameters=far),
        "qwen3, default over linear": dict(config=dict(rope_scaling=dict(rope_type="default", rope_theta=300.0)), rope_parameters=linear, head_dim=16),
        "llama, rope_scaling empty": dict(config=dict(rope_scaling={}), rope_parameters=linear),
        "qwen2": dict(rope_parameters=far), "qwen2, hub, untied": dict(hub=True, **untied), "qwen2, padded": dict(vocab_size=pieces + 9, hidden_size=96),
        "qwen3": dict(head_dim=16, num_key_value_heads=1),
        "qwen3, hub, untied": dict(hub=True, head_dim=32, hidden_size=64, rope_parameters=far, **untied),
    }
    return {name: (name.split(",")[0], (gpt2 if name.startswith("gpt2") else base) | of_kind) for name, of_kind in changes.items()}


def check(build_folder):
    worst = [0, 0, 0]
    for name, (kind, keys) in kinds().items():
        with tempfile.TemporaryDirectory() as scratch:
            model = save(f"{scratch}/theirs", kind, **keys)
            if kind != "gpt2":
                (pathlib.Path(scratch) / "theirs/tokenizer.json").write_bytes(TOKENIZER.read_bytes())
            run(build_folder, "convert", "import", f"{scratch}/theirs", f"{scratch}/run")
            run(build_folder, "convert", "export", f"{scratch}/run", f"{scratch}/back")
            rows = min(100, model.config.max_position_embeddings)
            ids, targets = (torch.randint(0, model.config.vocab_size, (3, rows)) for _ in range(2))
            ours = probe(build_folder, f"{scratch}/run", ids, scratch, targets)
            again, report = transformers.AutoModelForCausalLM.from_pretrained(f"{scratch}/back", output_loading_info=True)
            assert not any(report[key] for key in ("missing_keys", "unexpected_keys", "mismatched_keys")), report
            assert again.config.model_type == kind, again.config
            with torch.no_grad():
                expected = logits_of(model, ids)
                errors = [(x - expected).abs().max().item() for x in (torch.tensor(ours["logits"]), logits_of(again.eval(), ids))]
            if kind != "gpt2":
                errors.append(largest_gradient_error(model, ids, targets, ours))
                if not keys.get("bare"):
                    check_texts(build_folder, model, f"{scratch}/run")
            worst = [max(pair) for pair in zip(worst, [*errors, 0])]
            print(f"{name:22} logits up to {expected.abs().max().item():6.2f}; errors here, there again, of gradients: {' '.join(f'{e:.1e}' for e in errors)}")
            assert max(errors[:2]) < (1e-5 if kind == "gpt2" else 1e-4) and max(errors[2:], default=0) < 2e-4, (name, errors)
    print(f"{len(kinds())} kinds, largest errors: logits {worst[0]:.1e}, there again {worst[1]:.1e}, gradients {worst[2]:.1e}")
    check_tokenizers(build_folder)
    check_first_token(build_folder)


def check_tokenizers(build_folder):
    """A folder with a tokenizer of either form, exported and imported: equal ids."""
    description = json.load(open(TOKENIZERS / "gpt2.json"))
    theirs = transformers.PreTrainedTokenizerFast(tokenizer_file=str(TOKENIZERS / "gpt2.json"))
    for form in ("tokenizer.json", "vocab.json and merges.txt"):
        with tempfile.TemporaryDirectory() as scratch:
            pieces = description["model"]["vocab"] | {added["content"]: added["id"] for added in description["added_tokens"]}
            save(f"{scratch}/theirs", "gpt2", vocab_size=len(pieces), n_positions=9, n_embd=8, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=0)
            if form == "tokenizer.json":
                json.dump(description, open(f"{scratch}/theirs/tokenizer.json", "w"))
            else:
                json.dump(pieces, open(f"{scratch}/theirs/vocab.json", "w"))
                merges = [m if isinstance(m, str) else " ".join(m) for m in description["model"]["merges"]]
                pathlib.Path(f"{scratch}/theirs/merges.txt").write_text("#version: 0.2\n" + "\n".join(merges) + "\n")
            run(build_folder, "convert", "import", f"{scratch}/theirs", f"{scratch}/run")
            run(build_folder, "convert", "export", f"{scratch}/run", f"{scratch}/back")
            again = transformers.AutoTokenizer.from_pretrained(f"{scratch}/back")
            for text in TEXTS[: 3 if "merges" in form else 4]:
                assert again(text)["input_ids"] == theirs(text)["input_ids"], (form, text)
            config = transformers.AutoConfig.from_pretrained(f"{scratch}/back")
            assert config.eos_token_id == pieces["<|endoftext|>"], config
            print(f"tokenizer as {form}: the same ids there again")


def check_first_token(build_folder):
    """The token that starts a text, as in transformers, for templates, add_bos_token and tokenizer classes."""
    description, seen = json.load(open(TOKENIZERS / "gpt2.json")), 0
    mark = description["added_tokens"][0]["content"]
    template = {"SpecialToken": {"id": mark, "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}
    for order in ("", "A", "bA", "bAb", "Ab"):
        for added in ({}, {"add_bos_token": True}, {"add_bos_token": False}, {"add_eos_token": True}):
            for kind, name in (("llama", "PreTrainedTokenizerFast"), ("llama", "LlamaTokenizer"), ("qwen2", None), ("gpt2", "GPT2Tokenizer")):
                with tempfile.TemporaryDirectory() as scratch:
                    pieces = max(description["model"]["vocab"].values()) + 2
                    shape = dict(n_positions=9, n_embd=8, n_layer=1, n_head=2) if kind == "gpt2" else dict(
                        hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=2, max_position_embeddings=9)
                    save(f"{scratch}/theirs", kind, vocab_size=pieces, **shape)
                    single = [template["bA".index(part)] for part in order]
                    processor = {"type": "TemplateProcessing", "single": single, "pair": [], "special_tokens": {mark: {"id": mark, "ids": [0], "tokens": [mark]}}}
                    json.dump(description | {"post_processor": processor if order else None}, open(f"{scratch}/theirs/tokenizer.json", "w"))
                    config = {"bos_token": mark, "eos_token": mark, "tokenizer_class": name} | added
                    json.dump({k: v for k, v in config.items() if v is not None}, open(f"{scratch}/theirs/tokenizer_config.json", "w"))
                    theirs = transformers.AutoTokenizer.from_pretrained(f"{scratch}/theirs")("the")["input_ids"]
                    run(build_folder, "convert", "import", f"{scratch}/theirs", f"{scratch}/run")
                    line = run(build_folder, "tokenize", "encode", "--jsonl", "--special", "--tokenizer", f"{scratch}/run/tokenizer.json", data='{"text": "the"}')
                    ours = json.loads(line)["ids"]
                    assert ours == (theirs[:-1] if order.endswith("b") else theirs), (order, added, name, ours, theirs)
                    seen += 1
    print(f"{seen} folders with templates and add_bos_token: the first token of transformers")


def make(folder):
    gpt2 = dict(kind="gpt2", vocab_size=11, n_positions=9, n_embd=8, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=0)
    small = dict(vocab_size=11, max_position_embeddings=9, hidden_size=8, intermediate_size=12, num_hidden_layers=2, num_attention_heads=2,
                 num_key_value_heads=1, bos_token_id=0, eos_token_id=[0, 3])
    llama3 = dict(rope_type="llama3", rope_theta=5e2, factor=4.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=16)
    models = {
        "gpt2": gpt2, "untied_bf16": dict(dtype=torch.bfloat16, tie_word_embeddings=False, activation_function="gelu", **gpt2),
        "bare_f16": dict(dtype=torch.float16, bare=True, n_inner=12, activation_function="relu", **gpt2),
        "llama": dict(kind="llama", tie_word_embeddings=True, rope_parameters=llama3, **small),
        "qwen2_bf16": dict(kind="qwen2", dtype=torch.bfloat16, hub=True, tie_word_embeddings=True, **small),
        "qwen3": dict(kind="qwen3", head_dim=6, tie_word_embeddings=False, **small),
    }
    stored = load_file(f"{folder}/logits.safetensors") if os.path.exists(f"{folder}/logits.safetensors") else {}
    for name, keys in models.items():
        model = save(f"{folder}/{name}", seed=3, **keys)
        pathlib.Path(f"{folder}/{name}/generation_config.json").unlink(missing_ok=True)
        ids = torch.randint(0, 11, (2, 9), generator=torch.Generator().manual_seed(3))
        stored |= {f"{name}/ids": ids, f"{name}/logits": logits_of(model.double(), ids).detach().contiguous()}
    save_file(stored, f"{folder}/logits.safetensors")


if __name__ == "__main__":
    {"check": check, "make": make}[sys.argv[1]](sys.argv[2])
