"""The rule that exchanges the roles of x and y: which index neighbouring threads differ in."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from tree_sitter import Node

from mutators.rules import headers, shapes, syntax
from mutators.rules.headers import Mapped
from mutators.rules.syntax import Function, Rewrite, Unfit

_WARP_WORDS = re.compile(
    r"__shfl|__ballot|__any_sync|__all_sync|__reduce|__match|__activemask|warpSize|__syncwarp|wmma"
)
_BUILTINS = ("threadIdx", "blockIdx", "blockDim", "gridDim")


@dataclass(frozen=True)
class SwapAxes:
    """Exchange x and y of `threadIdx`, `blockIdx`, `blockDim` and `gridDim`, and of block and grid in the header."""

    def apply(self, source: str, rng: np.random.Generator) -> Rewrite | None:
        """Return the kernel with x and y exchanged, or None where it is not two-dimensional or knows its warps."""
        try:
            mapping = headers.read(source)
            kernels = [k for k in syntax.kernels(syntax.parse(source)) if _fits(source, mapping, k)]
            if not kernels or mapping.get("cluster") is not None:
                return None
            kernel = kernels[int(rng.integers(len(kernels)))]
            for launch in headers.launches_of(mapping, kernel.name):
                for key in ("block", "grid"):
                    x, y, z = headers.extent(launch, key)
                    headers.set_extent(launch, key, [y, x, z])
            edits = [(n.start_byte, n.end_byte, _swapped(n)) for n in syntax.walk(kernel.body) if _is_index(n)]
            return headers.write(syntax.edit(source, edits), mapping, f"{kernel.name}: x and y exchanged")
        except Unfit:
            return None


def _fits(source: str, mapping: Mapped, kernel: Function) -> bool:
    if _WARP_WORDS.search(source) or "cooperative_groups" in source:
        return False
    helpers = [f for f in syntax.functions(syntax.parse(source)) if "__global__" not in syntax.text(f)]
    macros = [n for n in syntax.walk(syntax.parse(source)) if n.type in ("preproc_def", "preproc_function_def")]
    if any(builtin in syntax.text(node) for node in (*helpers, *macros) for builtin in _BUILTINS):
        return False
    if any(
        n.type == "identifier" and syntax.text(n) in _BUILTINS and not _is_part(n) for n in syntax.walk(kernel.body)
    ):
        return False
    launches = headers.launches_of(mapping, kernel.name)
    return bool(launches) and all("1" not in headers.extent(launch, "block")[:2] for launch in launches)


def _is_part(node: Node) -> bool:
    return node.parent is not None and node.parent.type == "field_expression"


def _is_index(node: Node) -> bool:
    return any(shapes.is_member(node, builtin, axis) for builtin in _BUILTINS for axis in "xy")


def _swapped(node: Node) -> str:
    other = "y" if syntax.text(syntax.field(node, "field")) == "x" else "x"
    return f"{syntax.text(syntax.field(node, 'argument'))}.{other}"
