"""The programs of `make.py` in other forms.

    python fx-torch/tests/again.py core DIR OUT [--only PART,PART] [--largest MB]
    python fx-torch/tests/again.py train DIR OUT [--only PART,PART] [--family NAME]

`core` writes each DIR/NAME.pt2 after `run_decompositions()` as OUT/NAME.core.pt2 with the same inputs and results, for
`examples/judge.rs`. `train` exports each model that DIR has in `train()` as OUT/NAME.train.pt2, with the results and what a run
has written (statistics, counters), and beside it the results in evaluation, for `examples/forms.rs`. Both resume; what torch
itself refuses is left out, with its message.
"""

import argparse
import contextlib
import copy
import importlib
import os
import pathlib
import signal
import time

import numpy as np
import torch
import torchvision  # noqa: F401 (its operators)

import forms
import make
from models import common


def core(file, out):
    common.registered(file)
    program = torch.export.load(file).run_decompositions()
    for at in (0, 1):
        path = out / f"{file.stem}.core_{at}.npz"
        path.unlink(missing_ok=True)
        os.link(file.with_name(f"{file.stem}_{at}.npz"), path)
    torch.export.save(program, out / f"{file.stem}.core.pt2")


def train(name, program, out):
    torch.manual_seed(0)
    module = program.make().eval()
    make.drawn(module, 1)
    make.scaled(module, lambda: program.inputs(*program.sizes[0]))
    training = copy.deepcopy(module).train()
    made, other, _ = make.exported(copy.deepcopy(training), program)
    # It was run, which moved its statistics.
    with torch.no_grad():
        for path, x in training.state_dict().items():
            if path in made.state_dict:
                made.state_dict[path].copy_(x)
    for at, sizes in enumerate([program.sizes[0], other]):
        common.SALT[0] = at if sizes == program.sizes[0] else 0
        given = program.inputs(*sizes)
        for stem, own in ((name, module), (f"{name}.train", training)):
            arrays = forms.compared(copy.deepcopy(own), given, False)
            with contextlib.suppress(RuntimeError):
                double = forms.compared(copy.deepcopy(own).double(), make.wide(given), False)
                kept = {name for name in double if name.startswith(("out_", "after_buffer"))}
                arrays |= {f"wide_{name}": double[name] for name in kept if double[name].dtype == np.float64}
            np.savez(out / f"{stem}_{at}.npz", **arrays)
    torch.export.save(made, out / f"{name}.train.pt2")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["core", "train"])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--only", default="", help="parts of names, one of which a program has to have")
    parser.add_argument("--family", choices=make.FAMILIES)
    parser.add_argument("--largest", type=float, default=1e6, help="the largest file, in MB")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    programs = {}
    for family in [options.family] if options.family else make.FAMILIES:
        programs |= importlib.import_module(f"models.{family}").PROGRAMS
    signal.signal(signal.SIGALRM, make.late)
    made, left = 0, 0
    files = sorted(options.folder.glob("*.pt2"), key=lambda file: file.stat().st_size)
    for file in files:
        name = file.stem
        is_asked = any(part in name for part in options.only.split(",")) and file.stat().st_size < options.largest * 1e6
        if not is_asked or name not in programs:
            continue
        path = options.out / f"{name}.{options.what}.pt2"
        reason = path.with_suffix(".left")
        if reason.exists():
            left += 1
            continue
        start = time.time()
        signal.alarm(make.SECONDS)
        try:
            if not path.exists():
                core(file, options.out) if options.what == "core" else train(name, programs[name], options.out)
                print(f"{name} {time.time() - start:.1f} s", flush=True)
            made += 1
        except Exception as error:
            left += 1
            path.unlink(missing_ok=True)
            reason.write_text(make.message(error))
            print(f"left out {name}: {make.message(error)[:200]}", flush=True)
        finally:
            signal.alarm(0)
            common.SALT[0] = 0
    print(f"programs {made} left_out {left}")


if __name__ == "__main__":
    main()
