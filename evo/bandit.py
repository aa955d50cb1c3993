"""Which operator, asking which model, is worth asking: a bandit over those pairs, by improvement per cost.

Adaptive operator selection by probability matching (Goldberg 1990; Fialho, Da Costa, Schoenauer and Sebag 2010,
"Analyzing bandit-based adaptive operator selection mechanisms"), with costs as in a budgeted bandit (Tran-Thanh et al.
2012) and old outcomes discounted as in discounted UCB (Garivier and Moulines 2011). The shares are in closed form, a
pure function of the outcomes in their order; nothing is drawn here, and no clock is read.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

Arm = tuple[str, int]
"""An operator, and the index of the model that it asks; -1 for one that asks none."""

AUTOMATIC_ABOVE = 200  # evaluations; a run with fewer ends before the shares of some ten arms mean anything
FLOOR = 1 / 4  # of its configured share that an arm always keeps: what gained nothing yet may be what helps later
SHARPNESS = 3.0  # shares follow rates to this power: 1 leaves too much with poor arms (benchmarks/perf/credit.py)
MEMORY = 0.99  # weight of an outcome falls by this with each one after it: the last hundred or so decide
DOUBT = 5.0  # average outcomes that every arm begins with, so that a lucky first child does not take over
TASK_USD = 0.005  # six seconds of a GPU at $3 an hour: what screening, tuning and timing take, whoever wrote the kernel
TOKEN_USD = 1e-6  # for models without a known price: what a token of the default model costs, prompts and replies mixed


@dataclass(frozen=True)
class Credit:
    """What each arm has gained and cost, old outcomes discounted.

    Attributes:
        gains: by arm, sums of log(bar / ratio).
        costs: by arm, sums in US dollars.
        outcomes: how many there were, discounted.
    """

    gains: Mapping[Arm, float] = field(default_factory=dict)
    costs: Mapping[Arm, float] = field(default_factory=dict)
    outcomes: float = 0.0

    def told(self, arm: Arm, gained: float, cost_usd: float) -> Credit:
        """Return it after one more task of an arm.

        Args:
            arm: that was asked.
            gained: see `gain`.
            cost_usd: see `cost`.
        """
        gains, costs = ({known: MEMORY * value for known, value in old.items()} for old in (self.gains, self.costs))
        gains[arm] = gains.get(arm, 0.0) + gained
        costs[arm] = costs.get(arm, 0.0) + cost_usd
        return Credit(gains, costs, MEMORY * self.outcomes + 1)

    def shares(self, weights: Sequence[tuple[Arm, float]]) -> list[tuple[Arm, float]]:
        """Return the arms with their probabilities: floor + rest, the rest by weight × rate ** sharpness.

        Args:
            weights: the arms that can be drawn, with their weights in the config.
        """
        total = sum(weight for _, weight in weights)
        pulls = [weight * self._rate(arm) ** SHARPNESS for arm, weight in weights]
        if not sum(pulls) > 0:
            return [(arm, weight / total) for arm, weight in weights]
        shares = zip(weights, pulls, strict=True)
        return [(arm, FLOOR * weight / total + (1 - FLOOR) * pull / sum(pulls)) for (arm, weight), pull in shares]

    def _rate(self, arm: Arm) -> float:
        """Return an arm's gain per cost relative to that of all, drawn towards 1 where little is known of it."""
        gain, cost = sum(self.gains.values()), sum(self.costs.values())
        if not gain > 0:
            return 1.0
        doubt = DOUBT / self.outcomes
        mine = (self.gains.get(arm, 0.0) + doubt * gain) / (self.costs.get(arm, 0.0) + doubt * cost)
        return mine / (gain / cost)


def switched_on(credit: Literal["auto", "on", "off"], evaluations: int) -> bool:
    """Say whether a run of this many evaluations uses credit."""
    return credit == "on" or (credit == "auto" and evaluations > AUTOMATIC_ABOVE)


def gain(bar: float, ratio: float | None) -> float:
    """Return what a task gained: log(bar / ratio), at least 0.

    Args:
        bar: the ratio of the fastest parent.
        ratio: of the candidate; None where there is none or it has no score: that gains nothing.
    """
    return 0.0 if ratio is None else max(0.0, math.log(bar / ratio))


def cost(cost_usd: float, unpriced_tokens: int) -> float:
    """Return what a task cost in US dollars: its model calls, and the time of an evaluator.

    Every task is charged for an evaluation, whatever became of it: a duplicate took a place that others could have had.

    Args:
        cost_usd: of the model calls whose price is known.
        unpriced_tokens: of the others.
    """
    return cost_usd + TOKEN_USD * unpriced_tokens + TASK_USD
