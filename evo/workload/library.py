"""Workloads by name or folder, and what of them a model may see. No device, no search and no model is known here."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from evo import assets
from evo.errors import WorkloadError, did_you_mean
from evo.records import Role, Workload
from evo.workload import folder as workload_file


def load(name_or_path: str, *, cwd: Path | None = None) -> Workload:
    """Load and check a workload.

    Args:
        name_or_path: a name (looked up in `cwd`/workloads, then among those that ship), or a folder's path.
        cwd: the present folder by default.

    Raises:
        WorkloadError: there is none of that name, or its folder is wrong.
    """
    folder = _find(name_or_path, cwd or Path.cwd())
    return workload_file.read(folder)


def names(*, cwd: Path | None = None) -> tuple[str, ...]:
    """Return the names of the present folder's workloads and of those that ship, sorted."""
    return tuple(sorted({path.name for folder in _places(cwd or Path.cwd()) for path in _folders(folder)}))


def public(workload: Workload) -> Workload:
    """Return what a model may see: no hidden cases, no reference, no files, no draws that only they used.

    A reference kernel stays hidden too: who names one wants to beat it, and a search that has read it proves nothing.
    """
    shown = workload.role(Role.CORRECTNESS, Role.PERFORMANCE)
    return dataclasses.replace(workload, cases=shown, reference="", files={}, reference_kernel=None)


def _places(cwd: Path) -> tuple[Path, ...]:
    return cwd / "workloads", assets.workloads_dir()


def _folders(folder: Path) -> list[Path]:
    return [path.parent for path in folder.glob(f"*/{workload_file.NAME}")]


def _find(name_or_path: str, cwd: Path) -> Path:
    is_name = name_or_path not in ("", ".", "..") and Path(name_or_path).name == name_or_path
    candidates = [place / name_or_path for place in _places(cwd)] if is_name else []
    for folder in [*candidates, cwd / name_or_path]:
        if (folder / workload_file.NAME).is_file():
            return folder
    if (cwd / name_or_path).is_dir():
        raise WorkloadError(f"{cwd / name_or_path}: expected a folder with {workload_file.NAME}, found none in it")
    raise WorkloadError(
        f"workload: expected a name or a folder with {workload_file.NAME}, found {name_or_path!r}"
        + did_you_mean(name_or_path, names(cwd=cwd))
    )
