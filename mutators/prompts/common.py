"""The parts that every operator's prompt begins with, each with its shorter forms."""

from __future__ import annotations

from evo.records import Device, Workload
from mutators.fitting import Section
from mutators.prompts import devices, priorities, workloads


def workload(of: Workload, device: Device) -> Section:
    """Say what to compute; correctness cases may shrink to their number."""
    full = workloads.text(of, device.peaks)
    return Section(full, priorities.WORKLOAD, "correctness cases", (workloads.text(of, every_case=False),))


def device(of: Device) -> Section:
    """Say what it runs on; advice on the device may go, limits stay."""
    return Section(devices.text(of), priorities.DEVICE, "notes on the device", (devices.brief(of),))


def task(words: str) -> Section:
    """Say what to do."""
    return Section(f"# What to do\n\n{words}", priorities.ESSENTIAL)


def answer(words: str) -> Section:
    """Say how to answer."""
    return Section(words, priorities.ESSENTIAL)
