"""The rule that asks for a loop to be unrolled, by a factor that tuning chooses."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from tree_sitter import Node

from mutators.rules import headers, syntax
from mutators.rules.headers import Mapped
from mutators.rules.syntax import Rewrite, Unfit

FACTORS = [1, 2, 4, 8, 16]


@dataclass(frozen=True)
class Unroll:
    """Put `#pragma unroll` before one loop: innermost ones first, wholly where the number of rounds is constant."""

    def apply(self, source: str, rng: np.random.Generator) -> Rewrite | None:
        """Return the kernel with one more unrolled loop, or None where no loop is left."""
        try:
            mapping = headers.read(source)
            return _unrolled(source, mapping, rng)
        except Unfit:
            return None


def _unrolled(source: str, mapping: Mapped, rng: np.random.Generator) -> Rewrite | None:
    bodies = [kernel.body for kernel in syntax.kernels(syntax.parse(source))]
    loops = [loop for body in bodies for loop in syntax.walk(body) if loop.type == "for_statement" and _free(loop)]
    if not loops:
        return None
    innermost = [loop for loop in loops if sum(node.type == "for_statement" for node in syntax.walk(loop)) == 1]
    pool = innermost if innermost and rng.random() < 0.7 else loops
    loop = pool[int(rng.integers(len(pool)))]
    line = source.encode()[: loop.start_byte].count(b"\n") + 1
    indent = " " * loop.start_point.column
    if _rounds_are_constant(loop, set(mapping.get("tune", {}))):
        pragma = "#pragma unroll"
        written = syntax.edit(source, [(loop.start_byte, loop.start_byte, f"{pragma}\n{indent}")])
        return Rewrite(written, f"loop of line {line} unrolled")
    name = syntax.free_name("UNROLL", syntax.words(source))
    headers.add_tunable(mapping, name, list(FACTORS), lambda _: 4)
    written = syntax.edit(source, [(loop.start_byte, loop.start_byte, f"#pragma unroll {name}\n{indent}")])
    return headers.write(written, mapping, f"loop of line {line} unrolled by {name}")


def _free(loop: Node) -> bool:
    """Whether a pragma may stand before a loop, and none does."""
    before = loop.prev_named_sibling
    pragma = before is not None and before.type == "preproc_call"
    return loop.parent is not None and loop.parent.type == "compound_statement" and not pragma


def _rounds_are_constant(loop: Node, tunables: set[str]) -> bool:
    condition = loop.child_by_field_name("condition")
    initial = loop.child_by_field_name("initializer")
    if condition is None or condition.type != "binary_expression" or initial is None:
        return False
    declarators = initial.children_by_field_name("declarator")
    begin = declarators[0].child_by_field_name("value") if len(declarators) == 1 else None
    end = syntax.field(condition, "right")
    constant = end.type == "number_literal" or syntax.text(end) in tunables
    return begin is not None and begin.type == "number_literal" and constant
