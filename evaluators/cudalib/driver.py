"""CUDA's driver API with exceptions, and what its errors say of a kernel. Nothing here knows of jobs.

Every error names the call's own code, so that a person can look it up in the CUDA Driver API reference.
"""

from __future__ import annotations

from typing import Any

from cuda.bindings import driver as cu

from evo.errors import DeviceError
from evo.records import Status

__all__ = ["CudaError", "call", "cu", "is_gpu_lost", "verdict"]


class CudaError(Exception):
    """A call of the driver failed.

    Attributes:
        name: of the error, without `CUDA_ERROR_`, e.g. `ILLEGAL_ADDRESS`.
    """

    def __init__(self, code: Any) -> None:
        self.name = code.name.removeprefix("CUDA_ERROR_")
        super().__init__(f"{code.name} ({int(code)})")


_LOST = frozenset(
    """
    NO_DEVICE DEVICE_UNAVAILABLE DEVICE_NOT_LICENSED ECC_UNCORRECTABLE NVLINK_UNCORRECTABLE CONTAINED SYSTEM_NOT_READY
    SYSTEM_DRIVER_MISMATCH NOT_INITIALIZED DEINITIALIZED OPERATING_SYSTEM UNKNOWN MPS_CONNECTION_FAILED
    MPS_RPC_FAILURE MPS_SERVER_NOT_READY MPS_CLIENT_TERMINATED
    """.split()  # noqa: SIM905 - names read better without quotes
)
_VERDICTS: dict[str, tuple[Status, str]] = {
    "ILLEGAL_ADDRESS": (Status.UNSAFE, "the kernel accessed memory that is not its own (illegal address)"),
    "MISALIGNED_ADDRESS": (
        Status.UNSAFE,
        "the kernel accessed memory at an address that is no multiple of the access's size; a pointer has the "
        "alignment that the workload promises and no better",
    ),
    "INVALID_ADDRESS_SPACE": (Status.UNSAFE, "the kernel accessed memory through a pointer to another address space"),
    "INVALID_PC": (Status.LAUNCH_ERROR, "the kernel jumped to where no code is"),
    "ILLEGAL_INSTRUCTION": (Status.LAUNCH_ERROR, "the kernel ran into an illegal instruction"),
    "HARDWARE_STACK_ERROR": (Status.LAUNCH_ERROR, "the kernel overran its stack, or recursed too deeply"),
    "LAUNCH_FAILED": (
        Status.LAUNCH_ERROR,
        "the kernel stopped itself (__trap), or accessed shared memory beyond what its block has",
    ),
    "ASSERT": (Status.LAUNCH_ERROR, "an assertion of the kernel failed"),
    "LAUNCH_TIMEOUT": (Status.TIMEOUT, "the driver stopped the kernel because it took too long"),
    "LAUNCH_OUT_OF_RESOURCES": (Status.BAD_LAUNCH, "the launch needs more registers or shared memory than there are"),
    "COOPERATIVE_LAUNCH_TOO_LARGE": (Status.BAD_LAUNCH, "a cooperative grid must fit the device as a whole"),
    "INVALID_CLUSTER_SIZE": (Status.BAD_LAUNCH, "the device cannot place a cluster of this size"),
    "TENSOR_MEMORY_LEAK": (Status.LAUNCH_ERROR, "the kernel did not free its tensor memory"),
    "INVALID_VALUE": (Status.BAD_LAUNCH, "the driver refuses the launch's numbers"),
    "NO_BINARY_FOR_GPU": (Status.LAUNCH_ERROR, "the program was compiled for another device"),
}


def call(result: tuple[Any, ...]) -> Any:
    """Return what a call of the driver returned besides its code; raises `CudaError` when the code is no success."""
    code, *values = result
    if code != cu.CUresult.CUDA_SUCCESS:
        raise CudaError(code)
    return values[0] if len(values) == 1 else tuple(values)


def is_gpu_lost(error: CudaError) -> bool:
    """Whether the error is the machine's and no kernel's."""
    return error.name in _LOST


def verdict(error: CudaError) -> tuple[Status, str]:
    """Return the status and the words for an error that a kernel has caused.

    Raises:
        DeviceError: it is the machine's fault.
    """
    if is_gpu_lost(error):
        raise DeviceError(f"the GPU is lost: {error}; see `nvidia-smi` and `dmesg`, and then resume the run") from error
    status, words = _VERDICTS.get(error.name, (Status.LAUNCH_ERROR, "the launch failed"))
    return status, f"{words}: {error}"
