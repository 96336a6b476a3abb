"""Runs an exported program: python run.py INPUTS.npz [OUTPUTS.npz]

The folder has `model.mlir` (StableHLO), `weights.safetensors` and `calling.json`: the arguments of the program in
order, each an input by name, a weight by path, or the key of random numbers (two 64-bit integers). A program with a mesh
needs as many devices. Needs jax, safetensors and numpy.
"""

import collections
import json
import math
import pathlib
import re
import sys

import jax
import numpy as np
from jax._src import compiler
from jax._src.interpreters import mlir
from jax._src.lib import xla_client
from jax._src.sharding_impls import GSPMDSharding
from jax.sharding import SingleDeviceSharding
from jaxlib.mlir import ir
from safetensors.numpy import load_file

jax.config.update("jax_enable_x64", True)

DTYPES = {
    "i1": np.bool_, "ui8": np.uint8, "ui16": np.uint16, "ui32": np.uint32, "i8": np.int8, "i16": np.int16,
    "i32": np.int32, "i64": np.int64, "f16": np.float16, "f32": np.float32, "f64": np.float64,
    "bf16": jax.numpy.bfloat16,
}


class Program:
    """A compiled program with its weights, on the devices of its mesh."""

    def __init__(self, folder):
        folder = pathlib.Path(folder)
        self.calling = json.loads((folder / "calling.json").read_text())
        self.weights = load_file(folder / "weights.safetensors")
        paths = [argument["path"] for argument in self.calling["arguments"] if argument["kind"] == "weight"]
        missing = [path for path in paths if path not in self.weights]
        if missing:
            raise SystemExit(f"weights.safetensors lacks {len(missing)}: {', '.join(missing)}")
        count = math.prod(size for _, size in self.calling.get("mesh", []))
        devices = jax.devices()
        if len(devices) < count:
            raise SystemExit(f"the mesh {self.calling['mesh']} has {count} devices, and jax has {len(devices)}")
        self.devices = devices[:count]
        with mlir.make_ir_context():
            module = ir.Module.parse((folder / "model.mlir").read_text())
            module.operation.verify()
            text = str(module)
        assignment = np.array([[device.id for device in self.devices]])
        options = compiler.get_compile_options(1, count, assignment)
        if "mesh" in self.calling:
            options.executable_build_options.use_spmd_partitioning = True
            options.executable_build_options.use_shardy_partitioner = True
        client = self.devices[0].client
        self.executable = client.compile_and_load(text, xla_client.DeviceList(tuple(self.devices)), options)

    def shardings(self, found, count):
        """The shardings that XLA chose, as those of arrays."""
        if not found:
            return [SingleDeviceSharding(self.devices[0])] * count
        return [GSPMDSharding(tuple(self.devices), sharding) for sharding in found]

    def arguments(self, inputs, key=(0, 0)):
        """The arguments of the program in order, as numpy arrays."""
        for argument in self.calling["arguments"]:
            dtype = DTYPES[argument["dtype"]]
            if argument["kind"] == "input":
                yield np.asarray(inputs[argument["name"]], dtype)
            elif argument["kind"] == "weight":
                yield np.asarray(self.weights[argument["path"]], dtype)
            else:
                yield np.asarray(key, np.int64)

    def __call__(self, inputs, key=(0, 0)):
        """The results for inputs by name, as arrays of jax. Each process has the parts of its own devices."""
        given = list(self.arguments(inputs, key))
        shardings = self.shardings(self.executable.get_parameter_shardings(), len(given))
        placed = [
            jax.make_array_from_callback(whole.shape, sharding, lambda index, whole=whole: whole[index])
            for whole, sharding in zip(given, shardings)
        ]
        made = self.executable.execute_sharded(placed).disassemble_into_single_device_arrays()
        shardings = self.shardings(self.executable.get_output_shardings(), len(made))
        shapes = [tuple(result["shape"]) for result in self.calling["results"]]
        return [
            jax.make_array_from_single_device_arrays(shape, sharding, parts)
            for shape, sharding, parts in zip(shapes, shardings, made)
        ]


    def explain(self):
        """What XLA reports: bytes on each device, and the collectives of the compiled program."""
        stats = self.executable.get_compiled_memory_stats()
        names = "all-reduce|all-gather|reduce-scatter|all-to-all|collective-permute"
        text = self.executable.hlo_modules()[0].to_string()
        collectives = collections.Counter(re.findall(rf" ({names})(?:-start)?\(", text))
        return {
            "devices": len(self.devices),
            "argument_bytes": stats.argument_size_in_bytes,
            "result_bytes": stats.output_size_in_bytes,
            "temporary_bytes": stats.temp_size_in_bytes,
            "collectives": dict(sorted(collectives.items())),
        }


def main():
    program = Program(pathlib.Path(__file__).parent)
    print(json.dumps(program.explain()))
    results = program(dict(np.load(sys.argv[1])))
    for result in results:
        print(result.dtype, result.shape)
    if len(sys.argv) > 2:
        np.savez(sys.argv[2], *map(np.asarray, results))


if __name__ == "__main__":
    main()
