#!/usr/bin/env python3
"""Independent PyTorch definition of the families decoder and classifier and of the presets gpt and msa around every mixer
(mixers.py), for golden values.

Clear and naive on purpose: float64, a dense mask, nothing fused, nothing shared with the C++ code.

    r_bnts = q_bntk . k_bnsk / sqrt(k);  keep(t, s) = 0 <= t - s < window;  p = softmax_s(r | keep)
    pre :  x += mix(ln1(x));      x += fc_out(act(fc(ln2(x))))        and a final layer norm
    post:  x = ln1(x + mix(x));   x = ln2(x + fc_out(act(fc(x))))     and none
    gated: act(gate) up instead of act(fc(x)), fc(x) = gate | up
    qk_norm: q and k of every head are RMS-normalized, with one gain for queries and one for keys
    rope:  q_t and k_s are rotated by their positions; kv_heads g: query head n uses head n div (h / g)
    rms :  ln(x) = gain x / sqrt(mean(x^2) + eps)

Choices that the specification leaves open:
  * `bias` governs the attention and feed-forward maps; layer norms stay affine and `head.bias` stays with `msa`;
  * an explicit `tie` overrides the preset and does not touch `head.bias`;
  * `causal: false` drops `0 <= t - s` and keeps `t - s < window`;
  * `lengths` hides the keys s >= lengths[b]; the loss depends only on the targets;
  * a mean over no position is 0: a pooling window of padding, the logits of an empty sequence;
  * a classifier has no mask unless `causal` is true, and its map to the classes has a bias.

Run as a program, it compares the model with torch.nn.TransformerEncoderLayer (pre and post norm), torch's
scaled_dot_product_attention and cross_entropy, and its own rules; the exit code is 1 on a failure.
"""
import math
import sys

import torch

import mixers

DEFAULTS = {"family": "decoder", "preset": "gpt", "mixer": "sdp", "vocab": None, "ctx": None, "d": None,
            "heads": None, "layers": None, "ff": None, "dropout": 0.0, "bias": True, "window": None,
            "causal": None, "tie": None, "pool": 3, "classes": 2, "share_heads": False, "coef_act": "sigmoid",
            "levels": None, "drop_level0": True, "mixer_bias": False, "value_proj": False, "qk_norm": False}
BLOCK = {"activation": None, "gated": False, "norm_kind": "layer", "norm_eps": 1e-5}
DEFAULTS |= BLOCK
HEADS = {"kv_heads": None, "head_width": None, "qkv_bias": None, "positions": None, "rope_theta": 10000.0, "rope_fraction": 1.0,
         "rope_scaling": "none", "rope_factor": 8.0, "rope_low": 1.0, "rope_high": 4.0, "rope_trained_ctx": 8192}
DEFAULTS |= HEADS
LLAMA = {"norm_kind": "rms", "activation": "silu", "gated": True, "bias": False, "positions": "rope"}
ACTIVATIONS = {
    "gelu": lambda x: 0.5 * x * (1.0 + torch.erf(x / math.sqrt(2.0))),
    "gelu_tanh": lambda x: 0.5 * x * (1.0 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3))),
    "relu": torch.relu,
    "silu": lambda x: x * torch.sigmoid(x),
    "relu2": lambda x: torch.relu(x) ** 2,
}


def activation_of(c):
    return ACTIVATIONS[c["activation"] or ("relu" if c["preset"] == "msa" else "gelu")]


def norm_shapes(c, name):
    return {f"{name}.weight": (c["d"],), **({} if c["norm_kind"] == "rms" else {f"{name}.bias": (c["d"],)})}


def norm(c, table, name, x):
    x = x if c["norm_kind"] == "rms" else x - x.mean(-1, keepdim=True)
    normed = x / torch.sqrt((x ** 2).mean(-1, keepdim=True) + c["norm_eps"]) * table[f"{name}.weight"]
    return normed if c["norm_kind"] == "rms" else normed + table[f"{name}.bias"]


def feed_forward(c, linear, name, x):
    h = linear(f"{name}fc", x)
    gate, up = h.chunk(2, -1) if c["gated"] else (h, 1.0)
    return linear(f"{name}fc_out", activation_of(c)(gate) * up)


def resolve(config, defaults=DEFAULTS):
    """Fills defaults and preset; raises ValueError for an unknown key or a value outside these models."""
    if unknown := config.keys() - defaults.keys():
        raise ValueError(f"unknown keys {sorted(unknown)}")
    c = {**defaults, **(LLAMA if config.get("preset") == "llama" else {}), **config}
    used = [c["mixer"]] if isinstance(c["mixer"], str) else c["mixer"]
    if any(name not in mixers.NAMES for name in used) or c["preset"] not in ("gpt", "msa", "llama"):
        raise ValueError(f"not covered: mixer {c['mixer']}, preset {c['preset']}")
    c["causal"] = c["family"] == "decoder" or "dispatcher" in used if c["causal"] is None else c["causal"]
    for layer in (mixers.of_layer(c, i) for i in range(len(used))):
        if layer["mixer"] not in ("avgpool", "identity") and not c["head_width"] and c["d"] % layer["heads"]:
            raise ValueError(f"heads {layer['heads']} does not divide d {c['d']}")
    c["positions"] = c["positions"] or ("learned" if c["preset"] == "gpt" else "sinusoidal")
    c["ff"] = (64 * math.ceil(c["d"] / 24) if c["preset"] == "llama" else 4 * c["d"]) if c["ff"] is None else c["ff"]
    c["tie"] = c["preset"] != "msa" if c["tie"] is None else c["tie"]
    return c


def stack_shapes(c, pos, blocks, ln, rows, layers, mixer=mixers.shapes):
    """The shapes of a stack of blocks, with the names of its positions, blocks and last norm."""
    shapes = {f"{pos}.weight": (rows, c["d"])} if c["positions"] == "learned" else {}
    for i, block in enumerate(f"{blocks}.{i}." for i in range(layers)):
        shapes |= norm_shapes(c, f"{block}ln1") | norm_shapes(c, f"{block}ln2")
        of_mixer = {f"mixer.{name}": shape for name, shape in mixer(mixers.of_layer(c, i)).items()}
        feed_forward = mixers.linear_shapes({"fc": ((1 + c["gated"]) * c["ff"], c["d"]), "fc_out": (c["d"], c["ff"])}, c["bias"])
        shapes |= {f"{block}{name}": shape for name, shape in {**of_mixer, **feed_forward}.items()}
    return shapes | (norm_shapes(c, ln) if c["preset"] != "msa" else {})


def vocabulary_shapes(c):
    return {**({} if c["tie"] else {"head.weight": (c["vocab"], c["d"])}), **({"head.bias": (c["vocab"],)} if c["preset"] == "msa" else {})}


def random_weights(shapes, seed):
    """Float64 weights that hide nothing: gains around 1, biases away from 0, maps of about unit gain."""
    generator = torch.Generator().manual_seed(seed)
    weights = {}
    for name, shape in shapes.items():
        noise = torch.randn(shape, generator=generator, dtype=torch.float64)
        if name.endswith(("tok.weight", "pos.weight")):
            weights[name] = noise
        elif len(shape) == 1 or name.endswith(("a_metric", "u_metric")):
            weights[name] = 0.3 * noise + (1.0 if name.endswith("weight") else 0.0)
        else:
            weights[name] = noise / math.sqrt(shape[0] if name.startswith("up.") else math.prod(shape[1:]))
    return weights


def random_batch(config, batch, length, seed):
    """(ids, targets), int64, (batch, length) each, for a classifier (batch,) targets; about a fifth of the targets is -1, but
    never all."""
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(config["vocab"], (batch, length), generator=generator)
    if config.get("family") == "classifier":
        targets = torch.randint(config.get("classes", 2), (batch,), generator=generator)
        return ids, targets.masked_fill(torch.arange(batch) % 3 == 1, -1)
    targets = torch.randint(config["vocab"], (batch, length), generator=generator)
    ignored = torch.rand((batch, length), generator=generator) < 0.2
    ignored.view(-1)[-2:-1] = True
    ignored.view(-1)[-1] = False
    return ids, targets.masked_fill(ignored, -1)


def sinusoid(length, d):
    """pe[t, 2i] = sin(t w_i), pe[t, 2i+1] = cos(t w_i), w_i = 10000^(-2i/d), in float64."""
    pe = torch.zeros(length, d, dtype=torch.float64)
    for t in range(length):
        for j in range(d):
            angle = t * 10000.0 ** (-2 * (j // 2) / d)
            pe[t, j] = math.sin(angle) if j % 2 == 0 else math.cos(angle)
    return pe


def visible_keys(batch, length, window=None, causal=True, lengths=None):
    """keep (batch, 1, t, s): is key s visible to query t?"""
    t, s = torch.arange(length)[:, None], torch.arange(length)[None, :]
    keep = torch.ones(batch, 1, length, length, dtype=torch.bool)
    keep = keep & (t - s >= 0) if causal else keep
    keep = keep & (t - s < window) if window is not None else keep
    return keep & (s < lengths[:, None, None, None]) if lengths is not None else keep


class Model:
    """The model of either family; `table` maps every state_dict name of the specification to its nn.Parameter. The multi-scale
    families build on it."""
    defaults = DEFAULTS

    def __init__(self, config, weights):
        self.c = resolve(config, self.defaults)
        self.table = {name: torch.nn.Parameter(weights[name].clone()) for name in self.shapes(self.c)}

    @staticmethod
    def shapes(c):
        """Ordered {state_dict name: shape} of every parameter of the resolved configuration."""
        shapes = {"tok.weight": (c["vocab"], c["d"]), **stack_shapes(c, "pos", "blocks", "ln_f", c["ctx"], c["layers"])}
        if c["family"] == "classifier":
            return {**shapes, "head.weight": (c["classes"], c["d"]), "head.bias": (c["classes"],)}
        return shapes | vocabulary_shapes(c)

    @classmethod
    def random(cls, config, seed):
        return random_weights(cls.shapes(resolve(config, cls.defaults)), seed)

    def linear(self, name, x):
        return mixers.linear(self.table, name, x)

    def layer_norm(self, name, x):
        return norm(self.c, self.table, name, x)

    def mix(self, name, x_btd, keep, lengths):
        table = {path[len(name) + 1:]: p for path, p in self.table.items() if path.startswith(f"{name}.")}
        return mixers.mix(mixers.of_layer(self.c, int(name.split(".")[-2])), table, x_btd, keep, lengths)

    def block(self, p, x, keep, lengths):
        if self.c["preset"] != "msa":
            x = x + self.mix(f"{p}.mixer", self.layer_norm(f"{p}.ln1", x), keep, lengths)
            return x + feed_forward(self.c, self.linear, f"{p}.", self.layer_norm(f"{p}.ln2", x))
        x = self.layer_norm(f"{p}.ln1", x + self.mix(f"{p}.mixer", x, keep, lengths))
        return self.layer_norm(f"{p}.ln2", x + feed_forward(self.c, self.linear, f"{p}.", x))

    def embedded(self, ids_bt):
        return self.table["tok.weight"][ids_bt] * (math.sqrt(self.c["d"]) if self.c["preset"] == "msa" else 1)

    def stack(self, x, keep, lengths, layers, pos="pos", blocks="blocks", ln="ln_f"):
        if self.c["positions"] == "learned":
            x = x + self.table[f"{pos}.weight"][:x.shape[1]]
        if self.c["positions"] == "sinusoidal":
            x = x + sinusoid(x.shape[1], self.c["d"]).to(x.dtype)
        for i in range(layers):
            x = self.block(f"{blocks}.{i}", x, keep, lengths)
        return self.layer_norm(ln, x) if self.c["preset"] != "msa" else x

    def vocabulary(self, h):
        return torch.nn.functional.linear(h, self.table["tok.weight" if self.c["tie"] else "head.weight"], self.table.get("head.bias"))

    def __call__(self, ids_bt, lengths=None):
        """ids (b, t) -> logits (b, t, v); for a classifier (b, classes)."""
        c = self.c
        batch, length = ids_bt.shape
        x = self.stack(self.embedded(ids_bt), visible_keys(batch, length, c["window"], c["causal"], lengths), lengths, c["layers"])
        if c["family"] == "classifier":
            z = self.linear("head", x)
            real = torch.full((batch,), length) if lengths is None else lengths
            return torch.stack([z[b, :n].sum(0) / max(1, n) for b, n in enumerate(real.tolist())])
        return self.vocabulary(x)

    def loss(self, logits, ids, targets, lengths=None):
        return mean_loss(logits, targets)


def mean_loss(logits_btv, targets_bt):
    """Mean nats over the targets other than -1."""
    counted = targets_bt >= 0
    z = logits_btv[counted]
    return (torch.logsumexp(z, -1) - z[torch.arange(len(z)), targets_bt[counted]]).mean()


def evaluate(model, ids, targets, lengths=None):
    """{logits, loss, grad.<name>...} as written by the probe, in the dtype of the weights (loss in float64)."""
    logits = model(ids, lengths)
    loss = model.loss(logits, ids, targets, lengths)
    loss.backward()
    result = {"logits": logits.detach().contiguous(), "loss": loss.detach().to(torch.float64)}
    for name, p in model.table.items():
        result[f"grad.{name}"] = torch.zeros_like(p) if p.grad is None else p.grad.contiguous()
    return result


def torch_block(model, i):
    """nn.TransformerEncoderLayer with the weights of block i."""
    c = model.c
    layer = torch.nn.TransformerEncoderLayer(
        c["d"], c["heads"], c["ff"], dropout=0.0, activation="gelu" if c["preset"] == "gpt" else "relu",
        layer_norm_eps=1e-5, batch_first=True, norm_first=c["preset"] == "gpt", dtype=torch.float64)
    ours = {"self_attn.in_proj_": "mixer.qkv.", "self_attn.out_proj.": "mixer.proj.", "linear1.": "fc.",
            "linear2.": "fc_out.", "norm1.": "ln1.", "norm2.": "ln2."}
    state = {}
    for theirs, name in ours.items():
        for kind in ("weight", "bias"):
            given = model.table.get(f"blocks.{i}.{name}{kind}")
            state[theirs + kind] = torch.zeros_like(layer.state_dict()[theirs + kind]) if given is None else given
    layer.load_state_dict(state)
    return layer


def torch_decoder_loss(model, ids, targets):
    """The full model from torch's modules; returns (logits, loss)."""
    c, table, t = model.c, model.table, ids.shape[1]
    x = torch.nn.functional.embedding(ids, table["tok.weight"])
    even = torch.arange(0, c["d"], 2, dtype=torch.float64)
    angles = torch.arange(t)[:, None] * torch.exp(-even * math.log(10000.0) / c["d"])
    fixed = torch.stack([angles.sin(), angles.cos()], -1).flatten(1)[:, :c["d"]]
    x = x + table["pos.weight"][:t] if c["preset"] == "gpt" else x * c["d"] ** 0.5 + fixed
    distance = torch.arange(t)[:, None] - torch.arange(t)
    hidden = (distance >= (c["window"] or t)) | ((distance < 0) & c["causal"])
    for i in range(c["layers"]):
        x = torch_block(model, i)(x, src_mask=hidden)
    if c["preset"] == "gpt":
        x = torch.nn.functional.layer_norm(x, (c["d"],), table["ln_f.weight"], table["ln_f.bias"])
    logits = torch.nn.functional.linear(x, table["tok.weight" if c["tie"] else "head.weight"], table.get("head.bias"))
    return logits, torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-1)


def difference(a, b):
    return (a - b).abs().max().item()


def model_checks(base):
    """Yields (name, error, tolerance): values against torch.nn, and the positions that depend on a token."""
    for preset in ("gpt", "msa"):
        for extra in ({}, {"window": 3}, {"causal": False}, {"bias": False}, {"tie": preset != "gpt"}):
            config = {**base, "preset": preset, **extra}
            ids, targets = random_batch(config, 3, 7, 2)
            model = Model(config, Model.random(config, 1))
            ours = evaluate(model, ids, targets)
            logits, loss = torch_decoder_loss(model, ids, targets)
            for name, theirs in (("logits", logits), ("loss", loss)):
                yield f"{preset} {extra} {name} against torch.nn", difference(theirs, ours[name]), 1e-12
            other = ids.clone()
            other[:, 4] = (other[:, 4] + 1) % config["vocab"]
            moved = (model(other) - model(ids)).abs().amax((0, 2)) > 0
            expected = torch.arange(7) >= 4 if config.get("causal", True) else torch.ones(7, dtype=torch.bool)
            yield f"{preset} {extra} reach of a token", float((moved != expected).sum()), 0


def attention_checks():
    generator = torch.Generator().manual_seed(3)
    q, k, v = (torch.randn(3, 2, 7, 5, generator=generator, dtype=torch.float64, requires_grad=True) for _ in range(3))
    sdpa = torch.nn.functional.scaled_dot_product_attention
    for window in (None, 1, 3, 99):
        keep = visible_keys(3, 7, window)
        theirs = sdpa(q, k, v, keep) if window else sdpa(q, k, v, is_causal=True)
        yield f"window {window} against sdpa", difference(mixers.attention(q, k, v, keep), theirs), 1e-12
    yield "window 1 gives the values", difference(mixers.attention(q, k, v, visible_keys(3, 7, 1)), v), 0
    keep = visible_keys(3, 7, lengths=torch.tensor([7, 3, 0]), window=2)
    y = mixers.attention(q, k, v, keep)
    blind = ~keep.any(-1).expand(3, 2, 7)
    dq, dk, dv = torch.autograd.grad((y * torch.randn(y.shape, generator=generator)).sum(), (q, k, v))
    silent = torch.cat([x.flatten() for x in (y[blind], dq[blind], dk[2], dv[2], dv[1, :, 3:])])
    yield "a query without a visible key: zero, no gradient", difference(silent, torch.zeros(1)), 0
    yield "and nothing that is not finite", float(sum((~x.isfinite()).sum() for x in (y, dq, dk, dv))), 0


def mixer_checks():
    """A value travels along the binary digits of the distance; the seed's grouped formula of metric scores is not the definition."""
    generator = torch.Generator().manual_seed(5)
    for length, rank in ((1, 2), (7, 3), (13, 4), (13, 2), (6, 5)):
        v, c = (torch.randn(2, 3, length, n, generator=generator, dtype=torch.float64) for n in (4, rank))
        expected = torch.zeros_like(v)
        for i in range(length):
            for j in range(i + 1):
                weight, at = torch.ones(2, 3, dtype=torch.float64), i
                for r in reversed(range(20)):
                    if (i - j) >> r & 1:
                        weight, at = weight * c[:, :, at, r] if r < rank else 0 * weight, at - 2 ** r
                expected[:, :, i] += weight[..., None] * v[:, :, j]
        yield f"shift and sum of {length} by {rank} levels", difference(mixers.shift_and_sum(v, c), expected), 1e-12
    packed = torch.arange(1.0, 7.0, dtype=torch.float64)[None]
    upper = torch.tensor([[1, 2, 3], [2, 4, 5], [3, 5, 6]], dtype=torch.float64)
    low = torch.tensor([[1, 0, 0], [2, 3, 0], [4, 5, 6]], dtype=torch.float64)
    yield "a packed metric", difference(mixers.triangle_to_matrix(packed, 3, False)[0], upper), 0
    yield "a packed factor", difference(mixers.triangle_to_matrix(packed, 3, True)[0], low @ low.T), 0


def self_test():
    """Prints one line per check; returns True if all pass."""
    base = {"vocab": 11, "ctx": 9, "d": 15, "heads": 3, "layers": 2, "ff": 22}
    failed = 0
    for name, error, tolerance in (*model_checks(base), *attention_checks(), *mixer_checks()):
        failed += not error <= tolerance
        print(f"{'ok  ' if error <= tolerance else 'FAIL'} {error:8.1e}  {name}")
    print(f"{failed} checks failed")
    return failed == 0


if __name__ == "__main__":
    sys.exit(0 if self_test() else 1)
