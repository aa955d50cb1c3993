"""Puts profilers' reports into a run's folder, and says once what keeps one from making any."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field, replace
from pathlib import Path

from evo.records import REFERENCE_ID, Evaluation
from evo.runner.observer import Observer
from evo.store import rundir


@dataclass(frozen=True)
class Profiles:
    """The folder `profiles` of a run.

    Attributes:
        folder: of the run.
        observer: hears what is wrong.
    """

    folder: Path
    observer: Observer
    _said: set[str] = field(default_factory=set)

    def keep(self, evaluation: Evaluation) -> Evaluation:
        """Return an evaluation whose profile names a file instead of carrying it."""
        profile = evaluation.profile
        if profile is None:
            return evaluation
        if profile.problem and profile.problem not in self._said:
            self._said.add(profile.problem)
            self.observer.event("not_profiled", message=profile.problem)
        if not profile.report:
            return evaluation
        name = "reference" if evaluation.candidate == REFERENCE_ID else str(evaluation.candidate)
        file = f"profiles/{name}.ncu-rep"
        rundir.write_atomic(self.folder / file, base64.b64decode(profile.report))
        return replace(evaluation, profile=replace(profile, report="", file=file))
