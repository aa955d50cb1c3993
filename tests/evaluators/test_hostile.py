"""Hostile kernels on the host device: each gets its status, and nothing outside of the child is touched."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import psutil
import pytest

from evaluators import redteam
from evaluators.host import HostDevice
from evaluators.redteam import Sample
from evo import sandbox
from evo.records import Buffer, CompileRequest, Direction, Job, Launch, LaunchPlan, Status

KERNELS = [sample for sample in redteam.samples() if sample.devices == {"host"} and not sample.screened]
CANARY = Path("/tmp/KERNEL_EVO_CANARY")

pytestmark = pytest.mark.skipif(sandbox.available() != "", reason=f"no sandbox: {sandbox.available()}")


def judge(source: str, folder: Path, flavour: str) -> tuple[Status, str]:
    """Compile a kernel that should fill `out` with ones, run it, and look at `out`."""
    device = HostDevice()
    binary = device.compile(CompileRequest(source, ("hostile",), {}, (), device.describe().arch, flavour))
    if binary.status is not Status.OK:
        return binary.status, binary.message
    (folder / "program").write_bytes(binary.image)
    (folder / "program").chmod(0o700)
    plan = LaunchPlan((Launch("hostile", (1, 1, 1), (64, 1, 1), 0, ("out",)),))
    out = Buffer("out", "float32", 256, Direction.OUT)
    result = device.run(Job(str(folder), "program", plan, (out,), (), timeout_s=5.0))
    if result.status is Status.OK and not np.array_equal(np.fromfile(folder / "out.out", np.float32), np.ones(64)):
        return Status.WRONG_ANSWER, "out is not all ones"
    return result.status, result.message


def listens() -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", 47113)) == 0


@pytest.fixture(autouse=True)
def _nothing_is_touched() -> Iterator[None]:
    CANARY.unlink(missing_ok=True)
    watched = [Path("/etc/passwd"), Path("/etc/hostname"), Path("/tmp")]
    before = [(path.stat().st_mode, path.stat().st_ino, path.stat().st_dev) for path in watched]
    children = set(psutil.Process().children(recursive=True))
    yield
    assert not CANARY.exists()
    assert not listens()
    assert set(psutil.Process().children(recursive=True)) <= children
    assert [(path.stat().st_mode, path.stat().st_ino, path.stat().st_dev) for path in watched] == before


def cases(flavour: str) -> list[object]:
    return [
        pytest.param(sample, flavour, id=f"{sample.name}-{flavour}", marks=[pytest.mark.long] if sample.long else [])
        for sample in KERNELS
        if not sample.spared("host")
    ]


@pytest.mark.parametrize(("sample", "flavour"), [*cases("plain"), *cases("check")])
def test_a_hostile_kernel_gets_its_status(sample: Sample, flavour: str, tmp_path: Path) -> None:
    status, message = judge(sample.source, tmp_path, flavour)
    assert status in sample.statuses("host"), message
    assert (message == "") == (status is Status.OK)
    for private in ("/etc/passwd", "/etc/hostname"):
        assert Path(private).read_text().strip().splitlines()[0] not in message


def test_an_honest_kernel_of_the_same_form_passes(tmp_path: Path) -> None:
    source = 'extern "C" __global__ void hostile(float* out) { out[threadIdx.x] = 1.0f; }'
    for flavour in ("plain", "check"):
        assert judge(source, tmp_path, flavour) == (Status.OK, "")


def test_every_trick_of_the_list_is_there() -> None:
    named = {sample.name for sample in KERNELS}
    assert {"asm_label", "constructor", "preinit_array", "ifunc", "incbin", "asm_by_macro", "fork", "socket",
            "private_include", "memory_static", "file_10gb"} <= named  # fmt: skip
