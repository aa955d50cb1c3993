from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import psutil
import pytest

from evaluators.supervisor import Supervisor
from evo.errors import DeviceError
from evo.records import Buffer, Direction, Job, Launch, LaunchPlan, Status
from tests.support import scale


@pytest.fixture(scope="module")
def supervisor():
    with Supervisor(scale.DEVICE) as made:
        yield made


def job(folder: Path, behaviour: str = "ok", samples: int = 0) -> Job:
    (folder / "program").write_text(f'{{"behaviour": "{behaviour}", "defines": {{}}}}')
    np.arange(8, dtype=np.float32).tofile(folder / "x.in")
    buffers = (
        Buffer("x", "float32", 32, Direction.IN, "x.in"),
        Buffer("y", "float32", 32, Direction.OUT),
    )
    plan = LaunchPlan((Launch("scale", (1, 1, 1), (32, 1, 1), 0, ("x", "y")),))
    return Job(str(folder), "program", plan, buffers, (), samples=samples)


def test_a_job_comes_back_with_its_result_and_its_outputs(supervisor, tmp_path):
    reply = supervisor.run(job(tmp_path, samples=3), deadline_s=30)
    assert reply.result.status is Status.OK
    assert len(reply.result.samples_us) == 3
    assert reply.wall_s >= sum(reply.result.samples_us) / 1e6
    assert np.fromfile(tmp_path / "y.out", np.float32).tolist() == [0, 2, 4, 6, 8, 10, 12, 14]


def test_what_a_job_prints_does_not_disturb_the_replies(supervisor, tmp_path):
    assert supervisor.run(job(tmp_path, "print"), deadline_s=30).result.status is Status.OK
    assert supervisor.run(job(tmp_path), deadline_s=30).result.status is Status.OK


def test_a_crash_is_told_with_its_signal_and_the_next_job_is_not_blamed(supervisor, tmp_path):
    crashed = supervisor.run(job(tmp_path, "crash"), deadline_s=30).result
    assert crashed.status is Status.CRASH
    assert "died by SIGSEGV" in crashed.message
    assert supervisor.run(job(tmp_path), deadline_s=30).result.status is Status.OK


def test_a_crash_is_told_with_the_last_words(supervisor, tmp_path):
    crashed = supervisor.run(job(tmp_path, "crash_with_words"), deadline_s=30).result
    assert "exit code 3" in crashed.message
    assert "the device is on fire" in crashed.message


def test_a_job_that_dies_of_what_an_earlier_one_left_is_tried_again_in_a_fresh_child(supervisor, tmp_path):
    supervisor.run(job(tmp_path), deadline_s=30)
    again = supervisor.run(job(tmp_path, "crash_unless_fresh"), deadline_s=30).result
    assert again.status is Status.OK


def test_a_failing_plugin_is_a_crash_with_its_words(supervisor, tmp_path):
    result = supervisor.run(job(tmp_path, "raise"), deadline_s=30).result
    assert result.status is Status.CRASH
    assert "RuntimeError: no such luck" in result.message


def test_a_hang_ends_at_the_deadline_and_leaves_nothing_behind(monkeypatch, tmp_path):
    pids = tmp_path / "pids"
    monkeypatch.setenv("CHILD_PID_FILE", str(pids))
    with Supervisor(scale.DEVICE) as supervisor:
        reply = supervisor.run(job(tmp_path, "hang"), deadline_s=2)
        assert reply.result.status is Status.TIMEOUT
        assert "did not finish within 2 s" in reply.result.message
        assert reply.wall_s < 10
        assert not [pid for pid in map(int, pids.read_text().split()) if _alive(pid)]
        assert supervisor.run(job(tmp_path), deadline_s=30).result.status is Status.OK


def test_a_spare_is_kept_from_the_first_lost_child_on(tmp_path):
    before = _children()
    with Supervisor(scale.DEVICE) as supervisor:
        assert supervisor.run(job(tmp_path), deadline_s=30).result.status is Status.OK
        supervisor.settle()
        assert len(_children() - before) == 1
        supervisor.run(job(tmp_path, "crash"), deadline_s=30)
        supervisor.settle()
        child, spare = _children() - before
        supervisor.run(job(tmp_path, "crash"), deadline_s=30)
        supervisor.settle()
        assert len(_children() & {child, spare}) == 1, "the spare has taken over"


def test_close_leaves_no_process(tmp_path):
    before = _children()
    supervisor = Supervisor(scale.DEVICE)
    supervisor.run(job(tmp_path, "crash"), deadline_s=30)
    supervisor.settle()
    started = _children() - before
    assert len(started) == 2
    supervisor.close()
    supervisor.close()
    assert not [process for process in started if process.is_running()]


def test_a_parent_that_is_killed_takes_its_children_along(tmp_path):
    script = textwrap.dedent(f"""
        import sys, psutil
        from evaluators.supervisor import Supervisor
        supervisor = Supervisor({scale.DEVICE!r})
        supervisor.prepare()
        print(*[child.pid for child in psutil.Process().children(recursive=True)], flush=True)
        sys.stdin.read()
    """)
    parent = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with parent:
        assert parent.stdout is not None
        children = [psutil.Process(int(pid)) for pid in parent.stdout.readline().split()]
        parent.send_signal(signal.SIGKILL)
    assert len(children) == 1
    _, alive = psutil.wait_procs(children, timeout=10)
    assert not alive


def test_a_child_is_started_at_once_and_waited_for_when_it_is_needed(monkeypatch, tmp_path):
    gate, plugin = tmp_path / "gate", tmp_path / "gated.py"
    os.mkfifo(gate)
    device = Path(scale.DEVICE).read_text()
    plugin.write_text(device.replace("import json\n", f"import json\nopen({str(gate)!r}).read()\n", 1))
    monkeypatch.setattr("evaluators.supervisor.START_S", 30.0)
    with Supervisor(str(plugin), spare=False) as supervisor:
        gate.write_text("a child that has opened the other end")
        assert supervisor.run(job(tmp_path), deadline_s=30).result.status is Status.OK


@pytest.mark.parametrize("use", ["prepare", "settle", "run"])
def test_a_device_that_does_not_exist_is_a_failure_of_the_system_at_every_use(tmp_path, use):
    arguments = (job(tmp_path), 30) if use == "run" else ()
    before = _children()
    with Supervisor("nonesuch.py") as supervisor:
        for _ in range(2):
            with pytest.raises(DeviceError, match=r"did not start: [\s\S]*there is no file \S*nonesuch\.py"):
                getattr(supervisor, use)(*arguments)
        assert _children() <= before


def _children() -> set[psutil.Process]:
    return set(psutil.Process().children(recursive=True))


def _alive(pid: int) -> bool:
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        try:
            if psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
                return False
            os.kill(pid, 0)
        except (psutil.NoSuchProcess, ProcessLookupError):
            return False
    return True
