"""The CUDA device: NVRTC straight to machine code of the very GPU, run between guard pages, timed by its own clock.

This module only joins the parts: `evaluators.nvrtc` (compiling), `cudalib` (running). What needs CUDA's bindings is
imported when it is used: CPU workers compile for a GPU without a driver.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from evo.errors import DeviceError
from evo.records import Binary, CompileRequest, Device, Job, JobResult, Peaks

if TYPE_CHECKING:
    from evaluators.cudalib.gpu import Gpu
    from evaluators.device import EvaluatorLike, Setup

INSTALL = "pip install 'kernel-evo[cuda13]' (drivers of CUDA 13) or 'kernel-evo[cuda12]'"


@dataclass(frozen=True)
class CudaDevice:
    """Runs kernels on the first visible NVIDIA GPU."""

    gpus: ClassVar[int] = 1
    slow_start: ClassVar[bool] = True
    isolates: ClassVar[bool] = True
    calls_baselines: ClassVar[bool] = True
    replays: ClassVar[bool] = True

    def describe(self) -> Device:
        """Say what the GPU is.

        Raises:
            DeviceError: there is none, or a package is missing.
        """
        with _packages():
            from evaluators.cudalib import facts

            return facts.describe()

    def measured_peaks(self, facts: Device) -> Peaks:
        """Return what the GPU reaches; the first time under a driver takes a few seconds, in a process of its own.

        Raises:
            DeviceError: it cannot be measured now, and why.
        """
        with _packages():
            from evaluators.cudalib import peaks

            return peaks.measured(facts)

    def compile(self, request: CompileRequest) -> Binary:
        """Build a program, or fetch it from the cache on disk. A bad candidate is a status of the binary.

        Raises:
            DeviceError: NVRTC is missing.
            SandboxError: the machine cannot confine it.
        """
        from evaluators import nvrtc

        return nvrtc.compile(request, cubin=True)

    def prepare(self) -> None:
        """Make this process's CUDA context, which takes a second.

        Raises:
            DeviceError: there is no GPU, or a package is missing.
        """
        _gpu()

    def run(self, job: Job) -> JobResult:
        """Run a program on a job, in this process's CUDA context.

        Raises:
            DeviceError: the GPU is lost, or has too little memory for the case.
        """
        from evaluators.cudalib.jobs import run_job

        return run_job(job, _gpu())

    def evaluator(self, setup: Setup) -> EvaluatorLike:
        """Return an evaluator that judges kernels on this GPU, and that alone may use it until it is closed.

        Raises:
            DeviceError: there is no GPU, or another search has it.
        """
        from evaluators.cudalib import lock
        from evaluators.evaluator import Evaluator

        return Evaluator(self, setup, holding=lock.hold(self.describe().uuid))


@functools.cache
def _gpu() -> Gpu:
    with _packages():
        from evaluators.cudalib.gpu import Gpu

        return Gpu()


@contextmanager
def _packages() -> Iterator[None]:
    """Turn a missing package into an error that says how to get it."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise DeviceError(f"the device `cuda` needs the package {error.name}: {INSTALL}") from error
