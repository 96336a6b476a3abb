"""The time of the partitioner beside that of torch.fx, on the same graph: 2,000 calls, a tenth of them not supported.

    python fx-core/tests/partition/beside_torch.py [CALLS]

Torch's time grows with the cube of the calls: 2,000 take minutes.
"""

import operator
import subprocess
import sys
import time
from pathlib import Path

import torch
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from torch.fx.passes.operator_support import OperatorSupportBase


class NoQuotients(OperatorSupportBase):
    def is_node_supported(self, submodules, node):
        return node.op == "call_function" and node.target is not operator.truediv


def chain(nodes):
    """The graph of `benches/split.rs`."""
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    at = before = x
    for step in range(1, nodes):
        if step % 10 == 0:
            function, operand = operator.truediv, before
        elif step % 10 == 4:
            function, operand = operator.add, before
        else:
            function, operand = operator.mul, x
        at = graph.call_function(function, (at, operand))
        if step % 7 == 0:
            before = at
    graph.output(at)
    return torch.fx.GraphModule({}, graph)


def main():
    nodes = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    module = chain(nodes)
    start = time.perf_counter()
    partitioner = CapabilityBasedPartitioner(module, NoQuotients(), allows_single_node_partition=True)
    parts = partitioner.propose_partitions()
    seconds = time.perf_counter() - start
    bench = ["cargo", "bench", "-q", "-p", "fx-core", "--bench", "split", "--", "partition"]
    root = Path(__file__).parents[3]
    lines = subprocess.run(bench, cwd=root, check=True, capture_output=True, text=True).stdout
    print("\n".join(line for line in lines.splitlines() if line.startswith("split.partition/2000 ")))
    print(f"torch.partition/{nodes} {seconds:.4f} s, {len(parts)} parts")


if __name__ == "__main__":
    main()
