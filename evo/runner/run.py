"""Begin a run or go on with one: from a config and a workload to a finished folder of records."""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import platform
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaluators.device import Setup
from evaluators.oracle import self_test
from evo.bandit import switched_on
from evo.config import Budget, Config, arms, idle_profile, traits
from evo.errors import ConfigError, WorkloadError
from evo.population import island_count
from evo.records import BASELINE_ID, REFERENCE_ID, Candidate, Comparison, Device, Inherited, Status, Workload
from evo.runner import cluster, devices
from evo.runner.asking import Asking
from evo.runner.crew import Crew
from evo.runner.ledger import Ledger
from evo.runner.loop import PROMPTS, Loop
from evo.runner.mutation import Mutations, candidate_hash
from evo.runner.observer import Observer
from evo.search import Search
from evo.store import Store
from mutators import models

VERSIONED = ("kernel-evo", "ray", "numpy", "optuna", "litellm", "cupy-cuda12x", "cupy-cuda13x")
"""Distributions whose versions a run records."""


UNFINISHED = ("interrupted", PROMPTS)
"""Reasons to stop that say nothing of the search: it goes on later, and nothing is measured at its end yet."""


@dataclass(frozen=True)
class Result:
    """How a run ended.

    Attributes:
        folder: of the run.
        reason: `evaluations`, `idle`, `minutes`, `cost_usd`, `tokens`, `target_speedup`, `prompts` or
            `interrupted`.
        champion: candidate id.
        finale: the champion measured again beside the initial kernel as given; None when interrupted, or when the
            champion is that very kernel.
    """

    folder: Path
    reason: str
    champion: int
    finale: Comparison | None


def run(
    config: Config, workload: Workload, folder: Path, observer: Observer, inherited: tuple[Inherited, ...] = ()
) -> Result:
    """Search from the beginning.

    Args:
        config: what to do.
        workload: whole.
        folder: exists and holds no run yet.
        observer: hears of everything.
        inherited: kernels of an earlier run that are judged first, best first.

    Raises:
        ConfigError: a profile is asked for, and `device: auto` turns out to be none that can be profiled.
        WorkloadError: the oracle self-test fails: a wrong kernel would pass.
        MutatorError: a model cannot be reached at all.
        DeviceError: the device is missing.
        RunError: the initial kernel is not right, or Ray does not start.
    """
    models.check(config.models)
    device_name = devices.choose(config.device)
    device = devices.describe(device_name, config.ray.address)
    _check_oracle(workload, config.seed)
    config = _resolved(config, device_name)
    if idle := idle_profile(config):
        raise ConfigError(f"profile: {idle}")
    initial = Candidate(0, -1, workload.initial, candidate_hash(workload.initial), "initial", (), 0)
    with Store.create(
        folder,
        config=config,
        workload=workload,
        device=device,
        initial=initial,
        search_version=Search.version,
        versions=_versions(),
        inherited=inherited,
    ) as store:
        return _sit(store, config, workload, device, observer)


def resume(folder: Path, observer: Observer, budget: Callable[[Budget], Budget] = lambda old: old) -> Result:
    """Go on with a run that was stopped or killed.

    Args:
        folder: of the run.
        observer: hears of everything.
        budget: returns the budget to go on with; the run's own by default.

    Raises:
        StoreError: no run is there, it is in use, or another search version wrote it.
        DeviceError: the device is missing or not the one that the run began on.
    """
    with Store.open(folder) as store:
        meta = store.meta()
        config = meta.config.model_copy(update={"budget": budget(meta.config.budget)})
        models.check(config.models)
        if config != meta.config:
            store.set_config(config)
        device = devices.describe(config.device, config.ray.address)
        if device.fingerprint != meta.device.fingerprint:
            observer.event("other_device", began_on=meta.device, now=device)
        return _sit(store, config, meta.workload, device, observer)


def _check_oracle(workload: Workload, seed: int) -> None:
    reasons = self_test(workload, seed)
    if reasons:
        raise WorkloadError(
            f"workload {workload.name}: its tolerance would let wrong kernels win:\n  "
            + "\n  ".join(reasons)
            + "\nTighten `tolerance`, or add a correctness or hidden case that tells them apart."
        )


def _resolved(config: Config, device: str) -> Config:
    """Return the config with every `auto` replaced, so that a resumed run decides nothing anew."""
    evaluations = config.budget.evaluations
    islands = island_count(config.search.islands, evaluations)
    credit = "on" if switched_on(config.search.credit, evaluations) and arms(config) > 1 else "off"
    search = config.search.model_copy(update={"islands": islands, "credit": credit})
    return config.model_copy(update={"device": device, "search": search})


def _sit(store: Store, config: Config, workload: Workload, device: Device, observer: Observer) -> Result:
    """One sitting: from Ray's start to its end."""
    observer.event("started", folder=store.folder, workload=workload, device=device, config=config)
    inherited = len(store.meta().inherited)
    search = Search(config, {name: traits(name) for name in config.operators}, inherited)
    store.replay(search)
    core = devices.timing_core(config.device)
    setup = Setup(workload, config.timing, config.tuning, config.seed, workload.initial, core, config.profile)
    with _interrupts() as interrupted, devices.kept_off(core), _ray(config) as ray:
        crew = Crew(ray, config.device, device, setup, config.models, calls=config.search.in_flight)
        mutations = Mutations(store, config, workload, device)
        try:
            loop = Loop(
                store=store,
                search=search,
                asking=Asking(store, mutations, Ledger(store, config), crew, config, observer),
                crew=crew,
                config=config,
                observer=observer,
                interrupted=interrupted,
                clock=_clock(store),
            )
            reason = _work(loop, store)
            finale = None if reason in UNFINISHED else _finale(loop, store, workload)
        finally:
            crew.close()
    store.stop(reason)
    result = Result(store.folder, reason, search.champion, finale)
    observer.event("stopped", result=result)
    return result


def _work(loop: Loop, store: Store) -> str:
    if not store.events():
        loop.evaluate_initial(store.candidate(0))
    loop.asking.learn(loop.interrupted)
    if unlimited := loop.asking.ledger.unlimited():
        loop.observer.event("unpriced", models=unlimited)
    if not loop.interrupted():
        loop.restore()
    return loop.work()


def _finale(loop: Loop, store: Store, workload: Workload) -> Comparison | None:
    """Measure the champion again, beside the initial kernel, reference.cu and baseline.py, where there are."""
    evaluation = store.evaluation(loop.search.champion)
    if evaluation is None:
        return None
    best = (loop.search.champion, evaluation.source)
    comparison = _against_initial(loop, store, best, workload.initial)
    if workload.reference_kernel is not None and not loop.interrupted():
        _against_reference(loop, store, best, workload.reference_kernel)
    if workload.baseline is not None and devices.calls_baselines(loop.config.device) and not loop.interrupted():
        _against_baseline(loop, store, best)
    return comparison


def _against_initial(loop: Loop, store: Store, best: tuple[int, str], initial: str) -> Comparison | None:
    """Compare with the initial kernel as it was given."""
    if best[1] == initial:
        return None
    comparison = loop.compare_now(best, (0, initial))
    if comparison is not None and comparison.status is Status.OK:
        store.set_finale(comparison)
        loop.observer.event("finale", comparison=comparison)
    return comparison


def _against_reference(loop: Loop, store: Store, best: tuple[int, str], source: str) -> None:
    """Judge reference.cu once in the run's life, and compare with it as tuned: it is to be beaten at its best."""
    evaluation = store.meta().reference
    if evaluation is None:
        evaluation = loop.evaluate_now(REFERENCE_ID, source)
        if evaluation is None:
            return
        store.set_reference(evaluation)
        loop.observer.event("reference", evaluation=evaluation)
    if evaluation.status is not Status.OK:
        return
    comparison = loop.compare_now(best, (REFERENCE_ID, evaluation.source))
    if comparison is not None:
        store.set_reference_finale(comparison)
        loop.observer.event("reference_compared", comparison=comparison)


def _against_baseline(loop: Loop, store: Store, best: tuple[int, str]) -> None:
    """Compare with the vendor's library, called as the workload's baseline.py does."""
    comparison = loop.compare_now(best, (BASELINE_ID, ""))
    if comparison is not None:
        store.set_baseline_finale(comparison)
        loop.observer.event("baseline_compared", comparison=comparison)


def _ray(config: Config) -> AbstractContextManager[Any]:
    if config.ray.address != cluster.LOCAL:
        return cluster.joined_ray(config.ray.address)
    # At least two: a candidate's screening must not hold up the compilations that the evaluator waits for.
    num_cpus = max(2, len(os.sched_getaffinity(0)))
    return cluster.local_ray(num_cpus, devices.gpus_here(config.device))


def _clock(store: Store) -> Callable[[], float]:
    before, start = store.elapsed_s(), time.monotonic()
    return lambda: before + time.monotonic() - start


@contextlib.contextmanager
def _interrupts() -> Iterator[Callable[[], bool]]:
    """Turn the first Ctrl-C, SIGTERM or SIGHUP into a flag, and the second into what it always was."""
    seen: list[int] = []
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    if before[signal.SIGHUP] is signal.SIG_IGN:
        del before[signal.SIGHUP]  # under nohup a run outlives its terminal

    def note(number: int, frame: object) -> None:
        if seen:
            signal.signal(number, before[signal.Signals(number)])
            os.kill(os.getpid(), number)
        seen.append(number)

    for number in before:
        signal.signal(number, note)
    try:
        yield lambda: bool(seen)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _versions() -> dict[str, str]:
    versions = {"python": platform.python_version()}
    for name in VERSIONED:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions[name] = importlib.metadata.version(name)
    return versions
