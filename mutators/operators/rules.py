"""The operator `rules`: offline rewrites of the first parent, without a model, a key or a network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from evo.records import ModelReply, MutationContext, Proposal, Relative
from mutators.rules.block_size import BlockSize
from mutators.rules.coarsen import Coarsen
from mutators.rules.grid_stride import GridStride
from mutators.rules.launch_bounds import LaunchBounds
from mutators.rules.qualifiers import Qualifiers
from mutators.rules.swap_axes import SwapAxes
from mutators.rules.syntax import Rewrite, Rule
from mutators.rules.unroll import Unroll
from mutators.rules.widen import Widen

_RULES: tuple[tuple[Rule, float], ...] = (
    (Coarsen(), 4.0),  # changes latencies by factors; the others by single percents to tens
    (BlockSize(), 1.0),
    (GridStride(), 1.0),
    (Qualifiers(), 1.0),
    (SwapAxes(), 1.0),
    (Unroll(), 1.0),
    (Widen(), 1.0),
    (LaunchBounds(), 0.5),
)
"""Every rule, with how often it comes first."""


@dataclass(frozen=True)
class Rules:
    """Apply one rule, or a few one after another, to the first parent; a pure function of context and seed.

    Attributes:
        most: rewrites in one step, at most; each further one is half as likely as the one before.
    """

    offline: ClassVar[bool] = True

    most: int = 3

    def step(self, context: MutationContext, history: tuple[ModelReply, ...] = ()) -> Proposal:
        """Return the rewritten parent, or a proposal without a source where no rule fits."""
        rng = np.random.default_rng(context.seed)
        source, notes = _source(context.parents[0]), list[str]()
        for _ in range(min(self.most, int(rng.geometric(0.5)))):
            rewrite = _first_fit(source, rng)
            if rewrite is not None:
                source, notes = rewrite.source, [*notes, rewrite.note]
        if not notes:
            return Proposal(None, "no offline rule fits this kernel")
        return Proposal(source, "; ".join(notes))


def _first_fit(source: str, rng: np.random.Generator) -> Rewrite | None:
    """Try the rules in a random order in which heavier ones tend to come first."""
    weights = np.array([weight for _, weight in _RULES])
    for index in rng.choice(len(_RULES), len(_RULES), replace=False, p=weights / weights.sum()):
        rewrite = _RULES[int(index)][0].apply(source, rng)
        if rewrite is not None:
            return rewrite
    return None


def _source(parent: Relative) -> str:
    """Return the parent with the launch configurations that tuning found, where it was tuned."""
    tuned = parent.evaluation.source if parent.evaluation is not None else ""
    return tuned or parent.source
