#!/usr/bin/env python3
"""Writes optimizers.safetensors from torch.optim: the expected updates of three parameters in f64.

Each case has CASE/p0..p2 (the values at the start), g0..g2 (K steps of gradients, step first) and x0..x2 (the values after
each step). p0 decays, p1 and p2 do not. The settings are the metadata, CASE/lr and so on.

Muon's cases have four matrices with decay. p3 has the rows of q, k and v, separate parameters in PyTorch. PyTorch
computes the Newton-Schulz steps in bf16, here in f64.

    python3 tests/golden/make_optimizers.py        # needs torch
"""
import pathlib

import torch

import make_cases
import stored

STEPS = 12
SHAPES = [(3, 4), (4,), (2,)]
CASES = {
    "adamw": (torch.optim.AdamW, dict(lr=0.02, betas=(0.9, 0.95), eps=1e-6), 0.1),
    "adam": (torch.optim.Adam, dict(lr=0.02, betas=(0.8, 0.99), eps=1e-8), 0.3),
    "sgd": (torch.optim.SGD, dict(lr=0.05), 0.2),
    "sgd_momentum": (torch.optim.SGD, dict(lr=0.05, momentum=0.9), 0.2),
    "sgd_nesterov": (torch.optim.SGD, dict(lr=0.05, momentum=0.8, nesterov=True), 0.2),
}
MUON_STEPS = 20
MUON_SHAPES = [[(3, 3)], [(4, 2)], [(2, 4)], [(3, 3), (2, 3), (2, 3)]]
MUON_CASES = {
    "muon": (dict(lr=0.02, momentum=0.95, nesterov=True), 0.1),
    "muon_plain": (dict(lr=0.05, momentum=0.8, nesterov=False), 0.0),
    "muon_match": (dict(lr=0.01, momentum=0.9, nesterov=True, ns_steps=4, adjust_lr_fn="match_rms_adamw"), 0.3),
}


def settings(options, weight_decay):
    flat = {k: v for k, v in options.items() if k != "betas"}
    if "betas" in options:
        flat["beta1"], flat["beta2"] = options["betas"]
    flat["weight_decay"] = weight_decay
    return {k: v if isinstance(v, str) else repr(v) for k, v in flat.items() if v is not False}


def run(make, options, weight_decay):
    generator = torch.Generator().manual_seed(3)
    draw = lambda shape: torch.randn(shape, generator=generator, dtype=torch.float64)
    parameters = [torch.nn.Parameter(draw(s)) for s in SHAPES]
    tensors = {f"p{i}": p.detach().clone() for i, p in enumerate(parameters)}
    gradients = [draw((STEPS, *s)) for s in SHAPES]
    groups = [{"params": parameters[:1], "weight_decay": weight_decay}, {"params": parameters[1:], "weight_decay": 0.0}]
    optimizer = make(groups, **options)
    values = [[] for _ in SHAPES]
    for step in range(STEPS):
        for p, g in zip(parameters, gradients):
            p.grad = g[step].clone()
        optimizer.step()
        for p, history in zip(parameters, values):
            history.append(p.detach().clone())
    for i in range(len(SHAPES)):
        tensors[f"g{i}"] = gradients[i]
        tensors[f"x{i}"] = torch.stack(values[i])
    return tensors


def run_muon(options, weight_decay):
    generator = torch.Generator().manual_seed(4)
    draw = lambda shape: torch.randn(shape, generator=generator, dtype=torch.float64)
    tensors = {}
    for i, parts in enumerate(MUON_SHAPES):
        parameters = [torch.nn.Parameter(draw(s)) for s in parts]
        packed = lambda: torch.cat([p.detach().clone() for p in parameters])
        tensors[f"p{i}"], gradients, values = packed(), [], []
        optimizer = torch.optim.Muon(parameters, weight_decay=weight_decay, **options)
        for step in range(MUON_STEPS):
            for p in parameters:
                p.grad = draw(p.shape)
            gradients.append(torch.cat([p.grad for p in parameters]))
            optimizer.step()
            values.append(packed())
        tensors[f"g{i}"], tensors[f"x{i}"] = torch.stack(gradients), torch.stack(values)
    return tensors


if __name__ == "__main__":
    tensors, metadata = {}, {}
    for name, (make, options, weight_decay) in CASES.items():
        tensors |= {f"{name}/{key}": make_cases.to_stored(tensor) for key, tensor in run(make, options, weight_decay).items()}
        metadata |= {f"{name}/{key}": value for key, value in settings(options, weight_decay).items()}
    torch.bfloat16 = torch.float64
    for name, (options, weight_decay) in MUON_CASES.items():
        tensors |= {f"{name}/{key}": make_cases.to_stored(tensor) for key, tensor in run_muon(options, weight_decay).items()}
        metadata |= {f"{name}/{key}": value for key, value in settings(options, weight_decay).items()}
    stored.write_safetensors(pathlib.Path(__file__).parent / "optimizers.safetensors", tensors, metadata)
