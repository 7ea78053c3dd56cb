#!/usr/bin/env python3
"""The kernels of .cu files as their machine code for compute capability 9.0 shows them. No GPU is needed, only nvcc and cuobjdump.

  tests/bench/machine_code.py ops/shift_and_sum/gpu/backward.cu        a table of all kernels in the file
  tests/bench/machine_code.py --check FILE...                          exit status 1 if a kernel has a fault

Columns: instructions of the whole kernel, KB of code, registers, bytes of stack, warps that fit on a multiprocessor by registers and threads
(the shared memory of a launch is not in the code), and the instructions of its innermost loops.
Faults: any stack, more than 128 KB of code, fewer than 16 of 64 warps, an integer division in an innermost loop. Kernels of f64 numbers are
there to check gradients: they are shown, and only their size is checked."""
import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

REGISTERS, MAX_WARPS, MAX_BLOCKS = 65536, 64, 32  # of a multiprocessor
ROOT = pathlib.Path(__file__).resolve().parents[2]


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}: {done.stderr.strip()}")
    return done.stdout


def instructions(sass):
    """{kernel: [(address, text)]}"""
    kernels, current = {}, None
    for line in sass.splitlines():
        if begin := re.search(r"Function : (\S+)", line):
            current = kernels.setdefault(begin[1], [])
        elif found := re.match(r"\s+/\*([0-9a-f]+)\*/\s+(.*?);", line):
            current.append((int(found[1], 16), found[2]))
    return kernels


def innermost_loops(code):
    """The instructions between a branch backward and its target, where no other such stretch lies within."""
    jumps = [(int(to[1], 16), at) for at, text in code if (to := re.search(r"\bBRA\b.*?(0x[0-9a-f]+)", text)) and int(to[1], 16) < at]
    inner = [a for a in jumps if not any(b != a and a[0] <= b[0] and b[1] <= a[1] for b in jumps)]
    return [[text for at, text in code if first <= at <= last] for first, last in inner]


def warps_per_multiprocessor(registers, threads):
    warps = (threads + 31) // 32
    of_warp = (registers + 7) // 8 * 8 * 32
    return min(REGISTERS // (of_warp * warps), MAX_WARPS // warps, MAX_BLOCKS) * warps


def kernels_of(path):
    with tempfile.TemporaryDirectory() as folder:
        cubin = pathlib.Path(folder) / "kernels.cubin"
        run("nvcc", "-std=c++20", "-arch=sm_90a", "-cubin", "-I", ROOT, "-DRICCI_HAS_CUDA", "-o", cubin, path)
        usage, code, info = run("cuobjdump", "-res-usage", cubin), instructions(run("cuobjdump", "-sass", cubin)), run("cuobjdump", "-elf", cubin)
    for name, registers, stack in re.findall(r"Function (\S+):\s+REG:(\d+) STACK:(\d+)", usage):
        threads = re.search(re.escape(f".nv.info.{name}") + r"\n.*?EIATTR_MAX_THREADS.*?Value:\s+0x([0-9a-f]+)", info, re.S)
        loops = innermost_loops(code[name])
        yield {"name": name, "registers": int(registers), "stack": int(stack), "instructions": len(code[name]), "loops": loops,
               "bytes": 16 * len(code[name]), "warps": warps_per_multiprocessor(int(registers), int(threads[1], 16) if threads else 1024)}


def faults_of(kernel):
    faults = [f"{kernel['bytes'] >> 10} KB of code, expected at most 128"] * (kernel["bytes"] > 128 << 10)
    if "IdE" in kernel["name"]:
        return faults
    faults += [f"{kernel['stack']} bytes of stack, expected 0"] * (kernel["stack"] > 0)
    faults += [f"{kernel['warps']} warps on a multiprocessor, expected at least 16"] * (kernel["warps"] < 16)
    divides = any(re.search(r"\bI2F\b|\bI2F\.", text) for loop in kernel["loops"] for text in loop)
    return faults + ["an integer division in an innermost loop"] * divides


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("files", nargs="+")
    arguments = parser.parse_args()
    for tool in ("nvcc", "cuobjdump"):
        if not shutil.which(tool):
            print(f"no {tool}: it is needed to read machine code", file=sys.stderr)
            return 77
    print(f"{'instr':>6} {'KB':>4} {'reg':>4} {'stack':>5} {'warps':>5}  kernel; instructions of its innermost loops")
    faults = 0
    for path in arguments.files:
        for kernel in kernels_of(path):
            short = kernel["name"].split("cuda_build3run")[-1]
            loops = " ".join(str(len(loop)) for loop in kernel["loops"])
            print(f"{kernel['instructions']:6} {kernel['bytes'] >> 10:4} {kernel['registers']:4} {kernel['stack']:5} {kernel['warps']:5}  {short}; {loops}")
            for fault in faults_of(kernel):
                print(f"{path}: {short}: {fault}")
                faults += 1
    return int(arguments.check and faults > 0)


if __name__ == "__main__":
    sys.exit(main())
