"""The questions for each part: their prompts, and the checks that an answer has to pass before it is taken.

Reading a contract is pure; a reference runs in the sandbox and a kernel on the host device before either is accepted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from evo.generate import checks, forms, prompts, questions
from evo.generate.checks import Judged
from evo.generate.contract import Contract, assemble
from evo.generate.parts import Supplied
from evo.generate.questions import Question, Unusable
from evo.generate.signature import Signature
from evo.records import ModelReply, Role, Workload


def contract(
    supplied: Supplied, known: Signature | None, own: Mapping[str, Any], folder: Path, generated: Sequence[str]
) -> Question[Contract]:
    """Ask for the contract.

    Args:
        supplied: what a person has.
        known: the signature, whole or without shapes.
        own: the person's cases, and what else of workload.yaml they know.
        folder: of the workload.
        generated: which of signature and cases are wanted.
    """
    signature, cases = "signature" in generated, "cases" in generated
    titles = {
        "The signature, as given": supplied.signature,
        "The kernel, whose parameters and names have to be kept": supplied.kernel,
        "A kernel that is known to be right": supplied.reference_kernel,
        "The reference, as given": supplied.reference,
        "The cases, as given": supplied.cases,
    }
    given = {title: text for title, text in titles.items() if text}

    def read(reply: ModelReply) -> Contract:
        fields = forms.tidy(questions.json_object(reply))
        if known is not None and not known.complete:
            if misfit := known.misfit(fields.get("parameters") or []):
                raise Unusable(f"the parameters do not fit the signature: {misfit}")
            fields["entry"] = known.entry or fields.get("entry")
        elif known is not None:
            fields |= {"entry": known.entry or fields.get("entry"), "parameters": list(known.parameters)}
        return assemble(supplied.description, fields | dict(own), folder, generated=generated, own_cases=not cases)

    return Question(
        "contract",
        prompts.SYSTEM,
        prompts.contract(supplied.description, given, signature=signature, cases=cases),
        lambda problem: prompts.again("contract", problem),
        read,
        prompts.schema(signature=signature, cases=cases),
    )


def reference(workload: Workload, name: str, seed: int) -> Question[str]:
    """Ask for a reference; every one but the first is independent of it and runs on the small cases alone."""
    independent = name != "reference"
    roles = checks.JUDGED if independent else tuple(Role)

    def read(reply: ModelReply) -> str:
        text = questions.python_file(reply)
        checks.runs(checks.confined(workload, text), *roles, seed=seed)
        return text

    return Question(
        name,
        prompts.SYSTEM,
        prompts.reference(workload, name, independent=independent),
        lambda problem: prompts.again("reference", problem),
        read,
    )


def kernel(workload: Workload, seed: int, judged: Callable[[Judged], object]) -> Question[str]:
    """Ask for the initial kernel; `judged` hears what running it has come to."""

    def read(reply: ModelReply) -> str:
        source = questions.kernel_file(reply)
        checks.fits(workload, source, "initial.cu")
        found = checks.judge(workload, source, seed)
        if found.problem or found.skipped:
            raise Unusable(found.problem or f"use plain CUDA C++ that a CPU can run too: {found.skipped}")
        judged(found)
        return source

    return Question(
        "kernel",
        prompts.KERNEL_SYSTEM,
        prompts.kernel(workload),
        lambda problem: prompts.again("kernel", problem),
        read,
    )
