#!/usr/bin/env python3
"""Forward and backward of mixers in current PyTorch, for the rows of mixers.cpp.

    torch/mixers.py [name ...] [--steps N] [--dtype f32|bf16] [--device cpu|cuda] [--compile] [--threads N]

sdp is nn.MultiheadAttention's own path: one packed projection and scaled_dot_product_attention. metric is the shortest
composition: p = x W, q = p M with M made of its packed entries, and scaled_dot_product_attention with p as keys and
values. dispatcher is the paper's code: a roll, a mask and a product for every level; its mask is multiplied into the
coefficients once. shift_and_sum is only its loop, in one dtype, with the bytes of mixers.cpp. bf16 is autocast over f32 weights.
Prints "measure NAME VALUE UNIT".
"""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

import steps

TOKENS, WIDTH, LAYERS = 4096, 512, 6


class Sdp(nn.Module):
    def __init__(self, heads, context):
        super().__init__()
        self.heads, self.qkv, self.proj = heads, nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x_bcd):
        b, c, d = x_bcd.shape
        q, k, v = (y.view(b, c, self.heads, d // self.heads).transpose(1, 2) for y in self.qkv(x_bcd).split(d, dim=2))
        return self.proj(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, c, d))


class Metric(nn.Module):
    def __init__(self, heads, context):
        super().__init__()
        k = WIDTH // heads
        self.heads, self.proj_in, self.out = heads, nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)
        upper = torch.triu_indices(k, k)
        place = torch.zeros(k, k, dtype=torch.long)
        place[upper[0], upper[1]] = place[upper[1], upper[0]] = torch.arange(upper.shape[1])
        self.register_buffer("place", place.flatten(), persistent=False)
        self.m_metric = nn.Parameter(torch.eye(k)[upper[0], upper[1]].repeat(heads, 1) + 0.02 * torch.randn(heads, upper.shape[1]))

    def forward(self, x_bcd):
        b, c, d = x_bcd.shape
        k = d // self.heads
        p = self.proj_in(x_bcd).view(b, c, self.heads, k).transpose(1, 2)
        q = p @ self.m_metric[:, self.place].view(self.heads, k, k)
        return self.out(F.scaled_dot_product_attention(q, p, p, is_causal=True).transpose(1, 2).reshape(b, c, d))


class Dispatcher(nn.Module):
    def __init__(self, heads, context):
        super().__init__()
        levels = int(math.log2(context))
        self.heads, self.levels = heads, levels
        self.value, self.coef = nn.Linear(WIDTH, WIDTH, bias=False), nn.Linear(WIDTH, heads * levels, bias=False)
        self.out = nn.Linear(WIDTH, WIDTH, bias=False)
        positions = torch.arange(context).view(1, context, 1, 1)
        self.register_buffer("mask", (positions >= 2 ** torch.arange(levels)).float(), persistent=False)

    def forward(self, x_bcd):
        b, c, d = x_bcd.shape
        v = self.value(x_bcd).view(b, c, self.heads, d // self.heads)
        coef = torch.sigmoid(self.coef(x_bcd)).view(b, c, self.heads, self.levels) * self.mask
        for level in range(self.levels):
            v = v + coef[..., level:level + 1] * torch.roll(v, shifts=2 ** level, dims=1)
        return self.out(v.reshape(b, c, d))


MIXERS = {"sdp": Sdp, "metric": Metric, "dispatcher": Dispatcher}


class Block(nn.Module):
    def __init__(self, mixer, context):
        super().__init__()
        self.mixer, self.fc, self.fc_out = mixer(1, context), nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)
        self.ln1, self.ln2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)

    def forward(self, x_bcd):
        x_bcd = self.ln1(x_bcd + self.mixer(x_bcd))
        return self.ln2(x_bcd + self.fc_out(F.relu(self.fc(x_bcd))))


def shift_and_sum(v_bcd, coef_bcr):
    for level in range(coef_bcr.shape[2]):
        v_bcd = v_bcd + coef_bcr[..., level:level + 1] * torch.roll(v_bcd, shifts=2 ** level, dims=1)
    return v_bcd


def measure_shift_and_sum(args):
    batch, context, width, levels = 64, 1024, 768, 9
    dtype = torch.bfloat16 if args.dtype == "bf16" else torch.float32
    v_bcd, coef_bcr, dy_bcd = (
        torch.randn(batch, context, columns, device=args.device, dtype=dtype) for columns in (width, levels, width)
    )
    with torch.no_grad():  # positions before the first contribute nothing
        coef_bcr *= torch.arange(context, device=args.device).view(1, context, 1) >= 2 ** torch.arange(levels, device=args.device)
    run = torch.compile(shift_and_sum) if args.compile else shift_and_sum

    def forward():
        with torch.no_grad():
            run(v_bcd, coef_bcr)
        steps.wait(args.device)

    def forward_backward():
        inputs = [x.detach().requires_grad_() for x in (v_bcd, coef_bcr)]
        torch.autograd.grad(run(*inputs), inputs, dy_bcd)
        steps.wait(args.device)

    v_bytes, coef_bytes = (x.numel() * x.element_size() for x in (v_bcd, coef_bcr))
    moved = {forward: 2 * v_bytes + coef_bytes, forward_backward: 5 * v_bytes + 3 * coef_bytes}
    for step in moved:
        name = f"shift_and_sum_{step.__name__}"
        print(f"measure {name} {moved[step] / steps.measure(name, args, step) * 1e-9:.1f} GB/s", flush=True)


def rows():
    found = [f"stack_{mixer}_{n}" for n in (128, 512, 1024, 2048, 4096) for mixer in ("dispatcher", "sdp")]
    return found + [f"mixer_{mixer}_{n}" for n in (512, 1024) for mixer in ("sdp", "metric", "dispatcher")]


def measure(name, args):
    kind, mixer, context = name.split("_")
    context = int(context)
    torch.manual_seed(1)
    if kind == "stack":
        model = nn.Sequential(*(Block(MIXERS[mixer], context) for _ in range(LAYERS)))
    else:
        model = MIXERS[mixer](8, context)
    model.to(args.device)
    run = torch.compile(model) if args.compile else model
    x_bcd = torch.randn(TOKENS // context, context, WIDTH, device=args.device, requires_grad=kind == "mixer")
    dy_bcd = torch.randn(TOKENS // context, context, WIDTH, device=args.device)

    def step():
        for p in (*model.parameters(), x_bcd):
            p.grad = None
        with steps.autocast(args, args.device):
            y_bcd = run(x_bcd)
        y_bcd.backward(dy_bcd.to(y_bcd.dtype))
        steps.wait(args.device)

    steps.measure(name, args, step)


def main():
    args = steps.arguments(__doc__, rows(), 5, lambda parser: parser.add_argument("--device", default="cpu"))
    for name in args.names:
        measure_shift_and_sum(args) if name == "shift_and_sum" else measure(name, args)


if __name__ == "__main__":
    main()
