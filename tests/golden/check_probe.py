#!/usr/bin/env python3
"""Holds a ricci-probe binary against reference.py (PyTorch) or against the stored cases (standard library only).

    check_probe.py --probe build/ricci-probe                       all cases, float64, cpu
    check_probe.py --probe ... --device cuda_emulated --quick      one small case per feature
    check_probe.py --probe ... --sweep                             the families of several scales at lengths 1 to 40
    check_probe.py --probe ... --stored                            tests/golden/probe_cases, without PyTorch

Error of a value: |ours - expected| / max(1, |expected|). Limit: 1e-9 in f64; in f32 and bf16 twice the error that the
reference makes in that type (see reduced_limits), plus n eps of f32 for the longest sum n. Then the error cases: a
missing, surplus or misshapen tensor and an unknown key must end with a positive exit code and exactly one line on
stderr that names it.
Prints a table; exit code 1 when anything fails.
"""
import argparse
import array
import json
import math
import pathlib
import struct
import subprocess
import sys
import tempfile

TYPE_CODES = {"F64": "d", "F32": "f", "I64": "q"}
GPT = {"preset": "gpt", "vocab": 13, "ctx": 24, "layers": 2}
MSA = {"preset": "msa", "vocab": 13, "ctx": 24, "layers": 2}
CLASSIFIER = {"family": "classifier", "vocab": 13, "ctx": 24, "layers": 2, "classes": 4}
QUICK = [  # (name, config, batch, length, lengths of the sequences where they are padded)
    ("gpt d 15", {**GPT, "d": 15, "heads": 3}, 3, 7),
    ("gpt untied, no bias, window 3", {**GPT, "d": 12, "heads": 4, "ff": 17, "tie": False, "bias": False,
                                       "window": 3}, 1, 19),
    ("gpt not causal, 1 head", {**GPT, "d": 10, "heads": 1, "causal": False}, 3, 2),
    ("msa d 15", {**MSA, "d": 15, "heads": 3, "ff": 22}, 3, 7),
    ("msa tied, no bias, window 1", {**MSA, "d": 12, "heads": 4, "tie": True, "bias": False, "window": 1}, 1, 19),
    ("msa one token", {**MSA, "d": 10, "heads": 1}, 1, 1),
    ("gpt lengths 7 3 0", {**GPT, "d": 15, "heads": 3}, 3, 7, [7, 3, 0]),
    ("avgpool", {**GPT, "d": 15, "mixer": "avgpool"}, 2, 7),
    ("identity", {**GPT, "d": 15, "mixer": "identity"}, 2, 7),
    ("classifier lengths 7 3 0", {**CLASSIFIER, "d": 12, "heads": 4}, 3, 7, [7, 3, 0]),
    ("dispatcher", {**MSA, "d": 15, "heads": 3, "mixer": "dispatcher"}, 2, 19),
    ("metric", {**GPT, "d": 15, "heads": 3, "mixer": "metric"}, 2, 7),
]
SCALES = {"vocab": 13, "ctx": 24, "d": 12, "heads": 4, "ff": 17}
QUICK += [
    ("topdown", {**SCALES, "family": "topdown", "scales": [1, 2, 6], "layers": [1, 2, 1]}, 2, 17),
    ("bottomup", {**SCALES, "family": "bottomup", "scales": [1, 2, 6], "layers": [1, 2, 1]}, 2, 17),
    ("retina", {**SCALES, "family": "retina", "scales": [1, 2, 6], "layers": 2, "windows": "0:4, 4:12, 12:24"}, 2, 23),
    ("coarse", {**SCALES, "family": "coarse", "scale": 3, "layers": 2, "down": "conv"}, 2, 17),
]
FULL = QUICK + [
    ("topdown, one scale", {**SCALES, "family": "topdown", "scales": [1], "layers": [2]}, 2, 7),
    ("topdown msa, conv over three cells, block, lengths", {**SCALES, "family": "topdown", "preset": "msa", "scales": [1, 4], "layers": [1, 1],
                                                           "down": "conv", "conv_kernel": 3, "shift": "block"}, 3, 21, [21, 11, 3]),
    ("topdown, no bias, untied, long", {**SCALES, "family": "topdown", "ctx": 140, "scales": [1, 4, 64], "layers": [1, 1, 1], "bias": False,
                                        "tie": False}, 2, 131),
    ("topdown, shorter than every cell", {**SCALES, "family": "topdown", "scales": [1, 4, 8], "layers": [1, 1, 1], "loss_from": "first_full"}, 3, 3),
    ("topdown, a scale beyond ctx", {**SCALES, "family": "topdown", "scales": [1, 4, 64], "layers": [1, 1, 1], "down": "conv"}, 3, 24),
    ("bottomup msa, lengths", {**SCALES, "family": "bottomup", "preset": "msa", "scales": [1, 3], "layers": [1, 1], "down": "max"}, 3, 20, [20, 7, 0]),
    ("bottomup, no bias, long, not chained", {**SCALES, "family": "bottomup", "ctx": 140, "scales": [1, 2, 8], "layers": [1, 1, 1], "bias": False,
                                              "chain": False, "down": "conv"}, 2, 131),
    ("bottomup, as many scales as heads", {**SCALES, "family": "bottomup", "scales": [1, 2, 4, 8, 16], "layers": [1, 1, 1, 1, 1]}, 2, 24),
    ("retina, no windows", {**SCALES, "family": "retina", "scales": [1, 4], "layers": 1}, 2, 22),
    ("retina, one scale", {**SCALES, "family": "retina", "scales": [1], "layers": 1, "windows": [[2, 9]]}, 2, 22),
    ("retina msa, groups, lengths", {**SCALES, "family": "retina", "preset": "msa", "scales": [1, 2, 4], "layers": 2, "windows": "0:8, 4:16, 8:24",
                                     "cell_rule": "end", "head_groups": [2, 0, 1, 0]}, 3, 22, [22, 9, 1]),
    ("retina, groups without a scale", {**SCALES, "family": "retina", "scales": [1, 2, 4], "layers": 1, "down": "conv", "head_groups": [0, 0, 2, 2]}, 2, 13),
    ("retina, long, no bias", {**SCALES, "family": "retina", "ctx": 140, "scales": [1, 4, 16], "layers": 1, "bias": False,
                               "windows": "0:16, 16:64, 64:140"}, 2, 131),
    ("coarse msa, max", {**SCALES, "family": "coarse", "preset": "msa", "scale": 4, "layers": 1, "down": "max"}, 3, 23),
    ("coarse, shorter than a cell", {**SCALES, "family": "coarse", "scale": 4, "layers": 1}, 3, 3),
    ("coarse, cells of one token, lengths", {**SCALES, "family": "coarse", "scale": 1, "layers": 1, "tie": False}, 3, 9, [9, 3, 0]),
    ("avgpool window 4", {**GPT, "d": 11, "mixer": "avgpool", "pool": 4}, 3, 19),
    ("avgpool wider than the text", {**GPT, "d": 11, "mixer": "avgpool", "pool": 9}, 1, 5),
    ("avgpool both sides, lengths", {**GPT, "d": 11, "mixer": "avgpool", "causal": False}, 3, 7, [7, 3, 0]),
    ("avgpool of one", {**MSA, "d": 10, "mixer": "avgpool", "pool": 1}, 2, 3),
    ("msa avgpool, lengths", {**MSA, "d": 10, "mixer": "avgpool", "pool": 5}, 3, 9, [9, 1, 4]),
    ("msa identity, no bias", {**MSA, "d": 10, "mixer": "identity", "bias": False}, 2, 7),
    ("dispatcher, one head", {**GPT, "d": 11, "heads": 1, "mixer": "dispatcher"}, 3, 7),
    ("dispatcher, shared heads", {**GPT, "d": 15, "heads": 3, "mixer": "dispatcher", "share_heads": True}, 3, 13),
    ("dispatcher, one shared head, biases", {**MSA, "d": 7, "heads": 1, "mixer": "dispatcher", "share_heads": True, "mixer_bias": True}, 1, 5),
    ("dispatcher, no activation, biases", {**GPT, "d": 10, "heads": 2, "mixer": "dispatcher", "coef_act": "none", "mixer_bias": True}, 2, 6),
    ("dispatcher, 2 levels", {**GPT, "d": 10, "heads": 2, "mixer": "dispatcher", "levels": 2}, 2, 19),
    ("dispatcher, 9 levels", {**MSA, "d": 10, "heads": 5, "mixer": "dispatcher", "levels": 9}, 2, 19),
    ("dispatcher, one token", {**GPT, "d": 8, "heads": 2, "mixer": "dispatcher"}, 3, 1),
    ("dispatcher, lengths", {**GPT, "d": 8, "heads": 2, "mixer": "dispatcher", "bias": False}, 4, 7, [7, 3, 0, 1]),
    ("dispatcher, full ctx", {**MSA, "d": 8, "heads": 1, "mixer": "dispatcher"}, 2, 24),
    ("dispatcher, long", {**MSA, "d": 38, "heads": 1, "mixer": "dispatcher", "ctx": 140}, 2, 131),
    *((f"{mixer}, {what}", {**GPT, "d": 15, "heads": 3, "mixer": mixer, **extra}, 3, 7, *lengths)
      for mixer in ("quad_full", "quad", "p_only", "metric", "metric_psd")
      for what, extra, *lengths in (("window 3", {"window": 3}), ("not causal, no bias", {"causal": False, "bias": False}),
                                    ("lengths", {}, [7, 3, 0]), ("one head", {"heads": 1, "preset": "msa"}))),
    *((f"{mixer}, values", {**MSA, "d": 12, "heads": 2, "mixer": mixer, "value_proj": True}, 2, 11, [11, 4])
      for mixer in ("quad", "p_only", "metric", "metric_psd")),
    ("metric, one token", {**GPT, "d": 6, "heads": 6, "mixer": "metric"}, 1, 1),
    ("metric, long, wide heads", {**GPT, "d": 72, "heads": 1, "mixer": "metric", "ctx": 140, "layers": 1}, 1, 131),
    *((f"classifier {mixer}", {**CLASSIFIER, "d": 12, "heads": 3, "mixer": mixer}, 3, 7, [7, 3, 0])
      for mixer in ("dispatcher", "quad_full", "quad", "p_only", "metric", "metric_psd")),
    ("classifier", {**CLASSIFIER, "d": 15, "heads": 3}, 4, 7),
    ("classifier, causal", {**CLASSIFIER, "d": 15, "heads": 3, "causal": True}, 4, 7),
    ("classifier, window 3, no bias", {**CLASSIFIER, "d": 15, "heads": 3, "window": 3, "bias": False}, 4, 19, [19, 2, 7, 1]),
    ("classifier avgpool, lengths", {**CLASSIFIER, "d": 9, "mixer": "avgpool", "pool": 5}, 4, 7, [7, 3, 0, 1]),
    ("classifier identity, two classes", {**CLASSIFIER, "d": 9, "mixer": "identity", "classes": 2}, 3, 7, [7, 3, 2]),
    ("classifier msa, one token", {**CLASSIFIER, "preset": "msa", "d": 12, "heads": 2}, 1, 1),
    ("gpt d 16", {**GPT, "d": 16, "heads": 4}, 3, 19),
    ("gpt one token", {**GPT, "d": 12, "heads": 4}, 1, 1),
    ("gpt one token, batch 3", {**GPT, "d": 15, "heads": 3}, 3, 1),
    ("gpt two tokens", {**GPT, "d": 10, "heads": 1, "ff": 7}, 1, 2),
    ("gpt no bias", {**GPT, "d": 15, "heads": 3, "bias": False}, 3, 7),
    ("gpt untied", {**GPT, "d": 12, "heads": 4, "tie": False}, 3, 7),
    ("gpt window 1", {**GPT, "d": 12, "heads": 4, "window": 1}, 3, 7),
    ("gpt window 3", {**GPT, "d": 15, "heads": 3, "window": 3}, 3, 19),
    ("gpt window beyond ctx", {**GPT, "d": 15, "heads": 3, "window": 50}, 1, 19),
    ("gpt ff narrower than d", {**GPT, "d": 15, "heads": 5, "ff": 4, "layers": 3}, 1, 7),
    ("gpt full ctx", {**GPT, "d": 14, "heads": 2, "layers": 1}, 3, 24),
    ("gpt long", {**GPT, "d": 24, "heads": 2, "vocab": 97, "ctx": 140, "ff": 131}, 2, 131),
    ("gpt long, window 65, wide head", {**GPT, "d": 72, "heads": 1, "ctx": 140, "window": 65, "layers": 1}, 1, 131),
    ("gpt long, not causal", {**GPT, "d": 26, "heads": 2, "ctx": 140, "causal": False, "layers": 1}, 1, 131),
    ("msa d 16", {**MSA, "d": 16, "heads": 4}, 3, 19),
    ("msa two tokens", {**MSA, "d": 10, "heads": 1, "ff": 7}, 1, 2),
    ("msa not causal", {**MSA, "d": 12, "heads": 4, "causal": False}, 3, 7),
    ("msa no bias", {**MSA, "d": 15, "heads": 3, "bias": False}, 3, 7),
    ("msa tied", {**MSA, "d": 12, "heads": 4, "tie": True}, 3, 7),
    ("msa window 3", {**MSA, "d": 15, "heads": 3, "window": 3}, 3, 19),
    ("msa window beyond ctx", {**MSA, "d": 15, "heads": 3, "window": 50}, 1, 19),
    ("msa long", {**MSA, "d": 24, "heads": 2, "vocab": 97, "ctx": 140}, 2, 131),
    ("msa lengths 7 3 0", {**MSA, "d": 15, "heads": 3}, 3, 7, [7, 3, 0]),
    ("msa lengths 1 18, window 3", {**MSA, "d": 12, "heads": 4, "window": 3}, 2, 19, [1, 18]),
    ("gpt long, lengths 130 64 65 1", {**GPT, "d": 10, "heads": 2, "ctx": 140, "layers": 1}, 4, 131,
     [130, 64, 65, 1]),
    ("gpt long, lengths, not causal", {**GPT, "d": 10, "heads": 2, "ctx": 140, "causal": False}, 3, 131,
     [131, 70, 0]),
]


def read_safetensors(path):
    """{name: (dtype, shape, array of values)}"""
    raw = path.read_bytes()
    (size,) = struct.unpack("<Q", raw[:8])
    header = json.loads(raw[8:8 + size])
    header.pop("__metadata__", None)
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        values = array.array(TYPE_CODES[entry["dtype"]], raw[8 + size + begin:8 + size + end])
        tensors[name] = (entry["dtype"], entry["shape"], values)
    return tensors


def write_safetensors(path, tensors):
    header, data = {}, b""
    for name, (dtype, shape, values) in tensors.items():
        end = len(data) + len(values.tobytes())
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), end]}
        data += values.tobytes()
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def call_probe(args, config, weights, given, output):
    command = [args.probe, "--config", config, "--weights", weights, "--input", given, "--output", output,
               "--dtype", args.dtype, "--device", args.device]
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=args.timeout)


def largest_error(ours, expected):
    """max |ours - expected| / max(1, |expected|); infinite as soon as a value is not finite."""
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
        stored, ours_shape, ours_values = ours[name]
        wanted = "F64" if name == "loss" or dtype == "f64" else "F32"
        if (stored, ours_shape) != (wanted, shape):
            complaints.append(f"{name} is {stored} {ours_shape}, expected {wanted} {shape}")
            continue
        group = name.split(".")[0]
        errors[group] = max(errors[group], (largest_error(ours_values, values), name))
    return errors, complaints


def check_case(args, name, folder, limits):
    """Runs one case folder, prints its row, returns True when it holds."""
    output = pathlib.Path(args.scratch) / "out.safetensors"
    output.unlink(missing_ok=True)
    try:
        run = call_probe(args, folder / "model.yaml", folder / "weights.safetensors", folder / "in.safetensors", output)
        problem = f"exit code {run.returncode}: {run.stderr.strip()[-300:]}" if run.returncode else None
    except subprocess.TimeoutExpired:
        problem = f"no answer after {args.timeout} s"
    if problem is None and not output.exists():
        problem = "no output file"
    if problem:
        print(f"{name:34} {args.device:14} FAIL {problem}")
        return False
    expected = read_safetensors(folder / "expected.safetensors")
    errors, complaints = compare(read_safetensors(output), expected, args.dtype)
    complaints += [f"{where}: error {error:.1e}, limit {limits[group]:.1e}"
                   for group, (error, where) in errors.items() if not error <= limits[group]]
    numbers = " ".join(f"{error:9.1e}" for error, _ in errors.values())
    print(f"{name:34} {args.device:14} {numbers}  {'FAIL ' + '; '.join(complaints[:4]) if complaints else 'ok'}")
    return not complaints


def reduced_limits(folder, case, dtype, lengths, drawn):
    """Twice the reference's own error in this dtype, plus n eps of f32 for the longest sum.

    One run can be right by luck (a single loss, a ReLU on the right side of 0), so the reference's error is the largest
    of several runs whose weights are rounded at random; the loss gets the limit of the logits, which move it at most
    by twice their error."""
    import make_cases
    import torch
    _, config, batch, length, *_ = case
    weights, ids, targets = drawn
    kind = {"f32": torch.float32, "bf16": torch.bfloat16}[dtype]
    expected = read_safetensors(folder / "expected.safetensors")
    longest = max(config.get("ff", 4 * config["d"]), config["vocab"], batch * length)
    limits = dict.fromkeys(("logits", "loss", "grad"), 0.0)
    generator = torch.Generator().manual_seed(0)
    for _ in range(8):
        rounded = {name: (w * (1 + torch.finfo(kind).eps * (torch.rand(w.shape, generator=generator) - 0.5))).to(kind)
                   for name, w in weights.items()}
        result = make_cases.definition_of(config).evaluate(config, rounded, ids, targets, lengths)
        values = {name: ("F64" if name == "loss" else "F32", list(t.shape), t.double().flatten().tolist())
                  for name, t in result.items()}
        errors, _ = compare(values, expected, dtype)
        limits = {group: max(limits[group], 2 * errors[group][0] + longest * 2.0 ** -23) for group in limits}
    return {**limits, "loss": max(limits["loss"], limits["logits"])}


def check_generated(args, scratch):
    import torch
    import make_cases
    import scales
    held = []
    for seed, case in enumerate(scales.sweep() if args.sweep else QUICK if args.quick else FULL):
        lengths = torch.tensor(case[4]) if len(case) > 4 else None
        folder = scratch / f"case_{seed}"
        drawn = make_cases.write_case(folder, *case[1:4], 1000 + 10 * seed, lengths)
        limits = dict.fromkeys(("logits", "loss", "grad"), 1e-9)
        if args.dtype != "f64":
            limits = reduced_limits(folder, case, args.dtype, lengths, drawn)
        held.append(check_case(args, case[0], folder, limits))
    return held, scratch / "case_0"


def check_stored(args):
    root = pathlib.Path(__file__).parent / "probe_cases"
    folders = sorted(path for path in root.iterdir() if path.is_dir())
    limits = dict.fromkeys(("logits", "loss", "grad"), 1e-9)
    return [check_case(args, path.name, path, limits) for path in folders], root / "gpt"


def broken_inputs(folder, scratch):
    """Yields (what, name that the message must hold, config path, weights path). The folder is that of a model with attention."""
    config, weights = folder / "model.yaml", read_safetensors(folder / "weights.safetensors")
    missing, surplus, misshapen = "blocks.0.mixer.proj.weight", "blocks.7.fc.weight", "blocks.0.fc.weight"
    dtype, shape, values = weights[misshapen]
    changes = {"missing tensor": (missing, {name: w for name, w in weights.items() if name != missing}),
               "surplus tensor": (surplus, {**weights, surplus: weights[misshapen]}),
               "misshapen tensor": (misshapen, {**weights, misshapen: (dtype, shape[::-1], values)})}
    for what, (name, changed) in changes.items():
        path = scratch / "broken.safetensors"
        write_safetensors(path, changed)
        yield what, name, config, path
    path = scratch / "broken.yaml"
    path.write_text(config.read_text() + "  windwo: 3\n")
    yield "unknown key", "windwo", path, folder / "weights.safetensors"


def check_errors(args, folder, scratch):
    held = []
    for what, name, config, weights in broken_inputs(folder, scratch):
        run = call_probe(args, config, weights, folder / "in.safetensors", scratch / "out.safetensors")
        lines = run.stderr.splitlines()
        good = run.returncode > 0 and len(lines) == 1 and name in lines[0]
        held.append(good)
        print(f"{what:34} {args.device:14} exit {run.returncode}, {len(lines)} line(s)  {'ok' if good else 'FAIL'}"
              f"  {lines[0][:160] if lines else ''}")
    return held


def parse_arguments():
    parser = argparse.ArgumentParser(description="Check ricci-probe against the PyTorch reference or stored values")
    parser.add_argument("--probe", required=True, help="path of the ricci-probe binary")
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda", "cuda_emulated"])
    parser.add_argument("--dtype", default="f64", choices=["f64", "f32", "bf16"])
    parser.add_argument("--quick", action="store_true", help="a small case per feature")
    parser.add_argument("--sweep", action="store_true", help="every variant of the families of several scales at lengths 1 to 40")
    parser.add_argument("--stored", action="store_true", help="use probe_cases/ (f64 only, no PyTorch needed)")
    parser.add_argument("--timeout", type=float, default=600, help="seconds per call of the probe")
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
        args.scratch = scratch
        held, folder = check_stored(args) if args.stored else check_generated(args, pathlib.Path(scratch))
        held += check_errors(args, folder, pathlib.Path(scratch))
    print(f"{sum(held)} of {len(held)} hold ({args.dtype}, {args.device})")
    return 0 if all(held) else 1


if __name__ == "__main__":
    sys.exit(main())
