"""What a device plug-in and an evaluator promise, and what an evaluator is set up with. No behaviour enters here.

A device plug-in is a module of `evaluators`, or a `.py` path, with one frozen dataclass that keeps `DevicePlugin`.
"""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Protocol

from evo.config import Timing, Tuning
from evo.records import (
    Binary,
    Comparison,
    CompileRequest,
    Device,
    Evaluation,
    Finding,
    Job,
    JobResult,
    Resources,
    Status,
    Workload,
)


class Builder(Protocol):
    """Turns requests into binaries somewhere else: threads, or Ray tasks.

    Attributes:
        workers: how many it builds at once.
    """

    workers: int

    def submit(self, request: CompileRequest) -> Future[Binary]:
        """Queue one build. The future never raises for what a candidate does: that is a status of the binary."""
        ...


@dataclass(frozen=True)
class Screened:
    """What the pre-screen says of a source, before any evaluator has seen it.

    Attributes:
        status: OK, or what is wrong.
        message: what is wrong and where; "" when OK.
        findings: of the checker.
        state: `passed`, `rejected` (the candidate goes no further), or `skipped` (nothing is known).
        note: why it was skipped.
        seconds: wall time.
        resources: what NVRTC says the kernels use, where it is installed.
        code: what it has in common with every kernel that is the same program; "" where that is not known.
        listing: its machine code in words, for a GPU; "" where nobody can look.
    """

    status: Status
    message: str = ""
    findings: tuple[Finding, ...] = ()
    state: str = "passed"
    note: str = ""
    seconds: float = 0.0
    resources: dict[str, Resources] = field(default_factory=dict)
    code: str = ""
    listing: str = ""


@dataclass(frozen=True)
class Setup:
    """All that an evaluator is made from, besides its device. Picklable: the builder stays behind.

    Attributes:
        workload: with its hidden cases.
        timing: the config's section.
        tuning: the config's section.
        seed: inputs, launch orders and tuning draw from it.
        anchor: source of the kernel that is timed around every candidate.
        core: CPU core that timed jobs are pinned to, or None.
        profile: the config's key: `none`, `elites` or `all`.
        builder: compiles; None makes the evaluator build with threads of its own.
    """

    workload: Workload
    timing: Timing
    tuning: Tuning
    seed: int
    anchor: str
    core: int | None = None
    profile: str = "none"
    builder: Builder | None = field(default=None, compare=False, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "builder": None}


class EvaluatorLike(Protocol):
    """Judges kernels on one device; one call at a time."""

    def evaluate(self, candidate: int, source: str, screened: Screened | None) -> Evaluation:
        """Return the whole verdict on one kernel. A bad candidate is a status, never an exception."""
        ...

    def compare(self, challenger: tuple[int, str], champion: tuple[int, str], number: int) -> Comparison:
        """Measure two kernels (id, source) interleaved; `number` counts the run's comparisons from 1."""
        ...

    def close(self) -> None:
        """Stop every process and remove every file of this evaluator. May be called twice."""
        ...


class DevicePlugin(Protocol):
    """A device backend. Its fields are its options; it is picklable and holds no state.

    Class attributes that it may carry: `prescreen = False` (its candidates need no checker); `slow_start = True`
    (`prepare` takes long, a CUDA context: a second child stands ready from the beginning); `gpus = 1` (it needs a GPU);
    `isolates = True` (no candidate can reach the child's memory or files, so that input files are shared and the child
    may say itself that inputs are unchanged; it gives one timed launch of each job other inputs, see `Job.secret`);
    `calls_baselines = True` (it runs a workload's baseline.py, see `Job.call`);
    `replays = True` (`python -m evaluators.replay` runs its jobs, so that NVIDIA's tools can look at them).

    A device that tells `Device.peaks` may have a method `measured_peaks(facts: Device) -> Peaks`: what it really
    reaches, asked in the parent before any child starts; a `DeviceError` says why that is not known now.

    Before every run of a plan, outputs and workspaces hold poison: one 16-bit word from 0xff81 to 0xffff repeated, NaN
    in every floating format, another for another `Job.seed`; writable module globals hold what they were loaded with.
    """

    def describe(self) -> Device:
        """Say what the device is. Raises `DeviceError` when there is none."""
        ...

    def compile(self, request: CompileRequest) -> Binary:
        """Build one program, or fetch it from the cache on disk. Thread-safe; needs no device."""
        ...

    def prepare(self) -> None:
        """Do what takes long and is needed for `run`: imports, a context. Called once in the harness, before any job.

        Any exception ends the harness; a `DeviceError`'s message says what is missing and what to do.
        """
        ...

    def run(self, job: Job) -> JobResult:
        """Run one program on one case, in this process or a sandboxed child, and wait for its end.

        Called in the harness. A fault after which this process can run nothing more makes a result `spent`; see
        `JobResult` for its status. A device that is gone is a `DeviceError` whose message says what to do.
        """
        ...

    def evaluator(self, setup: Setup) -> EvaluatorLike:
        """Return an evaluator for this device."""
        ...
