"""Read the kernels of `benchmarks/corpus`, and run any kernel on the host device without a workload."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from evaluators.host import HostDevice
from evo.records import (
    Binary,
    Buffer,
    CompileRequest,
    Direction,
    Job,
    JobResult,
    Launch,
    LaunchPlan,
    Scalar,
    Status,
)

CORPUS = Path(__file__).parents[2] / "benchmarks" / "corpus"
_HEADER = re.compile(r"/\* corpus\n(.*?)\*/", re.DOTALL)
_MARK = re.compile(r"// (?:FAULT|ADVICE) ([\w-]+)$")


@dataclass(frozen=True)
class Sample:
    """One kernel of the corpus; `marks` are (kind, line) of what must be found."""

    name: str
    source: str
    launches: tuple[Launch, ...]
    arrays: Mapping[str, np.ndarray]
    directions: Mapping[str, str]
    timeout_s: float
    marks: tuple[tuple[str, int], ...]


@dataclass
class Ran:
    """What came of compiling and running."""

    binary: Binary
    result: JobResult
    outputs: dict[str, np.ndarray] = field(default_factory=dict)


def samples(kind: str) -> list[Sample]:
    """Return all kernels of `right`, `advice` or `faulty`."""
    return [load(path) for path in sorted((CORPUS / kind).glob("*.cu"))]


def load(path: Path) -> Sample:
    source = path.read_text()
    match = _HEADER.match(source)
    assert match, f"{path} does not begin with a corpus header"
    header = yaml.safe_load(match[1])
    rng = np.random.default_rng(7)
    buffers = {name: str(text).split() for name, text in header["buffers"].items()}
    arrays = {name: _draw(words[1], int(words[2]), words[3:], rng) for name, words in buffers.items()}
    rows = header.get("launches") or [header]
    launches = tuple(_launch(row, path.stem) for row in rows)
    rows = enumerate(source.split("\n"), 1)
    marks = tuple((found[1], number) for number, line in rows if (found := _MARK.search(line)))
    directions = {name: words[0] for name, words in buffers.items()}
    return Sample(path.stem, source, launches, arrays, directions, header.get("timeout_s", 20.0), marks)


def _draw(dtype: str, count: int, how: Sequence[str], rng: np.random.Generator) -> np.ndarray:
    match list(how):
        case ["normal"]:
            return rng.standard_normal(count).astype(dtype)
        case ["uniform"]:
            return rng.random(count).astype(dtype)
        case ["integers", low, high]:
            return rng.integers(int(low), int(high), count).astype(dtype)
        case ["ramp"]:
            return np.arange(count).astype(dtype)
    return np.zeros(count, dtype)


def _three(numbers: Sequence[int]) -> tuple[int, int, int]:
    x, y, z = (*numbers, 1, 1)[:3]
    return x, y, z


def _launch(row: Mapping[str, Any], name: str) -> Launch:
    args = tuple(row["args"])
    return Launch(row.get("kernel", name), _three(row["grid"]), _three(row["block"]), row.get("shared_bytes", 0), args)


def run_sample(sample: Sample, flavour: str, folder: Path, **job: Any) -> Ran:
    job = {"timeout_s": sample.timeout_s, **job}
    return run(sample.source, sample.launches, sample.arrays, sample.directions, folder, flavour, **job)


def run(
    source: str,
    launches: Sequence[Launch],
    arrays: Mapping[str, np.ndarray],
    directions: Mapping[str, str],
    folder: Path,
    flavour: str = "plain",
    scalars: Sequence[Scalar] = (),
    defines: Mapping[str, int] | None = None,
    zero: Sequence[str] = (),
    align: int = 256,
    **job: Any,
) -> Ran:
    """Compile and run; outputs are there when the job's status is OK."""
    device = HostDevice()
    kernels = tuple(dict.fromkeys(launch.kernel for launch in launches))
    binary = device.compile(CompileRequest(source, kernels, defines or {}, (), device.describe().arch, flavour))
    if binary.status is not Status.OK:
        return Ran(binary, JobResult(binary.status, binary.message))
    (folder / "program").write_bytes(binary.image)
    (folder / "program").chmod(0o755)
    buffers = []
    for name, array in arrays.items():
        file = None if directions[name] == "out" else f"{name}.in"
        if file:
            array.tofile(folder / file)
        buffers.append(Buffer(name, str(array.dtype), array.nbytes, Direction(directions[name]), file, align))
    plan = LaunchPlan(tuple(launches), zero=tuple(zero))
    result = device.run(Job(str(folder), "program", plan, tuple(buffers), tuple(scalars), **job))
    ran = Ran(binary, result)
    if result.status is Status.OK:
        for name, array in arrays.items():
            ran.outputs[name] = np.fromfile(folder / f"{name}.out", array.dtype)
    return ran
