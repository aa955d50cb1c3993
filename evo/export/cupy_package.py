"""`--as cupy`: a Python package with a function that takes and returns CuPy arrays."""

from __future__ import annotations

from collections.abc import Iterator

from evo.export import package, readme
from evo.export.folder import File
from evo.export.package import Signature
from evo.export.subject import Subject

_ADAPTER = '''\
# Written by `evo export`; README.md says how to use it.
"""{title}, for CuPy arrays: `{function}`."""

import cupy as _cupy

from . import _call, _check, _kernel
from ._cuda import CudaError
from ._nvrtc import CompileError
from ._plan import Refused

__all__ = ["CompileError", "CudaError", "Refused", "{function}"]


def {function}({arguments}):
    """{title}.

    The kernel is queued on the current stream.

    Args:
        {described}

    Returns:
        {returns}.

    Raises:
        Refused: an array is not as the kernel needs it, or the launch header has no launch for these sizes.
        CompileError: the kernel does not compile here.
        CudaError: the driver refuses.
    """
    return _run({passed})


_ADVICE = _check.Advice("cupy.ascontiguousarray({{name}})", "{{name}}.copy()", '{{name}}.astype("{{dtype}}")')
_CALLER = _call.Caller(
    _call.Kernel(
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
)
_OUTPUTS = sum(parameter.direction == "out" for parameter in _kernel.PARAMETERS)


def _run(arrays, dims):
    tensors = {{name: _tensor(name, array) for name, array in arrays.items()}}
    device = _cupy.cuda.Device().id
    made = _CALLER(tensors, dims, device, _cupy.cuda.get_current_stream().ptr, _make)
    return made if _OUTPUTS > 1 else made[0] if made else None


def _tensor(name, array):
    if not isinstance(array, _cupy.ndarray):
        kind = f"{{type(array).__module__}}.{{type(array).__name__}}"
        raise Refused(f"{{name}}: expected a cupy.ndarray, found a {{kind}}; pass cupy.asarray({{name}})")
    return _check.Tensor(array.data.ptr, array.dtype.name, array.shape, array.strides, array.device.id)


def _make(shape, dtype):
    array = _cupy.empty(shape, dtype)
    return array, array.data.ptr
'''


def files(subject: Subject) -> Iterator[File]:
    """Return the package's files; raises `ConfigError` for a workload that no such package can serve."""
    signature = Signature.of(subject.workload)
    adapter = _ADAPTER.format(
        title=f"{subject.workload.name}, {subject.origin}",
        function=signature.function,
        arguments=signature.text(),
        described="\n        ".join(signature.arguments),
        returns=signature.returns,
        passed=signature.passed,
    )
    return package.files(subject, adapter, readme.cupy(subject, signature))
