"""The tool `disassemble`: what the compiler made of a kernel, and where its instructions come from."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from evaluators import disassembly, needed, nvrtc, prescreen
from evaluators.builder import request
from evaluators.disassembly import Function, Instruction, Listing, Loop
from evaluators.needed import Needed
from evaluators.nvrtc.installation import MISSING
from evaluators.toolbox.arguments import Read
from evaluators.toolbox.task import Task, Unfit
from evaluators.toolbox.words import named, quoted, resources
from evo import kernel as kernels
from evo import workload as workloads
from evo.errors import ExpressionError, did_you_mean
from evo.kernel import Kernel
from evo.quoting import clean, fence, shorten
from evo.records import Case, Device, Resources, Status, Workload

MOST_LOOPS = 4
MOST_INSTRUCTIONS = 20_000
"""Of a function whose loops are looked for: one that is longer has been unrolled beyond reason."""
_MOST_KERNELS = 3
_MOST_CASES = 6
_MOST_OPCODES = 16
_MOST_LINES = 10
_MOST_COLUMNS = 120
_GPU = re.compile(r"sm_\d+[af]?")
_LANGUAGES = {
    "SASS": "Machine code (SASS) for {arch}",
    "PTX": "PTX for {arch} (ptxas makes machine code of it: it allocates registers, schedules and may unroll further)",
}


def answer(arguments: Read, task: Task) -> list[str]:
    """List a kernel's instructions by kind, its memory accesses and its loops.

    Raises:
        HeaderError: the launch header gives no launch.
        Unfit: there is no such kernel.
    """
    if not nvrtc.available():
        return [f"disassemble is not available on this machine: {MISSING}"]
    source = arguments.get("source", task.parent.source)
    kernel = kernels.parse(source)
    wanted = _wanted(kernel, arguments.get("kernel"))
    programs = needed.programs(kernel, task.workload, task.device)
    if not programs:
        raise Unfit("the workload has no performance case to compile for")
    program = max(programs, key=lambda program: max(_work(task.workload, case) for case in program.cases))
    arch = task.device.arch if is_gpu(task.device) else prescreen.NVRTC_ARCH
    listing = disassembly.listing(request(kernel, program.plan, arch))
    if listing.status is not Status.OK:
        return ["It does not compile:", quoted(listing.message)]
    parts = [_head(listing, program, arch, task)]
    for name in wanted[:_MOST_KERNELS]:
        parts += _described(name, listing, source)
    if len(wanted) > _MOST_KERNELS:
        others = ", ".join(named(name) for name in wanted[_MOST_KERNELS:])
        parts.append(f"Ask for the others by name: {shorten(others, 300)}.")
    return parts


def is_gpu(device: Device) -> bool:
    """Whether this device runs what is disassembled."""
    return _GPU.fullmatch(device.arch) is not None


def _wanted(kernel: Kernel, name: str | None) -> tuple[str, ...]:
    if name is None:
        return kernel.kernels
    if name not in kernel.kernels:
        raise Unfit(
            f"argument 'kernel': expected a kernel that the launch header launches, found {clean(name)[:80]!r}"
            + did_you_mean(name[:80], kernel.kernels)
        )
    return (name,)


def _work(workload: Workload, case: Case) -> int:
    try:
        return max(workloads.flops(workload, case), workloads.bytes_moved(workload, case))
    except ExpressionError:
        return 0


def _head(listing: Listing, program: Needed, arch: str, task: Task) -> str:
    configuration = shorten(needed.configuration(program.plan), 300) or "no tunables"
    words = _LANGUAGES[listing.language].format(arch=arch)
    words += f"; the program of {', '.join(program.names[:_MOST_CASES])} ({configuration})."
    if listing.note:
        words += f" It is not SASS, because {listing.note}."
    if task.device.kind == prescreen.HOST:
        words += " The device is a CPU: this is what a GPU would be given."
    return words


def _described(name: str, listing: Listing, source: str) -> list[str]:
    symbol = listing.symbols.get(name, name)
    # Whom a function belongs to is not known in PTX: it is shown beside each kernel.
    own = [function for function in listing.functions if function.kernel in (symbol, "")]
    own.sort(key=lambda function: function.name != symbol)
    parts = []
    for function in own:
        title = f"Kernel {named(name)}" if function.name == symbol else f"Function {named(function.name)}, called"
        used = resources(listing.resources.get(name, Resources())) if function.name == symbol else ""
        parts.append("\n".join(_facts(title, function, listing.language, used)))
        parts += _loops(function, listing.language, source)
    return parts


def _facts(title: str, function: Function, language: str, used: str) -> list[str]:
    lines = [f"{title}: {len(function.instructions)} instructions" + (f"; {used}" if used else "")]
    lines.append(f"- by opcode: {_histogram(function.instructions, language)}")
    lines.append(f"- memory accesses of a thread: {_accesses(function.instructions)}")
    spaces = {instruction.access.space for instruction in function.instructions if instruction.access}
    if "local" in spaces:
        lines.append("- local memory is in use: registers were spilled, or a thread's array has an index that varies")
    return lines


def _loops(function: Function, language: str, source: str) -> list[str]:
    if len(function.instructions) > MOST_INSTRUCTIONS:
        return [f"More than {MOST_INSTRUCTIONS} instructions: its loops were not looked for."]
    loops = disassembly.find(function.instructions)
    if not loops:
        return ["No loops."]
    parts = [_loop(loop, function, language, source) for loop in loops[:MOST_LOOPS]]
    more = len(loops) - MOST_LOOPS
    return [*parts, f"Loops left out, less deep or shorter: {more}."] if more > 0 else parts


def _loop(loop: Loop, function: Function, language: str, source: str) -> str:
    body = [function.instructions[index] for index in loop.body]
    lines = Counter(instruction.line for instruction in body if instruction.line)
    adds = sum(instruction.multiply_adds for instruction in body)
    words = [
        f"Loop of {len(body)} instructions, nested {loop.depth} deep, {adds} of them multiply-adds:",
        f"- by opcode: {_histogram(body, language)}",
        f"- memory accesses of a pass: {_accesses(body)}",
    ]
    shown = _source_lines(lines, source)
    return "\n".join([*words, "- instructions of each source line:", shown] if shown else words)


def _histogram(instructions: Iterable[Instruction], language: str) -> str:
    counts = Counter(_opcode(instruction, language) for instruction in instructions)
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    words = ", ".join(f"{opcode} {count}" for opcode, count in ranked[:_MOST_OPCODES])
    rest = sum(count for _, count in ranked[_MOST_OPCODES:])
    return f"{words}, others {rest}" if rest else words


def _opcode(instruction: Instruction, language: str) -> str:
    """Return what a count is kept of: SASS without modifiers, but for IMAD, which as IMAD.MOV multiplies nothing."""
    if language == "PTX":
        return clean(instruction.opcode)[:40]
    base, _, modifiers = instruction.opcode.partition(".")
    return f"{base}.MOV" if base == "IMAD" and modifiers.startswith("MOV") else base


def _accesses(instructions: Sequence[Instruction]) -> str:
    counts = Counter(instruction.access for instruction in instructions if instruction.access)
    kinds: dict[str, list[str]] = {}
    for access, count in sorted(counts.items()):
        width = f"{count} of {access.nbytes} bytes" if access.nbytes else f"{count} of a whole tile"
        plural = "asynchronous copies" if access.kind == "asynchronous copy" else f"{access.kind}s"
        kinds.setdefault(f"{access.space} {plural}", []).append(width)
    return "; ".join(f"{kind} {' and '.join(widths)}" for kind, widths in kinds.items()) or "none"


def _source_lines(counts: Mapping[int, int], source: str) -> str:
    """Quote the lines that most instructions come from, in their order."""
    rows = clean(source).split("\n")
    known = [line for line in counts if line <= len(rows)]
    most = sorted(sorted(known, key=lambda line: (-counts[line], line))[:_MOST_LINES])
    if not most:
        return ""
    quoted_rows = (f"{counts[line]:>5} | line {line}: {rows[line - 1].strip()[:_MOST_COLUMNS]}" for line in most)
    return fence("\n".join(quoted_rows))
