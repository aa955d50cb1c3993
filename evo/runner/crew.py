"""Everything that works for a run on Ray: the evaluator actors, the mutator worker, and CPU tasks.

The crew starts calls and replaces what dies; it knows neither search nor store.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

from evaluators.actor import screen_task, start_actor
from evaluators.device import Screened, Setup
from evo.config import Model
from evo.records import Device, ModelRequest
from mutators import environment
from mutators.worker import MutatorWorker

# An evaluator guards each job with a deadline of its own; this one is for an actor that no longer answers at all.
CALL_DEADLINE_S = 1800.0


@dataclass
class Seat:
    """One evaluator actor, and the one call that it is busy with.

    Attributes:
        actor: the Ray actor's handle.
        ref: of the call in flight, or None.
        deadline: monotonic time in seconds.
    """

    actor: Any
    ref: Any = None
    deadline: float = field(default=0.0)


class Crew:
    """The run's hands.

    Args:
        ray: the module, initialised.
        device_name: name of the device plug-in.
        device: what it is.
        setup: what evaluators are made from.
        models: the config's models.
        seats: how many evaluator actors.
        calls: how many model calls may be in flight.
    """

    def __init__(
        self,
        ray: Any,
        device_name: str,
        device: Device,
        setup: Setup,
        models: tuple[Model, ...],
        seats: int,
        calls: int,
    ) -> None:
        self.ray = ray
        self._device_name, self._device = device_name, device
        self._setup = ray.put(setup)
        self._workload = ray.put(setup.workload)
        self._seed = setup.seed
        self._screen = ray.remote(num_cpus=1, max_retries=0)(screen_task)
        self.seats = [Seat(self._new_actor()) for _ in range(seats)]
        self._models, self._calls = models, calls
        self.worker = self._new_worker() if models else None

    def screen(self, source: str) -> Any:
        """Start the pre-screen of a source; the reference holds a `Screened`."""
        return self._screen.remote(self._device_name, self._device, source, self._workload, self._seed)

    def complete(self, model: int, request: ModelRequest) -> Any:
        """Start a model call; the reference holds a `ModelReply`."""
        assert self.worker is not None, "an operator that asks a model needs a config with models"
        return self.worker.complete.remote(model, request)

    def free_seat(self) -> Seat | None:
        """Return an evaluator that is idle, or None."""
        return next((seat for seat in self.seats if seat.ref is None), None)

    def evaluate(self, seat: Seat, candidate: int, source: str, screened: Screened | None) -> Any:
        """Start an evaluation; the reference holds an `Evaluation`."""
        return self._start(seat, seat.actor.evaluate.remote(candidate, source, screened))

    def compare(self, seat: Seat, challenger: tuple[int, str], champion: tuple[int, str], number: int) -> Any:
        """Start a comparison; the reference holds a `Comparison`."""
        return self._start(seat, seat.actor.compare.remote(challenger, champion, number))

    def replace(self, seat: Seat) -> None:
        """Put a new actor on a seat whose actor died or no longer answers."""
        self.ray.kill(seat.actor, no_restart=True)
        seat.actor, seat.ref = self._new_actor(), None

    def replace_worker(self, dead: Any) -> None:
        """Put a new mutator worker in the place of one that died, once however many calls it took along."""
        if dead is self.worker:
            self.worker = self._new_worker()

    def close(self) -> None:
        """Let the evaluators stop their children and remove their files."""
        closing = [seat.actor.close.remote() for seat in self.seats if seat.ref is None]
        self.ray.wait(closing, num_returns=len(closing), timeout=5) if closing else None
        for seat in self.seats:
            self.ray.kill(seat.actor, no_restart=True)

    def _start(self, seat: Seat, ref: Any) -> Any:
        seat.ref, seat.deadline = ref, time.monotonic() + CALL_DEADLINE_S
        return ref

    def _new_actor(self) -> Any:
        # It claims no CPU: its timed jobs have a core of their own, which Ray's tasks are kept off.
        return start_actor(self._device_name, self._setup, num_cpus=0)

    def _new_worker(self) -> Any:
        worker = self.ray.remote(num_cpus=0, max_restarts=0, max_concurrency=self._calls + 1)(MutatorWorker)
        # On a cluster that was started elsewhere no worker has this process's keys.
        return worker.remote(self._models, self._calls, environment.forwarded())
