from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evo.records import ModelReply
from mutators import replies
from tests.support.mutation import FASTER, replied


@pytest.mark.parametrize(
    ("text", "finish_reason", "words"),
    [
        ("", "stop", "the reply is empty"),
        (" \n", "length", "the reply is empty: all its tokens went into reasoning"),
        ("The loop", "length", "the reply was cut off before its kernel was complete"),
        ("I'm sorry, but I can't help with that.", "stop", replies.REFUSED),
        ("I cannot assist.", "stop", replies.REFUSED),
        ("I’m unable to do so.", "stop", replies.REFUSED),
        ("Sorry, no.", "stop", replies.REFUSED),
        ("I can make this faster.", "stop", ""),
        ("The kernel is sorry to look at.", "stop", ""),
    ],
)
def test_a_reply_says_what_is_wrong_with_it(text: str, finish_reason: str, words: str) -> None:
    assert replies.lacking(text, finish_reason) == words


@pytest.mark.parametrize("reason", ["content_filter", "SAFETY", "RECITATION"])
def test_a_filter_ends_it(reason: str) -> None:
    assert replies.failure(replied("", reason)) == f"the provider withheld the answer ({reason})"
    assert replies.failure(replied("", "stop")) == ""
    assert replies.failure(replied("I will not.", "refusal")) == "the reply is a refusal: I will not."
    assert replies.failure(replied("", "refusal")) == "the reply is a refusal"
    assert replies.failure(ModelReply("error", error="timeout")) == "no reply: timeout"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"a": 1}', [{"a": 1}]),
        ('Here:\n```json\n{"a": "x\ny"}\n```\nand {b} or {"c": {"d": 2}}', [{"a": "x\ny"}, {"c": {"d": 2}}]),
        ("{} {", []),
        ('{"a": 1', []),
        ("[1, 2]", []),
    ],
)
def test_json_is_found_wherever_it_stands(text: str, found: list[object]) -> None:
    assert list(replies.objects(text)) == found


@pytest.mark.parametrize(
    "text", ["{" * 200_000, '{"a":' * 100_000, "[" * 100_000 + '{"a": ' + "[" * 100_000, "{}" * 99_999]
)
def test_no_depth_of_json_is_a_trouble(text: str) -> None:
    assert list(replies.objects(text)) == []


@given(st.text('{}[]":,a1\\ \n', max_size=80))
def test_no_text_raises(text: str) -> None:
    assert all(isinstance(found, dict) for found in replies.objects(text))


def test_a_note_is_what_was_said_in_brief() -> None:
    assert replies.note(f"It waits.\nNow not.\n```cuda\n{FASTER}```", "two edits") == "It waits. Now not. · two edits"
    assert replies.note('{"note": "It waits.\\u202e", "edits": []}') == "It waits."
    assert replies.note('{"edits": []}') == ""
    assert replies.note("because " * 100).endswith("because …")


def test_a_long_reply_is_quoted_from_its_end() -> None:
    assert replies.quoted(replied("a" * 9000 + "end")) == "a" * (replies.MOST_QUOTED - 3) + "end"
    assert replies.quoted(replied("\x1b[2J ")) == "(an empty answer)"


def test_a_refusals_words_are_for_people() -> None:
    assert replies.unusable(replies.REFUSED, replied("I can't.\x1b[2J")) == "the reply is a refusal: I can't."
    assert replies.unusable("the reply is empty", replied("")) == "the reply is empty"
