"""YAML whose every value knows its line and key path, for errors that a person can act on.

Stricter than YAML: no anchors, no tags, no duplicate keys; of bare words only `true`, `false` and `null` are special
(`no` is a string). Knows nothing of headers or workloads.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from evo.errors import EvoError, did_you_mean

MAX_CHARACTERS = 1 << 16
"""A launch header or a workload.yaml beyond this is data, not a declaration."""

_INTEGER = re.compile(r"[-+]?\d{1,19}|0x[0-9a-fA-F]{1,16}")
_DOCUMENT = re.compile(r"^(---|\.\.\.|%)", re.MULTILINE)
_FLOAT = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_WORDS = {"true": True, "True": True, "false": False, "False": False, "null": None, "~": None, "": None}


@dataclass(frozen=True)
class Origin:
    """Where a text comes from: `name` begins every message, `first_line` is the file's line of the text's first."""

    name: str
    error: type[EvoError]
    first_line: int = 1


@dataclass(frozen=True)
class Node:
    """One value: None, bool, int, float, str, a tuple of nodes, or a mapping of names to nodes."""

    value: Any
    line: int
    path: str
    origin: Origin

    @property
    def where(self) -> str:
        """File, line and key path, as errors begin with."""
        key = f", key {self.path!r}" if self.path else ""
        return f"{self.origin.name}, line {self.line}{key}"

    def fail(self, expected: str, found: object = None, fix: str = "") -> EvoError:
        """Return (not raise) the error of this node: expected, found (the node's own value by default), fix."""
        shown = _shown(self if found is None else found)
        tail = fix if not fix or fix.startswith(";") else f"; {fix}"
        return self.origin.error(f"{self.where}: expected {expected}, found {shown}{tail}")

    def mapping(self, known: Iterable[str] | None = None, required: Iterable[str] = ()) -> Mapping[str, Node]:
        """Return the entries of a mapping whose keys are all `known` (any, when None) and include `required`."""
        if not isinstance(self.value, dict):
            raise self.fail("a mapping (key: value)")
        entries: dict[str, Node] = self.value
        names = None if known is None else tuple(known)
        for key, node in entries.items():
            if names is not None and key not in names:
                raise node.fail(f"one of the keys {', '.join(sorted(names))}", key, did_you_mean(key, names))
        for key in required:
            if key not in entries:
                raise self.fail(f"a key {key!r}", "none", f"add '{key}: …'")
        return entries

    def sequence(self) -> tuple[Node, ...]:
        """Return the items of a list."""
        if not isinstance(self.value, tuple):
            raise self.fail("a list [a, b, …]")
        return self.value

    def text(self, what: str = "a text") -> str:
        """Return a string that is not empty."""
        if not isinstance(self.value, str) or not self.value.strip():
            raise self.fail(what)
        return self.value

    def word(self, allowed: Iterable[str], what: str = "one of") -> str:
        """Return a string out of `allowed`."""
        names = tuple(allowed)
        if self.value not in names:
            raise self.fail(f"{what} {', '.join(names)}", fix=did_you_mean(str(self.value), names))
        return str(self.value)

    def integer(self, what: str = "an integer") -> int:
        """Return an integer."""
        if not isinstance(self.value, int) or isinstance(self.value, bool):
            raise self.fail(what)
        return self.value

    def number(self, what: str = "a number") -> float:
        """Return an integer or a float as float."""
        if not isinstance(self.value, int | float) or isinstance(self.value, bool):
            raise self.fail(what)
        return float(self.value)

    def boolean(self) -> bool:
        """Return true or false."""
        if not isinstance(self.value, bool):
            raise self.fail("true or false")
        return self.value

    def plain(self) -> Any:
        """Return the value without lines: dicts, lists and scalars."""
        if isinstance(self.value, dict):
            return {key: node.plain() for key, node in self.value.items()}
        return [node.plain() for node in self.value] if isinstance(self.value, tuple) else self.value


_STAR = "found '*', which YAML reads as an alias; quote it, and begin no line with '*'"


class _Loader(yaml.SafeLoader):
    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
            raise yaml.MarkedYAMLError(problem=_STAR, problem_mark=mark)
        return super().compose_node(parent, index)


def compose(text: str, origin: Origin) -> yaml.Node | None:
    """Return PyYAML's node tree (None for an empty text).

    Raises:
        EvoError: of the origin's type, where the text is no YAML or uses what is not allowed.
    """
    if len(text) > MAX_CHARACTERS:
        raise origin.error(f"{origin.name}: expected at most {MAX_CHARACTERS} characters of YAML, found {len(text)}")
    if _DOCUMENT.search(text):
        raise origin.error(f"{origin.name}: expected no document marks, found a line of '---', '...' or '%'; delete it")
    try:
        return yaml.compose(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        line = (error.problem_mark.line if error.problem_mark else 0) + origin.first_line
        context = f"{error.context}, " if error.context else ""
        problem = _STAR if "scanning an alias" in context else f"{context}{error.problem}"
        raise origin.error(f"{origin.name}, line {line}: expected YAML: {problem}") from None
    except yaml.YAMLError as error:
        raise origin.error(f"{origin.name}: expected YAML: {error}") from None
    except RecursionError:
        raise origin.error(f"{origin.name}: expected YAML, found brackets nested too deep") from None


def load(text: str, origin: Origin) -> Node:
    """Read a text; an empty one is an empty mapping."""
    return convert(compose(text, origin), origin)


def convert(tree: yaml.Node | None, origin: Origin) -> Node:
    """Turn PyYAML's node tree into ours."""
    if tree is None:
        return Node({}, origin.first_line, "", origin)
    return _convert(tree, "", origin)


def _convert(tree: yaml.Node, path: str, origin: Origin) -> Node:
    line = tree.start_mark.line + origin.first_line
    if isinstance(tree, yaml.ScalarNode):
        return Node(_scalar(tree), line, path, origin)
    if isinstance(tree, yaml.SequenceNode):
        items = (_convert(item, f"{path}[{index}]", origin) for index, item in enumerate(tree.value))
        return Node(tuple(items), line, path, origin)
    entries: dict[str, Node] = {}
    for key_tree, value_tree in tree.value:
        key = str(key_tree.value) if isinstance(key_tree, yaml.ScalarNode) else "?"
        inner = f"{path}.{key}" if path else key
        node = _convert(value_tree, inner, origin)
        # A value on later lines is still found where its key stands.
        node = Node(node.value, key_tree.start_mark.line + origin.first_line, inner, origin)
        if key in entries:
            raise node.fail("each key once", f"{key} twice", "delete one")
        entries[key] = node
    return Node(entries, line, path, origin)


def _scalar(tree: yaml.ScalarNode) -> Any:
    text: str = tree.value
    if tree.style is not None:
        return text
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        return int(text, 16) if text.startswith("0x") else int(text)
    return float(text) if _FLOAT.fullmatch(text) else text


def _shown(value: object) -> str:
    if isinstance(value, Node):
        if isinstance(value.value, dict):
            return "a mapping"
        if isinstance(value.value, tuple):
            return "a list" if value.value else "an empty list"
        return "nothing" if value.value is None else repr(value.value)
    return str(value)
