"""What a set of noisy numbers allows one to say: medians, intervals, and when a kernel counts as faster.

Pure functions and one pure object. No measuring, no I/O, no clock; randomness only from a generator passed
in.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

RESAMPLES = 4000
"""Bootstrap resamples: 3 ms for four cases of forty blocks; thinner tails than 1 / 4000 are Student's."""
LOOK_GROWTH = math.sqrt(2)
"""Each look at a comparison comes when the blocks have grown by this factor: few looks cost little power."""
FUTILITY_CONFIDENCE = 0.95
"""Stopping *without* promotion needs no correction: it can only lower the rate of false promotions."""


class Interval(NamedTuple):
    """An estimate and the ends of its confidence interval, in the samples' own unit."""

    value: float
    low: float
    high: float


class Verdict(NamedTuple):
    """What a comparison says. Ratios are challenger latency / champion latency; below 1 is faster.

    Attributes:
        ratio: exp of the mean over cases and blocks of the log ratio.
        low: lower end of its interval at `confidence`.
        high: upper end.
        promoted: whether the challenger may become champion.
        confidence: of the interval at the last look, after the correction for looks.
    """

    ratio: float
    low: float
    high: float
    promoted: bool
    confidence: float


# --- single samples -----------------------------------------------------------------------------------------


def geometric_mean(values: Iterable[float]) -> float:
    """Return the geometric mean; raises `ValueError` unless all are positive and there is at least one."""
    numbers = np.fromiter(values, dtype=np.float64)
    if numbers.size == 0 or not np.all(numbers > 0):
        raise ValueError(f"expected one or more positive numbers, found {numbers.tolist()}")
    return float(np.exp(np.mean(np.log(numbers))))


def median_interval(samples: ArrayLike, confidence: float = 0.95) -> Interval:
    """Return the median and its distribution-free interval from order statistics.

    The number of samples below the true median is binomial(n, 1/2), so that the interval from the r-th
    smallest to the r-th largest sample covers it with probability 1 - 2 P(X < r) whatever the distribution
    (Conover, *Practical Nonparametric Statistics*, 3rd ed., section 3.2). Below six samples no pair of order
    statistics reaches 95 %; then the interval is the whole range, and its true confidence is lower than
    asked.

    Args:
        samples: shape (n,), n ≥ 1, any order, any unit.
        confidence: in (0, 1).

    Raises:
        ValueError: there is no sample, or one is not finite.
    """
    ordered = np.sort(np.asarray(samples, dtype=np.float64).ravel())
    if ordered.size == 0 or not np.all(np.isfinite(ordered)):
        raise ValueError(f"expected one or more finite samples, found {ordered.tolist()[:20]}")
    rank = _median_rank(ordered.size, confidence)
    return Interval(float(np.median(ordered)), float(ordered[rank]), float(ordered[-1 - rank]))


@functools.lru_cache(maxsize=256)
def _median_rank(n: int, confidence: float) -> int:
    """Return how many samples may be cut at each end: the largest i with P(binomial(n, 1/2) ≤ i) ≤ tail."""
    tail = (1.0 - confidence) / 2.0
    below = 0.0
    for rank in range((n + 1) // 2):
        ways = math.lgamma(n + 1) - math.lgamma(rank + 1) - math.lgamma(n - rank + 1)
        below += math.exp(ways - n * math.log(2.0))
        if below > tail:
            return max(rank - 1, 0)
    return (n - 1) // 2


# --- intervals of mean log ratios ---------------------------------------------------------------------------


def bootstrap_interval(log_ratios: ArrayLike, confidence: float, rng: np.random.Generator) -> Interval:
    """Return the mean over cases of the mean log ratio, with an interval that resamples blocks within cases.

    The interval is the hull of two: the percentile interval of the bootstrap stratified by case (Efron &
    Tibshirani, *An Introduction to the Bootstrap*, 1993, chapters 8 and 13), which sees skew, and Student's t
    interval of the blocks' means over cases, which sees noise that a block's cases share, corrects for few
    blocks, and reaches the thin tails that resampling cannot (a tail of 1e-7 would need 1e8 resamples). The
    log ratio of two equal kernels is symmetric about 0 because the two are exchangeable, and under symmetry t
    is conservative in the far tail even where the noise is not normal (Efron, *Student's t-test under
    symmetry conditions*, JASA 64, 1969).

    Args:
        log_ratios: shape (cases, blocks) with at least one case and two blocks; natural logarithms.
        confidence: of the two-sided interval, in (0, 1).
        rng: draws the resamples.

    Raises:
        ValueError: wrong shape, or a number that is not finite.
    """
    table = _checked_table(log_ratios)
    student = _student_interval(table, confidence)
    tail = (1.0 - confidence) / 2.0
    low, high = np.quantile(_resampled_means(table, rng), [tail, 1.0 - tail])
    return Interval(student.value, min(student.low, float(low)), max(student.high, float(high)))


def _checked_table(log_ratios: ArrayLike) -> NDArray[np.float64]:
    table = np.asarray(log_ratios, dtype=np.float64)
    if table.ndim != 2 or table.shape[0] < 1 or table.shape[1] < 2:
        raise ValueError(f"expected shape (cases ≥ 1, blocks ≥ 2), found {table.shape}")
    if not np.all(np.isfinite(table)):
        raise ValueError("expected finite log ratios, found NaN or infinity")
    return table


def _resampled_means(table: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
    """Return `RESAMPLES` means over cases, each case's blocks drawn with replacement on their own."""
    cases, blocks = table.shape
    means = np.zeros(RESAMPLES)
    for row in table:
        means += row[rng.integers(blocks, size=(RESAMPLES, blocks))].mean(axis=1)
    return np.asarray(means / cases, dtype=np.float64)


def _student_interval(table: NDArray[np.float64], confidence: float) -> Interval:
    per_block = table.mean(axis=0)
    blocks = per_block.size
    mean = float(per_block.mean())
    error = float(per_block.std(ddof=1)) / math.sqrt(blocks)
    reach = student_quantile(1.0 - (1.0 - confidence) / 2.0, blocks - 1) * error
    return Interval(mean, mean - reach, mean + reach)


@functools.lru_cache(maxsize=4096)
def student_quantile(probability: float, degrees: int) -> float:
    """Return the quantile of Student's t distribution, for probabilities from 1/2 up to 1 - 1e-12.

    Args:
        probability: in [0.5, 1).
        degrees: degrees of freedom, an integer ≥ 1.
    """
    inside = 2.0 * probability - 1.0
    low, high = 0.0, 1.0
    while _student_inside(high, degrees) < inside and high < 1e15:
        low, high = high, 2.0 * high
    for _ in range(80):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if _student_inside(middle, degrees) < inside else (low, middle)
    return 0.5 * (low + high)


def _student_inside(t: float, degrees: int) -> float:
    """Return P(|T| ≤ t) by the finite sums of Abramowitz & Stegun 26.7.3 (odd) and 26.7.4 (even degrees)."""
    angle = math.atan(t / math.sqrt(degrees))
    sine, cosine_sq = math.sin(angle), math.cos(angle) ** 2
    odd = degrees % 2
    term = math.cos(angle) if odd else 1.0
    total = 0.0
    for k in range(1 + odd, degrees, 2):
        total += term
        term *= cosine_sq * k / (k + 1)
    return 2.0 / math.pi * (angle + sine * total) if odd else sine * total


# --- comparisons --------------------------------------------------------------------------------------------


def alpha_for(number: int, total: float = 0.05) -> float:
    """Return the level at which the run's `number`-th challenger is tested (from 1): total / (k (k + 1)).

    The levels of all challengers, however many, sum to `total` (the series telescopes), so that a whole run
    promotes luck with at most that probability: α spending over a stream of hypotheses (Foster & Stine,
    *α-investing*, JRSS B 70, 2008).
    """
    if number < 1:
        raise ValueError(f"challengers are counted from 1, found {number}")
    return total / (number * (number + 1))


class SequentialComparison:
    """A comparison of two kernels that grows block by block and ends as soon as it may.

    One block is one interleaved measurement (A B B A) of both kernels on every case. Looks are taken after
    `min_blocks` and each time the blocks have grown by √2, up to `max_blocks`. The looks share α by the
    Pocock-like spending function of Lan & DeMets (*Biometrika* 70, 1983), α(t) = α ln(1 + (e - 1) t) with t =
    blocks / max_blocks; each look is tested at what it adds, so that the union bound keeps the whole
    comparison at α without any assumption on how the looks depend on each other.

    The challenger is promoted at a look whose interval lies wholly below 1 / (1 + margin). A look also ends
    the comparison when more blocks would be wasted: when the plain 95 % interval excludes a speed-up of `margin`,
    or when the mean stays short of it by half of what the interval would still reach after `max_blocks` (stopping
    for futility never promotes, so it costs power alone; Lachin, *Statistics in Medicine* 24, 2005).

    Args:
        alpha: probability, at most, that a challenger which is not faster is promoted; see `alpha_for`.
        margin: smallest speed-up that counts, as a fraction: 0.005 is half a percent.
        min_blocks: blocks before the first look, at least 2.
        max_blocks: blocks after which the comparison ends in any case.
        rng: for the bootstrap.
    """

    def __init__(
        self,
        alpha: float,
        margin: float = 0.005,
        min_blocks: int = 10,
        max_blocks: int = 40,
        *,
        rng: np.random.Generator,
    ) -> None:
        if not 0.0 < alpha < 1.0 or margin < 0.0 or not 2 <= min_blocks <= max_blocks:
            raise ValueError(
                "expected 0 < alpha < 1, margin ≥ 0 and 2 ≤ min_blocks ≤ max_blocks, "
                f"found alpha={alpha}, margin={margin}, min_blocks={min_blocks}, max_blocks={max_blocks}"
            )
        self._bound = -math.log1p(margin)
        self._levels = _look_levels(alpha, min_blocks, max_blocks)
        self._max_blocks = max_blocks
        self._rng = rng
        self._cases: tuple[str, ...] = ()
        self._blocks: list[tuple[float, ...]] = []
        self._confidence = 1.0 - self._levels[min_blocks]
        self._interval: tuple[int, Interval] | None = None
        self._promoted = False
        self._finished = False

    @property
    def finished(self) -> bool:
        """Whether another block would change nothing."""
        return self._finished

    @property
    def promoted(self) -> bool:
        """Whether the last look promoted the challenger."""
        return self._promoted

    @property
    def blocks(self) -> int:
        """How many blocks have been added."""
        return len(self._blocks)

    def add(self, block: Mapping[str, float]) -> None:
        """Add one block.

        Args:
            block: case name -> log(challenger latency / champion latency); every block has the same cases.

        Raises:
            ValueError: the comparison has ended, the cases differ from the first block's, or a ratio is
                infinite.
        """
        if self._finished:
            raise ValueError("the comparison has ended; ask `finished` before measuring another block")
        self._cases = self._cases or tuple(block)
        if not block or set(block) != set(self._cases):
            raise ValueError(f"expected the cases {sorted(self._cases)} in every block, found {sorted(block)}")
        if not all(math.isfinite(value) for value in block.values()):
            raise ValueError(f"expected finite log ratios, found {dict(block)}")
        self._blocks.append(tuple(float(block[case]) for case in self._cases))
        level = self._levels.get(len(self._blocks))
        if level is not None:
            self._look(level)

    def verdict(self) -> Verdict:
        """Return what can be said by now; before the first look nothing is promoted.

        Raises:
            ValueError: fewer than two blocks have been added.
        """
        ratio, low, high = (math.exp(value) for value in self._current_interval())
        return Verdict(ratio, low, high, self._promoted, self._confidence)

    def case_ratios(self) -> dict[str, float]:
        """Return case name -> exp of the mean over blocks of its log ratio."""
        return dict(zip(self._cases, np.exp(self._table().mean(axis=1)).tolist(), strict=True))

    def _table(self) -> NDArray[np.float64]:
        return np.array(self._blocks, dtype=np.float64).T.reshape(len(self._cases), len(self._blocks))

    def _look(self, level: float) -> None:
        self._confidence = 1.0 - level
        table = self._table()
        # The hull is never narrower than Student's interval, which is cheap: most looks need no bootstrap.
        if _student_interval(table, self._confidence).high < self._bound:
            self._promoted = self._current_interval().high < self._bound
        self._finished = self._promoted or self._futile(table) or self.blocks == self._max_blocks

    def _futile(self, table: NDArray[np.float64]) -> bool:
        if _student_interval(table, FUTILITY_CONFIDENCE).low > self._bound:
            return True
        per_block = table.mean(axis=0)
        quantile = student_quantile(1.0 - self._levels[self._max_blocks] / 2.0, self._max_blocks - 1)
        reach_at_end = quantile * float(per_block.std(ddof=1)) / math.sqrt(self._max_blocks)
        return float(per_block.mean()) + 0.5 * reach_at_end > self._bound

    def _current_interval(self) -> Interval:
        """Return the hull at the last look's confidence, once per number of blocks: asking twice agrees."""
        if self._interval is None or self._interval[0] != self.blocks:
            self._interval = (self.blocks, bootstrap_interval(self._table(), self._confidence, self._rng))
        return self._interval[1]


def _look_levels(alpha: float, min_blocks: int, max_blocks: int) -> dict[int, float]:
    """Return blocks -> the share of `alpha` that the look after so many blocks may spend."""
    looks = [min_blocks]
    while looks[-1] < max_blocks:
        looks.append(min(max_blocks, math.ceil(looks[-1] * LOOK_GROWTH)))
    spent = [alpha * math.log1p((math.e - 1.0) * look / max_blocks) for look in looks]
    return dict(zip(looks, np.diff(spent, prepend=0.0).tolist(), strict=True))
