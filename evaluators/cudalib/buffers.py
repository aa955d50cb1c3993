"""A job's buffers on the device: guarded, poisoned, restored, and looked at afterwards."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from evaluators.cudalib.driver import call, cu
from evaluators.cudalib.gpu import Gpu
from evaluators.cudalib.memory import Place, Region, place
from evo.records import Buffer, Direction, Finding


@dataclass
class _Guarded:
    """One buffer; `content` is the address of what it is filled with, 0 for poison."""

    buffer: Buffer
    region: Region
    place: Place
    content: int

    @property
    def address(self) -> int:
        return self.region.address + self.place.offset


class Buffers:
    """One set of a job's buffers, each in pages of its own.

    Args:
        gpu: the device.
        buffers: of the job.
        folder: that holds their contents.
        word: the poison.
        tight: see `Job.tight_align`.

    Raises:
        DeviceError: the device has too little memory.
    """

    def __init__(self, gpu: Gpu, buffers: Iterable[Buffer], folder: Path, word: int, *, tight: bool) -> None:
        self._gpu = gpu
        self._word = word
        self._tight = tight
        self._all: dict[str, _Guarded] = {}
        for buffer in buffers:
            where = place(buffer.nbytes, buffer.align, gpu.page, at_end=False, tight=tight)
            content = gpu.inputs.get(buffer, folder) if buffer.file else 0
            self._all[buffer.name] = _Guarded(buffer, Region(where.mapped, 0, gpu.page), where, content)

    def close(self) -> None:
        """Free everything."""
        for guarded in self._all.values():
            guarded.region.close()

    @property
    def addresses(self) -> dict[str, int]:
        """Where the buffers are."""
        return {name: guarded.address for name, guarded in self._all.items()}

    def arrange(self, *, at_end: bool) -> None:
        """Lay every buffer at the start or the end of its pages, and queue that all is filled afresh."""
        for guarded in self._all.values():
            buffer = guarded.buffer
            guarded.place = place(buffer.nbytes, buffer.align, self._gpu.page, at_end=at_end, tight=self._tight)
            self._gpu.poison(guarded.region.address, guarded.region.nbytes, self._word)
            self._copy(guarded)

    def restore(self) -> None:
        """Queue that what a launch may have written is as it was before."""
        for guarded in self._all.values():
            if guarded.buffer.direction is Direction.OUT:
                self._gpu.poison(guarded.address, guarded.buffer.nbytes, self._word)
            elif guarded.buffer.direction is Direction.INOUT:
                self._copy(guarded)

    def zero(self, names: Iterable[str]) -> None:
        """Queue that buffers are zeroed."""
        for name in names:
            guarded = self._all[name]
            if guarded.buffer.nbytes:
                at = cu.CUdeviceptr(guarded.address)
                call(cu.cuMemsetD8Async(at, 0, guarded.buffer.nbytes, self._gpu.stream))

    def overruns(self, deadline: float) -> tuple[Finding, ...]:
        """Return what was written before or behind buffers."""
        return tuple(finding for guarded in self._all.values() for finding in self._overrun(guarded, deadline))

    def changed(self, deadline: float) -> frozenset[str]:
        """Return the names of inputs that no longer hold what they held."""
        return frozenset(
            name
            for name, guarded in self._all.items()
            if guarded.buffer.direction is Direction.IN
            and self._gpu.first_difference(guarded.address, guarded.content, guarded.buffer.nbytes, deadline)
            is not None
        )

    def digests(self, names: Iterable[str], key: int, deadline: float) -> dict[str, str]:
        """Return what buffers hold, in few bytes; see `Gpu.digest`."""
        return {
            name: self._gpu.digest(self._all[name].address, self._all[name].buffer.nbytes, key, deadline)
            for name in names
        }

    def leave(self, names: Iterable[str], folder: Path, suffix: str) -> None:
        """Write buffers to `<name><suffix>` in a folder."""
        for name in names:
            guarded = self._all[name]
            path, nbytes = folder / f"{name}{suffix}", guarded.buffer.nbytes
            path.touch()
            if nbytes:
                target = np.memmap(path, np.uint8, "w+", shape=(nbytes,))
                call(cu.cuMemcpyDtoH(target.ctypes.data, cu.CUdeviceptr(guarded.address), nbytes))

    def _copy(self, guarded: _Guarded) -> None:
        if guarded.content and guarded.buffer.nbytes:
            to, source = cu.CUdeviceptr(guarded.address), cu.CUdeviceptr(guarded.content)
            call(cu.cuMemcpyDtoDAsync(to, source, guarded.buffer.nbytes, self._gpu.stream))

    def _overrun(self, guarded: _Guarded, deadline: float) -> Iterator[Finding]:
        region, where, name = guarded.region, guarded.place, guarded.buffer.name
        end = where.offset + where.nbytes
        before = self._gpu.spoilt(region.address, 0, where.offset, self._word, deadline)
        if before:
            distance = where.offset - before[1]
            yield Finding(
                "out-of-bounds", f"the kernel wrote out of bounds, {distance} bytes before the start of {name}"
            )
        behind = self._gpu.spoilt(region.address, end, where.mapped, self._word, deadline)
        if behind:
            where_to = f"{distance} bytes behind the end" if (distance := behind[0] - end) else "right behind the end"
            yield Finding("out-of-bounds", f"the kernel wrote out of bounds, {where_to} of {name}")


def secretly(buffers: Iterable[Buffer], secret: Iterable[Buffer]) -> tuple[Buffer, ...]:
    """Return a job's buffers with other contents."""
    other = {buffer.name: buffer for buffer in secret}
    return tuple(
        replace(buffer, file=other[buffer.name].file, key=other[buffer.name].key) if buffer.name in other else buffer
        for buffer in buffers
    )
