"""The exported package for PyTorch: an operator that is compiled, traced and called, on a machine without a GPU."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from evo import cli
from tests.support import exported

pytestmark = [
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs PyTorch"),
    pytest.mark.skipif(
        exported.cuda_include() is None or shutil.which("g++") is None, reason="needs g++ and CUDA's headers"
    ),
]

ON_CPU = """\
import torch, sys, {0} as package
package._is_on_gpu = lambda tensor: True  # the driver that is none has this process's memory
package._stream = lambda device: 0x77
from {0} import {0}, Refused
"""
MIXED = """
torch.manual_seed(0)
x, state = torch.randn(1000), torch.ones(1000, dtype=torch.float64)
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with the packages and a driver."""
    folder = tmp_path_factory.mktemp("torch")
    for name in ("mixed", "counted", "histogram"):
        run = exported.run_of(folder / f"run-{name}", name)
        done = CliRunner().invoke(cli.app, ["export", str(run), "--as", "torch", "--out", str(folder / name)])
        assert done.exit_code == 0, done.output
    exported.fake_driver(folder / "driver")
    return folder


def python(place: Path, code: str, **more: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "LD_LIBRARY_PATH": str(place / "driver"), "PYTHONPATH": "", **more}
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=place,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def done(place: Path, code: str, **more: str) -> str:
    ended = python(place, code, **more)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def test_a_call_does_what_the_launch_header_declares(place, tmp_path):
    code = """
before = state.clone()
total, blocks = mixed(x, state)
added = 0.5 * x.double()
assert torch.equal(state, before + added)
assert torch.allclose(total, added.sum().reshape(1)) and total.dtype == torch.float64
assert blocks.tolist() == [1] and blocks.dtype == torch.int32
"""
    log = tmp_path / "log"
    done(place, ON_CPU.format("mixed") + MIXED + code, FAKE_CUDA_LOG=str(log))
    launches = [line for line in log.read_text().splitlines() if line.startswith("launch")]
    assert launches == [
        "launch scale_add grid=8,1,1 block=128,1,1 shared=1024 stream=0x77 cooperative cluster=1,1,1",
        "launch finish grid=1,1,1 block=1,1,1 shared=0 stream=0x77 cooperative cluster=1,1,1",
    ]


def test_the_operator_works_under_compile_and_its_mutation_is_seen(place):
    code = """
@torch.compile(fullgraph=True, backend="aot_eager")
def twice(x, state):
    first, _ = mixed(x, state)
    second, _ = mixed(x, state)
    return first + second, state * 2
before = state.clone()
total, doubled = twice(x, state)
added = 0.5 * x.double()
assert torch.allclose(total, 2 * added.sum().reshape(1))
assert torch.allclose(state, before + 2 * added) and torch.allclose(doubled, 2 * state)
"""
    done(place, ON_CPU.format("mixed") + MIXED + code)


def test_pytorchs_own_check_of_operators_is_content(place):
    code = """
x = torch.arange(300, dtype=torch.int32)
torch.library.opcheck(counted, (x,), test_utils=("test_schema", "test_faketensor", "test_aot_dispatch_static"))
assert torch.equal(counted(x), x)
"""
    done(place, ON_CPU.format("counted") + code)


def test_shapes_are_known_without_a_gpu(place):
    code = """
import torch
from histogram import histogram
from mixed import mixed
from torch._subclasses.fake_tensor import FakeTensorMode
made = histogram(torch.empty(1000, dtype=torch.int32, device="meta"), BINS=17)
assert (made.shape, made.dtype, made.device.type) == ((17,), torch.int32, "meta")
with FakeTensorMode():
    total, blocks = mixed(torch.empty(5), torch.empty(5, dtype=torch.float64))
assert (total.shape, total.dtype, blocks.dtype) == ((1,), torch.float64, torch.int32)
"""
    done(place, code)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ("mixed(x[1:], state[1:])", "x: expected an address that is a multiple of 16 bytes"),
        ("mixed(x[::2], state[:500])", "x: expected a C-contiguous array, with strides of (4,) bytes, found (8,); pass "
         "x.contiguous()"),
        ("mixed(x, state[:998])", "state: expected shape [N] = (1000,), found (998,)"),
        ("mixed(x.double(), state)", "x: expected float32, found float64; pass x.to(torch.float32)"),
        ("mixed(x.bfloat16(), state)", "x: expected float32, found bfloat16"),
    ],
)  # fmt: skip
def test_tensors_that_the_kernel_would_read_wrongly_are_refused(place, call, words):
    code = f"try:\n    {call}\nexcept Refused as error:\n    print(error)\n"
    assert words in done(place, ON_CPU.format("mixed") + MIXED + code)


def test_a_tensor_of_the_cpu_is_refused(place):
    code = f"import torch\nfrom mixed import mixed, Refused\n{MIXED}\ntry:\n    mixed(x, state)\n"
    code += "except Refused as error:\n    print(error)\n"
    assert "x: expected a dense tensor on a GPU, found cpu; pass x.cuda()" in done(place, code)
