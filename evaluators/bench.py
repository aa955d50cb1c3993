"""Runs one program on one case in the harness and judges what came back, in this process.

Files go out, files come back: the child sees inputs, never an expected value, and nothing that it wrote is trusted
before it is checked (regular file, exact size, inputs unchanged, outputs within tolerance).
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluators.scratch import Scratch
from evaluators.supervisor import Reply
from evaluators.validate import compare_output
from evo import workload as workloads
from evo.records import (
    Buffer,
    Case,
    Direction,
    Finding,
    Job,
    JobResult,
    LaunchPlan,
    Parameter,
    Role,
    Scalar,
    Status,
    Tolerance,
    Workload,
)

Array = NDArray[Any]

CACHE_BYTES = 1 << 30
"""Inputs and expected outputs that are kept: those of every shipped workload fit several times."""
IMAGE = "program"
GRACE_S = 5.0
"""The parent's deadline stands this far behind the child's own limit, and further for bytes that are moved."""
SLOWEST_BYTES_PER_S = 1e8
"""A disk that is slower than this is broken; memory is fifty times faster."""


@dataclass(frozen=True)
class Program:
    """A built program and what to launch of it."""

    plan: LaunchPlan
    image: bytes


@dataclass(frozen=True)
class Shots:
    """How one job runs a program; see `Job` for the fields that are passed on.

    Attributes:
        salt: which set of inputs; 0 is the one that correctness is judged on.
        order: seed of launch order and poison.
    """

    salt: int = 0
    order: int = 0
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
        digest: of the outputs' bytes; "" where there were none.
    """

    status: Status
    message: str = ""
    findings: tuple[Finding, ...] = ()
    error: float | None = None
    samples_us: tuple[float, ...] = ()
    wall_us: tuple[float, ...] = ()
    wall_s: float = 0.0
    digest: str = ""


@dataclass(frozen=True)
class CaseData:
    """Inputs, scalars and expected outputs of one case for one seed."""

    inputs: Mapping[str, Array]
    scalars: tuple[Scalar, ...]
    expected: workloads.Expected

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        held = (*self.inputs.values(), *self.expected.values.values(), *self.expected.scale.values())
        return sum(array.nbytes for array in held)


class CaseCache:
    """Draws inputs and computes expected outputs, once per (case, salt) while there is room."""

    def __init__(self, workload: Workload, seed: int, limit_bytes: int = CACHE_BYTES) -> None:
        self._workload = workload
        self._seed = seed
        self._limit_bytes = limit_bytes
        self._kept: OrderedDict[tuple[str, int], CaseData] = OrderedDict()

    def get(self, case: Case, salt: int = 0) -> CaseData:
        """Return the data of a case; `salt` 0 is the set that correctness is judged on."""
        key = (case.name, salt)
        if key not in self._kept:
            self._kept[key] = self._draw(case, salt)
            self._shrink()
        self._kept.move_to_end(key)
        return self._kept[key]

    def _draw(self, case: Case, salt: int) -> CaseData:
        inputs = workloads.draw_inputs(self._workload, case, self._seed + 1_000_003 * salt)
        expected = workloads.expected(self._workload, case, inputs)
        return CaseData(inputs, workloads.scalars(self._workload, case), expected)

    def _shrink(self) -> None:
        while len(self._kept) > 1 and sum(data.nbytes for data in self._kept.values()) > self._limit_bytes:
            self._kept.popitem(last=False)


class Bench:
    """Runs programs of one workload.

    Args:
        workload: gives parameters, cases and tolerances.
        data: of its cases.
        run_job: (job, deadline in seconds) -> reply; the harness's, or a device's own.
        scratch: where the jobs' folders come from.
    """

    def __init__(
        self, workload: Workload, data: CaseCache, run_job: Callable[[Job, float], Reply], scratch: Scratch
    ) -> None:
        self._workload = workload
        self._data = data
        self._run_job = run_job
        self._scratch = scratch

    def run(self, program: Program, case: Case, shots: Shots) -> Outcome:
        """Run a program on a case and judge its outputs, whether it was timed or not."""
        data = self._data.get(case, shots.salt)
        buffers = self._buffers(program.plan, case)
        nbytes = 2 * sum(buffer.nbytes for buffer in buffers) + len(program.image)
        with self._scratch.folder(nbytes) as folder:
            _fill(folder, program, data)
            job = self._job(folder, program, case, data, buffers, shots)
            result, wall_s = self._run_job(job, job.timeout_s + GRACE_S + nbytes / SLOWEST_BYTES_PER_S)
            if result.status is not Status.OK:
                return Outcome(result.status, result.message, result.findings, wall_s=wall_s)
            return self._judge(folder, case, data, result, wall_s)

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
        )

    def _buffers(self, plan: LaunchPlan, case: Case) -> tuple[Buffer, ...]:
        parameters = [p for p in self._workload.parameters if p.direction is not Direction.SCALAR]
        workspaces = (Buffer(name, "uint8", nbytes, Direction.OUT) for name, nbytes in plan.workspaces.items())
        return (*(_buffer(p, case) for p in parameters), *workspaces)

    def _judge(self, folder: Path, case: Case, data: CaseData, result: JobResult, wall_s: float) -> Outcome:
        timed = Outcome(
            Status.OK,
            findings=result.findings,
            samples_us=result.samples_us,
            wall_us=result.wall_us,
            wall_s=wall_s,
        )
        try:
            changed = self._changed_input(folder, data)
            outputs = {p.name: _read(folder, p, case) for p in self._workload.outputs}
        except OSError as error:
            message = f"a buffer's file is not what the harness left: {error}"
            return replace(timed, status=Status.UNSAFE, message=message)
        if changed:
            return replace(timed, status=Status.UNSAFE, message=changed)
        status, message, error_units = self._compare(outputs, case, data)
        return replace(timed, status=status, message=message, error=error_units, digest=_digest(outputs))

    def _changed_input(self, folder: Path, data: CaseData) -> str:
        """Say which input came back changed, or return ""."""
        for parameter in self._workload.parameters:
            if parameter.direction is not Direction.IN:
                continue
            sent = data.inputs[parameter.name]
            back = _read_bytes(folder, parameter.name, sent.nbytes)
            changed = _as_bytes(sent) != np.frombuffer(back, np.uint8)
            if changed.any():
                return _describe_change(parameter, sent, back, int(np.argmax(changed)))
        return ""

    def _compare(self, outputs: Mapping[str, Array], case: Case, data: CaseData) -> tuple[Status, str, float]:
        worst = 0.0
        for parameter in self._workload.outputs:
            verdict = compare_output(
                outputs[parameter.name],
                data.expected.values[parameter.name],
                data.expected.scale.get(parameter.name),
                _tolerance(self._workload, parameter.name),
                parameter.dtype,
                workloads.terms(self._workload, case, parameter.name),
            )
            worst = max(worst, verdict.error)
            if not verdict.ok:
                return Status.WRONG_ANSWER, f"output {parameter.name}: {verdict.message}", worst
        return Status.OK, "", worst


def _tolerance(workload: Workload, output: str) -> Tolerance:
    return workload.tolerance.get(output) or workload.tolerance.get("") or Tolerance()


def _buffer(parameter: Parameter, case: Case) -> Buffer:
    shape = workloads.shape(parameter, case)
    nbytes = int(np.prod(shape, dtype=np.int64)) * np.dtype(parameter.dtype).itemsize
    sent = parameter.direction is not Direction.OUT
    file = f"{parameter.name}.in" if sent else None
    return Buffer(parameter.name, parameter.dtype, nbytes, parameter.direction, file, parameter.align)


def _fill(folder: Path, program: Program, data: CaseData) -> None:
    image = folder / IMAGE
    image.write_bytes(program.image)
    image.chmod(0o755)
    for name, array in data.inputs.items():
        array.tofile(folder / f"{name}.in")


def _read(folder: Path, parameter: Parameter, case: Case) -> Array:
    shape = workloads.shape(parameter, case)
    nbytes = int(np.prod(shape, dtype=np.int64)) * np.dtype(parameter.dtype).itemsize
    return np.frombuffer(_read_bytes(folder, parameter.name, nbytes), parameter.dtype).reshape(shape)


def _read_bytes(folder: Path, name: str, nbytes: int) -> bytes:
    """Read what the child left of a buffer; a link, a pipe or another size is refused with `OSError`."""
    path = folder / f"{name}.out"
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


def _digest(outputs: Mapping[str, Array]) -> str:
    digest = hashlib.sha256()
    for name in sorted(outputs):
        digest.update(_as_bytes(outputs[name]).data)
    return digest.hexdigest()
