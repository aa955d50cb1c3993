"""Turns an evaluation into words for a model: the verdict, what is wrong and where, latencies against the anchor.

Whatever a kernel or a tool wrote is quoted in fences. Nothing of a hidden case may enter: `without_hidden` drops it
again even where a caller already has.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Sequence

from evo.quoting import clean, fence, shorten
from evo.records import Case, CaseResult, Config, Evaluation, Finding, Resources, Role, Status, Trial, Workload
from mutators import profiles, rooflines
from mutators.prompts import workloads

MAX_MESSAGE = 4000
"""Characters of one quoted message: the first errors of a compiler say most, its last lines how many there were."""

_MOST_FINDINGS = 12
_MOST_LINES = 8
_NAMED_LINE = re.compile(r"\bline (\d{1,6})\b|\((\d{1,6})\): (?:error|warning|catastrophic)|:(\d{1,6}):\d+: ")

HIDDEN_FAILED = (
    "A hidden case failed. Hidden cases have other sizes (odd, prime, one more or less than a tile), other values and "
    "pointers aligned only as promised. Nothing more is said about them: make the kernel right for every input that "
    "the workload allows."
)

_ADVISED = "The checker also advises; none of this is a fault, and it had no part in the verdict:"

_VERDICTS = {
    Status.OK: "right on every case",
    Status.NO_PROPOSAL: "there was no kernel to evaluate",
    Status.DUPLICATE: "the same program as an earlier candidate",
    Status.BAD_LAUNCH: "the launch header does not give a launch that the device allows",
    Status.UNSUPPORTED: "uses something that this device cannot run",
    Status.COMPILE_ERROR: "does not compile",
    Status.LAUNCH_ERROR: "the launch failed",
    Status.WRONG_ANSWER: "computes a wrong answer",
    Status.UNSAFE: "does something forbidden (memory out of bounds, a data race, a changed input, a banned construct)",
    Status.TIMEOUT: "did not finish in time",
    Status.CRASH: "crashed",
}


def without_hidden(evaluation: Evaluation) -> Evaluation:
    """Return the evaluation without anything that tells of a hidden case.

    Where a hidden case failed, the verdict's message and findings go too, because they speak of that case.
    """
    hidden = [result for result in evaluation.cases if result.role is Role.HIDDEN]
    names = {result.case for result in hidden}
    public = dataclasses.replace(
        evaluation,
        cases=tuple(result for result in evaluation.cases if result.role is not Role.HIDDEN),
        trials=tuple(trial for trial in evaluation.trials if trial.case not in names),
        doubts=tuple(doubt for doubt in evaluation.doubts if not _mentions(doubt, names)),
    )
    betrayed = any(result.status is not Status.OK for result in hidden) or _mentions(evaluation.message, names)
    return dataclasses.replace(public, message=HIDDEN_FAILED, findings=()) if betrayed else public


def verdict(evaluation: Evaluation | None) -> str:
    """Return the verdict in one line, without anything that a kernel wrote."""
    if evaluation is None:
        return "not evaluated yet"
    words = f"{evaluation.status.value}: {_VERDICTS[evaluation.status]}"
    if evaluation.status is not Status.OK:
        return f"{words} (found at stage {evaluation.stage!r})" if evaluation.stage else words
    return f"{words}; {_score(evaluation)}"


def describe(evaluation: Evaluation | None, source: str, workload: Workload) -> str:
    """Return everything that a model may know of an evaluation, as Markdown.

    Args:
        evaluation: of the kernel; None when it has none yet.
        source: the kernel's own text; lines that a message names are quoted from it.
        workload: gives a case's dims, useful operations and compulsory bytes.
    """
    if evaluation is None:
        return "Verdict: not evaluated yet."
    public = without_hidden(evaluation)
    parts = [
        *_verdict_and_causes(public, source),
        _cases(public, workload),
        _trials(public.trials),
        _resources(public),
        profiles.describe(public.profile),
        _doubts(public),
    ]
    return "\n\n".join(part for part in parts if part)


def brief(evaluation: Evaluation | None, source: str) -> str:
    """Return what `describe` says first: the verdict and what is wrong and where, without figures."""
    if evaluation is None:
        return "Verdict: not evaluated yet."
    return "\n\n".join(part for part in _verdict_and_causes(without_hidden(evaluation), source) if part)


def _verdict_and_causes(public: Evaluation, source: str) -> tuple[str, ...]:
    return (
        f"Verdict: {verdict(public)}.",
        _messages(public),
        _findings("What the checker found:", [finding for finding in public.findings if not finding.advice]),
        _findings(_ADVISED, [finding for finding in public.findings if finding.advice]),
        _quoted_lines(public, source),
    )


def _mentions(text: str, names: Iterable[str]) -> bool:
    return any(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) for name in names)


def _score(evaluation: Evaluation) -> str:
    score = f"score {_us(evaluation.score_us)}" if evaluation.score_us is not None else "no score"
    if evaluation.ratio is None:
        return score
    return f"{score}, {evaluation.ratio:.3f} times the anchor's latency (below 1 is faster than the anchor)"


def _messages(evaluation: Evaluation) -> str:
    texts = [evaluation.message] if evaluation.message else []
    for result in evaluation.cases:
        if result.message and result.message not in evaluation.message:
            texts.append(f"case {result.case}: {result.message}")
    if not texts:
        return ""
    if texts == [HIDDEN_FAILED]:
        return HIDDEN_FAILED
    return "What was reported:\n\n" + fence(shorten("\n\n".join(texts), MAX_MESSAGE))


def _findings(title: str, findings: Sequence[Finding]) -> str:
    if not findings:
        return ""
    lines = [_finding(finding) for finding in findings[:_MOST_FINDINGS]]
    if len(findings) > _MOST_FINDINGS:
        lines.append(f"… and {len(findings) - _MOST_FINDINGS} more")
    return f"{title}\n\n" + fence("\n".join(lines))


def _finding(finding: Finding) -> str:
    where = f"line {finding.line}" if finding.line else "unknown line"
    other = f" and line {finding.other_line}" if finding.other_line else ""
    times = f" ({finding.count} times)" if finding.count > 1 else ""
    return f"{where}{other}: {finding.kind}: {' '.join(clean(finding.message).split())}{times}"


def _quoted_lines(evaluation: Evaluation, source: str) -> str:
    texts = [evaluation.message, *(result.message for result in evaluation.cases)]
    named = [int(next(filter(None, match.groups()))) for text in texts for match in _NAMED_LINE.finditer(text)]
    named += [line for finding in evaluation.findings for line in (finding.line, finding.other_line)]
    rows = clean(source).split("\n")
    numbers = sorted({line for line in named if 1 <= line <= len(rows)})[:_MOST_LINES]
    if not numbers:
        return ""
    quoted = "\n".join(f"{number:>4} | {rows[number - 1]}" for number in numbers)
    return "These lines of the kernel are meant:\n\n" + fence(quoted)


def _cases(evaluation: Evaluation, workload: Workload) -> str:
    if not evaluation.cases:
        return ""
    known = {case.name: case for case in workload.cases}
    lines = [_case(result, known.get(result.case), workload) for result in evaluation.cases]
    return "Case by case:\n" + "\n".join(f"- {line}" for line in lines)


def _case(result: CaseResult, case: Case | None, workload: Workload) -> str:
    dims = f" ({', '.join(f'{name}={value}' for name, value in case.dims.items())})" if case else ""
    parts = [f"{result.case}{dims}, {result.role.value}: {result.status.value}"]
    if result.error is not None:
        parts.append(f"largest error {result.error:.2g} of the tolerance")
    if result.latency is not None:
        latency = result.latency
        parts.append(
            f"latency {_us(latency.median_us)} (95 % interval {_us(latency.low_us)} to {_us(latency.high_us)})"
        )
        if result.anchor_us:
            against = latency.median_us / result.anchor_us
            parts.append(f"{against:.3f} times the anchor's {_us(result.anchor_us)}")
        if case is not None:
            parts.append(_rates(workload, case, latency.median_us))
        parts.append(rooflines.describe(result.roofline))
    if result.config:
        parts.append(f"best launch configuration {_config(result.config)}")
    return "; ".join(part for part in parts if part)


def _rates(workload: Workload, case: Case, latency_us: float) -> str:
    """Say what the case achieves: useful operations and compulsory bytes over the latency."""
    flops, moved = workloads.flops(workload, case), workloads.nbytes(workload, case)
    rates = [f"{flops / latency_us / 1e3:.3g} useful GFLOP/s"] if flops else []
    rates += [f"{moved / latency_us / 1e3:.3g} GB/s of compulsory traffic"] if moved else []
    return ", ".join(rates)


def _trials(trials: Sequence[Trial]) -> str:
    lines = []
    for case in dict.fromkeys(trial.case for trial in trials):
        mine = [trial for trial in trials if trial.case == case]
        timed = sorted((trial.latency_us, _config(trial.config)) for trial in mine if trial.latency_us is not None)
        if not timed:
            continue
        best = ", ".join(f"{config} {_us(latency)}" for latency, config in timed[:3])
        worst = f"; slowest {timed[-1][1]} {_us(timed[-1][0])}" if len(timed) > 3 else ""
        lines.append(f"- {case}: {len(mine)} launch configurations tried; best {best}{worst}")
    return "Tuning:\n" + "\n".join(lines) if lines else ""


def _resources(evaluation: Evaluation) -> str:
    lines = [f"- {name}: {said}" for name, used in evaluation.resources.items() if (said := _used(used))]
    return "Resources, as the compiler says:\n" + "\n".join(lines) if lines else ""


def _used(used: Resources) -> str:
    figures = (
        (used.registers, "registers a thread"),
        (used.spill_bytes, "bytes spilled a thread"),
        (used.static_shared_bytes, "bytes of static shared memory"),
        (used.local_bytes, "bytes of local memory a thread"),
    )
    return ", ".join(f"{value} {words}" for value, words in figures if value is not None)


def _doubts(evaluation: Evaluation) -> str:
    doubts = list(evaluation.doubts)
    doubts += [f"{r.case}: {doubt}" for r in evaluation.cases if r.latency for doubt in r.latency.doubts]
    return f"Doubts about the figures: {'; '.join(dict.fromkeys(doubts))}." if doubts else ""


def _config(config: Config) -> str:
    return " ".join(f"{name}={value}" for name, value in config.items()) or "(no tunables)"


def _us(latency_us: float | None) -> str:
    if latency_us is None:
        return "unknown"
    return f"{latency_us:,.0f} µs" if latency_us >= 1000 else f"{latency_us:.4g} µs"
