"""The CUDA device on a real GPU: verdicts, guards, launches of every kind, and what outlives a launch."""

from __future__ import annotations

import dataclasses
import time

import pytest

from evaluators.cuda import CudaDevice
from evaluators.device import Setup
from evaluators.evaluator import Evaluator
from evo import workload as workloads
from evo.config import Timing, Tuning
from evo.records import BASELINE_ID, Role, Status, Workload

pytestmark = pytest.mark.gpu

SCALE = """\
/* launch
block: 256
grid: "ceildiv(N, 256)"
*/
extern "C" __global__ void scale(const float* x, float* y, int N) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    BODY
}
"""

_WORKLOAD = """\
description: "Twice each of N values."
entry: scale
parameters:
  - {name: x, dtype: float32, direction: in, shape: [N], align: 4}
  - {name: y, dtype: float32, direction: out, shape: [N], align: 4}
  - {name: N, dtype: int32, direction: scalar}
flops: N
bytes_moved: "8 * N"
cases:
  - {name: small, role: correctness, dims: {N: 1000}}
  - {name: timed, role: performance, dims: {N: 1048576}}
  - {name: prime, role: hidden, dims: {N: 7919}}
"""


@pytest.fixture(scope="module")
def scale(tmp_path_factory: pytest.TempPathFactory) -> Workload:
    folder = tmp_path_factory.mktemp("workloads") / "scale"
    folder.mkdir()
    (folder / "workload.yaml").write_text(_WORKLOAD)
    (folder / "reference.py").write_text(
        "def reference(inputs, dims):\n    return {'y': 2 * inputs['x'].astype('f8')}\n"
    )
    (folder / "initial.cu").write_text(kernel("if (i < N) y[i] = 2 * x[i];"))
    return workloads.load(str(folder))


@pytest.fixture(scope="module")
def evaluator(scale: Workload):
    setup = Setup(scale, Timing(), Tuning(trials=0), seed=0, anchor=scale.initial)
    with Evaluator(CudaDevice(), setup) as made:
        yield made


def kernel(body: str) -> str:
    return SCALE.replace("BODY", body)


def test_the_device_says_what_it_is() -> None:
    facts = CudaDevice().describe()
    assert facts.kind == "cuda"
    assert facts.uuid.startswith("GPU-")
    assert facts.num_sms > 1
    assert facts.max_shared_bytes >= 48 << 10
    assert facts.arch.startswith("sm_")
    assert facts == CudaDevice().describe()


RIGHT = "if (i < N) y[i] = 2 * x[i];"
WRONGS = {
    "does not compile": ("if (i < N) y[i] = 2 * x[i]", Status.COMPILE_ERROR, "line 8"),
    "leaves the output": ("", Status.WRONG_ANSWER, "No element was ever written"),
    "changes its input": (RIGHT + " if (i == 3) const_cast<float*>(x)[3] = 1;", Status.UNSAFE, "changed its input x"),
    "one element behind": ("if (i <= N) y[i] = i < N ? 2 * x[i] : 0;", Status.UNSAFE, "y"),
    "one element before": (RIGHT + " if (i == 0) y[-1] = 0;", Status.UNSAFE, "y"),
    "far behind": (RIGHT + " if (i == 0) y[(1 << 28) + N] = 0;", Status.UNSAFE, "memory that is not its own"),
    "null": (RIGHT + " if (i == 0) *(volatile float*)nullptr = 0;", Status.UNSAFE, "memory that is not its own"),
    "misaligned": (RIGHT + " if (i == 0) *(volatile double*)((char*)y + 2) = 0;", Status.UNSAFE, "multiple"),
    "traps": (RIGHT + " if (i == 5) __trap();", Status.LAUNCH_ERROR, "__trap"),
    "never returns": (RIGHT + " while (i == 0) __nanosleep(100);", Status.TIMEOUT, "did not end"),
    "asks for the heap": (RIGHT + " if (i == 0) free(malloc(8));", Status.UNSUPPORTED, "malloc"),
}


@pytest.mark.parametrize("name", WRONGS)
def test_a_kernel_that_goes_wrong_gets_its_status_and_its_neighbour_is_not_blamed(
    evaluator: Evaluator, name: str
) -> None:
    body, status, words = WRONGS[name]
    found = unscreened(evaluator, kernel(body))
    assert (found.status, words in found.message) == (status, True), found.message
    neighbour = unscreened(evaluator, kernel(RIGHT))
    assert neighbour.status is Status.OK, neighbour.message


def unscreened(evaluator: Evaluator, source: str):
    """Judge without the pre-screen, so that the GPU itself has to find what is wrong."""
    from evaluators.prescreen import not_screened

    return evaluator.evaluate(1, source, not_screened())


def test_an_assertion_that_fails_is_a_launch_error(evaluator: Evaluator) -> None:
    found = unscreened(evaluator, "#include <assert.h>\n" + kernel("assert(i != 7); " + RIGHT))
    assert found.status is Status.LAUNCH_ERROR
    assert "assertion" in found.message


def test_a_verdict_has_latencies_and_the_gpus_state(evaluator: Evaluator) -> None:
    found = unscreened(evaluator, kernel(RIGHT))
    assert found.status is Status.OK, found.message
    (timed,) = (case for case in found.cases if case.role is Role.PERFORMANCE)
    assert timed.latency is not None
    assert 1.0 < timed.latency.median_us < 100.0
    assert timed.conditions is not None
    assert 300 < timed.conditions.sm_clock_mhz < 4000
    assert 0.5 < timed.conditions.floor_us < 10
    assert 0.8 < (found.ratio or 0) < 1.25


REMEMBERS = {
    "a global": ("__device__ int calls;", "if (atomicAdd(&calls, 1) >= 4 * N) return; " + RIGHT),
    "a static": ("static __device__ int calls[3];", "if (atomicAdd(&calls[1], 1) >= 4 * N) return; " + RIGHT),
    "a local static": ("", "static __device__ int calls; if (atomicAdd(&calls, 1) >= 4 * N) return; " + RIGHT),
    "an anonymous one": (
        "namespace { __device__ int calls = 5; }",
        "if (atomicAdd(&calls, 1) >= 4 * N) return; " + RIGHT,
    ),
}


def test_what_lies_behind_a_global_is_forgotten_too(evaluator: Evaluator) -> None:
    body = "if (atomicAdd((int*)&one + 20, 1) >= 4 * N) return; " + RIGHT
    found = unscreened(evaluator, kernel(body).replace('extern "C"', '__device__ char one;\nextern "C"'))
    assert found.status is Status.OK, found.message


@pytest.mark.parametrize("name", REMEMBERS)
def test_what_a_kernel_writes_into_globals_is_forgotten_before_the_next_launch(evaluator: Evaluator, name: str) -> None:
    outside, body = REMEMBERS[name]
    source = kernel(body).replace('extern "C"', outside + '\nextern "C"')
    found = unscreened(evaluator, source)
    assert found.status is Status.OK, found.message  # each launch counts to N alone


def test_a_kernel_that_works_once_and_never_again_is_caught_where_memory_survives(evaluator: Evaluator) -> None:
    source = kernel("if (N > 100000) return; " + RIGHT)
    assert unscreened(evaluator, source).status is Status.WRONG_ANSWER


def test_shared_memory_above_48_kib(evaluator: Evaluator) -> None:
    source = kernel(
        "extern __shared__ float s[]; s[threadIdx.x + 40000] = 2; if (i < N) y[i] = s[threadIdx.x + 40000] * x[i];"
    )
    found = unscreened(evaluator, source.replace("block: 256", "block: 256\nshared_bytes: 200000"))
    assert found.status is Status.OK, found.message
    found = unscreened(evaluator, source.replace("block: 256", "block: 256\nshared_bytes: 300000"))
    assert found.status is Status.BAD_LAUNCH


def test_a_cluster_and_one_that_is_too_large(evaluator: Evaluator) -> None:
    source = kernel(RIGHT)
    right = source.replace('"ceildiv(N, 256)"', '"4 * ceildiv(N, 1024)"\ncluster: 4')
    found = unscreened(evaluator, right)
    assert found.status is Status.OK, found.message
    found = unscreened(evaluator, source.replace('"ceildiv(N, 256)"', '"32 * ceildiv(N, 8192)"\ncluster: 32'))
    assert found.status is Status.BAD_LAUNCH, found.message


def test_a_cooperative_grid_and_one_that_does_not_fit(evaluator: Evaluator) -> None:
    body = """
    cooperative_groups::this_grid().sync();
    for (int j = i; j < N; j += gridDim.x * blockDim.x) y[j] = 2 * x[j];
    """
    source = "#include <cooperative_groups.h>\n" + kernel(body)
    right = source.replace('"ceildiv(N, 256)"', "num_sms\ncooperative: true")
    found = unscreened(evaluator, right)
    assert found.status is Status.OK, found.message
    found = unscreened(evaluator, source.replace('"ceildiv(N, 256)"', "100 * num_sms\ncooperative: true"))
    assert found.status is Status.BAD_LAUNCH
    assert "fit" in found.message


def test_a_kernel_with_a_mangled_name_is_found_by_its_symbol(evaluator: Evaluator) -> None:
    found = unscreened(evaluator, kernel(RIGHT).replace('extern "C" __global__', "__global__"))
    assert found.status is Status.OK, found.message


def test_parameters_that_do_not_fit_the_launch_are_refused(evaluator: Evaluator) -> None:
    found = unscreened(evaluator, kernel(RIGHT).replace("int N", "long long N"))
    assert found.status is Status.BAD_LAUNCH
    assert "parameter 3 has 8 bytes" in found.message


def test_a_hanging_launch_costs_its_time_and_little_more(evaluator: Evaluator) -> None:
    began = time.monotonic()
    found = unscreened(evaluator, kernel(RIGHT + " while (N > 100000) __nanosleep(100);"))
    assert found.status is Status.TIMEOUT
    assert time.monotonic() - began < 20


def test_a_comparison_of_a_kernel_with_itself_promotes_nobody(evaluator: Evaluator, scale: Workload) -> None:
    found = evaluator.compare((1, scale.initial), (0, scale.initial), 1)
    assert found.status is Status.OK, found.message
    assert not found.promoted
    assert found.ratio is not None
    assert 0.97 < found.ratio < 1.03


@pytest.mark.parametrize("name", workloads.names())
def test_the_first_kernel_of_every_workload_is_right(name: str) -> None:
    workload = workloads.load(name)
    setup = Setup(workload, Timing(), Tuning(trials=0), seed=0, anchor=workload.initial)
    with Evaluator(CudaDevice(), setup) as made:
        found = made.evaluate(0, workload.initial)
    assert found.status is Status.OK, found.message
    assert found.screen in ("passed", "skipped")


def test_tuning_finds_a_better_block(scale: Workload) -> None:
    source = kernel(RIGHT).replace(
        "block: 256", "block: BX\ntune: {BX: [32, 64, 128, 256, 512, 1024]}\ndefaults: {BX: 32}"
    )
    source = source.replace("ceildiv(N, 256)", "ceildiv(N, BX)")
    setup = Setup(scale, Timing(), Tuning(trials=6), seed=0, anchor=scale.initial)
    with Evaluator(CudaDevice(), setup) as made:
        found = made.evaluate(0, source)
    assert found.status is Status.OK, found.message
    assert len({trial.config["BX"] for trial in found.trials}) == 6
    assert dataclasses.asdict(found)["source"] != source


@pytest.mark.parametrize("name", [name for name in workloads.names() if workloads.load(name).baseline])
def test_the_vendors_library_is_measured_beside_a_kernel(name: str) -> None:
    workload = workloads.load(name)
    setup = Setup(workload, Timing(), Tuning(trials=0), seed=0, anchor=workload.initial)
    with Evaluator(CudaDevice(), setup) as made:
        found = made.compare((0, workload.initial), (BASELINE_ID, ""), 1)
    assert found.status is Status.OK, found.message
    assert found.ratio is not None
    assert 0.01 < found.ratio < 1000


def test_a_baseline_that_fails_is_told_in_its_own_words(scale: Workload) -> None:
    broken = dataclasses.replace(scale, baseline="def baseline(inputs, dims):\n    return {'y': inputs['z']}\n")
    setup = Setup(broken, Timing(), Tuning(trials=0), seed=0, anchor=scale.initial)
    with Evaluator(CudaDevice(), setup) as made:
        found = made.compare((0, scale.initial), (BASELINE_ID, ""), 1)
    assert found.status is Status.LAUNCH_ERROR
    assert "baseline.py: KeyError: 'z'" in found.message
