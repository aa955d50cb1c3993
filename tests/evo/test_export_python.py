"""What the Python packages share: launch headers as Python, checks of arguments, the driver through ctypes."""

from __future__ import annotations

import dataclasses
import importlib
import re
import sys
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evo import kernel as kernels
from evo import workload as workloads
from evo.config import Timing
from evo.errors import ConfigError, EvoError, ExpressionError
from evo.export import Subject, code, cupy_package, package, torch_package, write
from evo.kernel import Expression
from evo.records import Case, Device, Direction, Parameter, Role, Workload
from tests.support import exported
from tests.support import kernels as examples

SMALL = Device("cuda", "a small GPU", "small", "sm_86", num_sms=4, max_shared_bytes=99 << 10, max_threads_per_sm=1536)
HOST = Device("host", "a CPU", "cpu", "x86-64")


def subject(workload: Workload, source: str = "", **changes: Any) -> Subject:
    kernel = kernels.parse(source or workload.initial)
    made = Subject(kernel, workload, exported.H200, Timing(), 0, "kernel 7 of run-001")
    return dataclasses.replace(made, **changes)


@pytest.fixture
def imported(tmp_path, monkeypatch):
    """Write a package and import one of its modules."""
    monkeypatch.syspath_prepend(tmp_path)

    def load(what: Subject, module: str) -> Any:
        name = f"exported_{len(list(tmp_path.iterdir()))}"
        write(tmp_path / name, package.files(what, "", ""), force=False)
        importlib.invalidate_caches()
        return importlib.import_module(f"{name}.{module}")

    yield load
    for name in [name for name in sys.modules if name.startswith("exported_")]:
        del sys.modules[name]


# --- expressions ----------------------------------------------------------------------------------------------------

NAMES = {"M": 7, "N": 0, "lambda_": -3, "BX": 64, "is": 2, "n": 5}
ATOMS = st.one_of(st.integers(0, 100).map(str), st.sampled_from(sorted(NAMES)))
EXPRESSIONS = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["+", "-", "*", "//", "%", "<", "<=", "==", "!=", "and", "or"]), inner).map(
            lambda parts: f"({' '.join(parts)})"
        ),
        st.tuples(inner, inner, inner).map(lambda parts: f"({parts[0]} < {parts[1]} <= {parts[2]})"),
        st.tuples(st.sampled_from(["min", "max", "ceildiv"]), inner, inner).map(
            lambda parts: f"{parts[0]}({parts[1]}, {parts[2]})"
        ),
        inner.map(lambda text: f"(not {text})"),
        inner.map(lambda text: f"(-{text})"),
    ),
    max_leaves=8,
)


def value(python: str) -> Any:
    return eval(python, {"ceildiv": lambda a, b: -(-a // b), "n": NAMES})


@given(EXPRESSIONS)
@settings(max_examples=400, deadline=None)
def test_expressions_have_the_same_value_as_python(text):
    expression = Expression.parse(text)
    try:
        wanted = expression.evaluate(NAMES)
    except ExpressionError:
        return  # a division by zero, or beyond 64 bits
    found = value(code.integer(expression))
    assert (found, type(found)) == (wanted, int)
    assert value(code.condition(expression)) is (wanted != 0)


# --- launch plans ---------------------------------------------------------------------------------------------------

ODD = """\
/* launch
launches:
  - {kernel: one, block: "BX, 2", grid: "num_sms * blocks_per_sm", shared_bytes: "BX * 8", args: [x, part, "-N", N > 3]}
  - {kernel: two, block: [32], grid: ["ceildiv(N, 32)", 1, "max(1, l2_bytes // 100000000)"]}
tune: {BX: [32, 64, 128], lambda: [1, 2]}
defaults: {lambda: 2}
require: ["BX * 2 <= 1024 and not (N == 13)"]
choose:
  - {when: "N % 2 == 1 and N > 2", set: {BX: 128, lambda: 1}}
  - {when: "N", set: {BX: 64}}
workspace: {part: "4 * N", flags: 64}
zero: [flags, y]
options: ["--ftz=false", "--restrict", {option: "--maxrregcount=BX", when: "lambda == 1"}, "--std=c++20"]
specialize: [K]
*/
extern "C" __global__ void one(const float* x, float* part, int a, int b) {}
extern "C" __global__ void two(const float* x, float* y, int N, float in) {}
"""

ODD_WORKLOAD = Workload(
    name="odd one",
    description="Nothing.",
    entry="one",
    parameters=(
        Parameter("x", "float32", Direction.IN, ("N", "2 * K"), align=4),
        Parameter("y", "float32", Direction.OUT, ("N",)),
        Parameter("N", "int32", Direction.SCALAR),
        Parameter("K", "int32", Direction.SCALAR),
        Parameter("in", "float32", Direction.SCALAR, value="0.1"),
    ),
    cases=tuple(Case(f"n{n}", Role.PERFORMANCE, {"N": n, "K": 3}) for n in (1, 2, 13, 64, 65, 100000)),
    tolerance={},
    deterministic=False,
    fast_math=False,
    flops="0",
    bytes_moved="1",
    reference="",
    initial=ODD,
)


def same_plan(module: Any, what: Subject, case: Case, device: Device) -> bool:
    """Compare a plan of the exported module with the product's own; return whether there is one."""
    figures = {field: getattr(device, field) for field in FIGURES}
    plan_module = sys.modules[module.__name__.replace("_kernel", "_plan")]
    try:
        wanted = what.kernel.plan(what.workload, case, device)
    except EvoError:
        with pytest.raises((plan_module.Refused, ZeroDivisionError)):
            module.plan(case.dims, plan_module.Device(**figures))
        return False
    found = module.plan(case.dims, plan_module.Device(**figures))
    assert [tuple(vars(launch).values()) for launch in found.launches] == [
        tuple(vars(launch).values()) for launch in wanted.launches
    ]
    for field in ("workspaces", "zero", "defines", "options", "cooperative", "cluster"):
        assert getattr(found, field) == getattr(wanted, field), field
    return True


FIGURES = (
    "arch",
    "num_sms",
    "l2_bytes",
    "max_threads_per_block",
    "max_shared_bytes",
    "max_threads_per_sm",
    "max_blocks_per_sm",
)


def same_sizes(module: Any, workload: Workload, case: Case) -> None:
    arrays = [p for p in workload.parameters if p.direction is not Direction.SCALAR]
    assert module.shapes(case.dims) == {p.name: workloads.shape(p, case) for p in arrays}
    scalars = {scalar.name: (scalar.dtype, scalar.value) for scalar in workloads.scalars(workload, case)}
    assert module.scalars(case.dims) == scalars


@pytest.mark.parametrize("name", workloads.names())
def test_plans_of_shipped_workloads_are_the_products_own(imported, name):
    workload = workloads.load(name)
    what = subject(workload)
    module = imported(what, "_kernel")
    for case in workload.cases:
        same_sizes(module, workload, case)
        assert all([same_plan(module, what, case, device) for device in (exported.H200, SMALL, HOST)])


def test_plans_of_odd_headers_are_the_products_own(imported, tmp_path):
    exported.run_of(tmp_path / "place", "mixed")
    mixed = workloads.load(str(tmp_path / "place" / "workloads" / "mixed"))
    gemm = dataclasses.replace(examples.gemm_workload(), cases=examples.gemm_workload(M=4096, N=4096).cases)
    for workload in (ODD_WORKLOAD, mixed, examples.gemm_workload(), gemm):
        what = subject(workload)
        module = imported(what, "_kernel")
        for case in workload.cases:
            same_sizes(module, workload, case)
            planned = [same_plan(module, what, case, device) for device in (exported.H200, SMALL, HOST)]
            assert all(planned) or case.name == "n13"  # which `require` excludes


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"block": "2000"}, "block.x: expected 1 to 1024, found 2000"),
        ({"block": "N"}, "block"),
        ({"grid": "70000 - N, 70000"}, "grid"),
        ({"grid": "N - 1"}, "grid"),
        ({"shared_bytes": "300000"}, "shared"),
        ({"workspace": {"w": "N - 1"}}, "workspace"),
        ({"cluster": "3"}, "cluster"),
        ({"cluster": "4, 4, 4"}, "cluster"),
        ({"args": "x, y, 3000000000 * N"}, "int"),
        ({"grid": "1 // (N - 1)"}, "zero"),
        ({"block": "64, 64"}, "threads of a block"),
    ],
)
def test_what_the_product_refuses_the_package_refuses(imported, change, words):
    workload = dataclasses.replace(
        ODD_WORKLOAD,
        parameters=ODD_WORKLOAD.parameters[:2],
        initial='/* launch\nblock: 32\ngrid: 8\nargs: "x, y, 1"\n*/\n__global__ void f(float* x, float* y, int i) {}\n',
        cases=(Case("one", Role.PERFORMANCE, {"N": 1, "K": 1}),),
    )
    case = workload.cases[0]
    what = subject(workload)
    assert same_plan(imported(what, "_kernel"), what, case, exported.H200)
    kernel = what.kernel.with_header(**change)
    if change in ({"block": "N"},):  # of N = 1, which is right
        case = dataclasses.replace(case, dims={"N": 1025, "K": 1})
    what = dataclasses.replace(what, kernel=kernel)
    module = imported(what, "_kernel")
    assert not same_plan(module, what, case, exported.H200)
    plan = sys.modules[module.__name__.replace("_kernel", "_plan")]
    device = plan.Device(*(getattr(exported.H200, field) for field in FIGURES))
    with pytest.raises((plan.Refused, ZeroDivisionError), match=words):
        module.plan(case.dims, device)


# --- packages as text -----------------------------------------------------------------------------------------------


def texts(what: Subject, kind: Any) -> Mapping[str, str]:
    return {name: content.decode() for name, content in kind.files(what)}


@pytest.mark.parametrize("kind", [cupy_package, torch_package])
@pytest.mark.parametrize("name", workloads.names())
def test_every_file_of_a_package_is_python_that_compiles_and_needs_nothing_of_the_house(kind, name):
    files = texts(subject(workloads.load(name)), kind)
    for file, text in files.items():
        if file.endswith(".py"):
            compile(text, file, "exec")
            assert not re.search(r"^\s*(from|import) (evo|evaluators|mutators)\b", text, re.MULTILINE), file
    assert files["best.cu"].startswith("/* launch") or "/* launch" in files["best.cu"]


def test_sizes_that_no_array_tells_are_keyword_arguments_and_words_of_python_are_mangled():
    histogram = texts(subject(workloads.load("histogram")), cupy_package)
    assert "def histogram(data, *, BINS):" in histogram["__init__.py"]
    assert "def stencil(in_):" in texts(subject(workloads.load("stencil")), cupy_package)["__init__.py"]
    assert "def odd_one(x, *, K):" in texts(subject(ODD_WORKLOAD), cupy_package)["__init__.py"]
    assert (
        "def odd_one(x: _torch.Tensor, *, K: int) -> _torch.Tensor:"
        in texts(subject(ODD_WORKLOAD), torch_package)["__init__.py"]
    )


def test_workloads_that_no_package_can_serve_are_refused_with_the_reason():
    wide = (ODD_WORKLOAD.parameters[0], dataclasses.replace(ODD_WORKLOAD.parameters[1], align=1024))
    with pytest.raises(ConfigError, match="found y of 1024"):
        texts(subject(dataclasses.replace(ODD_WORKLOAD, parameters=wide)), cupy_package)
    with pytest.raises(ConfigError, match="expected an input array"):
        texts(subject(dataclasses.replace(ODD_WORKLOAD, parameters=wide[1:])), torch_package)


def test_the_constants_of_the_driver_are_those_of_its_header(imported):
    include = exported.cuda_include()
    if include is None:
        pytest.skip("needs CUDA's headers")
    header = (include / "cuda.h").read_text()
    module = imported(subject(ODD_WORKLOAD), "_cuda")
    enums = {
        "max_threads_per_block": "CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK",
        "num_sms": "CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT",
        "l2_bytes": "CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE",
        "max_threads_per_sm": "CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR",
        "major": "CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR",
        "minor": "CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR",
        "max_shared_bytes": "CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN",
        "max_blocks_per_sm": "CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR",
    }
    found = {name: int(re.search(rf"\b{enum}\s*=\s*(\d+)", header)[1]) for name, enum in enums.items()}
    assert found == module._ATTRIBUTES
    others = {
        "CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES": module.MAX_DYNAMIC_SHARED_BYTES,
        "CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED": module.NON_PORTABLE_CLUSTER,
        "CUDA_ERROR_NOT_FOUND": module._NOT_FOUND,
    }
    assert all(int(re.search(rf"\b{enum}\s*=\s*(\d+)", header)[1]) == number for enum, number in others.items())
    text = (include / "driver_types.h").read_text()
    for enum, number in (("Cooperative", module._COOPERATIVE), ("ClusterDimension", module._CLUSTER_DIMENSION)):
        assert int(re.search(rf"\bcudaLaunchAttribute{enum}\s*=\s*(\d+)", text)[1]) == number
