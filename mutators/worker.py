"""The Ray actor that holds the clients of a run's models and makes many calls at once.

It knows no operator, no store and no search: a request goes in, a reply comes out, and whatever a provider or a client
does wrong is a reply too. What crosses to and from it are records of plain data.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence

from evo.config import Model
from evo.records import Client, ModelFacts, ModelReply, ModelRequest
from mutators import models as clients
from mutators.environment import redact


class MutatorWorker:
    """Makes model calls; the class of an async Ray actor.

    Its caller gives it a `max_concurrency` above `in_flight` (so that `ready` always answers), no restarts and no
    repeated calls: what is lost with it is asked again by who keeps the books.

    Args:
        models: the config's, in order; `complete` names them by index.
        in_flight: calls at once.
        environment: variables that the providers need on another machine (`environment.forwarded`); what is set there
            wins. On this machine Ray hands them on by itself.
    """

    def __init__(self, models: Sequence[Model], in_flight: int, environment: Mapping[str, str] | None = None) -> None:
        for name, value in (environment or {}).items():
            os.environ[name] = os.environ.get(name) or value
        self._clients = tuple(clients.client(model) for model in models)
        self._free = asyncio.Semaphore(in_flight)

    async def ready(self) -> int:
        """Return the worker's process id; answers at once, however many calls are in flight."""
        return os.getpid()

    async def facts(self) -> tuple[ModelFacts, ...]:
        """Return what is known of every model, in the config's order; a client that knows nothing says its name."""
        return tuple([await asyncio.to_thread(_facts, client) for client in self._clients])

    async def complete(self, model: int, request: ModelRequest) -> ModelReply:
        """Make one call to the model of this index, when there is room for it."""
        async with self._free:
            try:
                return await self._clients[model].complete(request)
            except Exception as error:  # a client of somebody else's may raise what cannot even be unpickled
                return ModelReply("error", error=redact(f"{type(error).__name__}: {error}"))


def _facts(client: Client) -> ModelFacts:
    ask = getattr(client, "facts", None)
    if ask is None:
        return ModelFacts(getattr(client, "name", ""))
    found: ModelFacts = ask()
    return found
