"""What the tests of the offline rules share: kernels run on the host device, and compared bit by bit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from evaluators import prescreen
from evaluators.device import Setup
from evaluators.host import HostDevice
from evaluators.lab import Lab
from evo import kernel as kernels
from evo.config import Timing, Tuning
from evo.records import Case, Config, Direction, Draw, Parameter, Role, Status, Tolerance, Workload


@contextmanager
def lab_for(workload: Workload) -> Iterator[Lab]:
    """A lab on the host device."""
    lab = Lab(HostDevice(), Setup(workload, Timing(), Tuning(), 0, workload.initial))
    try:
        yield lab
    finally:
        lab.close()


def some_config(source: str, lab: Lab, rng: np.random.Generator) -> Config | None:
    """A random configuration that every correctness and hidden case permits, or None where none was found."""
    kernel = kernels.parse(source)
    cases = lab.cases(Role.CORRECTNESS, Role.HIDDEN)
    for _ in range(300):
        config = {name: int(rng.choice(values)) for name, values in kernel.header.tune.items()}
        if config and all(kernel.satisfies(config, case.dims, lab.facts) for case in cases):
            return config
    return None


def faults(source: str, lab: Lab, rng: np.random.Generator) -> list[str]:
    """What is wrong with a kernel: races and overruns, and wrong answers with its own and a random configuration."""
    screened = prescreen.screen(source, lab.setup.workload, lab.facts, 0)
    found = [] if screened.state == "passed" else [f"{screened.state}: {screened.message}{screened.note}"]
    programs = lab.programs(source)
    for config in (None, some_config(source, lab, rng)):
        for case in lab.cases(Role.CORRECTNESS, Role.HIDDEN):
            outcome = lab.validate(programs, case, config)
            if outcome.status is not Status.OK:
                found.append(f"{case.name} with {config}: {outcome.status}: {outcome.message}")
    return found


ELEMENTWISE = Workload(
    name="elementwise",
    description="Any function of a and idx, element by element; two kernels are compared with each other.",
    entry="f",
    parameters=(
        # Whole numbers: results are exact, so that a compiler's fused multiply-adds cannot change a bit.
        Parameter("a", "float32", Direction.IN, ("N",), draw=Draw("ramp", -20)),
        Parameter("idx", "int32", Direction.IN, ("N",), draw=Draw("integers", 0, 50)),
        Parameter("out", "float32", Direction.OUT, ("N",)),
        Parameter("N", "int32", Direction.SCALAR),
    ),
    cases=tuple(Case(f"n{n}", Role.HIDDEN, {"N": n}) for n in (1, 50, 64, 333)),
    # The bits are compared with another kernel's; the reference only has to let every finite result pass.
    tolerance={"": Tolerance(atol=1e30)},
    deterministic=False,
    fast_math=False,
    flops="N",
    bytes_moved="8 * N",
    reference="import numpy as np\n\ndef reference(inputs, dims):\n    return {'out': np.zeros(dims['N'])}\n",
    initial="",
)


def bits(source: str, lab: Lab, config: Config | None = None) -> list[str]:
    """The digest of a kernel's output on every case of its workload."""
    programs = lab.programs(source)
    outcomes = [lab.validate(programs, case, config) for case in lab.setup.workload.cases]
    assert all(outcome.status is Status.OK for outcome in outcomes), [(o.status, o.message) for o in outcomes]
    return [outcome.digest for outcome in outcomes]
