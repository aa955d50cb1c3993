"""Reading and editing CUDA text by its syntax tree (tree-sitter): what every rule needs of it, and no rule.

Texts go in, texts come out; a source with a syntax error is refused here, once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
import tree_sitter_cuda
from tree_sitter import Language, Node, Parser

_PARSER = Parser(Language(tree_sitter_cuda.language()))
_DEEPEST = 150
"""Levels of the tree: the rules walk it recursively."""
SMALLEST_BLOCK = 4
"""Threads of a block along one axis, where they work alone."""
_TOGETHER = re.compile(r"__sync|__shfl|__ballot|__any_sync|__all_sync|__reduce|__match|__activemask|warpSize|\batomic")
_WORD = re.compile(r"[A-Za-z_]\w*")


class Rewrite(NamedTuple):
    """A kernel's new source, and what was done to it in a few words."""

    source: str
    note: str


class Rule(Protocol):
    """One rewrite: a frozen dataclass."""

    def apply(self, source: str, rng: np.random.Generator) -> Rewrite | None:
        """Return the rewritten kernel, or None where the rule does not fit it. Choices come from `rng` alone."""
        ...


class Unfit(Exception):
    """The rule cannot rewrite this kernel; the text says why."""


@dataclass(frozen=True)
class Function:
    """A `__global__` function with a body: `start`, `end` of nodes are byte offsets of the UTF-8 text."""

    name: str
    definition: Node
    declarator: Node
    body: Node

    @property
    def parameters(self) -> list[Node]:
        """Its parameter declarations, in order."""
        listed = self.declarator.child_by_field_name("parameters")
        return [] if listed is None else [n for n in listed.named_children if n.type == "parameter_declaration"]


def parse(source: str) -> Node:
    """Return the tree's root; raises `Unfit` when the text has a syntax error or is nested absurdly."""
    try:
        root = _PARSER.parse(source.encode()).root_node
    except UnicodeEncodeError:
        raise Unfit("the source has half a character") from None
    if root.has_error:
        raise Unfit("the source has a syntax error")
    level, depth = [root], 0
    while level:
        level, depth = [child for node in level for child in node.children], depth + 1
        if depth > _DEEPEST:
            raise Unfit(f"the source is nested more than {_DEEPEST} levels deep")
    return root


def text(node: Node) -> str:
    """Return a node's own text."""
    return "" if node.text is None else node.text.decode()


def field(node: Node, name: str) -> Node:
    """Return a child by its field name; raises `Unfit` where the grammar has none there."""
    child = node.child_by_field_name(name)
    if child is None:
        raise Unfit(f"a {node.type} without {name}")
    return child


def walk(node: Node) -> Iterator[Node]:
    """Yield a node and all below it, in the order of the text."""
    yield node
    for child in node.children:
        yield from walk(child)


def named(node: Node) -> list[Node]:
    """Return a node's named children without comments."""
    return [child for child in node.named_children if child.type != "comment"]


def functions(root: Node) -> list[Node]:
    """Return every function definition."""
    return [node for node in walk(root) if node.type == "function_definition"]


def kernels(root: Node) -> list[Function]:
    """Return the `__global__` functions that are no templates, in order."""
    found = []
    for node in functions(root):
        templated = node.parent is not None and node.parent.type == "template_declaration"
        if templated or not any(child.type == "__global__" for child in node.children):
            continue
        declarator, body = field(node, "declarator"), field(node, "body")
        if declarator.type == "function_declarator":
            found.append(Function(text(field(declarator, "declarator")), node, declarator, body))
    return found


def declared(declarator: Node) -> Node:
    """Return the identifier that a declarator of any shape declares."""
    while declarator.type != "identifier":
        inner = declarator.child_by_field_name("declarator")
        if inner is None:
            inner = next((c for c in declarator.named_children if c.type == "identifier"), None)
        if inner is None:
            raise Unfit(f"a {declarator.type} without a name")
        declarator = inner
    return declarator


def smallest_block(source: str) -> int:
    """Return how many threads a block should at least have along an axis.

    32 where threads work together: a warp's operations need whole warps, and a sum in blocks of a few elements is one
    long sequential sum, whose rounding errors grow with its length.
    """
    return 32 if _TOGETHER.search(source) else SMALLEST_BLOCK


def words(source: str) -> set[str]:
    """Return every identifier-like word of a text, comments and header included."""
    return set(_WORD.findall(source))


def free_name(wish: str, taken: Iterable[str]) -> str:
    """Return `wish`, or `wish` with the first number from 2 on that no word of `taken` uses."""
    used = set(taken)
    if wish not in used:
        return wish
    number = 2
    while f"{wish}{number}" in used:
        number += 1
    return f"{wish}{number}"


def edit(source: str, edits: Iterable[tuple[int, int, str]]) -> str:
    """Return the source with byte ranges replaced; ranges may not overlap."""
    raw = source.encode()
    pieces, end = [], 0
    for start, stop, new in sorted(edits):
        pieces += [raw[end:start], new.encode()]
        end = stop
    return b"".join([*pieces, raw[end:]]).decode()


def rendered(node: Node, replacement: Callable[[Node], str | None]) -> str:
    """Return a node's text with every node for which `replacement` gives a text replaced (outermost first)."""
    edits: list[tuple[int, int, str]] = []

    def visit(current: Node) -> None:
        new = replacement(current)
        if new is not None:
            edits.append((current.start_byte - node.start_byte, current.end_byte - node.start_byte, new))
            return
        for child in current.children:
            visit(child)

    visit(node)
    return edit(text(node), edits)


def indented(code: str) -> str:
    """Return code with each line indented by the braces that are open before it; four blanks a level."""
    lines, depth = [], 0
    for line in (raw.strip() for raw in code.splitlines()):
        if not line:
            continue
        bare = re.sub(r'//.*|"(?:\\.|[^"\\])*"', "", line)
        leading = len(bare) - len(bare.lstrip("} "))
        closing = bare[:leading].count("}")
        lines.append("    " * max(depth - closing, 0) + line)
        depth += bare.count("{") - bare.count("}")
    return "\n".join(lines)
