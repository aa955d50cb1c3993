"""Find the loops of a function: back edges of its control flow whose target dominates them.

Aho, Lam, Sethi, Ullman, "Compilers", section 9.6 (natural loops); Cooper, Harvey, Kennedy, "A Simple, Fast Dominance
Algorithm" (2001). A jump back from code that the compiler has moved out of the way is thus no loop. Loops with two
entries, which only `goto` makes, are not found.
"""

from __future__ import annotations

import bisect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evaluators.disassembly.code import Instruction


@dataclass(frozen=True)
class Loop:
    """One loop: indices of its instructions in order, those of inner loops among them, and how deep it is nested."""

    body: tuple[int, ...]
    depth: int


def find(instructions: Sequence[Instruction]) -> tuple[Loop, ...]:
    """Return the loops, the most deeply nested first, of equal ones the longest: the hot ones, as far as a text tells.

    Args:
        instructions: of one function, entered at the first.
    """
    starts = _starts(instructions)
    follow = [_successors(instructions, starts, block) for block in range(len(starts))]
    order = _reverse_postorder(follow)
    before = _predecessors(follow, order)
    dominators = _dominators(order, before)
    bodies: dict[int, set[int]] = {}
    for tail in order:
        for head in follow[tail]:
            if _dominates(head, tail, dominators):
                bodies.setdefault(head, {head}).update(_body(head, tail, before))
    loops = [
        Loop(_indices(body, starts, len(instructions)), sum(head in other for other in bodies.values()))
        for head, body in bodies.items()
    ]
    return tuple(sorted(loops, key=lambda loop: (-loop.depth, -len(loop.body), loop.body)))


def _starts(instructions: Sequence[Instruction]) -> list[int]:
    """Return the index of each basic block's first instruction."""
    found = {0} if instructions else set()
    for index, instruction in enumerate(instructions):
        if instruction.target is not None:
            found.add(instruction.target)
        if (instruction.target is not None or instruction.ends) and index + 1 < len(instructions):
            found.add(index + 1)
    return sorted(found)


def _successors(instructions: Sequence[Instruction], starts: Sequence[int], block: int) -> tuple[int, ...]:
    end = starts[block + 1] if block + 1 < len(starts) else len(instructions)
    last = instructions[end - 1]
    taken = () if last.target is None else (bisect.bisect_left(starts, last.target),)
    next_ = () if last.ends or block + 1 == len(starts) else (block + 1,)
    return tuple(dict.fromkeys((*next_, *taken)))


def _reverse_postorder(follow: Sequence[Sequence[int]]) -> list[int]:
    """Return the blocks that can be reached, each before those that it leads to, back edges aside."""
    order: list[int] = []
    seen = {0}
    stack = [(0, iter(follow[0]))] if follow else []
    while stack:
        block, rest = stack[-1]
        following = next((other for other in rest if other not in seen), None)
        if following is None:
            order.append(block)
            stack.pop()
        else:
            seen.add(following)
            stack.append((following, iter(follow[following])))
    return order[::-1]


def _predecessors(follow: Sequence[Sequence[int]], order: Sequence[int]) -> dict[int, list[int]]:
    before: dict[int, list[int]] = {block: [] for block in order}
    for block in order:
        for other in follow[block]:
            before[other].append(block)
    return before


def _dominators(order: Sequence[int], before: Mapping[int, Sequence[int]]) -> dict[int, int]:
    """Return each block's immediate dominator; the entry's is itself."""
    rank = {block: index for index, block in enumerate(order)}
    found = {block: block for block in order[:1]}
    changed = True
    while changed:
        changed = False
        for block in order[1:]:
            new = -1
            for other in before[block]:
                if other in found:
                    new = other if new < 0 else _meet(new, other, found, rank)
            if found.get(block) != new:
                found[block] = new
                changed = True
    return found


def _meet(one: int, other: int, found: Mapping[int, int], rank: Mapping[int, int]) -> int:
    while one != other:
        while rank[one] > rank[other]:
            one = found[one]
        while rank[other] > rank[one]:
            other = found[other]
    return one


def _dominates(head: int, block: int, dominators: Mapping[int, int]) -> bool:
    while block != head and dominators[block] != block:
        block = dominators[block]
    return block == head


def _body(head: int, tail: int, before: Mapping[int, Sequence[int]]) -> set[int]:
    """Return the blocks from which `tail` is reached without passing `head`."""
    body, stack = {head, tail}, [tail] if tail != head else []
    while stack:
        for other in before[stack.pop()]:
            if other not in body:
                body.add(other)
                stack.append(other)
    return body


def _indices(blocks: set[int], starts: Sequence[int], count: int) -> tuple[int, ...]:
    ends = [*starts[1:], count]
    return tuple(index for block in sorted(blocks) for index in range(starts[block], ends[block]))
