"""Do the kernel files of a workload folder fit it: headers that resolve on every case, signatures like the parameters.

Read at load time, so that a run does not begin with a kernel that it cannot launch. Nothing compiles, nothing runs.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

from evo.errors import EvoError, WorkloadError, did_you_mean
from evo.kernel import Kernel, parse
from evo.marked import Node
from evo.records import Device, Direction, Launch, Workload

INITIAL = "initial.cu"
REFERENCE = "reference.cu"

_ANY_DEVICE = Device(kind="any", name="any CUDA device", fingerprint="", arch="")
"""The least that every device allows; the first kernel must fit it."""

_LARGE_DEVICE = dataclasses.replace(
    _ANY_DEVICE, name="a large CUDA device", num_sms=132, max_shared_bytes=232448, l2_bytes=50 << 20
)
"""What an H100 or H200 allows: a kernel to beat may be made for one. Whether the run's device suits it, a run says."""


def check(folder: Path, entry: Node, workload: Workload) -> None:
    """Check initial.cu and, where there is one, reference.cu.

    Args:
        folder: of the workload.
        entry: the key of workload.yaml that names the first kernel's function.
        workload: whole.

    Raises:
        WorkloadError: file, line of the header or parameter, expected, found.
    """
    _check_entry(folder / INITIAL, entry, workload)
    check_source(folder / INITIAL, workload.initial, workload)
    if workload.reference_kernel is not None:
        check_source(folder / REFERENCE, workload.reference_kernel, workload, _LARGE_DEVICE)


def _check_entry(path: Path, entry: Node, workload: Workload) -> None:
    names = [function.name for function in _parsed(path, workload.initial).functions]
    if names and workload.entry not in names:
        raise entry.fail(f"a __global__ function of {path.name}", workload.entry, did_you_mean(workload.entry, names))


def check_source(path: Path, source: str, workload: Workload, device: Device = _ANY_DEVICE) -> None:
    """Check that a kernel can be launched on every case, and takes the workload's parameters.

    Args:
        path: of its file, for messages.
        source: its text.
        workload: whole but for its kernels.
        device: whose limits count.

    Raises:
        WorkloadError: file, line of the header or parameter, expected, found.
    """
    kernel = _parsed(path, source)
    try:
        for case in workload.cases:
            plan = kernel.plan(workload, case, device)
    except EvoError as error:
        raise WorkloadError(f"{path}: {error}") from None
    _check_signature(path, kernel, workload, plan.launches)


def _parsed(path: Path, source: str) -> Kernel:
    try:
        return parse(source)
    except EvoError as error:
        raise WorkloadError(f"{path}: {error}") from None


def _check_signature(path: Path, kernel: Kernel, workload: Workload, launches: tuple[Launch, ...]) -> None:
    """Pointers where buffers are passed, none where scalars are, `const` where inputs are."""
    functions = {function.name: function for function in kernel.functions}
    by_name = {parameter.name: parameter for parameter in workload.parameters}
    for launch in launches:
        if launch.kernel not in functions:
            continue
        for argument, text in zip(launch.args, functions[launch.kernel].parameters, strict=True):
            parameter = by_name.get(argument) if isinstance(argument, str) else None
            scalar = isinstance(argument, int) or (parameter is not None and parameter.direction is Direction.SCALAR)
            pointer = "*" in text or "[" in text
            where = f"{path}, kernel {launch.kernel!r}"
            if scalar == pointer:
                wanted = "a value" if scalar else "a pointer"
                raise WorkloadError(f"{where}: expected {wanted} for {argument!r}, found the parameter {text!r}")
            if parameter is not None and parameter.direction is Direction.IN and "const" not in text.split():
                raise WorkloadError(f"{where}: expected a const pointer for the input {argument!r}, found {text!r}")
