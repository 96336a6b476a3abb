"""Models of torchvision: classes, segmentation, parts of detection, videos, optical flow."""

import torch
import torchvision
import torchvision.models as models
from torch import nn

from models.common import OPEN, Program, floats, seeded

PROGRAMS = {}
# Under 400 MB; the first layers of vgg's classifier alone have that, and are narrower here.
CLASSES = """squeezenet1_0 squeezenet1_1 shufflenet_v2_x0_5 shufflenet_v2_x1_0 shufflenet_v2_x1_5 shufflenet_v2_x2_0
    mobilenet_v2 mobilenet_v3_small mobilenet_v3_large mnasnet0_5 mnasnet0_75 mnasnet1_0 mnasnet1_3 regnet_x_400mf
    regnet_x_800mf regnet_x_1_6gf regnet_x_3_2gf regnet_x_8gf regnet_x_16gf regnet_y_400mf regnet_y_800mf regnet_y_1_6gf
    regnet_y_3_2gf regnet_y_8gf regnet_y_16gf resnet18 resnet34 resnet50 resnet101 resnet152 resnext50_32x4d
    resnext101_32x8d resnext101_64x4d wide_resnet50_2 densenet121 densenet161 densenet169 densenet201 efficientnet_b0
    efficientnet_b1 efficientnet_b2 efficientnet_b3 efficientnet_b4 efficientnet_b5 efficientnet_b6 efficientnet_b7
    efficientnet_v2_s efficientnet_v2_m convnext_tiny convnext_small convnext_base swin_t swin_s swin_b swin_v2_t
    swin_v2_s swin_v2_b alexnet vgg11 vgg13 vgg16 vgg19 vgg11_bn vgg13_bn vgg16_bn vgg19_bn googlenet inception_v3
    vit_b_16 vit_b_32 maxvit_t""".split()
SIZES = dict(inception_v3=96, maxvit_t=224)


def image(name, make, size=64, sizes=(2, 1), key="x"):
    PROGRAMS[name] = Program(make, lambda n, s: {key: floats(n, 3, s, s)}, {key: {0: OPEN}}, [(n, size) for n in sizes])


def classes(name):
    options = {"init_weights": False} if name in ("googlenet", "inception_v3") else {}
    if name.startswith("vit_"):
        options = {"image_size": 64}
    if name.startswith("vgg"):
        options = {"init_weights": False}
    module = getattr(models, name)(weights=None, num_classes=10, **options)
    if name.startswith("vgg"):
        module.classifier = nn.Sequential(
            nn.Linear(512 * 7 * 7, 64), nn.ReLU(True), nn.Dropout(), nn.Linear(64, 64), nn.ReLU(True), nn.Dropout(),
            nn.Linear(64, 10),
        )
    return module


    image(name, lambda name=name: classes(name), SIZES.get(name, 64))
image("vision_transformer", lambda: models.VisionTransformer(64, 16, 2, 4, 64, 96, num_classes=10))
image("maxvit_small", lambda: models.MaxVit((64, 64), 8, 2, [8, 16], [1, 1], 8, 0.0, num_classes=10))

for name in ["lraspp_mobilenet_v3_large", "deeplabv3_mobilenet_v3_large", "fcn_resnet50", "deeplabv3_resnet50", "fcn_resnet101", "deeplabv3_resnet101"]:
    make = lambda name=name: getattr(models.segmentation, name)(weights=None, weights_backbone=None, num_classes=5)
    key = "input" if name.startswith("lraspp") else "x"
    PROGRAMS[name] = Program(
        make, lambda n, h, w, key=key: {key: floats(n, 3, h, w)}, {key: {0: OPEN, 2: OPEN, 3: OPEN}}, [(2, 64, 96), (1, 96, 64)]
    )


def detection(name):
    return getattr(models.detection, name)(weights=None, weights_backbone=None, num_classes=5)


class Proposals(nn.Module):
    """A backbone with its pyramid, and the head that proposes boxes."""

    def __init__(self, name):
        super().__init__()
        whole = detection(name)
        self.backbone, self.head = whole.backbone, whole.rpn.head

    def forward(self, x):
        features = list(self.backbone(x).values())
        return features, self.head(features)


class Dense(nn.Module):
    """A backbone, and heads over all its places."""

    def __init__(self, name):
        super().__init__()
        whole = detection(name)
        self.backbone, self.head = whole.backbone, whole.head

    def forward(self, x):
        return self.head(list(self.backbone(x).values()))


class Regions(nn.Module):
    """The heads of given boxes."""

    def __init__(self, name, level="0"):
        super().__init__()
        whole = detection(name)
        self.backbone, self.heads, self.level = whole.backbone, whole.roi_heads, level

    def forward(self, x, boxes):
        features = self.backbone(x)[self.level]
        scale = 1 / round(x.shape[-1] / features.shape[-1])
        results = []
        for kind in ["box", "mask", "keypoint"]:
            pool, head = getattr(self.heads, f"{kind}_roi_pool", None), getattr(self.heads, f"{kind}_head", None)
            if pool is not None:
                own = torchvision.ops.roi_align(features, boxes, pool.output_size, scale, pool.sampling_ratio)
                results.append(getattr(self.heads, f"{kind}_predictor")(head(own)))
        return results


def boxes(n, count, size):
    """Rows of an image's number and two corners."""
    corners = torch.rand(count, 4, generator=seeded(n, count)) * size / 2
    corners[:, 2:] += corners[:, :2] + 1
    return torch.cat([(torch.arange(count) % n)[:, None].float(), corners], 1)


for name in ["fasterrcnn_resnet50_fpn", "fasterrcnn_resnet50_fpn_v2", "fasterrcnn_mobilenet_v3_large_fpn", "fasterrcnn_mobilenet_v3_large_320_fpn"]:
    image(f"{name}_proposals", lambda name=name: Proposals(name), 96)
for name in ["fasterrcnn_resnet50_fpn", "fasterrcnn_mobilenet_v3_large_fpn", "maskrcnn_resnet50_fpn", "keypointrcnn_resnet50_fpn"]:
    PROGRAMS[f"{name}_regions"] = Program(
        lambda name=name: Regions(name), lambda n, k: {"x": floats(n, 3, 96, 96), "boxes": boxes(n, k, 96)},
        {"x": {0: OPEN}, "boxes": {0: OPEN}}, [(2, 5), (1, 3)],
    )
for name in ["retinanet_resnet50_fpn", "retinanet_resnet50_fpn_v2", "fcos_resnet50_fpn"]:
    image(f"{name}_heads", lambda name=name: Dense(name), 96)
image("ssd300_vgg16_heads", lambda: Dense("ssd300_vgg16"), 300)
image("ssdlite320_mobilenet_v3_large_heads", lambda: Dense("ssdlite320_mobilenet_v3_large"), 160)


def video(name, make, frames, size):
    PROGRAMS[name] = Program(
        make, lambda n, f, s: {"x": floats(n, 3, f, s, s)}, {"x": {0: OPEN}}, [(2, frames, size), (1, frames, size)]
    )


for name in ["r3d_18", "mc3_18", "r2plus1d_18"]:
    video(name, lambda name=name: getattr(models.video, name)(weights=None, num_classes=10), 4, 32)
video("s3d", lambda: models.video.s3d(weights=None, num_classes=10), 14, 224)
def small_mvit(name):
    """The model for smaller videos: its builder knows one size alone."""
    module = models.video.mvit
    build = module._mvit
    module._mvit = lambda **options: build(**options | dict(spatial_size=(64, 64), temporal_size=4))
    try:
        return getattr(models.video, name)(weights=None, num_classes=10)
    finally:
        module._mvit = build


for name in ["mvit_v1_b", "mvit_v2_s"]:
    video(name, lambda name=name: small_mvit(name), 4, 64)
for name in ["swin3d_t", "swin3d_s", "swin3d_b"]:
    video(name, lambda name=name: getattr(models.video, name)(weights=None, num_classes=10), 4, 64)


class Flow(nn.Module):
    def __init__(self, make):
        super().__init__()
        self.inner = make(weights=None)

    def forward(self, before, behind):
        return self.inner(before, behind, num_flow_updates=2)


for name in ["raft_small", "raft_large"]:
    PROGRAMS[name] = Program(
        lambda name=name: Flow(getattr(models.optical_flow, name)),
        lambda n: {"before": floats(n, 3, 128, 128), "behind": floats(n, 3, 128, 129)[..., 1:].contiguous()},
        {"before": {0: OPEN}, "behind": {0: OPEN}}, [(2,), (1,)],
    )
