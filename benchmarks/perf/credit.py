"""What credit is worth: gain per dollar with it, with the weights alone, and with the best pair of operator and model.

Simulated runs: each pair improves on its parent with some probability, by some factor, for some price. Regret is how
much less is gained per dollar than by asking the best pair alone, which nobody knows beforehand.

Run: python -m benchmarks.perf.credit [--seeds 100] [--tasks 400]
"""

from __future__ import annotations

import argparse
import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from evo.bandit import TASK_USD, Arm, Credit, cost, gain

WEIGHTS: tuple[tuple[Arm, float], ...] = (
    (("rewrite", 0), 2.0),
    (("edit", 0), 3.0),
    (("crossover", 0), 1.0),
    (("launch", 0), 1.0),
    (("explore", 0), 1.0),
    (("rules", -1), 1.0),
)
"""The operators and weights of the default config, with one model."""


@dataclass(frozen=True)
class Promise:
    """How a pair does: it improves with `probability`, by exp(`gain`) on average, for `usd` on average."""

    probability: float
    gain: float
    usd: float

    @property
    def rate(self) -> float:
        """Gain per dollar, an evaluation's time included."""
        return self.probability * self.gain / (self.usd + TASK_USD)


FAIR = Promise(0.15, 0.08, 0.01)
POOR = Promise(0.04, 0.05, 0.01)
GOOD = Promise(0.3, 0.1, 0.012)
IDLE = Promise(0.04, 0.02, 0.0)
World = Callable[[float], Sequence[Promise]]
"""What every pair promises when a share of the run, from 0 to 1, is over."""

WORLDS: dict[str, World] = {
    "all alike": lambda over: [FAIR] * 6,
    "two differ by half": lambda over: [FAIR, Promise(0.2, 0.09, 0.01), *[FAIR] * 3, Promise(0.1, 0.08, 0.01)],
    "one is good": lambda over: [POOR, POOR, POOR, POOR, GOOD, IDLE],
    "rules gain nothing": lambda over: [*[FAIR] * 5, Promise(0.0, 0.0, 0.0)],
    "the good one changes": lambda over: (
        [POOR, POOR, POOR, POOR, GOOD, IDLE] if over < 0.5 else [GOOD, POOR, POOR, POOR, POOR, IDLE]
    ),
}
Policy = Callable[[Credit, Sequence[Promise]], list[float]]

POLICIES: dict[str, Policy] = {
    "weights alone": lambda credit, promises: [weight for _, weight in WEIGHTS],
    "credit": lambda credit, promises: [share for _, share in credit.shares(WEIGHTS)],
    "the best": lambda credit, promises: [float(one is max(promises, key=lambda p: p.rate)) for one in promises],
}


def run(world: World, policy: Policy, tasks: int, seed: int) -> float:
    """Return what a simulated run gained per dollar."""
    rng = np.random.default_rng(seed)
    credit, gained, spent = Credit(), 0.0, 0.0
    for task in range(tasks):
        promises = world(task / tasks)
        shares = np.array(policy(credit, promises))
        index = int(rng.choice(len(WEIGHTS), p=shares / shares.sum()))
        promise = promises[index]
        ratio = math.exp(-rng.exponential(promise.gain)) if rng.random() < promise.probability else 1.05
        paid = cost(promise.usd * float(rng.lognormal(-0.1, 0.45)), 0)
        gained, spent = gained + gain(1.0, ratio), spent + paid
        credit = credit.told(WEIGHTS[index][0], gain(1.0, ratio), paid)
    return gained / spent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--tasks", type=int, default=400)
    arguments = parser.parse_args()
    print(f"median gain per dollar over {arguments.seeds} seeds of {arguments.tasks} tasks (quartiles), regret")
    for name, world in WORLDS.items():
        found = {
            label: [run(world, policy, arguments.tasks, seed) for seed in range(arguments.seeds)]
            for label, policy in POLICIES.items()
        }
        best = statistics.median(found["the best"])
        for label, gains in found.items():
            low, middle, high = statistics.quantiles(gains, n=4)
            print(f"{name:22} {label:14} {middle:.3f} ({low:.3f} to {high:.3f})  regret {1 - middle / best:.0%}")


if __name__ == "__main__":
    main()
