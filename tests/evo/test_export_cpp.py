"""The exported C++ program: built with CMake, run without a driver and with one that needs no GPU."""

from __future__ import annotations

import dataclasses
import math
import os
import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from evaluators.validate import WORST_ERROR, compare_output, unit_roundoff
from evo import cli
from evo.export.folder import TEMPLATES
from evo.records import Tolerance
from evo.statistics import median_interval
from tests.support import exported

INCLUDE = exported.cuda_include()
pytestmark = pytest.mark.skipif(
    INCLUDE is None or not all(map(shutil.which, ("cmake", "g++"))), reason="needs CMake, g++ and CUDA's headers"
)


def export(run: Path, out: Path, *flags: str) -> Path:
    done = CliRunner().invoke(cli.app, ["export", str(run), "--as", "cpp", "--out", str(out), *flags])
    assert done.exit_code == 0, done.output
    return out


def build(folder: Path) -> Path:
    """Build an export as its README says, all warnings being errors, and return the program."""
    flags = (f"-DCUDA_INCLUDE_DIR={INCLUDE}", "-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_CXX_FLAGS=-Werror")
    for command in (("cmake", "-S", folder, "-B", folder / "build", *flags), ("cmake", "--build", folder / "build")):
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr
    return folder / "build" / "harness"


def run(program: Path, *flags: str, driver: Path | None = None, **more: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **({"LD_LIBRARY_PATH": str(driver)} if driver else {}), **more}
    return subprocess.run([program, *flags], capture_output=True, text=True, check=False, env=environment, timeout=120)


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    return exported.fake_driver(tmp_path_factory.mktemp("driver"))


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    """A program of several launches with workspace, zeroed buffer, inout buffer, tunables and options, built."""
    place = tmp_path_factory.mktemp("mixed")
    moved = (place / "elsewhere").resolve()
    exported.run_of(place, "mixed").rename(moved)
    shutil.rmtree(place / "workloads")  # the database alone is enough
    return build(export(moved, place / "export"))


def test_without_a_driver_it_says_so(mixed):
    if Path("/dev/nvidiactl").exists():
        pytest.skip("there is a driver")
    done = run(mixed)
    assert (done.returncode, done.stdout) == (2, "")
    assert "cannot run: no NVIDIA driver" in done.stderr


def test_without_a_gpu_it_says_so(mixed, driver):
    done = run(mixed, driver=driver, FAKE_CUDA="empty")
    assert done.returncode == 2
    assert "cuInit: CUDA_ERROR_NO_DEVICE (100)" in done.stderr
    assert "CUDA_VISIBLE_DEVICES" in done.stderr


def test_every_program_compiles_for_a_gpu_that_is_not_here(mixed):
    done = run(mixed, "--compile-only", "--arch", "sm_90a")
    assert done.returncode == 0, done.stderr
    assert re.findall(r"^(\w+): compiles for sm_90a", done.stdout, re.MULTILINE) == ["even", "odd"]


def test_right_outputs_give_latencies_and_0(mixed, driver):
    done = run(mixed, driver=driver)
    assert done.returncode == 0, done.stderr
    assert "kernel 0 of elsewhere" in done.stdout
    assert "compiled for sm_90a" in done.stdout
    assert re.search(
        r"^even: right \(0 of the tolerance\), [\d.]+ us \(95 %: [\d.]+ to [\d.]+; 20 launches", done.stdout, re.M
    )
    assert "in the run 12.5 us on NVIDIA H200" in done.stdout


def test_wrong_outputs_give_1_and_where(mixed, driver):
    done = run(mixed, "--case", "odd", driver=driver, FAKE_CUDA="wrong")
    assert done.returncode == 1
    assert "odd: WRONG, output total: 1 of 1 elements are wrong; the first is [0]: got " in done.stdout
    assert "even" not in done.stdout


def test_a_kernel_that_faults_is_wrong(mixed, driver):
    done = run(mixed, driver=driver, FAKE_CUDA="fault")
    assert done.returncode == 1
    assert "WRONG: case even: CUDA_ERROR_ILLEGAL_ADDRESS (700)" in done.stderr


def test_what_the_header_declares_is_launched(mixed, driver, tmp_path):
    log = tmp_path / "log"
    assert run(mixed, "--case", "even", driver=driver, FAKE_CUDA_LOG=str(log)).returncode == 0
    calls = Counter(log.read_text().splitlines())
    assert calls["launch scale_add grid=8,1,1 block=128,1,1 shared=1024 stream=0x2 cooperative cluster=1,1,1"] > 20
    assert calls["launch finish grid=1,1,1 block=1,1,1 shared=0 stream=0x2 cooperative cluster=1,1,1"] > 20
    assert calls["attribute scale_add 8=1024"] == 1
    assert calls[f"flush {100 << 20}"] == 20  # twice the L2, before each timed launch
    launches = calls["launch finish grid=1,1,1 block=1,1,1 shared=0 stream=0x2 cooperative cluster=1,1,1"]
    assert calls["fill 0 4"] == launches  # `zero`
    assert calls["fill 255 64"] == launches  # the workspace, poisoned
    assert launches >= 1 + 2 + 20


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--case", "none"), "--case none: this export has no such case"),
        (("--wrong",), "--wrong: no such option"),
        (("--device", "x"), "--device: expected a whole number, found 'x'"),
        (("--case",), "--case: expected a value after it"),
        (("--folder", "/nowhere"), "/nowhere/best.cu: expected a file of this export"),
        (("--compile-only",), "name the target with --arch"),
        (("--compile-only", "--arch", "sm_1"), "does not compile with NVRTC"),
        (("--compile-only", "--arch", "sm_90", "--nvrtc", "/nowhere.so"), "no CUDA compiler"),
    ],
)
def test_what_cannot_be_done_is_2_and_says_why(mixed, flags, words):
    done = run(mixed, *flags)
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr


def test_a_damaged_array_is_named(mixed, driver, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(mixed.parents[1], copy)
    stored = copy / "cases" / "even" / "x.npy"
    stored.write_bytes(stored.read_bytes()[:-4])
    done = run(mixed, "--folder", str(copy), driver=driver)
    assert done.returncode == 2
    assert f"{stored}: expected 4000 bytes of data" in done.stderr


def test_an_arch_that_was_asked_for_is_compiled_for(tmp_path, driver):
    """And a kernel that counts its launches in a `__device__` variable begins each of them anew."""
    program = build(export(exported.run_of(tmp_path, "counted"), tmp_path / "export", "--arch", "sm_90"))
    done = run(program, driver=driver)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "compiled for sm_90 with" in done.stdout
    assert "large: right" in done.stdout


@pytest.mark.long
def test_launches_that_depend_on_the_gpu_carry_a_warning_on_another(mixed, driver, tmp_path):
    assert "warning" not in run(mixed, driver=driver).stderr
    source = exported.MIXED.replace('"min(num_sms, 1)"', '"min(num_sms // 90, 1)"')
    small = dataclasses.replace(exported.H200, name="a smaller GPU", num_sms=100)
    run_folder = exported.run_of(tmp_path, "mixed", device=small, source=source)
    done = run(build(export(run_folder, tmp_path / "export")), driver=driver)
    assert done.returncode == 0
    assert "warning: the launches are those for a smaller GPU (100 multiprocessors" in done.stderr


# --- the same rules as the product's ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    """A program of the harness's parts that decide and sum up."""
    program = tmp_path_factory.mktemp("parts") / "parts"
    source = Path(exported.__file__).with_name("harness_check.cpp")
    command = ["g++", "-std=c++17", "-O1", "-I", TEMPLATES / "cpp", "-isystem", INCLUDE, source, "-o", program, "-ldl"]
    subprocess.run(command, check=True)
    return program


def judged(parts: Path, folder: Path, dtype: str, tolerance: Tolerance, terms: int, scaled: bool) -> tuple[float, ...]:
    factor = slack = 0.0
    exact = tolerance.exact or not dtype.startswith("float")
    if not exact:
        factor = tolerance.budget * math.sqrt(terms) * unit_roundoff(dtype)
        slack = tolerance.atol + float(np.finfo(dtype).smallest_subnormal) / 2
    count = np.load(folder / "got.npy").size
    words = (dtype, int(exact), factor.hex(), slack.hex(), int(scaled), count)
    done = subprocess.run([parts, "compare", *map(str, words)], cwd=folder, capture_output=True, text=True, check=True)
    return tuple(map(float, done.stdout.split()))


SPECIAL = (0.0, -0.0, math.inf, -math.inf, math.nan, 1e-320, 1e-45, 6e-8, 65504.0, 65519.9, 65520.0, 3.4028235e38, 1e39)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("exact", [False, True])
def test_floats_are_compared_as_in_the_run(parts, tmp_path, dtype, scaled, exact):
    rng = np.random.default_rng(len(dtype) + scaled + 2 * exact)
    for terms in (1, 50):
        want = np.concatenate([SPECIAL, rng.permutation(SPECIAL), rng.normal(0, 10, 400)])
        with np.errstate(all="ignore"):
            got = (want * (1 + rng.normal(0, 3 * unit_roundoff(dtype), want.shape))).astype(dtype)
        got[rng.random(want.shape) < 0.1] = 0
        scale = np.where(np.isfinite(want), np.abs(want) * 2, 1.0) if scaled else None
        tolerance = Tolerance(exact=exact, budget=1.5, atol=1e-6 if terms > 1 else 0.0)
        with np.errstate(all="ignore"):
            verdict = compare_output(got, want, scale, tolerance, dtype, terms)
            np.save(tmp_path / "got.npy", got)
            np.save(tmp_path / "want.npy", want.astype(dtype) if exact else want)
        if scaled:
            np.save(tmp_path / "scale.npy", scale)
        error, wrong, _ = judged(parts, tmp_path, dtype, tolerance, terms, scaled and not exact)
        assert wrong == verdict.count
        assert min(error, WORST_ERROR) == pytest.approx(verdict.error, rel=1e-12)


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"])
def test_integers_have_to_be_equal(parts, tmp_path, dtype):
    limits = np.iinfo(dtype)
    want = np.array([limits.min, limits.max, 0, 1, 7], dtype)
    got = want.copy()
    got[3] = 2
    np.save(tmp_path / "got.npy", got)
    np.save(tmp_path / "want.npy", want)
    assert judged(parts, tmp_path, dtype, Tolerance(), 1, False) == (math.inf, 1, 3)


@pytest.mark.parametrize("count", [1, 2, 5, 6, 7, 20, 99, 100])
def test_medians_and_intervals_are_those_of_the_run(parts, count):
    samples = np.random.default_rng(count).normal(10, 1, count)
    done = subprocess.run([parts, "median", *map(repr, samples.tolist())], capture_output=True, text=True, check=True)
    assert tuple(map(float, done.stdout.split())) == pytest.approx(tuple(median_interval(samples)), rel=1e-15)
