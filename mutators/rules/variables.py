"""The local variables of a kernel, each declaration one, and the axis along which they may differ between items."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tree_sitter import Node

from mutators.rules import shapes, syntax
from mutators.rules.syntax import Unfit, text

UNIFORM = "0"
VARYING = None
Stride = str | None
"""The text of a stride, `UNIFORM`, or `VARYING`."""


@dataclass(frozen=True)
class Axis:
    """How threads are merged along one axis.

    Attributes:
        name: x, y or z.
        items: the macro that holds how many items a thread does.
        item: name of the variable that counts them.
        contiguous: whether a thread's items are neighbours, or lie a block's threads apart.
    """

    name: str
    items: str
    item: str
    contiguous: bool

    @property
    def stride(self) -> str:
        """What lies between the thread indices of two items."""
        return "1" if self.contiguous else f"blockDim.{self.name}"

    def index(self, item: str) -> str:
        """Return an item's thread index, unsigned as `threadIdx` is."""
        if self.contiguous:
            return f"(threadIdx.{self.name} * {self.items} + {item})"
        return f"(threadIdx.{self.name} + {item} * {self.stride})"


@dataclass(eq=False)
class Variable:
    """A local variable or parameter: one declaration.

    Attributes:
        name: as written.
        kind: its type's text, with `*` for a pointer and `[]` for an array.
        private: whether it is thread-private and declared in the body, so that there may be one per item.
        stride: its class; meaningless before `known`.
        known: whether any value has been seen.
        depth: how many divergent regions enclose its declaration.
        assigned: whether it is ever written after its declaration.
    """

    name: str
    kind: str
    private: bool = True
    stride: Stride = UNIFORM
    known: bool = False
    depth: int = 0
    assigned: bool = False

    def at(self, item: str) -> str:
        """Return the value that an affine variable has for an item; the variable itself holds the first item's.

        The stride is cast, since `blockDim` is unsigned and would make the sum so.
        """
        if self.stride == "1":
            return f"({self.name} + {item})"
        kind = "long long" if self.pointer else re.sub(r"\bconst\b", "", self.kind).strip()
        return f"({self.name} + {item} * ({kind})({self.stride}))"

    @property
    def pointer(self) -> bool:
        """Whether its elements are somebody else's memory."""
        return self.kind.endswith("*")

    def lower(self, stride: Stride) -> bool:
        """Account for one more value; tells whether the class changed."""
        new = stride if not self.known or self.stride == stride else VARYING
        changed = not self.known or new != self.stride
        self.stride, self.known = new, True
        return changed


def resolve(function: syntax.Function) -> dict[int, Variable]:
    """Return node id -> variable for every identifier of a function that names a parameter or a local variable.

    Raises:
        Unfit: a name hides another, or is declared in a way that is not understood.
    """
    found: dict[int, Variable] = {}
    scope: dict[str, Variable | None] = {}
    for parameter in function.parameters:
        declarator = parameter.child_by_field_name("declarator")
        if declarator is not None:
            name = syntax.declared(declarator)
            kind = text(parameter)[: declarator.start_byte - parameter.start_byte].strip()
            mark = "*" if declarator.type == "pointer_declarator" else ""
            scope[text(name)] = found[name.id] = Variable(text(name), f"{kind}{mark}", private=False)
    _resolve(function.body, found, scope)
    return found


def _resolve(node: Node, found: dict[int, Variable], scope: dict[str, Variable | None]) -> None:
    if node.type in ("compound_statement", *shapes.LOOPS):
        scope = dict(scope)
    variable = scope.get(text(node)) if node.type == "identifier" else None
    if variable is not None:
        found[node.id] = variable
    for child in node.children:
        if node.type == "declaration" and child in shapes.declarators(node):
            name = syntax.declared(child)
            if text(name) in scope:
                raise Unfit(f"{text(name)} hides another variable")
            scope[text(name)] = None if _is_shared(node) else Variable(text(name), _kind(node, child))
        _resolve(child, found, scope)
    if node.type in ("assignment_expression", "update_expression"):
        root = shapes.root_of(shapes.target_of(node))
        if root is not None and root.id in found:
            found[root.id].assigned = True


def _is_shared(declaration: Node) -> bool:
    return any(text(child) == "__shared__" for child in declaration.children)


def _kind(declaration: Node, declarator: Node) -> str:
    inner = syntax.field(declarator, "declarator") if declarator.type == "init_declarator" else declarator
    if inner.type not in ("identifier", "pointer_declarator", "array_declarator"):
        raise Unfit(f"a {inner.type.replace('_', ' ')}")
    mark = {"pointer_declarator": "*", "array_declarator": "[]"}.get(inner.type, "")
    return f"{shapes.type_of(declaration).strip()}{mark}"
