"""onnx's own backend node tests, all of them, through the Rust example `node_runner`.

    python fx-onnx/tests/node_tests.py            # runs them, compares with node.toml
    python fx-onnx/tests/node_tests.py --record   # writes node.toml and the sample of the tests (tests/node/sample.bin)

The last line counts: node tests: kept K passed N refused R types T wrong W panics P. T are those among R whose elements are of a
type that fx holds no tensors of.
"""

import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnx.reference
from onnx import numpy_helper
from onnx.backend.test.loader import load_model_tests

HERE = pathlib.Path(__file__).parent
LEDGER = HERE / "node.toml"
SAMPLE = HERE / "node" / "sample.bin"
LARGEST_SAMPLE = 6_000_000

# Their numbers follow the size that a scale asks for, before it is rounded; the operator's text and ONNX Runtime, which
# leaves these tests out as well, follow the length of the result.
OTHER_NUMBERS = {
    "test_resize_downsample_scales_cubic_align_corners",
    "test_resize_downsample_scales_linear_align_corners",
}

# Sums in single precision that cancel to less than they are rounded by: the same sums in double are expected, as the test
# allows.
IN_DOUBLE = {"test_dft_inverse", "test_dft_inverse_opset19"}


def in_double(model, inputs, outputs):
    """What onnx's own evaluator gives in double, in the types of the test."""
    wide = lambda x: x.astype(np.float64) if x.dtype == np.float32 else x
    given = {of.name: wide(np.asarray(x)) for of, x in zip(model.graph.input, inputs, strict=True)}
    exact = onnx.reference.ReferenceEvaluator(model).run(None, given)
    return [x.astype(np.asarray(y).dtype) for x, y in zip(exact, outputs, strict=True)]


def piece(value):
    """A value as bytes: a tensor as its message, nothing for one that is missing; of a list `[`, and each after its length."""
    if isinstance(value, onnx.OptionalProto):
        value = numpy_helper.to_optional(value)
    if isinstance(value, onnx.SequenceProto):
        value = numpy_helper.to_list(value)
    if value is None:
        return b""
    if isinstance(value, (list, tuple)):
        items = [piece(item) for item in value]
        return b"[" + b"".join(struct.pack("<I", len(item)) + item for item in items)
    if isinstance(value, onnx.TensorProto):
        return value.SerializeToString()
    array = np.asarray(value)
    if array.dtype.kind in "US":
        array = array.astype(object)
    return numpy_helper.from_array(array).SerializeToString()


def tests():
    """Every test: its name, model, inputs, outputs and tolerances."""
    for test in load_model_tests(kind="node"):
        if test.name in OTHER_NUMBERS:
            continue
        if test.model is not None:
            model, sets = test.model, test.data_sets
            inputs, outputs = sets[0]
        else:
            folder = pathlib.Path(test.model_dir)
            model = onnx.load(folder / "model.onnx")
            data = folder / "test_data_set_0"
            read = lambda kind: [onnx.load_tensor(p) for p in sorted(data.glob(f"{kind}_*.pb"), key=lambda p: int(re.search(r"(\d+)\.pb", p.name)[1]))]
            inputs, outputs = read("input"), read("output")
        if test.name in IN_DOUBLE:
            outputs = in_double(model, inputs, outputs)
        yield test.name, model.SerializeToString(), [*map(piece, inputs)], [*map(piece, outputs)], test.rtol, test.atol


# What a refusal is about, by what its text has: the first that it has. The group is what is named.
CLASSES = [
    ("no operator", r"fx has no operator `([^`]*)`"),
    ("element type", r"elements of type (\w+)"),
    ("random numbers", r"it draws random numbers"),
]


def reason(text):
    """A refusal in short: what it is about first, and nothing that is only this test's."""
    for name, pattern in CLASSES:
        if found := re.search(pattern, text):
            return ": ".join([name, *found.groups()])
    text = re.sub(r"^(while executing|tracing|error)[^:]*: ", "", text)
    found = re.search(r"node \d+ of model\.onnx `[^`]*` \((\w+)\): (.*)", text)
    text = f"{found[1]}: {found[2]}" if found else text
    return re.sub(r"\s+", " ", text).replace("\\", "/").replace('"', "'")


def run(folder):
    built = os.environ.get("FX_NODE_RUNNER")
    cargo = ["cargo", "run", "--release", "-q", "-p", "fx-onnx", "--example", "node_runner", "--"]
    command = [*([built] if built else cargo), str(folder)]
    lines = subprocess.run(command, cwd=HERE.parent.parent, capture_output=True, text=True, check=True).stdout
    return {name: (state, text) for name, state, text in (line.split("\t", 2) for line in lines.splitlines())}


def sample(all_tests, results):
    """As many passing tests as fit, the smallest of each operator first."""
    passing = [t for t in all_tests if results[t[0]][0] == "passed"]
    size = lambda t: len(t[1]) + sum(map(len, t[2])) + sum(map(len, t[3]))
    passing.sort(key=lambda t: (size(t), t[0]))
    out, count = bytearray(), 0
    for name, model, inputs, outputs, rtol, atol in passing:
        record = bytearray()
        for piece in (name.encode(), model):
            record += struct.pack("<I", len(piece)) + piece
        record += struct.pack("<dd", rtol, atol)
        for data in (inputs, outputs):
            record += struct.pack("<I", len(data))
            for piece in data:
                record += struct.pack("<I", len(piece)) + piece
        if len(out) + len(record) > LARGEST_SAMPLE:
            break
        out += record
        count += 1
    SAMPLE.write_bytes(out)
    print(f"sample: {count} tests, {len(out)} bytes")


def main():
    record = "--record" in sys.argv
    all_tests = list(tests())
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        for name, model, inputs, outputs, rtol, atol in all_tests:
            own = folder / name
            own.mkdir()
            (own / "model.onnx").write_bytes(model)
            (own / "tolerance").write_text(f"{rtol} {atol}")
            for kind, data in (("in", inputs), ("out", outputs)):
                for at, piece in enumerate(data):
                    (own / f"{kind}_{at}.pb").write_bytes(piece)
        results = run(folder)
    count = {state: sum(1 for s, _ in results.values() if s == state) for state in ("passed", "refused", "wrong", "panic")}
    for name, (state, text) in sorted(results.items()):
        if state in ("wrong", "panic"):
            print(f"{state}: {name}: {text}")
    refused = {name: reason(text) for name, (state, text) in results.items() if state == "refused"}
    lines = ["# The node tests of onnx that are refused, each with the reason. `python fx-onnx/tests/node_tests.py --record`"]
    lines += [f'{name} = "{why}"' for name, why in sorted(refused.items())]
    text = "\n".join(lines) + "\n"
    if record:
        LEDGER.write_text(text)
        sample(all_tests, results)
    elif not LEDGER.exists() or LEDGER.read_text() != text:
        known = set(LEDGER.read_text().splitlines()) if LEDGER.exists() else set()
        for line in sorted(known.symmetric_difference(lines)):
            print("ledger:", line)
    print(
        f"node tests: kept {len(all_tests)} passed {count['passed']} refused {count['refused']} "
        f"types {sum(why.startswith('element type') for why in refused.values())} "
        f"wrong {count['wrong']} panics {count['panic']}"
    )
    return count["wrong"] + count["panic"] > 0


if __name__ == "__main__":
    sys.exit(main())
