"""One call of the kernel: arguments checked, plan and program looked up, arrays made, everything queued."""

from __future__ import annotations

import ctypes
import functools
import struct
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import _check, _cuda, _nvrtc
from ._check import Advice, Parameter, Tensor
from ._cubin import read as read_cubin
from ._plan import Device, Plan, Refused

_FORMATS = {
    **{"float16": "e", "float32": "f", "float64": "d"},
    **{"int8": "b", "int16": "h", "int32": "i", "int64": "q"},
    **{"uint8": "B", "uint16": "H", "uint32": "I", "uint64": "Q"},
}
_PORTABLE_CLUSTER = 8
_DEFAULT_STREAM = 0

Make = Callable[[tuple[int, ...], str], tuple[Any, int]]
"""(shape, dtype) -> a new array and its address."""


@dataclass(frozen=True)
class Kernel:
    """What is known of the kernel beforehand.

    Attributes:
        name: of the workload.
        kernels: names of the launched functions.
        parameters: the arrays, in the signature's order.
        axes: dim -> the array and the axis whose extent it is.
        shapes: dims -> parameter -> shape.
        scalars: dims -> scalar argument -> NumPy's name of its type, and value.
        plan: (dims, device) -> what is launched.
        arch: compile target; None compiles for the GPU that is there.
        advice: for messages.
    """

    name: str
    kernels: tuple[str, ...]
    parameters: tuple[Parameter, ...]
    axes: Mapping[str, tuple[str, int]]
    shapes: Callable[[Mapping[str, int]], Mapping[str, tuple[int, ...]]]
    scalars: Callable[[Mapping[str, int]], Mapping[str, tuple[str, float]]]
    plan: Callable[[Mapping[str, int], Device], Plan]
    arch: str | None
    advice: Advice

    def dims(self, tensors: Mapping[str, Tensor], given: Mapping[str, int]) -> dict[str, int]:
        """Return every dim of a call; raises `Refused`."""
        texts = {parameter.name: parameter.shape for parameter in self.parameters}
        return _check.told_dims(tensors, self.axes, given, texts)


@dataclass
class _Module:
    """A loaded program."""

    handle: ctypes.c_void_p
    functions: Mapping[str, ctypes.c_void_p]
    variables: tuple[tuple[int, int, int], ...]
    """Address, address of a copy of the first content, bytes."""
    shared_bytes: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class _Ready:
    """A plan whose program is loaded, and the bytes of the scalars."""

    plan: Plan
    module: _Module
    scalars: Mapping[str, bytes]
    shapes: Mapping[str, tuple[int, ...]]


class Caller:
    """Calls one kernel; what was planned and compiled once is kept.

    Calls on several streams at once are safe, unless the kernel keeps something in `__device__` variables.
    """

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._source = Path(__file__).with_name("best.cu").read_text(encoding="utf-8")
        self._lock = threading.Lock()
        self._modules: dict[tuple[Any, ...], _Module] = {}
        self._ready = functools.lru_cache(maxsize=1024)(self._made_ready)

    def __call__(
        self, tensors: Mapping[str, Tensor], given: Mapping[str, int], device: int, stream: int, make: Make
    ) -> tuple[Any, ...]:
        """Queue the kernel and return its new outputs in the signature's order.

        Args:
            tensors: every `in` and `inout` array.
            given: dims that no shape tells.
            device: number of the GPU.
            stream: handle of a CUDA stream.
            make: makes arrays on the GPU, for use on the stream.

        Raises:
            Refused: an argument is not as the kernel needs it.
            CompileError: the kernel does not compile here.
            CudaError: the driver refuses.
        """
        dims = self._kernel.dims(tensors, given)
        shapes = self._kernel.shapes(dims)
        parameters = {parameter.name: parameter for parameter in self._kernel.parameters}
        for name, tensor in tensors.items():
            _check.check(parameters[name], tensor, shapes[name], device, self._kernel.advice)
        written = [name for name in tensors if parameters[name].direction == "inout"]
        _check.check_overlap(tensors, written)
        ready = self._ready(device, tuple(sorted(dims.items())))
        addresses = {name: tensor.address for name, tensor in tensors.items()}
        outputs = self._outputs(ready, addresses, make)
        sizes = self._sizes(ready)
        held = {name: make((nbytes,), "uint8") for name, nbytes in ready.plan.workspaces.items()}
        addresses.update({name: address for name, (_, address) in held.items()})
        with _cuda.driver().current(device):
            self._queue(ready, addresses, sizes, stream)
        return outputs

    # --- making ready -----------------------------------------------------------------------------------------------

    def _made_ready(self, device: int, dims: tuple[tuple[str, int], ...]) -> _Ready:
        numbers, driver = dict(dims), _cuda.driver()
        facts = driver.describe(device, self._kernel.arch)
        try:
            plan = self._kernel.plan(numbers, facts)
        except ZeroDivisionError:
            raise Refused(f"{self._kernel.name}: the launch header divides by zero for {numbers}") from None
        with self._lock, driver.current(device):
            module = self._module(device, plan, facts.arch)
            self._allow(module, plan)
        scalars = {name: _pack(name, *scalar) for name, scalar in self._kernel.scalars(numbers).items()}
        return _Ready(plan, module, scalars, self._kernel.shapes(numbers))

    def _module(self, device: int, plan: Plan, arch: str) -> _Module:
        key = (device, tuple(sorted(plan.defines.items())), plan.options)
        if key not in self._modules:
            program = _nvrtc.compile(self._source, self._kernel.kernels, arch, plan.defines, plan.options)
            self._modules[key] = _load(program)
        return self._modules[key]

    def _allow(self, module: _Module, plan: Plan) -> None:
        """Let kernels have the shared memory and the clusters that a plan asks for; a program may serve many plans."""
        for launch in plan.launches:
            name, function = launch.kernel, module.functions[launch.kernel]
            if launch.shared_bytes > module.shared_bytes.get(name, -1):
                _cuda.driver().allow(function, _cuda.MAX_DYNAMIC_SHARED_BYTES, launch.shared_bytes, name)
                module.shared_bytes[name] = launch.shared_bytes
            x, y, z = plan.cluster or (1, 1, 1)
            if x * y * z > _PORTABLE_CLUSTER:
                _cuda.driver().allow(function, _cuda.NON_PORTABLE_CLUSTER, 1, name)

    # --- the call ---------------------------------------------------------------------------------------------------

    def _outputs(self, ready: _Ready, addresses: dict[str, int], make: Make) -> tuple[Any, ...]:
        arrays = []
        for parameter in self._kernel.parameters:
            if parameter.direction != "out":
                continue
            array, address = make(ready.shapes[parameter.name], parameter.dtype)
            _check.check_alignment(parameter, address, self._kernel.advice)
            addresses[parameter.name] = address
            arrays.append(array)
        return tuple(arrays)

    def _sizes(self, ready: _Ready) -> dict[str, int]:
        arrays = {p.name: Tensor(0, p.dtype, ready.shapes[p.name], (), 0).nbytes for p in self._kernel.parameters}
        return {**arrays, **ready.plan.workspaces}

    def _queue(self, ready: _Ready, addresses: Mapping[str, int], sizes: Mapping[str, int], stream: int) -> None:
        driver, plan = _cuda.driver(), ready.plan
        for address, first, nbytes in ready.module.variables:
            driver.copy(address, first, nbytes, stream)
        for name in plan.zero:
            driver.zero(addresses[name], sizes[name], stream)
        values = {**ready.scalars, **{name: struct.pack("Q", address) for name, address in addresses.items()}}
        for launch in plan.launches:
            driver.launch(
                ready.module.functions[launch.kernel],
                launch.grid,
                launch.block,
                launch.shared_bytes,
                stream,
                [struct.pack("i", arg) if isinstance(arg, int) else values[arg] for arg in launch.args],
                cooperative=plan.cooperative,
                cluster=plan.cluster,
                kernel=launch.kernel,
            )


def _load(program: _nvrtc.Program) -> _Module:
    """Load a program; keep a copy of what its variables hold at first, which every call restores."""
    driver = _cuda.driver()
    handle = driver.load(program.image)
    functions = {kernel: driver.function(handle, symbol) for kernel, symbol in program.symbols.items()}
    variables = []
    for name in dict.fromkeys(variable.name for variable in read_cubin(program.image).variables):
        found = driver.variable(handle, name)
        if found is not None:
            copy = driver.allocate(found[1])
            driver.copy(copy, *found, _DEFAULT_STREAM)
            variables.append((found[0], copy, found[1]))
    if variables:
        driver.wait(_DEFAULT_STREAM)
    return _Module(handle, functions, tuple(variables))


def _pack(name: str, dtype: str, value: float) -> bytes:
    try:
        return struct.pack(_FORMATS[dtype], value)
    except (struct.error, OverflowError):
        raise Refused(f"{name}: expected a value that fits {dtype}, found {value}") from None
