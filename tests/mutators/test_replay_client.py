"""A recorded run as a model: the files that a run leaves of its calls."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from evo import plugins
from evo.config import Model
from evo.errors import MutatorError
from evo.records import Message, ModelReply, ModelRequest, to_json
from mutators import models
from mutators.clients.replay import Replay

REQUEST = ModelRequest((Message("system", "Be brief."), Message("user", "Say hello.\nAnd why.")), task=7, step=1)
REPLY = ModelReply("ok", text="Hello.", model="gpt-5-mini", cost_usd=0.25, input_tokens=3, attempts=2, uncertain=1)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    calls = tmp_path / "run-001" / "calls"
    calls.mkdir(parents=True)
    (calls / "7-1.json").write_text(f'{{"task": 7, "request": {to_json(REQUEST)}, "reply": {to_json(REPLY)}}}')
    return calls.parent


def ask(run: Path, request: ModelRequest) -> ModelReply:
    return asyncio.run(Replay(str(run)).complete(request))


def test_it_is_made_from_a_config(run: Path) -> None:
    made = models.client(Model(client="replay", name=str(run)))
    assert made == Replay(str(run))
    made.check()
    assert plugins.resolve(plugins.CLIENTS, "replay") is Replay


def test_a_request_gets_its_own_reply(run: Path) -> None:
    assert ask(run, REQUEST) == REPLY


def test_a_request_that_was_not_made_is_an_error(run: Path) -> None:
    reply = ask(run, replace(REQUEST, step=2))
    assert (reply.status, reply.fatal, reply.cost_usd) == ("error", True, 0.0)
    assert "holds no answer to request 2 of task 7" in reply.error


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        (
            (REQUEST.messages[0], Message("user", "Say hello.\nAnd how.")),
            "message 2 (user) differs in line 2: expected 'And why.', found 'And how.'",
        ),
        (REQUEST.messages[:1], "it had 2 messages, and this one has 1"),
        ((Message("system", "Be brief.\nPlease."), REQUEST.messages[1]), "message 1 (system) differs in its length"),
    ],
)
def test_another_request_is_not_answered(run: Path, messages: tuple[Message, ...], words: str) -> None:
    reply = ask(run, replace(REQUEST, messages=messages))
    assert (reply.status, reply.fatal) == ("error", True)
    assert words in reply.error
    assert "`evo replay` derives a whole run anew" in reply.error


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"request": {"messages": []}, "reply": {}}', "\0"])
def test_a_file_that_is_no_call_is_an_error(run: Path, content: str) -> None:
    (run / "calls" / "7-1.json").write_text(content)
    reply = ask(run, REQUEST)
    assert (reply.status, reply.fatal) == ("error", True)
    assert "cannot be read as a call" in reply.error


def test_a_folder_without_calls_is_told_before_the_run(tmp_path: Path) -> None:
    with pytest.raises(MutatorError, match=r"needs the folder of a run that asked models.*evo resume"):
        Replay(str(tmp_path)).check()
