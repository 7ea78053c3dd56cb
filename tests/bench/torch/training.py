#!/usr/bin/env python3
"""One training step in current PyTorch, for the models and shapes of training.cpp: forward, backward, gradient norm, AdamW.

    torch/training.py [name ...] [--steps N] [--dtype f32|bf16] [--compile] [--threads N] [--profile]

gpt2, nano: pre-norm blocks around scaled_dot_product_attention, tied head. msa: nn.TransformerEncoderLayer, untied head
with a bias. smollm2: LlamaForCausalLM of transformers with nine heads of three keys. bf16 is autocast over f32 weights.
Prints "measure NAME VALUE UNIT": the median and the fastest step, the processor time of a step, and the most memory the
process ever held. --profile adds "op NAME OP MS" for every op of a step, without the ops it calls.
"""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

import steps

# name: preset, vocabulary, width, heads, layers, feed-forward, batch, context, biases
CASES = {
    "nano_12x64": ("gpt", 65, 128, 4, 4, 512, 12, 64, False),
    "gpt2_4x64": ("gpt", 50257, 768, 12, 12, 3072, 4, 64, True),
    "gpt2_4x256": ("gpt", 50257, 768, 12, 12, 3072, 4, 256, True),
    "msa_20x512": ("msa", 28996, 512, 1, 6, 512, 20, 512, True),
    "smollm2_4x256": ("llama", 49152, 576, 9, 30, 1536, 4, 256, False),
}


class Block(nn.Module):
    def __init__(self, d, heads, ff, bias):
        super().__init__()
        self.heads, self.approximate = heads, "tanh" if bias else "none"
        self.ln1, self.ln2 = nn.LayerNorm(d, bias=bias), nn.LayerNorm(d, bias=bias)
        self.qkv, self.proj = nn.Linear(d, 3 * d, bias=bias), nn.Linear(d, d, bias=bias)
        self.fc, self.fc_out = nn.Linear(d, ff, bias=bias), nn.Linear(ff, d, bias=bias)

    def forward(self, x_bcd):
        b, c, d = x_bcd.shape
        q, k, v = (y.view(b, c, self.heads, d // self.heads).transpose(1, 2) for y in self.qkv(self.ln1(x_bcd)).split(d, dim=2))
        y_bnck = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x_bcd = x_bcd + self.proj(y_bnck.transpose(1, 2).reshape(b, c, d))
        return x_bcd + self.fc_out(F.gelu(self.fc(self.ln2(x_bcd)), approximate=self.approximate))


class Gpt(nn.Module):
    def __init__(self, vocab, d, heads, layers, ff, context, bias):
        super().__init__()
        self.tok, self.pos = nn.Embedding(vocab, d), nn.Embedding(context, d)
        self.blocks = nn.ModuleList(Block(d, heads, ff, bias) for _ in range(layers))
        self.ln_f = nn.LayerNorm(d, bias=bias)
        for p in self.parameters():
            if p.dim() > 1:
                nn.init.normal_(p, std=0.02)

    def forward(self, ids_bc, targets_bc):
        x_bcd = self.tok(ids_bc) + self.pos.weight[: ids_bc.shape[1]]
        for block in self.blocks:
            x_bcd = block(x_bcd)
        logits_bcv = F.linear(self.ln_f(x_bcd), self.tok.weight)
        return F.cross_entropy(logits_bcv.flatten(0, 1).float(), targets_bc.flatten())


class Msa(nn.Module):
    def __init__(self, vocab, d, heads, layers, ff, context, bias):
        super().__init__()
        self.tok, self.head = nn.Embedding(vocab, d), nn.Linear(d, vocab)
        self.blocks = nn.ModuleList(nn.TransformerEncoderLayer(d, heads, ff, dropout=0.0, activation="relu", batch_first=True) for _ in range(layers))
        angles = torch.arange(context).unsqueeze(1) * torch.exp(torch.arange(0, d, 2) * (-math.log(10000.0) / d))
        self.register_buffer("positions", torch.stack([angles.sin(), angles.cos()], dim=2).flatten(1), persistent=False)
        self.register_buffer("mask", torch.full((context, context), float("-inf")).triu(1), persistent=False)

    def forward(self, ids_bc, targets_bc):
        x_bcd = self.tok(ids_bc) * math.sqrt(self.positions.shape[1]) + self.positions
        for block in self.blocks:
            x_bcd = block(x_bcd, src_mask=self.mask, is_causal=True)
        return F.cross_entropy(self.head(x_bcd).flatten(0, 1).float(), targets_bc.flatten())


class Llama(nn.Module):
    def __init__(self, vocab, d, heads, layers, ff, context, bias):
        super().__init__()
        from transformers import LlamaConfig, LlamaForCausalLM  # only if this model is measured

        self.model = LlamaForCausalLM(LlamaConfig(vocab_size=vocab, hidden_size=d, num_attention_heads=heads, num_key_value_heads=heads // 3,
            num_hidden_layers=layers, intermediate_size=ff, max_position_embeddings=context, tie_word_embeddings=True, use_cache=False,
            attn_implementation="sdpa"))

    def forward(self, ids_bc, targets_bc):
        logits_bcv = self.model(ids_bc).logits
        return F.cross_entropy(logits_bcv.flatten(0, 1).float(), targets_bc.flatten())


MODELS = {"gpt": Gpt, "msa": Msa, "llama": Llama}


def measure(name, args):
    preset, vocab, d, heads, layers, ff, batch, context, bias = CASES[name]
    torch.manual_seed(1)
    model = MODELS[preset](vocab, d, heads, layers, ff, context, bias)
    loss_of = torch.compile(model) if args.compile else model
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, betas=(0.9, 0.99), weight_decay=0.1, fused=True)
    ids_bc, targets_bc = torch.randint(vocab, (batch, context)), torch.randint(vocab, (batch, context))

    loss = None

    def step():
        nonlocal loss
        optimizer.zero_grad(set_to_none=True)
        with steps.autocast(args, "cpu"):
            result = loss_of(ids_bc, targets_bc)
        result.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=True)
        optimizer.step()
        loss = result.item()

    median = steps.measure(name, args, step)
    print(f"measure {name}_speed {batch * context / median:.0f} tokens/s")
    print(f"measure {name}_loss {loss:.6f} nats", flush=True)
    if args.profile:
        profile(name, step, args.steps or 5)


def profile(name, step, steps):
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
        for _ in range(steps):
            step()
    for op in profiler.key_averages():
        print(f"op {name} {op.key.replace(' ', '_')} {op.self_cpu_time_total * 1e-3 / steps:.4f}", flush=True)


def main():
    args = steps.arguments(__doc__, list(CASES), 10, lambda parser: parser.add_argument("--profile", action="store_true"))
    for name in args.names:
        measure(name, args)


if __name__ == "__main__":
    main()
