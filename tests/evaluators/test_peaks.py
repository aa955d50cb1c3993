"""The GPU's peaks: theory by architecture, what is kept on disk, and, on a GPU, what it really reaches."""

from __future__ import annotations

import dataclasses
import time
from pathlib import Path

import pytest

from evaluators import nvrtc
from evaluators.cudalib import peaks, rates
from evo.errors import DeviceError
from evo.records import CompileRequest, Device, Peaks, Status

FACTS = Device("cuda", "NVIDIA H200", "cuda NVIDIA H200 sm_90a driver 580.1", "sm_90a", 132)
KERNELS = ("stream", "rate_fp32", "rate_tf32", "rate_fp16", "rate_bf16")


@pytest.mark.parametrize(
    ("capability", "num_sms", "clock_ghz", "fp32", "fp16"),
    [
        ((7, 0), 80, 1.53, 15.7, 125.0),  # V100 SXM2: NVIDIA Tesla V100 GPU Architecture, table 1
        ((8, 0), 108, 1.41, 19.5, 312.0),  # A100: NVIDIA A100 Tensor Core GPU Architecture, table 1
        ((8, 9), 142, 2.52, 91.6, 362.0),  # L40S: data sheet, dense
        ((9, 0), 132, 1.83, 61.8, 989.4),  # H100 SXM5: NVIDIA H100 Tensor Core GPU Architecture, table 2 (tensor cores)
    ],
)
def test_theory_agrees_with_nvidias_own_figures(
    capability: tuple[int, int], num_sms: int, clock_ghz: float, fp32: float, fp16: float
) -> None:
    found = rates.theoretical(capability, num_sms, clock_ghz * 1e9, 1e12)
    assert found.fp32_flops_per_s / 1e12 == pytest.approx(fp32, rel=0.02)
    assert found.fp16_flops_per_s / 1e12 == pytest.approx(fp16, rel=0.02)
    assert found.dram_bytes_per_s == 1e12


def test_the_memory_of_an_h100_moves_3_35_terabytes_a_second() -> None:
    assert rates.memory_rate(2.619e9, 5120) == pytest.approx(3.35e12, rel=0.005)


def test_an_unknown_architecture_has_the_rate_of_its_memory_alone() -> None:
    assert rates.theoretical((99, 0), 100, 1e9, 1e12) == Peaks(dram_bytes_per_s=1e12)


def test_bfloat16_came_with_ampere() -> None:
    assert rates.theoretical((7, 5), 40, 1.59e9, 3e11).bf16_flops_per_s == 0
    assert rates.theoretical((8, 0), 108, 1.41e9, 1e12).bf16_flops_per_s > 0


class Meter:
    """Measures, and counts how often."""

    def __init__(self, found: Peaks | None) -> None:
        self.found = found
        self.times = 0

    def __call__(self) -> Peaks:
        self.times += 1
        if self.found is None:
            raise DeviceError("the GPU is busy")
        return self.found


def test_peaks_are_measured_once_for_a_kind_of_gpu_and_a_driver(tmp_path: Path) -> None:
    meter = Meter(Peaks(4.2e12, 60e12))
    assert peaks.measured(FACTS, tmp_path, meter) == peaks.measured(FACTS, tmp_path, meter) == meter.found
    assert meter.times == 1
    peaks.measured(dataclasses.replace(FACTS, uuid="GPU-2"), tmp_path, meter)
    assert meter.times == 1
    peaks.measured(dataclasses.replace(FACTS, fingerprint="cuda NVIDIA H200 sm_90a driver 590.1"), tmp_path, meter)
    assert meter.times == 2


def test_a_damaged_file_is_measured_anew(tmp_path: Path) -> None:
    meter = Meter(Peaks(4.2e12))
    peaks.measured(FACTS, tmp_path, meter)
    (kept,) = tmp_path.iterdir()
    kept.write_bytes(b'{"dram')
    assert peaks.measured(FACTS, tmp_path, meter) == meter.found
    assert meter.times == 2


def test_what_could_not_be_measured_is_not_kept(tmp_path: Path) -> None:
    with pytest.raises(DeviceError, match="busy"):
        peaks.measured(FACTS, tmp_path, Meter(None))
    assert list(tmp_path.iterdir()) == []


def test_without_a_gpu_the_process_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("cuda.bindings")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    with pytest.raises(DeviceError, match="not measured: DeviceError: there is no"):
        peaks.in_a_process()


@pytest.mark.skipif(not nvrtc.available(), reason="needs NVRTC and a sandbox")
@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_90", "sm_90a", "sm_100a", "sm_120a"])
def test_the_kernels_compile_and_spill_nothing(arch: str) -> None:
    request = CompileRequest(peaks.SOURCE.read_text(encoding="utf-8"), KERNELS, {}, (), arch)
    binary = nvrtc.compile(request, cubin=True)
    assert binary.status is Status.OK, binary.message
    assert [used.spill_bytes for used in binary.resources.values()] == [0] * len(KERNELS)


@pytest.mark.gpu
def test_a_gpu_reaches_most_of_what_theory_allows_and_not_more() -> None:
    from evaluators.cuda import CudaDevice

    theory = CudaDevice().describe().peaks
    assert theory is not None
    found = peaks.in_a_process()
    assert 0.6 < found.dram_bytes_per_s / theory.dram_bytes_per_s < 1.0
    assert 0.6 < found.fp32_flops_per_s / theory.fp32_flops_per_s < 1.0
    for unit in ("tf32_flops_per_s", "fp16_flops_per_s", "bf16_flops_per_s"):
        assert 0.4 < getattr(found, unit) / getattr(theory, unit) <= 1.0, unit


@pytest.mark.gpu
def test_measuring_takes_less_than_a_second_beside_the_context() -> None:
    from evaluators.cudalib.gpu import Gpu
    from evaluators.cudalib.measuring import measure

    gpu = Gpu()
    measure(gpu)  # compiles
    begin = time.monotonic()
    measure(gpu)
    assert time.monotonic() - begin < 1.0


@pytest.mark.gpu
def test_peaks_that_are_known_cost_nothing(tmp_path: Path) -> None:
    from evaluators.cuda import CudaDevice

    facts = CudaDevice().describe()
    first = peaks.measured(facts, tmp_path)
    begin = time.monotonic()
    assert peaks.measured(facts, tmp_path) == first
    assert time.monotonic() - begin < 0.05
