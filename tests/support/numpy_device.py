"""A device plug-in that computes y = 2 x in NumPy, misbehaves as a comment in the source tells it, and has a clock that
is exact: latencies depend on the tunable BX alone, so that tests know the best configuration.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import signal
import stat
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from evaluators.device import EvaluatorLike, Setup
from evo.errors import DeviceError
from evo.records import Binary, CompileRequest, Device, Direction, Finding, Job, JobResult, Resources, Status

POISON = 0xFFA5
BEST_BX = {4096: 128, 1000: 64}
"""Size of a performance case -> the value of BX that is fastest there."""
jobs_of_this_process = 0
first_inputs: dict[int, bytes] = {}
"""Size of a case -> the inputs that came first; those of correctness do."""


@dataclass(frozen=True)
class NumpyDevice:
    """See the module."""

    prescreen = False

    def describe(self) -> Device:
        return Device("numpy", "NumPy", "numpy-1", "any")

    def compile(self, request: CompileRequest) -> Binary:
        behaviour = _behaviour(request.source)
        if behaviour == "compile_error":
            return Binary(Status.COMPILE_ERROR, "key", message="line 9: expected ';'")
        if behaviour == "compile_error_at_577" and request.defines.get("N") == 577:
            return Binary(Status.COMPILE_ERROR, "key", message="line 9: N = 577 is odd")
        image = json.dumps({"behaviour": behaviour, "defines": dict(request.defines)}).encode()
        return Binary(Status.OK, "key", image, resources={"scale": Resources(registers=12)})

    def prepare(self) -> None:
        pass

    def run(self, job: Job) -> JobResult:
        global jobs_of_this_process
        jobs_of_this_process += 1
        folder = Path(job.folder)
        program = json.loads((folder / job.image).read_text())
        behaviour, defines = program["behaviour"], program["defines"]
        early = _misbehave(behaviour, job, defines)
        if early is not None:
            return early
        x = np.fromfile(folder / "x.in", np.float32)
        y = np.full(x.size * 2, POISON, np.uint16).view(np.float32)
        _compute(behaviour, job, x, y)
        x.tofile(folder / "x.out")
        y.tofile(folder / "y.out")
        if behaviour == "link":
            (folder / "y.out").unlink()
            (folder / "y.out").symlink_to("/etc/hostname")
        if behaviour == "short_file":
            (folder / "y.out").write_bytes(b"1234")
        return _report(behaviour, job, x.size, defines)

    def evaluator(self, setup: Setup) -> EvaluatorLike:
        from evaluators.evaluator import Evaluator

        return Evaluator(self, setup)


def _behaviour(source: str) -> str:
    found = re.search(r"// behaviour: (\w+)", source)
    return found[1] if found else "ok"


def _misbehave(behaviour: str, job: Job, defines: dict[str, int]) -> JobResult | None:
    if behaviour == "print":
        print("a million lines", flush=True)
        os.write(1, b"raw bytes on standard output\n")
    if behaviour == "crash" or (behaviour == "crash_unless_fresh" and jobs_of_this_process > 1):
        os.kill(os.getpid(), signal.SIGSEGV)
    if behaviour == "crash_with_words":
        print("the device is on fire", file=sys.stderr, flush=True)
        os._exit(3)
    if behaviour == "hang":
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
        Path(os.environ["CHILD_PID_FILE"]).write_text(f"{os.getpid()} {child.pid}")
        time.sleep(600)
    if behaviour == "stuck_at_bx_96" and defines.get("BX") == 96:
        return JobResult(Status.TIMEOUT, f"not finished within {job.timeout_s:.4g} s")
    if behaviour == "raise":
        raise RuntimeError("no such luck")
    if behaviour == "who":
        return JobResult(Status.OK, str(os.getpid()))
    return _break_the_child(behaviour, Path(job.folder)) or _be_unsafe(behaviour, job)


def _break_the_child(behaviour: str, folder: Path) -> JobResult | None:
    """Do what a GPU's faults, a person or the system do to a child and to its pipes."""
    if behaviour == "spent":
        return JobResult(Status.UNSAFE, "illegal address", spent=True)
    if behaviour == "spent_crash" or (behaviour == "spent_crash_unless_fresh" and jobs_of_this_process > 1):
        return JobResult(Status.CRASH, "the context is broken", spent=True)
    if behaviour == "killed" or (behaviour == "killed_once" and not (folder / "killed").exists()):
        (folder / "killed").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    if behaviour in ("flood", "flood_and_crash"):
        for _ in range(1600):
            os.write(2, b"a line of a hundred million\n" * 2340)
        print("the end of the flood", file=sys.stderr, flush=True)
    if behaviour == "flood_and_crash":
        os._exit(3)
    if behaviour in ("garbage", "forged"):
        line = b"no JSON" if behaviour == "garbage" else b'%d {"status": "ok"}' % jobs_of_this_process
        os.write(_reply_pipe(), line + b"\n")
    if behaviour == "endless_line":
        for _ in range(300):
            os.write(_reply_pipe(), b"x" * (1 << 16))
    if behaviour == "lost":
        raise DeviceError("the GPU has fallen off the bus: reset it with `nvidia-smi --gpu-reset`")
    return None


def _reply_pipe() -> int:
    """Return where replies go, which is no secret to a program that looks around in its process."""
    pipes = [fd for fd in map(int, os.listdir("/proc/self/fd")) if fd > 2 and _is_written_pipe(fd)]
    return pipes[0]


def _is_written_pipe(fd: int) -> bool:
    try:
        return stat.S_ISFIFO(os.fstat(fd).st_mode) and fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_ACCMODE == os.O_WRONLY
    except OSError:
        return False


def _be_unsafe(behaviour: str, job: Job) -> JobResult | None:
    if behaviour in ("unsafe", "unsafe_with_advice"):
        fault = Finding("out-of-bounds", "thread 5 writes element 40 of y", line=9)
        advice = Finding("early-exit", "thread 6 leaves", line=9, advice=True)
        findings = (fault,) if behaviour == "unsafe" else (fault, advice)
        return JobResult(Status.UNSAFE, f"line 9: thread 5 writes element {_size(job)} of y", findings)
    if behaviour == "unsafe_at_577" and _size(job) == 577:
        finding = Finding("out-of-bounds", "thread 5 writes element 577 of y", line=9)
        return JobResult(Status.UNSAFE, "line 9: thread 5 writes element 577 of y", (finding,))
    return None


def _size(job: Job) -> int:
    return next(buffer.nbytes for buffer in job.buffers if buffer.direction is Direction.IN) // 4


def _compute(behaviour: str, job: Job, x: np.ndarray, y: np.ndarray) -> None:
    if behaviour == "untouched":
        return
    y[:] = 2 * x
    if behaviour == "wrong":
        y[3] += 1
    if behaviour == "wrong_at_577" and x.size == 577:
        y[3] += 1
    if behaviour == "wrong_when_timed_often" and job.samples > 1:
        y[3] += 1
    if behaviour == "wrong_at_bx_128" and job.plan.defines.get("BX") == 128 and x.size < 100:
        y[3] += 1
    known = first_inputs.setdefault(x.size, x.tobytes()) == x.tobytes()
    if behaviour == "wrong_on_other_inputs_at_bx_128" and job.plan.defines.get("BX") == 128 and not known:
        y[3] += 1
    if behaviour == "wrong_at_bx_32_beyond_500" and job.plan.defines.get("BX") == 32 and x.size > 500:
        y[3] += 1
    if behaviour == "no_tail":
        y[32:] = np.full(y[32:].size * 2, POISON, np.uint16).view(np.float32)
    if behaviour == "changes_input":
        x[5] = 0
    if behaviour == "order_dependent":
        y[0] = np.nextafter(y[0], np.float32(np.inf)) if job.seed else y[0]


def _report(behaviour: str, job: Job, size: int, defines: dict[str, int]) -> JobResult:
    latency_us = 1000.0 + 20.0 * abs(defines.get("BX", 32) - BEST_BX.get(size, 32))
    if behaviour == "fast":
        latency_us *= 0.5
    if behaviour == "slow_at_bx_96" and defines.get("BX") == 96:
        latency_us *= 50
    claimed_us = 1.0 if behaviour == "liar" else latency_us
    count = job.samples - 1 if behaviour == "drops_a_sample" and job.samples else job.samples
    time.sleep(job.samples * latency_us / 1e6)
    walls = (latency_us + 30.0,) * count
    return JobResult(Status.OK, samples_us=(claimed_us,) * count, wall_us=walls, spent=behaviour == "right_and_spent")
