"""The contract of a workload, everything in workload.yaml: out of a model's JSON, a person's parts, or their shapes.

Pure but for `.npy` files that cases name. A contract that is wrong is a `WorkloadError` in words that its writer, model
or person, can act on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from evo import marked
from evo.errors import WorkloadError, did_you_mean
from evo.generate import cases as mechanical
from evo.generate import derived, forms
from evo.generate.cases import Range, Shape
from evo.records import Case, Role, Workload
from evo.workload import folder as workload_file

ENTRY = "kernel"
"""Name of the function where nobody gives one."""


@dataclass(frozen=True)
class Contract:
    """A checked contract.

    Attributes:
        text: of workload.yaml.
        workload: what it declares; without reference and kernel.
        ranges: of the dims.
    """

    text: str
    workload: Workload
    ranges: tuple[Range, ...]


# --- together ----------------------------------------------------------------------------------------------------


def assemble(
    description: str,
    fields: Mapping[str, Any],
    folder: Path,
    *,
    generated: Sequence[str] = (),
    own_cases: bool = False,
) -> Contract:
    """Return the contract of everything that is known, with hidden cases completed.

    Args:
        description: of the user.
        fields: `parameters`, `cases`, and what else is known of workload.yaml; `dims` are ranges, `definition` says
            exactly what is computed.
        folder: of the workload, with its `.npy` files.
        generated: parts that a model wrote.
        own_cases: the cases are a person's: dims and hostile values are as they chose.

    Raises:
        WorkloadError: file, key path, expected, found.
    """
    content = _content(description, fields, generated)
    draft = workload_file.declared(forms.render(content | {"cases": _with_every_role(content["cases"])}), folder)
    given = draft.cases[: len(content["cases"])]
    if not any(case.role is Role.PERFORMANCE for case in given):
        raise WorkloadError("workload.yaml, key 'cases': expected at least one case of role performance, found none")
    ranges = _ranges(fields.get("dims"), draft, given)
    if not own_cases:
        _check_ranges(ranges, given, description)
    hostile = not own_cases or not any(case.role is Role.HIDDEN and case.draws for case in given)
    cases = mechanical.completed(given, Shape(draft.parameters, draft.flops, ranges), values=hostile)
    if lacking := mechanical.tailless(cases, ranges):
        raise WorkloadError(_never_a_tail(lacking[0], cases))
    text = forms.render(content | {"cases": [forms.case_entry(case) for case in cases]})
    return Contract(text, workload_file.declared(text, folder), ranges)


def with_cases(contract: Contract, cases: Sequence[Case], folder: Path, **changes: Any) -> Contract:
    """Return a contract with other cases, and other keys of workload.yaml."""
    root = marked.load(contract.text, marked.Origin(workload_file.NAME, WorkloadError)).plain()
    text = forms.render({**root, **changes, "cases": [forms.case_entry(case) for case in cases]})
    return replace(contract, text=text, workload=workload_file.declared(text, folder))


def _content(description: str, fields: Mapping[str, Any], generated: Sequence[str]) -> dict[str, Any]:
    for key in ("parameters", "cases"):
        if not fields.get(key):
            raise WorkloadError(f"contract: expected a key {key!r} that is not empty, found none")
    parameters = list(fields["parameters"])
    said = str(fields.get("definition") or "").strip()
    content = {
        "description": f"{description} {said}".strip(),
        "entry": fields.get("entry") or ENTRY,
        "parameters": parameters,
        "tolerance": fields.get("tolerance") or {"terms": derived.terms(parameters)},
        "flops": fields.get("flops") or derived.flops(parameters),
        "bytes_moved": fields.get("bytes_moved") or derived.bytes_moved(parameters),
        "cases": list(fields["cases"]),
    }
    content |= {key: fields[key] for key in ("deterministic", "fast_math") if fields.get(key)}
    return content | ({"generated": list(generated)} if generated else {})


def _with_every_role(cases: Sequence[Any]) -> list[Any]:
    """Add stand-ins, so that a list that is not completed yet can be read."""
    stand_ins = [{**dict(cases[0]), "name": f"stand_in_{role}", "role": str(role)} for role in Role]
    return [*cases, *stand_ins]


# --- ranges ------------------------------------------------------------------------------------------------------


def _ranges(said: Any, draft: Workload, given: Sequence[Case]) -> tuple[Range, ...]:
    seen = {of.name: of for of in mechanical.derived_ranges(given)}
    if said is None:
        return tuple(seen.values())
    found = {name: Range(name) for name in seen}
    for item in forms.objects(said, "dims"):
        name = str(item.get("name"))
        if name not in seen:
            raise WorkloadError(f"contract, key 'dims': expected a dim of the cases, found {name!r}"
                                + did_you_mean(name, seen))  # fmt: skip
        numbers = {key: item[key] for key in ("least", "most", "multiple_of") if item.get(key) is not None}
        if any(not isinstance(value, int) or value < 1 for value in numbers.values()):
            raise WorkloadError(f"contract, key 'dims', dim {name!r}: expected sizes of 1 or more, found {numbers}")
        found[name] = Range(name, **numbers, why=str(item.get("why") or ""))
        if found[name].nearest(1) < 1:
            raise WorkloadError(f"contract, key 'dims', dim {name!r}: expected a value that it may have, found none")
    return tuple(found[name] for name in draft.dims)


def _check_ranges(ranges: Sequence[Range], cases: Sequence[Case], description: str) -> None:
    """A limit that keeps every case away from a tile's tail has to stand in the description."""
    for of in ranges:
        for case in cases:
            value = case.dims[of.name]
            if of.nearest(value) != value:
                raise WorkloadError(f"contract: case {case.name!r} has {of.name} = {value}, which its range excludes")
        quoted = of.why.strip().strip("\"'").lower()
        if not of.reaches_tail and not (quoted and quoted in description.lower()):
            raise WorkloadError(
                f"contract, key 'dims': no value of {of.name} reaches the tail of a tile (least {of.least}, most "
                f"{of.most}, multiple_of {of.multiple_of}). Let {of.name} have any size; or, if the description itself "
                "demands the limit, quote its words in 'why'"
            )


def _never_a_tail(dim: str, cases: Sequence[Case]) -> str:
    seen = sorted({case.dims[dim] for case in cases if case.role is not Role.PERFORMANCE})
    return (
        f"cases: no correctness or hidden case reaches the tail of a tile: {dim} is {', '.join(map(str, seen))} in all "
        f"of them, so that a kernel without a guard would pass. Add a hidden case whose {dim} is no multiple of "
        f"{mechanical.TAIL}"
    )
