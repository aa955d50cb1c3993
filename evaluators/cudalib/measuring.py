"""The process that measures a GPU's peaks: copied bytes and arithmetic, clocked as candidates are.

It writes one line of JSON and ends. What becomes of the figures is `evaluators.cudalib.peaks`'s matter.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from evaluators import nvrtc
from evaluators.cudalib import facts, peaks
from evaluators.cudalib.driver import CudaError, call, cu
from evaluators.cudalib.gpu import Gpu, Hung
from evo.errors import DeviceError, EvoError
from evo.records import CompileRequest, Peaks, Status, to_json

KERNELS = ("stream", "rate_fp32", "rate_tf32", "rate_fp16", "rate_bf16")
"""Of `peaks.cu`."""

BUSY_PERCENT = 20
"""Where somebody's kernels run for more of the time, figures would be too low, and they would be kept."""
COPIED_BYTES = 1 << 30
"""Twenty times the second-level cache of an H200: what the last copy has left in it, the next one writes."""
SAMPLES = 7
SAMPLE_US = 1000.0
"""Three hundred times what launching takes, and too short for a power cap."""
MOST_ROUNDS = 1 << 24
"""Where a unit is missing, its kernel ends at once however many rounds it is asked for."""
_DEADLINE_S = 20.0
_CHUNK_BYTES = 256 * 4 * 16
"""What a block of `stream` copies in one go."""
_THREADS = 256
_TENSOR_BLOCKS = 2
"""Of a multiprocessor: two times two warpgroups, or sixteen warps of eight sums each, hide what a product takes."""
_PATTERNS = {
    "rate_fp32": (0, 0),
    "rate_tf32": (0x3F800000, 0x807FFFFF),
    "rate_fp16": (0x3C003C00, 0x83FF83FF),
    "rate_bf16": (0x3F803F80, 0x807F807F),
}
"""Bits that are set and bits that are random: operands lie between 1 and 2 in magnitude."""


def main() -> None:
    """Measure the first visible GPU and write its peaks to standard output; exit with the reason where it cannot be."""
    try:
        device = facts.describe()
        busy = facts.busy_percent(device.uuid)
        if busy > BUSY_PERCENT:
            sys.exit(f"somebody keeps the GPU busy ({busy} % of the time); see `nvidia-smi`")
        found = measure(Gpu())
        slowed = [why for why in facts.conditions(device.uuid, 0.0).slowed_by if why != "power cap"]
    except (EvoError, CudaError, Hung) as error:
        sys.exit(f"{type(error).__name__}: {error}".replace("\n", " "))
    if slowed:
        sys.exit(f"the GPU was slowed down ({', '.join(slowed)})")
    print(to_json(found))


def measure(gpu: Gpu) -> Peaks:
    """Measure a GPU's peaks, in less than a second.

    Raises:
        DeviceError: the kernels do not compile.
        CudaError: there is no memory, or a kernel failed.
        Hung: a kernel did not end.
    """
    kernels = _Kernels(gpu)
    gpu.warm()
    rates = {name: kernels.flops_per_s(name) for name in _PATTERNS}
    return Peaks(
        dram_bytes_per_s=kernels.copied_bytes_per_s(),
        fp32_flops_per_s=rates["rate_fp32"],
        tf32_flops_per_s=rates["rate_tf32"],
        fp16_flops_per_s=rates["rate_fp16"],
        bf16_flops_per_s=rates["rate_bf16"],
    )


class _Kernels:
    """The kernels of `peaks.cu` on a GPU."""

    def __init__(self, gpu: Gpu) -> None:
        self._gpu = gpu
        source, arch = peaks.SOURCE.read_text(encoding="utf-8"), gpu.facts.arch
        binary = nvrtc.compile(CompileRequest(source, KERNELS, {}, (), arch), cubin=True)
        if binary.status is not Status.OK:
            raise DeviceError(f"the harness's own kernels do not compile for {arch}: {binary.message}")
        module = call(cu.cuModuleLoadData(binary.image))
        self._functions = {name: call(cu.cuModuleGetFunction(module, name.encode())) for name in KERNELS}

    def copied_bytes_per_s(self) -> float:
        """Copy memory in the two ways of which one suits each GPU; return the better rate, read and written."""
        free, _ = call(cu.cuMemGetInfo())
        nbytes = min(COPIED_BYTES, int(free) // 4) // _CHUNK_BYTES * _CHUNK_BYTES
        with _memory(nbytes) as source, _memory(nbytes) as target:
            arguments = (np.uint64(target), np.uint64(source), np.uint64(nbytes // 16))
            shapes = (nbytes // _CHUNK_BYTES, 8 * self._gpu.facts.num_sms)
            best_us = min(self._median_us("stream", blocks, arguments) for blocks in shapes)
        return 2 * nbytes / best_us * 1e6

    def flops_per_s(self, kernel: str) -> float:
        """Return a kernel's rate; 0 where the GPU has no such unit."""
        facts = self._gpu.facts
        resident = facts.max_threads_per_sm // _THREADS if kernel == "rate_fp32" else _TENSOR_BLOCKS
        blocks, rounds = facts.num_sms * resident, 64
        with _memory(16) as notes:
            while True:
                patterns = (np.uint32(pattern) for pattern in _PATTERNS[kernel])
                arguments = (np.uint32(rounds), *patterns, np.uint64(notes), np.uint64(notes + 8))
                if self._once_us(kernel, blocks, arguments) >= SAMPLE_US or rounds >= MOST_ROUNDS:
                    break
                rounds *= 2
            of_block = np.zeros(1, np.uint64)
            call(cu.cuMemcpyDtoH(of_block.ctypes.data, notes, of_block.nbytes))
            if not of_block[0]:
                return 0.0
            return int(of_block[0]) * blocks / self._median_us(kernel, blocks, arguments) * 1e6

    def _median_us(self, kernel: str, blocks: int, arguments: tuple[Any, ...]) -> float:
        return statistics.median(self._once_us(kernel, blocks, arguments) for _ in range(SAMPLES))

    def _once_us(self, kernel: str, blocks: int, arguments: tuple[Any, ...]) -> float:
        """Return one launch's latency. The host may be late now and then, and then the launch does not count."""
        arrays = [np.asarray(argument) for argument in arguments]
        pointers = np.array([array.ctypes.data for array in arrays], np.uint64)
        shape = (blocks, 1, 1, _THREADS, 1, 1, 0)

        def queue() -> None:
            call(cu.cuLaunchKernel(self._functions[kernel], *shape, self._gpu.stream, pointers.ctypes.data, 0))

        deadline = time.monotonic() + _DEADLINE_S
        while (taken_us := self._gpu.clocked(queue, deadline)) is None:
            continue
        return taken_us


@contextmanager
def _memory(nbytes: int) -> Iterator[int]:
    pointer = call(cu.cuMemAlloc(nbytes))
    try:
        yield int(pointer)
    finally:
        call(cu.cuMemFree(pointer))


if __name__ == "__main__":
    main()
