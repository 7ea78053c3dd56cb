#!/usr/bin/env python3
"""Training speed of a GPT in current PyTorch, at its best: the reference for ricci-bench-training on a GPU.

Pre-norm GPT with biases, GELU (tanh), tied embeddings and learned positions; a step is forward, backward, clipping to
norm 1 and fused AdamW on random tokens that are already on the device. As in ricci the vocabulary is padded to
a multiple of 64. f32 computes every product in f32 (TF32 off);
bf16 is autocast over f32 weights. Attention is scaled_dot_product_attention. Measured through torch.compile and, after
that, plain; warm-up and compilation are not counted. One that fails, for want of memory for example, does not stop the other.

    torch/train.py --dtype bf16 --batch 64 [--vocab 50304 --layers 12 --heads 12 --width 768 --context 1024] [--seconds 15]
                   [--kinds compiled]

Prints lines "measure NAME VALUE UNIT": tokens per second, and the most memory that tensors held. The exit code is 1 when
nothing could be measured.
"""
import argparse
import contextlib
import gc
import sys
import time

import torch
import torch.nn.functional as F


class Block(torch.nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm_1, self.norm_2 = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)
        self.qkv, self.proj = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)
        self.up, self.down = torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width)

    def forward(self, x_bcd):
        b, c, d = x_bcd.shape
        q, k, v = (y.view(b, c, self.heads, -1).transpose(1, 2) for y in self.qkv(self.norm_1(x_bcd)).split(d, -1))
        y_bnck = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x_bcd = x_bcd + self.proj(y_bnck.transpose(1, 2).reshape(b, c, d))
        return x_bcd + self.down(F.gelu(self.up(self.norm_2(x_bcd)), approximate="tanh"))


class Gpt(torch.nn.Module):
    def __init__(self, args):
        super().__init__()
        self.tok = torch.nn.Embedding(args.vocab, args.width)
        self.pos = torch.nn.Embedding(args.context, args.width)
        self.blocks = torch.nn.ModuleList(Block(args.width, args.heads) for _ in range(args.layers))
        self.norm = torch.nn.LayerNorm(args.width)
        for p in self.parameters():
            if p.dim() == 2:
                torch.nn.init.normal_(p, std=0.02)

    def forward(self, ids_bc, targets_bc):
        x_bcd = self.tok(ids_bc) + self.pos.weight[:ids_bc.shape[1]]
        for block in self.blocks:
            x_bcd = block(x_bcd)
        logits_bcv = F.linear(self.norm(x_bcd), self.tok.weight)
        return F.cross_entropy(logits_bcv.flatten(0, 1).float(), targets_bc.flatten())


def measure(args, name):
    """Prints speed and memory. Steps until args.seconds have passed; every fifth waits for the device, so the host does not run ahead."""
    torch.manual_seed(1)
    torch._dynamo.reset()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    model = Gpt(args).to("cuda")
    loss_of = torch.compile(model) if name == "compiled" else model
    optimizer = torch.optim.AdamW(model.parameters(), lr=6e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
    ids_bc = torch.randint(args.vocab, (args.batch, args.context + 1), device="cuda")
    autocast = torch.autocast("cuda", torch.bfloat16) if args.dtype == "bf16" else contextlib.nullcontext()

    def five_steps():
        for _ in range(5):
            optimizer.zero_grad(set_to_none=True)
            with autocast:
                loss = loss_of(ids_bc[:, :-1], ids_bc[:, 1:])
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=True)
            optimizer.step()
        torch.cuda.synchronize()

    five_steps()
    steps, begin = 0, time.perf_counter()
    while time.perf_counter() - begin < args.seconds:
        five_steps()
        steps += 5
    speed = steps * args.batch * args.context / (time.perf_counter() - begin)
    print(f"measure {name}_speed {speed:.0f} tokens/s")
    print(f"measure {name}_memory {torch.cuda.max_memory_allocated() * 1e-6:.1f} MB", flush=True)


def parse_arguments():
    parser = argparse.ArgumentParser(description="training speed of a GPT in PyTorch")
    parser.add_argument("--dtype", default="f32", choices=["f32", "bf16"])
    parser.add_argument("--seconds", type=float, default=15, help="of each measurement")
    parser.add_argument("--kinds", nargs="+", choices=["compiled", "plain"], default=["compiled", "plain"])  # the reference first: time is limited
    sizes = {"vocab": 50304, "layers": 12, "heads": 12, "width": 768, "context": 1024, "batch": 16}
    for name, default in sizes.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    return parser.parse_args()


def main():
    args = parse_arguments()
    torch.set_float32_matmul_precision("highest")
    print(f"torch {torch.__version__}, {args}", flush=True)
    measured = 0
    for name in args.kinds:
        try:
            measure(args, name)
            measured += 1
        except Exception as error:  # out of memory, or an error of the compiler
            print(f"{name} failed: {type(error).__name__}: {(str(error).strip().splitlines() or [''])[0]}", flush=True)
        gc.collect()  # the error held the model and its activations
    sys.exit(measured == 0)


if __name__ == "__main__":
    main()
