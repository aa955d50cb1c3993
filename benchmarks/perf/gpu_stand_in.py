"""A device plug-in that takes no time and needs no GPU: what is left is the house's own work in the parent.

It isolates like the CUDA device, answers y = 2 x or C = A B from a cache, and makes latencies up from the launch plan.
With it the GPU benchmarks can be tried, and the parent's side profiled, on any machine; its figures measure nothing.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from evaluators.device import EvaluatorLike, Setup
from evo.records import Binary, Buffer, CompileRequest, Conditions, Device, Direction, Job, JobResult, Status

COMPILE_MS = "EVO_STAND_IN_COMPILE_MS"
"""Environment variable: what every build takes, asleep."""
NOISE = 0.005
"""Standard deviation of one latency, as a fraction."""
_answers: dict[tuple[str, ...], Any] = {}
_rng = np.random.default_rng()


@dataclass(frozen=True)
class StandIn:
    """See the module."""

    isolates: ClassVar[bool] = True
    prescreen: ClassVar[bool] = False

    def describe(self) -> Device:
        """Say that it is none."""
        return Device("stand-in", "no GPU at all", "stand-in", "sm_90a", num_sms=132, max_shared_bytes=232448)

    def prepare(self) -> None:
        """Do nothing."""

    def compile(self, request: CompileRequest) -> Binary:
        """Build nothing, after `COMPILE_MS`."""
        time.sleep(float(os.environ.get(COMPILE_MS, "0")) / 1e3)
        key = hashlib.sha256(repr((request.source, sorted(request.defines.items()))).encode()).hexdigest()
        return Binary(Status.OK, key, key.encode() * 500)

    def run(self, job: Job) -> JobResult:
        """Leave right answers, and latencies made up."""
        folder = Path(job.folder)
        _leave(folder, job.buffers, job.buffers, ".out")
        if job.secret:
            _leave(folder, job.buffers, job.secret, ".secret")
        read = tuple(buffer.name for buffer in job.buffers if buffer.direction is Direction.IN)
        samples = _latency_us(job) * np.exp(NOISE * _rng.standard_normal(job.samples))
        now = Conditions(1980, 3201, 40, 100.0) if job.samples else None
        return JobResult(Status.OK, samples_us=tuple(samples.tolist()), unchanged=read, conditions=now)

    def evaluator(self, setup: Setup) -> EvaluatorLike:
        """Return the house's evaluator."""
        from evaluators.evaluator import Evaluator

        return Evaluator(self, setup)


def _latency_us(job: Job) -> float:
    """Return a latency between 100 and 200 µs that depends on the macros."""
    digest = hashlib.sha256(repr(sorted(job.plan.defines.items())).encode()).digest()
    return 100.0 * (1 + digest[0] / 256)


def _leave(folder: Path, buffers: Sequence[Buffer], inputs: Sequence[Buffer], suffix: str) -> None:
    given = {buffer.name: buffer for buffer in inputs if buffer.direction is Direction.IN}
    for buffer in buffers:
        if buffer.direction is Direction.OUT:
            _answer(folder, given).tofile(folder / f"{buffer.name}{suffix}")


def _answer(folder: Path, given: dict[str, Buffer]) -> Any:
    keys = tuple(sorted(buffer.key for buffer in given.values()))
    if keys not in _answers:
        content = {name: np.fromfile(folder / str(buffer.file), buffer.dtype) for name, buffer in given.items()}
        _answers[keys] = _product(content["A"], content["B"]) if "A" in content else 2 * content["x"]
    return _answers[keys]


def _product(a: Any, b: Any) -> Any:
    """Return A B of square matrices."""
    n = int(np.sqrt(a.size))
    return a.reshape(n, n) @ b.reshape(n, n)
