#!/usr/bin/env python3
"""Matrix products in PyTorch, for the rows of products.cpp with 16,384 tokens of GPT-2, which tells what they are.

    torch/products.py [name ...] [--steps N] [--dtype f32|bf16] [--device cpu|cuda] [--threads N]

A product of the forward has a result of the dtype, and the gradient of a weight, NAME_dw, too: torch.matmul sums in f32 and rounds.
Prints "measure NAME VALUE UNIT"; speed counts two operations for each pair of numbers that are multiplied.
"""
import torch

import steps

TOKENS = 16 * 1024
SHAPES = {"qkv": (2304, 768), "proj": (768, 768), "up": (3072, 768), "down": (768, 3072), "head": (50304, 768)}  # outputs, inputs
ROWS = {f"gpt2_16x1024_{name}{part}": (name, part) for name in SHAPES for part in ("", "_dw")}


def measure(row, args):
    name, part = ROWS[row]
    outputs, inputs = SHAPES[name]
    dtype = torch.bfloat16 if args.dtype == "bf16" else torch.float32
    x_kn = torch.randn(TOKENS, inputs, device=args.device, dtype=dtype)
    shape = (TOKENS, outputs) if part else (outputs, inputs)  # dy_km, or a weight_mn, as nn.Linear has it
    other = torch.randn(shape, device=args.device, dtype=dtype)

    def step():
        torch.matmul(other.T, x_kn) if part else torch.matmul(x_kn, other.T)
        steps.wait(args.device)

    median = steps.measure(row, args, step)
    print(f"measure {row}_speed {2e-9 * TOKENS * outputs * inputs / median:.1f} GFLOP/s", flush=True)


def main():
    args = steps.arguments(__doc__, list(ROWS), 1, lambda parser: parser.add_argument("--device", default="cpu"))
    for name in args.names:
        measure(name, args)


if __name__ == "__main__":
    main()
