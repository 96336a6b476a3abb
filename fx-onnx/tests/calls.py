"""The recorded calls of every operation and layer as ONNX files: each is checked by onnx, run by ONNX Runtime, and compared
with what PyTorch gave, in values, element types and shapes.

    python fx-onnx/tests/calls.py                     # needs onnx, onnxruntime, numpy
    python fx-onnx/tests/calls.py --named             # with a name for each size
    python fx-onnx/tests/calls.py --only softmax,max  # these names alone

What fx refuses is counted, with its reasons by `--refused`. Where ONNX Runtime has no kernel for an element type, onnx's
reference evaluator runs the file. It fails where a file is wrong.
"""

import argparse
import collections
import json
import multiprocessing
import os
import pathlib
import subprocess
import sys
import warnings

import ml_dtypes
import numpy as np
import onnx
import onnx.reference
import onnxruntime

ROOT = pathlib.Path(__file__).resolve().parents[2]
RECORDED = ROOT / "tests/differential/recorded.jsonl"
DTYPES = {name: np.dtype(name) for name in ("float16", "float32", "float64", "uint8", "uint32", "int16", "int32", "int64", "bool")}
DTYPES["bfloat16"] = np.dtype(ml_dtypes.bfloat16)
# How far engines are apart, which order sums as they like, relative to the largest element.
ROUNDING = {"float16": 2**-7, "bfloat16": 2**-4, "float32": 1e-4, "float64": 1e-5}

# What ONNX Runtime says where it has no kernel for a type.
MISSING = ("NOT_IMPLEMENTED", "Could not find an implementation", "not support double", "is not supported with")

onnxruntime.set_default_logger_severity(4)
warnings.simplefilter("ignore")


def array(json):
    dtype, count = DTYPES[json["dtype"]], int(np.prod(json["shape"], initial=1))
    size = count * dtype.itemsize
    data = bytes.fromhex(json["data"])
    data = data * (size // max(len(data), 1) + 1)
    return np.frombuffer(data[:size], dtype).reshape(json["shape"])


def flat(outcome):
    """The values that PyTorch gave, one after another: arrays with a tolerance."""
    if outcome is None:
        return []
    if isinstance(outcome, list):
        return [item for each in outcome for item in flat(each)]
    if isinstance(outcome, dict) and "float" in outcome:
        outcome = float(outcome["float"])
    if isinstance(outcome, dict):
        return [(array(outcome), float(outcome.get("tolerance", 0)) + 4 * float(outcome.get("spread", 0)))]
    dtype = {bool: np.bool_, int: np.int64, float: np.float64}[type(outcome)]
    return [(np.array(outcome, dtype), 0.0)]


def difference(found, expected, tolerance):
    if list(found.shape) != list(expected.shape):
        return f"shape {list(found.shape)} for {list(expected.shape)}"
    if found.dtype != expected.dtype:
        return f"dtype {found.dtype} for {expected.dtype}"
    if expected.dtype.name not in ROUNDING:
        # ONNX Runtime adds whole numbers as doubles, which are exact to 2**53.
        apart = np.abs(found.astype(np.float64) - expected.astype(np.float64)).ravel()
        at = np.flatnonzero((found.ravel() != expected.ravel()) & ~((np.abs(expected.astype(np.float64)).ravel() >= 2**53) & (apart <= 2**11)))
    else:
        a, b = found.astype(np.float64).ravel(), expected.astype(np.float64).ravel()
        scale = np.abs(b[np.isfinite(b)]).max(initial=0.0)
        with np.errstate(invalid="ignore"):
            close = np.abs(a - b) <= tolerance + ROUNDING[expected.dtype.name] * scale
        at = np.flatnonzero(~(close | (a == b) | (np.isnan(a) & np.isnan(b))))
    if len(at):
        return f"element {at[0]} is {found.ravel()[at[0]]} for {expected.ravel()[at[0]]}"
    return None


def run(model, proto, inputs):
    """The results, and whether it was the reference that gave them."""
    names = [given.name for given in proto.graph.input]
    given = dict(zip(names, inputs, strict=True))
    has_bfloat = any(of.type.tensor_type.elem_type == onnx.TensorProto.BFLOAT16 for of in [*proto.graph.input, *proto.graph.output])
    if not has_bfloat:
        try:
            session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
            return session.run(None, given), False
        except Exception as error:
            if not any(known in str(error) for known in MISSING):
                raise
    results = onnx.reference.ReferenceEvaluator(proto).run(None, given)
    return [np.asarray(result) for result in results], True


def judged(row, call):
    """The kind of what is wrong, and what it is."""
    if "panicked" in row:
        return "panic", ""
    if "refused" in row:
        return "refused", row["refused"]
    outcome = call["outcome"]
    if "refused" in outcome:
        return "beyond", outcome["refused"]
    model = bytes.fromhex(row["model"])
    proto = onnx.load_from_string(model)
    try:
        onnx.checker.check_model(proto, full_check=True)
    except Exception as error:
        return "invalid", " ".join(str(error).split())[:300]
    reference = False
    try:
        found, reference = run(model, proto, [array(given) for given in row["inputs"]])
    except Exception as error:
        text = " ".join(str(error).split())[:300]
        # The reference has mistakes of its own.
        return "engine" if "ONNXRuntimeError" in text else "unjudged", text
    if "random" in outcome:
        random = outcome["random"]
        expected = [(np.zeros(random["shape"], DTYPES[random["dtype"]]), float("inf"))]
    else:
        value = outcome["value"]
        # The buffers that a layer moves in training are not among the results of a file.
        if call.get("made", {}).get("training") and isinstance(value, list) and len(found) == 1:
            value = value[0]
        expected = flat(value)
    if len(found) != len(expected):
        return "wrong", f"{len(found)} results for {len(expected)}"
    for found, (expected, tolerance) in zip(found, expected, strict=True):
        problem = difference(found, expected, tolerance)
        if problem:
            return "unjudged" if reference else "wrong", problem
    return "right (reference)" if reference else "right", ""


def lines(args):
    """The calls, and what fx wrote for each."""
    calls = {}
    for line in RECORDED.read_text().splitlines():
        call = json.loads(line)
        if not args.only or call["name"] in args.only.split(","):
            calls[call["id"], call["kind"], call["name"]] = line
    program = os.environ.get("FX_CALLS_OUT")
    cargo = ["cargo", "run", "--release", "-q", "-p", "fx-onnx", "--example", "calls_out", "--"]
    command = [*([program] if program else cargo), *(["--named"] if args.named else [])]
    made = subprocess.run(command, cwd=ROOT, input="\n".join(calls.values()), capture_output=True, text=True)
    if made.returncode:
        sys.exit(made.stderr[-2000:])
    return zip(calls.values(), made.stdout.splitlines(), strict=True)


def judge(pair):
    call, row = map(json.loads, pair)
    if row["id"] != call["id"]:
        raise ValueError("the lines are not in order")
    kind, text = judged(row, call)
    args = json.dumps(call["args"])[:200]
    dtypes = ",".join(f"{t['dtype']}{t['shape']}" for t in call["tensors"])
    return kind, call["name"], text, f"{call['id']} {call['kind']} {args} {dtypes}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--named", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--refused", action="store_true")
    args = parser.parse_args()
    counts, reasons = collections.Counter(), collections.Counter()
    with multiprocessing.Pool(2) as pool:
        for kind, name, text, which in pool.imap(judge, lines(args), chunksize=16):
            counts[kind] += 1
            if kind == "refused":
                reasons[name, text.split("\n")[0][:160]] += 1
            elif not kind.startswith("right") and kind not in ("beyond", "unjudged"):
                print(f"{kind}: {name}: {text}: {which}")
    if args.refused:
        for (name, text), count in sorted(reasons.items()):
            print(f"refused {count}: {name}: {text}")
    print(dict(counts))
    return any(kind.startswith(("wrong", "invalid", "engine", "panic")) for kind in counts)


if __name__ == "__main__":
    sys.exit(main())
