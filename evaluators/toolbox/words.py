"""Puts a tool's answer together: bounded, quoted safely, and one way to say what a kernel's code takes."""

from __future__ import annotations

import re
from collections.abc import Sequence

from evo.quoting import fence, shorten
from evo.records import Resources

MOST_CHARACTERS = 6000
"""Of one answer, about 2,000 tokens: a round of answers is read again with every further reply of the task."""
MOST_QUOTED = 3000
"""Of a compiler's log: its first errors, and its last lines."""
_NAME = re.compile(r"[\w$]{1,80}")
_LEFT_OUT = "[… the rest is left out …]"


def bounded(parts: Sequence[str]) -> str:
    """Join parts up to the first that does not fit. Parts with a fence have to be short enough by themselves."""
    text = ""
    for part in parts:
        longer = f"{text}\n\n{part}" if text else part
        if len(longer) > MOST_CHARACTERS:
            return f"{text}\n\n{_LEFT_OUT}" if text else shorten(part, MOST_CHARACTERS - len(_LEFT_OUT))
        text = longer
    return text


def quoted(text: str, language: str = "text") -> str:
    """Quote what a compiler or a model wrote."""
    return fence(shorten(text, MOST_QUOTED), language)


def named(symbol: str) -> str:
    """Return the name of a kernel or a function, which a candidate has chosen."""
    return symbol if _NAME.fullmatch(symbol) else "a function"


def resources(used: Resources) -> str:
    """Say what the compiler says of a kernel; "" where it says nothing."""
    parts = [] if used.registers is None else [f"{used.registers} registers a thread"]
    if used.spill_bytes is not None:
        parts.append(f"{used.spill_bytes} bytes spilled a thread" if used.spill_bytes else "nothing spilled")
    if used.local_bytes:
        parts.append(f"{used.local_bytes} bytes of local memory a thread")
    return ", ".join(parts)
