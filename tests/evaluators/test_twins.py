"""Kernels that are one program, however they are written, and kernels that are not."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from evaluators import nvrtc, twins
from evaluators.host import HostDevice
from evo import sandbox
from evo.records import Binary, CompileRequest, Device, Status
from tests.support import scale

pytestmark = pytest.mark.skipif(sandbox.available() != "", reason=f"no sandbox: {sandbox.available()}")

GPU = Device("cuda", "NVIDIA H200", "gpu-1", "sm_90a", 132, 1024, 232448, 50 << 20, 65536)
WORKLOAD = scale.workload()
KERNEL = scale.kernel()
BODY = "if (i < N) y[i] = 2.0f * x[i];"

SAME = {
    "renamed": KERNEL.replace("int i =", "int where =").replace("[i]", "[where]").replace("(i <", "(where <"),
    "spelt otherwise": KERNEL.replace(BODY, "if (N > i) { y[i] = x[i] * 2.0f; }"),
    "with a function": KERNEL.replace(BODY, "if (i < N) y[i] = twice(x[i]);").replace(
        'extern "C"', "__device__ __forceinline__ static float twice(float v) { return v + v; }\nextern \"C\"", 1
    ),
}  # fmt: skip
OTHER = {
    "another factor": KERNEL.replace("2.0f", "3.0f"),
    "another tunable": KERNEL.replace(scale.HEADER, scale.HEADER.replace("64, ", "", 1)),
}

ELSEWHERE = KERNEL.replace("2.0f", "(BX == 32 ? 2.0f : 3.0f)")
"""The same program under its defaults, and another one under every other configuration."""

Compile = Callable[[CompileRequest], Binary]


def gpu(request: CompileRequest) -> Binary:
    return nvrtc.compile(request, cubin=True)


DEVICES = [
    pytest.param(HostDevice().describe(), HostDevice().compile, id="host"),
    pytest.param(GPU, gpu, id="gpu", marks=pytest.mark.skipif(not nvrtc.available(), reason="NVRTC is missing")),
]


@pytest.mark.parametrize("written", SAME)
@pytest.mark.parametrize(("device", "compile"), DEVICES)
def test_one_program_is_one_however_it_is_written(device: Device, compile: Compile, written: str) -> None:
    other = SAME[written]
    assert other != KERNEL
    first = twins.digest(KERNEL, WORKLOAD, device, compile)
    assert first
    assert twins.digest(other, WORKLOAD, device, compile) == first
    assert twins.alike(KERNEL, other, WORKLOAD, device, compile)


@pytest.mark.parametrize("written", OTHER)
@pytest.mark.parametrize(("device", "compile"), DEVICES)
def test_what_differs_in_code_or_launch_is_not_alike(device: Device, compile: Compile, written: str) -> None:
    other = OTHER[written]
    assert other != KERNEL
    assert not twins.alike(KERNEL, other, WORKLOAD, device, compile)


@pytest.mark.parametrize(("device", "compile"), DEVICES)
def test_every_configuration_counts(device: Device, compile: Compile) -> None:
    digests = {twins.digest(source, WORKLOAD, device, compile) for source in (KERNEL, ELSEWHERE)}
    assert len(digests) == 1
    assert not twins.alike(KERNEL, ELSEWHERE, WORKLOAD, device, compile)


def test_nothing_is_said_where_nothing_is_known() -> None:
    device = HostDevice().describe()
    assert twins.digest("no kernel at all", WORKLOAD, device, HostDevice().compile) == ""
    assert twins.digest(KERNEL.replace("2.0f", "nothing"), WORKLOAD, device, HostDevice().compile) == ""
    odd = Binary(Status.OK, "key", b"no program of a known form")
    assert twins.digest(KERNEL, WORKLOAD, device, lambda request: odd) == ""
    assert not twins.alike(KERNEL, KERNEL, WORKLOAD, device, lambda request: odd)


def test_kernels_with_more_programs_than_are_worth_it_are_never_alike() -> None:
    values = ", ".join(str(number) for number in range(50))
    many = KERNEL.replace("tune: {", f"tune: {{A: [{values}], B: [1, 2], ")
    many = many.replace("defaults: {", "defaults: {A: 0, B: 1, ")
    assert many != KERNEL
    asked: list[CompileRequest] = []

    def count(request: CompileRequest) -> Binary:
        asked.append(request)
        return Binary(Status.OK, "key", b"")

    assert not twins.alike(many, many, WORKLOAD, HostDevice().describe(), count)
    assert asked == []
