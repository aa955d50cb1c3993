"""The parent's side of the harness: ask a child, bound it, replace it, and see that no neighbour is blamed.

A crash or a hang costs the child, never the parent. What a job computes is none of this room's business.
"""

from __future__ import annotations

import time
from enum import Enum
from types import TracebackType
from typing import NamedTuple

from evaluators.child import Child
from evaluators.device import DevicePlugin
from evaluators.harness import FAILED
from evo.errors import DeviceError
from evo.records import Device, Job, JobResult, Status, from_json, to_json

CLEARED_S = 0.05
"""A killed process is gone within a few ms; one that a GPU's driver clears away is left to die beside the next job."""
DEATH_S = 30.0
"""A driver that has not let go of a killed process after this will not do so."""
BESIDE_BYTES = 1 << 30
"""A job that needs more memory than this waits until the dying have given theirs back; every GPU has this to spare."""


class Spare(Enum):
    """When a second child stands ready."""

    NEVER = "never"
    AFTER_A_LOSS = "after a loss"
    ALWAYS = "always"


class Reply(NamedTuple):
    """A job's result, and how long it took by the parent's clock."""

    result: JobResult
    wall_s: float


class _Answer(NamedTuple):
    """A reply; whether the child that gave it is gone, and whether somebody else killed that."""

    reply: Reply
    lost: bool = False
    killed: bool = False


class Supervisor:
    """Owns one harness child and, from the first lost child or from the beginning, one warm spare.

    A lost child's place is taken by the spare at once, and a new spare starts. Where the spare has not started yet,
    the start of a third waits for it, so that two faults in a row cost one start and not two at a time.

    Blame: a job is run once more in a fresh child, and only what happens there counts, where

    - its child died, or called itself spent with CRASH, and had served other jobs before: one of those may have left
      something behind;
    - its child died by a SIGKILL that did not come from here: a person or the system's want of memory did that.

    A spent child that names any other status names the job's own fault, for it waits for each kernel's end before it
    answers, and an asynchronous error cannot reach a later job. A time-out is not tried again either: it costs as much
    once more, and a job that has ended slows no other.

    The first child starts at once and is waited for where it is needed, so that its start costs no time of its own.

    Args:
        device: name or `.py` path of the device plug-in.
        spare: when a second child is kept ready.
    """

    def __init__(self, device: str, spare: Spare = Spare.AFTER_A_LOSS) -> None:
        self._device = device
        self._rule = spare
        self._keep_spare = spare is Spare.ALWAYS
        self._child: Child | None = Child(device)
        self._spare: Child | None = None
        self._dying: list[Child] = []

    def prepare(self) -> None:
        """Start what is missing and wait until the child is ready. Call it outside timed windows.

        Raises:
            DeviceError: the child does not start; the message holds its last words.
        """
        self._dying = [child for child in self._dying if not child.bury(0)]
        if self._child is not None and not self._child.is_usable():
            self._lose()
        self._child = self._child or self._warm() or Child(self._device)
        try:
            self._child.wait_ready()
        except DeviceError:
            self._discard()
            raise
        if self._keep_spare and self._spare is None:
            self._spare = Child(self._device)

    def settle(self) -> None:
        """Wait until the spare has started and the dying are dead, so that nothing of ours runs beside a measurement.

        A spare that does not start is done without until the next loss: the child is well.

        Raises:
            DeviceError: the child does not start, or a killed one does not end.
        """
        self.prepare()
        self._bury_all()
        if self._spare is None:
            return
        try:
            self._spare.wait_ready()
        except DeviceError:
            self._end(self._spare)
            self._spare, self._keep_spare = None, False

    def renew(self) -> None:
        """Go on in another process."""
        self._discard()
        self.settle()

    def run(self, job: Job, deadline_s: float) -> Reply:
        """Run one job and return what became of it, within `deadline_s` of wall time and a little.

        Raises:
            DeviceError: the system failed, not the candidate.
        """
        used = self._make_room(job).jobs > 0
        answer = self._ask(job, deadline_s)
        crashed = answer.lost and answer.reply.result.status is Status.CRASH
        if crashed and (used or answer.killed):
            self._make_room(job)
            answer = self._ask(job, deadline_s)
        return answer.reply

    def close(self) -> None:
        """Kill the children and everything below them. May be called twice."""
        dying = [*self._dying, *(child for child in (self._child, self._spare) if child is not None)]
        for child in dying:
            child.kill()
        self._child = self._spare = None
        deadline = time.monotonic() + DEATH_S
        self._dying = [child for child in dying if not child.bury(max(0.0, deadline - time.monotonic()))]

    def __enter__(self) -> Supervisor:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # --- asking -------------------------------------------------------------------------------------------------

    def _make_room(self, job: Job) -> Child:
        """Return the child for a job, which waits for others to start or die only where they would disturb it."""
        if job.samples > 1:  # a measurement
            self.settle()
        else:
            self.prepare()
            if _bytes(job) > BESIDE_BYTES:
                self._bury_all()
        assert self._child is not None
        return self._child

    def _ask(self, job: Job, deadline_s: float) -> _Answer:
        assert self._child is not None
        started = time.monotonic()
        try:
            line = self._child.ask(to_json(job).encode(), started + deadline_s)
        except TimeoutError:
            late = JobResult(Status.TIMEOUT, f"did not finish within {deadline_s:.3g} s; its processes were killed")
            return self._lost(late, started)
        except EOFError:
            died = JobResult(Status.CRASH, self._child.last_words())
            return self._lost(died, started, killed=self._child.killed_from_outside())
        number, _, told = line.partition(b" ")
        due = number == b"%d" % self._child.jobs  # else what somebody wrote in the child's name, or answered late
        if due and told.startswith(FAILED):
            raise self._failure(told.removeprefix(FAILED).decode(errors="replace"))
        result = _parse(told) if due else None
        if result is None:
            garbage = f"the harness wrote something that is no result: {line[:200]!r}"
            return self._lost(JobResult(Status.CRASH, garbage), started)
        if result.spent:
            return self._lost(result, started)
        return _Answer(Reply(result, time.monotonic() - started))

    def _failure(self, told: str) -> DeviceError:
        """Return what a child said that could not go on, and give the child up."""
        assert self._child is not None
        jobs = self._child.jobs
        self._discard()
        return DeviceError(
            f"device {self._device!r} failed at job {jobs} of its process: {told}; see that the device is there and "
            "free (`evo doctor`), then go on"
        )

    def _lost(self, result: JobResult, started: float, killed: bool = False) -> _Answer:
        wall_s = time.monotonic() - started
        self._lose()
        return _Answer(Reply(result, wall_s), lost=True, killed=killed)

    # --- children -----------------------------------------------------------------------------------------------

    def _lose(self) -> None:
        """Give the child up, let the spare take over, and start what is missing; nothing is waited for."""
        self._discard()
        self._keep_spare = self._rule is not Spare.NEVER
        if self._spare is None:
            self._child = Child(self._device)
        elif self._spare.is_ready():
            self._child, self._spare = self._spare, Child(self._device)

    def _warm(self) -> Child | None:
        """Return the spare once it is ready; None where there is none, or where it has come to harm."""
        spare, self._spare = self._spare, None
        if spare is None:
            return None
        try:
            spare.wait_ready()
        except DeviceError:
            self._end(spare)
            return None
        if spare.is_usable():
            return spare
        self._end(spare)
        return None

    def _discard(self) -> None:
        if self._child is not None:
            self._end(self._child)
        self._child = None

    def _end(self, child: Child) -> None:
        """Kill a child. Where only one process may have the device, the next can start only when this one is gone."""
        child.kill()
        if not child.bury(DEATH_S if self._rule is Spare.NEVER else CLEARED_S):
            self._dying.append(child)

    def _bury_all(self) -> None:
        for child in self._dying:
            if not child.bury(DEATH_S):
                raise DeviceError(
                    f"device {self._device!r}: process {child.pid} was killed {DEATH_S:g} s ago or longer and is not "
                    "gone: the driver holds it; reset the device or restart the machine"
                )
        self._dying = []


def spare_for(device: DevicePlugin, facts: Device) -> Spare:
    """Return when a device's supervisor keeps a spare, by what the plug-in and the device say of themselves."""
    if facts.exclusive:
        return Spare.NEVER
    return Spare.ALWAYS if getattr(device, "slow_start", False) else Spare.AFTER_A_LOSS


def _bytes(job: Job) -> int:
    """Return how much device memory a job is known to need; timed ones have a copy for the secret run."""
    workspaces = sum(job.plan.workspaces.values())
    return workspaces + job.flush_bytes + sum(buffer.nbytes for buffer in (*job.buffers, *job.secret))


def _parse(line: bytes) -> JobResult | None:
    try:
        return from_json(JobResult, line)
    except ValueError:  # a child that a candidate has damaged may write anything
        return None
