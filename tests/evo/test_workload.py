from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from evo import workload as workloads
from evo.errors import WorkloadError
from evo.kernel import parse
from evo.records import Case, Device, Direction, Role, from_json, to_json
from tests.support.mutants import HALF_ACCUMULATE, HONEST, ROUNDINGS, passes

SHIPPED = ("gemm", "histogram", "reduction", "scan", "softmax", "stencil", "transpose")
FLOATS = tuple(name for name in SHIPPED if name != "histogram")

YAML = """\
description: "out = x + shift"
entry: shift
parameters:
  - {name: x, dtype: float32, direction: in, shape: [N]}
  - {name: y, dtype: int32, direction: in, shape: [N], draw: {kind: integers, low: -5, high: 5}}
  - {name: out, dtype: float32, direction: out, shape: [N]}
  - {name: N, dtype: int32, direction: scalar}
  - {name: shift, dtype: float32, direction: scalar, value: 0.1}
tolerance: {terms: N, outputs: {out: {atol: 1e-6}}}
flops: N
bytes_moved: "12 * N"
cases:
  - {name: small, role: correctness, dims: {N: 5}}
  - {name: big, role: performance, dims: {N: 100}}
  - {name: odd, role: hidden, dims: {N: 7}, draws: {x: {kind: constant, low: 2}}}
"""
REFERENCE = """\
import numpy as np

def reference(inputs, dims):
    return {"out": inputs["x"].astype(np.float64) + inputs["shift"]}
"""
KERNEL = """\
/* launch
block: 32
grid: "ceildiv(N, 32)"
*/
extern "C" __global__ void shift(const float* x, const int* y, float* out, int N, float shift) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N) out[i] = x[i] + shift;
}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "workloads" / "shift"
    path.mkdir(parents=True)
    for name, text in (("workload.yaml", YAML), ("reference.py", REFERENCE), ("initial.cu", KERNEL)):
        (path / name).write_text(text)
    return path


def edit(folder: Path, file: str, old: str, new: str) -> None:
    text = (folder / file).read_text()
    assert old in text
    (folder / file).write_text(text.replace(old, new, 1))


# --- loading ------------------------------------------------------------------------------------------------------


def test_a_name_is_looked_up_in_the_present_folder_first(folder: Path, tmp_path: Path):
    assert workloads.load("shift", cwd=tmp_path).description == "out = x + shift"
    folder.rename(folder.with_name("gemm"))
    assert workloads.load("gemm", cwd=tmp_path).description == "out = x + shift"
    assert workloads.load("gemm", cwd=tmp_path / "elsewhere").entry == "gemm"


def test_a_path_is_a_workload_too(folder: Path, tmp_path: Path):
    assert workloads.load(str(folder)).name == "shift"
    assert workloads.load("workloads/shift", cwd=tmp_path).name == "shift"


def test_names_are_the_present_folders_and_the_shipped_ones(folder: Path, tmp_path: Path):
    assert workloads.names(cwd=tmp_path) == tuple(sorted((*SHIPPED, "shift")))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("gem", "expected a name or a folder with workload.yaml, found 'gem'; did you mean 'gemm'?"),
        ("workloads", "expected a folder with workload.yaml, found none in it"),
        ("./nowhere", "found './nowhere'"),
        ("", "expected a folder with workload.yaml, found none in it"),
    ],
)
def test_a_name_that_is_none_says_which_are(folder: Path, tmp_path: Path, name: str, message: str):
    with pytest.raises(WorkloadError) as caught:
        workloads.load(name, cwd=tmp_path)
    assert message in str(caught.value)


def test_everything_that_the_folder_says_is_in_the_record(folder: Path):
    workload = workloads.load(str(folder))
    assert [p.name for p in workload.parameters] == ["x", "y", "out", "N", "shift"]
    assert workload.reference == REFERENCE
    assert workload.initial == KERNEL
    assert workload.baseline is None
    assert workload.tolerance[""].terms == "N"
    assert workload.tolerance["out"].atol == 1e-6
    assert from_json(type(workload), to_json(workload)) == workload


def test_a_baseline_travels_along(folder: Path):
    (folder / "baseline.py").write_text("def baseline(inputs, dims): ...")
    assert workloads.load(str(folder)).baseline == "def baseline(inputs, dims): ..."


REFERENCE_KERNEL = KERNEL.replace("block: 32", "block: 64").replace("shift(const", "shift_in_production(const")


def test_a_reference_kernel_travels_along_whatever_its_function_is_called(folder: Path):
    assert workloads.load(str(folder)).reference_kernel is None
    (folder / "reference.cu").write_text(REFERENCE_KERNEL)
    workload = workloads.load(str(folder))
    assert workload.reference_kernel == REFERENCE_KERNEL
    assert from_json(type(workload), to_json(workload)) == workload


def test_a_model_never_sees_the_reference_kernel(folder: Path):
    (folder / "reference.cu").write_text(REFERENCE_KERNEL)
    assert "in_production" not in to_json(workloads.public(workloads.load(str(folder))))


def test_a_reference_kernel_may_need_a_large_device(folder: Path):
    large = REFERENCE_KERNEL.replace("block: 64", "block: 64\nshared_bytes: 200000\nrequire: [num_sms >= 100]")
    (folder / "reference.cu").write_text(large)
    assert workloads.load(str(folder)).reference_kernel == large


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("/* launch", "/* nothing", "launch header: expected a comment that begins with '/* launch'"),
        ("block: 64", "blok: 64", "launch header, line 2, key 'blok': expected one of the keys"),
        ("block: 64", "block: 2048", "key 'block': expected block.x from 1 to 1024, found 2048"),
        ("block: 64", "block: 64\nshared_bytes: 300000", "expected 0 to 232448 bytes of dynamic shared memory"),
        ("const float* x", "float* x", "expected a const pointer for the input 'x', found 'float * x'"),
        (", float shift)", ")", "expected 4 arguments, as shift_in_production declares, found 5"),
    ],
)
def test_a_wrong_reference_kernel_says_file_and_reason(folder: Path, old: str, new: str, message: str):
    assert old in REFERENCE_KERNEL
    (folder / "reference.cu").write_text(REFERENCE_KERNEL.replace(old, new))
    with pytest.raises(WorkloadError) as caught:
        workloads.load(str(folder))
    assert str(caught.value).startswith(str(folder / "reference.cu"))
    assert message in str(caught.value)


def test_the_public_view_has_no_hidden_cases_reference_or_files(folder: Path):
    public = workloads.public(workloads.load(str(folder)))
    assert [case.name for case in public.cases] == ["small", "big"]
    assert public.reference == ""
    assert public.files == {}


W, K = "workload.yaml", "initial.cu"
BAD_WORKLOADS = [
    (W, "entry: shift", "entri: shift", "line 2, key 'entri': expected one of the keys"),
    (W, "entry: shift", "entri: shift", "found entri; did you mean 'entry'?"),
    (W, "entry: shift\n", "", "line 1: expected a key 'entry', found none; add 'entry: …'"),
    (
        W,
        "entry: shift",
        "entry: shfit",
        "expected a __global__ function of initial.cu, found shfit; did you mean 'shift'?",
    ),
    (W, "dtype: float32", "dtype: floot32", "key 'parameters[0].dtype': expected a dtype out of"),
    (W, "dtype: float32", "dtype: floot32", "found 'floot32'; did you mean 'float32'?"),
    (W, "direction: in", "direction: input", "expected one of in, out, inout, scalar, found 'input'"),
    (W, "shape: [N]", "shape: [M]", "key 'parameters[0].shape[0]': expected an expression over the dims, found 'M'"),
    (W, "shape: [N]", "shape: [N - 5]", "expected extents of 1 or more, found (0,) in case 'small'"),
    (W, "shape: [N]", "shape: [N /]", "found '/'; use // (floor division)"),
    (W, ", shape: [N]", "", "key 'parameters[0]': expected a key 'shape', found none; add 'shape: [M, N]'"),
    (W, "shape: [N]", "shape: []", "expected 1 to 8 extents, found 0"),
    (W, "shape: [N]", "shape: [N * N, N * N, N * N]", "expected buffers of at most 64 GiB"),
    (W, "name: y", "name: x", "key 'parameters': expected each parameter name once, found 'x' 2 times; rename one"),
    (W, "name: x", "name: 2x", "key 'parameters[0].name': expected a C identifier, found '2x'"),
    (W, "shape: [N]}", "shape: [N], align: 3}", "expected a power of two from 1 to 4096 bytes, found 3"),
    (W, "direction: out, ", "direction: out, draw: {kind: normal}, ", "expected no draw for an output"),
    (W, "direction: out, ", "direction: in, ", "expected at least one output"),
    (W, ", draw: {kind: integers, low: -5, high: 5}", "", "expected a key 'draw' for integers, found none"),
    (W, "kind: integers, low", "kind: normal, low", "expected a kind that gives integers"),
    (W, "kind: integers, low", "kind: integer, low", "expected a kind out of normal, uniform, integers"),
    (W, "low: -5, high: 5", "low: 5, high: 5", "expected low below high, found low 5 and high 5"),
    (W, "low: -5, high: 5", "low: 0, high: 4294967296", "expected whole numbers that fit int32"),
    (W, "low: -5, ", "", "expected a key 'low' for kind integers, found none"),
    (W, "value: 0.1", "value: 0.1 m", "key 'parameters[4].value': in '0.1 m', column 2: expected an integer"),
    (W, "name: N, dtype", "name: n, dtype", "expected a value, or a dim of the scalar's name, found 'n'"),
    (W, ", value: 0.1", ", value: 0.1, align: 4", "expected no align for a scalar, found one"),
    (W, "flops: N", "flops: Q", "key 'flops': expected an expression over the dims, found 'Q'"),
    (
        W,
        '"12 * N"',
        '"N - 5"',
        "key 'bytes_moved': expected a count of 1 or more (flops: 0 or more), found 0 in case 'small'",
    ),
    (W, "terms: N,", "terms: T,", "key 'tolerance.terms': expected an expression over the dims, found 'T'"),
    (W, "{terms: N,", "{terms: N, budget: 0,", "expected a budget above 0 and up to 1000, found 0"),
    (W, "outputs: {out:", "outputs: {oot:", "found oot; did you mean 'out'?"),
    (W, "role: correctness", "role: correct", "key 'cases[0].role': expected one of correctness, performance, hidden"),
    (W, "role: performance", "role: hidden", "key 'cases': expected at least one case of role performance, found none"),
    (W, "name: big", "name: small", "expected each case name once, found 'small' 2 times"),
    (W, "dims: {N: 100}", "dims: {N: 100, M: 3}", "key 'cases[0].dims': expected every dim (M, N) in every case"),
    (W, "dims: {N: 5}", "dims: {N: 0}", "key 'cases[0].dims.N': expected a size from 1 to 2147483647, found 0"),
    (W, "dims: {N: 5}", "dims: {N: five}", "expected a whole number, found 'five'"),
    (W, "dims: {N: 5}", "dims: {num_sms: 5}", "expected a dim's name that is a C identifier without another meaning"),
    (W, "draws: {x:", "draws: {z:", "expected an input's name, found z"),
    (W, "draws: {x:", "draws: {out:", "key 'cases[2].draws.out': expected an input's name, found out"),
    (
        W,
        "{kind: constant, low: 2}",
        "{kind: file, file: ../x.npy}",
        "expected the name of a .npy file beside workload.yaml",
    ),
    (
        W,
        "{kind: constant, low: 2}",
        "{kind: file, file: x.npy}",
        "x.npy: expected a file that a draw names, found none",
    ),
    (W, "description:", "\tdescription:", "line 1: expected YAML"),
    (W, "flops: N", "deterministic: 1\nflops: N", "key 'deterministic': expected true or false, found 1"),
    (W, "flops: N", "certified_floor: yes please\nflops: N", "key 'certified_floor': expected true or false"),
    (K, "block: 32", "block: 2048", "initial.cu: launch header, line 2, key 'block': expected block.x from 1 to 1024"),
    (K, "block: 32", "blok: 32", "initial.cu: launch header"),
    (K, "const float* x", "float* x", "kernel 'shift': expected a const pointer for the input 'x', found 'float * x'"),
    (K, "int N,", "int* N,", "expected a value for 'N', found the parameter 'int * N'"),
    (K, "float* out", "float out", "expected a pointer for 'out', found the parameter 'float out'"),
    (K, ", float shift)", ")", "expected 4 arguments, as shift declares, found 5"),
]


def test_a_floor_is_certified_by_the_workload_alone(folder: Path) -> None:
    assert not workloads.load(str(folder)).certified_floor
    text = (folder / "workload.yaml").read_text()
    (folder / "workload.yaml").write_text(text + "certified_floor: true\n")
    assert workloads.load(str(folder)).certified_floor


@pytest.mark.parametrize(("file", "old", "new", "message"), BAD_WORKLOADS, ids=[row[3][:60] for row in BAD_WORKLOADS])
def test_a_wrong_folder_says_file_line_key_expected_found(folder: Path, file: str, old: str, new: str, message: str):
    edit(folder, file, old, new)
    with pytest.raises(WorkloadError) as caught:
        workloads.load(str(folder))
    assert str(folder) in str(caught.value)
    assert message in str(caught.value)


@pytest.mark.parametrize("name", ["workload.yaml", "reference.py", "initial.cu"])
def test_a_file_that_is_not_utf_8_is_refused_by_name(folder: Path, name: str):
    (folder / name).write_bytes(b"\xff\xfe")
    with pytest.raises(WorkloadError, match=f"{name}: expected a readable UTF-8 text"):
        workloads.load(str(folder))


@pytest.mark.parametrize("name", ["reference.py", "initial.cu"])
def test_a_missing_file_is_refused_by_name(folder: Path, name: str):
    (folder / name).unlink()
    with pytest.raises(WorkloadError, match=f"{name}: expected a file, found none"):
        workloads.load(str(folder))


# --- inputs -------------------------------------------------------------------------------------------------------


def test_inputs_depend_on_the_seed_and_the_names_alone(folder: Path):
    workload = workloads.load(str(folder))
    small, big, odd = workload.cases
    first = workloads.draw_inputs(workload, small, 3)
    again = workloads.draw_inputs(workloads.load(str(folder)), small, 3)
    assert sorted(first) == ["x", "y"]
    assert all(np.array_equal(first[name], again[name]) for name in first)
    assert not np.array_equal(first["x"], workloads.draw_inputs(workload, small, 4)["x"])
    assert not np.array_equal(first["x"], workloads.draw_inputs(workload, big, 3)["x"][:5])
    assert (workloads.draw_inputs(workload, odd, 3)["x"] == 2).all()


def test_inputs_are_the_same_on_every_machine():
    gemm = workloads.load("gemm")
    drawn = workloads.draw_inputs(gemm, gemm.cases[0], 0)["A"]
    assert drawn.dtype == np.float32
    assert drawn.flags.c_contiguous
    # A stored value: a changed seed path would silently change every stored result.
    assert drawn[0, 0] == np.float32(-0.0881468)


@pytest.mark.parametrize(
    ("draw", "holds"),
    [
        ("{kind: uniform, low: -2, high: 3}", lambda x: x.min() >= -2 and x.max() < 3 and x.std() > 0.5),
        ("{kind: normal, low: 50, high: 0.5}", lambda x: 49 < x.mean() < 51 and 0.3 < x.std() < 0.7),
        ("{kind: heavy_tailed, low: -4, high: 4}", lambda x: np.abs(x).max() / np.median(np.abs(x)) > 100),
        ("{kind: one_hot}", lambda x: x.sum() == 1 and x.max() == 1),
        ("{kind: ramp, low: 3}", lambda x: np.array_equal(x, np.arange(3, 3 + len(x)))),
        ("{kind: integers, low: 4, high: 6}", lambda x: set(x) == {4, 5}),
    ],
)
def test_a_draw_has_its_distribution(folder: Path, draw: str, holds: Callable[[np.ndarray], bool]):
    edit(
        folder,
        "workload.yaml",
        "dims: {N: 7}, draws: {x: {kind: constant, low: 2}}",
        f"dims: {{N: 400}}, draws: {{x: {draw}}}",
    )
    workload = workloads.load(str(folder))
    assert holds(workloads.draw_inputs(workload, workload.cases[2], 0)["x"])


def test_mantissas_are_dense_random():
    gemm = workloads.load("gemm")
    bits = workloads.draw_inputs(gemm, gemm.role(Role.PERFORMANCE)[0], 0)["A"].view(np.uint32)
    shares = [np.mean((bits >> position) & 1) for position in range(23)]
    assert min(shares) > 0.4
    assert max(shares) < 0.6


def test_one_hot_has_a_one_in_every_row():
    gemm = workloads.load("gemm")
    case = next(case for case in gemm.cases if case.name == "selection")
    selected = workloads.draw_inputs(gemm, case, 0)["A"]
    assert (selected.sum(axis=1) == 1).all()
    assert ((selected == 0) | (selected == 1)).all()


def test_npy_files_are_inputs_by_name(folder: Path):
    values = np.arange(7, dtype=np.float32)
    np.save(folder / "x.npy", values)
    edit(folder, "workload.yaml", "{kind: constant, low: 2}", "{kind: file, file: x.npy}")
    workload = workloads.load(str(folder))
    assert np.array_equal(workloads.draw_inputs(workload, workload.cases[2], 9)["x"], values)
    carried = from_json(type(workload), to_json(workload))
    assert np.array_equal(workloads.draw_inputs(carried, workload.cases[2], 9)["x"], values)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.zeros(8, np.float32), r"expected float32 \(7,\) for 'x' of case 'odd', found float32 \(8,\)"),
        (np.zeros(7), r"found float64 \(7,\)"),
        (np.array([None] * 7), "expected a .npy array without objects"),
    ],
)
def test_an_npy_file_that_does_not_fit_is_refused(folder: Path, values: np.ndarray, message: str):
    np.save(folder / "x.npy", values)
    edit(folder, "workload.yaml", "{kind: constant, low: 2}", "{kind: file, file: x.npy}")
    with pytest.raises(WorkloadError, match=message):
        workloads.load(str(folder))


# --- numbers of a case --------------------------------------------------------------------------------------------


def test_scalars_are_rounded_to_their_dtype(folder: Path):
    workload = workloads.load(str(folder))
    count, shift = workloads.scalars(workload, workload.cases[0])
    assert (count.value, shift.value) == (5, float(np.float32(0.1)))


def test_sizes_follow_the_dims():
    gemm = workloads.load("gemm")
    case = Case("c", Role.CORRECTNESS, {"M": 2, "N": 3, "K": 5})
    assert workloads.shape(gemm.parameters[0], case) == (2, 5)
    assert workloads.nbytes(gemm.parameters[2], case) == 24
    assert workloads.flops(gemm, case) == 60
    assert workloads.bytes_moved(gemm, case) == 4 * (10 + 15 + 6)
    assert workloads.terms(gemm, case, "C") == 5 + 3


# --- references ---------------------------------------------------------------------------------------------------


def expected_with(folder: Path, body: str) -> workloads.Expected:
    (folder / "reference.py").write_text(f"import numpy as np\ndef reference(inputs, dims):\n    {body}\n")
    workload = workloads.load(str(folder))
    case = workload.cases[0]
    return workloads.expected(workload, case, workloads.draw_inputs(workload, case, 0))


def test_the_scale_is_the_references_or_the_magnitude(folder: Path):
    found = expected_with(folder, "return {'out': -np.arange(5.0)}")
    assert np.array_equal(found.scale["out"], np.arange(5.0))
    found = expected_with(folder, "return {'out': (np.zeros(5), np.full(5, 3.0))}")
    assert np.array_equal(found.scale["out"], np.full(5, 3.0))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("return {'out': np.zeros(4)}", "case 'small': expected 'out' of shape (5,), found (4,)"),
        ("return {'out': inputs['x']}", "expected 'out' as float64, found float32; compute in float64"),
        ("return {'oot': np.zeros(5)}", "expected a dict with the keys ['out'], found ['oot']"),
        ("return np.zeros(5)", "expected a dict with the keys ['out'], found ndarray"),
        ("return {'out': (np.zeros(5), -np.ones(5))}", "expected the scale of 'out' finite and not negative"),
        ("return {'out': (np.zeros(5), np.ones(4))}", "expected the scale of 'out' in shape (5,), found (4,)"),
        ("return 1 / 0", "shift/reference.py, line 3, case 'small': ZeroDivisionError: division by zero"),
        ("inputs['x'][0] = 1", "ValueError: assignment destination is read-only"),
        ("return (", "shift/reference.py, line 3: expected Python, found '(' was never closed"),
    ],
)
def test_a_wrong_reference_says_what_is_wrong(folder: Path, body: str, message: str):
    with pytest.raises(WorkloadError) as caught:
        expected_with(folder, body)
    assert message in str(caught.value)


def test_a_reference_without_its_function_is_refused(folder: Path):
    (folder / "reference.py").write_text("def referense(inputs, dims): ...\n")
    workload = workloads.load(str(folder))
    with pytest.raises(WorkloadError, match=r"expected a function reference\(inputs, dims\), found none; did you mean"):
        workloads.expected(workload, workload.cases[0], {})


# --- the shipped ones ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SHIPPED)
def test_first_kernels_launch_within_every_devices_limits_on_every_case(name: str):
    workload = workloads.load(name)
    kernel = parse(workload.initial)
    device = Device(kind="least", name="least", fingerprint="", arch="")
    for case in workload.cases:
        plan = kernel.plan(workload, case, device)
        assert plan.launches
    assert "asm" not in workload.initial


def test_workloads_differ_in_what_they_ask_of_a_header():
    assert parse(workloads.load("histogram").initial).header.zero == ("bins",)
    scan = parse(workloads.load("scan").initial)
    assert len(scan.header.launches) > 1
    assert set(scan.header.workspace) == {"sums"}


@pytest.mark.parametrize("name", SHIPPED)
def test_hidden_cases_hold_odd_sizes_and_one(name: str):
    hidden = workloads.load(name).role(Role.HIDDEN)
    sizes = {size for case in hidden for size in case.dims.values()}
    assert 1 in sizes
    assert any(size > 32 and size % 2 for size in sizes)
    assert any(size % 32 in (1, 31) and size > 30 for size in sizes)


@pytest.mark.parametrize("name", SHIPPED)
@pytest.mark.parametrize("seed", [0, 1])
def test_honest_float32_in_any_order_is_right_on_every_case(name: str, seed: int):
    workload = workloads.load(name)
    for case in workload.cases:
        inputs = workloads.draw_inputs(workload, case, seed)
        expected = workloads.expected(workload, case, inputs)
        for compute in HONEST[name]:
            assert passes(workload, case, expected, compute(inputs, case.dims)), (case.name, compute)


Mutant = Callable[[dict[str, np.ndarray], dict[str, np.ndarray], Case], dict[str, np.ndarray]]


def _filled(value: Callable[[np.ndarray], float]) -> Mutant:
    return lambda inputs, want, case: {name: np.full(array.shape, value(array)) for name, array in want.items()}


def _copied(inputs: dict[str, np.ndarray], want: dict[str, np.ndarray], case: Case) -> dict[str, np.ndarray]:
    first = next(iter(inputs.values()))
    return {name: np.resize(first.ravel(), array.shape) for name, array in want.items()}


def _mean(inputs: dict[str, np.ndarray], want: dict[str, np.ndarray], case: Case) -> dict[str, np.ndarray]:
    # The mean of a single output is the right answer, so there the mean of the input stands in.
    first = next(iter(inputs.values()))
    return {
        name: np.full(array.shape, array.mean() if array.size > 1 else first.mean()) for name, array in want.items()
    }


LAZY: dict[str, Mutant] = {
    "zeros": _filled(lambda array: 0.0),
    "constant": _filled(lambda array: 1.0),
    "mean": _mean,
    "input": _copied,
    "half_output": lambda inputs, want, case: {name: array.astype(np.float16) for name, array in want.items()},
}


def caught_by(name: str, mutant: Mutant) -> list[str]:
    """The correctness and hidden cases on which a mutant fails."""
    workload = workloads.load(name)
    caught = []
    for case in workload.role(Role.CORRECTNESS, Role.HIDDEN):
        inputs = workloads.draw_inputs(workload, case, 0)
        expected = workloads.expected(workload, case, inputs)
        with np.errstate(over="ignore", invalid="ignore"):
            got = mutant(inputs, dict(expected.values), case)
        if not passes(workload, case, expected, got):
            caught.append(case.name)
    return caught


@pytest.mark.parametrize("name", SHIPPED)
@pytest.mark.parametrize("mutant", LAZY)
def test_kernels_that_do_not_compute_are_caught(name: str, mutant: str):
    assert caught_by(name, LAZY[mutant])


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("rounding", ROUNDINGS)
def test_inputs_rounded_to_fewer_bits_are_caught(name: str, rounding: str):
    workload = workloads.load(name)

    def mutant(inputs: dict[str, np.ndarray], want: dict[str, np.ndarray], case: Case) -> dict[str, np.ndarray]:
        rounded = {key: ROUNDINGS[rounding](array) for key, array in inputs.items()}
        values = _unchecked(workload.reference, rounded, case)
        return {key: value.astype(np.float32) for key, value in values.items()}

    assert caught_by(name, mutant)


def _unchecked(reference: str, inputs: dict[str, np.ndarray], case: Case) -> dict[str, np.ndarray]:
    """A reference's values, infinities and all."""
    namespace: dict[str, object] = {}
    exec(reference, namespace)
    found = namespace["reference"](inputs, dict(case.dims))  # type: ignore[operator]
    return {key: value[0] if isinstance(value, tuple) else value for key, value in found.items()}


@pytest.mark.parametrize("name", HALF_ACCUMULATE)
def test_half_precision_accumulators_are_caught(name: str):
    assert caught_by(name, lambda inputs, want, case: HALF_ACCUMULATE[name](inputs, case.dims))


@pytest.mark.parametrize("name", ["gemm", "reduction", "scan"])
def test_ones_must_sum_exactly(name: str):
    workload = workloads.load(name)
    case = next(case for case in workload.cases if case.name == "ones")
    expected = workloads.expected(workload, case, workloads.draw_inputs(workload, case, 0))
    assert max(array.max() for array in expected.values.values()) == 4096
    short = {key: array - (array == 4096) for key, array in expected.values.items()}
    assert not passes(workload, case, expected, short)


def test_no_input_is_an_output():
    for name in SHIPPED:
        directions = {p.direction for p in workloads.load(name).parameters}
        assert directions <= {Direction.IN, Direction.OUT, Direction.SCALAR}


def test_a_case_may_be_replaced_without_a_folder():
    gemm = workloads.load("gemm")
    other = dataclasses.replace(gemm, cases=(Case("mine", Role.PERFORMANCE, {"M": 8, "N": 8, "K": 8}),))
    assert parse(gemm.initial).plan(other, other.cases[0], Device("d", "d", "d", "d")).launches[0].grid == (1, 1, 1)
