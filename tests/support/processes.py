"""What is left of a family of processes."""

from __future__ import annotations

import psutil


def alive(family: list[psutil.Process]) -> list[psutil.Process]:
    """Return which of them still run after five seconds; a zombie that its new parent has not buried yet does not."""
    _, left = psutil.wait_procs(family, timeout=5)
    return [process for process in left if process.is_running() and process.status() != psutil.STATUS_ZOMBIE]
