"""What `int8.py` and `tests/onnx_files.py` give ONNX Runtime's quantizer: networks whose activations keep their size, and the
inputs to calibrate with.
"""

import torch
from onnxruntime.quantization import CalibrationDataReader
from torch import nn


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


class Reader(CalibrationDataReader):
    """The inputs one by one, as `x`."""

    def __init__(self, inputs):
        self.left = [{"x": x.numpy()} for x in inputs]

    def get_next(self):
        return self.left.pop() if self.left else None
