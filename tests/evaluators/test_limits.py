"""A timed case is held against its device's peaks: what is too fast is looked at again."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from evaluators.evaluator import Evaluator
from evo.config import Timing
from evo.records import CaseResult, Evaluation, Role, Status
from tests.support import scale
from tests.support.numpy_device import NumpyDevice
from tests.support.peaked_device import UNKNOWN, PeakedDevice

Judge = Callable[..., Evaluation]


@pytest.fixture
def judge() -> Judge:
    """Judge a kernel in a fresh child, with fields of the workload changed."""

    def judged(behaviour: str, *, candidate: int = 1, cold: bool = True, anchor: str = "ok", **changes: object):
        timing = Timing(warmup=2, launches=10, cold=cold)
        setup = scale.setup(workload=scale.workload(**changes), timing=timing, anchor=scale.kernel(anchor))
        with Evaluator(PeakedDevice(), setup) as evaluator:
            return evaluator.evaluate(candidate, scale.kernel(behaviour))

    return judged


def large(verdict: Evaluation) -> CaseResult:
    return next(result for result in verdict.cases if result.case == "large")


def doubts(result: CaseResult) -> str:
    assert result.latency is not None
    return " ".join(result.latency.doubts)


def test_a_case_has_its_floor_its_share_of_the_peak_and_the_side_that_binds(judge: Judge) -> None:
    result = large(judge("ok", candidate=2))
    assert result.roofline is not None
    assert result.roofline.floor_us == pytest.approx(2000.0)
    assert result.roofline.memory == result.roofline.efficiency == pytest.approx(2500.0 / 2920.0)
    assert result.roofline.binds == "memory"
    assert "roofline" not in doubts(result)


def test_right_on_unseen_data_and_still_too_fast_is_a_doubt(judge: Judge) -> None:
    verdict = judge("hurries")
    assert verdict.status is Status.OK
    assert "faster than the roofline allows: 1460 µs is 73% of the 2000 µs" in doubts(large(verdict))
    assert large(verdict).roofline is not None


def test_wrong_on_unseen_data_is_unsafe(judge: Judge) -> None:
    verdict = judge("recites")
    assert (verdict.status, verdict.stage, verdict.score_us) == (Status.UNSAFE, "time", None)
    assert "faster than the roofline allows, and on data that it had not seen: output y" in verdict.message


def test_slower_on_unseen_data_gets_that_latency(judge: Judge) -> None:
    result = large(judge("remembers"))
    assert result.latency is not None
    assert result.latency.median_us == pytest.approx(2920.0)
    assert "on data that it had seen, 1460 µs" in doubts(result)


def test_too_fast_is_unsafe_at_once_where_the_workload_certifies_its_floor(judge: Judge) -> None:
    verdict = judge("hurries", certified_floor=True)
    assert (verdict.status, verdict.stage) == (Status.UNSAFE, "time")
    assert "1460 µs is less than the 2000 µs that this device's peaks allow" in verdict.message
    assert judge("ok", certified_floor=True).status is Status.OK


def test_a_floor_that_the_first_kernel_breaks_blames_the_workload(judge: Judge) -> None:
    verdict = judge("hurries", anchor="hurries", certified_floor=True)
    assert verdict.status is Status.OK
    assert "correct flops and bytes_moved of workload.yaml" in doubts(large(verdict))


def test_a_hot_measurement_has_no_floor_of_memory(judge: Judge) -> None:
    result = large(judge("hurries", cold=False))
    assert doubts(result) == ""
    assert result.roofline is not None
    assert (result.roofline.floor_us, result.roofline.memory) == (0.0, None)


def test_the_first_kernel_alone_hears_that_a_case_is_too_short(judge: Judge) -> None:
    first = judge("ok", candidate=0)
    told = {result.case: doubts(result) for result in first.cases if result.role is Role.PERFORMANCE}
    assert "the first kernel takes 1640 µs and an empty one 400 µs" in told["other"]
    assert "too short" not in told["large"]
    assert all("too short" not in doubts(r) for r in judge("ok").cases if r.role is Role.PERFORMANCE)


def test_a_case_that_is_too_short_is_bound_by_launching(judge: Judge) -> None:
    other = next(result for result in judge("ok").cases if result.case == "other")
    assert other.roofline is not None
    assert other.roofline.binds == "latency"


def test_peaks_that_cannot_be_measured_are_a_doubt_of_the_first_kernel(
    judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(UNKNOWN, "1")
    first = judge("ok", candidate=0)
    assert "no efficiency is told: the GPU is busy" in first.doubts
    roofline = large(first).roofline
    assert roofline is not None
    assert (roofline.floor_us, roofline.efficiency, roofline.binds) == (pytest.approx(2000.0), None, "")
    assert "efficiency" not in str(judge("ok", candidate=3).doubts)


def test_a_device_without_peaks_has_no_roofline() -> None:
    with Evaluator(NumpyDevice(), scale.setup()) as evaluator:
        verdict = evaluator.evaluate(0, scale.kernel("fast"))
    assert verdict.status is Status.OK
    assert all(result.roofline is None for result in verdict.cases)
    assert all("roofline" not in doubts(result) for result in verdict.cases if result.latency)
