"""Runs one program on one case in the harness and judges what came back, in this process.

Files go out, files come back: the child sees inputs, never an expected value, and nothing that it wrote is trusted
before it is checked (regular file, exact size, inputs unchanged, outputs within tolerance).
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluators.cases import CaseCache, CaseData, SharedInputs
from evaluators.scratch import Scratch
from evaluators.supervisor import Reply
from evaluators.validate import compare_output
from evo import workload as workloads
from evo.records import (
    Buffer,
    Call,
    Case,
    Conditions,
    Direction,
    Finding,
    Job,
    JobResult,
    LaunchPlan,
    Parameter,
    Role,
    Status,
    Tolerance,
    Workload,
)

Array = NDArray[Any]

IMAGE = "program"
INPUT, OUTPUT = ".in", ".out"
SECRET_INPUT, SECRET_OUTPUT = ".secret.in", ".secret"
GRACE_S = 5.0
"""The parent's deadline stands this far behind the child's own limit, and further for bytes that are moved."""
SLOWEST_BYTES_PER_S = 1e8
"""A disk that is slower than this is broken; memory is fifty times faster."""


@dataclass(frozen=True)
class Program:
    """A built program and what to launch of it; or, with an empty plan and image, what to call."""

    plan: LaunchPlan
    image: bytes
    symbols: Mapping[str, str] = field(default_factory=dict)
    call: Call | None = None


@dataclass(frozen=True)
class Shots:
    """How one job runs a program; see `Job` for the fields that are passed on.

    Attributes:
        salt: which set of inputs; 0 is the one that correctness is judged on.
        order: seed of launch order and poison.
        secret_salt: which set of inputs one of the timed launches gets; None where all get the same.
        secret_at: which launch that is.
        digest: say what the outputs' bytes are.
    """

    salt: int = 0
    order: int = 0
    secret_salt: int | None = None
    secret_at: int = 0
    digest: bool = False
    warmup: int = 0
    samples: int = 0
    flush_bytes: int = 0
    core: int | None = None
    timeout_s: float = 10.0


@dataclass(frozen=True)
class Outcome:
    """What became of one job.

    Attributes:
        status: the device's, or UNSAFE for a changed input, or WRONG_ANSWER.
        message: what is wrong and where; it may tell dims and values.
        findings: of the device.
        error: largest error of an output in units of its tolerance; None where nothing was compared.
        samples_us: latency of each timed launch.
        wall_us: the same by the harness's clock, or ().
        wall_s: of the whole job, by this process's clock.
        digest: of the outputs' bytes; "" where nobody asked.
        doubts: of the device, about the latencies.
        conditions: of a GPU.
    """

    status: Status
    message: str = ""
    findings: tuple[Finding, ...] = ()
    error: float | None = None
    samples_us: tuple[float, ...] = ()
    wall_us: tuple[float, ...] = ()
    wall_s: float = 0.0
    digest: str = ""
    doubts: tuple[str, ...] = ()
    conditions: Conditions | None = None


class Bench:
    """Runs programs of one workload.

    Args:
        workload: gives parameters, cases and tolerances.
        data: of its cases.
        run_job: (job, deadline in seconds) -> reply; the harness's, or a device's own.
        scratch: where the jobs' folders come from.
        isolated: no candidate can reach the harness's memory or files; see `DevicePlugin`.
    """

    def __init__(
        self,
        workload: Workload,
        data: CaseCache,
        run_job: Callable[[Job, float], Reply],
        scratch: Scratch,
        *,
        isolated: bool = False,
    ) -> None:
        self._workload = workload
        self._data = data
        self._run_job = run_job
        self._scratch = scratch
        self._shared = SharedInputs(scratch) if isolated else None
        self._digest_key = secrets.randbits(63)

    def close(self) -> None:
        """Remove the files that jobs share."""
        if self._shared is not None:
            self._shared.close()

    def run(self, program: Program, case: Case, shots: Shots) -> Outcome:
        """Run a program on a case and judge its outputs, whether it was timed or not."""
        data = self._data.get(case, shots.salt)
        secret = None if shots.secret_salt is None else self._data.get(case, shots.secret_salt)
        buffers = self._buffers(program.plan, case, data)
        nbytes = 2 * sum(buffer.nbytes for buffer in buffers) + len(program.image)
        with self._scratch.folder(nbytes if secret is None else 2 * nbytes) as folder:
            _leave_image(folder, program)
            self._leave_inputs(folder, data, INPUT)
            job = self._job(folder, program, case, data, buffers, shots)
            if secret is not None:
                self._leave_inputs(folder, secret, SECRET_INPUT)
                accepted = {**job.accepted, **_accepted(secret, SECRET_OUTPUT)}
                buffers = self._secret_buffers(case, secret)
                job = replace(job, secret=buffers, secret_at=shots.secret_at, accepted=accepted)
            result, wall_s = self._run_job(job, job.timeout_s + GRACE_S + nbytes / SLOWEST_BYTES_PER_S)
            if result.status is not Status.OK:
                return Outcome(result.status, result.message, result.findings, wall_s=wall_s)
            outcome = self._judge(folder, case, data, result, wall_s, shots.digest)
            return outcome if secret is None else self._judge_secret(folder, case, secret, result, outcome)

    @contextlib.contextmanager
    def laid_out(self, program: Program, case: Case, shots: Shots) -> Iterator[Job]:
        """Lay a job out in a folder for somebody else to run; the folder is removed afterwards."""
        data = self._data.get(case, shots.salt)
        buffers = self._buffers(program.plan, case, data)
        with self._scratch.folder(sum(buffer.nbytes for buffer in buffers) + len(program.image)) as folder:
            _leave_image(folder, program)
            self._leave_inputs(folder, data, INPUT)
            yield self._job(folder, program, case, data, buffers, shots)

    def _job(
        self,
        folder: Path,
        program: Program,
        case: Case,
        data: CaseData,
        buffers: tuple[Buffer, ...],
        shots: Shots,
    ) -> Job:
        return Job(
            folder=str(folder),
            image=IMAGE,
            plan=program.plan,
            buffers=buffers,
            scalars=data.scalars,
            warmup=shots.warmup,
            samples=shots.samples,
            flush_bytes=shots.flush_bytes,
            seed=shots.order,
            core=shots.core,
            timeout_s=shots.timeout_s,
            tight_align=case.role is Role.HIDDEN,
            symbols=program.symbols,
            call=program.call,
            digest_key=self._digest_key,
            accepted=_accepted(data, OUTPUT),
        )

    def _leave_inputs(self, folder: Path, data: CaseData, suffix: str) -> None:
        if self._shared is not None:
            self._shared.link(data, folder, suffix)
        else:
            data.write(folder, suffix)

    def _secret_buffers(self, case: Case, data: CaseData) -> tuple[Buffer, ...]:
        sent = [p for p in self._workload.parameters if p.direction in (Direction.IN, Direction.INOUT)]
        return tuple(_buffer(parameter, case, data, SECRET_INPUT) for parameter in sent)

    def _buffers(self, plan: LaunchPlan, case: Case, data: CaseData) -> tuple[Buffer, ...]:
        parameters = [p for p in self._workload.parameters if p.direction is not Direction.SCALAR]
        workspaces = (Buffer(name, "uint8", nbytes, Direction.OUT) for name, nbytes in plan.workspaces.items())
        return (*(_buffer(p, case, data, INPUT) for p in parameters), *workspaces)

    def _judge(
        self, folder: Path, case: Case, data: CaseData, result: JobResult, wall_s: float, digest: bool
    ) -> Outcome:
        timed = Outcome(
            Status.OK,
            findings=result.findings,
            samples_us=result.samples_us,
            wall_us=result.wall_us,
            wall_s=wall_s,
            doubts=result.doubts,
            conditions=result.conditions,
        )
        try:
            changed = self._changed_input(folder, data, result.unchanged if self._shared is not None else ())
            if changed:
                return replace(timed, status=Status.UNSAFE, message=changed)
            status, message, error_units = self._compare(folder, case, data, result, OUTPUT)
            judged = replace(timed, status=status, message=message, error=error_units)
            return replace(judged, digest=self._digest(folder, case, result)) if digest else judged
        except OSError as error:
            message = f"a buffer's file is not what the harness left: {error}"
            return replace(timed, status=Status.UNSAFE, message=message)

    def _judge_secret(self, folder: Path, case: Case, data: CaseData, result: JobResult, outcome: Outcome) -> Outcome:
        """Judge the timed launch that got other inputs."""
        if outcome.status is not Status.OK:
            return outcome
        status, message, error = self._compare(folder, case, data, result, SECRET_OUTPUT)
        if status is Status.OK:
            return outcome
        why = f"on inputs and buffers that one timed launch had to itself: {message}"
        return replace(outcome, status=status, message=why, error=error)

    def _digest(self, folder: Path, case: Case, result: JobResult) -> str:
        """Return what tells whether two jobs' outputs are the same bytes."""
        told = [result.digests.get(f"{parameter.name}{OUTPUT}", "") for parameter in self._workload.outputs]
        if self._shared is not None and all(told):
            return " ".join(told)
        digest = hashlib.sha256()
        for parameter in self._workload.outputs:
            digest.update(_as_bytes(_read(folder, parameter, case, OUTPUT)).data)
        return digest.hexdigest()

    def _changed_input(self, folder: Path, data: CaseData, unchanged: Sequence[str]) -> str:
        """Say which input came back changed, or return ""."""
        for parameter in self._workload.parameters:
            if parameter.direction is not Direction.IN or parameter.name in unchanged:
                continue
            sent = data.inputs[parameter.name]
            back = _read_bytes(folder / f"{parameter.name}{OUTPUT}", sent.nbytes)
            changed = _as_bytes(sent) != np.frombuffer(back, np.uint8)
            if changed.any():
                return _describe_change(parameter, sent, back, int(np.argmax(changed)))
        return ""

    def _compare(
        self, folder: Path, case: Case, data: CaseData, result: JobResult, suffix: str
    ) -> tuple[Status, str, float]:
        worst = 0.0
        read = _read if self._shared is None else _map
        for parameter in self._workload.outputs:
            name = parameter.name
            digest = result.digests.get(f"{name}{suffix}", "") if self._shared is not None else ""
            known, error = data.accepted.get(name, ("", 0.0))
            if digest and digest == known:
                worst = max(worst, error)
                continue
            verdict = compare_output(
                read(folder, parameter, case, suffix),
                data.expected.values[name],
                data.expected.scale.get(name),
                _tolerance(self._workload, name),
                parameter.dtype,
                workloads.terms(self._workload, case, name),
            )
            worst = max(worst, verdict.error)
            if not verdict.ok:
                return Status.WRONG_ANSWER, f"output {name}: {verdict.message}", worst
            if digest:
                data.accepted[name] = (digest, verdict.error)
        return Status.OK, "", worst


def _accepted(data: CaseData, suffix: str) -> dict[str, str]:
    return {f"{name}{suffix}": digest for name, (digest, _) in data.accepted.items()}


def _tolerance(workload: Workload, output: str) -> Tolerance:
    return workload.tolerance.get(output) or workload.tolerance.get("") or Tolerance()


def _buffer(parameter: Parameter, case: Case, data: CaseData, suffix: str) -> Buffer:
    sent = parameter.direction is not Direction.OUT
    return Buffer(
        parameter.name,
        parameter.dtype,
        _nbytes(parameter, case),
        parameter.direction,
        f"{parameter.name}{suffix}" if sent else None,
        parameter.align,
        f"{data.key}/{parameter.name}" if sent else "",
    )


def _nbytes(parameter: Parameter, case: Case) -> int:
    shape = workloads.shape(parameter, case)
    return int(np.prod(shape, dtype=np.int64)) * np.dtype(parameter.dtype).itemsize


def _leave_image(folder: Path, program: Program) -> None:
    image = folder / IMAGE
    image.write_bytes(program.image)
    image.chmod(0o755)


def _read(folder: Path, parameter: Parameter, case: Case, suffix: str) -> Array:
    content = _read_bytes(folder / f"{parameter.name}{suffix}", _nbytes(parameter, case))
    return np.frombuffer(content, parameter.dtype).reshape(workloads.shape(parameter, case))


def _map(folder: Path, parameter: Parameter, case: Case, suffix: str) -> Array:
    """Map what a trusted child has left, instead of reading it; else as `_read`."""
    path, nbytes = folder / f"{parameter.name}{suffix}", _nbytes(parameter, case)
    if path.stat().st_size != nbytes:
        raise OSError(f"{path.name}: expected a file of {nbytes} bytes, found {path.stat().st_size}")
    content = np.memmap(path, np.uint8, "r", shape=(nbytes,)) if nbytes else np.empty(0, np.uint8)
    return content.view(parameter.dtype).reshape(workloads.shape(parameter, case))


def _read_bytes(path: Path, nbytes: int) -> bytes:
    """Read what the child left of a buffer; a link, a pipe or another size is refused with `OSError`."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_size != nbytes:
            raise OSError(f"{path.name}: expected a file of {nbytes} bytes, found {found.st_size}")
        return file.read(nbytes)


def _as_bytes(array: Array) -> NDArray[np.uint8]:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def _describe_change(parameter: Parameter, sent: Array, back: bytes, first_byte: int) -> str:
    first = first_byte // sent.itemsize
    index = ", ".join(str(int(i)) for i in np.unravel_index(first, sent.shape))
    now = np.frombuffer(back, sent.dtype)[first]
    return (
        f"the kernel changed its input {parameter.name}: element [{index}] was {sent.flat[first]} and is {now} "
        "afterwards; inputs must be left as they are"
    )
