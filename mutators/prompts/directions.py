"""What to try, as an expert would say it: by what limits the kernel, on this kind of device.

What limits it is read off the profiler's counters where there are some, else off the roofline. Directions of one limit
are taken in turns, so that several writers at one kernel begin at different ends.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

import numpy as np

from evo.records import Device, Evaluation, KernelProfile, MutationContext
from mutators import profiles

BUSY = 0.6
"""Share of a peak from which on that side limits a kernel, as for the profiler (`profiles.HIGH_PCT`)."""


class Limit(StrEnum):
    """What keeps a kernel from being faster."""

    MEMORY = "memory bandwidth"
    CACHE = "the bandwidth of the caches and of shared memory"
    COMPUTE = "arithmetic"
    LATENCY = "latencies that nothing hides: no unit is busy"
    LAUNCH = "launching: the work is so short"
    NEITHER = "neither memory bandwidth nor arithmetic: by caches, latencies or idle multiprocessors"
    UNKNOWN = ""


_BY_LIMIT: Mapping[Limit, tuple[str, ...]] = {
    Limit.MEMORY: (
        "fewer bytes: fuse passes so that each input is read once and each output written once; keep what is between "
        "in registers or shared memory, or compute it again",
        "wider accesses: 16 bytes for each thread and access (float4) where alignment allows it, with a scalar path "
        "for tails and for rows that are no multiple",
        "coalescing: neighbouring threads at neighbouring addresses, for loads and stores; where one side cannot be, "
        "turn the tile in shared memory, padded or swizzled against bank conflicts",
        "more bytes in flight: four to eight independent loads of each thread before the first use of any",
        "reuse in the last-level cache: order the blocks so that those which run at the same time share their operands "
        "(tiles in groups of rows instead of whole rows)",
        "cache policy: `__ldg` for what is read again, `__ldcs` and `__stcs` for what passes by once",
    ),
    Limit.CACHE: (
        "register tiles: several outputs of each thread in both directions, so that each value from shared memory is "
        "used many times",
        "wide reads of shared memory: 16 bytes at once (float4) along the dimension that a thread walks",
        "bank conflicts: pad rows by one element, or swizzle the column with the row (`col ^ (row % 8)`)",
        "values that a warp shares: shuffles or broadcast reads in place of one read for each thread",
        "neighbours from registers: each thread walks along one dimension and keeps the last values, so that they are "
        "not read again",
    ),
    Limit.COMPUTE: (
        "more useful operations for each instruction: larger register tiles (8 by 8 outputs of a thread), operands "
        "loaded ahead of their use",
        "index arithmetic: addresses advanced by additions, no division or modulo in the inner loop, 32-bit indices "
        "where sizes allow them, bounds checked once for a tile instead of once for an element",
        "unrolling: trip counts known to the compiler (tunables, `specialize`), inner loops unrolled as a whole",
        "independent accumulators, so that no operation waits for the one before it",
        "another unit: tensor cores where the tolerance leaves room for their operands' precision (of float32 inputs "
        "it seldom does, unless each is split into parts), or integer operations beside floating-point ones",
        "less arithmetic: common parts computed once, cheaper equivalents, work that a bound or a symmetry saves",
    ),
    Limit.LATENCY: (
        "more parallelism: enough blocks for every SM, and twice that; where outputs are few, split the long dimension "
        "over blocks (`workspace` and a second launch, or atomics where they are allowed)",
        "double buffering: the next tile is loaded (asynchronously, or into registers) while this one is used; two to "
        "four stages",
        "instruction-level parallelism: several outputs or several independent loads for each thread",
        "synchronisation: warp shuffles in place of shared memory and barriers, one barrier for each tile instead of "
        "two, atomics gathered per warp or block first",
        "occupancy: fewer registers (`__launch_bounds__`, smaller tiles) or less shared memory, if those keep blocks "
        "out; or, the other way, fewer threads with more work each, if those that there are wait for each other",
        "idle tails: grid and tile sizes such that the last wave is nearly full, or a persistent grid of "
        "`num_sms * blocks_per_sm` blocks that walks over the tiles",
    ),
    Limit.LAUNCH: (
        "one launch instead of several: fuse them, let the last block finish what the others began",
        "no `zero` and no workspace: every output written once, by the thread that has it",
        "the right size: fewer, larger blocks where few threads have work; blocks enough for every SM where many do",
        "a short critical path: all loads at once, no dependent ones, no barrier that a warp's shuffles can replace",
    ),
    Limit.UNKNOWN: (
        "memory traffic: reuse through shared memory or registers, coalesced and wide (16-byte) accesses where "
        "alignment allows them",
        "work per thread: several outputs per thread in registers, so that each loaded value is used several times",
        "parallelism: enough blocks for every SM, no idle tails, splitting a long sum over blocks",
        "latency: double buffering, prefetching into registers, more independent instructions in flight",
        "synchronisation: fewer barriers, warp shuffles in place of shared memory, atomics gathered per block or warp",
        "arithmetic: index computations hoisted out of loops, fewer divisions, unrolled inner loops",
        "tunables: make the tile and unroll sizes tunables with the few values that may win",
    ),
}
_GPU = {**_BY_LIMIT, Limit.NEITHER: (*_BY_LIMIT[Limit.LATENCY], *_BY_LIMIT[Limit.CACHE])}
_HOST = (
    "memory: touch each cache line as few times as possible; block loops so that what is reused stays in cache",
    "work per thread: several outputs per thread in registers, so that each loaded value is used several times",
    "vector units: an innermost loop over adjacent elements, without branches, that the compiler can vectorise",
    "overhead: fewer threads with more work each, fewer barriers and warp operations, or none",
    "arithmetic: index computations hoisted out of loops, fewer divisions, unrolled inner loops",
    "tunables: make the tile and unroll sizes tunables with the few values that may win",
)


def aim(context: MutationContext, faster: str, broken: str) -> str:
    """Say what to do with the first parent: mend it where it has failed, else make it faster, with a suggestion.

    Args:
        context: its seed decides which suggestion comes first.
        faster: what to do with a kernel that is right, or not evaluated yet.
        broken: what to do with one that has no score.
    """
    evaluation = context.parents[0].evaluation
    if evaluation is not None and evaluation.score_us is None:
        return broken
    turn = int(np.random.default_rng(context.seed).integers(1 << 16))
    return f"{faster} {suggestion(evaluation, context.device, turn)}"


def suggestion(evaluation: Evaluation | None, device: Device, turn: int) -> str:
    """Return one thing to consider first, after what limits the kernel, where that is known.

    Args:
        evaluation: of the kernel; without one, or without figures, the limit is unknown.
        device: a CPU has directions of its own.
        turn: which of the directions; taken modulo their number.
    """
    limit = limit_of(evaluation) if device.kind != "host" else Limit.UNKNOWN
    known = _HOST if device.kind == "host" else _GPU[limit]
    measured = f"By what was measured it is limited by {limit.value}. " if limit.value else ""
    return (
        f"{measured}Other writers work on the same kernel in other ways; yours to consider first: "
        f"{known[turn % len(known)]}. If something else limits it far more, do that."
    )


def limit_of(evaluation: Evaluation | None) -> Limit:
    """Return what limits a kernel: of its longest launch by counters, else of its worst case by the roofline."""
    if evaluation is None:
        return Limit.UNKNOWN
    if evaluation.profile is not None and evaluation.profile.kernels:
        counted = _by_counters(max(evaluation.profile.kernels, key=lambda kernel: kernel.duration_us or 0.0))
        if counted is not Limit.UNKNOWN:
            return counted
    return _by_roofline(evaluation)


def _by_counters(kernel: KernelProfile) -> Limit:
    parts = {
        Limit.MEMORY: kernel.dram_pct,
        Limit.CACHE: max((pct for pct in (kernel.l2_pct, kernel.l1_pct) if pct is not None), default=None),
        Limit.COMPUTE: kernel.sm_pct,
    }
    known = {limit: pct for limit, pct in parts.items() if pct is not None}
    if not known:
        return Limit.UNKNOWN
    busiest = max(known, key=lambda limit: known[limit])
    return busiest if known[busiest] >= profiles.HIGH_PCT else Limit.LATENCY


def _by_roofline(evaluation: Evaluation) -> Limit:
    """Take the case that is farthest from its peak: there is most to win."""
    placed = [result.roofline for result in evaluation.cases if result.roofline and result.roofline.binds]
    if not placed:
        return Limit.UNKNOWN
    worst = min(placed, key=lambda roofline: roofline.efficiency or 0.0)
    if worst.binds == "latency":
        return Limit.LAUNCH
    if (worst.efficiency or 0.0) < BUSY:
        return Limit.NEITHER
    return Limit.MEMORY if worst.binds == "memory" else Limit.COMPUTE
