#!/usr/bin/env python3
"""nanoGPT's published CPU recipe on tinyshakespeare in current PyTorch, at its best.

4 layers, 4 heads, d 128, context 64, batch 12, 2000 iterations, GELU (erf), pre-norm, tied embeddings, learned
positions, no dropout, no biases (layer norms have a gain only); AdamW 1e-3 -> 1e-4 (cosine, warm-up 100), betas .9
and .99, weight decay .1 on 2-D parameters, eps 1e-8, clip 1.0; N(0, .02), residual writers / sqrt(2 layers).
Text split 90/10 by characters, random crops; at the end the loss over the full validation split in non-overlapping
windows of 64, every target scored once, and in windows that overlap by half.

    torch/shakespeare.py --threads 2 --seed 1 [--compile MODE] [--data input.txt] [--json out.json]
        [--context 64 --batch 12] [--only-train]

Prints nats of the validation loss, seconds of the training loop (without imports, data and evaluation), of its
first iteration (the compilation, with --compile) and of the whole process since its start.
"""
import argparse
import json
import math
import os
import pathlib
import statistics
import time

import torch
import torch.nn.functional as F

LAYERS, HEADS, WIDTH, CONTEXT, BATCH = 4, 4, 128, 64, 12
PEAK_RATE, LAST_RATE, WARM_UP = 1e-3, 1e-4, 100


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm_1 = torch.nn.LayerNorm(WIDTH, bias=False)
        self.qkv = torch.nn.Linear(WIDTH, 3 * WIDTH, bias=False)
        self.proj = torch.nn.Linear(WIDTH, WIDTH, bias=False)
        self.norm_2 = torch.nn.LayerNorm(WIDTH, bias=False)
        self.up = torch.nn.Linear(WIDTH, 4 * WIDTH, bias=False)
        self.down = torch.nn.Linear(4 * WIDTH, WIDTH, bias=False)

    def forward(self, x_btd):
        b, t, d = x_btd.shape
        q, k, v = (y.view(b, t, HEADS, d // HEADS).transpose(1, 2) for y in self.qkv(self.norm_1(x_btd)).split(d, -1))
        y_bntk = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x_btd = x_btd + self.proj(y_bntk.transpose(1, 2).reshape(b, t, d))
        return x_btd + self.down(F.gelu(self.up(self.norm_2(x_btd))))


class CharacterModel(torch.nn.Module):
    def __init__(self, vocab):
        super().__init__()
        self.tok = torch.nn.Embedding(vocab, WIDTH)
        self.pos = torch.nn.Embedding(CONTEXT, WIDTH)
        self.blocks = torch.nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm = torch.nn.LayerNorm(WIDTH, bias=False)
        for name, p in self.named_parameters():
            if p.dim() == 2:
                writer = name.endswith(("proj.weight", "down.weight"))
                torch.nn.init.normal_(p, std=0.02 / math.sqrt(2 * LAYERS) if writer else 0.02)

    def forward(self, ids_bt, targets_bt, reduction="mean"):
        x_btd = self.tok(ids_bt) + self.pos.weight[:ids_bt.shape[1]]
        for block in self.blocks:
            x_btd = block(x_btd)
        logits_btv = F.linear(self.norm(x_btd), self.tok.weight)
        return F.cross_entropy(logits_btv.flatten(0, 1), targets_bt.flatten(), reduction=reduction)


def read_splits(path):
    """Character ids of the training and validation text (90/10), and the vocabulary size."""
    text = path.read_text(encoding="utf-8")
    index = {character: i for i, character in enumerate(sorted(set(text)))}
    ids = torch.tensor([index[character] for character in text])
    cut = int(len(text) * 0.9)
    return ids[:cut], ids[cut:], len(index)


def learning_rate(step, iterations):
    if step < WARM_UP:
        return PEAK_RATE * (step + 1) / (WARM_UP + 1)
    done = (step - WARM_UP) / max(1, iterations - WARM_UP)
    return LAST_RATE + 0.5 * (1.0 + math.cos(math.pi * done)) * (PEAK_RATE - LAST_RATE)


def make_optimizer(model):
    matrices = [p for p in model.parameters() if p.dim() >= 2]
    gains = [p for p in model.parameters() if p.dim() < 2]
    groups = [{"params": matrices, "weight_decay": 0.1}, {"params": gains, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=PEAK_RATE, betas=(0.9, 0.99), eps=1e-8, fused=True)


def train(model, ids, args):
    """Runs the loop; returns the seconds of every iteration."""
    optimizer = make_optimizer(model)
    parameters = list(model.parameters())
    step_model = torch.compile(model, mode=args.compile) if args.compile else model
    offsets = torch.arange(CONTEXT)
    seconds = []
    for step in range(args.iterations):
        begin = time.perf_counter()
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step, args.iterations)
        crops = torch.randint(len(ids) - CONTEXT, (BATCH, 1)) + offsets
        optimizer.zero_grad(set_to_none=True)
        loss = step_model(ids[crops], ids[crops + 1])
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0, foreach=True)
        optimizer.step()
        seconds.append(time.perf_counter() - begin)
        if (step + 1) % 500 == 0:
            print(f"iteration {step + 1}: training loss {loss.item():.4f}", flush=True)
    return seconds


@torch.inference_mode()
def validation_loss(model, ids):
    """Mean nats over every target of the split, windows of CONTEXT that do not overlap."""
    total, targets = 0.0, len(ids) - 1
    whole = targets // CONTEXT * CONTEXT
    windows = list(zip(ids[:whole].view(-1, CONTEXT).split(128), ids[1:whole + 1].view(-1, CONTEXT).split(128)))
    if whole < targets:
        windows.append((ids[None, whole:targets], ids[None, whole + 1:]))
    for given, wanted in windows:
        total += model(given, wanted, reduction="sum").double().item()
    return total / targets


@torch.inference_mode()
def sliding_loss(model, ids, stride):
    """With windows of CONTEXT that begin `stride` apart; each scores the targets that no earlier window scored."""
    total, targets = 0.0, len(ids) - 1
    starts = torch.arange(0, targets - CONTEXT + 1, stride)
    for some in starts.split(256):
        crops = some[:, None] + torch.arange(CONTEXT)
        nats_bt = model(ids[crops], ids[crops + 1], reduction="none").double().view(-1, CONTEXT)
        nats_bt[1 if some[0] == 0 else 0 :, : CONTEXT - stride] = 0
        total += nats_bt.sum().item()
    counted = CONTEXT + (len(starts) - 1) * stride
    if counted < targets:  # the end, in a window at a smaller distance
        nats_t = model(ids[None, -CONTEXT - 1 : -1], ids[None, -CONTEXT:], reduction="none").double()
        total += nats_t.flatten()[counted - targets :].sum().item()
    return total / targets


def seconds_since_start():
    """Age of this process, from the kernel's start time (resolution 10 ms)."""
    started = int(pathlib.Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
    return time.clock_gettime(time.CLOCK_BOOTTIME) - started / os.sysconf("SC_CLK_TCK")


def data_path(given):
    """The file as given, else under $RICCI_DATA."""
    path = pathlib.Path(given)
    return path if path.exists() else pathlib.Path(os.environ.get("RICCI_DATA", ".")) / given


def parse_arguments():
    parser = argparse.ArgumentParser(description="nanoGPT's CPU recipe in PyTorch: seconds and validation loss")
    parser.add_argument("--data", default="tinyshakespeare/input.txt", help="as given or under $RICCI_DATA")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--iterations", type=int, default=2000)
    parser.add_argument("--context", type=int, default=CONTEXT)
    parser.add_argument("--batch", type=int, default=BATCH)
    parser.add_argument("--only-train", action="store_true", help="without the losses at the end")
    parser.add_argument("--compile", nargs="?", const="default", help="torch.compile, with this mode if one is given")
    parser.add_argument("--json", type=pathlib.Path, help="write the result to this file")
    return parser.parse_args()


def main():
    global CONTEXT, BATCH
    args = parse_arguments()
    CONTEXT, BATCH = args.context, args.batch
    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    training, validation, vocab = read_splits(data_path(args.data))
    model = CharacterModel(vocab)
    begin = time.perf_counter()
    seconds = train(model, training, args)
    result = {"torch": torch.__version__, "seed": args.seed, "threads": args.threads, "iterations": args.iterations,
              "compile": args.compile, "vocab": vocab, "parameters": sum(p.numel() for p in model.parameters()),
              "train_seconds": time.perf_counter() - begin, "first_iteration_seconds": seconds[0],
              "median_iteration_ms": 1e3 * statistics.median(seconds)}
    if not args.only_train:
        result |= {"val_loss": validation_loss(model, validation), "val_loss_sliding": sliding_loss(model, validation, CONTEXT // 2)}
    result["process_seconds"] = seconds_since_start()
    for name, value in result.items():
        print(f"{name:24} {value}")
    if args.json:
        args.json.write_text(json.dumps(result) + "\n")


if __name__ == "__main__":
    main()
