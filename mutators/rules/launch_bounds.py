"""The rule that tells the compiler how many threads a block has, so that it can plan registers for so many."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from mutators.rules import headers, syntax
from mutators.rules.headers import Mapped
from mutators.rules.syntax import Function, Rewrite, Unfit

_PLAIN = re.compile(r"[\w\s*+()/-]*")


@dataclass(frozen=True)
class LaunchBounds:
    """Add `__launch_bounds__` with the block's size, where that is known when the kernel is compiled."""

    def apply(self, source: str, rng: np.random.Generator) -> Rewrite | None:
        """Return the kernel with launch bounds, or None where none can be added."""
        try:
            mapping = headers.read(source)
            wanted = [kernel for kernel in syntax.kernels(syntax.parse(source)) if not _bounded(kernel)]
            bounds = {kernel.name: _threads(mapping, kernel) for kernel in wanted}
        except Unfit:
            return None
        fit = [kernel for kernel in wanted if bounds[kernel.name]]
        edits = [(k.declarator.start_byte, k.declarator.start_byte, f"{bounds[k.name]} ") for k in fit]
        names = ", ".join(kernel.name for kernel in fit)
        return Rewrite(syntax.edit(source, edits), f"{names}: launch bounds") if fit else None


def _bounded(kernel: Function) -> bool:
    return any(node.type == "launch_bounds" for node in kernel.definition.children)


def _threads(mapping: Mapped, kernel: Function) -> str:
    """Return the qualifier for a kernel, or "" where its launches differ or need more than tunables."""
    blocks = {tuple(headers.extent(launch, "block")) for launch in headers.launches_of(mapping, kernel.name)}
    if len(blocks) != 1:
        return ""
    parts = [part for part in blocks.pop() if part != "1"] or ["1"]
    known = set(mapping.get("tune", {}))
    if not all(headers.names(part) <= known and _PLAIN.fullmatch(part) for part in parts):
        return ""
    written = [part if re.fullmatch(r"\w+", part) else f"({part})" for part in parts]
    return f"__launch_bounds__({' * '.join(written).replace('//', '/')})"
