"""The rule that gives each thread the work of several, in lockstep (see `lockstep`): fewer threads, more reuse."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from mutators.rules import headers, syntax
from mutators.rules.block_size import name_block
from mutators.rules.headers import Mapped
from mutators.rules.lockstep import Lockstep
from mutators.rules.syntax import Function, Rewrite, Unfit
from mutators.rules.variables import Axis

ITEMS = [1, 2, 4, 8, 16, 32, 64]
"""Items a thread may do; what does not divide the block is ruled out by a requirement."""
_FIRST = (4, 8)
"""What is tried first: one of these, or the largest that divides."""


@dataclass(frozen=True)
class Coarsen:
    """Let a thread do several neighbours' work along one axis, or along two.

    The block keeps the elements it covers and has fewer threads, so that the grid stays as it is. A thread's items lie
    side by side (loads of one thread become wide) or a block's threads apart (loads of neighbours stay together).
    """

    def apply(self, source: str, rng: np.random.Generator) -> Rewrite | None:
        """Return the kernel with one more tunable of items per thread, or two; None where it does not fit."""
        try:
            return self._apply(source, rng)
        except Unfit:
            return None

    def _apply(self, source: str, rng: np.random.Generator) -> Rewrite | None:
        kernels = syntax.kernels(syntax.parse(source))
        wishes = [(kernel.name, axis) for kernel in kernels for axis in "xy"]
        for index in rng.permutation(len(wishes)):
            name, axis = wishes[int(index)]
            contiguous = bool(rng.random() < 0.7)
            both = bool(rng.random() < 0.5)
            try:
                done = coarsened(source, name, axis, contiguous, rng)
            except Unfit:
                continue
            return self._second(done, name, "y" if axis == "x" else "x", rng) if both else done
        return None

    def _second(self, done: Rewrite, name: str, axis: str, rng: np.random.Generator) -> Rewrite:
        try:
            more = coarsened(done.source, name, axis, True, rng)
        except Unfit:
            return done
        return Rewrite(more.source, f"{done.note}; {more.note}")


def coarsened(source: str, kernel: str, axis_name: str, contiguous: bool, rng: np.random.Generator) -> Rewrite:
    """Return the source with one kernel's threads merged along one axis.

    Args:
        source: a kernel file.
        kernel: name of the `__global__` function.
        axis_name: x, y or z.
        contiguous: whether a thread's items are neighbours.
        rng: chooses the first number of items.

    Raises:
        Unfit: why it cannot be done.
    """
    mapping = headers.read(source)
    position = "xyz".index(axis_name)
    if any(headers.extent(launch, "block")[position].isdecimal() for launch in headers.launches_of(mapping, kernel)):
        try:
            name_block(source, mapping)
        except Unfit:
            mapping = headers.read(source)
    function = _find(source, kernel)
    taken = syntax.words(source) | set(mapping.get("tune", {}))
    items = syntax.free_name(f"ITEMS_{axis_name.upper()}", taken)
    axis = Axis(axis_name, items, syntax.free_name(f"item_{axis_name}", taken), contiguous)
    _merge_threads(mapping, kernel, position, items, rng)
    names = taken | {items, axis.item}
    body = syntax.indented(Lockstep(function, axis, set(mapping["tune"]), names).body())
    # Bounds that were written for the block as it was could now exceed what a device allows.
    bounds = [(n.start_byte, n.end_byte, "") for n in function.definition.children if n.type == "launch_bounds"]
    written = syntax.edit(source, [*bounds, (function.body.start_byte, function.body.end_byte, body)])
    spread = "side by side" if contiguous else "a block apart"
    return headers.write(written, mapping, f"{kernel}: {items} items per thread along {axis_name}, {spread}")


def _find(source: str, kernel: str) -> Function:
    for function in syntax.kernels(syntax.parse(source)):
        if function.name == kernel:
            return function
    raise Unfit(f"no kernel {kernel}")


def _merge_threads(mapping: Mapped, kernel: str, position: int, items: str, rng: np.random.Generator) -> None:
    """Divide the block of every launch of the kernel, and add the tunable and its requirements."""
    launches = headers.launches_of(mapping, kernel)
    sizes = [headers.extent(launch, "block")[position] for launch in launches]
    if not launches or "1" in sizes:
        raise Unfit("a block has one thread along this axis")
    if any(name.startswith("ITEMS_") for size in sizes for name in headers.names(size)):
        raise Unfit("its threads are merged along this axis already")
    wish = int(rng.choice(_FIRST))

    def default(config: Mapping[str, int]) -> int:
        values = [headers.value(size, config) for size in sizes]
        fitting = [n for n in ITEMS if n <= wish and all(v is not None and v % n == 0 for v in values)]
        return max(fitting, default=1)

    if default(headers.defaults(mapping)) == 1:
        raise Unfit("nothing divides the block's size")
    headers.add_tunable(mapping, items, list(ITEMS), default)
    for launch, size in zip(launches, sizes, strict=True):
        block = headers.extent(launch, "block")
        whole = size if size.isidentifier() or size.isdecimal() else f"({size})"
        block[position] = f"{whole} // {items}"
        headers.set_extent(launch, "block", block)
        headers.add_requirement(mapping, f"{whole} % {items} == 0")
