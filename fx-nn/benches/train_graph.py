"""Trains the small GPT of the example `train_graph` by PyTorch, from the same weights and on the same text, and compares
the losses of all steps.

    pip install torch torchvision safetensors
    python fx-nn/benches/train_graph.py

It runs the example (`cargo run --release`), prints what that prints, then the largest difference of a loss. The exit code
is 1 if that is over 1e-4.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import torch
from safetensors.torch import load_file

import train_models as models

ROOT = Path(__file__).resolve().parents[2]
STEPS, BATCH, LENGTH, VOCABULARY = 50, 8, 64, 128
DIFFERENCE = 1e-4


def batch(text, step):
    """As the example cuts the text."""
    room = len(text) - LENGTH - 1
    rows = [(step * BATCH + row) * 7919 % room for row in range(BATCH)]
    rows = torch.tensor([[min(byte, VOCABULARY - 1) for byte in text[row : row + LENGTH + 1]] for row in rows])
    return rows[:, :-1], rows[:, 1:]


def main():
    text = (ROOT / "fx-nn/docs/transforms.md").read_bytes()
    with tempfile.TemporaryDirectory() as folder:
        command = ["cargo", "run", "--release", "-p", "fx-nn", "--example", "train_graph", "--", str(STEPS), folder]
        subprocess.run(command, cwd=ROOT, check=True)
        found = [float(line) for line in (Path(folder) / "losses.txt").read_text().split()]
        model = models.Gpt2(layers=2, width=64, heads=4, length=LENGTH, vocabulary=VOCABULARY)
        model.load_state_dict(load_file(str(Path(folder) / "model.safetensors")), strict=False)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01)
    worst = 0.0
    for step in range(STEPS):
        x, y = batch(text, step)
        loss = models.loss_of("gpt2", model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        worst = max(worst, abs(loss.item() - found[step]))
    print(f"max_abs_difference_from_torch: {worst:.1e}")
    sys.exit(worst > DIFFERENCE)


main()
