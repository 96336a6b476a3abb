"""What the families share: weights that are spread like trained ones, and a family's model with its inputs and outputs."""

import dataclasses
from typing import Callable

import torch


@dataclasses.dataclass
class Family:
    """A model, inputs by name, and what the model gives for them by name.

    `run(model, inputs)` is called with the model in each dtype; floating-point inputs are in that dtype.
    """

    model: torch.nn.Module
    inputs: dict[str, torch.Tensor]
    run: Callable[[torch.nn.Module, dict[str, torch.Tensor]], dict[str, torch.Tensor]]


def spread(model):
    """Weights as large as those of trained models, norms other than one."""
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.normal_(0, 1.0 / parameter.shape[-1] ** 0.5)
            else:
                parameter.add_(torch.randn_like(parameter) * 0.1)
    return model.eval()
