"""How far from the best launch configuration a tuner ends: a race on synthetic launch spaces.

The spaces are made to look like those of tiled kernels: block shape, outputs per thread, unrolling and vector width,
with optima off the centre, interactions (registers, coalescing, divisibility) and a rugged part that no model can
learn. 5,184 points, of which 3,348 are valid. Regret is the best latency found over the best of all, minus one.

Run: python -m benchmarks.perf.tuner_regret [--trials 60] [--seeds 20]
"""

from __future__ import annotations

import argparse
import functools
import itertools
import time
from collections.abc import Callable, Iterator
from math import log2

import numpy as np
import optuna

from evaluators.tuner import Tuner
from evo.records import Config

TUNE = {
    "BX": (2, 4, 8, 16, 32, 64, 128, 256),
    "BY": (1, 2, 4, 8, 16, 32),
    "TM": (1, 2, 4, 8),
    "TN": (1, 2, 4),
    "UNROLL": (1, 2, 4),
    "VEC": (1, 2, 4),
}
OPTIMA = ((8, 5, 3), (7, 6, 4), (9, 4, 2))
"""Of each landscape: log2 of the best number of threads, of the best BX, of the best outputs per thread."""

Search = Callable[[int, int, int], Iterator[Config]]


def valid(config: Config) -> bool:
    threads = config["BX"] * config["BY"]
    return 32 <= threads <= 1024 and (config["BX"] >= 4 or config["BY"] <= 16)


def latency(config: Config, landscape: int) -> float:
    bx, by, tm, tn, unroll, vec = (config[name] for name in TUNE)
    threads, wide, outputs = OPTIMA[landscape]
    smooth = 0.06 * (log2(bx * by) - threads) ** 2 + 0.05 * (log2(bx) - wide) ** 2
    smooth += 0.07 * (log2(tm * tn) - outputs) ** 2 + 0.02 * (log2(tm / tn) - 1) ** 2
    registers = 16 + 6 * tm * tn + 2 * unroll + 3 * vec * tn
    cliffs = [
        1 + 0.01 * max(0, registers - 96),
        1.5 if registers * bx * by > 65536 else 1.0,
        1.3 if vec == 4 and bx < 16 else 1.0,
        1.2 if vec > tn else 1.0,
        {1: 1.08, 2: 1.0, 4: 0.97 if tm * tn < 8 else 1.1}[unroll],
        0.93 if bx * tn % 64 == 0 and landscape != 1 else 1.0,
        0.88 if bx * vec % 128 == 0 and landscape == 1 else 1.0,
    ]
    values = tuple(config[name] for name in TUNE)
    rugged = 1 + 0.15 * _noise(values, landscape + 7) * _noise(values[:2], landscape + 3)
    return float((1 + smooth) * np.prod(cliffs) * rugged)


def _noise(values: tuple[int, ...], seed: int) -> float:
    """Return a number in [0, 1) that depends on the values alone (multiplicative congruential hashing)."""
    state = seed
    for value in values:
        state = (state * 1000003 + value * 7919 + 12345) % (2**31 - 1)
    return (state * 48271 * 48271 % (2**31 - 1)) / (2**31 - 1)


ALL = [dict(zip(TUNE, values, strict=True)) for values in itertools.product(*TUNE.values())]
VALID = [config for config in ALL if valid(config)]


def random_search(landscape: int, seed: int, trials: int) -> Iterator[Config]:
    """Yield valid configurations, drawn without repetition."""
    order = np.random.default_rng(seed).permutation(len(VALID))[:trials]
    return (VALID[int(index)] for index in order)


def in_order(landscape: int, seed: int, trials: int) -> Iterator[Config]:
    """Yield valid configurations in the order of the product."""
    return iter(VALID[:trials])


def plain_tpe(landscape: int, seed: int, trials: int) -> Iterator[Config]:
    """Yield what TPE wishes for on the tunables as they stand; an invalid point costs a trial and a penalty."""
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed))
    for _ in range(trials):
        trial = study.ask()
        config = {name: values[trial.suggest_int(name, 0, len(values) - 1)] for name, values in TUNE.items()}
        study.tell(trial, latency(config, landscape) if valid(config) else 10.0)
        yield config


def tuner(landscape: int, seed: int, trials: int) -> Iterator[Config]:
    """Yield what the product's tuner asks for."""
    search = Tuner(TUNE, ["case"], lambda _, config: valid(config), trials, seed)
    while batch := search.ask(1):
        yield batch[0]
        search.tell(batch[0], {"case": latency(batch[0], landscape)})


SEARCHES: dict[str, Search] = {
    "in order": in_order,
    "random": random_search,
    "plain TPE": plain_tpe,
    "tuner": tuner,
}


@functools.cache
def optimum(landscape: int) -> float:
    return min(latency(config, landscape) for config in VALID)


def regret(search: Search, landscape: int, seed: int, trials: int) -> float:
    """Return how much slower than the best of all the best found configuration is; 0.05 is 5 %."""
    found = [latency(config, landscape) for config in search(landscape, seed, trials) if valid(config)]
    return min(found, default=float("inf")) / optimum(landscape) - 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=60)
    parser.add_argument("--seeds", type=int, default=20)
    arguments = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    print(f"{len(ALL)} points, {len(VALID)} valid, {arguments.trials} trials, {arguments.seeds} seeds")
    print(f"{'median (mean) regret in %':26}" + "".join(f"{f'landscape {i}':>16}" for i in range(len(OPTIMA))))
    for name, search in SEARCHES.items():
        cells = []
        began = time.perf_counter()
        for landscape in range(len(OPTIMA)):
            regrets = [regret(search, landscape, seed, arguments.trials) for seed in range(arguments.seeds)]
            cells.append(f"{100 * np.median(regrets):8.1f} ({100 * np.mean(regrets):5.1f})")
        print(f"{name:26}" + "".join(cells) + f"   {time.perf_counter() - began:5.1f} s")


if __name__ == "__main__":
    main()
