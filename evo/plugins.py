"""Turns a plug-in's name into its class: a module of a package, a `.py` path, or an entry point.

A plug-in is one module with one frozen dataclass; its file name is its name in a config. No list of plug-ins
may enter, and none is imported before it is asked for.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import hashlib
import importlib
import importlib.metadata
import importlib.util
import inspect
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from evo.errors import PluginError, did_you_mean

OPERATORS = "mutators.operators"
CLIENTS = "mutators.clients"
DEVICES = "evaluators"

_DUTIES = {
    OPERATORS: ("step",),
    CLIENTS: ("check", "complete"),
    DEVICES: ("describe", "compile", "run"),
}
_WORDS = {OPERATORS: "operator", CLIENTS: "model client", DEVICES: "device"}


def resolve(package: str, name: str) -> type[Any]:
    """Return the plug-in class of this name.

    Args:
        package: `mutators.operators`, `mutators.clients` or `evaluators`.
        name: a module of that package, the path of a `.py` file, or an entry point in group
            `kernel_evo.<package>`.

    Raises:
        PluginError: there is no such plug-in (with the nearest name), its import fails (the cause is kept),
            or its module does not hold exactly one frozen dataclass with the methods that are asked for.
    """
    if name.endswith(".py"):
        return _plugin_class(_import_file(package, name), package, name)
    if name in _shipped(package):
        return _plugin_class(_import_module(f"{package}.{name}", package, name), package, name)
    for point in _entry_points(package):
        if point.name == name:
            return _from_entry_point(point, package)
    raise PluginError(f"no {_word(package)} is called {name!r}{did_you_mean(name, available(package))}")


def located(name: str) -> str:
    """Return a plug-in's name as it is understood in any working directory: a `.py` path becomes absolute."""
    return str(_path(name)) if name.endswith(".py") else name


def available(package: str) -> tuple[str, ...]:
    """Return the names that `resolve` knows in this package, sorted. Imports no plug-in."""
    return tuple(sorted({*_shipped(package), *(point.name for point in _entry_points(package))}))


def _word(package: str) -> str:
    return _WORDS.get(package, "plug-in")


def _duties(package: str) -> tuple[str, ...]:
    return _DUTIES.get(package, ())


def _entry_points(package: str) -> tuple[importlib.metadata.EntryPoint, ...]:
    return tuple(importlib.metadata.entry_points(group=f"kernel_evo.{package}"))


def _shipped(package: str) -> tuple[str, ...]:
    folders = importlib.import_module(package).__path__
    files = [file for folder in folders for file in Path(folder).glob("[!_]*.py")]
    return tuple(file.stem for file in files if _declares_plugin(file, _duties(package)))


@functools.cache  # a config asks some thirty times, and parsing a package takes 20 ms
def _declares_plugin(file: Path, duties: tuple[str, ...]) -> bool:
    """Look in the source for a dataclass with these methods, so that listing plug-ins imports none."""
    try:
        tree = ast.parse(file.read_text(encoding="utf-8"), str(file))
    except SyntaxError:
        return True  # `resolve` then imports it and tells what is wrong
    classes = (node for node in tree.body if isinstance(node, ast.ClassDef) and _is_dataclass(node))
    return any(_methods(node).issuperset(duties) for node in classes)


def _is_dataclass(node: ast.ClassDef) -> bool:
    return any("dataclass" in ast.unparse(decorator) for decorator in node.decorator_list)


def _methods(node: ast.ClassDef) -> set[str]:
    return {item.name for item in node.body if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef)}


def _import_module(module: str, package: str, name: str) -> ModuleType:
    try:
        return importlib.import_module(module)
    except Exception as error:
        raise _broken(package, name, error) from error


def _path(name: str) -> Path:
    return Path(name).expanduser().resolve()


def _import_file(package: str, name: str) -> ModuleType:
    path = _path(name)
    if not path.is_file():
        raise PluginError(f"{_word(package)} {name!r}: there is no file {path}")
    module_name = f"kernel_evo_plugin_{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:12]}"
    if module_name in sys.modules:
        return sys.modules[module_name]
    spec = importlib.util.spec_from_file_location(module_name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module  # dataclasses look their module up there
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[module_name]
        raise _broken(package, name, error) from error
    return module


def _from_entry_point(point: importlib.metadata.EntryPoint, package: str) -> type[Any]:
    try:
        loaded = point.load()
    except Exception as error:
        raise _broken(package, point.name, error) from error
    if isinstance(loaded, ModuleType):
        return _plugin_class(loaded, package, point.name)
    if inspect.isclass(loaded) and _fits(loaded, package):
        plugin: type[Any] = loaded
        return plugin
    raise PluginError(
        f"{_word(package)} {point.name!r}: the entry point {point.value!r} is neither a module nor {_wanted(package)}"
    )


def _broken(package: str, name: str, error: Exception) -> PluginError:
    return PluginError(f"{_word(package)} {name!r} cannot be imported: {type(error).__name__}: {error}")


def _plugin_class(module: ModuleType, package: str, name: str) -> type[Any]:
    classes = [thing for thing in vars(module).values() if inspect.isclass(thing)]
    found = [thing for thing in classes if thing.__module__ == module.__name__ and _fits(thing, package)]
    if len(found) == 1:
        return found[0]
    names = ", ".join(thing.__name__ for thing in found) or "none"
    raise PluginError(
        f"{_word(package)} {name!r}: {module.__file__} must hold exactly one public {_wanted(package)}; found: {names}"
    )


def _fits(thing: type[Any], package: str) -> bool:
    frozen = dataclasses.is_dataclass(thing) and thing.__dataclass_params__.frozen  # type: ignore[attr-defined]
    methods = all(callable(getattr(thing, duty, None)) for duty in _duties(package))
    return bool(frozen) and methods and not thing.__name__.startswith("_")


def _wanted(package: str) -> str:
    duties = _duties(package)
    return "frozen dataclass" + (f" with the methods {', '.join(duties)}" if duties else "")
