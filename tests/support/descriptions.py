"""The ten descriptions of `benchmarks/descriptions` with their recorded replies, and references that are wrong."""

from __future__ import annotations

import re
from pathlib import Path

from tests.support.openai_server import Recorded, Replier
from tests.support.protocols import Answer

ROOT = Path(__file__).resolve().parents[2] / "benchmarks" / "descriptions"
KINDS = tuple(sorted(path.parent.name for path in ROOT.glob("*/description.txt")))
_WANTED = re.compile(r"^# Wanted: ([a-z-]+)$", re.MULTILINE)

MISTAKES: dict[str, dict[str, tuple[str, str]]] = {
    "attention": {
        "scores not divided": ("k.transpose(0, 2, 1) / root\n    below", "k.transpose(0, 2, 1)\n    below"),
        "normalised over the queries": ("weights.sum(axis=2", "weights.sum(axis=1"),
    },
    "batched_gemm": {
        "another batch": ("(np.matmul(a, b),", "(np.matmul(a[::-1], b),"),
        "first term dropped": ("(np.matmul(a, b),", "(np.matmul(a[:, :, 1:], b[:, 1:]),"),
    },
    "convolution": {
        "filter transposed": ("f[:, :, r, s]", "f[:, :, s, r]"),
        "filter flipped": ("f[:, :, r, s]", "f[:, :, 2 - r, 2 - s]"),
        "last column of the filter dropped": ("for s in range(3)", "for s in range(2)"),
    },
    "elementwise": {
        "bias from the other end": ("astype(np.float64)[None, :]", "astype(np.float64)[None, ::-1]"),
        "cubic term dropped": ("(v + 0.044715 * v**3)", "v"),
    },
    "gemm": {
        "shifted columns": ("(a @ b,", "(a @ np.roll(b, 1, axis=1),"),
        "first term dropped": ("(a @ b,", "(a[:, 1:] @ b[1:],"),
    },
    "histogram": {
        "one bin too low": ('np.bincount(inputs["data"]', 'np.bincount(np.maximum(inputs["data"], 1) - 1'),
        "first value dropped": ('np.bincount(inputs["data"]', 'np.bincount(inputs["data"][1:]'),
    },
    "reduction": {
        "the last of equal maxima": ("np.argmax(x, axis=1)", "x.shape[1] - 1 - np.argmax(x[:, ::-1], axis=1)"),
        "last column dropped": ("np.argmax(x, axis=1)", "np.argmax(x[:, : max(1, x.shape[1] - 1)], axis=1)"),
    },
    "scan": {
        "inclusive": ("exclusive[:, 1:] = inclusive[:, :-1]", "exclusive[:] = inclusive"),
        "last column missing from the total": ("inclusive[:, -1]", "exclusive[:, -1]"),
    },
    "sort": {
        "descending": ("axis=1)", "axis=1)[:, ::-1]"),
        "across segments": ("axis=1)", "axis=0)"),
    },
    "spmv": {
        "column before": ('[inputs["column"]]', '[inputs["column"] - 1]'),
        "first entry dropped": ("weights=product,", "weights=product * (np.arange(product.size) > 0),"),
    },
}
"""Kind -> mistake -> what stands in reference.md, and what a wrong reference has there."""


def description(kind: str) -> str:
    """Return the sentence."""
    return (ROOT / kind / "description.txt").read_text(encoding="utf-8").strip()


def reply(kind: str, name: str) -> str:
    """Return the recorded reply to the request of this name."""
    # A model that is asked a third time writes no third program here: it agrees with the second.
    name = "second-reference" if name == "third-reference" else name
    return (ROOT / kind / f"{name}.md").read_text(encoding="utf-8")


def mistaken(kind: str, mistake: str) -> str:
    """Return the recorded reference with a mistake in it."""
    right, wrong = MISTAKES[kind][mistake]
    text = reply(kind, "reference")
    assert right in text, f"{kind}/reference.md no longer holds {right!r}"
    return text.replace(right, wrong)


def model(kind: str, **instead: str) -> Replier:
    """Return a model that answers the requests for a workload's parts from the record.

    Args:
        kind: of the description.
        instead: name of a request, with `_` for `-` -> another reply.
    """
    changed = {name.replace("_", "-"): text for name, text in instead.items()}

    def answer(recorded: Recorded) -> Answer:
        wanted = _WANTED.search(recorded.text)
        assert wanted, f"a request without a line '# Wanted: NAME': {recorded.text[:200]}"
        return Answer(changed.get(wanted[1]) or reply(kind, wanted[1]))

    return answer
