"""How fast search and store go together, and whether they stay so: no Ray, no model, no kernel, only asks and commits.

Each task costs what it costs in a run: ask, look at the budget, commit the task, commit a reply of 5 kB, commit the
candidate, read its parent, commit evaluation and outcome, tell. A run that holds 1,000 candidates and one that holds
all take turns, task by task, so that whatever else the machine does slows both. Prints the median milliseconds per
task of each, then the time to replay and to read everything back.

    python benchmarks/perf/store_speed.py --candidates 10000
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from evo.records import Compare, Message, ModelReply, ModelRequest, Mutate, Outcome, Status, Task
from evo.search import Search
from evo.store import Store
from tests.support import runs

TURNS = 500  # tasks behind a median
FEW = 1000
REQUEST = ModelRequest((Message("user", "x" * 5000),))
REPLY = ModelReply("ok", "y" * 5000, "instant", 1000, 1000, 500, 0.002)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--candidates", type=int, default=10_000)
    parser.add_argument("--folder", type=Path, default=None, help="where to write; a temporary folder by default")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        few, many = (begin(Path(folder) / str(count), count) for count in (FEW, arguments.candidates))
        seconds = [[turn(*run) for run in (few, many)] for _ in range(TURNS)]
        for run, column in zip((few, many), zip(*seconds, strict=True), strict=True):
            print(f"{1e3 * statistics.median(column):.2f} ms per task with {run[1].evaluated:,} candidates stored")
        few[0].close()
        read(*many)


def begin(folder: Path, candidates: int) -> tuple[Store, Search]:
    """Begin a run in `folder` and fill it with so many candidates."""
    folder.mkdir()
    config = runs.config(budget={"evaluations": 10 * candidates})
    store = Store.create(
        folder,
        config=config,
        workload=runs.WORKLOAD,
        device=runs.DEVICE,
        initial=runs.candidate(0),
        search_version=Search.version,
        versions={},
    )
    search, start = Search(config), Outcome(-1, 0, Status.OK, 1.0)
    store.add_evaluation_and_tell(runs.evaluation(0, 1.0), start)
    search.start(start)
    while search.evaluated < candidates:
        turn(store, search)
    return store, search


def turn(store: Store, search: Search) -> float:
    """Take tasks until one has made a candidate; return the seconds of that one, so that like is compared to like."""
    before = search.evaluated
    while True:
        clock = time.perf_counter()
        task = search.ask()
        assert task is not None
        work(store, search, task)
        if search.evaluated > before:
            return time.perf_counter() - clock


def read(store: Store, search: Search) -> None:
    """Time what reads a whole run, and close it."""
    again = Search(store.meta().config)
    timed("replay", lambda: store.replay(again))
    assert again.digest() == search.digest()
    timed("read every evaluation", store.evaluations)
    timed("ancestors of the last", lambda: store.ancestors(store.next_candidate() - 1))
    timed("integrity check", store.check)
    print(f"database: {(store.folder / 'evo.db').stat().st_size / 2**20:.0f} MiB")
    store.close()


def work(store: Store, search: Search, task: Task) -> None:
    """Do for a task what a run does, with an instant model and evaluator."""
    store.spent()
    store.add_task(task)
    outcome = runs.outcome(task)
    if isinstance(task, Compare):
        store.add_comparison_and_tell(runs.comparison(task, outcome.promoted), outcome)
    elif isinstance(task, Mutate) and outcome.status in (Status.OK, Status.COMPILE_ERROR):
        store.add_reply(task.id, 0, REQUEST, REPLY)
        candidate = store.next_candidate()
        store.candidate(task.parents[0])
        store.evaluation(task.parents[0])
        outcome = Outcome(task.id, candidate, outcome.status, outcome.ratio, outcome.descriptors)
        store.add_candidate(runs.candidate(candidate, task.id, task.parents, task.island))
        store.add_evaluation_and_tell(runs.evaluation(candidate, outcome.ratio), outcome)
    else:
        store.tell(outcome)
    search.tell(outcome)


def timed(what: str, act: Callable[[], object]) -> None:
    """Print how long something takes."""
    clock = time.perf_counter()
    act()
    print(f"{what}: {1e3 * (time.perf_counter() - clock):.0f} ms")


if __name__ == "__main__":
    main()
