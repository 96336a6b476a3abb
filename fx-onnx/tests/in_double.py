"""An ONNX file in `float64`, computed by onnx's own evaluator: what judges engines that compute in `float32`."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

NARROW, WIDE = TensorProto.FLOAT, TensorProto.DOUBLE


def _widen_tensor(tensor):
    if tensor.data_type == NARROW:
        tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float64), tensor.name))


def _widen_node(node):
    for at, attribute in enumerate(node.attribute):
        if attribute.type == onnx.AttributeProto.TENSOR:
            _widen_tensor(attribute.t)
        elif attribute.type == onnx.AttributeProto.GRAPH:
            _widen_graph(attribute.g)
        elif attribute.name in ("to", "dtype", "output_datatype") and attribute.i == NARROW:
            attribute.i = WIDE
        elif node.op_type == "Constant" and attribute.name in ("value_float", "value_floats"):
            numbers = attribute.f if attribute.name == "value_float" else list(attribute.floats)
            tensor = numpy_helper.from_array(np.array(numbers, np.float64))
            node.attribute[at].CopyFrom(helper.make_attribute("value", tensor))


def _widen_graph(graph):
    for tensor in graph.initializer:
        _widen_tensor(tensor)
    for value in [*graph.input, *graph.output, *graph.value_info]:
        if value.type.tensor_type.elem_type == NARROW:
            value.type.tensor_type.elem_type = WIDE
    for node in graph.node:
        _widen_node(node)


class InDouble:
    """A file whose floats are of 64 bits."""

    def __init__(self, path):
        model = onnx.load(path)
        _widen_graph(model.graph)
        for function in model.functions:
            for node in function.node:
                _widen_node(node)
        self.of = ReferenceEvaluator(model)

    def run(self, data):
        wide = {name: x.astype(np.float64) if x.dtype == np.float32 else x for name, x in data.items()}
        with np.errstate(all="ignore"):
            return [np.asarray(y) for y in self.of.run(None, wide)]
