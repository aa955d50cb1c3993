from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest

from evo.records import Client, ModelReply, ModelRequest


@pytest.fixture(scope="module")
def complete() -> Iterator[Callable[[Client, ModelRequest], ModelReply]]:
    """Call clients on one event loop, as the worker does, and close litellm's connections at the end."""
    with asyncio.Runner() as runner:
        yield lambda client, request: runner.run(client.complete(request))
        runner.run(_close())


async def _close() -> None:
    import litellm

    closing: Callable[[], Coroutine[Any, Any, None]] = litellm.close_litellm_async_clients
    await closing()
