"""The models of `train.py`, with the names of fx's weights, and their shapes."""

import torch
import torch.nn.functional as F
import torchvision
from torch import nn

VOCABULARY = 50257


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.c_attn = nn.Linear(width, 3 * width)
        self.c_proj = nn.Linear(width, width)

    def forward(self, x):
        batch, length, width = x.shape
        split = self.c_attn(x).split(width, 2)
        q, k, v = (part.view(batch, length, self.heads, -1).transpose(1, 2) for part in split)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.c_proj(y.transpose(1, 2).reshape(batch, length, width))


class Mlp(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.c_fc = nn.Linear(width, 4 * width)
        self.c_proj = nn.Linear(4 * width, width)

    def forward(self, x):
        return self.c_proj(F.gelu(self.c_fc(x), approximate="tanh"))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.ln_1 = nn.LayerNorm(width)
        self.attn = Attention(width, heads)
        self.ln_2 = nn.LayerNorm(width)
        self.mlp = Mlp(width)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class Gpt2(nn.Module):
    def __init__(self, layers=12, width=768, heads=12, length=256, vocabulary=VOCABULARY):
        super().__init__()
        self.wte = nn.Embedding(vocabulary, width)
        self.wpe = nn.Embedding(length, width)
        self.h = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.ln_f = nn.LayerNorm(width)
        self.lm_head = nn.Linear(width, vocabulary, bias=False)
        self.register_buffer("pos", torch.arange(length))
        for name, parameter in self.named_parameters():
            if parameter.dim() == 2:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, ids):
        x = self.wte(ids) + self.wpe(self.pos[: ids.shape[1]])
        for block in self.h:
            x = block(x)
        return self.lm_head(self.ln_f(x))


def language_model(batch, length):
    ids = torch.randint(VOCABULARY, (batch, length + 1))
    return Gpt2(), {"x": ids[:, :-1].contiguous(), "y": ids[:, 1:].contiguous()}


def classifier(model, shape, classes):
    return model, {"x": torch.randn(*shape), "y": torch.randint(classes, shape[:1])}


def mlp():
    layers = [nn.Linear(784, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10)]
    return classifier(nn.Sequential(*layers), (128, 784), 10)


def convnext_block():
    model = torchvision.models.convnext.CNBlock(192, 1.0, 0.0)
    nn.init.uniform_(model.layer_scale, 0.5, 1.5)
    return model, {"x": torch.randn(4, 192, 28, 28), "y": torch.randn(4, 192, 28, 28)}


MODELS = {
    "mlp": mlp,
    "resnet18": lambda: classifier(torchvision.models.resnet18(), (8, 3, 64, 64), 1000),
    "resnet18_16": lambda: classifier(torchvision.models.resnet18(), (16, 3, 64, 64), 1000),
    "gpt2": lambda: language_model(2, 64),
    "gpt2_4x256": lambda: language_model(4, 256),
    "convnext_block": convnext_block,
}


def model_of(name):
    # With this seed no unit is at the kink of its relu, where rounding decides whether a gradient runs through it.
    torch.manual_seed(3)
    return MODELS[name]()


def loss_of(name, found, y):
    if name == "convnext_block":
        return (found - y).square().mean()
    return F.cross_entropy(found.reshape(-1, found.shape[-1]), y.reshape(-1))
