#!/usr/bin/env python3
"""Models with the names of the Dispatcher paper's repository, with random weights, against ricci-convert: logits of the definition in
PyTorch and of the imported run.
    dispatcher.py check BUILD [KIND ...]     kinds: attention, dispatcher; both if not given
    dispatcher.py make FOLDER                writes the models that tests/apps/interop/imports_test.cpp reads, and adds their logits to the others'
Needs torch and safetensors."""
import math
import os
import sys
import tempfile

from ricci import probe, run, skip_without

try:
    import torch
    from safetensors.torch import load_file, save_file
    from torch.nn.functional import layer_norm, relu
except ImportError as missing:
    skip_without(missing)

VOCAB, WIDTH, FEED_FORWARD, LAYERS, LEVELS = 11, 8, 12, 2, 4


def weights_of(kind):
    torch.manual_seed(5)
    draw = lambda *shape: torch.randn(*shape, dtype=torch.float64) * (0.6 / shape[-1] ** 0.5)
    w = {"encoder.weight": draw(VOCAB, WIDTH), "decoder.weight": draw(VOCAB, WIDTH), "decoder.bias": draw(VOCAB)}
    for i in range(LAYERS):
        at = f"transformer_encoder.layers.{i}."
        for norm in ("norm1", "norm2"):
            w[at + norm + ".weight"], w[at + norm + ".bias"] = 1 + draw(WIDTH), draw(WIDTH)
        w[at + "linear1.weight"], w[at + "linear1.bias"] = draw(FEED_FORWARD, WIDTH), draw(FEED_FORWARD)
        w[at + "linear2.weight"], w[at + "linear2.bias"] = draw(WIDTH, FEED_FORWARD), draw(WIDTH)
        at += "self_attn."
        if kind == "attention":
            w[at + "in_proj_weight"], w[at + "in_proj_bias"] = draw(3 * WIDTH, WIDTH), draw(3 * WIDTH)
            w[at + "out_proj.weight"], w[at + "out_proj.bias"] = draw(WIDTH, WIDTH), draw(WIDTH)
        else:
            w[at + "linear_in.weight"], w[at + "linear_out.weight"] = draw(WIDTH, WIDTH), draw(WIDTH, WIDTH)
            w[at + "internal_attention.weight"] = draw(LEVELS, WIDTH)
    return {name: tensor.float().double() for name, tensor in w.items()}


def sinusoids(length):
    position, pair = torch.arange(length, dtype=torch.float64)[:, None], torch.arange(0, WIDTH, 2, dtype=torch.float64)
    angles = position / 10000 ** (pair / WIDTH)
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(1)


def attend(x, w, heads):
    mixer = torch.nn.MultiheadAttention(WIDTH, heads, batch_first=True, dtype=torch.float64)
    mixer.load_state_dict(w)
    mask = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
    return mixer(x, x, x, attn_mask=mask, need_weights=False)[0]


def dispatch(x, w, _):
    values, coefficients = x @ w["linear_in.weight"].T, (x @ w["internal_attention.weight"].T).sigmoid()
    for level in range(coefficients.shape[-1]):
        before = torch.zeros_like(values)
        before[:, 2**level :] = values[:, : -(2**level)]
        values = values + coefficients[..., level : level + 1] * before
    return values @ w["linear_out.weight"].T


def logits_of(w, ids, mix, heads):
    x = w["encoder.weight"][ids] * math.sqrt(WIDTH) + sinusoids(ids.shape[1])
    for i in range(LAYERS):
        at = f"transformer_encoder.layers.{i}."
        of = lambda name: (w[at + name + ".weight"], w[at + name + ".bias"])
        x = layer_norm(x + mix(x, {n.removeprefix(at + "self_attn."): t for n, t in w.items() if n.startswith(at + "self_attn.")}, heads), (WIDTH,), *of("norm1"))
        hidden = relu(torch.nn.functional.linear(x, *of("linear1")))
        x = layer_norm(x + torch.nn.functional.linear(hidden, *of("linear2")), (WIDTH,), *of("norm2"))
    return x @ w["decoder.weight"].T + w["decoder.bias"]


def stored(w):
    return {name: tensor.float() for name, tensor in w.items()} | {"pos_encoder.pe": sinusoids(50)[:, None].float()}


def case(kind, heads):
    w, ids = weights_of(kind), torch.randint(0, VOCAB, (3, 2**LEVELS))
    with torch.no_grad():
        return w, ids, logits_of(w, ids, attend if kind == "attention" else dispatch, heads)


def check(build_folder, *kinds):
    for kind in kinds or ("attention", "dispatcher"):
        for heads in (1, 4) if kind == "attention" else (1,):
            w, ids, expected = case(kind, heads)
            with tempfile.TemporaryDirectory() as scratch:
                save_file(stored(w), f"{scratch}/theirs.safetensors")
                given = ["--heads", str(heads), "--context", str(2**LEVELS)] if kind == "attention" else []
                run(build_folder, "convert", "import", f"{scratch}/theirs.safetensors", f"{scratch}/run", *given)
                error = (torch.tensor(probe(build_folder, f"{scratch}/run", ids, scratch)["logits"]) - expected).abs().max().item()
                print(f"{kind:10} {heads} heads: logits up to {expected.abs().max().item():.3f}, error {error:.1e}")
                assert error < 1e-5, kind


def make(folder):
    logits = load_file(f"{folder}/logits.safetensors") if os.path.exists(f"{folder}/logits.safetensors") else {}
    for kind, heads in (("attention", 2), ("dispatcher", 1)):
        w, ids, expected = case(kind, heads)
        os.makedirs(f"{folder}/{kind}", exist_ok=True)
        save_file(stored(w), f"{folder}/{kind}/theirs.safetensors")
        logits |= {f"{kind}/ids": ids, f"{kind}/logits": expected.contiguous()}
    save_file(logits, f"{folder}/logits.safetensors")


if __name__ == "__main__":
    {"check": check, "make": make}[sys.argv[1]](*sys.argv[2:])
