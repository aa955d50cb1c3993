"""A device plug-in whose evaluator answers at once and always the same: everything comes from the source's hash.

`EVO_TEST_DELAY_MS` is the longest that an evaluation takes; how long also comes from the hash, so that evaluations in
flight finish out of order in the same way each time.
"""

from __future__ import annotations

import hashlib
import os
import time
from dataclasses import dataclass

from evaluators.device import EvaluatorLike, Screened, Setup
from evo import kernel as kernels
from evo.errors import HeaderError
from evo.records import (
    Binary,
    CaseResult,
    Comparison,
    CompileRequest,
    Device,
    Evaluation,
    Job,
    JobResult,
    Latency,
    Role,
    Status,
)

FINGERPRINT = "instant-1"
DELAY = "EVO_TEST_DELAY_MS"


@dataclass(frozen=True)
class InstantDevice:
    """See the module."""

    prescreen = False

    def describe(self) -> Device:
        return Device("instant", "no device", FINGERPRINT, "any")

    def compile(self, request: CompileRequest) -> Binary:
        return Binary(Status.OK, hashlib.sha256(request.source.encode()).hexdigest(), b"nothing")

    def run(self, job: Job) -> JobResult:
        return JobResult(Status.OK, samples_us=(1.0,) * job.samples)

    def evaluator(self, setup: Setup) -> EvaluatorLike:
        return InstantEvaluator(setup)


class InstantEvaluator:
    """Nine of ten kernels are right; their ratio to the anchor lies between 0.2 and 1.2."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup

    def evaluate(self, candidate: int, source: str, screened: Screened | None) -> Evaluation:
        time.sleep(draw(source, "delay") * float(os.environ.get(DELAY, "0")) / 1000)
        try:
            kernels.parse(source)
        except HeaderError as error:
            return Evaluation(candidate, Status.BAD_LAUNCH, "header", str(error), source, device=FINGERPRINT)
        if source != self._setup.anchor and draw(source, "status") < 0.1:
            return Evaluation(candidate, Status.WRONG_ANSWER, "validate", "output: wrong", source, device=FINGERPRINT)
        ratio = 0.2 + draw(source, "ratio")
        latency = Latency(100 * ratio, 99 * ratio, 101 * ratio, 0.01, 10)
        cases = tuple(
            CaseResult(case.name, case.role, Status.OK, error=0.1, latency=latency, anchor_us=100.0)
            for case in self._setup.workload.role(Role.PERFORMANCE)
        )
        return Evaluation(
            candidate,
            Status.OK,
            "time",
            source=source,
            score_us=100 * ratio,
            ratio=ratio,
            cases=cases,
            descriptors={
                "staging": ("direct", "shared", "async")[int(3 * draw(source, "staging"))],
                "unit": "scalar",
                "outputs": ("1", "few", "many")[int(3 * draw(source, "outputs"))],
            },
            device=FINGERPRINT,
            screen="skipped",
        )

    def compare(self, challenger: tuple[int, str], champion: tuple[int, str], number: int) -> Comparison:
        ratio = (0.2 + draw(challenger[1], "ratio")) / (0.2 + draw(champion[1], "ratio"))
        return Comparison(
            challenger[0],
            champion[0],
            Status.OK,
            ratio=ratio,
            low=0.99 * ratio,
            high=1.01 * ratio,
            blocks=10,
            promoted=1.01 * ratio < 0.995,
        )

    def close(self) -> None:
        return None


def draw(source: str, what: str) -> float:
    """Return a number in [0, 1) that depends on the source and a label alone."""
    digest = hashlib.sha256(f"{what}\0{source}".encode(errors="replace")).digest()
    return int.from_bytes(digest[:7], "little") / 2**56
