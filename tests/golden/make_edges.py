#!/usr/bin/env python3
"""Writes edges.safetensors from PyTorch: ops at the limits of their number range: huge scores, long sums, overflowing variances,
infinities, NaN and denormal numbers.

OP/CASE/x0, x1, .. are the inputs, rounded to f32, and ids. OP/CASE/dy is the gradient of the result, OP/CASE/y the result and OP/CASE/dx0,
dx1, .. are the gradients of the inputs. They are PyTorch's f64 results, or its f32 results if these are NaN or infinite. For a
long input only the shape is stored, OP/CASE/long: long_input makes it. tests/ops/edges_test.cpp compares.

    python3 tests/golden/make_edges.py        # needs torch
"""
import functools
import pathlib

import torch
import torch.nn.functional as F

import make_cases
import stored

INF, NAN = float("inf"), float("nan")
NUMBERS = {"small": [0.0, -0.0, 1e-45, -1e-45, 1e-40, -1e-40, 1e-20, -1e-20, 0.5, -0.5, 1.0, -1.0, 3.0, -3.0, 5.5, -5.5, 9.0, -9.0,
                     20.0, -20.0],
           "large": [87.0, -87.0, 87.5, -87.5, 88.7, -88.7, 88.8, -88.8, 103.0, -103.0, 104.0, -104.0],
           "huge": [1e4, -1e4, 1e19, -1e19, 1e30, -1e30, INF, -INF, NAN]}


def rounded(values):
    return torch.as_tensor(values).float().double()


def draw(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def whole_numbers(*shape, seed=0):
    return torch.randint(-4, 5, shape, generator=torch.Generator().manual_seed(seed)).double()


def long_input(shape):
    """Element k is a hash of k in [0, 1)."""
    k = 2654435761 * torch.arange(torch.Size(shape).numel()) & 0xffffffff
    k = 2246822519 * (k ^ k >> 15) & 0xffffffff
    return rounded((k ^ k >> 13).double() / 2**32).reshape(shape)


def run(f, inputs, dy, dtype):
    """The result and the gradients of the inputs that are not ids."""
    xs = [x if x.dtype == torch.int64 else x.to(dtype).detach().clone().requires_grad_() for x in inputs]
    y = f(*xs)
    if dy is not None:
        y.backward(dy.to(dtype))
    return [y.detach()] + [x.grad for x in xs if dy is not None and x.dtype != torch.int64]


def case(tensors, name, f, inputs, dy=None, stored_inputs=None):
    """Without dy the gradients are not stored."""
    exact, narrow = run(f, inputs, dy, torch.float64), run(f, inputs, dy, torch.float32)
    merged = [torch.where(n.isfinite(), e, n.double()) for e, n in zip(exact, narrow)]
    named = stored_inputs or {f"x{i}": x for i, x in enumerate(inputs)}
    if dy is not None:
        named |= {"dy": dy}
    named |= {key: value for key, value in zip(["y", "dx0", "dx1", "dx2"], merged)}
    tensors |= {f"{name}/{key}": make_cases.to_stored(value) for key, value in named.items()}


def losses(add):
    one = torch.ones((), dtype=torch.float64)
    nll = lambda logits, targets: F.cross_entropy(logits, targets, ignore_index=-1)
    logits = {str(s): [[s, s - 1, s - 2, 0.0], [-s, 1 - s, 2 - s, 2.5 - s]] for s in (10, 50, 300, 10000)}
    for name, rows in (logits | {"equal": [[-3e38, 3e38, 3e38, 0.0], [1e30, 1e30, 1e30, 1e30]], "masked": [[-INF, 1.0, 2.0, -INF]] * 2,
                                 "infinite": [[INF, 1.0, 2.0, 3.0]] * 2}).items():
        add(f"cross_entropy/{name}", nll, [rounded(rows), torch.tensor([1, 2])], one)
    uncounted = [[NAN, 1.0, 2.0], [INF, 1.0, 2.0], [-INF, -INF, -INF]]
    add("cross_entropy/uncounted", nll, [rounded([[1.0, 2.0, 3.0]] + uncounted), torch.tensor([1, -1, -1, -1])], one)
    # Bags of two tokens. The last cell is not scored.
    bag = lambda logits, ids: -logits[:, :-1].log_softmax(2).gather(2, ids.reshape(1, -1, 2)[:, 1:]).mean()
    ids = torch.tensor([[0, 1, 2, 0, 0, 3]])
    for name, rows in (logits | {"equal": [[3e38, -3e38, 3e38, 3e38]] * 2}).items():
        add(f"bag_cross_entropy/{name}", bag, [rounded([rows + [[NAN, 0.0, INF, 0.0]]]), ids], one)


def rows(add):
    for name, x in {"huge": [1e30, 1e30, -1e30, 3e38], "equal": [-3e38] * 4, "masked": [-INF, 1.0, -INF, 1.0], "all_masked": [-INF] * 4,
                    "infinite": [INF, 0.0, 1.0, INF], "nan": [NAN, 0.0, 1.0, 2.0], "far": [0.0, -87.0, -104.0, -1e4]}.items():
        add(f"softmax/{name}", lambda x: x.softmax(0), [rounded(x)], rounded([1.0, -2.0, 0.5, 3.0]))
    gain, bias, row = rounded(1 + draw(4, seed=2) / 4), rounded(draw(4, seed=3)), draw(3, 4, seed=1)
    norms = {"1e18": 1e18 * row, "1e30": torch.cat([1e30 * row[:1], row[1:]]), "one_1e30": torch.tensor([[1.0, 2.0, 1e30, 3.0]]),
             "constant": torch.tensor([[8.0] * 4, [2.0**-10] * 4, [0.0] * 4]), "denormal": 1e-40 * row,
             "width_1": torch.tensor([[2.0], [-8.0]])}
    for name, x in norms.items():
        g, b, dy = gain[:x.shape[1]], bias[:x.shape[1]], rounded(draw(*x.shape, seed=4)) if x.shape[1] > 1 else None
        add(f"layer_norm/{name}", lambda x, g, b: F.layer_norm(x, g.shape, g, b), [rounded(x), g, b], dy)
        if name != "1e30":  # in f32 PyTorch makes such a row 0
            add(f"rms_norm/{name}", lambda x, g: F.rms_norm(x, g.shape, g, 1e-5), [rounded(x), g], dy)


def sums(add):
    for name, f, shapes in (("sum_inner", lambda x: x.sum(-1), [(3, 65536), (16, 4099)]),
                            ("sum_middle", lambda x: x.sum(1), [(9, 131072, 2), (2, 32768, 9), (40, 5000, 3)]),
                            ("sum_outer", lambda x: x.sum(0), [(65536, 5)]),
                            ("mean_middle", lambda x: x.mean(1), [(9, 131072, 2)])):
        for shape in shapes:
            add(f"{name}/{'x'.join(map(str, shape))}", f, [long_input(shape)], stored_inputs={"long": torch.tensor(shape)})


def attention(add):
    """One head of width 8. The scores are whole numbers times 2^n, so they are exact, and so are the sums of dy v."""
    def causal(q, k, v):
        hidden = torch.full((q.shape[1], k.shape[1]), -INF).triu(1)
        return ((q @ k.transpose(1, 2)) + hidden.to(q.dtype)).softmax(2) @ v
    q, k, v, dy = (whole_numbers(1, 6, 8, seed=seed) for seed in (5, 6, 7, 8))
    for op, sizes in (("attention", (-6, 8, 14, 20)), ("attention_bf16", (-6, 8))):
        for n in sizes:
            add(f"{op}/2^{n}", causal, [q * 2.0**n, k, v], dy)


def elements(add):
    for kind, numbers in NUMBERS.items():
        x, dy = rounded(numbers), rounded(draw(len(numbers), seed=9))
        for name, f in {"relu": F.relu, "relu2": lambda x: F.relu(x)**2, "sigmoid": torch.sigmoid, "silu": F.silu, "gelu": F.gelu,
                        "gelu_tanh": lambda x: F.gelu(x, approximate="tanh")}.items():
            add(f"{name}/{kind}", f, [x], dy)
        for name in ("exp", "log", "sqrt", "tanh", "erf"):
            add(f"{name}/{kind}", getattr(torch, name), [x])
    a = [0.0, 0.0, 1.0, 0.0, 1.0, 1e-40, 1e-40, 1e30, 1e30, INF, INF, NAN, 1.0, 0.0, -3.0]
    b = [1e-40, INF, INF, 0.0, 0.0, 1e-40, 2.0, 1e30, 1e-30, INF, 2.0, 1.0, 1e-40, -1e-45, 7.0]
    add("divide/numbers", torch.divide, [rounded(a), rounded(b)], rounded(draw(len(a), seed=10)))


def choices(add):
    table = rounded(draw(5, 3, seed=11))
    ids = torch.tensor([[3, 3, 3, 0, 1, 3, 3, 4, 3, 0]])
    add("embedding/repeated", lambda ids, table: table[ids], [ids, table], rounded(draw(1, 10, 3, seed=12)))
    x = rounded([[[1.0, NAN, INF], [1.0, 2.0, INF], [0.0, 3.0, 1.0], [-0.0, 3.0, 1.0], [-1.0, -INF, -INF], [-1.0, -INF, 5.0],
                  [9.0, 9.0, 9.0]]])
    dy = rounded(draw(1, 3, 3, seed=13))
    pool = lambda f: lambda x: f(x.transpose(1, 2), 2).transpose(1, 2)
    add("cell_max/ties", pool(F.max_pool1d), [x], dy)
    add("cell_mean/ties", pool(F.avg_pool1d), [x], dy)


if __name__ == "__main__":
    tensors = {}
    for group in (losses, rows, sums, attention, elements, choices):
        group(functools.partial(case, tensors))
    stored.write_safetensors(pathlib.Path(__file__).parent / "edges.safetensors", tensors)
