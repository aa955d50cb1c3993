from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluators.validate import WORST_ERROR, compare_output, never_written
from evo.records import Tolerance

POISON = np.full(2, 0xFFC3, np.uint16).view(np.float32)[0]


def compare(got, want, *, scale=None, terms=1, dtype="float32", **tolerance):
    want = np.asarray(want, np.float64 if np.dtype(dtype).kind == "f" else np.int64)
    scale = None if scale is None else np.asarray(scale, np.float64)
    return compare_output(np.asarray(got, dtype), want, scale, Tolerance(**tolerance), dtype, terms)


def test_the_limit_is_budget_times_root_terms_times_roundoff_times_scale():
    allowed = 4 * math.sqrt(100) * 2.0**-24 * 50.0
    just_inside = compare([1.0 + 0.9 * allowed], [1.0], scale=[50.0], terms=100)
    just_outside = compare([1.0 + 1.1 * allowed], [1.0], scale=[50.0], terms=100)
    assert just_inside.ok
    assert just_inside.error == pytest.approx(0.9, abs=0.01)
    assert not just_outside.ok
    assert just_outside.error == pytest.approx(1.1, abs=0.01)


def test_absolute_slack_is_added():
    assert compare([0.00099], [0.0], atol=0.001).ok
    assert not compare([0.0011], [0.0], atol=0.001).ok


def test_a_zero_of_double_precision_is_right_where_no_error_is_allowed():
    verdict = compare([0.0, 1.0], [0.0, 1.0], dtype="float64")
    assert (verdict.ok, verdict.error) == (True, 0.0)
    assert not compare([5e-324, 1.0], [0.0, 1.0], dtype="float64").ok


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=30))
def test_a_correctly_rounded_result_is_always_right(values):
    want = np.array(values)
    with np.errstate(over="ignore"):
        got = want.astype(np.float32)
    assert compare(got, want).ok


@pytest.mark.parametrize("got", [math.nan, math.inf, -math.inf])
def test_no_number_where_a_number_is_expected_is_wrong(got):
    verdict = compare([1.0, got], [1.0, 2.0])
    assert not verdict.ok
    assert (verdict.count, verdict.worst, verdict.error) == (1, 1, WORST_ERROR)


@pytest.mark.parametrize(
    ("want", "got"), [(math.nan, 1.0), (math.inf, 1.0), (math.inf, -math.inf), (math.inf, math.nan)]
)
def test_nan_and_infinity_must_match_position_and_sign(want, got):
    assert not compare([got], [want]).ok
    assert compare([want], [want]).ok


def test_an_overflowing_reference_expects_infinity():
    assert compare([math.inf], [1e39]).ok
    assert not compare([-math.inf], [1e39]).ok


def test_integers_and_exact_floats_must_be_equal():
    assert compare([1, 2], [1, 2], dtype="int32").ok
    assert not compare([1, 3], [1, 2], dtype="int32").ok
    assert compare([0.0, 1.0], [-0.0, 1.0], exact=True).ok
    assert not compare([np.nextafter(np.float32(1), np.float32(2))], [1.0], exact=True).ok


def test_the_message_names_the_first_wrong_element_and_how_many():
    want = np.zeros((3, 4)) + 5.0
    got = want.copy()
    got[1, 2], got[2, 0] = 7.0, 8.0
    verdict = compare(got, want)
    assert verdict.message.startswith(
        "2 of 12 elements are wrong; the first is [1, 2]: got 7, expected 5 (allowed error"
    )
    assert verdict.worst == 8


def test_elements_that_nobody_wrote_are_told_apart():
    got = np.arange(6, dtype=np.float32).reshape(2, 3)
    got[1, 1:] = POISON
    verdict = compare(got, np.arange(6).reshape(2, 3))
    assert "2 of them were never written, the first of these is [1, 1]" in verdict.message
    assert "NaN" not in verdict.message
    nothing = compare(np.full(4, POISON), np.ones(4))
    assert nothing.message == "No element was ever written: all 4 still hold the pattern from before the launch."


def test_a_computed_nan_and_minus_one_are_not_taken_for_poison():
    assert not never_written(np.array([np.nan, -np.nan], np.float32)).any()
    assert not never_written(np.array([-1], np.int32)).any()
    assert never_written(np.full(4, 0xFFC3, np.uint16).view(np.int32)).all()
    assert not never_written(np.full(4, 255, np.uint8)).any()


def test_a_wrong_nan_is_said():
    assert "1 of them are NaN" in compare([1.0, math.nan], [1.0, 2.0]).message


def test_empty_outputs_are_right():
    assert compare(np.zeros((0, 3)), np.zeros((0, 3))).ok


def test_shapes_must_agree():
    with pytest.raises(ValueError, match=r"expected an output of shape \(2,\), found \(3,\)"):
        compare(np.zeros(3), np.zeros(2))
