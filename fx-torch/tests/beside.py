"""The same programs by `torch.onnx.export`: how many come through ONNX, and how fast ONNX Runtime runs them.

    python fx-torch/tests/beside.py counts DIR OUT [--only PART,PART]
    python fx-torch/tests/beside.py speed DIR OUT [--largest 40]

`counts` writes each DIR/NAME.pt2 as OUT/NAME.onnx and runs that by ONNX Runtime and by `fx run` at both sizes of DIR/NAME_0.npz
and DIR/NAME_1.npz: `FX` names the command. `speed` times the largest programs on two threads, in turns, the least of each: fx
reads the .pt2 (`SPEED` names the example `speed`, built for release), ONNX Runtime the ONNX file of the same program. Needs
torch, onnx, onnxscript and onnxruntime. It resumes: what was exported, or refused, is so in the next run too.
"""

import argparse
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import numpy as np

sys.path.append(str(pathlib.Path(__file__).parents[2] / "fx-onnx/tests"))
from speed import least_of_runtime, of_runtime

ROUNDS, SECONDS = 3, 300
FX = os.environ.get("FX", "target/release/fx")
SPEED = os.environ.get("SPEED", "target/release/examples/speed")
HERE = str(pathlib.Path(__file__).parent)
EXPORT = """
import contextlib, logging, sys, warnings, torch
with contextlib.suppress(ImportError):
    import torchvision  # its operators
sys.path.insert(0, sys.argv[3])
from models import common
common.registered(sys.argv[1])
warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)
program = torch.export.load(sys.argv[1])
torch.onnx.export(program, (), sys.argv[2], dynamo=True, verbose=False)
"""


def exported(file, onnx):
    """Writes the ONNX file, and gives what the exporter says where it does not."""
    # What the exporter said; nothing where it wrote the file.
    said_before = onnx.with_suffix(".said")
    if said_before.exists():
        return said_before.read_text()
    try:
        ran = subprocess.run([sys.executable, "-c", EXPORT, str(file), str(onnx), HERE], capture_output=True, text=True, timeout=SECONDS)
        said = "" if ran.returncode == 0 else (ran.stderr.strip().splitlines() or ["no message"])[-1]
    except subprocess.TimeoutExpired:
        said = f"more than {SECONDS} s"
    if said:
        onnx.unlink(missing_ok=True)
    said_before.write_text(said[:300])
    return said


def given(session, file, at):
    """The inputs of a size by the session's names, and PyTorch's results; an input that the ONNX file left out is not given."""
    arrays = np.load(file.with_name(f"{file.stem}_{at}.npz"))
    inputs = [arrays[name] for name in sorted(arrays) if name.startswith("in_")]
    results = [arrays[name] for name in sorted(arrays) if name.startswith("out_")]
    wanted = session.get_inputs()
    if len(wanted) != len(inputs):
        raise ValueError(f"{len(wanted)} inputs in ONNX, and {len(inputs)} in the program")
    return {own.name: array for own, array in zip(wanted, inputs)}, results


def is_equal(found, expected):
    if len(found) != len(expected):
        return False
    for a, b in zip(found, expected):
        a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
        if a.shape != b.shape:
            return False
        both = np.isfinite(b)
        largest = np.abs(b[both]).max(initial=1e-30)
        if not np.array_equal(np.isfinite(a), both) or np.abs(a - b)[both].max(initial=0) > 1e-5 * largest:
            return False
    return True


def by_fx(onnx, data, outputs):
    with tempfile.TemporaryDirectory() as folder:
        inputs, results = pathlib.Path(folder, "in.npz"), pathlib.Path(folder, "out.npz")
        np.savez(inputs, **data)
        command = [FX, "run", str(onnx), "--input", str(inputs), "-o", str(results)]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
        if ran.returncode:
            raise RuntimeError((ran.stderr.strip().splitlines() or ["no message"])[0][:200])
        arrays = np.load(results)
        return [arrays[name] for name in (outputs if set(outputs) <= set(arrays) else list(arrays))]


def counts(files, out):
    total = dict(programs=0, exported=0, runtime_equal=0, fx_loaded=0, fx_equal=0)
    for file in files:
        onnx = out / f"{file.stem}.onnx"
        total["programs"] += 1
        said = exported(file, onnx)
        if said:
            print(f"{file.stem}: not exported: {said[:160]}", flush=True)
            continue
        total["exported"] += 1
        line = []
        try:
            session = of_runtime(onnx)
            sizes = [given(session, file, at) for at in (0, 1)]
            equal = all(is_equal(session.run(None, data), results) for data, results in sizes)
            total["runtime_equal"] += equal
            line.append(f"runtime {'equal' if equal else 'NOT EQUAL'}")
        except Exception as error:
            line.append(f"runtime ERROR {str(error)[:120]}")
            sizes = []
        try:
            if not sizes:
                raise RuntimeError("not run")
            outputs = [own.name for own in session.get_outputs()]
            found = [(by_fx(onnx, data, outputs), results) for data, results in sizes]
            total["fx_loaded"] += 1
            equal = all(is_equal(*pair) for pair in found)
            total["fx_equal"] += equal
            line.append(f"fx {'equal' if equal else 'NOT EQUAL'}")
        except Exception as error:
            line.append(f"fx ERROR {str(error)[:200]}")
        print(f"{file.stem}: {', '.join(line)}", flush=True)
    print(" ".join(f"{name} {count}" for name, count in total.items()))


def least_of_fx(file, runs):
    env = dict(os.environ, RAYON_NUM_THREADS="2")
    ran = subprocess.run([SPEED, "run", str(file), str(runs)], capture_output=True, text=True, env=env, timeout=SECONDS)
    if ran.returncode:
        raise RuntimeError(ran.stderr.strip()[:200])
    words = ran.stdout.split()
    return float(words[words.index("least_ms") + 1])


def speed(files, out, most):
    rows = []
    for file in sorted(files, key=lambda file: -file.stat().st_size):
        if len(rows) == most:
            break
        onnx = out / f"{file.stem}.onnx"
        try:
            said = exported(file, onnx)
            if said:
                raise RuntimeError(f"not exported: {said}")
            session = of_runtime(onnx)
            data, _ = given(session, file, 0)
            first = least_of_runtime(session, data, 0.5)
            runs = max(3, min(30, int(1500 / first)))
            pairs = [(least_of_runtime(session, data, 1.0), least_of_fx(file, runs)) for _ in range(ROUNDS)]
        except Exception as error:
            print(f"left out {file.stem}: {str(error)[:160]}", flush=True)
            continue
        theirs, ours = (min(column) for column in zip(*pairs))
        rows.append((ours / theirs, file.stem, theirs, ours))
        print(f"{ours / theirs:6.2f} {theirs:9.2f} {ours:9.2f}  {file.stem}", flush=True)
    print(f"\n{'ratio':>6} {'runtime':>9} {'fx':>9}  program")
    for ratio, name, theirs, ours in sorted(rows, reverse=True):
        print(f"{ratio:6.2f} {theirs:9.2f} {ours:9.2f}  {name}")
    mean = math.exp(statistics.fmean(math.log(row[0]) for row in rows)) if rows else math.nan
    print(f"programs {len(rows)} geometric_mean {mean:.2f} worst {max((row[0] for row in rows), default=math.nan):.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["counts", "speed"])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--only", default="", help="parts of names, one of which a program has to have")
    parser.add_argument("--largest", type=int, default=40)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    parts = options.only.split(",")
    files = sorted(file for file in options.folder.glob("*.pt2") if any(part in file.stem for part in parts))
    if options.what == "counts":
        counts(files, options.out)
    else:
        speed(files, options.out, options.largest)


if __name__ == "__main__":
    main()
