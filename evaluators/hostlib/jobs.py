"""Run a host program on one `Job`, in the sandbox: hand it the job, take its time, turn its findings into words.

What the program writes is foreign: every line is read with suspicion, and no expected value is known here.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from evaluators.hostlib import explain, symbols, translate
from evaluators.launching import bad_shape
from evo import sandbox
from evo.records import Device, Job, JobResult, Scalar, Status

_GRACE_S = 2.0
"""The parent's clock stands this far behind the child's: starting and reading the buffers is not the kernel's time."""
_LAST_WORDS_S = 1.0
_BYTES_PER_S = 2e8
"""Slowest rate at which buffers are thought to be copied, poisoned and written to files."""
_MEMORY_BYTES = 2 << 30
_MOST_WORKSPACE_BYTES = 256 << 20
"""All of a kernel's workspaces together. They are poisoned before every run, and stay in memory as files too."""
_CHECK_BYTES_PER_BYTE = 64
"""The checker's notes on one byte, when single bytes are accessed."""
_MOST_LINE_BYTES = 4096
_MOST_FINDINGS = 64


@dataclass
class _Report:
    """What a program said: the fields of its findings, its samples, and how it ended ("" if it never said)."""

    findings: list[list[str]] = field(default_factory=list)
    samples_us: list[float] = field(default_factory=list)
    wall_us: list[float] = field(default_factory=list)
    ended: str = ""
    trouble: str = ""


def run_job(job: Job, device: Device) -> JobResult:
    """Run a program on a job; see `Job` for what it leaves behind.

    Raises:
        SandboxError: the machine cannot confine it.
    """
    folder = Path(job.folder)
    image = (folder / job.image).read_bytes()
    variables = symbols.variables(image)
    if problem := _bad_launch(job, device, variables):
        return JobResult(*problem)
    checked = symbols.is_checked(image)
    for buffer in job.buffers:
        (folder / f"{buffer.name}.out").touch()
    text = "".join(f"{line}\n" for line in _lines(job, variables if checked else ())).encode()
    process = sandbox.start([folder / job.image], folder=folder, limits=_limits(job, checked), env={}, core=job.core)
    with process:
        try:
            report = _talk(process, text, job)
        finally:
            code = sandbox.stop(process)
    return _result(job, report, code)


# --- before the start ------------------------------------------------------------------------------------------------


def _bad_launch(job: Job, device: Device, variables: Sequence[symbols.Variable]) -> tuple[Status, str] | None:
    if job.plan.cluster is not None:
        return Status.UNSUPPORTED, "the host device has no thread-block clusters"
    workspace = sum(job.plan.workspaces.values())
    if workspace > _MOST_WORKSPACE_BYTES:
        most = f"the host device gives a kernel at most {_MOST_WORKSPACE_BYTES}"
        return Status.BAD_LAUNCH, f"the launch asks for {workspace} bytes of workspace; {most}"
    for launch in job.plan.launches:
        if problem := bad_shape(launch, device, symbols.static_shared_bytes(variables, launch.kernel)):
            return Status.BAD_LAUNCH, f"kernel {launch.kernel}: {problem}"
    return None


def _limits(job: Job, checked: bool) -> sandbox.Limits:
    nbytes = sum(buffer.nbytes for buffer in job.buffers)
    memory = _MEMORY_BYTES + nbytes * (_CHECK_BYTES_PER_BYTE if checked else 2) + job.flush_bytes
    largest = max((buffer.nbytes for buffer in job.buffers), default=0)
    # The program's own clock names the place; this one is for a program that has lost it.
    cpu_s = job.timeout_s + _GRACE_S + nbytes * (job.samples + 2) / _BYTES_PER_S
    return sandbox.Limits(wall_s=0.0, cpu_s=cpu_s, memory_bytes=memory, file_bytes=largest + 4096)


def _lines(job: Job, variables: Sequence[symbols.Variable]) -> Iterator[str]:
    """Yield the job as `hostlib/runtime/job.hpp` describes it."""
    yield f"seed {job.seed}"
    yield f"order {0 if job.samples else job.seed}"  # timed runs keep the order in which a GPU would start blocks
    yield f"time_limit_ms {max(1, round(job.timeout_s * 1000))}"
    yield f"warmup {job.warmup}\ntimed {int(job.samples > 0)}\nflush {job.flush_bytes}\ntight {int(job.tight_align)}"
    for buffer in job.buffers:
        yield f"buffer {buffer.name} {buffer.nbytes} {buffer.align} {buffer.direction.value} {buffer.file or '-'}"
    for scalar in job.scalars:
        yield _scalar(scalar.name, scalar)
    integers = {arg for launch in job.plan.launches for arg in launch.args if isinstance(arg, int)}
    for value in sorted(integers):
        yield _scalar(f"#{value}", Scalar(f"#{value}", "int32", value))
    for variable in variables:
        space = "shared" if variable.shared else "global"
        yield f"symbol {variable.name[:60]} {space} {variable.address} {variable.size}"
    for name in job.plan.zero:
        yield f"zero {name}"
    for launch in job.plan.launches:
        shape = " ".join(str(n) for n in (*launch.grid, *launch.block, launch.shared_bytes, len(launch.args)))
        yield f"launch {translate.plain_name(launch.kernel)} {shape}"
        for arg in launch.args:
            yield f"argument {f'#{arg}' if isinstance(arg, int) else arg}"
    yield "go"


def _scalar(name: str, scalar: Scalar) -> str:
    dtype = np.dtype(scalar.dtype)
    kind = "i" if dtype.kind in "iub" else "f" if dtype.kind == "f" and dtype.itemsize >= 4 else "r"
    return f"scalar {name} {kind} {np.asarray(scalar.value).astype(dtype).tobytes().hex()}"


# --- while it runs ---------------------------------------------------------------------------------------------------


def _talk(process: subprocess.Popen[bytes], text: bytes, job: Job) -> _Report:
    """Give the program its job, start and clock its timed runs, and listen until it ends or its time is up."""
    assert process.stdin is not None
    assert process.stdout is not None
    report = _Report()
    lines = _read_lines(process.stdout.fileno(), time.monotonic() + _allowed_s(job))
    to_program = process.stdin.fileno()
    try:
        os.write(to_program, text)
        _listen(lines, to_program, report, job.samples)
    except TimeoutError:
        report.trouble = "deadline"
        _hear_last_words(process, report)
    except BrokenPipeError:
        report.trouble = "gone"
    except (ValueError, IndexError):
        report.trouble = "garbled"
    return report


def _hear_last_words(process: subprocess.Popen[bytes], report: _Report) -> None:
    """Ask a program for the line at which it is; on a busy machine its own clock, of CPU time, comes too late."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.send_signal(signal.SIGPROF)
    with contextlib.suppress(OSError, TimeoutError, ValueError, IndexError):
        lines = _read_lines(process.stdout.fileno(), time.monotonic() + _LAST_WORDS_S)
        _listen(lines, process.stdin.fileno(), report, samples=0)


def _listen(lines: Iterator[tuple[str, int]], to_program: int, report: _Report, samples: int) -> None:
    """Follow the program; which timed run is its last it hears behind that run only."""
    started_ns = 0
    for line, now_ns in lines:
        words = line.split("\t")
        if words[0] == "ready":
            started_ns = time.perf_counter_ns()
            os.write(to_program, b"g")
        elif words[0] == "sample":
            report.samples_us.append(int(words[1]) / 1e3)
            report.wall_us.append((now_ns - started_ns) / 1e3)
            os.write(to_program, b"m" if len(report.samples_us) < samples else b"e")
        elif words[0] == "finding" and len(report.findings) < _MOST_FINDINGS:
            report.findings.append(words[1:])
        elif words[0] == "end":
            report.ended = words[1]
            return


def _read_lines(source: int, deadline: float) -> Iterator[tuple[str, int]]:
    """Yield lines with the time (perf_counter, ns) at which each was there; raises TimeoutError, ValueError."""
    held = b""
    while (left_s := deadline - time.monotonic()) > 0:
        if not select.select([source], [], [], left_s)[0]:
            continue
        data = os.read(source, 1 << 16)
        now_ns = time.perf_counter_ns()
        if not data:
            return
        *whole, held = (held + data).split(b"\n")
        if len(held) > _MOST_LINE_BYTES:
            raise ValueError("a line without an end")
        for line in whole:
            yield line.decode(errors="replace"), now_ns
    raise TimeoutError


def _allowed_s(job: Job) -> float:
    nbytes = sum(buffer.nbytes for buffer in job.buffers) + job.flush_bytes
    return job.timeout_s + _GRACE_S + nbytes * (job.samples + job.warmup + 3) / _BYTES_PER_S


# --- afterwards ------------------------------------------------------------------------------------------------------


def _result(job: Job, report: _Report, code: int) -> JobResult:
    found = explain.findings(report.findings, Path(job.folder), job.image) if report.findings else ()
    statuses = {explain.status(finding.kind) for finding in found if not finding.advice}
    if statuses:
        gravest = next(status for status in _GRAVEST if status in statuses)
        if gravest is not Status.TIMEOUT:  # that it was slow besides is no help
            found = tuple(finding for finding in found if explain.status(finding.kind) is not Status.TIMEOUT)
        return JobResult(gravest, explain.message(found), found)
    if report.ended == "done" and not report.trouble:
        if len(report.samples_us) != job.samples:
            return JobResult(Status.UNSAFE, "the program reported another number of runs than it was asked for")
        return JobResult(Status.OK, "", found, tuple(report.samples_us), tuple(report.wall_us))
    return JobResult(*_ended_badly(job, report, code), found)


_GRAVEST = (Status.UNSAFE, Status.BAD_LAUNCH, Status.LAUNCH_ERROR, Status.CRASH, Status.TIMEOUT)


def _ended_badly(job: Job, report: _Report, code: int) -> tuple[Status, str]:
    if report.trouble == "deadline" or code in (-signal.SIGXCPU, -signal.SIGPROF):
        return Status.TIMEOUT, f"the kernel did not end within {job.timeout_s:g} s"
    if report.trouble == "garbled":
        return Status.UNSAFE, "the kernel wrote over the runtime's memory: its report is garbled"
    if code == -signal.SIGSYS:
        return (
            Status.UNSAFE,
            "the kernel made a system call (files, network, processes) or took more memory than it may have",
        )
    if code == -signal.SIGXFSZ:
        return Status.UNSAFE, "the kernel wrote a file larger than its buffers"
    how = f"signal {-code}" if code < 0 else f"exit status {code}"
    return Status.CRASH, f"the program ended without a result ({how})"
