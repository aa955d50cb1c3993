"""Quote text that others wrote (kernels, compilers, models) so that it cannot end its quotation or hide anything.

Pure text in, pure text out.
"""

from __future__ import annotations

import re

_RUN = re.compile(r"`{3,}")
# C0 and C1 controls, line separators, bidirectional overrides (CVE-2021-42574) and lone surrogates
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")


def fence(text: str, language: str = "text") -> str:
    """Quote `text` in a Markdown fence that is longer than any run of backticks inside it.

    Control characters and terminal escapes are taken out, so that what is quoted is what is seen.
    """
    body = clean(text).strip("\n")
    ticks = "`" * max([3, *(len(run) + 1 for run in _RUN.findall(body))])
    return f"{ticks}{language}\n{body}\n{ticks}"


def clean(text: str) -> str:
    """Return `text` with line ends as newlines and without terminal escapes or control characters."""
    return _CONTROLS.sub("", _ESCAPES.sub("", text.replace("\r\n", "\n").replace("\r", "\n")))


def shorten(text: str, most: int) -> str:
    """Keep the beginning (three quarters) and the end of a text that is longer than `most` characters."""
    text = clean(text).strip()
    if len(text) <= most:
        return text
    head, tail = most * 3 // 4, most // 4
    return f"{text[:head]}\n[… {len(text) - head - tail} characters left out …]\n{text[-tail:]}"
