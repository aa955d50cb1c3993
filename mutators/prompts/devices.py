"""A device in words: its limits, its peaks, and what they mean for a kernel."""

from __future__ import annotations

import re

from evo.records import Device, Peaks

_WARP = 32
_DRAM_LATENCY_S = 700e-9
"""From a load to its value when it comes from memory, about: 600 to 800 ns on sm_80 and sm_90 under load (Luo et al.,
"Benchmarking and Dissecting the Nvidia Hopper GPU Architecture", 2024)."""
_ARCH = re.compile(r"sm_(\d+)([a-z]?)")

_HOST = (
    "This device is a CPU that runs CUDA source, and latency is measured on it. The threads of a block are fibres on "
    "one core: a kernel without barriers runs as a plain loop over its threads; each barrier or warp operation "
    "switches every thread once (10 to 25 ns a thread); shared memory is ordinary memory. What is fast is what is fast "
    "on a CPU: few threads with much work each, adjacent elements in the innermost loop, tiles that fit its caches, no "
    "barriers. It cannot run inline PTX, CUB, Thrust, textures, dynamic parallelism, grid-wide or cluster "
    "synchronisation, asynchronous copies, 8-bit floats or device malloc."
)


def text(device: Device) -> str:
    """Describe the device: limits, what full occupancy leaves a thread, peaks, what its architecture has."""
    if device.kind == "host":
        return f"{_title(device)}\n\n{_HOST}"
    lines = [*_limits(device), *_peaks(device), *_features(device.arch)]
    return "\n".join([_title(device), "", *(f"- {line}" for line in lines)])


def brief(device: Device) -> str:
    """Return its name and hard limits alone."""
    return _title(device)


def _title(device: Device) -> str:
    facts = [
        f"{device.num_sms} multiprocessors (SM)" if device.num_sms > 1 else "one multiprocessor",
        f"at most {device.max_threads_per_block} threads in a block",
        f"at most {device.max_shared_bytes} bytes of shared memory in a block",
        f"{device.l2_bytes} bytes of last-level cache",
    ]
    return f"# Device\n\n{device.name} ({device.arch}): {', '.join(facts)}."


def _limits(device: Device) -> list[str]:
    """What fits a multiprocessor at once; a block's registers and shared memory are taken from these."""
    threads, blocks = device.max_threads_per_sm, device.max_blocks_per_sm
    lines = [f"an SM holds at most {threads} threads ({threads // _WARP} warps) and {blocks} blocks at once"]
    if device.registers_per_sm:
        full, half = device.registers_per_sm // threads, 2 * device.registers_per_sm // threads
        lines.append(
            f"an SM has {device.registers_per_sm} registers: {full} a thread at full occupancy, {half} at half of it, "
            "255 a thread at most"
        )
    return lines


def _peaks(device: Device) -> list[str]:
    peaks = device.peaks
    if peaks is None:
        return []
    rates = [f"{peaks.dram_bytes_per_s / 1e12:.3g} TB/s of memory bandwidth"] if peaks.dram_bytes_per_s else []
    rates += [f"{rate / 1e12:.3g} TFLOP/s {name}" for name, rate in _arithmetic(peaks) if rate]
    lines = [f"peaks in theory: {', '.join(rates)}"] if rates else []
    if peaks.dram_bytes_per_s:
        flying = peaks.dram_bytes_per_s * _DRAM_LATENCY_S / device.num_sms / 1024
        lines.append(f"memory is busy only with about {flying:.0f} KiB of loads in flight in each SM at all times")
    if peaks.dram_bytes_per_s and peaks.fp32_flops_per_s:
        ridge = peaks.fp32_flops_per_s / peaks.dram_bytes_per_s
        lines.append(f"less than {ridge:.2g} FP32 operations for each byte from memory: bandwidth is the limit")
    return lines


def _arithmetic(peaks: Peaks) -> tuple[tuple[str, float], ...]:
    return (
        ("FP32", peaks.fp32_flops_per_s),
        ("TF32 on tensor cores", peaks.tf32_flops_per_s),
        ("FP16 on tensor cores", peaks.fp16_flops_per_s),
        ("BF16 on tensor cores", peaks.bf16_flops_per_s),
    )


def _features(arch: str) -> list[str]:
    """What CUDA C++ offers from which compute capability on (CUDA C++ Programming Guide, "Compute Capabilities")."""
    found = _ARCH.fullmatch(arch)
    if found is None:
        return []
    capability, lines = int(found[1]), list[str]()
    if capability >= 80:
        lines.append(
            "asynchronous copies into shared memory: `__pipeline_memcpy_async` (cuda_pipeline.h; 4, 8 or 16 bytes), "
            "which need no registers on the way"
        )
        lines.append("tensor cores for FP16, BF16, TF32 and INT8 (mma.h, or `mma.sync` in inline PTX)")
    elif capability >= 70:
        lines.append("tensor cores for FP16 (mma.h); no asynchronous copies, so prefetch into registers")
    if capability >= 90:
        lines.append(
            "clusters of blocks that read each other's shared memory (header key `cluster`, cooperative_groups.h); "
            "bulk copies (`cp.async.bulk` with mbarriers, inline PTX), but no tensor maps: those cannot be made here"
        )
    if (capability, found[2]) == (90, "a"):
        lines.append("`wgmma` in inline PTX, which alone reaches the peaks of the tensor cores")
    return lines
