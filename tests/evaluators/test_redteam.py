"""Kernels that cheat and honest kernels that look odd, on the host device: each gets the verdict that it deserves."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from evaluators import nvrtc, redteam
from evaluators.builder import request
from evaluators.host import HostDevice
from evaluators.hostlib import jobs
from evaluators.redteam import Court, Sample
from evo import kernel as kernels
from evo import sandbox
from evo.errors import HeaderError, WorkloadError
from evo.records import CompileRequest, Device, Evaluation, Launch, Status
from tests.support import corpus

confined = pytest.mark.skipif(sandbox.available() != "", reason=f"no sandbox: {sandbox.available()}")

SAMPLES = redteam.samples()
HERE = [sample for sample in SAMPLES if not sample.spared("host")]
CHEATS = [sample for sample in HERE if not sample.honest and sample.screened]
HONEST = [sample for sample in HERE if sample.honest]
HOPPER = Device("cuda", "H200", "H200", "sm_90a", num_sms=132, max_shared_bytes=227 << 10, l2_bytes=50 << 20)


@pytest.fixture(scope="module")
def court() -> Iterator[Court]:
    made = Court(HostDevice())
    yield made
    made.close()


def params(samples: list[Sample]) -> list[object]:
    marks = {True: [pytest.mark.long], False: []}
    return [pytest.param(sample, id=sample.name, marks=marks[sample.long]) for sample in samples]


def named(name: str) -> Sample:
    return next(sample for sample in SAMPLES if sample.name == name)


@confined
@pytest.mark.parametrize("sample", params(CHEATS))
def test_a_kernel_that_cheats_gets_its_status_and_is_told_what_is_wrong(court: Court, sample: Sample) -> None:
    assert redteam.fault(sample, court.judge(sample), "host") == ""


@confined
@pytest.mark.parametrize("sample", params([sample for sample in CHEATS if sample.twin]))
def test_a_kernel_that_remembers_gains_nothing_even_where_no_checker_looks(court: Court, sample: Sample) -> None:
    assert court.unfair_gain(sample) == ""


@confined
@pytest.mark.parametrize("sample", params(HONEST))
def test_an_honest_kernel_passes_however_odd_it_looks(court: Court, sample: Sample) -> None:
    verdict = court.judge(sample)
    assert redteam.fault(sample, verdict, "host") == ""
    assert verdict.screen == "passed"


@confined
def test_a_kernel_that_can_count_its_launches_cannot_tell_which_is_the_last(court: Court) -> None:
    verdict = court.judge(named("counts_beside_threads"), redteam.UNSCREENED)
    assert (verdict.status, verdict.stage) == (Status.WRONG_ANSWER, "time")


@confined
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


# --- compiled for a GPU that is not here --------------------------------------------------------------------------


def requests(sample: Sample) -> list[CompileRequest]:
    """Every distinct program of a kernel; raises `HeaderError`."""
    kernel = kernels.parse(sample.source)
    whole = redteam.workload(sample.workload)
    plans = [kernel.plan(whole, case, HOPPER) for case in whole.cases]
    programs = {(str(plan.defines), plan.options): plan for plan in plans}
    return [request(kernel, plan, HOPPER.arch) for plan in programs.values()]


@pytest.mark.skipif(not nvrtc.available(), reason="NVRTC is not installed (extra `nvrtc`)")
@pytest.mark.parametrize("sample", [s for s in SAMPLES if not s.spared("cuda")], ids=lambda sample: sample.name)
def test_a_kernel_for_a_gpu_compiles_or_fails_as_it_says(sample: Sample) -> None:
    expected = set(sample.statuses("cuda"))
    try:
        found = {nvrtc.compile(made, cubin=True).status for made in requests(sample)}
    except HeaderError:
        found = {Status.BAD_LAUNCH}
    failed = found - {Status.OK}
    assert failed <= expected
    if not failed:
        assert expected != {Status.COMPILE_ERROR}, "it compiles, and should not"


# --- the folder -------------------------------------------------------------------------------------------------


def test_every_kernel_has_a_name_of_its_own() -> None:
    names = [sample.name for sample in SAMPLES]
    assert len(names) == len(set(names))


def test_every_twin_is_honest_and_computes_the_same() -> None:
    for sample in SAMPLES:
        if sample.twin:
            twin = redteam.twin(sample)
            assert (twin.honest, twin.workload) == (True, sample.workload)


def test_attacks_on_one_device_are_for_it_alone() -> None:
    assert named("fork").spared("cuda") == "for host only"
    assert named("traps").spared("host") == "for cuda only"
    assert named("zeros").spared("host") == named("zeros").spared("cuda") == ""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("// Trick: a\n// Tirck: b\n", "did you mean 'Trick'"),
        ("// Workload: gemm\n", "expected one of"),
        ("// Trick: a\n// Honest: b\n", "expected one of"),
        ("// Trick: a\n// Workload on cuda: scan\n", "the same on every device"),
        ("// Trick: a\n// Gains: much over kahan\n", "expected `Gains"),
    ],
)
def test_wrong_keys_are_refused(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "odd.cu").write_text(text)
    with pytest.raises(WorkloadError, match=message):
        redteam.load(tmp_path / "odd.cu")


def test_a_status_may_be_another_on_one_device(tmp_path: Path) -> None:
    (tmp_path / "odd.cu").write_text("// Trick: a\n// Workload: gemm\n// Status: crash\n// Status on cuda: unsafe\n")
    sample = redteam.load(tmp_path / "odd.cu")
    assert (sample.statuses("host"), sample.statuses("cuda")) == ((Status.CRASH,), (Status.UNSAFE,))


OK = Evaluation(1, Status.OK, score_us=1.0)
WRONG = Evaluation(1, Status.WRONG_ANSWER, message="output C: all are wrong")
HIDDEN = "a hidden case fails: an output is wrong"


@pytest.mark.parametrize(
    ("name", "verdict", "found"),
    [
        ("zeros", OK, "expected wrong_answer, found ok"),
        ("zeros", WRONG, "expected words of the message"),
        ("kahan", WRONG, "expected ok, found wrong_answer: output C"),
        ("kahan", Evaluation(1, Status.OK), "do not go with the status"),
        ("shown_sizes_only", WRONG, "expected words of the message: 'hidden case'"),
        ("shown_sizes_only", Evaluation(1, Status.WRONG_ANSWER, message=f"{HIDDEN} at K = 2049"), "tells of a hidden"),
        ("tuned_wrong", OK, "expected the configuration"),
    ],
)
def test_a_verdict_that_is_not_as_expected_is_a_fault(name: str, verdict: Evaluation, found: str) -> None:
    assert found in redteam.fault(named(name), verdict, "host")


def test_every_trick_of_the_list_is_there() -> None:
    names = {sample.name for sample in CHEATS}
    assert {"output_untouched", "zeros", "mean", "input_copied", "first_launch_only", "cached_in_global",
            "beyond_the_end", "reads_beyond", "input_as_scratch", "no_tail", "no_last_tile", "shown_sizes_only",
            "tf32_inputs", "half_accumulator", "nans", "small_terms_dropped", "race_missing_barrier",
            "shared_not_initialised", "never_ends", "grid_too_small", "threads_1025", "grid_negative",
            "shared_of_a_megabyte", "orders_in_comments", "index_of_16_bits", "aligned_to_512"} <= names  # fmt: skip
    assert len(HONEST) >= 15
