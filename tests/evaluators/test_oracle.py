from __future__ import annotations

import numpy as np
import pytest

from evaluators import oracle
from evo import workload as workloads
from evo.records import Case, Direction, Draw, Parameter, Role, Tolerance
from tests.support import scale


@pytest.mark.parametrize("name", workloads.names())
def test_every_shipped_workload_catches_every_mutant(name, tmp_path):
    assert oracle.self_test(workloads.load(name, cwd=tmp_path), seed=0) == ()


def test_the_honest_tolerance_of_a_small_workload_is_enough():
    assert oracle.self_test(scale.workload(), seed=3) == ()


def test_a_tolerance_that_lets_half_precision_pass_is_refused():
    reasons = oracle.self_test(scale.workload(tolerance={"": Tolerance(budget=2**14)}), seed=3)
    assert len(reasons) == 3
    assert all("half precision" in reason and "tighten the tolerance" in reason for reason in reasons)


def test_a_tolerance_that_lets_anything_pass_is_refused_for_every_mutant():
    reasons = oracle.self_test(scale.workload(tolerance={"": Tolerance(atol=100.0)}), seed=3)
    assert len(reasons) == len(oracle.MUTANTS)
    assert any("writing zeros" in reason for reason in reasons)
    assert any("copying an input" in reason for reason in reasons)


def test_a_workload_without_cases_to_judge_by_is_refused():
    timed_only = (Case("large", Role.PERFORMANCE, {"N": 64}),)
    assert "no correctness or hidden case" in oracle.self_test(scale.workload(cases=timed_only), seed=0)[0]


def test_constant_inputs_alone_are_refused_since_the_answer_is_a_constant():
    draw = Draw("constant", 3.0)
    cases = (Case("ones", Role.CORRECTNESS, {"N": 64}, {"x": draw}),)
    reasons = oracle.self_test(scale.workload(cases=cases), seed=0)
    assert [reason for reason in reasons if "writing one constant" in reason]


def test_integer_workloads_are_tested_with_the_mutants_that_apply():
    parameters = (
        Parameter("x", "int32", Direction.IN, ("N",), draw=Draw("integers", 0, 100)),
        Parameter("y", "int32", Direction.OUT, ("N",)),
    )
    reference = "import numpy as np\ndef reference(inputs, dims):\n    return {'y': 2 * inputs['x'].astype(np.int64)}\n"
    made = scale.workload(parameters=parameters, reference=reference)
    assert oracle.self_test(made, seed=0) == ()


def test_rounding_keeps_eleven_bits_and_does_not_overflow():
    values = np.array([1.0 + 2.0**-10, 1.0 + 2.0**-12, 1e9, 0.0, np.inf])
    rounded = oracle._rounded(values, np.abs(values))
    assert rounded[0] == 1.0 + 2.0**-10
    assert rounded[1] == 1.0
    assert rounded[2] == pytest.approx(1e9, rel=2.0**-11)
    assert rounded[3:].tolist() == [0.0, np.inf]
    with np.errstate(over="ignore"):
        assert np.float16(1.0 + 2.0**-12) == rounded[1]
