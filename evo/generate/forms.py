"""The forms of a contract: a model's JSON and a person's YAML in, workload.yaml's keys and its text out. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import yaml

from evo import marked
from evo.errors import WorkloadError
from evo.records import Case, Draw

_CASES = "input_cases"
_CASE_KEYS = ("cases", "dims", "tolerance", "flops", "bytes_moved", "deterministic", "fast_math")
_DRAW_KEYS = ("kind", "low", "high", "file")


def read_cases(text: str) -> dict[str, Any]:
    """Read a person's cases: a list, or a mapping with other keys of workload.yaml beside `cases`.

    A case may be its dims alone (`{M: 64, N: 64}`): it is timed then.

    Raises:
        WorkloadError: it is neither, or a key is unknown.
    """
    root = marked.load(text, marked.Origin(_CASES, WorkloadError))
    fields: dict[str, Any] = {}
    if isinstance(root.value, dict):
        keys = root.mapping(_CASE_KEYS, required=("cases",))
        fields = {key: node.plain() for key, node in keys.items()}
        root = keys["cases"]
    items = root.sequence()
    if not items:
        raise root.fail("at least one case")
    fields["cases"] = [_own_case(item.mapping(), number) for number, item in enumerate(items, 1)]
    return fields


def _own_case(keys: Mapping[str, marked.Node], number: int) -> dict[str, Any]:
    plain = {key: node.plain() for key, node in keys.items()}
    whole = plain if "dims" in plain else {"dims": plain}
    return {"name": f"case_{number}", "role": "performance", **whole}


# --- what a model gives ------------------------------------------------------------------------------------------


def tidy(said: Mapping[str, Any]) -> dict[str, Any]:
    """Return a model's JSON in the form of workload.yaml: names to values instead of lists of pairs, no nulls."""
    fields = {key: value for key, value in said.items() if value is not None}
    if "parameters" in fields:
        fields["parameters"] = [_parameter(item) for item in objects(fields["parameters"], "parameters")]
    if "cases" in fields:
        fields["cases"] = [_case(item) for item in objects(fields["cases"], "cases")]
    if "dims" in fields and isinstance(fields["dims"], Mapping):
        fields["dims"] = [{"name": name, **dict(of)} for name, of in fields["dims"].items() if isinstance(of, Mapping)]
    tolerance = {key: fields.pop(key) for key in ("exact", "terms", "atol") if key in fields}
    if tolerance:
        fields["tolerance"] = {"terms": str(tolerance.pop("terms", "1")), **tolerance}
    return fields


def objects(value: Any, key: str) -> list[Mapping[str, Any]]:
    """Return a list of objects; raises `WorkloadError` where it is none."""
    if not isinstance(value, list) or not all(isinstance(item, Mapping) for item in value):
        raise WorkloadError(f"contract, key {key!r}: expected a list of objects, found {json.dumps(value)[:80]}")
    return value


def _parameter(item: Mapping[str, Any]) -> dict[str, Any]:
    found = {key: value for key, value in item.items() if value is not None and value != []}
    if found.get("direction") == "scalar":
        found.pop("draw", None)
    if found.get("direction") == "out":
        found.pop("draw", None)  # outputs arrive poisoned, whatever one writes
    if found.get("value") == found.get("name"):
        found.pop("value", None)
    if isinstance(found.get("draw"), Mapping):
        found["draw"] = _draw(found["draw"])
    return found


def _case(item: Mapping[str, Any]) -> dict[str, Any]:
    found = dict(item)
    if isinstance(found.get("dims"), list):
        found["dims"] = {
            str(pair.get("name")): pair.get("value") for pair in found["dims"] if isinstance(pair, Mapping)
        }
    draws = found.pop("draws", None)
    if isinstance(draws, list):
        draws = {str(draw.get("parameter")): draw for draw in draws if isinstance(draw, Mapping)}
    if draws:
        found["draws"] = {name: _draw(draw) for name, draw in draws.items()}
    return found


def _draw(item: Mapping[str, Any]) -> dict[str, Any]:
    return {key: _bound(item[key]) for key in _DRAW_KEYS if item.get(key) is not None}


def _bound(value: Any) -> Any:
    """A number that came as a string is one."""
    if isinstance(value, str) and re.fullmatch(r"[-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?", value):
        number = float(value)
        return int(number) if number.is_integer() else number
    return value


def case_entry(case: Case) -> dict[str, Any]:
    """Return a case as an item of `cases:`."""
    found: dict[str, Any] = {"name": case.name, "role": str(case.role), "dims": dict(case.dims)}
    if case.draws:
        found["draws"] = {name: _draw_entry(draw) for name, draw in case.draws.items()}
    return found


def _draw_entry(draw: Draw) -> dict[str, Any]:
    if draw.file:
        return {"kind": draw.kind, "file": draw.file}
    bounds = {"low": draw.low} if draw.kind in ("constant", "ramp") else {"low": draw.low, "high": draw.high}
    return {"kind": draw.kind, **bounds}


class _Plain(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


def render(content: Mapping[str, Any]) -> str:
    """Return workload.yaml: one line for a key, and for an item of a list."""
    lines = []
    for key, value in content.items():
        if isinstance(value, list) and value and isinstance(value[0], Mapping):
            lines += [f"{key}:", *(f"  - {_flow(item)}" for item in value)]
        else:
            lines.append(f"{key}: {json.dumps(value, ensure_ascii=False) if isinstance(value, str) else _flow(value)}")
    return "\n".join(lines) + "\n"


def _flow(value: Any) -> str:
    text = yaml.dump(value, Dumper=_Plain, default_flow_style=True, width=1 << 20, sort_keys=False, allow_unicode=True)
    return text.removesuffix("\n").removesuffix("\n...").strip()
