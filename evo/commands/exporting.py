"""The command `export`: a run's kernel as a C++ program, or as a Python package for CuPy or PyTorch."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from evo import kernel as kernels
from evo.commands import folders, output
from evo.errors import ConfigError, EvoError, WorkloadError, did_you_mean
from evo.export import KINDS, Subject, write
from evo.export.folder import File
from evo.records import Role, Status, Workload
from evo.report import fruitless, history
from evo.report.history import History

_ARCH = re.compile(r"sm_\d+[af]?")
_MB = 1_000_000


def export(
    run: str,
    candidate: int | None,
    kind: str,
    out: Path,
    cases: Sequence[str],
    arch: str | None,
    results: Path,
    *,
    force: bool,
    as_json: bool,
) -> int:
    """Write a run's kernel as something that needs no run; return the exit code.

    Args:
        run: its folder, name or number, or `latest`.
        candidate: another kernel than the best.
        kind: one of `KINDS`.
        out: the new folder.
        cases: names of those to store, for `cpp`; none are all performance cases.
        arch: compile target, e.g. `sm_90a`; None compiles for the GPU that is there.
        results: where runs lie.
        force: replace files that are there.
        as_json: write a JSON document instead of text.

    Raises:
        ConfigError: a flag is wrong, or the folder is taken.
        EvoError: the run has no such kernel, or none that is right.
    """
    if kind not in KINDS:
        raise ConfigError(f"--as {kind}: expected one of {', '.join(KINDS)}{did_you_mean(kind, KINDS)}")
    if arch is not None and not _ARCH.fullmatch(arch):
        raise ConfigError(f"--arch {arch}: expected sm_ and a number, e.g. sm_90a")
    if cases and kind != "cpp":
        raise ConfigError(f"--case: only --as cpp stores cases; --as {kind} takes any shape")
    found = history.load(folders.find(run, results))
    subject = _subject(found, _chosen(found, candidate), cases, arch)
    written = write(out, _files(subject, kind, out), force=force)
    nbytes = sum(path.stat().st_size for path in written)
    if as_json:
        output.data({"folder": out, "as": kind, "origin": subject.origin, "cases": subject.cases, "bytes": nbytes})
        return 0
    output.line(f"{subject.origin} as {kind}: {out} ({len(written)} files, {nbytes / _MB:.1f} MB)")
    output.line(f"see {out / 'README.md'}")
    return 0


def _files(subject: Subject, kind: str, out: Path) -> Iterable[File]:
    from evo.export import cpp, cupy_package, torch_package

    if kind == "cpp":
        return cpp.files(subject)
    if not out.resolve().name.isidentifier():
        raise ConfigError(f"--out {out}: expected a name that Python can import (letters, digits, _), found another")
    return cupy_package.files(subject) if kind == "cupy" else torch_package.files(subject)


def _chosen(found: History, candidate: int | None) -> int:
    """Return the id of the kernel to export."""
    if candidate is None and (why := fruitless.why(found)):
        raise EvoError(f"{found.folder}: {why}; name a kernel to export, e.g. 0 for the initial one")
    number = found.champion if candidate is None else candidate
    if number not in found.candidates:
        raise EvoError(f"{found.folder}: expected a candidate from 0 to {max(found.candidates)}, found {number}")
    evaluation = found.evaluations.get(number)
    if evaluation is None or evaluation.status is not Status.OK:
        status = "not judged yet" if evaluation is None else str(evaluation.status).replace("_", " ")
        raise EvoError(f"{found.folder}: expected a kernel that is right, found kernel {number}, which is {status}")
    return number


def _subject(found: History, number: int, cases: Sequence[str], arch: str | None) -> Subject:
    meta = found.meta
    results = found.evaluations[number].cases
    return Subject(
        kernel=kernels.parse(found.source(number)),
        workload=meta.workload,
        device=meta.device,
        timing=meta.config.timing,
        seed=meta.config.seed,
        origin=f"kernel {number} of {found.folder.resolve().name}",
        cases=_cases(meta.workload, cases),
        latencies_us={result.case: result.latency.median_us for result in results if result.latency},
        arch=arch,
    )


def _cases(workload: Workload, names: Sequence[str]) -> tuple[str, ...]:
    known = [case.name for case in workload.cases]
    for name in names:
        if name not in known:
            raise WorkloadError(f"workload {workload.name}: no case {name!r}{did_you_mean(name, known)}")
    return tuple(dict.fromkeys(names)) or tuple(case.name for case in workload.role(Role.PERFORMANCE))
