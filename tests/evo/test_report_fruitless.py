"""A run of which nothing came says so first, and shows no kernel as its result."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence

import pytest

from evo import config as configs
from evo.commands import searching
from evo.errors import ConfigError
from evo.records import Message, ModelReply, ModelRequest, Mutate, Outcome, Status
from evo.report import fruitless, summary, text
from evo.report.history import History
from evo.store.rows import Call, Event
from tests.evo.test_report import written
from tests.support import histories

PROSE = ModelReply("ok", "A poem about kernels.", cost_usd=0.01)
FAILED = ModelReply("error", error="HTTP 500", cost_usd=0.0)
BARREN = (Status.NO_PROPOSAL, PROSE)
TWIN = (Status.DUPLICATE, PROSE)
Told = tuple[Status, ModelReply | None]


def history(told: Sequence[Told], stopped: str | None = "idle", tuned: str = "") -> History:
    """A run whose tasks ended so; those without a reply were offline."""
    whole = histories.history(0)
    found = dataclasses.replace(whole, meta=dataclasses.replace(whole.meta, stopped=stopped))
    events, calls, evaluations, candidates = list(found.events), [], dict(found.evaluations), dict(found.candidates)
    for number, (status, reply) in enumerate(told):
        task = Mutate(number, "rewrite" if reply else "rules", 0 if reply else -1, (0,))
        judged = status not in (Status.NO_PROPOSAL, Status.DUPLICATE)
        if judged:
            candidates[number + 1] = dataclasses.replace(candidates[0], id=number + 1, task=number)
            evaluations[number + 1] = histories.verdict(number + 1, status, (0.9,) * 3)
        events.append(Event(number + 2, "tell", task, Outcome(number, number + 1 if judged else None, status), 0.0))
        if reply:
            calls.append(Call(number, 0, ModelRequest((Message("user", "go"),)), reply, 0.0))
    if tuned:
        evaluations[0] = dataclasses.replace(evaluations[0], source=tuned)
    else:
        candidates[0] = dataclasses.replace(candidates[0], source=evaluations[0].source or candidates[0].source)
    return dataclasses.replace(
        found, events=tuple(events), calls=tuple(calls), evaluations=evaluations, candidates=candidates
    )


def first_line(found: History) -> str:
    return written(text.final(found)).splitlines()[0]


def test_the_first_line_counts_what_gave_nothing() -> None:
    found = history([BARREN] * 31 + [TWIN] * 19)
    said = "50 tasks in a row gave nothing to evaluate (31 replies without a new kernel, 19 duplicates)"
    assert first_line(found) == f"No kernel came of this run: {said}"


@pytest.mark.parametrize(
    ("told", "stopped", "said"),
    [
        ([(Status.NO_PROPOSAL, FAILED)] * 2, "idle", "2 tasks in a row gave nothing to evaluate (2 failed calls)"),
        ([(Status.NO_PROPOSAL, None)], "idle", "(1 offline rule without effect)"),
        (
            [(Status.COMPILE_ERROR, PROSE)] * 3,
            "evaluations",
            "3 kernels judged and none right (3 compile errors)",
        ),
        (
            [BARREN, (Status.WRONG_ANSWER, PROSE)],
            "minutes",
            "1 task gave nothing to evaluate (1 reply without a new kernel); "
            "1 kernel judged and none right (1 wrong answer)",
        ),
        ([], "minutes", "it ended (minutes) before any was made"),
    ],
)
def test_the_reason_fits_what_happened(told: list[Told], stopped: str, said: str) -> None:
    assert said in fruitless.why(history(told, stopped))


@pytest.mark.parametrize("stopped", [None, "interrupted", "prompts"])
def test_of_a_run_that_goes_on_nothing_is_said(stopped: str | None) -> None:
    assert fruitless.why(history([BARREN] * 3, stopped)) == ""


def test_one_right_kernel_is_a_result_however_slow() -> None:
    found = history([BARREN, (Status.OK, PROSE)])
    assert fruitless.why(found) == ""
    assert first_line(found) == ""
    assert summary.summarise(found).best is not None


def test_the_initial_kernel_is_not_shown_as_a_result() -> None:
    found = history([BARREN] * 3)
    shown = written(text.final(found))
    assert "best" not in shown
    assert "evo resume results/run-001 --set budget.idle=100" in shown
    told = json.loads(summary.as_json(summary.summarise(found)))
    assert told["best"] is None
    assert told["nothing"] == fruitless.why(found)


def test_a_tuned_initial_kernel_is_shown_behind_the_sentence() -> None:
    found = history([BARREN] * 3, tuned="// tuned\n")
    assert first_line(found).startswith("No kernel came of this run")
    assert "best µs" in written(text.final(found))
    assert summary.summarise(found).best is not None


@pytest.mark.parametrize(
    ("stopped", "flag"),
    [
        ("interrupted", ""),
        ("evaluations", " --evaluations 20"),
        ("idle", " --set budget.idle=100"),
        ("minutes", " --minutes 60"),
        ("cost_usd", " --cost-usd 4"),
        ("target_speedup", " --set budget.target_speedup=null"),
    ],
)
def test_the_way_on_raises_the_limit_that_ended_the_run(stopped: str, flag: str) -> None:
    shown = written(text.final(history([(Status.OK, PROSE)], stopped)))
    assert f"evo resume results/run-001{flag}  go on searching" in shown


@pytest.mark.parametrize("operators", [{"rewrite": 1.0}, {"rules": 1.0}])
def test_a_run_goes_on_under_another_budget(operators: dict[str, float]) -> None:
    offline = "rules" in operators
    config = configs.load(json.dumps({"workload": "gemm", "operators": operators}))
    assert searching.with_overrides(config, ["budget.evaluations=7"]).evaluations == 7
    assert searching.with_overrides(config, []) == config.budget
    if offline:
        with pytest.raises(ConfigError, match=r"budget\.cost_usd: would do nothing"):
            searching.with_overrides(config, ["budget.cost_usd=1"])
    with pytest.raises(ConfigError, match=r"only budget\.\* may change"):
        searching.with_overrides(config, ["seed=1"])
