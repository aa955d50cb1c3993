"""The client `replay`: the replies of a run that has been, by task and step. No key, no network, no new cost.

For devices whose evaluations repeat to the digit, since prompts quote them; `evo replay` needs no device. It reads the
files that a run leaves of its calls (`calls/TASK-STEP.json`), never its database.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from evo.errors import MutatorError
from evo.records import Message, ModelReply, ModelRequest, from_json


@dataclass(frozen=True)
class Replay:
    """Answers as a recorded run was answered; tokens and cost are those of the record.

    Attributes:
        name: the run's folder, e.g. `results/run-001`.
    """

    name: str

    def check(self) -> None:
        """Raise `MutatorError` when the folder holds no calls."""
        if not self._calls().is_dir():
            raise MutatorError(
                f"model {self.name!r}: the client 'replay' needs the folder of a run that asked models, e.g. "
                f"name: results/run-001, and {self._calls()} is none. The run writes it when it ends: `evo resume` "
                "goes on with one that has not"
            )

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Return the recorded reply, or an error where the run was not asked this."""
        file = self._calls() / f"{request.task}-{request.step}.json"
        try:
            call = json.loads(file.read_text(encoding="utf-8"))
            asked = from_json(tuple[Message, ...], json.dumps(call["request"]["messages"]))
            reply = from_json(ModelReply, json.dumps(call["reply"]))
        except FileNotFoundError:
            return _error(f"{self.name} holds no answer to request {request.step} of task {request.task}")
        except (OSError, ValueError, KeyError, TypeError) as error:
            return _error(f"{file} cannot be read as a call: {error}")
        if asked != request.messages:
            return _error(f"{file} answers another request: {_difference(asked, request.messages)}")
        return reply

    def _calls(self) -> Path:
        return Path(self.name).expanduser() / "calls"


def _error(what: str) -> ModelReply:
    said = (
        f"{what}. Prompts quote what was measured, so that only a run with equal evaluations asks the same; "
        "`evo replay` derives a whole run anew from what is stored"
    )
    return ModelReply("error", attempts=0, cost_usd=0.0, error=said, fatal=True)


def _difference(asked: tuple[Message, ...], now: tuple[Message, ...]) -> str:
    """Say where two conversations part."""
    for number, (old, new) in enumerate(zip(asked, now, strict=False), 1):
        if old != new:
            return f"message {number} ({new.role}) differs{_first_line(old.content, new.content)}"
    return f"it had {len(asked)} messages, and this one has {len(now)}"


def _first_line(old: str, new: str) -> str:
    for number, (was, is_now) in enumerate(zip(old.split("\n"), new.split("\n"), strict=False), 1):
        if was != is_now:
            return f" in line {number}: expected {was[:80]!r}, found {is_now[:80]!r}"
    return " in its length"
