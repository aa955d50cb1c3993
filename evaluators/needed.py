"""The programs that a kernel's performance cases need, and what the compiler says that each kernel of them uses.

Nothing is compiled or run here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from evo.kernel import Kernel
from evo.records import Binary, Case, Device, LaunchPlan, Role, Workload


@dataclass(frozen=True)
class Needed:
    """One program: the cases that need it, and the plan of each."""

    cases: tuple[Case, ...]
    plans: tuple[LaunchPlan, ...]

    @property
    def plan(self) -> LaunchPlan:
        """A plan that the program is built from; the others' defines and options are the same."""
        return self.plans[0]

    @property
    def names(self) -> tuple[str, ...]:
        """Of the cases."""
        return tuple(case.name for case in self.cases)


@dataclass(frozen=True)
class Use:
    """What one kernel of a program uses; `dynamic_shared_bytes` is the most that a launch of the cases asks for."""

    registers: int | None
    spill_bytes: int | None
    local_bytes: int | None
    static_shared_bytes: int | None
    dynamic_shared_bytes: int
    symbol: str


def programs(kernel: Kernel, workload: Workload, device: Device) -> tuple[Needed, ...]:
    """Return the distinct programs of the performance cases, each case under the configuration that it chooses.

    Raises:
        HeaderError: the header gives no launch for one of the cases.
    """
    groups: dict[tuple[object, ...], list[tuple[Case, LaunchPlan]]] = {}
    for case in workload.role(Role.PERFORMANCE):
        plan = kernel.plan(workload, case, device)
        groups.setdefault((tuple(sorted(plan.defines.items())), plan.options), []).append((case, plan))
    return tuple(
        Needed(tuple(case for case, _ in group), tuple(plan for _, plan in group)) for group in groups.values()
    )


def configuration(plan: LaunchPlan) -> str:
    """Return what tells one program of a kernel from another, in words: tunables, specialised dims, options."""
    return " ".join((*(f"{name}={value}" for name, value in plan.defines.items()), *plan.options))


def uses(binary: Binary, plans: Sequence[LaunchPlan]) -> dict[str, Use]:
    """Return what each kernel of a program uses, by the name that its request has for it.

    Args:
        binary: the program.
        plans: of the cases that need it.
    """
    dynamic: dict[str, int] = {}
    for launch in (launch for plan in plans for launch in plan.launches):
        dynamic[launch.kernel] = max(launch.shared_bytes, dynamic.get(launch.kernel, 0))
    return {
        name: Use(
            used.registers,
            used.spill_bytes,
            used.local_bytes,
            used.static_shared_bytes,
            dynamic.get(name, 0),
            binary.lowered.get(name, name),
        )
        for name, used in binary.resources.items()
    }
