"""What kind of number an expression is, as far as merging threads must know: signed, unsigned, a pointer, or neither.

C++'s usual arithmetic conversions, for expressions of whole numbers. Anything doubtful is `None`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

from tree_sitter import Node

from mutators.rules import syntax
from mutators.rules.syntax import text

Kind = Literal["signed", "unsigned", "pointer"] | None

_SIGNED = re.compile(r"(?:const )?(?:int|long(?: int)?|long long(?: int)?|signed|int32_t|int64_t|ptrdiff_t)(?: const)?")
_UNSIGNED = re.compile(r"(?:const )?(?:unsigned(?: int| long| long long)?|uint|uint32_t|uint64_t|size_t)(?: const)?")
_WIDE = re.compile(r"\b(?:long|int64_t|uint64_t|size_t|ptrdiff_t)\b|\*$")
_INDICES = ("threadIdx", "blockIdx", "blockDim", "gridDim")


def of_type(kind: str) -> Kind:
    """Return the kind of a type's text, which ends in `*` for a pointer."""
    kind = " ".join(kind.split())
    if kind.endswith("*"):
        return "pointer"
    if _SIGNED.fullmatch(kind):
        return "signed"
    return "unsigned" if _UNSIGNED.fullmatch(kind) else None


def is_whole(kind: str) -> bool:
    """Whether a type holds whole numbers of at least 32 bits."""
    return of_type(kind) in ("signed", "unsigned")


def is_wide(kind: str) -> bool:
    """Whether a type is wider than `blockIdx` and its like are."""
    return bool(_WIDE.search(kind))


class Kinds:
    """The kinds of a function's expressions.

    Args:
        types: id of an identifier's node -> its variable's type; others are macros and globals.
    """

    def __init__(self, types: Mapping[int, str]) -> None:
        self._types = types

    def of(self, node: Node) -> Kind:
        """Return an expression's kind."""
        if node.type == "number_literal":
            return _of_literal(text(node))
        if node.type == "identifier":
            # Macros that are allowed stand for numbers without a suffix: tunables, dims.
            return of_type(self._types[node.id]) if node.id in self._types else "signed"
        if node.type == "parenthesized_expression":
            inner = syntax.named(node)
            return self.of(inner[0]) if len(inner) == 1 else None
        if node.type == "field_expression":
            return "unsigned" if text(syntax.field(node, "argument")) in _INDICES else None
        if node.type == "cast_expression":
            return of_type(text(syntax.field(node, "type")))
        if node.type == "unary_expression" and text(node)[0] in "+-~":
            return self.of(syntax.field(node, "argument"))
        return self._of_binary(node) if node.type == "binary_expression" else None

    def _of_binary(self, node: Node) -> Kind:
        operator = text(syntax.field(node, "operator"))
        sides = (self.of(syntax.field(node, "left")), self.of(syntax.field(node, "right")))
        if operator not in ("+", "-", "*", "/", "%") or None in sides:
            return None
        if "pointer" in sides:
            return "pointer" if operator in ("+", "-") and sides != ("pointer", "pointer") else None
        return "unsigned" if "unsigned" in sides else "signed"

    def adds_up(self, node: Node) -> bool:
        """Whether a sum, difference or product is one of whole numbers or pointers that wrapping cannot disturb."""
        kind = self.of(node)
        if kind == "pointer":
            sides = (syntax.field(node, "left"), syntax.field(node, "right"))
            return not any(self.may_wrap(side) for side in sides)
        return kind is not None

    def may_wrap(self, node: Node) -> bool:
        """Whether a value is unsigned and could come from below zero, so that widening it would change a distance."""
        if self.of(node) != "unsigned":
            return False
        parts = list(syntax.walk(node))
        signed = (part for part in parts if part.type == "identifier" and part.id in self._types)
        return any(part.type == "-" for part in parts) or any(self.of(part) == "signed" for part in signed)


def _of_literal(written: str) -> Kind:
    written = written.lower()
    if re.fullmatch(r"(?:0x[0-9a-f]+|\d+)l{0,2}", written):
        return "signed"
    return "unsigned" if re.fullmatch(r"(?:0x[0-9a-f]+|\d+)(?:u|ul{1,2}|l{1,2}u)", written) else None
