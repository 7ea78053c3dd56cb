#!/usr/bin/env python3
"""The stored cases, and safetensors files read and written with the standard library only, for machines without PyTorch and
the package safetensors.

    stored.py CASE FOLDER     writes model.yaml, weights.safetensors and in.safetensors of a case, for ricci probe

probe_cases/cases.yaml contains the model of each case. The file of its family contains its tensors: CASE/in.ids, CASE/in.targets and, with
padding, CASE/in.lengths; CASE/weights.NAME; CASE/expected.logits, CASE/expected.loss and CASE/expected.grad.NAME, all in f64.
"""
import array
import json
import pathlib
import struct
import sys

FOLDER = pathlib.Path(__file__).parent / "probe_cases"
TYPE_CODES = {"F64": "d", "F32": "f", "I64": "q"}


def read_safetensors(path):
    """{name: (dtype, shape, array of values)}"""
    raw = pathlib.Path(path).read_bytes()
    (size,) = struct.unpack("<Q", raw[:8])
    header = json.loads(raw[8:8 + size])
    header.pop("__metadata__", None)
    data = memoryview(raw)[8 + size:]
    return {name: (entry["dtype"], entry["shape"], array.array(TYPE_CODES[entry["dtype"]], data[slice(*entry["data_offsets"])].tobytes()))
            for name, entry in header.items()}


def write_safetensors(path, tensors, metadata=None):
    header, data = {"__metadata__": metadata} if metadata else {}, bytearray()
    for name, (dtype, shape, values) in tensors.items():
        begin = len(data)
        data += values.tobytes()
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [begin, len(data)]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    pathlib.Path(path).write_bytes(struct.pack("<Q", len(text)) + text + data)


def part(tensors, prefix):
    """The tensors with this name prefix, without it."""
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


def models():
    """{case: its model as in a run file}"""
    texts = {}
    for line in (FOLDER / "cases.yaml").read_text().splitlines():
        if line.startswith("  "):
            texts[name] += line + "\n"
        elif line.endswith(":"):
            name = line[:-1]
            texts[name] = "model:\n"
    return texts


def tensors_of(case):
    family = models()[case].split("family: ")[1].split()[0]
    return part(read_safetensors(FOLDER / f"{family}.safetensors"), f"{case}/")


def write_inputs(folder, model, tensors):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.yaml").write_text(model)
    write_safetensors(folder / "weights.safetensors", part(tensors, "weights."))
    write_safetensors(folder / "in.safetensors", part(tensors, "in."))


if __name__ == "__main__":
    case, folder = sys.argv[1:]
    write_inputs(folder, models()[case], tensors_of(case))
