"""Kernels that cheat and honest kernels that look odd, on the host device: each gets the verdict that it deserves."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from evaluators.hidden import told
from evaluators.hostlib import jobs
from evo import sandbox
from evo.records import Case, Evaluation, Launch, Role, Status
from tests.support import corpus, redteam
from tests.support.redteam import Court, Sample

pytestmark = pytest.mark.skipif(sandbox.available() != "", reason=f"no sandbox: {sandbox.available()}")

CHEATS = redteam.cheats()
HONEST = redteam.honest()


@pytest.fixture(scope="module")
def court() -> Iterator[Court]:
    made = Court()
    yield made
    made.close()


def params(samples: list[Sample]) -> list[object]:
    marks = {True: [pytest.mark.long], False: []}
    return [pytest.param(sample, id=sample.name, marks=marks[sample.long]) for sample in samples]


def everything_told(verdict: Evaluation) -> str:
    results = "".join(result.message for result in verdict.cases)
    return f"{verdict.message} {verdict.findings} {results} {verdict.doubts}"


@pytest.mark.parametrize("sample", params(CHEATS))
def test_a_kernel_that_cheats_gets_its_status_and_is_told_what_is_wrong(court: Court, sample: Sample) -> None:
    verdict = court.judge(sample)
    assert verdict.status in sample.statuses, verdict.message
    assert sample.says in verdict.message
    assert (verdict.message == "") == (verdict.status is Status.OK)
    assert (verdict.score_us is None) == (verdict.status is not Status.OK)
    if sample.hidden:
        assert "hidden case" in verdict.message
        assert_nothing_hidden_is_told(sample, verdict)
    if sample.config:
        timed = [result for result in verdict.cases if result.role is Role.PERFORMANCE]
        assert timed
        assert all(result.config == sample.config for result in timed)


def assert_nothing_hidden_is_told(sample: Sample, verdict: Evaluation) -> None:
    always = told(Case("", Role.HIDDEN, {}), verdict.status, "")  # its words are also names of cases, as "prime" is
    words = set(re.findall(r"\w+", everything_told(verdict))) - set(re.findall(r"\w+", always))
    lines = sample.source.count("\n")  # a line of the kernel may be told, and be the same number as a size
    for case in redteam.workload(sample.workload).role(Role.HIDDEN):
        secrets = {str(value) for value in case.dims.values() if value > lines} | {case.name}
        assert not secrets & words


@pytest.mark.parametrize("sample", params([sample for sample in CHEATS if sample.twin]))
def test_a_kernel_that_remembers_gains_nothing_even_where_no_checker_looks(court: Court, sample: Sample) -> None:
    verdict = court.judge(sample, redteam.UNSCREENED)
    twin = court.judge(redteam.load(redteam.FOLDER / "honest" / f"{sample.twin}.cu"), redteam.UNSCREENED)
    assert twin.status is Status.OK
    if verdict.status is Status.OK:
        assert verdict.ratio is not None
        assert twin.ratio is not None
        assert verdict.ratio > twin.ratio / 3, "what they save is a factor of ten and more"
    else:
        assert verdict.status in (Status.WRONG_ANSWER, Status.UNSAFE)


@pytest.mark.parametrize("sample", params(HONEST))
def test_an_honest_kernel_passes_however_odd_it_looks(court: Court, sample: Sample) -> None:
    verdict = court.judge(sample)
    assert (verdict.status, verdict.message) == (Status.OK, "")
    assert verdict.screen == "passed"
    assert verdict.findings == ()


def test_a_kernel_that_can_count_its_launches_cannot_tell_which_is_the_last(court: Court) -> None:
    sample = next(sample for sample in CHEATS if sample.name == "counts_beside_threads")
    verdict = court.judge(sample, redteam.UNSCREENED)
    assert (verdict.status, verdict.stage) == (Status.WRONG_ANSWER, "time")


@pytest.mark.parametrize("flavour", ["plain", "check"])
def test_a_kernel_that_never_ends_is_told_its_line_on_a_busy_machine_too(
    flavour: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "_GRACE_S", -19.5)  # the parent's clock runs out long before 20 s of CPU time
    source = 'extern "C" __global__ void spin(float* out) {\n    volatile int on = 1;\n    while (on) {}\n}\n'
    launch = Launch("spin", (1, 1, 1), (32, 1, 1), 0, ("out",))
    out = {"out": np.zeros(4, np.float32)}
    ran = corpus.run(source, [launch], out, {"out": "out"}, tmp_path, flavour, timeout_s=20.0)
    assert ran.result.status is Status.TIMEOUT
    assert "line 3: not finished in time: block (0,0,0), thread (0,0,0)" in ran.result.message


def test_every_trick_of_the_list_is_there() -> None:
    names = {sample.name for sample in CHEATS}
    assert {"output_untouched", "zeros", "mean", "input_copied", "first_launch_only", "cached_in_global",
            "beyond_the_end", "reads_beyond", "input_as_scratch", "no_tail", "no_last_tile", "shown_sizes_only",
            "tf32_inputs", "half_accumulator", "nans", "small_terms_dropped", "race_missing_barrier",
            "shared_not_initialised", "never_ends", "grid_too_small", "threads_1025", "grid_negative",
            "shared_of_a_megabyte", "orders_in_comments", "index_of_16_bits", "aligned_to_512"} <= names  # fmt: skip
    assert len(HONEST) >= 15
