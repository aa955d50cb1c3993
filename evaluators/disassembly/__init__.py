"""List the instructions of a kernel: machine code (SASS) where nvdisasm is installed, else the PTX that NVRTC makes.

Nothing is run and no GPU is needed. What the list means for a model is said elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from evaluators import nvrtc
from evaluators.disassembly import nvdisasm, ptx, sass
from evaluators.disassembly.code import Access, Function, Instruction
from evaluators.disassembly.loops import Loop, find
from evo.records import CompileRequest, Resources, Status

__all__ = ["Access", "Function", "Instruction", "Listing", "Loop", "find", "listing"]

LINES = "lineinfo"
"""The flavour of NVRTC's that keeps line numbers."""


@dataclass(frozen=True)
class Listing:
    """What was listed, or why nothing was.

    Attributes:
        status: OK, or the compiler's.
        message: the compiler's where it is not OK.
        language: `SASS` or `PTX`.
        functions: in order; those of a kernel have its symbol.
        symbols: kernel, as the request names it -> its symbol.
        resources: kernel -> what the machine code uses.
        note: why it is PTX.
    """

    status: Status
    message: str = ""
    language: Literal["SASS", "PTX"] = "SASS"
    functions: tuple[Function, ...] = ()
    symbols: Mapping[str, str] = field(default_factory=dict)
    resources: Mapping[str, Resources] = field(default_factory=dict)
    note: str = ""


def listing(request: CompileRequest) -> Listing:
    """Compile a program for its architecture and list its instructions.

    Args:
        request: its flavour is not looked at.

    Raises:
        DeviceError: NVRTC is not installed, or cannot be loaded.
        SandboxError: it cannot be confined here.
    """
    request = replace(request, flavour=LINES)
    binary = nvrtc.compile(request, cubin=True)
    if binary.status is not Status.OK:
        return Listing(binary.status, binary.message)
    text = nvdisasm.text(binary.image)
    functions = sass.read(text, nvrtc.NAME) if text is not None else ()
    if functions:
        return Listing(
            Status.OK, functions=functions, symbols=binary.lowered, resources=binary.resources
        )  # fmt: skip
    why = "no nvdisasm of this machine can read the machine code" if nvdisasm.find() else "nvdisasm is not installed"
    virtual = nvrtc.compile(request, cubin=False)
    if virtual.status is not Status.OK:
        return Listing(virtual.status, virtual.message)
    functions = ptx.read(virtual.image.decode(errors="replace"), nvrtc.NAME)
    return Listing(
        Status.OK, "", "PTX", functions, virtual.lowered, binary.resources, f"{why}: {nvdisasm.INSTALL}"
    )  # fmt: skip
