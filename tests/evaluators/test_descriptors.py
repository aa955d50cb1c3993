from __future__ import annotations

import pytest

from evaluators import descriptors
from evo import kernel as kernels
from evo.records import Device, Resources
from tests.support import scale

DEVICE = Device("numpy", "NumPy", "numpy-1", "any")


def describe(source: str, resources=None) -> dict[str, str]:
    workload, kernel = scale.workload(), kernels.parse(source)
    case = workload.cases[2]
    plan = kernel.plan(workload, case, DEVICE)
    return descriptors.describe(kernel, workload, case, plan, resources or {})


def with_body(text: str) -> str:
    return scale.kernel().replace("int i =", f"{text} int i =")


@pytest.mark.parametrize(
    ("source", "staging", "unit"),
    [
        (scale.kernel(), "direct", "scalar"),
        (with_body("// __shared__ wmma\n"), "direct", "scalar"),
        (with_body("__shared__ float tile[32];"), "shared", "scalar"),
        (with_body("__pipeline_memcpy_async(a, b, 16);"), "async", "scalar"),
        (with_body("wmma::fragment<int> f;"), "direct", "tensor"),
        (scale.kernel(header=scale.HEADER.replace("tune:", 'shared_bytes: "64"\ntune:')), "shared", "scalar"),
    ],
)
def test_staging_and_unit_are_read_from_code_and_plan(source, staging, unit):
    described = describe(source)
    assert (described["staging"], described["unit"]) == (staging, unit)


def test_static_shared_memory_is_seen_in_the_resources():
    assert describe(scale.kernel(), {"scale": Resources(static_shared_bytes=512)})["staging"] == "shared"


@pytest.mark.parametrize(("grid", "outputs"), [("ceildiv(N, BX)", "1"), ("ceildiv(N, 4 * BX)", "few"), ("1", "many")])
def test_outputs_per_thread_come_from_the_plan(grid, outputs):
    header = scale.HEADER.replace("ceildiv(N, BX)", grid)
    assert describe(scale.kernel(header=header))["outputs"] == outputs
