"""What passes between a run and its models, through real Ray: tools, the ledger, workers that die, Ctrl-C."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import psutil
import pytest

from evo import workload
from evo.config import Config
from evo.records import ModelFacts, Status, Workload
from evo.runner.run import Result, run
from evo.store import Store

SUPPORT = Path(__file__).resolve().parents[1] / "support"


class Watcher:
    """Remembers the events, and does something at the first of a kind."""

    def __init__(self, kind: str = "", act: Any = None) -> None:
        self.events: list[tuple[str, dict[str, Any]]] = []
        self._kind, self._act = kind, act

    def event(self, kind: str, **facts: Any) -> None:
        self.events.append((kind, facts))
        if kind == self._kind and self._act is not None:
            act, self._act = self._act, None
            act()

    def kinds(self) -> list[str]:
        return [kind for kind, _ in self.events]


@pytest.fixture(scope="module")
def gemm() -> Workload:
    return workload.load("gemm")


def search(folder: Path, whole: Workload, watcher: Watcher, client: str, name: str, **changes: Any) -> Result:
    config = {
        "workload": "gemm",
        "device": str(SUPPORT / "instant_device.py"),
        "operators": {"rewrite": 1.0},
        "models": ({"client": str(SUPPORT / client), "name": name},),
        "search": {"in_flight": 4},
        "budget": {"evaluations": 4, "minutes": None},
        **changes,
    }
    return run(Config.model_validate(config, strict=False), whole, folder, watcher)


def test_tools_are_called_between_a_request_and_its_answer_and_all_of_it_is_stored(
    tmp_path: Path, gemm: Workload
) -> None:
    watcher = Watcher()
    result = search(tmp_path, gemm, watcher, "tool_client.py", "2")
    assert result.reason == "evaluations"
    with Store.read(tmp_path) as store:
        assert store.meta().models == (
            ModelFacts("caller", window_tokens=200_000, input_usd=1e-6, output_usd=2e-6, tools=True),
        )
        tasks = {call.task for call in store.calls()}
        for task in tasks:
            first, second, answer = store.turns(task)
            for turn in (first, second):
                assert [result.call for result in turn.results] == [call.id for call in turn.reply.calls]
                assert all(result.text for result in turn.results)
            assert (answer.results, answer.reply.calls) == ((), ())
            *_, last = (call for call in store.calls(task))
            roles = [message.role for message in last.request.messages]
            assert roles == ["system", "user", *["assistant", "tool", "tool"] * 2]
            assert (last.request.task, last.request.step) == (task, 2)
        spent = store.spent()
        assert (spent.calls, spent.unsure) == (3 * len(tasks), 0)
        assert spent.cost_usd == pytest.approx(0.001 * spent.calls)
    assert watcher.kinds().count("tools_used") == 2 * len(tasks)


@pytest.mark.long
def test_the_budget_is_never_passed_by_more_than_one_call_at_the_end(tmp_path: Path, gemm: Workload) -> None:
    result = search(
        tmp_path,
        gemm,
        Watcher(),
        "tool_client.py",
        "0",
        budget={"evaluations": 100, "minutes": None, "cost_usd": 0.0105},
    )
    assert result.reason == "cost_usd"
    with Store.read(tmp_path) as store:
        assert store.spent().cost_usd == pytest.approx(0.011)


@pytest.mark.long
def test_a_worker_that_dies_takes_no_task_along(
    tmp_path: Path, gemm: Workload, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVO_TEST_MODEL_DELAY_MS", "3000")
    result = search(tmp_path, gemm, Watcher("asked", kill_workers), "instant_client.py", "instant")
    assert result.reason == "evaluations"
    with Store.read(tmp_path) as store:
        assert store.open_tasks() == []
        assert all(call.reply.status == "ok" for call in store.calls())
        lost = store.unsure()
        assert lost
        assert {sent.task for sent in lost} <= {call.task for call in store.calls()}


def kill_workers() -> None:
    workers = [process for process in psutil.process_iter(["cmdline"]) if "ray::MutatorWorker" in _title(process)]
    mine = {process.pid for process in psutil.Process().children(recursive=True)}
    for worker in workers:
        if worker.pid in mine:
            worker.kill()


def _title(process: psutil.Process) -> str:
    return " ".join(process.info["cmdline"] or ())


def test_ctrl_c_waits_for_the_replies_that_are_paid_for(
    tmp_path: Path, gemm: Workload, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVO_TEST_MODEL_DELAY_MS", "2000")
    watcher = Watcher("asked", lambda: os.kill(os.getpid(), signal.SIGINT))
    result = search(tmp_path, gemm, watcher, "instant_client.py", "instant")
    assert result.reason == "interrupted"
    assert "harvesting" in watcher.kinds()
    with Store.read(tmp_path) as store:
        assert store.unsure() == []
        asked = store.open_tasks()
        assert len(asked) == len(store.calls()) > 0
        assert all(task.turns[0].reply.status == "ok" for task in asked)
        assert not any(evaluation.status is not Status.OK for evaluation in store.evaluations().values())
