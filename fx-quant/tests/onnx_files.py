"""Files that ONNX Runtime's quantizer makes, read by fx and run in integers.

    pip install torch torchvision onnx onnxscript onnxruntime safetensors
    python fx-quant/tests/onnx_files.py DIR        # networks of real sizes
    python fx-quant/tests/onnx_files.py --record   # small ones, which the test `onnx` reads: tests/onnx

For each network it makes seven files: QDQ with the defaults, per channel, with `uint8` weights, with `int8` activations and
with `uint16` ones; QOperator; dynamic; and `MatMulNBits` for some. ONNX Runtime runs each, with its optimiser and without.
With a folder, `cargo run --release -p fx-quant --example onnx_files -- DIR` runs all then: in reference form, in integers,
and as `fx_onnx::load` reads them. It prints a line for each file, and the sums. A file that is there is not made again.
"""

import subprocess
import sys
import warnings
from pathlib import Path

warnings.filterwarnings("ignore")
for package in ("fx-quant", "fx-onnx"):
    sys.path.append(str(Path(__file__).resolve().parents[2] / package / "benches"))
MISSING = "onnx_files.py needs torch, torchvision, onnx, onnxruntime and safetensors: pip install {}"
try:
    import onnx
    import onnxruntime
    import torch
    import torchvision
    from onnxruntime.quantization import QuantFormat, QuantType, quantize_dynamic, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process
    from safetensors.torch import save_file
    from torch import nn
except ImportError as error:
    sys.exit(MISSING.format(error.name))

from onnx_models import with_statistics  # noqa: E402
from onnx_quantizer import Reader  # noqa: E402


class Rows(nn.Module):
    """Convolutions of rows, as speech has them."""

    def __init__(self, width=32):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv1d(16, width, 5, padding=2), nn.ReLU(),
            nn.Conv1d(width, width, 3, stride=2, padding=1, groups=2), nn.SiLU(),
            nn.Conv1d(width, 2 * width, 3, padding=2, dilation=2), nn.LeakyReLU(0.1),
        )
        self.head = nn.Linear(2 * width, 10)

    def forward(self, x):
        return self.head(self.layers(x).mean(-1))


class Encoder(nn.Module):
    """Layers of a transformer, with products of activations, softmax and norms."""

    def __init__(self, width=64, layers=2):
        super().__init__()
        layer = nn.TransformerEncoderLayer(width, 4, 2 * width, batch_first=True, activation="gelu", dropout=0.0)
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = nn.Linear(width, 8)

    def forward(self, x):
        return self.head(self.encoder(x))


class Images(nn.Module):
    """What networks of images have: channels alone, a weight for each of them, several behind each other, pools."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 16, 3, stride=2, padding=1)
        self.alone = nn.Conv2d(16, 16, 3, padding=1, groups=16)
        self.norm = nn.BatchNorm2d(16)
        self.squeeze, self.excite = nn.Conv2d(16, 8, 1), nn.Conv2d(8, 16, 1)
        self.a, self.b = nn.Conv2d(16, 8, 1), nn.Conv2d(16, 8, 3, padding=1)
        self.head = nn.Linear(16, 10)

    def forward(self, x):
        f = nn.functional
        x = f.hardswish(self.stem(x))
        y = f.relu(self.norm(self.alone(x)))
        weight = f.hardsigmoid(self.excite(f.relu(self.squeeze(y.mean((2, 3), keepdim=True)))))
        x = f.max_pool2d(x + y * weight, 3, 2, ceil_mode=True)
        x = torch.cat([f.relu(self.a(x)), f.relu6(self.b(x))], 1)
        x = f.avg_pool2d(x, 3, 1, padding=1)
        return self.head(f.adaptive_avg_pool2d(x, 1).flatten(1))


def networks():
    models = torchvision.models
    return {
        "resnet18": (lambda: models.resnet18(weights=None), [2, 3, 96, 96]),
        "mobilenet_v3": (lambda: models.mobilenet_v3_small(weights=None), [2, 3, 96, 96]),
        "squeezenet": (lambda: models.squeezenet1_1(weights=None), [2, 3, 96, 96]),
        "rows": (Rows, [2, 16, 50]),
        "encoder": (Encoder, [2, 24, 64]),
    }


def small():
    return {
        "images": (Images, [2, 3, 30, 34]),
        "rows": (lambda: Rows(8), [2, 16, 21]),
        "encoder": (lambda: Encoder(16, 1), [2, 7, 16]),
    }


U8, I8, U16 = QuantType.QUInt8, QuantType.QInt8, QuantType.QUInt16
STATIC = {
    "qdq": dict(quant_format=QuantFormat.QDQ),
    "qdq_channels": dict(quant_format=QuantFormat.QDQ, per_channel=True, activation_type=U8),
    "qdq_unsigned": dict(quant_format=QuantFormat.QDQ, activation_type=U8, weight_type=U8),
    "qdq_signed": dict(quant_format=QuantFormat.QDQ, activation_type=I8, weight_type=I8),
    "qdq_wide": dict(quant_format=QuantFormat.QDQ, activation_type=U16),
    "qoperator": dict(quant_format=QuantFormat.QOperator, per_channel=True, activation_type=U8),
}


def make_files(folder, name, network, kinds, blocks):
    make, shape = network
    torch.manual_seed(0)
    model = with_statistics(make(), shape[1:])
    x, batches = torch.randn(shape), [torch.randn(shape) for _ in range(4)]
    floats = folder / f"{name}.onnx"
    torch.onnx.export(model, (x,), floats, input_names=["x"], output_names=["y"], dynamo=False, opset_version=17)
    ready = folder / f"{name}.ready.onnx"
    quant_pre_process(str(floats), str(ready), skip_symbolic_shape=True)
    with torch.no_grad():
        expected = model(x)
    for kind, options in STATIC.items():
        if kind not in kinds:
            continue
        to = folder / f"{name}.{kind}.quantized"
        quantize_static(str(ready), str(to), Reader(batches), **{"activation_type": U8, "weight_type": I8, **options})
    quantize_dynamic(str(ready), str(folder / f"{name}.dynamic.quantized"), weight_type=I8)
    if blocks:
        from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer

        made = MatMulNBitsQuantizer(onnx.load(ready), 4, 32, True)
        made.process()
        onnx.save(made.model.model, folder / f"{name}.blocks.quantized")
    floats.unlink()
    ready.unlink()
    for file in sorted(folder.glob(f"{name}.*.quantized")):
        values = {"x": x, "floats": expected}
        for level, key in ((onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL, "y"), (onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL, "plain")):
            options = onnxruntime.SessionOptions()
            options.graph_optimization_level = level
            session = onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
            values[key] = torch.from_numpy(session.run(None, {"x": x.numpy()})[0])
        save_file({key: value.contiguous() for key, value in values.items()}, file.with_suffix(".safetensors"))


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    if sys.argv[1] == "--record":
        folder = Path(__file__).resolve().parent / "onnx"
        folder.mkdir(exist_ok=True)
        for name, network in small().items():
            make_files(folder, name, network, ["qdq_channels", "qdq_unsigned", "qdq_signed", "qdq_wide", "qoperator"], False)
        return
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, network in networks().items():
        if not any(folder.glob(f"{name}.*.safetensors")):
            make_files(folder, name, network, STATIC, name in ("encoder", "rows"))
    command = ["cargo", "run", "--release", "-q", "-p", "fx-quant", "--example", "onnx_files", "--", str(folder)]
    sys.exit(subprocess.run(command).returncode)


main()
