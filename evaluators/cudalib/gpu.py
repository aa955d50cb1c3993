"""One CUDA context and what the harness keeps in it: a stream, a clock, a cache of inputs, kernels of its own.

It lives as long as its process. What a job makes of it is `evaluators.cudalib.jobs`'s matter.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import statistics
import time
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from evaluators import nvrtc
from evaluators.cudalib import facts
from evaluators.cudalib.driver import CudaError, call, cu
from evaluators.cudalib.memory import page_bytes
from evo.errors import DeviceError
from evo.records import Buffer, CompileRequest, Status

SCRUBS = {1 << 10: "scrub_local_1k", 16 << 10: "scrub_local_16k"}
"""Bytes of local memory per thread -> what overwrites them."""
KERNELS = (
    "block_stream",
    "nothing",
    "copy",
    "first_difference",
    "digest",
    "spoilt",
    "scrub_shared",
    "spin",
    *SCRUBS.values(),
)
"""Of `support.cu`."""

BLOCK_NS = 500_000_000
"""The host needs microseconds to queue what stands behind the blocker; a blocker that waits longer waits in vain."""
INPUT_SHARE = 4
"""Inputs that are kept may take one part in so many of the device's memory."""
FLOOR_LAUNCHES = 21
IDLE_S = 0.5
"""A GPU that did nothing for so long has lowered its clocks."""
WARM_S = 0.05
MOST_WARM_S = 0.3
STEADY = 0.01
"""Warm is a clock that moved by less than this from one spin to the next."""
_SPIN_NS = 10_000_000
_POLL_S = 0.005
"""A wait that is longer no longer needs the host's full attention."""
_NOWHERE = (1 << 64) - 1
_FIFO_BYTES = 1 << 16
_HEAP_BYTES = 1 << 12


class Hung(Exception):
    """The device did not finish what was queued in time."""


class Gpu:
    """The first visible GPU.

    Raises:
        DeviceError: there is none, or NVRTC is missing.
    """

    def __init__(self) -> None:
        os.environ["CUDA_MODULE_LOADING"] = "EAGER"  # a kernel that is loaded behind the blocker would wait for it
        self.facts = facts.describe()
        call(cu.cuCtxSetCurrent(call(cu.cuDevicePrimaryCtxRetain(facts.first_device()))))
        _set_limits()
        self.page = page_bytes(0)
        self.stream = call(cu.cuStreamCreate(cu.CUstream_flags.CU_STREAM_NON_BLOCKING.value))
        self.inputs = Inputs(call(cu.cuMemGetInfo())[1] // INPUT_SHARE)
        self._start, self._end = (call(cu.cuEventCreate(0)) for _ in range(2))
        self._flag, self._flag_at = _pinned_words(2)
        self._module, self._functions = _support(self.facts.arch)
        self._notes = call(cu.cuMemAlloc(64))
        self._busy_until = 0.0
        self._floor_us: float | None = None
        self._flushing: tuple[Any, int] = (None, 0)
        self._flushes = 0

    # --- queueing and waiting -------------------------------------------------------------------------------------

    def launch(self, kernel: str, blocks: int, threads: int, *arguments: Any, shared_bytes: int = 0) -> None:
        """Queue a kernel of `support.cu`; its arguments are NumPy scalars."""
        arrays = [np.asarray(argument) for argument in arguments]
        pointers = np.array([array.ctypes.data for array in arrays] or [0], np.uint64)
        shape = (blocks, 1, 1, threads, 1, 1, shared_bytes)
        call(cu.cuLaunchKernel(self._functions[kernel], *shape, self.stream, pointers.ctypes.data, 0))

    def finish(self, deadline: float) -> None:
        """Wait until all that is queued is done.

        Args:
            deadline: by `time.monotonic`.

        Raises:
            Hung: it was not done in time.
            CudaError: a kernel failed.
        """
        call(cu.cuEventRecord(self._end, self.stream))
        self._wait(deadline)

    def clocked(self, queue: Callable[[], None], deadline: float, *, blocked: bool = True) -> float | None:
        """Return what the device takes for what `queue` puts on the stream, in microseconds.

        All of it is queued before the device may begin, so that the host's speed has no part in it.

        Args:
            queue: puts work on the stream, and does nothing else.
            deadline: by `time.monotonic`.
            blocked: hold the stream until all is queued.

        Returns:
            The latency; None when the stream was not held long enough.

        Raises:
            Hung: it was not done in time.
            CudaError: a kernel failed.
        """
        self._flag[:] = 0 if blocked else 1
        try:
            self.launch("block_stream", 1, 1, np.uint64(self._flag_at), np.uint64(BLOCK_NS))
            call(cu.cuEventRecord(self._start, self.stream))
            queue()
            call(cu.cuEventRecord(self._end, self.stream))
        finally:
            self._flag[0] = 1
        self._wait(deadline)
        if blocked and self._flag[1]:
            return None
        return float(call(cu.cuEventElapsedTime(self._start, self._end))) * 1e3

    def _wait(self, deadline: float) -> None:
        patient = time.monotonic() + _POLL_S
        while (code := cu.cuEventQuery(self._end)[0]) == cu.CUresult.CUDA_ERROR_NOT_READY:
            now = time.monotonic()
            if now > deadline:
                raise Hung
            if now > patient:
                time.sleep(5e-5)
        self._busy_until = time.monotonic()
        call((code,))

    def floor_us(self, flush: Callable[[], None]) -> float:
        """Return what an empty kernel takes, in microseconds, measured once as a candidate is."""
        if self._floor_us is None:
            taken = [self._clocked_nothing(flush) for _ in range(FLOOR_LAUNCHES)]
            self._floor_us = statistics.median(latency_us for latency_us in taken if latency_us is not None)
        return self._floor_us

    def _clocked_nothing(self, flush: Callable[[], None]) -> float | None:
        flush()
        return self.clocked(lambda: self.launch("nothing", 1, 1), time.monotonic() + 10)

    # --- between launches -----------------------------------------------------------------------------------------

    def poison(self, address: int, nbytes: int, word: int) -> None:
        """Queue that memory repeats a 16-bit word, whose low byte lies at even addresses."""
        end = address + nbytes
        if nbytes and address % 2:
            call(cu.cuMemsetD8Async(cu.CUdeviceptr(address), word >> 8, 1, self.stream))
            address += 1
        if end - address > 1:
            call(cu.cuMemsetD16Async(cu.CUdeviceptr(address), word, (end - address) // 2, self.stream))
        if end > address and (end - address) % 2:
            call(cu.cuMemsetD8Async(cu.CUdeviceptr(end - 1), word & 255, 1, self.stream))

    def flush_buffer(self, nbytes: int) -> Any:
        """Return memory to flush the caches with; there is one such piece."""
        if self._flushing[1] < nbytes:
            call(cu.cuMemFree(self._flushing[0])) if self._flushing[1] else None
            self._flushing = (call(cu.cuMemAlloc(nbytes)), nbytes)
        return self._flushing[0]

    def flush(self, pointer: Any, nbytes: int) -> None:
        """Queue that the caches are filled with something else: twice the last level is written."""
        self._flushes += 1
        call(cu.cuMemsetD32Async(pointer, self._flushes & 0xFFFFFFFF, nbytes // 4, self.stream))

    def scrub(self, word: int, local_bytes: int) -> None:
        """Queue that what an earlier launch left in shared memory and in local memory is overwritten.

        Args:
            word: 16 bits.
            local_bytes: what a thread of the kernel has; at most the largest of `SCRUBS`.
        """
        most, sms = self.facts.max_shared_bytes, self.facts.num_sms
        pattern = np.uint32(word | word << 16)
        self.launch("scrub_shared", sms, 1024, np.uint32(most // 4), pattern, shared_bytes=most)
        if local_bytes:
            kernel = next(name for size, name in SCRUBS.items() if size >= local_bytes)
            blocks = sms * self.facts.max_threads_per_sm // 256
            self.launch(kernel, blocks, 256, pattern, np.uint64(int(self._notes)))

    def copy(self, to: int, source: int, nbytes: int) -> None:
        """Queue a copy by a kernel, which may also read and write what lies between a module's variables.

        Args:
            to: address, a multiple of 16.
            source: address, a multiple of 16.
            nbytes: a multiple of 16.
        """
        self.launch("copy", min(-(-nbytes // 4096), 4 * self.facts.num_sms), 256, *map(np.uint64, (to, source, nbytes)))

    def first_difference(self, one: int, other: int, nbytes: int, deadline: float) -> int | None:
        """Return the index of the first byte in which two pieces of memory differ, or None."""
        arguments = (np.uint64(one), np.uint64(other), np.uint64(nbytes))
        first, _ = self._noted("first_difference", arguments, deadline)
        return None if first == _NOWHERE else first

    def digest(self, address: int, nbytes: int, key: int, deadline: float) -> str:
        """Return 32 hexadecimal digits that depend on every byte; who does not know the key cannot forge them."""
        arguments = (np.uint64(address), np.uint64(nbytes), np.uint64(key))
        found = self._noted("digest", arguments, deadline, before=(0, 0))
        return "".join(f"{int(part):016x}" for part in found)

    def spoilt(self, address: int, begin: int, end: int, word: int, deadline: float) -> tuple[int, int] | None:
        """Return the first and last index in [begin, end) at which memory no longer repeats a word, or None."""
        if begin >= end:
            return None
        arguments = (np.uint64(address), np.uint64(begin), np.uint64(end), np.uint32(word))
        first, last = self._noted("spoilt", arguments, deadline, np.uint64(int(self._notes) + 8))
        return None if first == _NOWHERE else (first, last)

    def _noted(
        self,
        kernel: str,
        arguments: tuple[Any, ...],
        deadline: float,
        *more: Any,
        before: tuple[int, int] = (_NOWHERE, 0),
    ) -> tuple[int, int]:
        """Run a kernel that leaves two words in the notes, which hold `before` at first; return them."""
        found = np.array(before, np.uint64)
        call(cu.cuMemcpyHtoDAsync(self._notes, found.ctypes.data, found.nbytes, self.stream))
        blocks = 4 * self.facts.num_sms
        self.launch(kernel, blocks, 256, *arguments, np.uint64(int(self._notes)), *more)
        self.finish(deadline)
        call(cu.cuMemcpyDtoH(found.ctypes.data, self._notes, found.nbytes))
        return int(found[0]), int(found[1])

    def warm(self) -> None:
        """Bring the clocks of a GPU that was idle to where they stay under load."""
        if time.monotonic() - self._busy_until < IDLE_S:
            return
        begin, before = time.monotonic(), 0.0
        while (spent_s := time.monotonic() - begin) < MOST_WARM_S:
            rate = self._spin()
            if spent_s >= WARM_S and abs(rate - before) <= STEADY * rate:
                return
            before = rate

    def _spin(self) -> float:
        """Keep the device busy for 10 ms and return its clock in GHz."""
        notes = np.uint64(int(self._notes))
        blocks = 2 * self.facts.num_sms
        self.launch("spin", blocks, 256, np.uint64(_SPIN_NS), notes, np.uint64(int(self._notes) + 16))
        self.finish(time.monotonic() + 10)
        found = np.empty(2, np.uint64)
        call(cu.cuMemcpyDtoH(found.ctypes.data, self._notes, found.nbytes))
        return float(found[0]) / float(found[1])


class Inputs:
    """Contents of input buffers, kept on the device under the names that jobs give them.

    Args:
        limit_bytes: the longest unused go when there are more.
    """

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._kept: OrderedDict[str, tuple[Any, int]] = OrderedDict()

    def get(self, buffer: Buffer, folder: Path) -> int:
        """Return the address of a buffer's content, which nothing writes to."""
        assert buffer.file is not None
        key = buffer.key or f"{folder}/{buffer.file}"
        if key not in self._kept:
            self._kept[key] = (_upload(folder / buffer.file, buffer.nbytes), buffer.nbytes)
        self._kept.move_to_end(key)
        return int(self._kept[key][0])

    def shrink(self) -> None:
        """Free what is beyond the limit; call it when no job uses any of it."""
        while sum(nbytes for _, nbytes in self._kept.values()) > self._limit_bytes:
            _, (pointer, _) = self._kept.popitem(last=False)
            call(cu.cuMemFree(pointer))


def _upload(path: Path, nbytes: int) -> Any:
    try:
        pointer = call(cu.cuMemAlloc(max(nbytes, 1)))
    except CudaError as error:
        raise DeviceError(f"the GPU has no {nbytes} bytes of free memory: {error}") from error
    if nbytes:
        content = np.memmap(path, np.uint8, "r", shape=(nbytes,))
        call(cu.cuMemcpyHtoD(pointer, content.ctypes.data, nbytes))
    return pointer


def _set_limits() -> None:
    kinds = cu.CUlimit
    call(cu.cuCtxSetLimit(kinds.CU_LIMIT_PRINTF_FIFO_SIZE, _FIFO_BYTES))
    call(cu.cuCtxSetLimit(kinds.CU_LIMIT_MALLOC_HEAP_SIZE, _HEAP_BYTES))
    with contextlib.suppress(CudaError):  # devices before compute capability 8.0 have none
        call(cu.cuCtxSetLimit(kinds.CU_LIMIT_PERSISTING_L2_CACHE_SIZE, 0))


def _pinned_words(count: int) -> tuple[Any, int]:
    """Return words of host memory that the device sees too, and their address on the device."""
    flags = cu.CU_MEMHOSTALLOC_DEVICEMAP
    pointer = int(call(cu.cuMemHostAlloc(4 * count, flags)))
    words = np.ctypeslib.as_array(ctypes.cast(pointer, ctypes.POINTER(ctypes.c_uint32)), (count,))
    return words, int(call(cu.cuMemHostGetDevicePointer(pointer, 0)))


def _support(arch: str) -> tuple[Any, dict[str, Any]]:
    source = Path(__file__).with_name("support.cu").read_text(encoding="utf-8")
    binary = nvrtc.compile(CompileRequest(source, KERNELS, {}, (), arch), cubin=True)
    if binary.status is not Status.OK:
        raise DeviceError(f"the harness's own kernels do not compile for {arch}: {binary.message}")
    module = call(cu.cuModuleLoadData(binary.image))
    functions = {name: call(cu.cuModuleGetFunction(module, name.encode())) for name in KERNELS}
    most = cu.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    limit = call(
        cu.cuDeviceGetAttribute(
            cu.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, facts.first_device()
        )
    )
    call(cu.cuFuncSetAttribute(functions["scrub_shared"], most, limit))
    return module, functions
