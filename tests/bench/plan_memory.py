#!/usr/bin/env python3
"""The memory that ricci-plan predicts beside the memory that ricci-train holds, on the CPU: the most resident memory of the process.

    tests/bench/plan_memory.py [BUILD] [--json FILE]        twelve configurations, three steps each; fails where one is off by 5% or more
"""
import argparse
import datetime
import json
import pathlib
import re
import subprocess
import sys
import tempfile

BASE = "data=embedded tokenizer=byte sample.tokens=0 eval_batches=1 checkpoint_every=0 steps=3 eval_every=0 log_every=1"
MIDDLE = "model.layers=6 model.d=384 model.heads=6 model.ctx=256 batch=16"
CONFIGS = {
    "1 layer, d 16, 1 x 8": "model.layers=1 model.d=16 model.heads=1 model.ctx=8 batch=1",
    "nanoGPT on CPU": "model.layers=4 model.d=128 model.heads=4 model.ctx=64 batch=12",
    "d 384, 6 layers, 16 x 256": MIDDLE,
    "the same, recompute": MIDDLE + " recompute=blocks",
    "the same, bf16": MIDDLE + " precision=bf16",
    "the same, metric": MIDDLE + " model.mixer=metric",
    "the same, dispatcher": MIDDLE + " model.mixer=dispatcher",
    "the same, sgd": MIDDLE + " optimizer=sgd",
    "GPT-2 without vocabulary, 2 x 128": "model.layers=12 model.d=768 model.heads=12 model.ctx=128 batch=2",
    "msa, 4 x 512": "model.preset=msa model.layers=6 model.d=512 model.heads=1 model.ctx=512 batch=4",
    "msa, 4 x 512, 2 batches": "model.preset=msa model.layers=6 model.d=512 model.heads=1 model.ctx=512 batch=4 accumulation=2",
    "topdown, 8 x 256": "model.family=topdown model.layers=2 model.d=256 model.heads=4 model.ctx=256 batch=8",
}


def planned_bytes(build, keys, folder):
    levels = json.loads(subprocess.run([build / "ricci-plan", "--json", *keys], cwd=folder, capture_output=True, text=True, check=True).stdout)
    return levels["recompute=blocks" in keys]["process_bytes"]


def measured_bytes(build, keys, folder):
    timed = subprocess.run(["/usr/bin/time", "-f", "%M", build / "ricci-train", *keys], cwd=folder, capture_output=True, text=True)
    if timed.returncode:
        sys.exit(timed.stderr)
    return int(re.findall(r"\d+", timed.stderr)[-1]) * 1024


def report(rows):
    processor = next(line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name"))
    commit = subprocess.run(["git", "-C", pathlib.Path(__file__).parent, "rev-parse", "--short=10", "HEAD"], capture_output=True, text=True)
    return {"date": str(datetime.date.today()), "commit": commit.stdout.strip(), "device": f"CPU: {processor}",
            "command": "tests/bench/plan_memory.py " + " ".join(sys.argv[1:]), "keys": BASE, "runs": rows}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", nargs="?", default="build")
    parser.add_argument("--json", metavar="FILE", help="write the numbers here too")
    args = parser.parse_args()
    build = pathlib.Path(args.build).resolve()
    rows = {}
    for name, config in CONFIGS.items():
        keys = (config + " " + BASE).split()
        with tempfile.TemporaryDirectory() as folder:
            planned, measured = planned_bytes(build, keys, folder), measured_bytes(build, keys, folder)
        rows[name] = {"keys": config, "planned_bytes": planned, "measured_bytes": measured, "ratio": round(planned / measured, 3)}
        print(f"{name:34} planned {planned / 1e6:8.1f} MB, measured {measured / 1e6:8.1f} MB, ratio {planned / measured:.3f}", flush=True)
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps(report(rows), indent=1) + "\n")
    sys.exit(any(abs(row["ratio"] - 1) >= 0.05 for row in rows.values()))


main()
