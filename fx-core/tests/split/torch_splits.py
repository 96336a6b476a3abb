"""Writes splits.txt: random graphs, the part of each call, and how torch.fx splits them.

    python fx-core/tests/split/torch_splits.py

A block per graph: its nodes, then a block per way of splitting, with the calls of the parent in their order, each part
as its inputs, nodes and outputs, and the paths that its nodes name.
"""

import operator
import random
from pathlib import Path

import torch
from torch.fx.passes.split_module import split_module
from torch.fx.passes.split_utils import split_by_tags

GRAPHS = 20


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Identity()


class Root(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.block = Block()
        self.w = torch.nn.Buffer(torch.ones(1))


def random_graph(chance, number):
    """A graph, the part of each call, and the graph's lines."""
    graph = torch.fx.Graph()
    size = chance.randint(4, 24)
    rise = chance.choice([0.1, 0.3, 0.6])
    given, lines = [], []
    for name in ["x", "y"]:
        given.append(graph.placeholder(name))
        lines.append(f"{name} placeholder")
    if number % 2 == 0:
        given.append(graph.get_attr("w"))
        lines.append("w get_attr w")
    values, part, level = list(given), {}, {}
    for _ in range(size):
        kind = chance.choice(["neg", "add", "add", "module"])
        inputs = [chance.choice(values[-8:]) for _ in range(2 if kind == "add" else 1)]
        if kind == "module":
            node = graph.call_module("block.layer", tuple(inputs))
        else:
            node = graph.call_function(getattr(operator, kind), tuple(inputs))
        # Never below the part of an input, so that parts do not need each other. Lower parts come later in the first
        # half of the graphs: their numbers fall.
        level[node] = max((level.get(i, 0) for i in inputs), default=0) + (chance.random() < rise)
        values.append(node)
        target = "block.layer" if kind == "module" else kind
        lines.append(f"{node.name} {'call_module' if kind == 'module' else 'call_function'} {target} "
                     + " ".join(i.name for i in inputs))
    top = max(level.values())
    # Several parts on one level, so that some do not need each other.
    lanes = chance.choice([1, 2])
    for at, node in enumerate(level):
        part[node.name] = (level[node] if number % 4 < 2 else top - level[node], 0)
    results = [node for node in level if not node.users]
    if lanes == 2:
        for node in results:
            part[node.name] = (part[node.name][0], 1)
    numbers = {key: at for at, key in enumerate(sorted(set(part.values())))}
    part = {name: numbers[key] for name, key in part.items()}
    graph.output(tuple(results))
    lines.append("output " + " ".join(node.name for node in results))
    return graph, part, lines


def arguments(node):
    names = []
    torch.fx.map_arg(node.args, lambda n: names.append(n.name))
    return names


def described(parent, paths, result):
    lines = []
    for node in parent.graph.nodes:
        if node.op == "call_module" and node.target in paths:
            lines.append(f"{node.name} call {node.target} " + " ".join(arguments(node)))
        elif node.op == "call_function":
            lines.append(f"{node.name} getitem {node.args[0].name} {node.args[1]}")
        elif node.op == "output":
            lines.append("output " + " ".join(arguments(node)))
        else:
            lines.append(f"{node.name} {node.op}")
    for path in paths:
        graph = getattr(parent, path).graph
        inputs = [n.name for n in graph.nodes if n.op == "placeholder"]
        nodes = [n.name for n in graph.nodes if n.op.startswith("call_")]
        reads = sorted({n.target for n in graph.nodes if n.op == "get_attr"})
        (returned,) = graph.output_node().args
        is_tuple = isinstance(returned, tuple)
        outputs = arguments(graph.output_node())
        lines.append(f"part {path}: {' '.join(inputs)} | {' '.join(nodes)} | {' '.join(outputs)} | {is_tuple} | {' '.join(reads)}")
    for new, old in result.items():
        lines.append(f"name {new.split('.')[0]} {old}")
    return lines


def main():
    chance = random.Random(2026)
    blocks, number = [], 0
    while number < GRAPHS:
        graph, part, lines = random_graph(chance, number)
        module = torch.fx.GraphModule(Root(), graph)
        affix = [None, "pp"][number % 2]
        ways = [(True, False), (False, True), (False, False)]
        block = [f"graph {number}"] + [f"{line} = {part[line.split()[0]]}" if line.split()[0] in part else line
                                       for line in lines]
        try:
            for keep_order, returns_tuple in ways:
                names = {}
                keep_names = not returns_tuple
                parent = split_module(
                    module, None, lambda node: part[node.name], names, keep_original_order=keep_order,
                    keep_original_node_name=True, keep_original_input_name=keep_names, partition_affix=affix,
                    tuple_return=returns_tuple)
                paths = sorted(parent.meta["partition_names"])
                block.append(f"split_module {keep_order} {returns_tuple} {keep_names} {affix}")
                block += described(parent, paths, names)
                for node in module.graph.nodes:
                    if hasattr(node, "_fx_partition"):
                        del node._fx_partition
        except (KeyError, RuntimeError):
            # keep_original_order takes an order in which a part comes before one that it needs.
            continue
        tags = [f"tag_{at}" for at in range(max(part.values()) + 1)]
        if number % 4 >= 2:
            tags.reverse()
        for node in module.graph.nodes:
            if node.name in part:
                node.tag = f"tag_{part[node.name]}"
        try:
            parent, names = split_by_tags(module, tags, return_fqn_mapping=True)
        except AssertionError:
            continue
        block.append("split_by_tags " + " ".join(tags))
        inverse = {f"{new}": old for old, new in names.items()}
        block += described(parent, sorted(tags), {})
        blocks.append("\n".join(block))
        number += 1
    path = Path(__file__).with_name("splits.txt")
    path.write_text("\n\n".join(blocks) + "\n")
    print(f"{path}: {len(blocks)} graphs")


if __name__ == "__main__":
    main()
