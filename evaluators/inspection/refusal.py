"""One reason not to compile, link or run a candidate, in words. No rule of what is refused enters here."""

from __future__ import annotations

from dataclasses import dataclass

from evo.records import Status


@dataclass(frozen=True)
class Refusal:
    """One reason not to go on with a candidate.

    Attributes:
        status: UNSAFE, UNSUPPORTED or COMPILE_ERROR.
        line: 1-based in the candidate's own source; 0 where it has none (an object file).
        found: the words that were found.
        message: the whole sentence, with the line in it.
    """

    status: Status
    line: int
    found: str
    message: str

    def __str__(self) -> str:
        return self.message


def refuse(status: Status, line: int, found: str, why: str) -> Refusal:
    """Word a refusal.

    Args:
        status: what becomes of the candidate.
        line: 1-based, 0 for none.
        found: the words found; shortened to 120 characters.
        why: the sentence's rest.
    """
    found = " ".join(found.split())[:120]
    where = f"line {line}: " if line else ""
    return Refusal(status, line, found, f"{where}`{found}` {why}")
