"""Writes `recorded.rs` beside this file, PyTorch's numbers for `training.rs`: `python make.py`."""

import pathlib
import warnings

import torch
from torch import optim
from torch.optim import lr_scheduler as schedules

warnings.simplefilter("ignore")
torch.set_default_dtype(torch.float64)
lines = ["// PyTorch's numbers, written by `make.py`.\n"]


def put(name, values):
    lines.append(f"#[rustfmt::skip]\nconst {name}: [f64; {len(values)}] = [{', '.join(repr(float(v)) for v in values)}];\n")


def steps(name, make):
    a = torch.tensor([1.0, -2.0], requires_grad=True)
    b = torch.tensor([0.5], requires_grad=True)
    optimizer = make([a, b])
    for _ in range(5):
        optimizer.zero_grad()
        ((a.square() * torch.tensor([1.0, 3.0])).sum() + (b * 4.0).sum()).backward()
        optimizer.step()
    put(name, [*a.tolist(), *b.tolist()])


steps("SGD_PLAIN", lambda p: optim.SGD(p, lr=0.05))
steps("SGD_MOMENTUM", lambda p: optim.SGD(p, lr=0.05, momentum=0.9, dampening=0.3, weight_decay=0.1))
steps("SGD_NESTEROV", lambda p: optim.SGD(p, lr=0.05, momentum=0.9, nesterov=True))
steps("ADAM", lambda p: optim.Adam(p, lr=0.1, betas=(0.8, 0.95), eps=1e-6, weight_decay=0.1))
steps("ADAMW", lambda p: optim.AdamW(p, lr=0.1))


def rates(name, make, measures=None):
    optimizer = optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1)
    schedule = make(optimizer)
    found = []
    for at in range(12):
        if measures:
            schedule.step(measures[at])
        found.append(optimizer.param_groups[0]["lr"])
        if not measures and at < 11:
            optimizer.step()
            schedule.step()
    put(name, found)


rates("LINEAR", lambda o: schedules.LinearLR(o, 0.25, 1.0, 5))
rates("MULTI_STEP", lambda o: schedules.MultiStepLR(o, [2, 7], 0.1))
rates("COSINE", lambda o: schedules.CosineAnnealingLR(o, 8, 0.01))
rates("RESTARTS", lambda o: schedules.CosineAnnealingWarmRestarts(o, 3, 2))
rates("ONE_CYCLE", lambda o: schedules.OneCycleLR(o, 0.1, total_steps=12))
rates("POLYNOMIAL", lambda o: schedules.PolynomialLR(o, 8, 2.0))
rates("SEQUENTIAL", lambda o: schedules.SequentialLR(o, [schedules.LinearLR(o, 0.1, 1.0, 4), schedules.CosineAnnealingLR(o, 8)], [4]))
rates("PLATEAU", lambda o: schedules.ReduceLROnPlateau(o, factor=0.5, patience=2, min_lr=0.03), [5.0, 4.0, 4.1, 4.0, 4.2, 4.1, 4.0, 4.0, 4.0, 4.0, 1.0, 2.0])
(pathlib.Path(__file__).parent / "recorded.rs").write_text("\n".join(lines))
