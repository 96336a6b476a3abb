"""Compares fx with PyTorch and ONNX Runtime on the CPU, in turns.

    pip install torch torchvision onnx onnxruntime safetensors
    python fx-nn/benches/engines.py

It builds the fx program (`cargo build --release`), writes the models and their ONNX files into a temporary folder, and
prints a line per model: the least time of each engine in ms, each over PyTorch eager, and the largest difference of
fx's result from PyTorch's over the largest element of it. The last line is `all bars held`, or the bars that were
missed; then the exit code is 1. Names of models as arguments choose them; `--turns N` (5), `--threads N` (2),
`--profile FOLDER` writes a table of each model's compiled steps. `--int8` compares quantized models, by
`fx-quant/benches/int8.py`, and `--bf16` models in `bf16`, by `fx-onnx/benches/bf16.py`, with the other arguments.
"""

import os
import sys
import tempfile
import warnings
from pathlib import Path

warnings.filterwarnings("ignore")

for option, package in (("--int8", "fx-quant"), ("--bf16", "fx-onnx")):
    if option in sys.argv:
        script = Path(__file__).resolve().parents[2] / package / "benches" / f"{option[2:]}.py"
        others = [argument for argument in sys.argv[1:] if argument != option]
        os.execv(sys.executable, [sys.executable, str(script), *others])

MISSING = "engines.py needs torch, torchvision, onnx, onnxruntime and safetensors: pip install {}"
try:
    import onnxruntime
    import torch
    import torch.nn.functional as F
    import torchvision
    from safetensors.torch import load_file, save_file
    from torch import nn
except ImportError as error:
    sys.exit(MISSING.format(error.name))

import fx_program
from fx_program import Fx, build, in_turns, options_of

# What fx compiled may take, over PyTorch eager, on a CPU with AVX-512; and what it aims at beyond.
BARS = {
    "resnet18": 0.65,
    "resnet50": 0.72,
    "mobilenet_v2": 0.55,
    "vit_b_16": 1.1,
    "gpt2": 1.15,
    "gpt2_token": 1.05,
    "convnext_tiny": 1.15,
    "chain": 0.30,
}
ERROR = 1e-4
ENGINES = ["torch", "torch_opt", "ort", "fx_eager", "fx", "fx_direct"]
TITLES = {
    "torch": "torch eager",
    "torch_opt": "torch optimized",
    "ort": "ONNX Runtime",
    "fx_eager": "fx eager",
    "fx": "fx compiled",
    "fx_direct": "no Winograd",
}


class Chain(nn.Module):
    def forward(self, x):
        x = torch.relu(x * 1.5 + 0.5)
        y = x * x - 0.25
        y = torch.clamp(y, -1.0, 3.0)
        return torch.abs(y - x) * 0.5 + x


class Conv1D(nn.Module):
    """GPT-2's linear layer, whose weight is [inputs, outputs]."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(inputs, outputs) * 0.02)
        self.bias = nn.Parameter(torch.zeros(outputs))

    def forward(self, x):
        size = x.size()[:-1] + (self.weight.size(-1),)
        return torch.addmm(self.bias, x.reshape(-1, x.size(-1)), self.weight).reshape(size)


class Block(nn.Module):
    def __init__(self, causal, width=768, heads=12):
        super().__init__()
        self.causal = causal
        self.heads = heads
        self.ln_1 = nn.LayerNorm(width)
        self.attn = nn.ModuleDict({"c_attn": Conv1D(width, 3 * width), "c_proj": Conv1D(width, width)})
        self.ln_2 = nn.LayerNorm(width)
        self.mlp = nn.ModuleDict({"c_fc": Conv1D(width, 4 * width), "c_proj": Conv1D(4 * width, width)})

    def forward(self, x, k, v):
        n, t, c = x.shape
        qkv = self.attn["c_attn"](self.ln_1(x)).split(c, 2)
        q, new_k, new_v = (z.reshape(n, t, self.heads, c // self.heads).transpose(1, 2) for z in qkv)
        k, v = torch.cat([k, new_k], 2), torch.cat([v, new_v], 2)
        # A prompt is causal; a single token sees all that is before it.
        y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        x = x + self.attn["c_proj"](y.transpose(1, 2).reshape(n, t, c))
        y = self.mlp["c_proj"](F.gelu(self.mlp["c_fc"](self.ln_2(x)), approximate="tanh"))
        return x + y, k, v


class GPT2(nn.Module):
    """GPT-2 of 124M parameters, with a cache."""

    def __init__(self, cached):
        super().__init__()
        self.transformer = nn.ModuleDict(
            {
                "wte": nn.Embedding(50257, 768),
                "wpe": nn.Embedding(1024, 768),
                "h": nn.ModuleList([Block(cached == 0) for _ in range(12)]),
                "ln_f": nn.LayerNorm(768),
            }
        )
        nn.init.normal_(self.transformer["wte"].weight, std=0.02)
        nn.init.normal_(self.transformer["wpe"].weight, std=0.02)
        self.cached = cached

    def forward(self, x, *caches):
        places = torch.arange(self.cached, self.cached + x.size(1))
        h = self.transformer["wte"](x) + self.transformer["wpe"](places)
        out = []
        for i, block in enumerate(self.transformer["h"]):
            h, k, v = block(h, caches[2 * i], caches[2 * i + 1])
            out += [k, v]
        h = self.transformer["ln_f"](h)
        return (h @ self.transformer["wte"].weight.t(), *out)


def model_of(name):
    torch.manual_seed(0)
    if name == "chain":
        return Chain(), {"x": torch.randn(4096, 1024)}
    if name in ("gpt2", "gpt2_token"):
        cached, length = (128, 1) if name == "gpt2_token" else (0, 128)
        inputs = {"x": torch.randint(0, 50257, (1, length))}
        for i in range(12):
            inputs[f"k{i}"] = torch.randn(1, 12, cached, 64)
            inputs[f"v{i}"] = torch.randn(1, 12, cached, 64)
        return GPT2(cached), inputs
    model = getattr(torchvision.models, name)()
    # Statistics as of a trained network: the scale of activations stays.
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.running_mean.normal_(0, 0.1)
            module.running_var.uniform_(0.5, 1.5)
            nn.init.uniform_(module.weight, 0.5, 1.5)
            nn.init.normal_(module.bias, 0, 0.1)
    if name == "vit_b_16":
        # Its head starts as zeros.
        nn.init.normal_(model.heads.head.weight, std=0.02)
    if name == "convnext_tiny":
        for module in model.modules():
            if hasattr(module, "layer_scale"):
                nn.init.uniform_(module.layer_scale, 0.1, 0.5)
    return model, {"x": torch.randn(1, 3, 224, 224)}


def timed(run):
    return fx_program.timed(torch.inference_mode()(run))


def optimized(model, args):
    with torch.no_grad():
        traced = torch.jit.optimize_for_inference(torch.jit.freeze(torch.jit.trace(model, args)))
        for _ in range(3):
            traced(*args)
    return timed(lambda: traced(*args))


def ort(model, inputs, folder, threads):
    file = folder / "model.onnx"
    args = tuple(inputs.values())
    torch.onnx.export(model, args, str(file), opset_version=17, input_names=list(inputs), dynamo=False)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
    names = {each.name for each in session.get_inputs()}
    arrays = {name: tensor.numpy() for name, tensor in inputs.items() if name in names}
    return timed(lambda: session.run(None, arrays))


def compare(name, fx, turns, threads, profile):
    model, inputs = model_of(name)
    model.eval()
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder) / name
        folder.mkdir()
        state = {key: value.contiguous() for key, value in model.state_dict().items()}
        save_file(state, str(folder / "model.safetensors"))
        save_file(inputs, str(folder / "inputs.safetensors"))
        fx.ask(f"load {folder}")
        args = tuple(inputs.values())
        engines = {"torch": timed(lambda: model(*args))}
        for engine, make in (
            ("torch_opt", lambda: optimized(model, args)),
            ("ort", lambda: ort(model, inputs, folder, threads)),
        ):
            try:
                engines[engine] = make()
            except Exception as error:
                print(f"{name}: {engine} is left out: {str(error).splitlines()[0]}", file=sys.stderr)
        for engine, word in (("fx_eager", "eager"), ("fx", "compiled"), ("fx_direct", "direct")):
            engines[engine] = lambda count, word=word: float(fx.ask(f"run {word} {count}"))
        with torch.inference_mode():
            expected = model(*args)
        expected = expected[0] if isinstance(expected, tuple) else expected
        worst = 0.0
        for word in ("compiled", "direct"):
            fx.ask(f"result {word} {folder / 'y.safetensors'}")
            found = load_file(str(folder / "y.safetensors"))["y"]
            worst = max(worst, ((found - expected).abs().max() / expected.abs().max()).item())
        if profile:
            fx.ask(f"profile {profile / name}.txt")
        least = in_turns(engines, turns, 3)
    return least, worst


def main():
    options = options_of(__doc__, BARS)
    torch.set_num_threads(options.threads)
    fx = Fx(build("engines"), options.threads)
    print(f"torch {torch.__version__}, onnxruntime {onnxruntime.__version__}, {options.threads} threads")
    print("ms, and over torch eager".ljust(15) + "".join(TITLES[engine].rjust(17) for engine in ENGINES) + "  max_rel_err")
    missed = []
    for name in options.models:
        least, worst = compare(name, fx, options.turns, options.threads, options.profile)
        line = name.ljust(15)
        for engine in ENGINES:
            ms = least.get(engine)
            line += f"{ms:9.2f} ({ms / least['torch']:5.2f})".rjust(17) if ms else "-".rjust(17)
        print(f"{line}  {worst:.1e}", flush=True)
        ratio = least["fx"] / least["torch"]
        if ratio > BARS[name]:
            missed.append(f"{name} {ratio:.2f} > {BARS[name]:.2f}")
        if not worst <= ERROR:
            missed.append(f"{name} max_rel_err {worst:.1e} > {ERROR:.0e}")
    print("bar missed: " + "; ".join(missed) if missed else "all bars held")
    sys.exit(bool(missed))


main()
