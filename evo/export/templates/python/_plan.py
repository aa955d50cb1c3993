"""What is launched for given dims on a given GPU, as numbers; and the limits that no GPU lets a launch exceed."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

Dim3 = tuple[int, int, int]
Numbers = Mapping[str, int]
"""Dims, tunables and the device's figures, by name."""

MAX_BLOCK: Dim3 = (1024, 1024, 64)
MAX_GRID: Dim3 = (2**31 - 1, 65535, 65535)
MAX_CLUSTER = 16
MAX_WORKSPACE_BYTES = 1 << 34


class Refused(ValueError):
    """The kernel cannot be called so; the message says what was expected and what was found."""


@dataclass(frozen=True)
class Device:
    """What launch headers may ask of a GPU.

    Attributes:
        arch: compile target.
        num_sms: multiprocessors.
        l2_bytes: second-level cache.
        max_threads_per_block: of any kernel.
        max_shared_bytes: of a block, when it opts in.
        max_threads_per_sm: resident threads of a multiprocessor.
        max_blocks_per_sm: resident blocks of a multiprocessor.
    """

    arch: str
    num_sms: int
    l2_bytes: int
    max_threads_per_block: int
    max_shared_bytes: int
    max_threads_per_sm: int
    max_blocks_per_sm: int


@dataclass(frozen=True)
class Launch:
    """One kernel launch. `args` are names of arrays, scalars and workspaces, or integers (int32)."""

    kernel: str
    grid: Dim3
    block: Dim3
    shared_bytes: int
    args: tuple[str | int, ...]


@dataclass(frozen=True)
class Plan:
    """Everything that one call does, and the program that it needs.

    Attributes:
        launches: in order.
        workspaces: name -> bytes.
        zero: arrays and workspaces that are zeroed first.
        defines: macro -> value.
        options: compiler options.
        cooperative: whether every launch is cooperative.
        cluster: thread-block cluster, or None.
    """

    launches: tuple[Launch, ...]
    workspaces: Mapping[str, int] = field(default_factory=dict)
    zero: tuple[str, ...] = ()
    defines: Mapping[str, int] = field(default_factory=dict)
    options: tuple[str, ...] = ()
    cooperative: bool = False
    cluster: Dim3 | None = None


def ceildiv(a: int, b: int) -> int:
    """Return a / b, rounded up."""
    return -(-a // b)


def required(holds: bool, text: str, numbers: Numbers) -> None:
    """Refuse dims for which a requirement of the launch header does not hold."""
    if not holds:
        raise Refused(f"expected {text!r} to hold, as the launch header requires, found {dict(numbers)}")


def within(what: str, value: int, least: int, most: int) -> int:
    """Return a value that lies in its limits; refuse any other."""
    if not least <= value <= most:
        raise Refused(f"{what}: expected {least} to {most}, found {value}")
    return int(value)


def extent(what: str, values: Sequence[int], most: Dim3) -> Dim3:
    """Return one to three values as (x, y, z), each in its limits."""
    limited = [within(f"{what}.{axis}", *pair) for axis, *pair in zip("xyz", values, (1, 1, 1), most, strict=False)]
    x, y, z = (*limited, 1, 1)[:3]
    return x, y, z


def launch(
    kernel: str,
    numbers: Numbers,
    device: Device,
    *,
    block: Sequence[int],
    shared_bytes: int,
    grid: Callable[[Numbers], Sequence[int]],
    args: Sequence[str | int],
) -> Launch:
    """Return one launch; its grid may depend on how many of its blocks a multiprocessor holds.

    Raises:
        Refused: a number is beyond the device's limits.
    """
    size = extent(f"{kernel}: block", block, MAX_BLOCK)
    threads = within(f"{kernel}: threads of a block", math.prod(size), 1, device.max_threads_per_block)
    shared = within(f"{kernel}: bytes of dynamic shared memory", shared_bytes, 0, device.max_shared_bytes)
    by_shared = device.max_shared_bytes // shared if shared else device.max_blocks_per_sm
    resident = max(1, min(device.max_threads_per_sm // threads, by_shared, device.max_blocks_per_sm))
    blocks = extent(f"{kernel}: grid", grid({**numbers, "blocks_per_sm": resident}), MAX_GRID)
    given = tuple(arg if isinstance(arg, str) else within(f"{kernel}: int", arg, -(2**31), 2**31 - 1) for arg in args)
    return Launch(kernel, blocks, size, shared, given)


def workspace(name: str, nbytes: int) -> int:
    """Return a workspace's size, if there can be one of it."""
    return within(f"workspace {name}: bytes", nbytes, 1, MAX_WORKSPACE_BYTES)


def cluster(values: Sequence[int], launches: Sequence[Launch]) -> Dim3:
    """Return a cluster's size; it must divide every grid."""
    size = extent("cluster", values, (MAX_CLUSTER,) * 3)
    within("blocks of a cluster", math.prod(size), 1, MAX_CLUSTER)
    for one in launches:
        if any(blocks % part for blocks, part in zip(one.grid, size, strict=True)):
            raise Refused(f"expected a cluster that divides the grid {one.grid}, found {size}")
    return size
