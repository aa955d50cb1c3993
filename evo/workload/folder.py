"""Reads a workload folder strictly: every key known, every case whole, its kernels launchable on each.

A wrong folder is refused here, with file, line and key, so that no later room needs to ask again. Nothing runs.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from evo import marked
from evo.errors import ExpressionError, WorkloadError, did_you_mean
from evo.kernel.expression import RESERVED, Expression
from evo.kernel.header import DEVICE_NAMES
from evo.marked import Node
from evo.records import PARTS, Case, Direction, Draw, Parameter, Role, Tolerance, Workload
from evo.workload import draws, inputs, kernels
from evo.workload import sizes as quantities

NAME = "workload.yaml"

_KEYS = (
    "description",
    "entry",
    "parameters",
    "cases",
    "tolerance",
    "deterministic",
    "fast_math",
    "flops",
    "bytes_moved",
    "certified_floor",
    "generated",
    "trust",
)
_DTYPES = (
    *("float16", "float32", "float64", "int8", "int16", "int32", "int64"),
    *("uint8", "uint16", "uint32", "uint64"),
)
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_MAX_CASE_BYTES = 1 << 36
"""64 GiB: buffers of one case beyond that fit no device that this is for; a typing error is likelier."""

_MAX_FILES_BYTES = 1 << 28
"""256 MiB: files travel inside the workload record to every worker."""


def read(folder: Path) -> Workload:
    """Read and check a workload folder.

    Raises:
        WorkloadError: file, line, key path, expected, found, nearest name.
    """
    origin = marked.Origin(str(folder / NAME), WorkloadError)
    declared = _declared(marked.load(_text(folder, NAME), origin), folder)
    whole = replace(
        declared,
        reference=_text(folder, "reference.py"),
        initial=_text(folder, kernels.INITIAL),
        baseline=_optional(folder, "baseline.py"),
        reference_kernel=_optional(folder, kernels.REFERENCE),
    )
    kernels.check(folder, marked.load(_text(folder, NAME), origin).mapping()["entry"], whole)
    return whole


def declared(text: str, folder: Path) -> Workload:
    """Read and check the text of a workload.yaml alone: a workload without its reference and kernels.

    Args:
        text: of the file.
        folder: where its `.npy` files lie; its name is the workload's.

    Raises:
        WorkloadError: see `read`.
    """
    return _declared(marked.load(text, marked.Origin(NAME, WorkloadError)), folder)


def _declared(root: Node, folder: Path) -> Workload:
    keys = root.mapping(_KEYS, required=("description", "entry", "parameters", "cases", "flops", "bytes_moved"))
    parameters = tuple(_parameter(node) for node in keys["parameters"].sequence())
    _unique(keys["parameters"], [p.name for p in parameters], "parameter")
    cases = tuple(_case(node, parameters) for node in keys["cases"].sequence())
    _check_cases(keys["cases"], cases)
    dims = frozenset(cases[0].dims)
    _check_parameters(keys["parameters"], parameters, dims)
    workload = Workload(
        name=folder.resolve().name,
        description=keys["description"].text(),
        entry=keys["entry"].text("the name of the kernel function"),
        parameters=parameters,
        cases=cases,
        tolerance=_tolerances(keys.get("tolerance"), parameters, dims),
        deterministic=keys["deterministic"].boolean() if "deterministic" in keys else False,
        fast_math=keys["fast_math"].boolean() if "fast_math" in keys else False,
        flops=_formula(keys["flops"], dims),
        bytes_moved=_formula(keys["bytes_moved"], dims),
        reference="",
        initial="",
        files=_files(folder, parameters, cases),
        certified_floor=keys["certified_floor"].boolean() if "certified_floor" in keys else False,
        generated=tuple(item.word(PARTS) for item in keys["generated"].sequence()) if "generated" in keys else (),
        trust=keys["trust"].text("a sentence") if "trust" in keys else "",
    )
    _check_sizes(keys, workload)
    return workload


def _text(folder: Path, name: str) -> str:
    try:
        return (folder / name).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise WorkloadError(f"{folder / name}: expected a file, found none; a workload needs it") from None
    except (OSError, UnicodeDecodeError) as error:
        raise WorkloadError(f"{folder / name}: expected a readable UTF-8 text, found {error}") from None


def _optional(folder: Path, name: str) -> str | None:
    return _text(folder, name) if (folder / name).is_file() else None


def _unique(node: Node, names: list[str], what: str) -> None:
    if not names:
        raise node.fail(f"at least one {what}")
    for name in names:
        if names.count(name) > 1:
            raise node.fail(f"each {what} name once", f"{name!r} {names.count(name)} times", "rename one")


# --- parameters ---------------------------------------------------------------------------------------------------


def _parameter(node: Node) -> Parameter:
    known = ("name", "dtype", "direction", "shape", "align", "value", "draw")
    keys = node.mapping(known, required=("name", "dtype", "direction"))
    name = keys["name"].text("a parameter's name")
    if not _IDENTIFIER.fullmatch(name):
        raise keys["name"].fail("a C identifier")
    dtype = keys["dtype"].word(_DTYPES, "a dtype out of")
    direction = Direction(keys["direction"].word(tuple(Direction)))
    if direction is Direction.SCALAR:
        return _scalar_parameter(name, dtype, keys)
    if "value" in keys:
        raise keys["value"].fail("no value for a buffer", "one", "use 'draw' to fill it")
    if "shape" not in keys:
        raise node.fail("a key 'shape'", "none", "add 'shape: [M, N]'")
    shape = tuple(_expression(item).text for item in _list(keys["shape"]))
    if not 1 <= len(shape) <= 8:
        raise keys["shape"].fail("1 to 8 extents", str(len(shape)))
    return Parameter(name, dtype, direction, shape, align=_align(keys.get("align")), draw=_drawn(node, keys, direction))


def _list(node: Node) -> tuple[Node, ...]:
    return node.sequence() if isinstance(node.value, tuple) else (node,)


def _drawn(node: Node, keys: Mapping[str, Node], direction: Direction) -> Draw:
    dtype = str(keys["dtype"].value)
    if direction is Direction.OUT:
        if "draw" in keys:
            raise keys["draw"].fail("no draw for an output", "one", "outputs arrive poisoned")
        return Draw()
    if "draw" in keys:
        return draws.read(keys["draw"], dtype)
    if np.dtype(dtype).kind != "f":
        raise node.fail("a key 'draw' for integers", "none", "add 'draw: {kind: integers, low: 0, high: 256}'")
    return Draw()


def _scalar_parameter(name: str, dtype: str, keys: Mapping[str, Node]) -> Parameter:
    for key in ("shape", "align", "draw"):
        if key in keys:
            raise keys[key].fail(f"no {key} for a scalar", "one", "a scalar has 'value'")
    value = None
    if "value" in keys:
        if not isinstance(keys["value"].value, int | float | str):
            raise keys["value"].fail("a number or an expression over dims")
        value = str(keys["value"].value)
    return Parameter(name, dtype, Direction.SCALAR, value=value)


def _align(node: Node | None) -> int:
    if node is None:
        return Parameter.align
    align = node.integer()
    if not 1 <= align <= 4096 or align & (align - 1):
        raise node.fail("a power of two from 1 to 4096 bytes")
    return align


# --- cases --------------------------------------------------------------------------------------------------------


def _case(node: Node, parameters: tuple[Parameter, ...]) -> Case:
    keys = node.mapping(("name", "role", "dims", "draws"), required=("name", "role", "dims"))
    name = keys["name"].text("a case's name")
    if not draws.LABEL.fullmatch(name):
        raise keys["name"].fail("a name of letters, digits, '_', '-' and '.'")
    role = Role(keys["role"].word(tuple(Role)))
    dims = {}
    for dim, value in keys["dims"].mapping().items():
        if not _IDENTIFIER.fullmatch(dim) or dim in RESERVED | DEVICE_NAMES:
            raise value.fail("a dim's name that is a C identifier without another meaning", dim)
        dims[dim] = value.integer("a whole number")
        if not 0 < dims[dim] < 2**31:
            raise value.fail("a size from 1 to 2147483647")
    own = keys["draws"].mapping() if "draws" in keys else {}
    readable = {p.name: p for p in parameters if p.direction in (Direction.IN, Direction.INOUT)}
    for parameter, draw in own.items():
        if parameter not in readable:
            raise draw.fail("an input's name", parameter, did_you_mean(parameter, readable))
    return Case(name, role, dims, {p: draws.read(draw, readable[p].dtype) for p, draw in own.items()})


def _check_cases(node: Node, cases: tuple[Case, ...]) -> None:
    _unique(node, [case.name for case in cases], "case")
    for role in Role:
        if not any(case.role is role for case in cases):
            raise node.fail(f"at least one case of role {role.value}", "none", "add one")
    dims = {dim for case in cases for dim in case.dims}
    if not dims:
        raise node.fail("at least one dim", "none")
    for item, case in zip(node.sequence(), cases, strict=True):
        missing = sorted(dims - case.dims.keys())
        if missing:
            dims_node = item.mapping()["dims"]
            raise dims_node.fail(
                f"every dim ({', '.join(sorted(dims))}) in every case", f"no {missing[0]!r} in case {case.name!r}"
            )


def _expression(node: Node) -> Expression:
    if isinstance(node.value, bool) or not isinstance(node.value, int | str):
        raise node.fail("an integer expression over the dims")
    try:
        return Expression.parse(str(node.value), node.where)
    except ExpressionError as error:
        raise WorkloadError(str(error)) from None


def _formula(node: Node, dims: frozenset[str]) -> str:
    """An expression whose names are all dims."""
    expression = _expression(node)
    for name in sorted(expression.names - dims):
        raise node.fail("an expression over the dims", repr(name), did_you_mean(name, dims))
    return expression.text


def _check_parameters(node: Node, parameters: tuple[Parameter, ...], dims: frozenset[str]) -> None:
    for item, parameter in zip(node.sequence(), parameters, strict=True):
        keys = item.mapping()
        for extent in _list(keys["shape"]) if "shape" in keys else ():
            _formula(extent, dims)
        if parameter.direction is Direction.SCALAR:
            _check_value(item, parameter, dims)
    if not any(p.direction in (Direction.OUT, Direction.INOUT) for p in parameters):
        raise node.fail("at least one output (direction out or inout)", "none")


def _check_value(item: Node, parameter: Parameter, dims: frozenset[str]) -> None:
    if parameter.value is None:
        if parameter.name not in dims:
            fix = f"add 'value: …'{did_you_mean(parameter.name, dims)}"
            raise item.fail("a value, or a dim of the scalar's name", f"{parameter.name!r}", fix)
        return
    if np.dtype(parameter.dtype).kind == "f":
        try:
            float(parameter.value)
        except ValueError:
            pass
        else:
            return
    _formula(item.mapping()["value"], dims)


def _tolerances(node: Node | None, parameters: tuple[Parameter, ...], dims: frozenset[str]) -> dict[str, Tolerance]:
    """The default under "", and what outputs have of their own."""
    integers = [p.name for p in parameters if p.dtype[0] in "iu"]
    outputs = [p.name for p in parameters if p.direction in (Direction.OUT, Direction.INOUT)]
    fields = ("exact", "budget", "terms", "atol")
    keys = node.mapping((*fields, "outputs")) if node is not None else {}
    found = {"": _tolerance(keys, dims)}
    if "outputs" in keys:
        for name, item in keys["outputs"].mapping(outputs).items():
            found[name] = _tolerance(item.mapping(fields), dims)
    for name in outputs:
        if name in integers:
            found[name] = Tolerance(exact=True)
    return found


def _tolerance(keys: Mapping[str, Node], dims: frozenset[str]) -> Tolerance:
    budget = keys["budget"].number() if "budget" in keys else Tolerance.budget
    if not 0 < budget <= 1000:
        raise keys["budget"].fail("a budget above 0 and up to 1000")
    atol = keys["atol"].number() if "atol" in keys else Tolerance.atol
    if not 0 <= atol < math.inf:
        raise keys["atol"].fail("a slack of 0 or more")
    return Tolerance(
        exact=keys["exact"].boolean() if "exact" in keys else False,
        budget=budget,
        terms=_formula(keys["terms"], dims) if "terms" in keys else Tolerance.terms,
        atol=atol,
    )


# --- the folder as a whole ----------------------------------------------------------------------------------------


def _files(folder: Path, parameters: tuple[Parameter, ...], cases: tuple[Case, ...]) -> dict[str, bytes]:
    every = [p.draw for p in parameters] + [draw for case in cases for draw in case.draws.values()]
    files = {}
    for name in sorted({draw.file for draw in every if draw.file}):
        if not (folder / name).is_file():
            near = did_you_mean(name, [path.name for path in folder.glob("*.npy")])
            raise WorkloadError(f"{folder / name}: expected a file that a draw names, found none{near}")
        files[name] = (folder / name).read_bytes()
    total = sum(map(len, files.values()))
    if total > _MAX_FILES_BYTES:
        raise WorkloadError(f"{folder}: expected at most {_MAX_FILES_BYTES} bytes of .npy files, found {total}")
    return files


def _check_sizes(keys: Mapping[str, Node], workload: Workload) -> None:
    """Every shape positive, memory sane, formulas positive, files fitting, on every case."""
    nodes = dict(zip([p.name for p in workload.parameters], keys["parameters"].sequence(), strict=True))
    for case, node in zip(workload.cases, keys["cases"].sequence(), strict=True):
        total = 0
        try:
            for parameter in workload.parameters:
                shape = quantities.shape(parameter, case)
                if any(extent < 1 for extent in shape):
                    raise nodes[parameter.name].fail("extents of 1 or more", f"{shape} in case {case.name!r}")
                total += quantities.nbytes(parameter, case)
                if parameter.direction in (Direction.IN, Direction.INOUT):
                    draws.check(nodes[parameter.name], parameter, case)
            quantities.scalars(workload, case)
            for key in ("flops", "bytes_moved"):
                value = quantities.evaluate(getattr(workload, key), case)
                if value < 0 or (key == "bytes_moved" and value == 0):
                    raise keys[key].fail("a count of 1 or more (flops: 0 or more)", f"{value} in case {case.name!r}")
        except ExpressionError as error:
            raise WorkloadError(f"{node.where}: {error}") from None
        if total > _MAX_CASE_BYTES:
            raise node.fail(f"buffers of at most {_MAX_CASE_BYTES >> 30} GiB", f"{total / 2**30:.1f} GiB")
        if workload.files:
            _check_files(workload, case)


def _check_files(workload: Workload, case: Case) -> None:
    for parameter in workload.parameters:
        draw = case.draws.get(parameter.name, parameter.draw)
        if draw.kind == "file":
            inputs.from_file(workload, case, parameter)
