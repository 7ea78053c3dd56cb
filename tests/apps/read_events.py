"""Compares the scalars that the tensorboard package reads from a run's folder with metrics.jsonl.

    read_events.py FOLDER
"""
import json
import struct
import sys

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.backend.event_processing.plugin_event_accumulator import EventAccumulator as PluginEventAccumulator


def f32(value):
    return struct.unpack("f", struct.pack("f", value))[0]


def expected(folder):
    """{tag: [(time, step, value), ...]}"""
    series = {}
    for line in open(folder + "/metrics.jsonl"):
        record = json.loads(line)
        for key, value in record.items():
            if value is not None and key not in ("step", "time"):
                series.setdefault(key, []).append((record["time"], record["step"], f32(value)))
    return series


def read(folder):
    accumulator = EventAccumulator(folder, size_guidance={"scalars": 0})
    accumulator.Reload()
    return {tag: [(event.wall_time, event.step, event.value) for event in accumulator.Scalars(tag)] for tag in accumulator.Tags()["scalars"]}


def read_as_the_web_page_does(folder):
    accumulator = PluginEventAccumulator(folder, size_guidance={"tensors": 0})
    accumulator.Reload()
    series = {}
    for tag in accumulator.Tags()["tensors"]:
        if accumulator.SummaryMetadata(tag).plugin_data.plugin_name != "scalars":
            continue
        points = [(e.wall_time, e.step, e.tensor_proto) for e in accumulator.Tensors(tag)]
        series[tag] = [(time, step, proto.float_val[0] if proto.float_val else struct.unpack("f", proto.tensor_content)[0])
                       for time, step, proto in points]
    return series


folder = sys.argv[1]
wanted = expected(folder)
for name, got in (("events", read(folder)), ("web page", read_as_the_web_page_does(folder))):
    if got != wanted:
        sys.exit(f"{name}: read {got}\nexpected {wanted}")
print(sum(len(points) for points in wanted.values()), "points, the same in both")
