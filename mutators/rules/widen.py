"""The rule that lets tuning look further: one tunable gets a larger or a smaller value."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mutators.rules import headers, syntax
from mutators.rules.syntax import Rewrite, Unfit

MOST_VALUES = 10
LARGEST = 1024
"""No block has more threads along one axis, and no tunable of the rules means anything else that large."""


@dataclass(frozen=True)
class Widen:
    """Add twice the largest or half the smallest value of one tunable whose values are powers of two."""

    def apply(self, source: str, rng: np.random.Generator) -> Rewrite | None:
        """Return the kernel with a wider space of launch configurations, or None where nothing can grow."""
        try:
            mapping = headers.read(source)
            least = syntax.smallest_block(source)
            tune = mapping.get("tune", {})
            choices = [(name, new) for name, values in tune.items() for new in _further(values, least)]
            if not choices:
                return None
            name, new = choices[int(rng.integers(len(choices)))]
            mapping["defaults"] = headers.defaults(mapping)
            tune[name] = sorted([*tune[name], new])
            return headers.write(source, mapping, f"{name} may be {new}")
        except Unfit:
            return None


def _further(values: list[int], least: int) -> list[int]:
    powers = all(value > 0 and value & (value - 1) == 0 for value in values)
    if not powers or len(values) >= MOST_VALUES:
        return []
    larger, smaller = 2 * max(values), min(values) // 2
    return [value for value in (larger, smaller) if least <= value <= LARGEST]
