"""From a host program's raw findings to records: addresses become lines of the candidate, kinds become statuses.

Only looks things up and words them; runs nothing but `addr2line`, in the sandbox.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from evaluators.hostlib import translate
from evo import sandbox
from evo.records import Finding, Status

KINDS = {
    "out-of-bounds": Status.UNSAFE,
    "input-written": Status.UNSAFE,
    "race-shared": Status.UNSAFE,
    "race-global": Status.UNSAFE,
    "uninitialised": Status.UNSAFE,
    "divergence": Status.UNSAFE,
    "early-exit": Status.OK,
    "misaligned": Status.UNSAFE,
    "stack-overflow": Status.UNSAFE,
    "wild-access": Status.UNSAFE,
    "timeout": Status.TIMEOUT,
    "bad-launch": Status.BAD_LAUNCH,
    "fault": Status.LAUNCH_ERROR,
    "arithmetic": Status.CRASH,
    "trap": Status.CRASH,
}
"""What a kind of finding makes of a job; OK is advice. The names are those of hostlib/runtime/report.cpp."""

_TITLES = {
    "out-of-bounds": "out of bounds",
    "input-written": "an input is written",
    "race-shared": "data race in shared memory",
    "race-global": "data race in global memory",
    "uninitialised": "uninitialised memory is read",
    "divergence": "threads diverge at a barrier or warp operation",
    "early-exit": "threads leave before a barrier or warp operation",
    "misaligned": "misaligned access",
    "stack-overflow": "too much local memory",
    "wild-access": "access to no buffer",
    "timeout": "not finished in time",
    "bad-launch": "impossible launch",
    "fault": "the job could not be run",
    "arithmetic": "integer division",
    "trap": "trap",
}
_MOST_WORDS = 6
_LIMITS = sandbox.Limits(wall_s=20.0, cpu_s=20.0, memory_bytes=1 << 30)
_FRAME = re.compile(rf"(?:^|/){re.escape(translate.FILE)}:(\d+)")


def status(kind: str) -> Status:
    """Return what a kind of finding makes of a job."""
    return KINDS.get(kind, Status.UNSAFE)


def findings(raw: Sequence[Sequence[str]], folder: Path, image: str) -> tuple[Finding, ...]:
    """Return the findings of a program, equal places folded together, advice behind all faults.

    Args:
        raw: per finding: kind, line, other line, pc, other pc (hexadecimal), count, text.
        folder: of the job.
        image: the program's file name in it.
    """
    usable = [row for row in raw if len(row) == 7 and row[0] in KINDS]
    lines = _lines_of({pc for row in usable for pc in row[3:5] if int(pc, 16)}, folder, image)
    folded: dict[tuple[str, int, int], Finding] = {}
    for kind, line, other, pc, other_pc, count, text in usable:
        key = (kind, int(line) or lines.get(pc, 0), int(other) or lines.get(other_pc, 0))
        first = folded.get(key) or Finding(kind, text, *key[1:], 0, advice=status(kind) is Status.OK)
        folded[key] = replace(first, count=first.count + int(count))
    if not folded:
        return (Finding("fault", "the program reported a failure that cannot be read"),)
    return tuple(sorted(folded.values(), key=lambda finding: finding.advice))


def message(found: Iterable[Finding]) -> str:
    """Word findings for a model: what, where, and how often."""
    return "\n".join(_sentence(finding) for finding in tuple(found)[:_MOST_WORDS])


def _sentence(finding: Finding) -> str:
    where = f"line {finding.line}: " if finding.line else ""
    other = f" (the other access: line {finding.other_line})" if finding.other_line else ""
    often = f" [{finding.count} times]" if finding.count > 1 else ""
    advice = "advice: " if finding.advice else ""
    return f"{where}{advice}{_TITLES[finding.kind]}: {finding.message}{other}{often}"


def _lines_of(addresses: set[str], folder: Path, image: str) -> dict[str, int]:
    """Return the candidate's line for each address: of inlined frames the innermost that is the candidate's own."""
    if not addresses:
        return {}
    # An address is that of the instruction behind the one in question.
    wanted = {hex(int(address, 16) - 1): address for address in sorted(addresses)}
    done = sandbox.run(["addr2line", "-a", "-i", "-e", image, *wanted], folder=folder, limits=_LIMITS, may_exec=True)
    lines: dict[str, int] = {}
    asked = ""
    for text in done.stdout.decode(errors="replace").splitlines():
        if text.startswith("0x"):
            asked = wanted.get(hex(int(text, 16)), "")
        elif asked and asked not in lines and (match := _FRAME.search(text)):
            lines[asked] = int(match[1])
    return lines
