"""A search through real Ray: budgets, durability, kill -9, Ctrl-C, resume, and both orders."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import psutil
import pytest

from evo.records import Compare, Mutate, Status
from evo.search import Search
from evo.store import Store
from tests.support.processes import alive

ROOT = Path(__file__).resolve().parents[2]
EVALUATIONS = 30


def start(folder: Path, order: str = "arrival", evaluations: int = EVALUATIONS) -> subprocess.Popen[str]:
    """Begin or resume a run in a process of its own; it works when this returns."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.support.run_child", str(folder), order, str(evaluations)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "EVO_TEST_DELAY_MS": "120", "EVO_TEST_MODEL_DELAY_MS": "60"},
    )
    return process


def finish(process: subprocess.Popen[str]) -> str:
    """Wait for the end; return the last line."""
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    return out.splitlines()[-1]


def kill_at(folder: Path, tells: int, order: str = "arrival") -> None:
    """Run until so many outcomes are stored, then kill -9; nothing may stay behind."""
    process = start(folder, order)
    watch(process, folder, tells)
    family = [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert alive(family) == []


def watch(process: subprocess.Popen[str], folder: Path, tells: int) -> None:
    assert process.stdout is not None
    while process.stdout.readline().startswith("ready"):
        with Store.read(folder) as store:
            if sum(event.kind == "tell" for event in store.events()) >= tells:
                return
    raise AssertionError(f"the run ended before {tells} tells: {process.communicate()}")


def lineage(folder: Path) -> list[tuple[int, str, tuple[int, ...], str]]:
    """Return task, hash, parents' hashes and operator of every candidate, in the order of tasks."""
    with Store.read(folder) as store:
        found = store.candidates()
    hashes = {c.id: c.hash for c in found}
    return sorted((c.task, c.hash, tuple(hashes[p] for p in c.parents), c.operator) for c in found)


def replayed(folder: Path) -> Search:
    """Fold the stored history into a fresh search."""
    with Store.read(folder) as store:
        search = Search(store.meta().config)
        store.replay(search)
    return search


def check_whole(folder: Path, champion: int) -> None:
    """Everything is there once, and the champion is what the rows say."""
    with Store.read(folder) as store:
        assert store.check() == ()
        tells = Counter(event.task.id for event in store.events() if event.kind == "tell" and event.task)
        assert set(tells.values()) == {1}
        assert store.open_tasks() == []
        evaluations = store.evaluations()
        assert sorted(evaluations) == [candidate.id for candidate in store.candidates()]
        calls = Counter((call.task, call.step) for call in store.calls())
        assert set(calls.values()) == {1}
        promotions = [c.challenger for c in store.comparisons().values() if c.promoted]
        assert champion == (promotions[-1] if promotions else 0)
        assert evaluations[champion].status is Status.OK
    assert replayed(folder).champion == champion


def test_a_run_keeps_its_budget_and_stores_every_step(tmp_path):
    process = start(tmp_path)
    word, reason, champion = finish(process).split()
    assert (word, reason) == ("done", "evaluations")
    check_whole(tmp_path, int(champion))
    with Store.read(tmp_path) as store:
        assert len(store.candidates()) == EVALUATIONS + 1
        assert {type(task) for task in store.tasks()} == {Mutate, Compare}
        assert store.spent().cost_usd == pytest.approx(0.001 * len(store.calls()))
        meta = store.meta()
        assert meta.stopped == "evaluations"
        assert meta.finale is not None
        assert meta.finale.challenger == int(champion)


def test_kill_9_loses_nothing_and_resume_finishes(tmp_path):
    kill_at(tmp_path, 4)
    with Store.read(tmp_path) as store:
        paid = {(call.task, call.step): call for call in store.calls()}
    kill_at(tmp_path, 12)
    with Store.read(tmp_path) as store:
        prefix = store.events()
    word, reason, champion = finish(start(tmp_path)).split()
    assert (word, reason) == ("done", "evaluations")
    check_whole(tmp_path, int(champion))
    with Store.read(tmp_path) as store:
        assert store.events()[: len(prefix)] == prefix
        assert paid.items() <= {(call.task, call.step): call for call in store.calls()}.items()


def test_ctrl_c_stops_cleanly_with_everything_stored(tmp_path):
    process = start(tmp_path)
    watch(process, tmp_path, 5)
    process.send_signal(signal.SIGINT)
    assert finish(process).split()[:2] == ["done", "interrupted"]
    with Store.read(tmp_path) as store:
        assert store.meta().stopped == "interrupted"
        assert store.check() == ()
    champion = finish(start(tmp_path)).split()[2]
    check_whole(tmp_path, int(champion))


@pytest.mark.long
def test_fixed_order_gives_the_same_lineage_also_when_killed_three_times(tmp_path):
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    whole.mkdir()
    broken.mkdir()
    finish(start(whole, "fixed"))
    for tells in (3, 10, 20):
        kill_at(broken, tells, "fixed")
    finish(start(broken, "fixed"))
    assert lineage(broken) == lineage(whole)
    again = tmp_path / "again"
    again.mkdir()
    finish(start(again, "fixed"))
    assert lineage(again) == lineage(whole)


@pytest.mark.long
def test_twenty_kills_at_random_moments(tmp_path):
    rng = np.random.default_rng(20)
    for number in range(20):
        folder = tmp_path / f"run-{number}"
        folder.mkdir(exist_ok=True)
        kill_at(folder, int(rng.integers(0, EVALUATIONS - 8)))
        champion = finish(start(folder)).split()[2]
        check_whole(folder, int(champion))
