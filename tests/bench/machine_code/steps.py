"""Training steps as lists of kernels: how often each is called and on what. GPT-2 124M, with fused_gelu too, and the same with the mixer
`dispatcher`. A kernel's `op` is the line of RICCI_TRACE that has its time; the gaps between kernels have none."""

import dataclasses

TOKENS, WIDTH, LAYERS, HEADS, VOCABULARY, LENGTH = 65536, 768, 12, 12, 50304, 1024
PARAMETERS = VOCABULARY * WIDTH + LENGTH * WIDTH + LAYERS * (12 * WIDTH * WIDTH + 13 * WIDTH) + 2 * WIDTH
N = TOKENS * WIDTH
CHUNKS = 4  # of the logits: 2 GiB of them exist at a time (ops/products/classifier.cu)


@dataclasses.dataclass
class Row:
    name: str
    op: str
    pattern: str  # the name of the kernel; empty: no kernel of ours
    calls: int
    bytes: float = 0  # read and written in memory, once
    flops: float = 0
    unit: str = (
        "loop"  # what is counted: loop, whole (kernel), row (a loop per row), tile (of tensor core products), walk (of shift-and-sum)
    )
    work: float = 0  # elements, or FLOPs of tiles
    read: int = 2  # bytes that are loaded (or stored, see kinds) for an element
    main: int = 2  # bytes of an element of the main array
    widths: tuple = (2, 16)  # of the accesses that are counted, in bytes
    kinds: str = "LDG"
    rows: int = 0  # executions of a row's instructions
    stores: bool = None  # the loop writes to memory, or does not; None: either
    written: float = 0  # of the bytes, those that are stored, if the compiler can split the stores
    backward: bool = False
    shared: dict = dataclasses.field(default_factory=dict)  # bytes that the launch asks for, by the threads of a block
    seconds: float = None  # where no kernel of ours works
    share: float = 1  # of the floor, that a product of cuBLASLt reaches


def pairs(rows, part):
    """Pairs of a causal head that are computed where a warp owns `rows` of them and goes in parts of `part`."""
    return sum(rows * -(-(first + rows) // part) * part for first in range(0, LENGTH, rows))


def flash():
    heads = TOKENS // LENGTH * HEADS
    exact = LENGTH * LENGTH / 2

    def row(name, op, kernel, products, shared, **options):
        return Row(
            f"flash {name}",
            op,
            rf"flash::Warpgroup{kernel}Kernel<64, false, false>",
            LAYERS,
            bytes=N * 2 * 4,
            flops=2 * products * 64 * exact * heads,
            unit="tile",
            work=2 * products * 64 * pairs(32, 64) * heads,
            shared={256: shared, 384: shared},
            **options,
        )

    backward = "attention backward"
    return [
        row("forward", "attention", "Forward", 2, 49152, written=2 * N),
        row("dk dv", backward, "KeyGradient", 4, 82944, written=4 * N),
        Row("flash delta", backward, r"flash::DeltaKernel<64>", LAYERS, bytes=4 * N, unit="whole", work=N, read=4, widths=(16,)),
        row("dq", backward, "QueryGradient", 3, 65536, written=2 * N),
    ]


def shift_and_sum():
    """512 positions: a block has 32 columns. A warp walks over 16 rows and warms up on 8; the last three levels have classes of eight
    rows, which the backward reads twice."""

    def kernel(name, op, walks, copies, backward_walks, partial, shared):
        pattern = rf"shift_and_sum::{name.capitalize()}Kernel<bf16>"

        def row(what, passes, **more):
            return Row(f"shift-and-sum {name}: {what}", op, pattern, LAYERS, work=passes * N, shared=shared, **more)

        rows = [row("walks forward", walks, unit="walk", bytes=(copies + 1) * 2 * N + partial)]
        if backward_walks:
            rows.append(row("walks backward", backward_walks, unit="walk", backward=True))
        rows.append(row("copies in", copies + bool(backward_walks), read=2, widths=(8,), stores=False))
        return rows + [row("copies out", 1, read=4, main=4, widths=(16,), kinds="LDS", stores=True)]

    slices, backward = WIDTH // 32 * TOKENS * 9 * 4, "shift_and_sum backward"
    sums = Row(
        "shift-and-sum sums of slices", backward, r"SumSlices<float>", LAYERS, bytes=slices, work=slices / 4, read=4, main=4, widths=(4,)
    )
    return (
        kernel("forward", "shift_and_sum", 4, 1, 0, 0, {512: 82 << 10, 1024: 88 << 10})
        + kernel("backward", backward, 3, 2, 5, slices, {512: 210 << 10, 1024: 216 << 10})
        + [sums]
    )


def gelu(wide):
    pattern, of_slope = r"Both<formulas::Tanh, bf16>", r"unary::Backward<formulas::Tanh, bf16>"
    return [
        Row("gelu_tanh, value and slope", "gelu_tanh", pattern, LAYERS, bytes=6 * wide, unit="whole", work=wide),
        Row("gelu_tanh'", "gelu_tanh backward", of_slope, LAYERS, bytes=6 * wide, unit="whole", work=wide, read=4),
    ]


def fused_gelu(wide):
    return [
        Row("gelu_tanh in the products: x beside y", "feed_forward", "", LAYERS, bytes=2 * wide),
        Row("gelu_tanh' in the products: x again", "feed_forward backward", "", LAYERS, bytes=2 * wide),
    ]


def products(layer_parameters):
    """Backward multiplies twice as much. The head has no backward of its own: its op computes the gradients with the loss."""
    layers, head = 2 * TOKENS * LAYERS * layer_parameters, 2 * TOKENS * VOCABULARY * WIDTH
    return [
        Row("products of the layers", "linear", "", 1, flops=layers, share=0.83),
        Row("products of the layers, backward", "linear backward", "", 1, flops=2 * layers, share=0.735),
        *(Row(f"products of the head: {of}", f"classifier_loss {of}", "", 1, flops=head, share=0.96) for of in ("logits", "dx", "dw")),
    ]


def around(mixing, layer_parameters, activation):
    norms, wide = 2 * LAYERS + 1, 4 * N
    dw, partial, logits = VOCABULARY * WIDTH * 4 * 2, 512 * 2 * WIDTH * 4, TOKENS * VOCABULARY
    norm, softmax = "residual_layer_norm", "classifier_loss softmax"  # one of the norms is layer_norm: nothing has been added before it
    whole_row = dict(bytes=8 * N, work=N, rows=TOKENS)
    entropy = dict(bytes=2 * logits, work=logits)
    of_all = dict(work=PARAMETERS, main=4)
    return [
        *products(layer_parameters),
        *mixing,
        *activation(wide),
        Row("norm and residual", norm, r"layer_norm::ForwardKernel<4>", norms, unit="whole", **whole_row),
        Row("norm backward", f"{norm} backward", r"layer_norm::BackwardKernel<3>", norms, unit="row", **whole_row),
        Row(
            "dgain and dbias, sums of blocks",
            f"{norm} backward",
            r"ColumnKernel<layer_norm::SumOfBlocks>",
            norms,
            bytes=partial,
            work=partial / 8,
            read=8,
            main=4,
            widths=(4,),
        ),
        Row("cross-entropy, its sums", softmax, r"CrossEntropyOfPieces", 1, stores=False, **entropy),
        Row("cross-entropy, its gradient", softmax, r"CrossEntropyOfPieces", 1, stores=True, **entropy),
        Row(f"dw of the head, read and added {CHUNKS} times", "classifier_loss dw", "", CHUNKS, bytes=dw),
        Row("AdamW", "optimizer", r"OptimizerUpdate<bf16, adamw", 1, bytes=30 * PARAMETERS, read=16, widths=(4, 16), **of_all),
        Row("gradient norm", "gradient_norm", r"gradient_norm::PartialSums<float>", 1, bytes=4 * PARAMETERS, read=4, widths=(4,), **of_all),
        Row("embedding", "embedding", r"RowKernel<embedding::Forward<bf16>", 1, bytes=4 * N, work=N, read=4),
        Row("embedding', sums of rows", "embedding backward", r"SumRows<bf16, embedding::Bucket, float>", 1, bytes=4 * N, work=N),
        Row("sorted ids, small kernels, gap between steps", "", "", 1, seconds=1.4e-3),
    ]


def gpt2(activation=gelu):
    return around(flash(), 12 * WIDTH * WIDTH, activation)


def dispatcher():
    coefficients, pattern = TOKENS * 9, r"unary::Value<formulas::Sigmoid, bf16>"
    sigmoid = Row("sigmoid and its gradient", "sigmoid", pattern, LAYERS, bytes=4 * coefficients, unit="whole", work=2 * coefficients)
    return around([*shift_and_sum(), sigmoid], 10 * WIDTH * WIDTH + 9 * WIDTH, gelu)


STEPS = {
    "GPT-2 124M, 64 x 1,024, bf16, AdamW": gpt2(),
    "Dispatcher, 12 layers, 128 x 512, bf16, AdamW": dispatcher(),
    "GPT-2 124M with fused_gelu: true": gpt2(fused_gelu),
}
