"""Workloads: found by name, read from a folder, their inputs drawn, their references run, new ones scaffolded."""

from evo.workload.inputs import draw_inputs
from evo.workload.library import load, names, public
from evo.workload.reference import Expected, expected
from evo.workload.sizes import bytes_moved, flops, nbytes, scalars, shape, terms

__all__ = [
    "Expected",
    "bytes_moved",
    "draw_inputs",
    "expected",
    "flops",
    "load",
    "names",
    "nbytes",
    "public",
    "scalars",
    "shape",
    "terms",
]
