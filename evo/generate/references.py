"""Which reference is believed: a person's own, or a model's that an independent one, or a right kernel, confirms."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from evo.errors import WorkloadError
from evo.generate import asked, checks
from evo.generate.checks import Agreement
from evo.generate.parts import Supplied
from evo.generate.told import Trust
from evo.records import Role, Workload

Ask = Callable[[Any, int], Any]
"""Asks a question of the model with this number, and returns the part."""


@dataclass(frozen=True)
class References:
    """Settles the reference of a workload.

    Attributes:
        supplied: what a person has.
        seed: of the inputs that references are compared on.
        ask: asks for one.
    """

    supplied: Supplied
    seed: int
    ask: Ask

    def settle(self, workload: Workload) -> tuple[str, Trust]:
        """Return the reference's text, and what it is worth.

        Raises:
            WorkloadError: it does not run, or nothing confirms it.
        """
        if self.supplied.reference:
            checks.runs(replace(workload, reference=self.supplied.reference, generated=()), *Role, seed=self.seed)
            return self.supplied.reference, Trust("reference: supplied")
        first = str(self.ask(asked.reference(workload, "reference", self.seed), 0))
        if self.supplied.reference_kernel:
            return first, self._by_kernel(workload, first)
        second = str(self.ask(asked.reference(workload, "second-reference", self.seed), 1))
        found = self._agree(workload, first, second)
        if not found.problem:
            return first, Trust(f"reference: generated; agrees with a second, independently generated one {_on(found)}")
        return self._by_majority(workload, first, second, found.problem)

    def _by_kernel(self, workload: Workload, reference: str) -> Trust:
        whole = checks.confined(workload, reference)
        checks.fits(whole, self.supplied.reference_kernel, "reference.cu")
        judged = checks.judge(whole, self.supplied.reference_kernel, self.seed)
        if judged.problem or judged.skipped:
            why = judged.problem or judged.skipped
            raise WorkloadError(
                f"reference: the generated reference.py and your reference.cu disagree: {why}\nThe way on: say more in the "
                "description, or supply the reference in NumPy (--reference FILE.py)."
            )
        return Trust(f"reference: generated; agrees with the supplied reference.cu on {judged.cases} inputs")

    def _by_majority(self, workload: Workload, first: str, second: str, problem: str) -> tuple[str, Trust]:
        """Ask a third: what two of three say is believed."""
        third = str(self.ask(asked.reference(workload, "third-reference", self.seed), 2))
        for chosen, name in ((first, "first"), (second, "second")):
            found = self._agree(workload, chosen, third)
            if found.problem:
                continue
            checks.runs(checks.confined(workload, chosen), *Role, seed=self.seed)
            other = "second" if name == "first" else "first"
            return chosen, Trust(
                f"reference: generated; two of three independently generated ones agree {_on(found)}; the {other} was "
                f"thrown away ({problem})"
            )
        raise WorkloadError(
            f"reference: three generated references all disagree, so none can be believed; the first two: {problem}\n"
            "The way on: say more in the description (edges, ties, order), or supply it (--reference FILE.py)."
        )

    def _agree(self, workload: Workload, first: str, second: str) -> Agreement:
        return checks.agree(checks.confined(workload, first), checks.confined(workload, second), self.seed)


def _on(found: Agreement) -> str:
    return f"on {found.inputs} inputs to {found.error:.0e}" if found.error else f"on {found.inputs} inputs exactly"
