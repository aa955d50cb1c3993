"""The checker flags every fault of the corpus at its line, and no right kernel."""

from __future__ import annotations

from pathlib import Path

import pytest

from evo.records import Status
from tests.support.answers import ANSWERS, differences
from tests.support.corpus import Sample, run_sample, samples

RIGHT = samples("right")
FAULTY = samples("faulty")


def test_the_corpus_is_large_enough_and_complete() -> None:
    assert len(FAULTY) >= 22
    assert {sample.name for sample in RIGHT} == set(ANSWERS)
    assert all(sample.fault is not None for sample in FAULTY)


@pytest.mark.parametrize("sample", FAULTY, ids=lambda sample: sample.name)
def test_a_faulty_kernel_is_flagged_at_its_line(sample: Sample, tmp_path: Path) -> None:
    result = run_sample(sample, "check", tmp_path).result
    assert sample.fault is not None
    kind, line = sample.fault
    found = [(finding.kind, place) for finding in result.findings for place in (finding.line, finding.other_line)]
    assert (kind, line) in found, result.message
    assert result.status is not Status.OK
    assert f"line {line}" in result.message


@pytest.mark.parametrize("sample", RIGHT, ids=lambda sample: sample.name)
@pytest.mark.parametrize("flavour", ["plain", "check"])
def test_a_right_kernel_passes_with_the_right_answer(sample: Sample, flavour: str, tmp_path: Path) -> None:
    ran = run_sample(sample, flavour, tmp_path)
    assert ran.result.status is Status.OK, ran.result.message
    assert ran.result.findings == ()
    assert differences(sample.name, sample.arrays, ran.outputs) == []


@pytest.mark.parametrize("sample", RIGHT, ids=lambda sample: sample.name)
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
