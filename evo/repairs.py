"""Which failed candidates wait for a repair, and whether the search can afford one now. Pure and immutable."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from evo.records import Status

REPAIRABLE = frozenset(
    (
        Status.BAD_LAUNCH,
        Status.COMPILE_ERROR,
        Status.LAUNCH_ERROR,
        Status.WRONG_ANSWER,
        Status.UNSAFE,
        Status.TIMEOUT,
        Status.CRASH,
    )
)
"""Slips in an idea that may be good. UNSUPPORTED is none: its idea needs what this device or evaluator lacks, so that a
repair would have to give it up; that is a new mutation, and those are told what was tried."""

ROUNDS = 2  # repairs in a row at most: what two did not mend is seldom worth a third call
MOST_WAITING = 16  # the newest; older ones descend from kernels that the search has left behind
MOST_FAULT = 160  # characters; enough to tell two errors apart
MUTATIONS_PER_REPAIR = 3  # so that a model that writes nothing but broken kernels still tries new ideas


def fault(stage: str, message: str) -> str:
    """Return what went wrong in one line without its numbers: the same error at another line is the same error.

    Args:
        stage: of the evaluation where it went wrong.
        message: of the evaluation; "" for one that went well, whose fault is "".
    """
    if not message.strip():
        return ""
    return f"{stage}: {re.sub('[0-9]+', '#', message.strip().splitlines()[0])[:MOST_FAULT]}"


@dataclass(frozen=True)
class Failure:
    """A candidate that may be repaired.

    Attributes:
        candidate: its id.
        island: where it lives.
        status: why it has no score.
        fault: the same in one line.
        rounds: repairs that led to it; 0 for what another operator made.
    """

    candidate: int
    island: int
    status: Status
    fault: str = ""
    rounds: int = 0


@dataclass(frozen=True)
class Repairs:
    """Failures that wait, newest last, each for one repair, and how many tasks were repairs so far."""

    waiting: tuple[Failure, ...] = ()
    mutations: int = 0
    repairs: int = 0

    @property
    def due(self) -> bool:
        """Whether a failure waits and repairs have not had their third of all mutations."""
        return bool(self.waiting) and MUTATIONS_PER_REPAIR * self.repairs <= self.mutations

    def failed(self, failure: Failure, before: Failure | None = None) -> Repairs:
        """Return it with one more failure waiting, if that is worth a repair.

        Args:
            failure: of a candidate that a model wrote.
            before: the failure that it was made to repair: it must not be the same again.
        """
        again = before is not None and (failure.status, failure.fault) == (before.status, before.fault)
        if failure.status not in REPAIRABLE or failure.rounds >= ROUNDS or again:
            return self
        return replace(self, waiting=(*self.waiting, failure)[-MOST_WAITING:])

    def asked(self, failure: Failure | None) -> Repairs:
        """Return it after one more mutation was asked: the repair of a failure, or (None) something else."""
        waiting = tuple(one for one in self.waiting if one is not failure)
        return Repairs(waiting, self.mutations + 1, self.repairs + (failure is not None))
