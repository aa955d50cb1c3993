"""A YAML mapping that remembers the line of every key and takes overrides from a command line.

No schema enters: this room knows text, key paths and places, so that whoever checks a value can say where it stands.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from evo import marked
from evo.errors import ConfigError

KeyPath = tuple[str | int, ...]


@dataclass(frozen=True)
class Document:
    """A mapping with its places.

    Attributes:
        name: of the file, for messages.
        data: plain dicts, lists and scalars; overrides change it in place.
        lines: key path -> line, from 1.
        overrides: key path -> the override that set it.
    """

    name: str
    data: dict[str, Any]
    lines: Mapping[KeyPath, int] = field(default_factory=dict)
    overrides: dict[KeyPath, str] = field(default_factory=dict)

    def error(self, path: KeyPath, message: str) -> str:
        """Return the message behind the place and the key path that it is about."""
        key = ".".join(map(str, path))
        return f"{self._place(path)}: {key}: {message}"

    def _place(self, path: KeyPath) -> str:
        for prefix in (path[:length] for length in range(len(path), -1, -1)):
            if prefix in self.overrides:
                return f"--set {self.overrides[prefix]}"
            if prefix in self.lines:
                return f"{self.name}, line {self.lines[prefix]}"
        return self.name

    def override(self, override: str, defaults: Mapping[str, Any]) -> None:
        """Set one value in place.

        Args:
            override: `key.path=value`, the value in YAML; a list is reached by index. What follows `operators.` is
                one key, since the name of an operator may be a path with dots.
            defaults: what a top-level key holds where the text does not give it.

        Raises:
            ConfigError: the override is not of that form, or its path leads nowhere.
        """
        key, separator, text = override.partition("=")
        if not separator or not key:
            raise ConfigError(f"--set {override}: expected key.path=value, e.g. search.islands=4")
        steps = key.split(".", 1) if key.startswith("operators.") else key.split(".")
        path: KeyPath = tuple(int(step) if step.isdigit() else step for step in steps)
        value = marked.load(f"value: {text}", _origin(f"--set {override}")).plain()["value"]
        if len(path) > 1 and path[0] not in self.data:
            self.data[str(path[0])] = defaults.get(str(path[0]), {})
        _put(self.data, path, value, override)
        self.overrides[path] = override


def parse(text: str, name: str) -> Document:
    """Read YAML (and so JSON) text that holds a mapping.

    Raises:
        ConfigError: not YAML, not a mapping, or a key given twice.
    """
    root = marked.load(text, _origin(name))
    lines: dict[KeyPath, int] = {}
    _note_lines(root, (), lines)
    root.mapping()
    return Document(name, root.plain(), lines)


def _origin(name: str) -> marked.Origin:
    return marked.Origin(name, ConfigError)


def _note_lines(node: marked.Node, path: KeyPath, lines: dict[KeyPath, int]) -> None:
    if path:
        lines[path] = node.line
    inner = node.value.items() if isinstance(node.value, dict) else enumerate(_items(node))
    for step, child in inner:
        _note_lines(child, (*path, step), lines)


def _items(node: marked.Node) -> tuple[marked.Node, ...]:
    return node.value if isinstance(node.value, tuple) else ()


def _put(target: Any, path: KeyPath, value: Any, override: str) -> None:
    step, rest = path[0], path[1:]
    if isinstance(target, dict) and isinstance(step, str):
        if rest:
            target.setdefault(step, {})
    elif not isinstance(target, list) or not isinstance(step, int) or step >= len(target):
        raise ConfigError(f"--set {override}: {_nowhere(target, step)}")
    if rest:
        _put(target[step], rest, value, override)
    else:
        target[step] = value


def _nowhere(target: Any, step: str | int) -> str:
    if isinstance(target, list):
        return f"expected an index from 0 to {len(target) - 1}, found {step!r}"
    if isinstance(target, dict):
        return f"expected the name of a key, found the index {step}"
    return f"{step!r} lies inside {target!r}, which holds no keys"
