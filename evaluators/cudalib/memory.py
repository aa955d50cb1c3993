"""Device memory between pages that are not mapped: what runs over either end of a buffer faults, or shows.

`place` says where in its pages a buffer lies; `Region` owns the pages. What the bytes mean is known elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from evaluators.cudalib.driver import CudaError, call, cu
from evo.errors import DeviceError


@dataclass(frozen=True)
class Place:
    """Where a buffer lies in its mapped bytes: all before `offset` and behind `offset + nbytes` is slack."""

    offset: int
    nbytes: int
    mapped: int


def place(nbytes: int, align: int, page: int, *, at_end: bool, tight: bool) -> Place:
    """Lay a buffer into whole pages, at their start or as near to their end as its alignment permits.

    Args:
        nbytes: of the buffer.
        align: of its address, a power of two.
        page: bytes of a page, a larger power of two.
        at_end: what lies behind the buffer is then at most `align` bytes, 2 · `align` where `tight`.
        tight: give the address this alignment and no better.
    """
    room = nbytes + (2 * align if tight else 0)
    mapped = max(1, -(-room // page)) * page
    offset = (mapped - nbytes) // align * align if at_end else 0
    if tight and offset // align % 2 == 0:
        offset += -align if at_end else align
    return Place(offset, nbytes, mapped)


class Region:
    """Some pages of a device, with an unmapped page before and behind them.

    Args:
        nbytes: a multiple of `page_bytes(device)`.
        ordinal: of the device.
        page: its `page_bytes`.

    Raises:
        DeviceError: the device has not so much memory.
    """

    def __init__(self, nbytes: int, ordinal: int, page: int) -> None:
        self.nbytes = nbytes
        self._reserved = nbytes + 2 * page
        self._base = int(call(cu.cuMemAddressReserve(self._reserved, 0, cu.CUdeviceptr(0), 0)))
        self.address = self._base + page
        try:
            handle = call(cu.cuMemCreate(nbytes, _properties(ordinal), 0))
        except CudaError as error:
            call(cu.cuMemAddressFree(cu.CUdeviceptr(self._base), self._reserved))
            raise DeviceError(f"the GPU has no {nbytes} bytes of free memory: {error}") from error
        call(cu.cuMemMap(cu.CUdeviceptr(self.address), nbytes, 0, handle, 0))
        call(cu.cuMemRelease(handle))  # the mapping keeps it
        call(cu.cuMemSetAccess(cu.CUdeviceptr(self.address), nbytes, [_access(ordinal)], 1))

    def close(self) -> None:
        """Give the memory back."""
        call(cu.cuMemUnmap(cu.CUdeviceptr(self.address), self.nbytes))
        call(cu.cuMemAddressFree(cu.CUdeviceptr(self._base), self._reserved))


def page_bytes(ordinal: int) -> int:
    """Return the size of the pages that a device maps, e.g. 2 MiB."""
    minimum = cu.CUmemAllocationGranularity_flags.CU_MEM_ALLOC_GRANULARITY_MINIMUM
    return int(call(cu.cuMemGetAllocationGranularity(_properties(ordinal), minimum)))


def _properties(ordinal: int) -> Any:
    properties = cu.CUmemAllocationProp()
    properties.type = cu.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    properties.location.type = cu.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    properties.location.id = ordinal
    return properties


def _access(ordinal: int) -> Any:
    access = cu.CUmemAccessDesc()
    access.location.type = cu.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    access.location.id = ordinal
    access.flags = cu.CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
    return access
