"""Looks at a model's server without asking the model anything: does it answer, and does it have the model?

Nothing here costs money, sends a key, or waits longer than seconds. A provider's own servers are left alone.
"""

from __future__ import annotations

import json
import socket
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import urlsplit

from evo.config import Model
from mutators import providers

CONNECT_S = 3.0
"""A server that takes longer to accept a connection is not worth a run."""
MOST_BYTES = 1 << 20
OLLAMA = "http://localhost:11434"
"""Where Ollama listens unless it is told otherwise (OLLAMA_HOST)."""

Kind = Literal["ollama", "openai", "other"]
_LISTED = frozenset({"openai", "hosted_vllm", "lm_studio"})
"""Providers whose servers list their models at /models (OpenAI's API reference, "List models")."""


@dataclass(frozen=True)
class Server:
    """A server that a config or the environment names.

    Attributes:
        url: its base.
        kind: how it lists its models; `other`: not at all, or nobody here knows how.
        model: as it calls the model.
    """

    url: str
    kind: Kind
    model: str


def of(model: Model, environment: Mapping[str, str]) -> Server | None:
    """Return the server that calls of a litellm model go to; None where it is the provider's own."""
    provider = providers.find(model.name)
    bases = provider.bases if provider is not None else ()
    named = model.api_base or next((environment[name] for name in bases if environment.get(name)), None)
    ollama = provider is not None and provider.windowed
    url = named or (OLLAMA if ollama else None)
    if url is None:
        return None
    full = providers.qualified(model.name, url)
    kind: Kind = "ollama" if ollama else "openai" if providers.prefix(full) in _LISTED else "other"
    return Server(url.rstrip("/"), kind, full.partition("/")[2])


def unreachable(url: str) -> str:
    """Return why nothing can be connected to at this URL, or ""; behind a proxy nothing is tried."""
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
    if _proxied(parts.scheme, host):
        return ""
    try:
        socket.create_connection((host, port), timeout=CONNECT_S).close()
    except OSError as error:
        return f"{host}:{port}: {error.strerror or error}"
    return ""


def models(server: Server) -> tuple[str, ...] | None:
    """Return the names of the models that a server has, sorted; None where it does not say."""
    path = {"ollama": "/api/tags", "openai": "/models"}.get(server.kind)
    found = None if path is None else _get(f"{server.url}{path}")
    if not isinstance(found, Mapping):
        return None
    entries = found.get("models" if server.kind == "ollama" else "data")
    if not isinstance(entries, list):
        return None
    key = "name" if server.kind == "ollama" else "id"
    return tuple(sorted(str(entry[key]) for entry in entries if isinstance(entry, Mapping) and key in entry))


def has(server: Server, names: tuple[str, ...]) -> bool:
    """Whether the model is among these; Ollama's names end in a tag, which is `latest` where none is given."""
    spellings = {server.model, f"{server.model}:latest"} if server.kind == "ollama" else {server.model}
    return bool(spellings & set(names))


def _get(url: str) -> Any:
    try:
        with _opener(url).open(url, timeout=CONNECT_S) as response:
            return json.loads(response.read(MOST_BYTES))
    except (OSError, ValueError):  # refused for want of a key, no such page, no JSON
        return None


def _opener(url: str) -> urllib.request.OpenerDirector:
    parts = urlsplit(url)
    direct = [] if _proxied(parts.scheme, parts.hostname or "") else [urllib.request.ProxyHandler({})]
    return urllib.request.build_opener(*direct)


def _proxied(scheme: str, host: str) -> bool:
    return scheme in urllib.request.getproxies() and not urllib.request.proxy_bypass(host)
