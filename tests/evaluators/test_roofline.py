"""Floors, shares and which side binds, by numbers alone."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluators import roofline
from evaluators.roofline import Work
from evo import workload as workloads
from evo.records import Device, Direction, Parameter, Peaks, Role
from tests.support import scale

THEORY = Peaks(4.9e12, 67e12, 535e12, 1070e12, 1070e12)
MEASURED = Peaks(4.2e12, 60e12, 400e12, 800e12, 800e12)
H200 = Device("cuda", "NVIDIA H200", "gpu-1", "sm_90a", 132, l2_bytes=50 << 20, peaks=THEORY)
GIB = 1 << 30
MATRIX = Work(flops=2 * 4096**3, nbytes=3 * 4 * 4096**2, dtype="float32")


def test_what_may_stay_in_the_cache_is_no_traffic() -> None:
    assert roofline.floor_us(Work(0, H200.l2_bytes, "float32"), H200) == 0
    beyond = Work(0, H200.l2_bytes + 49_000_000, "float32")
    assert roofline.floor_us(beyond, H200) == pytest.approx(10.0)


def test_the_fastest_unit_that_has_the_precision_gives_the_floor_of_arithmetic() -> None:
    flops = 535_000_000
    assert roofline.floor_us(Work(flops, 0, "float32"), H200) == pytest.approx(1.0)
    assert roofline.floor_us(Work(2 * flops, 0, "float16"), H200) == pytest.approx(1.0)
    assert roofline.floor_us(Work(flops, 0, "float64"), H200) == 0
    assert roofline.floor_us(Work(flops, 0, ""), H200) == 0


def test_the_higher_of_both_floors_counts() -> None:
    both = Work(535_000_000, H200.l2_bytes + 49_000_000, "float32")
    assert roofline.floor_us(both, H200) == pytest.approx(10.0)
    assert roofline.floor_us(dataclasses.replace(both, flops=100 * both.flops), H200) == pytest.approx(100.0)


def test_a_device_without_peaks_has_no_floor() -> None:
    assert roofline.floor_us(MATRIX, dataclasses.replace(H200, peaks=None)) == 0
    assert roofline.floor_us(MATRIX, dataclasses.replace(H200, peaks=Peaks())) == 0


@pytest.mark.parametrize(("share", "fast"), [(0.949, True), (0.951, False), (1.2, False)])
def test_too_fast_is_below_95_percent_of_the_floor(share: float, fast: bool) -> None:
    assert roofline.too_fast(share * 300.0, 300.0) is fast


def test_nothing_is_too_fast_without_a_floor() -> None:
    assert not roofline.too_fast(0.1, 0.0)


def placed(work: Work, latency_us: float, *, tensor: bool = False, empty_us: float = 2.8):
    return roofline.place(work, latency_us, 1.0, MEASURED, tensor=tensor, empty_us=empty_us)


def test_the_side_that_is_nearest_its_peak_binds() -> None:
    copy = placed(Work(GIB // 8, GIB, "float32"), 320.0)
    assert (copy.binds, copy.unit) == ("memory", "fp32")
    assert copy.efficiency == copy.memory == pytest.approx(GIB / 4.2e12 / 320e-6)
    product = placed(MATRIX, 2700.0)
    assert product.binds == "fp32"
    assert product.efficiency == product.compute == pytest.approx(2 * 4096**3 / 60e12 / 2700e-6)


def test_a_kernel_on_tensor_cores_is_measured_by_them() -> None:
    assert placed(MATRIX, 500.0, tensor=True).unit == "tf32"
    assert placed(dataclasses.replace(MATRIX, dtype="float16"), 500.0, tensor=True).unit == "fp16"
    assert placed(dataclasses.replace(MATRIX, dtype="float16"), 5000.0).unit == "fp32"


def test_efficiency_may_exceed_1() -> None:
    efficiency = placed(Work(0, GIB, "float32"), 200.0).efficiency
    assert efficiency is not None
    assert efficiency > 1


def test_below_five_times_an_empty_kernel_launching_binds() -> None:
    tiny = Work(1000, 80_000, "float32")
    assert placed(tiny, 13.9).binds == "latency"
    assert placed(tiny, 14.1).binds == "memory"
    assert placed(tiny, 13.9, empty_us=0.0).binds == "memory"


def test_without_arithmetic_to_count_there_is_no_unit() -> None:
    histogram = placed(Work(10**6, GIB, ""), 300.0)
    assert (histogram.unit, histogram.compute, histogram.binds) == ("", None, "memory")


def test_a_hot_case_without_arithmetic_has_nothing_to_be_near_to() -> None:
    found = placed(Work(10**6, 0, ""), 300.0)
    assert (found.binds, found.efficiency) == ("", None)


def test_where_nobody_has_measured_there_is_a_floor_and_no_share() -> None:
    found = roofline.place(MATRIX, 300.0, 256.0, None, tensor=False, empty_us=2.8)
    assert (found.floor_us, found.binds, found.efficiency, found.memory) == (256.0, "", None, None)


@given(st.integers(0, 10**15), st.integers(0, 10**13), st.sampled_from(["", "float16", "float32", "float64"]))
def test_at_its_floor_nothing_is_too_fast_and_more_work_never_lowers_it(flops: int, nbytes: int, dtype: str) -> None:
    floor = roofline.floor_us(Work(flops, nbytes, dtype), H200)
    assert not roofline.too_fast(floor, floor)
    assert roofline.floor_us(Work(2 * flops, 2 * nbytes, dtype), H200) >= floor


def test_work_is_what_the_workload_counts() -> None:
    workload = scale.workload()
    case = next(case for case in workload.role(Role.PERFORMANCE) if case.name == "large")
    assert roofline.work(workload, case, cold=True) == Work(4096, 32768, "float32")
    assert roofline.work(workload, case, cold=False) == Work(4096, 0, "float32")


def test_bytes_among_the_inputs_leave_arithmetic_unbounded() -> None:
    quantised = Parameter("w", "int8", Direction.IN, ("N",))
    workload = scale.workload()
    workload = dataclasses.replace(workload, parameters=(quantised, *workload.parameters))
    assert roofline.work(workload, workload.cases[0], cold=True).dtype == ""


@pytest.mark.parametrize("name", workloads.names())
def test_every_shipped_workload_has_a_floor_that_theory_allows(name: str) -> None:
    workload = workloads.load(name)
    for case in workload.role(Role.PERFORMANCE):
        floor = roofline.floor_us(roofline.work(workload, case, cold=True), H200)
        assert 0 <= floor < 100_000


def test_a_short_case_is_told_what_to_do() -> None:
    (told,) = roofline.short_doubt(6.1, 2.8)
    assert "takes 6.1 µs and an empty one 2.8 µs" in told
    assert "until it takes 14 µs or more" in told
    assert roofline.short_doubt(14.1, 2.8) == roofline.short_doubt(None, 2.8) == roofline.short_doubt(1.0, 0.0) == ()
