"""How far an oracle can be trusted, in a sentence; and the last word on its cases and its tolerance."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path

from evaluators.oracle import self_test
from evo.errors import WorkloadError
from evo.generate import cases as mechanical
from evo.generate import checks
from evo.generate.checks import Judged
from evo.generate.contract import Contract, with_cases
from evo.records import Workload


@dataclass(frozen=True)
class Trust:
    """What was checked, said in one sentence."""

    sentence: str

    def also(self, words: str) -> Trust:
        """Return it with more words."""
        return Trust(f"{self.sentence}; {words}")

    def with_kernel(self, judged: Judged, *, supplied: bool) -> Trust:
        """Return it with what running the initial kernel has come to."""
        whose = "the supplied initial kernel" if supplied else "a generated initial kernel"
        if judged.skipped:
            return self.also(f"{whose} was not run here, because the CPU cannot: {judged.skipped}")
        return self.also(
            f"and with {whose} on {judged.cases} inputs (error at most {judged.error:.2g} of the tolerance)"
        )


def settled(
    contract: Contract, workload: Workload, folder: Path, seed: int, trust: Trust, *, keep: Collection[str]
) -> tuple[Contract, Trust]:
    """Return the contract with the cases that may stay, its tolerance having passed the oracle self-test.

    Args:
        contract: that was accepted.
        workload: its workload, with the reference.
        folder: of the workload.
        seed: of the inputs.
        trust: so far.
        keep: names of cases that a person wrote: none of them goes.

    Raises:
        WorkloadError: wrong outputs would pass, or no case reaches a tile's tail any more.
    """
    unfair = tuple(name for name in checks.ill_posed(workload, seed) if name not in keep)
    if unfair:
        kept = mechanical.without(workload.cases, unfair)
        contract = with_cases(contract, kept, folder)
        trust = trust.also(
            f"left out, because inputs that differ by a rounding error differ by more than the tolerance in their "
            f"results: {', '.join(unfair)}"
        )
    whole = replace(contract.workload, reference=workload.reference, generated=workload.generated)
    if reasons := self_test(whole, seed):
        raise WorkloadError(
            "contract: wrong outputs would pass its tolerance:\n  "
            + "\n  ".join(reasons)
            + "\nThe way on: give --input-cases with a `tolerance` and cases that tell them apart."
        )
    return contract, trust
