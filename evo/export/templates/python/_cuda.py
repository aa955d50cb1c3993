"""CUDA's driver API through ctypes, in the contexts and on the streams of whoever made the arrays."""

from __future__ import annotations

import contextlib
import ctypes
import functools
from collections.abc import Iterator, Sequence

from ._plan import Device, Dim3

_ATTRIBUTES = {
    "max_threads_per_block": 1,
    "num_sms": 16,
    "l2_bytes": 38,
    "max_threads_per_sm": 39,
    "major": 75,
    "minor": 76,
    "max_shared_bytes": 97,
    "max_blocks_per_sm": 106,
}
"""CUdevice_attribute of cuda.h."""
MAX_DYNAMIC_SHARED_BYTES, NON_PORTABLE_CLUSTER = 8, 14
"""CUfunction_attribute of cuda.h."""
_COOPERATIVE, _CLUSTER_DIMENSION = 2, 4
"""CUlaunchAttributeID of cuda.h."""
_NOT_FOUND = 500


class CudaError(RuntimeError):
    """A call of the driver failed; the message says which, for what, and the driver's own words."""


class _Attribute(ctypes.Structure):
    """CUlaunchAttribute: an id, and a value of 64 bytes that begins with what we set."""

    _fields_ = (("id", ctypes.c_int), ("pad", ctypes.c_char * 4), ("value", ctypes.c_uint * 16))


class _Config(ctypes.Structure):
    """CUlaunchConfig."""

    _fields_ = (
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared_bytes", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.POINTER(_Attribute)),
        ("count", ctypes.c_uint),
    )


@functools.cache
def driver() -> Driver:
    """Return the driver; raises `CudaError` where there is none."""
    return Driver()


class Driver:
    """The few calls that are needed."""

    def __init__(self) -> None:
        try:
            self._library = ctypes.CDLL("libcuda.so.1")
        except OSError as error:
            raise CudaError(f"no NVIDIA driver: {error}; see `nvidia-smi`") from error
        self._call("cuInit", 0, what="the driver")
        self._contexts: dict[int, ctypes.c_void_p] = {}

    @contextlib.contextmanager
    def current(self, ordinal: int) -> Iterator[None]:
        """Make a GPU's primary context current, which CuPy and PyTorch use too."""
        if ordinal not in self._contexts:
            context = ctypes.c_void_p()
            self._call("cuDevicePrimaryCtxRetain", ctypes.byref(context), ordinal, what=f"GPU {ordinal}")
            self._contexts[ordinal] = context
        self._call("cuCtxPushCurrent_v2", self._contexts[ordinal], what=f"GPU {ordinal}")
        try:
            yield
        finally:
            self._library.cuCtxPopCurrent_v2(ctypes.byref(ctypes.c_void_p()))

    def describe(self, ordinal: int, arch: str | None) -> Device:
        """Return a GPU's figures; `arch` None compiles for the GPU itself, with all of its instructions."""
        found = {name: self._attribute(number, ordinal) for name, number in _ATTRIBUTES.items()}
        major, minor = found.pop("major"), found.pop("minor")
        return Device(arch or f"sm_{major}{minor}{'a' if major >= 9 else ''}", **found)

    def load(self, image: bytes) -> ctypes.c_void_p:
        """Load machine code into the current context."""
        module = ctypes.c_void_p()
        self._call("cuModuleLoadData", ctypes.byref(module), image, what="best.cu")
        return module

    def function(self, module: ctypes.c_void_p, symbol: str) -> ctypes.c_void_p:
        """Return a kernel of a module."""
        function = ctypes.c_void_p()
        self._call("cuModuleGetFunction", ctypes.byref(function), module, symbol.encode(), what=f"kernel {symbol}")
        return function

    def variable(self, module: ctypes.c_void_p, name: str) -> tuple[int, int] | None:
        """Return address and size of a variable; None where the driver does not know it."""
        address, size = ctypes.c_uint64(), ctypes.c_size_t()
        code = self._library.cuModuleGetGlobal_v2(ctypes.byref(address), ctypes.byref(size), module, name.encode())
        if code == _NOT_FOUND:
            return None
        self._check(code, "cuModuleGetGlobal", f"variable {name}")
        return address.value, size.value

    def allow(self, function: ctypes.c_void_p, attribute: int, value: int, kernel: str) -> None:
        """Set an attribute of a kernel that it does not have by itself."""
        self._call("cuFuncSetAttribute", function, attribute, value, what=f"kernel {kernel}, {value}")

    def allocate(self, nbytes: int) -> int:
        """Return the address of new memory, which lives as long as the context."""
        address = ctypes.c_uint64()
        self._call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(nbytes), what=f"{nbytes} bytes")
        return address.value

    def copy(self, to: int, source: int, nbytes: int, stream: int) -> None:
        """Queue a copy on the device."""
        addresses = (ctypes.c_uint64(to), ctypes.c_uint64(source))
        size, on = ctypes.c_size_t(nbytes), ctypes.c_void_p(stream)
        self._call("cuMemcpyDtoDAsync_v2", *addresses, size, on, what=f"{nbytes} bytes")

    def zero(self, address: int, nbytes: int, stream: int) -> None:
        """Queue that memory is zeroed."""
        size, on = ctypes.c_size_t(nbytes), ctypes.c_void_p(stream)
        self._call("cuMemsetD8Async", ctypes.c_uint64(address), ctypes.c_ubyte(0), size, on, what=f"{nbytes} bytes")

    def wait(self, stream: int) -> None:
        """Wait until all that is queued on a stream is done."""
        self._call("cuStreamSynchronize", ctypes.c_void_p(stream), what="a stream")

    def launch(
        self,
        function: ctypes.c_void_p,
        grid: Dim3,
        block: Dim3,
        shared_bytes: int,
        stream: int,
        arguments: Sequence[bytes],
        *,
        cooperative: bool,
        cluster: Dim3 | None,
        kernel: str,
    ) -> None:
        """Queue a kernel; each argument is its bytes."""
        held = [ctypes.create_string_buffer(argument, len(argument)) for argument in arguments]
        pointers = (ctypes.c_void_p * (len(held) or 1))(*(ctypes.addressof(one) for one in held))
        attributes = []
        if cooperative:
            attributes.append(_Attribute(_COOPERATIVE, b"", (ctypes.c_uint * 16)(1)))
        if cluster is not None:
            attributes.append(_Attribute(_CLUSTER_DIMENSION, b"", (ctypes.c_uint * 16)(*cluster)))
        array = (_Attribute * len(attributes))(*attributes)
        config = _Config(
            (ctypes.c_uint * 3)(*grid), (ctypes.c_uint * 3)(*block), shared_bytes, stream, array, len(attributes)
        )
        self._call("cuLaunchKernelEx", ctypes.byref(config), function, pointers, None, what=f"kernel {kernel}")

    def _attribute(self, number: int, ordinal: int) -> int:
        value = ctypes.c_int()
        self._call("cuDeviceGetAttribute", ctypes.byref(value), number, ordinal, what=f"GPU {ordinal}")
        return value.value

    def _call(self, name: str, *arguments: object, what: str) -> None:
        self._check(getattr(self._library, name)(*arguments), name, what)

    def _check(self, code: int, name: str, what: str) -> None:
        if code == 0:
            return
        words = [ctypes.c_char_p(), ctypes.c_char_p()]
        self._library.cuGetErrorName(code, ctypes.byref(words[0]))
        self._library.cuGetErrorString(code, ctypes.byref(words[1]))
        error, meaning = ((word.value or b"unknown").decode() for word in words)
        raise CudaError(f"{name}, {what}: {error} ({code}), {meaning}")
