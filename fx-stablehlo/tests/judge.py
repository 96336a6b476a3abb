"""What XLA makes of our programs: python fx-stablehlo/tests/judge.py [FOLDER] [NAME ..]

Writes every model of fx-nn into a folder (a temporary one unless it is named), runs each program by its own `run.py`,
and compares with what fx computed. Needs jax 0.10.2, safetensors and numpy.
"""

import importlib.util
import pathlib
import subprocess
import sys
import tempfile

import jax
import numpy as np
from safetensors.numpy import load_file

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def export(folder, names):
    command = ["cargo", "run", "--release", "-q", "-p", "fx-stablehlo", "--example", "stablehlo_out", "--", str(folder)]
    return subprocess.run([*command, *names], cwd=ROOT).returncode == 0


def program(folder, devices=None):
    spec = importlib.util.spec_from_file_location("run", folder / "run.py")
    run = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(run)
    return run.Program(folder, devices)


def rel_err(found, expected):
    """The largest difference, relative to the largest element."""
    if found.shape != expected.shape:
        return float("inf")
    if expected.size == 0:
        return 0.0
    found, expected = found.astype(np.float64), expected.astype(np.float64)
    return float(np.max(np.abs(found - expected)) / max(np.max(np.abs(expected)), 1e-30))


def one_device(folder):
    exported, ran, worst = 0, 0, 0.0
    for model in sorted(path for path in folder.iterdir() if (path / "model.mlir").exists()):
        exported += 1
        try:
            found = program(model)(load_file(model / "inputs.safetensors"))
        except Exception as error:  # noqa: BLE001: what fails is listed, and the others run
            print(f"{model.name}: {str(error).splitlines()[0][:300]}")
            continue
        expected = load_file(model / "results.safetensors")
        expected = [expected[str(at)] for at in range(len(expected))]
        if len(found) != len(expected):
            print(f"{model.name}: {len(found)} results, not {len(expected)}")
            continue
        error = max([rel_err(a, b) for a, b in zip(found, expected)], default=0.0)
        if error > 1e-5:
            print(f"{model.name}: max_rel_err {error:.1e}")
        else:
            ran += 1
        worst = max(worst, error)
    print(f"exported {exported} ran {ran} max_rel_err {worst:.1e}")
    return exported == ran and worst <= 1e-5


def main():
    print(f"jax {jax.__version__}")
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else temporary)
        folder.mkdir(parents=True, exist_ok=True)
        good = export(folder, sys.argv[2:])
        good &= one_device(folder)
    sys.exit(not good)


if __name__ == "__main__":
    main()
