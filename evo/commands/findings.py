"""One thing that the doctor has looked at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

State = Literal["ok", "optional", "missing"]


@dataclass(frozen=True)
class Finding:
    """What was found: `missing` stops a search, `optional` only takes something away; `fix` says how to get it."""

    name: str
    state: State
    found: str
    fix: str = ""
