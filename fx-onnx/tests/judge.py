"""What others make of our files, and we of theirs.

    python fx-onnx/tests/judge.py                                 # all that follows, in a folder that is removed again

    cargo run --release -p fx-onnx --example onnx_out -- DIR     # writes our files (8 GB)
    python fx-onnx/tests/judge.py out DIR                         # onnx.checker and onnxruntime on them
    python fx-onnx/tests/judge.py nodes DIR                       # node counts beside those of torch's exporter
    python fx-onnx/tests/judge.py in DIR                          # torch's exports, read by `examples/onnx_in`
    python fx-onnx/tests/judge.py rust DIR                        # torch's exports as Rust, by `examples/onnx_to_rust`
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime

HERE = pathlib.Path(__file__).parent
onnxruntime.set_default_logger_severity(3)


def session(path, optimised=True):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 2
    if not optimised:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def difference(found, expected):
    """The largest difference, relative to the largest element of its tensor."""
    most = 0.0
    for a, b in zip(found, expected, strict=True):
        a, b = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
        if a.shape != b.shape:
            return float("inf")
        scale = max(np.abs(b[np.isfinite(b)]).max(initial=0.0), 1e-6)
        most = max(most, float(np.abs(a - b).max(initial=0.0)) / scale)
    return most


def arrays(folder, name, batch, kind):
    out = []
    while (path := folder / f"{name}.{batch}.{kind}{len(out)}.npy").exists():
        out.append(np.load(path))
    return out


def judge_out(folder):
    files = sorted(folder.glob("*.onnx"))
    checked = run = 0
    most = 0.0
    for path in files:
        name = path.name.split(".")[0]
        onnx.checker.check_model(str(path), full_check=True)
        checked += 1
        if name == "unknown":  # it has an operator that no engine knows
            node = next(node for node in onnx.load(path).graph.node if node.domain == "my.ops")
            assert node.op_type == "Fancy" and node.attribute[0].i == 7, node
            print("unknown: an operator of my.ops is as it was, and a node before it is another")
            continue
        model = session(path)
        # A fused file is of the first batch alone.
        batches = sorted({int(p.name.split(".")[1]) for p in folder.glob(f"{name}.*.in0.npy")})
        batches = batches[:1] if ".fused." in path.name else batches
        worst = 0.0
        for batch in batches:
            inputs = dict(zip([i.name for i in model.get_inputs()], arrays(folder, name, batch, "in")))
            worst = max(worst, difference(model.run(None, inputs), arrays(folder, name, batch, "out")))
        run += 1
        if name == "greedy":
            print(f"greedy: tokens {'equal' if worst == 0 else 'differ'}")
        most = max(most, worst)
        if worst > 1e-5:
            print(f"{path.name}: {worst:.1e}")
    print(f"out: checked {checked} run {run} of {len(files) - 1} max_rel_err_ort {most:.1e}")
    return not (run == len(files) - 1 and most <= 1e-5)


def counts(folder):
    """Our node counts beside those of torch's exporter, for torchvision's models."""
    import torch
    import torchvision

    models = {
        "alexnet": (torchvision.models.alexnet(num_classes=10), 224),
        "mobilenet_v2": (torchvision.models.mobilenet_v2(num_classes=10), 64),
        "resnet18": (torchvision.models.resnet18(num_classes=10), 64),
        "resnet50": (torchvision.models.resnet50(num_classes=10), 64),
        "vgg11_bn": (torchvision.models.vgg11_bn(num_classes=10), 224),
        "vit_b_16": (torchvision.models.VisionTransformer(64, 16, 12, 12, 768, 3072, num_classes=10), 64),
    }
    larger = 0
    for name, (model, size) in models.items():
        ours = folder / f"{name}.fused.onnx"
        theirs = folder / f"{name}.torch"
        export(model.eval(), (torch.randn(2, 3, size, size),), theirs, dynamo=True)
        ours, theirs = (len(onnx.load(p, load_external_data=False).graph.node) for p in (ours, theirs))
        print(f"{name}: {ours} nodes, torch {theirs}")
        larger += ours > theirs
    print(f"nodes: models {len(models)} larger {larger}")
    return larger > 0


def export(model, args, path, dynamo, **kwargs):
    import contextlib
    import io
    import warnings

    import torch

    warnings.simplefilter("ignore")
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        torch.onnx.export(model, args, str(path), dynamo=dynamo, external_data=False, **kwargs)


def images():
    """Models of torchvision for an image."""
    import torchvision.models as tv

    yield "resnet50", tv.resnet50(num_classes=10)
    yield "mobilenet_v3", tv.mobilenet_v3_small(num_classes=10)
    yield "efficientnet", tv.efficientnet_b0(num_classes=10)
    yield "convnext", tv.convnext_tiny(num_classes=10)
    yield "swin_t", tv.swin_t(num_classes=10)
    yield "densenet", tv.densenet121(num_classes=10)
    yield "vit_b_16", tv.VisionTransformer(64, 16, 4, 4, 64, 128, num_classes=10)
    yield "squeezenet", tv.squeezenet1_1(num_classes=10)


def settled(model, batch):
    """The model with statistics of data, and without layers of zeros: its result depends on every weight."""
    import torch

    norms = [layer for layer in model.modules() if isinstance(layer, torch.nn.BatchNorm2d)]
    for norm in norms:
        norm.momentum = 1.0
    with torch.no_grad():
        for weight in model.parameters():
            if not weight.any():
                weight.normal_(0.0, 0.5)
        if norms:
            model.train()(batch)
    return model


def real_models():
    """Models of torchvision and transformers, small where a configuration makes them, with a call of each."""
    import torch
    import transformers as hf

    torch.manual_seed(0)
    image = (torch.randn(1, 3, 64, 64),)
    for name, model in images():
        yield name, settled(model, torch.randn(4, 3, 64, 64)), image
    ids = torch.randint(0, 90, (1, 8))

    class Wrapped(torch.nn.Module):
        """A model that gives its tensors alone."""

        def __init__(self, model, names):
            super().__init__()
            self.model, self.names = model, names

        def forward(self, *args):
            out = self.model(**dict(zip(self.names, args)), return_dict=True)
            first = out.get("logits", None)
            return first if first is not None else out["last_hidden_state"]

    small = dict(vocab_size=97, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, max_position_embeddings=32)
    eager = dict(attn_implementation="eager")
    yield "bert", Wrapped(hf.BertModel(hf.BertConfig(**small, **eager)), ["input_ids"]), (ids,)
    gpt2 = hf.GPT2Config(vocab_size=97, n_positions=32, n_embd=32, n_layer=2, n_head=4, use_cache=False, **eager)
    yield "gpt2", Wrapped(hf.GPT2LMHeadModel(gpt2), ["input_ids"]), (ids,)
    llama = hf.LlamaConfig(**small, num_key_value_heads=2, use_cache=False, **eager)
    yield "llama", Wrapped(hf.LlamaForCausalLM(llama), ["input_ids"]), (ids,)
    whisper = hf.WhisperConfig(
        vocab_size=97, num_mel_bins=8, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
        decoder_attention_heads=4, encoder_ffn_dim=64, decoder_ffn_dim=64, max_source_positions=16, max_target_positions=16,
        use_cache=False, pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1, **eager,
    )
    yield "whisper", Wrapped(hf.WhisperForConditionalGeneration(whisper), ["input_features", "decoder_input_ids"]), (torch.randn(1, 8, 32), ids)
    t5 = hf.T5Config(vocab_size=97, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, use_cache=False, decoder_start_token_id=0, **eager)
    yield "t5", Wrapped(hf.T5ForConditionalGeneration(t5), ["input_ids", "decoder_input_ids"]), (ids, ids)


def judge_in(folder):
    folder.mkdir(parents=True, exist_ok=True)
    import torch

    for name, model, args in real_models():
        model.eval()
        for dynamo in (True, False):
            path = folder / f"{name}.{'dynamo' if dynamo else 'script'}.onnx"
            own = folder / path.stem
            if path.exists():
                continue
            try:
                with torch.no_grad():
                    export(model, args, path, dynamo)
                model_session = session(path)
                given = dict(zip([i.name for i in model_session.get_inputs()], [a.numpy() for a in args]))
                results = model_session.run(None, given)
            except Exception as error:  # what torch cannot export is listed
                why = str(error).splitlines()[0] if str(error) else type(error).__name__
                print(f"{path.stem}: torch cannot export it: {why[:120]}")
                path.unlink(missing_ok=True)
                continue
            # A result of nothing but zeros would compare nothing.
            assert all(np.abs(result).max() > 1e-3 for result in results), path.stem
            own.mkdir(exist_ok=True)
            for kind, values in (("in", given.values()), ("out", results)):
                for at, value in enumerate(values):
                    tensor = onnx.numpy_helper.from_array(np.asarray(value))
                    (own / f"{kind}_{at}.pb").write_bytes(tensor.SerializeToString())
    built = os.environ.get("FX_ONNX_IN")
    cargo = ["cargo", "run", "--release", "-q", "-p", "fx-onnx", "--example", "onnx_in", "--"]
    return subprocess.run([*([built] if built else cargo), str(folder)], cwd=HERE.parent.parent).returncode


def rust(folder):
    """torch's ResNet-18 and a small BERT, written as Rust by `examples/onnx_to_rust`."""
    import torch
    import torchvision
    import transformers as hf

    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    image = torch.randn(1, 3, 64, 64)
    resnet = settled(torchvision.models.resnet18(num_classes=10), torch.randn(4, 3, 64, 64))
    config = hf.BertConfig(
        vocab_size=97, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
        max_position_embeddings=32, attn_implementation="eager",
    )
    bert = settled(hf.BertForSequenceClassification(config), None)
    bert.config.return_dict = False
    paths = []
    for name, model, args in (("resnet18", resnet, (image,)), ("bert", bert, (torch.randint(0, 90, (2, 8)),))):
        paths.append(folder / f"{name}.onnx")
        with torch.no_grad():
            export(model.eval(), args, paths[-1], dynamo=True)
    command = ["cargo", "run", "--release", "-q", "-p", "fx-onnx", "--example", "onnx_to_rust", "--"]
    return subprocess.run([*command, *map(str, paths)], cwd=HERE.parent.parent).returncode


def all_of_them():
    """Our files are written and judged, then theirs; whether one of them fails."""
    failed = False
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        ours, theirs, sources = folder / "ours", folder / "theirs", folder / "rust"
        command = ["cargo", "run", "--release", "-q", "-p", "fx-onnx", "--example", "onnx_out", "--", str(ours)]
        failed |= subprocess.run(command, cwd=HERE.parent.parent).returncode != 0
        failed |= bool(judge_out(ours)) | bool(counts(ours))
        shutil.rmtree(ours)
        failed |= judge_in(theirs) != 0
        shutil.rmtree(theirs)
        failed |= rust(sources) != 0
    return failed


def main():
    if len(sys.argv) == 1:
        return all_of_them()
    what, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    return {"out": judge_out, "nodes": counts, "in": judge_in, "rust": rust}[what](folder)


if __name__ == "__main__":
    sys.exit(main())
