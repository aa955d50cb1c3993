"""The rule that promises what is true of a workload's buffers: they do not overlap, and some are only read."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from tree_sitter import Node

from mutators.rules import headers, syntax
from mutators.rules.headers import Mapped
from mutators.rules.syntax import Function, Rewrite, Unfit


@dataclass(frozen=True)
class Qualifiers:
    """Qualify every pointer parameter with `__restrict__`, and with `const` where the kernel only reads through it.

    Buffers of a workload never overlap; a launch that passes one buffer twice is left alone.
    """

    def apply(self, source: str, rng: np.random.Generator) -> Rewrite | None:
        """Return the kernel with more qualifiers, or None where all are there."""
        try:
            mapping = headers.read(source)
            edits, touched = [], []
            for kernel in syntax.kernels(syntax.parse(source)):
                new = [] if _passed_twice(mapping, kernel) else _edits(kernel)
                edits += new
                touched += [kernel.name] * bool(new)
        except Unfit:
            return None
        return Rewrite(syntax.edit(source, edits), f"{', '.join(touched)}: pointers qualified") if edits else None


def _passed_twice(mapping: Mapped, kernel: Function) -> bool:
    for launch in headers.launches_of(mapping, kernel.name):
        arguments = launch.get("args", [])
        texts = [str(argument) for argument in arguments] if isinstance(arguments, list) else arguments.split(",")
        buffers = [text.strip() for text in texts if text.strip().isidentifier()]
        if len(set(buffers)) < len(buffers):
            return True
    return False


def _edits(kernel: Function) -> list[tuple[int, int, str]]:
    edits = []
    for parameter in kernel.parameters:
        declarator = parameter.child_by_field_name("declarator")
        if declarator is None or declarator.type != "pointer_declarator" or "volatile" in syntax.text(parameter):
            continue
        name = syntax.declared(declarator)
        if not any("restrict" in syntax.text(child) for child in declarator.children if child != name):
            edits.append((name.start_byte, name.start_byte, "__restrict__ "))
        const = any(syntax.text(child) == "const" for child in parameter.children)
        if not const and _only_read(kernel.body, syntax.text(name)):
            edits.append((parameter.start_byte, parameter.start_byte, "const "))
    return edits


def _only_read(body: Node, name: str) -> bool:
    """Whether every use of a pointer is the reading of an element."""
    uses = [node for node in syntax.walk(body) if node.type == "identifier" and syntax.text(node) == name]
    return bool(uses) and all(_reads(node) for node in uses)


def _reads(node: Node) -> bool:
    element = node.parent
    if element is None or element.type != "subscript_expression" or element.child_by_field_name("argument") != node:
        return False
    outer = element.parent
    while outer is not None and outer.type in ("field_expression", "parenthesized_expression"):
        element, outer = outer, outer.parent
    if outer is None or outer.type in ("update_expression", "pointer_expression", "subscript_expression"):
        return False
    return not (outer.type == "assignment_expression" and outer.child_by_field_name("left") == element)
