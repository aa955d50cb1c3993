"""What a run takes over from an earlier one: its best kernels, and its config as far as it was chosen. Pure.

Only records of the earlier run are looked at, never its search, so that one of any version can be taken over.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence

from evo import config as configs
from evo.bandit import switched_on
from evo.config import Config
from evo.errors import ConfigError
from evo.population import ELITES_PER_CELL, Cell, cell_of, island_count
from evo.records import Candidate, Evaluation, Inherited, Status

MOST = 8
"""Kernels that are taken over at most: as many as tasks run at once by default, so that all are judged in one go."""


def kernels(
    run: str, candidates: Mapping[int, Candidate], evaluations: Mapping[int, Evaluation], champion: int
) -> tuple[Inherited, ...]:
    """Return the best kernels of a run, with their tuned launch rules: its champion, then elites of different cells.

    Args:
        run: its name.
        candidates: by id; the initial kernel, 0, is left out, since the new run begins with it anyway.
        evaluations: by candidate.
        champion: id.
    """
    ratios = {number: one.ratio for number, one in evaluations.items() if number and _right(one)}
    ranked = sorted(ratios, key=lambda number: (ratios[number], number))
    places: Counter[tuple[int, Cell]] = Counter()
    elites: list[tuple[int, int, int]] = []  # the fastest of every cell first, then the second of each, and so on
    for rank, number in enumerate(ranked):
        niche = (candidates[number].island, cell_of(evaluations[number].descriptors))
        elites.append((places[niche], rank, number))
        places[niche] += 1
    chosen = [number for place, _, number in sorted(elites) if place < ELITES_PER_CELL and number != champion]
    best = ([champion] if champion in ratios else []) + chosen
    return tuple(_inherited(run, candidates[number], evaluations[number]) for number in best[:MOST])


def _right(evaluation: Evaluation) -> bool:
    return evaluation.status is Status.OK and evaluation.ratio is not None


def _inherited(run: str, candidate: Candidate, evaluation: Evaluation) -> Inherited:
    origin = f"kernel {candidate.id} of {run} ({candidate.operator})"
    note = f"{origin}: {candidate.note}" if candidate.note else origin
    return Inherited(evaluation.source or candidate.source, note)


def config(old: Config, overrides: Sequence[str]) -> Config:
    """Return the config to go on with in a new run.

    Args:
        old: of the earlier run, resolved.
        overrides: `key.path=value` each.

    Raises:
        ConfigError: an override is wrong, or would change the workload.
    """
    for override in overrides:
        if override.split("=")[0].strip() == "workload":
            raise ConfigError(f"--set {override}: --from takes the workload of the earlier run; drop one of the two")
    return configs.load(json.dumps(_chosen(old, overrides)), overrides)


def _chosen(old: Config, overrides: Sequence[str]) -> dict[str, object]:
    """Return a resolved config without what only followed from the rest of it, so that it may follow anew."""
    data = old.model_dump(mode="json")
    evaluations = old.budget.evaluations
    if old.search.islands == island_count("auto", evaluations):
        del data["search"]["islands"]
    credit = switched_on("auto", evaluations) and configs.arms(old) > 1
    if old.search.credit == ("on" if credit else "off"):
        del data["search"]["credit"]
    if not old.models:  # it says nothing of how to ask one, and what it may cost
        del data["models"], data["tools"], data["budget"]["cost_usd"]
        if any(override.startswith("models") and override != "models=[]" for override in overrides):
            del data["operators"]
    return data
