"""GPUs are counted as CUDA would show them, without asking CUDA."""

from __future__ import annotations

from pathlib import Path

import pytest

from evo.runner import gpus

UUIDS = [f"GPU-{number}d1e2f3a-0000" for number in range(4)]


@pytest.mark.parametrize(
    ("variable", "count"),
    [
        (None, 4),
        ("", 0),
        ("0", 1),
        ("2, 0", 2),
        ("-1", 0),
        ("NoDevFiles", 0),
        ("1,4,0", 1),  # there is no fifth, and CUDA stops there
        ("0,1,-1,2", 2),
        (f"{UUIDS[3]},{UUIDS[0]}", 2),
        ("GPU-2d1", 1),
        ("GPU-9", 0),
        ("MIG-5f0c,MIG-77aa", 2),
    ],
)
def test_cuda_visible_devices_means_what_it_means_to_cuda(variable, count):
    assert len(gpus._chosen(UUIDS, variable)) == count


def test_without_a_gpu_the_variable_makes_none():
    assert len(gpus._chosen([], "0,MIG-5f0c")) == 0


def test_the_drivers_files_are_read_where_nvml_is_missing(tmp_path: Path, monkeypatch):
    for number in range(2):
        folder = tmp_path / f"0000:{number}7:00.0"
        folder.mkdir()
        (folder / "information").write_text(f"Model: \t NVIDIA H200\nIRQ:   \t 18\nGPU UUID: \t {UUIDS[number]}\n")
    monkeypatch.setattr(gpus, "DRIVER_GPUS", tmp_path)
    monkeypatch.setattr(gpus, "_nvml", lambda: ())
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert gpus.visible() == 2
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", UUIDS[1])
    assert gpus.visible() == 1


@pytest.mark.gpu
def test_nvml_and_the_driver_agree(monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert gpus.visible() >= 1
    assert not gpus._proc() or set(gpus._nvml()) == set(gpus._proc())
