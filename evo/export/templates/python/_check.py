"""Arguments of a call: what they must be, and the dims that their shapes tell. Nothing is launched here."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ._plan import Refused

ITEM_BYTES = {
    **{"float16": 2, "float32": 4, "float64": 8},
    **{f"{kind}{bits}": bits // 8 for kind in ("int", "uint") for bits in (8, 16, 32, 64)},
}


@dataclass(frozen=True)
class Parameter:
    """An array of the kernel's signature.

    Attributes:
        name: as the kernel calls it.
        dtype: NumPy's name.
        direction: `in`, `inout` or `out`.
        align: its address is a multiple of so many bytes.
        shape: as the workload writes it, for messages.
    """

    name: str
    dtype: str
    direction: str
    align: int
    shape: str


@dataclass(frozen=True)
class Tensor:
    """An array on a GPU, whoever made it; strides are in bytes."""

    address: int
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    device: int

    @property
    def nbytes(self) -> int:
        """Size of a contiguous array of this shape."""
        return math.prod(self.shape) * ITEM_BYTES[self.dtype]


@dataclass(frozen=True)
class Advice:
    """What a message tells to do: functions that give a contiguous array, and one of another type."""

    contiguous: str
    copy: str
    astype: str


def told_dims(
    tensors: Mapping[str, Tensor],
    axes: Mapping[str, tuple[str, int]],
    given: Mapping[str, int],
    shapes: Mapping[str, str],
) -> dict[str, int]:
    """Return every dim.

    Args:
        tensors: by parameter.
        axes: dim -> the array and the axis whose extent it is.
        given: dims that no shape tells.
        shapes: parameter -> its shape in words.

    Raises:
        Refused: an array has too few axes, or a dim is no possible size.
    """
    dims = dict(given)
    for dim, (name, axis) in axes.items():
        shape, wanted = tensors[name].shape, shapes[name]
        if len(shape) != wanted.count(",") + 1:
            raise Refused(f"{name}: expected an array of shape [{wanted}], found {shape}")
        dims[dim] = shape[axis]
    for dim, value in dims.items():
        if not 0 < value < 2**31:
            raise Refused(f"{dim}: expected a size from 1 to {2**31 - 1}, found {value}")
    return dims


def check(parameter: Parameter, tensor: Tensor, shape: Sequence[int], device: int, advice: Advice) -> None:
    """Refuse an array that the kernel would read or write wrongly.

    Args:
        parameter: what the array is for.
        tensor: the array.
        shape: that it must have.
        device: that the call runs on.
        advice: for messages.

    Raises:
        Refused: its device, type, shape, strides or alignment is another than expected.
    """
    name = parameter.name
    if tensor.device != device:
        raise Refused(f"{name}: expected an array on GPU {device}, as the others, found one on GPU {tensor.device}")
    if tensor.dtype != parameter.dtype:
        fix = advice.astype.format(name=name, dtype=parameter.dtype)
        raise Refused(f"{name}: expected {parameter.dtype}, found {tensor.dtype}; pass {fix}")
    if tensor.shape != tuple(shape):
        raise Refused(f"{name}: expected shape [{parameter.shape}] = {tuple(shape)}, found {tensor.shape}")
    wanted = contiguous(tensor.shape, ITEM_BYTES[tensor.dtype])
    pairs = zip(tensor.shape, tensor.strides, wanted, strict=True)
    if any(found != step for extent, found, step in pairs if extent > 1):
        fix = advice.contiguous.format(name=name)
        raise Refused(
            f"{name}: expected a C-contiguous array, with strides of {wanted} bytes, found {tensor.strides}; pass {fix}"
        )
    check_alignment(parameter, tensor.address, advice)


def check_alignment(parameter: Parameter, address: int, advice: Advice) -> None:
    """Refuse an address that is no multiple of what the kernel was promised."""
    off = address % parameter.align
    if off:
        raise Refused(
            f"{parameter.name}: expected an address that is a multiple of {parameter.align} bytes, as the kernel was "
            f"promised, found one that is {off} bytes beyond; pass {advice.copy.format(name=parameter.name)}"
        )


def check_overlap(tensors: Mapping[str, Tensor], written: Sequence[str]) -> None:
    """Refuse arrays of which one is written and shares memory with another."""
    for name in written:
        one = tensors[name]
        for other, two in tensors.items():
            apart = one.address + one.nbytes <= two.address or two.address + two.nbytes <= one.address
            if other != name and not apart:
                raise Refused(f"{name}: expected memory of its own, since the kernel writes it, found that of {other}")


def contiguous(shape: Sequence[int], item_bytes: int) -> tuple[int, ...]:
    """Return the strides in bytes of a C-contiguous array."""
    strides = [item_bytes]
    for extent in reversed(shape[1:]):
        strides.append(strides[-1] * extent)
    return tuple(reversed(strides)) if shape else ()
