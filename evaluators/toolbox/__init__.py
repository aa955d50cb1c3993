"""Answers what a model calls while it thinks, in words. Runs on a CPU: nothing is run, no GPU is touched.

A plain function of its arguments, so that it can be a Ray task. What a model wrote is data: whatever it is, there is an
answer that says what was expected. Hidden cases may not enter: only performance cases are compiled for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from evaluators.toolbox import arguments, compiling, counting, disassembling
from evaluators.toolbox.task import Task, Unfit
from evaluators.toolbox.words import bounded, quoted
from evo.errors import EvoError, HeaderError
from evo.records import Device, Relative, ToolCall, ToolResult, Workload

__all__ = ["MOST_CALLS", "use"]

MOST_CALLS = 8
"""Answered in one round: a model that compiles more variants at once is guessing."""

_ANSWERS: Mapping[str, Callable[[arguments.Read, Task], list[str]]] = {
    "compile": compiling.answer,
    "disassemble": disassembling.answer,
    "counters": counting.answer,
}


def use(
    calls: tuple[ToolCall, ...], device_name: str, device: Device, workload: Workload, parent: Relative
) -> tuple[ToolResult, ...]:
    """Answer each call, in order; the same call has the same answer. Never raises.

    Args:
        calls: as the model wrote them.
        device_name: name or `.py` path of the run's device plug-in, whose compiler is called.
        device: what it describes itself as.
        workload: its performance cases say which programs are compiled.
        parent: the kernel that the model works on, with its evaluation freed of hidden cases.
    """
    task = Task(device_name, device, workload, parent)
    return tuple(
        ToolResult(call.id, call.name, _answer(call, task) if index < MOST_CALLS else _TOO_MANY)
        for index, call in enumerate(calls)
    )


def listing(source: str, device_name: str, device: Device, workload: Workload) -> str:
    """Return what `disassemble` says of a kernel for this GPU; "" on other devices, and where it cannot look.

    Models that cannot call tools are told it beside the kernel.
    """
    if not disassembling.is_gpu(device):
        return ""
    try:
        parts = disassembling.answer({}, Task(device_name, device, workload, Relative(0, source, None)))
    except (Unfit, EvoError):
        return ""
    return bounded(parts)


_TOO_MANY = f"not answered: at most {MOST_CALLS} calls are answered at once; ask for it again if you still need it"


def _answer(call: ToolCall, task: Task) -> str:
    try:
        read = arguments.read(call)
        return bounded(_ANSWERS[call.name](read, task))
    except Unfit as unfit:
        return bounded([str(unfit)])
    except HeaderError as error:
        return bounded(["The launch header is not usable:", quoted(str(error))])
    except EvoError:
        # An evaluation meets the same and tells a person; its words may name folders, which no model needs to know.
        return f"{call.name} cannot be used on this machine now; go on without it"
    except Exception as error:  # a candidate's text meets compilers and readers
        return f"{call.name} failed on this call ({type(error).__name__}); go on without it"
