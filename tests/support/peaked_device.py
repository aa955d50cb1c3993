"""The NumPy device with peaks: case `large` of `scale` cannot honestly take less than 2000 µs when its caches are cold.

Its kernels can be too fast on the first two sets of inputs that a case gets, which are those of validation and timing:
`hurries` stays so, `remembers` is no longer, and `recites` is also wrong. Peaks that cannot be measured are `UNKNOWN`.
"""

from __future__ import annotations

import os
from collections import defaultdict
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from evo.errors import DeviceError
from evo.records import Conditions, Device, Job, JobResult, Peaks
from tests.support.numpy_device import NumpyDevice

UNKNOWN = "EVO_TEST_PEAKS_UNKNOWN"
HURRIED_US = 1460.0
EMPTY_US = 400.0
PEAKS = Peaks(dram_bytes_per_s=8 * 4096 / 2e-3)
seen: dict[int, set[bytes]] = defaultdict(set)
"""Size of a case -> the inputs that this process has seen."""


@dataclass(frozen=True)
class PeakedDevice(NumpyDevice):
    """See the module."""

    def describe(self) -> Device:
        return Device("numpy", "NumPy", "numpy-1", "any", l2_bytes=0, peaks=PEAKS)

    def measured_peaks(self, facts: Device) -> Peaks:
        if UNKNOWN in os.environ:
            raise DeviceError("the GPU is busy")
        assert facts.peaks is not None
        return replace(facts.peaks, dram_bytes_per_s=facts.peaks.dram_bytes_per_s * 0.8)

    def run(self, job: Job) -> JobResult:
        folder = Path(job.folder)
        content = (folder / "x.in").read_bytes()
        seen[len(content)].add(content)
        program = (folder / job.image).read_text()
        result = super().run(job)
        if not job.samples:
            return result
        result = replace(result, conditions=Conditions(1000, 1000, 40, 100.0, floor_us=EMPTY_US))
        if len(content) != 4 * 4096:
            return result
        unseen = len(seen[len(content)]) > 2
        if "recites" in program and unseen:
            np.zeros(4096, np.float32).tofile(folder / "y.out")
        if "hurries" in program or "recites" in program or ("remembers" in program and not unseen):
            count = len(result.samples_us)
            return replace(result, samples_us=(HURRIED_US,) * count, wall_us=(HURRIED_US + 30,) * count)
        return result
