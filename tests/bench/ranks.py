#!/usr/bin/env python3
"""A training step of GPT-2 124M, and its sum of gradients, on multiple processes of one machine, with networks of different speeds.

    ranks.py BUILD [BUILD ...] [--ranks 2] [--rates 8 2] [--steps 8] [--repeats 3] [--mpirun mpirun] [--json out.json] [KEY=VALUE ...]

BUILD contains ricci train and ricci tokenize. With two builds the runs take turns, and each row has the ratio of the last to the first. Each
rank has one core and one micro-batch of 4 x 64 tokens. Times are medians over the steps after the second, and then over the repeats.

  apart     simultaneous runs of one process, one per rank, without communication: the work of a step
  shared    a step of the ranks through shared memory
  8, 2      a step through the TCP of a loopback of 8 or 2 Gbit/s in a network namespace (tc's tbf; needs the rights for it), with Open MPI.
            Both directions share the rate
  sum       the time of rank 0 in the sum of gradients, including waiting for the slowest rank
"""
import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

MODEL = ["model.vocab=50257", "model.d=768", "model.layers=12", "model.heads=12", "model.ctx=64", "batch=4"]
QUIET = ["threads=1", "eval_every=0", "eval_batches=1", "checkpoint_every=0", "sample.tokens=0", "log_every=1"]
TCP = ["--mca", "pml", "ob1", "--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", "lo", "--mca", "oob_tcp_if_include", "lo"]
SHAPED = "ip link set lo up && tc qdisc add dev lo root tbf rate {rate}gbit burst 4mb latency 100ms && exec \"$@\""


def mpirun(args, rate):
    """The words before the first program."""
    is_open = "Open MPI" in subprocess.run([args.mpirun, "--version"], capture_output=True, text=True).stdout
    binding = ["--bind-to" if is_open else "-bind-to", "core"]
    if args.ranks > os.cpu_count():
        binding = ["--oversubscribe"] if is_open else []
    if rate is None:
        return [args.mpirun, *binding]
    return ["unshare", "--net", "bash", "-c", SHAPED.format(rate=rate), "-", args.mpirun, *binding, *TCP]


def started(args, build, place, words, name, ranks):
    """Starts a training run in its own folder; rank 0 prints a trace."""
    train = [str(build / "ricci-train"), *MODEL, *QUIET, f"accumulation={ranks}", f"steps={args.steps}", f"data={place}/text.txt",
             f"tokenizer={place}/tokenizer.json", f"runs={place}", f"name={name}", *args.keys]
    first = ["env", "RICCI_TRACE=1", *train]
    command = [*words, "-n", "1", *first, ":", "-n", str(ranks - 1), *train] if ranks > 1 else [*words, *first]
    environment = os.environ | {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    return subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def finished(run, place, name):
    """Milliseconds of a step, and of its sum of gradients if there is one."""
    trace = run.communicate()[1]
    if run.returncode:
        sys.exit(f"{' '.join(run.args)}: exit status {run.returncode}\n{trace[-2000:]}")
    folder = place / name
    records = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    tokens = records[0]["tokens"]
    steps = [1e3 * tokens / record["tokens_per_s"] for record in records[2:] if record["tokens_per_s"]]
    subprocess.run(["rm", "-r", str(folder)], check=True)  # 1.5 GB
    sum_row = re.search(r"^ *sum of gradients +(\d+) +([\d.]+)", trace, re.M)
    return {"step": statistics.median(steps), "sum": float(sum_row[2]) / int(sum_row[1]) if sum_row else None}


def measured(args, build, place, kind):
    if kind != "apart":
        rate = None if kind == "shared" else kind
        return finished(started(args, build, place, mpirun(args, rate), "ranks", args.ranks), place, "ranks")
    runs = [started(args, build, place, ["taskset", "-c", str(core % os.cpu_count())], f"apart{core}", 1) for core in range(args.ranks)]
    return max((finished(run, place, f"apart{core}") for core, run in enumerate(runs)), key=lambda times: times["step"])


def medians(runs):
    return {name: statistics.median(run[name] for run in runs) if runs[0][name] is not None else None for name in runs[0]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="+", metavar="BUILD or KEY=VALUE")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rates", nargs="*", type=float, default=[])
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--mpirun", default="mpirun")
    parser.add_argument("--json")
    args = parser.parse_args()
    args.keys = [word for word in args.words if "=" in word]
    builds = [pathlib.Path(word) for word in args.words if "=" not in word]
    kinds = ["apart", "shared", *args.rates]

    with tempfile.TemporaryDirectory() as folder:
        place = pathlib.Path(folder)
        (place / "text.txt").write_text("".join(f"{number} sheep and {number * number} wolves\n" for number in range(20000)))
        subprocess.run([builds[-1] / "ricci-tokenize", "train", place / "text.txt", "--vocab", "300", "-o", place / "tokenizer.json"],
                       check=True, stdout=subprocess.DEVNULL)
        runs = {(kind, build): [] for kind in kinds for build in builds}
        for _ in range(args.repeats):
            for kind, build in runs:
                runs[kind, build].append(measured(args, build, place, kind))
    rows = [{"kind": kind, "build": str(build), **medians(runs[kind, build])} for kind, build in runs]
    print("| " + " | ".join(["ranks", "network", *(f"{build}: step, sum in ms" for build in builds), "ratio"]) + " |")
    print("|" + "---|" * (3 + len(builds)))
    for kind in kinds:
        of_kind = [row for row in rows if row["kind"] == kind]
        cells = [f"{row['step']:.0f}" + (f", {row['sum']:.1f}" if row["sum"] is not None else "") for row in of_kind]
        print("| " + " | ".join([str(args.ranks), str(kind), *cells, f"{of_kind[-1]['step'] / of_kind[0]['step']:.3f}"]) + " |")
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps({"command": " ".join(sys.argv), "rows": rows}, indent=1) + "\n")


main()
