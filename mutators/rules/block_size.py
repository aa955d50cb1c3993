"""The rule that makes the threads of a block tunable: numbers in the header become names with values to try."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mutators.rules import headers, syntax
from mutators.rules.headers import Mapped
from mutators.rules.syntax import Rewrite, Unfit

_LARGEST = 256
"""Threads along one axis that are worth trying; the device's own limit is checked where a block is launched."""


@dataclass(frozen=True)
class BlockSize:
    """Turn the numbers of a block into tunables, wherever the header repeats them.

    A kernel whose code repeats the number is left alone, since its text relies on it.
    """

    def apply(self, source: str, rng: np.random.Generator) -> Rewrite | None:
        """Return the kernel with tunable block dimensions, or None."""
        try:
            mapping = headers.read(source)
            added = name_block(source, mapping)
            return headers.write(source, mapping, f"block size tunable: {', '.join(added)}") if added else None
        except Unfit:
            return None


def name_block(source: str, mapping: Mapped) -> list[str]:
    """Replace, in place, the numbers of every launch's block by tunables; returns their names, [] where none fits."""
    fixed = {syntax.text(node) for node in syntax.walk(syntax.parse(source)) if node.type == "number_literal"}
    launches = headers.launches(mapping)
    numbers = {part for launch in launches for part in headers.extent(launch, "block") if _is_size(part)}
    numbers -= fixed
    if len(launches) > 1:
        return [_name_everywhere(source, mapping, number) for number in sorted(numbers)]
    return _name_axes(source, mapping, numbers)


def _is_size(part: str) -> bool:
    return part.isdecimal() and int(part) >= syntax.SMALLEST_BLOCK


def _values(source: str, size: int) -> list[int]:
    """Return sizes to try instead of a power of two: more of them."""
    smallest = syntax.smallest_block(source)
    if size & (size - 1):
        raise Unfit(f"a block of {size} threads is no power of two")
    values = {1 << power for power in range(11) if smallest <= 1 << power <= _LARGEST}
    return sorted(values | {size})


def _name_everywhere(source: str, mapping: Mapped, number: str) -> str:
    """Replace a number in all expressions of the header: several launches must agree on it."""
    name = syntax.free_name("BLOCK", syntax.words(source))
    for launch in headers.launches(mapping):
        for key in ("block", "grid", "shared_bytes", "args"):
            if key in launch:
                launch[key] = headers.replace_name(launch[key], number, name)
    workspace: Any = mapping.get("workspace", {})
    if isinstance(workspace, dict):
        mapping["workspace"] = {k: headers.replace_name(v, number, name) for k, v in workspace.items()}
    elif workspace:
        raise Unfit("a workspace is given as a list")
    headers.add_tunable(mapping, name, _values(source, int(number)), _constant(int(number)))
    return name


def _name_axes(source: str, mapping: Mapped, numbers: set[str]) -> list[str]:
    """Replace the numbers of one launch axis by axis: block.x where it stands in grid.x, and so on."""
    block, grid = headers.extent(mapping, "block"), headers.extent(mapping, "grid")
    shared = str(mapping.get("shared_bytes", "0"))
    sized = [axis for axis in range(3) if block[axis] in numbers]
    several = sum(part != "1" for part in block) > 1
    added: list[str] = []
    for axis in sized:
        number = block[axis]
        mentioned = re.search(rf"(?<!\w){number}(?!\w)", shared) is not None
        if mentioned and block.count(number) > 1:
            raise Unfit("the shared memory's size mentions a number that two axes have")
        if _mentions(number, [grid[other] for other in range(3) if other != axis and block[other] != number]):
            raise Unfit("the grid mentions the block's size along another axis")
        name = syntax.free_name(f"BLOCK_{'XYZ'[axis]}" if several else "BLOCK", syntax.words(source) | set(added))
        grid[axis] = headers.replace_name(grid[axis], number, name)
        shared = headers.replace_name(shared, number, name)
        headers.add_tunable(mapping, name, _values(source, int(number)), _constant(int(number)))
        block[axis] = re.sub(rf"^{number}$", name, block[axis])
        added.append(name)
    headers.set_extent(mapping, "block", block)
    headers.set_extent(mapping, "grid", grid)
    if "shared_bytes" in mapping:
        mapping["shared_bytes"] = shared
    return added


def _constant(size: int) -> Callable[[Mapping[str, int]], int]:
    return lambda _: size


def _mentions(number: str, expressions: list[str]) -> bool:
    return any(re.search(rf"(?<!\w){number}(?!\w)", expression) for expression in expressions)
