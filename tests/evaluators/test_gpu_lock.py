"""A GPU has one evaluator at a time: whoever comes second is told who is there, and a dead holder holds nothing."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import uuid
from collections.abc import Iterator

import pytest

from evaluators.cudalib import lock
from evo.errors import DeviceError

HOLD = """
import sys
from evaluators.cudalib import lock
with lock.hold(sys.argv[1]):
    print("held", flush=True)
    sys.stdin.readline()
"""


@pytest.fixture
def gpu() -> Iterator[str]:
    """A GPU that no machine has."""
    name = f"GPU-{uuid.uuid4()}"
    yield name
    path = lock.path_for(name)
    path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink(missing_ok=True)


@pytest.fixture
def holder(gpu: str, tmp_path) -> Iterator[subprocess.Popen[str]]:
    """Another process, with a temporary folder of its own, that holds the GPU."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, gpu],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.communicate()


def test_a_second_one_is_refused_and_told_who_holds_it_and_what_to_do(gpu, holder):
    with pytest.raises(DeviceError) as refused, lock.hold(gpu, wait_s=0):
        pass
    message = str(refused.value)
    assert gpu in message
    assert f"process {holder.pid} ({sys.executable} -c" in message
    assert "CUDA_VISIBLE_DEVICES" in message


def test_another_gpu_is_free(gpu, holder):
    other = gpu.replace("GPU-", "GPU-other-")
    with lock.hold(other, wait_s=0):
        pass
    lock.path_for(other).unlink()


def test_a_killed_holder_holds_nothing(gpu, holder):
    holder.kill()
    holder.wait()
    with lock.hold(gpu, wait_s=0):
        pass


def test_it_waits_for_one_that_is_about_to_end(gpu, holder):
    waiting = subprocess.Popen([sys.executable, "-c", HOLD, gpu], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    holder.communicate("\n", timeout=30)
    out, _ = waiting.communicate(b"\n", timeout=30)
    assert (waiting.returncode, out) == (0, b"held\n")


def test_a_child_of_the_holder_does_not_inherit_it(gpu):
    with lock.hold(gpu, wait_s=0):
        child = subprocess.Popen(["sleep", "60"], close_fds=False)
    try:
        with lock.hold(gpu, wait_s=0):
            pass
    finally:
        child.kill()
        child.wait()


def test_every_user_may_take_it_whatever_the_umask(gpu):
    before = os.umask(0o077)
    try:
        with lock.hold(gpu, wait_s=0):
            pass
    finally:
        os.umask(before)
    assert stat.S_IMODE(lock.path_for(gpu).stat().st_mode) == 0o666


def test_who_holds_it_may_be_out_of_sight(gpu, holder, monkeypatch, tmp_path):
    monkeypatch.setattr(lock, "_LOCKS", tmp_path / "no such file")
    with pytest.raises(DeviceError, match="in use by another process"), lock.hold(gpu, wait_s=0):
        pass


@pytest.mark.parametrize("plant", ["symlink", "fifo", "folder"])
def test_what_somebody_has_planted_is_refused_and_left_as_it_is(gpu, plant, tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("precious")
    path = lock.path_for(gpu)
    {"symlink": lambda: path.symlink_to(victim), "fifo": lambda: os.mkfifo(path), "folder": path.mkdir}[plant]()
    with pytest.raises(DeviceError, match=r"Remove it\."), lock.hold(gpu, wait_s=0):
        pass
    assert victim.read_text() == "precious"
    assert stat.S_IMODE(victim.stat().st_mode) != 0o666


def test_a_hard_link_to_something_of_value_is_not_written_to(gpu):
    victim = lock.path_for(f"{gpu}-victim")  # on the same file system
    victim.write_text("precious")
    victim.chmod(0o600)
    os.link(victim, lock.path_for(gpu))
    with lock.hold(gpu, wait_s=0):
        pass
    text, mode = victim.read_text(), stat.S_IMODE(victim.stat().st_mode)
    victim.unlink()
    assert (text, mode) == ("precious", 0o600)


def test_the_name_of_a_mig_instance_stays_in_the_folder():
    assert lock.path_for("MIG-GPU-5/../../etc/1/0").parent == lock.FOLDER
