"""Independent PyTorch definitions of the families of several scales, topdown, bottomup, retina and coarse, for golden values.

Clear and naive on purpose: float64, torch's own convolutions, a dense mask of which query sees which cell, every shifted row by
itself. The functions are those of reference.py: parameter_shapes, random_weights, random_batch, evaluate.

Readings where the specification leaves room:
  * `bias` governs the attention and feed-forward maps, those of the aggregation layer among them; down, up and combine have biases;
  * the norm, activation, positions and scale of the embedding follow the preset in every stack, as in a decoder;
  * without a coarser cell what is combined is zero; a head without a visible cell gives zero;
  * `lengths` hides as keys all cells that are not whole before lengths[b], and from the coarse loss those that it would have to say;
  * a rotary position is the index of a cell in its stack;
  * the loss over no position is 0;
  * a text without `lengths` ends with its last target; `bag_weights` weigh, in the loss of a topdown model, the coarse loss of each
    coarse scale, whose logits are those of the same map to the vocabulary.
"""
import math

import torch

import mixers
import reference

FAMILIES = ("topdown", "bottomup", "retina", "coarse")
DEFAULTS = {"family": None, "mixer": "sdp", "preset": "gpt", "vocab": None, "ctx": None, "d": None, "heads": None, "layers": None,
            "ff": None, "bias": True, "tie": None, "scales": [1, 4, 16, 64], "down": "avg", "conv_kernel": 1, "shift": "tight",
            "chain": True, "loss_from": 0, "windows": None, "cell_rule": "inside", "head_groups": None, "scale": 4, "bag_weights": None,
            "qk_norm": False, **reference.BLOCK, **reference.HEADS}


def resolve(config):
    if unknown := config.keys() - DEFAULTS.keys():
        raise ValueError(f"unknown keys {sorted(unknown)}")
    c = {**DEFAULTS, **(reference.LLAMA if config.get("preset") == "llama" else {}), **config}
    c["ff"] = 4 * c["d"] if c["ff"] is None else c["ff"]
    c["tie"] = c["preset"] != "msa" if c["tie"] is None else c["tie"]
    c["positions"] = c["positions"] or ("sinusoidal" if c["preset"] == "msa" else "learned")
    if c["windows"] is None:
        c["windows"] = [[0, c["ctx"]]] * len(c["scales"])
    elif isinstance(c["windows"], str):
        c["windows"] = [[int(end) for end in window.split(":")] for window in c["windows"].split(",")]
    return c


def head_groups(heads, scales):
    """For each head the place of its scale: contiguous, sizes that differ by at most one, larger groups first."""
    return [s for s in range(scales) for _ in range(heads // scales + (1 if s < heads % scales else 0))]


def linear_shapes(name, rows, columns, bias):
    return {f"{name}.weight": (rows, columns), **({f"{name}.bias": (rows,)} if bias else {})}


def block_shapes(c, name):
    d, bias = c["d"], c["bias"]
    shapes = {**reference.norm_shapes(c, f"{name}.ln1"), **reference.norm_shapes(c, f"{name}.ln2")}
    if c["family"] == "retina":
        for part in "qkv":
            shapes |= linear_shapes(f"{name}.mixer.{part}", d, d, bias)
        for s in c["scales"][1:]:
            shapes |= down_shapes(c, f"{name}.mixer.down.{s}", s)
        shapes |= linear_shapes(f"{name}.mixer.proj", d, d, bias)
    else:
        shapes |= {f"{name}.mixer.{part}": shape for part, shape in mixers.shapes(c).items()}
    return shapes | linear_shapes(f"{name}.fc", (1 + c["gated"]) * c["ff"], d, bias) | linear_shapes(f"{name}.fc_out", d, c["ff"], bias)


def stack_shapes(c, pos, blocks, ln, cells, layers):
    shapes = {f"{pos}.weight": (cells, c["d"])} if c["positions"] == "learned" else {}
    for i in range(layers):
        shapes |= block_shapes(c, f"{blocks}.{i}")
    return shapes | (reference.norm_shapes(c, ln) if c["preset"] != "msa" else {})


def down_shapes(c, name, stride):
    return {f"{name}.weight": (c["d"], c["d"], c["conv_kernel"] * stride), f"{name}.bias": (c["d"],)} if c["down"] == "conv" else {}


def parameter_shapes(config):
    """{state_dict name: shape} of every parameter of the configuration."""
    c = resolve(config)
    d, ctx, family = c["d"], c["ctx"], c["family"]
    shapes = {"tok.weight": (c["vocab"], d)}
    if family == "retina":
        shapes |= stack_shapes(c, "pos", "blocks", "ln_f", ctx, c["layers"])
    elif family == "coarse":
        s = c["scale"]
        shapes |= stack_shapes(c, f"stack.{s}.pos", f"stack.{s}.blocks", f"stack.{s}.ln", ctx // s, c["layers"]) | down_shapes(c, f"down.{s}", s)
    else:
        for finer, s, layers in zip([None, *c["scales"]], c["scales"], c["layers"]):
            shapes |= stack_shapes(c, f"stack.{s}.pos", f"stack.{s}.blocks", f"stack.{s}.ln", ctx // s, layers)
            if finer is None:
                continue
            shapes |= down_shapes(c, f"down.{s}", s // finer if family == "bottomup" and c["chain"] else s)
            if family == "topdown":
                shapes |= {f"up.{s}.weight": (d, d, s // finer), f"up.{s}.bias": (d,)} | linear_shapes(f"combine.{finer}", d, 2 * d, True)
        if family == "bottomup":
            shapes |= reference.norm_shapes(c, "agg.ln_q")
            for part in ("q", "k", "v", "proj"):
                shapes |= linear_shapes(f"agg.{part}", d, d, c["bias"])
    if not c["tie"]:
        shapes["head.weight"] = (c["vocab"], d)
    if c["preset"] == "msa":
        shapes["head.bias"] = (c["vocab"],)
    return shapes


def random_weights(config, seed):
    """Float64 weights that hide nothing: gains around 1, biases away from 0, maps of about unit gain."""
    generator = torch.Generator().manual_seed(seed)
    weights = {}
    for name, shape in parameter_shapes(config).items():
        noise = torch.randn(shape, generator=generator, dtype=torch.float64)
        if len(shape) == 1:
            weights[name] = 0.3 * noise + (1.0 if name.endswith("weight") else 0.0)
        elif name.endswith(("tok.weight", "pos.weight")):
            weights[name] = noise
        else:
            weights[name] = noise / math.sqrt(shape[0] if name.startswith("up.") else math.prod(shape[1:]))
    return weights


random_batch = reference.random_batch


class Model:
    def __init__(self, config, weights):
        self.c = resolve(config)
        self.table = {name: torch.nn.Parameter(weights[name].clone()) for name in parameter_shapes(config)}

    def linear(self, name, x):
        return torch.nn.functional.linear(x, self.table[f"{name}.weight"], self.table.get(f"{name}.bias"))

    def layer_norm(self, name, x):
        return reference.norm(self.c, self.table, name, x)

    def down(self, name, x_btd, r):
        """(b, t, d) -> (b, floor(t/r), d)"""
        cells = x_btd.shape[1] // r
        if self.c["down"] == "conv":
            kernel = self.c["conv_kernel"] * r
            padded = torch.nn.functional.pad(x_btd.transpose(1, 2), (kernel - r, 0))
            if padded.shape[2] < kernel:
                return x_btd[:, :0]
            return torch.nn.functional.conv1d(padded, self.table[f"{name}.weight"], self.table[f"{name}.bias"], stride=r).transpose(1, 2)
        of_cell = [x_btd[:, j * r:(j + 1) * r] for j in range(cells)]
        if not of_cell:
            return x_btd[:, :0]
        return torch.stack([x.mean(1) if self.c["down"] == "avg" else x.max(1).values for x in of_cell], 1)

    def attend(self, q_btd, k_bsd, v_bsd, heads, keep_bts):
        b, t, d = q_btd.shape
        q, k, v = (x.reshape(b, x.shape[1], heads, d // heads).transpose(1, 2) for x in (q_btd, k_bsd, v_bsd))
        if k.shape[2] == 0:
            return torch.zeros_like(q_btd)
        scores = (q @ k.transpose(-1, -2) / math.sqrt(d // heads)).masked_fill(~keep_bts[:, None], -math.inf)
        blind = ~keep_bts.any(-1)[:, None, :, None]
        p = torch.softmax(scores.masked_fill(blind, 0.0), -1).masked_fill(blind, 0.0)
        return (p @ v).transpose(1, 2).reshape(b, t, d)

    def divided(self, name, x_btd, cells, seen, groups):
        """Attention whose head h reads cells[groups[h]], of which seen[groups[h]] (b, t, m) says what a query sees."""
        k_width = self.c["d"] // len(groups)
        q, y = self.linear(f"{name}.q", x_btd), []
        for head, g in enumerate(groups):
            own = slice(head * k_width, (head + 1) * k_width)
            k, v = self.linear(f"{name}.k", cells[g]), self.linear(f"{name}.v", cells[g])
            y.append(self.attend(q[..., own], k[..., own], v[..., own], 1, seen[g]))
        return self.linear(f"{name}.proj", torch.cat(y, -1))

    def visible(self, lengths, t, m, s, rule):
        """(b, t, m): may token t see cell m of scale s? Hidden are cells that are not whole before the length."""
        batch = len(lengths)
        keep = torch.zeros(batch, t, m, dtype=torch.bool)
        for b in range(batch):
            for i in range(t):
                for j in range(m):
                    keep[b, i, j] = rule(i - ((j + 1) * s - 1), i - j * s) and (j + 1) * s <= int(lengths[b])
        return keep

    def retina(self, name, y_btd, lengths):
        c = self.c
        cells = [y_btd if s == 1 else self.down(f"{name}.down.{s}", y_btd, s) for s in c["scales"]]
        seen = []
        for (lo, hi), s, x in zip(c["windows"], c["scales"], cells):
            def rule(near, far):
                return near >= lo and (far if c["cell_rule"] == "inside" else near) < hi
            seen.append(self.visible(lengths, y_btd.shape[1], x.shape[1], s, rule))
        return self.divided(name, y_btd, cells, seen, c["head_groups"] or head_groups(c["heads"], len(cells)))

    def mix(self, name, y, s, lengths):
        if self.c["family"] == "retina":
            return self.retina(name, y, lengths)
        t = y.shape[1]
        causal = torch.ones(t, t, dtype=torch.bool).tril()
        real = torch.stack([torch.arange(t) < int(n) // s for n in lengths])
        table = {path[len(name) + 1:]: p for path, p in self.table.items() if path.startswith(f"{name}.")}
        return mixers.mix(self.c, table, y, (causal & real[:, None, :])[:, None], lengths)

    def block(self, name, x, s, lengths):
        def feed_forward(h):
            return reference.feed_forward(self.c, self.linear, f"{name}.", h)
        if self.c["preset"] != "msa":
            x = x + self.mix(f"{name}.mixer", self.layer_norm(f"{name}.ln1", x), s, lengths)
            return x + feed_forward(self.layer_norm(f"{name}.ln2", x))
        x = self.layer_norm(f"{name}.ln1", x + self.mix(f"{name}.mixer", x, s, lengths))
        return self.layer_norm(f"{name}.ln2", x + feed_forward(x))

    def stack(self, x, s, layers, lengths, pos=None, blocks=None, ln=None):
        pos, blocks, ln = pos or f"stack.{s}.pos", blocks or f"stack.{s}.blocks", ln or f"stack.{s}.ln"
        n = x.shape[1]
        if self.c["positions"] == "learned":
            x = x + self.table[f"{pos}.weight"][:n]
        if self.c["positions"] == "sinusoidal":
            x = x + reference.sinusoid(n, self.c["d"]).to(x.dtype)
        for i in range(layers):
            x = self.block(f"{blocks}.{i}", x, s, lengths)
        return self.layer_norm(ln, x) if self.c["preset"] != "msa" else x

    def topdown(self, e, lengths):
        c, h, self.of_scale = self.c, None, {}
        for i in reversed(range(len(c["scales"]))):
            s = c["scales"][i]
            x = e if s == 1 else self.down(f"down.{s}", e, s)
            if i + 1 < len(c["scales"]):
                coarser = c["scales"][i + 1]
                x = self.linear(f"combine.{s}", torch.cat([x, self.shifted(f"up.{coarser}", h, x, coarser // s)], -1))
            h = self.stack(x, s, c["layers"][i], lengths)
            self.of_scale[s] = h
        return h

    def shifted(self, name, h, x, r):
        """Row i - pad of the upsampled h for every row i of x, 0 before."""
        pad = r - 1 if self.c["shift"] == "tight" else r
        u = x.new_zeros((x.shape[0], 0, x.shape[2]))
        if h.shape[1]:
            u = torch.nn.functional.conv_transpose1d(h.transpose(1, 2), self.table[f"{name}.weight"], self.table[f"{name}.bias"], stride=r).transpose(1, 2)
        return torch.cat([torch.zeros_like(x[:, :pad]), u], 1)[:, :x.shape[1]]

    def first_full(self):
        first = 0
        for finer, s in reversed(list(zip(self.c["scales"], self.c["scales"][1:]))):
            r = s // finer
            first = (first + 1) * r - (1 if self.c["shift"] == "tight" else 0)
        return first

    def bottomup(self, e, lengths):
        c, coarse = self.c, self.c["scales"][1:]
        outputs, x = [], e
        for i, s in enumerate(coarse):
            x = self.down(f"down.{s}", x, s // c["scales"][i]) if c["chain"] else self.down(f"down.{s}", e, s)
            x = self.stack(x, s, c["layers"][i + 1], lengths)
            outputs.append(x)
        seen = [self.visible(lengths, e.shape[1], h.shape[1], s, lambda near, far: near >= 0) for s, h in zip(coarse, outputs)]
        z = e + self.divided("agg", self.layer_norm("agg.ln_q", e), outputs, seen, head_groups(c["heads"], len(coarse)))
        return self.stack(z, 1, c["layers"][0], lengths)

    def __call__(self, ids, lengths=None):
        c = self.c
        lengths = torch.full((ids.shape[0],), ids.shape[1]) if lengths is None else lengths
        e = self.table["tok.weight"][ids] * (math.sqrt(c["d"]) if c["preset"] == "msa" else 1)
        if c["family"] == "retina":
            h = self.stack(e, 1, c["layers"], lengths, "pos", "blocks", "ln_f")
        elif c["family"] == "coarse":
            h = self.stack(self.down(f"down.{c['scale']}", e, c["scale"]), c["scale"], c["layers"], lengths)
        else:
            h = getattr(self, c["family"])(e, lengths)
        return self.vocabulary(h)

    def vocabulary(self, h):
        return torch.nn.functional.linear(h, self.table["tok.weight" if self.c["tie"] else "head.weight"], self.table.get("head.bias"))

    def loss(self, logits, ids, targets, lengths=None):
        c = self.c
        if c["family"] == "coarse":
            return self.bag_loss(logits, ids, lengths, c["scale"])
        bags = 0
        if c["bag_weights"]:
            ends = lengths if lengths is not None else [min(ids.shape[1], max(torch.where(row >= 0)[0], default=-2) + 2) for row in targets]
            bags = sum(weight * self.bag_loss(self.vocabulary(self.of_scale[s]), ids, ends, s) for weight, s in zip(c["bag_weights"], c["scales"][1:]))
        first = self.first_full() if c["loss_from"] == "first_full" else 0
        logits, targets = logits[:, first:], targets[:, first:]
        return bags + (reference.mean_loss(logits, targets) if (targets >= 0).any() else (logits * 0).sum())

    def bag_loss(self, logits, ids, lengths, s):
        terms = [(logits * 0).sum()]
        for b in range(ids.shape[0]):
            length = ids.shape[1] if lengths is None else int(lengths[b])
            for j in range(length // s - 1):
                bag = torch.bincount(ids[b, (j + 1) * s:(j + 2) * s], minlength=self.c["vocab"]).to(logits.dtype) / s
                terms.append(-(bag * torch.log_softmax(logits[b, j], -1)).sum())
        return sum(terms) / max(1, len(terms) - 1)


def evaluate(config, weights, ids, targets, lengths=None):
    """{logits, loss, grad.<name>...} as the probe writes them, in the dtype of the weights (loss in float64)."""
    model = Model(config, weights)
    logits = model(ids, lengths)
    loss = model.loss(logits, ids, targets, lengths)
    loss.backward()
    result = {"logits": logits.detach().contiguous(), "loss": loss.detach().to(torch.float64)}
    for name, p in model.table.items():
        result[f"grad.{name}"] = torch.zeros_like(p) if p.grad is None else p.grad.contiguous()
    return result
