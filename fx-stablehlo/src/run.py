"""Runs an exported program: python run.py INPUTS.npz [OUTPUTS.npz]

The folder has `model.mlir` (StableHLO), `weights.safetensors` and `calling.json`: the arguments of the program in
order, each an input by name, a weight by path, or the key of random numbers (two 64-bit integers). Needs jax,
safetensors and numpy.
"""

import json
import pathlib
import sys

import jax
import numpy as np
from jax._src import compiler
from jax._src.interpreters import mlir
from jax._src.lib import xla_client
from jaxlib.mlir import ir
from safetensors.numpy import load_file

jax.config.update("jax_enable_x64", True)

DTYPES = {
    "i1": np.bool_, "ui8": np.uint8, "ui16": np.uint16, "ui32": np.uint32, "i8": np.int8, "i16": np.int16,
    "i32": np.int32, "i64": np.int64, "f16": np.float16, "f32": np.float32, "f64": np.float64,
    "bf16": jax.numpy.bfloat16,
}


class Program:
    """A compiled program with its weights."""

    def __init__(self, folder, devices=None):
        folder = pathlib.Path(folder)
        self.calling = json.loads((folder / "calling.json").read_text())
        self.weights = load_file(folder / "weights.safetensors")
        self.devices = list(devices or jax.devices()[:1])
        with mlir.make_ir_context():
            module = ir.Module.parse((folder / "model.mlir").read_text())
            module.operation.verify()
            text = str(module)
        assignment = np.arange(len(self.devices)).reshape(1, -1)
        assignment = np.array([device.id for device in self.devices])[assignment]
        options = compiler.get_compile_options(1, len(self.devices), assignment)
        if len(self.devices) > 1:
            options.executable_build_options.use_spmd_partitioning = True
            options.executable_build_options.use_shardy_partitioner = True
        client = self.devices[0].client
        self.executable = client.compile_and_load(text, xla_client.DeviceList(tuple(self.devices)), options)

    def arguments(self, inputs, key=(0, 0)):
        """The arguments of the program in order, as numpy arrays."""
        for argument in self.calling["arguments"]:
            dtype = DTYPES[argument["dtype"]]
            if argument["kind"] == "input":
                yield np.asarray(inputs[argument["name"]], dtype)
            elif argument["kind"] == "weight":
                if argument["path"] not in self.weights:
                    raise SystemExit(f"weights.safetensors has no {argument['path']}")
                yield np.asarray(self.weights[argument["path"]], dtype)
            else:
                yield np.asarray(key, np.int64)

    def __call__(self, inputs, key=(0, 0)):
        """The results for inputs by name, as numpy arrays."""
        arguments = [jax.device_put(argument, self.devices[0]) for argument in self.arguments(inputs, key)]
        return [np.asarray(result) for result in self.executable.execute(arguments)]


def main():
    program = Program(pathlib.Path(__file__).parent)
    results = program(dict(np.load(sys.argv[1])))
    for result in results:
        print(result.dtype, result.shape)
    if len(sys.argv) > 2:
        np.savez(sys.argv[2], *results)


if __name__ == "__main__":
    main()
