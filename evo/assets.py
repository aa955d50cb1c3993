"""Where the files that ship with the product lie: in the wheel, or beside the packages in a source checkout."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def workloads_dir() -> Path:
    """Return the folder of the workloads that ship with the product."""
    return _shipped("workloads", _PACKAGE.parent / "benchmarks" / "workloads")


def configs_dir() -> Path:
    """Return the folder of the configs that ship with the product."""
    return _shipped("configs", _PACKAGE.parent / "configs")


def redteam_dir() -> Path:
    """Return the folder of the kernels that try the evaluator; see its README."""
    return _shipped("redteam", _PACKAGE.parent / "benchmarks" / "redteam")


def _shipped(name: str, in_checkout: Path) -> Path:
    in_wheel = _PACKAGE / "data" / name
    return in_wheel if in_wheel.is_dir() else in_checkout
