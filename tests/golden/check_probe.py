#!/usr/bin/env python3
"""Compares a ricci probe binary with reference.py (PyTorch) or with the stored cases (standard library only).

    check_probe.py --probe build/ricci-probe                       all cases, float64, cpu
    check_probe.py --probe ... --device cuda_emulated --quick      one small case per feature
    check_probe.py --probe ... --sweep                             the multi-scale families at lengths 1 to 40
    check_probe.py --probe ... --stored                            tests/golden/probe_cases, without PyTorch

Error of a value: |ours - expected| / max(1, |expected|). Limit: 1e-9 in f64; in f32 and bf16 twice the reference's
error in that type (see reduced_limits), plus n eps of f32 for the longest sum n. Then the error cases: a missing,
surplus or misshapen tensor and an unknown key must cause a positive exit code and exactly one line on stderr that
names it. Prints a table; the exit code is 1 if anything fails.
"""
import argparse
import math
import pathlib
import subprocess
import sys
import tempfile

import live_cases
import stored


def call_probe(args, folder):
    command = [args.probe, "--config", folder / "model.yaml", "--weights", folder / "weights.safetensors", "--input", folder / "in.safetensors",
               "--output", folder / "out.safetensors", "--dtype", args.dtype, "--device", args.device]
    return subprocess.run([str(part) for part in command], capture_output=True, text=True)


def largest_error(ours, expected):
    """max |ours - expected| / max(1, |expected|); infinite if a value is not finite."""
    errors = [abs(a - b) / max(1.0, abs(b)) for a, b in zip(ours, expected)]
    return max((e if math.isfinite(e) else math.inf for e in errors), default=0.0)


def compare(ours, expected, dtype):
    """Returns ({logits, loss, grad: (largest error, where)}, list of complaints about names, types and shapes)."""
    complaints = [f"{name} is missing" for name in expected if name not in ours]
    complaints += [f"{name} is surplus" for name in ours if name not in expected]
    errors = {"logits": (0.0, ""), "loss": (0.0, ""), "grad": (0.0, "")}
    for name, (_, shape, values) in expected.items():
        if name not in ours:
            continue
        ours_dtype, ours_shape, ours_values = ours[name]
        wanted = "F64" if name == "loss" or dtype == "f64" else "F32"
        if (ours_dtype, ours_shape) != (wanted, shape):
            complaints.append(f"{name} is {ours_dtype} {ours_shape}, expected {wanted} {shape}")
            continue
        group = name.split(".")[0]
        errors[group] = max(errors[group], (largest_error(ours_values, values), name))
    return errors, complaints


def check_case(args, name, model, tensors, limits):
    """Runs one case, prints its row, returns True if it passes."""
    stored.write_inputs(args.scratch, model, tensors)
    output = args.scratch / "out.safetensors"
    output.unlink(missing_ok=True)
    run = call_probe(args, args.scratch)
    if run.returncode or not output.exists():
        print(f"{name:34} {args.device:14} FAIL exit code {run.returncode}: {run.stderr.strip()[-300:] or 'no output file'}")
        return False
    errors, complaints = compare(stored.read_safetensors(output), stored.part(tensors, "expected."), args.dtype)
    complaints += [f"{where}: error {error:.1e}, limit {limits[group]:.1e}"
                   for group, (error, where) in errors.items() if not error <= limits[group]]
    numbers = " ".join(f"{error:9.1e}" for error, _ in errors.values())
    print(f"{name:34} {args.device:14} {numbers}  {'FAIL ' + '; '.join(complaints[:4]) if complaints else 'ok'}")
    return not complaints


def reduced_limits(case, dtype, drawn, expected):
    """Twice the reference's own error in this dtype, plus n eps of f32 for the longest sum.

    One run can be right by luck (a single loss, a ReLU on the right side of 0), so the reference's error is the largest
    of multiple runs with randomly rounded weights; the loss has the limit of the logits, since they move it at most
    by twice their error."""
    import make_cases
    import reference
    import torch
    _, config, batch, length, *_ = case
    weights, *batch_of = drawn
    kind = {"f32": torch.float32, "bf16": torch.bfloat16}[dtype]
    longest = max(config.get("ff", 4 * config["d"]), config["vocab"], batch * length)
    limits = dict.fromkeys(("logits", "loss", "grad"), 0.0)
    generator = torch.Generator().manual_seed(0)
    for _ in range(8):
        rounded = {name: (w * (1 + torch.finfo(kind).eps * (torch.rand(w.shape, generator=generator) - 0.5))).to(kind)
                   for name, w in weights.items()}
        result = reference.evaluate(make_cases.definition_of(config)(config, rounded), *batch_of)
        values = {name: ("F64" if name == "loss" else "F32", list(t.shape), t.double().flatten().tolist())
                  for name, t in result.items()}
        errors, _ = compare(values, expected, dtype)
        limits = {group: max(limits[group], 2 * errors[group][0] + longest * 2.0 ** -23) for group in limits}
    return {**limits, "loss": max(limits["loss"], limits["logits"])}


def check_generated(args):
    import make_cases
    held = []
    for seed, case in enumerate(live_cases.sweep() if args.sweep else live_cases.QUICK if args.quick else live_cases.FULL):
        if args.only not in case[0]:
            continue
        model, tensors, drawn = make_cases.make_case(*case[1:4], 1000 + 10 * seed, *case[4:])
        limits = dict.fromkeys(("logits", "loss", "grad"), 1e-9)
        if args.dtype != "f64":
            limits = reduced_limits(case, args.dtype, drawn, stored.part(tensors, "expected."))
        held.append(check_case(args, case[0], model, tensors, limits))
    return held


def check_stored(args):
    limits = dict.fromkeys(("logits", "loss", "grad"), 1e-9)
    return [check_case(args, case, model, stored.tensors_of(case), limits) for case, model in stored.models().items() if args.only in case]


def check_errors(args):
    """The messages about wrong files of a model with attention name the fault."""
    model, tensors = stored.models()["gpt"], stored.tensors_of("gpt")
    missing, surplus, misshapen = (f"weights.blocks.{name}" for name in ("0.mixer.proj.weight", "7.fc.weight", "0.fc.weight"))
    dtype, shape, values = tensors[misshapen]
    broken = {"missing tensor": (missing, model, {name: w for name, w in tensors.items() if name != missing}),
              "surplus tensor": (surplus, model, {**tensors, surplus: tensors[misshapen]}),
              "misshapen tensor": (misshapen, model, {**tensors, misshapen: (dtype, shape[::-1], values)}),
              "unknown key": ("windwo", model + "  windwo: 3\n", tensors)}
    held = []
    for what, (name, *files) in broken.items():
        stored.write_inputs(args.scratch, *files)
        run = call_probe(args, args.scratch)
        lines = run.stderr.splitlines()
        held.append(run.returncode > 0 and len(lines) == 1 and name.removeprefix("weights.") in lines[0])
        print(f"{what:34} {args.device:14} exit {run.returncode}, {len(lines)} line(s)  {'ok' if held[-1] else 'FAIL'}"
              f"  {lines[0][:160] if lines else ''}")
    return held


def parse_arguments():
    parser = argparse.ArgumentParser(description="Check ricci probe against the PyTorch reference or stored values")
    parser.add_argument("--probe", required=True, help="path of the ricci probe binary")
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda", "cuda_emulated"])
    parser.add_argument("--dtype", default="f64", choices=["f64", "f32", "bf16"])
    parser.add_argument("--quick", action="store_true", help="a small case per feature")
    parser.add_argument("--sweep", action="store_true", help="every variant of the families of several scales at lengths 1 to 40")
    parser.add_argument("--stored", action="store_true", help="use probe_cases/ (f64 only, no PyTorch needed)")
    parser.add_argument("--only", default="", metavar="TEXT", help="the cases whose names hold it")
    args = parser.parse_args()
    if args.stored and args.dtype != "f64":
        parser.error("the stored cases are f64")
    if not pathlib.Path(args.probe).is_file():
        parser.error(f"no such file: {args.probe}")
    return args


def main():
    args = parse_arguments()
    print(f"{'case':34} {'device':14} {'logits':>9} {'loss':>9} {'grad':>9}")
    with tempfile.TemporaryDirectory() as scratch:
        args.scratch = pathlib.Path(scratch)
        held = check_stored(args) if args.stored else check_generated(args)
        held += check_errors(args)
    print(f"{sum(held)} of {len(held)} hold ({args.dtype}, {args.device})")
    return 0 if all(held) else 1


if __name__ == "__main__":
    sys.exit(main())
