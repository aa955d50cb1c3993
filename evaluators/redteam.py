"""The red team: kernels that cheat, and honest ones that look odd, each with the verdict that it must get.

Here they are read, judged by the evaluator of any device, and the verdicts compared with what was expected. What is
printed of it is `evo.commands.redteam`'s affair.
"""

from __future__ import annotations

import functools
import platform
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from evaluators.device import DevicePlugin, EvaluatorLike, Screened, Setup
from evaluators.hidden import told
from evo import assets
from evo import workload as workloads
from evo.config import Timing, Tuning
from evo.errors import WorkloadError, did_you_mean
from evo.records import Case, Config, Evaluation, Role, Status, Workload

UNSCREENED = Screened(Status.OK, state="skipped", note="the red team tries what stands behind the screen")
HONEST = "honest"
DEVICE_FOLDERS = ("host", "cuda")
"""Folders of attacks on one device's own walls: they are run on it alone, and the screen does not look first."""

_FOLDERS = ("", *DEVICE_FOLDERS, HONEST)
_KEYS = frozenset(
    "Trick Honest Workload Status Says Hidden Gains Trials Config Long Devices Machine".split()  # noqa: SIM905
)
_KEY = re.compile(r"// ([A-Z]\w*)(?: on (\w+))?: (.*)")
_GAINS = re.compile(r"(nothing|at most (\d+(?:\.\d+)?)) over (\w+)")
_HOSTILE = "hostile"
_HOSTILE_LAUNCH = "\n/* launch\nblock: 64\ngrid: 1\n*/\n"
_NOTHING = 3.0
"""How many times faster than its honest twin a kernel may seem: what memory saves is a factor of ten and more."""
_TIMING = Timing(warmup=1, launches=10)


@dataclass(frozen=True)
class Sample:
    """One kernel, and what its first lines say must become of it; `benchmarks/redteam/README.md` explains the keys.

    Attributes:
        name: file name without `.cu`; unique.
        source: whole text, with a launch header.
        trick: what it tries, or what is unusual about it.
        honest: whether it must pass.
        workload: name.
        devices: kinds of device that it is for; empty for all.
        machine: the processor that it is for, as `platform.machine` says; "" for all.
        screened: whether the screen looks first.
        keys: the keys that may have another value on one device: (key, device or "") -> value.
        hidden: whether a hidden case must be what fails.
        twin: the honest kernel that it must not beat where it passes, or "".
        gain: how many times faster than the twin it may be.
        trials: launch configurations that are tried.
        config: the configuration that every timed case must end with; empty where any will do.
        long: whether only the long tests judge it.
    """

    name: str
    source: str
    trick: str
    honest: bool
    workload: str
    devices: frozenset[str]
    machine: str
    screened: bool
    keys: Mapping[tuple[str, str], str]
    hidden: bool
    twin: str
    gain: float
    trials: int
    config: Config
    long: bool

    def statuses(self, device: str) -> tuple[Status, ...]:
        """Return the statuses that are right on a kind of device."""
        return tuple(Status(word) for word in self._value("Status", device, "ok").split())

    def says(self, device: str) -> str:
        """Return the words that the message must hold on a kind of device."""
        return self._value("Says", device, "")

    def spared(self, device: str) -> str:
        """Say why it is not run on a kind of device, or return ""."""
        if self.devices and device not in self.devices:
            return f"for {', '.join(sorted(self.devices))} only"
        if self.machine and self.machine != platform.machine():
            return f"for {self.machine} only"
        return ""

    def _value(self, key: str, device: str, default: str) -> str:
        return self.keys.get((key, device), self.keys.get((key, ""), default))


# --- reading ----------------------------------------------------------------------------------------------------


def samples() -> tuple[Sample, ...]:
    """Return all kernels, those of one workload together, so that few evaluators are made.

    Raises:
        WorkloadError: a kernel's first lines are wrong.
    """
    root = assets.redteam_dir()
    found = [load(path) for folder in _FOLDERS for path in sorted((root / folder).glob("*.cu"))]
    return tuple(sorted(found, key=lambda sample: (sample.workload, sample.trials, sample.honest, sample.name)))


def load(path: Path) -> Sample:
    """Read one kernel; raises `WorkloadError` where its first lines are wrong."""
    source = path.read_text(encoding="utf-8")
    keys = _keys(source, path)
    place = path.parent.name
    own = place if place in DEVICE_FOLDERS else ""
    _, gain, twin = _gains(keys.get(("Gains", ""), ""), path)
    pairs = (pair.split("=") for pair in keys.get(("Config", ""), "").split())
    honest = ("Honest", "") in keys
    return Sample(
        path.stem,
        source + _HOSTILE_LAUNCH if place == "host" else source,
        keys[("Honest" if honest else "Trick", "")],
        honest,
        keys.get(("Workload", ""), _HOSTILE if place == "host" else ""),
        frozenset(keys.get(("Devices", ""), own).split()),
        keys.get(("Machine", ""), ""),
        not own,
        keys,
        ("Hidden", "") in keys,
        twin,
        gain,
        int(keys.get(("Trials", ""), "0")),
        {name: int(value) for name, value in pairs},
        ("Long", "") in keys,
    )


def _keys(source: str, path: Path) -> dict[tuple[str, str], str]:
    """Return (key, device or "") -> value of the comment lines at the top."""
    keys: dict[tuple[str, str], str] = {}
    for line in source.splitlines():
        if not line.startswith("//"):
            break
        if found := _KEY.fullmatch(line):
            keys[found[1], found[2] or ""] = found[3]
    for name, device in keys:
        if name not in _KEYS:
            raise WorkloadError(f"{path}: unknown key {name!r}{did_you_mean(name, _KEYS)}")
        if device and name not in ("Status", "Says"):
            raise WorkloadError(f"{path}: {name!r} is the same on every device; only Status and Says may differ")
    if (("Trick", "") in keys) == (("Honest", "") in keys):
        raise WorkloadError(f"{path}: expected one of `// Trick:` and `// Honest:` at the top, found both or none")
    return keys


def _gains(text: str, path: Path) -> tuple[str, float, str]:
    if not text:
        return "", 0.0, ""
    found = _GAINS.fullmatch(text)
    if found is None:
        raise WorkloadError(f"{path}: expected `Gains: nothing over NAME` or `at most F over NAME`, found {text!r}")
    return found[1], float(found[2] or _NOTHING), found[3]


def twin(sample: Sample) -> Sample:
    """Return the honest kernel that a sample is measured against."""
    return load(assets.redteam_dir() / HONEST / f"{sample.twin}.cu")


@functools.cache
def workload(name: str) -> Workload:
    """Return a shipped workload, or one of the red team's own."""
    own = assets.redteam_dir() / "workloads" / name
    return workloads.load(str(own) if own.is_dir() else name)


# --- judging ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Result:
    """What became of one kernel.

    Attributes:
        sample: the kernel.
        verdict: the evaluator's.
        fault: how the verdict differs from what was expected; "" where it does not.
        seconds: wall time.
    """

    sample: Sample
    verdict: Evaluation
    fault: str
    seconds: float


class Court:
    """Judges kernels on one device, with short timings; one evaluator is open at a time, of one workload.

    Args:
        device: the plug-in.
        core: CPU core that timed jobs are pinned to, or None.
    """

    def __init__(self, device: DevicePlugin, core: int | None = None) -> None:
        self._plugin = device
        self._core = core
        self.kind = device.describe().kind
        self._open: tuple[tuple[str, int], EvaluatorLike] | None = None
        self._twins: dict[str, Evaluation] = {}

    def judge(self, sample: Sample, screened: Screened | None = None, number: int = 1) -> Evaluation:
        """Return the whole verdict on a kernel.

        Args:
            sample: the kernel.
            screened: None has it screened as a candidate of a search is, where the sample permits it.
            number: of the candidate; another number is timed on other inputs.
        """
        seen = screened if sample.screened else UNSCREENED
        return self._evaluator(sample.workload, sample.trials).evaluate(number, sample.source, seen)

    def hear(self, sample: Sample, number: int = 1) -> Result:
        """Judge a kernel, and compare the verdict with what is expected."""
        started = time.monotonic()
        verdict = self.judge(sample, number=number)
        blind = None if sample.screened else verdict
        wrong = fault(sample, verdict, self.kind) or self.unfair_gain(sample, blind, number)
        return Result(sample, verdict, wrong, time.monotonic() - started)

    def unfair_gain(self, sample: Sample, blind: Evaluation | None = None, number: int = 1) -> str:
        """Say what a kernel that remembers has gained over its honest twin where no checker looks, or return "".

        Args:
            sample: the kernel.
            blind: the verdict without a screen, where it is known.
            number: see `judge`.
        """
        if not sample.twin:
            return ""
        verdict = blind or self.judge(sample, UNSCREENED, number)
        if verdict.status in (Status.WRONG_ANSWER, Status.UNSAFE):
            return ""
        if sample.twin not in self._twins:
            self._twins[sample.twin] = self.judge(twin(sample), UNSCREENED)
        measure = self._twins[sample.twin]
        if measure.ratio is None or (verdict.ratio is None and verdict.status is Status.OK):
            return f"cannot be compared with {sample.twin}: {measure.message or verdict.doubts or measure.status}"
        if verdict.ratio is None:
            return "" if verdict.status in sample.statuses(self.kind) else f"unscreened: {_found(verdict)}"
        times = measure.ratio / verdict.ratio
        return "" if times < sample.gain else f"unscreened, it is {times:.1f} times as fast as {sample.twin}"

    def close(self) -> None:
        """Close the evaluator. May be called twice."""
        if self._open is not None:
            self._open[1].close()
            self._open = None

    def _evaluator(self, name: str, trials: int) -> EvaluatorLike:
        if self._open is None or self._open[0] != (name, trials):
            self.close()
            found = workload(name)
            setup = Setup(found, _TIMING, Tuning(trials=trials), seed=0, anchor=found.initial, core=self._core)
            self._open = (name, trials), self._plugin.evaluator(setup)
        return self._open[1]


def fault(sample: Sample, verdict: Evaluation, device: str) -> str:
    """Say how a verdict differs from what is expected of a kernel on a kind of device, or return ""."""
    expected = sample.statuses(device)
    if verdict.status not in expected:
        return f"expected {' or '.join(expected)}, found {_found(verdict)}"
    if sample.says(device) not in verdict.message:
        return f"expected words of the message: {sample.says(device)!r}, found {_found(verdict)}"
    passed = verdict.status is Status.OK
    if passed != (verdict.message == "") or passed != (verdict.score_us is not None):
        return f"message or score do not go with the status: {_found(verdict)}, score {verdict.score_us}"
    if sample.honest and verdict.findings:
        return f"false alarm: {verdict.findings[0].message}"
    return _hidden_fault(sample, verdict) or _config_fault(sample, verdict)


def _found(verdict: Evaluation) -> str:
    return f"{verdict.status}: {verdict.message}" if verdict.message else str(verdict.status)


def _hidden_fault(sample: Sample, verdict: Evaluation) -> str:
    if not sample.hidden:
        return ""
    if "hidden case" not in verdict.message:
        return f"expected a hidden case to fail, found {_found(verdict)}"
    told_of = _secrets(sample) & _words_told(verdict)
    return f"the verdict tells of a hidden case: {', '.join(sorted(told_of))}" if told_of else ""


def _secrets(sample: Sample) -> set[str]:
    """Return names and numbers of hidden cases; a number that may be a line of the kernel is no secret."""
    lines = sample.source.count("\n")
    cases = workload(sample.workload).role(Role.HIDDEN)
    numbers = {str(value) for case in cases for value in case.dims.values() if value > lines}
    return numbers | {case.name for case in cases}


def _words_told(verdict: Evaluation) -> set[str]:
    results = "".join(result.message for result in verdict.cases)
    text = f"{verdict.message} {verdict.findings} {results} {verdict.doubts}"
    always = told(Case("", Role.HIDDEN, {}), verdict.status, "")  # its words are also names of cases, as "prime" is
    return set(re.findall(r"\w+", text)) - set(re.findall(r"\w+", always))


def _config_fault(sample: Sample, verdict: Evaluation) -> str:
    if not sample.config:
        return ""
    timed = [dict(result.config) for result in verdict.cases if result.role is Role.PERFORMANCE]
    right = bool(timed) and all(config == sample.config for config in timed)
    return "" if right else f"expected the configuration {dict(sample.config)} on every timed case, found {timed}"
