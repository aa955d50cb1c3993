"""What a model's reply says of itself: that there is none, that it was refused or cut off, a note, JSON inside it.

A reply is data: nothing in it is obeyed. What it proposes is for `extract` and `edits` to find.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from evo.records import ModelReply
from mutators import fences

REFUSED = "the reply is a refusal"

MOST_QUOTED = 8000
"""Characters of a useless reply that are sent back with the second request."""
_MOST_NOTE = 300
_MOST_REFUSAL = 160
_MOST_OBJECTS = 40  # places in a reply where JSON may begin that are tried; prose with more braces holds none
_WITHHELD = frozenset({"content_filter", "safety", "recitation", "blocklist", "prohibited_content", "spii"})
"""Finish reasons of OpenAI, Anthropic and Google for an answer that a filter took back."""
_REFUSAL = re.compile(
    r"\s*(?:sorry|i(?:['’]m| am) (?:sorry|unable)|i (?:can['’]t|cannot|won['’]t|will not|must decline))\b",
    re.IGNORECASE,
)


def failure(reply: ModelReply) -> str:
    """Say why asking again is of no use; "" where the reply may be read."""
    if reply.status != "ok":
        return f"no reply: {reply.error}"
    if reply.finish_reason == "refusal":
        said = fences.line(reply.text, _MOST_REFUSAL)
        return f"{REFUSED}: {said}" if said else REFUSED
    if reply.finish_reason.lower() in _WITHHELD:
        return f"the provider withheld the answer ({reply.finish_reason})"
    return ""


def lacking(text: str, finish_reason: str) -> str:
    """Say what is wrong with a reply as a whole: empty, refused or cut off; "" where it is neither."""
    if not text.strip():
        spent = ": all its tokens went into reasoning" if finish_reason == "length" else ""
        return f"the reply is empty{spent}"
    if finish_reason == "length":
        return "the reply was cut off before its kernel was complete"
    if _REFUSAL.match(text):
        return REFUSED
    return ""


def unusable(problem: str, reply: ModelReply) -> str:
    """Return, for people, why a reply was of no use; of a refusal its first words too."""
    return f"{problem}: {fences.line(reply.text, _MOST_REFUSAL)}" if problem == REFUSED else problem


def note(reply: str, remark: str = "") -> str:
    """Return what the model said about its change, in brief, and what was done to its reply."""
    spoken = _spoken(reply)
    return " · ".join(part for part in (fences.line(spoken, _MOST_NOTE), remark) if part)


def quoted(reply: ModelReply) -> str:
    """Return as much of a useless reply as is sent back to its model."""
    return fences.clean(reply.text).strip()[-MOST_QUOTED:] or "(an empty answer)"


def objects(text: str) -> Iterator[Mapping[str, Any]]:
    """Yield the JSON objects of a reply that hold keys: the reply itself, in fences, or inside prose."""
    decoder, position = json.JSONDecoder(strict=False), 0
    for _ in range(_MOST_OBJECTS):
        position = text.find("{", position)
        if position < 0:
            return
        try:
            value, position = decoder.raw_decode(text, position)
        except (ValueError, RecursionError):
            position += 1
            continue
        if isinstance(value, dict) and value:
            yield value


def _spoken(reply: str) -> str:
    if reply.lstrip().startswith("{"):
        said = [found["note"] for found in objects(reply) if isinstance(found.get("note"), str)]
        return said[0] if said else ""
    return fences.outside(reply)
