"""Time to first result: whole processes that start, load a program, and run it once, in turns.

    SPEED=target/release/examples/speed python fx-torch/tests/first.py FILE.pt2 .. [--rounds N]

The one is fx (`speed first`: it loads, compiles and runs), the other Python, which imports torch, loads the file by
`torch.export.load` and runs its module. `cold` drops the file and the program from the file cache before each process (as root).
A plain read and fx's `load` of the same file stand beside, with the memory that `load` takes over that of the weights.
"""

import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import time

SPEED = os.environ.get("SPEED", "target/release/examples/speed")
HERE = str(pathlib.Path(__file__).parent)
PYTHON = """
import sys, numpy, torch
sys.path.insert(0, sys.argv[2])
from models import common
common.registered(sys.argv[1])
arrays = numpy.load(sys.argv[1][:-4] + "_0.npz")
inputs = [torch.from_numpy(arrays[name]) for name in sorted(arrays) if name.startswith("in_")]
program = torch.export.load(sys.argv[1])
module = program.module()
flat = torch.utils._pytree.tree_unflatten
spec = program.call_spec.in_spec
args, kwargs = (flat(inputs, spec) if spec.num_leaves == len(inputs) else (inputs, {}))
with torch.no_grad():
    module(*args, **kwargs)
"""


def drop_caches():
    os.sync()
    pathlib.Path("/proc/sys/vm/drop_caches").write_text("3")


def seconds(command, is_cold):
    if is_cold:
        drop_caches()
    start = time.perf_counter()
    ran = subprocess.run(command, capture_output=True, text=True, env=dict(os.environ, OMP_NUM_THREADS="2", RAYON_NUM_THREADS="2"))
    took = time.perf_counter() - start
    if ran.returncode:
        raise RuntimeError(ran.stderr.strip()[-300:])
    return took, ran.stdout


def numbers(text):
    words = text.split()
    return dict(zip(words[::2], map(float, words[1::2])))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    all_ratios = {True: [], False: []}
    for file in options.files:
        name = pathlib.Path(file).stem
        fx, theirs = [SPEED, "first", file], [sys.executable, "-c", PYTHON, file, HERE]
        for is_cold in (False, True):
            ours, others = [], []
            for _ in range(options.rounds):
                ours.append(seconds(fx, is_cold)[0])
                others.append(seconds(theirs, is_cold)[0])
            ratio = min(ours) / min(others)
            all_ratios[is_cold].append(ratio)
            print(f"{name} {'cold' if is_cold else 'warm'} fx_s {min(ours):.2f} python_s {min(others):.2f} ratio {ratio:.2f}",
                  flush=True)
        reads, loads, peaks = [], [], []
        for _ in range(options.rounds):
            reads.append(numbers(seconds([SPEED, "read", file], False)[1])["read_ms"])
            load = numbers(seconds([SPEED, "load", file], False)[1])
            loads.append(load["load_ms"])
            peaks.append(load["peak_mb"])
        size = pathlib.Path(file).stat().st_size / 1e6
        print(f"{name} mb {size:.0f} read_ms {min(reads):.0f} load_ms {min(loads):.0f} ratio {min(loads) / min(reads):.2f} "
              f"peak_over_file {min(peaks) / size:.2f}", flush=True)
    for is_cold, ratios in all_ratios.items():
        print(f"files {len(ratios)} {'cold' if is_cold else 'warm'} median {statistics.median(ratios):.2f} worst {max(ratios):.2f}")


if __name__ == "__main__":
    main()
