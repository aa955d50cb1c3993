"""Ten kinds of workloads out of a sentence and recorded replies; mistakes in a reference do not get through."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from evaluators.oracle import self_test
from evo.generate import checks, parts
from evo.generate.making import Maker
from evo.records import ModelFacts, ModelReply, ModelRequest, Role, Workload
from evo.workload import public
from mutators.clients.litellm import LiteLLM
from tests.support import descriptions
from tests.support.descriptions import KINDS, MISTAKES
from tests.support.openai_server import serve

TEN = (
    *("attention", "batched_gemm", "convolution", "elementwise", "gemm"),
    *("histogram", "reduction", "scan", "sort", "spmv"),
)
ONE = "reduction"
"""The kind of the normal suite: two outputs, exact, and a mistake that shows in ties alone."""
EVERY_KIND = [pytest.param(kind, marks=() if kind == ONE else pytest.mark.long) for kind in KINDS]
EVERY_MISTAKE = [
    pytest.param(kind, mistake, marks=() if kind == ONE else pytest.mark.long)
    for kind in KINDS
    for mistake in MISTAKES[kind]
]
HOSTILE = ("ones", "heavy_tailed", "lowest", "highest")


@dataclass
class Http:
    """Asks a model over HTTP, as the product does, and remembers what was asked and told."""

    complete: Callable[[LiteLLM, ModelRequest], ModelReply]
    client: LiteLLM
    asked: list[str] = field(default_factory=list)
    told: list[str] = field(default_factory=list)

    def facts(self, model: int) -> ModelFacts:
        return self.client.facts()

    def ask(self, name: str, request: ModelRequest, model: int) -> ModelReply:
        self.asked.append(name)
        return self.complete(self.client, request)

    def tell(self, line: str) -> None:
        self.told.append(line)


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-a-server-on-loopback")


Make = Callable[..., tuple[Workload, Http]]


@pytest.fixture(scope="module")
def make(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Make]:
    """Make the workload of a kind; keywords are other replies, by the request's name."""
    with asyncio.Runner() as runner:

        def made(kind: str, **instead: str) -> tuple[Workload, Http]:
            with serve(descriptions.model(kind, **instead)) as server:
                asker = Http(lambda client, request: runner.run(client.complete(request)), LiteLLM(api_base=server.url))
                supplied = parts.supplied(descriptions.description(kind))
                return Maker(supplied, tmp_path_factory.mktemp(kind), asker).make(), asker

        yield made
        runner.run(_close())


async def _close() -> None:
    import litellm

    closing: Callable[[], Coroutine[Any, Any, None]] = litellm.close_litellm_async_clients
    await closing()


def test_there_are_ten_kinds_each_with_mistakes():
    assert KINDS == TEN
    assert set(MISTAKES) == set(TEN)
    assert all(len(mistakes) >= 2 for mistakes in MISTAKES.values())


@pytest.mark.parametrize("kind", EVERY_KIND)
def test_a_sentence_becomes_a_whole_workload(kind: str, make: Make):
    workload, asker = make(kind)

    assert asker.asked == ["contract", "reference", "second-reference", "kernel"], asker.told
    assert workload.generated == ("signature", "cases", "reference", "kernel")
    assert workload.description.startswith(descriptions.description(kind))
    assert "agrees with a second, independently generated one" in workload.trust
    assert "left out" not in workload.trust, "a hidden case that a right kernel may fail"
    assert self_test(workload, seed=1) == ()
    judged = checks.judge(workload, workload.initial, seed=1)
    assert (judged.problem, judged.skipped) == ("", "")
    assert judged.cases == len(workload.role(Role.CORRECTNESS, Role.HIDDEN))
    assert judged.error < 0.5, "a textbook kernel uses half of the tolerance: no room for another order of additions"
    _check_hidden_cases(workload)


def _check_hidden_cases(workload: Workload) -> None:
    """They reach what finds wrong kernels: dims at 1, odd, and no two alike; values at the edge."""
    hidden = workload.role(Role.HIDDEN)
    assert any(set(case.dims.values()) == {1} for case in hidden)
    assert any(case.draws and len(set(case.dims.values())) == len(case.dims) for case in hidden)
    for dim in workload.dims:
        assert any(case.dims[dim] == 1 < max(case.dims.values()) for case in hidden), f"{dim} is nowhere 1 alone"
        assert any(case.dims[dim] > 1 and case.dims[dim] % 2 for case in hidden), f"{dim} is nowhere odd"
    assert sum(case.name.split("_2")[0] in HOSTILE for case in hidden) >= 2
    assert not {case.name for case in hidden} & {case.name for case in public(workload).cases}


@pytest.mark.parametrize(("kind", "mistake"), EVERY_MISTAKE)
def test_a_reference_with_a_mistake_is_outvoted(kind: str, mistake: str, make: Make):
    workload, asker = make(kind, reference=descriptions.mistaken(kind, mistake))

    assert asker.asked == ["contract", "reference", "second-reference", "third-reference", "kernel"]
    assert "the first was thrown away" in workload.trust
    assert workload.reference.strip() in descriptions.reply(kind, "second-reference")
