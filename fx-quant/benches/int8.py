"""Compares fx's integers with ONNX Runtime's and OpenVINO's on the CPU, in turns.

    pip install torch torchvision transformers onnx onnxruntime openvino safetensors
    python fx-quant/benches/int8.py

It builds the fx program (`cargo build --release`), writes each model in floats as ONNX, and quantizes it by fx, and by
ONNX Runtime's `quantize_static` (per channel, `uint8` activations and `int8` weights, the better of QDQ and QOperator),
with the same inputs to calibrate with; BERT also by `quantize_dynamic`, and by fx's dynamic plan. ONNX Runtime also runs the file that fx writes,
and fx the file that ONNX Runtime's quantizer writes (QDQ; of BERT the dynamic one). It prints a line per model: the least
time of each engine in ms, the fastest of fx's over ONNX Runtime's fastest, and each engine's signal over noise to the
floats in decibels. A row whose signal is below ONNX Runtime's by more
than 0.5 dB is void. The last line is `all bars held`, or what was missed; then the exit code is 1. Bars hold on processors
with AVX-512 VNNI; elsewhere the last line is `not judged`.

Names of models as arguments choose them; `--turns N` (5), `--threads N` (2), `--profile FOLDER` writes the steps' times.
"""

import math
import sys
import tempfile
import warnings
from pathlib import Path

warnings.filterwarnings("ignore")
for package in ("fx-nn", "fx-onnx"):
    sys.path.append(str(Path(__file__).resolve().parents[2] / package / "benches"))

MISSING = "int8.py needs torch, torchvision, onnx, onnxruntime and safetensors: pip install {}"
try:
    import onnxruntime
    import torch
    from onnxruntime.quantization import QuantFormat, QuantType, quantize_dynamic, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process
    from safetensors.torch import load_file, save_file

    from onnx_models import model_of, openvino_of, session, sqnr, write_onnx
except ImportError as error:
    sys.exit(MISSING.format(error.name))

from fx_program import Fx, build, in_turns, options_of, timed  # noqa: E402
from onnx_quantizer import Reader  # noqa: E402

# What fx may take over ONNX Runtime's integers.
BARS = {"resnet18": 1.1, "resnet50": 1.1, "mobilenet_v2": 1.1, "bert": 1.1, "deeprecommender_b16": 0.9}


def compare(name, fx, options):
    model, shape = model_of(name)
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        inputs = [torch.randn(shape) for _ in range(8)]
        x = torch.randn(shape)
        names = {f"c{at}": value for at, value in enumerate(inputs)}
        save_file({"x": x, **names}, str(folder / "inputs.safetensors"))
        file = folder / "model.onnx"
        write_onnx(model, x, file)
        fx.ask(f"load {folder}")
        with torch.inference_mode():
            expected = model(x)
        engines, results = {}, {}
        engines["ort_f32"] = timed(lambda run=session(file, options.threads): run.run(None, {"x": x.numpy()}))
        quant_pre_process(str(file), str(folder / "ready.onnx"), skip_symbolic_shape=name == "bert")
        # ONNX Runtime refuses the QOperator file that its quantizer writes of BERT.
        for form in (QuantFormat.QDQ, QuantFormat.QOperator)[: 1 if name == "bert" else 2]:
            made = folder / f"{form}.onnx"
            quantize_static(
                str(folder / "ready.onnx"), str(made), Reader(inputs), quant_format=form, per_channel=True,
                activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8,
            )
            run = session(made, options.threads)
            results[f"ort_{form}"] = torch.from_numpy(run.run(None, {"x": x.numpy()})[0])
            engines[f"ort_{form}"] = timed(lambda run=run: run.run(None, {"x": x.numpy()}))
            if form == QuantFormat.QDQ:
                try:
                    engines["openvino"] = timed(openvino_of(made, x.numpy(), options.threads))
                except ImportError:
                    print("openvino is left out: it is not installed", file=sys.stderr)
        theirs = folder / f"{QuantFormat.QDQ}.onnx"
        if name == "bert":
            theirs = folder / "dynamic.onnx"
            quantize_dynamic(str(folder / "ready.onnx"), str(theirs), weight_type=QuantType.QInt8)
            run = session(theirs, options.threads)
            results["ort_dynamic"] = torch.from_numpy(run.run(None, {"x": x.numpy()})[0])
            engines["ort_dynamic"] = timed(lambda run=run: run.run(None, {"x": x.numpy()}))
        fx.ask(f"onnx {folder / 'fx.onnx'}")
        run = session(folder / "fx.onnx", options.threads)
        results["ort_of_fx"] = torch.from_numpy(run.run(None, {run.get_inputs()[0].name: x.numpy()})[0])
        engines["ort_of_fx"] = timed(lambda run=run, key=run.get_inputs()[0].name: run.run(None, {key: x.numpy()}))
        fx.ask(f"result reference {folder / 'y.safetensors'}")
        reference = load_file(str(folder / "y.safetensors"))["y"]
        apart = (results["ort_of_fx"] - reference).abs()
        same = (apart <= 1e-6 * reference.abs().max()).double().mean().item()
        print(f"{name}: ONNX Runtime on fx's file: {same:.4f} of the results equal to the reference form", flush=True)
        fx.ask(f"read {theirs}")
        if name == "bert":
            fx.ask("dynamic")
        for engine in ("int8", "file", "f32", *(["dynamic"] if name == "bert" else [])):
            engines[f"fx_{engine}"] = lambda count, engine=engine: float(fx.ask(f"run {engine} {count}"))
            fx.ask(f"result {engine} {folder / 'y.safetensors'}")
            results[f"fx_{engine}"] = load_file(str(folder / "y.safetensors"))["y"]
        print(f"{name}: {fx.ask('left')}", file=sys.stderr)
        if options.profile:
            for engine in [engine for engine in engines if engine.startswith("fx_")]:
                fx.ask(f"profile {engine[3:]} {options.profile / name}.{engine[3:]}.txt")
        least = in_turns(engines, options.turns, 5)
        return least, {engine: sqnr(expected, found) for engine, found in results.items()}


def main():
    options = options_of(__doc__, BARS)
    torch.set_num_threads(options.threads)
    flags = Path("/proc/cpuinfo")
    has_vnni = flags.exists() and "avx512_vnni" in flags.read_text()
    fx = Fx(build("int8", "fx-quant"), options.threads)
    print(f"onnxruntime {onnxruntime.__version__}, {options.threads} threads, vnni {has_vnni}")
    missed = []
    for name in options.models:
        least, signal = compare(name, fx, options)
        theirs = min((least[form], form) for form in least if form.startswith(("ort_Q", "ort_d")))
        ours = min((least[form], form) for form in ("fx_int8", "fx_file", "fx_dynamic") if form in least)
        ratio = ours[0] / theirs[0]
        dynamic = f" fx_dynamic_ms {least['fx_dynamic']:.2f} ({signal['fx_dynamic']:.2f} dB)" if "fx_dynamic" in least else ""
        print(
            f"{name}: fx_ms {least['fx_int8']:.2f}{dynamic} fx_of_ort_ms {least['fx_file']:.2f} ort_ms {theirs[0]:.2f} ratio {ratio:.2f} (bar {BARS[name]:.2f})  "
            f"ort_of_fx_ms {least['ort_of_fx']:.2f} openvino_ms {least.get('openvino', math.nan):.2f}  f32: fx {least['fx_f32']:.2f} ort {least['ort_f32']:.2f}  "
            f"sqnr_db fx {signal['fx_int8']:.2f} fx_of_ort {signal['fx_file']:.2f} ort {signal[theirs[1]]:.2f} ort_of_fx {signal['ort_of_fx']:.2f}",
            flush=True,
        )
        if signal[ours[1]] < signal[theirs[1]] - 0.5:
            missed.append(f"{name} is void: its signal is {signal[ours[1]]:.2f} dB beside {signal[theirs[1]]:.2f}")
        elif ratio > BARS[name]:
            missed.append(f"{name} {ratio:.2f} > {BARS[name]:.2f}")
    if not has_vnni:
        print("not judged")
        return
    print("missed: " + "; ".join(missed) if missed else "all bars held")
    sys.exit(bool(missed))


main()
