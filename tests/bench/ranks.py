#!/usr/bin/env python3
"""One step on several processes of one machine: how much of the exchange of gradients backward hides, on networks of several speeds.

    ranks.py BUILD [model] [--rates 8 4 2] [--ranks 2] [--rounds 5] [--repeats 3] [--json out.json] [--table]

BUILD holds ricci-bench-exchange. Each rank has one core. Without a rate the ranks share memory; a rate, in Gbit/s, is that of a loopback
in a network namespace (tc's tbf), through which Open MPI's TCP goes; both directions share it. That needs the rights for it.
Runs take turns, and medians are over the repeats.

  step      a step of the slowest rank
  work      the same without the exchange of gradients
  exchange  of the gradients alone
  waits     what is left of it when backward has nothing else to do
  added     step - work: waits, and the work that the exchange itself is for the processor of a rank
  hidden    1 - waits / exchange
  of most   hidden, as a share of the most that can be: all but the tables, which are complete only when backward ends; and no more
            than fits beside backward, two thirds of the work

The exchange is modelled as (R - 1) bytes / (e B) + R l buckets on a loopback of B bytes per second: e and l, by least squares over the
rates and numbers of ranks. --table prints what this says of 8, 64 and 1,024 GPUs, with its assumptions.
"""
import argparse
import datetime
import json
import os
import pathlib
import statistics
import subprocess
import sys

TCP = ["--mca", "pml", "ob1", "--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", "lo", "--mca", "oob_tcp_if_include", "lo"]
SHAPED = "ip link set lo up && tc qdisc add dev lo root tbf rate {rate}gbit burst 4mb latency 100ms && exec \"$@\""


def mpirun(ranks, rate):
    """The words in front of the program."""
    bound = ["--bind-to", "core"] if ranks <= os.cpu_count() else ["--oversubscribe"]
    command = ["mpirun", "-n", str(ranks), *bound]
    return command if rate is None else ["unshare", "--net", "bash", "-c", SHAPED.format(rate=rate), "-", *command, *TCP]


def measured(args, ranks, rate):
    """The lines "measure MODEL_NAME VALUE UNIT" of one run, as {name: value}."""
    command = [*mpirun(ranks, rate), str(pathlib.Path(args.build) / "ricci-bench-exchange"), args.model, "--rounds", str(args.rounds)]
    environment = os.environ | {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    lines = [line.split() for line in done.stdout.splitlines() if line.startswith("measure ")]
    if done.returncode or not lines:
        sys.exit(f"{' '.join(command)}: exit status {done.returncode}\n{done.stderr[-2000:]}")
    return {name.removeprefix(args.model + "_"): float(value) for _, name, value, *_ in lines}


def apart(args, ranks):
    """The slowest of as many runs of one rank at once, which exchange nothing: what the machine's memory leaves of a core's speed."""
    program = str(pathlib.Path(args.build) / "ricci-bench-exchange")
    running = [subprocess.Popen(["taskset", "-c", str(core), program, args.model, "--rounds", str(args.rounds)], stdout=subprocess.PIPE, text=True)
               for core in range(ranks)]
    return {"step": max(float(run.communicate()[0].split()[2]) for run in running)}


def medians(runs):
    return {name: statistics.median(run[name] for run in runs) for name in runs[0]}


def with_shares(row):
    most = min(row["exchange"] * (1 - row["tables"]), row["work"] * 2 / 3)
    hidden = row["exchange"] - row["waits"]
    shares = {"hidden": hidden / row["exchange"], "of_most": hidden / most} if row["rate"] else {}
    return row | {"added": row["step"] - row["work"]} | shares


def fitted(rows):
    """e and l of the model, and its largest relative error: the solution of two normal equations, each row weighed by its time."""
    a, b, c, d, f = 0.0, 0.0, 0.0, 0.0, 0.0
    for row in rows:
        x = (row["ranks"] - 1) * row["bytes"] / (row["rate"] * 1e9 / 8) * 1e3 / row["exchange"]
        y = row["ranks"] * row["buckets"] / row["exchange"]
        a, b, c, d, f = a + x * x, b + x * y, c + y * y, d + x, f + y
    inverse_e = (d * c - f * b) / (a * c - b * b)
    latency = (a * f - b * d) / (a * c - b * b)
    model = lambda row: (row["ranks"] - 1) * row["bytes"] / (row["rate"] * 1e9 / 8) * 1e3 * inverse_e + row["ranks"] * row["buckets"] * latency
    worst = max(abs(model(row) / row["exchange"] - 1) for row in rows)
    return {"e": 1 / inverse_e, "l_ms": latency, "worst": worst}


# name: parameters, layers, width, share of the gradient's bytes that backward can hide
MODELS = {"124M": (124.4e6, 12, 768, 0.69), "1.5B": (1557.6e6, 48, 1600, 0.95)}
STEP = {"124M": 2**19, "1.5B": 2**20}  # tokens


def extrapolated(e):
    """Rows of the table: model, ranks, tokens of a GPU, ms, and the share of a step that computes."""
    inside, card, latency, peak = 370e9, 47e9 * e, 2e-6, 989e12
    for name, (parameters, layers, width, hideable) in MODELS.items():
        used = 0.4 if name == "124M" else 0.5
        for ranks in (8, 64, 1024):
            tokens = STEP[name] / ranks
            compute = tokens * (6 * parameters + 6 * layers * width * 1024) / (peak * used)
            buckets = -(-4 * parameters // (max(25, 4 * ranks) * 2**20))
            machines = ranks / 8
            outside = (machines - 1) / machines
            start = buckets * latency * ranks
            flat = 4 * parameters * ((7 / ranks) / inside + outside / card) + start
            two_level = 4 * parameters * (7 / 8 / inside + outside / 8 / card) + start
            gather = 2 * parameters * (7 / 8 / inside + outside / 8 / card) + start
            shares = []
            for exchange, exposed_gather in ((flat, gather), (two_level, gather), (two_level, 0)):
                hidden = min(exchange * hideable, compute * 2 / 3)
                shares.append(compute / (compute + exchange - hidden + exposed_gather))
            yield [name, ranks, int(tokens), *(1e3 * t for t in (compute, flat, two_level, gather)), *(100 * s for s in shares)]


def print_table(e):
    print(f"\nA share of {e:.2f} of a card's 47 GB/s per GPU between machines, 370 GB/s within one of 8 GPUs, 2 us per rank and bucket;")
    print("989 TFLOP/s in bf16, of which 40% (124M) and 50% (1.5B) are used; steps of 2^19 and 2^20 tokens in sequences of 1,024; f32 sums,")
    print("bf16 values. Hidden: 69% and 95% of the gradients, and at most two thirds of the computation. No GPU was measured.")
    print("two-level: sums within a machine first, which is not built")
    print("| model | GPUs | tokens each | compute ms | all-to-all ms | two-level ms | all-gather ms | computes % | two-level % | gather hidden % |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for row in extrapolated(e):
        print("| " + " | ".join(f"{x:.3g}" if isinstance(x, float) else f"{x:,}" if isinstance(x, int) else x for x in row) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("model", nargs="?", default="gpt2_4x64")
    parser.add_argument("--rates", nargs="*", type=float, default=[8, 4, 2])
    parser.add_argument("--ranks", nargs="*", type=int, default=[2])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json")
    parser.add_argument("--table", action="store_true")
    args = parser.parse_args()

    kinds = [(1, None)] + [(ranks, "apart") for ranks in args.ranks] + [(ranks, rate) for ranks in args.ranks for rate in [None, *args.rates]]
    runs = {kind: [] for kind in kinds}
    for _ in range(args.repeats):
        for kind in kinds:
            runs[kind].append(apart(args, kind[0]) if kind[1] == "apart" else measured(args, *kind))
    alone = medians(runs[(1, None)])["step"]
    print(f"{args.model}, one rank with one core: {alone:.0f} ms a step")
    side_by_side = {ranks: medians(runs[(ranks, "apart")])["step"] for ranks in args.ranks}
    for ranks, step in side_by_side.items():
        print(f"{ranks} such runs at once, which exchange nothing: {step:.0f} ms")
    print("| ranks | Gbit/s | step ms | work ms | exchange ms | waits ms | added ms | hidden | of most | one rank's step / step |")
    print("|" + "---|" * 10)
    rows = []
    for ranks, rate in [kind for kind in kinds[1:] if kind[1] != "apart"]:
        row = with_shares(medians(runs[(ranks, rate)]) | {"ranks": ranks, "rate": rate})
        row["weak"] = alone / row["step"]
        rows.append(row)
        shares = f"{row['hidden']:.2f} | {row['of_most']:.2f}" if rate else "- | -"  # over memory the ranks wait for each other alone
        print(f"| {ranks} | {rate if rate else 'memory'} | {row['step']:.0f} | {row['work']:.0f} | {row['exchange']:.0f} | {row['waits']:.0f} "
              f"| {row['added']:.0f} | {shares} | {row['weak']:.2f} |")
    limited = [row for row in rows if row["rate"]]
    fit = fitted(limited) if len(limited) > 2 else None
    if fit:
        print(f"(R - 1) bytes / (e B) + R l buckets: e = {fit['e']:.3f}, l = {fit['l_ms']:.2f} ms, at most {100 * fit['worst']:.0f}% off")
    if args.table:
        print_table(fit["e"] if fit else 1.0)
    if args.json:
        found = {"date": datetime.date.today().isoformat(), "command": " ".join(sys.argv), "model": args.model, "one_rank_step_ms": alone,
                 "runs_at_once_step_ms": side_by_side, "rows": rows, "fit": fit}
        pathlib.Path(args.json).write_text(json.dumps(found, indent=1) + "\n")


main()
