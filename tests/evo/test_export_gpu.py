"""Exports on a real GPU: they agree with the run, and refuse what the kernel would read wrongly."""

from __future__ import annotations

import dataclasses
import importlib
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from evaluators.cuda import CudaDevice
from evaluators.device import Setup
from evaluators.evaluator import Evaluator
from evaluators.validate import compare_output
from evo import cli
from evo import workload as workloads
from evo.config import Timing, Tuning
from evo.records import Evaluation, Status, Tolerance, Workload
from tests.support import exported

pytestmark = pytest.mark.gpu

SHIPPED = ("gemm", "scan", "histogram", "transpose")
SEED = 3
"""Of `exported.run_of`."""


def export(run: Path, kind: str, out: Path, *flags: str) -> Path:
    done = CliRunner().invoke(cli.app, ["export", str(run), "--as", kind, "--out", str(out), *flags])
    assert done.exit_code == 0, done.output
    return out


# --- the C++ program ------------------------------------------------------------------------------------------------


def build(folder: Path) -> Path:
    if shutil.which("cmake") is None:
        pytest.skip("needs CMake")
    flags = (f"-DCUDA_INCLUDE_DIR={exported.cuda_include()}", "-DCMAKE_CXX_FLAGS=-Werror")
    for command in (("cmake", "-S", folder, "-B", folder / "build", *flags), ("cmake", "--build", folder / "build")):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    return folder / "build" / "harness"


def run(program: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([program], capture_output=True, text=True, check=False, timeout=300)


def judge(workload: Workload) -> Evaluation:
    setup = Setup(workload, Timing(), Tuning(trials=0), seed=SEED, anchor=workload.initial)
    with Evaluator(CudaDevice(), setup) as evaluator:
        return evaluator.evaluate(0, workload.initial, None)


@pytest.mark.parametrize("name", ["gemm", "scan", "transpose"])
def test_the_program_agrees_with_the_run(tmp_path, name):
    workload = workloads.load(name)
    judged = judge(workload)
    assert judged.status is Status.OK, judged.message
    latencies = {result.case: result.latency for result in judged.cases if result.latency}
    case, latency = next(iter(latencies.items()))
    folder = exported.run_of(tmp_path, name, device=CudaDevice().describe(), latency=latency)
    done = run(build(export(folder, "cpp", tmp_path / "export")))
    assert done.returncode == 0, done.stdout + done.stderr
    medians = dict(re.findall(r"^(\w+): right \([^)]*\), ([\d.]+) us", done.stdout, re.MULTILINE))
    assert medians.keys() == latencies.keys()
    # Another process, without the run's guard pages: within a quarter and two microseconds.
    assert float(medians[case]) == pytest.approx(latency.median_us, rel=0.25, abs=2.0)
    assert "warning" not in done.stderr


@pytest.mark.parametrize("name", ["mixed", "counted", "histogram"])
def test_launches_of_every_kind_are_right(tmp_path, name):
    done = run(built(tmp_path, name))
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_wrong_kernel_is_wrong_and_one_that_faults_too(tmp_path):
    done = run(built(tmp_path / "1", "mixed", exported.MIXED.replace("total[0] = sum", "total[0] = sum + 1")))
    assert (done.returncode, "WRONG, output total" in done.stdout) == (1, True), done.stdout + done.stderr
    done = run(built(tmp_path / "2", "mixed", exported.MIXED.replace("total[0] = sum", "total[1ll << 40] = sum")))
    assert (done.returncode, "ILLEGAL_ADDRESS" in done.stderr) == (1, True), done.stdout + done.stderr


def built(place: Path, name: str, source: str = "") -> Path:
    folder = exported.run_of(place, name, device=CudaDevice().describe(), source=source)
    return build(export(folder, "cpp", place / "export"))


# --- the Python packages --------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Library:
    """How arrays of one library are made and read."""

    kind: str
    put: Callable[[np.ndarray[Any, Any]], Any]
    get: Callable[[Any], np.ndarray[Any, Any]]
    wait: Callable[[], None]
    as_float32: Callable[[Any], Any]
    """The same memory, seen as float32."""


def _cupy() -> Library:
    cupy = pytest.importorskip("cupy")
    wait = cupy.cuda.Device().synchronize
    return Library("cupy", cupy.asarray, cupy.asnumpy, wait, lambda array: array.view("float32"))


def _torch() -> Library:
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("needs PyTorch for CUDA")
    return Library(
        "torch",
        lambda array: torch.from_numpy(np.ascontiguousarray(array)).cuda(),
        lambda tensor: tensor.cpu().numpy(),
        torch.cuda.synchronize,
        lambda tensor: tensor.view(torch.float32),
    )


@pytest.fixture(params=[_cupy, _torch], ids=["cupy", "torch"])
def library(request):
    return request.param()


@pytest.fixture
def load(tmp_path, monkeypatch, library):
    """Export a workload's kernel for the library and import it."""
    monkeypatch.syspath_prepend(tmp_path)

    def exported_package(name: str, source: str = "") -> Any:
        package = f"exported_{library.kind}_{name}_{abs(hash(tmp_path))}"
        run_folder = exported.run_of(tmp_path / "run", name, device=CudaDevice().describe(), source=source)
        export(run_folder, library.kind, tmp_path / package)
        importlib.invalidate_caches()
        return importlib.import_module(package)

    yield exported_package
    for name in [name for name in sys.modules if name.startswith("exported_")]:
        del sys.modules[name]


@pytest.mark.parametrize("name", [*SHIPPED, "mixed", "counted"])
def test_packages_agree_with_the_reference_on_every_case(library, load, tmp_path, name):
    package = load(name)
    workload = workloads.load(name if name in SHIPPED else str(tmp_path / "run" / "workloads" / name))
    function = getattr(package, workload.name)
    for case in workload.cases:
        inputs = workloads.draw_inputs(workload, case, SEED)
        right = workloads.expected(workload, case, inputs)
        arrays = {key: library.put(value) for key, value in inputs.items()}
        made = function(*arrays.values(), **{dim: case.dims[dim] for dim in package._kernel.ASKED})
        library.wait()
        outputs = [p for p in workload.parameters if p.direction == "out"]
        got = dict(zip([p.name for p in outputs], made if isinstance(made, tuple) else (made,), strict=True))
        for parameter in workload.outputs:
            array = library.get(got.get(parameter.name, arrays.get(parameter.name)))
            tolerance = workload.tolerance.get(parameter.name) or workload.tolerance.get("") or Tolerance()
            terms = workloads.terms(workload, case, parameter.name)
            values, scale = right.values[parameter.name], right.scale[parameter.name]
            verdict = compare_output(array, values, scale, tolerance, parameter.dtype, terms)
            assert verdict.ok, (case.name, verdict.message)


def test_packages_refuse_misaligned_and_strided_arrays(library, load):
    package = load("mixed")
    x = library.put(np.arange(1001, dtype=np.float32))
    state = library.put(np.ones(1001))
    with pytest.raises(package.Refused, match="multiple of 16 bytes"):
        package.mixed(x[1:], state[:1000])
    with pytest.raises(package.Refused, match="C-contiguous"):
        package.mixed(x[:1000:2], state[:500])
    with pytest.raises(package.Refused, match="expected float32, found float64"):
        package.mixed(state[:1000], state[:1000])
    with pytest.raises(package.Refused, match="expected memory of its own"):
        package.mixed(library.as_float32(state)[:1000], state[:1000])
    package.mixed(x[:1000], state[:1000])
    library.wait()


def test_the_operator_works_under_torch_compile_and_on_another_stream(tmp_path, monkeypatch):
    library = _torch()
    torch = importlib.import_module("torch")
    monkeypatch.syspath_prepend(tmp_path)
    folder = exported.run_of(tmp_path / "run", "counted", device=CudaDevice().describe())
    export(folder, "torch", tmp_path / "exported_c")
    counted = importlib.import_module("exported_c").counted
    x = library.put(np.arange(300, dtype=np.int32))
    compiled = torch.compile(lambda values: counted(values) + counted(values), fullgraph=True)
    with torch.cuda.stream(torch.cuda.Stream()):
        assert torch.equal(compiled(x), 2 * x)
    torch.library.opcheck(counted, (x,), test_utils=("test_schema", "test_faketensor", "test_aot_dispatch_static"))
