"""Run a CUBIN on one `Job`: for its answers between unmapped pages, or for its latencies by the protocol.

The protocol is that of docs/measuring.md. No expected value is known here, and nothing is judged but what only the
device can show: faults, memory written out of bounds, time-outs.
"""

from __future__ import annotations

import contextlib
import gc
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from evaluators.cudalib import facts
from evaluators.cudalib.buffers import Buffers, secretly
from evaluators.cudalib.driver import CudaError, call, cu, is_gpu_lost, verdict
from evaluators.cudalib.gpu import SCRUBS, Gpu, Hung
from evaluators.cudalib.program import Program
from evaluators.inspection import cubin
from evo.errors import DeviceError, WorkloadError
from evo.records import Conditions, Direction, Job, JobResult, Status

if TYPE_CHECKING:
    from evaluators.cudalib.baseline import Baseline

LATE = 3
"""Times that a stream was not held long enough, after which it is no longer held."""
SLOWED = 3
"""Times that samples are taken again because the GPU was too hot or its hardware slowed it."""
CHECK_S = 30.0
"""For the harness's own kernels, which need milliseconds."""
_ALLOWED_CALLS = frozenset({"vprintf", "__assertfail"})
_INSTEAD = (
    "a kernel may call printf and assert of the driver and nothing else: memory on the device heap outlives a launch "
    "(ask for a workspace in the launch header), and every launch must be declared in the launch header"
)


class _Wrong(Exception):
    """The job ends here, with this result."""

    def __init__(self, result: JobResult) -> None:
        self.result = result


def run_job(job: Job, gpu: Gpu) -> JobResult:
    """Run a program on a job; see `Job` for what it leaves behind.

    Raises:
        DeviceError: the GPU is lost, or has too little memory for the case.
    """
    image = (Path(job.folder) / job.image).read_bytes()
    refused = "" if job.call else _refused(image)
    if refused:
        return JobResult(Status.UNSUPPORTED, refused)
    try:
        with _loaded(job, gpu, image) as run:
            result = run.timed() if job.samples else run.once()
        gpu.inputs.shrink()
        return result
    except _Wrong as wrong:
        return wrong.result
    except WorkloadError as error:  # of the workload's own baseline.py
        return JobResult(Status.LAUNCH_ERROR, str(error))
    except Hung:
        return JobResult(Status.TIMEOUT, f"the kernel did not end within {job.timeout_s:g} s", spent=True)
    except CudaError as error:
        status, message = verdict(error)
        return JobResult(status, message, spent=_is_broken())


def _refused(image: bytes) -> str:
    try:
        called = sorted(cubin.read(image).calls - _ALLOWED_CALLS)
    except cubin.NotAnObject as error:
        return f"the compiled program is not as programs are: {error}"
    return f"the kernel calls {', '.join(called)}: {_INSTEAD}" if called else ""


def _is_broken() -> bool:
    """Whether an error has spoilt the context for good."""
    try:
        call(cu.cuCtxSynchronize())
    except CudaError as error:
        if is_gpu_lost(error):
            raise DeviceError(f"the GPU is lost: {error}; see `nvidia-smi` and `dmesg`, then resume the run") from error
        return True
    return False


@contextlib.contextmanager
def _loaded(job: Job, gpu: Gpu, image: bytes) -> Iterator[_Run]:
    """Load the program, refuse what cannot be launched, and make the buffers; free all of it if the context lives."""
    with contextlib.ExitStack() as stack:
        program = _program(job, gpu, image)
        stack.callback(_unless_broken, program.close)
        _check_launch(job, gpu, program)
        main = Buffers(gpu, job.buffers, Path(job.folder), _poison(job), tight=job.tight_align)
        stack.callback(_unless_broken, main.close)
        sets = [_Set(job, gpu, program, main)]
        if job.secret:
            buffers = secretly(job.buffers, job.secret)
            hidden = Buffers(gpu, buffers, Path(job.folder), _poison(job), tight=job.tight_align)
            stack.callback(_unless_broken, hidden.close)
            sets.append(_Set(job, gpu, program, hidden))
        try:
            yield _Run(job, gpu, program, sets)
        except Hung:
            stack.pop_all()  # whatever is freed would wait for the kernel; it ends with this process
            raise


def _program(job: Job, gpu: Gpu, image: bytes) -> Program | Baseline:
    if job.call is None:
        return Program(image, job.plan, job.symbols, gpu)
    try:
        from evaluators.cudalib.baseline import Baseline
    except ModuleNotFoundError as error:
        raise WorkloadError(f"baseline.py cannot be called: the package {error.name} is missing") from error
    return Baseline(job.call, gpu)


def _unless_broken(close: Callable[[], None]) -> None:
    with contextlib.suppress(CudaError):  # a broken context ends with its process, and all its memory with it
        close()


def _check_launch(job: Job, gpu: Gpu, program: Program | Baseline) -> None:
    sizes = {buffer.name: 8 for buffer in job.buffers}
    sizes.update({scalar.name: np.dtype(scalar.dtype).itemsize for scalar in job.scalars})
    problem = program.problem(sizes)
    wanted, (free, _) = sum(job.plan.workspaces.values()), call(cu.cuMemGetInfo())
    if not problem and wanted > free // 2:
        problem = f"the launch header asks for {wanted} bytes of workspace; the device has {free // 2} for them"
    if problem:
        raise _Wrong(JobResult(Status.BAD_LAUNCH, problem))
    if program.local_bytes > max(SCRUBS):
        message = (
            f"a thread keeps {program.local_bytes} bytes in local memory; more than {max(SCRUBS)} cannot be cleared"
        )
        raise _Wrong(JobResult(Status.UNSUPPORTED, f"{message} between launches: use shared memory or a workspace"))
    if program.globals.lost:
        names = ", ".join(program.globals.lost[:3])
        raise _Wrong(JobResult(Status.UNSUPPORTED, f"{names}: cannot be restored between launches; use a workspace"))


def _poison(job: Job) -> int:
    return 0xFF81 + job.seed % 0x7F


class _Set:
    """The plan on one set of buffers."""

    def __init__(self, job: Job, gpu: Gpu, program: Program | Baseline, buffers: Buffers) -> None:
        self.buffers = buffers
        self._job, self._gpu, self._program = job, gpu, program
        self.arrange(at_end=False)

    def arrange(self, *, at_end: bool) -> None:
        """Lay the buffers out and fill them."""
        self.buffers.arrange(at_end=at_end)
        self._launches = self._program.bind(self.buffers.addresses, self._job.scalars)

    def queue(self) -> None:
        """Queue all that the launch header declares."""
        self.buffers.zero(self._job.plan.zero)
        for launch in self._launches:
            launch.launch()

    def collect(self) -> None:
        """Fetch the outputs of the last launch, where they do not lie in the buffers already."""
        for launch in self._launches:
            launch.collect()


class _Run:
    def __init__(self, job: Job, gpu: Gpu, program: Program | Baseline, sets: list[_Set]) -> None:
        self._job, self._gpu, self._program, self._sets = job, gpu, program, sets
        self._word = _poison(job)
        self._deadline = time.monotonic() + job.timeout_s
        self._doubts: list[str] = []
        self._flush_at: Any = gpu.flush_buffer(job.flush_bytes) if job.flush_bytes else None
        self._late = 0

    # --- answers ----------------------------------------------------------------------------------------------------

    def once(self) -> JobResult:
        """Run the plan with its buffers at one end of their pages, then afresh at the other."""
        (only,) = self._sets
        at_end = bool(self._job.seed % 2)
        for place in (not at_end, at_end):
            only.arrange(at_end=place)
            self._forget()
            only.queue()
            self._gpu.finish(self._deadline)
            self._check_bounds(only)
        unchanged, digests = self._leave(only, ".out")
        return JobResult(Status.OK, unchanged=unchanged, digests=digests)

    # --- latencies --------------------------------------------------------------------------------------------------

    def timed(self) -> JobResult:
        """Warm up, take the samples, and check every set of buffers."""
        self._gpu.warm()
        floor_us = self._gpu.floor_us(self._flush)
        self._deadline = time.monotonic() + self._job.timeout_s
        for chosen, launches in zip(self._sets, (self._job.warmup, 1), strict=False):
            self._warm_up(chosen, launches)
        samples, now = self._samples(floor_us)
        for chosen in self._sets:
            self._check_bounds(chosen)
        unchanged, digests = self._leave(self._sets[0], ".out")
        for hidden in self._sets[1:]:
            digests |= self._leave(hidden, ".secret")[1]
        return JobResult(
            Status.OK,
            samples_us=samples,
            unchanged=unchanged,
            digests=digests,
            doubts=tuple(self._doubts),
            conditions=now,
        )

    def _warm_up(self, chosen: _Set, launches: int) -> None:
        for _ in range(max(1, launches)):  # at least one: whatever a first launch sets up is set up here
            self._prepare(chosen)
            chosen.queue()
            self._gpu.finish(self._deadline)

    def _samples(self, floor_us: float) -> tuple[tuple[float, ...], Conditions]:
        for _ in range(SLOWED):
            with _no_collection():
                samples = tuple(self._sample(index) for index in range(self._job.samples))
            now = facts.conditions(self._gpu.facts.uuid, floor_us)
            slowed = [why for why in now.slowed_by if why != "power cap"]
            if not slowed:
                return samples, now
        self._doubts.append(f"the GPU was slowed down ({', '.join(slowed)}) at {now.temperature_c} °C")
        return samples, now

    def _sample(self, index: int) -> float:
        chosen = self._sets[-1] if index == self._job.secret_at else self._sets[0]
        while True:
            self._prepare(chosen)
            self._flush()
            taken = self._gpu.clocked(chosen.queue, self._deadline, blocked=self._late < LATE)
            if taken is not None:
                return taken
            self._late += 1
            if self._late == LATE:
                self._doubts.append("the launches could not be queued while the stream was held: the host is in them")

    # --- between launches -------------------------------------------------------------------------------------------

    def _prepare(self, chosen: _Set) -> None:
        chosen.buffers.restore()
        self._forget()

    def _forget(self) -> None:
        self._program.globals.restore()
        self._gpu.scrub(self._word, self._program.local_bytes)

    def _flush(self) -> None:
        if self._flush_at is not None:
            self._gpu.flush(self._flush_at, self._job.flush_bytes)

    # --- afterwards -------------------------------------------------------------------------------------------------

    def _check_bounds(self, chosen: _Set) -> None:
        findings = chosen.buffers.overruns(time.monotonic() + CHECK_S)
        if findings:
            message = "; ".join(finding.message for finding in findings)
            raise _Wrong(JobResult(Status.UNSAFE, message, findings))

    def _leave(self, chosen: _Set, suffix: str) -> tuple[tuple[str, ...], dict[str, str]]:
        """Write what the parent must see; return the inputs that it need not, and what the outputs hold."""
        chosen.collect()
        changed = chosen.buffers.changed(time.monotonic() + CHECK_S)
        parameters = [buffer for buffer in self._job.buffers if buffer.name not in self._job.plan.workspaces]
        inputs = {buffer.name for buffer in parameters if buffer.direction is Direction.IN}
        outputs = [buffer.name for buffer in parameters if buffer.name not in inputs]
        held = chosen.buffers.digests(outputs, self._job.digest_key, time.monotonic() + CHECK_S)
        digests = {f"{name}{suffix}": digest for name, digest in held.items()}
        new = [name for name in outputs if self._job.accepted.get(f"{name}{suffix}") != held[name]]
        chosen.buffers.leave([*new, *inputs & changed], Path(self._job.folder), suffix)
        return tuple(sorted(inputs - changed)), digests


@contextlib.contextmanager
def _no_collection() -> Iterator[None]:
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
