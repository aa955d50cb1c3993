"""From a config's models to clients: which class, with which of its options. No call is made here."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

from evo import plugins
from evo.config import Model
from evo.errors import ConfigError
from evo.records import Client
from mutators import providers

_NOT_OPTIONS = frozenset({"client", "weight", "concurrency"})


def client(model: Model) -> Client:
    """Make the client of a model; its fields get the model's keys of the same names.

    Raises:
        PluginError: there is no such client.
        ConfigError: the model sets a key that this client does not have, so that it would do nothing.
    """
    kind = plugins.resolve(plugins.CLIENTS, model.client)
    known = {field.name for field in dataclasses.fields(kind)}
    options: Mapping[str, Any] = {name: getattr(model, name) for name in type(model).model_fields}
    changed = {name for name, entry in type(model).model_fields.items() if options[name] != entry.default}
    inert = sorted(changed - _NOT_OPTIONS - known)
    if inert:
        raise ConfigError(
            f"models: the client {model.client!r} has no option {inert[0]!r}; delete it, or choose another client. "
            f"Its options are: {', '.join(sorted(known)) or 'none'}"
        )
    made: Client = kind(**{name: value for name, value in options.items() if name in known - _NOT_OPTIONS})
    return made


def limits(models: Iterable[Model]) -> dict[str, int]:
    """Return how many calls each place gets at once, where a model says so; of several models the smallest counts."""
    found: dict[str, int] = {}
    for model in models:
        if model.concurrency is not None:
            where = place(model)
            found[where] = min(model.concurrency, found.get(where, model.concurrency))
    return found


def place(model: Model) -> str:
    """Return where the calls of a model go: its provider or server, its program, or the model itself."""
    if model.client == "litellm":
        return providers.place(model.name, model.api_base)
    return " ".join((model.client, *(model.command[:1] or (model.name,))))


def is_manual(model: Model) -> bool:
    """Whether this model is a person, or an agent elsewhere: its prompts are written down, and nobody is called."""
    return bool(getattr(plugins.resolve(plugins.CLIENTS, model.client), "manual", False))


def check(models: Iterable[Model]) -> None:
    """Raise `MutatorError`, within milliseconds and with the ways on, for the first model that cannot be reached."""
    for model in models:
        client(model).check()
