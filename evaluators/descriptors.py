"""Where a kernel lies in the search's cells: coordinates read from its text, its resources and one launch plan."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from evo import workload as workloads
from evo.kernel import Kernel
from evo.records import Case, Launch, LaunchPlan, Resources, Workload

_ASYNC = re.compile(r"\b(memcpy_async|__pipeline_memcpy_async|cp_async\w*)\b|\bcp\.async\b")
_TENSOR = re.compile(r"\b(wmma|wgmma|mma_sync)\b|\bmma\.sync\b")
_SHARED = re.compile(r"\b__shared__\b")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
FEW = 8
"""Up to this many outputs per thread are `few`."""


def describe(
    kernel: Kernel, workload: Workload, case: Case, plan: LaunchPlan, resources: Mapping[str, Resources]
) -> dict[str, str]:
    """Return `staging` (direct, shared, async), `unit` (scalar, tensor) and `outputs` per thread (1, few, many).

    Args:
        kernel: the candidate.
        workload: gives the size of the outputs.
        case: the fixed case that every candidate is described on.
        plan: of the default variant on that case.
        resources: of the default variant; may be empty.
    """
    return {
        "staging": _staging(_COMMENT.sub(" ", kernel.code), plan, resources),
        "unit": "tensor" if uses_tensor_cores(kernel) else "scalar",
        "outputs": _outputs_per_thread(workload, case, plan),
    }


def uses_tensor_cores(kernel: Kernel) -> bool:
    """Whether a kernel's text computes on tensor cores."""
    return bool(_TENSOR.search(_COMMENT.sub(" ", kernel.code)))


def _staging(code: str, plan: LaunchPlan, resources: Mapping[str, Resources]) -> str:
    if _ASYNC.search(code):
        return "async"
    dynamic = any(launch.shared_bytes for launch in plan.launches)
    static = any(used.static_shared_bytes for used in resources.values())
    return "shared" if dynamic or static or _SHARED.search(code) else "direct"


def _outputs_per_thread(workload: Workload, case: Case, plan: LaunchPlan) -> str:
    elements = sum(math.prod(workloads.shape(output, case)) for output in workload.outputs)
    threads = max((_threads(launch) for launch in plan.launches), default=1)
    each = elements / threads
    return "1" if each <= 1 else "few" if each <= FEW else "many"


def _threads(launch: Launch) -> int:
    return math.prod(launch.grid) * math.prod(launch.block)
