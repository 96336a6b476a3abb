"""Operators of torchvision alone."""

import torch
import torchvision
from torch import nn

from models.common import OPEN, Program, floats, seeded
from models.small import boxes


class Function(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, a, b):
        return self.function(a, b)


class Deformed(nn.Module):
    def __init__(self, has_mask):
        super().__init__()
        self.conv, self.has_mask = torchvision.ops.DeformConv2d(4, 6, 3, stride=2, padding=1, groups=2), has_mask

    def forward(self, x, offset, mask):
        return self.conv(x, offset, mask if self.has_mask else None)


def suppressed(n):
    scores = torch.rand(n, generator=seeded(n, 1))
    return {"a": boxes(1, n, 20)[:, 1:], "b": scores}


PROGRAMS = {
    "nms": Program(lambda: Function(lambda a, b: torchvision.ops.nms(a, b, 0.3)), suppressed, {"a": {0: OPEN}, "b": {0: OPEN}}, [(30,), (50,)]),
}
REGIONS = dict(
    roi_align=lambda x, rois: torchvision.ops.roi_align(x, rois, (3, 4), 0.5, 2),
    roi_align_aligned=lambda x, rois: torchvision.ops.roi_align(x, rois, 3, 0.5, -1, True),
    roi_pool=lambda x, rois: torchvision.ops.roi_pool(x, rois, (3, 2), 0.5),
    ps_roi_align=lambda x, rois: torchvision.ops.ps_roi_align(x, rois, 2, 0.5, 2),
    ps_roi_pool=lambda x, rois: torchvision.ops.ps_roi_pool(x, rois, 2, 0.5),
)
for name, function in REGIONS.items():
    PROGRAMS[name] = Program(
        lambda function=function: Function(function), lambda n, k: {"a": floats(n, 8, 16, 16), "b": boxes(n, k, 32)},
        {"a": {0: OPEN}, "b": {0: OPEN}}, [(2, 5), (1, 3)],
    )
for name in ["deform_conv2d", "deform_conv2d_with_mask"]:
    PROGRAMS[name] = Program(
        lambda name=name: Deformed(name.endswith("mask")),
        lambda n, s: {"x": floats(n, 4, s, s), "offset": floats(n, 18, s // 2, s // 2), "mask": floats(n, 9, s // 2, s // 2).sigmoid()},
        {"x": {0: OPEN}, "offset": {0: OPEN}, "mask": {0: OPEN}}, [(2, 8), (1, 8)],
    )
