"""Keeps a prompt inside a model's window: estimates its tokens, and shortens what matters least until it fits.

Pure text and numbers; no tokenizer is loaded, because every provider has its own and most do not publish it. What a
section says, and how much it matters, is for others to decide.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from evo.records import ModelFacts

DEFAULT_WINDOW = 32_768
"""Tokens of prompt and reply for a model of which nothing is known: what small local models are served with today."""
DEFAULT_REPLY = 8_192
"""Tokens of a reply where nobody says: a long kernel, and some thinking before it."""
PER_MESSAGE = 8
"""Tokens that a provider adds around each message, at most (OpenAI: 3 or 4, and the role)."""
_REPLY_SHARE = 2
"""A reply keeps at most this part (one half) of the window: some models say that they could fill all of it."""
_TOOLS_SHARE = 4
"""What tools answer may take this part (a quarter) of what is left: rounds of calls follow the prompt."""

_PAIRS = frozenset(
    """
    ac ad ag al am an ar as at ca ce ch co ct de di ea ed el em en er es et fi ge he ho ic id ie il im in io is it la le
    li ll lo ma me mi mo nc nd ne ng ni ns nt ol om on or os ou pe po ra re ri ro rt se si ss st ta te th ti to tr ul un
    ur us ut ve
    """.split()  # noqa: SIM905 - pairs read better without quotes
)
"""The eighty pairs of letters that are most frequent in the words of cl100k_base (OpenAI's tiktoken)."""
_PIECE = re.compile(
    r" ?(?:[A-Z]?[a-z]+|[A-Z]+|[!-/:-@\[-`{-~])"  # a word of camelCase or a sign takes in the space before it
    r"| *[0-9]"  # a digit does not
    r"| +|\t+|\n+"
    r"|[\s\S]"
)
_LONGEST_ACRONYM = 16
"""Letters in a row that are capitals of a name; more of them are something else."""


@dataclass(frozen=True)
class Section:
    """A part of a prompt.

    Attributes:
        text: all that it would say; one that says nothing is left out without a word.
        priority: those with the least are shortened first; of equal ones the last.
        name: for the line that tells what was left out.
        shorter: what may stand in its place, each shorter than the one before; a last "" leaves it out.
    """

    text: str
    priority: int
    name: str = ""
    shorter: tuple[str, ...] = ()


def tokens(text: str) -> int:
    """Estimate how many tokens a text is, rather too many than too few.

    Digits and signs count one each and what is not ASCII one a byte, as at worst in a byte-pair encoding. A word counts
    one, one more for each six letters, and two thirds for each pair of letters that is rare in words, so that names,
    random letters and Base64 cost about what they do.
    """
    thirds = sum(_thirds(piece) * times for piece, times in Counter(_PIECE.findall(text)).items())
    return -(-thirds // 3)


@functools.lru_cache(maxsize=8192)
def _thirds(piece: str) -> int:
    """Thirds of a token in one piece."""
    word, length = piece.strip(" "), len(piece)
    if not word:
        return 3 * (1 + length // 16)  # long runs of spaces have tokens of their own
    if not word[0].isascii():
        return 3 * len(word.encode(errors="surrogatepass"))
    if word[0] in "\n\t":
        return 3 * -(-length // 2)
    if word.isdigit():
        return 3 + 3 * min(length - 1, 2 + length // 16)
    if not word[0].isalpha():
        return 3
    if len(word) > 1 and word.isupper():
        return 1 + 2 * len(word) if len(word) <= _LONGEST_ACRONYM else 3 * len(word)
    lower = word.lower()
    rare = sum(lower[at : at + 2] not in _PAIRS for at in range(len(word) - 1))
    return 3 + 3 * ((len(word) - 1) // 6) + 2 * rare


def room(model: ModelFacts) -> int:
    """Return how many tokens a whole prompt may have: the window without room for the reply and for tools' answers."""
    return _without_reply(model) - room_for_tools(model)


def room_for_tools(model: ModelFacts) -> int:
    """Return how many tokens tools may take: their descriptions, the calls of a model and what it is answered."""
    return _without_reply(model) // _TOOLS_SHARE if model.tools else 0


def _without_reply(model: ModelFacts) -> int:
    window = model.window_tokens or DEFAULT_WINDOW
    return window - min(model.output_tokens or DEFAULT_REPLY, window // _REPLY_SHARE)


def fit(sections: Sequence[Section], limit: int) -> str | None:
    """Join sections into a text of at most `limit` estimated tokens; None where even the shortest forms are more.

    What matters least is shortened first, as far as it goes, and only then what matters more. Where that has freed more
    room than was needed, it is given back in the opposite order. A first line tells what is missing.
    """
    forms = [(section.text.strip(), *(short.strip() for short in section.shorter)) for section in sections]
    cost = functools.cache(lambda index, form: _cost(forms[index][form]))
    chosen = [0] * len(sections)
    order = sorted(range(len(sections)), key=lambda index: (sections[index].priority, -index))

    def spent() -> int:
        return _cost(_left_out(sections, forms, chosen)) + sum(itertools.starmap(cost, enumerate(chosen)))

    for index in order:
        while spent() > limit and chosen[index] + 1 < len(forms[index]):
            chosen[index] += 1
    if spent() > limit:
        return None
    for index in reversed(order):
        while chosen[index] > 0:
            chosen[index] -= 1
            if spent() > limit:
                chosen[index] += 1
                break
    texts = [_left_out(sections, forms, chosen), *(each[form] for each, form in zip(forms, chosen, strict=True))]
    return "\n\n".join(text for text in texts if text)


def least(sections: Sequence[Section]) -> int:
    """Return the estimated tokens of the shortest text that `fit` could make, but for the line on what is missing."""
    return sum(_cost((section.text, *section.shorter)[-1].strip()) for section in sections)


def _cost(text: str) -> int:
    return tokens(text) + 1 if text else 0  # the blank line before the next


def _left_out(sections: Sequence[Section], forms: Sequence[Sequence[str]], chosen: Sequence[int]) -> str:
    """Say in one line what is missing or shorter; "" where all is there."""
    short = [index for index, form in enumerate(chosen) if form > 0]
    gone = _names(sections[index].name for index in short if not forms[index][chosen[index]])
    cut = _names(sections[index].name for index in short if forms[index][chosen[index]])
    parts = ([f"left out: {gone}"] if gone else []) + ([f"shortened: {cut}"] if cut else [])
    return f"(For want of room, {'; '.join(parts)}.)" if parts else ""


def _names(names: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(name for name in names if name))
