"""A search with an evaluator on each GPU, through real Ray: one order, and what becomes of lost ones."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from evo.records import Status
from evo.store import Store

ROOT = Path(__file__).resolve().parents[2]


def search(folder: Path, gpus: int = 2, environment: dict[str, str] | None = None, **changes: Any) -> dict[str, Any]:
    """Run a whole search in a process of its own; return what it says."""
    folder.mkdir(exist_ok=True)
    before = {name: value for name, value in os.environ.items() if name != "CUDA_VISIBLE_DEVICES"}
    ended = subprocess.run(
        [sys.executable, "-m", "tests.support.gpus_child", str(folder), str(gpus), json.dumps(changes)],
        cwd=ROOT,
        env={**before, **(environment or {})},
        capture_output=True,
        text=True,
        timeout=180,
    )
    assert ended.returncode == 0, ended.stderr
    said: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    return said


def evaluations(count: int) -> dict[str, Any]:
    return {"evaluations": count, "cost_usd": None, "minutes": None}


def used(folder: Path) -> Counter[str]:
    """Which GPU evaluated how many candidates."""
    with Store.read(folder) as store:
        return Counter(gpu for evaluation in store.evaluations().values() for gpu in evaluation.stage_seconds)


def told(folder: Path) -> list[int]:
    """The tasks in the order in which they ended."""
    with Store.read(folder) as store:
        return [event.task.id for event in store.events() if event.kind == "tell" and event.task]


def lineage(folder: Path) -> list[tuple[int, int, str, tuple[int, ...]]]:
    with Store.read(folder) as store:
        return [(c.id, c.task, c.hash, c.parents) for c in store.candidates()]


def statuses(folder: Path) -> Sequence[Status]:
    with Store.read(folder) as store:
        assert store.check() == ()
        assert store.open_tasks() == []
        return [evaluation.status for evaluation in store.evaluations().values()]


@pytest.mark.long
def test_two_gpus_evaluate_almost_twice_as_much_in_the_same_time(tmp_path):
    steady = {"EVO_TEST_STEADY_MS": "500"}
    one = search(tmp_path / "one", 1, steady, budget=evaluations(16))
    two = search(tmp_path / "two", 2, steady, budget=evaluations(16))
    assert set(used(tmp_path / "one")) == {"GPU 0"}
    assert set(used(tmp_path / "two")) == {"GPU 0", "GPU 1"}
    assert one["seconds"] >= 1.8 * two["seconds"]


@pytest.mark.long
def test_fixed_order_gives_the_same_lineage_on_two_gpus_as_on_one(tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    uneven = {"EVO_TEST_DELAY_MS": "150"}
    order = {"order": "fixed", "in_flight": 6}
    first = search(one, 1, uneven, search=order, budget=evaluations(16))
    second = search(two, 2, uneven, search=order, budget=evaluations(16))
    assert set(used(two)) == {"GPU 0", "GPU 1"}
    assert told(two) != sorted(told(two)), "evaluations on two seats end out of order"
    assert lineage(one) == lineage(two)
    assert first["champion"] == second["champion"]


@pytest.mark.long
def test_a_dead_evaluator_is_replaced_and_who_kills_two_is_to_blame(tmp_path):
    notes, run = tmp_path / "notes", tmp_path / "run"
    notes.mkdir()
    deaths = {"EVO_TEST_DIES": "0.1", "EVO_TEST_DIES_ONCE": "0.5", "EVO_TEST_NOTES": str(notes)}
    said = search(run, 2, deaths, budget=evaluations(24))
    found = Counter(statuses(run))
    once = len(list(notes.iterdir()))
    assert set(found) == {Status.OK, Status.WRONG_ANSWER, Status.CRASH}
    assert once > 0
    assert len(said["lost"]) == once + 2 * found[Status.CRASH]
    assert set(used(run)) == {"GPU 0", "GPU 1"}


def test_a_gpu_that_fails_does_not_end_the_run_and_no_candidate_is_blamed(tmp_path):
    said = search(tmp_path, 2, {"EVO_TEST_BROKEN": "1", "EVO_TEST_STEADY_MS": "100"}, budget=evaluations(16))
    assert said["reason"] == "evaluations"
    assert set(said["lost"]) == {"GPU 1 has fallen off the bus"}
    assert len(said["lost"]) <= 2, "a GPU that fails twice in a row is given up"
    assert set(statuses(tmp_path)) <= {Status.OK, Status.WRONG_ANSWER}
    assert set(used(tmp_path)) == {"GPU 0"}
