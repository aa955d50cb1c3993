"""Who may become a parent: islands of cells of elites, and migration between islands in a ring.

Immutable and pure: adding returns a new population, every draw comes from a generator that is passed in, and nothing
here does I/O or knows a mutator or an evaluator. All sizes are bounded, so no operation grows with the run.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, TypeVar

import numpy as np
import numpy.typing as npt

DESCRIPTORS = ("staging", "unit", "outputs")
"""The coordinates of a cell, as evaluations describe them."""

EVALUATIONS_PER_ISLAND = 100  # fewer do not fill the cells of an island, and selection has nothing to select from
MOST_ISLANDS = 8  # beyond, a migrant takes longer round the ring than a run lasts
ELITES_PER_CELL = 3  # enough to breed within a cell; more would be near copies of each other
ELITES_PER_ISLAND = 64  # bounds the work where a plug-in makes up descriptors without end
ADDITIONS_PER_MIGRATION = 25  # per island: some four migrations in the life of an automatic island
CHAMPION_SHARE = 0.15  # of the parents: the one kernel known to be best, without making every island its copy

Cell = tuple[str, ...]
T = TypeVar("T")


@dataclass(frozen=True, order=True)
class Elite:
    """One candidate that is worth breeding from; sorts fastest first, the older one first among equals.

    Attributes:
        ratio: geometric mean over cases of latency / anchor latency; lower is better.
        candidate: its id.
        cell: its values of `DESCRIPTORS`.
    """

    ratio: float
    candidate: int
    cell: Cell


@dataclass(frozen=True)
class Island:
    """A bounded set of elites that breed with each other; `elites` is sorted, fastest first."""

    elites: tuple[Elite, ...] = ()

    def add(self, elite: Elite) -> Island:
        """Return the island with `elite`, less whatever had to make room for it in its cell or on the island."""
        if any(known.candidate == elite.candidate for known in self.elites):
            return self
        elites = sorted((*self.elites, elite))
        mates = [known for known in elites if known.cell == elite.cell]
        if len(mates) > ELITES_PER_CELL:
            elites.remove(mates[-1])
        return Island(tuple(elites[:ELITES_PER_ISLAND]))

    @cached_property
    def cells(self) -> Mapping[Cell, tuple[Elite, ...]]:
        """Elites by cell; the cell with the fastest elite first, and the fastest first in each."""
        cells: dict[Cell, tuple[Elite, ...]] = {}
        for elite in self.elites:
            cells[elite.cell] = (*cells.get(elite.cell, ()), elite)
        return cells


@dataclass(frozen=True)
class Population:
    """Islands in a ring, and how many candidates have been added to them."""

    islands: tuple[Island, ...]
    additions: int = 0

    @classmethod
    def of(cls, islands: int, ratio: float, descriptors: Mapping[str, str]) -> Population:
        """Return a population whose every island holds the initial kernel, candidate 0.

        Args:
            islands: how many.
            ratio: of the initial kernel.
            descriptors: of the initial kernel.
        """
        return cls((Island((Elite(ratio, 0, cell_of(descriptors)),)),) * islands)

    def add(self, island: int, candidate: int, ratio: float, descriptors: Mapping[str, str]) -> Population:
        """Return the population with one more scored candidate; migrates when the time has come."""
        elite = Elite(ratio, candidate, cell_of(descriptors))
        islands = tuple(known.add(elite) if index == island else known for index, known in enumerate(self.islands))
        grown = Population(islands, self.additions + 1)
        due = grown.additions % (ADDITIONS_PER_MIGRATION * len(islands)) == 0
        return grown.migrated() if due else grown

    def migrated(self) -> Population:
        """Return the population after every island sent a copy of its fastest elite to the next of the ring."""
        migrants = [island.elites[0] for island in self.islands]
        arrivals = [migrants[-1], *migrants[:-1]]
        moved = (island.add(elite) for island, elite in zip(self.islands, arrivals, strict=True))
        return replace(self, islands=tuple(moved))

    def parent(self, island: int, champion: int, rng: np.random.Generator) -> int:
        """Draw the candidate to change: at times the champion, else an elite of a cell of the island, both by rank.

        Ranks rather than ratios decide, so that one outlier does not take over (Baker 1985, "Adaptive selection
        methods for genetic algorithms"). The cell is drawn first, so that a crowded cell has no more children.

        Args:
            island: where the child will live.
            champion: id of the run's champion.
            rng: the only source of randomness.
        """
        if rng.random() < CHAMPION_SHARE:
            return champion
        cell = by_rank(tuple(self.islands[island].cells.values()), rng)
        return by_rank(cell, rng).candidate

    def partners(self, island: int, home: Cell | None, count: int, rng: np.random.Generator) -> tuple[int, ...]:
        """Draw up to `count` candidates of other cells than a first parent's and than each other's, by rank.

        Args:
            island: whose cells come first; those of the next islands of the ring follow.
            home: cell of the first parent; None where it has none.
            count: how many at most.
            rng: the only source of randomness.
        """
        drawn: dict[Cell | None, int] = {home: -1}
        for known in (*self.islands[island:], *self.islands[:island]):
            strangers = {cell: elites for cell, elites in known.cells.items() if cell not in drawn}
            while strangers and len(drawn) <= count:
                cell = by_rank(tuple(strangers), rng)
                drawn[cell] = by_rank(strangers.pop(cell), rng).candidate
        return tuple(drawn.values())[1:]

    @cached_property
    def cells(self) -> frozenset[Cell]:
        """The cells that have an elite on any island."""
        return frozenset(elite.cell for island in self.islands for elite in island.elites)

    def inspirations(self, island: int, parent: int, count: int, rng: np.random.Generator) -> tuple[int, ...]:
        """Draw up to `count` other candidates to show beside the parent: each from another cell, as far as that goes.

        Args:
            island: where the parent was drawn.
            parent: id of the parent; it may live elsewhere.
            count: how many at most.
            rng: the only source of randomness.
        """
        elites = {elite.candidate: elite.cell for elite in self.islands[island].elites}
        strange = [cell for key, cell in self.islands[island].cells.items() if key != elites.get(parent)]
        drawn = [by_rank(cell, rng).candidate for cell in _shuffled(strange, rng)[:count]]
        rest = [candidate for candidate in elites if candidate not in (parent, *drawn)]
        return (*drawn, *_shuffled(rest, rng)[: count - len(drawn)])

    def digest(self) -> str:
        """Return a hash of the whole state."""
        state = [[(e.ratio, e.candidate, e.cell) for e in island.elites] for island in self.islands]
        return hashlib.sha256(json.dumps([state, self.additions]).encode()).hexdigest()


def island_count(islands: int | Literal["auto"], evaluations: int) -> int:
    """Return how many islands a run has: as many as asked, or what its budget of evaluations can fill."""
    if islands != "auto":
        return islands
    return min(max(1, evaluations // EVALUATIONS_PER_ISLAND), MOST_ISLANDS)


def cell_of(descriptors: Mapping[str, str]) -> Cell:
    """Return the cell of a candidate; what its evaluation could not tell is `unknown`."""
    return tuple(descriptors.get(name, "unknown") for name in DESCRIPTORS)


def by_rank(ranked: Sequence[T], rng: np.random.Generator) -> T:
    """Draw one of `ranked`, best first, with probabilities in proportion to 1, 1/2, 1/3 and so on."""
    return by_weight(ranked, 1.0 / np.arange(1, len(ranked) + 1), rng)


def by_weight(choices: Sequence[T], weights: npt.ArrayLike, rng: np.random.Generator) -> T:
    """Draw one of `choices` with probabilities in proportion to `weights`."""
    upto = np.cumsum(weights)
    index = int(np.searchsorted(upto, upto[-1] * rng.random(), side="right"))
    return choices[min(index, len(choices) - 1)]  # the product may round up to the whole sum


def _shuffled(things: Sequence[T], rng: np.random.Generator) -> list[T]:
    return [things[index] for index in rng.permutation(len(things))]
