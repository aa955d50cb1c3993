"""Turns a profile into words for a model: what bounds a kernel, what its warps wait for, what it wastes.

Numbers and names of our own only: a kernel's name is the one thing here that a candidate has chosen.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from evo.records import KernelProfile, Profile

HIGH_PCT = 60.0
"""Nsight Compute's own threshold: a part that is busier bounds a kernel; where none is, latencies do."""
FULL_PCT = 80.0
"""From here on, doing the same work faster is no way any more: there must be less of it."""
MOST_KERNELS = 3
_STALL_PCT = 10.0
_FULL_WAVE = 0.9
_MANY_WAVES = 5.0
"""From so many waves on the last one, however empty, is little of the whole."""
_TAIL = 0.5
_CONFLICT_WAYS = 1.2
_IDENTIFIER = re.compile(r"\w{1,80}")


def describe(profile: Profile | None) -> str:
    """Return a paragraph for each of the longest launches; "" where there is no profile."""
    if profile is None or not profile.kernels:
        return ""
    longest = sorted(profile.kernels, key=lambda kernel: -(kernel.duration_us or 0.0))[:MOST_KERNELS]
    told = [f"- {_name(kernel)}: {'; '.join(_sentences(kernel))}." for kernel in longest]
    left_out = len(profile.kernels) - len(longest)
    more = [f"- {left_out} shorter launches are left out"] if left_out else []
    return f"Nsight Compute on case {profile.case}, caches cold:\n" + "\n".join(told + more)


def _name(kernel: KernelProfile) -> str:
    return kernel.kernel if _IDENTIFIER.fullmatch(kernel.kernel) else "kernel"


def _sentences(kernel: KernelProfile) -> Iterator[str]:
    for words in (
        _bound(kernel), _memory(kernel), _stalls(kernel), _pipes(kernel), _occupancy(kernel), _waste(kernel)
    ):  # fmt: skip
        if words:
            yield words


def _bound(kernel: KernelProfile) -> str:
    parts = {
        "DRAM": kernel.dram_pct, "L2": kernel.l2_pct, "L1 and shared memory": kernel.l1_pct, "SM": kernel.sm_pct
    }  # fmt: skip
    known = {name: value for name, value in parts.items() if value is not None}
    if not known:
        return ""
    busiest = max(known, key=lambda name: known[name])
    figures = ", ".join(f"{name} {value:.0f} %" for name, value in known.items())
    return f"of their peaks: {figures}: {_verdict(busiest, known[busiest])}"


def _verdict(busiest: str, pct: float) -> str:
    if pct < HIGH_PCT:
        return "bound by latencies, since nothing is busy"
    what = "compute-bound" if busiest == "SM" else f"bound by {busiest}"
    return f"{what}, near its peak" if pct >= FULL_PCT else what


def _memory(kernel: KernelProfile) -> str:
    parts = []
    if kernel.dram_read_bytes is not None and kernel.dram_written_bytes is not None:
        read, written = _bytes(kernel.dram_read_bytes), _bytes(kernel.dram_written_bytes)
        parts.append(f"{read} read from DRAM and {written} written")
    hits = {"L1": kernel.l1_hit_pct, "L2": kernel.l2_hit_pct}
    found = [f"{value:.0f} % in {name}" for name, value in hits.items() if value is not None]
    parts += [f"hits {' and '.join(found)}"] if found else []
    return ", ".join(parts)


def _stalls(kernel: KernelProfile) -> str:
    large = [(why, pct) for why, pct in kernel.stalls_pct.items() if pct >= _STALL_PCT]
    words = "; ".join(f"{pct:.0f} % for {why}" for why, pct in large)
    issued = "" if kernel.issue_pct is None else f" (an instruction is issued in {kernel.issue_pct:.0f} % of cycles)"
    return f"of the time that warps wait: {words}{issued}" if words else ""


def _pipes(kernel: KernelProfile) -> str:
    busy = [f"{name} {pct:.0f} %" for name, pct in kernel.pipes_pct.items() if pct >= _STALL_PCT]
    return f"busiest units: {', '.join(busy)}" if busy else ""


def _occupancy(kernel: KernelProfile) -> str:
    parts = []
    if kernel.achieved_occupancy_pct is not None and kernel.theoretical_occupancy_pct is not None:
        achieved, possible = kernel.achieved_occupancy_pct, kernel.theoretical_occupancy_pct
        limits = f", limited by {' and '.join(kernel.occupancy_limits)}" if kernel.occupancy_limits else ""
        parts.append(f"occupancy {achieved:.0f} % of {possible:.0f} % possible{limits}")
    if kernel.waves is not None:
        parts.append(f"{kernel.waves:.2g} waves of blocks{_filling(kernel.waves)}")
    if kernel.registers is not None:
        parts.append(f"{kernel.registers} registers a thread")
    return ", ".join(parts)


def _filling(waves: float) -> str:
    """Say what the last wave leaves idle, where that is much of the whole."""
    if waves < _FULL_WAVE:
        return " (too few blocks to fill the device)"
    rest = waves % 1
    if 1 < waves < _MANY_WAVES and 0 < rest < _TAIL:
        return f" (the last wave fills {100 * rest:.0f} % of the device)"
    return ""


def _waste(kernel: KernelProfile) -> str:
    parts = []
    if kernel.bank_conflict_ways is not None and kernel.bank_conflict_ways >= _CONFLICT_WAYS:
        parts.append(f"{kernel.bank_conflict_ways:.1f}-way bank conflicts in shared memory")
    if kernel.local_bytes:
        parts.append(f"{_bytes(kernel.local_bytes)} of local memory moved (spilled registers or arrays of a thread)")
    return ", ".join(parts)


def _bytes(nbytes: float) -> str:
    for unit in ("bytes", "KB", "MB"):
        if nbytes < 1000:
            return f"{nbytes:.3g} {unit}"
        nbytes /= 1000
    return f"{nbytes:.3g} GB"
