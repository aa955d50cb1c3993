"""How pictures look: colours that colour-blind eyes tell apart, little ink, two formats. No data enters here."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evo.records import Status
from evo.store import rundir

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK = "#222222"
QUIET = "#8a8a8a"
FAINT = "#e6e6e6"
WRONG = "#b02418"
ACCENT = "#0072b2"
# Okabe & Ito, "Color Universal Design" (2008): told apart with any of the common colour deficiencies.
PALETTE = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00")
DIVERGING = "PuOr"  # ColorBrewer; orange and purple stay apart for colour-blind eyes, grey stays the middle

SHORT = {
    Status.NO_PROPOSAL: "none",
    Status.DUPLICATE: "same",
    Status.BAD_LAUNCH: "launch",
    Status.UNSUPPORTED: "unsup",
    Status.COMPILE_ERROR: "compile",
    Status.LAUNCH_ERROR: "launch",
    Status.WRONG_ANSWER: "wrong",
    Status.UNSAFE: "unsafe",
    Status.TIMEOUT: "time",
    Status.CRASH: "crash",
}
"""A word for each failure that fits above a column."""


def figure(width: float, height: float) -> Figure:
    """Return an empty figure of this size in inches, without pyplot's global state."""
    from matplotlib import rcParams
    from matplotlib.figure import Figure

    rcParams["svg.hashsalt"] = "kernel-evo"  # the same run gives the same file
    rcParams["svg.fonttype"] = "none"
    return Figure(figsize=(width, height), layout="constrained", facecolor="white")


def bare(axes: Axes, *, keep: tuple[str, ...] = ()) -> None:
    """Take away the spines but those to `keep`, and quieten the ticks."""
    for side, spine in axes.spines.items():
        spine.set_visible(side in keep)
        spine.set_color(QUIET)
    axes.tick_params(colors=INK, length=0, labelsize=9)


def title(axes: Axes, words: str, note: str, *, lift: float = 0.0) -> None:
    """Write a title with a quiet line below it, `lift` points above where they would otherwise stand."""
    axes.set_title(words, loc="left", fontsize=11, color=INK, pad=24 + lift)
    axes.annotate(
        note, (0, 1), (0, 8 + lift), xycoords="axes fraction", textcoords="offset points", fontsize=8.5, color=QUIET
    )


FORMATS: dict[str, dict[str, Any]] = {".png": {"dpi": 160}, ".svg": {"metadata": {"Date": None}}}
"""Suffix of a picture's file -> how it is written, so that the same picture gives the same file."""


def save(picture: Figure, stem: Path) -> tuple[Path, ...]:
    """Write `stem`.png and `stem`.svg and return both."""
    paths = tuple(stem.with_suffix(suffix) for suffix in FORMATS)
    for path in paths:
        write(picture, path)
    return paths


def write(picture: Figure, path: Path) -> None:
    """Write a picture in the format that the path's suffix names, one of `FORMATS`."""
    content = io.BytesIO()
    picture.savefig(content, format=path.suffix[1:], **FORMATS[path.suffix])
    rundir.write_atomic(path, content.getvalue())


def times(factor: float) -> str:
    """Return a factor for people: `1.04×`, `3.2×`, `41×`."""
    digits = 2 if factor < 2 else 1 if factor < 10 else 0
    return f"{factor:.{digits}f}×"


def prompts(count: int) -> str:
    """Return how many prompts wait for a person, in words."""
    return "1 prompt waits for a person" if count == 1 else f"{count} prompts wait for a person"
