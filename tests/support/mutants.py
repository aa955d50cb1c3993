"""Right and wrong ways to compute the shipped workloads, in NumPy: what tolerances must let through and must stop."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from evo import workload as workloads
from evo.records import Case, Workload

Arrays = Mapping[str, np.ndarray]
F32 = np.float32


def passes(workload: Workload, case: Case, expected: workloads.Expected, got: Arrays) -> bool:
    """The rule of `evo.records.Tolerance`, written again on its own."""
    for output in workload.outputs:
        tolerance = workload.tolerance.get(output.name, workload.tolerance[""])
        want, value = expected.values[output.name], got[output.name]
        assert value.shape == want.shape
        if tolerance.exact:
            if not np.array_equal(value.astype(np.float64), want):
                return False
            continue
        unit = {"float16": 2.0**-11, "float32": 2.0**-24, "float64": 2.0**-53}[output.dtype]
        terms = workloads.terms(workload, case, output.name)
        limit = tolerance.budget * np.sqrt(terms) * unit * expected.scale[output.name] + tolerance.atol
        if not np.all(np.abs(value.astype(np.float64) - want) <= limit):
            return False
    return True


# --- fewer bits ---------------------------------------------------------------------------------------------------


def _keep_bits(values: np.ndarray, dropped: int) -> np.ndarray:
    """Round float32 to nearest even without its last `dropped` mantissa bits."""
    bits = values.astype(F32).view(np.uint32).astype(np.uint64)
    bits += (1 << (dropped - 1)) - 1 + ((bits >> np.uint64(dropped)) & np.uint64(1))
    kept = (bits >> np.uint64(dropped)) << np.uint64(dropped)
    return kept.astype(np.uint32).view(F32)


def tf32(values: np.ndarray) -> np.ndarray:
    return _keep_bits(values, 13)


def bf16(values: np.ndarray) -> np.ndarray:
    return _keep_bits(values, 16)


def half(values: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        return values.astype(np.float16).astype(F32)


ROUNDINGS: dict[str, Callable[[np.ndarray], np.ndarray]] = {"tf32": tf32, "bf16": bf16, "half": half}


# --- accumulation in half precision -------------------------------------------------------------------------------


def _half_gemm(inputs: Arrays, dims: Mapping[str, int]) -> dict[str, np.ndarray]:
    total = np.zeros((dims["M"], dims["N"]), np.float16)
    for k in range(dims["K"]):
        total += (inputs["A"][:, k, None] * inputs["B"][None, k, :]).astype(np.float16)
    return {"C": total.astype(F32)}


def _half_softmax(inputs: Arrays, dims: Mapping[str, int]) -> dict[str, np.ndarray]:
    e = np.exp(inputs["x"] - inputs["x"].max(axis=1, keepdims=True))
    return {"y": e / np.cumsum(e, axis=1, dtype=np.float16)[:, -1:].astype(F32)}


def _half_reduction(inputs: Arrays, dims: Mapping[str, int]) -> dict[str, np.ndarray]:
    return {"total": np.cumsum(inputs["x"], dtype=np.float16)[-1:].astype(F32)}


def _half_scan(inputs: Arrays, dims: Mapping[str, int]) -> dict[str, np.ndarray]:
    return {"y": np.cumsum(inputs["x"], dtype=np.float16).astype(F32)}


HALF_ACCUMULATE = {
    "gemm": _half_gemm,
    "softmax": _half_softmax,
    "reduction": _half_reduction,
    "scan": _half_scan,
}


# --- honest float32 in several orders -----------------------------------------------------------------------------


def _gemm_in_order(inputs: Arrays, dims: Mapping[str, int]) -> dict[str, np.ndarray]:
    total = np.zeros((dims["M"], dims["N"]), F32)
    for k in range(dims["K"]):
        total += inputs["A"][:, k, None] * inputs["B"][None, k, :]
    return {"C": total}


def _gemm_split(inputs: Arrays, dims: Mapping[str, int]) -> dict[str, np.ndarray]:
    parts = [inputs["A"][:, s::4] @ inputs["B"][s::4] for s in range(min(4, dims["K"]))]
    return {"C": sum(parts[1:], parts[0])}


def _softmax(inputs: Arrays, dims: Mapping[str, int]) -> dict[str, np.ndarray]:
    e = np.exp(inputs["x"] - inputs["x"].max(axis=1, keepdims=True))
    return {"y": e / e.sum(axis=1, keepdims=True)}


def _softmax_in_order(inputs: Arrays, dims: Mapping[str, int]) -> dict[str, np.ndarray]:
    e = np.exp(inputs["x"] - inputs["x"].max(axis=1, keepdims=True))
    return {"y": e * (F32(1) / np.cumsum(e, axis=1, dtype=F32)[:, -1:])}


def _stencil(inputs: Arrays, dims: Mapping[str, int]) -> dict[str, np.ndarray]:
    grid = inputs["in"]
    out = grid.copy()
    if min(grid.shape) > 2:
        around = ((grid[:-2, 1:-1] + grid[2:, 1:-1]) + grid[1:-1, :-2]) + grid[1:-1, 2:]
        out[1:-1, 1:-1] = grid[1:-1, 1:-1] + F32(0.125) * (around - F32(4) * grid[1:-1, 1:-1])
    return {"out": out}


def _stencil_expanded(inputs: Arrays, dims: Mapping[str, int]) -> dict[str, np.ndarray]:
    grid = inputs["in"]
    out = grid.copy()
    if min(grid.shape) > 2:
        eighth = F32(0.125) * grid
        out[1:-1, 1:-1] = F32(0.5) * grid[1:-1, 1:-1] + (
            (eighth[1:-1, 2:] + eighth[1:-1, :-2]) + (eighth[2:, 1:-1] + eighth[:-2, 1:-1])
        )
    return {"out": out}


def _blocked_scan(inputs: Arrays, dims: Mapping[str, int]) -> dict[str, np.ndarray]:
    blocks = [np.cumsum(inputs["x"][i : i + 256], dtype=F32) for i in range(0, dims["N"], 256)]
    before = np.cumsum([F32(0), *(block[-1] for block in blocks)], dtype=F32)
    return {"y": np.concatenate([block + start for block, start in zip(blocks, before, strict=False)])}


HONEST: dict[str, list[Callable[[Arrays, Mapping[str, int]], dict[str, np.ndarray]]]] = {
    "gemm": [lambda i, d: {"C": i["A"] @ i["B"]}, _gemm_in_order, _gemm_split],
    "softmax": [_softmax, _softmax_in_order],
    "reduction": [
        lambda i, d: {"total": i["x"].sum(keepdims=True)},
        lambda i, d: {"total": np.cumsum(i["x"], dtype=F32)[-1:]},
        lambda i, d: {"total": np.cumsum(i["x"][::-1], dtype=F32)[-1:]},
    ],
    "transpose": [lambda i, d: {"out": i["in"].T}],
    "stencil": [_stencil, _stencil_expanded],
    "histogram": [lambda i, d: {"bins": np.histogram(i["data"], np.arange(d["BINS"] + 1) - 0.5)[0].astype(np.int32)}],
    "scan": [lambda i, d: {"y": np.cumsum(i["x"], dtype=F32)}, _blocked_scan],
}
