"""Which device a run uses, how many of it there are, and how this machine's cores are shared.

Nothing here makes a CUDA context: the evaluators alone do.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from evaluators.actor import describe_task
from evaluators.device import DevicePlugin
from evo import plugins
from evo.errors import DeviceError
from evo.records import Device
from evo.runner import cluster, gpus

NVIDIA_DRIVER = Path("/proc/driver/nvidia/version")
DESCRIBE_S = 120.0
"""A worker on another machine starts Python and imports the plug-in before it answers."""


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


def describe(name: str, address: str) -> Device:
    """Say what the device is where the evaluators will run: this machine, or for GPUs of a cluster one of its own.

    Args:
        name: of the device plug-in.
        address: the config's `ray.address`.

    Raises:
        DeviceError: there is none, or none is free.
        RunError: no cluster answers.
    """
    if address == cluster.LOCAL or not gpus_each(name):
        return make(name).describe()
    with cluster.joined_ray(address) as ray:
        evaluators(ray, name)
        task = ray.remote(num_cpus=0, num_gpus=gpus_each(name), max_retries=0)(describe_task)
        try:
            found: Device = ray.get(task.remote(plugins.located(name)), timeout=DESCRIBE_S)
        except ray.exceptions.GetTimeoutError as error:
            silence = f"no machine of the cluster has said within {DESCRIBE_S:.0f} s what its device {name} is"
            raise DeviceError(silence) from error
        except ray.exceptions.RayTaskError as error:
            raise cluster.fault(error, f"describing device {name}") from error
    return found


def gpus_each(name: str) -> int:
    """Return how many GPUs an evaluator of this device has for itself; see `DevicePlugin`."""
    return int(getattr(plugins.resolve(plugins.DEVICES, name), "gpus", 0))


def calls_baselines(name: str) -> bool:
    """Whether this device runs a workload's baseline.py; see `DevicePlugin`."""
    return bool(getattr(plugins.resolve(plugins.DEVICES, name), "calls_baselines", False))


def evaluators(ray: Any, name: str) -> int:
    """Return how many evaluators can work at once: one where the device is no GPU, else as many as GPUs are free.

    Args:
        ray: the module, initialised.
        name: of the device plug-in.

    Raises:
        DeviceError: too few GPUs are free.
    """
    each = gpus_each(name)
    if each == 0:
        return 1
    free = int(ray.available_resources().get("GPU", 0))
    if free >= each:
        return free // each
    there = int(ray.cluster_resources().get("GPU", 0))
    raise DeviceError(
        f"device {name}: expected at least {each} free GPU, found {free} of {there} that Ray knows. On a cluster, "
        "wait for other jobs or start a machine with `ray start --num-gpus=N`; on this machine, look at "
        "CUDA_VISIBLE_DEVICES and at nvidia-smi; `device: host` needs none"
    )


def gpus_here(name: str) -> int:
    """Return how many GPUs of this machine a Ray of our own may hand to evaluators of this device."""
    return gpus.visible() if gpus_each(name) else 0


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
