"""The launch header of a kernel file, read strictly: every key known, every expression parsed.

Knows the header alone: its text is found and edited in `header_text`, and what its expressions are worth on a case
and a device is the affair of `kernel`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from evo import marked
from evo.errors import did_you_mean
from evo.kernel import lexer
from evo.kernel.expression import RESERVED, Expression
from evo.kernel.header_text import ORDER, Located
from evo.marked import Node
from evo.records import Config

DEVICE_NAMES = frozenset({"num_sms", "blocks_per_sm", "l2_bytes"})
"""Names that expressions may use besides dims and tunables."""

LAUNCH_KEYS = ("kernel", "block", "grid", "shared_bytes", "args")
OPTIONS: Mapping[str, tuple[str, ...] | range] = {
    "--use_fast_math": (),
    "--extra-device-vectorization": (),
    "--restrict": (),
    "--fmad": ("true", "false"),
    "--ftz": ("true", "false"),
    "--prec-div": ("true", "false"),
    "--prec-sqrt": ("true", "false"),
    "--std": ("c++14", "c++17", "c++20"),
    "--maxrregcount": range(16, 256),
}
"""Compiler options that a header may ask for, and their values; spelled as NVRTC does (CUDA 13, section 3.3).

Nothing that names a file, defines a macro or changes the target is among them.
"""

FAST_MATH = frozenset({"--use_fast_math", "--ftz=true", "--prec-div=false", "--prec-sqrt=false"})
"""Options that change results: only where the workload permits fast math."""

MAX_TUNABLES = 16
MAX_VALUES = 64
MAX_LAUNCHES = 32
_WIDEST_VALUE = 1 << 31

_KEYWORDS = frozenset(
    """
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t char32_t class co_await
    co_return co_yield compl concept const const_cast consteval constexpr constinit continue decltype default delete do
    double dynamic_cast else enum explicit export extern false float for friend goto if inline int long mutable
    namespace new noexcept not not_eq nullptr operator or or_eq private protected public register reinterpret_cast
    requires return short signed sizeof static static_assert static_cast struct switch template this thread_local throw
    true try typedef typeid typename union unsigned using virtual void volatile wchar_t while xor xor_eq
    """.split()  # noqa: SIM905 - names read better without quotes
)
"""Keywords and alternative tokens of C++20 ([lex.key], [lex.digraph]): as a macro, each would change the language."""
_RESERVED_MACRO = re.compile(r"_[A-Z_]")
_CUDA_NAMES = frozenset({"defined", "threadIdx", "blockIdx", "blockDim", "gridDim", "warpSize"})
"""What no macro may be called for other reasons: the preprocessor's operator and CUDA's built-in variables."""
_IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


@dataclass(frozen=True)
class LaunchSpec:
    """One launch as declared; `args` None means the workload's parameters in order, but for specialised dims."""

    kernel: str
    block: tuple[Expression, ...]
    grid: tuple[Expression, ...]
    shared_bytes: Expression
    args: tuple[Expression, ...] | None
    where: str = field(compare=False, default="")


@dataclass(frozen=True)
class Choice:
    """A rule written by tuning: where `when` holds, `values` are used."""

    when: Expression
    values: Config


@dataclass(frozen=True)
class Option:
    """A compiler option: `name`, or `name=value`; `when` switches it by tunables and dims."""

    name: str
    value: Expression | str | None
    when: Expression | None
    where: str = field(compare=False, default="")


@dataclass(frozen=True)
class Header:
    """A parsed launch header: one field per key.

    Attributes:
        launches: in order; one for the short form (block, grid, shared_bytes, args at the top).
        tune: tunable -> its values.
        require: all must hold for a configuration to be tried.
        defaults: every tunable's value where no rule matches.
        choose: rules; the first match wins.
        workspace: buffer name -> bytes.
        zero: buffers to be zeroed before the first launch.
        cooperative: whether all launches are cooperative.
        cluster: thread-block cluster, or None.
        options: compiler options.
        specialize: dims that become macros, and are no arguments any more.
        lines: key -> line of the file, for messages.
    """

    launches: tuple[LaunchSpec, ...]
    tune: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    require: tuple[Expression, ...] = ()
    defaults: Config = field(default_factory=dict)
    choose: tuple[Choice, ...] = ()
    workspace: Mapping[str, Expression] = field(default_factory=dict)
    zero: tuple[str, ...] = ()
    cooperative: bool = False
    cluster: tuple[Expression, ...] | None = None
    options: tuple[Option, ...] = ()
    specialize: tuple[str, ...] = ()
    lines: Mapping[str, int] = field(default_factory=dict, compare=False)

    def canonical(self) -> str:
        """Return a text that is equal for headers that mean the same."""
        launches = [
            [
                spec.kernel,
                [e.canonical for e in _three(spec.block)],
                [e.canonical for e in _three(spec.grid)],
                spec.shared_bytes.canonical,
                None if spec.args is None else [e.canonical for e in spec.args],
            ]
            for spec in self.launches
        ]
        choose = [[c.when.canonical, {**self.defaults, **c.values}] for c in self.choose]
        options = sorted(
            [o.name, getattr(o.value, "canonical", o.value) or "", o.when.canonical if o.when else ""]
            for o in self.options
        )
        parts = {
            "launches": launches,
            "tune": {name: sorted(values) for name, values in self.tune.items()},
            "require": sorted({e.canonical for e in self.require}),
            "defaults": dict(self.defaults),
            "choose": choose,
            "workspace": {name: e.canonical for name, e in self.workspace.items()},
            "zero": sorted(self.zero),
            "cooperative": self.cooperative,
            "cluster": None if self.cluster is None else [e.canonical for e in _three(self.cluster)],
            "options": options,
            "specialize": sorted(self.specialize),
        }
        return json.dumps(parts, sort_keys=True)


_ONE = Expression.parse("1")


def _three(values: tuple[Expression, ...]) -> tuple[Expression, ...]:
    return (*values, _ONE, _ONE)[:3]


# --- reading ------------------------------------------------------------------------------------------------------


def read(located: Located, functions: Sequence[lexer.Function]) -> Header:
    """Read a header.

    Args:
        located: from `locate`.
        functions: the `__global__` functions of the source; a launch's kernel must be among them if there are any.

    Raises:
        HeaderError: line, key, what was expected, what was found, how to mend it.
    """
    root = marked.convert(located.tree(), located.origin)
    keys = root.mapping(ORDER)
    tune = _tune(keys.get("tune"))
    return Header(
        launches=_launches(root, keys, functions),
        tune=tune,
        require=_expressions(keys.get("require")),
        defaults=_defaults(keys.get("defaults"), tune),
        choose=_choose(keys.get("choose"), tune),
        workspace=_workspace(keys.get("workspace")),
        zero=_names(keys.get("zero"), "a buffer"),
        cooperative=keys["cooperative"].boolean() if "cooperative" in keys else False,
        cluster=_extent(keys["cluster"]) if "cluster" in keys else None,
        options=tuple(_option(node) for node in _items(keys.get("options"))),
        specialize=_specialised(keys.get("specialize")),
        lines={key: node.line for key, node in keys.items()},
    )


def _items(node: Node | None) -> tuple[Node, ...]:
    """A list, or one thing that stands for a list of one."""
    if node is None:
        return ()
    return node.sequence() if isinstance(node.value, tuple) else (node,)


def _expression(node: Node) -> Expression:
    if isinstance(node.value, bool) or not isinstance(node.value, int | str):
        raise node.fail('an integer expression, such as "ceildiv(N, 256)"')
    return Expression.parse(str(node.value), node.where)


def _expressions(node: Node | None) -> tuple[Expression, ...]:
    return tuple(_expression(item) for item in _items(node))


def _extent(node: Node) -> tuple[Expression, ...]:
    """One to three expressions: `256`, `"BX, BY"` or `[BX, BY, 1]`."""
    if isinstance(node.value, str):
        return Expression.parse_list(node.value, node.where, most=3)
    items = _items(node)
    if not 1 <= len(items) <= 3:
        raise node.fail("one to three expressions (x, y, z)", str(len(items)))
    return tuple(_expression(item) for item in items)


def _names(node: Node | None, what: str) -> tuple[str, ...]:
    return tuple(item.text(f"{what}'s name") for item in _items(node))


def _identifier(node: Node, name: str, what: str) -> str:
    if not _IDENTIFIER.fullmatch(name):
        raise node.fail(f"{what}'s name of letters, digits and _ that begins with a letter", name)
    if name in RESERVED | DEVICE_NAMES:
        raise node.fail(f"a name for {what} that is free", f"{name}, which means something else in expressions")
    return name


def _macro(node: Node, name: str, what: str, fix: str) -> str:
    """Return a name that becomes a macro of the compiler, if it can be one."""
    expected = f"a name for {what} that can be a macro"
    if name in _KEYWORDS:
        raise node.fail(expected, f"{name}, which is a keyword of C++", fix)
    if name in _CUDA_NAMES:
        raise node.fail(expected, f"{name}, which means something else in CUDA C++", fix)
    if _RESERVED_MACRO.match(name):
        raise node.fail(expected, f"{name}, which C++ reserves for its compilers", fix)
    return name


def _specialised(node: Node | None) -> tuple[str, ...]:
    names = _names(node, "a dim")
    fix = "leave it out of 'specialize' and pass it as an argument"
    return tuple(_macro(item, name, "a dim", fix) for item, name in zip(_items(node), names, strict=True))


def _tune(node: Node | None) -> dict[str, tuple[int, ...]]:
    if node is None:
        return {}
    entries = node.mapping()
    if len(entries) > MAX_TUNABLES:
        raise node.fail(f"at most {MAX_TUNABLES} tunables", str(len(entries)))
    tune = {}
    for name, values in entries.items():
        _macro(values, _identifier(values, name, "a tunable"), "a tunable", "rename it")
        numbers = tuple(item.integer() for item in values.sequence())
        if not 1 <= len(numbers) <= MAX_VALUES:
            raise values.fail(f"1 to {MAX_VALUES} values", str(len(numbers)))
        if len(set(numbers)) < len(numbers):
            raise values.fail("different values", str(list(numbers)), "delete the repeated ones")
        if max(map(abs, numbers)) >= _WIDEST_VALUE:
            raise values.fail("values that fit 32 bits", str(max(numbers, key=abs)))
        tune[name] = numbers
    return tune


def _values(node: Node, tune: Mapping[str, tuple[int, ...]]) -> dict[str, int]:
    """Tunable -> value, each out of the tunable's list."""
    values = {}
    for name, item in node.mapping(tune).items():
        values[name] = item.integer()
        if values[name] not in tune[name]:
            raise item.fail(
                f"one of {name}'s values {list(tune[name])}",
                str(values[name]),
                f"add it to 'tune.{name}' or choose another",
            )
    return values


def _defaults(node: Node | None, tune: Mapping[str, tuple[int, ...]]) -> dict[str, int]:
    first = {name: values[0] for name, values in tune.items()}
    return first if node is None else {**first, **_values(node, tune)}


def _choose(node: Node | None, tune: Mapping[str, tuple[int, ...]]) -> tuple[Choice, ...]:
    rules = []
    for item in node.sequence() if node is not None else ():
        keys = item.mapping(("when", "set"), required=("when", "set"))
        when = _expression(keys["when"])
        foreign = sorted(when.names & (tune.keys() | DEVICE_NAMES))
        if foreign:
            raise keys["when"].fail(
                "dims of the case only", foreign[0], "a rule chooses tunables, so it cannot read them"
            )
        rules.append(Choice(when, _values(keys["set"], tune)))
    return tuple(rules)


def _launches(root: Node, keys: Mapping[str, Node], functions: Sequence[lexer.Function]) -> tuple[LaunchSpec, ...]:
    if "launches" not in keys:
        root.mapping(required=("block", "grid"))
        return (_launch(root, {key: keys[key] for key in LAUNCH_KEYS if key in keys}, functions),)
    for key in ("block", "grid", "shared_bytes", "args"):
        if key in keys:
            raise keys[key].fail("either 'launches' or this key", "both", "move it into the items of 'launches'")
    items = keys["launches"].sequence()
    if not 1 <= len(items) <= MAX_LAUNCHES:
        raise keys["launches"].fail(f"1 to {MAX_LAUNCHES} launches", str(len(items)))
    needed = ("kernel", "block", "grid")
    return tuple(_launch(item, item.mapping(LAUNCH_KEYS, needed), functions) for item in items)


def _launch(node: Node, keys: Mapping[str, Node], functions: Sequence[lexer.Function]) -> LaunchSpec:
    return LaunchSpec(
        kernel=_named_kernel(keys["kernel"], functions) if "kernel" in keys else _only_kernel(node, functions),
        block=_extent(keys["block"]),
        grid=_extent(keys["grid"]),
        shared_bytes=_expression(keys["shared_bytes"]) if "shared_bytes" in keys else Expression.parse("0"),
        args=_args(keys["args"]) if "args" in keys else None,
        where=node.where,
    )


def _args(node: Node) -> tuple[Expression, ...]:
    if isinstance(node.value, str):
        return Expression.parse_list(node.value, node.where)
    return tuple(_expression(item) for item in node.sequence())


def _only_kernel(node: Node, functions: Sequence[lexer.Function]) -> str:
    plain = [f.name for f in functions if not f.template]
    if len(plain) == 1:
        return plain[0]
    fix = "say which to launch with 'launches'" if plain else 'write extern "C" __global__ void …'
    raise node.fail("one __global__ function in the source", ", ".join(plain) or "none", fix)


def _named_kernel(node: Node, functions: Sequence[lexer.Function]) -> str:
    name = node.text("a kernel's name")
    plain = [f.name for f in functions if not f.template]
    if not _IDENTIFIER.fullmatch(name) or any(f.template and f.name == name for f in functions):
        fix = 'wrap a template in an extern "C" __global__ function'
        raise node.fail("a __global__ function that is no template", name, fix)
    if plain and name not in plain:
        raise node.fail("a __global__ function of the source", name, did_you_mean(name, plain))
    return name


def _workspace(node: Node | None) -> dict[str, Expression]:
    """`{name: bytes}` or `[{name: …, bytes: …}]`."""
    if node is None:
        return {}
    if isinstance(node.value, dict):
        pairs = [(name, item, item) for name, item in node.mapping().items()]
    else:
        both = ("name", "bytes")
        entries = [item.mapping(both, both) for item in _items(node)]
        pairs = [(entry["name"].text(), entry["name"], entry["bytes"]) for entry in entries]
    if len({name for name, _, _ in pairs}) < len(pairs):
        raise node.fail("each workspace once", "a name twice")
    return {_identifier(at, name, "a workspace"): _expression(size) for name, at, size in pairs}


def _option(node: Node) -> Option:
    when = None
    if isinstance(node.value, dict):
        keys = node.mapping(("option", "when"), required=("option", "when"))
        node, when = keys["option"], _expression(keys["when"])
    name, equals, value = node.text("a compiler option").partition("=")
    if name not in OPTIONS:
        raise node.fail("a compiler option of the allow-list", name, did_you_mean(name, OPTIONS))
    allowed = OPTIONS[name]
    if isinstance(allowed, range):
        if not equals:
            raise node.fail(f"{name}=N", name)
        return Option(name, Expression.parse(value, node.where), when, node.where)
    if allowed and value not in allowed:
        raise node.fail(f"{name}= one of {', '.join(allowed)}", value or "nothing")
    if not allowed and equals:
        raise node.fail(f"{name} without a value", node.text())
    return Option(name, value or None, when, node.where)
