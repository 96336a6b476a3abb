"""The models that `bf16.py` and fx-quant's `int8.py` write as ONNX, and the other engines that run the files."""

import math

import onnxruntime
import torch
import torchvision
from torch import nn


class Recommender(nn.Module):
    """Netflix's autoencoder: 17768-512-512-1024-512-512-17768."""

    def __init__(self):
        super().__init__()
        sizes = [17768, 512, 512, 1024, 512, 512, 17768]
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in zip(sizes, sizes[1:]))

    def forward(self, x):
        for layer in self.layers[:-1]:
            x = layer(x).relu()
        return self.layers[-1](x)


class Bert(nn.Module):
    """BERT-base on the embeddings of words."""

    def __init__(self):
        super().__init__()
        from transformers import BertConfig, BertModel

        self.bert = BertModel(BertConfig(attn_implementation="eager"))

    def forward(self, x):
        return self.bert(inputs_embeds=x).last_hidden_state


def with_statistics(model, image):
    """The network in evaluation, its batch norms with drawn weights and the statistics of data of a shape."""
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            nn.init.uniform_(module.weight, 0.5, 1.5)
            nn.init.uniform_(module.bias, -0.3, 0.3)
    model.train()
    with torch.no_grad():
        for _ in range(8):
            model(torch.randn(8, *image))
    return model.eval()


def model_of(name):
    """A model, and the shape of its input."""
    torch.manual_seed(0)
    if name == "bert":
        return Bert().eval(), [1, 128, 768]
    if name == "deeprecommender_b16":
        return Recommender().eval(), [16, 17768]
    model = getattr(torchvision.models, name)(weights=None)
    return with_statistics(model, [3, 96, 96]), [1, 3, 224, 224]


def write_onnx(model, x, file):
    torch.onnx.export(model, (x,), str(file), opset_version=17, input_names=["x"], dynamo=False)


def session(file, threads):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    return onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])


def openvino_of(file, x, threads, **hints):
    """What runs a file by OpenVINO, which decides on `bf16` by itself."""
    import openvino

    hints = {"INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY", **hints}
    request = openvino.Core().compile_model(str(file), "CPU", hints).create_infer_request()
    return lambda: request.infer({0: x})


def sqnr(expected, found):
    """The signal over the noise in decibels."""
    noise = (expected - found).double().square().sum()
    return math.inf if noise == 0 else 10 * math.log10(expected.double().square().sum() / noise)
