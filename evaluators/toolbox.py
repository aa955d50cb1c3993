"""Answers what a model calls while it thinks, in words. Runs on a CPU."""

from __future__ import annotations

from evo.records import Device, Relative, ToolCall, ToolResult, Workload


def use(
    calls: tuple[ToolCall, ...], device_name: str, device: Device, workload: Workload, parent: Relative
) -> tuple[ToolResult, ...]:
    """Answer each call; one that cannot be answered is told why."""
    return tuple(ToolResult(call.id, call.name, f"there is no tool {call.name!r}") for call in calls)
