"""The checker flags every fault of the corpus at its line, and no right kernel; advice stops nobody."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from evo.records import JobResult, Launch, Status
from tests.support.answers import ANSWERS, differences
from tests.support.corpus import Sample, run, run_sample, samples

RIGHT = samples("right")
FAULTY = samples("faulty")
ADVICE = samples("advice")


def test_the_corpus_is_large_enough_and_complete() -> None:
    assert len(FAULTY) >= 22
    assert {sample.name for sample in RIGHT + ADVICE} == set(ANSWERS)
    assert all(len(sample.marks) == 1 for sample in FAULTY)
    assert all(sample.marks for sample in ADVICE)
    assert not any(sample.marks for sample in RIGHT)


@pytest.mark.parametrize("sample", FAULTY, ids=lambda sample: sample.name)
def test_a_faulty_kernel_is_flagged_at_its_line(sample: Sample, tmp_path: Path) -> None:
    result = run_sample(sample, "check", tmp_path).result
    kind, line = sample.marks[0]
    found = [(finding.kind, place) for finding in result.findings for place in (finding.line, finding.other_line)]
    assert (kind, line) in found, result.message
    assert result.status is not Status.OK
    assert f"line {line}" in result.message
    assert not result.findings[0].advice


@pytest.mark.parametrize("sample", RIGHT, ids=lambda sample: sample.name)
@pytest.mark.parametrize("flavour", ["plain", "check"])
def test_a_right_kernel_passes_with_the_right_answer(sample: Sample, flavour: str, tmp_path: Path) -> None:
    ran = run_sample(sample, flavour, tmp_path)
    assert ran.result.status is Status.OK, ran.result.message
    assert ran.result.findings == ()
    assert differences(sample.name, sample.arrays, ran.outputs) == []


@pytest.mark.parametrize("sample", ADVICE, ids=lambda sample: sample.name)
@pytest.mark.parametrize("flavour", ["plain", "check"])
def test_a_kernel_that_is_advised_passes_with_the_right_answer(sample: Sample, flavour: str, tmp_path: Path) -> None:
    ran = run_sample(sample, flavour, tmp_path)
    assert (ran.result.status, ran.result.message) == (Status.OK, "")
    assert [(finding.kind, finding.line) for finding in ran.result.findings] == list(sample.marks)
    assert all(finding.advice for finding in ran.result.findings)
    assert differences(sample.name, sample.arrays, ran.outputs) == []


def test_advice_says_block_thread_and_line_and_where_it_is_undefined(tmp_path: Path) -> None:
    sample = next(sample for sample in ADVICE if sample.name == "barrier_after_return")
    [finding] = run_sample(sample, "check", tmp_path).result.findings
    assert "block (0,0,0): 28 of 128 threads" in finding.message
    assert f"barrier of line {sample.marks[0][1]} (first: thread (100,0,0))" in finding.message
    assert "undefined before" in finding.message


RACE_AFTER_RETURN = """\
extern "C" __global__ void race(const float* x, float* y, int n) {
    __shared__ float s[128];
    const int i = threadIdx.x;
    if (i >= n) return;
    s[i] = 0.0f;
    ADVISED
    s[i] = x[i];
    if (i == 0) y[0] = s[n - 1];
}
"""


def after_return(between: str, folder: Path, flavour: str = "check") -> JobResult:
    source = RACE_AFTER_RETURN.replace("ADVISED", between)
    arrays = {"x": np.arange(128, dtype="f4"), "y": np.zeros(1, "f4")}
    launches = (Launch("race", (1, 1, 1), (128, 1, 1), 0, ("x", "y", 100)),)
    return run(source, launches, arrays, {"x": "in", "y": "out"}, folder, flavour).result


def test_a_fault_beside_advice_is_a_fault_and_named_first(tmp_path: Path) -> None:
    result = after_return("__syncthreads();", tmp_path)
    assert result.status is Status.UNSAFE
    assert result.message.startswith("line 8: data race in shared memory")
    assert "line 6: advice: " in result.message
    assert [finding.advice for finding in result.findings] == sorted(finding.advice for finding in result.findings)


def test_no_amount_of_advice_hides_a_fault(tmp_path: Path) -> None:
    # More places than the program keeps findings for, each advised before the race is met.
    result = after_return("\n".join(["__syncthreads();"] * 100), tmp_path)
    assert result.status is Status.UNSAFE
    assert "race-shared" in {finding.kind for finding in result.findings}


def test_threads_that_wait_at_different_barriers_diverge_though_others_have_left(tmp_path: Path) -> None:
    result = after_return("if (i < 32) __syncthreads();\nelse\n__syncthreads();", tmp_path)
    assert result.status is Status.UNSAFE
    assert "divergence" in {finding.kind for finding in result.findings if not finding.advice}


def test_who_waits_for_running_threads_that_wait_elsewhere_diverges_though_others_have_left(tmp_path: Path) -> None:
    result = after_return("if (i < 16) __syncthreads(); else if (i < 32) __syncwarp();", tmp_path)
    assert result.status is Status.UNSAFE
    assert "can never go on" in result.message
    assert [finding.kind for finding in result.findings] == ["divergence"]


def test_advice_does_not_keep_the_zone_behind_a_buffer_from_being_looked_at(tmp_path: Path) -> None:
    # The plain flavour has no other witness of a write so near.
    result = after_return("__syncthreads(); y[1] = 1.0f;", tmp_path, "plain")
    assert result.status is Status.UNSAFE
    assert "out-of-bounds" in {finding.kind for finding in result.findings}


@pytest.mark.parametrize("sample", RIGHT + ADVICE, ids=lambda sample: sample.name)
def test_the_order_of_blocks_and_warps_changes_no_verdict(sample: Sample, tmp_path: Path) -> None:
    for seed in (1, 12345):
        ran = run_sample(sample, "check", tmp_path, seed=seed)
        assert ran.result.status is Status.OK, ran.result.message
        assert differences(sample.name, sample.arrays, ran.outputs) == []


def test_a_finding_says_block_thread_variable_and_line(tmp_path: Path) -> None:
    sample = next(sample for sample in FAULTY if sample.name == "barrier_missing_after_read")
    message = run_sample(sample, "check", tmp_path).result.message
    assert "data race in shared memory: block (0,0,0), thread (" in message
    assert "writes a at byte" in message
    assert "with no barrier in between" in message
