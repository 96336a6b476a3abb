"""Writes `names.txt`: the functions and layers of PyTorch 2.15 that the example `coverage` counts.

The list has the documented callables of `torch`, `torch.nn.functional` and `torch.nn`, without what fx leaves out:
operations in place, and sparse, quantised, complex, distributed, lazy and JIT ones. Behind the name of a function of
`torch.nn.functional` stands that module.

    python tests/differential/names.py
"""

import inspect
import pathlib
import re

import torch
import torch.nn as nn
import torch.nn.functional as F

# Why a name is not in the list, and the whole names for which that holds.
LEFT_OUT = {
    "in place": r".*_",
    "sparse": r".*sparse.*|hspmm|sspaddmm|smm|(col|row|ccol|crow)_indices_copy|indices_copy|values_copy",
    "quantised": r".*quantize.*",
    "complex": r"complex|conj.*|(is|resolve)_conj|is_complex|imag|real|angle|polar|view_as_(complex|real)(_copy)?",
    "distributed": r"SyncBatchNorm|DataParallel",
    "lazy": r"Lazy.*|Uninitialized.*",
    "JIT": r"import_ir_module.*|parse_.*|merge_type_from_type_comment|unify_type_list|fork|wait",
    "private": r"_.*|.*torch_function.*|boolean_dispatch|assert_int_or_pair",
}


def documented(module, classes):
    """The public callables of a module that have a text."""
    for name in dir(module):
        item = getattr(module, name)
        own = getattr(item, "__module__", None) or "torch"
        if callable(item) and inspect.isclass(item) == classes and (item.__doc__ or "").strip() and own.startswith("torch"):
            yield name


def main():
    assert torch.__version__.startswith("2.15"), f"the list is of PyTorch 2.15, not {torch.__version__}"
    functional = {*documented(F, False)}
    names = {*documented(torch, False), *functional, *documented(nn, True)}
    left_out = {name for name in names for rule in LEFT_OUT.values() if re.fullmatch(rule, name)}
    kept = sorted(names - left_out)
    pathlib.Path(__file__).with_name("names.txt").write_text(
        "".join(f"{name} torch.nn.functional\n" if name in functional else f"{name}\n" for name in kept)
    )
    print(f"kept {len(kept)} names, left out {len(left_out)}")


if __name__ == "__main__":
    main()
