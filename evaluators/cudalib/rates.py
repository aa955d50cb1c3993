"""What a GPU could do in theory, by its architecture, clocks and memory bus. Numbers only: no device is asked here."""

from __future__ import annotations

from typing import NamedTuple

from evo.records import Peaks


class _Units(NamedTuple):
    """Operations of one multiprocessor in one clock; a multiply-add counts twice."""

    fp32: int
    tf32: int
    fp16: int


_UNITS = {
    (7, 0): _Units(128, 0, 1024),
    (7, 2): _Units(128, 0, 1024),
    (7, 5): _Units(128, 0, 1024),
    (8, 0): _Units(128, 1024, 2048),
    (8, 6): _Units(256, 512, 1024),
    (8, 7): _Units(256, 1024, 2048),
    (8, 9): _Units(256, 512, 1024),
    (9, 0): _Units(256, 2048, 4096),
    (10, 0): _Units(256, 4096, 8192),
    (10, 3): _Units(256, 4096, 8192),
    (11, 0): _Units(256, 4096, 8192),
    (12, 0): _Units(256, 512, 1024),
    (12, 1): _Units(256, 512, 1024),
}
"""By compute capability.

float32: lanes of CUDA C++ Programming Guide, "Arithmetic Instructions". Tensor cores, dense: NVIDIA's white papers of
Volta, Turing, GA100, GA102, Ada, Hopper and Blackwell and data sheets of Orin and Thor, whose peak rates are these
numbers times multiprocessors times boost clock (H100 SXM: 132 · 4096 · 1.83 GHz = 989 TFLOP/s of float16). GeForce
cards sum in float32 at half of it.
"""
_BFLOAT16_SINCE = (8, 0)
_TRANSFERS_PER_CLOCK = 2
"""The driver tells a clock by which every kind of memory so far moves two bits a pin (double data rate)."""


def theoretical(capability: tuple[int, int], num_sms: int, sm_clock_hz: float, dram_bytes_per_s: float) -> Peaks:
    """Return what no kernel exceeds; 0 for arithmetic where the architecture is unknown.

    Args:
        capability: compute capability, (major, minor).
        num_sms: multiprocessors.
        sm_clock_hz: the highest that they run at.
        dram_bytes_per_s: see `memory_rate`.
    """
    units = _UNITS.get(capability, _Units(0, 0, 0))
    clocks_per_s = num_sms * sm_clock_hz
    return Peaks(
        dram_bytes_per_s=dram_bytes_per_s,
        fp32_flops_per_s=units.fp32 * clocks_per_s,
        tf32_flops_per_s=units.tf32 * clocks_per_s,
        fp16_flops_per_s=units.fp16 * clocks_per_s,
        bf16_flops_per_s=units.fp16 * clocks_per_s if capability >= _BFLOAT16_SINCE else 0.0,
    )


def memory_rate(clock_hz: float, bus_bits: int) -> float:
    """Return the bytes that pass a memory bus of so many bits in a second."""
    return _TRANSFERS_PER_CLOCK * clock_hz * bus_bits / 8
