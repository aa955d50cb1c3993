"""Expressions of launch headers and shapes as Python: the same values, computed without a parser and without `eval`.

Names become look-ups `n["N"]`, so that no dim or tunable can clash with a word of Python.
"""

from __future__ import annotations

import json
from typing import Any

from evo.kernel import Expression

_Tree = tuple[Any, ...]


def integer(expression: Expression) -> str:
    """Return Python that gives an expression's value as an int."""
    text, is_bool = _python(expression.tree)
    return f"int({text})" if is_bool else text


def condition(expression: Expression) -> str:
    """Return Python that gives whether an expression's value is not 0."""
    return _condition(expression.tree)


def _condition(tree: _Tree) -> str:
    text, is_bool = _python(tree)
    return text if is_bool else f"({text} != 0)"


def _python(tree: _Tree) -> tuple[str, bool]:
    """Return Python for a tree, and whether its value is a bool; a bool counts as 0 or 1 in arithmetic there too."""
    kind = tree[0]
    if kind == "number":
        return str(tree[1]), False
    if kind == "name":
        return f"n[{json.dumps(tree[1])}]", False
    if kind == "negative":
        return f"(-{_python(tree[1])[0]})", False
    if kind == "not":
        return f"(not {_condition(tree[1])})", True
    if kind in ("and", "or"):
        return f"({_condition(tree[1])} {kind} {_condition(tree[2])})", True
    if kind == "compare":
        operands = [_python(operand)[0] for operand in tree[2]]
        rest = (f" {operator} {operand}" for operator, operand in zip(tree[1], operands[1:], strict=True))
        return f"({operands[0]}{''.join(rest)})", True
    if kind == "binary":
        return f"({_python(tree[2])[0]} {tree[1]} {_python(tree[3])[0]})", False
    arguments = ", ".join(integer_of(argument) for argument in tree[2])
    return f"{tree[1]}({arguments})", False


def integer_of(tree: _Tree) -> str:
    """Return Python that gives a tree's value as an int: min and max would hand a bool on."""
    text, is_bool = _python(tree)
    return f"int({text})" if is_bool else text
