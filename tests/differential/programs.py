"""Random programs, each run on every path: eager, traced, interpreted, after each pass, decomposed, split, saved, printed
and parsed, emitted as Rust, compiled, written as ONNX and StableHLO.

    python tests/differential/programs.py --programs 20000 --seed 1   compare
    python tests/differential/programs.py --programs 2000 --seed 1 --plant cond   show that a fault is seen
    python tests/differential/programs.py --rust 400                  programs written as Rust with control flow
    python tests/differential/programs.py --programs 200 --xla        run StableHLO by XLA too
    python tests/differential/programs.py --recorded --xla            each recorded call as a program of its own

It needs ONNX Runtime (`pip install onnxruntime numpy`), and jax for `--xla`. The programs are made by the crate in
`tests/programs`, in two processes; this script runs the files that they write. It ends in a line for each path and one
line of counts, and fails where a path differs.
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]


def run_onnx(file, inputs):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
    wanted = {value.name for value in session.get_inputs()}
    return session.run(None, {name: value for name, value in inputs.items() if name in wanted})


PROGRAMS = {}


def run_stablehlo(file, inputs):
    sys.path.insert(0, str(ROOT / "fx-stablehlo"))
    import run

    folder = file.decode()
    program = PROGRAMS.get(folder)
    if program is None:
        PROGRAMS.clear()
        program = PROGRAMS[folder] = run.Program(folder)
    return program(inputs)


def engines():
    """Answers requests: a line of JSON and the bytes that it counts, both ways."""
    import numpy

    names = {"bool": numpy.bool_, "int8": numpy.int8, "uint8": numpy.uint8, "uint32": numpy.uint32, "int16": numpy.int16}
    names |= {"int32": numpy.int32, "int64": numpy.int64, "float16": numpy.float16}
    names |= {"float32": numpy.float32, "float64": numpy.float64}
    try:
        import ml_dtypes

        names["bfloat16"] = ml_dtypes.bfloat16
    except ImportError:
        pass  # ONNX Runtime alone gets no such inputs.
    known = {numpy.dtype(kind): name for name, kind in names.items()}
    stdin, stdout = sys.stdin.buffer, sys.stdout.buffer
    while line := stdin.readline():
        head = json.loads(line)
        file = stdin.read(head["file"])
        inputs = {}
        for described in head["inputs"]:
            data = stdin.read(described["bytes"])
            if described["dtype"] in names:
                values = numpy.frombuffer(data, names[described["dtype"]])
                inputs[described["name"]] = values.reshape(described["shape"])
        try:
            found = (run_onnx if head["engine"] == "onnx" else run_stablehlo)(file, inputs)
            results = [numpy.ascontiguousarray(value).reshape(numpy.shape(value)) for value in found]
            outputs = [
                {"dtype": known[value.dtype], "shape": list(value.shape), "bytes": value.nbytes} for value in results
            ]
            answer = {"outputs": outputs}
        except (Exception, SystemExit) as error:
            results, answer = [], {"error": f"{type(error).__name__}: {error}"[:600]}
        stdout.write(json.dumps(answer).encode() + b"\n")
        for value in results:
            stdout.write(value.tobytes())
        stdout.flush()


def build(name, features=(), environment=None):
    """Compiles a binary: its path, or what rustc refuses, by the file of each error."""
    command = ["cargo", "build", "--release", "-p", "fx-programs", "--bin", name, "--message-format", "json"]
    command += [f"--features={feature}" for feature in features]
    done = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True)
    made = [json.loads(line) for line in done.stdout.splitlines()]
    if done.returncode == 0:
        return [line["executable"] for line in made if line.get("executable")][-1], {}
    errors = {}
    for line in made:
        message = line.get("message") or {}
        if message.get("level") == "error":
            for span in message.get("spans", []):
                errors.setdefault(span["file_name"], message["rendered"])
    return None, errors


def emitted(folder):
    """Compiles the programs that were written as Rust into `folder`, and judges them: a report."""
    seeds = sorted(int(path.name.split("_")[1]) for path in folder.glob("program_*"))
    refused = {}
    while True:
        left = [seed for seed in seeds if seed not in refused]
        (folder / "programs.rs").write_text("\n".join([
            *(f'#[path = "{folder}/program_{seed}/src/lib.rs"]\nmod program_{seed};' for seed in left),
            "const PROGRAMS: &[(u64, fx_programs::emitted::Load)] = &[",
            *(f"({seed}, |path| Ok(Box::new(program_{seed}::Program::load(path)?)))," for seed in left), "];", ""]))
        program, errors = build("emitted", ["emitted"], os.environ | {"FX_EMITTED": str(folder)})
        if program:
            break
        found = {int(seed[1]): text for file, text in errors.items() if (seed := re.search(r"program_(\d+)/", file))}
        if not found:
            sys.exit("\n".join(errors.values()) or "the programs that were emitted cannot be compiled")
        refused |= found
    subprocess.run([program], cwd=ROOT, check=True)
    report = json.loads((folder / "report.json").read_text())
    for seed, error in refused.items():
        print(f"{seed}: emitted as Rust: rustc refuses it: {error}")
    path = report["paths"].setdefault("emitted as Rust", {})
    for counts, names in ((path, ("takes", "wrong")), (report["counts"], ("wrong",))):
        for name in names:
            counts[name] = counts.get(name, 0) + len(refused)
    return report


def programs(options):
    program, errors = build("fx-programs")
    if program is None:
        sys.exit("\n".join(errors.values()))
    count = options.programs // 2
    halves = [(options.seed * 10_000_000, count), (options.seed * 10_000_000 + count, options.programs - count)]
    if options.recorded:
        lines = sum(1 for _ in (ROOT / "tests/differential/recorded.jsonl").open())
        halves = [(0, lines // 2), (lines // 2, lines)]
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "emitted").mkdir()
        started = []
        for at, (first, many) in enumerate(halves):
            command = [program, "--first", str(first), "--count", str(many), "--python", sys.executable]
            command += ["--report", f"{folder}/{at}.json"]
            command += ["--plant", options.plant] if options.plant else []
            command += ["--xla"] if options.xla else []
            command += ["--recorded"] if options.recorded else []
            command += ["--emit", f"{folder}/emitted", "--emitted", str(options.emitted)] if at == 0 and options.emitted else []
            started.append(subprocess.Popen(command, cwd=ROOT))
        codes = [process.wait() for process in started]
        if any(code not in (0, 1) for code in codes):
            sys.exit(f"a process ended with {codes}")
        reports = [json.loads((pathlib.Path(folder) / f"{at}.json").read_text()) for at in range(2)]
        if options.emitted:
            reports.append(emitted(pathlib.Path(folder) / "emitted"))
    total = merged(reports)
    show(total)
    return total["counts"]["wrong"] + total["counts"]["panics"]


def merged(reports):
    total = {"counts": {}, "paths": {}, "shares": {}, "names": {}, "reasons": {}}
    for report in reports:
        for part in ("counts", "shares", "names", "reasons"):
            for name, count in report[part].items():
                total[part][name] = total[part].get(name, 0) + count
        for name, counts in report["paths"].items():
            known = total["paths"].setdefault(name, {})
            for key, count in counts.items():
                known[key] = known.get(key, 0) + count
    return total


def show(total):
    counts, run = total["counts"], max(total["counts"]["run"], 1)
    for name, path in total["paths"].items():
        # What a rule keeps out, a path cannot take.
        can = path.get("takes", 0) - path.get("refused", 0) - path.get("refused_by_all", 0)
        share = path.get("compared", 0) / max(can, 1)
        print(f"path {name}: " + " ".join(f"{key} {count}" for key, count in path.items()) + f" share {share:.2f}")
    for reason, count in sorted(total["reasons"].items(), key=lambda pair: -pair[1]):
        print(f"refused {count}: {reason}")
    print("shares " + " ".join(f"{name} {count / run:.2f}" for name, count in total["shares"].items()))
    seldom = sorted((count, name) for name, count in total["names"].items())
    print(f"functions {len(seldom)} least {' '.join(f'{name} {count}' for count, name in seldom[:5])}")
    print(f"mean length {counts['steps'] / run:.1f}")
    names = "programs run refused_by_all paths compared unread wrong panics refused_by_one_path"
    counts["paths"] = len(total["paths"])
    print(" ".join(f"{name} {counts[name]}" for name in names.split()))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--plant", default="")
    parser.add_argument("--xla", action="store_true")
    parser.add_argument("--emitted", type=int, default=200, help="how many are written as Rust and compiled")
    parser.add_argument("--recorded", action="store_true", help="instead of random programs")
    parser.add_argument("--rust", type=int, default=0)
    parser.add_argument("--engines", action="store_true")
    options = parser.parse_args()
    if options.engines:
        engines()
        return
    options.emitted = 0 if options.recorded else options.emitted
    failed = programs(options) if options.programs or options.recorded else 0
    if options.rust:
        import rust_programs

        written, wrong = rust_programs.run(options.rust, options.seed)
        print(f"written {written} wrong {len(wrong)}")
        failed += len(wrong)
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
