"""What a search remembers of the candidates that it made: kin, cells, and what each has to be faster than.

A pure fold of the outcomes; it grows by a few numbers with each candidate, and no question walks over all of them.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import deque
from collections.abc import Collection, Iterable, Iterator
from itertools import chain, islice

from evo.population import Cell

TRIED = 24  # attempts named in one task: a prompt seldom has room for more than a line on each
CLOSEST = 12  # of them kin of the parent; the rest says what goes on elsewhere, and `explore` needs to know
NEIGHBOURS = 8  # of them from the same island, where other islands have something to tell


class Memory:
    """Candidates by id, told one after the other.

    Args:
        islands: how many there are.
        ratio: of the initial kernel, candidate 0.
        cell: of the initial kernel.
    """

    def __init__(self, islands: int, ratio: float, cell: Cell) -> None:
        self._parents: dict[int, tuple[int, ...]] = {0: ()}
        self._bars: dict[int, float] = {0: ratio}
        self._cells: dict[int, Cell] = {0: cell}  # of those with a score
        self._children: dict[int, deque[int]] = {}
        self._recent = tuple(deque[int](maxlen=2 * TRIED) for _ in range(islands))

    def add(self, candidate: int, parents: tuple[int, ...], island: int, ratio: float | None, cell: Cell) -> None:
        """Remember one more candidate.

        Args:
            candidate: its id.
            parents: ids; the first is the one that was changed.
            island: where it lives.
            ratio: of its evaluation; None without a score.
            cell: of its evaluation.
        """
        self._parents[candidate] = parents
        self._bars[candidate] = self.bar(parents) if ratio is None else ratio
        if ratio is not None:
            self._cells[candidate] = cell
        self._recent[island].appendleft(candidate)
        for parent in parents:
            self._children.setdefault(parent, deque(maxlen=CLOSEST)).appendleft(candidate)

    def cell(self, candidate: int) -> Cell | None:
        """Return the cell of a candidate that has a score; None for another one."""
        return self._cells.get(candidate)

    def origin(self, candidate: int) -> int:
        """Return the nearest ancestor, in the line of first parents, that has a score; itself where it has one."""
        while candidate not in self._cells:
            candidate = self._parents[candidate][0]
        return candidate

    def bar(self, parents: Iterable[int]) -> float:
        """Return the ratio that a child of these has to stay below to be an improvement: that of the fastest.

        What failed counts as what it was made from, so that a repair gains what the failed change would have gained.
        """
        return min((self._bars[parent] for parent in parents), default=math.inf)

    def tried(self, parent: int, island: int, shown: Collection[int]) -> tuple[int, ...]:
        """Return ids of earlier attempts, most telling first: the parent's kin, the island's latest, then others'.

        Args:
            parent: the candidate to change.
            island: where the child will live.
            shown: ids to leave out, since they are shown whole.
        """
        own, others = self._recent[island], (*self._recent[:island], *self._recent[island + 1 :])
        elsewhere = sorted((one for ids in others for one in islice(ids, TRIED)), reverse=True)
        drawn: list[int] = []
        for one in chain(islice(self._kin(parent), CLOSEST), islice(own, NEIGHBOURS), elsewhere, own):
            if one not in shown and one not in drawn:
                drawn.append(one)
                if len(drawn) == TRIED:
                    break
        return tuple(drawn)

    def _kin(self, parent: int) -> Iterator[int]:
        """Yield a candidate's children; for one that failed also what else came of its ancestors, up to a right one."""
        yield from self._children.get(parent, ())
        while parent not in self._cells:
            parent = self._parents[parent][0]
            yield parent
            yield from self._children[parent]

    def digest(self) -> str:
        """Return a hash of the whole state."""
        children = {parent: list(ids) for parent, ids in self._children.items()}
        state = [self._parents, self._bars, self._cells, children, [list(ids) for ids in self._recent]]
        return hashlib.sha256(json.dumps(state, sort_keys=True).encode()).hexdigest()
