"""A run derived anew from what is stored of it: the same lineage, or a word about what differs."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from evo import cli, plugins, workload
from evo.config import Config
from evo.errors import RunError, StoreError
from evo.records import Compare, Mutate, Outcome, Status
from evo.report import history, summary
from evo.runner.observer import Silent
from evo.runner.replay import replay
from evo.runner.run import resume, run
from evo.store import Store
from mutators import extract
from tests.support import played

ROOT = Path(__file__).resolve().parents[2]
SUPPORT = ROOT / "tests" / "support"
BUDGET = {"evaluations": 14, "cost_usd": None, "minutes": None}


def config(client: str = "instant_client.py", name: str = "instant", **changes: Any) -> Config:
    entry = {
        "workload": "gemm",
        "device": str(SUPPORT / "instant_device.py"),
        "operators": {"rewrite": 3.0, "rules": 1.0},
        "models": ({"client": str(SUPPORT / client), "name": name},),
        "search": {"in_flight": 5, "islands": 2},
        "budget": BUDGET,
    }
    return Config.model_validate({**entry, **changes}, strict=False)


def known(folder: Path) -> dict[str, Any]:
    """All that is stored of a run, but the times at which it was."""
    with Store.read(folder) as store:
        meta = store.meta()
        events = [(event.seq, event.kind, event.task, event.outcome) for event in store.events()]
        calls = [(call.task, call.step, call.request, call.reply) for call in store.calls()]
        candidates = store.candidates()
        return {
            "meta": (meta.config, meta.workload, meta.device, meta.versions, meta.stopped, meta.models),
            "finale": (meta.finale, meta.reference, meta.reference_finale, meta.baseline_finale),
            "events": events,
            "calls": calls,
            "turns": {task.id: store.turns(task.id) for task in store.tasks()},
            "candidates": candidates,
            "codes": [store.code(candidate.id) for candidate in candidates],
            "evaluations": store.evaluations(),
            "comparisons": store.comparisons(),
            "budgets": store.budgets(),
            "open": store.open_tasks(),
            "unsure": sorted(store.unsure(), key=lambda sent: (sent.task, sent.step)),
            "spent": store.spent(),
        }


def evo(*arguments: object) -> Result:
    return CliRunner().invoke(cli.app, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that has ended."""
    folder = tmp_path_factory.mktemp("replay") / "results" / "run-001"
    played.play(folder, config(), 1000)
    return folder


@pytest.fixture
def folder(whole: Path, tmp_path: Path) -> Path:
    """A copy of it, to be changed."""
    return shutil.copytree(whole, tmp_path / "results" / "run-001")


# --- the same -----------------------------------------------------------------------------------------------------


def test_everything_that_is_stored_comes_out_again(whole: Path, tmp_path: Path) -> None:
    found = replay(whole, tmp_path)
    assert known(tmp_path) == known(whole)
    assert (found.tasks, found.candidates) == (len(known(whole)["turns"]), 15)
    assert found.champion == history.load(whole).champion != 0
    with Store.read(tmp_path) as store:
        assert store.check() == ()
        assert any(isinstance(task, Compare) for task in store.tasks())


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("order", ["arrival", "fixed"])
def test_stopped_anywhere_and_gone_on_under_other_budgets(tmp_path: Path, seed: int, order: str) -> None:
    folder = tmp_path / "run"
    search = {"in_flight": 5, "islands": 2, "order": order}
    for number, (arrows, evaluations) in enumerate(((7 + 5 * seed, 14), (0, 30), (11, 9), (5 + seed, 25), (9, 25))):
        budget = BUDGET | {"evaluations": evaluations}
        champion = played.play(folder, config(search=search, budget=budget), arrows, seed)
        again = tmp_path / f"again-{number}"
        again.mkdir()
        assert replay(folder, again).champion == champion
        assert known(again) == known(folder)


def test_with_tools_between_request_and_answer(tmp_path: Path) -> None:
    folder, again = tmp_path / "run", tmp_path / "again"
    again.mkdir()
    played.play(folder, config("tool_client.py", "2"), 60)
    with Store.read(folder) as store:
        assert any(turn.results for task in store.tasks() for turn in store.turns(task.id))
    replay(folder, again)
    assert known(again) == known(folder)


def test_with_every_operator_that_there_is(tmp_path: Path) -> None:
    folder, again = tmp_path / "run", tmp_path / "again"
    again.mkdir()
    operators = dict.fromkeys(plugins.available(plugins.OPERATORS), 1.0)
    played.play(folder, config(operators=operators, budget=BUDGET | {"evaluations": 30}), 150)
    with Store.read(folder) as store:
        assert {task.operator for task in store.tasks() if isinstance(task, Mutate)} == set(operators)
    replay(folder, again)
    assert known(again) == known(folder)


def test_without_any_model(tmp_path: Path) -> None:
    folder, again = tmp_path / "run", tmp_path / "again"
    again.mkdir()
    played.play(folder, config(models=(), operators={"rules": 1.0}), 40)
    replay(folder, again)
    assert known(again) == known(folder)


def test_a_replayed_run_goes_on_like_the_first(tmp_path: Path) -> None:
    folder, again = tmp_path / "run", tmp_path / "again"
    again.mkdir()
    played.play(folder, config(), 23)
    replay(folder, again)
    for place in (folder, again):
        played.play(place, config(), 1000, seed=3)
    assert known(again) == known(folder)


def test_a_conversation_that_a_budget_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The operator would have asked once more; the run had no money left, and the task proposed nothing."""
    monkeypatch.setattr(extract, "kernel", lambda *_: extract.Extracted(None, "no kernel"))
    folder, again = tmp_path / "run", tmp_path / "again"
    again.mkdir()
    played.play(folder, config(operators={"rewrite": 1.0}), 4)
    with Store.amend(folder) as store:
        cut = next(found.task.id for found in store.open_tasks() if len(found.turns) == 1)
        store.tell(Outcome(cut, None, Status.NO_PROPOSAL))
    replay(folder, again)
    assert known(again) == known(folder)


# --- another ------------------------------------------------------------------------------------------------------


def _mutate(folder: Path, operator: str) -> tuple[int, str]:
    """Return a task of this operator that made a candidate, and a word that its reply alone has."""
    with Store.read(folder) as store:
        for candidate in store.candidates()[3:]:
            if candidate.operator == operator:
                return candidate.task, candidate.source.rpartition("mark_")[2].partition(";")[0]
    raise AssertionError(operator)


def sql(folder: Path, statement: str, *values: object) -> None:
    with contextlib.closing(sqlite3.connect(folder / "evo.db")) as connection, connection:
        assert connection.execute(statement, values).rowcount > 0


def other_prompt(folder: Path) -> None:
    task, _ = _mutate(folder, "rewrite")
    sql(folder, "UPDATE calls SET request = replace(request, 'You are ', 'You were ') WHERE task = ?", task)


def other_reply(folder: Path) -> None:
    task, _ = _mutate(folder, "rewrite")
    sql(folder, "UPDATE calls SET reply = replace(reply, 'mark_', 'mork_') WHERE task = ?", task)


def other_kernel(folder: Path) -> None:
    task, _ = _mutate(folder, "rewrite")
    sql(folder, "UPDATE candidates SET source = replace(source, 'mark_', 'mork_') WHERE task = ?", task)


def other_hash(folder: Path) -> None:
    sql(folder, "UPDATE candidates SET hash = 'x' WHERE task = ?", _mutate(folder, "rules")[0])


def other_task(folder: Path) -> None:
    sql(folder, "UPDATE tasks SET record = replace(record, '\"island\":', '\"island\":1') WHERE id = 2")


def other_ratio(folder: Path) -> None:
    sql(folder, "UPDATE evaluations SET ratio = ratio * 1.01 WHERE candidate = 1")


def other_promotion(folder: Path) -> None:
    sql(folder, "UPDATE comparisons SET promoted = 1 - promoted")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (other_prompt, r"task \d+, request 0 .operator rewrite.: message 1 of 2 .system., line 1: was 'You were "),
        (other_reply, r"task \d+ .operator rewrite., candidate \d+: line \d+: was '__device__ int mark_"),
        (other_kernel, r"task \d+ .operator rewrite., candidate \d+: line \d+: was '__device__ int mork_"),
        (other_hash, r"task \d+ .operator rules., candidate \d+: was Candidate"),
        (other_task, r"task 2: the run was asked Mutate\(id=2.* this search asks Mutate"),
        (other_ratio, r"candidate 1, the evaluation's outcome: was"),
        (other_promotion, r"task \d+, the comparison's outcome: was"),
    ],
)
def test_what_differs_is_named(folder: Path, tmp_path: Path, change: Callable[[Path], None], words: str) -> None:
    change(folder)
    with pytest.raises(RunError, match=words) as error:
        replay(folder, tmp_path)
    assert "kernel-evo 0.1.0 wrote the run" in str(error.value)


def test_an_operator_that_reads_a_reply_in_another_way_is_named(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task, digest = _mutate(folder, "rewrite")
    real = extract.kernel

    def forgetful(reply: str, *rest: Any) -> extract.Extracted:
        return extract.Extracted(None, "no kernel") if digest in reply else real(reply, *rest)

    monkeypatch.setattr(extract, "kernel", forgetful)
    with pytest.raises(RunError, match=f"task {task} .*made candidate .* and now a model would be asked"):
        replay(folder, tmp_path)


def test_another_version_of_the_search_is_named(folder: Path, tmp_path: Path) -> None:
    sql(folder, "UPDATE runs SET search_version = 0")
    with pytest.raises(RunError, match="the run's search has version 0"):
        replay(folder, tmp_path)


def test_a_run_that_has_not_begun_says_so(folder: Path, tmp_path: Path) -> None:
    sql(folder, "DELETE FROM events")
    with pytest.raises(RunError, match="has no history yet"):
        replay(folder, tmp_path)


# --- the command --------------------------------------------------------------------------------------------------


def test_the_command_writes_a_run_like_any_other(folder: Path) -> None:
    results = folder.parent
    done = evo("replay", "run-001", "--results", results)
    assert done.exit_code == 0, done.output
    tasks = len(known(folder)["turns"])
    champion = history.load(folder).champion
    again = results / "run-002"
    assert done.stdout == f"same lineage: {tasks} tasks, 15 candidates, champion {champion} → {again}\n"
    assert (again / "best.cu").read_text() == known(folder)["evaluations"][champion].source
    told, before = json.loads((again / "summary.json").read_text()), summary.summarise(history.load(folder))
    assert told["statuses"] == dict(before.statuses)
    assert told["best"]["candidate"] == before.best.candidate
    assert {path.name for path in results.iterdir()} == {"run-001", "run-002"}


def test_checking_writes_nothing(folder: Path) -> None:
    before = sorted(path.name for path in folder.parent.rglob("*"))
    done = evo("replay", folder, "--check", "--results", folder.parent, "--json")
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert (told["folder"], told["candidates"], told["run"]) == (None, 15, str(folder))
    assert sorted(path.name for path in folder.parent.rglob("*")) == before


@pytest.mark.parametrize("flags", [(), ("--check",)])
def test_a_difference_is_an_error_that_leaves_nothing(folder: Path, flags: tuple[str, ...]) -> None:
    other_prompt(folder)
    done = evo("replay", folder, "--results", folder.parent, *flags)
    assert done.exit_code == 4
    assert ", request 0 (operator rewrite): message 1 of 2 (system), line 1: was" in " ".join(done.stderr.split())
    assert [path.name for path in folder.parent.iterdir()] == ["run-001"]


def test_a_run_that_is_searching_is_left_alone(folder: Path) -> None:
    with Store.open(folder):
        done = evo("replay", folder, "--results", folder.parent)
    assert done.exit_code == StoreError.exit_code
    assert "in use by process" in " ".join(done.stderr.split())


def test_neither_ray_nor_a_device_nor_a_key_is_needed(whole: Path, tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from evo.runner.replay import replay\n"
        f"replay(Path({str(whole)!r}), Path({str(tmp_path)!r}))\n"
        "print([name for name in ('ray', 'litellm', 'cupy', 'cuda', 'optuna') if name in sys.modules])"
    )
    bare = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=bare, capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "[]"


@pytest.mark.long
@pytest.mark.parametrize("client", ["instant_client.py", "tool_client.py"])
def test_what_the_runner_itself_recorded(tmp_path: Path, client: str) -> None:
    folder = tmp_path / "run-001"
    folder.mkdir()
    run(config(client, "1"), workload.load("gemm"), folder, Silent())
    resume(folder, Silent(), lambda budget: budget.model_copy(update={"evaluations": 24}))
    again = tmp_path / "again"
    again.mkdir()
    found = replay(folder, again)
    assert found.candidates == 25
    assert known(again) == known(folder)
    assert known(again)["finale"][0].status is Status.OK


@pytest.mark.long
def test_a_run_that_was_killed_with_calls_in_flight(tmp_path: Path) -> None:
    folder, again = tmp_path / "run", tmp_path / "again"
    folder.mkdir()
    again.mkdir()
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.support.run_child", str(folder), "arrival", "30"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "EVO_TEST_DELAY_MS": "120", "EVO_TEST_MODEL_DELAY_MS": "2000"},
    )
    with process:
        assert process.stdout is not None
        while process.stdout.readline():
            with Store.read(folder) as store:
                if sum(event.kind == "tell" for event in store.events()) >= 6 and store.unsure():
                    break
        process.kill()
    with Store.amend(folder) as store:
        assert store.unsure()
        assert store.open_tasks()
    replay(folder, again)
    assert known(again) == known(folder)
