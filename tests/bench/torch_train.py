#!/usr/bin/env python3
"""Training speed of a GPT in current PyTorch, at its best: the bar for ricci-train on a GPU.

Pre-norm GPT with biases, GELU (erf), tied embeddings and learned positions; a step is forward, backward, clipping to
norm 1 and fused AdamW on random tokens that are already on the device. f32 computes every product in f32 (TF32 off);
bf16 is autocast over f32 weights. Attention is scaled_dot_product_attention. Measured plain and through torch.compile;
warm-up and compilation are not counted.

    torch_train.py --dtype bf16 --vocab 96 [--layers 12 --heads 12 --width 768 --context 1024 --batch 16] [--seconds 15]

Prints lines "measure NAME TOKENS_PER_SECOND tokens/s".
"""
import argparse
import contextlib
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
        return x_bcd + self.down(F.gelu(self.up(self.norm_2(x_bcd))))


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


def tokens_per_second(args, compiled):
    """Steps until args.seconds have passed; every fifth waits for the device, so that the host does not run ahead."""
    torch.manual_seed(1)
    torch._dynamo.reset()
    model = Gpt(args).to(args.device)
    loss_of = torch.compile(model) if compiled else model
    optimizer = torch.optim.AdamW(model.parameters(), lr=6e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
    ids_bc = torch.randint(args.vocab, (args.batch, args.context + 1), device=args.device)
    autocast = torch.autocast(args.device, torch.bfloat16) if args.dtype == "bf16" else contextlib.nullcontext()
    wait = torch.cuda.synchronize if args.device == "cuda" else lambda: None

    def five_steps():
        for _ in range(5):
            optimizer.zero_grad(set_to_none=True)
            with autocast:
                loss = loss_of(ids_bc[:, :-1], ids_bc[:, 1:])
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=True)
            optimizer.step()
        wait()

    five_steps()
    steps, begin = 0, time.perf_counter()
    while time.perf_counter() - begin < args.seconds:
        five_steps()
        steps += 5
    return steps * args.batch * args.context / (time.perf_counter() - begin)


def parse_arguments():
    parser = argparse.ArgumentParser(description="training speed of a GPT in PyTorch")
    parser.add_argument("--device", default="cuda", choices=["cpu", "cuda"])
    parser.add_argument("--dtype", default="f32", choices=["f32", "bf16"])
    parser.add_argument("--seconds", type=float, default=15, help="of each measurement")
    sizes = {"vocab": 96, "layers": 12, "heads": 12, "width": 768, "context": 1024, "batch": 16}
    for name, default in sizes.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    return parser.parse_args()


def main():
    args = parse_arguments()
    torch.set_float32_matmul_precision("highest")
    print(f"torch {torch.__version__}, {args}", flush=True)
    for name in ["plain", "compiled"]:
        speed = tokens_per_second(args, name == "compiled")
        print(f"measure {args.dtype}_{name} {speed:.0f} tokens/s", flush=True)


if __name__ == "__main__":
    main()
