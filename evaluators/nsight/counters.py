"""Nsight Compute's raw page, as CSV, read into `KernelProfile`: which counter is what, and in which unit it comes.

Names are those of the Kernel Profiling Guide ("Metrics Reference"). A counter that is missing, or no number, is None.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from evo.records import KernelProfile

MOST_STALLS = 5
MOST_PIPES = 4
SECTOR_BYTES = 32
"""Of every cache of NVIDIA's GPUs (Kernel Profiling Guide, "Memory Tables")."""

_UNITS = {
    "nsecond": 1e-3, "ns": 1e-3, "usecond": 1.0, "us": 1.0, "msecond": 1e3, "ms": 1e3, "second": 1e6, "s": 1e6,
    "Kbyte": 1e3, "Mbyte": 1e6, "Gbyte": 1e9, "Tbyte": 1e12, "KB": 1e3, "MB": 1e6, "GB": 1e9,
    "Kbyte/block": 1e3, "Mbyte/block": 1e6,
}  # fmt: skip
"""Unit -> factor to microseconds or bytes; any other unit, such as % or byte, has the factor 1."""

_FIGURES = {
    "sm_pct": ("sm__throughput.avg.pct_of_peak_sustained_elapsed",),
    "memory_pct": ("gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",),
    "dram_pct": (
        "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
        "dram__throughput.avg.pct_of_peak_sustained_elapsed",
    ),
    "l2_pct": ("lts__throughput.avg.pct_of_peak_sustained_elapsed",),
    "l1_pct": (
        "l1tex__throughput.avg.pct_of_peak_sustained_active",
        "l1tex__throughput.avg.pct_of_peak_sustained_elapsed",
    ),
    "l1_hit_pct": ("l1tex__t_sector_hit_rate.pct",),
    "l2_hit_pct": ("lts__t_sector_hit_rate.pct",),
    "theoretical_occupancy_pct": ("sm__maximum_warps_per_active_cycle_pct",),
    "achieved_occupancy_pct": ("sm__warps_active.avg.pct_of_peak_sustained_active",),
    "duration_us": ("gpu__time_duration.sum", "gpu__time_duration.avg"),
    "waves": ("launch__waves_per_multiprocessor",),
}
"""Field of `KernelProfile` -> counters that hold it, the first that is there counts."""

_SUMS = {
    "dram__bytes_read.sum": "dram_read_bytes",
    "dram__bytes_write.sum": "dram_written_bytes",
    "launch__registers_per_thread": "registers",
    "launch__shared_mem_per_block": "shared_bytes",
    "smsp__issue_active.avg.pct_of_peak_sustained_active": "issue_pct",
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum": "bank_conflict_ways",
}
"""Further counters that a model may ask for by name -> field."""

_LIMITS = {
    "registers": "launch__occupancy_limit_registers",
    "shared memory": "launch__occupancy_limit_shared_mem",
    "warps": "launch__occupancy_limit_warps",
    "blocks": "launch__occupancy_limit_blocks",
}
_STALL = re.compile(r"smsp__average_warps_issue_stalled_(\w+?)_per_issue_active(?:\.ratio)?")
_STALLS = {
    "long_scoreboard": "global, local or texture memory",
    "short_scoreboard": "shared memory or special functions",
    "mio_throttle": "the queue of shared memory and special functions, which is full",
    "lg_throttle": "the queue of global and local memory, which is full",
    "tex_throttle": "the queue of texture memory, which is full",
    "math_pipe_throttle": "an arithmetic unit that is busy",
    "barrier": "a barrier of the block",
    "membar": "a memory fence",
    "wait": "a fixed latency of the previous instruction",
    "not_selected": "their turn, while another warp issued",
    "no_instruction": "instructions to be fetched, or after a branch",
    "branch_resolving": "the target of a branch",
    "dispatch_stall": "the dispatcher",
    "imc_miss": "a constant that was not in its cache",
    "drain": "stores to be written out before the end",
    "sleeping": "__nanosleep",
    "gmma": "tensor cores (wgmma)",
    "misc": "other things",
}
"""Reason -> what warps wait for. `selected` is no stall: the warp issued."""
_PIPE = re.compile(
    r"sm__(?:inst_executed_)?pipe_(\w+?)(?:_cycles_active)?(?:_v2)?\.avg\.pct_of_peak_sustained_(?:active|elapsed)"
)
_NAME = re.compile(r"[A-Za-z_]\w*(?=\s*(?:[(<]|$))")


@dataclass(frozen=True)
class _Launch:
    """One row: counter -> number in microseconds, bytes, percent or pieces."""

    kernel: str
    numbers: Mapping[str, float]

    def first(self, *names: str) -> float | None:
        return next((self.numbers[name] for name in names if name in self.numbers), None)

    def whole(self, name: str) -> int | None:
        found = self.first(name)
        return None if found is None else round(found)

    def total(self, *names: str) -> float | None:
        found = [self.numbers[name] for name in names if name in self.numbers]
        return sum(found) if found else None


def read(text: str) -> tuple[KernelProfile, ...]:
    """Read what `ncu --import … --csv --page raw` prints: names, units, and one row for each launch, in order.

    Other lines before the names are left out. Text without any such table gives ().
    """
    return tuple(_profile(launch) for launch in _launches(text))


def field_of(counter: str) -> str:
    """Return the field of `KernelProfile` that tells what a counter of Nsight Compute's counts, or ""."""
    if _STALL.fullmatch(counter):
        return "stalls_pct"
    if _PIPE.fullmatch(counter):
        return "pipes_pct"
    if counter in _LIMITS.values():
        return "occupancy_limits"
    figures = (field for field, names in _FIGURES.items() if counter in names)
    return _SUMS.get(counter) or next(figures, "")


def _launches(text: str) -> Iterator[_Launch]:
    lines = text.splitlines()
    begin = next((index for index, line in enumerate(lines) if line.startswith(('"ID"', "ID,"))), None)
    if begin is None:
        return
    rows = [row for row in csv.reader(lines[begin:]) if row]
    names, rows = rows[0], rows[1:]
    units = [""] * len(names)
    if rows and not rows[0][0].strip().isdigit():
        units, rows = rows[0], rows[1:]
    for row in rows:
        if len(row) == len(names) == len(units) and row[0].strip().isdigit():
            yield _launch(names, units, row)


def _launch(names: list[str], units: list[str], row: list[str]) -> _Launch:
    kernel, numbers = "", {}
    for name, unit, cell in zip(names, units, row, strict=True):
        if name == "Kernel Name":
            kernel = _short(cell)
        value = _number(cell)
        if value is not None:
            numbers[name] = value * _UNITS.get(unit, 1.0)
    return _Launch(kernel, numbers)


def _number(cell: str) -> float | None:
    try:
        value = float(cell.replace(",", ""))
    except ValueError:
        return None
    return value if abs(value) < float("inf") else None


def _short(name: str) -> str:
    """Return a kernel's bare name: return type, template arguments and parameters are left out."""
    found = _NAME.search(name)
    return found[0] if found else "kernel"


def _profile(launch: _Launch) -> KernelProfile:
    figures = {field: launch.first(*names) for field, names in _FIGURES.items()}
    return KernelProfile(
        kernel=launch.kernel,
        dram_read_bytes=_dram_bytes(launch, "read"),
        dram_written_bytes=_dram_bytes(launch, "write"),
        occupancy_limits=_limits(launch),
        registers=launch.whole("launch__registers_per_thread"),
        shared_bytes=launch.whole("launch__shared_mem_per_block"),
        issue_pct=_issue_pct(launch),
        stalls_pct=_stalls_pct(launch),
        pipes_pct=_pipes_pct(launch),
        bank_conflict_ways=_bank_conflict_ways(launch),
        local_bytes=_local_bytes(launch),
        **figures,
    )


def _dram_bytes(launch: _Launch, way: str) -> float | None:
    nbytes, sectors = launch.first(f"dram__bytes_{way}.sum"), launch.first(f"dram__sectors_{way}.sum")
    return SECTOR_BYTES * sectors if nbytes is None and sectors is not None else nbytes


def _limits(launch: _Launch) -> tuple[str, ...]:
    """Return what permits the fewest blocks; () where as many warps fit as the multiprocessor holds."""
    if (launch.first(*_FIGURES["theoretical_occupancy_pct"]) or 0.0) >= 99.5:
        return ()
    found = {words: launch.numbers[name] for words, name in _LIMITS.items() if name in launch.numbers}
    return tuple(words for words, blocks in found.items() if blocks == min(found.values()))


def _issue_pct(launch: _Launch) -> float | None:
    per_cycle = launch.first("smsp__issue_active.avg.per_cycle_active")
    return launch.first("smsp__issue_active.avg.pct_of_peak_sustained_active") if per_cycle is None else 100 * per_cycle


def _stalls_pct(launch: _Launch) -> dict[str, float]:
    """Return the largest shares of the cycles that warps spent waiting."""
    found = {match[1]: value for name, value in launch.numbers.items() if (match := _STALL.fullmatch(name))}
    cycles = {_STALLS[reason]: value for reason, value in found.items() if reason in _STALLS and value > 0}
    return _largest({words: 100 * value / sum(cycles.values()) for words, value in cycles.items()}, MOST_STALLS)


def _pipes_pct(launch: _Launch) -> dict[str, float]:
    found: dict[str, float] = {}
    for name, value in launch.numbers.items():
        match = _PIPE.fullmatch(name)
        if match and value > 0:
            found[match[1]] = max(value, found.get(match[1], 0.0))
    return _largest(found, MOST_PIPES)


def _largest(found: Mapping[str, float], count: int) -> dict[str, float]:
    return dict(sorted(found.items(), key=lambda item: -item[1])[:count])


def _bank_conflict_ways(launch: _Launch) -> float | None:
    """Return passes over passes without conflicts: a wide access needs several, so that requests are no measure."""
    passes = launch.total(*(f"l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{op}.sum" for op in ("ld", "st")))
    extra = launch.total(*(f"l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_{op}.sum" for op in ("ld", "st")))
    if not passes or extra is None or passes <= extra:
        return None
    return passes / (passes - extra)


def _local_bytes(launch: _Launch) -> float | None:
    sectors = launch.total(*(f"l1tex__t_sectors_pipe_lsu_mem_local_op_{op}.sum" for op in ("ld", "st")))
    return None if sectors is None else SECTOR_BYTES * sectors
