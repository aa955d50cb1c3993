"""How many GPUs this machine has for us, without a CUDA context: from NVML, or from what the driver tells in /proc."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

DRIVER_GPUS = Path("/proc/driver/nvidia/gpus")


def visible() -> int:
    """Return how many GPUs CUDA would show to a process of this machine."""
    return len(_chosen(_nvml() or _proc(), os.environ.get("CUDA_VISIBLE_DEVICES")))


def _chosen(uuids: Sequence[str], variable: str | None) -> Sequence[str]:
    """Return what CUDA_VISIBLE_DEVICES leaves of the GPUs; like CUDA, stop at the first entry that names none."""
    if variable is None:
        return uuids
    left: list[str] = []
    for entry in (part.strip() for part in variable.split(",")):
        if not (_is_index(entry, len(uuids)) or _is_uuid(entry, uuids)):
            break
        left.append(entry)
    return left


def _is_index(entry: str, count: int) -> bool:
    return entry.isdecimal() and int(entry) < count


def _is_uuid(entry: str, uuids: Sequence[str]) -> bool:
    """Whether this begins the UUID of a GPU, or names a MIG instance, which NVML does not list."""
    gpu = entry.startswith("GPU-") and any(uuid.startswith(entry) for uuid in uuids)
    return gpu or (entry.startswith("MIG-") and bool(uuids))


def _nvml() -> Sequence[str]:
    """Return the UUIDs that NVML tells; () where it is not there."""
    try:
        import pynvml
    except ImportError:
        return ()
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return ()
    try:
        handles = (pynvml.nvmlDeviceGetHandleByIndex(index) for index in range(pynvml.nvmlDeviceGetCount()))
        return [str(pynvml.nvmlDeviceGetUUID(handle)) for handle in handles]
    except pynvml.NVMLError:
        return ()
    finally:
        pynvml.nvmlShutdown()


def _proc() -> Sequence[str]:
    """Return the UUIDs that the driver's files tell."""
    found = []
    for path in sorted(DRIVER_GPUS.glob("*/information")):
        # GPU UUID: 	 GPU-5d1e…
        lines = (line.partition(":") for line in path.read_text().splitlines())
        found += [value.strip() for key, _, value in lines if key.strip() == "GPU UUID"]
    return found
