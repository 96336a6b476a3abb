"""The JAX side of `train.py`: a step under `jit` whose parameters and state are donated. It answers lines of standard
input: `load FOLDER` (weights and inputs that `train.py` wrote), `step COUNT` (the time of each step in ms), `state FILE`
(the parameters as they are)."""

import sys
import time
from pathlib import Path

import jax
import jax.numpy as jnp
from safetensors.numpy import load_file, save_file

LR, DECAY, EPS, BETAS = 1e-3, 0.01, 1e-4, (0.9, 0.999)


def linear(p, path, x):
    y = x @ p[f"{path}.weight"].T
    return y + p[f"{path}.bias"] if f"{path}.bias" in p else y


def layer_norm(p, path, x, eps=1e-5):
    centered = x - x.mean(-1, keepdims=True)
    scaled = centered * jax.lax.rsqrt(jnp.square(centered).mean(-1, keepdims=True) + eps)
    return scaled * p[f"{path}.weight"] + p[f"{path}.bias"]


def conv(p, path, x, stride=1, padding=0, groups=1):
    y = jax.lax.conv_general_dilated(
        x, p[f"{path}.weight"], (stride, stride), [(padding, padding)] * 2, feature_group_count=groups
    )
    return y + p[f"{path}.bias"][:, None, None] if f"{path}.bias" in p else y


def batch_norm(p, buffers, after, path, x):
    """In training; `after` gets the statistics after it."""
    mean, var = x.mean((0, 2, 3)), x.var((0, 2, 3))
    count = x.size // x.shape[1]
    for name, found in (("running_mean", mean), ("running_var", var * count / (count - 1))):
        after[f"{path}.{name}"] = 0.9 * buffers[f"{path}.{name}"] + 0.1 * jax.lax.stop_gradient(found)
    scale = p[f"{path}.weight"] * jax.lax.rsqrt(var + 1e-5)
    return (x - mean[:, None, None]) * scale[:, None, None] + p[f"{path}.bias"][:, None, None]


def mlp(p, buffers, x):
    x = jax.nn.relu(linear(p, "0", x))
    return linear(p, "4", jax.nn.relu(linear(p, "2", x))), {}


def resnet18(p, buffers, x):
    after = {}

    def norm(path, x):
        return batch_norm(p, buffers, after, path, x)

    x = jax.nn.relu(norm("bn1", conv(p, "conv1", x, 2, 3)))
    padding = ((0, 0), (0, 0), (1, 1), (1, 1))
    x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 1, 3, 3), (1, 1, 2, 2), padding)
    for layer in range(1, 5):
        for block in range(2):
            path = f"layer{layer}.{block}"
            stride = 2 if layer > 1 and block == 0 else 1
            y = jax.nn.relu(norm(f"{path}.bn1", conv(p, f"{path}.conv1", x, stride, 1)))
            y = norm(f"{path}.bn2", conv(p, f"{path}.conv2", y, 1, 1))
            if f"{path}.downsample.0.weight" in p:
                x = norm(f"{path}.downsample.1", conv(p, f"{path}.downsample.0", x, stride))
            x = jax.nn.relu(x + y)
    return linear(p, "fc", x.mean((2, 3))), after


def gpt2(p, buffers, ids):
    batch, length = ids.shape
    x = p["wte.weight"][ids] + p["wpe.weight"][:length]
    width, heads = x.shape[-1], 12
    is_seen = jnp.tril(jnp.ones((length, length), bool))
    layers = 1 + max(int(name.split(".")[1]) for name in p if name.startswith("h."))
    for at in range(layers):
        path = f"h.{at}"
        parts = jnp.split(linear(p, f"{path}.attn.c_attn", layer_norm(p, f"{path}.ln_1", x)), 3, -1)
        q, k, v = (part.reshape(batch, length, heads, -1).transpose(0, 2, 1, 3) for part in parts)
        scores = q @ k.swapaxes(-1, -2) * (width // heads) ** -0.5
        y = jax.nn.softmax(jnp.where(is_seen, scores, -jnp.inf), -1) @ v
        y = y.transpose(0, 2, 1, 3).reshape(batch, length, width)
        x = x + linear(p, f"{path}.attn.c_proj", y)
        y = linear(p, f"{path}.mlp.c_fc", layer_norm(p, f"{path}.ln_2", x))
        x = x + linear(p, f"{path}.mlp.c_proj", jax.nn.gelu(y, approximate=True))
    return linear(p, "lm_head", layer_norm(p, "ln_f", x)), {}


def convnext_block(p, buffers, x):
    y = conv(p, "block.0", x, 1, 3, x.shape[1]).transpose(0, 2, 3, 1)
    y = jax.nn.gelu(linear(p, "block.3", layer_norm(p, "block.2", y, 1e-6)), approximate=False)
    return x + p["layer_scale"] * linear(p, "block.5", y).transpose(0, 3, 1, 2), {}


MODELS = {"mlp": mlp, "resnet18": resnet18, "gpt2": gpt2, "convnext_block": convnext_block}


def loss_of(model, p, buffers, x, y):
    found, after = model(p, buffers, x)
    if model is convnext_block:
        return jnp.square(found - y).mean(), after
    found = jax.nn.log_softmax(found.reshape(-1, found.shape[-1]))
    return -jnp.take_along_axis(found, y.reshape(-1, 1), 1).mean(), after


def step_of(model):
    def step(p, state, buffers, count, x, y):
        (loss, after), grads = jax.value_and_grad(lambda p: loss_of(model, p, buffers, x, y), has_aux=True)(p)
        new, moments = {}, {}
        for name, grad in grads.items():
            first, second = state[name]
            first = BETAS[0] * first + (1 - BETAS[0]) * grad
            second = BETAS[1] * second + (1 - BETAS[1]) * jnp.square(grad)
            root = jnp.sqrt(second) / jnp.sqrt(1 - BETAS[1] ** count)
            change = LR / (1 - BETAS[0] ** count) * first / (root + EPS)
            new[name] = p[name] * (1 - LR * DECAY) - change
            moments[name] = (first, second)
        return loss, new, moments, {**buffers, **after}

    return jax.jit(step, donate_argnums=(0, 1, 2))


class Loaded:
    def __init__(self, folder):
        model = MODELS[folder.name]
        state = load_file(str(folder / "model.safetensors"))
        inputs = load_file(str(folder / "inputs.safetensors"))
        is_buffer = lambda name: name.rsplit(".", 1)[-1] in ("running_mean", "running_var")
        is_other = lambda name: name.rsplit(".", 1)[-1] in ("num_batches_tracked", "mask", "pos")
        self.buffers = {name: jnp.asarray(x) for name, x in state.items() if is_buffer(name)}
        kept = {name: x for name, x in state.items() if not is_buffer(name) and not is_other(name)}
        self.parameters = {name: jnp.asarray(x) for name, x in kept.items()}
        self.state = {name: (jnp.zeros_like(x), jnp.zeros_like(x)) for name, x in self.parameters.items()}
        self.inputs = jnp.asarray(inputs["x"]), jnp.asarray(inputs["y"])
        self.run, self.count = step_of(model), 0

    def step(self):
        start = time.perf_counter()
        self.count += 1
        found = self.run(self.parameters, self.state, self.buffers, float(self.count), *self.inputs)
        loss, self.parameters, self.state, self.buffers = jax.block_until_ready(found)
        return (time.perf_counter() - start) * 1e3


def main():
    loaded = None
    for line in sys.stdin:
        command, argument = line.split()
        if command == "load":
            loaded, answer = Loaded(Path(argument)), "loaded"
        elif command == "step":
            answer = " ".join(f"{loaded.step():.3f}" for _ in range(int(argument)))
        else:
            save_file({name: jax.device_get(x) for name, x in loaded.parameters.items()}, argument)
            answer = "saved"
        print(answer, flush=True)


main()
