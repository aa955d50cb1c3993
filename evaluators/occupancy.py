"""How many blocks of a kernel fit a multiprocessor of a GPU at once, and what keeps more from it. Arithmetic only.

As NVIDIA's cuda_occupancy.h counts, with the allocation units of "CUDA C++ Programming Guide", "Technical
Specifications per Compute Capability", which are the same from 7.5 to 12.x but for what a block's shared memory is
charged besides.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from evo.records import Device

_WARP = 32
_REGISTERS_UNIT = 256
"""Registers are given to warps in such pieces."""
_PARTITIONS = 4
"""A warp's registers lie in one of the multiprocessor's partitions."""
_SHARED_UNIT = 128
_RESERVED_BYTES = 1024
"""Of shared memory, which the system takes for each block from compute capability 8.0 on."""
_ARCH = re.compile(r"sm_(\d+)[af]?")


@dataclass(frozen=True)
class Occupancy:
    """What fits.

    Attributes:
        blocks: of one multiprocessor at once; 0 where the kernel cannot be launched.
        warps: of those blocks.
        most_warps: that the multiprocessor holds.
        by: what limits -> the blocks that it alone would permit: `registers`, `shared memory`, `warps`, `blocks`.
    """

    blocks: int
    warps: int
    most_warps: int
    by: Mapping[str, int]

    @property
    def limits(self) -> tuple[str, ...]:
        """What permits the fewest blocks; () where as many warps fit as the multiprocessor holds."""
        full = self.warps >= self.most_warps
        return () if full else tuple(what for what, blocks in self.by.items() if blocks == self.blocks)


def occupancy(device: Device, threads: int, registers: int, shared_bytes: int) -> Occupancy | None:
    """Return what fits a multiprocessor; None where the device is no GPU whose limits are known.

    Args:
        device: gives the limits.
        threads: of a block.
        registers: of a thread.
        shared_bytes: of a block, static and dynamic.
    """
    arch = _ARCH.fullmatch(device.arch)
    if arch is None or not device.registers_per_sm:
        return None
    warps = -(-threads // _WARP)
    most_warps = device.max_threads_per_sm // _WARP
    reserved = _RESERVED_BYTES if int(arch[1]) >= 80 else 0
    of_warp = _rounded(max(registers, 1) * _WARP, _REGISTERS_UNIT)
    of_block = _rounded(shared_bytes + reserved, _SHARED_UNIT)
    by = {
        "registers": device.registers_per_sm // _PARTITIONS // of_warp * _PARTITIONS // warps,
        "shared memory": (device.max_shared_bytes + reserved) // of_block if of_block else device.max_blocks_per_sm,
        "warps": most_warps // warps,
        "blocks": device.max_blocks_per_sm,
    }
    blocks = min(by.values())
    return Occupancy(blocks, blocks * warps, most_warps, by)


def _rounded(value: int, unit: int) -> int:
    return -(-value // unit) * unit
