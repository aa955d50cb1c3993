"""Which device a run uses, and how this machine's cores are shared between measuring and everything else."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from evaluators.device import DevicePlugin
from evo import plugins

NVIDIA_DRIVER = Path("/proc/driver/nvidia/version")


def choose(name: str) -> str:
    """Return the name of the device plug-in that a config's `device` means.

    `auto` is `cuda` where an NVIDIA driver is loaded and the backend exists, else `host`.
    """
    if name != "auto":
        return name
    has_backend = "cuda" in plugins.available(plugins.DEVICES)
    return "cuda" if has_backend and NVIDIA_DRIVER.exists() else "host"


def make(name: str) -> DevicePlugin:
    """Return the device plug-in of this name.

    Raises:
        PluginError: there is none.
    """
    plugin: DevicePlugin = plugins.resolve(plugins.DEVICES, name)()
    return plugin


def timing_core(device: str) -> int | None:
    """Return the core that the host device's timed jobs get to themselves; None where there is none to spare."""
    cores = sorted(os.sched_getaffinity(0))
    return cores[-1] if device == "host" and len(cores) > 1 else None


@contextlib.contextmanager
def kept_off(core: int | None) -> Iterator[None]:
    """Keep this process, and whatever it starts in the block, off a core."""
    before = os.sched_getaffinity(0)
    if core is not None:
        os.sched_setaffinity(0, before - {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
