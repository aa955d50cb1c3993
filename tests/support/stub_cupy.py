"""What exported packages use of CuPy, with this process's memory as the GPU's; for tests that have a fake driver."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

ALIGN = 512


class ndarray:
    """An array whose `host` is a NumPy array of the same memory."""

    def __init__(self, host: np.ndarray[Any, Any], device: int = 0) -> None:
        self.host = host
        self.dtype, self.shape, self.strides = host.dtype, host.shape, host.strides
        self.data = SimpleNamespace(ptr=host.ctypes.data)
        self.device = SimpleNamespace(id=device)

    def __getitem__(self, index: Any) -> ndarray:
        return ndarray(self.host[index])

    @property
    def T(self) -> ndarray:
        return ndarray(self.host.T)


def empty(shape: Any, dtype: Any) -> ndarray:
    """A new array, aligned as CuPy aligns it, full of junk."""
    kind = np.dtype(dtype)
    nbytes = int(np.prod(shape, dtype=np.int64)) * kind.itemsize
    raw = np.full(nbytes + ALIGN, 0xA5, np.uint8)
    start = -raw.ctypes.data % ALIGN
    return ndarray(raw[start : start + nbytes].view(kind).reshape(shape))


def asarray(values: Any) -> ndarray:
    """A copy of a NumPy array."""
    host = np.asarray(values)
    made = empty(host.shape, host.dtype)
    made.host[...] = host
    return made


cuda = SimpleNamespace(
    Device=lambda: SimpleNamespace(id=0), get_current_stream=lambda: SimpleNamespace(ptr=0x77), runtime=None
)
