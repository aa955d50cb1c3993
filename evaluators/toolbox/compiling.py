"""The tool `compile`: what the compiler says of a kernel, before the model answers with it."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from evaluators import needed, nvrtc, prescreen
from evaluators.builder import request
from evaluators.needed import Needed
from evaluators.occupancy import Occupancy, occupancy
from evaluators.toolbox.arguments import Read
from evaluators.toolbox.task import Task
from evaluators.toolbox.words import named, quoted, resources
from evo import kernel as kernels
from evo.quoting import shorten
from evo.records import Binary, Device, Launch, Resources, Status

MOST_PROGRAMS = 6
"""Each takes some tenths of a second on a core, and the model waits."""
_MOST_CASES = 6
_MOST_CONFIGURATION = 300
_VERDICTS = {
    Status.UNSUPPORTED: "uses something that this device cannot run",
    Status.UNSAFE: "contains something forbidden",
    Status.TIMEOUT: "takes the compiler too long",
}


@dataclass(frozen=True)
class _Built:
    """One program: by the device's compiler, and on a CPU by NVRTC too, where that is installed."""

    program: Needed
    binary: Binary
    front_end: Binary | None = None

    @property
    def failure(self) -> Binary | None:
        """What keeps a candidate from being evaluated. What NVRTC alone cannot do is no obstacle on a CPU."""
        if self.binary.status is not Status.OK:
            return self.binary
        if self.front_end is not None and self.front_end.status is Status.COMPILE_ERROR:
            return self.front_end
        return None


def answer(arguments: Read, task: Task) -> list[str]:
    """Compile every program that the performance cases need and say what came of it.

    Raises:
        HeaderError: the launch header gives no launch.
    """
    kernel = kernels.parse(arguments["source"])
    programs = needed.programs(kernel, task.workload, task.device)
    plugin, gpu = task.plugin(), task.device.kind != prescreen.HOST
    both = not gpu and nvrtc.available()

    def build(program: Needed) -> _Built:
        binary = plugin.compile(request(kernel, program.plan, task.device.arch))
        seen = nvrtc.compile(request(kernel, program.plan, prescreen.NVRTC_ARCH), cubin=True) if both else None
        return _Built(program, binary, seen)

    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as threads:
        built = list(threads.map(build, programs[:MOST_PROGRAMS]))
    parts = [*_failures(built), *_successes(built, task.device)]
    if len(programs) > MOST_PROGRAMS:
        parts.append(f"{len(programs) - MOST_PROGRAMS} more programs, of other cases, were not compiled.")
    return parts


def _failures(built: Sequence[_Built]) -> list[str]:
    """Say what does not compile; programs that fail alike are named together."""
    alike: dict[tuple[Status, str], list[Needed]] = {}
    for one in built:
        if one.failure is not None:
            alike.setdefault((one.failure.status, one.failure.message), []).append(one.program)
    parts = []
    for (status, message), programs in alike.items():
        which = "It" if len(programs) == len(built) else f"For {_programs(programs)} it"
        verdict = _VERDICTS.get(status, "does not compile")
        parts += [f"{which} {verdict}:", quoted(message or "the compiler gave no reason")]
    return parts


def _successes(built: Sequence[_Built], device: Device) -> list[str]:
    fine = [one for one in built if one.failure is None]
    if not fine:
        return []
    which = "It compiles" if len(fine) == len(built) else f"For {_programs([one.program for one in fine])} it compiles"
    parts = [f"{which} for {device.arch}. Launch configurations are those that the header chooses for the cases."]
    if any(one.front_end is not None for one in fine):
        parts.append(
            f"The device is a CPU, whose compiler tells no registers; what follows is what NVRTC says for a GPU "
            f"({prescreen.NVRTC_ARCH})."
        )
    return parts + [_described(one, device) for one in fine]


def _programs(programs: Sequence[Needed]) -> str:
    return "; ".join(_program(program) for program in programs)


def _program(program: Needed) -> str:
    names = program.names
    cases = ", ".join(names[:_MOST_CASES]) + (f" and {len(names) - _MOST_CASES} more" * (len(names) > _MOST_CASES))
    configuration = shorten(needed.configuration(program.plan), _MOST_CONFIGURATION)
    return f"{cases} ({configuration or 'no tunables'})"


def _described(one: _Built, device: Device) -> str:
    told = (one.front_end or one.binary).resources
    lines = [f"{_program(one.program)}:"]
    for name in dict.fromkeys(launch.kernel for plan in one.program.plans for launch in plan.launches):
        used = told.get(name, Resources())
        lines.append(f"- {named(name)}: {resources(used)}".rstrip(": "))
        lines += [f"  - {words}" for words in _launches(name, used, one.program, device)]
    return "\n".join(lines)


def _launches(name: str, used: Resources, program: Needed, device: Device) -> list[str]:
    """Say what each shape of block comes to, and how many blocks the cases launch of it."""
    shapes: dict[tuple[int, int], list[tuple[str, Launch]]] = {}
    for case, plan in zip(program.cases, program.plans, strict=True):
        for launch in plan.launches:
            if launch.kernel == name:
                shape = (math.prod(launch.block), launch.shared_bytes)
                shapes.setdefault(shape, []).append((case.name, launch))
    return [_launch(shape, launches, used, device) for shape, launches in list(shapes.items())[:_MOST_CASES]]


def _launch(
    shape: tuple[int, int], launches: Sequence[tuple[str, Launch]], used: Resources, device: Device
) -> str:  # fmt: skip
    threads, dynamic = shape
    static = used.static_shared_bytes or 0
    words = f"{threads} threads and {static + dynamic or 'no'} bytes of shared memory a block"
    words += f" ({static} static, {dynamic} dynamic)" if static and dynamic else ""
    fits = None if used.registers is None else occupancy(device, threads, used.registers, static + dynamic)
    words += f"; {_fits(fits)}" if fits is not None else ""
    at_once = fits.blocks * device.num_sms if fits else 0
    told = []
    for case, launch in launches[:_MOST_CASES]:
        blocks = math.prod(launch.grid)
        told.append(f"{case} {blocks}" + (f" ({blocks / at_once:.2f} waves)" if at_once else ""))
    return f"{words}; blocks launched: {', '.join(told)}"


def _fits(fits: Occupancy) -> str:
    share = 100 * fits.warps / fits.most_warps
    words = f"{fits.blocks} blocks fit a multiprocessor, {fits.warps} of {fits.most_warps} warps ({share:.0f} %)"
    if not fits.limits:
        return words
    others = ", ".join(f"{what} {blocks}" for what, blocks in fits.by.items())
    return f"{words}, limited by {' and '.join(fits.limits)} (blocks that each permits: {others})"
