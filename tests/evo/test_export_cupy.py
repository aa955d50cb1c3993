"""The exported package for CuPy, run whole on a machine without a GPU: a stub of CuPy and a driver that is none."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from evo import cli
from evo.records import Status
from tests.support import exported, stub_cupy

pytestmark = pytest.mark.skipif(
    exported.cuda_include() is None or shutil.which("g++") is None, reason="needs g++ and CUDA's headers"
)

HEAD = """\
import numpy as np, cupy, sys
x = cupy.asarray(np.arange(1000, dtype=np.float32) - 300)
state = cupy.asarray(np.ones(1000))
"""


def export(run: Path, kind: str, out: Path, *flags: str) -> None:
    done = CliRunner().invoke(cli.app, ["export", str(run), "--as", kind, "--out", str(out), *flags])
    assert done.exit_code == 0, done.output


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with the packages `mixed` and `counted`, a stub of CuPy and a driver."""
    folder = tmp_path_factory.mktemp("cupy")
    for name in ("mixed", "counted"):
        export(exported.run_of(folder / f"run-{name}", name), "cupy", folder / name)
    shutil.copy(stub_cupy.__file__, folder / "cupy.py")
    exported.fake_driver(folder / "driver")
    return folder


def python(place: Path, code: str, **more: str) -> subprocess.CompletedProcess[str]:
    """Run a piece of Python that sees the packages and nothing of the house."""
    environment = {"PATH": os.environ["PATH"], "LD_LIBRARY_PATH": str(place / "driver"), **more}
    command = [sys.executable, "-W", "error", "-c", HEAD + code]
    return subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, check=False, timeout=120)


def test_a_call_does_what_the_launch_header_declares(place, tmp_path):
    log = tmp_path / "log"
    code = """
from mixed import mixed
before = state.host.copy()
for turn in range(2):
    total, blocks = mixed(x, state)
added = 0.5 * x.host.astype(float)
assert np.array_equal(state.host, before + 2 * added), "state"
assert abs(total.host[0] - added.sum()) < 1e-9, total.host
assert total.shape == (1,) and total.dtype == np.float64 and blocks.dtype == np.int32
assert blocks.host[0] == 1, "zeroed before each call"
odd = mixed(cupy.asarray(x.host[:777]), cupy.asarray(before[:777]))
assert abs(odd[0].host[0] - added[:777].sum()) < 1e-9
assert not any(name.split(".")[0] in ("evo", "evaluators", "mutators") for name in sys.modules)
print("done")
"""
    done = python(place, code, FAKE_CUDA_LOG=str(log))
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
    lines = log.read_text().splitlines()
    launches = [line for line in lines if line.startswith("launch")]
    first = "launch scale_add grid=8,1,1 block=128,1,1 shared=1024 stream=0x77 cooperative cluster=1,1,1"
    second = "launch finish grid=1,1,1 block=1,1,1 shared=0 stream=0x77 cooperative cluster=1,1,1"
    other = "launch scale_add grid=13,1,1 block=64,1,1 shared=512 stream=0x77 cooperative cluster=1,1,1"
    assert launches == [first, second] * 2 + [other, second]
    assert lines.count("module") == 2  # a program for each set of macros, kept from call to call
    assert lines.count("attribute scale_add 8=1024") == lines.count("attribute scale_add 8=512") == 1
    assert lines.count("fill 0 4") == 3


def test_variables_of_the_kernel_begin_each_call_anew(place):
    code = """
from counted import counted
x = cupy.asarray(np.arange(9, dtype=np.int32))
for turn in range(3):
    assert np.array_equal(counted(x).host, x.host), turn
"""
    done = python(place, code)
    assert done.returncode == 0, done.stderr


REFUSED = {
    "mixed(x[1:], state[1:])": "x: expected an address that is a multiple of 16 bytes, as the kernel was promised, "
    "found one that is 4 bytes beyond; pass x.copy()",
    "mixed(x[::2], cupy.asarray(state.host[:500]))": "x: expected a C-contiguous array, with strides of (4,) bytes, "
    "found (8,); pass cupy.ascontiguousarray(x)",
    "mixed(x, state[:999])": "state: expected shape [N] = (1000,), found (999,)",
    "mixed(cupy.asarray(x.host.astype(float)), state)": "x: expected float32, found float64; pass x.astype(",
    "mixed(x.host, state)": "x: expected a cupy.ndarray, found a numpy.ndarray; pass cupy.asarray(x)",
    "mixed(cupy.ndarray(x.host, device=1), state)": "x: expected an array on GPU 0, as the others, found one on GPU 1",
    "mixed(cupy.asarray(x.host.reshape(10, 100)), state)": "x: expected an array of shape [N], found (10, 100)",
    "mixed(x[:0], state[:0])": "N: expected a size from 1 to 2147483647, found 0",
    "mixed(cupy.ndarray(state.host.view(np.float32)[:1000]), state)": "state: expected memory of its own, since the "
    "kernel writes it, found that of x",
}


@pytest.mark.parametrize("call", REFUSED)
def test_arrays_that_the_kernel_would_read_wrongly_are_refused(place, tmp_path, call):
    log = tmp_path / "log"
    code = f"from mixed import Refused, mixed\ntry:\n    {call}\nexcept Refused as error:\n    print(error)\n"
    done = python(place, code, FAKE_CUDA_LOG=str(log))
    assert done.returncode == 0, done.stderr
    assert REFUSED[call] in done.stdout
    assert not log.exists()  # nothing was loaded, let alone launched


def test_sizes_beyond_the_launch_header_are_refused(tmp_path, place):
    source = exported.MIXED.replace('"BX % 32 == 0"', '"BX % 32 == 0", "N != 1000"')
    source = source.replace('"min(num_sms', '"7 // (N - 999) * min(num_sms')
    export(exported.run_of(tmp_path / "run", "mixed", source=source), "cupy", place / "narrow", "--force")
    code = """
from narrow import Refused, mixed
for count in (1000, 999):
    try:
        mixed(cupy.asarray(x.host[:count]), cupy.asarray(state.host[:count]))
    except Refused as error:
        print(error)
"""
    done = python(place, code)
    assert "expected 'N != 1000' to hold, as the launch header requires, found {'N': 1000" in done.stdout, done.stderr
    assert "mixed: the launch header divides by zero for {'N': 999}" in done.stdout


def test_a_driver_that_is_missing_or_fails_is_told(place, tmp_path):
    code = "from mixed import mixed\nmixed(x, state)\n"
    if not Path("/dev/nvidiactl").exists():
        assert "CudaError: no NVIDIA driver: libcuda.so.1" in python(place, code, LD_LIBRARY_PATH="").stderr
    assert "CudaError: cuInit, the driver: CUDA_ERROR_NO_DEVICE (100)" in python(place, code, FAKE_CUDA="empty").stderr


def test_a_kernel_that_does_not_compile_here_is_told_with_the_compilers_words(place, tmp_path):
    source = exported.MIXED.replace("extern __shared__ double added[];", "extern __shared__ double other[];")
    export(exported.run_of(tmp_path / "run", "mixed", source=source), "cupy", place / "broken", "--force")
    done = python(place, "from broken import mixed\nmixed(x, state)\n")
    assert "CompileError: best.cu does not compile for sm_90a" in done.stderr
    assert 'identifier "added" is undefined' in done.stderr


# --- the command --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--as", "rust", "--out", "x"), "--as rust: expected one of cpp, cupy, torch"),
        (("--as", "cupy", "--out", "my-kernel"), "expected a name that Python can import"),
        (("--as", "cupy", "--out", "x", "--case", "even"), "--case: only --as cpp stores cases"),
        (("--as", "cpp", "--out", "x", "--case", "evem"), "no case 'evem'; did you mean 'even'?"),
        (("--as", "cpp", "--out", "x", "--arch", "90"), "--arch 90: expected sm_ and a number"),
        (("9", "--as", "cpp", "--out", "x"), "expected a candidate from 0 to 0, found 9"),
        (("--as", "cpp", "--out", "taken"), "expected no folder, or an empty one; name another"),
        (("--as", "cpp", "--out", "file"), "expected a folder, or a name that is free, found a file"),
    ],
)  # fmt: skip
def test_wrong_flags_are_told(tmp_path, monkeypatch, flags, words):
    run = exported.run_of(tmp_path / "run", "mixed")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "mine").touch()
    (tmp_path / "file").touch()
    done = CliRunner().invoke(cli.app, ["export", str(run), *flags])
    assert done.exit_code == 2
    assert words in " ".join(done.stderr.split())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "run", "taken"]


def test_a_kernel_that_is_not_right_is_not_exported(tmp_path):
    run = exported.run_of(tmp_path, "mixed", status=Status.WRONG_ANSWER)
    done = CliRunner().invoke(cli.app, ["export", str(run), "--as", "cpp", "--out", str(tmp_path / "x")])
    assert done.exit_code == 2
    assert "found kernel 0, which is wrong answer" in " ".join(done.stderr.split())


def test_machines_are_told_what_was_written(tmp_path):
    run, out = exported.run_of(tmp_path, "mixed"), tmp_path / "here"
    out.mkdir()  # an empty folder is no obstacle
    done = CliRunner().invoke(
        cli.app, ["export", str(run), "--as", "cpp", "--out", str(out), "--case", "odd", "--json"]
    )
    told = json.loads(done.stdout)
    assert told == {
        "folder": str(out),
        "as": "cpp",
        "origin": "kernel 0 of run-001",
        "cases": ["odd"],
        "bytes": told["bytes"],
    }
    assert told["bytes"] == sum(path.stat().st_size for path in out.rglob("*") if path.is_file())
    assert sorted(path.name for path in (out / "cases").iterdir()) == ["odd"]
