"""`evo eval --compile-only`: what NVRTC says of a kernel's programs, without a GPU."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from evaluators import nvrtc
from evo import cli
from evo.commands import compiling, doctor
from evo.errors import DeviceError
from evo.records import Device

needs_nvrtc = pytest.mark.skipif(not nvrtc.available(), reason="NVRTC is not installed (extra `nvrtc`)")

GEMM = Path(__file__).parents[2] / "benchmarks" / "workloads" / "gemm" / "initial.cu"
COPY = """\
extern "C" __global__ void copy(const float* x, float* y, int N) {
    __shared__ float s[256];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    s[threadIdx.x] = i < N ? x[i] : 0.0f;
    __syncthreads();
    if (i < N) y[i] = s[threadIdx.x];
}
"""
ROWS = """\
/* launch
block: BX
grid: ROWS
shared_bytes: "4 * BX"
tune: {BX: [64, 256]}
defaults: {BX: 64}
choose:
  - {when: "COLS > 512", set: {BX: 256}}
*/
#include <cmath>
extern "C" __global__ void softmax(const float* x, float* y, int ROWS, int COLS) {
    extern __shared__ float s[];
    float a[BX / 8];
    for (int j = 0; j < BX / 8; ++j) a[j] = x[threadIdx.x + j * COLS];
    s[threadIdx.x] = a[ROWS % (BX / 8)];
    __syncthreads();
    y[blockIdx.x * COLS + threadIdx.x] = s[COLS % BX];
}
"""


def evo(*arguments: str) -> Any:
    return CliRunner().invoke(cli.app, ["eval", *arguments])


def kernel(folder: Path, text: str) -> str:
    path = folder / "kernel.cu"
    path.write_text(text)
    return str(path)


def found(*arguments: str) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(evo(*arguments, "--compile-only", "--json").stdout)
    return read


@needs_nvrtc
def test_each_kernel_is_told_with_what_it_uses(tmp_path: Path) -> None:
    done = evo(kernel(tmp_path, COPY), "--compile-only", "--arch", "sm_80")
    assert done.exit_code == 0
    assert done.stdout.startswith("ok for sm_80")
    assert "Inputs and launch were guessed" in done.stdout
    (program,) = found(kernel(tmp_path, COPY), "--arch", "sm_80")["programs"]
    used = program["kernels"]["copy"]
    assert 4 <= used["registers"] <= 40
    assert (used["spill_bytes"], used["static_shared_bytes"], used["symbol"]) == (0, 1024, "copy")
    assert f"{used['registers']}" in done.stdout


@needs_nvrtc
def test_every_configuration_that_a_performance_case_chooses_is_a_program(tmp_path: Path) -> None:
    programs = found(kernel(tmp_path, ROWS), "-w", "softmax")["programs"]
    assert sorted(program["defines"]["BX"] for program in programs) == [64, 256]
    assert sorted(program["kernels"]["softmax"]["dynamic_shared_bytes"] for program in programs) == [256, 1024]
    assert {case for program in programs for case in program["cases"]} == {"long_rows", "many_rows"}


@needs_nvrtc
def test_cases_with_the_same_program_share_it() -> None:
    programs = found(str(GEMM), "-w", "gemm")["programs"]
    assert [len(program["cases"]) for program in programs] == [2]


@needs_nvrtc
@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("y[i] = s", "y[i] = z"), 'line 6: error: identifier "z" is undefined'),
        (("s[256]", "s[65536]"), "too much shared data"),
        (("int i", '#include "/etc/hostname"\nint i'), "line 3: "),
    ],
)
def test_what_does_not_compile_is_rejected_with_the_compilers_words(
    tmp_path: Path, change: tuple[str, str], words: str
) -> None:
    done = evo(kernel(tmp_path, COPY.replace(*change)), "--compile-only")
    assert done.exit_code == 1
    assert words in done.stdout
    assert found(str(tmp_path / "kernel.cu"))["status"] in ("compile_error", "unsafe")


@needs_nvrtc
def test_a_program_that_fails_alone_is_named_with_its_configuration(tmp_path: Path) -> None:
    done = evo(kernel(tmp_path, ROWS.replace("float a", "static_assert(BX < 256);\n    float a")), "-w", "softmax",
               "--compile-only")  # fmt: skip
    assert done.exit_code == 1
    assert "BX=256" in done.stdout
    assert "static assertion failed" in done.stdout
    assert "BX=64" in done.stdout  # the one that compiles


def test_a_wrong_header_is_rejected_before_any_compiler(tmp_path: Path) -> None:
    done = evo(kernel(tmp_path, ROWS.replace("block: BX", "block: 4096")), "-w", "softmax", "--compile-only")
    assert done.exit_code == 1
    assert done.stdout.startswith("bad launch")
    assert "expected at most 1024" in done.stdout or "from 1 to 1024" in done.stdout


@needs_nvrtc
@pytest.mark.parametrize("arch", ["sm_50", "sm_80a", "hopper"])
def test_an_architecture_that_is_none_is_a_mistake_of_the_user(tmp_path: Path, arch: str) -> None:
    done = evo(kernel(tmp_path, COPY), "--compile-only", "--arch", arch)
    assert done.exit_code == 2
    assert arch in done.stderr
    assert done.stdout == ""


def test_shared_memory_is_bounded_as_on_the_architecture(tmp_path: Path) -> None:
    text = ROWS.replace("4 * BX", "150 * 1024")
    done = evo(kernel(tmp_path, text), "-w", "softmax", "--compile-only", "--arch", "sm_89")
    assert done.exit_code == 1
    assert "expected 0 to 101376 bytes of dynamic shared memory" in done.stdout


def test_without_a_gpu_the_target_is_hopper_and_with_one_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = Device("cuda", "a GPU", "a GPU", "sm_86", num_sms=84)
    monkeypatch.setattr(compiling, "_gpu", lambda: None)
    assert compiling._device(None).arch == "sm_90a"
    monkeypatch.setattr(compiling, "_gpu", lambda: gpu)
    assert compiling._device(None) == gpu
    assert compiling._device("sm_86") == gpu
    assert compiling._device("sm_90a").num_sms == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("-w", "gemm", "--arch", "sm_90a"), "--arch goes with --compile-only"),
        (("--compile-only", "--seed", "1"), "--compile-only runs nothing"),
        (("--compile-only", "--device", "host"), "--compile-only runs nothing"),
        (("--compile-only", "--set", "seed=1"), "--compile-only runs nothing"),
        ((), "give --workload NAME, or --compile-only"),
    ],
)
def test_flags_that_mean_nothing_together_are_refused(tmp_path: Path, arguments: tuple[str, ...], words: str) -> None:
    done = evo(kernel(tmp_path, COPY), *arguments)
    assert done.exit_code == 2
    assert words in " ".join(done.stderr.split())


def test_without_nvrtc_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvrtc, "find", lambda: None)
    done = evo(kernel(tmp_path, COPY), "--compile-only")
    assert done.exit_code == 3
    assert "pip install 'kernel-evo[nvrtc]'" in done.stderr
    finding = doctor.nvrtc()
    assert (finding.state, "CUDA_HOME" in finding.fix) == ("optional", True)


@needs_nvrtc
def test_doctor_names_the_version_and_the_place() -> None:
    installation = nvrtc.find()
    assert installation is not None
    finding = doctor.nvrtc()
    assert finding.state == "ok"
    assert finding.found.startswith(f"{nvrtc.version()} at {installation.library}")


def test_doctor_says_how_to_mend_an_nvrtc_that_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise DeviceError("KERNEL_EVO_NVRTC=/x: no such file")

    monkeypatch.setattr(nvrtc, "find", broken)
    finding = doctor.nvrtc()
    assert (finding.state, finding.found) == ("missing", "KERNEL_EVO_NVRTC=/x: no such file")
    assert "KERNEL_EVO_NVRTC" in finding.fix
