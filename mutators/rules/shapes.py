"""The shape of statements and names: conditions, branches, guards, jumps, declarators; no analysis of values."""

from __future__ import annotations

from collections.abc import Iterator

from tree_sitter import Node

from mutators.rules import syntax
from mutators.rules.syntax import Unfit, named, text

LOOPS = ("for_statement", "while_statement", "do_statement")
BARRIER = "__syncthreads"


def is_barrier(node: Node) -> bool:
    """Whether a node is a call of `__syncthreads`."""
    return node.type == "call_expression" and text(syntax.field(node, "function")) == BARRIER


def is_member(node: Node, variable: str, member: str) -> bool:
    """Whether a node is `variable.member`, however it is spaced."""
    if node.type != "field_expression":
        return False
    parts = (syntax.field(node, "argument"), syntax.field(node, "field"))
    return (text(parts[0]), text(parts[1])) == (variable, member)


def condition_of(node: Node) -> Node:
    """Return the condition of an `if`, `while` or `do`."""
    condition = syntax.field(node, "condition")
    return only(condition) if condition.type in ("condition_clause", "parenthesized_expression") else condition


def loop_condition(node: Node) -> Node | None:
    """Return a loop's condition, or None for an endless `for`."""
    if node.type == "for_statement":
        return node.child_by_field_name("condition")
    return condition_of(node)


def block(node: Node) -> list[Node]:
    """Return a statement's statements."""
    return named(node) if node.type == "compound_statement" else [node]


def branches(node: Node) -> tuple[list[Node], list[Node]]:
    """Return the statements of an `if` and of its `else`."""
    other = node.child_by_field_name("alternative")
    return block(syntax.field(node, "consequence")), block(only(other)) if other is not None else []


def guard(node: Node) -> list[Node] | None:
    """Return what an `if (…) { …; return; }` without an else does before it returns; None for any other statement."""
    if node.type != "if_statement" or node.child_by_field_name("alternative") is not None:
        return None
    then, _ = branches(node)
    return then[:-1] if then and then[-1].type == "return_statement" else None


def jumps(loop: Node) -> Iterator[Node]:
    """Yield the `break` and `continue` statements that belong to this loop."""

    def visit(node: Node) -> Iterator[Node]:
        if node.type in ("break_statement", "continue_statement"):
            yield node
        if node.type not in LOOPS:
            for child in node.children:
                yield from visit(child)

    yield from visit(syntax.field(loop, "body"))


def declarators(declaration: Node) -> list[Node]:
    """Return the declarators of a declaration, with initial values where they have one."""
    return declaration.children_by_field_name("declarator")


def target_of(node: Node) -> Node:
    """Return what an assignment, `++` or `--` writes."""
    return syntax.field(node, "left" if node.type == "assignment_expression" else "argument")


def root_of(node: Node) -> Node | None:
    """Return the identifier that an lvalue is, or is an element, field or target of."""
    while node.type != "identifier":
        inner = node.child_by_field_name("argument")
        if inner is None and node.type == "parenthesized_expression":
            inner = only(node)
        if inner is None:
            return None
        node = inner
    return node


def only(node: Node) -> Node:
    """Return a node's only child; raises `Unfit` where it has none or several."""
    children = named(node)
    if len(children) != 1:
        raise Unfit(f"a {node.type.replace('_', ' ')} of {len(children)} parts")
    return children[0]


def type_of(declaration: Node) -> str:
    """Return the text before a declaration's first declarator, its spacing included."""
    return text(declaration)[: declarators(declaration)[0].start_byte - declaration.start_byte]
