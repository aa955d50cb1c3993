"""compute-sanitizer on a finalist: a kernel that won its comparison, before it becomes champion.

Four tools, each in a process of its own on the smallest correctness case. Speed is no business of this room.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from evaluators import outside, replay
from evaluators.builder import Programs
from evaluators.lab import Lab
from evo import workload as workloads
from evo.errors import DeviceError
from evo.records import Case, Comparison, Finding, Job, Role, Status

__all__ = ["TOOLS", "Sanitizer", "read"]

TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
"""In the order that the manual recommends: the others look for no faults of addresses, and trip over them."""
TIMEOUT_S = 60.0
MOST_REPORTS = 50
PADDING_BYTES = 1024
"""Between allocations, which else lie side by side: what is behind one of them then belongs to nobody."""
LOG = "sanitizer.log"
_INSTALL = "compute-sanitizer is not installed (it comes with the CUDA toolkit; put it on PATH)"
_EXCLUSIVE = "compute-sanitizer needs a second process on the GPU, and its compute mode is EXCLUSIVE_PROCESS"

_PREFIX = re.compile(r"^=========\s?")
_KINDS = (
    ("race", re.compile(r"(?:\w+: )?(?:\(.*?\) )?(?:Race reported between|Potential \w+ hazard detected)")),
    ("uninitialised", re.compile(r"Uninitialized __\w+__ memory read")),
    ("barrier", re.compile(r"Barrier error detected|Warpgroup MMA sequence error")),
    ("cluster", re.compile(r"Potential invalid __shared__")),
    ("memory", re.compile(r"(?:Invalid|Misaligned) __\w+__ |Invalid \w+ of size|Malloc/Free error")),
    ("memory", re.compile(r"Stack overflow|Illegal instruction")),
)
"""Kind of finding -> how its first line begins (Compute Sanitizer manual, "Understanding … Reports")."""
_PLACE = re.compile(r"\bin (?P<file>[^\s:]+\.cu\w*):(?P<line>\d+)")
_THREAD = re.compile(r"by thread (\(\S+\)) in block (\(\S+\))")
_ADDRESS = re.compile(r"Address 0x[0-9a-f]+ (is .+?)(?: and is .*)?$")
_HAZARDS = re.compile(r"\[(\d+) hazards?\]")
_ADVICE = re.compile(r"Divergent thread\(s\) in block")
"""No fault by itself: threads that have returned, and named barriers of a part of the block, are reported so too."""
_OUR_NAME = "kernel.cu"


@dataclass(frozen=True)
class Looked:
    """What the tools found, and what kept any of them from looking."""

    findings: tuple[Finding, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def faults(self) -> tuple[Finding, ...]:
        """What rejects."""
        return tuple(finding for finding in self.findings if not finding.advice)


class Sanitizer:
    """Looks at finalists, each only once; what is not there is said once.

    It takes no lock of the GPU: the evaluator that calls it holds that.

    Args:
        lab: of the evaluator, whose children are idle when `confirm` is called.
    """

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._applies = bool(getattr(lab.plugin, "replays", False))
        self._clean: set[str] = set()

    def confirm(self, comparison: Comparison, programs: Programs) -> Comparison:
        """Return the comparison; without the promotion, and UNSAFE, where a tool finds a fault in the challenger.

        Args:
            comparison: as measured.
            programs: of the challenger.
        """
        if not (comparison.promoted and self._applies) or programs.kernel.hash in self._clean:
            return comparison
        looked = self.look(programs)
        if looked.faults:
            message = f"it is faster, but compute-sanitizer found a fault on a small case: {_sentence(looked)}"
            return replace(comparison, status=Status.UNSAFE, promoted=False, message=message)
        self._clean.add(programs.kernel.hash)
        if not looked.problems:
            return comparison
        return replace(comparison, message=f"not looked at as it should be: {'; '.join(looked.problems)}")

    def look(self, programs: Programs) -> Looked:
        """Run the tools on a kernel that was evaluated, up to the first that finds a fault."""
        case, tool = self._smallest_case(), outside.find("compute-sanitizer")
        if case is None:
            return Looked()
        if tool is None or self._lab.facts.exclusive:
            self._applies = False
            return Looked(problems=(_INSTALL if tool is None else _EXCLUSIVE,))
        try:
            with self._lab.laid_out(programs, case, TIMEOUT_S, lines=True) as job:
                return _run_all(tool, job)
        except (DeviceError, OSError) as error:
            return Looked(problems=(f"compute-sanitizer could not look: {error}",))

    def _smallest_case(self) -> Case | None:
        cases = self._lab.cases(Role.CORRECTNESS)
        return min(cases, key=lambda case: _work(self._lab, case), default=None)


def _run_all(tool: Path, job: Job) -> Looked:
    advice: list[Finding] = []
    problems: list[str] = []
    for name in TOOLS:
        findings, problem = run(tool, name, job)
        problems += [problem] if problem else []
        advice += [finding for finding in findings if finding.advice]
        if any(not finding.advice for finding in findings):
            return Looked(findings, tuple(problems))
    return Looked(tuple(advice), tuple(problems))


def run(tool: Path, name: str, job: Job) -> tuple[tuple[Finding, ...], str]:
    """Run one of the tools on a job; return what it found, and what kept it from looking, or "".

    Args:
        tool: compute-sanitizer.
        name: one of `TOOLS`.
        job: laid out, with its line numbers.
    """
    folder = Path(job.folder)
    log = folder / f"{name}.{LOG}"
    options = ["--tool", name, "--log-file", str(log), "--print-limit", str(MOST_REPORTS), "--show-backtrace", "no"]
    if name == "memcheck":
        options += ["--padding", str(PADDING_BYTES), "--report-api-errors", "no"]
    ran = outside.run([tool, *options, *replay.command(job)], folder, TIMEOUT_S)
    said = outside.text_of(log)
    findings = read(said)
    if ran.code is None:
        return findings, f"{name} did not end within {TIMEOUT_S:g} s"
    if not findings and (ran.code != 0 or "SUMMARY" not in said):
        return (), f"{name} could not look: {_last_line(said + ran.words)}"
    return findings, ""


def read(said: str) -> tuple[Finding, ...]:
    """Read the report of any of the tools; findings of one kind at one place are one, with their count.

    Warnings of racecheck and `Divergent thread(s) in block` are advice: honest kernels earn them too.
    """
    counts: Counter[Finding] = Counter()
    for lines in _records(said):
        finding = _finding(lines)
        if finding is not None:
            known = next((other for other in counts if _same(other, finding)), finding)
            counts[known] += finding.count
    return tuple(replace(finding, count=count) for finding, count in counts.items())


def _records(said: str) -> Iterator[list[str]]:
    """Split a report into its records: one begins where a line is known to begin one."""
    record: list[str] = []
    for raw in said.splitlines():
        if not raw.startswith("========="):
            continue
        line = _PREFIX.sub("", raw)
        if not line.startswith(" ") and _kind(line):
            if record:
                yield record
            record = [line]
        elif "SUMMARY" in line or not line.strip():
            if record:
                yield record
            record = []
        elif record:
            record.append(line.strip())
    if record:
        yield record


def _kind(line: str) -> str:
    return next((kind for kind, pattern in _KINDS if pattern.match(line)), "")


def _finding(lines: list[str]) -> Finding | None:
    first, text = lines[0], " ".join(lines)
    kind = _kind(first)
    severity = first.partition(":")[0].lower() if kind == "race" else "error"
    if severity == "info":
        return None
    places = [int(match["line"]) for match in _PLACE.finditer(text) if Path(match["file"]).name == _OUR_NAME]
    hazards = sum(int(number) for number in _HAZARDS.findall(text))
    return Finding(
        kind,
        _race(text) if kind == "race" else _words(first, text),
        line=places[0] if places else 0,
        other_line=next((place for place in places if place != places[0]), 0) if places else 0,
        count=max(1, hazards),
        advice=severity == "warning" or bool(_ADVICE.search(first)),
    )


def _words(first: str, text: str) -> str:
    thread, address = _THREAD.search(text), _ADDRESS.search(text)
    parts = [" ".join(first.split()).rstrip(".")]
    parts += [f"by thread {thread[1]} of block {thread[2]}"] if thread else []
    parts += [f"the address {address[1]}"] if address else []
    return ", ".join(parts)


def _race(text: str) -> str:
    kinds = re.findall(r"\b(Read|Write|Atomic) (?:access|Thread)", text)
    between = " and a ".join(dict.fromkeys(kind.lower() for kind in kinds)) or "write"
    return f"a race in shared memory between a {between} of different threads, with no barrier in between"


def _same(one: Finding, other: Finding) -> bool:
    return (one.kind, one.line, one.other_line, one.advice) == (other.kind, other.line, other.other_line, other.advice)


def _sentence(looked: Looked) -> str:
    worst = looked.faults[0]
    lines = [str(line) for line in (worst.line, worst.other_line) if line]
    where = f"line {' and '.join(lines)}: " if lines else ""
    more = len(looked.faults) - 1
    return f"{where}{worst.message}" + (f" (and {more} more)" if more else "")


def _work(lab: Lab, case: Case) -> int:
    workload = lab.setup.workload
    return max(workloads.flops(workload, case), workloads.bytes_moved(workload, case))


def _last_line(said: str) -> str:
    lines = [_PREFIX.sub("", line).strip() for line in said.splitlines()]
    return next((line for line in reversed(lines) if line), "it said nothing")[:500]
