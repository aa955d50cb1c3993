"""CUDA's limits on a launch's shape, for every device. Whether a particular kernel fits is the device's matter."""

from __future__ import annotations

import math

from evo.records import Device, Launch


def bad_shape(launch: Launch, device: Device, static_bytes: int) -> str:
    """Say which of CUDA's limits a launch breaks, or return "".

    The limits: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability".

    Args:
        launch: grid, block and dynamic shared memory.
        device: its threads and shared memory per block.
        static_bytes: shared memory that the kernel declares itself.
    """
    threads = math.prod(launch.block)
    if min(launch.block) < 1 or threads > device.max_threads_per_block or launch.block[2] > 64:
        most = device.max_threads_per_block
        return f"block {launch.block} has {threads} threads; allowed are 1 to {most}, and at most 64 in z"
    if min(launch.grid) < 1 or launch.grid[0] >= 1 << 31 or max(launch.grid[1:]) > 65535:
        return f"grid {launch.grid} is not possible; allowed are 1 to 2147483647 in x and 1 to 65535 in y and z"
    if launch.shared_bytes < 0 or launch.shared_bytes + static_bytes > device.max_shared_bytes:
        found = f"{launch.shared_bytes} bytes of dynamic and {static_bytes} of static shared memory"
        return f"{found}; a block may have {device.max_shared_bytes} in all"
    return ""
