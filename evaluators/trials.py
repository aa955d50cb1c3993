"""Launch tuning of one kernel: try configurations, keep the best of each case that holds up, write them down.

What to try next is the tuner's business. Every trial is recorded, the failing and the abandoned ones too.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from evaluators import timing
from evaluators.builder import Programs
from evaluators.hidden import told
from evaluators.lab import CORRECTNESS_TIMEOUT_S, Lab
from evo.errors import HeaderError
from evo.kernel import Kernel
from evo.records import Case, Config, Role, Status, Trial

Fault = tuple[Status, str]
"""Why a configuration must not be used."""

TRIAL_S = 0.05
"""Wall time for one configuration on one case: enough to rank, since winners are measured again."""
TRIAL_WARMUP = 2
"""Untimed launches: hundreds of trials in a row keep a device warm."""
TRIAL_LAUNCHES = 2
"""Timed launches that a configuration gets however slow it is."""
RETRIAL_S = 0.2
"""Wall time for a winner, and for the configuration that it would replace, on fresh inputs."""
AHEAD_SHARE = 0.25
"""Share of the trials that may be built before their forerunners are timed: the model has not heard of those."""
TRIES = 3
"""How many of a case's best configurations may fail validation before the old one is kept."""
FRESH = 4
"""Input set (see `Shots.salt`) of such a measurement; 0 is what tuning sees, 1 to 3 are the final timing's."""
START_S = 0.25
"""What a job may need besides its launches: a device starts the child's clock when the program is ready."""

HOPELESS = 5.0
"""A configuration so many times slower than the best one known on a case is stopped, even while little is known."""

Key = tuple[tuple[str, int], ...]


def tune(
    lab: Lab, programs: Programs, check: Callable[[Case, Config], Fault | None]
) -> tuple[Kernel | None, tuple[Trial, ...]]:
    """Return the kernel with `choose` rules for its performance cases, or None where nothing is gained; and all trials.

    Args:
        lab: with the setup's `tuning.trials` and seed.
        programs: of a kernel that is right on every case.
        check: (case, configuration) -> what is wrong with launching the case so, beyond its answers.
    """
    tuning = _Tuning(lab, programs, check)
    if not programs.kernel.header.tune or not lab.setup.tuning.trials or not tuning.cases:
        return None, ()
    tuning.try_all()
    return tuning.tuned(), tuple(tuning.trials)


class _Tuning:
    def __init__(self, lab: Lab, programs: Programs, check: Callable[[Case, Config], Fault | None]) -> None:
        self._lab = lab
        self._check = check
        self._programs = programs
        self._kernel = programs.kernel
        self.cases = {case.name: case for case in lab.cases(Role.PERFORMANCE)}
        self.trials: list[Trial] = []
        self._best_us: dict[str, float] = {}
        self._verdicts: dict[Key, Fault | None] = {}

    # --- trying -------------------------------------------------------------------------------------------------

    def try_all(self) -> None:
        """Let the tuner propose until it has no more; builds run ahead of timings."""
        from evaluators.tuner import Tuner  # imports Optuna

        setup, header = self._lab.setup, self._kernel.header
        first = [self._old(case) for case in self.cases.values()]
        tuner = Tuner(header.tune, tuple(self.cases), self._valid, setup.tuning.trials, setup.seed, first=first)
        self._lab.supervisor.settle()
        ahead: deque[Config] = deque()
        most = 2 * self._programs.workers
        most = most if tuner.exhaustive else min(most, max(2, int(AHEAD_SHARE * setup.tuning.trials)))
        while True:
            for proposed in tuner.ask(most - len(ahead)):
                self._build(proposed)
                ahead.append(proposed)
            if not ahead:
                return
            config = ahead.popleft()
            tuner.tell(config, self._try(config, tuner.threshold))

    def _old(self, case: Case) -> dict[str, int]:
        """Return the configuration that the kernel came with for a case."""
        return self._kernel.config_for(case.dims)

    def _valid(self, case: str, config: Config) -> bool:
        return self._kernel.satisfies(config, self.cases[case].dims, self._lab.facts)

    def _build(self, config: Config) -> None:
        for name, case in self.cases.items():
            if self._valid(name, config):
                try:
                    self._programs.submit(self._programs.plan(case, config))
                except HeaderError:
                    continue  # recorded when its turn to be timed comes

    def _try(self, config: Config, threshold: Callable[[str], float | None]) -> dict[str, float | None]:
        """Time a configuration on the cases that permit it, up to the first that it fails; return what to tell.

        The cases that the kernel would launch so anyway come first: what happens elsewhere must not leave them untimed.
        """
        seen: dict[str, float | None] = {}
        permitting = [case for name, case in self.cases.items() if self._valid(name, config)]
        for case in sorted(permitting, key=lambda case: self._old(case) != config):
            seen[case.name] = self._try_on(case, config, threshold(case.name))
            if self.trials[-1].status is not Status.OK:
                break
        return seen

    def _try_on(self, case: Case, config: Config, threshold_us: float | None) -> float | None:
        """Time a configuration on a case and record the trial; None where it failed."""
        guess_us = self._best_us.get(case.name)
        rules = self._rules(TRIAL_S, TRIAL_LAUNCHES, threshold_us)
        rules = replace(rules, rounds=1, warmup=min(TRIAL_WARMUP, rules.warmup))
        launches = 1 + timing.first_round(rules, guess_us)
        limit_s = self._limit_s(case, launches, threshold_us)
        taken = self._lab.time(self._programs, case, rules, config=config, guess_us=guess_us, limit_s=limit_s)
        if taken.failed is not None:
            self.trials.append(Trial(case.name, config, taken.failed.status, message=taken.failed.message))
            stopped = taken.failed.status is Status.TIMEOUT and case.name in self._best_us
            return limit_s * 1e6 / launches if stopped else None
        if threshold_us is not None and taken.median_us > threshold_us:
            message = f"abandoned: slower than {threshold_us:.4g} µs"
            self.trials.append(Trial(case.name, config, Status.OK, message=message))
        else:
            self.trials.append(Trial(case.name, config, Status.OK, taken.median_us))
            self._best_us[case.name] = min(taken.median_us, self._best_us.get(case.name, taken.median_us))
        return taken.median_us

    def _limit_s(self, case: Case, launches: int, threshold_us: float | None) -> float:
        """Return how long a job may take: twice so many launches, each as slow as is of any use."""
        if threshold_us is None and case.name not in self._best_us:
            return CORRECTNESS_TIMEOUT_S
        slowest_us = HOPELESS * self._best_us[case.name] if threshold_us is None else threshold_us
        return START_S + 2e-6 * slowest_us * launches

    def _rules(self, budget_s: float, least: int, abandon_us: float | None = None) -> timing.Rules:
        rules = timing.rules(self._lab.setup.timing, budget_s, least)
        return rules if abandon_us is None else replace(rules, abandon_us=abandon_us)

    # --- choosing -----------------------------------------------------------------------------------------------

    def tuned(self) -> Kernel | None:
        """Return the kernel with rules for the winners that hold up; None where every case keeps its configuration."""
        winners = {name: self._winner(case) for name, case in self.cases.items()}
        if all(winners[name] == self._old(case) for name, case in self.cases.items()):
            return None
        return next(filter(self._still_right, self._rewritten(winners)), None)

    def _rewritten(self, winners: Mapping[str, Config]) -> Iterator[Kernel]:
        """Yield the kernel with rules for the winners alone; then, should others need them, with its own behind."""
        rules: dict[Key, Config] = {}
        for name, case in self.cases.items():
            rules.setdefault(_key(case.dims), winners[name])
        kernel = self._kernel.with_choose([(dict(dims), config) for dims, config in rules.items()])
        yield kernel
        kept: dict[str, Config] = {}
        for rule in (*kernel.header.choose, *self._kernel.header.choose):
            kept.setdefault(rule.when.text, rule.values)
        both = [{"when": when, "set": dict(values)} for when, values in kept.items()]
        yield self._kernel.with_header(choose=both)

    def _winner(self, case: Case) -> Config:
        """Return the fastest configuration of a case that is right everywhere and faster on fresh samples."""
        old = self._old(case)
        for config in self._ranked(case):
            if config == old:
                return old
            fault = self._fault(config)
            if fault is None:
                faster, fault = self._afresh(case, config, old)
                if fault is None and not faster:
                    return old
            fault = fault or self._check(case, config)
            if fault is None:
                return config
            self.trials.append(Trial(case.name, config, fault[0], message=f"not used: {fault[1]}"))
        return old

    def _ranked(self, case: Case) -> list[dict[str, int]]:
        """Return the fastest configurations tried on a case."""
        timed = {_key(t.config): t.latency_us for t in self.trials if t.case == case.name and t.latency_us}
        return [dict(key) for key in sorted(timed, key=lambda key: timed[key])[:TRIES]]

    def _afresh(self, case: Case, config: Config, old: Config) -> tuple[bool, Fault | None]:
        """Measure both again on inputs that tuning has not seen: the least of many noisy figures is luck."""
        rules = self._rules(RETRIAL_S, 5)
        new = self._lab.time(self._programs, case, rules, config=config, salt=FRESH)
        if new.failed is not None:
            return False, (new.failed.status, f"case {case.name!r}, on other inputs: {new.failed.message}")
        before = self._lab.time(self._programs, case, rules, config=old, salt=FRESH)
        return before.failed is not None or new.median_us < before.median_us, None

    def _fault(self, config: Config) -> Fault | None:
        """Say on which correctness or hidden case a configuration fails. Each is validated once."""
        key = _key(config)
        if key not in self._verdicts:
            self._verdicts[key] = self._validated(config)
        return self._verdicts[key]

    def _validated(self, config: Config) -> Fault | None:
        for case in self._lab.cases(Role.CORRECTNESS, Role.HIDDEN):
            if not self._kernel.satisfies(config, case.dims, self._lab.facts):
                continue
            outcome = self._lab.validate(self._programs, case, config)
            if outcome.status is not Status.OK:
                return outcome.status, told(case, outcome.status, outcome.message, outcome.findings)
        return None

    def _still_right(self, kernel: Kernel) -> bool:
        """Validate the cases for which the new rules choose another configuration than the old ones did."""
        for case in self._lab.cases(Role.CORRECTNESS, Role.HIDDEN):
            config = kernel.config_for(case.dims)
            if config == self._old(case):
                continue
            permitted = kernel.satisfies(config, case.dims, self._lab.facts)
            if not permitted or self._fault(config) or (case.role is Role.CORRECTNESS and self._check(case, config)):
                return False
        return True


def _key(numbers: Config) -> Key:
    return tuple(sorted(numbers.items()))
