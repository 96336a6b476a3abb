"""Writes partitions.txt: random graphs, which of their calls are supported, and how many partitions torch.fx makes.

    python fx-core/tests/partition/torch_partitions.py

A line per graph: the count, then each call as its inputs (`x` or the number of a call) and `+` where it is supported.
"""

import operator
import random
from pathlib import Path

import torch
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from torch.fx.passes.operator_support import OperatorSupportBase

GRAPHS = 200


def main():
    chance = random.Random(2026)
    lines = []
    for number in range(GRAPHS):
        size = chance.randint(3, 40)
        reach = chance.choice([3, 8, 40])
        share = chance.choice([0.5, 0.7, 0.9])
        graph = torch.fx.Graph()
        x = graph.placeholder("x")
        calls, texts, supported = [], [], set()
        for at in range(size):
            inputs = []
            for _ in range(chance.choice([1, 2, 2])):
                low = max(-1, at - reach)
                inputs.append(chance.randint(low, at - 1))
            values = [x if i < 0 else calls[i] for i in inputs]
            node = graph.call_function(operator.neg if len(values) == 1 else operator.add, tuple(values))
            calls.append(node)
            is_supported = chance.random() < share
            if is_supported:
                supported.add(node.name)
            texts.append(",".join("x" if i < 0 else str(i) for i in inputs) + ("+" if is_supported else ""))
        graph.output(tuple(node for node in calls if not node.users))

        class Support(OperatorSupportBase):
            def is_node_supported(self, submodules, node):
                return node.name in supported

        module = torch.fx.GraphModule({}, graph)
        partitioner = CapabilityBasedPartitioner(module, Support(), allows_single_node_partition=True)
        lines.append(f"{len(partitioner.propose_partitions())} {' '.join(texts)}")
    path = Path(__file__).with_name("partitions.txt")
    path.write_text("\n".join(lines) + "\n")
    print(f"{path}: {len(lines)} graphs")


if __name__ == "__main__":
    main()
