#!/usr/bin/env python3
"""A table of kernels from their machine code, and faults that can be found without a GPU.

  tests/bench/machine_code/check.py build/cuda/CMakeFiles/ricci_kernels.dir/__/ops/rows/*.o    a table of the kernels in these files
  tests/bench/machine_code/check.py --check FILE...          only the faults, exit status 1 if any is found
  tests/bench/machine_code/check.py --test [FILE...]         the test house/machine_code: the same, and planted faults, which must be found

Columns: instructions of the kernel, KB of code, registers, bytes of stack, warps that fit on a multiprocessor by registers and
threads (the shared memory of a launch is not in the code), and the instructions of its innermost loops.
Faults: any stack, more than 128 KB of code, fewer than 16 of 64 warps, an integer division in an innermost loop, a store of 16 bytes that
the compiler split into four, a kernel for warpgroups without wgmma (HGMMA), one that waits for each wgmma before the next, and a wgmma that
reads registers that the loop has changed since. ptxas reports the third of these only as an `info` (C7510 and similar), and no option makes
it an error. The last was a bug of ptxas 13.0 with a wrong second tile of keys. Kernels of f64 are for gradient checks: only their size is
checked."""

import argparse
import concurrent.futures
import pathlib
import re
import sys
import tempfile

import sass

MAX_BYTES, MIN_WARPS = 128 << 10, 16
# Allowed faults: (kernel, fault, reason).
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
    (
        r"^attention::flash::WarpgroupKeyGradientKernel<64, false, false",
        r"\b8 bytes of stack",
        "one number, read once: the products of dv run while ds is computed",
    ),
    (r"^attention::flash::KeyGradientKernel", r"\b(8|16) bytes of stack", "two to four numbers, read once per tile of 400 instructions"),
    (r"^attention::ForwardKernel<bf16, 32", r"\b16 bytes of stack", "the place of shared keys, read once per 64 keys; flash takes most"),
    (r"^(Row|Chunk)Kernel<", "split into four", "few of the bytes of optimizers and scales; whole stores cost norms registers"),
    (r"^shift_and_sum::(Forward|Backward)Kernel<bf16>", "split into four", "for slices of fewer than 32 columns, copied one by one"),
    (r"^attention::(Forward|QueryGradient)Kernel<bf16", "split into four", "four sums of f32 for shared memory"),
    (r"SumRows<float, RegularRows, float>", r"\b8 bytes of stack", "one number, kept aside once per row"),
]


def divides(code):
    """In an innermost loop. A division of 32-bit integers begins with a floating-point number rounded up; a division of 64-bit integers is
    a subroutine with such a begin."""

    def from_integer(texts):
        return any(re.search(r"\bI2FP?\.(\w+\.)*RP\b", text) for text in texts)

    if not from_integer(text for _, text in code.code):  # finding loops takes longer
        return False
    return any(from_integer([text, *code.calls(text)]) for loop in code.innermost_loops() for text in code.texts(loop))


def wgmma_faults(kernel):
    products, waits = (sum(word in text for _, text in kernel["code"].code) for word in ("HGMMA", "WARPGROUP.DEPBAR"))
    if kernel["architecture"] != "90a" or (not products and "Warpgroup" not in kernel["name"]):
        return []
    faults = ["no wgmma (HGMMA)"] * (not products) + [f"{products} wgmma wait {waits} times: one after the other"] * (2 * waits > products)
    if changed := kernel["code"].changed_operands():
        faults.append(f"{changed} wgmma read registers that the loop changes in between")
    return faults


def faults_of(kernel):
    code, size = kernel["code"], 16 * len(kernel["code"].code)
    faults = [f"{size >> 10} KB of code, expected at most {MAX_BYTES >> 10}"] * (size > MAX_BYTES)
    if re.search(r"\bdouble\b", kernel["name"]):
        return faults
    warps = sass.warps_per_multiprocessor(kernel["registers"], kernel["threads"])
    faults += [f"{kernel['stack']} bytes of stack, expected 0"] * (kernel["stack"] > 0)
    faults += [f"{warps} warps on a multiprocessor, expected at least {MIN_WARPS}"] * (warps < MIN_WARPS)
    if (split := code.split_stores()) and "float" not in kernel["name"]:  # four f32 elements need not be aligned to 16 bytes
        faults.append(f"{split} stores of 16 bytes split into four")
    return faults + wgmma_faults(kernel) + ["an integer division in an innermost loop"] * divides(code)


def row(kernel):
    code = kernel["code"]
    warps = sass.warps_per_multiprocessor(kernel["registers"], kernel["threads"])
    loops = " ".join(str(len(code.texts(loop))) for loop in code.innermost_loops())
    return f"{len(code.code):6} {len(code.code) >> 6:4} {kernel['registers']:4} {kernel['stack']:5} {warps:5}  {kernel['name']}; {loops}"


def look_at(path):
    return [(kernel["name"], faults_of(kernel)) for kernel in sass.kernels_of(path)]


def table_of(path):
    return [row(kernel) for kernel in sass.kernels_of(path)]


def in_all(look, paths):
    with concurrent.futures.ProcessPoolExecutor() as pool:
        return [found for of_file in pool.map(look, paths) for found in of_file]


def excused(name, fault):
    return any(re.search(kernel, name) and re.search(allowed, fault) for kernel, allowed, _ in ALLOWED)


def complaints(kernels):
    return [f"{name}: {fault}" for name, faults in kernels for fault in faults if not excused(name, fault)]


def planted_faults(nvcc):
    """Errors of the fault search: planted.cu names its kernels after their faults."""
    source = pathlib.Path(__file__).with_name("planted.cu")
    expected = {
        "stack": "bytes of stack",
        "size": "KB of code",
        "registers": r"\d+ warps",
        "division_32": "division",
        "division_64": "division",
        "split_store": "split into four",
        "one_after_the_other": "one after the other",
        "WarpgroupKernel": "no wgmma",
        "changed_operand": "changes in between",
    }
    with tempfile.TemporaryDirectory() as folder:
        cubin = pathlib.Path(folder) / "planted.cubin"
        sass.run(nvcc, "-arch=sm_90a", "-cubin", "-o", cubin, source)
        found = {re.sub(r"\(.*|<.*", "", name): (name, faults) for name, faults in look_at(cubin)}
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
    if not arguments.check and not arguments.test:
        print(f"{'instr':>6} {'KB':>4} {'reg':>4} {'stack':>5} {'warps':>5}  kernel; instructions of its innermost loops")
        print("\n".join(in_all(table_of, arguments.files)))
        return 0
    kernels = in_all(look_at, arguments.files)
    lines = complaints(kernels)
    if arguments.test:
        lines += planted_faults(arguments.nvcc)
        if len(kernels) < 100:
            lines.append(f"only {len(kernels)} kernels were found")
    print("\n".join(lines + [f"{len(kernels)} kernels, {len(lines)} faults"]))
    return int(len(lines) > 0)


if __name__ == "__main__":
    sys.exit(main())
