"""How fast ONNX files run, beside ONNX Runtime: compiled, and as loaded; on two threads, in turns, the least of each.

    python fx-onnx/tests/speed.py DIR .. [--only PART] [--most N]

takes the files of DIR/files that `packages.py` and `exports.py` left there. A file that takes ONNX Runtime less than 5 ms says
little, and one whose elements are quantized is another comparison: both are left out. The table is printed worst first. `FX`
names the built command `fx`; without it, it is built for release.
"""

import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
import onnxruntime
import real_files

ROUNDS = 3
LEAST_MS = 5.0
QUANTIZED = ("Quantize", "QLinear", "Integer", "QAttention", "MatMulNBits", "QGemm")


def command():
    if "FX" in os.environ:
        return os.environ["FX"]
    subprocess.run(["cargo", "build", "--release", "-q", "-p", "fx-cli"], cwd=real_files.ROOT, check=True)
    return str(real_files.ROOT / "target/release/fx")


def is_plain(path):
    """Whether the file computes in floats."""
    nodes = onnx.load(path, load_external_data=False).graph.node
    return not any(part in node.op_type for node in nodes for part in QUANTIZED)


def of_runtime(path):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 2
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def least_of_runtime(session, data, seconds=1.0):
    least, start = math.inf, time.perf_counter()
    while time.perf_counter() - start < seconds:
        before = time.perf_counter()
        session.run(None, data)
        least = min(least, (time.perf_counter() - before) * 1e3)
    return least


def least_of_fx(fx, path, inputs, runs, *options):
    env = dict(os.environ, RAYON_NUM_THREADS="2")
    command = [fx, "bench", str(path), "--input", str(inputs), "--runs", str(runs), "--json", *options]
    ran = subprocess.run(command, capture_output=True, text=True, env=env, timeout=600)
    if ran.returncode:
        raise RuntimeError(ran.stderr.strip()[:160])
    return json.loads(ran.stdout)["least_ms"]


def measured(fx, path, folder):
    """The least times of ONNX Runtime, fx compiled and fx as loaded, in ms; nothing for a file that is left out."""
    session = of_runtime(path)
    sets = real_files.bindings(path, session, 20.0)
    if not sets:
        return None
    data = sets[0][1]
    first = least_of_runtime(session, data)
    if first < LEAST_MS:
        return None
    inputs = folder / "in.npz"
    np.savez(inputs, **data)
    runs = max(3, min(30, int(1000 / first)))
    times = [(first, math.inf, math.inf)]
    for _ in range(ROUNDS):
        times.append((
            least_of_runtime(session, data),
            least_of_fx(fx, path, inputs, runs),
            least_of_fx(fx, path, inputs, min(runs, 5), "--as-is"),
        ))
    return tuple(min(column) for column in zip(*times))


def main():
    arguments = [a for a in sys.argv[1:] if not a.startswith("--")]
    value = lambda name, otherwise: sys.argv[sys.argv.index(name) + 1] if name in sys.argv else otherwise
    only, most = value("--only", ""), int(value("--most", "100000"))
    fx, rows = command(), []
    folders = [pathlib.Path(a) for a in arguments if a not in (only, str(most))]
    paths = sorted(path for folder in folders for path in (folder / "files").glob("*.onnx") if only in path.name)
    with tempfile.TemporaryDirectory() as folder:
        for path in paths:
            if len(rows) >= most:
                break
            try:
                found = is_plain(path) and measured(fx, path, pathlib.Path(folder))
            except Exception as error:
                print(f"left out {path.stem}: {str(error)[:160]}", flush=True)
                continue
            if found:
                rows.append((found[1] / found[0], path.stem, *found))
                print(f"{rows[-1][0]:6.2f} {path.stem}", flush=True)
    print(f"\n{'ratio':>6} {'runtime':>9} {'compiled':>9} {'loaded':>9}  file")
    for ratio, name, runtime, compiled, loaded in sorted(rows, reverse=True):
        print(f"{ratio:6.2f} {runtime:9.2f} {compiled:9.2f} {loaded:9.2f}  {name}")
    ratios = sorted(row[0] for row in rows)
    mean = math.exp(statistics.fmean(map(math.log, ratios))) if ratios else math.nan
    p90 = ratios[int(0.9 * (len(ratios) - 1))] if ratios else math.nan
    slower = sum(row[3] > 1.05 * row[4] for row in rows)
    print(f"files {len(rows)} geometric_mean {mean:.2f} p90 {p90:.2f} worst {ratios[-1] if ratios else math.nan:.2f} "
          f"slower_compiled {slower}")


if __name__ == "__main__":
    main()
