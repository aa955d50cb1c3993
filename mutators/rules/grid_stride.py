"""The rule that makes a fixed number of blocks walk over all elements, instead of one thread an element."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from tree_sitter import Node

from mutators.rules import headers, syntax
from mutators.rules.headers import Mapped
from mutators.rules.syntax import Function, Rewrite, Unfit

WAVES = [1, 2, 4, 8, 16, 32]
"""Blocks per multiprocessor."""
_GLOBAL_INDEX = re.compile(r"blockIdx\.x\*blockDim\.x\+threadIdx\.x|threadIdx\.x\+blockIdx\.x\*blockDim\.x")
_FORBIDDEN = re.compile(r"\b(?:__sync\w+|__shfl\w*|__shared__|return|gridDim|cooperative_groups)\b")


@dataclass(frozen=True)
class GridStride:
    """Turn `int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) …` into a loop over i with the grid's stride.

    Only where this is the kernel's whole body, so that nothing else knows how many blocks there are.
    """

    def apply(self, source: str, rng: np.random.Generator) -> Rewrite | None:
        """Return the kernel with a grid-stride loop and a tunable number of blocks, or None where it does not fit."""
        try:
            mapping = headers.read(source)
            for kernel in syntax.kernels(syntax.parse(source)):
                edits = _edits(kernel)
                if edits is not None:
                    waves = _limit_grid(source, mapping, kernel)
                    return headers.write(syntax.edit(source, edits), mapping, f"{kernel.name}: {waves} blocks stride")
        except Unfit:
            pass
        return None


def _edits(kernel: Function) -> list[tuple[int, int, str]] | None:
    """Return the edits that make the loop, or None where the body has another shape."""
    statements = syntax.named(kernel.body)
    if len(statements) != 2 or _FORBIDDEN.search(syntax.text(kernel.body)):
        return None
    declaration, test = statements
    index = _index(declaration)
    if index is None or test.type != "if_statement" or test.child_by_field_name("alternative") is not None:
        return None
    body, condition = syntax.field(test, "consequence"), syntax.text(syntax.field(test, "condition"))
    if not re.match(rf"\(\s*{index}\s*<\s*[A-Za-z_]\w*\s*\)$", condition) or _writes(body, index):
        return None
    start, count = syntax.text(declaration), syntax.text(body)
    if re.search(r"\b(?:blockIdx|threadIdx|blockDim)\b", count):
        return None
    head = f"for ({start} {condition[1:-1].strip()}; {index} += blockDim.x * gridDim.x) "
    return [(declaration.start_byte, body.start_byte, head)]


def _index(declaration: Node) -> str | None:
    if declaration.type != "declaration" or syntax.text(declaration).startswith("const"):
        return None
    declarators = declaration.children_by_field_name("declarator")
    value = declarators[0].child_by_field_name("value") if len(declarators) == 1 else None
    if value is None or not _GLOBAL_INDEX.fullmatch("".join(syntax.text(value).split())):
        return None
    return syntax.text(syntax.declared(declarators[0]))


def _writes(body: Node, name: str) -> bool:
    for node in syntax.walk(body):
        if node.type in ("assignment_expression", "update_expression"):
            target = syntax.field(node, "left" if node.type == "assignment_expression" else "argument")
            if syntax.text(target) == name:
                return True
    return False


def _limit_grid(source: str, mapping: Mapped, kernel: Function) -> str:
    name = syntax.free_name("WAVES", syntax.words(source))
    launches = headers.launches_of(mapping, kernel.name)
    grids = [headers.extent(launch, "grid") for launch in launches]
    if not launches or any(grid[1:] != ["1", "1"] for grid in grids) or "cluster" in mapping:
        raise Unfit("the grid has more than one axis")
    headers.add_tunable(mapping, name, list(WAVES), lambda _: 8)
    for launch, grid in zip(launches, grids, strict=True):
        headers.set_extent(launch, "grid", [f"min({grid[0]}, num_sms * {name})"])
    return name
