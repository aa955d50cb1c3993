"""What a device's peaks allow on a case, and how near a latency comes: numbers in, numbers and words out.

The model is Williams, Waterman & Patterson, "Roofline" (2009). Nothing here launches or measures, and nobody is judged.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evo import workload as workloads
from evo.records import Case, Device, Direction, Peaks, Roofline, Workload

SLACK = 0.95
"""Below this share of the floor a latency is too good: a clock may be a little above what its driver tells."""
SHORT = 5.0
"""A latency below so many times an empty kernel's is in good part what launching takes."""
_SMALL_INTEGERS = {"int8", "uint8"}


@dataclass(frozen=True)
class Work:
    """What a case asks of a device.

    Attributes:
        flops: useful floating-point operations.
        nbytes: compulsory traffic in bytes; 0 for a hot measurement, which the caches may serve.
        dtype: narrowest floating-point type of a buffer; "" where arithmetic gives no bound: there is none, or there
            are bytes, whose products integer units compute.
    """

    flops: int
    nbytes: int
    dtype: str


def work(workload: Workload, case: Case, *, cold: bool) -> Work:
    """Return what a case asks of a device.

    Args:
        workload: gives the formulas.
        case: gives their dims.
        cold: whether the caches are flushed before each launch.
    """
    dtypes = {p.dtype for p in workload.parameters if p.direction is not Direction.SCALAR}
    floats = sorted(
        (dtype for dtype in dtypes if np.dtype(dtype).kind == "f"), key=lambda name: np.dtype(name).itemsize
    )
    bounded = floats and not dtypes & _SMALL_INTEGERS
    nbytes = workloads.bytes_moved(workload, case) if cold else 0
    return Work(workloads.flops(workload, case), nbytes, floats[0] if bounded else "")


def floor_us(asked: Work, device: Device) -> float:
    """Return the latency below which the device's theoretical peaks do not go; 0 where nothing bounds it.

    What was written may stay in the last-level cache, so that its size is taken off the traffic. The fastest unit that
    can give the workload's precision does the arithmetic, see `_fastest`.
    """
    if device.peaks is None:
        return 0.0
    memory_s = _seconds(max(0, asked.nbytes - device.l2_bytes), device.peaks.dram_bytes_per_s)
    return 1e6 * max(memory_s, _seconds(asked.flops, _fastest(asked.dtype, device.peaks)))


def too_fast(latency_us: float, floor: float) -> bool:
    """Whether a latency is less than the device allows, by more than its clocks leave open."""
    return latency_us < SLACK * floor


def place(
    asked: Work, latency_us: float, floor: float, measured: Peaks | None, *, tensor: bool, empty_us: float
) -> Roofline:
    """Say how near a latency comes to the measured peaks, and which of them is nearest.

    Args:
        asked: of the device.
        latency_us: of the case.
        floor: see `floor_us`.
        measured: what the device reaches; None where nobody has measured it.
        tensor: whether the kernel computes on tensor cores.
        empty_us: what an empty kernel takes; 0 where unknown.
    """
    short = latency_us < SHORT * empty_us
    if measured is None:
        return Roofline(floor, "latency" if short else "")
    unit, rate = _unit(asked.dtype, measured, tensor=tensor)
    memory = _share(asked.nbytes, measured.dram_bytes_per_s, latency_us)
    compute = _share(asked.flops, rate, latency_us)
    shares = {name: share for name, share in (("memory", memory), (unit, compute)) if share is not None}
    nearest = max(shares, key=lambda name: shares[name], default="")
    return Roofline(
        floor_us=floor,
        binds="latency" if short else nearest,
        efficiency=shares.get(nearest),
        memory=memory,
        compute=compute,
        unit=unit if compute is not None else "",
    )


def too_fast_doubt(latency_us: float, floor: float) -> str:
    """Return the doubt about a latency that is below the floor."""
    return (
        f"faster than the roofline allows: {latency_us:.4g} µs is {latency_us / floor:.0%} of the {floor:.4g} µs that "
        "this device's peaks ask for; its answers on unseen data were right, so that it may do with fewer operations "
        "or bytes than workload.yaml counts"
    )


def refuted_doubt(anchor_us: float, floor: float) -> str:
    """Return the doubt about a floor that the trusted first kernel is below."""
    return (
        f"no roofline: the first kernel itself takes {anchor_us:.4g} µs where this device's peaks ask for "
        f"{floor:.4g} µs; correct flops and bytes_moved of workload.yaml, which count more than the work needs"
    )


def remembers_doubt(first_us: float, unseen_us: float) -> str:
    """Return the doubt about a kernel that was too fast until it got data that it had never seen."""
    return (
        f"faster than the roofline allows on data that it had seen, {first_us:.4g} µs; the latency is that on data "
        f"that it had not, {unseen_us:.4g} µs"
    )


def short_doubt(anchor_us: float | None, empty_us: float) -> tuple[str, ...]:
    """Return a doubt where a case is so short that launching is much of it."""
    if not anchor_us or anchor_us >= SHORT * empty_us:
        return ()
    return (
        f"too short to tell kernels apart well: the first kernel takes {anchor_us:.4g} µs and an empty one "
        f"{empty_us:.4g} µs; let the case's dims grow, or batch several problems into one launch, until it takes "
        f"{SHORT * empty_us:.3g} µs or more",
    )


def _fastest(dtype: str, peaks: Peaks) -> float:
    """Return the rate of the fastest unit that gives a dtype's precision; 0 where nobody can say.

    For float32 that is TF32 or two products in float16: one such product fails the tolerance, which the workload's
    self-test sees to. For float64 integer units compete, whose rates are not known here.
    """
    if dtype == "float16":
        return max(peaks.fp16_flops_per_s, peaks.fp32_flops_per_s)
    if dtype == "float32":
        return max(peaks.fp32_flops_per_s, peaks.tf32_flops_per_s, peaks.fp16_flops_per_s / 2)
    return 0.0


def _unit(dtype: str, peaks: Peaks, *, tensor: bool) -> tuple[str, float]:
    """Return the unit that a kernel computes with, and its rate."""
    if dtype not in ("float16", "float32"):
        return "", 0.0
    if not tensor:
        return "fp32", peaks.fp32_flops_per_s
    return ("fp16", peaks.fp16_flops_per_s) if dtype == "float16" else ("tf32", peaks.tf32_flops_per_s)


def _seconds(amount: float, rate: float) -> float:
    return amount / rate if rate else 0.0


def _share(amount: float, rate: float, latency_us: float) -> float | None:
    """Return the part of a rate that is used; None where there is nothing to count, or no rate."""
    if not amount or not rate or latency_us <= 0:
        return None
    return amount / rate / (latency_us * 1e-6)
