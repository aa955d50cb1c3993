"""Texts that people have read and found good: `tests/golden/<name>.txt`. `UPDATE_GOLDEN=1` writes them anew."""

from __future__ import annotations

import os
from pathlib import Path

_FOLDER = Path(__file__).parent.parent / "golden"


def same(name: str, text: str) -> None:
    """Assert that `text` is the golden text of this name."""
    path = _FOLDER / f"{name}.txt"
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8"), f"differs from {path}; read the difference, then UPDATE_GOLDEN=1"
