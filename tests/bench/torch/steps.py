"""Shared by PyTorch's step benchmarks, like measured_steps.h: options, the loop around a step, and the lines
"measure NAME VALUE UNIT" that they print."""
import argparse
import contextlib
import resource
import statistics
import time

import torch


def arguments(doc, names, seconds, add=lambda parser: None):
    """Reads the command line; `seconds`: the approximate time of all steps, without --steps."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=names)
    parser.add_argument("--steps", type=int, default=0, help=f"0: about {seconds} seconds of them")
    parser.add_argument("--dtype", choices=["f32", "bf16"], default="f32")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--threads", type=int, default=0)
    add(parser)
    args = parser.parse_args()
    args.seconds = seconds
    if args.threads:
        torch.set_num_threads(args.threads)
    return args


def autocast(args, device):
    return torch.autocast(device, torch.bfloat16) if args.dtype == "bf16" else contextlib.nullcontext()


def processor_seconds():
    """The seconds of all threads, without the system's share."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_utime


def wait(device):
    if device == "cuda":
        torch.cuda.synchronize()


def measure(name, args, step):
    """Three steps to warm up, then the measured ones; prints and returns the median of their seconds. A step returns when its work is
    done."""
    for _ in range(3):
        step()
    seconds, processor = [], processor_seconds()
    while len(seconds) < (args.steps or 5) or (not args.steps and sum(seconds) < args.seconds and len(seconds) < 1000):
        started = time.perf_counter()
        step()
        seconds.append(time.perf_counter() - started)
    processor = (processor_seconds() - processor) / len(seconds)
    median = statistics.median(seconds)
    print(f"measure {name}_median {median * 1e3:.3f} ms")
    print(f"measure {name}_min {min(seconds) * 1e3:.3f} ms")
    print(f"measure {name}_processor {processor * 1e3:.3f} ms")
    print(f"measure {name}_memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1.024e-3:.1f} MB", flush=True)
    return median
