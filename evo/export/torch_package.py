"""`--as torch`: a Python package with a PyTorch custom operator, which works under `torch.compile`."""

from __future__ import annotations

from collections.abc import Iterator

from evo.export import package, readme
from evo.export.folder import File
from evo.export.package import Signature
from evo.export.subject import Subject
from evo.records import Direction

_ADAPTER = '''\
# Written by `evo export`; README.md says how to use it.
"""{title}, for PyTorch tensors: the custom operator `{function}`."""

import torch as _torch

from . import _call, _check, _kernel
from ._cuda import CudaError
from ._nvrtc import CompileError
from ._plan import Refused

__all__ = ["CompileError", "CudaError", "Refused", "{function}"]

_NAMESPACE = __name__.replace(".", "_")


@_torch.library.custom_op(f"{{_NAMESPACE}}::{function}", mutates_args={mutated})
def {function}({arguments}) -> {result}:
    """{title}.

    The kernel is queued on the current stream. There is no gradient.

    Args:
        {described}

    Returns:
        {returns}.

    Raises:
        Refused: a tensor is not as the kernel needs it, or the launch header has no launch for these sizes.
        CompileError: the kernel does not compile here.
        CudaError: the driver refuses.
    """
    return _run({passed})


@{function}.register_fake
def _fake({arguments}) -> {result}:
    return _imagined({passed})


_ADVICE = _check.Advice("{{name}}.contiguous()", "{{name}}.clone()", "{{name}}.to(torch.{{dtype}})")
_KERNEL = _call.Kernel(
    _kernel.NAME,
    _kernel.KERNELS,
    _kernel.PARAMETERS,
    _kernel.AXES,
    _kernel.shapes,
    _kernel.scalars,
    _kernel.plan,
    _kernel.ARCH,
    _ADVICE,
)
_CALLER = _call.Caller(_KERNEL)


def _run(arrays, dims):
    tensors = {{name: _tensor(name, array) for name, array in arrays.items()}}
    device = next(iter(arrays.values())).device

    def make(shape, dtype):
        array = _torch.empty(shape, dtype=getattr(_torch, dtype), device=device)
        return array, array.data_ptr()

    made = _CALLER(tensors, dims, device.index or 0, _stream(device), make)
    return made if len(made) > 1 else made[0] if made else None


def _stream(device):
    return _torch.cuda.current_stream(device).cuda_stream


def _tensor(name, array):
    if not _is_on_gpu(array):
        raise Refused(f"{{name}}: expected a dense tensor on a GPU, found {{array.device}}; pass {{name}}.cuda()")
    size = array.element_size()
    strides = tuple(step * size for step in array.stride())
    dtype = str(array.dtype).removeprefix("torch.")
    return _check.Tensor(array.data_ptr(), dtype, tuple(array.shape), strides, array.device.index or 0)


def _is_on_gpu(array):
    return array.is_cuda and array.layout is _torch.strided


def _imagined(arrays, dims):
    """Return outputs that hold nothing, by shapes alone."""
    tensors = {{name: _check.Tensor(0, "", tuple(array.shape), (), 0) for name, array in arrays.items()}}
    like, shapes = next(iter(arrays.values())), _kernel.shapes(_KERNEL.dims(tensors, dims))
    made = tuple(
        like.new_empty(shapes[parameter.name], dtype=getattr(_torch, parameter.dtype))
        for parameter in _kernel.PARAMETERS
        if parameter.direction == "out"
    )
    return made if len(made) > 1 else made[0] if made else None
'''


def files(subject: Subject) -> Iterator[File]:
    """Return the package's files; raises `ConfigError` for a workload that no such package can serve."""
    signature = Signature.of(subject.workload)
    mutated = [p.name for p in package.inputs(subject.workload) if p.direction is Direction.INOUT]
    adapter = _ADAPTER.format(
        title=f"{subject.workload.name}, {subject.origin}",
        function=signature.function,
        arguments=signature.text(": _torch.Tensor", ": int"),
        described="\n        ".join(signature.arguments),
        returns=signature.returns,
        passed=signature.passed,
        mutated=tuple(signature.arrays[name] for name in mutated),
        result=_result(len(package.outputs(subject.workload))),
    )
    return package.files(subject, adapter, readme.torch(subject, signature))


def _result(outputs: int) -> str:
    if outputs > 1:
        return f"tuple[{', '.join(['_torch.Tensor'] * outputs)}]"
    return "_torch.Tensor" if outputs else "None"
