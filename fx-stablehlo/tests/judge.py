"""What XLA makes of our programs: python fx-stablehlo/tests/judge.py [FOLDER] [NAME ..]

Writes every model of fx-nn into a folder (a temporary one unless it is named), runs each program by its own `run.py`,
and compares with what fx computed: on one device; four models on eight virtual devices, split by batch, by layers and
by both; the last again in two processes of four devices. `--record` writes the table of collectives again.
Needs jax 0.10.2, safetensors and numpy.
"""

import importlib.util
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile

RANK = os.environ.get("FX_JUDGE_RANK")
os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={8 if RANK is None else 4}"

import jax  # noqa: E402: the flags come first
import numpy as np  # noqa: E402
from safetensors.numpy import load_file  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def export(folder, names):
    command = ["cargo", "run", "--release", "-q", "-p", "fx-stablehlo", "--example", "stablehlo_out", "--", str(folder)]
    return subprocess.run([*command, *names], cwd=ROOT).returncode == 0


def program(folder):
    spec = importlib.util.spec_from_file_location("run", folder / "run.py")
    run = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(run)
    return run.Program(folder)


def max_err(model):
    """Runs a program: the largest difference from fx, and the program."""
    made = program(model)
    found = made(load_file(model / "inputs.safetensors"))
    expected = load_file(model / "results.safetensors")
    if len(found) != len(expected):
        raise ValueError(f"{len(found)} results, not {len(expected)}")
    worst = 0.0
    for at, result in enumerate(found):
        whole = expected[str(at)]
        scale = max(float(np.max(np.abs(whole.astype(np.float64)), initial=0.0)), 1e-30)
        if result.shape != whole.shape:
            raise ValueError(f"a result of shape {result.shape}, not {whole.shape}")
        for part in result.addressable_shards:
            own, ours = np.asarray(part.data).astype(np.float64), whole[part.index].astype(np.float64)
            worst = max(worst, float(np.max(np.abs(own - ours), initial=0.0)) / scale)
    return worst, made


def all_of(folder, each=lambda name, made: True):
    """Runs every program of a folder; how many there are, how many are right, and the largest difference."""
    count, right, worst = 0, 0, 0.0
    for model in sorted(path for path in folder.iterdir() if (path / "model.mlir").exists()):
        count += 1
        try:
            error, made = max_err(model)
        except Exception as problem:  # noqa: BLE001: what fails is listed, and the others run
            print(f"{model.name}: {str(problem).splitlines()[0][:300]}")
            continue
        is_right = error <= 1e-5 and each(model.name, made)
        if not is_right:
            print(f"{model.name}: max_rel_err {error:.1e}")
        right += is_right
        worst = max(worst, error)
    return count, right, worst


def eight_devices(folder, record):
    """Programs over eight devices: their numbers, their bytes per device, and their collectives."""
    table = pathlib.Path(__file__).with_name("collectives.json")
    kept = json.loads(table.read_text()) if table.exists() else {}
    found, ratios = {}, []

    def each(name, made):
        explained = made.explain()
        found[name] = explained["collectives"]
        sizes = dict(made.calling["mesh"])
        ideal = 0
        for argument in made.calling["arguments"]:
            parts = np.prod([sizes[axis] for axes in argument.get("sharding", []) for axis in axes], initial=1)
            itemsize = 1 if argument["dtype"] == "i1" else int(argument["dtype"].lstrip("uibf")) / 8
            ideal += np.prod(argument["shape"], initial=1) * itemsize / parts
        ratios.append(explained["argument_bytes"] / ideal)
        if not record and kept.get(name) != found[name]:
            print(f"{name}: collectives {found[name]}, kept {kept.get(name)}")
            return False
        return True

    count, right, worst = all_of(folder, each)
    if record:
        table.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")
    ratio = max(ratios, default=float("inf"))
    print(f"eight devices: programs {count} right {right} max_rel_err {worst:.1e} bytes_per_device_ratio {ratio:.3f}")
    return count == right and ratio <= 1.1


def commands(model):
    """The guide's commands on a program: its script by itself."""
    np.savez(model / "inputs.npz", **load_file(model / "inputs.safetensors"))
    command = [sys.executable, "run.py", "inputs.npz", "results.npz"]
    made = subprocess.run(command, cwd=model, capture_output=True, text=True)
    print(made.stdout.strip() if made.returncode == 0 else made.stderr.strip()[-500:])
    return made.returncode == 0 and (model / "results.npz").exists()


def two_processes(folder):
    """The programs over eight devices, in two processes of four."""
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    command = [sys.executable, __file__, str(folder)]
    ranks = [
        subprocess.Popen(command, env={**os.environ, "FX_JUDGE_RANK": str(rank), "FX_JUDGE_PORT": str(port)})
        for rank in range(2)
    ]
    return all([rank.wait() == 0 for rank in ranks])


def rank(folder):
    """One process of two."""
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(f"localhost:{os.environ['FX_JUDGE_PORT']}", 2, int(RANK))
    count, right, worst = all_of(folder)
    print(f"process {RANK}: programs {count} right {right} max_rel_err {worst:.1e}")
    return count == right


def main():
    arguments = [argument for argument in sys.argv[1:] if argument != "--record"]
    if RANK is not None:
        sys.exit(not rank(pathlib.Path(arguments[0])))
    print(f"jax {jax.__version__}")
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(arguments[0] if arguments else temporary)
        folder.mkdir(parents=True, exist_ok=True)
        good = export(folder, arguments[1:])
        count, right, worst = all_of(folder / "one")
        print(f"exported {count} ran {right} max_rel_err {worst:.1e}")
        good &= count == right
        good &= eight_devices(folder / "eight", "--record" in sys.argv)
        good &= commands(folder / "eight" / "gpt2.both")
        good &= two_processes(folder / "eight")
    sys.exit(not good)


if __name__ == "__main__":
    main()
