from __future__ import annotations

import importlib.util
import os
import random
import string
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from evo.records import ModelFacts
from mutators.fitting import DEFAULT_REPLY, DEFAULT_WINDOW, Section, fit, least, room, tokens

ROOT = Path(__file__).parents[2]
OURS = [
    *sorted((ROOT / "tests" / "golden").glob("*.txt")),
    *sorted((ROOT / "benchmarks" / "workloads").glob("*/*.cu")),
    *sorted((ROOT / "benchmarks" / "redteam").glob("*.cu")),
]

Count = Callable[[str], int]


def _tokenizers_folder() -> Path:
    litellm = importlib.util.find_spec("litellm")
    assert litellm is not None
    assert litellm.origin is not None
    return Path(litellm.origin).parent / "litellm_core_utils" / "tokenizers"


@pytest.fixture(scope="module")
def real() -> Mapping[str, Count]:
    """Tokenizers whose files come with litellm: two of OpenAI's, and what Anthropic and DeepSeek have published."""
    folder = _tokenizers_folder()
    os.environ["TIKTOKEN_CACHE_DIR"] = str(folder)
    tiktoken = pytest.importorskip("tiktoken")
    hugging = pytest.importorskip("tokenizers")
    found: dict[str, Count] = {}
    for name, file in (("cl100k_base", "9b5ad71b2ce5"), ("o200k_base", "fb374d419588")):
        if any(folder.glob(f"{file}*")):
            encoding = tiktoken.get_encoding(name)
            found[name] = lambda text, e=encoding: len(e.encode(text, disallowed_special=()))  # type: ignore[misc]
    for name in ("anthropic", "deepseek"):
        if (folder / f"{name}_tokenizer.json").is_file():
            other = hugging.Tokenizer.from_file(str(folder / f"{name}_tokenizer.json"))
            found[name] = lambda text, t=other: len(t.encode(text, add_special_tokens=False).ids)  # type: ignore[misc]
    assert "cl100k_base" in found
    return found


def test_a_prompt_is_never_taken_for_less_than_it_is_nor_for_twice_as_much(real: Mapping[str, Count]) -> None:
    for file in OURS:
        text = file.read_text(encoding="utf-8")
        counts = {name: count(text) for name, count in real.items()}
        assert max(counts.values()) <= tokens(text) <= 2 * counts["cl100k_base"], (file.name, tokens(text), counts)


def _random(alphabet: str, length: int = 3000) -> str:
    draw = random.Random(0)
    return "".join(draw.choice(alphabet) for _ in range(length))


HOSTILE = {
    "lower": _random(string.ascii_lowercase),
    "upper": _random(string.ascii_uppercase),
    "letters": _random(string.ascii_letters),
    "base64": _random(string.ascii_letters + string.digits + "+/"),
    "hexadecimal": _random("0123456789abcdef"),
    "digits": _random(string.digits),
    "signs": _random(string.punctuation),
    "printable": _random(string.printable),
    "blank": _random(" \t\n\r\x0b\x0c"),
    "spaces": " " * 3000,
    "newlines": "\n" * 3000,
    "tabs": "\t" * 3000,
    "one letter": "q" * 3000,
    "two letters": "ab" * 1500,
    "capitals": "ZQ" * 1500,
    "syllables": "".join(a + b for a, b in zip(_random("bcdfghjklmnprstvwxz"), _random("aeiou"), strict=True)),
    "spaced": " 1 x _ " * 500,
    "mixed": "xQ1" * 1000,
    "chinese": "".join(chr(0x4E00 + 7 * n) for n in range(1000)),
    "pictures": "".join(chr(0x1F300 + n % 900) for n in range(1000)),
    "latin": "".join(chr(0xA0 + n % 400) for n in range(1000)),
    "controls": "".join(chr(n % 32) for n in range(1000)),
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_text_is_never_taken_for_less_than_it_is(text: str, real: Mapping[str, Count]) -> None:
    assert tokens(text) >= max(count(text) for count in real.values())


@given(st.text(max_size=400))
@settings(max_examples=300, deadline=None)
def test_nor_is_any_text_by_much(real: Mapping[str, Count], text: str) -> None:
    text = text.encode("utf-8", "replace").decode()
    assert tokens(text) >= max(count(text) for count in real.values()) - 2


@given(st.text(max_size=200), st.text(max_size=200))
def test_parts_are_together_no_less_than_the_whole(first: str, second: str) -> None:
    assert tokens(first.strip() + "\n\n" + second.strip()) <= tokens(first.strip()) + tokens(second.strip()) + 1


def test_nothing_is_no_token_and_a_lone_surrogate_does_no_harm() -> None:
    assert tokens("") == 0
    assert tokens("\ud800") == 3


# --- fitting ------------------------------------------------------------------------------------------------------

words = st.text("ab {}\n1é`", max_size=300)
sections = st.lists(
    st.builds(
        Section,
        text=words,
        priority=st.integers(0, 4),
        name=st.sampled_from(["the memory", "kernel #4", ""]),
        shorter=st.lists(words, max_size=3).map(tuple),
    ),
    max_size=8,
)


@given(sections, st.integers(0, 800))
def test_a_text_is_never_over_its_limit(parts: list[Section], limit: int) -> None:
    text = fit(parts, limit)
    if text is None:
        assert fit(parts, 10**9) is not None
    else:
        assert tokens(text) <= limit


@given(sections)
def test_with_room_enough_everything_is_said_in_order(parts: list[Section]) -> None:
    assert fit(parts, 10**9) == "\n\n".join(part.text.strip() for part in parts if part.text.strip())


def _part(letter: str, priority: int, *shorter: str) -> Section:
    return Section(f"{letter} " * 100, priority, letter, shorter)


def test_the_least_important_goes_first_and_is_named() -> None:
    parts = [_part("a", 9), _part("b", 1, ""), _part("c", 2, "c", "")]
    text = fit(parts, 230)
    assert text is not None
    assert text.startswith("(For want of room, left out: b.)\n\na a")
    assert "c c c" in text
    text = fit(parts, 130)
    assert text is not None
    assert text.startswith("(For want of room, left out: b; shortened: c.)\n\na a")


def test_of_equal_priority_the_last_goes_first() -> None:
    text = fit([_part("a", 1, ""), _part("b", 1, "")], 130)
    assert text is not None
    assert "left out: b." in text


def test_room_that_a_large_part_frees_is_given_back() -> None:
    parts = [Section("small " * 10, 1, "small", ("",)), Section("large " * 1000, 2, "large", ("",))]
    text = fit(parts, 100)
    assert text == "(For want of room, left out: large.)\n\n" + ("small " * 10).strip()


def test_what_cannot_fit_is_told_by_nothing_and_its_size_is_known() -> None:
    parts = [_part("a", 9), _part("b", 1, "bb", "b")]
    assert fit(parts, 50) is None
    assert least(parts) == tokens(parts[0].text.strip()) + 1 + 2


@example(2_000_000)
@given(st.integers(0, 100_000))
@settings(max_examples=5, deadline=None)
def test_two_megabytes_are_no_trouble(size: int) -> None:
    source = "float sum = A[i];\n" * (size // 18)
    text = fit([Section(source, 1, "the source", ("float",)), _part("a", 2)], 1000)
    assert text is not None
    assert tokens(text) <= 1000


# --- the room of a model ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("facts", "tokens_left"),
    [
        (ModelFacts(), DEFAULT_WINDOW - DEFAULT_REPLY),
        (ModelFacts(window_tokens=200_000, output_tokens=64_000), 136_000),
        (ModelFacts(window_tokens=200_000, output_tokens=64_000, tools=True), 102_000),
        (ModelFacts(window_tokens=8192, output_tokens=8192), 4096),
        (ModelFacts(window_tokens=8192), 4096),
    ],
)
def test_a_window_keeps_room_for_the_reply_and_for_tools(facts: ModelFacts, tokens_left: int) -> None:
    assert room(facts) == tokens_left
