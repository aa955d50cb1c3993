from __future__ import annotations

import pickle
import re
from concurrent.futures import Future

import psutil
import pytest

from evaluators.device import Screened
from evaluators.evaluator import Evaluator
from evo import kernel as kernels
from evo import sandbox
from evo.records import Binary, CompileRequest, Finding, Role, Status, from_json, to_json
from tests.support import scale
from tests.support.numpy_device import NumpyDevice


@pytest.fixture(scope="module")
def evaluator():
    with Evaluator(NumpyDevice(), scale.setup()) as made:
        yield made


@pytest.fixture(scope="module")
def tuning_evaluator():
    with Evaluator(NumpyDevice(), scale.setup(trials=8)) as made:
        yield made


def results(evaluation, role):
    return [result for result in evaluation.cases if result.role is role]


def test_a_right_kernel_gets_a_score_a_ratio_and_a_latency_for_every_performance_case(evaluator):
    verdict = evaluator.evaluate(5, scale.kernel())
    assert (verdict.candidate, verdict.status, verdict.stage, verdict.message) == (5, Status.OK, "time", "")
    latencies = {result.case: result.latency.median_us for result in results(verdict, Role.PERFORMANCE)}
    assert latencies == {"large": pytest.approx(2920.0), "other": pytest.approx(1640.0)}
    assert verdict.score_us == pytest.approx((2920.0 * 1640.0) ** 0.5)
    assert verdict.ratio == pytest.approx(1.0)
    assert {result.case for result in results(verdict, Role.CORRECTNESS)} == {"small", "ragged"}
    assert all(result.error == 0 for result in verdict.cases)
    assert verdict.device == "numpy-1"
    assert verdict.resources["scale"].registers == 12
    assert verdict.descriptors == {"staging": "direct", "unit": "scalar", "outputs": "1"}
    assert {"header", "screen", "compile", "validate", "tune", "time"} == set(verdict.stage_seconds)
    assert verdict.screen == "skipped"


def test_the_ratio_is_to_the_anchor(evaluator):
    assert evaluator.evaluate(1, scale.kernel("fast")).ratio == pytest.approx(0.5)


def test_a_verdict_survives_json(evaluator):
    verdict = evaluator.evaluate(1, scale.kernel())
    assert from_json(type(verdict), to_json(verdict)) == verdict


@pytest.mark.parametrize(
    ("behaviour", "status", "stage", "words"),
    [
        ("compile_error", Status.COMPILE_ERROR, "compile", "line 9: expected ';'"),
        ("crash", Status.CRASH, "validate", "case 'small': the harness process died by SIGSEGV"),
        (
            "wrong",
            Status.WRONG_ANSWER,
            "validate",
            "case 'small': output y: 1 of 40 elements are wrong; the first is [3]",
        ),
        ("untouched", Status.WRONG_ANSWER, "validate", "No element was ever written: all 40"),
        ("no_tail", Status.WRONG_ANSWER, "validate", "8 of them were never written, the first of these is [32]"),
        ("changes_input", Status.UNSAFE, "validate", "the kernel changed its input x: element [5]"),
        ("order_dependent", Status.WRONG_ANSWER, "validate", "two launches on the same inputs gave different bits"),
        ("unsafe", Status.UNSAFE, "validate", "line 9: thread 5 writes element 40 of y"),
        ("link", Status.UNSAFE, "validate", "a buffer's file is not what the harness left"),
        ("short_file", Status.UNSAFE, "validate", "expected a file of 160 bytes, found 4"),
        ("liar", Status.UNSAFE, "time", "clock tampered"),
        ("wrong_when_timed_often", Status.WRONG_ANSWER, "time", "case 'large': output y"),
        ("drops_a_sample", Status.UNSAFE, "time", "the program spoilt its own report: expected"),
    ],
)
def test_a_bad_kernel_gets_its_status_its_stage_and_words(evaluator, behaviour, status, stage, words):
    verdict = evaluator.evaluate(1, scale.kernel(behaviour))
    assert (verdict.status, verdict.stage) == (status, stage)
    assert words in verdict.message
    assert verdict.score_us is None
    assert verdict.ratio is None
    assert evaluator.evaluate(2, scale.kernel()).status is Status.OK, "the next candidate must not be blamed"


@pytest.mark.parametrize(
    ("header", "words"),
    [
        ("", "launch header: expected a comment"),
        (scale.HEADER.replace('"BX"\n', '"BX * 64"\n', 1), "block.x from 1 to 1024, found 2048"),
        (scale.HEADER.replace("ceildiv(N, BX)", "N - 40", 1), "case 'small'"),
    ],
)
def test_a_bad_header_is_a_bad_launch(evaluator, header, words):
    verdict = evaluator.evaluate(1, scale.kernel(header=header))
    assert (verdict.status, verdict.stage) == (Status.BAD_LAUNCH, "header")
    assert words in verdict.message


@pytest.mark.parametrize(
    ("behaviour", "status"),
    [
        ("wrong_at_577", Status.WRONG_ANSWER),
        ("unsafe_at_577", Status.UNSAFE),
        ("compile_error_at_577", Status.COMPILE_ERROR),
    ],
)
def test_nothing_of_a_hidden_case_is_told(evaluator, behaviour, status):
    header = scale.HEADER.replace("defaults", "specialize: [N]\ndefaults")
    verdict = evaluator.evaluate(1, scale.kernel(behaviour, header).replace(", int N", ""))
    assert verdict.status is status
    told = verdict.message + str(verdict.findings) + "".join(result.message for result in verdict.cases)
    assert "a hidden case fails" in verdict.message
    assert "577" not in told
    assert "secret" not in told
    if status is Status.UNSAFE:
        assert "(line 9)" in verdict.message
        assert [finding.line for finding in verdict.findings] == [9]


def test_a_header_that_fails_on_a_hidden_case_does_not_tell_its_size(evaluator):
    verdict = evaluator.evaluate(1, scale.kernel(header=scale.HEADER.replace("tune:", 'require: ["N != 577"]\ntune:')))
    assert verdict.status is Status.BAD_LAUNCH
    assert "hidden case" in verdict.message
    assert "577" not in verdict.message


def test_what_screening_rejected_is_not_run(evaluator):
    screened = Screened(Status.UNSAFE, "line 3: race", state="rejected", seconds=0.5)
    verdict = evaluator.evaluate(3, scale.kernel("crash"), screened)
    assert (verdict.status, verdict.stage, verdict.message) == (Status.UNSAFE, "screen", "line 3: race")
    assert verdict.screen == "rejected"
    assert verdict.stage_seconds == {"screen": 0.5}


ADVICE = Finding("early-exit", "thread 5 leaves", line=9, advice=True)


def test_advice_of_the_screen_is_kept_whatever_the_verdict(evaluator):
    screened = Screened(Status.OK, findings=(ADVICE,), state="passed")
    assert evaluator.evaluate(1, scale.kernel(), screened).findings == (ADVICE,)
    failed = evaluator.evaluate(1, scale.kernel("unsafe"), screened)
    assert [(finding.kind, finding.advice) for finding in failed.findings] == [
        ("out-of-bounds", False),
        ("early-exit", True),
    ]


def test_advice_that_the_device_gives_again_is_kept_once(evaluator):
    screened = Screened(Status.OK, findings=(ADVICE,), state="passed")
    failed = evaluator.evaluate(1, scale.kernel("unsafe_with_advice"), screened)
    assert [finding.kind for finding in failed.findings] == ["out-of-bounds", "early-exit"]
    assert failed.findings[1] == ADVICE


def test_tuning_finds_the_best_configuration_of_each_case_and_writes_it_down(tuning_evaluator):
    verdict = tuning_evaluator.evaluate(1, scale.kernel())
    tuned = kernels.parse(verdict.source)
    assert tuned.config_for({"N": 4096}) == {"BX": 128}
    assert tuned.config_for({"N": 1000}) == {"BX": 64}
    assert tuned.config_for({"N": 577}) == {"BX": 32}
    assert {result.case: result.config for result in results(verdict, Role.PERFORMANCE)} == {
        "large": {"BX": 128},
        "other": {"BX": 64},
    }
    assert verdict.score_us == pytest.approx(1000.0)
    assert {(trial.case, trial.config["BX"]) for trial in verdict.trials} == {
        (case, bx) for case in ("large", "other") for bx in (32, 64, 96, 128)
    }


def test_a_configuration_that_is_wrong_on_another_case_does_not_win(tuning_evaluator):
    verdict = tuning_evaluator.evaluate(1, scale.kernel("wrong_at_bx_128"))
    assert verdict.status is Status.OK
    assert kernels.parse(verdict.source).config_for({"N": 4096}) == {"BX": 96}
    refused = [trial for trial in verdict.trials if trial.message.startswith("not used")]
    assert [(trial.case, trial.config) for trial in refused] == [("large", {"BX": 128})]
    assert "case 'small': output y" in refused[0].message


def test_a_configuration_that_is_wrong_on_fresh_inputs_makes_way_for_the_next_best():
    with Evaluator(NumpyDevice(), scale.setup(trials=8)) as evaluator:
        verdict = evaluator.evaluate(1, scale.kernel("wrong_on_other_inputs_at_bx_128"))
    assert verdict.status is Status.OK
    tuned = kernels.parse(verdict.source)
    assert (tuned.config_for({"N": 4096}), tuned.config_for({"N": 1000})) == ({"BX": 96}, {"BX": 64})
    refused = [trial for trial in verdict.trials if trial.message.startswith("not used: case 'large', on other inputs")]
    assert [(trial.case, trial.config) for trial in refused] == [("large", {"BX": 128})]


@pytest.mark.skipif(sandbox.available() != "", reason=f"no sandbox: {sandbox.available()}")
def test_a_configuration_that_the_checker_refuses_makes_way_for_the_next_best_and_advice_is_kept(tuning_evaluator):
    source = scale.kernel().replace(
        "if (i < N) y[i]",
        "\n#if BX == 128\nif (i < N) y[i] = x[i + 1];\n#elif BX == 64\nif (i >= N) return;\n__syncthreads();\n#endif\n"
        "if (i < N) y[i]",
    )
    verdict = tuning_evaluator.evaluate(1, source, Screened(Status.OK, state="passed"))
    assert verdict.status is Status.OK
    tuned = kernels.parse(verdict.source)
    assert (tuned.config_for({"N": 4096}), tuned.config_for({"N": 1000})) == ({"BX": 96}, {"BX": 64})
    refused = [trial for trial in verdict.trials if trial.message.startswith("not used: case 'large': line 12")]
    assert [(trial.case, trial.config, trial.status) for trial in refused] == [("large", {"BX": 128}, Status.UNSAFE)]
    assert [(finding.kind, finding.advice) for finding in verdict.findings] == [("early-exit", True)]


def test_rules_that_other_cases_need_are_kept_behind_the_new_ones(tuning_evaluator):
    header = scale.HEADER.replace("*/", 'choose: [{when: "N >= 500", set: {BX: 64}}]\n*/')
    verdict = tuning_evaluator.evaluate(1, scale.kernel("wrong_at_bx_32_beyond_500", header))
    assert verdict.status is Status.OK
    tuned = kernels.parse(verdict.source)
    chosen = {n: tuned.config_for({"N": n})["BX"] for n in (40, 577, 1000, 4096)}
    assert chosen == {40: 32, 577: 64, 1000: 64, 4096: 128}


def test_a_configuration_that_hangs_is_stopped_soon_and_not_tried_on_other_cases(tuning_evaluator):
    verdict = tuning_evaluator.evaluate(1, scale.kernel("stuck_at_bx_96"))
    assert verdict.status is Status.OK
    stuck = [trial for trial in verdict.trials if trial.config == {"BX": 96}]
    assert [trial.status for trial in stuck] == [Status.TIMEOUT]
    found = re.fullmatch(r"not finished within (.*) s", stuck[0].message)
    assert found
    assert float(found[1]) < 0.6, "a trial may take 50 ms, and five times as long is hopeless"


class Builds:
    """Builds at once, and remembers what was asked."""

    workers = 1

    def __init__(self) -> None:
        self.asked: list[CompileRequest] = []

    def submit(self, request: CompileRequest) -> Future[Binary]:
        self.asked.append(request)
        done: Future[Binary] = Future()
        done.set_result(NumpyDevice().compile(request))
        return done


def test_rules_that_tuning_writes_need_no_other_builds():
    builds = Builds()
    with Evaluator(NumpyDevice(), scale.setup(trials=8, builder=builds)) as evaluator:
        source = scale.kernel("fast")
        tuned = evaluator.evaluate(1, source).source
        assert "choose" in tuned
        evaluator.compare((1, tuned), (0, scale.kernel()), number=1)
    own = [request for request in builds.asked if "behaviour: fast" in request.source]
    assert sorted(request.defines["BX"] for request in own) == [32, 64, 96, 128]


def test_slow_configurations_are_abandoned_and_said_so():
    values = list(range(32, 544, 32))
    header = scale.HEADER.replace("[32, 64, 96, 128]", str(values))
    with Evaluator(NumpyDevice(), scale.setup(trials=16)) as evaluator:
        verdict = evaluator.evaluate(1, scale.kernel(header=header))
    abandoned = [trial for trial in verdict.trials if trial.message.startswith("abandoned: slower than")]
    assert abandoned
    assert all(trial.latency_us is None for trial in abandoned)
    best = {"large": 128, "other": 64}
    assert min(abs(trial.config["BX"] - best[trial.case]) for trial in abandoned) > 50, "50 steps make twice the best"
    assert kernels.parse(verdict.source).config_for({"N": 4096}) == {"BX": 128}


def test_a_configuration_that_the_header_forbids_is_never_tried(tuning_evaluator):
    header = scale.HEADER.replace("tune:", 'require: ["BX != 128"]\ntune:')
    verdict = tuning_evaluator.evaluate(1, scale.kernel(header=header))
    assert {trial.config["BX"] for trial in verdict.trials} == {32, 64, 96}


def test_a_kernel_without_tunables_keeps_its_source(tuning_evaluator):
    source = scale.kernel(header='/* launch\nblock: "64"\ngrid: "ceildiv(N, 64)"\n*/\n')
    verdict = tuning_evaluator.evaluate(1, source)
    assert (verdict.status, verdict.source, verdict.trials) == (Status.OK, source, ())


def test_a_faster_challenger_is_promoted_after_a_second_process(evaluator):
    comparison = evaluator.compare((2, scale.kernel("fast")), (1, scale.kernel()), number=1)
    assert comparison.status is Status.OK
    assert comparison.promoted
    assert comparison.ratio == pytest.approx(0.5)
    assert set(comparison.cases) == {"large", "other"}
    assert comparison.blocks >= 15


def test_an_equal_challenger_is_not_promoted(evaluator):
    comparison = evaluator.compare((2, scale.kernel()), (1, scale.kernel()), number=1)
    assert not comparison.promoted
    assert "chance" in comparison.message


def test_a_challenger_that_fails_is_not_compared(evaluator):
    comparison = evaluator.compare((2, scale.kernel("changes_input")), (1, scale.kernel()), number=1)
    assert (comparison.status, comparison.promoted) == (Status.UNSAFE, False)
    assert "the challenger failed while it was measured" in comparison.message


def test_close_leaves_neither_process_nor_file(tmp_path):
    before = set(psutil.Process().children(recursive=True))
    made = Evaluator(NumpyDevice(), scale.setup())
    made.evaluate(0, scale.kernel())
    homes = [home for home, _ in made._lab._scratch._homes.values()]
    assert homes
    assert all(home.exists() for home in homes)
    made.close()
    made.close()
    assert not [child for child in psutil.Process().children(recursive=True) if child not in before]
    assert not any(home.exists() for home in homes)


def test_a_setup_travels_without_its_builder():
    setup = scale.setup(builder=object())
    copy = pickle.loads(pickle.dumps(setup))
    assert copy.builder is None
    assert copy == setup
