"""Two training steps as lists of kernels: how often each is called and on what. GPT-2 124M, and the same with the mixer `dispatcher`."""

import dataclasses

TOKENS, WIDTH, LAYERS, HEADS, VOCABULARY, LENGTH = 65536, 768, 12, 12, 50304, 1024
PARAMETERS = VOCABULARY * WIDTH + LENGTH * WIDTH + LAYERS * (12 * WIDTH * WIDTH + 13 * WIDTH) + 2 * WIDTH
N = TOKENS * WIDTH
FILES = r"gelu|layer_norm|classifier|adamw|gradient_norm|embedding|flash|verbs/arithmetic|shift_and_sum|sigmoid"


@dataclasses.dataclass
class Row:
    name: str
    pattern: tuple  # names of the kernel in versions of the code, the first that a build has; empty: no kernel of ours
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
    backward: bool = False
    shared: dict = dataclasses.field(default_factory=dict)  # bytes that the launch asks for, by the threads of a block
    moved: float = None  # bytes moved where floors do not count them
    seconds: float = None  # where no kernel of ours works
    unless: str = ""  # a kernel that does this work too
    optional: bool = False  # older code has no such kernel

    @property
    def traffic(self):
        return self.bytes if self.moved is None else self.moved


def pairs(rows, part):
    """Pairs of a causal head that are computed where a warp owns `rows` of them and goes in parts of `part`."""
    return sum(rows * -(-(first + rows) // part) * part for first in range(0, LENGTH, rows))


@dataclasses.dataclass
class Source:
    """What the files of a commit tell: the chunks of the logits on 141 GB, and what products do beside multiplying."""

    chunks: int
    sums_bias: bool
    fuses_gelu: bool


def source_of(folder):
    products = folder / "ops/products"
    held = (2 << 30) / 2 if "total_bytes" in (products / "classifier.cu").read_text() else 5120 * VOCABULARY
    return Source(
        -(-TOKENS // int(held / VOCABULARY)), "row_sums" in (products / "linear.cu").read_text(), (products / "feed_forward.cu").exists()
    )


def flash():
    heads = TOKENS // LENGTH * HEADS
    exact = LENGTH * LENGTH / 2

    def row(name, kernels, products, part, shared, **options):
        return Row(
            f"flash {name}",
            tuple(rf"flash::{kernel}<64, false, false>" for kernel in kernels.split()),
            LAYERS,
            bytes=N * 2 * 4,
            flops=2 * products * 64 * exact * heads,
            unit="tile",
            work=2 * products * 64 * pairs(32, part) * heads,
            shared={128: shared, 256: shared, 384: shared},
            **options,
        )

    delta = Row("flash delta", (r"flash::DeltaKernel<64>",), LAYERS, bytes=4 * N, unit="whole", work=N, read=4, widths=(16,))
    return [
        row("forward", "WarpgroupForwardKernel ForwardKernel", 2, 64, 49152),
        row("dk dv", "WarpgroupKeyGradientKernel", 4, 64, 82944, optional=True),
        row("dk dv", "KeyGradientKernel", 4, 32, 66560, unless="flash::WarpgroupKeyGradientKernel"),
        delta,
        row("dq", "WarpgroupQueryGradientKernel", 3, 64, 65536, optional=True),
        row("dq", "QueryGradientKernel", 3, 32, 65536, unless="flash::WarpgroupQueryGradientKernel"),
    ]


def shift_and_sum():
    """512 positions: a block has 32 columns (of the first version's backward 16, whose longer warming up is not counted). A warp walks over
    16 rows and warms up on 8; the last three levels have classes of eight rows, which the backward reads twice."""

    def kernel(name, pattern, walks, copies, backward_walks, partial, shared):
        def row(what, passes, **more):
            return Row(f"shift-and-sum {name}: {what}", pattern, LAYERS, work=passes * N, shared=shared, **more)

        rows = [row("walks forward", walks, unit="walk", bytes=(copies + 1) * 2 * N + partial)]
        if backward_walks:
            rows.append(row("walks backward", backward_walks, unit="walk", backward=True))
        rows.append(row("copies in", copies + bool(backward_walks), read=2, widths=(8,), stores=False))
        return rows + [row("copies out", 1, read=4, main=4, widths=(16,), kinds="LDS", stores=True)]

    slices = WIDTH // 32 * TOKENS * 9 * 4
    sums = Row(
        "shift-and-sum sums of slices", (r"SumSlices<(bf16|float)>",), LAYERS, bytes=slices, work=slices / 4, read=4, main=4, widths=(4,)
    )
    return (
        kernel("forward", (r"shift_and_sum::ForwardKernel<bf16>",), 4, 1, 0, 0, {256: 64 << 10, 1024: 88 << 10})
        + kernel("backward", (r"shift_and_sum::BackwardKernel<bf16>",), 3, 2, 5, slices, {256: 96 << 10, 1024: 216 << 10})
        + [sums]
    )


def around(mixing, layer_parameters, bias_columns, source, fused_gelu=False):
    norms, wide = 2 * LAYERS + 1, 4 * N
    layers, head = 6 * TOKENS * LAYERS * layer_parameters, 6 * TOKENS * VOCABULARY * WIDTH
    dw, partial, in_pass = VOCABULARY * WIDTH * 4 * 2, 512 * 2 * WIDTH * 4, r"ColumnKernel<layer_norm::SumOfBlocks>"
    gelu = [
        Row("gelu_tanh, value and slope", (r"Both<(gelu|formulas)::Tanh, bf16>",), LAYERS, bytes=6 * wide, unit="whole", work=wide),
        Row(
            "gelu_tanh'",
            (r"unary::Backward<(gelu|formulas)::Tanh, bf16>", r"gelu::Backward<bf16>"),
            LAYERS,
            bytes=6 * wide,
            unit="whole",
            work=wide,
            read=4,
        ),
    ]
    if fused_gelu:
        gelu = [
            Row("gelu_tanh in the products: x beside y", (), LAYERS, bytes=2 * wide),
            Row("gelu_tanh' in the products: x again", (), LAYERS, bytes=2 * wide),
        ]
    sums = [
        Row(
            "bias gradients, a layer",
            (r"ColumnKernel<arithmetic::SumColumns<bf16, bf16>",),
            LAYERS,
            bytes=2 * TOKENS * bias_columns,
            work=TOKENS * bias_columns,
        )
    ]
    return [
        Row("products of the layers", (), 1, flops=layers),
        Row("products of the head", (), 1, flops=head),
        *mixing,
        *gelu,
        *([] if source.sums_bias else sums),
        Row(
            "norm and residual",
            (r"layer_norm::ForwardKernel<3>", r"layer_norm::ForwardKernel<4>"),
            norms,
            bytes=8 * N,
            unit="whole",
            work=N,
            rows=TOKENS,
        ),
        Row(
            "norm backward",
            (r"layer_norm::BackwardKernel<3>", r"layer_norm::BackwardKernel<4>"),
            norms,
            bytes=8 * N,
            unit="row",
            work=N,
            rows=TOKENS,
        ),
        Row("dgain and dbias, sums of blocks", (in_pass,), norms, bytes=partial, work=partial / 8, read=8, main=4, widths=(4,), optional=True),
        Row(
            "dgain and dbias, read again",
            (r"ColumnKernel<layer_norm::BackwardGain<bf16>",),
            norms,
            moved=4 * N,
            work=N,
            read=4,
            widths=(2,),
            unless=in_pass,
        ),
        Row(
            "cross-entropy, its sums", (r"CrossEntropyOfPieces",), 1, bytes=2 * TOKENS * VOCABULARY, work=TOKENS * VOCABULARY, stores=False
        ),
        Row(
            "cross-entropy, its gradient",
            (r"CrossEntropyOfPieces",),
            1,
            bytes=2 * TOKENS * VOCABULARY,
            work=TOKENS * VOCABULARY,
            stores=True,
        ),
        Row(f"dw of the head, read and added {source.chunks} times", (), source.chunks, bytes=dw),
        Row("AdamW", (r"OptimizerUpdate<bf16, adamw",), 1, bytes=30 * PARAMETERS, work=PARAMETERS, read=16, main=4, widths=(4, 16)),
        Row(
            "gradient norm", (r"gradient_norm::PartialSums<float>",), 1, bytes=4 * PARAMETERS, work=PARAMETERS, read=4, main=4, widths=(4,)
        ),
        Row("embedding", (r"RowKernel<embedding::Forward<bf16>",), 1, bytes=4 * N, work=N, read=4),
        Row("embedding', sums of rows", (r"SumRows<bf16, embedding::Bucket, float>",), 1, bytes=4 * N, work=N),
        Row("sorted ids, small kernels, gap between steps", (), 1, seconds=1.4e-3),
    ]


def gpt2(source, fused_gelu=False):
    return around(flash(), 12 * WIDTH * WIDTH, 9 * WIDTH, source, fused_gelu)


def dispatcher(source):
    sigmoid = Row(
        "sigmoid and its gradient",
        (r"unary::Value<(sigmoid|formulas)::Sigmoid, bf16>", r"sigmoid::\w*Value<bf16>|sigmoid::Forward<bf16>"),
        LAYERS,
        bytes=4 * TOKENS * 9,
        unit="whole",
        work=2 * TOKENS * 9,
    )
    return around([*shift_and_sum(), sigmoid], 10 * WIDTH * WIDTH + 9 * WIDTH, 5 * WIDTH, source)


def steps_of(source):
    steps = {"GPT-2 124M, 64 x 1,024, bf16, AdamW": gpt2(source), "Dispatcher, 12 layers, 128 x 512, bf16, AdamW": dispatcher(source)}
    if source.fuses_gelu:
        steps["GPT-2 124M with fused_gelu: true"] = gpt2(source, True)
    return steps
