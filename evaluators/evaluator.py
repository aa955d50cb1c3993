"""The verdict on one kernel, stage by stage: header, screen, compile, validate, tune, time; and comparisons of two.

Runs in the parent of the harness. What was measured is data, a bad candidate is a status; only a failing system raises.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace

import numpy as np

from evaluators import comparison, descriptors, limits, nsight, prescreen, sanitizer, timing, trials
from evaluators.baseline import Baseline
from evaluators.bench import Outcome
from evaluators.builder import Programs
from evaluators.device import DevicePlugin, Screened, Setup
from evaluators.hidden import told, told_findings
from evaluators.lab import Lab, time_limit_s
from evo.errors import HeaderError
from evo.records import (
    BASELINE_ID,
    Case,
    CaseResult,
    Comparison,
    Config,
    Evaluation,
    Finding,
    Resources,
    Role,
    Status,
    Trial,
)
from evo.statistics import geometric_mean

CLOCK_LOOKS = 4
"""The scheduler of a busy machine can make an honest kernel look like a liar, but hardly so often in a row."""
TIMING_S = 1.0
"""Wall time that timing a candidate may take, all performance cases together; each gets at most a second."""
SALTS = 3
"""Input sets that final timings rotate through; none is the one that tuning saw."""


class Evaluator:
    """Judges kernels of one workload on one device.

    Args:
        device: the plug-in; its `run` is called in the harness child alone.
        setup: workload, timing, tuning, seed, anchor, core, builder.
        holding: is entered now and left by `close`: a lock on the device, say.
    """

    def __init__(
        self, device: DevicePlugin, setup: Setup, holding: AbstractContextManager[object] | None = None
    ) -> None:
        self._held = ExitStack()
        self._held.enter_context(holding or nullcontext())
        self._lab = Lab(device, setup)
        self._latest: Programs | None = None
        self._profiler = nsight.Profiler(self._lab)
        self._sanitizer = sanitizer.Sanitizer(self._lab)

    def evaluate(self, candidate: int, source: str, screened: Screened | None = None) -> Evaluation:
        """Return the whole verdict on one kernel.

        Args:
            candidate: id in the store; 0 outside a run.
            source: the kernel file.
            screened: what the pre-screen said; None screens here first.
        """
        lab = self._lab
        if screened is None:
            screened = self._screen(source)
        if screened.state == "rejected":
            return prescreen.rejection(candidate, source, screened, lab.facts.fingerprint)
        judgement = _Judgement(lab, candidate, source, screened)
        verdict = judgement.verdict()
        self._latest = judgement.tuned
        return self._profiler.add(verdict, judgement.tuned)

    def compare(self, challenger: tuple[int, str], champion: tuple[int, str], number: int) -> Comparison:
        """Measure two kernels interleaved, block by block, then once more in a second process before promotion.

        A challenger that won is looked at by compute-sanitizer, where that is, and not promoted if it finds a fault.

        Args:
            challenger: id and source.
            champion: id and source.
            number: counts the run's comparisons from 1; sets the level α.

        Raises:
            HeaderError: a source has no readable header, so that it cannot have been evaluated.
        """
        contenders = [comparison.Contender(id, self._runnable(id, text)) for id, text in (challenger, champion)]
        compared = comparison.compare(self._lab, contenders[0], contenders[1], number)
        programs = contenders[0].programs
        return compared if isinstance(programs, Baseline) else self._sanitizer.confirm(compared, programs)

    def _runnable(self, id: int, source: str) -> Programs | Baseline:
        """Return what to time of a contender; programs at hand where it was judged last, as a challenger mostly was."""
        if id == BASELINE_ID:
            return Baseline(self._lab.setup.workload)
        latest = self._latest
        return latest if latest is not None and latest.kernel.source == source else self._lab.programs(source)

    def _screen(self, source: str) -> Screened:
        lab = self._lab
        if not prescreen.applies_to(lab.plugin):
            return prescreen.not_screened()
        return prescreen.screen(source, lab.setup.workload, lab.facts, lab.setup.seed)

    def close(self) -> None:
        """Stop the children and the builds, and remove scratch folders. May be called twice."""
        self._lab.close()
        self._held.close()

    def __enter__(self) -> Evaluator:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


@dataclass(frozen=True)
class _Failure:
    """The first thing that went wrong."""

    status: Status
    message: str
    findings: tuple[Finding, ...] = ()


class _Judgement:
    """One candidate on its way through the stages; each returns the failure that ends it, or None."""

    def __init__(self, lab: Lab, candidate: int, source: str, screened: Screened) -> None:
        self._lab = lab
        self._candidate = candidate
        self._source = source
        self._screened = screened
        self._stage = "header"
        self._seconds: dict[str, float] = {"screen": screened.seconds}
        self._cases: list[CaseResult] = []
        self._trials: tuple[Trial, ...] = ()
        self._resources: dict[str, Resources] = dict(screened.resources)
        self._doubts: list[str] = []
        self._advice = tuple(finding for finding in screened.findings if finding.advice)
        self._programs: Programs | None = None
        self.tuned: Programs | None = None

    def verdict(self) -> Evaluation:
        """Run the stages up to the first failure."""
        stages = {
            "header": self._header,
            "compile": self._compile,
            "validate": self._validate,
            "tune": self._tune,
            "time": self._time,
        }
        failure = None
        for name, stage in stages.items():
            with self._clock(name):
                failure = stage()
            if failure is not None:
                break
        return self._evaluation(failure)

    @contextmanager
    def _clock(self, stage: str) -> Iterator[None]:
        self._stage, started = stage, time.monotonic()
        yield
        self._seconds[stage] = time.monotonic() - started

    # --- stages -------------------------------------------------------------------------------------------------

    def _header(self) -> _Failure | None:
        try:
            self._programs = self.tuned = self._lab.programs(self._source)
        except HeaderError as error:
            return _Failure(Status.BAD_LAUNCH, str(error))
        for case in self._all_cases():
            try:
                self._programs.plan(case)
            except HeaderError as error:
                return self._failed(case, Outcome(Status.BAD_LAUNCH, str(error)))
        return None

    def _compile(self) -> _Failure | None:
        cases = self._all_cases()
        builds = [self._built.submit(self._built.plan(case)) for case in cases]
        for case, build in zip(cases, builds, strict=True):
            binary = build.result()
            if binary.status is not Status.OK:
                hidden = case.role is Role.HIDDEN
                return _Failure(binary.status, told(case, binary.status, "") if hidden else binary.message)
            for name, used in binary.resources.items():
                self._resources.setdefault(name, used)
        return None

    def _validate(self) -> _Failure | None:
        for case in self._all_cases():
            outcome = self._lab.validate(self._built, case)
            if outcome.status is not Status.OK:
                return self._failed(case, outcome)
            if case.role is not Role.PERFORMANCE:  # its result is the timed one
                self._cases.append(self._result(case, outcome))
        return None

    def _tune(self) -> _Failure | None:
        tuned, self._trials = trials.tune(self._lab, self._built, self._check_config)
        if tuned is not None:
            self.tuned = self._built.under(tuned)
        return None

    def _check_config(self, case: Case, config: Config) -> trials.Fault | None:
        """Say what the checker has against a configuration, where it could look at the kernel at all."""
        if self._screened.state != "passed":
            return None
        setup = self._lab.setup
        seen = prescreen.check_config(self._built.kernel, case, config, setup.workload, self._lab.facts, setup.seed)
        self._advice = prescreen.together(self._advice, [finding for finding in seen.findings if finding.advice])
        return (seen.status, seen.message) if seen.state == "rejected" else None

    def _time(self) -> _Failure | None:
        assert self.tuned is not None
        lab = self._lab
        lab.supervisor.settle()
        self._doubts += timing.load_doubts() + limits.unknown_doubt(lab, initial=self._candidate == 0)
        cases = lab.cases(Role.PERFORMANCE)
        for case in cases:
            failure = self._time_case(self.tuned, case, min(1.0, TIMING_S / len(cases)))
            if failure is not None:
                return failure
        return None

    def _time_case(self, programs: Programs, case: Case, budget_s: float) -> _Failure | None:
        """Time a case in two halves with the anchor before, between and after, so that drift cancels, and shows."""
        salt = 1 + self._candidate % SALTS
        anchors = [self._anchor(case, salt, budget_s / 8)]
        halves: list[timing.Measurement[Outcome]] = []
        for _ in range(2):
            taken, fault = self._time_half(programs, case, salt, 5 * budget_s / 16, anchors[-1])
            if taken.failed is not None:
                return self._failed(case, taken.failed)
            if fault:
                return self._failed(case, Outcome(Status.UNSAFE, fault))
            halves.append(taken)
            anchors.append(self._anchor(case, salt, budget_s / 8))
        anchor = [sample for measured in anchors for sample in measured.samples_us]
        doubts = timing.drift_doubt(anchors[0].samples_us, anchors[-1].samples_us)
        doubts += tuple(dict.fromkeys(doubt for half in halves for doubt in half.last.doubts))
        timed = replace(
            self._result(case, halves[-1].last),
            latency=timing.summarise(halves[0].samples_us + halves[1].samples_us, doubts),
            anchor_us=float(np.median(anchor)) if anchor else None,
            config=programs.kernel.config_for(case.dims),
            conditions=halves[-1].last.conditions,
        )
        held = limits.hold(self._lab, programs, case, timed, initial=self._candidate == 0)
        if isinstance(held, Outcome):
            return self._failed(case, held)
        self._cases.append(held)
        return None

    def _time_half(
        self, programs: Programs, case: Case, salt: int, budget_s: float, anchor: timing.Measurement[Outcome]
    ) -> tuple[timing.Measurement[Outcome], str]:
        """Measure half of a candidate's samples; say how its clock contradicts the parent's, after several looks."""
        rules = timing.rules(self._lab.setup.timing, budget_s, least=3)
        rules = replace(rules, launches=max(rules.least, rules.launches // 2))
        for _ in range(CLOCK_LOOKS):
            taken = self._lab.time(programs, case, rules, salt=salt, limit_s=time_limit_s(anchor))
            fault = "" if taken.failed else timing.clock_fault(taken, anchor.overhead_us)
            if not fault:
                break
        return taken, fault

    # --- helpers ------------------------------------------------------------------------------------------------

    @property
    def _built(self) -> Programs:
        assert self._programs is not None
        return self._programs

    def _all_cases(self) -> tuple[Case, ...]:
        """Return all cases, hidden ones last, so that a failure is told about a shown case where possible."""
        return self._lab.cases(Role.CORRECTNESS, Role.PERFORMANCE) + self._lab.cases(Role.HIDDEN)

    def _anchor(self, case: Case, salt: int, budget_s: float) -> timing.Measurement[Outcome]:
        rules = timing.rules(self._lab.setup.timing, budget_s, least=2)
        taken = self._lab.time(self._lab.anchor, case, rules, salt=salt)
        if taken.failed is not None:
            self._doubts.append(f"the anchor failed on case {case.name!r}: {taken.failed.message}")
        return taken

    def _result(self, case: Case, outcome: Outcome, message: str = "") -> CaseResult:
        config = self._built.kernel.config_for(case.dims)
        return CaseResult(case.name, case.role, outcome.status, message, outcome.error, config=config)

    def _failed(self, case: Case, outcome: Outcome) -> _Failure:
        message = told(case, outcome.status, outcome.message, outcome.findings)
        self._cases.append(self._result(case, outcome, message))
        return _Failure(outcome.status, message, told_findings(case, outcome.findings))

    def _evaluation(self, failure: _Failure | None) -> Evaluation:
        verdict = Evaluation(
            candidate=self._candidate,
            status=Status.OK if failure is None else failure.status,
            stage=self._stage,
            message="" if failure is None else failure.message,
            source=self._source if self.tuned is None else self.tuned.kernel.source,
            cases=tuple(self._cases),
            trials=self._trials,
            findings=self._findings(failure),
            resources=self._resources,
            descriptors=self._described(),
            device=self._lab.facts.fingerprint,
            screen=self._screened.state,
            screen_note=self._screened.note,
            doubts=tuple(dict.fromkeys(self._doubts)),
            stage_seconds=self._seconds,
        )
        if failure is not None:
            return verdict
        score_us, ratio = _scores(self._cases)
        return replace(verdict, score_us=score_us, ratio=ratio)

    def _findings(self, failure: _Failure | None) -> tuple[Finding, ...]:
        """Return a failure's findings, and behind its faults all advice, in the words that tell most."""
        found = prescreen.together(self._advice, () if failure is None else failure.findings)
        return tuple(sorted(found, key=lambda finding: finding.advice))

    def _described(self) -> dict[str, str]:
        cases = self._lab.cases(Role.PERFORMANCE)
        if self._programs is None or not cases:
            return {}
        try:
            plan = self._programs.plan(cases[0])
        except HeaderError:
            return {}
        workload, kernel = self._lab.setup.workload, self._programs.kernel
        return descriptors.describe(kernel, workload, cases[0], plan, self._resources)


def _scores(results: list[CaseResult]) -> tuple[float | None, float | None]:
    """Return the score in microseconds and the ratio to the anchor: geometric means over the performance cases."""
    timed = [(result.latency.median_us, result.anchor_us) for result in results if result.latency]
    if not timed:
        return None, None
    ratios = [median_us / anchor_us for median_us, anchor_us in timed if anchor_us]
    score_us = geometric_mean(median_us for median_us, _ in timed)
    return score_us, geometric_mean(ratios) if len(ratios) == len(timed) else None
