"""A search whose only operator is `rewrite`, through the command line, against a model server on loopback."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from evo import config as configs
from evo.config import Config
from evo.records import Evaluation, Message, ModelReply, ModelRequest, Mutate, Status
from evo.store import Store
from mutators import models
from tests.support import squares
from tests.support.openai_server import Answer, Recorded, Server, serve

EVO = Path(sys.executable).with_name("evo")
KEY = "sk-run-3f9a1c7be2d84"
PROVIDER_VARIABLES = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_API_BASE", "HOSTED_VLLM_API_KEY", "OLLAMA_API_KEY")

REFUSAL = "I would rather write a poem about kernels."
FIRST = f"The barrier costs a switch for every thread; nothing needs it.\n\n```cuda\n{squares.FAST}```\n"
REPLIES = (FIRST, REFUSAL, REFUSAL, f"My key is no kernel.\n\n```cuda\n{squares.WRONG}```\n")
"""What the model says, request by request: two refusals in a row are one task."""


@dataclass(frozen=True)
class Done:
    """A run that has ended: its folder, what the server got, and what the command said."""

    folder: Path
    requests: list[Recorded]
    said: str


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Done:
    place = tmp_path_factory.mktemp("rewrite")
    squares.write(place)
    replies = iter(REPLIES)
    with serve(lambda recorded: Answer(next(replies))) as server:
        (place / "search.yaml").write_text(search(f'[{{reasoning_effort: low, api_base: "{server.url}"}}]'))
        (place / ".env").write_text(f"OPENAI_API_KEY={KEY}\n")
        environment = {name: value for name, value in os.environ.items() if name not in PROVIDER_VARIABLES}
        ended = subprocess.run(
            [EVO, "run", "search.yaml"], cwd=place, env=environment, capture_output=True, text=True, timeout=240
        )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return Done(place / "results" / "run-001", server.requests, ended.stdout + ended.stderr)


def search(listed: str) -> str:
    """Return a config's text: one task at a time, so that the requests come in one order, and few launches."""
    return (
        "workload: squares\n"
        "device: host\n"
        f"models: {listed}\n"
        "operators: {rewrite: 1}\n"
        "search: {in_flight: 1}\n"
        "tuning: {trials: 0}\n"
        "timing: {warmup: 1, launches: 10}\n"
        "budget: {evaluations: 2}\n"
    )


# --- one run --------------------------------------------------------------------------------------------------


def test_every_request_carries_model_effort_key_and_the_parents_feedback(done: Done) -> None:
    with Store.read(done.folder) as store:
        calls, evaluations = store.calls(), store.evaluations()
        parents = {task.id: task.parents[0] for task in store.tasks() if isinstance(task, Mutate)}
    assert len(done.requests) == len(calls) == len(REPLIES)
    for recorded, call in zip(done.requests, calls, strict=True):
        assert recorded.body["model"] == "gpt-5-mini"
        assert recorded.body["reasoning_effort"] == "low"
        assert recorded.authorization == f"Bearer {KEY}"
        asked = [(message["role"], message["content"]) for message in recorded.body["messages"]]
        assert asked == [(message.role, message.content) for message in call.request.messages]
        _, _, told = recorded.text.partition(f"# The kernel to change (#{parents[call.task]})")
        for words in feedback(evaluations[parents[call.task]]):
            assert words in told


def feedback(evaluation: Evaluation) -> tuple[str, ...]:
    """What a model must hear of a kernel that is right."""
    (large,) = (case for case in evaluation.cases if case.case == "large")
    assert large.latency is not None
    median_us = large.latency.median_us
    return (
        "Verdict: ok: right on every case",
        f"{evaluation.ratio:.3f} times the anchor's latency",
        f"latency {median_us:,.0f} µs" if median_us >= 1000 else f"latency {median_us:.4g} µs",
    )


def test_no_request_tells_of_hidden_cases(done: Done) -> None:
    assert not [recorded for recorded in done.requests if str(squares.HIDDEN_SIZE) in json.dumps(recorded.body)]


def test_text_tokens_and_cost_are_in_the_database_and_in_the_files(done: Done) -> None:
    with Store.read(done.folder) as store:
        calls, spent = store.calls(), store.spent()
    assert tuple(call.reply.text for call in calls) == REPLIES
    for call, recorded in zip(calls, done.requests, strict=True):
        tokens_in, tokens_out = len(recorded.text) // 4 + 1, len(call.reply.text) // 4 + 1 + 64
        assert (call.reply.input_tokens, call.reply.output_tokens) == (tokens_in, tokens_out)
        # gpt-5-mini: $0.25 and $2.00 for a million tokens in and out
        assert call.reply.cost_usd == pytest.approx(tokens_in * 0.25e-6 + tokens_out * 2e-6)
        written = json.loads((done.folder / "calls" / f"{call.task}-{call.step}.json").read_text())["reply"]
        for name in ("text", "input_tokens", "output_tokens", "cost_usd"):
            assert written[name] == getattr(call.reply, name)
    costs = json.loads((done.folder / "summary.json").read_text())["cost"]
    assert costs["calls"] == len(REPLIES)
    assert costs["cost_usd"] == spent.cost_usd == pytest.approx(sum(call.reply.cost_usd or 0 for call in calls))
    assert costs["input_tokens"] == sum(call.reply.input_tokens or 0 for call in calls)


def test_the_models_faster_kernel_is_the_champion(done: Done) -> None:
    assert (done.folder / "best.cu").read_text() == squares.FAST
    summary = json.loads((done.folder / "summary.json").read_text())
    assert summary["best"]["candidate"] == 1
    assert summary["best"]["note"].startswith("The barrier costs")
    assert summary["speedup"]["low"] > 1


def test_a_reply_without_code_is_no_proposal_and_the_run_goes_on(done: Done) -> None:
    with Store.read(done.folder) as store:
        outcomes = {event.outcome.task: event.outcome for event in store.events() if event.outcome}
        (refused,) = (outcome for outcome in outcomes.values() if outcome.status is Status.NO_PROPOSAL)
        assert [turn.reply.text for turn in store.turns(refused.task)] == [REFUSAL, REFUSAL]
        assert refused.cost_usd > 0
        later = {outcome.status for outcome in outcomes.values() if outcome.task > refused.task}
        assert later == {Status.WRONG_ANSWER}
        assert store.meta().stopped == "evaluations"
    assert "no proposal" in done.said


def test_the_key_is_nowhere_in_the_runs_folder(done: Done) -> None:
    files = [path for path in done.folder.rglob("*") if path.is_file()]
    assert done.folder / "evo.db" in files
    assert not [path for path in files if KEY.encode() in path.read_bytes()]
    assert KEY not in done.said


# --- another provider -----------------------------------------------------------------------------------------


def ask(config: Config) -> ModelReply:
    """Make one call with the client of the config's only model."""

    async def once() -> ModelReply:
        reply = await models.client(config.models[0]).complete(ModelRequest((Message("user", "Hello?"),)))
        import litellm

        await litellm.close_litellm_async_clients()
        return reply

    return asyncio.run(once())


def changed(one: str, other: str) -> list[str]:
    return [line for line, twin in zip(one.splitlines(), other.splitlines(), strict=True) if line != twin]


@pytest.mark.parametrize(
    ("name", "model", "path"),
    [
        ("hosted_vllm/Qwen/Qwen3-Coder", "Qwen/Qwen3-Coder", "/v1/chat/completions"),
        ("openrouter/qwen/qwen3-coder", "qwen/qwen3-coder", "/v1/chat/completions"),
        ("ollama_chat/qwen3", "qwen3", "/api/chat"),
    ],
)
def test_another_provider_is_one_other_line(
    name: str, model: str, path: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for variable in PROVIDER_VARIABLES:
        monkeypatch.delenv(variable, raising=False)
    squares.write(tmp_path)
    with serve() as here, serve() as there:
        before = search(f'[{{api_base: "{here.url}"}}]')
        base = there.url.removesuffix("/v1") if name.startswith("ollama") else there.url
        after = search(f'[{{name: {name}, api_base: "{base}", attempts: 1}}]')
        assert len(changed(before, after)) == 1
        assert ask(configs.load(before)).status == "ok"
        assert received(here) == [("/v1/chat/completions", "gpt-5-mini")]
        ask(configs.load(after))
        assert received(there)[0] == (path, model)
        assert len(here.requests) == 1


def received(server: Server) -> list[tuple[str, str]]:
    return [(recorded.path, recorded.body["model"]) for recorded in server.requests]
