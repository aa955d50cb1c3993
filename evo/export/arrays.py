"""The arrays of a stored case: inputs, right outputs, and the scale that errors are measured against, as `.npy`."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evo import workload as workloads
from evo.export.folder import File
from evo.records import Case, Parameter, Tolerance, Workload

Array = NDArray[Any]


@dataclass(frozen=True)
class Stored:
    """A case with its inputs and its right outputs."""

    workload: Workload
    case: Case
    inputs: Mapping[str, Array]
    right: workloads.Expected

    @classmethod
    def make(cls, workload: Workload, case: Case, seed: int) -> Stored:
        """Draw a case's inputs and run the reference.

        Raises:
            WorkloadError: the reference fails.
        """
        inputs = workloads.draw_inputs(workload, case, seed)
        return cls(workload, case, inputs, workloads.expected(workload, case, inputs))

    def files(self) -> Iterator[File]:
        """Return the arrays as files, in `cases/<case>/`."""
        folder = f"cases/{self.case.name}"
        for name, array in self.inputs.items():
            yield f"{folder}/{name}.npy", _npy(array)
        for parameter in self.workload.outputs:
            name, value = parameter.name, self.right.values[parameter.name]
            with np.errstate(over="ignore"):  # beyond the type's range, its infinity is right
                stored = value.astype(parameter.dtype) if self.is_exact(parameter) else value
            yield f"{folder}/{name}.expected.npy", _npy(stored)
            if self.is_scaled(parameter):
                yield f"{folder}/{name}.scale.npy", _npy(self.right.scale[name])

    def tolerance(self, output: str) -> Tolerance:
        """Return the tolerance of an output."""
        return self.workload.tolerance.get(output) or self.workload.tolerance.get("") or Tolerance()

    def is_exact(self, output: Parameter) -> bool:
        """Whether an output has to be equal."""
        return np.dtype(output.dtype).kind != "f" or self.tolerance(output.name).exact

    def is_scaled(self, output: Parameter) -> bool:
        """Whether errors are measured against something else than the value itself."""
        scale, values = self.right.scale[output.name], self.right.values[output.name]
        return not self.is_exact(output) and not np.array_equal(scale, np.abs(values), equal_nan=True)


def _npy(array: Array) -> bytes:
    stream = io.BytesIO()
    np.save(stream, np.ascontiguousarray(array), allow_pickle=False)
    return stream.getvalue()
