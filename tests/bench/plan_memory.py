#!/usr/bin/env python3
"""What ricci-plan predicts beside what ricci-train then holds, on the CPU: the most resident memory of the process.

    tests/bench/plan_memory.py [build]        six configurations, two steps each
"""
import json
import re
import subprocess
import sys
import tempfile

BASE = "data=embedded tokenizer=byte sample.tokens=0 eval_batches=1 checkpoint_every=0 steps=3 eval_every=0 log_every=1"
CONFIGS = {
    "nanoGPT on CPU": "model.layers=4 model.d=128 model.heads=4 model.ctx=64 batch=12",
    "d 384, 6 layers, 16 x 256": "model.layers=6 model.d=384 model.heads=6 model.ctx=256 batch=16",
    "the same, recompute": "model.layers=6 model.d=384 model.heads=6 model.ctx=256 batch=16 recompute=blocks",
    "the same, bf16": "model.layers=6 model.d=384 model.heads=6 model.ctx=256 batch=16 precision=bf16",
    "GPT-2 without vocabulary, 2 x 128": "model.layers=12 model.d=768 model.heads=12 model.ctx=128 batch=2",
    "msa, 4 x 512, 2 batches": "model.preset=msa model.layers=6 model.d=512 model.heads=1 model.ctx=512 batch=4 accumulation=2",
}


def measured_bytes(command, folder):
    timed = subprocess.run(["/usr/bin/time", "-f", "%M", *command], cwd=folder, capture_output=True, text=True)
    if timed.returncode:
        sys.exit(timed.stderr)
    return int(re.findall(r"\d+", timed.stderr)[-1]) * 1024


def main():
    build = subprocess.run(["realpath", sys.argv[1] if len(sys.argv) > 1 else "build"], capture_output=True, text=True).stdout.strip()
    for name, keys in CONFIGS.items():
        keys = (keys + " " + BASE).split()
        with tempfile.TemporaryDirectory() as folder:
            plan = json.loads(subprocess.run([f"{build}/ricci-plan", "--json", *keys], cwd=folder, capture_output=True, text=True, check=True).stdout)
            level = plan["recompute=blocks" in keys]
            real = measured_bytes([f"{build}/ricci-train", *keys], folder)
        print(f"{name:34} planned {level['process_bytes'] / 1e6:8.1f} MB, measured {real / 1e6:8.1f} MB, ratio {level['process_bytes'] / real:.3f}", flush=True)


main()
