from __future__ import annotations

import contextlib
import math
import os
import sqlite3
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evo.config import Budget
from evo.errors import StoreError
from evo.records import (
    REFERENCE_ID,
    CaseResult,
    Compare,
    Conditions,
    Evaluation,
    Finding,
    KernelProfile,
    Latency,
    Message,
    ModelReply,
    ModelRequest,
    Mutate,
    Outcome,
    Profile,
    Resources,
    Role,
    Roofline,
    Status,
    Task,
    Trial,
    Turn,
)
from evo.search import Search
from evo.store import Store
from evo.store.rows import OpenTask, Spent
from evo.store.schema import MIGRATIONS
from tests.support import runs

START = Outcome(-1, 0, Status.OK, 1.0, {"unit": "scalar"})
REQUEST = ModelRequest((Message("system", "be fast"), Message("user", "a kernel: “µ”")))
REPLY = ModelReply("ok", "```cuda\n…\n```", "gpt-5-mini-2025", 100, 50, 40, 0.25, 1.5, 2, 0, "stop")
CHILD = Path(runs.__file__).with_name("store_child.py")


def create(folder: Path, **changes: object) -> Store:
    return Store.create(
        folder,
        config=runs.config(**changes),
        workload=runs.WORKLOAD,
        device=runs.DEVICE,
        initial=runs.candidate(0),
        search_version=Search.version,
        versions={"kernel-evo": "0.1.0"},
    )


@pytest.fixture
def store(tmp_path: Path) -> Any:
    with create(tmp_path) as store:
        yield store


def child(*arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, str(CHILD), *map(str, arguments)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def heard(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def raw(folder: Path, statement: str) -> None:
    connection = sqlite3.connect(folder / "evo.db")
    connection.execute(statement)
    connection.commit()
    connection.close()


def mutate(number: int, parents: tuple[int, ...] = (0,)) -> Mutate:
    return Mutate(number, "rewrite", 0, parents, (), island=1)


# --- what goes in comes out -----------------------------------------------------------------------------------


def test_a_run_knows_what_it_is_made_of(store: Store) -> None:
    meta = store.meta()
    assert (meta.config, meta.workload, meta.device) == (runs.config(), runs.WORKLOAD, runs.DEVICE)
    assert (meta.versions, meta.search_version, meta.stopped) == ({"kernel-evo": "0.1.0"}, Search.version, None)
    assert store.candidates() == [runs.candidate(0)]


def test_records_come_back_as_they_were_stored(store: Store) -> None:
    compare = Compare(1, 1, 0, 1)
    store.add_task(mutate(0))
    store.add_task(compare)
    store.add_reply(0, 0, REQUEST, REPLY)
    store.add_candidate(runs.candidate(1, 0, (0,), island=1))
    store.add_evaluation(runs.evaluation(1))
    store.add_comparison(1, runs.comparison(compare, promoted=True))
    assert store.tasks() == [mutate(0), compare]
    assert store.turns(0) == (Turn(REPLY),)
    assert [(call.task, call.step, call.request, call.reply) for call in store.calls()] == [(0, 0, REQUEST, REPLY)]
    assert store.candidate(1) == store.candidates()[1] == runs.candidate(1, 0, (0,), island=1)
    assert store.evaluation(1) == store.evaluations()[1] == runs.evaluation(1)
    assert store.comparisons() == {1: runs.comparison(compare, promoted=True)}


floats = st.floats(allow_nan=False, allow_infinity=False)
positive = st.floats(1e-6, 1e9)
words = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=8)
configs = st.dictionaries(words, st.integers(-(2**53), 2**53), max_size=3)
statuses = st.sampled_from(Status)
latencies = st.builds(Latency, *[positive] * 4, st.integers(0, 100), st.lists(words, max_size=2).map(tuple))
kernel_profiles = st.builds(
    KernelProfile,
    words,
    duration_us=st.none() | positive,
    registers=st.none() | st.integers(0, 255),
    occupancy_limits=st.lists(words, max_size=2).map(tuple),
    stalls_pct=st.dictionaries(words, positive, max_size=3),
)
evaluations = st.builds(
    Evaluation,
    candidate=st.just(0),
    status=statuses,
    message=words,
    source=words,
    score_us=st.none() | floats,
    ratio=st.none() | floats,
    cases=st.lists(
        st.builds(
            CaseResult,
            words,
            st.sampled_from(Role),
            statuses,
            words,
            st.none() | floats | st.just(math.inf),
            st.none() | latencies,
            st.none() | positive,
            configs,
            st.none()
            | st.builds(Conditions, *[st.integers(0, 2000)] * 3, positive, st.lists(words, max_size=2).map(tuple)),
            st.none() | st.builds(Roofline, positive, words, st.none() | positive),
        ),
        max_size=3,
    ).map(tuple),
    trials=st.lists(st.builds(Trial, words, configs, statuses, st.none() | positive, words), max_size=3).map(tuple),
    findings=st.lists(st.builds(Finding, words, words, st.integers(0, 9)), max_size=2).map(tuple),
    resources=st.dictionaries(words, st.builds(Resources, st.none() | st.integers(0, 255)), max_size=2),
    descriptors=st.dictionaries(words, words, max_size=3),
    doubts=st.lists(words, max_size=2).map(tuple),
    stage_seconds=st.dictionaries(words, positive, max_size=2),
    profile=st.none() | st.builds(Profile, words, st.lists(kernel_profiles, max_size=2).map(tuple), file=words),
)


@given(evaluations)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_evaluation_comes_back(store: Store, evaluation: Evaluation) -> None:
    number = store.next_candidate()
    store.add_task(mutate(number))
    store.add_candidate(runs.candidate(number, number))
    store.add_evaluation(replace(evaluation, candidate=number))
    assert store.evaluation(number) == replace(evaluation, candidate=number)


def test_what_is_not_there_is_said(store: Store) -> None:
    assert store.evaluation(0) is None
    assert store.find_by_hash("nothing") is None
    with pytest.raises(StoreError, match="expected a candidate from 0 to 0, found 7"):
        store.candidate(7)


def test_a_duplicate_is_found_by_its_hash_and_refused(store: Store) -> None:
    store.add_task(mutate(0))
    assert store.find_by_hash(runs.candidate(0).hash) == 0
    with pytest.raises(StoreError, match=r"contradicts what is stored.*candidates\.hash"):
        store.add_candidate(runs.Candidate(1, 0, "", runs.candidate(0).hash, "rules", (0,), 0))
    assert store.next_candidate() == 1


def test_ancestors_and_children_follow_the_parents(store: Store) -> None:
    for number, parents in enumerate([(0,), (1,), (1, 0), (2, 3)], start=1):
        store.add_task(mutate(number - 1, parents))
        store.add_candidate(runs.candidate(number, number - 1, parents))
    assert store.next_candidate() == 5
    assert store.ancestors(4) == {4: 0, 2: 1, 3: 1, 0: 2, 1: 2}
    assert store.ancestors(0) == {0: 0}
    assert store.children(1) == [2, 3]
    assert store.candidate(4).parents == (2, 3)


def test_spending_adds_up_and_calls_without_a_price_are_counted(store: Store) -> None:
    assert store.spent() == Spent()
    store.add_task(mutate(0))
    store.add_reply(0, 0, REQUEST, REPLY)
    store.add_reply(0, 1, REQUEST, ModelReply("error", error="timeout"))
    assert store.spent() == Spent(calls=2, input_tokens=100, output_tokens=50, cost_usd=0.25, unpriced=1)


def test_the_time_worked_on_a_run_leaves_out_the_pauses(tmp_path: Path) -> None:
    with create(tmp_path) as store:
        store.add_task(mutate(0))
    Store.open(tmp_path).close()
    raw(tmp_path, "UPDATE holders SET since = 1000, until = 1060 WHERE id = 1")  # closed after a minute
    raw(tmp_path, "UPDATE holders SET since = 5000, until = NULL WHERE id = 2")  # killed, last record after 10 s
    raw(tmp_path, "UPDATE events SET at = 5010")
    raw(tmp_path, "UPDATE candidates SET at = 1010")
    with Store.read(tmp_path) as reader:
        assert reader.elapsed_s() == pytest.approx(70)


# --- transactions ---------------------------------------------------------------------------------------------


def test_an_evaluation_is_stored_with_what_is_told_or_not_at_all(store: Store) -> None:
    with pytest.raises(StoreError, match="FOREIGN KEY"):
        store.add_evaluation_and_tell(runs.evaluation(0), Outcome(99, 0, Status.OK, 0.5))
    assert (store.evaluation(0), store.events()) == (None, [])
    store.add_evaluation_and_tell(runs.evaluation(0), START)
    assert (store.evaluation(0), [event.outcome for event in store.events()]) == (runs.evaluation(0), [START])


def test_a_comparison_is_stored_with_what_is_told_or_not_at_all(store: Store) -> None:
    compare = Compare(0, 0, 0, 1)
    store.add_task(compare)
    with pytest.raises(StoreError, match="FOREIGN KEY"):
        store.add_comparison_and_tell(runs.comparison(Compare(0, 5, 0, 1), True), Outcome(0, 5, Status.OK))
    assert store.comparisons() == {}
    store.add_comparison_and_tell(runs.comparison(compare, True), Outcome(0, 0, Status.OK, promoted=True))
    assert [event.kind for event in store.events()] == ["ask", "tell"]


def test_nothing_is_told_or_asked_twice(store: Store) -> None:
    store.add_task(mutate(0))
    store.tell(Outcome(0, None, Status.NO_PROPOSAL))
    store.tell(START)
    for again in (
        lambda: store.tell(Outcome(0, None, Status.NO_PROPOSAL)),
        lambda: store.tell(START),
        lambda: store.add_task(mutate(0)),
    ):
        with pytest.raises(StoreError, match="contradicts"):
            again()
    assert [event.kind for event in store.events()] == ["ask", "tell", "start"]


def test_a_reply_of_a_task_that_was_never_asked_is_refused(store: Store) -> None:
    with pytest.raises(StoreError, match="FOREIGN KEY"):
        store.add_reply(3, 0, REQUEST, REPLY)


# --- opening --------------------------------------------------------------------------------------------------


def test_a_run_goes_on_where_it_was_and_its_folder_may_move(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    with create(tmp_path / "old") as store:
        store.add_task(mutate(0))
        store.stop("minutes")
    with Store.read(tmp_path / "old") as reader:
        assert reader.meta().stopped == "minutes"
    (tmp_path / "old").rename(tmp_path / "new")
    with Store.open(tmp_path / "new") as store:
        assert (store.tasks(), store.meta().stopped) == ([mutate(0)], None)


def test_a_reader_sees_what_is_stored_while_the_writer_goes_on(store: Store) -> None:
    with Store.read(store.folder) as reader:
        assert reader.tasks() == []
        store.add_task(mutate(0))
        assert reader.tasks() == [mutate(0)]
        with pytest.raises(StoreError, match="opened for reading"):
            reader.add_task(mutate(1))


def test_a_reader_needs_no_right_to_write(tmp_path: Path) -> None:
    create(tmp_path).close()
    tmp_path.chmod(0o555)
    code = (
        "import os, sys; from pathlib import Path; from evo.store import Store\n"
        "Store.read(Path(sys.argv[1])).close()\n"  # imports all that another user might not be able to read
        "if os.getuid() == 0: os.setuid(65534)\n"
        "print(len(Store.read(Path(sys.argv[1])).candidates()))"
    )
    for folder in tmp_path.parents:
        if folder.name.startswith(("pytest-", "popen-")):
            folder.chmod(0o755)
    command = [sys.executable, "-c", code, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    tmp_path.chmod(0o755)
    assert (done.stdout, done.stderr) == ("1\n", "")


def test_a_folder_without_a_run_is_named(tmp_path: Path) -> None:
    for way in (Store.open, Store.read):
        with pytest.raises(StoreError, match=r"expected a run's folder, found no evo\.db"):
            way(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_second_run_in_the_same_folder_is_refused(store: Store) -> None:
    with pytest.raises(StoreError, match="expected no database, found one"):
        create(store.folder)


def test_a_run_that_was_killed_at_its_birth_is_refused(tmp_path: Path) -> None:
    create(tmp_path).close()
    raw(tmp_path, "DELETE FROM runs")
    for way in (Store.open, Store.read):
        with pytest.raises(StoreError, match="killed before it had begun"):
            way(tmp_path)


def test_a_run_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    create(tmp_path).close()
    raw(tmp_path, "UPDATE _sqlite_migrations SET name = '999_future' WHERE name = '001_first'")
    for way in (Store.open, Store.read):
        with pytest.raises(StoreError, match=r"newer version \(it has 999_future\); upgrade kernel-evo"):
            way(tmp_path)


def test_a_reader_refuses_an_older_run_and_says_what_brings_it_up_to_date(tmp_path: Path) -> None:
    create(tmp_path).close()
    raw(tmp_path, "DELETE FROM _sqlite_migrations")
    with pytest.raises(StoreError, match="resume the run once"):
        Store.read(tmp_path)


def test_migrations_are_applied_once(tmp_path: Path) -> None:
    create(tmp_path).close()
    Store.open(tmp_path).close()
    Store.open(tmp_path).close()
    with sqlite3.connect(tmp_path / "evo.db") as connection:
        applied = connection.execute("SELECT name FROM _sqlite_migrations").fetchall()
    connection.close()
    assert applied == [(name,) for name, _ in MIGRATIONS]


def test_a_run_from_before_reference_kernels_is_brought_up_to_date(tmp_path: Path) -> None:
    create(tmp_path).close()
    for statement in (
        "ALTER TABLE runs DROP COLUMN reference",
        "ALTER TABLE runs DROP COLUMN reference_finale",
        "DELETE FROM _sqlite_migrations WHERE name = '002_reference'",
    ):
        raw(tmp_path, statement)
    with Store.open(tmp_path) as store:
        assert store.meta().reference is None
        store.set_reference(runs.evaluation(REFERENCE_ID))
        assert store.meta().workload == runs.WORKLOAD


def test_what_became_of_the_reference_kernel_comes_back_and_is_no_candidates(store: Store) -> None:
    finale = runs.comparison(Compare(0, 0, REFERENCE_ID, 1), promoted=True)
    store.set_reference(runs.evaluation(REFERENCE_ID))
    store.set_reference_finale(finale)
    meta = store.meta()
    assert (meta.reference, meta.reference_finale, meta.finale) == (runs.evaluation(REFERENCE_ID), finale, None)
    assert (store.evaluations(), store.comparisons()) == ({}, {})


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "evo.db").write_bytes(b"this is no database" * 100)
    for way in (Store.open, Store.read):
        with pytest.raises(StoreError, match=r"not a database; the file is damaged"):
            way(tmp_path)


def test_damage_is_found(tmp_path: Path) -> None:
    with create(tmp_path) as store:
        for number in range(50):
            store.add_task(mutate(number))
        assert store.check() == ()
    raw(tmp_path, "INSERT INTO calls (task, step, request, reply, status, model, latency_s) "
                  "VALUES (999, 0, '', '', 'ok', '', 0)")  # fmt: skip
    with Store.read(tmp_path) as reader:
        assert reader.check() == ("a row of calls lacks its tasks",)
    with contextlib.closing(sqlite3.connect(tmp_path / "evo.db")) as connection:
        (page,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'tasks'").fetchone()
        (size,) = connection.execute("PRAGMA page_size").fetchone()
    with (tmp_path / "evo.db").open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\xff" * size)
    with Store.read(tmp_path) as reader:
        assert any("malformed" in line or "Tree" in line for line in reader.check())


# --- the lock -------------------------------------------------------------------------------------------------


def test_a_locked_run_names_its_holder(tmp_path: Path) -> None:
    create(tmp_path).close()
    with child("hold", tmp_path) as holder:
        assert heard(holder) == "held"
        with pytest.raises(StoreError, match=rf"in use by process {holder.pid} on .+ since 20\d\d-"):
            Store.open(tmp_path)
        with Store.read(tmp_path) as reader:
            assert reader.tasks() == []
    Store.open(tmp_path).close()


def test_the_lock_of_a_killed_process_is_free(tmp_path: Path) -> None:
    create(tmp_path).close()
    with child("hold", tmp_path) as holder:
        assert heard(holder) == "held"
        holder.kill()
    Store.open(tmp_path).close()


def test_of_two_that_open_a_run_at_once_one_gets_it_and_the_other_is_told(tmp_path: Path) -> None:
    create(tmp_path).close()
    with child("hold", tmp_path) as one, child("hold", tmp_path) as other:
        said = [heard(one), heard(other)]
    winner = said.index("held")
    assert said[1 - winner].startswith(f"refused: {tmp_path}: in use by ")


def test_a_run_whose_lock_is_out_of_reach_is_refused(tmp_path: Path) -> None:
    create(tmp_path).close()
    (tmp_path / "evo.lock").unlink(missing_ok=True)
    (tmp_path / "evo.lock").mkdir()
    with pytest.raises(StoreError, match="cannot be locked"):
        Store.open(tmp_path)


def test_a_run_cannot_be_opened_twice_by_one_process(store: Store) -> None:
    with pytest.raises(StoreError, match=f"in use by process {os.getpid()}"):
        Store.open(store.folder)


# --- going on -------------------------------------------------------------------------------------------------


def test_open_tasks_hold_all_that_is_stored_of_them(store: Store) -> None:
    compare = Compare(5, 1, 0, 1)
    told = [mutate(0), mutate(1)]
    for task in (*told, mutate(2), mutate(3), mutate(4), compare):
        store.add_task(task)
    for number, task in enumerate((3, 4), start=1):
        store.add_reply(task, 0, REQUEST, REPLY)
        store.add_candidate(runs.candidate(number, task, (0,)))
    store.add_evaluation(runs.evaluation(2))
    store.add_comparison(5, runs.comparison(compare, promoted=False))
    for task in told:
        store.tell(Outcome(task.id, None, Status.NO_PROPOSAL))
    assert store.open_tasks() == [
        OpenTask(mutate(2)),
        OpenTask(mutate(3), (Turn(REPLY),), 0, runs.candidate(1, 3, (0,))),
        OpenTask(mutate(4), (Turn(REPLY),), 0, runs.candidate(2, 4, (0,)), runs.evaluation(2)),
        OpenTask(compare, comparison=runs.comparison(compare, promoted=False)),
    ]


def record(store: Store, search: Search, until: int) -> list[str]:
    """Run a search into a store until it has asked so many tasks; return the digest after each event."""
    digests = []
    store.add_evaluation_and_tell(runs.evaluation(0, 1.0), START)
    search.start(START)
    digests.append(search.digest())
    waiting: list[Task] = []
    for asked in range(until):
        while (task := search.ask()) is None:
            told = runs.outcome(waiting.pop(asked % len(waiting)))
            store.tell(told)
            search.tell(told)
            digests.append(search.digest())
        store.add_task(task)
        waiting.append(task)
        digests.append(search.digest())
    return digests


class Watched(Search):
    """A search that remembers its digest after each event."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.digests: list[str] = []

    def start(self, outcome: Outcome) -> None:
        super().start(outcome)
        self.digests.append(self.digest())

    def ask(self) -> Task | None:
        task = super().ask()
        self.digests.append(self.digest())
        return task

    def tell(self, outcome: Outcome) -> None:
        super().tell(outcome)
        self.digests.append(self.digest())


@pytest.mark.parametrize("order", ["arrival", "fixed"])
def test_replay_rebuilds_the_search_event_for_event(tmp_path: Path, order: str) -> None:
    search = {"order": order, "in_flight": 4, "islands": 2}
    with create(tmp_path, search=search) as store:
        digests = record(store, Search(store.meta().config), until=40)
    with Store.open(tmp_path) as store:
        again = Watched(store.meta().config)
        store.replay(again)
    assert again.digests == digests


@pytest.mark.parametrize("order", ["arrival", "fixed"])
@pytest.mark.parametrize("then", [3, 30])
def test_a_run_under_another_budget_is_rebuilt_as_it_was(tmp_path: Path, order: str, then: int) -> None:
    search = {"order": order, "in_flight": 4, "islands": 2}
    with create(tmp_path, search=search, budget={"evaluations": 8}) as store:
        live = Search(store.meta().config)
        digests = record(store, live, until=7)
        changed = store.meta().config.model_copy(update={"budget": Budget(evaluations=then)})
        store.set_config(changed)
        live.limit(changed.budget)
        for task in store.open_tasks():
            store.tell(runs.outcome(task.task))
            live.tell(runs.outcome(task.task))
            digests.append(live.digest())
        while (asked := live.ask()) is not None:
            store.add_task(asked)
            digests.append(live.digest())
    with Store.open(tmp_path) as store:
        again = Watched(store.meta().config)
        store.replay(again)
    assert again.digests == digests


def test_a_run_of_another_search_version_is_refused_with_the_way_on(store: Store) -> None:
    search = Search(store.meta().config)
    search.version = Search.version + 1
    with pytest.raises(StoreError, match=r"another search version.*Go on with kernel-evo 0\.1\.0, which wrote it, or"):
        store.replay(search)


def test_a_search_that_asks_something_else_is_refused(tmp_path: Path) -> None:
    with create(tmp_path) as store:
        record(store, Search(store.meta().config), until=5)
        with pytest.raises(StoreError, match=r"event \d holds Mutate.*this one asks Mutate"):
            store.replay(Search(runs.config(seed=1)))


# --- a full disk ----------------------------------------------------------------------------------------------


def test_a_full_disk_ends_cleanly_and_leaves_nothing_half_written(tmp_path: Path) -> None:
    create(tmp_path).close()
    said, _ = child("fill", tmp_path, 400_000).communicate()
    *acknowledged, last, end = said.splitlines()
    assert last.startswith("failed: ")
    assert "MB are free there. Make room" in last
    assert end == "closed"
    assert len(acknowledged) > 20
    with Store.open(tmp_path) as store:
        assert store.check() == ()
        assert stored(store)[: len(acknowledged)] == acknowledged
        assert len(stored(store)) == len(acknowledged)
        store.add_task(mutate(len(store.tasks())))


# --- kill -9 --------------------------------------------------------------------------------------------------


def stored(store: Store) -> list[str]:
    """What a child would have said of all that is stored, in its order."""
    told = {event.task.id for event in store.events() if event.kind == "tell" and event.task}
    evaluated = store.evaluations()
    made = {candidate.task: candidate.id for candidate in store.candidates()}
    lines = []
    for task in store.tasks():
        lines.append(f"task {task.id}")
        lines += [f"reply {task.id}"] * len(store.turns(task.id))
        if task.id in made:
            lines.append(f"candidate {made[task.id]}")
            lines += [f"evaluation {made[task.id]}"] * (made[task.id] in evaluated)
        lines += [f"told {task.id}"] * (task.id in told)
    return lines


def kill_often(folder: Path, times: int) -> None:
    create(folder).close()
    acknowledged: list[str] = []
    for round_ in range(times):
        with child("append", folder) as writer:
            assert writer.stdout is not None
            acknowledged += [heard(writer) for _ in range(3 + 7 * round_ % 40)]
            writer.kill()
            acknowledged += writer.stdout.read().splitlines()
        with Store.read(folder) as store:
            found = stored(store)
            assert store.check() == ()
        assert len(found) == len(set(found))
        assert set(acknowledged) <= set(found)
        assert len(found) - len(acknowledged) <= 2 * (round_ + 1), "at most one transaction a kill was on its way"


def test_nothing_acknowledged_is_lost_by_kill_9(tmp_path: Path) -> None:
    kill_often(tmp_path, times=3)


@pytest.mark.long
def test_nothing_acknowledged_is_lost_by_twenty_kills(tmp_path: Path) -> None:
    kill_often(tmp_path, times=20)
