"""A loaded program: its functions, the checks that keep an impossible launch off the device, and launching.

Where buffers lie and when something is launched is known elsewhere.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluators.cudalib.driver import CudaError, call, cu
from evaluators.cudalib.gpu import Gpu
from evaluators.inspection import cubin
from evaluators.launching import bad_shape
from evo.records import Launch, LaunchPlan, Scalar

PORTABLE_CLUSTER = 8
"""Blocks of a cluster that every device with clusters places (CUDA C++ Programming Guide, "Thread Block Clusters")."""


@dataclass(frozen=True)
class Bound:
    """One launch with its numbers and addresses in place; `arguments` are what `pointers` point to."""

    function: Any
    config: Any
    pointers: NDArray[np.uint64]
    arguments: tuple[NDArray[Any], ...]

    def launch(self) -> None:
        """Queue the kernel; raises `CudaError`."""
        call(cu.cuLaunchKernelEx(self.config, self.function, self.pointers.ctypes.data, 0))

    def collect(self) -> None:
        """Do nothing: a kernel has written where it was told to."""


class Program:
    """A program on the device.

    Args:
        image: a CUBIN.
        plan: what is to be launched.
        symbols: kernel -> its name in the image, where the two differ.
        gpu: the device.

    Raises:
        CudaError: the driver does not load it.
    """

    def __init__(self, image: bytes, plan: LaunchPlan, symbols: Mapping[str, str], gpu: Gpu) -> None:
        self._plan = plan
        self._gpu = gpu
        self._device = gpu.facts
        self._module = call(cu.cuModuleLoadData(image))
        self._functions = {
            launch.kernel: self._function(symbols.get(launch.kernel, launch.kernel)) for launch in plan.launches
        }
        self.globals = Globals(self._module, image, gpu)

    def close(self) -> None:
        """Unload it."""
        self.globals.close()
        call(cu.cuModuleUnload(self._module))

    @functools.cached_property
    def local_bytes(self) -> int:
        """Most that a thread of a kernel keeps in local memory, which outlives a launch."""
        local = cu.CUfunction_attribute.CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES
        return max(_attribute(local, function) for function in self._functions.values())

    def problem(self, sizes: Mapping[str, int]) -> str:
        """Say why the plan cannot be launched, or return "" and make it launchable.

        Args:
            sizes: argument name -> bytes that its value takes: 8 for a buffer.
        """
        for launch in self._plan.launches:
            found = self._shape_problem(launch) or self._arguments_problem(launch, sizes) or self._fit_problem(launch)
            if found:
                return f"kernel {launch.kernel}: {found}"
        return ""

    def bind(self, addresses: Mapping[str, int], scalars: Sequence[Scalar]) -> tuple[Bound, ...]:
        """Put numbers and addresses into the plan's launches.

        Args:
            addresses: of buffers and workspaces, by name.
            scalars: the case's.
        """
        values: dict[str | int, NDArray[Any]] = {name: np.uint64(at).reshape(1) for name, at in addresses.items()}
        values.update({scalar.name: np.array([scalar.value]).astype(scalar.dtype) for scalar in scalars})
        bound = []
        for launch in self._plan.launches:
            arguments = tuple(np.array([arg], np.int32) if isinstance(arg, int) else values[arg] for arg in launch.args)
            pointers = np.array([argument.ctypes.data for argument in arguments] or [0], np.uint64)
            config = self._config(launch)
            bound.append(Bound(self._functions[launch.kernel], config, pointers, arguments))
        return tuple(bound)

    def _function(self, symbol: str) -> Any:
        return call(cu.cuModuleGetFunction(self._module, symbol.encode()))

    def _config(self, launch: Launch) -> Any:
        config = cu.CUlaunchConfig()
        config.gridDimX, config.gridDimY, config.gridDimZ = launch.grid
        config.blockDimX, config.blockDimY, config.blockDimZ = launch.block
        config.sharedMemBytes = launch.shared_bytes
        config.hStream = self._gpu.stream
        config.attrs = _launch_attributes(self._plan)
        config.numAttrs = len(config.attrs)
        return config

    # --- what cannot be launched ----------------------------------------------------------------------------------

    def _shape_problem(self, launch: Launch) -> str:
        function, kinds = self._functions[launch.kernel], cu.CUfunction_attribute
        static = _attribute(kinds.CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, function)
        found = bad_shape(launch, self._device, static)
        if found:
            return found
        threads = math.prod(launch.block)
        most = _attribute(kinds.CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, function)
        if threads > most:
            registers = _attribute(kinds.CU_FUNC_ATTRIBUTE_NUM_REGS, function)
            return (
                f"a block of {threads} threads with {registers} registers each does not fit a multiprocessor, or is "
                f"beyond its __launch_bounds__; at most {most} threads do"
            )
        return ""

    def _arguments_problem(self, launch: Launch, sizes: Mapping[str, int]) -> str:
        taken = _parameter_bytes(self._functions[launch.kernel])
        if len(taken) != len(launch.args):
            return f"it takes {len(taken)} parameters, and the launch header passes {len(launch.args)}"
        for index, (arg, size) in enumerate(zip(launch.args, taken, strict=True)):
            passed = 4 if isinstance(arg, int) else sizes[arg]
            if passed != size:
                return f"its parameter {index + 1} has {size} bytes, and the launch header passes {arg} of {passed}"
        return ""

    def _fit_problem(self, launch: Launch) -> str:
        function, kinds = self._functions[launch.kernel], cu.CUfunction_attribute
        shared = max(other.shared_bytes for other in self._plan.launches if other.kernel == launch.kernel)
        call(cu.cuFuncSetAttribute(function, kinds.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, shared))
        cluster = self._plan.cluster
        if cluster is not None and (found := self._cluster_problem(launch, cluster)):
            return found
        resident = int(
            call(cu.cuOccupancyMaxActiveBlocksPerMultiprocessor(function, math.prod(launch.block), launch.shared_bytes))
        )
        if resident == 0:
            return "not one of its blocks fits a multiprocessor"
        blocks, most = math.prod(launch.grid), resident * self._device.num_sms
        if self._plan.cooperative and blocks > most:
            return f"a cooperative grid must fit the device at once: {blocks} blocks, of which {most} fit"
        return ""

    def _cluster_problem(self, launch: Launch, cluster: Sequence[int]) -> str:
        if any(extent % size for extent, size in zip(launch.grid, cluster, strict=True)):
            return f"the grid {launch.grid} is no multiple of the cluster {tuple(cluster)}"
        function, kinds = self._functions[launch.kernel], cu.CUfunction_attribute
        if math.prod(cluster) > PORTABLE_CLUSTER:
            call(cu.cuFuncSetAttribute(function, kinds.CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1))
        try:
            fitting = int(call(cu.cuOccupancyMaxActiveClusters(function, self._config(launch))))
        except CudaError as error:
            return f"the device places no cluster of {tuple(cluster)} blocks: {error}"
        return "" if fitting else f"the device has no room for a cluster of {tuple(cluster)} such blocks"


SLOT_BYTES = 256
"""The driver gives every variable a slot that begins and ends at a multiple of this (seen with driver 580)."""


class Globals:
    """A module's memory that outlives a launch, and a copy of what it held when the module was loaded.

    Variables are kept with the whole of their slots, since code can also write what lies behind them; constants too,
    since code can take their address.

    Attributes:
        lost: names of what the driver does not find, so that it cannot be restored.
    """

    def __init__(self, module: Any, image: bytes, gpu: Gpu) -> None:
        self._gpu = gpu
        contents = cubin.read(image)
        sizes = {variable.name: variable.size for variable in contents.variables} | dict(contents.constants)
        found = {name: _find(module, name) for name in sizes}
        self.lost = tuple(name for name, at in found.items() if at is None)
        slots = [_slot(at, sizes[name]) for name, at in found.items() if at is not None]
        self._saved = [(begin, self._copied(begin, end - begin), end - begin) for begin, end in _merged(slots)]

    def restore(self) -> None:
        """Queue that everything gets its first value again."""
        for at, copy, nbytes in self._saved:
            self._gpu.copy(at, int(copy), nbytes)

    def close(self) -> None:
        """Free the copies."""
        for _, copy, _ in self._saved:
            call(cu.cuMemFree(copy))

    def _copied(self, at: int, nbytes: int) -> Any:
        copy = call(cu.cuMemAlloc(nbytes))
        self._gpu.copy(int(copy), at, nbytes)
        return copy


def _slot(at: int, nbytes: int) -> tuple[int, int]:
    return at // SLOT_BYTES * SLOT_BYTES, -(-(at + nbytes) // SLOT_BYTES) * SLOT_BYTES


def _merged(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Join spans (begin, end) that touch, so that few copies restore many variables."""
    merged: list[tuple[int, int]] = []
    for begin, end in sorted(spans):
        if merged and begin <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((begin, end))
    return merged


def _find(module: Any, name: str) -> int | None:
    """Return where a variable was loaded, or None where the driver does not know it."""
    try:
        address, _ = call(cu.cuModuleGetGlobal(module, name.encode()))
    except CudaError as error:
        if error.name != "NOT_FOUND":
            raise
        return None
    return int(address)


def _attribute(attribute: Any, function: Any) -> int:
    return int(call(cu.cuFuncGetAttribute(attribute, function)))


def _parameter_bytes(function: Any) -> list[int]:
    sizes: list[int] = []
    while True:
        try:
            _, size = call(cu.cuFuncGetParamInfo(function, len(sizes)))
        except CudaError as error:
            if error.name != "INVALID_VALUE":
                raise
            return sizes
        sizes.append(int(size))


def _launch_attributes(plan: LaunchPlan) -> list[Any]:
    attributes, kinds = [], cu.CUlaunchAttributeID
    if plan.cooperative:
        attribute = cu.CUlaunchAttribute()
        attribute.id = kinds.CU_LAUNCH_ATTRIBUTE_COOPERATIVE
        attribute.value.cooperative = 1
        attributes.append(attribute)
    if plan.cluster is not None:
        attribute = cu.CUlaunchAttribute()
        attribute.id = kinds.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
        attribute.value.clusterDim.x, attribute.value.clusterDim.y, attribute.value.clusterDim.z = plan.cluster
        attributes.append(attribute)
    return attributes
