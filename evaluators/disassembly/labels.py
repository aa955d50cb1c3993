"""Turn the labels that branches name into indices of instructions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from evaluators.disassembly.code import Instruction, Raw


def resolved(body: Sequence[Raw], labels: Mapping[str, int]) -> tuple[Instruction, ...]:
    """Return a function's instructions with the targets of their branches.

    Args:
        body: in order.
        labels: name -> index of the instruction behind it. A label behind the last one, or elsewhere, leads nowhere.
    """
    made = []
    for raw in body:
        index = labels.get(raw.label, len(body))
        made.append(replace(raw.instruction, target=index) if index < len(body) else raw.instruction)
    return tuple(made)
