#!/usr/bin/env python3
"""AN ESTIMATE of where a training step on an H200 or an H100 goes, from the machine code of a build: no GPU is needed.

  tests/bench/machine_code/step_table.py LABEL=CODE [LABEL=CODE...]           tables, kernel by kernel
  tests/bench/machine_code/step_table.py --estimates CODE --gpu h100|h200     lines `op<TAB>ms`, to put next to a trace

CODE is a library or a folder of objects for compute capability 9.0, such as build/libricci_programs.so or build/cuda. Steps: GPT-2 124M,
also with fused_gelu, and the same with the mixer `dispatcher` (12 layers, 512 positions), 65,536 tokens, bf16, AdamW. --estimates: the
first of them, whose ops are named as in the table of RICCI_TRACE; the last line is `all`.
Sizes, calls, bytes and FLOPs are those of steps.py. Instructions, registers and shared memory are counted in the machine code: in the
loops of a kernel, along the way that does most work (tensor cores, bytes, elsewhere exponentials too), and of those ways the shortest:
masks and slow paths of divisions count nothing. How often a loop runs follows from the elements that one pass over it loads or stores, or
from its tensor core products. The assumptions are printed."""

import argparse
import dataclasses
import datetime
import pathlib
import re
import sys

import sass
import steps


@dataclasses.dataclass
class Gpu:
    name: str
    clock: float
    bandwidth: float
    flops: float
    most_ms: tuple  # that a step of GPT-2 and 12 layers of shift-and-sum are to be expected to take (check.py)


GPT2, DISPATCHER = list(steps.STEPS)[:2]
GPUS = {
    "h200": Gpu("H200", 1.9e9, 4.3e12, 780e12, (118, 8.4)),
    "h100": Gpu("H100", 1.755e9, 3.0e12, 798e12, (125.5, 9.6)),
}
MULTIPROCESSORS, ISSUE, MUFU_CLOCKS, MMA_SHARE = 132, 4, 2, 0.65
ASSUMPTIONS = [
    "132 multiprocessors; the floors: H200 1.9 GHz, 4.3 TB/s copy, 780 TFLOP/s bf16, H100 1.755 GHz, 3.0 TB/s, 798 TFLOP/s",
    "4 warp instructions a clock with 32 warps or more on a multiprocessor, in proportion with fewer; tensor core kernels: always;",
    "walks of shift-and-sum with 16: a warp has eight rows of independent instructions (simulated with the code's stalls and scoreboards)",
    "16 exponentials or reciprocals and 128 bytes of shared memory a clock and multiprocessor; a shuffle takes such a clock",
    "mma.sync reaches 65% of the tensor cores' floor, wgmma all of it",
    "16 bytes that the compiler stores as four times four take four times as long: a multiprocessor stores to 32 bytes a clock",
    "estimate: the longest of memory, tensor cores, instructions, exponentials, shared memory; 0.7 of the others, with over 32 warps 0.2",
    "not from machine code: the matrix products, and the row of small kernels and gaps",
    "measured on an H200 (trace of GPT-2, 2026-11-26): these 0.7 and 0.2, and the shares of the floor that cuBLASLt reaches: 0.83 in the",
    "layers' forward, 0.735 in their backward, 0.96 in the head",
]
WANTED = "|".join(sorted({row.pattern for rows in steps.STEPS.values() for row in rows if row.pattern}))


def opcode(text):
    return re.sub(r"^@!?U?P\d+\s+", "", text).split(" ")[0]


def width(text):
    found = re.match(r"(?:LDG|STG|LDS|STS)(?:\.\w+)*?\.(U16|U8|64|128)\b", opcode(text))
    return {"U8": 1, "U16": 2, "64": 8, "128": 16}[found[1]] if found else 4


def product_flops(text):
    """A warp's share of a tensor core product: m16n8k16 by mma.sync, 64 x n x 16 of four warps by wgmma."""
    group = re.match(r"HGMMA\.64x(\d+)x16", opcode(text))
    return 2 * 16 * 16 * int(group[1]) if group else 4096 if opcode(text).startswith("HMMA") else 0


def counted(texts, kinds, widths=(2, 4, 8, 16)):
    """Bytes that a lane moves by instructions of these kinds and widths."""
    return sum(width(text) for text in texts if re.match(rf"({kinds})\b", opcode(text)) and width(text) in widths)


def weigh(texts):
    return (
        sum(product_flops(t) for t in texts),
        sum(width(t) for t in texts if re.match(r"(LDG|STG|STS)\b", opcode(t))),
        -len(texts),
    )


def weigh_stream(texts):
    return (*weigh(texts)[:2], sum(opcode(t).startswith("MUFU") for t in texts), -len(texts))


def clocks_of_shared(text, body):
    """Of an access of a warp to shared memory. If a loop also loads single numbers, its wide loads are coefficients: the same for all
    lanes."""
    if opcode(text).startswith("HGMMA"):  # for four warps: the right operand, 16 rows of n numbers, and 64 of the left one if it is there
        left = 0 if re.match(r"\S+ R\d+, R\d+", text) else 16 * 64 * 2
        return (product_flops(text) / 32 * 2 + left) / 128 / 4
    if opcode(text).startswith("SHFL"):
        return 1
    if not re.match(r"LDS|STS", opcode(text)):
        return 0
    same = opcode(text).startswith("LDS.128") and any(opcode(t) == "LDS" for t in body)
    return 4 if opcode(text).startswith("LDSM") else 1 if same else width(text) / 4


def bodies_of(code, row):
    """The ways through the loops that the row asks for, or through the whole kernel."""
    weight = weigh if row.unit == "tile" else weigh_stream
    ways = {head: code.path(weight, head) for head in sorted(code.loops)}
    inner = [head for head in ways if not any(h != head and h in code.loops[head] for h in code.loops)]
    if row.unit == "whole" or not ways:
        return [code.path(weight)]
    if row.unit == "tile":
        return [max((ways[h] for h in inner), key=lambda way: weigh(way)[0])]
    if row.unit == "walk":
        # Only the backward adds over lanes. In old kernels that was a loop of its own, so that its walk is no innermost loop.
        adds = {h: any(re.match(r"SHFL.BFLY|REDUX", opcode(t)) for t in code.texts(code.loops[h])) for h in ways}
        walks = [h for h in ways if any(opcode(t) == "FFMA" for t in ways[h]) and counted(ways[h], "STS") and adds[h] == row.backward]
        walks = [h for h in walks if row.backward or h in inner]
        return [ways[h] for h in walks if not any(g != h and g in code.loops[h] for g in walks)]
    loaded = {h: counted(ways[h], row.kinds, row.widths) for h in inner}
    stores = {h: counted(ways[h], "STG") > 0 for h in inner}
    wanted = [h for h in inner if loaded[h] and (row.stores is None or stores[h] == row.stores)]
    most = max((loaded[h] for h in wanted), default=0)
    if not most:
        return [code.path(weight)]
    return [min((ways[h] for h in wanted if loaded[h] == most), key=len)]


def work_of(row, kernel):
    """What one call executes: warp instructions, products, their FLOPs as wgmma would do them, and clocks of shared memory."""
    bodies = bodies_of(kernel["code"], row)
    total = dict(instructions=0, mufu=0, mma=0, flops=0, shared=0)
    for body in bodies:
        if row.unit == "tile":
            lanes_work = sum(product_flops(t) for t in body)
        elif row.unit in ("whole", "row") and row.rows:
            lanes_work = row.work / row.rows
        elif row.unit == "walk":
            lanes_work = 32 * counted(body, "STS") / 4
        else:
            lanes_work = 32 * counted(body, row.kinds, row.widths) / row.read
        executions = row.work / max(lanes_work, 1) / len(bodies)
        total["instructions"] += executions * len(body)
        total["mufu"] += executions * sum(opcode(t).startswith("MUFU") for t in body)
        total["mma"] += executions * sum(product_flops(t) > 0 for t in body)
        total["flops"] += executions * sum(product_flops(t) / (MMA_SHARE if opcode(t).startswith("HMMA") else 1) for t in body)
        total["shared"] += executions * sum(clocks_of_shared(t, body) for t in body)
    body = max(bodies, key=len)
    if row.unit == "tile":
        unit = f"{len(body)} per tile"
    elif row.rows:
        unit = f"{len(body)} per row"
    elif row.unit == "walk":
        unit = f"{len(body)} per {int(counted(body, 'STS') / 4)} numbers"
    else:
        unit = f"{len(body) * 16 * row.read / row.main / counted(body, row.kinds, row.widths):.0f} per 16 bytes"
    return total, unit


def shared_bytes(row, kernel):
    """Of a block: what the launch asks for, if it does, and what the code has, of which 1 KiB is the system's."""
    return max(kernel["shared"], 1024) + row.shared.get(kernel["threads"], 0)


def estimate(row, kernel, total, gpu):
    warps = sass.warps_per_multiprocessor(kernel["registers"], kernel["threads"], shared_bytes(row, kernel))
    clocks, full = MULTIPROCESSORS * gpu.clock, 16 if row.unit == "walk" else 32  # a second; warps
    terms = [
        row.bytes / gpu.bandwidth,
        total["flops"] / gpu.flops,
        (total["instructions"] - total["mma"]) / (ISSUE * clocks * (1 if total["mma"] else min(1, warps / full))),
        total["mufu"] * MUFU_CLOCKS / clocks,
        total["shared"] / clocks,
        3 * row.written / 32 / clocks if kernel["code"].split_stores() else 0,
    ]
    longest = max(terms)
    return warps, longest + (0.2 if warps > 32 else 0.7) * (sum(terms) - longest)


def line_of(row, kernels, gpu):
    """The row's numbers, times in ms."""
    floor = max(row.bytes / gpu.bandwidth, row.flops / gpu.flops)
    line = {"kernel": row.name, "op": row.op, "calls": row.calls, "GB": row.bytes / 1e9, "GFLOP": row.flops / 1e9, "floor_ms": 1e3 * floor}
    if not row.pattern:
        seconds = row.seconds if row.seconds is not None else row.flops / gpu.flops / row.share + 0.5 * row.bytes / gpu.bandwidth
        return line | {"estimate_ms": 1e3 * seconds, "step_ms": 1e3 * seconds * row.calls}
    kernel = next((k for k in kernels if re.search(row.pattern, k["name"])), None)
    if kernel is None:
        sys.exit(f"step_table.py: {row.name}: no kernel is called {row.pattern}; steps.py has the names")
    total, unit = work_of(row, kernel)
    warps, seconds = estimate(row, kernel, total, gpu)
    return line | {
        "instructions": unit,
        "registers": kernel["registers"],
        "shared_bytes": shared_bytes(row, kernel),
        "warps": warps,
        "estimate_ms": 1e3 * seconds,
        "step_ms": 1e3 * seconds * row.calls,
    }


def step_of(rows, kernels, gpu):
    lines = [line_of(row, kernels, gpu) for row in rows]
    return {
        "rows": lines,
        "floor_ms": sum(line["floor_ms"] * line["calls"] for line in lines),
        "estimate_ms": sum(line["step_ms"] for line in lines),
        "mixing_ms": sum(line["step_ms"] for line in lines if re.match(r"flash|shift-and-sum", line["kernel"])),
    }


def compared(kernels, gpu):
    """(what, ms, at most) for what is to stay fast."""
    gpt2, dispatcher = (step_of(steps.STEPS[name], kernels, gpu) for name in (GPT2, DISPATCHER))
    times = {"a step of GPT-2 124M": gpt2["estimate_ms"], "12 layers of shift-and-sum": dispatcher["mixing_ms"]}
    return [(what, ms, most) for (what, ms), most in zip(times.items(), gpu.most_ms)]


def kernels_in(code):
    """Of a library or a folder of objects, those that the steps need."""
    paths = sorted(code.rglob("*.o")) if code.is_dir() else [code]
    return [kernel for path in paths for kernel in sass.kernels_of(path, WANTED)]


def estimates(kernels, gpu):
    """{op: ms of a step of GPT-2}"""
    ms = {}
    for line in step_of(steps.STEPS[GPT2], kernels, gpu)["rows"]:
        for key in filter(None, (line["op"], "all")):
            ms[key] = ms.get(key, 0) + line["step_ms"]
    return ms


def table_of(lines):
    text = [
        f"{'kernel':42} {'calls':>5} {'GB':>6} {'GFLOP':>7} {'instructions':>19} {'reg':>4} {'KB':>4} {'warps':>5} "
        f"{'floor':>7} {'est.':>7} {'step ms':>8}"
    ]
    for line in lines:
        instructions, registers, warps = (line.get(key, "-") for key in ("instructions", "registers", "warps"))
        shown = f"{instructions:>19} {registers:>4} {line.get('shared_bytes', 0) // 1024:>4} {warps:>5}"
        text.append(
            f"{line['kernel']:42} {line['calls']:5} {line['GB']:6.2f} {line['GFLOP']:7.0f} {shown} {line['floor_ms']:7.3f} "
            f"{line['estimate_ms']:7.3f} {line['step_ms']:8.2f}"
        )
    return text


def text_of(label, gpu, name, step):
    tokens = steps.TOKENS / step["estimate_ms"] * 1e3
    total = f"floor {step['floor_ms']:.1f} ms, estimate {step['estimate_ms']:.1f} ms, {tokens:,.0f} tokens/s"
    return ["", f"{label}, {gpu}: {name}", *table_of(step["rows"]), f"step: {total}; of it mixing {step['mixing_ms']:.1f} ms"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("code", nargs="+", metavar="[LABEL=]CODE")
    parser.add_argument("--estimates", action="store_true")
    parser.add_argument("--gpu", choices=GPUS, default="h200")
    arguments = parser.parse_args()
    if not sass.find_tools():
        print(f"needs {sass.TOOLS}", file=sys.stderr)
        return 77
    pairs = [code.rpartition("=") for code in arguments.code]
    kernels = {label: kernels_in(pathlib.Path(code)) for label, _, code in pairs}
    if arguments.estimates:
        ms = estimates(kernels[pairs[0][0]], GPUS[arguments.gpu])
        print("\n".join(f"{op}\t{ms[op]:.2f}" for op in sorted(ms, key=lambda op: (op == "all", -ms[op]))))
        return 0
    command = f"{datetime.date.today()}: tests/bench/machine_code/step_table.py {' '.join(f'{label}=CODE' for label in kernels)}"
    print("AN ESTIMATE from machine code: no time in this table was measured.", *ASSUMPTIONS, command, sep="\n  ")
    for label, found in kernels.items():
        for gpu in GPUS.values():
            for name, rows in steps.STEPS.items():
                print("\n".join(text_of(label, gpu.name, name, step_of(rows, found, gpu))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
