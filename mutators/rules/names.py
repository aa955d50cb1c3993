"""What stands for a value once a thread does the work of several items: for one item, for the first, for the last.

Texts of expressions only; statements are written in `lockstep`.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from tree_sitter import Node

from mutators.rules import shapes, syntax
from mutators.rules.strides import Strides
from mutators.rules.syntax import named, text
from mutators.rules.variables import UNIFORM, VARYING, Variable

Replace = Callable[[Node], str | None]

_OPPOSITE = {"<": ">=", ">=": "<", ">": "<=", "<=": ">", "==": "!=", "!=": "=="}
_RISING = re.compile(r"1|blockDim\.[xyz]")
"""Strides that are surely positive."""


class Names:
    """Writes the expressions of an analysed function anew.

    Args:
        strides: the function's classes.
    """

    def __init__(self, strides: Strides) -> None:
        self._strides = strides
        self._axis = strides.axis

    def rendered(self, node: Node, inner: set[Variable]) -> str:
        """Return an expression or statement for the item of the loop over items; see `replacement`."""
        return syntax.rendered(node, self.replacement(inner))

    def replacement(self, inner: set[Variable]) -> Replace:
        """Return what replaces a node for the item of the loop over items; names in `inner` are the item's own."""

        def replacement(node: Node) -> str | None:
            variable = self._strides.variable(node)
            if variable is not None:
                return None if variable in inner else self.written(variable)
            return self._index(node, self._axis.item)

        return replacement

    def written(self, variable: Variable) -> str:
        """Return a variable as the item of the loop over items sees it."""
        if variable.stride is VARYING:
            return f"{variable.name}[{self._axis.item}]"
        if variable.stride == UNIFORM:
            return variable.name
        return variable.at(self._axis.item)

    def first(self, node: Node) -> str | None:
        """Replace nodes for the first item."""
        if shapes.is_member(node, "threadIdx", self._axis.name):
            return f"(threadIdx.{self._axis.name} * {self._axis.items})" if self._axis.contiguous else None
        return self._strides.block_size(node)

    def last(self, node: Node) -> str | None:
        """Replace nodes for the last item."""
        last = f"({self._axis.items} - 1)"
        variable = self._strides.variable(node)
        if variable is not None and variable.stride is not VARYING and variable.stride != UNIFORM:
            return variable.at(last)
        return self._index(node, last)

    def _index(self, node: Node, item: str) -> str | None:
        """Replace the thread's index and the block's size."""
        if shapes.is_member(node, "threadIdx", self._axis.name):
            return self._axis.index(item)
        return self._strides.block_size(node)

    def declared(self, node: Node) -> set[Variable]:
        """Return the private variables that a statement declares, at any depth."""
        found = (
            self._strides.variable(syntax.declared(declarator))
            for part in syntax.walk(node)
            if part.type == "declaration"
            for declarator in shapes.declarators(part)
        )
        return {variable for variable in found if variable is not None}

    def by_ends(self, condition: Node, wanted: bool) -> str | None:
        """Return an expression of the first and last item that holds only where all items agree on `wanted`.

        None where there is no such expression; affine values are monotone, so often there is.
        """
        if condition.type == "parenthesized_expression":
            return self.by_ends(named(condition)[0], wanted)
        if condition.type == "unary_expression" and text(condition).startswith("!"):
            return self.by_ends(syntax.field(condition, "argument"), not wanted)
        if self._strides.of(condition) == UNIFORM:
            written = syntax.rendered(condition, self.first)
            return wrapped(written) if wanted else f"!({written})"
        if condition.type != "binary_expression":
            return None
        operator = text(syntax.field(condition, "operator"))
        left, right = syntax.field(condition, "left"), syntax.field(condition, "right")
        if operator in ("&&", "||"):
            parts = [self.by_ends(side, wanted) for side in (left, right)]
            joint = " && " if (operator == "&&") == wanted else " || "
            return None if None in parts else wrapped(joint.join(str(part) for part in parts))
        return self._compared(left, operator if wanted else _OPPOSITE.get(operator, ""), right)

    def _compared(self, left: Node, operator: str, right: Node) -> str | None:
        """Return a comparison that holds for all items if it holds for the ends."""
        sides = (left, right)
        if operator == "" or any(self._strides.of(side) is VARYING for side in sides):
            return None
        guard = self._strides.guard_of_comparison(left, right)
        (a_first, b_first), (a_last, b_last) = ([syntax.rendered(s, end) for s in sides] for end in self._ends)
        rising = _RISING.fullmatch(str(self._strides.of(left))) and self._strides.of(right) == UNIFORM
        if guard is None or (guard and not rising):
            return None
        below = f"{a_first} >= 0 && " if guard else ""
        if rising and operator == "!=":
            return f"({below}({a_first} > {b_first} || {a_last} < {b_first}))"
        if rising and operator in ("<", "<=", ">", ">="):
            end = a_last if operator.startswith("<") else a_first
            return f"({below}{end} {operator} {b_first})"
        if operator in ("==", "!="):
            return None
        return f"({a_first} {operator} {b_first} && {a_last} {operator} {b_last})"

    @property
    def _ends(self) -> tuple[Replace, Replace]:
        return self.first, self.last


def wrapped(expression: str) -> str:
    """Return an expression in parentheses, unless one pair encloses it already."""
    depth = 0
    for position, character in enumerate(expression):
        depth += (character == "(") - (character == ")")
        if depth == 0:
            return expression if character == ")" and position == len(expression) - 1 else f"({expression})"
    return f"({expression})"
