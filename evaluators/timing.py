"""How latencies are taken: how many samples, when to stop, what to distrust. Numbers only: nothing here launches.

The parts of the protocol that need a device (flush, poison, events, a pinned core) are the backends'.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import numpy as np

from evo.config import Timing
from evo.records import Latency, Status
from evo.statistics import median_interval

SETTLED = 0.005
"""A median whose relative standard error is below this needs no more samples."""
NOISY = 0.10
"""An interquartile range above this share of the median is a doubt."""
DRIFT = 0.05
"""An anchor that moved by more than this around a candidate is a doubt."""
Z_95 = 1.959964


class Shot(Protocol):
    """What one job of timed launches brought back."""

    @property
    def status(self) -> Status:
        """OK, or why the samples do not count."""
        ...

    @property
    def samples_us(self) -> tuple[float, ...]:
        """Latency of each timed launch, by the child's clock."""
        ...

    @property
    def wall_us(self) -> tuple[float, ...]:
        """The same by a clock that the candidate cannot reach; () where not taken."""
        ...

    @property
    def wall_s(self) -> float:
        """Wall time of the whole job, by the parent's clock."""
        ...


S = TypeVar("S", bound=Shot)


@dataclass(frozen=True)
class Rules:
    """How much measuring one case gets.

    Attributes:
        warmup: most untimed launches before the timed ones of a job.
        warm_s: time after which warming up ends sooner.
        launches: most timed launches.
        least: fewest, however slow the kernel is.
        budget_s: wall time after which no further samples are asked for.
        abandon_us: a median above this ends the measurement after its first round.
        rounds: jobs that the samples of a kernel are spread over whose latency is roughly known.
    """

    warmup: int
    warm_s: float
    launches: int
    least: int
    budget_s: float
    abandon_us: float = math.inf
    rounds: int = 3

    def warmups(self, guess_us: float | None) -> int:
        """Return how many launches warm a kernel up that takes about `guess_us`; one where nobody knows."""
        if guess_us is None or not self.warmup:
            return min(1, self.warmup)
        return max(1, min(self.warmup, math.ceil(self.warm_s * 1e6 / max(guess_us, 0.1))))


@dataclass(frozen=True)
class Measurement(Generic[S]):
    """Samples of one kernel on one case.

    Attributes:
        samples_us: latencies by the child's clock.
        wall_us: the same launches by a clock that the candidate cannot reach; () where not taken.
        wall_s: wall time of all jobs.
        last: the last job.
        failed: the job that ended the measurement, or None.
    """

    samples_us: tuple[float, ...]
    wall_us: tuple[float, ...]
    wall_s: float
    last: S
    failed: S | None = None

    @property
    def median_us(self) -> float:
        """Median of the samples, of which there is at least one unless `failed`."""
        return float(np.median(self.samples_us))

    @property
    def overhead_us(self) -> float | None:
        """Median of what the outer clock saw beyond the child's; None where there was no outer clock."""
        if not self.wall_us:
            return None
        return float(np.median(np.subtract(self.wall_us, self.samples_us)))


def rules(timing: Timing, budget_s: float, least: int = 5) -> Rules:
    """Return the rules for a final measurement: at most `budget_s` of wall time, never below `least` samples."""
    return Rules(timing.warmup, 0.05, timing.launches, min(least, timing.launches), budget_s)


def measure(shoot: Callable[[int, int], S], rules: Rules, guess_us: float | None = None) -> Measurement[S]:
    """Take samples in rounds until they suffice; each round is a job, and so a process, of its own.

    Args:
        shoot: runs (untimed, timed) launches.
        rules: when to stop.
        guess_us: about how long one launch takes, where somebody knows.
    """
    samples: tuple[float, ...] = ()
    walls: tuple[float, ...] = ()
    spent_s = 0.0
    count = first_round(rules, guess_us)
    while True:
        shot = shoot(rules.warmups(guess_us), count)
        spent_s += shot.wall_s
        if shot.status is not Status.OK:
            return Measurement(samples, walls, spent_s, shot, failed=shot)
        samples, walls = samples + shot.samples_us, walls + shot.wall_us
        guess_us = float(np.median(samples))
        count = _next_round(rules, samples, spent_s)
        if count <= 0:
            return Measurement(samples, walls, spent_s, shot)


def first_round(rules: Rules, guess_us: float | None) -> int:
    """Return how many samples the first job takes of a kernel whose latency is about `guess_us`, where it is known."""
    if guess_us is None:
        return rules.least
    fitting = int(rules.budget_s * 1e6 / rules.rounds / max(guess_us, 0.1))
    return max(rules.least, min(fitting, rules.launches // rules.rounds))


def _next_round(rules: Rules, samples: Sequence[float], spent_s: float) -> int:
    """Return how many samples the next round takes; none when there are enough, or no time is left."""
    taken = len(samples)
    wanted = rules.launches - taken
    left_s = rules.budget_s - spent_s
    if taken < rules.least:
        return max(1, min(wanted, rules.least - taken))
    enough = wanted <= 0 or left_s <= 0 or (taken >= 2 * rules.least and settled(samples))
    if enough or np.median(samples) > rules.abandon_us:
        return 0
    return min(wanted, 2 * taken, int(left_s / (spent_s / taken)))


def settled(samples: Sequence[float]) -> bool:
    """Whether the median's relative standard error is below `SETTLED`."""
    estimate = median_interval(samples)
    return (estimate.high - estimate.low) / (2 * Z_95) < SETTLED * estimate.value


def summarise(samples: Sequence[float], doubts: tuple[str, ...] = ()) -> Latency:
    """Return the median with its 95 % interval, and doubts where the samples spread widely.

    Args:
        samples: at least one latency in microseconds.
        doubts: those that are known already.
    """
    estimate = median_interval(samples)
    lower, upper = np.quantile(samples, [0.25, 0.75])
    noise = float((upper - lower) / estimate.value) if estimate.value > 0 else 0.0
    if noise > NOISY:
        doubts = (*doubts, f"noisy: the samples' interquartile range is {noise:.0%} of their median")
    return Latency(estimate.value, estimate.low, estimate.high, noise, len(samples), doubts)


def drift_doubt(before: Sequence[float], after: Sequence[float]) -> tuple[str, ...]:
    """Return a doubt when the anchor's median moved between before and after a candidate."""
    if not before or not after:
        return ()
    first, second = float(np.median(before)), float(np.median(after))
    if abs(second - first) <= DRIFT * first:
        return ()
    return (f"the machine drifted: the anchor took {first:.4g} µs before and {second:.4g} µs after",)


def clock_fault(taken: Measurement[S], overhead_us: float | None) -> str:
    """Say how the child's clock contradicts the parent's, or return "".

    A candidate on the host device shares the memory in which its latencies are kept. What it claims cannot take longer
    than its jobs did, nor much less than an outer clock saw: twice the calibrated overhead, a tenth of the wall time
    and a fifth of a millisecond are left to the scheduler, and on a busy machine up to three launches in four may be
    seen late. Even that can be too little, so measure again before blaming.

    Args:
        taken: the candidate's measurement.
        overhead_us: what the outer clock adds for a trusted kernel on the same case; None where there is none.
    """
    if any(not math.isfinite(sample) or sample < 0 for sample in taken.samples_us):
        return "clock tampered: a latency is negative or not a number"
    total_s = sum(taken.samples_us) / 1e6
    if total_s > taken.wall_s:
        return f"clock tampered: launches of {total_s:.4g} s in all were reported by jobs of {taken.wall_s:.4g} s"
    if overhead_us is None or not taken.wall_us:
        return ""
    claimed, seen = taken.median_us, float(np.median(taken.wall_us))
    excess = float(np.quantile(np.subtract(taken.wall_us, taken.samples_us), 0.25))
    if excess > 2 * max(overhead_us, 0.0) + 0.1 * seen + 200.0:
        return f"clock tampered: launches of {claimed:.4g} µs were reported where the parent's clock saw {seen:.4g} µs"
    return ""


def load_doubts() -> tuple[str, ...]:
    """Return a doubt when more runs on this machine than it has cores for."""
    load, cores = os.getloadavg()[0], os.cpu_count() or 1
    return (f"the machine is busy: load {load:.1f} on {cores} cores",) if load > cores + 0.5 else ()
