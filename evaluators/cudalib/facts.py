"""What the GPU of this process is, and in which state it is. No context is made here.

The device is the first one that `CUDA_VISIBLE_DEVICES` leaves visible, which is how Ray hands out GPUs.
"""

from __future__ import annotations

import contextlib
import functools
import time
from typing import Any

import psutil
import pynvml

from evaluators.cudalib import rates
from evaluators.cudalib.driver import CudaError, call, cu
from evo.errors import DeviceError
from evo.records import Conditions, Device, Peaks

OTHERS_S = 2.0
_ARCH_SPECIFIC_FROM = 9
"""From compute capability 9.0 on there is a target with an `a`, which has all of the chip's instructions."""
_SLOWED_BY = {
    "power cap": pynvml.nvmlClocksEventReasonSwPowerCap | pynvml.nvmlClocksThrottleReasonHwPowerBrakeSlowdown,
    "thermal": pynvml.nvmlClocksEventReasonSwThermalSlowdown | pynvml.nvmlClocksThrottleReasonHwThermalSlowdown,
    "hardware": pynvml.nvmlClocksThrottleReasonHwSlowdown,
}
"""Words for NVML's reasons; `hardware` is what the other two leave of its bit."""


def describe() -> Device:
    """Describe the GPU.

    Raises:
        DeviceError: there is none, or its driver does not answer.
    """
    ordinal = first_device()
    kinds = cu.CUdevice_attribute
    major = _attribute(ordinal, kinds.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)
    minor = _attribute(ordinal, kinds.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)
    arch = f"sm_{major}{minor}{'a' if major >= _ARCH_SPECIFIC_FROM else ''}"
    name = call(cu.cuDeviceGetName(128, ordinal)).split(b"\0")[0].decode(errors="replace").strip()
    uuid = f"GPU-{_dashed(bytes(call(cu.cuDeviceGetUuid(ordinal)).bytes).hex())}"
    exclusive = cu.CUcomputemode.CU_COMPUTEMODE_EXCLUSIVE_PROCESS
    num_sms = _attribute(ordinal, kinds.CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)
    return Device(
        kind="cuda",
        name=name,
        fingerprint=f"cuda {name} {arch} driver {_driver_version()}",
        arch=arch,
        num_sms=num_sms,
        max_threads_per_block=_attribute(ordinal, kinds.CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK),
        max_shared_bytes=_attribute(ordinal, kinds.CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN),
        l2_bytes=_attribute(ordinal, kinds.CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE),
        registers_per_sm=_attribute(ordinal, kinds.CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR),
        max_threads_per_sm=_attribute(ordinal, kinds.CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR),
        max_blocks_per_sm=_attribute(ordinal, kinds.CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR),
        uuid=uuid,
        exclusive=_attribute(ordinal, kinds.CU_DEVICE_ATTRIBUTE_COMPUTE_MODE) == int(exclusive),
        peaks=_peaks(ordinal, uuid, (major, minor), num_sms),
    )


def _peaks(ordinal: Any, uuid: str, capability: tuple[int, int], num_sms: int) -> Peaks:
    """Return what the GPU could do at its highest clocks."""
    kinds = cu.CUdevice_attribute
    memory_hz = 1e3 * _attribute(ordinal, kinds.CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE)
    bus_bits = _attribute(ordinal, kinds.CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH)
    clock_hz = 1e3 * _attribute(ordinal, kinds.CU_DEVICE_ATTRIBUTE_CLOCK_RATE)
    with contextlib.suppress(pynvml.NVMLError):  # a MIG instance tells no clocks
        clock_hz = max(clock_hz, 1e6 * pynvml.nvmlDeviceGetMaxClockInfo(_handle(uuid), pynvml.NVML_CLOCK_SM))
    return rates.theoretical(capability, num_sms, clock_hz, rates.memory_rate(memory_hz, bus_bits))


def first_device() -> Any:
    """Return the driver's handle of the GPU; raises `DeviceError`."""
    try:
        call(cu.cuInit(0))
        return call(cu.cuDeviceGet(0))
    except CudaError as error:
        raise DeviceError(
            f"there is no GPU that can be used: {error}; see `nvidia-smi` and CUDA_VISIBLE_DEVICES"
        ) from (error)
    except RuntimeError as error:  # cuda.pathfinder's, when libcuda.so is nowhere
        raise DeviceError(f"there is no NVIDIA driver: {error}") from error


def conditions(uuid: str, floor_us: float) -> Conditions:
    """Say in which state the GPU is.

    Args:
        uuid: of the GPU.
        floor_us: is passed on.
    """
    handle = _handle(uuid)
    reasons = pynvml.nvmlDeviceGetCurrentClocksEventReasons(handle)
    return Conditions(
        sm_clock_mhz=pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_SM),
        memory_clock_mhz=pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_MEM),
        temperature_c=pynvml.nvmlDeviceGetTemperature(handle, pynvml.NVML_TEMPERATURE_GPU),
        power_w=pynvml.nvmlDeviceGetPowerUsage(handle) / 1000,
        slowed_by=_slowed_by(reasons),
        others=_others(uuid, int(time.monotonic() / OTHERS_S)),
        floor_us=floor_us,
    )


def busy_percent(uuid: str) -> int:
    """Return for how much of the last moments kernels ran on the GPU; 0 where it does not tell."""
    try:
        return int(pynvml.nvmlDeviceGetUtilizationRates(_handle(uuid)).gpu)
    except pynvml.NVMLError:
        return 0


def _slowed_by(reasons: int) -> tuple[str, ...]:
    found = [word for word, mask in _SLOWED_BY.items() if reasons & mask]
    return tuple(found[:-1]) if len(found) > 1 and found[-1] == "hardware" else tuple(found)


@functools.lru_cache(maxsize=1)
def _others(uuid: str, moment: int) -> int:
    """Count the processes on the GPU that were not started beside this one; once a moment, since it takes a while."""
    try:
        running = {process.pid for process in pynvml.nvmlDeviceGetComputeRunningProcesses(_handle(uuid))}
    except pynvml.NVMLError:  # containers may forbid it
        return 0
    parent = psutil.Process().parent()
    ours = {process.pid for process in parent.children(recursive=True)} | {parent.pid} if parent else set()
    return len(running - ours - {psutil.Process().pid})


@functools.cache
def _handle(uuid: str) -> Any:
    pynvml.nvmlInit()
    return pynvml.nvmlDeviceGetHandleByUUID(uuid)


def _driver_version() -> str:
    pynvml.nvmlInit()
    return str(pynvml.nvmlSystemGetDriverVersion())


def _attribute(ordinal: Any, attribute: Any) -> int:
    return int(call(cu.cuDeviceGetAttribute(attribute, ordinal)))


def _dashed(digits: str) -> str:
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
