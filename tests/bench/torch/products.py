#!/usr/bin/env python3
"""The products of a linear layer in PyTorch, for the rows of products.cpp.

    torch/products.py [name ...] [--steps N] [--dtype f32|bf16] [--device cpu|cuda] [--threads N]

A row is a layer's name, or NAME_dx or NAME_dw. Each product is one call of torch.matmul, which sums in f32; in bf16 it also rounds dw.
Prints "measure NAME VALUE UNIT"; the speed has two FLOPs per multiplication.
"""
import torch

import steps

LAYERS = {f"d{d}": (d, d, 2048) for d in (512, 528, 768, 784, 1024, 1040, 2048, 2064)}  # outputs, inputs, tokens
LAYERS |= {"nano_12x64_up": (512, 128, 768), "gpt2_4x256_qkv": (2304, 768, 1024), "gpt2_4x256_up": (3072, 768, 1024),
           "gpt2_4x256_down": (768, 3072, 1024), "msa_20x512_ff": (512, 512, 10240), "square_8192": (8192, 8192, 8192)}
GPT2 = {"qkv": (2304, 768), "proj": (768, 768), "up": (3072, 768), "down": (768, 3072), "head": (50304, 768)}
LAYERS |= {f"gpt2_16x1024_{name}": (*extents, 16384) for name, extents in GPT2.items()}
PARTS = ("", "_dx", "_dw")
ROWS = {name + part: (name, part) for name in LAYERS for part in PARTS}


def measure(row, args):
    name, part = ROWS[row]
    outputs, inputs, tokens = LAYERS[name]
    dtype = torch.bfloat16 if args.dtype == "bf16" else torch.float32
    x_km, w_nm, y_kn = (torch.randn(shape, device=args.device, dtype=dtype) for shape in ((tokens, inputs), (outputs, inputs), (tokens, outputs)))
    dw_nm = torch.empty_like(w_nm)
    left, right, result = {"": (x_km, w_nm.T, y_kn), "_dx": (y_kn, w_nm, x_km), "_dw": (y_kn.T, x_km, dw_nm)}[part]

    def step():
        torch.matmul(left, right, out=result)
        steps.wait(args.device)

    median = steps.measure(row, args, step)
    print(f"measure {row}_speed {2e-9 * tokens * outputs * inputs / median:.1f} GFLOP/s", flush=True)


def main():
    args = steps.arguments(__doc__, [name + part for name in LAYERS if name.startswith("d") for part in PARTS], 1,
                           lambda parser: parser.add_argument("--device", default="cpu"))
    for name in args.names:
        measure(name, args)


if __name__ == "__main__":
    main()
