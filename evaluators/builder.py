"""Builds programs: a pool of threads that call the device's compiler, and the book of one kernel's builds.

The compiler runs in processes of its own, so that threads are enough. Nothing is run here.
"""

from __future__ import annotations

import copy
import functools
import os
from concurrent.futures import Future, ThreadPoolExecutor

from evaluators.device import Builder, DevicePlugin
from evo.kernel import Kernel
from evo.records import Binary, Case, CompileRequest, Config, Device, LaunchPlan, Workload


class LocalBuilder:
    """Compiles on this machine, on every core but the one that measures.

    Args:
        device: whose compiler is called.
        workers: builds at a time; None means one for each core that may be used.
        avoid: core that builds, and the compilers that they start, stay off; None for none.
    """

    def __init__(self, device: DevicePlugin, workers: int | None = None, avoid: int | None = None) -> None:
        self._device = device
        self.workers = workers or len(_cores_but(avoid))
        self._pool = ThreadPoolExecutor(self.workers, "compile", initializer=step_aside, initargs=(avoid,))

    def submit(self, request: CompileRequest) -> Future[Binary]:
        """Queue one build."""
        return self._pool.submit(self._device.compile, request)

    def close(self) -> None:
        """Drop what is queued and wait for what runs."""
        self._pool.shutdown(cancel_futures=True)


NICENESS = 15
"""Of builds and checks: who measures, and who watches the clock of who is measured, goes first."""


def step_aside(core: int | None) -> None:
    """Keep this thread, and the processes that it starts, off the core that measures, and behind everybody else."""
    os.sched_setaffinity(0, _cores_but(core))
    os.setpriority(os.PRIO_PROCESS, 0, max(NICENESS, os.getpriority(os.PRIO_PROCESS, 0)))


def _cores_but(core: int | None) -> set[int]:
    everywhere = _allowed_cores()
    return (everywhere - {core}) or everywhere


@functools.cache
def _allowed_cores() -> set[int]:
    return os.sched_getaffinity(0)


class Programs:
    """The programs of one kernel: a plan for each case and configuration, a build for each distinct set of defines."""

    def __init__(self, kernel: Kernel, workload: Workload, device: Device, builder: Builder) -> None:
        self.kernel = kernel
        self._built_from = kernel
        self._workload = workload
        self._device = device
        self._builder = builder
        self.workers = builder.workers
        self._builds: dict[tuple[object, ...], Future[Binary]] = {}

    def plan(self, case: Case, config: Config | None = None) -> LaunchPlan:
        """Resolve the header for a case; raises `HeaderError`."""
        return self.kernel.plan(self._workload, case, self._device, config)

    def under(self, rewritten: Kernel) -> Programs:
        """Return the programs of the same code under other `choose` rules; what is built is shared.

        Rules take lines of the file, so that its code has moved: compilers and checkers still tell the lines that it
        had before.

        Args:
            rewritten: `kernel.with_choose` of this one's kernel.
        """
        other = copy.copy(self)
        other.kernel = rewritten
        return other

    def submit(self, plan: LaunchPlan) -> Future[Binary]:
        """Start the build that a plan needs, unless it is under way already."""
        key = (tuple(sorted(plan.defines.items())), plan.options)
        if key not in self._builds:
            self._builds[key] = self._builder.submit(request(self._built_from, plan, self._device.arch))
        return self._builds[key]


def request(kernel: Kernel, plan: LaunchPlan, arch: str, flavour: str = "plain") -> CompileRequest:
    """Return what a plan asks of a compiler.

    The launch header is left out, its lines empty: a rewritten header of as many lines needs no other build, and every
    line of the code keeps its number.
    """
    return CompileRequest(kernel.code, kernel.kernels, plan.defines, plan.options, arch, flavour)
