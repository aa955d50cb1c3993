"""From the parts that there are to a whole workload: asks for what is missing, checks all of it, says what it is worth.

The flow alone: what is asked is in `questions`, what is checked in `checks`. Models are asked through an `Asker`, which
stores requests and replies and may answer from what is stored, so that the same flow goes on after a kill.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol, TypeVar

from evo import workload as workloads
from evo.errors import WorkloadError
from evo.generate import asked, checks, forms, signature
from evo.generate.contract import Contract, assemble
from evo.generate.parts import Supplied
from evo.generate.questions import MOST_REQUESTS, Question, Tried, Unusable, part, request
from evo.generate.references import References
from evo.generate.signature import Signature
from evo.generate.told import Trust, settled
from evo.generate.writing import write
from evo.records import ModelFacts, ModelReply, ModelRequest, Workload
from evo.workload import scaffold
from mutators import replies

T = TypeVar("T")


class Asker(Protocol):
    """Asks models, and tells a person how things go."""

    def facts(self, model: int) -> ModelFacts:
        """Return what is known of a model; `model` counts on beyond the last, from the first again."""
        ...

    def ask(self, name: str, request: ModelRequest, model: int) -> ModelReply:
        """Store a request, have it answered, store the reply, and return it."""
        ...

    def tell(self, line: str) -> None:
        """Say one line to whoever watches."""
        ...


FLAGS = {
    "contract": "--signature and --input-cases",
    "reference": "--reference FILE.py",
    "second-reference": "--reference FILE.py",
    "third-reference": "--reference FILE.py",
    "kernel": "--initial-kernel FILE.cu",
}
"""How a person supplies what a model could not write."""


def given_up(name: str, why: str) -> WorkloadError:
    """Return the error that ends a generation: the part, the reason, the way on."""
    return WorkloadError(
        f"{name}: {why}\nThe way on: supply it yourself ({FLAGS[name]}), or say more in the description."
    )


def missing(supplied: Supplied) -> tuple[str, ...]:
    """Return the parts that have to be asked for, in order; raises `WorkloadError` where a supplied one is wrong."""
    known = known_signature(supplied)
    contract = not (supplied.cases and known is not None and known.complete)
    lacking = {"contract": contract, "reference": not supplied.reference, "kernel": not supplied.kernel}
    return tuple(name for name, lacks in lacking.items() if lacks)


def known_signature(supplied: Supplied) -> Signature | None:
    """Return the signature as supplied, or what the kernel's own says; None where neither is there."""
    source = supplied.kernel or supplied.reference_kernel
    if not supplied.signature:
        return signature.of_kernel(source) if source else None
    found = signature.read(supplied.signature)
    if not supplied.kernel:
        return found
    own = signature.of_kernel(supplied.kernel, found.entry or None)
    if misfit := own.misfit(list(found.parameters)):
        raise WorkloadError(f"signature: it does not fit the kernel {own.entry}: {misfit}")
    return replace(found, entry=own.entry)


@dataclass(frozen=True)
class Maker:
    """Makes one workload.

    Attributes:
        supplied: what a person has.
        folder: where the workload goes; exists.
        asker: see there.
        seed: of the inputs that parts are compared on.
    """

    supplied: Supplied
    folder: Path
    asker: Asker
    seed: int = 0

    def make(self) -> Workload:
        """Return the whole workload, written into its folder and read back.

        Raises:
            WorkloadError: a part is wrong or cannot be had; the message says which, why, and the way on.
            SandboxError: this machine cannot confine what a model writes.
            DeviceError: it has no compiler to try a kernel with.
        """
        for name, content in self.supplied.files.items():
            (self.folder / name).write_bytes(content)
        contract, generated = self._contract()
        references = References(self.supplied, self.seed, self._one)
        reference, trust = references.settle(contract.workload)
        if not self.supplied.reference:
            generated = (*generated, "reference")
        workload = replace(contract.workload, reference=reference, generated=generated)
        contract, trust = settled(contract, workload, self.folder, self.seed, trust, keep=self._own_cases())
        workload = replace(contract.workload, reference=reference, generated=generated)
        kernel, trust = self._kernel(workload, trust)
        if not self.supplied.kernel:
            generated = (*generated, "kernel")
        files = {"reference.py": reference, "initial.cu": kernel}
        if self.supplied.reference_kernel:
            files["reference.cu"] = self.supplied.reference_kernel
        write(self.folder, contract, files, generated, trust.sentence)
        self.asker.tell(f"trust: {trust.sentence}")
        return workloads.load(str(self.folder.resolve()))

    # --- contract -------------------------------------------------------------------------------------------------

    def _contract(self) -> tuple[Contract, tuple[str, ...]]:
        """Return the contract, and which of signature and cases a model wrote."""
        known = known_signature(self.supplied)
        own = forms.read_cases(self.supplied.cases) if self.supplied.cases else {}
        if known is not None and known.complete and own:
            fields = {"entry": known.entry, "parameters": list(known.parameters), **own}
            contract = assemble(self.supplied.description, fields, self.folder, own_cases=True)
            self._show("contract", contract)
            return contract, ()
        whole = known is not None and known.complete
        generated = (() if whole else ("signature",)) + (() if own else ("cases",))
        question = asked.contract(self.supplied, known, own, self.folder, generated)
        contract = self._one(question, 0)
        self._show("contract", contract)
        return contract, generated

    def _own_cases(self) -> frozenset[str]:
        cases = forms.read_cases(self.supplied.cases)["cases"] if self.supplied.cases else []
        return frozenset(str(case["name"]) for case in cases)

    # --- kernel ---------------------------------------------------------------------------------------------------

    def _kernel(self, workload: Workload, trust: Trust) -> tuple[str, Trust]:
        if self.supplied.kernel:
            source = self._with_header(workload)
            checks.fits(workload, source, "initial.cu")
            judged = checks.judge(workload, source, self.seed)
            if judged.problem:
                whose = "the generated reference" if not self.supplied.reference else "your reference"
                raise WorkloadError(
                    f"kernel: it disagrees with {whose}: {judged.problem}\nThe way on: mend the kernel"
                    + (", or supply what it should compute (--reference FILE.py)." if not self.supplied.reference else
                       ", the reference, or the tolerance (a key of the --input-cases file).")
                )  # fmt: skip
            return source, trust.with_kernel(judged, supplied=True)
        found: list[checks.Judged] = []
        source = self._one(asked.kernel(workload, self.seed, found.append), 0)
        self.asker.tell(f"kernel: generated; right on {found[-1].cases} inputs on this machine's CPU")
        return source, trust.with_kernel(found[-1], supplied=False)

    def _with_header(self, workload: Workload) -> str:
        output = workload.outputs[0].shape
        source = scaffold.with_header(self.supplied.kernel, workload.entry, workload.dims, output)
        if source != self.supplied.kernel:
            self.asker.tell("kernel: it has no launch header; one thread for each output element was guessed")
        return source

    # --- asking ---------------------------------------------------------------------------------------------------

    def _one(self, question: Question[T], model: int) -> T:
        """Ask until a reply passes its checks."""
        tried: list[Tried] = []
        while len(tried) < MOST_REQUESTS:
            try:
                wanted = request(question, tried, self.asker.facts(model))
            except Unusable as error:
                raise given_up(question.name, str(error)) from None
            reply = self.asker.ask(question.name, wanted, model)
            if failure := replies.failure(reply):
                raise given_up(question.name, failure)
            found = part(question, reply)
            if not isinstance(found, Tried):
                return found
            self.asker.tell(f"{question.name}: not accepted: {found.problem}")
            tried.append(found)
        raise given_up(question.name, f"{MOST_REQUESTS} answers were not accepted; the last: {tried[-1].problem}")

    def _show(self, name: str, contract: Contract) -> None:
        workload = contract.workload
        parameters = ", ".join(f"{p.name}: {p.dtype}[{', '.join(p.shape)}]" for p in workload.parameters if p.shape)
        self.asker.tell(f"{name}: {workload.entry}({parameters}); {len(workload.cases)} cases")
        self.asker.tell(f"  {workload.description}")
