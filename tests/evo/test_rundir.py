from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import yaml

from evo.config import Config
from evo.errors import StoreError
from evo.records import Message, ModelReply, ModelRequest, Mutate, Outcome, Status, Workload, from_json
from evo.store import Store, rundir
from tests.support import runs


def test_runs_are_numbered_from_1_and_after_the_highest(tmp_path: Path) -> None:
    assert rundir.new(tmp_path / "results").name == "run-001"
    (tmp_path / "results" / "run-041").mkdir()
    (tmp_path / "results" / "run-of-mine").mkdir()
    (tmp_path / "results" / "README.md").touch()
    assert rundir.new(tmp_path / "results").name == "run-042"
    (tmp_path / "results" / "run-1000").mkdir()
    assert rundir.new(tmp_path / "results").name == "run-1001"


def test_runs_that_start_at_once_never_share_a_folder(tmp_path: Path) -> None:
    with ThreadPoolExecutor(16) as pool:
        folders = list(pool.map(lambda _: rundir.new(tmp_path), range(64)))
    assert sorted(folder.name for folder in folders) == [f"run-{number:03}" for number in range(1, 65)]


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path) -> None:
    rundir.write_atomic(tmp_path / "deep" / "file", b"old")
    rundir.write_atomic(tmp_path / "deep" / "file", b"new")
    assert (tmp_path / "deep" / "file").read_bytes() == b"new"
    (tmp_path / "deep" / "folder").mkdir()
    with pytest.raises(StoreError, match="cannot be written: Is a directory"):
        rundir.write_atomic(tmp_path / "deep" / "folder", b"no")
    assert sorted(path.name for path in (tmp_path / "deep").iterdir()) == ["file", "folder"]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    folder = rundir.new(tmp_path)
    with Store.create(
        folder,
        config=runs.config(seed=5),
        workload=runs.WORKLOAD,
        device=runs.DEVICE,
        initial=runs.candidate(0),
        search_version=1,
        versions={},
    ) as store:
        store.add_evaluation_and_tell(runs.evaluation(0, 1.0), Outcome(-1, 0, Status.OK, 1.0))
        for number, ratio in ((1, 0.5), (2, None)):
            store.add_task(Mutate(number - 1, "rewrite", 0, (0,)))
            store.add_reply(number - 1, 0, ModelRequest((Message("user", "go"),)), ModelReply("ok", "a kernel"))
            store.add_candidate(runs.candidate(number, number - 1, (0,)))
            evaluation = runs.evaluation(number, ratio)
            store.add_evaluation_and_tell(evaluation, Outcome(number - 1, number, evaluation.status, ratio))
    with Store.read(folder) as reader:
        yield reader


def test_everything_beside_the_database_is_derived_from_it(store: Store) -> None:
    rundir.derive(store, champion=1)

    def read(name: str) -> str:
        return (store.folder / name).read_text()

    assert Config.model_validate_json(json.dumps(yaml.safe_load(read("config.yaml")))) == runs.config(seed=5)
    assert from_json(Workload, read("workload.json")) == runs.WORKLOAD
    assert read("best.cu") == read("kernels/1.cu") == "// tuned 1\n"
    assert read("kernels/2.cu") == "// kernel 2\n", "what was never tuned is kept as it was proposed"
    assert json.loads(read("calls/1-0.json"))["reply"]["text"] == "a kernel"
    assert [event["kind"] for event in json.loads(read("history.json"))] == ["start", "ask", "tell", "ask", "tell"]
    request = json.loads(read("requests/large.json"))
    assert (request["candidate"], request["seed"], request["case"]["dims"]) == (1, 5, {"n": 4096})
    assert (request["launch_config"], request["latency_us"]) == ({"BX": 32, "BY": 8}, 12.5)


def test_hidden_cases_are_in_no_request(store: Store) -> None:
    rundir.derive(store, champion=1)
    assert [path.name for path in (store.folder / "requests").iterdir()] == ["large.json"]


def test_missing_files_are_rebuilt_and_present_ones_left_alone(store: Store) -> None:
    rundir.derive(store, champion=0)
    (store.folder / "kernels" / "0.cu").write_text("// annotated by hand\n")
    (store.folder / "config.yaml").unlink()
    shutil.rmtree(store.folder / "calls")
    rundir.derive(store, champion=1)
    assert (store.folder / "kernels" / "0.cu").read_text() == "// annotated by hand\n"
    assert (store.folder / "config.yaml").exists()
    assert len(list((store.folder / "calls").iterdir())) == 2
    assert (store.folder / "best.cu").read_text() == "// tuned 1\n", "the best kernel follows the champion"
