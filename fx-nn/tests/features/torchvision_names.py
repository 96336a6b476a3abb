"""Writes names.txt: the names that torchvision gives to the nodes of six models, for training and for evaluation.

    python fx-nn/tests/features/torchvision_names.py

A block per model and mode: its title, then a name per line.
"""

import warnings
from pathlib import Path

import torchvision
from torchvision.models.feature_extraction import get_graph_node_names

MODELS = ["resnet18", "resnet50", "alexnet", "vgg11_bn", "mobilenet_v2", "vit_b_16"]


def main():
    warnings.simplefilter("ignore")
    blocks = []
    for model in MODELS:
        train, evaluation = get_graph_node_names(getattr(torchvision.models, model)(weights=None))
        blocks.append("\n".join([f"{model} train", *train]))
        blocks.append("\n".join([f"{model} eval", *evaluation]))
    path = Path(__file__).with_name("names.txt")
    path.write_text("\n\n".join(blocks) + "\n")
    print(f"{path}: {len(blocks)} lists")


if __name__ == "__main__":
    main()
