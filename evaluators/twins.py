"""Tells whether two kernels are one program: the same machine code for the same launches, however they are written.

A cheap digest of the default programs finds who may be alike; only the whole comparison, over every program that a
header can ask for, says that they are. What is compared is what the run's own device runs.
"""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Callable, Iterator

from evaluators import needed
from evaluators.builder import request
from evaluators.inspection import elf
from evo import kernel as kernels
from evo.errors import HeaderError
from evo.kernel import Kernel
from evo.records import Binary, CompileRequest, Device, LaunchPlan, Status, Workload

MOST_PROGRAMS = 256
"""Kernels with more programs are never called alike: the comparison would cost more than it saves."""

_NO_CODE = re.compile(r"\.(symtab|strtab|shstrtab|symtab_shndx|comment|note.*|(rela?\.)?(nv_)?debug.*)")
"""Names, line numbers and what compilers say of themselves."""

Compile = Callable[[CompileRequest], Binary]


def digest(source: str, workload: Workload, device: Device, compile: Compile) -> str:
    """Return what two kernels have in common that may be alike; "" where nothing can be said.

    Args:
        source: the kernel file.
        workload: its performance cases say which programs are looked at.
        device: of the run.
        compile: of the device plug-in.
    """
    try:
        kernel = kernels.parse(source)
        plans = [program.plan for program in needed.programs(kernel, workload, device)]
    except HeaderError:
        return ""
    codes = [_code(kernel, plan, device, compile) for plan in plans]
    if not codes or "" in codes:
        return ""
    return _hash([kernel.header.canonical(), *codes])


def alike(first: str, second: str, workload: Workload, device: Device, compile: Compile) -> bool:
    """Whether two kernels are one program in every configuration that their headers allow.

    Args:
        first: a kernel file.
        second: another one.
        workload: its cases say which programs there are.
        device: of the run.
        compile: of the device plug-in.
    """
    one, other = kernels.parse(first), kernels.parse(second)
    if one.header.canonical() != other.header.canonical():
        return False
    plans = list(itertools.islice(_programs(one, workload, device), MOST_PROGRAMS + 1))
    if len(plans) > MOST_PROGRAMS:
        return False
    codes = ((_code(one, plan, device, compile), _code(other, plan, device, compile)) for plan in plans)
    return all(mine == yours != "" for mine, yours in codes)


def _programs(kernel: Kernel, workload: Workload, device: Device) -> Iterator[LaunchPlan]:
    """Yield a plan for each program that some case can ask for under some configuration."""
    seen: set[tuple[object, ...]] = set()
    tune = kernel.header.tune
    for values in itertools.product(*tune.values()):
        config = dict(zip(tune, values, strict=True))
        for case in workload.cases:
            try:
                plan = kernel.plan(workload, case, device, config)
            except HeaderError:
                continue
            key = (tuple(sorted(plan.defines.items())), plan.options)
            if key not in seen:
                seen.add(key)
                yield plan


def _code(kernel: Kernel, plan: LaunchPlan, device: Device, compile: Compile) -> str:
    binary = compile(request(kernel, plan, device.arch))
    return _code_of(binary.image) if binary.status is Status.OK else ""


def _code_of(image: bytes) -> str:
    """Return a hash of all that runs, and of nothing else; "" for what is no program of a known form."""
    for form in (elf.CUBIN, elf.PROGRAM):
        try:
            parts = elf.contents(image, form)
        except elf.NotAnObject:
            continue
        kept = [(section, data) for section, data in parts if not _NO_CODE.fullmatch(section.name)]
        return _hash([f"{section.name} {section.kind} {section.size} {_hash([data])}" for section, data in kept])
    return ""


def _hash(parts: list[str] | list[bytes]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()
