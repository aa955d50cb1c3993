"""Integer expressions of launch headers, shapes and cases: our own small parser, never `eval`.

Knows numbers and names only. What a name means (a dim, a tunable, a device's property) is the caller's affair: no
YAML, no kernel, no workload may enter here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from evo.errors import ExpressionError, did_you_mean

LIMIT = 1 << 63
"""Absolute values below this are integers of an expression; a kernel's own widest integer has 64 bits."""

MAX_CHARACTERS = 1000
MAX_DEPTH = 32

_FUNCTIONS = {"min": (2, 16), "max": (2, 16), "ceildiv": (2, 2)}
_WORDS = frozenset({"and", "or", "not"})
RESERVED = _WORDS | frozenset(_FUNCTIONS)
"""Names with a meaning of their own: no dim and no tunable may be called so."""

_TOKEN = re.compile(r"\s*(?:(?P<number>\d\w*)|(?P<name>[A-Za-z_]\w*)|(?P<op>//|<=|>=|==|!=|[-+*%<>(),])|(?P<bad>\S))")
_FOREIGN = {
    "/": "use // (floor division) or ceildiv(a, b): values are integers",
    "&": "use 'and'",
    "|": "use 'or'",
    "!": "use 'not'",
    "?": "use min, max or a product with a comparison (0 or 1)",
    "=": "use == to compare",
    "^": "only + - * // % are known",
    ".": "values are integers",
}
_COMPARE: dict[str, Callable[[int, int], bool]] = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
}
_BINDING = {"+": 5, "-": 5, "*": 6, "//": 6, "%": 6}

_Tree = tuple[Any, ...]


@dataclass(frozen=True)
class Expression:
    """One parsed integer expression.

    Grammar, loosest first: `or`, `and`, `not`, comparisons (chained as in Python: `1 <= x <= 9`), `+ -`, `* // %`,
    unary `- +`, numbers, names, parentheses, `min(…)`, `max(…)`, `ceildiv(a, b)`. Comparisons and logic give 0 or 1,
    `and`/`or` stop early, `//` and `%` round towards minus infinity as in Python.

    Attributes:
        text: as written.
        names: every name that evaluation may ask for.
        where: what errors begin with: file, line and key.
    """

    text: str
    names: frozenset[str]
    where: str = field(compare=False)
    _tree: _Tree = field(repr=False, compare=False)

    @classmethod
    def parse(cls, text: str, where: str = "") -> Expression:
        """Read one expression.

        Raises:
            ExpressionError: with the column, what was expected and what was found.
        """
        (expression,) = _parse(text, where, most=1)
        return expression

    @classmethod
    def parse_list(cls, text: str, where: str = "", most: int = 64) -> tuple[Expression, ...]:
        """Read expressions separated by commas: at least one, at most `most`."""
        return _parse(text, where, most)

    def evaluate(self, env: Mapping[str, int]) -> int:
        """Return the value with names looked up in `env`.

        Raises:
            ExpressionError: a name is unknown, a divisor is zero, or a value leaves ±2**63.
        """
        return _Evaluation(self, env).value(self._tree)

    @property
    def tree(self) -> tuple[Any, ...]:
        """The syntax tree, for who translates expressions into another language.

        A node is a tuple that begins with its kind: `("number", value)`, `("name", name, column)`, `("negative", node)`,
        `("not", node)`, `("and", left, right)`, `("or", left, right)`, `("compare", operators, operands)`,
        `("binary", operator, left, right, column)`, `("call", function, arguments, column)`.
        """
        return self._tree

    @property
    def canonical(self) -> str:
        """The same for two expressions that differ only in spacing and needless parentheses."""
        return _show(self._tree)


def _parse(text: str, where: str, most: int) -> tuple[Expression, ...]:
    parser = _Parser(text, where)
    found: list[tuple[str, _Tree]] = []
    begin = 0
    while True:
        tree = parser.expression()
        kind, token, column = parser.peek()
        found.append((text[begin : column - 1].strip(), tree))
        if kind == "end":
            break
        if token != "," or len(found) == most:
            parser.fail("an operator or the end" if most == 1 else f"at most {most} values", token, column)
        begin = column
        parser.take()
    return tuple(Expression(part, frozenset(_names(tree)), where, tree) for part, tree in found)


class _Parser:
    """Recursive descent with operator binding powers (Pratt 1973) for the arithmetic levels."""

    def __init__(self, text: str, where: str) -> None:
        self.text, self.where, self.depth, self.position = text, where, 0, 0
        if len(text) > MAX_CHARACTERS:
            raise ExpressionError(
                f"{_prefix(where)}expected at most {MAX_CHARACTERS} characters, found {len(text)}; "
                "compute the value in the kernel instead"
            )
        self.tokens = self._tokens()

    def _tokens(self) -> list[tuple[str, str, int]]:
        tokens: list[tuple[str, str, int]] = []
        for match in _TOKEN.finditer(self.text):
            kind = str(match.lastgroup)
            token, column = match[kind], match.start(kind) + 1
            if kind == "bad":
                self.fail("an integer expression", token, column, _FOREIGN.get(token, ""))
            if kind == "number" and not token.isdecimal():
                self.fail("a decimal integer", token, column)
            tokens.append((kind, token, column))
        return [*tokens, ("end", "the end", len(self.text) + 1)]

    def fail(self, expected: str, found: str, column: int, fix: str = "") -> None:
        shown = found if found == "the end" else repr(found)
        raise ExpressionError(
            f"{_prefix(self.where)}in {self.text!r}, column {column}: expected {expected}, found {shown}"
            + (f"; {fix}" if fix else "")
        )

    def peek(self) -> tuple[str, str, int]:
        return self.tokens[self.position]

    def take(self) -> tuple[str, str, int]:
        token = self.tokens[self.position]
        self.position += 1
        return token

    def accept(self, *tokens: str) -> str | None:
        kind, token, _ = self.peek()
        if kind == "end" or token not in tokens:
            return None
        self.position += 1
        return token

    def expect(self, token: str) -> None:
        _, found, column = self.peek()
        if self.accept(token) is None:
            self.fail(repr(token), found, column)

    def expression(self) -> _Tree:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self.fail(f"at most {MAX_DEPTH} levels of nesting", "more", self.peek()[2])
        tree = self.conjunction()
        while self.accept("or"):
            tree = ("or", tree, self.conjunction())
        self.depth -= 1
        return tree

    def conjunction(self) -> _Tree:
        tree = self.negation()
        while self.accept("and"):
            tree = ("and", tree, self.negation())
        return tree

    def negation(self) -> _Tree:
        count = 0
        while self.accept("not"):
            count += 1
        tree = self.comparison()
        for _ in range(min(count, 2 - count % 2)):
            tree = ("not", tree)
        return tree

    def comparison(self) -> _Tree:
        operands, operators = [self.arithmetic(0)], []
        while operator := self.accept(*_COMPARE):
            operators.append(operator)
            operands.append(self.arithmetic(0))
        return ("compare", tuple(operators), tuple(operands)) if operators else operands[0]

    def arithmetic(self, binding: int) -> _Tree:
        tree = self.unary()
        while _BINDING.get(self.peek()[1], 0) > binding:
            _, operator, column = self.take()
            tree = ("binary", operator, tree, self.arithmetic(_BINDING[operator]), column)
        return tree

    def unary(self) -> _Tree:
        negative = False
        while sign := self.accept("-", "+"):
            negative ^= sign == "-"
        tree = self.atom()
        return ("negative", tree) if negative else tree

    def atom(self) -> _Tree:
        kind, token, column = self.take()
        if kind == "number":
            return ("number", int(token) if len(token) < 20 else LIMIT)
        if token == "(":
            tree = self.expression()
            self.expect(")")
            return tree
        if token in _FUNCTIONS:
            return self.call(token, column)
        if kind != "name" or token in _WORDS:
            self.fail("a number, a name or '('", token, column)
        if self.peek()[1] == "(":
            self.fail("a function", token, column, "known: " + ", ".join(sorted(_FUNCTIONS)))
        return ("name", token, column)

    def call(self, function: str, column: int) -> _Tree:
        self.expect("(")
        arguments = [self.expression()]
        while self.accept(","):
            arguments.append(self.expression())
        self.expect(")")
        least, most = _FUNCTIONS[function]
        if not least <= len(arguments) <= most:
            wanted = str(least) if least == most else f"{least} to {most}"
            self.fail(f"{wanted} arguments of {function}", str(len(arguments)), column)
        return ("call", function, tuple(arguments), column)


class _Evaluation:
    """Walks one tree with one environment."""

    def __init__(self, expression: Expression, env: Mapping[str, int]) -> None:
        self.expression, self.env = expression, env

    def fail(self, text: str) -> ExpressionError:
        return ExpressionError(f"{_prefix(self.expression.where)}in {self.expression.text!r}: {text}")

    def value(self, tree: _Tree) -> int:
        result: int = getattr(self, "_" + tree[0])(*tree[1:])
        if not -LIMIT < result < LIMIT:
            raise self.fail("a value leaves the 64-bit range; reorder the terms or divide earlier")
        return result

    def _number(self, value: int) -> int:
        return value

    def _name(self, name: str, column: int) -> int:
        if name not in self.env:
            raise self.fail(f"unknown name {name!r} at column {column}{did_you_mean(name, self.env)}")
        return int(self.env[name])

    def _negative(self, tree: _Tree) -> int:
        return -self.value(tree)

    def _not(self, tree: _Tree) -> int:
        return int(not self.value(tree))

    def _and(self, left: _Tree, right: _Tree) -> int:
        return int(bool(self.value(left)) and bool(self.value(right)))

    def _or(self, left: _Tree, right: _Tree) -> int:
        return int(bool(self.value(left)) or bool(self.value(right)))

    def _compare(self, operators: tuple[str, ...], operands: tuple[_Tree, ...]) -> int:
        left = self.value(operands[0])
        for operator, operand in zip(operators, operands[1:], strict=True):
            right = self.value(operand)
            if not _COMPARE[operator](left, right):
                return 0
            left = right
        return 1

    def _binary(self, operator: str, left: _Tree, right: _Tree, column: int) -> int:
        a, b = self.value(left), self.value(right)
        if operator == "+":
            return a + b
        if operator == "-":
            return a - b
        if operator == "*":
            return a * b
        if b == 0:
            raise self.fail(f"{operator} by zero at column {column}; guard it with max(1, …)")
        return a // b if operator == "//" else a % b

    def _call(self, function: str, arguments: tuple[_Tree, ...], column: int) -> int:
        values = [self.value(argument) for argument in arguments]
        if function != "ceildiv":
            return min(values) if function == "min" else max(values)
        if values[1] == 0:
            raise self.fail(f"ceildiv by zero at column {column}; guard it with max(1, …)")
        return -(-values[0] // values[1])


def _prefix(where: str) -> str:
    return f"{where}: " if where else ""


def _names(tree: _Tree) -> set[str]:
    if tree[0] == "name":
        return {tree[1]}
    return set().union(*(_names(part) for part in _children(tree)))


def _children(tree: _Tree) -> tuple[_Tree, ...]:
    kind = tree[0]
    if kind in ("compare", "call"):
        return tuple(tree[2])
    if kind == "binary":
        return (tree[2], tree[3])
    return tuple(tree[1:]) if kind in ("and", "or", "not", "negative") else ()


def _show(tree: _Tree) -> str:
    kind, parts = tree[0], [_show(child) for child in _children(tree)]
    if kind in ("number", "name"):
        return str(tree[1])
    if kind == "call":
        return f"{tree[1]}({', '.join(parts)})"
    if kind == "compare":
        rest = (f" {operator} {part}" for operator, part in zip(tree[1], parts[1:], strict=True))
        return f"({parts[0]}{''.join(rest)})"
    if kind == "binary":
        return f"({parts[0]} {tree[1]} {parts[1]})"
    if kind in ("and", "or"):
        return f"({parts[0]} {kind} {parts[1]})"
    return f"({'not ' if kind == 'not' else '-'}{parts[0]})"
