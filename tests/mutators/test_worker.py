"""The worker as a real Ray actor, calling a real server on loopback."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evo.config import Model
from evo.records import Message, ModelFacts, ModelRequest
from evo.runner.cluster import local_ray
from mutators.worker import MutatorWorker
from tests.support.openai_server import Fault, Server, say, serve

REQUEST = ModelRequest((Message("user", "Say hello."),))

STUBBORN = """
from __future__ import annotations
import asyncio, os
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4
from evo.records import ModelFacts, ModelReply, ModelRequest

class Unpicklable(Exception):
    def __init__(self) -> None:
        super().__init__("key sk-abcdefghijklmnop was refused")
        self.trap = lambda: None

@dataclass(frozen=True)
class Stubborn:
    name: str = "raise"
    def check(self) -> None: ...
    def facts(self) -> ModelFacts:
        if self.name == "raise":
            raise Unpicklable
        return ModelFacts(self.name, window_tokens=9)
    async def complete(self, request: ModelRequest) -> ModelReply:
        if self.name == "raise":
            raise Unpicklable
        if self.name == "wait":
            Path(__file__).with_name(f"waits-{uuid4()}").touch()
            await asyncio.sleep(3600)
        return ModelReply("ok", text=os.environ.get(request.messages[0].content, "unset"))
"""


@pytest.fixture(scope="module")
def ray() -> Iterator[Any]:
    with local_ray(num_cpus=1) as module:
        yield module


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serve(say("Hello.")) as running:
        yield running


@pytest.fixture(scope="module")
def clients(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("clients")


@pytest.fixture(scope="module")
def worker(ray: Any, server: Server, clients: Path) -> Any:
    stubborn = clients / "stubborn.py"
    stubborn.write_text(STUBBORN)
    models = (
        Model(api_base=server.url, attempts=1),
        *(Model(client=str(stubborn), name=name) for name in ("raise", "wait", "environment")),
        Model(api_base=server.url, concurrency=3),
        Model(name="gpt-5", api_base=server.url, concurrency=2),
    )
    actor = ray.remote(num_cpus=0, max_restarts=0, max_concurrency=32)(MutatorWorker)
    return actor.remote(models, 8, {"A_PROVIDERS_API_KEY": "forwarded"})


def test_a_reply_comes_back_whole(ray: Any, worker: Any, server: Server) -> None:
    reply = ray.get(worker.complete.remote(0, REQUEST), timeout=60)
    assert (reply.status, reply.text, reply.model, reply.attempts) == ("ok", "Hello.", "gpt-5-mini", 1)
    assert reply.cost_usd > 0
    assert server.requests[-1].body["reasoning_effort"] == "medium"


def test_a_providers_failure_is_a_reply_of_plain_data(ray: Any, worker: Any, server: Server) -> None:
    server.faults.append(Fault("status", 400, message="bad request"))
    reply = ray.get(worker.complete.remote(0, REQUEST), timeout=60)
    assert reply.status == "error"
    assert "bad request" in reply.error


def test_what_a_foreign_client_raises_is_a_reply_too(ray: Any, worker: Any) -> None:
    reply = ray.get(worker.complete.remote(1, REQUEST), timeout=60)
    assert (reply.status, reply.error) == ("error", "Unpicklable: key [redacted] was refused")


def test_no_more_calls_than_asked_are_in_flight_and_it_answers_meanwhile(ray: Any, worker: Any, clients: Path) -> None:
    waiting = [worker.complete.remote(2, REQUEST) for _ in range(8)]
    end = time.monotonic() + 60
    while len(list(clients.glob("waits-*"))) < 8:
        assert time.monotonic() < end
        time.sleep(0.01)
    behind = worker.complete.remote(1, REQUEST)
    assert ray.get(worker.ready.remote(), timeout=60) != os.getpid()
    assert ray.wait([behind], timeout=0.5)[0] == []
    ray.cancel(waiting[0])
    assert ray.get(behind, timeout=60).status == "error"
    for call in waiting[1:]:
        ray.cancel(call)


def test_forwarded_variables_arrive(ray: Any, worker: Any) -> None:
    request = ModelRequest((Message("user", "A_PROVIDERS_API_KEY"),))
    assert ray.get(worker.complete.remote(3, request), timeout=60).text == "forwarded"


def test_what_is_known_of_each_model_is_told(ray: Any, worker: Any) -> None:
    facts = ray.get(worker.facts.remote(), timeout=60)
    names = ["openai/gpt-5-mini", "raise", "wait", "environment", "openai/gpt-5-mini", "openai/gpt-5"]
    assert [fact.name for fact in facts] == names
    assert facts[0].input_usd == 0.25e-6
    assert facts[1] == ModelFacts("raise")
    assert facts[2] == ModelFacts("wait", window_tokens=9)


def test_models_of_one_server_share_the_smallest_limit(ray: Any, worker: Any, server: Server) -> None:
    server.most_at_once = 0
    server.faults.extend([Fault("slow", delay_s=0.2)] * 6)
    replies = [worker.complete.remote(model, REQUEST) for model in (0, 4, 5) * 2]
    assert [reply.status for reply in ray.get(replies, timeout=60)] == ["ok"] * 6
    assert server.most_at_once == 2


def test_a_model_that_waits_for_its_provider_holds_no_place_of_another(ray: Any, worker: Any, server: Server) -> None:
    server.faults.extend([Fault("slow", delay_s=1.0)] * 20)
    crowd = [worker.complete.remote(4, REQUEST) for _ in range(20)]
    assert ray.get(worker.complete.remote(3, REQUEST), timeout=60).text == "unset"
    server.faults.clear()
    assert len(ray.wait(crowd, num_returns=20, timeout=0)[1]) > 0
    ray.get(crowd, timeout=60)


def test_importing_the_package_stays_light() -> None:
    code = "import mutators, mutators.worker, mutators.models, sys; print({'ray', 'litellm'} & set(sys.modules))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert result.stdout == "set()\n"
