"""What of a run an operator sees: tools, or what tools would say."""

from __future__ import annotations

from pathlib import Path

import pytest

from evo.config import Config
from evo.records import Candidate, ModelFacts, ModelRequest, Mutate
from evo.runner.mutation import Mutations
from evo.search import Search
from evo.store import Store
from tests.support import runs
from tests.support.mutation import GPU, NAIVE, WORKLOAD, accepted

LISTING = "SASS for sm_90a: 64 FFMA in the loop"


def first_request(folder: Path, facts: ModelFacts, **changes: object) -> ModelRequest:
    """The first request of a task on a kernel whose machine code somebody has looked at."""
    config = Config.model_validate({"workload": "gemm", "operators": {"rewrite": 1.0}, **changes})
    with Store.create(
        folder,
        config=config,
        workload=WORKLOAD,
        device=GPU,
        initial=Candidate(0, -1, NAIVE, "hash", "initial", (), 0),
        search_version=Search.version,
        versions={},
    ) as store:
        store.add_evaluation(accepted(0, 1500.0))
        store.add_code(0, "digest", LISTING)
        step = Mutations(store, config, WORKLOAD, GPU).step(Mutate(0, "rewrite", 0, (0,)), (), (facts,))
    assert isinstance(step, ModelRequest)
    return step


@pytest.mark.parametrize("calls_tools", [True, False])
def test_a_model_can_look_by_itself_or_is_told(tmp_path: Path, calls_tools: bool) -> None:
    request = first_request(tmp_path, ModelFacts("m", window_tokens=100_000, tools=calls_tools))
    told = "".join(message.content for message in request.messages)
    assert (LISTING in told) is not calls_tools
    assert bool(request.tools) is calls_tools
    assert "registers a thread" in told


def test_with_no_rounds_there_is_neither(tmp_path: Path) -> None:
    request = first_request(tmp_path, ModelFacts("m", window_tokens=100_000, tools=True), tools={"rounds": 0})
    assert request.tools == ()
    assert LISTING not in "".join(message.content for message in request.messages)


def test_what_a_compiler_made_of_a_candidate_is_kept(tmp_path: Path) -> None:
    with Store.create(
        tmp_path,
        config=runs.config(),
        workload=runs.WORKLOAD,
        device=runs.DEVICE,
        initial=runs.candidate(0),
        search_version=Search.version,
        versions={},
    ) as store:
        assert store.code(0) == ("", "")
        store.add_code(0, "digest", LISTING)
        store.add_code(0, "digest", LISTING)
        assert store.code(0) == ("digest", LISTING)
        assert store.find_by_code("digest", before=1) == 0
        assert store.find_by_code("digest", before=0) is None
        assert store.find_by_code("other", before=1) is None
