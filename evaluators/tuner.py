"""Which launch configurations of one kernel to try next: a pure ask/tell object over the kernel's own tunables.

One in-memory Optuna study per performance case. Nothing here compiles, launches or measures, and no configuration
leaves `ask` that the kernel's own `require` rules forbid.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeGuard

import numpy as np
import optuna
from numpy.typing import NDArray
from optuna.distributions import BaseDistribution, IntDistribution
from optuna.trial import TrialState, create_trial

from evo.records import Config

POOL = 1 << 14
"""Points of the product of all tunables that are searched; a larger product is sampled down to so many."""
STARTUP_SHARE = 0.25
"""Share of the trials drawn at random before TPE is asked: 15, 25 and 40 % of 24 trials were raced."""
STARTUP_TRIALS = 10
"""No more than Optuna's own default, which was as good as 6 and 15 with 60 trials."""
ABANDON_FACTOR = 2.0
"""A configuration that is so many times slower than the best one seen is not worth more samples."""
ABANDON_AFTER = 5
"""Configurations told on a case before any is abandoned: the first best says little."""
RANKED_SHARE = 0.25
"""The fastest share of configurations is never abandoned: TPE models it apart from the rest."""

SMALL = 16
"""A space of at most so many points per trial is looked through for its valid ones, which may all be tried."""
PROBES = 512
"""Random points whose validity is checked beforehand, to learn the ranges worth wishing for; about 10 ms a case."""

_BLOCK_NAME = re.compile(r"(B|BLOCK|BLOCK_?DIM|BLOCK_?SIZE|THREADS)_?[XYZ]", re.IGNORECASE)

_Row = int
_Matrix = NDArray[np.int64]


class Tuner:
    """Proposes launch configurations until the trials or the valid configurations are used up.

    The space is searched with TPE (Bergstra et al., *Algorithms for Hyper-Parameter Optimization*, NeurIPS 2011) in
    coordinates that make block shapes comparable: log2 of a block's threads first, then how they are split; every
    other tunable is the index of its value. The valid, untried configuration nearest to what TPE wishes for is
    proposed, so that no trial is lost on an invalid point or a repetition, and a space of no more valid points than
    trials is tried whole. Latencies are told to it as logarithms, failures as FAIL.

    Args:
        tune: tunable -> its values, in an order that means something (ascending, say).
        cases: names of the performance cases; they take turns in proposing, and results count for all.
        valid: (case, configuration) -> whether the header's rules and the device's limits permit it.
        trials: configurations to propose at most.
        seed: of every random choice.
        first: configurations to try before any other: the header's defaults, what was best for a parent. One that
            names other tunables or values is passed over.
        block: tunables whose product is the block's size; None takes the powers of two named BX, BLOCK_Y, ….

    Attributes:
        exhaustive: every valid configuration will be tried, in random order, so that no study is asked or told.
    """

    def __init__(
        self,
        tune: Mapping[str, Sequence[int]],
        cases: Sequence[str],
        valid: Callable[[str, Config], bool],
        trials: int,
        seed: int,
        *,
        first: Iterable[Config] = (),
        block: Sequence[str] | None = None,
    ) -> None:
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self._rng = np.random.default_rng(seed)
        self._space = _Space(tune, tuple(first), _block_tunables(tune) if block is None else block, self._rng)
        self._queue = list(self._space.first)
        self._valid = valid
        self._left = trials
        self.exhaustive = False
        self._model_from = trials - min(STARTUP_TRIALS, math.ceil(STARTUP_SHARE * trials))
        self._untried = np.ones(self._space.size, dtype=bool)
        self._cases = {case: _Case(self._space, int(self._rng.integers(2**31))) for case in cases}
        for name, case in self._cases.items():
            probes = self._rng.permutation(self._space.size)[:PROBES]
            case.narrow([int(row) for row in probes if self._permits(name, int(row))])
        if self._space.size <= SMALL * trials:
            valid_rows = sum(self._permitted(row) for row in range(self._space.size))
            self.exhaustive = valid_rows <= trials
        self._turns = itertools.cycle(cases)
        self._pending: dict[_Row, dict[str, int]] = {}

    def ask(self, n: int) -> list[dict[str, int]]:
        """Return up to `n` configurations to try; fewer, or none, when the trials or the valid points run out.

        Each is valid for at least one case, and none is ever returned twice. What has been asked and not yet told
        counts as bad (the constant liar: Ginsbourger et al., 2010), so that a batch spreads out.
        """
        batch: list[dict[str, int]] = []
        while len(batch) < n and self._left > 0:
            row = self._next_row()
            if row is None:
                self._left = 0
                break
            self._left -= 1
            self._untried[row] = False
            permitting = [(name, case) for name, case in self._cases.items() if self._permits(name, row)]
            self._pending[row] = {name: 0 if self.exhaustive else case.start(row) for name, case in permitting}
            batch.append(self._space.config(row))
        return batch

    def tell(self, config: Config, latencies: Mapping[str, float | None]) -> None:
        """Record what a configuration did.

        Args:
            config: as returned by `ask`.
            latencies: case -> latency in any one unit, or None where it failed; a case left out counts as failed.
                A measurement that was abandoned for being slow is better told as what was seen of it than as None.

        Raises:
            ValueError: the configuration was not asked, or has been told already.
        """
        row = self._space.find(config)
        if row is None or row not in self._pending:
            raise ValueError(f"expected a configuration that was asked and not yet told, found {dict(config)}")
        for name, trial in self._pending.pop(row).items():
            self._cases[name].note(row, latencies.get(name))
            if not self.exhaustive:
                self._cases[name].finish(trial, latencies.get(name))

    def best(self, case: str) -> tuple[dict[str, int], float] | None:
        """Return the fastest configuration told for a case, with its latency, or None where none worked."""
        told = self._cases[case].told
        if not told:
            return None
        row = min(told, key=told.__getitem__)
        return self._space.config(row), told[row]

    def threshold(self, case: str) -> float | None:
        """Return the latency beyond which a configuration may be abandoned, or None while too little is known.

        It is twice the best latency seen, but never so low that it cuts into the fastest quarter, whose order TPE
        needs to know.
        """
        latencies = list(self._cases[case].told.values())
        if len(latencies) < ABANDON_AFTER:
            return None
        return max(ABANDON_FACTOR * min(latencies), float(np.quantile(latencies, RANKED_SHARE)))

    def _next_row(self) -> _Row | None:
        """Return an untried row that is valid for some case: a queued one, a random one, or what TPE wishes for."""
        while self._queue:
            row = self._queue.pop(0)
            if self._untried[row] and self._permitted(row):
                return row
        if self.exhaustive or self._left > self._model_from:
            untried = self._rng.permutation(np.flatnonzero(self._untried))
            return next((int(row) for row in untried if self._permitted(int(row))), None)
        for name in itertools.islice(self._turns, len(self._cases)):
            wish = self._cases[name].wish()
            for row in self._space.by_distance(wish, self._untried & ~self._cases[name].forbidden):
                if self._permits(name, int(row)):
                    return int(row)
        return None

    def _permitted(self, row: _Row) -> bool:
        return any(self._permits(name, row) for name in self._cases)

    def _permits(self, name: str, row: _Row) -> bool:
        case = self._cases[name]
        if not case.checked[row]:
            case.checked[row] = True
            case.forbidden[row] = not self._valid(name, self._space.config(row))
        return not case.forbidden[row]


class _Space:
    """The product of the tunables' values (or a sample of it): each row one configuration, with its coordinates."""

    def __init__(
        self,
        tune: Mapping[str, Sequence[int]],
        first: Sequence[Config],
        block: Sequence[str],
        rng: np.random.Generator,
    ) -> None:
        self._tune = {name: tuple(values) for name, values in tune.items()}
        queued = [row for row in map(self._indices, first) if row is not None]
        self._rows = self._pool(queued, rng)
        self.size = len(self._rows)
        self.first = [self._find(row) for row in queued]
        self.coordinates = self._coordinates(block)

    def config(self, row: _Row) -> dict[str, int]:
        pairs = zip(self._tune.items(), self._rows[row], strict=True)
        return {name: values[int(index)] for (name, values), index in pairs}

    def find(self, config: Config) -> _Row | None:
        indices = self._indices(config)
        return None if indices is None else self._find(indices)

    def by_distance(self, wish: _Matrix, among: NDArray[np.bool_]) -> _Matrix:
        """Return the rows of a mask, nearest first; one step of any coordinate counts the same."""
        rows = np.flatnonzero(among)
        distance = ((self.coordinates[rows] - wish) ** 2).sum(axis=1)
        return rows[np.argsort(distance, kind="stable")]

    def _indices(self, config: Config) -> tuple[int, ...] | None:
        if set(config) != set(self._tune):
            return None
        if any(config[name] not in values for name, values in self._tune.items()):
            return None
        return tuple(values.index(config[name]) for name, values in self._tune.items())

    def _find(self, indices: tuple[int, ...]) -> _Row:
        matches = np.flatnonzero((self._rows == np.array(indices, dtype=np.int64)).all(axis=1))
        return int(matches[0]) if matches.size else -1

    def _pool(self, queued: list[tuple[int, ...]], rng: np.random.Generator) -> _Matrix:
        lengths = [len(values) for values in self._tune.values()]
        if math.prod(lengths) <= POOL:
            # Shuffled, so that a stable sort by distance breaks ties at random.
            return rng.permutation(np.array(list(itertools.product(*map(range, lengths))), dtype=np.int64))
        sample = np.column_stack([rng.integers(length, size=POOL) for length in lengths])
        rows = np.vstack([sample, *(np.array([row]) for row in queued)]).astype(np.int64)
        return rng.permutation(np.unique(rows, axis=0))

    def _coordinates(self, block: Sequence[str]) -> _Matrix:
        """Replace the block's tunables by log2 of their product and of all but the last."""
        columns = {name: self._rows[:, axis] for axis, name in enumerate(self._tune)}
        if len(block) > 1:
            logs = {name: np.log2(self._tune[name])[columns[name]].round().astype(np.int64) for name in block}
            columns.update(logs)
            columns[block[-1]] = np.sum(list(logs.values()), axis=0)
        return np.column_stack(list(columns.values())) if columns else np.zeros((self.size, 0), dtype=np.int64)


class _Case:
    """One case's study, and what is known of its configurations."""

    def __init__(self, space: _Space, seed: int) -> None:
        sampler = optuna.samplers.TPESampler(multivariate=True, constant_liar=True, n_startup_trials=1, seed=seed)
        self._study = optuna.create_study(sampler=sampler)
        self._space = space
        self._low = space.coordinates.min(axis=0)
        self._high = space.coordinates.max(axis=0)
        self.told: dict[_Row, float] = {}
        self.checked = np.zeros(space.size, dtype=bool)
        self.forbidden = np.zeros(space.size, dtype=bool)

    def narrow(self, rows: list[_Row]) -> None:
        """Let wishes keep to the ranges of these valid rows: a block of two threads is never wished for, say."""
        if rows:
            self._low = self._space.coordinates[rows].min(axis=0)
            self._high = self._space.coordinates[rows].max(axis=0)

    def wish(self) -> _Matrix:
        """Return the coordinates that TPE asks for; the asked trial itself is given up, and its nearest row tried."""
        distributions = self._distributions()
        trial = self._study.ask(distributions)
        self._study.tell(trial, state=TrialState.FAIL)
        return np.array([trial.params[name] for name in distributions], dtype=np.int64)

    def start(self, row: _Row) -> int:
        """Register a row as running; returns its trial's number."""
        distributions = self._distributions()
        inside = np.clip(self._space.coordinates[row], self._low, self._high).tolist()
        params = dict(zip(distributions, inside, strict=True))
        running = create_trial(state=TrialState.RUNNING, params=params, distributions=distributions)
        self._study.add_trial(running)
        return len(self._study.get_trials(deepcopy=False)) - 1

    def _distributions(self) -> dict[str, BaseDistribution]:
        ranges = zip(self._low.tolist(), self._high.tolist(), strict=True)
        return {str(axis): IntDistribution(low, high) for axis, (low, high) in enumerate(ranges)}

    def note(self, row: _Row, latency: float | None) -> None:
        if _counts(latency):
            self.told[row] = latency

    def finish(self, trial: int, latency: float | None) -> None:
        if _counts(latency):
            self._study.tell(trial, math.log(latency))
        else:
            self._study.tell(trial, state=TrialState.FAIL)


def _counts(latency: float | None) -> TypeGuard[float]:
    return latency is not None and 0.0 < latency < math.inf


def _block_tunables(tune: Mapping[str, Sequence[int]]) -> list[str]:
    """Return the tunables that look like block dimensions: named so, and powers of two throughout."""
    return [
        name
        for name, values in tune.items()
        if _BLOCK_NAME.fullmatch(name) and all(value > 0 and value & (value - 1) == 0 for value in values)
    ]
