"""Nsight Compute on a kernel: which candidates it looks at, one launch plan in a process of its own, its report.

What the counters are called is `counters`' business. Nothing is timed for a score here: a profiler slows what it sees.
"""

from __future__ import annotations

import base64
import dataclasses
import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from evaluators import outside, replay
from evaluators.builder import Programs
from evaluators.lab import Lab
from evaluators.nsight import counters
from evo.errors import DeviceError
from evo.records import Case, Evaluation, Job, Profile, Role, Status

__all__ = ["Profiler", "problem_of", "profile"]

TIMEOUT_S = 120.0
"""A launch takes 5 to 8 s: the kernel is run some 40 times, its memory restored each time."""
NEAR = 1.1
"""`elites`: within this factor of the best ratio that the evaluator has seen, which is what a search breeds from."""
SECTIONS = (
    "SpeedOfLight", "ComputeWorkloadAnalysis", "MemoryWorkloadAnalysis", "MemoryWorkloadAnalysis_Tables", "Occupancy",
    "LaunchStats", "SchedulerStats", "WarpStateStats",
)  # fmt: skip
"""Of Nsight Compute's own, on every GPU since Volta; a counter that a GPU lacks is left out of its section."""
REPORT = "profile"
LOG = "ncu.log"
_LARGEST_REPORT = 16 << 20
_INSTALL = "install Nsight Compute (it comes with the CUDA toolkit, and as the package nsight-compute-<version>)"
_PROBLEMS = {
    "ERR_NVGPUCTRPERM": (
        "ERR_NVGPUCTRPERM: this user may not read the GPU's counters; run as root or with the capability SYS_ADMIN, or "
        "set the driver's option NVreg_RestrictProfilingToAdminUsers=0 (/etc/modprobe.d) and load it again"
    ),
    "driver resource was unavailable": (
        "another tool holds the GPU's counters, DCGM in most cases; `dcgmi profile --pause` lends them and "
        "`dcgmi profile --resume` gives them back"
    ),
    "InterprocessLockFailed": "another ncu runs on this machine; wait for its end",
    "not supported on the following": "this version of Nsight Compute does not know the GPU; install a newer one",
    "is not supported for profiling": "this version of Nsight Compute does not know the GPU; install a newer one",
    "driver is not compatible": "this version of Nsight Compute does not fit the driver; install another one",
    "CUDA driver is not": "this version of Nsight Compute does not fit the driver; install another one",
}
"""What ncu says -> what it means and what to do about it; none of it gets better with the next candidate."""


class NoProfile(Exception):
    """There is none; `lasting` where the next candidate would have none either."""

    def __init__(self, why: str, *, lasting: bool) -> None:
        super().__init__(why)
        self.lasting = lasting


class Profiler:
    """Adds profiles to verdicts, as the config asks, until the first reason that will not go away; it is said once.

    It takes no lock of the GPU: the evaluator that calls it holds that.

    Args:
        lab: of the evaluator, whose children are idle when `add` is called.
    """

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._best = math.inf
        self._works = lab.setup.profile != "none" and bool(getattr(lab.plugin, "replays", False))

    def add(self, evaluation: Evaluation, programs: Programs | None) -> Evaluation:
        """Return the verdict with a profile of the slowest performance case, where this candidate deserves one.

        Args:
            evaluation: as timed.
            programs: of the kernel as tuned.
        """
        if not self._works or programs is None or not self._deserves(evaluation):
            return evaluation
        begin = time.monotonic()
        try:
            found = profile(self._lab, programs, _slowest(self._lab, evaluation))
        except NoProfile as none:
            self._works = not none.lasting
            found = Profile(problem=f"no profile: {none}" + ("; none is made from here on" if none.lasting else ""))
        seconds = {**evaluation.stage_seconds, "profile": time.monotonic() - begin}
        return dataclasses.replace(evaluation, profile=found, stage_seconds=seconds)

    def _deserves(self, evaluation: Evaluation) -> bool:
        if evaluation.status is not Status.OK or evaluation.ratio is None:
            return False
        self._best = min(self._best, evaluation.ratio)
        return self._lab.setup.profile == "all" or evaluation.ratio <= NEAR * self._best


def profile(lab: Lab, programs: Programs, case: Case) -> Profile:
    """Profile every launch of a kernel's plan on a case.

    Raises:
        NoProfile: the tool is missing, may not, cannot, or took too long.
    """
    ncu = outside.find("ncu")
    if ncu is None:
        raise NoProfile(f"ncu is not on PATH: {_INSTALL}", lasting=True)
    if lab.facts.exclusive:
        why = "the GPU is in the compute mode EXCLUSIVE_PROCESS, and ncu needs a second process on it"
        raise NoProfile(f"{why}; `nvidia-smi -c DEFAULT` permits that", lasting=True)
    with _built(lab, programs, case) as job:
        folder = Path(job.folder)
        _collect(ncu, job, folder)
        report = next(iter(sorted(folder.glob(f"{REPORT}*.ncu-rep"))), None)
        if report is None:
            raise NoProfile(f"ncu wrote no report: {_last_line(outside.text_of(folder / LOG))}", lasting=False)
        kernels = counters.read(_as_csv(ncu, report, folder))
        content = report.read_bytes()
    if not kernels:
        raise NoProfile("ncu's report holds no launch", lasting=False)
    return Profile(case.name, kernels, _encoded(content))


@contextmanager
def _built(lab: Lab, programs: Programs, case: Case) -> Iterator[Job]:
    try:
        with lab.laid_out(programs, case, TIMEOUT_S) as job:
            yield job
    except (DeviceError, OSError) as error:
        raise NoProfile(str(error), lasting=False) from error


def _collect(ncu: Path, job: Job, folder: Path) -> None:
    options = ["--profile-from-start", "off", "--target-processes", "all"]
    options += ["--clock-control", "none", "--cache-control", "all"]  # clocks as they are when kernels are timed
    options += [word for section in SECTIONS for word in ("--section", section)]
    options += ["--force-overwrite", "--export", str(folder / REPORT), "--log-file", str(folder / LOG)]
    ran = outside.run([ncu, *options, *replay.command(job)], folder, TIMEOUT_S)
    said = outside.text_of(folder / LOG)
    problem = problem_of(said)
    if problem:
        raise NoProfile(problem, lasting=True)
    if ran.code is None:
        raise NoProfile(f"ncu did not end within {TIMEOUT_S:g} s", lasting=False)
    if ran.code != 0:
        raise NoProfile(f"ncu ended with exit code {ran.code}: {_last_line(said + ran.words)}", lasting=False)


def problem_of(said: str) -> str:
    """Return what ncu's words mean and what to do about it, or "" where they are no reason to stop asking."""
    return next((words for mark, words in _PROBLEMS.items() if mark in said), "")


def _as_csv(ncu: Path, report: Path, folder: Path) -> str:
    argv: list[str | Path] = [ncu, "--import", report, "--csv", "--page", "raw", "--print-units", "base"]
    ran = outside.run(argv, folder, TIMEOUT_S)
    if ran.code != 0:
        raise NoProfile(f"ncu does not read its own report: {_last_line(ran.words)}", lasting=False)
    return ran.words


def _slowest(lab: Lab, evaluation: Evaluation) -> Case:
    medians = {result.case: result.latency.median_us for result in evaluation.cases if result.latency}
    return max(lab.cases(Role.PERFORMANCE), key=lambda case: medians.get(case.name, 0.0))


def _encoded(report: bytes) -> str:
    return base64.b64encode(report).decode() if len(report) <= _LARGEST_REPORT else ""


def _last_line(said: str) -> str:
    """Return the last line that tells something: ncu repeats at its end that nothing was profiled."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    errors = [line for line in lines if "==ERROR==" in line]
    return (errors or lines or ["it said nothing"])[-1][:500]
