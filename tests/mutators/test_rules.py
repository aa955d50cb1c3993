from __future__ import annotations

import dataclasses
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluators.device import Setup
from evaluators.host import HostDevice
from evo import kernel as kernels
from evo import workload as workloads
from evo.config import Timing, Tuning
from evo.records import Device, Evaluation, Mutate, MutationContext, Proposal, Relative, Status
from mutators.operators.rules import Rules
from mutators.rules.block_size import BlockSize
from mutators.rules.coarsen import Coarsen, coarsened
from mutators.rules.grid_stride import GridStride
from mutators.rules.launch_bounds import LaunchBounds
from mutators.rules.qualifiers import Qualifiers
from mutators.rules.swap_axes import SwapAxes
from mutators.rules.unroll import Unroll
from mutators.rules.widen import Widen
from tests.support.offline import faults, lab_for

NAMES = ("gemm", "histogram", "reduction", "scan", "softmax", "stencil", "transpose")
RULES = (BlockSize(), Coarsen(), GridStride(), LaunchBounds(), Qualifiers(), SwapAxes(), Unroll(), Widen())
DEVICE = Device(kind="test", name="test", fingerprint="test", arch="sm_90")
FITTING = {
    "gemm": {"BlockSize", "Coarsen", "LaunchBounds", "Qualifiers", "SwapAxes", "Unroll"},
    "histogram": {"BlockSize", "Coarsen", "GridStride", "LaunchBounds", "Qualifiers"},
    "reduction": {"BlockSize", "Coarsen", "LaunchBounds", "Qualifiers", "Unroll"},
    "scan": {"BlockSize", "Coarsen", "LaunchBounds", "Qualifiers", "Unroll"},
    "softmax": {"BlockSize", "Coarsen", "LaunchBounds", "Qualifiers", "Unroll"},
    "stencil": {"BlockSize", "Coarsen", "LaunchBounds", "Qualifiers", "SwapAxes"},
    "transpose": {"BlockSize", "Coarsen", "LaunchBounds", "Qualifiers", "SwapAxes"},
}


def initial(name: str) -> str:
    return workloads.load(name).initial


def context(source: str, seed: int, name: str = "gemm", evaluation: Evaluation | None = None) -> MutationContext:
    task = Mutate(0, "rules", -1, (0,))
    return MutationContext(task, (1, seed), workloads.load(name), DEVICE, (Relative(0, source, evaluation),))


def kernel_with(body: str, header: str = 'block: 64\ngrid: "ceildiv(N, 64)"') -> str:
    signature = 'extern "C" __global__ void f(const float* a, float* out, int N)'
    return f"/* launch\n{header}\n*/\n{signature} {{\n{body}\n}}\n"


def apply(rule, source: str, seed: int = 0) -> str:
    rewrite = rule.apply(source, np.random.default_rng(seed))
    assert rewrite is not None
    return rewrite.source


# --- on the shipped kernels -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_the_rules_fit_the_first_kernels(name):
    fitting = {type(r).__name__ for r in RULES if r.apply(initial(name), np.random.default_rng(0)) is not None}
    assert fitting == FITTING[name]


@pytest.mark.parametrize("name", NAMES)
def test_every_rule_and_chains_of_three_keep_the_meaning(name):
    """On correctness and hidden cases, under the checker too, with default and random launch configurations."""
    rng = np.random.default_rng(len(name))
    first = initial(name)
    single = [rule.apply(first, rng) for rule in RULES]
    chains = [chain(first, rng) for _ in range(2)]
    sources = [rewrite.source for rewrite in single if rewrite is not None] + chains
    with lab_for(workloads.load(name)) as lab:
        for source in sources:
            assert faults(source, lab, rng) == [], source


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_many_chains_keep_the_meaning(name):
    rng = np.random.default_rng(100 + len(name))
    with lab_for(workloads.load(name)) as lab:
        for _ in range(25):
            source = chain(initial(name), rng, length=5)
            assert faults(source, lab, rng) == [], source


def chain(source: str, rng: np.random.Generator, length: int = 3) -> str:
    for _ in range(length):
        order = (RULES[int(i)].apply(source, rng) for i in rng.permutation(len(RULES)))
        source = next(rewrite.source for rewrite in order if rewrite is not None)
    return source


@pytest.mark.parametrize("name", NAMES)
def test_rewritten_kernels_have_a_header_that_plans_every_case(name):
    workload = workloads.load(name)
    rng = np.random.default_rng(3)
    for _ in range(10):
        kernel = kernels.parse(chain(workload.initial, rng))
        for case in workload.cases:
            assert kernel.plan(workload, case, DEVICE).launches


def test_the_rules_reach_a_gemm_that_is_several_times_faster():
    """One rewrite along both axes, tuned: what a search without a model finds first."""
    workload = workloads.load("gemm")
    setup = Setup(workload, Timing(warmup=1, launches=5), Tuning(trials=12), 0, workload.initial)
    source = workload.initial
    for axis in "xy":
        source = coarsened(source, "gemm", axis, True, np.random.default_rng(0)).source
    evaluator = HostDevice().evaluator(setup)
    try:
        evaluation = evaluator.evaluate(1, source, None)
    finally:
        evaluator.close()
    assert evaluation.status is Status.OK, evaluation.message
    assert evaluation.ratio is not None
    # 40 to 200 times faster on an idle machine; a busy one may not spoil the test.
    assert evaluation.ratio < 1 / 4


# --- each rule ------------------------------------------------------------------------------------------------


def test_a_block_s_numbers_become_tunables_wherever_the_header_repeats_them():
    kernel = kernels.parse(apply(BlockSize(), initial("scan")))
    assert kernel.header.defaults == {"BLOCK": 256}
    assert all("256" not in str(spec) for spec in kernel.header.launches)
    assert kernel.header.workspace["sums"].text == "4 * ceildiv(N, BLOCK)"


def test_a_block_whose_number_the_code_repeats_keeps_it():
    source = kernel_with("__shared__ float t[64]; t[threadIdx.x] = a[0]; __syncthreads(); out[threadIdx.x] = t[0];")
    assert BlockSize().apply(source, np.random.default_rng(0)) is None


def test_a_comment_may_repeat_the_block_s_number():
    source = kernel_with("// 64 threads\nint i = blockIdx.x * blockDim.x + threadIdx.x; if (i < N) out[i] = a[i];")
    assert "BLOCK" in kernels.parse(apply(BlockSize(), source)).header.tune


def test_pointers_that_are_written_do_not_become_const():
    source = initial("gemm").replace("const float*", "float*")
    assert "(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C," in apply(
        Qualifiers(), source
    )
    scan = apply(Qualifiers(), initial("scan"))
    assert "(float* __restrict__ sums, int count)" in scan
    assert "add_sums(float* __restrict__ y, const float* __restrict__ sums" in scan


@pytest.mark.parametrize(
    "use",
    ["out[0] = a[0]; a[1] = 2.0f;", "atomicAdd(&a[0], 1.0f);", "float* p = a; *p = 1.0f;", "a[0]++; out[0] = a[0];"],
)
def test_a_pointer_that_may_be_written_is_not_taken_for_read_only(use):
    source = kernel_with(use).replace("const float* a", "float* a")
    assert "(float* __restrict__ a" in apply(Qualifiers(), source)


def test_a_buffer_that_is_passed_twice_gets_no_promise():
    source = kernel_with("out[0] = a[0];", 'block: 64\ngrid: 1\nargs: "x, x, N"')
    assert Qualifiers().apply(source, np.random.default_rng(0)) is None


def test_launch_bounds_are_the_block_s_threads():
    assert "void __launch_bounds__(16 * 16) gemm(" in apply(LaunchBounds(), initial("gemm"))
    tuned = coarsened(initial("gemm"), "gemm", "x", True, np.random.default_rng(0)).source
    assert "__launch_bounds__((BLOCK_X / ITEMS_X) * BLOCK_Y)" in apply(LaunchBounds(), tuned)


def test_merging_threads_drops_bounds_that_could_become_too_large():
    bounded = apply(LaunchBounds(), apply(BlockSize(), initial("gemm")))
    assert "__launch_bounds__" in bounded
    assert "__launch_bounds__" not in coarsened(bounded, "gemm", "x", True, np.random.default_rng(0)).source


def test_a_block_that_depends_on_dims_has_no_bounds():
    source = kernel_with("out[threadIdx.x] = a[0];", 'block: "min(N, 64)"\ngrid: 1')
    assert LaunchBounds().apply(source, np.random.default_rng(0)) is None


def test_unrolling_names_a_factor_or_unrolls_whole():
    body = (
        "float s = 0; for (int k = 0; k < N; ++k) { s += a[k]; }\nfor (int k = 0; k < 4; ++k) { s += k; } out[0] = s;"
    )
    first = apply(Unroll(), kernel_with(body))
    both = apply(Unroll(), first)
    assert re.search(r"#pragma unroll UNROLL\n\s*for \(int k = 0; k < N", both)
    assert re.search(r"#pragma unroll\n\s*for \(int k = 0; k < 4", both)
    assert Unroll().apply(both, np.random.default_rng(0)) is None


def test_exchanging_axes_twice_gives_the_kernel_back():
    once = apply(SwapAxes(), initial("transpose"))
    assert "int x = blockIdx.y * blockDim.y + threadIdx.y;" in once
    assert kernels.parse(once).header.launches[0].grid[0].text == "ceildiv(H, 16)"
    assert kernels.parse(apply(SwapAxes(), once)).hash == kernels.parse(initial("transpose")).hash


def test_a_grid_stride_loop_replaces_the_test_of_the_index():
    source = apply(GridStride(), initial("histogram"))
    assert "for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < N; i += blockDim.x * gridDim.x) {" in source
    assert kernels.parse(source).header.launches[0].grid[0].text == "min(ceildiv(N, 256), num_sms * WAVES)"


def test_a_tunable_is_widened_at_one_end_and_keeps_its_default():
    source = kernel_with("out[0] = a[0];", "block: B\ngrid: 1\ntune: {B: [32, 64]}")
    for seed in range(4):
        header = kernels.parse(apply(Widen(), source, seed)).header
        assert header.tune["B"] in ((16, 32, 64), (32, 64, 128))
        assert header.defaults == {"B": 32}


# --- any text -------------------------------------------------------------------------------------------------


SCRAPS = ("", "{", "}", ";", "if (", "é", "\x00", "1e", "*/", "threadIdx", "\ud800", "[", "&", "return;", "= {1}", "#")


@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_no_text_makes_a_rule_raise_and_what_it_returns_has_a_readable_header(data):
    source = initial(data.draw(st.sampled_from(NAMES)))
    for _ in range(data.draw(st.integers(0, 3))):
        start = data.draw(st.integers(0, len(source)))
        end = data.draw(st.integers(start, min(len(source), start + 30)))
        piece = data.draw(
            st.sampled_from(["", "{", "}", ";", "if (", "é", "\x00", "1e", "*/", "threadIdx", "\ud800", "[", "&"])
        )
        source = source[:start] + piece + source[end:]
    for rule in RULES:
        rewrite = rule.apply(source, np.random.default_rng(data.draw(st.integers(0, 9))))
        if rewrite is not None:
            kernels.parse(rewrite.source)
            assert rewrite.source != source


@pytest.mark.parametrize(
    "source", ["", "int", "/* launch\n*/", kernel_with("out[0] = " + "(" * 500 + "1" + ")" * 500 + ";")]
)
def test_what_is_no_kernel_or_is_nested_absurdly_is_left_alone(source):
    assert all(rule.apply(source, np.random.default_rng(0)) is None for rule in RULES if not isinstance(rule, Widen))


# --- the operator ---------------------------------------------------------------------------------------------


def test_equal_seeds_propose_equally_and_other_seeds_differ():
    proposals = [Rules().step(context(initial("gemm"), seed)) for seed in (1, 1, 2, 3, 4, 5)]
    assert proposals[0] == proposals[1]
    assert len({proposal.source for proposal in proposals}) > 3


def test_a_proposal_says_what_was_done_and_starts_from_the_tuned_parent():
    tuned = apply(BlockSize(), initial("gemm"))
    evaluation = Evaluation(0, Status.OK, source=tuned)
    for seed in range(10):
        proposal = Rules(most=1).step(context(initial("gemm"), seed, evaluation=evaluation))
        assert proposal.source is not None
        assert "BLOCK_X" in kernels.parse(proposal.source).header.tune
        assert proposal.note


def test_most_limits_the_rewrites_of_one_step():
    for seed in range(20):
        assert Rules(most=1).step(context(initial("reduction"), seed, "reduction")).note.count(": ") <= 1


def test_a_parent_that_no_rule_fits_gives_no_proposal():
    assert Rules().step(context("nothing of the kind", 0)) == Proposal(None, "no offline rule fits this kernel")


def test_every_rule_and_the_operator_are_frozen_dataclasses():
    for thing in (*RULES, Rules()):
        assert dataclasses.is_dataclass(thing)
        with pytest.raises(dataclasses.FrozenInstanceError):
            thing.anything = 1


def test_coarsening_is_found_within_a_few_steps():
    found = [Rules().step(context(initial("gemm"), seed)) for seed in range(12)]
    assert sum("ITEMS_" in str(proposal.source) for proposal in found) >= 4
