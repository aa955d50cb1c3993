"""Evaluators on Ray: the actor that owns a device, a builder whose threads are Ray tasks, and those tasks.

Thin: what is done is done elsewhere. Plain functions and classes here; the runner makes them remote.
"""

from __future__ import annotations

import socket
from concurrent.futures import Future
from dataclasses import replace
from typing import Any

from evaluators import prescreen, toolbox, twins
from evaluators.builder import step_aside
from evaluators.device import DevicePlugin, Screened, Setup
from evo import plugins
from evo.errors import DeviceError, EvoError, PluginError
from evo.records import (
    Binary,
    Comparison,
    CompileRequest,
    Device,
    Evaluation,
    Relative,
    ToolCall,
    ToolResult,
    Workload,
)


def describe_task(device: str) -> Device:
    """Say what the device of the worker's machine is.

    Args:
        device: name or `.py` path of the plug-in.
    """
    return _plugin(device).describe()


def compile_task(device: str, request: CompileRequest, avoid: int | None = None) -> Binary:
    """Build one program with the compiler of a device plug-in, off the core `avoid`.

    Args:
        device: name or `.py` path of the plug-in.
        request: what to build.
        avoid: the core that measures on this machine, or None.
    """
    step_aside(avoid)
    return _plugin(device).compile(request)


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
    plugin = _plugin(device)
    if not prescreen.applies_to(plugin):
        return prescreen.not_screened()
    screened = prescreen.screen(source, workload, facts, seed)
    if screened.state == "rejected":
        return screened
    return replace(
        screened,
        code=twins.digest(source, workload, facts, plugin.compile),
        listing=toolbox.listing(source, device, facts, workload),
    )


def alike_task(
    device: str, facts: Device, first: str, second: str, workload: Workload, avoid: int | None = None
) -> bool:
    """Say whether two kernels are one program, off the core `avoid`.

    Args:
        device: name or `.py` path of the run's device plug-in.
        facts: what it describes itself as.
        first: a kernel file.
        second: another one.
        workload: says which programs there are.
        avoid: the core that measures on this machine, or None.
    """
    step_aside(avoid)
    return twins.alike(first, second, workload, facts, _plugin(device).compile)


def tools_task(
    calls: tuple[ToolCall, ...],
    device: str,
    facts: Device,
    workload: Workload,
    parent: Relative,
    avoid: int | None = None,
) -> tuple[ToolResult, ...]:
    """Answer what a model calls while it thinks, off the core `avoid`.

    Args:
        calls: as the model wrote them.
        device: name or `.py` path of the run's device plug-in.
        facts: what it describes itself as.
        workload: its performance cases say what is compiled.
        parent: the kernel that the model works on.
        avoid: the core that measures on this machine, or None.
    """
    step_aside(avoid)
    return toolbox.use(calls, device, facts, workload, parent)


def _plugin(device: str) -> DevicePlugin:
    try:
        plugin: DevicePlugin = plugins.resolve(plugins.DEVICES, device)()
    except PluginError as error:  # the driver has found it, or no worker would be asked
        way = "a plug-in must be there on every machine of the cluster, at the same path or as an installed entry point"
        raise PluginError(f"on {socket.gethostname()}: {error}; {way}") from error
    return plugin


class RayBuilder:
    """Compiles in Ray CPU tasks.

    Args:
        device: name or `.py` path of the device plug-in.
        num_cpus: of each task.
        avoid: the core that measures, or None.
        here: on this machine alone: what a processor's own compiler builds need not run on another one.
    """

    def __init__(self, device: str, num_cpus: float = 1.0, avoid: int | None = None, *, here: bool = False) -> None:
        import ray

        self._device = device
        self._avoid = avoid
        self.workers = max(1, int(ray.cluster_resources().get("CPU", 1) / num_cpus))
        options: dict[str, Any] = {"scheduling_strategy": on_this_machine()} if here else {}
        self._task: Any = ray.remote(num_cpus=num_cpus, max_retries=1, **options)(compile_task)

    def submit(self, request: CompileRequest) -> Future[Binary]:
        """Queue one build."""
        future: Future[Binary] = self._task.remote(self._device, request, self._avoid).future()
        return future


def on_this_machine() -> Any:
    """Return the scheduling strategy that keeps a task or an actor on the machine of whoever starts it."""
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    return NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)


class EvaluatorActor:
    """Owns one device's evaluator; one call in flight. It holds no state that a new actor could not make again.

    An actor whose constructor fails dies without a word of its own, so that what is wrong is told by its first call.

    Args:
        device: name or `.py` path of the device plug-in.
        setup: without its builder, which does not travel.
        build_cpus: CPUs that each compile task takes.
    """

    def __init__(self, device: str, setup: Setup, build_cpus: float = 1.0) -> None:
        self._unfit: EvoError | None = None
        try:
            plugin = _plugin(device)
            self._facts = plugin.describe()
            builder = RayBuilder(device, build_cpus, setup.core, here=not getattr(plugin, "gpus", 0))
            self._evaluator = plugin.evaluator(replace(setup, builder=builder))
        except EvoError as error:
            self._unfit = error
        except Exception as error:  # a plug-in is foreign
            self._unfit = DeviceError(f"device {device} does not start: {type(error).__name__}: {error}")

    def describe(self) -> Device:
        """Say what the device is; answers once the evaluator is ready.

        Raises:
            EvoError: why there is no evaluator.
        """
        if self._unfit is not None:
            raise self._unfit
        return self._facts

    def evaluate(self, candidate: int, source: str, screened: Screened | None) -> Evaluation:
        """See `EvaluatorLike.evaluate`."""
        return self._evaluator.evaluate(candidate, source, screened)

    def compare(self, challenger: tuple[int, str], champion: tuple[int, str], number: int) -> Comparison:
        """See `EvaluatorLike.compare`."""
        return self._evaluator.compare(challenger, champion, number)

    def close(self) -> None:
        """See `EvaluatorLike.close`."""
        if self._unfit is None:
            self._evaluator.close()


def start_actor(device: str, setup: Setup, *, num_cpus: float = 1.0, num_gpus: float = 0.0) -> Any:
    """Start an `EvaluatorActor` and return its handle at once. Ray never restarts it: the runner makes a new one.

    One that claims no GPU stays on this machine, which is the one that the run has described; Ray finds the others a
    place, and shows them the GPUs that they claim and no other (CUDA_VISIBLE_DEVICES).

    Args:
        device: name or `.py` path of the device plug-in.
        setup: see `Setup`.
        num_cpus: that the actor claims.
        num_gpus: that the actor claims; 1 for a GPU.
    """
    import ray

    options: dict[str, Any] = {"num_cpus": num_cpus, "num_gpus": num_gpus, "max_restarts": 0, "max_task_retries": 0}
    if not num_gpus:
        options["scheduling_strategy"] = on_this_machine()
    return ray.remote(EvaluatorActor).options(**options).remote(device, setup)
