"""Turns a case's roofline into words, for models and for people. Nothing is computed here but percentages."""

from __future__ import annotations

from evo.records import Roofline

_SIDES = {
    "memory": "memory bandwidth",
    "fp32": "the FP32 rate",
    "tf32": "the tensor cores' TF32 rate",
    "fp16": "the tensor cores' FP16 rate",
}
_LATENCY = "launching binds: it is much of so short a time"


def describe(roofline: Roofline | None) -> str:
    """Return all that a roofline says in one line; "" where there is none.

    E.g. `61 % of memory bandwidth and 3 % of the FP32 rate, as measured on this device; memory bandwidth binds`.
    """
    if roofline is None:
        return ""
    shares = [f"{_percent(share)} of {_SIDES[name]}" for name, share in _shares(roofline)]
    parts = [f"{' and '.join(shares)}, as measured on this device"] if shares else []
    if roofline.binds:
        parts.append(_LATENCY if roofline.binds == "latency" else f"{_SIDES[roofline.binds]} binds")
    if roofline.floor_us:
        parts.append(f"no kernel that does all the work is faster than {roofline.floor_us:.3g} µs here")
    return "; ".join(parts)


def short(roofline: Roofline | None) -> str:
    """Return the efficiency and what binds, as `61 % memory`; "" where neither is known."""
    if roofline is None:
        return ""
    return f"{_percent(roofline.efficiency)} {roofline.binds}".strip()


def _shares(roofline: Roofline) -> list[tuple[str, float]]:
    sides = (("memory", roofline.memory), (roofline.unit, roofline.compute))
    return [(name, share) for name, share in sides if share is not None]


def _percent(share: float | None) -> str:
    if share is None:
        return ""
    return f"{100 * share:.2g} %" if share < 0.1 else f"{100 * share:.0f} %"
