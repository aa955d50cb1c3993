"""One device at work on one workload: its child, its cases' data, its builds; what stages and comparisons share.

Here a kernel is run on a case, for correctness or for time. What follows from the outcome is decided elsewhere.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from evaluators import timing
from evaluators.baseline import Baseline
from evaluators.bench import Bench, Outcome, Program, Shots
from evaluators.builder import LocalBuilder, Programs, request
from evaluators.cases import CaseCache
from evaluators.device import DevicePlugin, Setup
from evaluators.scratch import Scratch
from evaluators.supervisor import Supervisor, spare_for
from evo import kernel as kernels
from evo.errors import DeviceError, HeaderError
from evo.records import Case, Config, Device, Job, Peaks, Role, Status

CORRECTNESS_TIMEOUT_S = 5.0
"""Correctness cases are small: what takes seconds there does not end."""
SECRET_SALT = 100
UNSEEN_SALT = 200
SECRET_SETS = 2
"""Sets of inputs that only launches get which a kernel cannot tell from others; each set's outputs cost the reference's
time once."""
_SECRET = 7
"""Tells this room's random numbers from those that others draw from the run's seed."""


class Lab:
    """Owns a harness child with its spare, scratch folders, cached case data and, where none is given, a builder.

    Args:
        device: the plug-in; its `run` is called in the harness child alone.
        setup: see `Setup`.
    """

    def __init__(self, device: DevicePlugin, setup: Setup) -> None:
        self.plugin = device
        self.setup = setup
        self.facts: Device = device.describe()
        self.peaks, self.peaks_unknown = _measured_peaks(device, self.facts)  # before a child has the GPU
        self._own_builder = None if setup.builder else LocalBuilder(device, avoid=setup.core)
        self._scratch = Scratch()
        self.supervisor = Supervisor(plugin_name(device), spare_for(device, self.facts))
        data = CaseCache(setup.workload, setup.seed)
        self._isolated = bool(getattr(device, "isolates", False))
        self._bench = Bench(setup.workload, data, self.supervisor.run, self._scratch, isolated=self._isolated)
        self._secret = np.random.default_rng((setup.seed, _SECRET))

    def close(self) -> None:
        """Stop the children and the builds, and remove scratch folders. May be called twice."""
        self.supervisor.close()
        self._bench.close()
        self._scratch.close()
        if self._own_builder:
            self._own_builder.close()

    def cases(self, *roles: Role) -> tuple[Case, ...]:
        """Return the workload's cases of these roles."""
        return self.setup.workload.role(*roles)

    def programs(self, source: str) -> Programs:
        """Return the programs of a source; raises `HeaderError`."""
        builder = self.setup.builder or self._own_builder
        assert builder is not None
        return Programs(kernels.parse(source), self.setup.workload, self.facts, builder)

    @functools.cached_property
    def anchor(self) -> Programs:
        """The programs of the anchor kernel, which is trusted."""
        return self.programs(self.setup.anchor)

    def validate(self, programs: Programs, case: Case, config: Config | None = None) -> Outcome:
        """Run a kernel on a case; a shown one twice, the second time in another order after an untimed launch.

        A kernel that is right on its first launch alone, or whose result depends on the order of blocks and threads,
        fails the second. Where the workload is `deterministic` both results must be the same bits.
        """
        program = self._program(programs, case, config)
        if isinstance(program, Outcome):
            return program
        deterministic = self.setup.workload.deterministic
        once = Shots(order=self.setup.seed + 1, timeout_s=CORRECTNESS_TIMEOUT_S, digest=deterministic)
        first = self._bench.run(program, case, once)
        if first.status is not Status.OK or case.role is not Role.CORRECTNESS:
            return first
        again = self._bench.run(program, case, replace(once, order=0, warmup=1, samples=1))
        if again.status is not Status.OK:
            return replace(again, message=f"launched once more on the same inputs: {again.message}")
        if deterministic and first.digest != again.digest:
            return replace(again, status=Status.WRONG_ANSWER, message=_NOT_DETERMINISTIC)
        return first

    def time(
        self,
        programs: Programs | Baseline,
        case: Case,
        rules: timing.Rules,
        *,
        config: Config | None = None,
        salt: int = 0,
        guess_us: float | None = None,
        limit_s: float = CORRECTNESS_TIMEOUT_S,
    ) -> timing.Measurement[Outcome]:
        """Time a kernel on a case; every job's outputs are validated.

        Args:
            programs: of the kernel, or the baseline.
            case: to launch it on.
            rules: how many samples.
            config: launch configuration; None means the header's own choice.
            salt: which set of inputs.
            guess_us: about how long a launch takes, where somebody knows.
            limit_s: what one job may take.
        """
        self.supervisor.settle()
        program = self._program(programs, case, config)
        if isinstance(program, Outcome):
            return timing.Measurement((), (), 0.0, program, failed=program)
        return timing.measure(self._shoot(program, case, salt, limit_s), rules, guess_us)

    def _shoot(self, program: Program, case: Case, salt: int, limit_s: float) -> Callable[[int, int], Outcome]:
        flush_bytes = 2 * self.facts.l2_bytes if self.setup.timing.cold else 0
        base = Shots(salt, flush_bytes=flush_bytes, core=self.setup.core, timeout_s=limit_s)

        def shoot(warmup: int, samples: int) -> Outcome:
            secretly = self._secretly(samples)
            outcome = self._bench.run(program, case, self._shots(base, warmup, secretly))
            if outcome.status is Status.OK and len(outcome.samples_us) != secretly:
                found = f"expected {secretly} latencies, found {len(outcome.samples_us)}"
                return replace(outcome, status=Status.UNSAFE, message=f"the program spoilt its own report: {found}")
            return outcome

        return shoot

    def unseen(self) -> int:
        """Return a set of inputs that is kept for a second look at a kernel that is too good to be true."""
        return UNSEEN_SALT + int(self._secret.integers(SECRET_SETS))

    def _shots(self, base: Shots, warmup: int, samples: int) -> Shots:
        """Add how often to launch, and where a device can do it, which launch gets inputs of its own."""
        shots = replace(base, warmup=warmup, samples=samples)
        if not self._isolated:
            return shots
        salt, at = SECRET_SALT + int(self._secret.integers(SECRET_SETS)), int(self._secret.integers(samples))
        return replace(shots, secret_salt=salt, secret_at=at)

    def _secretly(self, samples: int) -> int:
        """Return how many launches to time where `samples` are wanted: 1 to twice as many, as many on average.

        Outputs are validated behind a job's last launch. A kernel that can count its launches, by whatever memory the
        device has not cleared, would work on that one alone if it could tell which it is; now each may be the last.
        """
        return int(self._secret.integers(1, 2 * samples))

    @contextlib.contextmanager
    def laid_out(self, programs: Programs, case: Case, timeout_s: float, *, lines: bool = False) -> Iterator[Job]:
        """Lay out a job that `evaluators.replay` can run, while nothing of ours runs on the device.

        Args:
            programs: of a kernel that was evaluated.
            case: to launch it on.
            timeout_s: for the replay.
            lines: build it once more, so that tools can name the lines of the kernel's text.

        Raises:
            DeviceError: it can no longer be built.
        """
        program = self._program_with_lines(programs, case) if lines else self._program(programs, case, None)
        if isinstance(program, Outcome):
            raise DeviceError(f"a kernel that was built before does not build for a tool: {program.message}")
        self.supervisor.settle()
        with self._bench.laid_out(program, case, Shots(timeout_s=timeout_s)) as job:
            yield job

    def _program_with_lines(self, programs: Programs, case: Case) -> Program | Outcome:
        plan = programs.plan(case)
        binary = self.plugin.compile(request(programs.kernel, plan, self.facts.arch, "lineinfo"))
        if binary.status is not Status.OK:
            return Outcome(binary.status, binary.message)
        return Program(plan, binary.image, binary.lowered)

    def _program(self, programs: Programs | Baseline, case: Case, config: Config | None) -> Program | Outcome:
        if isinstance(programs, Baseline):
            return programs.program(case)
        try:
            plan = programs.plan(case, config)
        except HeaderError as error:
            return Outcome(Status.BAD_LAUNCH, str(error))
        binary = programs.submit(plan).result()
        if binary.status is not Status.OK:
            return Outcome(binary.status, binary.message)
        return Program(plan, binary.image, binary.lowered)


def _measured_peaks(device: DevicePlugin, facts: Device) -> tuple[Peaks | None, str]:
    """Return what the device reaches, or None and why that is not known; "" where it does not tell peaks at all."""
    measured = getattr(device, "measured_peaks", None)
    if measured is None:
        return None, ""
    try:
        return measured(facts), ""
    except DeviceError as error:
        return None, str(error)


_NOT_DETERMINISTIC = (
    "two launches on the same inputs gave different bits, and this workload must be deterministic: the result depends "
    "on the order of blocks or threads"
)


def time_limit_s(trusted: timing.Measurement[Outcome]) -> float:
    """Return how long a timed job may take: who needs twenty times as long as a trusted kernel is no progress."""
    return CORRECTNESS_TIMEOUT_S if trusted.failed else 3.0 + 20 * trusted.wall_s


def plugin_name(device: DevicePlugin) -> str:
    """Return the name under which the harness finds a plug-in: its module's, or its `.py` path."""
    module = type(device).__module__
    if module.startswith("evaluators."):
        return module.removeprefix("evaluators.")
    return str(Path(inspect.getfile(type(device))).resolve())
