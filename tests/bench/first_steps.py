#!/usr/bin/env python3
"""The user's waiting time: processes that train the quickstart's model for 1 step and for 100, from start to end.

    first_steps.py BUILD [--rounds 5]

Run it with the Python that has PyTorch. A round is one process of each kind, in turn; a table of medians and ratios follows.
  ricci           ricci train with apps/configs/quickstart.yaml, no biases in norms, and an empty cache; it also evaluates one batch and
                  saves all files of the run
  shipped         the same model, text and batches in PyTorch as pip installs it (torch/shakespeare.py); it saves nothing
  compiled        tuned as in compare.py, and through torch.compile with an empty cache
  compiled again  with the cache of that process
"""
import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import compare

HERE = pathlib.Path(__file__).resolve().parent
STEPS = [1, 100]


def contestants(args, folder):
    """{who: (command without the number of steps, its option, environment)}"""
    build = pathlib.Path(args.build).resolve()
    environments = {who: environment for who, (_, environment, _) in compare.contestants(args, folder).items()}
    ours = [str(build / "ricci-train"), str(HERE.parents[1] / "apps/configs/quickstart.yaml"), "model.norm_bias=false", "eval_every=0",
            "eval_batches=1", "sample.tokens=0"]
    torch = [sys.executable, str(HERE / "torch/shakespeare.py"), "--data", str(build / "embedded/embedded.txt"), "--context", "128",
             "--batch", "16", "--threads", str(os.cpu_count()), "--only-train"]
    compiled = (torch + ["--compile"], "--iterations={}", environments["compiled"] | {"TORCHINDUCTOR_CACHE_DIR": f"{folder}/compiled"})
    return {
        "ricci": (ours, "steps={}", environments["ricci"] | {"XDG_CACHE_HOME": f"{folder}/cache"}),
        "shipped": (torch, "--iterations={}", environments["shipped"]),
        "compiled": compiled,
        "compiled again": compiled,
    }


def seconds(command, environment):
    """In a separate folder."""
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True)
        taken = time.perf_counter() - started
    if done.returncode:
        sys.exit(f"{command[0]}: exit status {done.returncode}\n{done.stderr[-2000:]}")
    return taken


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    args.bench, args.dtype, args.compile, args.peer, args.before, args.avx2 = "training", "f32", True, None, None, False
    times = {}
    for _ in range(args.rounds):
        for steps in STEPS:
            with tempfile.TemporaryDirectory() as folder:  # with the caches
                for who, (command, option, environment) in contestants(args, folder).items():
                    times.setdefault((who, steps), []).append(seconds(command + [option.format(steps)], environment))
    print(f"{'seconds, median':<16}" + "".join(f"{f'{steps} steps':>12}{'ricci / it':>12}" for steps in STEPS))
    for who in dict(times.keys()):
        row = f"{who:<16}"
        for steps in STEPS:
            ratio = statistics.median(ours / theirs for ours, theirs in zip(times["ricci", steps], times[who, steps]))
            row += f"{statistics.median(times[who, steps]):>12.2f}{ratio:>12.3f}"
        print(row)


if __name__ == "__main__":
    main()
