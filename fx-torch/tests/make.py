"""Programs of torch.export, with PyTorch's results at two sizes, for `examples/judge.rs`.

    python fx-torch/tests/make.py DIR [--only PART] [--small]

writes DIR/NAME.pt2 and DIR/NAME_0.npz, DIR/NAME_1.npz (`in_00`, .. and `out_00`, ..). Every parameter and buffer is drawn anew, so
that a part that is left out shows. A second run goes on where the first one ended. `--small` writes the programs that the tests
run (tests/data) alone. Needs torch, torchvision and transformers; nothing is downloaded.
"""

import inspect
import logging
import pathlib
import sys
import warnings

import numpy as np
import torch
import torch.utils._pytree as pytree
from torch import nn

warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)
OPEN = torch.export.Dim.DYNAMIC
# Each program by name: a function that gives the module, a function of a size that gives its inputs, the open dims and two sizes.
PROGRAMS, SMALL = {}, {}


def seeded(*sizes):
    return torch.Generator().manual_seed(sum(sizes))


def floats(*sizes):
    return torch.randn(*sizes, generator=seeded(*sizes))


def indices(high, *sizes):
    return torch.randint(0, high, sizes, generator=seeded(*sizes))


class Written(nn.Module):
    """A view that is written shows in its base."""

    def forward(self, x):
        y = x * 2
        part = y[:, 1:3]
        part.add_(1.0)
        y.view(-1).mul_(0.5)
        y.t()[0].zero_()
        return y, part.sum()


class Named(nn.Module):
    """Structures, keywords, constants and an argument that is `None`."""

    def __init__(self):
        super().__init__()
        self.conv, self.bn, self.fc = nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.Linear(4, 2)
        self.register_buffer("k", torch.ones(2))
        self.c = torch.arange(2.0)

    def forward(self, x, pair, *, scale=None, extra=None):
        y = torch.relu_(self.bn(self.conv(x))).mean((2, 3))
        y = self.fc(y) + self.k * self.c
        if scale is not None:
            y = y * scale["a"]
        return {"out": y.view(y.shape[0], 2, 1), "pair": (pair[0] + pair[1], y.softmax(-1))}


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(20, 6, padding_idx=0)
        self.lstm = nn.LSTM(6, 5, num_layers=2, bidirectional=True, batch_first=True)
        self.gru, self.head = nn.GRU(10, 4, batch_first=True), nn.Linear(4, 3)

    def forward(self, ids):
        x, h = self.gru(self.lstm(self.emb(ids))[0])
        return self.head(x).log_softmax(-1), h


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb, self.out = nn.Embedding(11, 8), nn.Linear(8, 11, bias=False)
        self.out.weight = self.emb.weight
        self.norm, self.attn = nn.LayerNorm(8), nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, ids):
        x = self.norm(self.emb(ids))
        mask = torch.full((x.shape[1], x.shape[1]), float("-inf")).triu(1)
        y, _ = self.attn(x, x, x, attn_mask=mask, need_weights=False)
        return self.out(x + y)


def small():
    SMALL["written"] = (Written, lambda n, m: {"x": floats(n, m)}, {"x": {0: OPEN, 1: OPEN}}, [(4, 5), (3, 6)])
    SMALL["named"] = (
        Named,
        lambda n, h: {"x": floats(n, 3, h, h), "pair": (floats(n), floats(n) + 1), "scale": {"a": floats(2)}, "extra": None},
        {"x": {0: OPEN, 2: OPEN, 3: OPEN}, "pair": ({0: OPEN}, {0: OPEN}), "scale": {"a": None}, "extra": None},
        [(2, 6), (3, 5)],
    )
    SMALL["recurrent"] = (Recurrent, lambda n, m: {"ids": indices(20, n, m)}, {"ids": {0: OPEN}}, [(2, 5), (3, 5)])
    SMALL["tied"] = (Tied, lambda n, m: {"ids": indices(11, n, m)}, {"ids": {0: OPEN, 1: OPEN}}, [(2, 5), (1, 3)])


def vision():
    import torchvision.models as models

    names = """resnet18 resnet50 resnext50_32x4d wide_resnet50_2 mobilenet_v2 mobilenet_v3_small mobilenet_v3_large
        efficientnet_b0 efficientnet_v2_s densenet121 squeezenet1_0 squeezenet1_1 shufflenet_v2_x0_5 shufflenet_v2_x1_0
        googlenet convnext_tiny regnet_y_400mf regnet_x_400mf swin_t swin_v2_t vgg11 vgg11_bn mnasnet0_5 alexnet""".split()

    def add(name, make):
        # The input has another name in some of them.
        key = list(inspect.signature(make().forward).parameters)[0]
        PROGRAMS[name] = (make, lambda n, s: {key: floats(n, 3, s, s)}, {key: {0: OPEN}}, [(2, 64), (3, 64)])

    for name in names:
        options = {"init_weights": False} if name == "googlenet" else {}
        add(name, lambda name=name, options=options: getattr(models, name)(weights=None, num_classes=10, **options))
    add("vit", lambda: models.VisionTransformer(64, 16, 2, 4, 64, 96, num_classes=10))


def language():
    import transformers as t

    common = dict(vocab_size=97, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64)
    decoder = common | dict(num_key_value_heads=2, use_cache=False)
    length = dict(max_position_embeddings=40)
    models = {
        "albert": (t.AlbertModel, t.AlbertConfig(**common, **length, embedding_size=16)),
        "bert": (t.BertModel, t.BertConfig(**common, **length)),
        "deberta_v2": (t.DebertaV2Model, t.DebertaV2Config(**common, **length)),
        "distilbert": (t.DistilBertModel, t.DistilBertConfig(vocab_size=97, dim=32, n_layers=2, n_heads=4, hidden_dim=64, **length)),
        "electra": (t.ElectraModel, t.ElectraConfig(**common, **length, embedding_size=16)),
        "gemma": (t.GemmaForCausalLM, t.GemmaConfig(**decoder, head_dim=8)),
        "gpt2": (t.GPT2LMHeadModel, t.GPT2Config(vocab_size=97, n_embd=32, n_layer=2, n_head=4, n_positions=40, use_cache=False)),
        "llama": (t.LlamaForCausalLM, t.LlamaConfig(**decoder)),
        "mistral": (t.MistralForCausalLM, t.MistralConfig(**decoder)),
        "opt": (t.OPTForCausalLM, t.OPTConfig(
            vocab_size=97, hidden_size=32, num_hidden_layers=2, ffn_dim=64, num_attention_heads=4, use_cache=False,
            word_embed_proj_dim=32, **length)),
        "phi3": (t.Phi3ForCausalLM, t.Phi3Config(**decoder, pad_token_id=0)),
        "qwen2": (t.Qwen2ForCausalLM, t.Qwen2Config(**decoder)),
        "roberta": (t.RobertaModel, t.RobertaConfig(**common, **length)),
        "t5_encoder": (t.T5EncoderModel, t.T5Config(vocab_size=97, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4)),
    }
    for name, (kind, config) in models.items():
        make = lambda kind=kind, config=config: kind(config)
        PROGRAMS[name] = (make, lambda n, m: {"input_ids": indices(90, n, m)}, {"input_ids": {0: OPEN, 1: OPEN}}, [(2, 7), (3, 11)])


def drawn(module):
    """Draws everything anew: with initial values a part that is left out may not show."""
    generator = torch.Generator().manual_seed(1)
    for name, x in [*module.named_parameters(), *module.named_buffers()]:
        if not x.is_floating_point():
            continue
        uniform = torch.rand(x.shape, generator=generator)
        with torch.no_grad():
            if "var" in name or (x.dim() <= 1 and "weight" in name):
                x.copy_(uniform + 0.5)
            elif x.dim() <= 1:
                x.copy_(uniform - 0.5)
            else:
                x.copy_(torch.randn(x.shape, generator=generator) / x[0].numel() ** 0.5)


def arrays(kind, structure):
    tensors = [x for x in pytree.tree_leaves(structure) if isinstance(x, torch.Tensor)]
    return {f"{kind}_{at:02}": x.detach().numpy() for at, x in enumerate(tensors)}


def written(folder, name, program):
    make, inputs, dims, sizes = program
    torch.manual_seed(0)
    module = make().eval()
    drawn(module)
    exported = torch.export.export(module, (), inputs(*sizes[0]), dynamic_shapes=dims, strict=False)
    for at, size in enumerate(sizes):
        given = inputs(*size)
        with torch.no_grad():
            results = module(**given)
        # An input that `forward` writes is as it was.
        np.savez(folder / f"{name}_{at}.npz", **arrays("in", inputs(*size)), **arrays("out", results))
    torch.export.save(exported, folder / f"{name}.pt2")


def main():
    folder = pathlib.Path(next(a for a in sys.argv[1:] if not a.startswith("--")))
    only = sys.argv[sys.argv.index("--only") + 1] if "--only" in sys.argv else ""
    folder.mkdir(parents=True, exist_ok=True)
    small()
    programs = dict(SMALL)
    if "--small" not in sys.argv:
        vision()
        language()
        programs = PROGRAMS
    made, left = 0, []
    for name, program in programs.items():
        if only in name and not (folder / f"{name}.pt2").exists():
            try:
                written(folder, name, program)
            except Exception as error:
                left.append(name)
                print(f"left out {name}: {str(error)[:200]}", flush=True)
                continue
        made += only in name
    print(f"programs {made} left_out {len(left)}")


if __name__ == "__main__":
    main()
