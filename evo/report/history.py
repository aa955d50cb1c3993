"""A run as its reports see it: all its records, read once, and the few questions that every report asks of them.

Reads through `evo.store`; no picture and no sentence enters here.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from evo.records import INHERITED, Candidate, Comparison, Evaluation, Mutate, Status
from evo.store import Store
from evo.store.rows import Call, Event, Meta, Sent, Spent


@dataclass(frozen=True)
class Speedup:
    """How much faster the best kernel is than another: the other's latency / its own, above 1 is faster.

    Attributes:
        factor: the figure.
        low: lower end of its interval at `confidence`.
        high: upper end.
        confidence: of the interval; 0.0 for a product of several comparisons, whose interval has none of its own.
        cases: case name -> factor.
        how: how it was found, in words.
    """

    factor: float
    low: float
    high: float
    confidence: float
    cases: Mapping[str, float]
    how: str


@dataclass(frozen=True)
class History:
    """Everything that is stored of a run.

    Attributes:
        folder: of the run.
        meta: config, workload, device, versions.
        events: the search's history in order.
        candidates: by id; 0 is the initial kernel.
        evaluations: by candidate.
        comparisons: by task, in order.
        calls: of models, in order.
        spent: on them.
        elapsed_s: time worked on the run.
        unsure: requests that were sent and not answered, in order.
    """

    folder: Path
    meta: Meta
    events: tuple[Event, ...]
    candidates: Mapping[int, Candidate]
    evaluations: Mapping[int, Evaluation]
    comparisons: Mapping[int, Comparison]
    calls: tuple[Call, ...]
    spent: Spent
    elapsed_s: float
    unsure: tuple[Sent, ...] = ()

    @property
    def champion(self) -> int:
        """Id of the kernel that won the last comparison; 0, the initial kernel, before any did."""
        won = [comparison.challenger for comparison in self.comparisons.values() if comparison.promoted]
        return won[-1] if won else 0

    @property
    def champions(self) -> tuple[int, ...]:
        """Ids of all that were champion, in order, the initial kernel first."""
        won = (comparison.challenger for comparison in self.comparisons.values() if comparison.promoted)
        return (0, *won)

    @property
    def statuses(self) -> Counter[Status]:
        """How often each status occurred among the outcomes of mutations, the initial kernel excluded."""
        told = (event for event in self.events if event.outcome is not None and isinstance(event.task, Mutate))
        return Counter(event.outcome.status for event in told if event.outcome is not None)

    @property
    def evaluated(self) -> int:
        """How many candidates were judged, as the budget counts them.

        The initial kernel, inherited ones and duplicates do not count.
        """
        made = (number for number, one in self.candidates.items() if number != 0 and one.operator != INHERITED)
        judged = (self.evaluations[number] for number in made if number in self.evaluations)
        return sum(one.status is not Status.DUPLICATE for one in judged)

    @property
    def prompts(self) -> int:
        """How many prompts wait for a person, where that is why the run stopped: everything that is open."""
        if self.meta.stopped != "prompts":
            return 0
        return sum({"ask": 1, "tell": -1}.get(event.kind, 0) for event in self.events)

    def factor(self, candidate: int) -> float | None:
        """Return how many times faster than the initial kernel this one was measured, or None without a score."""
        first, this = self.evaluations.get(0), self.evaluations.get(candidate)
        if first is None or this is None or first.ratio is None or this.ratio is None:
            return None
        return first.ratio / this.ratio

    def source(self, candidate: int) -> str:
        """Return a kernel as it is worth keeping: with its tuned launch rules where it was tuned."""
        evaluation = self.evaluations.get(candidate)
        return (evaluation.source if evaluation else "") or self.candidates[candidate].source

    def speedup(self) -> Speedup | None:
        """Return the champion's speedup over the initial kernel, or None where nothing was compared.

        It is the finale's; before the run's end it is the product of the comparisons that made the champion.
        """
        finale = self.meta.finale
        if finale is not None and finale.ratio and finale.challenger == self.champion:
            return _speedup([finale])
        won = [comparison for comparison in self.comparisons.values() if comparison.promoted]
        return _speedup(won) if won else None

    def speedup_over_reference(self) -> Speedup | None:
        """Return the champion's speedup over reference.cu, or None where the two were not compared."""
        return self._speedup_by(self.meta.reference_finale)

    def speedup_over_baseline(self) -> Speedup | None:
        """Return the champion's speedup over baseline.py, or None where the two were not compared."""
        return self._speedup_by(self.meta.baseline_finale)

    def _speedup_by(self, found: Comparison | None) -> Speedup | None:
        if found is None or not found.ratio or found.challenger != self.champion:
            return None
        return _speedup([found])


def read(store: Store) -> History:
    """Read a whole run."""
    return History(
        folder=store.folder,
        meta=store.meta(),
        events=tuple(store.events()),
        candidates={candidate.id: candidate for candidate in store.candidates()},
        evaluations=store.evaluations(),
        comparisons=store.comparisons(),
        calls=tuple(store.calls()),
        spent=store.spent(),
        elapsed_s=store.elapsed_s(),
        unsure=tuple(store.unsure()),
    )


def load(folder: Path) -> History:
    """Read a whole run from its folder; works beside a run that goes on.

    Raises:
        StoreError: there is no run, or its database is damaged or of another version.
    """
    store = Store.read(folder)
    try:
        return read(store)
    finally:
        store.close()


def _speedup(chain: list[Comparison]) -> Speedup:
    factor, low, high = (_product(chain, end) for end in ("ratio", "high", "low"))
    cases = {case: math.prod(1 / link.cases[case] for link in chain if case in link.cases) for case in chain[0].cases}
    if len(chain) == 1:
        how = f"interleaved comparison, {chain[0].blocks} blocks"
        return Speedup(factor, low, high, chain[0].confidence, cases, how)
    return Speedup(factor, low, high, 0.0, cases, f"product of {len(chain)} interleaved comparisons")


def _product(chain: list[Comparison], end: str) -> float:
    return math.prod(1 / (getattr(link, end) or math.nan) for link in chain)
