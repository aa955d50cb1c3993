"""A model that writes the same kernel twice in other words: the second one costs no evaluation."""

from __future__ import annotations

from pathlib import Path

import pytest

from evo import sandbox, workload
from evo.config import Config
from evo.records import Status
from evo.runner.observer import Silent
from evo.runner.run import run
from evo.store import Store
from tests.support import squares

pytestmark = pytest.mark.skipif(sandbox.available() != "", reason=f"no sandbox: {sandbox.available()}")

RENAMED = squares.FAST.replace("int i =", "int element =").replace("[i]", "[element]").replace("(i <", "(element <")
KERNELS = (squares.FAST, RENAMED, squares.INITIAL.replace("tile", "kept"), squares.WRONG)
"""By task: a new one, the same in other words, the initial kernel in other words, another new one."""

CLIENT = f"""
import asyncio
from dataclasses import dataclass
from evo.records import ModelReply

KERNELS = {KERNELS!r}


@dataclass(frozen=True)
class Author:
    name: str = "author"

    def check(self):
        return None

    async def complete(self, request):
        await asyncio.sleep(0.2 * (3 - request.task % 4))  # the last one asked answers first
        return ModelReply("ok", text="```cuda\\n" + KERNELS[request.task % 4] + "```", cost_usd=0.0)
"""


@pytest.mark.parametrize("order", ["fixed", pytest.param("arrival", marks=pytest.mark.long)])
def test_a_kernel_in_other_words_is_a_duplicate_of_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, order: str
) -> None:
    squares.write(tmp_path)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "author.py").write_text(CLIENT)
    folder = tmp_path / "run"
    folder.mkdir()
    config = {
        "workload": "squares",
        "device": "host",
        "operators": {"rewrite": 1.0},
        "models": [{"client": str(tmp_path / "author.py"), "name": "author"}],
        "search": {"order": order, "in_flight": 4},
        "tuning": {"trials": 0},
        "timing": {"warmup": 1, "launches": 5},
        "budget": {"evaluations": 4, "idle": 2, "cost_usd": None},
    }
    run(Config.model_validate(config, strict=False), workload.load("squares"), folder, Silent())
    with Store.read(folder) as store:
        found = {made.task: (made, store.evaluation(made.id)) for made in store.candidates()}
        outcomes = {event.task.id: event.outcome for event in store.events() if event.outcome and event.task}
    twins = [evaluation for _, evaluation in found.values() if evaluation and evaluation.status is Status.DUPLICATE]
    assert {(twin.stage, twin.cases, twin.trials) for twin in twins} == {("screen", (), ())}
    rewritten, evaluation = found[2]
    assert evaluation is not None
    assert (evaluation.status, evaluation.message) == (
        Status.DUPLICATE,
        "the same machine code and launches as kernel 0, written in another way",
    )
    assert outcomes[2].status is Status.DUPLICATE
    pair = {number: found[number][1] for number in (0, 1)}
    assert [one.status for one in pair.values() if one].count(Status.DUPLICATE) == 1
    if order == "fixed":
        first = found[0][0].id
        assert pair[1] is not None
        assert pair[1].message.startswith(f"the same machine code and launches as kernel {first},")
    assert rewritten.operator == "rewrite"
