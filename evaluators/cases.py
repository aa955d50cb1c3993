"""What the cases of a workload hold: inputs drawn, outputs expected, and the files in which inputs reach a child."""

from __future__ import annotations

import contextlib
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
from numpy.typing import NDArray

from evaluators.scratch import Scratch
from evo import workload as workloads
from evo.records import Case, Scalar, Workload

Array = NDArray[Any]

LEAST_CACHE_BYTES = 1 << 30
"""Those of every shipped workload fit several times."""
CACHE_SHARE = 8
"""On larger machines one part of so many of the memory is used."""


@dataclass(frozen=True)
class CaseData:
    """Inputs, scalars and expected outputs of one case for one seed, under a name of their own.

    `accepted` holds the digest of the last output, by name, that was found right, and its error: most outputs of a
    kernel have the same bits, whatever its launch configuration.
    """

    key: str
    inputs: Mapping[str, Array]
    scalars: tuple[Scalar, ...]
    expected: workloads.Expected
    accepted: dict[str, tuple[str, float]] = field(default_factory=dict, compare=False, repr=False)

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        held = (*self.inputs.values(), *self.expected.values.values(), *self.expected.scale.values())
        return sum(array.nbytes for array in held)

    def write(self, folder: Path, suffix: str) -> None:
        """Write every input to `<name><suffix>`."""
        for name, array in self.inputs.items():
            array.tofile(folder / f"{name}{suffix}")


class CaseCache:
    """Draws inputs and computes expected outputs, once per (case, salt) while there is room."""

    def __init__(self, workload: Workload, seed: int, limit_bytes: int | None = None) -> None:
        self._workload = workload
        self._seed = seed
        self._limit_bytes = limit_bytes or max(LEAST_CACHE_BYTES, psutil.virtual_memory().total // CACHE_SHARE)
        self._kept: OrderedDict[tuple[str, int], CaseData] = OrderedDict()

    def get(self, case: Case, salt: int = 0) -> CaseData:
        """Return the data of a case; `salt` 0 is the set that correctness is judged on."""
        key = (case.name, salt)
        if key not in self._kept:
            self._kept[key] = self._draw(case, salt)
            self._shrink()
        self._kept.move_to_end(key)
        return self._kept[key]

    def _draw(self, case: Case, salt: int) -> CaseData:
        inputs = workloads.draw_inputs(self._workload, case, self._seed + 1_000_003 * salt)
        expected = workloads.expected(self._workload, case, inputs)
        return CaseData(f"{case.name}.{salt}", inputs, workloads.scalars(self._workload, case), expected)

    def _shrink(self) -> None:
        while len(self._kept) > 1 and sum(data.nbytes for data in self._kept.values()) > self._limit_bytes:
            self._kept.popitem(last=False)


class SharedInputs:
    """Input files that are written once and linked into the folders of many jobs, which must only read them."""

    def __init__(self, scratch: Scratch) -> None:
        self._scratch = scratch
        self._open = contextlib.ExitStack()
        self._written: dict[str, Path] = {}

    def link(self, data: CaseData, folder: Path, suffix: str) -> None:
        """Make every input appear as `<name><suffix>` in a folder."""
        if data.key not in self._written:
            self._written[data.key] = home = self._open.enter_context(self._scratch.folder(data.nbytes))
            data.write(home, "")
        try:
            for name in data.inputs:
                (folder / f"{name}{suffix}").hardlink_to(self._written[data.key] / name)
        except OSError:  # one is in memory, the other, for want of room, on disk
            data.write(folder, suffix)

    def close(self) -> None:
        """Remove the files."""
        self._open.close()
        self._written = {}
