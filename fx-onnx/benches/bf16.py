"""Compares fx in `bf16` with OpenVINO, which computes in `bf16` where the processor can, on the CPU, in turns.

    pip install torch torchvision transformers onnx onnxruntime openvino safetensors
    python fx-onnx/benches/bf16.py

It builds the fx program (`cargo build --release`), writes each model as ONNX, and prints a line per model: the least time
of each engine in ms, fx over OpenVINO, and each engine's signal over noise to PyTorch's `float32` in decibels. A row whose
signal is below OpenVINO's by more than 0.5 dB is void. The last line is `all bars held`, or what was missed; then the exit
code is 1. Bars hold on processors with AVX-512 BF16; elsewhere the last line is `not judged`.

Names of models as arguments choose them; `--turns N` (5), `--threads N` (2), `--profile FOLDER` writes the steps' times.
"""

import math
import sys
import tempfile
import warnings
from pathlib import Path

warnings.filterwarnings("ignore")
sys.path.append(str(Path(__file__).resolve().parents[2] / "fx-nn" / "benches"))

MISSING = "bf16.py needs torch, torchvision, onnx, onnxruntime, openvino and safetensors: pip install {}"
try:
    import openvino
    import torch
    from safetensors.torch import load_file, save_file

    from onnx_models import model_of, openvino_of, session, sqnr, write_onnx
except ImportError as error:
    sys.exit(MISSING.format(error.name))

from fx_program import Fx, build, in_turns, options_of, timed  # noqa: E402

# What fx may take over OpenVINO; models without a bar are printed alone.
BARS = {"resnet50": 1.2, "bert": 1.2, "resnet18": math.inf, "mobilenet_v2": math.inf}


def compare(name, fx, options):
    model, shape = model_of(name)
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        x = torch.randn(shape)
        save_file({"x": x}, str(folder / "inputs.safetensors"))
        file = folder / "model.onnx"
        write_onnx(model, x, file)
        fx.ask(f"load {folder}")
        with torch.inference_mode():
            expected = model(x)
        run = openvino_of(file, x.numpy(), options.threads)
        results = {"openvino": torch.from_numpy(list(run().values())[0])}
        ort = session(file, options.threads)
        engines = {
            "openvino": timed(run),
            "openvino_f32": timed(openvino_of(file, x.numpy(), options.threads, INFERENCE_PRECISION_HINT="f32")),
            "ort_f32": timed(lambda: ort.run(None, {"x": x.numpy()})),
        }
        for engine in ("bf16", "f32"):
            engines[f"fx_{engine}"] = lambda count, engine=engine: float(fx.ask(f"run {engine} {count}"))
            fx.ask(f"result {engine} {folder / 'y.safetensors'}")
            results[f"fx_{engine}"] = load_file(str(folder / "y.safetensors"))["y"]
        if options.profile:
            fx.ask(f"profile {options.profile / name}.txt")
        least = in_turns(engines, options.turns, 5)
        return least, {engine: sqnr(expected, found) for engine, found in results.items()}


def main():
    options = options_of(__doc__, BARS)
    torch.set_num_threads(options.threads)
    flags = Path("/proc/cpuinfo")
    has_bf16 = flags.exists() and "avx512_bf16" in flags.read_text()
    fx = Fx(build("bf16", "fx-onnx"), options.threads)
    print(f"openvino {openvino.__version__}, {options.threads} threads, bf16 {has_bf16}")
    missed = []
    for name in options.models:
        least, signal = compare(name, fx, options)
        ratio, bar = least["fx_bf16"] / least["openvino"], BARS[name]
        print(
            f"{name}: fx_ms {least['fx_bf16']:.2f} openvino_ms {least['openvino']:.2f} ratio {ratio:.2f} (bar {bar:.2f})  "
            f"f32: fx {least['fx_f32']:.2f} openvino {least['openvino_f32']:.2f} ort {least['ort_f32']:.2f}  "
            f"sqnr_db fx {signal['fx_bf16']:.2f} openvino {signal['openvino']:.2f} fx_f32 {signal['fx_f32']:.2f}",
            flush=True,
        )
        if signal["fx_bf16"] < signal["openvino"] - 0.5:
            missed.append(f"{name} is void: its signal is {signal['fx_bf16']:.2f} dB beside {signal['openvino']:.2f}")
        elif ratio > bar:
            missed.append(f"{name} {ratio:.2f} > {bar:.2f}")
    if not has_bf16:
        print("not judged")
        return
    print("missed: " + "; ".join(missed) if missed else "all bars held")
    sys.exit(bool(missed))


main()
