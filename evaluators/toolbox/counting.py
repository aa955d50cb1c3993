"""The tool `counters`: what Nsight Compute counted while the parent ran, by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields

from evaluators.nsight import counters
from evaluators.toolbox.arguments import Read
from evaluators.toolbox.task import Task
from evaluators.toolbox.words import named
from evo.errors import did_you_mean
from evo.quoting import clean
from evo.records import KernelProfile

NAMES = tuple(field.name for field in fields(KernelProfile) if field.name != "kernel")
"""What can be asked for: the fields of `KernelProfile`. Nsight Compute's own names of them are understood too."""
_MOST_LAUNCHES = 6
_UNITS = {"_us": " µs", "_pct": " %", "_bytes": " bytes", "_ways": " passes for each that is needed"}


def answer(arguments: Read, task: Task) -> list[str]:
    """Say the counters that are asked for, all of them by default, for each launch of the parent."""
    profile = task.parent.evaluation.profile if task.parent.evaluation else None
    if profile is None or not profile.kernels:
        return ["There are no counters of the parent: no profiler has looked at it."]
    asked = arguments.get("names") or NAMES
    found = {name: known for name in asked if (known := _known(name))}
    parts = []
    if found or not asked:
        shown = tuple(dict.fromkeys(found.values()))
        parts.append(f"Counted on case {profile.case}, caches cold, a line for each launch and counter:")
        parts += [_launch(kernel, shown) for kernel in profile.kernels[:_MOST_LAUNCHES]]
        left_out = len(profile.kernels) - _MOST_LAUNCHES
        parts += [f"{left_out} more launches are left out."] if left_out > 0 else []
    unknown = [name for name in asked if name not in found]
    return [*parts, *_unknown(unknown)]


def _known(name: str) -> str:
    """Return the field that a name means, or ""."""
    return name if name in NAMES else counters.field_of(name)


def _launch(kernel: KernelProfile, names: Sequence[str]) -> str:
    lines = [f"{named(kernel.kernel)}:"]
    return "\n".join([*lines, *(f"- {name}: {_value(name, getattr(kernel, name))}" for name in names)])


def _value(name: str, value: object) -> str:
    unit = next((words for ending, words in _UNITS.items() if name.endswith(ending)), "")
    if value is None:
        return "not counted on this device"
    if isinstance(value, Mapping):
        return ", ".join(f"{what} {share:.1f}{unit}" for what, share in value.items()) or "nothing"
    if isinstance(value, tuple):
        return " and ".join(value) or "nothing"
    return f"{value:.6g}{unit}" if isinstance(value, float) else f"{value}{unit}"


def _unknown(names: Sequence[str]) -> list[str]:
    if not names:
        return []
    lines = []
    for name in names[:10]:
        nearest = did_you_mean(name[:80], NAMES)
        lines.append(f"no counter is called {clean(name)[:80]!r}{nearest if 'did you mean' in nearest else ''}")
    return ["\n".join(lines), f"Counters that there are: {', '.join(NAMES)}."]
