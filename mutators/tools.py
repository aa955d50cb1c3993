"""What a model may call while it thinks: names, descriptions and arguments. Who answers is `evaluators.toolbox`."""

from __future__ import annotations

from evo.records import Device, Tool


def available(device: Device, *, profiled: bool) -> tuple[Tool, ...]:
    """Return the tools that mean something on this device; counters only where a profiler looks at kernels."""
    return ()
