"""The commands that judge one kernel, without Ray: `eval`, `tune`, `check`, `init`, `verify`."""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evo import config as configs
from evo import workload
from evo.commands import folders, output
from evo.config import Config
from evo.errors import ConfigError, EvoError, WorkloadError, did_you_mean
from evo.records import CaseResult, Evaluation, Finding, Role, Status, Workload
from evo.report import history, style, text
from evo.report.history import History
from evo.report.summary import CPU_IS_NOT_GPU
from evo.workload import scaffold
from evo.workload import sizes as quantities
from mutators import profiles, rooflines

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from evaluators.device import Screened

REJECTED = 1


def evaluate(
    kernel: Path, name: str, overrides: Sequence[str], *, device: str, trials: int, out: Path | None, as_json: bool
) -> int:
    """Judge one kernel whole and say so; return the exit code.

    Args:
        kernel: file.
        name: of the workload, or its folder.
        overrides: of a config's keys.
        device: `auto` or a device plug-in.
        trials: launch configurations to try at most; 0 takes the header's.
        out: where the kernel goes with its tuned launch rules; None writes nothing.
        as_json: write a JSON document instead of text.
    """
    source, whole = _source(kernel), workload.load(name)
    config = configs.load(
        "workload: one kernel", ["operators={rules: 1}", f"device={device}", f"tuning.trials={trials}", *overrides]
    )
    evaluation = _with_report_beside(kernel, _judge(source, whole, config))
    if out is not None and evaluation.status is Status.OK:
        out.write_text(evaluation.source, encoding="utf-8")
    if as_json:
        output.data(evaluation)
    else:
        output.show(_verdict(evaluation, config))
        if out is not None and evaluation.status is Status.OK:
            output.show([f"\nwritten with its tuned launch rules: {out}"])
    return 0 if evaluation.status is Status.OK else REJECTED


def check(kernel: Path, name: str | None, *, seed: int, as_json: bool) -> int:
    """Look for races, bounds and other faults on the CPU; return the exit code."""
    from evaluators import prescreen
    from evo.runner import devices

    judged = subject(kernel, name)
    screened = prescreen.screen(judged.source, judged.workload, devices.make("host").describe(), seed)
    if as_json:
        output.data({**dataclasses.asdict(screened), "guessed": judged.guesses})
    else:
        output.show(_screening(screened))
        output.show(guessed(judged.guesses, doubtful=bool(screened.findings)))
    return REJECTED if screened.state == "rejected" else 0


def init(kernel: Path, folder: Path, entry: str | None, *, as_json: bool) -> int:
    """Write a workload folder for a kernel, to be reviewed; return the exit code."""
    written = scaffold.write(_source(kernel), folder, entry)
    if as_json:
        output.data(written)
        return 0
    output.show(
        [f"[bold]{written.folder}[/bold]: workload.yaml, reference.py, initial.cu", "\nGuessed; please review:"]
    )
    output.show(_plain_lines(f"  {review}" for review in written.reviews))
    output.show([f"\nThen: evo eval {written.folder}/initial.cu --workload {written.folder}"])
    return 0


def verify(name: str, case: str | None, candidate: int | None, results: Path, *, as_json: bool) -> int:
    """Run a stored kernel again and compare with what is stored; return the exit code."""
    found = history.load(folders.find(name, results))
    number = found.champion if candidate is None else candidate
    if number not in found.candidates:
        raise EvoError(f"{name}: expected a candidate from 0 to {max(found.candidates)}, found {number}")
    whole = found.meta.workload if case is None else _only(found.meta.workload, case)
    tuning = found.meta.config.tuning.model_copy(update={"trials": 0})
    config = found.meta.config.model_copy(update={"tuning": tuning, "profile": "none"})
    evaluation = _judge(found.source(number), whole, config)
    if as_json:
        output.data({"candidate": number, "stored": found.evaluations.get(number), "now": evaluation})
    else:
        output.show(_verification(found, number, evaluation))
    return 0 if evaluation.status is Status.OK else REJECTED


# --- judging ----------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Subject:
    """A kernel with a workload: its own, or one guessed from its signature, and the guesses that matter."""

    source: str
    workload: Workload
    guesses: tuple[str, ...] = ()


def subject(kernel: Path, name: str | None) -> Subject:
    """Read a kernel and its workload; where none is named, guess inputs and launch.

    Raises:
        EvoError: the file cannot be read.
        WorkloadError: the workload is wrong, or none can be guessed.
    """
    source = _source(kernel)
    if name is not None:
        return Subject(source, workload.load(name))
    whole, guesses = _guessed(source)
    return Subject(_with_header(source, whole.initial), whole, guesses)


def _source(kernel: Path) -> str:
    try:
        return kernel.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise EvoError(f"{kernel}: expected a kernel's text (.cu): {error}") from error


def _judge(source: str, whole: Workload, config: Config) -> Evaluation:
    from evaluators.device import Setup
    from evo.runner import devices

    name = devices.choose(config.device)
    if idle := configs.idle_profile(config.model_copy(update={"device": name})):
        raise ConfigError(f"profile: {idle}")
    plugin, core = devices.make(name), devices.timing_core(name)
    setup = Setup(whole, config.timing, config.tuning, config.seed, whole.initial, core, config.profile)
    with devices.kept_off(core), contextlib.closing(plugin.evaluator(setup)) as evaluator:
        return evaluator.evaluate(0, source, None)


def _with_report_beside(kernel: Path, evaluation: Evaluation) -> Evaluation:
    """Write a profiler's report beside the kernel that it is of."""
    profile = evaluation.profile
    if profile is None or not profile.report:
        return evaluation
    file = kernel.with_suffix(".ncu-rep")
    file.write_bytes(base64.b64decode(profile.report))
    return dataclasses.replace(evaluation, profile=dataclasses.replace(profile, report="", file=str(file)))


def _guessed(source: str) -> tuple[Workload, tuple[str, ...]]:
    """Return a workload guessed from the kernel's signature, and those guesses that matter to the checker."""
    with tempfile.TemporaryDirectory() as scratch:
        try:
            written = scaffold.write(source, Path(scratch) / "guessed")
            whole = workload.load(str(written.folder))
        except EvoError as error:
            raise WorkloadError(f"no inputs can be guessed from the kernel; give --workload: {error}") from error
    parameters = (f"{p.name}: {p.dtype}[{', '.join(p.shape)}]" for p in whole.parameters if p.shape)
    cases = (f"{', '.join(f'{k}={v}' for k, v in case.dims.items())}" for case in whole.role(Role.CORRECTNESS))
    launch = (line for line in whole.initial.removesuffix(source).splitlines() if "block:" in line or "grid:" in line)
    return dataclasses.replace(whole, reference=_no_answers(whole)), (*parameters, *cases, *launch)


def _no_answers(whole: Workload) -> str:
    """Return a reference of zeros: the checker watches accesses and needs no answer, and a guess has none."""
    shapes = {
        tuple(sorted(case.dims.items())): {
            parameter.name: (quantities.shape(parameter, case), "int64" if parameter.dtype[0] in "iu" else "float64")
            for parameter in whole.outputs
        }
        for case in whole.cases
    }
    return (
        f"import numpy as np\n\nSHAPES = {shapes!r}\n\n\ndef reference(inputs, dims):\n"
        "    outputs = SHAPES[tuple(sorted(dims.items()))]\n"
        "    return {name: np.zeros(shape, dtype) for name, (shape, dtype) in outputs.items()}\n"
    )


def _with_header(source: str, initial: str) -> str:
    """Return the source with the guessed header below it, so that findings carry the file's own lines."""
    return f"{source}\n{initial.removesuffix(source)}"


def _only(whole: Workload, case: str) -> Workload:
    """Return the workload with this case, and beside it the least that a verdict needs: one to check, one to time."""
    names = [known.name for known in whole.cases]
    if case not in names:
        raise WorkloadError(f"workload {whole.name}: no case {case!r}{did_you_mean(case, names)}")
    chosen = whole.cases[names.index(case)]
    needed = (whole.role(role)[0] for role in (Role.CORRECTNESS, Role.PERFORMANCE) if role is not chosen.role)
    return dataclasses.replace(whole, cases=(chosen, *needed))


# --- saying -----------------------------------------------------------------------------------------------------


def _verdict(evaluation: Evaluation, config: Config) -> Iterator[RenderableType]:
    from rich.markup import escape

    colour = "green" if evaluation.status is Status.OK else "red"
    stage = "" if evaluation.status is Status.OK else f" at {evaluation.stage}"
    yield f"[bold {colour}]{evaluation.status.replace('_', ' ')}[/bold {colour}]{stage}"
    if evaluation.message:
        yield escape(evaluation.message)
    yield from _plain_lines(_finding(finding) for finding in evaluation.findings)
    if evaluation.cases:
        yield _cases(evaluation.cases)
    if evaluation.score_us is not None:
        yield f"score {evaluation.score_us:.4g} µs" + _relative(evaluation)
    if evaluation.trials:
        yield f"{len(evaluation.trials)} launch configurations tried"
    for kernel, used in evaluation.resources.items():
        if used.registers is not None:
            yield f"[dim]{kernel}: {used.registers} registers, {used.spill_bytes or 0} bytes spilled[/dim]"
    yield from _plain_lines(_profile(evaluation))
    screen = f"{evaluation.screen} {evaluation.screen_note}".strip()
    seconds = ", ".join(f"{name} {spent:.2f} s" for name, spent in evaluation.stage_seconds.items())
    yield f"[dim]screen {escape(screen)}; {seconds}[/dim]"
    yield from text.doubts(_doubts(evaluation, config))


def _profile(evaluation: Evaluation) -> Iterator[str]:
    """Say what Nsight Compute saw, or why it saw nothing, where it was asked."""
    if evaluation.profile is not None:
        yield profiles.describe(evaluation.profile) or evaluation.profile.problem
        if evaluation.profile.file:
            yield f"the report: {evaluation.profile.file}"


def _doubts(evaluation: Evaluation, config: Config) -> tuple[str, ...]:
    from evo.runner import devices

    on_host = devices.choose(config.device) == "host" and evaluation.score_us is not None
    of_cases = [f"{case.case}: {doubt}" for case in evaluation.cases if case.latency for doubt in case.latency.doubts]
    return ((CPU_IS_NOT_GPU,) if on_host else ()) + evaluation.doubts + tuple(of_cases)


def _relative(evaluation: Evaluation) -> str:
    if evaluation.ratio is None:
        return ""
    return f", {style.times(1 / evaluation.ratio)} as fast as the workload's first kernel"


def _cases(results: Sequence[CaseResult]) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    made = Table(box=SIMPLE_HEAD, header_style="bold", pad_edge=False)
    peaks = any(result.roofline for result in results)
    of_peak = ("of peak",) if peaks else ()
    for column in ("case", "role", "verdict", "error / tolerance", "latency µs", *of_peak, "launch"):
        made.add_column(column)
    for result in results:
        error = "" if result.error is None else f"{result.error:.2g}"
        latency = text.interval(result.latency) if result.latency else ""
        share = [rooflines.short(result.roofline)] if peaks else []
        config = " ".join(f"{name}={value}" for name, value in result.config.items())
        made.add_row(result.case, str(result.role), result.status.replace("_", " "), error, latency, *share, config)
    return made


def _screening(screened: Screened) -> Iterator[RenderableType]:
    colour = {"passed": "green", "rejected": "red"}.get(screened.state, "yellow")
    found = "" if screened.status is Status.OK else f": {screened.status.replace('_', ' ')}"
    yield f"[bold {colour}]{screened.state}[/bold {colour}]{found}"
    yield from _plain_lines(line for line in (screened.message, screened.note) if line)
    yield from _plain_lines(
        _finding(finding) for finding in screened.findings if finding.message not in screened.message
    )
    for kernel, used in screened.resources.items():
        yield f"[dim]{kernel}: {used.registers} registers, {used.spill_bytes or 0} bytes spilled[/dim]"
    yield f"[dim]{screened.seconds:.2f} s[/dim]"


def guessed(guesses: Sequence[str], *, doubtful: bool = False) -> Iterator[RenderableType]:
    """Say what was guessed, where anything was; `doubtful` adds that a finding may come of it."""
    if guesses:
        fault = " A finding may be the guess's fault." if doubtful else ""
        yield f"\nInputs and launch were guessed; --workload or a launch header gives the exact ones.{fault} Guessed:"
        yield from _plain_lines(f"  {guess}" for guess in guesses)


def _finding(finding: Finding) -> str:
    advice = "advice (no fault): " if finding.advice else ""
    return f"  {advice}{finding.kind}: line {finding.line}: {finding.message}"


def _verification(found: History, number: int, now: Evaluation) -> Iterator[RenderableType]:
    from rich.box import SIMPLE_HEAD
    from rich.markup import escape
    from rich.table import Table

    stored = found.evaluations.get(number)
    before = {result.case: result for result in stored.cases} if stored else {}
    verdict = "[bold green]verified[/bold green]" if now.status is Status.OK else f"[bold red]{now.status}[/bold red]"
    yield f"kernel {number} of {found.folder}: {verdict}"
    if now.message:
        yield escape(now.message)
    made = Table(box=SIMPLE_HEAD, header_style="bold", pad_edge=False)
    for column in ("case", "role", "verdict", "error / tolerance", "stored µs", "now µs"):
        made.add_column(column)
    for result in now.cases:
        old: Any = before.get(result.case)
        error = "" if result.error is None else f"{result.error:.2g}"
        latencies = (text.interval(old.latency if old else None), text.interval(result.latency))
        shown = latencies if result.latency else ("", "")
        made.add_row(result.case, str(result.role), result.status.replace("_", " "), error, *shown)
    yield made
    if now.device != found.meta.device.fingerprint:
        yield "[yellow]Another device than the run's: the latencies do not compare.[/yellow]"


def _plain_lines(lines: Iterator[str]) -> Iterator[RenderableType]:
    from rich.text import Text

    for line in lines:
        yield Text(line)
