"""From what a person types to the folder of a run: a path, `run-003`, `3`, or `latest`."""

from __future__ import annotations

from pathlib import Path

from evo.errors import StoreError, did_you_mean

RESULTS = Path("results")


def find(name: str, results: Path = RESULTS) -> Path:
    """Return the folder of a run.

    Args:
        name: a path, the name or number of a run in `results`, or `latest`.
        results: where runs lie.

    Raises:
        StoreError: there is no such run.
    """
    runs = sorted(path for path in results.glob("run-*") if path.is_dir())
    if name == "latest" and runs:
        return max(runs, key=lambda path: path.stat().st_mtime)
    numbered = [results / f"run-{int(name):03}"] if name.isdigit() else []
    for folder in (Path(name), results / name, *numbered):
        if folder.is_dir():
            return folder
    raise StoreError(f"{name}: no such run{did_you_mean(name, [path.name for path in runs])}")
