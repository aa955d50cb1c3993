"""What the GPU benchmarks share: tables, files of figures, and child processes that may fail without taking all along.

Nothing here measures. A script that imports this finds the house's packages, wherever it is started from.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

WHEELS = ROOT / ".gpu"
"""Where wheels lie that the machine with the GPU cannot fetch."""
_STARTED = time.monotonic()


def say(text: str) -> None:
    """Print a line at once, with the seconds since the start: what is cut short has told what it knew."""
    print(f"[{time.monotonic() - _STARTED:6.1f} s] {text}", flush=True)


def elapsed_s() -> float:
    """Return the seconds since this process imported this module."""
    return time.monotonic() - _STARTED


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a Markdown table."""
    lines = [list(head), ["---"] * len(head), *([str(cell) for cell in row] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def save(path: Path | None, figures: Mapping[str, Any]) -> None:
    """Write figures as JSON, whole or not at all."""
    if path is None:
        return
    scratch = path.with_name(path.name + ".new")
    scratch.write_text(json.dumps(figures, indent=1, default=str) + "\n", encoding="utf-8")
    os.replace(scratch, path)


def run_child(
    script: str, arguments: Sequence[object], timeout_s: float, env: Mapping[str, str] | None = None
) -> tuple[bool, str]:
    """Run a script of ours in a process of its own; say whether it ended well, and return what it printed.

    The whole process group is killed when the time is up.
    """
    command = [sys.executable, script, *(str(argument) for argument in arguments)]
    given = {**os.environ, "PYTHONUNBUFFERED": "1", **(env or {})}
    with subprocess.Popen(
        command, env=given, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    ) as child:
        try:
            output, _ = child.communicate(timeout=max(timeout_s, 1.0))
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, 9)
            output, _ = child.communicate()
            return False, f"{output}\nstopped after {timeout_s:.0f} s"
    return child.returncode == 0, output


def tail(text: str, lines: int = 25) -> str:
    """Return the last lines of an output, indented."""
    return "\n".join(f"    {line}" for line in text.strip().splitlines()[-lines:])


def wheel_on_path(name: str, package: str, folder: Path) -> None:
    """Make a package importable from a wheel in `.gpu`, where it is not installed; raises `SystemExit`.

    A part of a namespace package (`cuda.bench` beside `cuda.bindings`) is found too: the folder joins the path of the
    package that is there, even where that has an `__init__.py`.

    Args:
        name: how the wheel's file name begins.
        package: e.g. `cuda.bench`.
        folder: to unpack into.
    """
    import importlib
    import importlib.util

    try:
        if importlib.util.find_spec(package) is not None:
            return
    except ModuleNotFoundError:
        pass
    wheels = sorted(WHEELS.glob(f"{name}-*.whl"))
    if not wheels:
        raise SystemExit(f"{package} is neither installed nor is its wheel ({name}-*.whl) in {WHEELS}")
    target = folder / name
    if not target.exists():
        with zipfile.ZipFile(wheels[-1]) as wheel:
            wheel.extractall(target)
    sys.path.insert(0, str(target))
    importlib.invalidate_caches()
    top, _, below = package.partition(".")
    if below:
        parent = importlib.import_module(top)
        if str(target / top) not in list(parent.__path__):
            parent.__path__ = [*parent.__path__, str(target / top)]


def gpu_facts() -> dict[str, Any]:
    """Return what is recorded with every figure: device, driver, clocks, and the day."""
    from evaluators.cuda import CudaDevice

    facts = CudaDevice().describe()
    told: dict[str, Any] = {"device": facts.fingerprint, "uuid": facts.uuid, "date": time.strftime("%Y-%m-%d %H:%M")}
    try:
        from dataclasses import asdict

        from evaluators.cudalib.facts import conditions

        told["conditions"] = asdict(conditions(facts.uuid, 0.0))
    except Exception as error:  # NVML may be closed to us; the figures stand without it
        told["conditions"] = f"unknown: {error}"
    return told
