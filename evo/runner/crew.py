"""Everything that works for a run on Ray: the evaluator actors, the mutator worker, and CPU tasks.

The crew starts calls, lets in who is fit to work and replaces what dies; it knows neither search nor store.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from evaluators.actor import alike_task, on_this_machine, screen_task, start_actor, tools_task
from evaluators.device import Screened, Setup
from evo import plugins
from evo.config import Model
from evo.errors import DeviceError, RunError
from evo.records import Device, ModelFacts, ModelRequest, Relative, ToolCall
from evo.runner import cluster, devices
from mutators import environment
from mutators import models as clients
from mutators.worker import MutatorWorker

# An evaluator guards each job with a deadline of its own; this one is for an actor that no longer answers at all.
CALL_DEADLINE_S = 1800.0
# Python, imports, a CUDA context, on a machine that is busy with all of that for eight GPUs.
START_DEADLINE_S = 300.0
# A seat whose device fails so often in a row, with no result in between, is given up.
FAILURES = 2


@dataclass(eq=False)
class Seat:
    """One evaluator actor on one device, and the one call that it is busy with.

    Attributes:
        actor: the Ray actor's handle.
        opening: the reference that says what its device is, until it has been looked at: nobody works before that.
        deadline: of the opening or the call, monotonic time in seconds.
        ref: of the call in flight, or None.
        failures: in a row, of the device and not of a candidate.
    """

    actor: Any
    opening: Any
    deadline: float
    ref: Any = None
    failures: int = 0


class Crew:
    """The run's hands.

    Attributes:
        patience: so often may devices fail under one call before it is to blame: broken ones are given up earlier.
        manual: indexes of the models that are a person.

    Args:
        ray: the module, initialised.
        device_name: name of the device plug-in; there are as many evaluators as there are devices of this kind.
        device: what it is.
        setup: what evaluators are made from.
        models: the config's models.
        calls: how many model calls may be in flight.

    Raises:
        DeviceError: no device is free.
    """

    def __init__(
        self, ray: Any, device_name: str, device: Device, setup: Setup, models: tuple[Model, ...], calls: int
    ) -> None:
        self.ray = ray
        self._device_name, self._device = plugins.located(device_name), device
        self._gpus = devices.gpus_each(device_name)
        self._setup = ray.put(setup)
        self._workload = ray.put(setup.workload)
        self._seed, self._core = setup.seed, setup.core
        self._screen = ray.remote(num_cpus=1, max_retries=0)(screen_task)
        self._alike = ray.remote(num_cpus=1, max_retries=0)(alike_task)
        self.seats = [self._sit(Seat(None, None, 0.0)) for _ in range(devices.evaluators(ray, device_name))]
        self.patience = FAILURES * len(self.seats)
        self._models = tuple(model.model_copy(update={"client": plugins.located(model.client)}) for model in models)
        self._calls = calls
        self.manual = frozenset(index for index, model in enumerate(models) if clients.is_manual(model))
        self._tools = ray.remote(num_cpus=1, max_retries=0)(tools_task)
        self.worker = self._new_worker() if models else None
        self._facts = self.worker.facts.remote() if self.worker is not None else None

    def screen(self, source: str) -> Any:
        """Start the pre-screen of a source; the reference holds a `Screened`."""
        return self._screen.remote(self._device_name, self._device, source, self._workload, self._seed, self._core)

    def alike(self, first: str, second: str) -> Any:
        """Start the comparison of two sources; the reference says whether they are one program."""
        return self._alike.remote(self._device_name, self._device, first, second, self._workload, self._core)

    def complete(self, model: int, request: ModelRequest) -> Any:
        """Start a model call; the reference holds a `ModelReply`."""
        assert self.worker is not None, "an operator that asks a model needs a config with models"
        return self.worker.complete.remote(model, request)

    def facts(self, timeout_s: float) -> tuple[ModelFacts, ...] | None:
        """Return what is known of the models; None while the worker still looks, which takes it seconds."""
        if not self.ray.wait([self._facts], timeout=timeout_s)[0]:
            return None
        try:
            found: tuple[ModelFacts, ...] = self.ray.get(self._facts)
        except self.ray.exceptions.RayError as error:
            raise RunError(f"the mutator worker died while it started: {str(error).splitlines()[0]}") from error
        return found

    def use_tools(self, calls: tuple[ToolCall, ...], parent: Relative) -> Any:
        """Start what a model calls; the reference holds a tuple of `ToolResult`."""
        return self._tools.remote(calls, self._device_name, self._device, self._workload, parent, self._core)

    @property
    def fingerprint(self) -> str:
        """Of the run's device."""
        return self._device.fingerprint

    # --- seats ------------------------------------------------------------------------------------------------

    @property
    def opening(self) -> list[Any]:
        """References that a new actor answers when it is ready; `admit` looks at the answers."""
        return [seat.opening for seat in self.seats if seat.opening is not None]

    def admit(self) -> tuple[str, ...]:
        """Let new actors work that are ready and have the run's device; return what is wrong with others.

        One that dies while it starts gets a second chance, one without a device is given up.

        Raises:
            DeviceError: a device is not equal to the run's, or no evaluator is left.
            EvoError: what no other evaluator would do better, e.g. the plug-in is not on that machine.
        """
        opening = [seat for seat in self.seats if seat.opening is not None]
        return tuple(wrong for seat in opening if (wrong := self._admit(seat)))

    def free_seat(self) -> Seat | None:
        """Return an evaluator that is ready and idle, or None."""
        return next((seat for seat in self.seats if seat.opening is None and seat.ref is None), None)

    def evaluate(self, seat: Seat, candidate: int, source: str, screened: Screened | None) -> Any:
        """Start an evaluation; the reference holds an `Evaluation`."""
        return self._start(seat, seat.actor.evaluate.remote(candidate, source, screened))

    def compare(self, seat: Seat, challenger: tuple[int, str], champion: tuple[int, str], number: int) -> Any:
        """Start a comparison, all of it on this one seat; the reference holds a `Comparison`."""
        return self._start(seat, seat.actor.compare.remote(challenger, champion, number))

    def rise(self, seat: Seat) -> None:
        """Take note that a call came back with its result."""
        seat.ref, seat.failures = None, 0

    def replace(self, seat: Seat) -> None:
        """Put a new actor on a seat whose actor died or no longer answers."""
        self._kill(seat)
        self._sit(seat)

    def fail(self, seat: Seat, error: DeviceError) -> None:
        """Put a new actor on a seat whose device failed, or go on without it if that is no news.

        Raises:
            DeviceError: the error, where this was the last seat.
        """
        seat.failures += 1
        if seat.failures < FAILURES:
            self.replace(seat)
            return
        self._kill(seat)
        self.seats.remove(seat)
        if not self.seats:
            raise error

    def replace_worker(self, dead: Any) -> None:
        """Put a new mutator worker in the place of one that died, once however many calls it took along."""
        if dead is self.worker:
            self.worker = self._new_worker()

    def close(self) -> None:
        """Let the evaluators stop their children and remove their files."""
        closing = [seat.actor.close.remote() for seat in self.seats if seat.opening is None and seat.ref is None]
        self.ray.wait(closing, num_returns=len(closing), timeout=5) if closing else None
        for seat in self.seats:
            self._kill(seat)

    def _start(self, seat: Seat, ref: Any) -> Any:
        seat.ref, seat.deadline = ref, time.monotonic() + CALL_DEADLINE_S
        return ref

    def _sit(self, seat: Seat) -> Seat:
        # It claims no CPU: its timed jobs have a core of their own, which Ray's tasks are kept off.
        seat.actor = start_actor(self._device_name, self._setup, num_cpus=0, num_gpus=self._gpus)
        seat.opening, seat.ref = seat.actor.describe.remote(), None
        seat.deadline = time.monotonic() + START_DEADLINE_S
        return seat

    def _kill(self, seat: Seat) -> None:
        self.ray.kill(seat.actor, no_restart=True)

    def _admit(self, seat: Seat) -> str:
        try:
            if not self.ray.wait([seat.opening], timeout=0)[0]:
                return self._overdue(seat)
            self._check(self.ray.get(seat.opening))
        except self.ray.exceptions.RayTaskError as error:
            wrong = cluster.fault(error, "an evaluator that starts")
            if not isinstance(wrong, DeviceError):
                raise wrong from error
            seat.failures = FAILURES
            return self._unfit(seat, wrong)
        except self.ray.exceptions.RayError as error:
            return self._unfit(seat, DeviceError(f"an evaluator died while it started: {str(error).splitlines()[0]}"))
        seat.opening = None
        return ""

    def _overdue(self, seat: Seat) -> str:
        if time.monotonic() <= seat.deadline:
            return ""
        return self._unfit(seat, DeviceError(f"an evaluator is not ready after {START_DEADLINE_S:.0f} s"))

    def _unfit(self, seat: Seat, error: DeviceError) -> str:
        self.fail(seat, error)
        return str(error)

    def _check(self, found: Device) -> None:
        """Refuse another device than the run's: latencies compare only between equal ones."""
        if found.fingerprint == self._device.fingerprint:
            return
        raise DeviceError(
            f"evaluators must have equal devices, or their latencies do not compare: the run's is {self._device.name} "
            f"({self._device.fingerprint}), and another one is {found.name} ({found.fingerprint}). Choose equal ones: "
            "CUDA_VISIBLE_DEVICES=0,1 before the command, or before `ray start` on the machines of a cluster"
        )

    # --- models -----------------------------------------------------------------------------------------------

    def _new_worker(self) -> Any:
        # On this machine: plug-ins, servers on loopback and the network are what they are for whoever starts a run.
        worker = self.ray.remote(
            num_cpus=0,
            max_restarts=0,
            max_concurrency=self._calls + 1,
            scheduling_strategy=on_this_machine(),
        )(MutatorWorker)
        # On a cluster that was started elsewhere no worker has this process's keys.
        return worker.remote(self._models, self._calls, environment.forwarded())
