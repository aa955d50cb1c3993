"""What the Python packages of `--as cupy` and `--as torch` share: the launch header as Python, and the code to launch.

`templates/python` is copied as it is. Three files of the house come along: they find NVRTC and read machine code, and
need nothing else of it.
"""

from __future__ import annotations

import json
import keyword
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from evaluators.inspection import cubin, elf
from evaluators.nvrtc import installation
from evo.errors import ConfigError
from evo.export import code, includes
from evo.export.folder import File, template
from evo.export.subject import Subject
from evo.kernel import OPTIONS, Expression
from evo.kernel.header import LaunchSpec, Option
from evo.records import Direction, Parameter, Workload

MOST_ALIGNED = 256
"""Bytes: what CuPy and PyTorch align new arrays to at least."""
_HEAD = "# Written by `evo export` from the launch header of best.cu: rather than edit it, export again."


def files(subject: Subject, adapter: str, readme: str) -> Iterator[File]:
    """Return a package's files.

    Args:
        subject: what is exported.
        adapter: the package's `__init__.py`.
        readme: its README.
    """
    yield from template("python")
    yield from _companions()
    yield from includes.files()
    yield "best.cu", subject.kernel.source.encode()
    yield "_kernel.py", kernel_module(subject).encode()
    yield "__init__.py", adapter.encode()
    yield "README.md", readme.encode()


def inputs(workload: Workload) -> tuple[Parameter, ...]:
    """Return the arrays that a caller passes.

    Raises:
        ConfigError: there is none, or an array that the package makes needs more alignment than it would get.
    """
    passed = tuple(p for p in workload.parameters if p.direction in (Direction.IN, Direction.INOUT))
    if not passed:
        raise ConfigError(f"workload {workload.name}: expected an input array, by whose GPU a call goes, found none")
    for parameter in outputs(workload):
        if parameter.align > MOST_ALIGNED:
            raise ConfigError(
                f"workload {workload.name}: expected outputs that are aligned to at most {MOST_ALIGNED} bytes, found "
                f"{parameter.name} of {parameter.align}; export it --as cpp"
            )
    return passed


def outputs(workload: Workload) -> tuple[Parameter, ...]:
    """Return the arrays that a call makes."""
    return tuple(p for p in workload.parameters if p.direction is Direction.OUT)


def axes(workload: Workload) -> dict[str, tuple[str, int]]:
    """Return those dims that are the extent of an input's axis, with the first such."""
    found: dict[str, tuple[str, int]] = {}
    for parameter in inputs(workload):
        for axis, text in enumerate(parameter.shape):
            if text.strip() in workload.dims:
                found.setdefault(text.strip(), (parameter.name, axis))
    return found


def asked_dims(workload: Workload) -> tuple[str, ...]:
    """Return the dims that no input's shape tells, so that a caller has to."""
    return tuple(dim for dim in workload.dims if dim not in axes(workload))


@dataclass(frozen=True)
class Signature:
    """The function of a package, as pieces of Python.

    Attributes:
        function: its name.
        arrays: parameter -> argument, in order.
        dims: dim that no array's shape tells -> keyword argument.
        arguments: what each must be, a line for each.
        returns: what comes back, in words.
    """

    function: str
    arrays: Mapping[str, str]
    dims: Mapping[str, str]
    arguments: tuple[str, ...]
    returns: str

    @classmethod
    def of(cls, workload: Workload) -> Signature:
        """Return the signature for a workload; raises `ConfigError`, see `inputs`."""
        passed, asked, names = inputs(workload), asked_dims(workload), dict[str, str]()
        for name in (*(p.name for p in passed), *asked):
            names.setdefault(name, identifier(name, names.values()))
        arguments = (
            *(f"{names[p.name]}: {_described(p)}{_promised(p)}" for p in passed),
            *(f"{names[dim]}: a size that no array's shape tells." for dim in asked),
        )
        return cls(
            identifier(workload.name),
            {p.name: names[p.name] for p in passed},
            {dim: names[dim] for dim in asked},
            arguments,
            ", ".join(f"{p.name}: {_described(p)}" for p in outputs(workload)) or "None",
        )

    def text(self, array: str = "", dim: str = "") -> str:
        """Return the arguments as a function declares them, with these annotations."""
        arrays = [name + array for name in self.arrays.values()]
        return ", ".join((*arrays, *(("*",) if self.dims else ()), *(name + dim for name in self.dims.values())))

    @property
    def passed(self) -> str:
        """What the function hands on: two dicts."""
        return f"{_dict(self.arrays)}, {_dict(self.dims)}"


def identifier(name: str, taken: Iterable[str] = ()) -> str:
    """Return a name as Python can have it."""
    made = re.sub(r"\W", "_", name)
    made = f"_{made}" if made[:1].isdigit() else made
    while keyword.iskeyword(made) or made in taken:
        made += "_"
    return made


def _described(parameter: Parameter) -> str:
    return f"{parameter.dtype}[{', '.join(parameter.shape)}]"


def _promised(parameter: Parameter) -> str:
    changed = ", changed in place" if parameter.direction is Direction.INOUT else ""
    return f", C-contiguous, at a multiple of {parameter.align} bytes{changed}."


def _companions() -> Iterator[File]:
    """Files of the house that stand alone but for an import and a message."""
    text = Path(installation.__file__).read_text(encoding="utf-8")
    own_error = 'class DeviceError(RuntimeError):\n    """NVRTC is not where it was said to be."""\n'
    text = text.replace("from evo.errors import DeviceError\n", own_error)
    yield "_installation.py", text.replace("kernel-evo[nvrtc]", "nvidia-cuda-nvrtc").encode()
    yield "_elf.py", Path(elf.__file__).read_bytes()
    text = Path(cubin.__file__).read_text(encoding="utf-8")
    text = text.replace("from evaluators.inspection import elf\n", "from . import _elf as elf\n")
    yield "_cubin.py", text.replace("from evaluators.inspection.elf", "from ._elf").encode()


# --- the launch header as Python ----------------------------------------------------------------------------------


def kernel_module(subject: Subject) -> str:
    """Return the text of `_kernel.py`: shapes, scalars and launch plans of every size."""
    workload = subject.workload
    buffers = [p for p in workload.parameters if p.direction is not Direction.SCALAR]
    parts = [
        f'{_HEAD}\n"""The kernel\'s arrays, scalars and launches for any size; integers only."""\n',
        "from __future__ import annotations\n",
        "from ._check import Parameter",
        "from ._plan import Plan, ceildiv, cluster, launch, required, within, workspace\n",
        f"NAME = {_text(workload.name)}",
        f"ORIGIN = {_text(subject.origin)}",
        f"KERNELS = {_tuple(map(_text, subject.kernel.kernels))}",
        f"ARCH = {subject.arch!r}",
        f"AXES = {axes(workload)!r}",
        f"ASKED = {asked_dims(workload)!r}",
        _lines("PARAMETERS = (", (f"    {_parameter(p)}," for p in buffers), ")"),
        _function("shapes(n)", "Return the shape of every array.", _shapes(buffers)),
        _function("scalars(n)", "Return the type and the value of every scalar argument.", _scalars(workload)),
        _function("config(n)", "Return the launch configuration for these dims.", _config(subject)),
        _function("plan(dims, device)", "Return what is launched for these dims.", _plan(subject)),
    ]
    return "\n".join(parts) + "\n"


def _function(signature: str, words: str, body: Iterable[str]) -> str:
    return _lines(f'\n\ndef {signature}:\n    """{words}"""', (f"    {line}" for line in body))


def _lines(first: str, middle: Iterable[str], last: str = "") -> str:
    return "\n".join((first, *middle, *((last,) if last else ())))


def _parameter(parameter: Parameter) -> str:
    fields = (_text(parameter.name), _text(parameter.dtype), _text(parameter.direction.value), str(parameter.align))
    return f"Parameter({', '.join(fields)}, {_text(', '.join(parameter.shape))})"


def _shapes(buffers: Sequence[Parameter]) -> Iterator[str]:
    yield "return {"
    for parameter in buffers:
        yield f"    {_text(parameter.name)}: {_tuple(map(_integer, parameter.shape))},"
    yield "}"


def _scalars(workload: Workload) -> Iterator[str]:
    yield "return {"
    for parameter in workload.parameters:
        if parameter.direction is Direction.SCALAR:
            yield f"    {_text(parameter.name)}: ({_text(parameter.dtype)}, {_scalar(parameter)}),"
    yield "}"


def _scalar(parameter: Parameter) -> str:
    text = parameter.name if parameter.value is None else parameter.value
    if np.dtype(parameter.dtype).kind == "f":
        try:
            return repr(float(np.dtype(parameter.dtype).type(float(text))))
        except ValueError:
            return f"float({_integer(text)})"
    return _integer(text)


def _config(subject: Subject) -> Iterator[str]:
    header = subject.kernel.header
    for rule in header.choose:
        yield f"if {code.condition(rule.when)}:"
        yield f"    return {dict(header.defaults) | dict(rule.values)!r}"
    yield f"return {dict(header.defaults)!r}"


def _plan(subject: Subject) -> Iterator[str]:
    header = subject.kernel.header
    yield 'n = {**dims, **config(dims), "num_sms": device.num_sms, "l2_bytes": device.l2_bytes}'
    for expression in header.require:
        yield f"required({code.condition(expression)}, {_text(expression.text)}, n)"
    yield "launches = ("
    for spec in header.launches:
        yield from (f"    {line}" for line in _launch(subject, spec))
    yield ")"
    yield "return Plan("
    yield "    launches=launches,"
    sizes = {name: f"workspace({_text(name)}, {code.integer(size)})" for name, size in header.workspace.items()}
    yield f"    workspaces={_dict(sizes)},"
    yield f"    zero={_tuple(map(_text, header.zero))},"
    yield f"    defines={_dict({name: f'n[{_text(name)}]' for name in (*header.defaults, *header.specialize)})},"
    yield f"    options={_tuple(map(_option, header.options))},"
    yield f"    cooperative={header.cooperative},"
    if header.cluster is not None:
        yield f"    cluster=cluster({_tuple(map(code.integer, header.cluster))}, launches),"
    yield ")"


def _launch(subject: Subject, spec: LaunchSpec) -> Iterator[str]:
    yield "launch("
    yield f"    {_text(spec.kernel)},"
    yield "    n,"
    yield "    device,"
    yield f"    block={_tuple(map(code.integer, spec.block))},"
    yield f"    shared_bytes={code.integer(spec.shared_bytes)},"
    yield f"    grid=lambda n: {_tuple(map(code.integer, spec.grid))},"
    yield f"    args={_tuple(_arguments(subject, spec))},"
    yield "),"


def _arguments(subject: Subject, spec: LaunchSpec) -> Iterator[str]:
    """Names of arrays, scalars and workspaces; every other expression is an int."""
    header = subject.kernel.header
    passed = [p.name for p in subject.workload.parameters if p.name not in header.specialize]
    if spec.args is None:
        yield from map(_text, passed)
        return
    for expression in spec.args:
        is_name = expression.text in (*passed, *header.workspace)
        yield _text(expression.text) if is_name else code.integer(expression)


def _option(option: Option) -> str:
    if not isinstance(option.value, Expression):
        text = _text(option.name if option.value is None else f"{option.name}={option.value}")
    else:
        allowed = OPTIONS[option.name]
        value = f"within({_text(option.name)}, {code.integer(option.value)}, {min(allowed)}, {max(allowed)})"
        text = f"{_text(option.name + '=')} + str({value})"
    return text if option.when is None else f"*(({text},) if {code.condition(option.when)} else ())"


def _integer(text: str) -> str:
    return code.integer(Expression.parse(text))


def _text(text: str) -> str:
    return json.dumps(text)


def _dict(parts: Mapping[str, str]) -> str:
    return "{" + ", ".join(f"{_text(key)}: {value}" for key, value in parts.items()) + "}"


def _tuple(parts: Iterable[str]) -> str:
    made = tuple(parts)
    return f"({', '.join(made)}{',' if len(made) == 1 else ''})"
