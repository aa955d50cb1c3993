"""Evaluators on Ray: the actor that owns a device, a builder whose threads are Ray tasks, and those tasks.

Thin: what is done is done elsewhere. Plain functions and classes here; the runner makes them remote.
"""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import replace
from typing import Any

from evaluators import prescreen
from evaluators.builder import step_aside
from evaluators.device import DevicePlugin, Screened, Setup
from evo import plugins
from evo.records import Binary, Comparison, CompileRequest, Device, Evaluation, Workload


def compile_task(device: str, request: CompileRequest, avoid: int | None = None) -> Binary:
    """Build one program with the compiler of a device plug-in, off the core `avoid`.

    Args:
        device: name or `.py` path of the plug-in.
        request: what to build.
        avoid: the core that measures on this machine, or None.
    """
    step_aside(avoid)
    plugin: DevicePlugin = plugins.resolve(plugins.DEVICES, device)()
    return plugin.compile(request)


def screen_task(
    device: str, facts: Device, source: str, workload: Workload, seed: int, avoid: int | None = None
) -> Screened:
    """Screen one candidate off the core `avoid`, unless the device plug-in asks for no screening.

    Args:
        device: name or `.py` path of the run's device plug-in.
        facts: what it describes itself as; a CPU worker cannot ask it.
        source: the kernel file.
        workload: its correctness cases are run.
        seed: of inputs and launch orders.
        avoid: the core that measures on this machine, or None.
    """
    step_aside(avoid)
    if not prescreen.applies_to(plugins.resolve(plugins.DEVICES, device)()):
        return prescreen.not_screened()
    return prescreen.screen(source, workload, facts, seed)


class RayBuilder:
    """Compiles in Ray CPU tasks.

    Args:
        device: name or `.py` path of the device plug-in.
        num_cpus: of each task.
        avoid: the core that measures, or None.
    """

    def __init__(self, device: str, num_cpus: float = 1.0, avoid: int | None = None) -> None:
        import ray

        self._device = device
        self._avoid = avoid
        self._task: Any = ray.remote(num_cpus=num_cpus, max_retries=1)(compile_task)

    def submit(self, request: CompileRequest) -> Future[Binary]:
        """Queue one build."""
        future: Future[Binary] = self._task.remote(self._device, request, self._avoid).future()
        return future


class EvaluatorActor:
    """Owns one device's evaluator; one call in flight. It holds no state that a new actor could not make again.

    Args:
        device: name or `.py` path of the device plug-in.
        setup: without its builder, which does not travel.
        build_cpus: CPUs that each compile task takes.
    """

    def __init__(self, device: str, setup: Setup, build_cpus: float = 1.0) -> None:
        plugin: DevicePlugin = plugins.resolve(plugins.DEVICES, device)()
        self._facts = plugin.describe()
        self._evaluator = plugin.evaluator(replace(setup, builder=RayBuilder(device, build_cpus, setup.core)))

    def describe(self) -> Device:
        """Say what the device is; answers once the evaluator is ready."""
        return self._facts

    def evaluate(self, candidate: int, source: str, screened: Screened | None) -> Evaluation:
        """See `EvaluatorLike.evaluate`."""
        return self._evaluator.evaluate(candidate, source, screened)

    def compare(self, challenger: tuple[int, str], champion: tuple[int, str], number: int) -> Comparison:
        """See `EvaluatorLike.compare`."""
        return self._evaluator.compare(challenger, champion, number)

    def close(self) -> None:
        """See `EvaluatorLike.close`."""
        self._evaluator.close()


def start_actor(device: str, setup: Setup, *, num_cpus: float = 1.0, num_gpus: float = 0.0) -> Any:
    """Start an `EvaluatorActor` and return its handle at once. Ray never restarts it: the runner makes a new one.

    Args:
        device: name or `.py` path of the device plug-in.
        setup: see `Setup`.
        num_cpus: that the actor claims.
        num_gpus: that the actor claims; 1 for a GPU.
    """
    import ray

    options = {"num_cpus": num_cpus, "num_gpus": num_gpus, "max_restarts": 0, "max_task_retries": 0}
    return ray.remote(EvaluatorActor).options(**options).remote(device, setup)
