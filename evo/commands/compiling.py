"""What `eval --compile-only` does: ask NVRTC what each program of a kernel uses, without a GPU. Nothing is run."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from evaluators import needed
from evaluators.needed import Needed, Use
from evo import kernel as kernels
from evo.commands import judging, output
from evo.errors import ConfigError, DeviceError, HeaderError
from evo.kernel import Kernel
from evo.records import Config, Device, Status, Workload

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

DEFAULT_ARCH = "sm_90a"
"""Where there is no GPU: H100 and H200, with all that is theirs alone."""

_ARCH = re.compile(r"sm_(\d+)[af]?")
_SHARED_KIB = {75: 64, 80: 163, 86: 99, 87: 163, 88: 99, 89: 99, 90: 227, 120: 99, 121: 99}
"""Most shared memory per block (CUDA C++ Programming Guide, "Technical Specifications per Compute Capability")."""
_MOST_SHARED_KIB = 227
"""Of every other architecture since 9.0."""


@dataclass(frozen=True)
class Program:
    """One program, and the cases that it is for.

    Attributes:
        cases: names.
        defines: tunables and specialised dims.
        options: compiler options.
        status: OK, or why it does not compile.
        message: the compiler's, in the kernel's own lines.
        kernels: kernel name -> what it uses.
        image_bytes: size of the machine code.
        seconds: 0 where the result was known.
    """

    cases: tuple[str, ...]
    defines: Config
    options: tuple[str, ...]
    status: Status
    message: str
    kernels: Mapping[str, Use]
    image_bytes: int
    seconds: float


def compile_only(kernel: Path, name: str | None, arch: str | None, *, as_json: bool) -> int:
    """Compile every program that a kernel's performance cases need and say what it uses; return the exit code.

    Args:
        kernel: file.
        name: of the workload, or its folder; None guesses inputs and launch from the signature.
        arch: target; None means this machine's GPU, or `DEFAULT_ARCH` without one.
        as_json: write a JSON document instead of text.

    Raises:
        ConfigError: NVRTC does not know the architecture.
        DeviceError: NVRTC is not installed.
    """
    subject = judging.subject(kernel, name)
    device = _device(arch)
    programs, message = _programs(subject.source, subject.workload, device)
    failed = next((program.status for program in programs if program.status is not Status.OK), Status.OK)
    status = failed if programs else Status.BAD_LAUNCH
    if as_json:
        found = {"status": status, "arch": device.arch, "message": message, "programs": programs}
        output.data({**found, "guessed": subject.guesses})
    else:
        output.show(_report(status, device.arch, message, programs))
        output.show(judging.guessed(subject.guesses))
    return 0 if status is Status.OK else judging.REJECTED


def _device(arch: str | None) -> Device:
    """Return the GPU of this machine where the architecture is its own, else the least that is known of one."""
    gpu = _gpu()
    if gpu is not None and arch in (None, gpu.arch):
        return gpu
    arch = arch or DEFAULT_ARCH
    number = _ARCH.fullmatch(arch)
    if number is None:
        raise ConfigError(f"--arch: expected sm_ and a number, e.g. {DEFAULT_ARCH}, found {arch!r}")
    shared_bytes = _SHARED_KIB.get(int(number[1]), _MOST_SHARED_KIB) << 10
    return Device(kind="nvrtc", name=arch, fingerprint=arch, arch=arch, max_shared_bytes=shared_bytes)


def _gpu() -> Device | None:
    from evo.runner import devices

    name = devices.choose("auto")
    with contextlib.suppress(DeviceError):  # a lost GPU keeps nobody from compiling
        return None if name == "host" else devices.make(name).describe()
    return None


def _programs(source: str, workload: Workload, device: Device) -> tuple[list[Program], str]:
    """Return the distinct programs; or none, and what is wrong with the launch header."""
    try:
        kernel = kernels.parse(source)
        programs = needed.programs(kernel, workload, device)
    except HeaderError as error:
        return [], str(error)
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as threads:
        return list(threads.map(lambda program: _program(kernel, program, device), programs)), ""


def _program(kernel: Kernel, program: Needed, device: Device) -> Program:
    from evaluators import nvrtc
    from evaluators.builder import request

    plan = program.plan
    binary = nvrtc.compile(request(kernel, plan, device.arch), cubin=True)
    if binary.status is Status.UNSUPPORTED and (unknown := nvrtc.unknown_arch(device.arch)):
        raise ConfigError(f"--arch: {unknown}")
    uses = needed.uses(binary, program.plans)
    size, seconds = len(binary.image), binary.seconds
    return Program(
        program.names, plan.defines, plan.options, binary.status, binary.message, uses, size, seconds
    )  # fmt: skip


# --- saying -----------------------------------------------------------------------------------------------------


def _report(status: Status, arch: str, message: str, programs: Sequence[Program]) -> Iterator[RenderableType]:
    from rich.text import Text

    colour = "green" if status is Status.OK else "red"
    yield f"[bold {colour}]{status.replace('_', ' ')}[/bold {colour}] for {arch}"
    if message:
        yield Text(message)
    said: dict[str, list[Program]] = {}
    for program in programs:
        if program.status is not Status.OK:
            said.setdefault(program.message, []).append(program)
    for words, failed in said.items():
        if len(failed) < len(programs):
            yield Text("; ".join(f"{', '.join(program.cases)}: {_configuration(program)}" for program in failed))
        yield Text(words)
    if len(programs) > sum(map(len, said.values())):
        yield _table(program for program in programs if program.status is Status.OK)


def _table(programs: Iterator[Program]) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    made = Table(box=SIMPLE_HEAD, header_style="bold", pad_edge=False)
    for column in ("kernel", "configuration", "cases"):
        made.add_column(column)
    for column in ("registers", "spilled bytes", "stack bytes", "shared bytes", "dynamic"):
        made.add_column(column, justify="right")
    for program in programs:
        for name, use in program.kernels.items():
            numbers = (use.registers, use.spill_bytes, use.local_bytes, use.static_shared_bytes)
            counts = ("?" if number is None else str(number) for number in numbers)
            made.add_row(
                name, _configuration(program), ", ".join(program.cases), *counts, str(use.dynamic_shared_bytes)
            )
    return made


def _configuration(program: Program) -> str:
    return " ".join((*(f"{name}={value}" for name, value in program.defines.items()), *program.options))
