"""The Ray actor that holds the clients of a run's models and makes many calls at once.

It knows no operator, no store and no search: a request goes in, a reply comes out, and whatever a provider or a client
does wrong is a reply too. What crosses to and from it are records of plain data.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
from collections.abc import Mapping, Sequence

from evo.config import Model
from evo.records import Client, ModelFacts, ModelReply, ModelRequest
from mutators import models as clients
from mutators.environment import redact

FACTS_DEADLINE_S = 60.0
"""Importing litellm takes 3 to 20 s on a busy machine; a local server that has not answered by then is not up."""

OPEN_FILES = 4096
"""Enough for 256 calls at once and all that Ray has open; many systems start processes with 1024."""


class MutatorWorker:
    """Makes model calls; the class of an async Ray actor.

    Its caller gives it a `max_concurrency` above `in_flight` (so that `ready` always answers), no restarts and no
    repeated calls: what is lost with it is asked again by who keeps the books.

    Args:
        models: the config's, in order; `complete` names them by index. Those of one provider share its limit.
        in_flight: calls at once, of all models.
        environment: variables that the providers need on another machine (`environment.forwarded`); what is set there
            wins. On this machine Ray hands them on by itself.
    """

    def __init__(self, models: Sequence[Model], in_flight: int, environment: Mapping[str, str] | None = None) -> None:
        for name, value in (environment or {}).items():
            os.environ[name] = os.environ.get(name) or value
        _allow_files()
        self._clients = tuple(clients.client(model) for model in models)
        self._free = asyncio.Semaphore(in_flight)
        at_place = {place: asyncio.Semaphore(most) for place, most in clients.limits(models).items()}
        self._at_place = tuple(at_place.get(clients.place(model), contextlib.nullcontext()) for model in models)

    async def ready(self) -> int:
        """Return the worker's process id; answers at once, however many calls are in flight."""
        return os.getpid()

    async def facts(self) -> tuple[ModelFacts, ...]:
        """Return what is known of every model, in the config's order; a client that knows nothing says its name."""
        return tuple(await asyncio.gather(*(_facts(client) for client in self._clients)))

    async def complete(self, model: int, request: ModelRequest) -> ModelReply:
        """Make one call to the model of this index, when there is room for it: at its provider first, then here."""
        async with self._at_place[model], self._free:
            try:
                return await self._clients[model].complete(request)
            except Exception as error:  # a client of somebody else's may raise what cannot even be unpickled
                return ModelReply("error", error=redact(f"{type(error).__name__}: {error}"))


async def _facts(client: Client) -> ModelFacts:
    """Ask in a thread: to know a model may take the import of a library, or a question to a local server."""
    ask, nothing = getattr(client, "facts", None), ModelFacts(getattr(client, "name", ""))
    if ask is None:
        return nothing
    try:
        found: ModelFacts = await asyncio.wait_for(asyncio.to_thread(ask), FACTS_DEADLINE_S)
    except Exception:  # too late, or a client of somebody else's that fails: nothing is known then
        return nothing
    return found


def _allow_files() -> None:
    """Raise this process's soft limit of open files: a call holds a socket, or three pipes of a program."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = OPEN_FILES if hard == resource.RLIM_INFINITY else min(OPEN_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
