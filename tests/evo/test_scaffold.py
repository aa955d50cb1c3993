from __future__ import annotations

from pathlib import Path

import pytest

from evo import workload as workloads
from evo.errors import HeaderError, WorkloadError
from evo.records import Direction
from evo.workload import scaffold

SAXPY = """\
#include <cuda_runtime.h>
extern "C" __global__ void saxpy(const float* __restrict__ x, float *y, float a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i];
}
"""
TWO = """\
extern "C" __global__ void first(const float* x, int n) {}
extern "C" __global__ void second(float* out, int rows, int cols) { out[threadIdx.y] = 0; }
"""


def yaml_line(folder: Path, start: str) -> str:
    lines = (folder / "workload.yaml").read_text().splitlines()
    return next(line for line in lines if line.strip().startswith(start))


def test_the_signature_becomes_parameters(tmp_path: Path):
    scaffold.write(SAXPY, tmp_path / "saxpy")
    workload = workloads.load(str(tmp_path / "saxpy"))
    assert [(p.name, p.dtype, p.direction) for p in workload.parameters] == [
        ("x", "float32", Direction.IN),
        ("y", "float32", Direction.OUT),
        ("a", "float32", Direction.SCALAR),
        ("n", "int32", Direction.SCALAR),
    ]
    assert workload.dims == ("n",)
    assert workload.entry == "saxpy"


def test_every_guess_is_marked_for_review_with_its_line(tmp_path: Path):
    made = scaffold.write(SAXPY, tmp_path / "saxpy")
    assert "REVIEW" in yaml_line(made.folder, "- {name: x")
    assert "REVIEW" in yaml_line(made.folder, "- {name: a")
    assert "REVIEW" not in yaml_line(made.folder, "- {name: n")
    for review in made.reviews:
        name, line, text = review.split(":", 2)
        assert (made.folder / name).read_text().splitlines()[int(line) - 1].strip() == text.strip()
    assert {review.split(":")[0] for review in made.reviews} == {"workload.yaml", "reference.py", "initial.cu"}


def test_the_reference_refuses_to_run_and_says_what_to_write(tmp_path: Path):
    scaffold.write(SAXPY, tmp_path / "saxpy")
    workload = workloads.load(str(tmp_path / "saxpy"))
    case = workload.cases[0]
    with pytest.raises(WorkloadError) as caught:
        workloads.expected(workload, case, workloads.draw_inputs(workload, case, 0))
    assert "write reference(inputs, dims): return {'y': array of shape (n)}" in str(caught.value)


def test_a_source_without_a_header_gets_a_guessed_one(tmp_path: Path):
    made = scaffold.write(SAXPY, tmp_path / "saxpy")
    initial = (made.folder / "initial.cu").read_text()
    assert initial.endswith(SAXPY)
    assert "# REVIEW: block and grid were guessed" in initial


def test_a_header_that_is_there_is_kept(tmp_path: Path):
    gemm = workloads.load("gemm").initial
    made = scaffold.write(gemm, tmp_path / "mine")
    assert (made.folder / "initial.cu").read_text() == gemm
    workload = workloads.load(str(made.folder))
    assert [p.shape for p in workload.parameters[:3]] == [("M", "K"), ("K", "N"), ("M", "N")]


def test_a_headers_workspaces_are_no_parameters(tmp_path: Path):
    made = scaffold.write(workloads.load("scan").initial, tmp_path / "mine")
    assert [p.name for p in workloads.load(str(made.folder)).parameters] == ["x", "y", "N"]


def test_one_of_several_functions_is_named(tmp_path: Path):
    with pytest.raises(WorkloadError, match="found first, second; say which one is the entry"):
        scaffold.write(TWO, tmp_path / "two")
    with pytest.raises(WorkloadError, match="found 'secnd'; did you mean 'second'"):
        scaffold.write(TWO, tmp_path / "two", entry="secnd")
    assert not (tmp_path / "two").exists()
    scaffold.write(TWO, tmp_path / "two", entry="second")
    workload = workloads.load(str(tmp_path / "two"))
    assert workload.entry == "second"
    assert workload.parameters[0].shape == ("rows", "cols")
    assert 'block: "16, 16", grid: "ceildiv(cols, 16), ceildiv(rows, 16)"' in workload.initial


@pytest.mark.parametrize(
    ("parameters", "wanted"),
    [
        ("const unsigned int *a, unsigned long long *b", ["uint32 in", "uint64 out"]),
        ("const __half a[], double* __restrict__ b", ["float16 in", "float64 out"]),
        ("unsigned char const* a, size_t n, int64_t* b", ["uint8 in", "uint64 scalar", "int64 out"]),
        ("const int*, float*, int", ["int32 in", "float32 out", "int32 scalar"]),
    ],
)
def test_c_types_become_numpy_names(tmp_path: Path, parameters: str, wanted: list[str]):
    scaffold.write(f'extern "C" __global__ void k({parameters}) {{}}', tmp_path / "k")
    found = workloads.load(str(tmp_path / "k")).parameters
    assert [f"{p.dtype} {p.direction}" for p in found] == wanted


def test_a_type_without_a_numpy_name_is_for_review(tmp_path: Path):
    made = scaffold.write('extern "C" __global__ void k(const float4* a, float* b, int n) {}', tmp_path / "k")
    assert "the source's type is 'float4'" in yaml_line(made.folder, "- {name: a")


def test_a_kernel_without_sizes_gets_a_dim(tmp_path: Path):
    scaffold.write('extern "C" __global__ void k(const float* a, float* b) {}', tmp_path / "k")
    assert workloads.load(str(tmp_path / "k")).dims == ("N",)


@pytest.mark.parametrize(
    ("source", "error", "message"),
    [
        ("int main() {}", WorkloadError, "found none in the source"),
        ("template <int N> __global__ void k(float* x) {}", WorkloadError, "found none in the source"),
        ("/* launch\nblock: [\n*/\n" + SAXPY, HeaderError, "launch header, line"),
    ],
)
def test_a_source_that_gives_nothing_to_guess_from_is_refused(
    tmp_path: Path, source: str, error: type[Exception], message: str
):
    with pytest.raises(error, match=message):
        scaffold.write(source, tmp_path / "k")
    assert not (tmp_path / "k").exists()


def test_nothing_is_ever_overwritten(tmp_path: Path):
    (tmp_path / "taken").mkdir()
    with pytest.raises(WorkloadError, match="expected a new folder, found one that exists; choose another name"):
        scaffold.write(SAXPY, tmp_path / "taken")
    assert list((tmp_path / "taken").iterdir()) == []
