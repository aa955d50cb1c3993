"""What a model may call while it thinks: names, descriptions and arguments. Who answers is `evaluators.toolbox`.

Descriptions are for models that know CUDA: what a tool gives, and when it is worth a round.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from evo.records import Device, Tool

__all__ = ["TOOLS", "available"]

_SOURCE = {
    "type": "string",
    "description": "A complete .cu file: the /* launch */ comment first, then every function, nothing abbreviated.",
}


def _arguments(required: tuple[str, ...] = (), **properties: Mapping[str, Any]) -> Mapping[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


_COMPILE = Tool(
    "compile",
    "Compile a kernel file without running it. Returns the compiler's errors by line of your file, or what is wrong "
    "with the launch header; and for each program that the performance cases need, under the launch configuration that "
    "the header chooses: registers, spilled bytes, local and shared memory of each kernel and, on a GPU, how many of "
    "its blocks fit a multiprocessor and what limits that. Compile what you mean to answer with.",
    _arguments(("source",), source=_SOURCE),
)

_DISASSEMBLE = Tool(
    "disassemble",
    "Say what the compiler made of a kernel, for the heaviest performance case: instructions by opcode, widths of "
    "loads and stores, use of local memory, and the innermost loops with their multiply-adds, memory accesses and "
    "source lines. Machine code (SASS) where a disassembler is installed, else PTX. Shows whether loads are wide, a "
    "loop was unrolled, or tensor cores are used.",
    _arguments(
        source={**_SOURCE, "description": f"{_SOURCE['description']} Left out: the kernel that you are to change."},
        kernel={"type": "string", "description": "Name of one kernel of the file. Left out: the first ones launched."},
    ),
)

_COUNTERS = Tool(
    "counters",
    "Read what Nsight Compute counted while the kernel that you are to change ran on one performance case: throughput "
    "of each part in percent of its peak, cache hits, DRAM bytes, occupancy and what limits it, why warps waited, busy "
    "pipes, bank conflicts, local memory traffic.",
    _arguments(
        names={
            "type": "array",
            "items": {"type": "string"},
            "description": "Names of counters, such as dram_pct, l2_hit_pct or stalls_pct, or Nsight Compute's own. "
            "Left out: all of them.",
        }
    ),
)

TOOLS: Mapping[str, Tool] = MappingProxyType({tool.name: tool for tool in (_COMPILE, _DISASSEMBLE, _COUNTERS)})
"""Every tool by name."""


def available(device: Device, *, profiled: bool) -> tuple[Tool, ...]:
    """Return the tools that a model is offered.

    Args:
        device: that the kernels run on.
        profiled: whether a profiler looks at kernels, so that there are counters.
    """
    return tuple(tool for tool in TOOLS.values() if tool is not _COUNTERS or profiled)
