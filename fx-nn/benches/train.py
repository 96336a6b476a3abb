"""Compares training steps on the CPU: fx with PyTorch eager, JAX and candle's tape, in turns.

    pip install torch torchvision safetensors jax
    python fx-nn/benches/train.py

It builds the fx program (`cargo build --release`), writes weights and inputs into a temporary folder, and prints a line
per model: the median time of a step in ms (of the second of two steps in each turn), that of fx over PyTorch eager
(the better of AdamW with `foreach` and `fused`, for images in both memory formats), over JAX (`jit` with donated
arguments) and over candle's tape, the share of the optimizer, and the norm of the difference of all parameters after
three steps over that of the parameters. AdamW's `eps` is 1e-4 in all of them: by a smaller one, the direction of a
gradient that is zero but for rounding decides about a whole step. The last line is `all bars held`, or the bars that
were missed; then the exit code is 1. Names of models as arguments choose them; `--turns N` (15), `--threads N` (2),
`--jax PYTHON` is a Python with JAX and safetensors if this one has no JAX, `--profile` prints what the steps of fx
took. `--memory` prints, each in a process of its own, how far the peak of memory is above that before the first step,
and the same of steps that compute values again, so that they take less than 0.6 of PyTorch's, with their time.
"""

import argparse
import importlib.util
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

MISSING = "train.py needs torch, torchvision and safetensors: pip install {}"
try:
    import torch
    from safetensors.torch import load_file, save_file
except ImportError as error:
    sys.exit(MISSING.format(error.name))

import train_models as models
from fx_program import Fx, Lines, build

# What a step of fx may take, over PyTorch eager.
BARS = {"mlp": 0.75, "resnet18": 0.8, "gpt2": 0.85, "convnext_block": 0.8}
# What it may take over candle's tape.
TAPE = 0.5
# How much memory it may take, over PyTorch eager; and with values that are computed again, in what time.
MEMORY = {"gpt2_4x256": 0.9, "resnet18_16": 0.9}
LESS, SLOWER = 0.6, 1.4
# How far what a step says that it holds may be from what the process has.
PLANNED = 0.1
SHARES = (0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3)
DIFFERENCE = 1e-4


def step(fx, count=1):
    return [float(ms) for ms in fx.ask(f"step {count}").split()]


def peak(fx):
    """The peak of memory so far, and the memory now without that of the program's file, in MiB."""
    status = Path(f"/proc/{fx.process.pid}/status").read_text()
    fields = dict(line.split(":", 1) for line in status.splitlines())
    return tuple(int(fields[name].split()[0]) / 1024 for name in ("VmHWM", "RssAnon"))


class Torch:
    """A training step of PyTorch; `kind` is AdamW's, `layout` that of images."""

    def __init__(self, name, kind, layout):
        self.name = name
        self.model, inputs = models.model_of(name)
        self.x, self.y = inputs["x"], inputs["y"]
        self.model.train()
        if layout == "channels_last":
            self.model = self.model.to(memory_format=torch.channels_last)
            self.x = self.x.to(memory_format=torch.channels_last)
        parameters = self.model.parameters()
        self.optimizer = torch.optim.AdamW(parameters, lr=1e-3, weight_decay=0.01, eps=1e-4, **{kind: True})
        self.share = 0.0

    def step(self):
        start = time.perf_counter()
        self.optimizer.zero_grad()
        models.loss_of(self.name, self.model(self.x), self.y).backward()
        before = time.perf_counter()
        self.optimizer.step()
        end = time.perf_counter()
        self.share = (end - before) / (end - start)
        return (end - start) * 1e3


def best_of_torch(name):
    """The fastest kind of step, after three steps of each."""
    layouts = ["contiguous"]
    if models.model_of(name)[1]["x"].dim() == 4:
        layouts.append("channels_last")
    found = []
    for kind in ("foreach", "fused"):
        for layout in layouts:
            run = Torch(name, kind, layout)
            run.step()
            found.append((min(run.step() for _ in range(3)), kind, layout))
            del run
    return min(found)[1:]


def write(name, folder):
    model, inputs = models.model_of(name)
    folder.mkdir()
    state = {key: value.contiguous().clone() for key, value in model.state_dict().items()}
    save_file(state, str(folder / "model.safetensors"))
    save_file(inputs, str(folder / "inputs.safetensors"))


def difference(name, programs, folder):
    """The norm of the difference of all parameters after three steps, over that of the parameters, of each program."""
    run = Torch(name, "foreach", "contiguous")
    for _ in range(3):
        run.step()
    found = []
    for program in programs:
        step(program, 3)
        program.ask(f"state {folder / 'after.safetensors'}")
        after = load_file(str(folder / "after.safetensors"))
        differences, all = 0.0, 0.0
        for path, expected in run.model.named_parameters():
            expected = expected.detach().double()
            differences += (after[path].double() - expected).square().sum().item()
            all += expected.square().sum().item()
        found.append((differences / all) ** 0.5)
    return found


def compare(name, fx, jax, turns, profile):
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder) / name
        write(name, folder)
        programs = [fx] + ([jax] if jax else [])
        for program in programs:
            program.ask(f"load {folder}")
        worst = difference(name, programs, folder)
        run = Torch(name, *(kind := best_of_torch(name)))
        for _ in range(2):
            run.step()
        for program in programs:
            step(program, 2)
        times = {"torch": [], "fx": [], "jax": [], "tape": []}
        for turn in range(turns):
            # The last step of two: threads of the engine before may wait for work in a loop during the first.
            times["torch"].append([run.step() for _ in range(2)][-1])
            times["fx"].append(step(fx, 2)[-1])
            times["jax"].append(step(jax, 2)[-1] if jax else float("nan"))
            if turn % 3 == 0:
                times["tape"] += [float(ms) for ms in fx.ask("tape 1").split()]
        torch_ms, fx_ms, jax_ms, tape_ms = (statistics.median(times[engine]) for engine in times)
        steps = [step.split(" ", 2) for step in fx.ask("profile").split("; ") if not step.startswith("  ")]
        total = sum(float(step[0]) for step in steps)
        updates = sum(float(step[0]) for step in steps if "update" in step[2])
        if profile:
            print("\n".join("    " + " ".join(step) for step in steps[:20]))
    return torch_ms, run.share, " ".join(kind), fx_ms, jax_ms, tape_ms, updates / total, worst


def jax_program(options):
    """The program with JAX, if there is one."""
    python = options.jax or (sys.executable if importlib.util.find_spec("jax") else None)
    if python is None:
        print("no JAX here: its column is empty", file=sys.stderr)
        return None
    # XLA takes as many threads as it may run on.
    cores = ",".join(str(core) for core in range(options.threads))
    script = str(Path(__file__).with_name("train_jax.py"))
    return Lines(["taskset", "--cpu-list", cores, python, script])


def torch_memory(name):
    run = Torch(name, "fused", "contiguous")
    before = int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 2**20
    for _ in range(3):
        run.step()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 - before


def empty_memory(options):
    """The MiB of an fx process with nothing."""
    fx = Fx(options.program or build("train"), options.threads)
    found = peak(fx)[1]
    fx.process.stdin.close()
    fx.process.wait()
    return found


def fx_memory(folder, options, share, empty):
    """How far the peak of memory is above that before the first step, and the time of a step."""
    fx = Fx(options.program or build("train"), options.threads)
    fx.ask(f"load {folder}")
    fx.ask(f"recompute {1.0 if share is None else share}")
    # With the model, and before there is a step with its state, as PyTorch's.
    before = int(fx.ask("before")) / 1024
    times = step(fx, 4)
    found, after = peak(fx)
    planned = int(fx.ask("planned")) / 2**20
    fx.process.stdin.close()
    fx.process.wait()
    return found - before, min(times[1:]), planned / (after - empty)


def memory(options):
    missed, empty = [], empty_memory(options)
    for name, bar in MEMORY.items():
        command = [sys.executable, __file__, "--torch-memory", name, "--threads", str(options.threads)]
        peer = float(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)
        with tempfile.TemporaryDirectory() as folder:
            folder = Path(folder) / name
            write(name, folder)
            own, ms, planned = fx_memory(folder, options, None, empty)
            found = f"fx {own:8.0f} MiB   ratio {own / peer:.2f}   planned over measured {planned:.2f}"
            print(f"{name.ljust(15)} torch {peer:8.0f} MiB   {found}", flush=True)
            if own / peer > bar:
                missed.append(f"{name} memory {own / peer:.2f} > {bar:.2f}")
            if abs(planned - 1) > PLANNED:
                missed.append(f"{name} planned bytes over measured ones {planned:.2f}")
            less, slower = own, ms
            for share in SHARES:
                try:
                    less, slower, _ = fx_memory(folder, options, share, empty)
                except SystemExit:
                    break  # So little is not enough.
                ratios = f"ratio {less / peer:.2f}   time {slower / ms:.2f}"
                print(f"{''.ljust(15)} share {share}: {less:8.0f} MiB   {ratios}", flush=True)
                if less / peer <= LESS:
                    break
        if less / peer > LESS or slower / ms > SLOWER:
            missed.append(f"{name} with less memory: {less / peer:.2f} of PyTorch's in {slower / ms:.2f} of the time")
    return missed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("models", nargs="*", default=list(BARS))
    parser.add_argument("--turns", type=int, default=15)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--jax", help="a Python that has JAX")
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--torch-memory", help=argparse.SUPPRESS)
    parser.add_argument("--program", help="an fx program that is built already")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    if options.torch_memory:
        return print(torch_memory(options.torch_memory))
    if options.memory:
        missed = memory(options)
    else:
        missed = []
        fx = Fx(options.program or build("train"), options.threads)
        jax = jax_program(options)
        print(f"torch {torch.__version__}, {options.threads} threads, ms a step")
        for name in options.models:
            found = compare(name, fx, jax, options.turns, options.profile)
            peer, share, kind, own, jax_ms, tape, own_share, worst = found
            differ = f"differ {worst[0]:.1e}"
            if jax:
                differ += f", jax {worst[1]:.1e}" + (" (void)" if worst[1] > DIFFERENCE else "")
            print(
                f"{name.ljust(15)} torch {peer:8.1f} (optimizer {share:.2f}, {kind})   fx {own:8.1f} "
                f"(optimizer {own_share:.2f})   ratio {own / peer:.2f}   jax {jax_ms:8.1f} ratio {own / jax_ms:.2f}   "
                f"tape {tape:8.1f} ratio {own / tape:.2f}   {differ}",
                flush=True,
            )
            if worst[0] > DIFFERENCE:
                missed.append(f"{name} differs by {worst[0]:.1e}: void")
            elif own / peer > BARS[name]:
                missed.append(f"{name} {own / peer:.2f} > {BARS[name]:.2f}")
            if own / tape > TAPE:
                missed.append(f"{name} over the tape {own / tape:.2f} > {TAPE:.2f}")
    print("bar missed: " + "; ".join(missed) if missed else "all bars held")
    sys.exit(bool(missed))


main()
