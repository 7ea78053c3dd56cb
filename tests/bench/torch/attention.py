#!/usr/bin/env python3
"""Speed of PyTorch's flash attention in bf16: the reference for ricci-bench-attention, with the same measures.

Queries, keys and values are separate contiguous tensors, the fastest layout of PyTorch's kernel.

    torch/attention.py --device cuda [--batch 16 --context 1024 --heads 12] [--seconds 2]
"""
import argparse
import time

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel


def time_of(f, seconds):
    def calls(n):
        begin = time.perf_counter()
        for _ in range(n):
            f()
        torch.cuda.synchronize()
        return (time.perf_counter() - begin) / n

    calls(1)
    n = max(1, int(seconds / 5 / calls(1)))
    return min(calls(n) for _ in range(5))


def measure(args, width, causal):
    shape = (args.batch, args.heads, args.context, width)
    mask = "causal" if causal else "full"
    q, k, v = (torch.randn(shape, device=args.device, dtype=torch.bfloat16, requires_grad=True) for _ in range(3))
    dy = torch.randn(shape, device=args.device, dtype=torch.bfloat16)
    operations = 4 * args.batch * args.heads * width * args.context**2 / (2 if causal else 1)

    def report(what, work, seconds):
        print(f"measure {what}_hd{width}_{mask} {work / seconds * 1e-9:.1f} GFLOP/s", flush=True)

    def forward():
        with torch.no_grad():
            F.scaled_dot_product_attention(q, k, v, is_causal=causal)

    def forward_backward():
        torch.autograd.grad(F.scaled_dot_product_attention(q, k, v, is_causal=causal), (q, k, v), dy)

    with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
        report("forward", operations, time_of(forward, args.seconds))
        report("forward_backward", 3.5 * operations, time_of(forward_backward, args.seconds))


def main():
    parser = argparse.ArgumentParser(description="Speed of PyTorch's flash attention in bf16")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--context", type=int, default=1024)
    parser.add_argument("--heads", type=int, default=12)
    parser.add_argument("--seconds", type=float, default=2, help="of each measure")
    args = parser.parse_args()
    for width in (64, 128):
        for causal in (True, False):
            measure(args, width, causal)


if __name__ == "__main__":
    main()
