from __future__ import annotations

import dataclasses

import pytest

from evo.records import CaseResult, Device, Evaluation, KernelProfile, Latency, Profile, Role, Roofline, Status
from mutators.prompts import directions
from mutators.prompts.directions import Limit, limit_of, suggestion
from tests.support.mutation import GPU, HOST, accepted, context, measured, rejected


def with_rooflines(*rooflines: Roofline) -> Evaluation:
    latency = Latency(10.0, 9.0, 11.0, 0.01, 100)
    cases = [
        CaseResult(f"c{n}", Role.PERFORMANCE, Status.OK, latency=latency, roofline=r) for n, r in enumerate(rooflines)
    ]
    return dataclasses.replace(accepted(1, 10.0), cases=tuple(cases))


@pytest.mark.parametrize(
    ("rooflines", "limit"),
    [
        ([Roofline(1.0, "memory", 0.9, 0.9, 0.1, "fp32")], Limit.MEMORY),
        ([Roofline(1.0, "fp32", 0.7, 0.1, 0.7, "fp32")], Limit.COMPUTE),
        ([Roofline(1.0, "fp16", 0.7, 0.1, 0.7, "fp16")], Limit.COMPUTE),
        ([Roofline(1.0, "memory", 0.3, 0.3, 0.1, "fp32")], Limit.NEITHER),
        ([Roofline(1.0, "latency", 0.1, 0.1)], Limit.LAUNCH),
        ([Roofline(1.0)], Limit.UNKNOWN),
        ([Roofline(1.0, "memory", 0.9, 0.9), Roofline(1.0, "memory", 0.2, 0.2)], Limit.NEITHER),
    ],
)
def test_without_counters_the_roofline_says_what_limits_a_kernel(rooflines: list[Roofline], limit: Limit) -> None:
    assert limit_of(with_rooflines(*rooflines)) is limit


@pytest.mark.parametrize(
    ("figures", "limit"),
    [
        ({"dram_pct": 85.0, "sm_pct": 20.0}, Limit.MEMORY),
        ({"dram_pct": 5.0, "l1_pct": 90.0, "sm_pct": 40.0}, Limit.CACHE),
        ({"l2_pct": 75.0, "dram_pct": 40.0}, Limit.CACHE),
        ({"sm_pct": 80.0, "l1_pct": 61.0}, Limit.COMPUTE),
        ({"sm_pct": 30.0, "dram_pct": 20.0}, Limit.LATENCY),
    ],
)
def test_counters_of_the_longest_launch_come_first(figures: dict[str, float], limit: Limit) -> None:
    kernels = (KernelProfile("short", 1.0, sm_pct=99.0), KernelProfile("long", 9.0, **figures))  # type: ignore[arg-type]
    evaluation = with_rooflines(Roofline(1.0, "memory", 0.9, 0.9))
    assert limit_of(dataclasses.replace(evaluation, profile=Profile("c0", kernels))) is limit


def test_a_profile_without_figures_leaves_the_roofline_to_say_it() -> None:
    evaluation = with_rooflines(Roofline(1.0, "memory", 0.9, 0.9))
    assert limit_of(dataclasses.replace(evaluation, profile=Profile("c0", (KernelProfile("k"),)))) is Limit.MEMORY
    assert limit_of(dataclasses.replace(evaluation, profile=Profile(problem="no ncu"))) is Limit.MEMORY
    assert limit_of(None) is Limit.UNKNOWN


def test_directions_of_a_limit_are_taken_in_turns() -> None:
    for evaluation in (accepted(1, 10.0), measured(accepted(1, 10.0))):
        texts = [suggestion(evaluation, GPU, turn) for turn in range(40)]
        assert len(set(texts)) >= 4
        assert texts[:3] != texts[1:4]


def test_what_was_measured_is_named_and_what_was_not_is_not() -> None:
    assert "limited by the bandwidth of the caches" in suggestion(measured(accepted(1, 10.0)), GPU, 0)
    assert "limited by" not in suggestion(accepted(1, 10.0), GPU, 0)


def test_a_cpu_has_directions_of_its_own_and_an_unknown_device_a_gpus() -> None:
    assert "cache line" in suggestion(accepted(1, 10.0), HOST, 0)
    assert "16-byte" in suggestion(None, Device("hip", "a GPU", "x", "gfx90a"), 0)


def test_the_seed_alone_varies_the_aim_and_a_failure_changes_it() -> None:
    aims = {directions.aim(context(seed=(0, task)), "Faster.", "Mend.") for task in range(60)}
    assert len(aims) == 6
    assert directions.aim(context(), "Faster.", "Mend.") == directions.aim(context(), "Faster.", "Mend.")
    broken = dataclasses.replace(context().parents[0], evaluation=rejected(1, Status.CRASH, "validate", "x"))
    assert directions.aim(context(broken), "Faster.", "Mend.") == "Mend."
