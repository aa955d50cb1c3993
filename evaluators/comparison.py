"""Which of two kernels is faster: interleaved blocks, each job a process of its own, until the statistics can tell.

The only measurement that changes a run's champion. How many blocks are enough is decided by `evo.statistics`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from evaluators import timing
from evaluators.baseline import Baseline
from evaluators.bench import Outcome
from evaluators.builder import Programs
from evaluators.lab import CORRECTNESS_TIMEOUT_S, Lab, time_limit_s
from evo.records import Case, Comparison, Role, Status
from evo.statistics import SequentialComparison, alpha_for

JOB_S = 0.04
"""Wall time for the samples of one kernel on one case in half a block."""
WARM_S = 0.01
"""Warming up in each job: for page faults, not for a clock, since blocks follow each other without a pause."""
LAUNCHES = 2
"""Timed launches that a kernel gets in half a block however slow it is: more blocks tell more than more launches."""
CONFIRM_BLOCKS = (5, 10)
"""Fewest and most blocks of the second process."""


@dataclass(frozen=True)
class Contender:
    """One of the two kernels."""

    id: int
    programs: Programs | Baseline


class _Failed(Exception):
    """A job of one contender failed, which ends the comparison."""

    def __init__(self, contender: Contender, outcome: Outcome) -> None:
        self.contender = contender
        self.outcome = outcome


def compare(lab: Lab, challenger: Contender, champion: Contender, number: int) -> Comparison:
    """Compare two kernels that are both right; before promotion once more in a second process.

    Args:
        lab: the device.
        challenger: the kernel that may become champion.
        champion: the kernel that is.
        number: counts the run's comparisons from 1; sets the level α.
    """
    try:
        return _Blocks(lab, challenger, champion, number).verdict()
    except _Failed as failed:
        who = "challenger" if failed.contender is challenger else "champion"
        outcome = failed.outcome
        message = f"the {who} failed while it was measured: {outcome.message}"
        return Comparison(challenger.id, champion.id, outcome.status, message=message)


class _Blocks:
    def __init__(self, lab: Lab, challenger: Contender, champion: Contender, number: int) -> None:
        self._lab = lab
        self._challenger = challenger
        self._champion = champion
        self._cases = lab.cases(Role.PERFORMANCE)
        self._alpha = alpha_for(number)
        self._rng = np.random.default_rng((lab.setup.seed, number))
        self._guesses: dict[tuple[int, str], float] = {}
        self._limits: dict[str, float] = {}

    def verdict(self) -> Comparison:
        """Measure until the comparison ends, confirm a promotion, and say what came of it."""
        self._lab.supervisor.settle()
        first = self._run(SequentialComparison(self._alpha, rng=self._rng))
        found = first.verdict()
        blocks, promoted, message = first.blocks, found.promoted, ""
        if promoted:
            self._lab.supervisor.renew()
            least, most = CONFIRM_BLOCKS
            second = self._run(SequentialComparison(0.05, min_blocks=least, max_blocks=most, rng=self._rng))
            blocks, promoted = blocks + second.blocks, second.verdict().promoted
            message = "" if promoted else "a second process did not confirm it"
        elif first.finished:
            message = "not faster by enough to tell it from chance"
        return Comparison(
            self._challenger.id,
            self._champion.id,
            Status.OK,
            ratio=found.ratio,
            low=found.low,
            high=found.high,
            confidence=found.confidence,
            blocks=blocks,
            promoted=promoted,
            cases=first.case_ratios(),
            message=message,
        )

    def _run(self, comparison: SequentialComparison) -> SequentialComparison:
        while not comparison.finished:
            salt = 1 + comparison.blocks % 3
            comparison.add({case.name: self._block(case, salt) for case in self._cases})
        return comparison

    def _block(self, case: Case, salt: int) -> float:
        """Return log(challenger / champion) of one block: challenger, champion, champion, challenger."""
        order = (self._challenger, self._champion, self._champion, self._challenger)
        logs = [math.log(self._latency_us(contender, case, salt)) for contender in order]
        return (logs[0] + logs[3] - logs[1] - logs[2]) / 2

    def _latency_us(self, contender: Contender, case: Case, salt: int) -> float:
        key = (contender.id, case.name)
        settings = self._lab.setup.timing
        rules = timing.Rules(settings.warmup, WARM_S, settings.launches, LAUNCHES, JOB_S)
        limit_s = self._limits.get(case.name, CORRECTNESS_TIMEOUT_S)
        guess_us = self._guesses.get(key)
        taken = self._lab.time(contender.programs, case, rules, salt=salt, guess_us=guess_us, limit_s=limit_s)
        if taken.failed is not None:
            raise _Failed(contender, taken.failed)
        self._guesses.setdefault(key, taken.median_us)
        self._limits.setdefault(case.name, time_limit_s(taken))
        return max(taken.median_us, 1e-3)
