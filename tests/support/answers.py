"""What the kernels of `benchmarks/corpus/right` and `advice` should compute, in NumPy."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

Arrays = Mapping[str, np.ndarray]


def _gemm(m: int, n: int, k: int, scale: float = 1.0) -> Callable[[Arrays], Arrays]:
    def answer(a: Arrays) -> Arrays:
        product = a["A"].astype("f8").reshape(m, k) @ a["B"].astype("f8").reshape(k, n)
        return {"C": scale * product.ravel()}

    return answer


def _sum(a: Arrays) -> Arrays:
    return {"out": np.array([a["x"].astype("f8").sum()])}


def _positive(a: Arrays) -> Arrays:
    kept = a["x"][a["x"] > 0]
    return {"out": np.sort(kept), "count": np.array([kept.size])}


def _tiles(a: Arrays) -> Arrays:
    tiles = a["x"].reshape(-1, 8)
    scan = tiles.cumsum(axis=1)
    flags = 100000 * (tiles == 0).any(axis=1) + 1000000 * ~(tiles < 9).all(axis=1)
    out = scan * 1000 + scan[:, 7:] + flags[:, None]
    ballots = ((tiles > 4) << np.arange(8)).sum(axis=1)
    masks = ballots[:, None] + 256 * tiles[:, 3:4] + 4096 * (np.arange(8) ^ 1)
    return {"out": out.ravel(), "masks": masks.ravel()}


def _match(a: Arrays) -> Arrays:
    return {"bins": np.bincount(a["x"], minlength=16), "agreed": np.array([a["x"].size])}


def _softmax(a: Arrays) -> Arrays:
    x = a["x"].astype("f8").reshape(9, 300)
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return {"y": (e / e.sum(axis=1, keepdims=True)).ravel()}


def _stencil(a: Arrays) -> Arrays:
    p = np.pad(a["x"].astype("f8").reshape(30, 40), 1)
    around = p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:]
    return {"y": (p[1:-1, 1:-1] - 0.25 * around).ravel()}


def _half_pairs(a: Arrays) -> Arrays:
    sums = a["x"][0::2] + a["x"][1::2]
    return {"y": np.stack([sums, sums * np.float16(2)], axis=1).ravel()}


def _layer_norm(a: Arrays) -> Arrays:
    x = a["x"].astype("f8").reshape(5, 200)
    y = (x - x.mean(axis=1, keepdims=True)) / np.sqrt(x.var(axis=1, keepdims=True) + 1e-5)
    return {"y": y.ravel(), "flags": (np.abs(y) > 2).any(axis=1) + 2 + 4 * 96}


def _spin_lock(a: Arrays) -> Arrays:
    return {"best": np.array([np.abs(a["x"]).max(), 6.0])}


def _bytes(a: Arrays) -> Arrays:
    changed = ((a["x"].astype(int) ^ 0x55) + 1) & 255
    return {"x": changed.reshape(2, 64)[:, ::-1].ravel()}


def _count_after_return(a: Arrays) -> Arrays:
    warps = [(0, 32), (32, 64), (64, 75), (0, 32), (32, 38)]
    return {
        "y": a["x"][::-1],
        "counts": np.array([75, 1, 0, 38, 1, 0]),
        "sums": np.array([a["x"][low:high].sum(dtype="f8") for low, high in warps]),
    }


ANSWERS: dict[str, Callable[[Arrays], Arrays]] = {
    "barrier_after_return": lambda a: {"y": a["x"][::-1]},
    "bitonic_sort": lambda a: {"x": np.sort(a["x"].reshape(2, 256), axis=1).ravel()},
    "bytes_in_place": _bytes,
    "compact_ballot": _positive,
    "count_after_return": _count_after_return,
    "gemm_double_buffer": _gemm(64, 128, 32),
    "gemm_naive": _gemm(29, 37, 40),
    "gemm_template": _gemm(16, 64, 20),
    "gemm_tiled": _gemm(29, 37, 40),
    "groups_coalesced": _positive,
    "groups_tiles": _tiles,
    "half_pairs": _half_pairs,
    "histogram_shared": lambda a: {"bins": np.bincount(a["x"], minlength=256)},
    "last_warp_partial": lambda a: {"out": a["x"].astype("f8").reshape(2, 256).sum(axis=1)},
    "layer_norm_votes": _layer_norm,
    "match_aggregate": _match,
    "publish_by_barrier": lambda a: {"out": np.array([a["x"].astype("f8").sum()])},
    "reduce_groups": lambda a: {**_sum(a), "largest": np.array([95])},
    "reduce_last_block": _sum,
    "reduce_shared": lambda a: {"out": np.pad(a["x"].astype("f8"), (0, 36)).reshape(6, 256).sum(axis=1)},
    "reduce_shuffle": _sum,
    "scan_lookback": lambda a: {"y": a["x"].cumsum()},
    "scan_two_launches": lambda a: {"y": a["x"].cumsum()},
    "softmax_online": _softmax,
    "spin_lock": _spin_lock,
    "stencil_halo": _stencil,
    "transpose_padded": lambda a: {"y": a["x"].reshape(70, 50).T.ravel()},
    "vector_add": lambda a: {"c": a["a"] + a["b"]},
    "warp_reduce_syncwarp": lambda a: {"out": a["x"].astype("f8").reshape(4, 32).sum(axis=1)},
    "warp_specialised": lambda a: {"y": 2 * a["x"] + 1},
    "wmma_gemm": _gemm(32, 64, 32, scale=0.5),
}
UNORDERED = {"compact_ballot", "groups_coalesced"}
"""Kernels that may append in any order: their outputs are compared sorted, as far as they count."""


def differences(name: str, inputs: Arrays, outputs: Mapping[str, np.ndarray]) -> list[str]:
    """Say which outputs of a right kernel are wrong."""
    wrong = []
    for buffer, want in ANSWERS[name](inputs).items():
        got = outputs[buffer]
        if name in UNORDERED and buffer == "out":
            got = np.sort(got[: want.size])
        exact = got.dtype.kind in "iu"
        if not (np.array_equal(got, want) if exact else np.allclose(got, want, rtol=1e-3, atol=1e-4)):
            wrong.append(f"{buffer}: got {got[:8]}, want {np.asarray(want)[:8]}")
    return wrong
