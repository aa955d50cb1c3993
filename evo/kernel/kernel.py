"""A kernel's text: its launch header resolved to numbers for one case and one device, and its normalised hash.

Everything here is a pure function of texts and records: nothing compiles, nothing runs, nothing is read from disk.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evo.errors import ExpressionError, HeaderError, did_you_mean
from evo.kernel import header as headers
from evo.kernel import header_text, lexer
from evo.kernel.expression import Expression
from evo.kernel.header import FAST_MATH, OPTIONS, Header, LaunchSpec
from evo.kernel.header_text import replace as replace_header
from evo.records import Case, Config, Device, Dim3, Direction, Launch, LaunchPlan, Workload

MAX_SOURCE_BYTES = 1 << 18
"""A kernel is a page or ten of text; a quarter of a megabyte is something else."""

# CUDA C++ Programming Guide, "Technical Specifications per Compute Capability": the same from 5.0 to 12.x.
_MAX_BLOCK: Dim3 = (1024, 1024, 64)
_MAX_GRID: Dim3 = (2**31 - 1, 65535, 65535)
_MAX_CLUSTER = 16
_MAX_WORKSPACE_BYTES = 1 << 34
"""16 GiB: what a 24 GB card can still give beside the buffers."""


@dataclass(frozen=True)
class Kernel:
    """A kernel file that has a readable launch header.

    Attributes:
        source: the whole file.
        header: what its launch comment declares.
        code: the source with the header blanked; line numbers are those of `source`.
        hash: equal for two sources with the same code (comments and spacing aside) and the same meaning of header.
        kernels: names of the launched functions, each once, in order.
        functions: every `__global__` function that the text spells out.
    """

    source: str
    header: Header
    code: str = field(repr=False)
    hash: str
    kernels: tuple[str, ...]
    functions: tuple[lexer.Function, ...] = field(repr=False, default=())

    def config_for(self, dims: Mapping[str, int]) -> dict[str, int]:
        """Return the launch configuration for these dims: the first `choose` rule that holds, else the defaults."""
        for rule in self.header.choose:
            if rule.when.evaluate(dims):
                return {**self.header.defaults, **rule.values}
        return dict(self.header.defaults)

    def satisfies(self, config: Config, dims: Mapping[str, int], device: Device) -> bool:
        """Tell whether a configuration may be launched: requirements hold, block, grid and shared memory fit."""
        try:
            self._required(config, dims, device)
            for spec in self.header.launches:
                self._geometry(spec, _environment(config, dims, device), device)
        except HeaderError:
            return False
        return True

    def plan(self, workload: Workload, case: Case, device: Device, config: Config | None = None) -> LaunchPlan:
        """Resolve everything that runs inside the timed window of one case to numbers.

        Args:
            workload: gives parameters, and whether fast math is permitted.
            case: gives dims.
            device: gives limits and the names `num_sms`, `blocks_per_sm`, `l2_bytes`.
            config: tunable -> value; missing ones come from `config_for`.

        Raises:
            HeaderError: a limit, a requirement or a name is wrong; the message says limit and found value.
        """
        self._check_names(workload, case)
        config = {**self.config_for(case.dims), **self._checked(config or {})}
        self._required(config, case.dims, device)
        env = _environment(config, case.dims, device)
        workspaces = self._workspaces(env)
        launches = tuple(
            Launch(*self._geometry(spec, env, device), self._arguments(spec, workload, env))
            for spec in self.header.launches
        )
        self._check_arity(launches)
        return LaunchPlan(
            launches=launches,
            workspaces=workspaces,
            zero=self._zero(workload),
            defines={**config, **{dim: case.dims[dim] for dim in self.header.specialize}},
            options=self._options(workload, env),
            cooperative=self.header.cooperative,
            cluster=self._cluster(launches, env),
        )

    def with_choose(self, rules: Sequence[tuple[Mapping[str, int], Config]]) -> Kernel:
        """Return this kernel with `choose` rules (dims -> configuration) instead of the old; the rest is kept."""
        located = header_text.locate(self.source)
        if located is None:
            raise HeaderError("launch header: expected one to write rules into, found none")
        return parse(header_text.write_choose(located, rules))

    def with_header(self, **changes: Any) -> Kernel:
        """Return this kernel with header keys set to plain values (None deletes a key); the code is kept as is."""
        mapping = {**header_text.raw(self.source), **changes}
        return parse(replace_header(self.source, {key: v for key, v in mapping.items() if v is not None}))

    # --- one concern each ---------------------------------------------------------------------------------------

    def _where(self, key: str) -> str:
        return f"launch header, line {self.header.lines.get(key, 1)}, key {key!r}"

    def _check_names(self, workload: Workload, case: Case) -> None:
        taken = {**dict.fromkeys(case.dims, "a dim"), **{p.name: "a parameter" for p in workload.parameters}}
        for key, names in (("tune", self.header.tune), ("workspace", self.header.workspace)):
            for name in names:
                if name in taken:
                    raise HeaderError(
                        f"{self._where(key)}: expected a free name, found {name!r}, which is {taken[name]} of the "
                        "workload; rename it"
                    )
        for name in self.header.specialize:
            if name not in case.dims:
                raise HeaderError(
                    f"{self._where('specialize')}: expected a dim of the workload, found {name!r}"
                    + did_you_mean(name, case.dims)
                )

    def _checked(self, config: Config) -> Config:
        for name, value in config.items():
            if name not in self.header.tune:
                raise HeaderError(
                    f"launch configuration: expected a tunable, found {name!r}{did_you_mean(name, self.header.tune)}"
                )
            if value not in self.header.tune[name]:
                raise HeaderError(
                    f"launch configuration: expected {name} out of {list(self.header.tune[name])}, found {value}"
                )
        return config

    def _required(self, config: Config, dims: Mapping[str, int], device: Device) -> None:
        env = {**dims, **config, "num_sms": device.num_sms, "l2_bytes": device.l2_bytes}
        for expression in self.header.require:
            if not expression.evaluate(env):
                used = ", ".join(f"{name}={env[name]}" for name in sorted(expression.names))
                raise HeaderError(
                    f"{expression.where}: expected {expression.text!r} to hold, found {used or 'it false'}"
                )

    def _geometry(self, spec: LaunchSpec, env: Mapping[str, int], device: Device) -> tuple[str, Dim3, Dim3, int]:
        """Kernel, grid, block and dynamic shared bytes, inside the device's limits."""
        block = _extent(spec.block, env, "block", _MAX_BLOCK)
        threads = block[0] * block[1] * block[2]
        where = spec.block[0].where
        if threads > device.max_threads_per_block:
            limit = device.max_threads_per_block
            raise HeaderError(f"{where}: expected at most {limit} threads per block, found {threads} {block}")
        shared = spec.shared_bytes.evaluate(env)
        if not 0 <= shared <= device.max_shared_bytes:
            raise HeaderError(
                f"{spec.shared_bytes.where}: expected 0 to {device.max_shared_bytes} bytes of dynamic shared memory "
                f"on this device, found {shared}"
            )
        grid = _extent(spec.grid, {**env, "blocks_per_sm": _resident(device, threads, shared)}, "grid", _MAX_GRID)
        return spec.kernel, grid, block, shared

    def _workspaces(self, env: Mapping[str, int]) -> dict[str, int]:
        sizes = {}
        for name, expression in self.header.workspace.items():
            size = expression.evaluate(env)
            if not 1 <= size <= _MAX_WORKSPACE_BYTES:
                raise HeaderError(
                    f"{expression.where}: expected 1 to {_MAX_WORKSPACE_BYTES} bytes of workspace, found {size}"
                )
            sizes[name] = size
        return sizes

    def _arguments(self, spec: LaunchSpec, workload: Workload, env: Mapping[str, int]) -> tuple[str | int, ...]:
        """Names of buffers, scalars and workspaces; every other expression becomes an int32."""
        passed = [p for p in workload.parameters if p.name not in self.header.specialize]
        if spec.args is None:
            return tuple(p.name for p in passed)
        names = {p.name for p in passed} | self.header.workspace.keys()
        found: list[str | int] = []
        for expression in spec.args:
            if expression.text in names:
                found.append(expression.text)
                continue
            value = _evaluate_argument(expression, env, names)
            if not -(2**31) <= value < 2**31:
                raise HeaderError(f"{expression.where}: expected a value that fits int, found {value}")
            found.append(value)
        return tuple(found)

    def _check_arity(self, launches: tuple[Launch, ...]) -> None:
        takes = {function.name: len(function.parameters) for function in self.functions}
        for spec, launch in zip(self.header.launches, launches, strict=True):
            if launch.kernel in takes and takes[launch.kernel] != len(launch.args):
                given = ", ".join(map(str, launch.args))
                raise HeaderError(
                    f"{spec.where}: expected {takes[launch.kernel]} arguments, as {launch.kernel} declares, found "
                    f"{len(launch.args)} ({given}); give 'args' or mend the signature"
                )

    def _zero(self, workload: Workload) -> tuple[str, ...]:
        outputs = [p.name for p in workload.parameters if p.direction is Direction.OUT]
        allowed = [*outputs, *self.header.workspace]
        for name in self.header.zero:
            if name not in allowed:
                raise HeaderError(
                    f"{self._where('zero')}: expected an output or a workspace, found {name!r}"
                    + did_you_mean(name, allowed)
                )
        return self.header.zero

    def _options(self, workload: Workload, env: Mapping[str, int]) -> tuple[str, ...]:
        options = []
        for option in self.header.options:
            if option.when is not None and not option.when.evaluate(env):
                continue
            value = option.value
            if isinstance(value, Expression):
                number, allowed = value.evaluate(env), OPTIONS[option.name]
                if number not in allowed:
                    limits = f"{min(allowed)} to {max(allowed)}"
                    raise HeaderError(f"{value.where}: expected {option.name} from {limits}, found {number}")
                value = str(number)
            text = option.name if value is None else f"{option.name}={value}"
            if text in FAST_MATH and not workload.fast_math:
                raise HeaderError(
                    f"{option.where}: expected options that keep IEEE results, found {text}; "
                    f"the workload {workload.name!r} does not permit fast math"
                )
            options.append(text)
        return tuple(options)

    def _cluster(self, launches: tuple[Launch, ...], env: Mapping[str, int]) -> Dim3 | None:
        if self.header.cluster is None:
            return None
        cluster = _extent(self.header.cluster, env, "cluster", (_MAX_CLUSTER,) * 3)
        where = self.header.cluster[0].where
        if cluster[0] * cluster[1] * cluster[2] > _MAX_CLUSTER:
            raise HeaderError(f"{where}: expected at most {_MAX_CLUSTER} blocks per cluster, found {cluster}")
        for launch in launches:
            if any(blocks % size for blocks, size in zip(launch.grid, cluster, strict=True)):
                raise HeaderError(f"{where}: expected a cluster that divides the grid {launch.grid}, found {cluster}")
        return cluster


@functools.lru_cache(maxsize=256)
def parse(source: str) -> Kernel:
    """Read a kernel file. Cached: one candidate is parsed by many rooms.

    Raises:
        HeaderError: no header, or a wrong one; line, key, expected, found and fix are in the message.
    """
    if len(source.encode(errors="replace")) > MAX_SOURCE_BYTES:
        raise HeaderError(f"kernel: expected at most {MAX_SOURCE_BYTES} bytes of source, found more; shorten it")
    located = header_text.locate(source)
    if located is None:
        raise HeaderError(
            "launch header: expected a comment that begins with '/* launch' and says at least block and grid, "
            "found none; put it above the kernel"
        )
    functions = lexer.functions(located.code)
    header = headers.read(located, functions)
    kernels = tuple(dict.fromkeys(spec.kernel for spec in header.launches))
    digest = hashlib.sha256(f"{lexer.normalised(located.code)}\0{header.canonical()}".encode(errors="replace"))
    return Kernel(source, header, located.code, digest.hexdigest(), kernels, functions)


def _environment(config: Config, dims: Mapping[str, int], device: Device) -> dict[str, int]:
    return {**dims, **config, "num_sms": device.num_sms, "l2_bytes": device.l2_bytes}


def _resident(device: Device, threads: int, shared: int) -> int:
    """Blocks that one multiprocessor can hold at once by threads and dynamic shared memory (registers unknown)."""
    by_shared = device.max_shared_bytes // shared if shared else device.max_blocks_per_sm
    return max(1, min(device.max_threads_per_sm // threads, by_shared, device.max_blocks_per_sm))


def _extent(expressions: tuple[Expression, ...], env: Mapping[str, int], what: str, most: Dim3) -> Dim3:
    values = [expression.evaluate(env) for expression in expressions]
    for axis, value, limit, expression in zip("xyz", values, most, expressions, strict=False):
        if not 1 <= value <= limit:
            raise HeaderError(
                f"{expression.where}: expected {what}.{axis} from 1 to {limit}, found {value} = {expression.text}"
            )
    x, y, z = (*values, 1, 1)[:3]
    return x, y, z


def _evaluate_argument(expression: Expression, env: Mapping[str, int], names: set[str] | frozenset[str]) -> int:
    for name in sorted(expression.names):
        if name not in env:
            raise ExpressionError(
                f"{expression.where}: expected a parameter, a workspace, a dim or a tunable, found {name!r}"
                + did_you_mean(name, [*names, *env])
            )
    return expression.evaluate(env)
