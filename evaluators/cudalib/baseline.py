"""The vendor's way of computing a workload, called where a kernel would be launched: CuPy on the harness's own stream.

It is the user's own Python and no candidate's: it is timed as kernels are, and its answers are judged as theirs are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import cupy

from evaluators.cudalib.driver import call, cu
from evaluators.cudalib.gpu import Gpu
from evo.errors import WorkloadError
from evo.records import Call, Scalar

_FILE = "baseline.py"


class Baseline:
    """Stands where a `Program` does.

    Args:
        what: the text, the dims and the shapes.
        gpu: the device.

    Raises:
        WorkloadError: the text does not define a function `baseline(inputs, dims)`.
    """

    local_bytes = 0

    def __init__(self, what: Call, gpu: Gpu) -> None:
        self._what = what
        self._gpu = gpu
        self._function = _function(what.source)
        self.globals = _Nothing()

    def close(self) -> None:
        """Give back what CuPy keeps."""
        cupy.get_default_memory_pool().free_all_blocks()

    def problem(self, sizes: Mapping[str, int]) -> str:
        """Return "": there is no launch that could be impossible."""
        return ""

    def bind(self, addresses: Mapping[str, int], scalars: Sequence[Scalar]) -> tuple[_Bound, ...]:
        """Return the one call, on the buffers at these addresses."""
        arrays = {name: _array(addresses[name], shape, dtype) for name, (shape, dtype) in self._what.arrays.items()}
        return (_Bound(self._function, arrays, self._what, self._gpu.stream),)


class _Bound:
    def __init__(self, function: Callable[..., Any], arrays: Mapping[str, Any], what: Call, stream: Any) -> None:
        self._function, self._arrays, self._what = function, arrays, what
        self._stream = cupy.cuda.ExternalStream(int(stream))
        self._inputs = {name: array for name, array in arrays.items() if name not in what.outputs}
        self._made: Mapping[str, Any] = {}

    def launch(self) -> None:
        """Call the function; what it queues goes on the harness's stream."""
        with self._stream:
            try:
                self._made = self._function(self._inputs, dict(self._what.dims))
            except Exception as error:  # the user's own code: its failure reaches the report as words
                raise WorkloadError(f"{_FILE}: {type(error).__name__}: {error}") from error

    def collect(self) -> None:
        """Copy the outputs of the last call to where a kernel would have written them."""
        with self._stream:
            for name in self._what.outputs:
                self._arrays[name][...] = self._made[name].reshape(self._arrays[name].shape)
        call(cu.cuStreamSynchronize(self._stream.ptr))


class _Nothing:
    """What a baseline has of a module's globals."""

    lost: tuple[str, ...] = ()

    def restore(self) -> None:
        """Do nothing."""


def _array(address: int, shape: tuple[int, ...], dtype: str) -> Any:
    nbytes = cupy.dtype(dtype).itemsize
    for extent in shape:
        nbytes *= extent
    memory = cupy.cuda.UnownedMemory(address, nbytes, None)
    return cupy.ndarray(shape, dtype, memptr=cupy.cuda.MemoryPointer(memory, 0))


def _function(source: str) -> Callable[..., Any]:
    namespace: dict[str, Any] = {"__name__": "baseline", "__file__": _FILE}
    try:
        exec(compile(source, _FILE, "exec"), namespace)
    except Exception as error:
        raise WorkloadError(f"{_FILE}: {type(error).__name__}: {error}") from error
    function = namespace.get("baseline")
    if not callable(function):
        raise WorkloadError(f"{_FILE}: expected a function baseline(inputs, dims), found none")
    return function  # type: ignore[no-any-return]
