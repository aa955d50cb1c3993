"""Every error that the product raises on purpose, and nothing else.

EvoError                     something a person can mend; the message says how
├── ConfigError              a search config: file, key path, expected, found
├── WorkloadError            a workload folder: file, key path, expected, found
├── HeaderError              a kernel's launch header: line, key, expected, found
│   └── ExpressionError      an expression in a header, a shape or a case
├── PluginError              a name that resolves to no plug-in; carries the nearest
├── SandboxError             this machine cannot confine foreign code as asked
├── DeviceError              the asked device is missing, busy, or lost
├── MutatorError             a model or rule cannot be used at all: no key, no such model
├── StoreError               a run's database or folder: locked, foreign version, damaged
│   └── DiskFullError        no room for what is to be stored; what was stored before is still there
└── RunError                 a run cannot start or go on

A bad candidate is data (`evo.records.Status`), never an exception.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class EvoError(Exception):
    """Base of all. `exit_code` is what the command line returns for it."""

    exit_code = 2


class ConfigError(EvoError):
    """A search config is wrong."""


class WorkloadError(EvoError):
    """A workload folder is wrong."""


class HeaderError(EvoError):
    """A kernel's launch header is wrong."""


class ExpressionError(HeaderError):
    """An expression does not parse, names something unknown, or does not evaluate."""


class PluginError(EvoError):
    """A plug-in's name resolves to nothing usable."""


class SandboxError(EvoError):
    """The operating system cannot confine foreign code as asked."""

    exit_code = 3


class DeviceError(EvoError):
    """The device is missing, busy or lost."""

    exit_code = 3


class MutatorError(EvoError):
    """A model or rule cannot be used at all."""

    exit_code = 3


class StoreError(EvoError):
    """A run's database or folder cannot be used."""

    exit_code = 4


class DiskFullError(StoreError):
    """There is no room for what is to be stored; what was stored before is still there."""


class RunError(EvoError):
    """A run cannot start or go on."""

    exit_code = 4


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return ``"; did you mean 'x'?"`` for the nearest known name, else the list of known names.

    Args:
        name: what was found.
        known: the names that would have been right.
    """
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    if near:
        return f"; did you mean {near[0]!r}?"
    return f"; known: {', '.join(names)}" if names else ""
