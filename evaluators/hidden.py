"""What may be said about a case that failed: everything, unless the case is hidden.

A model that learns a hidden case's dims or values can write a kernel for them. Of hidden cases only the kind of failure
and lines of the candidate's own source are told.
"""

from __future__ import annotations

from dataclasses import replace

from evo.records import Case, Finding, Role, Status

_HIDDEN = {
    Status.BAD_LAUNCH: "the launch header gives an impossible launch",
    Status.COMPILE_ERROR: "the kernel does not compile for its dims",
    Status.LAUNCH_ERROR: "a launch was refused",
    Status.WRONG_ANSWER: "an output is wrong",
    Status.UNSAFE: "the kernel does something that it must not",
    Status.TIMEOUT: "the kernel did not finish in time",
    Status.CRASH: "the kernel crashed",
    Status.UNSUPPORTED: "the device cannot run it",
}
_ADVICE = (
    "hidden cases have other sizes (1, odd, prime, just beyond a tile), other values, and pointers aligned as promised "
    "and no better: check bounds, tails and precision for every size"
)


def told(case: Case, status: Status, message: str, findings: tuple[Finding, ...] = ()) -> str:
    """Return the message that may be shown for a failure on a case."""
    if case.role is not Role.HIDDEN:
        return f"case {case.name!r}: {message}"
    lines = sorted({finding.line for finding in findings if finding.line and not finding.advice})
    where = f" (line {', '.join(map(str, lines))})" if lines else ""
    return f"a hidden case fails: {_HIDDEN.get(status, str(status))}{where}; {_ADVICE}"


def told_findings(case: Case, findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """Return the findings that may be shown for a case: of a hidden one, kinds and lines alone."""
    if case.role is not Role.HIDDEN:
        return findings
    return tuple(replace(f, message=f"{f.kind} on a hidden case", count=1) for f in findings)
