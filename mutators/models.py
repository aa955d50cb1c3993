"""From a config's models to clients: which class, with which of its options. No call is made here."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

from evo import plugins
from evo.config import Model
from evo.errors import ConfigError
from evo.records import Client

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


def is_manual(model: Model) -> bool:
    """Whether this model is a person, or an agent elsewhere: its prompts are written down, and nobody is called."""
    return bool(getattr(plugins.resolve(plugins.CLIENTS, model.client), "manual", False))


def check(models: Iterable[Model]) -> None:
    """Raise `MutatorError`, within milliseconds and with the ways on, for the first model that cannot be reached."""
    for model in models:
        client(model).check()
