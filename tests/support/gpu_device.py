"""The instant device, one to a GPU that Ray only believes in: which one it is comes from CUDA_VISIBLE_DEVICES.

- `EVO_TEST_STEADY_MS` is what every evaluation takes.
- `EVO_TEST_UNEQUAL` makes each GPU another kind.
- `EVO_TEST_BROKEN` is the GPU that fails whenever it is used.
- `EVO_TEST_DIES` is a draw of the source below which it kills every evaluator, `EVO_TEST_DIES_ONCE` one up to which it
  kills the first: it leaves a note in the folder `EVO_TEST_NOTES`.
"""

from __future__ import annotations

import hashlib
import os
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from evaluators.device import EvaluatorLike, Screened, Setup
from evo.errors import DeviceError
from evo.records import Comparison, Device, Evaluation
from tests.support.instant_device import FINGERPRINT, InstantDevice, InstantEvaluator, draw


@dataclass(frozen=True)
class GpuDevice(InstantDevice):
    """See the module."""

    gpus: ClassVar[int] = 1

    def describe(self) -> Device:
        kind = f" of kind {mine()}" if "EVO_TEST_UNEQUAL" in os.environ else ""
        return Device("gpu", f"GPU {mine()}", FINGERPRINT + kind, "any", uuid=f"GPU-{mine()}")

    def evaluator(self, setup: Setup) -> EvaluatorLike:
        return GpuEvaluator(setup)


class GpuEvaluator(InstantEvaluator):
    """Says in its evaluations' `stage_seconds`, which no model is shown, which GPU it has."""

    def evaluate(self, candidate: int, source: str, screened: Screened | None) -> Evaluation:
        _fail()
        if candidate:
            _die(source)
        time.sleep(_setting("EVO_TEST_STEADY_MS") / 1000)
        return replace(super().evaluate(candidate, source, screened), stage_seconds={f"GPU {mine()}": 0.0})

    def compare(self, challenger: tuple[int, str], champion: tuple[int, str], number: int) -> Comparison:
        _fail()
        return super().compare(challenger, champion, number)


def mine() -> str:
    """Return the GPU that Ray gave to this process."""
    return os.environ.get("CUDA_VISIBLE_DEVICES", "")


def _fail() -> None:
    if mine() == os.environ.get("EVO_TEST_BROKEN"):
        raise DeviceError(f"GPU {mine()} has fallen off the bus")


def _die(source: str) -> None:
    fate = draw(source, "dies")
    if fate < _setting("EVO_TEST_DIES"):
        os._exit(1)
    if fate < _setting("EVO_TEST_DIES_ONCE"):
        note = Path(os.environ["EVO_TEST_NOTES"]) / hashlib.sha256(source.encode()).hexdigest()
        if not note.exists():
            note.touch()
            os._exit(1)


def _setting(name: str) -> float:
    return float(os.environ.get(name, "0"))
