"""Run one job's plan once in a process of its own: `python -m evaluators.replay --job FOLDER/job.json`.

For Nsight Compute, compute-sanitizer and people. Buffers come from plain allocations, outputs and workspaces hold
nothing, the stream is never held, no kernel but the candidate's runs, and nothing is timed, judged or left behind.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from evo.errors import DeviceError, EvoError
from evo.records import Buffer, Job, from_json, to_json

if TYPE_CHECKING:
    from evaluators.cudalib.gpu import Gpu

JOB = "job.json"
"""The file in a job's folder that a replay begins from."""


def command(job: Job) -> list[str]:
    """Write a job into its folder, and return the command that replays it."""
    path = Path(job.folder) / JOB
    path.write_text(to_json(job), encoding="utf-8")
    return [sys.executable, "-P", "-m", "evaluators.replay", "--job", str(path)]


def main(argv: list[str] | None = None) -> int:
    """Replay a job; return 0, or 1 with words on standard error."""
    parser = argparse.ArgumentParser(prog="python -m evaluators.replay")
    parser.add_argument("--job", required=True, type=Path, help="job.json in the folder of its inputs and its program")
    path: Path = parser.parse_args(argv).job
    job = replace(from_json(Job, path.read_bytes()), folder=str(path.resolve().parent))
    signal.alarm(max(1, round(job.timeout_s)))  # whoever started this may be dead: nothing hangs on a GPU for good
    try:
        with _missing_packages():
            return _replay(job)
    except EvoError as error:
        print(error, file=sys.stderr)
        return 1


def _replay(job: Job) -> int:
    from evaluators.cudalib.driver import CudaError, call, cu

    os.environ["CUDA_MODULE_LOADING"] = "EAGER"
    try:
        launches = _prepared(job)
        call(cu.cuProfilerStart())  # whatever was loaded or copied until here is none of a profiler's business
        launches()
        call(cu.cuCtxSynchronize())
        call(cu.cuProfilerStop())
    except CudaError as error:
        print(f"the kernel failed: {error}", file=sys.stderr)
        return 1
    return 0


def _prepared(job: Job) -> Callable[[], None]:
    """Load the program, fill the buffers, and return the function that launches the plan."""
    from evaluators.cudalib.driver import call, cu
    from evaluators.cudalib.program import Program

    gpu = _bare_gpu()
    program = Program((Path(job.folder) / job.image).read_bytes(), job.plan, job.symbols, gpu)
    sizes = {buffer.name: 8 for buffer in job.buffers}
    sizes.update({scalar.name: np.dtype(scalar.dtype).itemsize for scalar in job.scalars})
    problem = program.problem(sizes)
    if problem:
        raise DeviceError(f"the plan cannot be launched: {problem}")
    addresses = {buffer.name: _filled(buffer, Path(job.folder)) for buffer in job.buffers}
    zeroed = [(addresses[buffer.name], buffer.nbytes) for buffer in job.buffers if buffer.name in job.plan.zero]
    bound = program.bind(addresses, job.scalars)

    def launch() -> None:
        for address, nbytes in zeroed:
            call(cu.cuMemsetD8Async(cu.CUdeviceptr(address), 0, nbytes, gpu.stream))
        for one in bound:
            one.launch()

    return launch


def _bare_gpu() -> Gpu:
    """Return a context with a stream and nothing of the harness's in it, which a tool would look at too."""
    from evaluators.cudalib import facts
    from evaluators.cudalib.driver import call, cu
    from evaluators.cudalib.gpu import Gpu

    class Bare(Gpu):
        def __init__(self) -> None:
            self.facts = facts.describe()
            call(cu.cuCtxSetCurrent(call(cu.cuDevicePrimaryCtxRetain(facts.first_device()))))
            self.stream = call(cu.cuStreamCreate(cu.CUstream_flags.CU_STREAM_NON_BLOCKING.value))

        def copy(self, to: int, source: int, nbytes: int) -> None:
            """Keep no copy of a module's variables: after one launch there is nothing to restore."""

    return Bare()


def _filled(buffer: Buffer, folder: Path) -> int:
    from evaluators.cudalib.driver import call, cu

    pointer = call(cu.cuMemAlloc(max(buffer.nbytes, 1)))
    if buffer.file is not None and buffer.nbytes:
        content = np.memmap(folder / buffer.file, np.uint8, "r", shape=(buffer.nbytes,))
        call(cu.cuMemcpyHtoD(pointer, content.ctypes.data, buffer.nbytes))
    return int(pointer)


@contextlib.contextmanager
def _missing_packages() -> Iterator[None]:
    try:
        yield
    except ModuleNotFoundError as error:
        raise EvoError(f"replaying a job needs the package {error.name}: pip install 'kernel-evo[cuda13]'") from error


if __name__ == "__main__":
    sys.exit(main())
