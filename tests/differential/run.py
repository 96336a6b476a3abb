"""Compares fx with PyTorch: random calls of every name in docs/ops.md, made by PyTorch here and by fx in the program
beside this script, eager, traced and interpreted.

    python tests/differential/run.py --calls 100000 --seed 1             compare
    python tests/differential/run.py --calls 100000 --seed 1 --checked   with debug assertions and overflow checks
    python tests/differential/run.py --record                            write the sample that `cargo test` runs
    python tests/differential/run.py --plant softmax                     show that a wrong kernel is seen

It needs PyTorch 2.15 (`pip install torch numpy`). It ends in one line of counts and fails where something differs.
"""

import argparse
import collections
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import threading
import time
import warnings

import torch

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import activations  # noqa: E402, F401
import elementwise  # noqa: E402, F401
import gradients  # noqa: E402
import measures  # noqa: E402, F401
import quantization  # noqa: E402, F401
import signals  # noqa: E402, F401
import special  # noqa: E402, F401
import spectral  # noqa: E402, F401
from calls import FUNCTIONS, RANDOM  # noqa: E402
from layers import LAYERS, filled  # noqa: E402
from operators import OPERATORS  # noqa: E402
from values import FLOATS, NAMES, Source, T, encode, expected, nudged, plain  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
RECORDED = pathlib.Path(__file__).parent / "recorded.jsonl"
GRADIENTS = pathlib.Path(__file__).parent / "gradients.jsonl"
EACH = 100


def names():
    """The names of docs/ops.md, and which of the functions are methods."""
    page = (ROOT / "docs/ops.md").read_text()
    sections = {part.split("\n", 1)[0]: part for part in page.split("\n## ")}
    rows = {title: re.findall(r"^\| `([^`]+)` \| ?([^|]*)\|", text, re.M) for title, text in sections.items()}
    functions = {name: "yes" in method for name, method in rows["Functions"]}
    operators = [path.rsplit("::", 1)[1].removeprefix("r#") for path, _ in rows["Operators"]]
    # A layer that is also a loss is in two tables.
    layers = list(dict.fromkeys(name for name, _ in rows["Layers"]))
    return functions, operators, layers


class Maker:
    """Makes the lines of calls, each by its number and the seed."""

    def __init__(self, seed, gradients=False, reshaped=False):
        self.gradients, self.reshaped = gradients, reshaped
        self.functions, self.operators, self.layers = names()
        self.seed = seed
        self.all = [("function", name) for name in self.functions]
        self.all += [("operator", name) for name in self.operators]
        self.all += [("layer", name) for name in self.layers]
        tables = {"function": FUNCTIONS, "operator": OPERATORS, "layer": LAYERS}
        missing = [name for kind, name in self.all if name not in tables[kind]]
        if missing:
            sys.exit(f"no generator for {', '.join(missing)}")

    def line(self, number):
        """The name of a call, its line, and the line of its gradients, `None` where there is none."""
        kind, name = self.all[number % len(self.all)]
        r = random.Random(f"{self.seed} {number}")
        torch.manual_seed(number)
        s = Source(r)
        if kind == "layer":
            return name, *self.layer(s, number, name)
        if kind == "function" and self.functions[name] and s.chance(0.5):
            kind = "method"
        call, generator, ulps = (OPERATORS if kind == "operator" else FUNCTIONS)[name]
        args = generator(s)
        if self.reshaped and name not in RANDOM:
            args = reshaped(s, args)
        tensors = []
        line = {"id": number, "kind": kind, "name": name, "args": [encode(arg, tensors) for arg in args]}
        line["tensors"] = tensors
        between = RANDOM[name](args) if name in RANDOM else None
        line["outcome"] = outcome(lambda judge: call(*[plain(arg, judge) for arg in args]), ulps, between)
        if not self.gradients or between is not None:
            return name, line, None
        return name, line, gradients.of_call(s, line, name, call, args)

    def layer(self, s, number, name):
        generator, ulps, modes = LAYERS[name]
        options, make, args = generator(s)
        found = [arg for arg in args if isinstance(arg, T) and arg.tensor.is_floating_point()]
        dtype = NAMES[found[0].tensor.dtype] if found else s.pick(*FLOATS)
        training = modes and s.chance(0.5)
        fresh = make()
        state = filled(s, fresh, dtype).state_dict()
        state = {path: value.clone() for path, value in state.items()}
        tensors = []
        line = {"id": number, "kind": "layer", "name": name, "args": [encode(arg, tensors) for arg in args]}
        line["tensors"] = tensors
        line["made"] = {
            "options": options,
            "dtype": dtype,
            "training": training,
            "state": {path: T(value).json() for path, value in state.items()},
        }

        def call(judge):
            module = make().to(next((v.dtype for v in state.values() if v.is_floating_point()), torch.float32))
            module.load_state_dict(state)
            if hasattr(fresh, "stored"):
                module.stored = fresh.stored
            module.train(training)
            if judge is nudged:
                module = module.double()
                module.load_state_dict({p: nudged(v) if v.is_floating_point() else v for p, v in state.items()})
            elif judge:
                module = module.to(torch.float32 if dtype == "float64" else torch.float64)
            result = module(*[plain(arg, judge) if not isinstance(arg, list) else tuple(plain(arg, judge)) for arg in args])
            if training and getattr(module, "running_mean", None) is not None:
                return [result, module.running_mean, module.running_var]
            return result

        line["outcome"] = outcome(call, ulps, None)
        if not self.gradients:
            return line, None

        def module():
            made = make()
            if hasattr(fresh, "stored"):
                made.stored = torch.float64
            return made

        return line, gradients.of_layer(s, line | {"state": state}, name, module, args)


def reshaped(s, args):
    """The arguments, one tensor of them with another number of dims."""
    at = [n for n, arg in enumerate(args) if isinstance(arg, T) or isinstance(arg, list) and arg and isinstance(arg[0], T)]
    if not at:
        return args
    args, n = list(args), s.pick(*at)
    if isinstance(args[n], list):
        items = list(args[n])
        items[0] = with_other_dims(s, items[0])
        args[n] = items
    else:
        args[n] = with_other_dims(s, args[n])
    return args


def with_other_dims(s, x):
    x, how = x.tensor, s.pick("number", "one", "more", "fewer", "none")
    if how == "more" or x.numel() == 0:
        return T(x.unsqueeze(s.pick(0, -1)).contiguous())
    if how == "fewer" and x.dim():
        return T(x.select(s.r.randrange(x.dim()), 0).contiguous())
    if how == "none" and x.dim():
        return T(x.narrow(s.r.randrange(x.dim()), 0, 0).contiguous())
    return T(x.flatten()[0].reshape([1] if how == "one" else []))


def outcome(call, ulps, between):
    """What PyTorch gives for a call, as a line holds it."""
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            got = call(False)
        except (RuntimeError, ValueError, TypeError, IndexError, AssertionError, ZeroDivisionError, NotImplementedError, OverflowError) as error:
            return {"refused": str(error).split("\n", 1)[0][:120]}
        if isinstance(got, int) and not -(2**63) <= got < 2**63:
            return {"refused": "an integer beyond 64 bits"}
        if between is not None:
            return {"random": {"shape": list(got.shape), "dtype": NAMES[got.dtype], "least": between[0], "largest": between[1]}}
        others = []
        for judge in (True, nudged, nudged, nudged):
            try:
                others.append(call(judge))
            except Exception:
                others.append(None)
    return {"value": expected(got, others[0], others[1:], ulps)}


def program(checked):
    profile = "checked" if checked else "release"
    command = ["cargo", "build", "--quiet", "--profile", profile, "-p", "fx-differential"]
    subprocess.run(command, cwd=ROOT, check=True)
    return pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"), profile, "fx-differential")


def compare(arguments):
    maker = Maker(arguments.seed, arguments.gradients, arguments.reshaped)
    command = [program(arguments.checked)] + (["--plant", arguments.plant] if arguments.plant else [])
    running = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    rows, lines, called = [], {}, collections.Counter()
    reader = threading.Thread(target=lambda: rows.extend(running.stdout), daemon=True)
    reader.start()
    started = time.monotonic()
    only = set(arguments.only.split(",")) if arguments.only else None
    number, made = 0, 0
    try:
        while made < arguments.calls:
            kind, name = maker.all[number % len(maker.all)]
            if only is None or name in only:
                _, *made_lines = maker.line(number)
                for line in filter(None, made_lines):
                    text = json.dumps(line, separators=(",", ":"))
                    if arguments.keep:
                        lines[number, "gradients" in line["outcome"]] = text
                    running.stdin.write(text + "\n")
                called[name] += 1
                made += 1
            number += 1
        running.stdin.close()
    except BrokenPipeError:
        pass
    reader.join()
    if running.wait() != 0 or not rows:
        print("the program stopped; its last difference:", rows[-1] if rows else "none")
        sys.exit(2)
    differences = [row for row in rows if row.startswith("{")]
    last, *of_gradients = rows[len(differences) :]
    report(differences, arguments, lines)
    print(f"seconds {time.monotonic() - started:.0f}")
    rare = [f"{name} {called[name]}" for _, name in maker.all if called[name] < EACH]
    if rare and only is None:
        print(f"called fewer than {EACH} times: {', '.join(rare)}")
    print(*(row.strip() for row in [last, *of_gradients]), sep="\n")
    counts = dict(zip(last.split()[::2], map(int, last.split()[1::2])))
    bad = sum(counts[kind] for kind in ["panics", "values", "dtypes", "shapes", "refusals"])
    enough = counts["operations"] == len(maker.all) and not rare and counts["excused"] * 50 <= counts["calls"]
    wrong = sum(int(row.split()[3]) for row in of_gradients)
    sys.exit(0 if bad == 0 and wrong == 0 and (enough or only) else 1)


def report(differences, arguments, lines):
    """The differences by name and kind, some of each."""
    by = collections.defaultdict(list)
    for row in map(json.loads, differences):
        by[row["excuse"] or "", row["name"], row["difference"]].append(row)
    for (excuse, name, kind), rows in sorted(by.items(), key=lambda item: (item[0][0], item[0][1])):
        print(f"{len(rows)} {name} {kind}" + (f", excused: {excuse}" if excuse else ""))
        if excuse:
            continue
        for row in rows[: arguments.show]:
            print(f"    {row['mode']} #{row['id']}: {row['text'][:300]}")
            key = row["id"], kind == "Gradient"
            if key in lines:
                print(f"        {lines[key][:900]}")


def record(arguments):
    """Some short calls of every name, written for the test that runs without Python; of some names, the others stay."""
    maker = Maker(arguments.seed, gradients=True)
    kept, number = {name: [] for name in maker.all}, 0
    of_gradients = {name: [] for name in maker.all}
    if arguments.only:
        only = set(arguments.only.split(","))
        for path, others in ((RECORDED, kept), (GRADIENTS, of_gradients)):
            for line in path.read_text().splitlines():
                call = json.loads(line)
                kind = "function" if call["kind"] == "method" else call["kind"]
                if call["name"] not in only and (kind, call["name"]) in others:
                    others[kind, call["name"]].append(line)
    while any(len(lines) < arguments.each for lines in kept.values()):
        lines = kept[maker.all[number % len(maker.all)]]
        # What is made of much, as layers of transformers are, gets longer lines once short ones are not found.
        longest = 640 + 20 * (number // len(maker.all))
        if len(lines) == arguments.each:
            number += 1
            continue
        made = [json.dumps(line, separators=(",", ":")) for line in maker.line(number)[1:] if line]
        if len(made[0]) < longest:
            lines.append(made[0])
        learnt = of_gradients[maker.all[number % len(maker.all)]]
        learnt.extend(text for text in made[1:] if len(text) < 2 * longest and len(learnt) < arguments.each_gradients)
        number += 1
    write(RECORDED, "calls", kept)
    write(GRADIENTS, "calls with gradients", of_gradients)


def write(path, what, kept):
    text = "".join(line + "\n" for lines in kept.values() for line in lines)
    path.write_text(text)
    names = sum(bool(lines) for lines in kept.values())
    print(f"recorded {sum(map(len, kept.values()))} {what} of {names} operations, {len(text)} bytes")


def main():
    torch.set_num_threads(1)
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--calls", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--checked", action="store_true", help="with debug assertions and overflow checks")
    parser.add_argument("--gradients", action="store_true", help="compare gradients in float64 too")
    parser.add_argument("--reshaped", action="store_true", help="give one tensor of each call another number of dims")
    parser.add_argument("--plant", metavar="NAME", help="make this operation wrong on purpose")
    parser.add_argument("--only", metavar="NAMES", help="call, or record again, these names alone, separated by commas")
    parser.add_argument("--show", type=int, default=2, help="differences to print of each kind")
    parser.add_argument("--keep", action="store_true", help="print the lines of the differences")
    parser.add_argument("--record", action="store_true", help="write the recorded sample")
    parser.add_argument("--each", type=int, default=20, help="calls of each name in the sample")
    parser.add_argument("--each-gradients", type=int, default=8, help="calls of each name in the sample of gradients")
    arguments = parser.parse_args()
    record(arguments) if arguments.record else compare(arguments)


if __name__ == "__main__":
    main()
