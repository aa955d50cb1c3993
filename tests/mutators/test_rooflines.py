"""A roofline in words."""

from __future__ import annotations

from evo.records import Roofline
from mutators import rooflines

COPY = Roofline(21.3, "memory", 0.612, 0.612, 0.031, "fp32")


def test_both_shares_the_side_that_binds_and_the_floor_are_told() -> None:
    assert rooflines.describe(COPY) == (
        "61 % of memory bandwidth and 3.1 % of the FP32 rate, as measured on this device; memory bandwidth binds; "
        "no kernel that does all the work is faster than 21.3 µs here"
    )


def test_tensor_cores_are_named() -> None:
    told = rooflines.describe(Roofline(0.0, "fp16", 1.03, None, 1.03, "fp16"))
    assert told == "103 % of the tensor cores' FP16 rate, as measured on this device; the tensor cores' FP16 rate binds"


def test_a_case_that_is_too_short_says_that_launching_binds() -> None:
    assert "launching binds" in rooflines.describe(Roofline(0.0, "latency", 0.2, 0.2))


def test_where_nothing_is_known_nothing_is_said() -> None:
    assert rooflines.describe(None) == rooflines.describe(Roofline(0.0)) == ""
    assert rooflines.short(None) == rooflines.short(Roofline(12.0)) == ""


def test_in_a_table_it_is_a_figure_and_a_word() -> None:
    assert rooflines.short(COPY) == "61 % memory"
