"""Independent PyTorch definitions of the mixers, for reference.py: how positions exchange information.

    shapes(c)                     {name below "mixer.": shape} of the parameters
    mix(c, table, x, keep, lengths)    y (b, t, d); table maps those names to tensors, keep (b, 1, t, s) masks the keys of query t

Clear and naive on purpose, as in reference.py:
  * dispatcher: roll and a constant mask, level after level, as in the paper's pseudo-code;
  * the forms of metric attention: the dense matrix of every head, every score separately;
  * metric_psd: M = L L^T, with the lower triangle L packed row by row.
"""
import math

import torch

FORMS = ("quad", "p_only", "metric", "metric_psd")
NAMES = ("sdp", "dispatcher", "quad_full", *FORMS, "avgpool", "identity")


def of_layer(c, i):
    """The configuration of layer i: its mixer from a list, and its value of a key that maps mixers to values."""
    if isinstance(c["mixer"], str):
        return c
    mixer = c["mixer"][i % len(c["mixer"])]
    return {**c, "mixer": mixer, **{key: value[mixer] for key, value in c.items() if isinstance(value, dict) and mixer in value}}


def levels(c):
    """The number that ctx needs, unless the configuration sets it."""
    return max(1, math.ceil(math.log2(c["ctx"]))) if c["levels"] is None else c["levels"]


def linear_shapes(maps, bias):
    """Weights (out, in) and, with `bias`, biases (out) of {name: (out, in)}."""
    shapes = {}
    for name, shape in maps.items():
        shapes[f"{name}.weight"] = shape
        if bias:
            shapes[f"{name}.bias"] = shape[:1]
    return shapes


def shapes(c):
    d, mixer = c["d"], c["mixer"]
    if mixer in ("avgpool", "identity"):
        return {}
    h, k = c["heads"], d // c["heads"]
    if mixer == "sdp":
        g, k = c["kv_heads"] or h, c["head_width"] or k
        norms = {"q_norm.weight": (k,), "k_norm.weight": (k,)} if c["qk_norm"] else {}
        with_bias = c["bias"] if c["qkv_bias"] is None else c["qkv_bias"]
        return {**linear_shapes({"qkv": ((h + 2 * g) * k, d)}, with_bias), **linear_shapes({"proj": (d, h * k)}, c["bias"]), **norms}
    if mixer == "dispatcher":
        width, rows = (k, levels(c)) if c["share_heads"] else (d, h * levels(c))
        return linear_shapes({"value": (width, width), "coef": (rows, width), "out": (width, width)}, c["mixer_bias"])
    if mixer == "quad_full":
        return {"u_metric": (h, d, d), **linear_shapes({"val": (d, d), "out": (d, d)}, c["bias"])}
    triangle = (h, k * (k + 1) // 2)
    metric = {"quad": {"a_metric": (h, k, k)}, "p_only": {}, "metric": {"m_metric": triangle}, "metric_psd": {"l_metric": triangle}}[mixer]
    maps = {"proj_in": (d, d), "out": (d, d), **({"val": (d, d)} if c["value_proj"] else {})}
    return {**metric, **linear_shapes(maps, c["bias"])}


def linear(table, name, x):
    y = x @ table[f"{name}.weight"].T
    return y + table[f"{name}.bias"] if f"{name}.bias" in table else y


def heads_of(x_btd, heads):
    b, t, d = x_btd.shape
    return x_btd.reshape(b, t, heads, d // heads).transpose(1, 2)


def merged(x_bhtk):
    b, h, t, k = x_bhtk.shape
    return x_bhtk.transpose(1, 2).reshape(b, t, h * k)


def weighted_values(scores_bhts, v_bhsk, keep):
    """softmax over the visible keys; a query without one gives exactly zero and passes no gradient."""
    if scores_bhts.shape[-1] == 0:  # a stack without a complete cell
        return scores_bhts @ v_bhsk
    scores = scores_bhts.masked_fill(~keep, -math.inf)
    highest = scores.detach().amax(-1, keepdim=True)
    e = torch.exp(scores - highest.masked_fill(highest == -math.inf, 0.0))
    total = e.sum(-1, keepdim=True)
    return e / total.masked_fill(total == 0, 1.0) @ v_bhsk


def attention(q_bhtk, k_bhsk, v_bhsk, keep):
    return weighted_values(q_bhtk @ k_bhsk.transpose(-1, -2) / math.sqrt(q_bhtk.shape[-1]), v_bhsk, keep)


def pool(x_btd, window, causal, lengths=None):
    """The mean over the window's positions without padding, minus x; a mean over none is 0."""
    length = x_btd.shape[1]
    y = torch.zeros_like(x_btd)
    for b in range(x_btd.shape[0]):
        real = length if lengths is None else int(lengths[b])
        for t in range(length):
            back, ahead = (window - 1, 0) if causal else (window // 2, window // 2)
            seen = [s for s in range(t - back, t + ahead + 1) if 0 <= s < real]
            y[b, t] = sum((x_btd[b, s] for s in seen), torch.zeros_like(x_btd[b, t])) / max(1, len(seen)) - x_btd[b, t]
    return y


def shift_and_sum(v_bhtk, c_bhtr):
    length = v_bhtk.shape[2]
    for r in range(c_bhtr.shape[3]):
        shift = 2 ** r
        if shift >= length:
            break
        mask = (torch.arange(length) >= shift).to(v_bhtk.dtype)[:, None]
        v_bhtk = v_bhtk + c_bhtr[..., r:r + 1] * mask * torch.roll(v_bhtk, shift, dims=2)
    return v_bhtk


def dispatcher(c, table, x_btd):
    h = c["heads"]
    if c["share_heads"]:
        x_bhtk = heads_of(x_btd, h)
        v, a = linear(table, "value", x_bhtk), linear(table, "coef", x_bhtk)
    else:
        v, a = heads_of(linear(table, "value", x_btd), h), heads_of(linear(table, "coef", x_btd), h)
    y = shift_and_sum(v, torch.sigmoid(a) if c["coef_act"] == "sigmoid" else a)
    return merged(linear(table, "out", y)) if c["share_heads"] else linear(table, "out", merged(y))


def triangle_to_matrix(packed_hl, k, lower):
    """Row by row: the upper triangle of a symmetric matrix, or the lower triangle L of L L^T."""
    rows = []
    for head in packed_hl:
        entries = {}
        places = [(i, j) for i in range(k) for j in (range(i + 1) if lower else range(i, k))]
        for value, (i, j) in zip(head, places):
            entries[i, j] = value
            if not lower:
                entries[j, i] = value
        zero = torch.zeros((), dtype=head.dtype)
        rows.append(torch.stack([torch.stack([entries.get((i, j), zero) for j in range(k)]) for i in range(k)]))
    matrix = torch.stack(rows)
    return matrix @ matrix.transpose(1, 2) if lower else matrix


def frequency(c, i, r):
    """Radians per position of pair i, scaled by wavelength as in Llama 3.1."""
    w = c["rope_theta"] ** (-2 * i / r)
    if c["rope_scaling"] == "linear":
        return w / c["rope_factor"]
    wavelength, trained = 2 * math.pi / w, c["rope_trained_ctx"]
    if c["rope_scaling"] == "none" or wavelength < trained / c["rope_high"]:
        return w
    if wavelength > trained / c["rope_low"]:
        return w / c["rope_factor"]
    m = (trained / wavelength - c["rope_low"]) / (c["rope_high"] - c["rope_low"])
    return (1 - m) * w / c["rope_factor"] + m * w


def turned(c, x_bhtk):
    """Pair i, columns i and i + r/2 as one complex number, times exp(i t w_i); the columns from r are unchanged."""
    r = int(c["rope_fraction"] * x_bhtk.shape[-1])
    w = torch.tensor([frequency(c, i, r) for i in range(r // 2)], dtype=torch.float64)
    angle = torch.arange(x_bhtk.shape[2], dtype=torch.float64)[:, None] * w
    z = torch.complex(x_bhtk[..., :r // 2], x_bhtk[..., r // 2:r]) * torch.polar(torch.ones_like(angle), angle)
    return torch.cat([z.real, z.imag, x_bhtk[..., r:]], -1).to(x_bhtk.dtype)


def form_attention(c, table, x_btd, keep):
    h, k = c["heads"], c["d"] // c["heads"]
    p = heads_of(linear(table, "proj_in", x_btd), h)
    matrix = {"quad": lambda: table["a_metric"], "p_only": lambda: torch.eye(k, dtype=x_btd.dtype).expand(h, k, k),
              "metric": lambda: triangle_to_matrix(table["m_metric"], k, lower=False),
              "metric_psd": lambda: triangle_to_matrix(table["l_metric"], k, lower=True)}[c["mixer"]]()
    scores = torch.einsum("bhtk,hkl,bhsl->bhts", p, matrix, p) / math.sqrt(k)
    v = heads_of(linear(table, "val", x_btd), h) if c["value_proj"] else p
    return linear(table, "out", merged(weighted_values(scores, v, keep)))


def mix(c, table, x_btd, keep, lengths):
    mixer = c["mixer"]
    if mixer == "identity":
        return x_btd
    if mixer == "avgpool":
        return pool(x_btd, c["pool"], c["causal"], lengths)
    if mixer == "dispatcher":
        return dispatcher(c, table, x_btd)
    if mixer in FORMS:
        return form_attention(c, table, x_btd, keep)
    h, d = c["heads"], c["d"]
    if mixer == "quad_full":
        scores = torch.einsum("btd,hde,bse->bhts", x_btd, table["u_metric"], x_btd) / math.sqrt(d // h)
        return linear(table, "out", merged(weighted_values(scores, heads_of(linear(table, "val", x_btd), h), keep)))
    g, width = c["kv_heads"] or h, c["head_width"] or d // h
    parts = linear(table, "qkv", x_btd).split([h * width, g * width, g * width], dim=-1)
    q, k, v = (heads_of(part, heads) for part, heads in zip(parts, (h, g, g)))
    if c["qk_norm"]:
        q, k = (x / torch.sqrt((x ** 2).mean(-1, keepdim=True) + c["norm_eps"]) * table[f"{name}_norm.weight"] for name, x in (("q", q), ("k", k)))
    if c["positions"] == "rope":
        q, k = turned(c, q), turned(c, k)
    k, v = (torch.stack([x[:, n * g // h] for n in range(h)], 1) for x in (k, v))  # each query head with its keys
    return linear(table, "proj", merged(attention(q, k, v, keep)))
