#!/usr/bin/env python3
"""Steps of ricci and of PyTorch in turn on the same processors: medians over the rounds, and ratios.

    compare.py BUILD [name ...] [--bench training|mixers|products] [--rounds 3] [--steps 5] [--dtype f32|bf16] [--peer NAME] [--before BUILD]
               [--avx2] [--json out.json]

Run it with the Python that has PyTorch. BUILD contains ricci-bench-training and ricci-bench-mixers; the default rows are
their --list. PyTorch runs
  shipped   as pip installs it
  tuned     with huge pages for malloc and, with a C compiler, its AVX-512 products on processors of any maker
  compiled  tuned, and through torch.compile (--compile)
--before adds a second build of ricci. --avx2 limits all of them to the instructions of an older processor.
OPENBLAS_CORETYPE and OPENBLAS_L2_SIZE are unset for all. Every run is a separate process; a round is one of each, in turn.
"""
import argparse
import datetime
import importlib.metadata
import json
import os
import pathlib
import platform
import re
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
BENCHES = ["training", "mixers", "products"]
# Variables that limit ricci, PyTorch, MKL and oneDNN to AVX2.
AVX2 = {"RICCI_ISA": "avx2", "ATEN_CPU_CAPABILITY": "avx2", "MKL_ENABLE_INSTRUCTIONS": "AVX2", "ONEDNN_MAX_CPU_ISA": "AVX2", "DNNL_MAX_CPU_ISA": "AVX2"}
MALLOC = "glibc.malloc.hugetlb=1:glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold=100000000000"


def preload(folder):
    """A library with one function that makes MKL accept the processor; None without a compiler."""
    library = pathlib.Path(folder) / "avx512.so"
    source = "int mkl_serv_intel_cpu_true(void) { return 1; }"
    made = subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", str(library)], input=source, text=True)
    return str(library) if made.returncode == 0 else None


def measures(command, environment):
    """The lines "measure NAME VALUE UNIT" of one run, as {name: value}."""
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    found = {line.split()[1]: float(line.split()[2]) for line in done.stdout.splitlines() if line.startswith("measure ")}
    if done.returncode or not found:
        sys.exit(f"{command[0]}: exit status {done.returncode}\n{done.stderr[-2000:]}")
    return found


def program(build, args):
    return str(pathlib.Path(build) / f"ricci-bench-{args.bench}")


def contestants(args, folder):
    plain = {k: v for k, v in os.environ.items() if k not in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")}
    plain |= AVX2 if args.avx2 else {}
    tuned = plain | {"GLIBC_TUNABLES": MALLOC}
    library = preload(folder)
    if library:
        tuned["LD_PRELOAD"] = library
    torch = [sys.executable, str(HERE / "torch" / f"{args.bench}.py"), "--dtype", args.dtype, "--threads", str(os.cpu_count())]
    found = {
        "ricci": ([program(args.build, args), f"--dtype={args.dtype}"], plain, "--steps={}"),
        "shipped": (torch, plain, "--steps {}"),
        "tuned": (torch, tuned, "--steps {}"),
    }
    if args.compile or args.peer == "compiled":
        found["compiled"] = (torch + ["--compile"], tuned, "--steps {}")
    if args.peer:
        found = {who: found[who] for who in ("ricci", args.peer)}
    if args.before:
        found["before"] = ([program(args.before, args), f"--dtype={args.dtype}"], plain, "--steps={}")
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--bench", choices=BENCHES, default="training")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=5, help="per run; the smallest model takes 30 times as many")
    parser.add_argument("--dtype", choices=["f32", "bf16"], default="f32")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--peer", choices=["shipped", "tuned", "compiled"], help="the only one; else all")
    parser.add_argument("--before", metavar="BUILD", help="another build of ricci, measured as a peer")
    parser.add_argument("--avx2", action="store_true", help="none of them uses newer instructions")
    parser.add_argument("--json")
    args = parser.parse_args()
    args.names = args.names or subprocess.run([program(args.build, args), "--list"], capture_output=True, text=True, check=True).stdout.split()
    rows = {name: {} for name in args.names}
    with tempfile.TemporaryDirectory() as folder:
        for name in args.names:
            steps = args.steps * (30 if name.startswith("nano") else 1)
            for _ in range(args.rounds):
                for who, (command, environment, option) in contestants(args, folder).items():
                    found = measures(command + option.format(steps).split() + [name], environment)
                    rows[name].setdefault(who, []).append({key.removeprefix(name + "_"): value for key, value in found.items()})
            show(name, rows[name])
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps(circumstances(args) | {"runs": rows}, indent=1) + "\n")


def circumstances(args):
    """Date, machine, versions and command."""
    def fact(pattern, text):
        found = re.search(pattern, text, re.MULTILINE)
        return found.group(1).strip() if found else ""

    cpu = pathlib.Path("/proc/cpuinfo").read_text() if os.path.exists("/proc/cpuinfo") else ""
    commit = subprocess.run(["git", "-C", str(HERE), "describe", "--always", "--dirty", "--abbrev=10"], capture_output=True, text=True).stdout.strip()
    processor = " ".join(fact(rf"^{key}\s*:(.*)", cpu) for key in ("model name", "cpu family", "model"))
    return {"date": datetime.date.today().isoformat(), "commit": commit, "processor (name, family, model)": processor or platform.machine(),
            "threads": os.cpu_count(), "dtype": args.dtype, "torch": importlib.metadata.version("torch"),
            "command": " ".join(["tests/bench/compare.py", "BUILD"] + sys.argv[2:])}


def show(name, runs):
    """One line per contestant: the median of the medians, the fastest step, and ours divided by it, round by round. Also for the floor, if
    the benchmark prints it."""
    ours = [run["median"] for run in runs["ricci"]]
    for who, all_runs in runs.items():
        medians = [run["median"] for run in all_runs]
        ratio = statistics.median(a / b for a, b in zip(ours, medians))
        print(f"{name:<21} {who:<9} median {statistics.median(medians):9.2f} ms   fastest {min(run['min'] for run in all_runs):9.2f} ms   "
              f"memory {all_runs[-1]['memory']:7.0f} MB   ours / it {ratio:.3f}", flush=True)
    floors = [run["floor"] for run in runs["ricci"] if "floor" in run]
    if floors:
        ratio = statistics.median(a / b for a, b in zip(ours, floors))
        print(f"{name:<21} {'floor':<9} median {statistics.median(floors):9.2f} ms   ours / it {ratio:.3f}", flush=True)


if __name__ == "__main__":
    main()
