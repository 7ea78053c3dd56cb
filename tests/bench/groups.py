#!/usr/bin/env python3
"""The time of a training step by groups of ops: the floor, ricci, PyTorch.

    groups.py BUILD [name ...] [--steps 5] [--dtype f32|bf16]

Run it with the Python that has PyTorch (tuned as in compare.py). BUILD contains ricci-bench-training with its
models. The floor of products and attention is their FLOPs over the peak, the floor of the rest is the bytes of its inputs and
outputs over the bandwidth; RICCI_TRACE measures both, the peak in f32. Data in cache can be faster than that.
"""
import argparse
import collections
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import compare

# group: ops of ricci's trace, ops of PyTorch's profile
GROUPS = {
    "products": (r"linear|classifier_loss (logits|dx|dw)", r"aten::(addmm|mm|bmm|linear|mkldnn_linear|_mkl_linear|sum)|mkldnn::"),
    "attention": (r"attention", r".*(scaled_dot_product|flash_attention)"),
    "activation": (r"gelu|relu|gated|silu", r"aten::(gelu|relu|silu|threshold|clamp_min)"),
    "norms": (r"layer_norm|residual_layer_norm|rms_norm|residual_rms_norm|rotary", r"aten::native_layer_norm|aten::add$"),
    "cross-entropy": (r"classifier_loss", r"aten::(_?log_softmax|_log_softmax_backward|nll_loss|cross_entropy)"),
    "optimizer": (r"optimizer|gradient_norm", r"aten::(_fused_adam|_foreach|linalg_vector_norm|stack)|Optimizer"),
    "rest": (r"", r""),
}


def group_of(op, column):
    return next(group for group, patterns in GROUPS.items() if re.match(patterns[column], op))


def traced(args, name):
    """{group: [floor ms, ms]} of one step of ricci."""
    command = [str(pathlib.Path(args.build) / "ricci-bench-training"), f"--dtype={args.dtype}", f"--steps={args.steps}", name]
    text = subprocess.run(command, env=os.environ | {"RICCI_TRACE": "1"}, capture_output=True, text=True, check=True).stderr
    peak, bandwidth = map(float, re.search(r"peak (\d+) GFLOP/s f32, \w+ ([\d.]+) GB/s", text).groups())
    found = collections.defaultdict(lambda: [0.0, 0.0])
    for line in text.splitlines():
        match = re.match(r"(\S.*?)\s+\d+\s+([\d.]+)\s+[\d.]+%\s+[\d.]+(?:\s+([\d.]+)\s+[\d.]+%)?(?:\s+([\d.]+))?$", line)
        if not match or match[1] == "all":
            continue
        ms, flops, bytes_ = (float(value or 0) for value in match.groups()[1:])
        row = found[group_of(match[1], 0)]
        row[0] += ms / args.steps * (flops / peak if flops else bytes_ / bandwidth)
        row[1] += ms / args.steps
    return found


def profiled(args, name, folder):
    """{group: ms} of one step of PyTorch."""
    command, environment, option = compare.contestants(args, folder)["tuned"]
    text = subprocess.run(command + option.format(args.steps).split() + ["--profile", name], env=environment, capture_output=True, text=True, check=True).stdout
    found = collections.Counter()
    for line in text.splitlines():
        if line.startswith("op "):
            _, _, op, ms = line.split()
            found[group_of(op, 1)] += float(ms)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("names", nargs="*", default=["gpt2_4x256"])
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--dtype", choices=["f32", "bf16"], default="f32")
    args = parser.parse_args()
    args.bench, args.compile, args.peer, args.before, args.avx2 = "training", False, None, None, False
    with tempfile.TemporaryDirectory() as folder:
        for name in args.names:
            ours, theirs = traced(args, name), profiled(args, name, folder)
            floor, time = (sum(row[i] for row in ours.values()) for i in range(2))
            if floor > time:
                sys.exit(f"{name}: the floor of {floor:.1f} ms is above the step of {time:.1f} ms: peaks measured while other programs run are too low; run it again")
            print(f"{name}, ms per step\n{'group':<16}{'floor':>10}{'ricci':>10}{'PyTorch':>10}")
            for group in GROUPS:
                print(f"{group:<16}{ours[group][0]:>10.1f}{ours[group][1]:>10.1f}{theirs[group]:>10.1f}")
            print(f"{'all':<16}{floor:>10.1f}{time:>10.1f}{sum(theirs.values()):>10.1f}", flush=True)


if __name__ == "__main__":
    main()
