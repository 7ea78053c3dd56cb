"""Independent PyTorch definitions of the multi-scale families, topdown, bottomup, retina and coarse, for golden values.

Clear and naive on purpose: float64, torch's own convolutions, a dense mask of queries and cells, every shifted row
separately.

Choices that the specification leaves open:
  * `bias` governs the attention and feed-forward maps, including the aggregation layer; down, up and combine have biases;
  * the norm, activation, positions and scale of the embedding follow the preset in every stack, as in a decoder;
  * without a coarser cell zeros are combined; a head without a visible cell outputs zeros;
  * `lengths` hides as keys the cells that are incomplete before lengths[b], and omits them as targets of the coarse loss;
  * a rotary position is the index of a cell in its stack;
  * the loss over no position is 0;
  * a text without `lengths` ends with its last target; `bag_weights` weigh, in the loss of a topdown model, the coarse loss of each
    coarse scale, with logits from the same map to the vocabulary.
"""
import math

import torch

import mixers
import reference

FAMILIES = ("topdown", "bottomup", "retina", "coarse")


def head_groups(heads, scales):
    """For each head the index of its scale: contiguous, sizes that differ by at most one, larger groups first."""
    return [s for s in range(scales) for _ in range(heads // scales + (1 if s < heads % scales else 0))]


def windows(c):
    if isinstance(c["windows"], str):
        return [[int(end) for end in window.split(":")] for window in c["windows"].split(",")]
    return c["windows"] or [[0, c["ctx"]]] * len(c["scales"])


def retina_shapes(c):
    """The parameter shapes of a block's mixer."""
    maps = {part: (c["d"], c["d"]) for part in ("q", "k", "v")}
    shapes = mixers.linear_shapes(maps, c["bias"])
    for s in c["scales"][1:]:
        shapes |= down_shapes(c, f"down.{s}", s)
    return shapes | mixers.linear_shapes({"proj": (c["d"], c["d"])}, c["bias"])


def scale_shapes(c, s, layers):
    return reference.stack_shapes(c, f"stack.{s}.pos", f"stack.{s}.blocks", f"stack.{s}.ln", c["ctx"] // s, layers)


def down_shapes(c, name, stride):
    return {f"{name}.weight": (c["d"], c["d"], c["conv_kernel"] * stride), f"{name}.bias": (c["d"],)} if c["down"] == "conv" else {}


class Model(reference.Model):
    defaults = {**reference.DEFAULTS, "scales": [1, 4, 16, 64], "down": "avg", "conv_kernel": 1, "shift": "tight", "chain": True, "loss_from": 0,
                "windows": None, "cell_rule": "inside", "head_groups": None, "scale": 4, "bag_weights": None}

    @staticmethod
    def shapes(c):
        d, family = c["d"], c["family"]
        shapes = {"tok.weight": (c["vocab"], d)}
        if family == "retina":
            shapes |= reference.stack_shapes(c, "pos", "blocks", "ln_f", c["ctx"], c["layers"], retina_shapes)
        elif family == "coarse":
            shapes |= scale_shapes(c, c["scale"], c["layers"]) | down_shapes(c, f"down.{c['scale']}", c["scale"])
        else:
            for finer, s, layers in zip([None, *c["scales"]], c["scales"], c["layers"]):
                shapes |= scale_shapes(c, s, layers)
                if finer is None:
                    continue
                shapes |= down_shapes(c, f"down.{s}", s // finer if family == "bottomup" and c["chain"] else s)
                if family == "topdown":
                    shapes |= {f"up.{s}.weight": (d, d, s // finer), f"up.{s}.bias": (d,)}
                    shapes |= mixers.linear_shapes({f"combine.{finer}": (d, 2 * d)}, True)
            if family == "bottomup":
                shapes |= reference.norm_shapes(c, "agg.ln_q")
                shapes |= mixers.linear_shapes({f"agg.{part}": (d, d) for part in ("q", "k", "v", "proj")}, c["bias"])
        return shapes | reference.vocabulary_shapes(c)

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

    def divided(self, name, x_btd, cells, seen, groups):
        """Attention whose head h reads cells[groups[h]], with the mask seen[groups[h]] (b, t, m)."""
        y = []
        for head, g in enumerate(groups):
            q, k, v = (mixers.heads_of(self.linear(f"{name}.{part}", x), len(groups))[:, head] for part, x in (("q", x_btd), ("k", cells[g]), ("v", cells[g])))
            y.append(mixers.attention(q, k, v, seen[g]))
        return self.linear(f"{name}.proj", torch.cat(y, -1))

    def visible(self, lengths, t, m, s, rule):
        """(b, t, m): is cell m of scale s visible to token t? Cells that are incomplete before the length are hidden."""
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
        for (lo, hi), s, x in zip(windows(c), c["scales"], cells):
            def rule(near, far):
                return near >= lo and (far if c["cell_rule"] == "inside" else near) < hi
            seen.append(self.visible(lengths, y_btd.shape[1], x.shape[1], s, rule))
        return self.divided(name, y_btd, cells, seen, c["head_groups"] or head_groups(c["heads"], len(cells)))

    def mix(self, name, y, keep, lengths):
        return self.retina(name, y, lengths) if self.c["family"] == "retina" else super().mix(name, y, keep, lengths)

    def scale(self, x, s, layers, lengths):
        """The stack over the cells of s tokens."""
        keep = reference.visible_keys(*x.shape[:2], lengths=lengths // s)
        return self.stack(x, keep, lengths, layers, f"stack.{s}.pos", f"stack.{s}.blocks", f"stack.{s}.ln")

    def topdown(self, e, lengths):
        c, h, self.of_scale = self.c, None, {}
        for i in reversed(range(len(c["scales"]))):
            s = c["scales"][i]
            x = e if s == 1 else self.down(f"down.{s}", e, s)
            if i + 1 < len(c["scales"]):
                coarser = c["scales"][i + 1]
                x = self.linear(f"combine.{s}", torch.cat([x, self.shifted(f"up.{coarser}", h, x, coarser // s)], -1))
            h = self.scale(x, s, c["layers"][i], lengths)
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
            x = self.scale(x, s, c["layers"][i + 1], lengths)
            outputs.append(x)
        seen = [self.visible(lengths, e.shape[1], h.shape[1], s, lambda near, far: near >= 0) for s, h in zip(coarse, outputs)]
        z = e + self.divided("agg", self.layer_norm("agg.ln_q", e), outputs, seen, head_groups(c["heads"], len(coarse)))
        return self.scale(z, 1, c["layers"][0], lengths)

    def __call__(self, ids, lengths=None):
        c = self.c
        lengths = torch.full((ids.shape[0],), ids.shape[1]) if lengths is None else lengths
        e = self.embedded(ids)
        if c["family"] == "retina":
            return self.vocabulary(self.stack(e, None, lengths, c["layers"]))
        if c["family"] == "coarse":
            return self.vocabulary(self.scale(self.down(f"down.{c['scale']}", e, c["scale"]), c["scale"], c["layers"], lengths))
        return self.vocabulary(getattr(self, c["family"])(e, lengths))

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
