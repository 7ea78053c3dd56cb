#!/usr/bin/env python3
"""Kernels as their machine code shows them, and faults that need no GPU to be seen.

  tests/bench/machine_code/check.py build/cuda/CMakeFiles/ricci_kernels.dir/__/ops/rows/*.o    a table of the kernels in these files
  tests/bench/machine_code/check.py --check FILE...          the faults alone, exit status 1 if there are any
  tests/bench/machine_code/check.py --test [FILE...]         the test house/machine_code: the same, and planted faults, which must be found

Columns: instructions of the whole kernel, KB of code, registers, bytes of stack, warps that fit on a multiprocessor by registers and
threads (the shared memory of a launch is not in the code), and the instructions of its innermost loops.
Faults: any stack, more than 128 KB of code, fewer than 16 of 64 warps, an integer division in an innermost loop. Kernels of f64 numbers are
there to check gradients: only their size is checked."""

import argparse
import concurrent.futures
import pathlib
import re
import sys
import tempfile

import sass

MAX_BYTES, MIN_WARPS = 128 << 10, 16
# What a kernel may do, and why: (kernel, fault, reason).
ALLOWED = [
    (
        r"(arithmetic::Combine|broadcast::Repeat|copies::Copy)<|copies::TransposeKernel",
        "division",
        "the place of an element in a strided tensor",
    ),
    (r"shift_and_sum::Cached<|attention::CachedKernel", "division", "decoding: a loop over few new positions, often one"),
    (r"bag_cross_entropy::Mean", "division", "one block, once per batch"),
    (r"metric::ScoresKernel", "division", "loads 32 rows that a block then multiplies in pairs, 256 times as much work"),
    (r"^attention::(flash::)?(Forward|KeyGradient|QueryGradient)Kernel", "warps", "tiles of scores and sums stay in registers"),
    (
        r"^attention::flash::Warpgroup(ForwardKernel<128|KeyGradientKernel|QueryGradientKernel<(128|64, true))",
        "warps",
        "two or three warpgroups whose sums and scores stay in registers",
    ),
    (r"^attention::flash::KeyGradientKernel", r"\b(8|16) bytes of stack", "two to four numbers, read once per tile of 400 instructions"),
    (
        r"^attention::flash::(Warpgroup)?QueryGradientKernel<64, false, false, true>",
        r"\b(8|48) bytes of stack",
        "packed documents: one number, or eight, read once per tile; three more where a document begins in the tile",
    ),
    (r"^attention::ForwardKernel<bf16, 32, false>", r"\b16 bytes of stack", "the place of shared keys, read once per 64 keys; flash takes nearly all such heads"),
    (r"SumRows<float, RegularRows, float>", r"\b8 bytes of stack", "one number, kept aside once per row"),
]


def divides(loop, code):
    """Dividing 32-bit integers begins with a floating-point number rounded up; dividing 64-bit integers is a subroutine that does."""
    from_integer = re.compile(r"\bI2FP?\.(\w+\.)*RP\b")
    return any(from_integer.search(text) for text in loop) or any(from_integer.search(text) for call in loop for text in code.calls(call))


def faults_of(kernel):
    code, size = kernel["code"], 16 * len(kernel["code"].code)
    faults = [f"{size >> 10} KB of code, expected at most {MAX_BYTES >> 10}"] * (size > MAX_BYTES)
    if re.search(r"\bdouble\b", kernel["name"]):
        return faults
    warps = sass.warps_per_multiprocessor(kernel["registers"], kernel["threads"])
    faults += [f"{kernel['stack']} bytes of stack, expected 0"] * (kernel["stack"] > 0)
    faults += [f"{warps} warps on a multiprocessor, expected at least {MIN_WARPS}"] * (warps < MIN_WARPS)
    return faults + ["an integer division in an innermost loop"] * any(divides(code.texts(loop), code) for loop in code.innermost_loops())


def row(kernel):
    code = kernel["code"]
    warps = sass.warps_per_multiprocessor(kernel["registers"], kernel["threads"])
    loops = " ".join(str(len(code.texts(loop))) for loop in code.innermost_loops())
    return f"{len(code.code):6} {len(code.code) >> 6:4} {kernel['registers']:4} {kernel['stack']:5} {warps:5}  {kernel['name']}; {loops}"


def look_at(path):
    return [(kernel["name"], row(kernel), faults_of(kernel)) for kernel in sass.kernels_of(path)]


def look_at_all(paths):
    with concurrent.futures.ProcessPoolExecutor() as pool:
        return [kernel for kernels in pool.map(look_at, paths) for kernel in kernels]


def excused(name, fault):
    return any(re.search(kernel, name) and re.search(allowed, fault) for kernel, allowed, _ in ALLOWED)


def complaints(kernels):
    return [f"{name}: {fault}" for name, _, faults in kernels for fault in faults if not excused(name, fault)]


def planted_faults(nvcc):
    """What is wrong with the finding of faults: planted.cu names its kernels after what is wrong with them."""
    source = pathlib.Path(__file__).with_name("planted.cu")
    expected = {
        "stack": "bytes of stack",
        "size": "KB of code",
        "registers": r"\d+ warps",
        "division_32": "division",
        "division_64": "division",
    }
    with tempfile.TemporaryDirectory() as folder:
        cubin = pathlib.Path(folder) / "planted.cubin"
        sass.run(nvcc, "-arch=sm_90", "-cubin", "-o", cubin, source)
        found = {re.sub(r"\(.*|<.*", "", name): (name, faults) for name, _, faults in look_at(cubin)}
    lines = [
        f"planted.cu: {found.get(kernel)}, expected a fault '{text}'"
        for kernel, text in expected.items()
        if not any(re.search(text, fault) for fault in found.get(kernel, ("", []))[1])
    ]
    wrong = [(name, faults) for key, (name, faults) in found.items() if key not in expected and faults]
    return lines + [f"planted.cu: {name}: {faults}, expected none" for name, faults in wrong]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--test", action="store_true")
    parser.add_argument("--nvcc", default="nvcc")
    parser.add_argument("files", nargs="*")
    arguments = parser.parse_args()
    if arguments.test and not arguments.files:
        print("skipped: house/machine_code needs kernels that nvcc has compiled, and this build has none")
        return 77
    if not sass.find_tools():
        print(f"skipped: house/machine_code needs {sass.TOOLS}")
        return 77
    kernels = look_at_all(arguments.files)
    if not arguments.check and not arguments.test:
        print(f"{'instr':>6} {'KB':>4} {'reg':>4} {'stack':>5} {'warps':>5}  kernel; instructions of its innermost loops")
        print("\n".join(line for _, line, _ in kernels))
    lines = complaints(kernels) + (planted_faults(arguments.nvcc) if arguments.test else [])
    if arguments.test and len(kernels) < 100:
        lines.append(f"only {len(kernels)} kernels were found")
    print("\n".join(lines + [f"{len(kernels)} kernels, {len(lines)} faults"]))
    return int((arguments.check or arguments.test) and len(lines) > 0)


if __name__ == "__main__":
    sys.exit(main())
