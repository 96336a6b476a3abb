"""What jax takes for programs of fx: python fx-pjrt/tests/jax_times.py FOLDER

FOLDER is what `--example pjrt_overhead -- FOLDER` wrote: each program as StableHLO with its weights, and its inputs. The
same text is compiled by jax's own XLA, and run with arguments that are on the device. Needs jax, safetensors and numpy.
"""

import importlib.util
import pathlib
import statistics
import sys
import time

import jax
import jaxlib
from safetensors.numpy import load_file


def program(folder):
    spec = importlib.util.spec_from_file_location("run", folder / "run.py")
    run = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(run)
    return run.Program(folder)


def main():
    client = jax.devices()[0].client
    print(f"jax {jax.__version__} jaxlib {jaxlib.__version__} platform {client.platform} {client.platform_version}")
    for folder in sorted(path for path in pathlib.Path(sys.argv[1]).iterdir() if (path / "model.mlir").exists()):
        made = program(folder)
        inputs = load_file(folder / "inputs.safetensors")
        given = [jax.device_put(argument, made.devices[0]) for argument in made.arguments(inputs)]

        def run():
            results = made.executable.execute_sharded(given).disassemble_into_single_device_arrays()
            results[0][0].block_until_ready()

        for _ in range(3):
            run()
        turns = []
        for _ in range(21):
            start = time.perf_counter()
            for _ in range(3):
                run()
            turns.append((time.perf_counter() - start) / 3)
        print(f"{folder.name}: jax_ms {statistics.median(turns) * 1e3:.2f}")


if __name__ == "__main__":
    main()
