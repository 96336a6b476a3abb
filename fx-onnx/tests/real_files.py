"""What scripts that try real ONNX files share: inputs at two sizes, ONNX Runtime's values, and fx by `examples/judge_files`.

`FX_JUDGE` names the built example; without it, it is built for release. `FX_SECONDS` is how long it may take for a file.

Where fx and ONNX Runtime differ by more than is allowed, the file itself in `float64` judges both (`in_double.py`). Only
where ONNX Runtime is off from it by more than is allowed, fx is compared with that; the errors of both are printed.
"""

import json
import os
import pathlib
import random
import shutil
import subprocess
import time

import numpy as np
import onnx
import onnxruntime
from in_double import InDouble
from judge import session
from onnx import numpy_helper

ROOT = pathlib.Path(__file__).parents[2]
onnxruntime.set_default_logger_severity(4)

DTYPES = {
    "tensor(float)": np.float32,
    "tensor(double)": np.float64,
    "tensor(float16)": np.float16,
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
    "tensor(int16)": np.int16,
    "tensor(int8)": np.int8,
    "tensor(uint8)": np.uint8,
    "tensor(uint16)": np.uint16,
    "tensor(bool)": np.bool_,
    "tensor(string)": np.object_,
}
# What a size of a name is tried with; the first two that ONNX Runtime takes are used.
SIZES = [64, 96, 320, 48, 128, 224, 160, 32, 16, 512, 640, 256, 80, 8, 4, 3, 2, 1, 1536]


def words_of(path):
    """The words that a file knows, and whether it cuts texts into words."""
    nodes = onnx.load(path, load_external_data=False).graph.node
    lists = [a.strings for node in nodes for a in node.attribute if a.name in ("keys_strings", "cats_strings", "pool_strings")]
    known = sorted({text.decode() for texts in lists for text in texts})
    return known, any(node.op_type == "Tokenizer" for node in nodes)


def texts(rng, shape, words):
    """Texts for an input: words that the file knows, and some that it does not."""
    known, is_cut = words
    known = (known or ["a"]) + ["unknown"]
    one = lambda: " ".join(rng.choice(known, 6)) if is_cut else str(rng.choice(known[:-1]))
    return np.array([one() for _ in range(int(np.prod(shape)))], np.object_).reshape(shape)


def values(rng, name, dtype, shape, high, words):
    """Numbers or texts for an input: fractions of a picture's or a sound's size, indices below `high`, a sampling rate."""
    if dtype == np.object_:
        return texts(rng, shape, words)
    if dtype is None:
        raise ValueError(f"`{name}` has elements that are not tried")
    if np.issubdtype(dtype, np.floating):
        return rng.random(shape).astype(dtype) if len(shape) >= 3 else (rng.standard_normal(shape) * 0.5).astype(dtype)
    if dtype == np.bool_:
        return rng.random(shape) < 0.5
    if name == "sr":
        return np.full(shape, 16000, dtype)
    if "mask" in name:
        return np.ones(shape, dtype)
    return rng.integers(0, high, shape).astype(dtype)


def inputs_of(of, sizes, rng, high, words):
    out = {}
    for given in of.get_inputs():
        shape = [size if isinstance(size, int) else sizes[str(size) if size else f"{given.name}.{at}"]
                 for at, size in enumerate(given.shape)]
        out[given.name] = values(rng, given.name, DTYPES.get(given.type), tuple(shape), high, words)
    return out


def open_sizes(of):
    names = []
    for given in of.get_inputs():
        for at, size in enumerate(given.shape):
            name = str(size) if size else f"{given.name}.{at}"
            if not isinstance(size, int) and name not in names:
                names.append(name)
    return names


def bindings(path, of, seconds=60.0):
    """Up to two sets of inputs that ONNX Runtime takes, of different sizes where sizes are open."""
    names, found, rng, words = open_sizes(of), [], random.Random(7), words_of(path)
    # The first dim of an input is a batch, unless nothing else is open.
    firsts = {str(given.shape[0]) for given in of.get_inputs() if given.shape}
    is_batch = {name: "batch" in name.lower() or (name in firsts and len(names) > 1) for name in names}
    tries = [{name: batch if is_batch[name] else size for name in names} for size in SIZES for batch in (1, 2)]
    open_dims = [at for given in of.get_inputs() for at, size in enumerate(given.shape) if not isinstance(size, int)]
    if len(names) == 1 and not any(open_dims) and all(len(given.shape) >= 3 for given in of.get_inputs()):
        # Nothing but the batch of images or sounds is open: a large one is long work, and says no more.
        tries = [{names[0]: batch} for batch in (2, 3)] + tries
    tries += [dict.fromkeys(names, size) for size in SIZES]
    tries += [{name: rng.choice(SIZES) for name in names} for _ in range(300)]
    start = time.time()

    def first_taken(tries):
        """The first sizes that ONNX Runtime takes, with inputs of them."""
        for sizes in tries:
            if time.time() - start > seconds:
                return
            for high in (30, 4, 2):
                data = inputs_of(of, sizes, np.random.default_rng(len(found)), high, words)
                try:
                    of.run(None, data)
                except Exception:  # whatever it says, these sizes are none of its
                    continue
                found.append((sizes, data))
                return

    first_taken(tries if names else [{}])
    if found and names:
        # The second ones differ in more than the batch, where more is open.
        own = found[0][0]
        alike = lambda sizes: all(is_batch[name] or sizes[name] == own[name] for name in names)
        first_taken(sorted((sizes for sizes in tries if sizes != own), key=alike))
    if len(found) == 1 and not names:
        found.append(({}, inputs_of(of, {}, np.random.default_rng(1), 30, words)))
        try:
            of.run(None, found[1][1])
        except Exception:
            found.pop()
    return found


# Operators that round what a run computes to few numbers.
ROUNDED = ("Quantize", "QLinear", "Integer", "QAttention", "QGemm")


def step_of(path):
    """One step of what a file computes, over its largest number: that of halves, or of integers between the ends of a result; 0
    for floats. Halves and integers are told by the weights and the operators, whatever inputs and results are."""
    graph = onnx.load(path, load_external_data=False).graph
    if any(part in node.op_type and node.op_type != "DequantizeLinear" for node in graph.node for part in ROUNDED):
        wide = (onnx.TensorProto.UINT16, onnx.TensorProto.INT16)
        return 1 / 65535 if any(t.data_type in wide for t in graph.initializer) else 1 / 255
    return 1e-3 if any(t.data_type == onnx.TensorProto.FLOAT16 for t in graph.initializer) else 0.0


def tolerance(expected, plain, step):
    """How far a result may be off: two steps of its scale where the file computes in few numbers."""
    if not np.issubdtype(expected.dtype, np.floating):
        return 0.0
    finite = np.abs(expected[np.isfinite(expected)]).astype(np.float64)
    share = max(2 * step, 2e-3 if expected.dtype == np.float16 else 1e-4)
    off = np.abs(expected.astype(np.float64) - plain.astype(np.float64)) if expected.shape == plain.shape else np.array([0.0])
    off = off[np.isfinite(off)].max(initial=0.0)
    return max(share * finite.max(initial=0.0), 2.0 * off)


def prepare(path, folder):
    """Writes the folder that `judge_files` reads; the number of its sets, or why there is none."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        of = session(path)
        plain = session(path, optimised=False)
    except Exception as error:
        return 0, f"ONNX Runtime: {str(error)[:200]}"
    try:
        sets = bindings(path, of)
    except ValueError as error:
        return 0, str(error)
    if not sets:
        return 0, "no sizes were found that ONNX Runtime takes"
    step = step_of(path)
    for at, (_, data) in enumerate(sets):
        here = folder / str(at)
        here.mkdir()
        for i, (name, x) in enumerate(data.items()):
            (here / f"in_{i}.pb").write_bytes(numpy_helper.from_array(x, name).SerializeToString())
        for i, (given, y, z) in enumerate(zip(of.get_outputs(), of.run(None, data), plain.run(None, data), strict=True)):
            y, z = array(y), array(z)
            expect(here, i, given.name, y, tolerance(y, z, step))
            shutil.copy(here / f"out_{i}.pb", here / f"ort_{i}.pb")
    shutil.copy(path, folder / "model.onnx")
    return len(sets), ""


def array(given):
    """A result of ONNX Runtime as an array: of dicts of scores, a row each."""
    if isinstance(given, list) and given and isinstance(given[0], dict):
        return np.array([list(row.values()) for row in given], np.float32)
    return np.asarray(given)


def expect(here, at, name, y, allowed):
    (here / f"out_{at}.pb").write_bytes(numpy_helper.from_array(y, name).SerializeToString())
    (here / f"out_{at}.tol").write_text(repr(float(allowed)))


def array_of(path):
    return numpy_helper.to_array(onnx.load_tensor(path))


def by_double(path, folder, sets, lines):
    """Expects what the file gives in `float64` where fx and ONNX Runtime differ by more than is allowed, and ONNX Runtime is off
    from that by more than is allowed; says by how much."""
    said = []
    of, step = InDouble(path), step_of(path)
    for at in range(sets):
        here = folder / str(at)
        tensors = [onnx.load_tensor(p) for p in here.glob("in_*.pb")]
        exact = of.run({t.name: numpy_helper.to_array(t) for t in tensors})
        for i, y in enumerate(exact):
            given = onnx.load_tensor(here / f"ort_{i}.pb")
            ort = numpy_helper.to_array(given)
            allowed = float((here / f"out_{i}.tol").read_text())
            between = lines.get(f"off{at}", "").split()
            if i < len(between) and float(between[i]) <= allowed:
                continue
            if ort.dtype != np.float32 or y.shape != ort.shape or not np.isfinite(y).all():
                continue
            off = np.abs(ort.astype(np.float64) - y).max(initial=0.0)
            if off > allowed:
                y = y.astype(np.float32)
                expect(here, i, given.name, y, tolerance(y, y, step))
                said.append((at, i, f"set {at}: from float64, ONNX Runtime's `{given.name}` is off by {off:.3e} of {np.abs(y).max():.3e}"))
    return said


def judge():
    if "FX_JUDGE" in os.environ:
        return [os.environ["FX_JUDGE"]]
    subprocess.run(["cargo", "build", "--release", "-q", "-p", "fx-onnx", "--example", "judge_files"], cwd=ROOT, check=True)
    return [str(ROOT / "target/release/examples/judge_files")]


def written_is_right(folder, sets):
    """Whether ONNX Runtime gives the same for the file that fx wrote."""
    path = folder / "written.onnx"
    if not path.exists():
        return "not written"
    try:
        of = session(path)
        for at in range(sets):
            here = folder / str(at)
            tensors = [onnx.load_tensor(p) for p in sorted(here.glob("in_*.pb"), key=lambda p: int(p.stem[3:]))]
            names = {given.name for given in of.get_inputs()}
            found = of.run(None, {t.name: numpy_helper.to_array(t) for t in tensors if t.name in names})
            for i, y in enumerate(found):
                wanted = array_of(here / f"ort_{i}.pb")
                allowed = float((here / f"out_{i}.tol").read_text())
                y = array(y)
                if y.shape != wanted.shape or y.dtype != wanted.dtype:
                    return f"set {at}: output {i} is {y.dtype} {y.shape}"
                if y.dtype == np.object_:
                    if not np.array_equal(y, wanted):
                        return f"set {at}: output {i} has other texts"
                    continue
                a, b = np.atleast_1d(y.astype(np.float64)), np.atleast_1d(wanted.astype(np.float64))
                off = np.where(np.isnan(a) & np.isnan(b), 0.0, np.abs(a - b))
                if y.size and not (off.max() <= allowed or np.array_equal(y, wanted)):
                    return f"set {at}: output {i} is off by {off.max():.3e}"
    except Exception as error:
        return f"ONNX Runtime: {str(error)[:160]}"
    return ""


COUNTED = ["files", "as_is", "right", "compiled_right", "written_back", "refused", "wrong", "panics"]
WAYS = ("loaded", "compiled", "saved", "written")


def ran(program, folder):
    """What the example says of each way, and how it ended if not well."""
    seconds = int(os.environ.get("FX_SECONDS", "600"))
    try:
        ran = subprocess.run([*program, str(folder)], capture_output=True, text=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        return {}, f"over {seconds} s"
    lines = dict(line.split(" ", 1) for line in ran.stdout.splitlines() if " " in line)
    return lines, "" if ran.returncode == 0 else f"exit {ran.returncode}: {ran.stderr[-200:]}"


def compare(files, work, results=None, again=False):
    """Judges files, a line each; the last line counts them. `files`: names and paths. With a path of `results`, what came of a
    file is kept there, and is judged anew with `again` alone."""
    program = judge()
    known = {}
    if results and results.exists() and not again:
        known = {line["name"]: line for line in map(json.loads, results.read_text().splitlines())}
    count = dict.fromkeys(COUNTED, 0)
    for name, path in files:
        if name not in known:
            known[name] = {"name": name} | judged(program, name, path, work / name.replace("/", "_"))
            if results:
                with results.open("a") as out:
                    out.write(json.dumps(known[name]) + "\n")
        print(known[name]["said"], flush=True)
        for of in known[name]["counted"]:
            count[of] += 1
    print(" ".join(f"{name} {number}" for name, number in count.items()))
    return count


def judged(program, name, path, folder):
    """What came of a file: what is counted, and a text."""
    sets, why = prepare(path, folder)
    try:
        if not sets:
            return {"counted": [], "said": f"left out {name}: {why}"}
        lines, ended = ran(program, folder)
        exact = []
        if any(line.startswith("wrong") for line in lines.values()):
            try:
                exact = by_double(path, folder, sets, lines)
            except Exception as error:  # onnx's evaluator does not have every operator
                exact = [f"in float64, nothing: {str(error)[:160]}"]
            else:
                if exact:
                    lines, ended = ran(program, folder)
                    off = {at: lines.get(f"off{at}", "").split() for at in range(sets)}
                    fx = {(at, i): off[at][i] if i < len(off[at]) else "more" for at, i, _ in exact}
                    exact = [f"{line}, and fx by {fx[at, i]}" for at, i, line in exact]
        back = written_is_right(folder, sets)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    is_right = {way: lines.get(way, "").startswith("right") for way in WAYS}
    some = lambda what: any(line.startswith(what) for line in lines.values())
    holds = {
        "files": True,
        "as_is": not lines.get("loaded", "refused").startswith("refused"),
        "right": all(is_right.values()) and not back,
        "compiled_right": is_right["compiled"],
        "written_back": is_right["written"] and not back,
        "refused": some("refused"),
        "wrong": some("wrong") or bool(back and is_right["written"]),
        "panics": some("panic") or bool(ended),
    }
    said = [f"{way} {line[:300]}" for way, line in lines.items() if way in WAYS and line != "right"]
    said += [f"back {back}"] if back and is_right["written"] else []
    said += [ended] if ended else []
    text = f"{'right' if not said else 'NOT'} {name} ({sets} sets)" + "".join(f"\n    {line}" for line in exact + said)
    return {"counted": [of for of in COUNTED if holds[of]], "said": text}
