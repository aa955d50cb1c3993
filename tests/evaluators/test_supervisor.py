from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import sys
import textwrap
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import psutil
import pytest

from evaluators.scratch import Scratch
from evaluators.supervisor import Spare, Supervisor, spare_for
from evo.errors import DeviceError
from evo.records import Buffer, Direction, Job, Launch, LaunchPlan, Status
from tests.support import scale
from tests.support.numpy_device import NumpyDevice


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
    monkeypatch.setattr("evaluators.child.START_S", 30.0)
    with Supervisor(str(plugin), Spare.NEVER) as supervisor:
        gate.write_text("a child that has opened the other end")
        assert supervisor.run(job(tmp_path), deadline_s=30).result.status is Status.OK


@pytest.mark.parametrize("use", ["prepare", "settle", "run"])
def test_a_device_that_does_not_exist_is_a_failure_of_the_system_at_every_use(tmp_path, use):
    arguments = (job(tmp_path), 30) if use == "run" else ()
    before = _children()
    with Supervisor("nonesuch.py") as supervisor:
        for _ in range(2):
            with pytest.raises(
                DeviceError, match=r"did not start: PluginError: [\s\S]*there is no file \S*nonesuch\.py"
            ):
                getattr(supervisor, use)(*arguments)
        assert _children() <= before


def test_a_failing_plugin_gets_no_further_job_in_the_same_process(supervisor, tmp_path):
    before = who(supervisor, tmp_path)
    supervisor.run(job(tmp_path, "raise"), deadline_s=30)
    assert who(supervisor, tmp_path) != before


@pytest.mark.parametrize("status", ["UNSAFE", "OK"])
def test_the_result_of_a_spent_child_counts_and_another_goes_on(supervisor, tmp_path, status):
    before = who(supervisor, tmp_path)
    behaviour = "spent" if status == "UNSAFE" else "right_and_spent"
    assert supervisor.run(job(tmp_path, behaviour), deadline_s=30).result.status is Status[status]
    assert who(supervisor, tmp_path) != before


def test_a_fault_of_its_own_costs_one_child_and_is_not_tried_again(tmp_path):
    with Supervisor(counting(tmp_path), Spare.ALWAYS) as supervisor:
        supervisor.settle()
        assert starts(tmp_path) == 2
        for number in (3, 4):
            assert supervisor.run(job(tmp_path, "spent"), deadline_s=30).result.status is Status.UNSAFE
            assert supervisor.run(job(tmp_path), deadline_s=30).result.status is Status.OK
            supervisor.settle()
            assert starts(tmp_path) == number


def test_two_faults_in_a_row_cost_two_starts(tmp_path):
    with Supervisor(counting(tmp_path), Spare.ALWAYS) as supervisor:
        supervisor.settle()
        for behaviour, status in (("spent", Status.UNSAFE), ("spent", Status.UNSAFE), ("ok", Status.OK)):
            assert supervisor.run(job(tmp_path, behaviour), deadline_s=30).result.status is status
        supervisor.settle()
        assert starts(tmp_path) == 4


def test_a_context_that_may_have_been_broken_by_an_earlier_job_gets_a_second_look(tmp_path):
    with Supervisor(scale.DEVICE) as supervisor:
        supervisor.run(job(tmp_path), deadline_s=30)
        again = supervisor.run(job(tmp_path, "spent_crash_unless_fresh"), deadline_s=30).result
        assert again.status is Status.OK
        assert supervisor.run(job(tmp_path, "spent_crash"), deadline_s=30).result.status is Status.CRASH


def test_a_job_behind_a_fault_does_not_wait_for_the_start_of_the_next_spare(tmp_path):
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    with Supervisor(altered(tmp_path, f"open({str(gate)!r}).read()"), Spare.ALWAYS) as supervisor:
        gate.write_text("the child may start")
        supervisor.prepare()
        gate.write_text("the spare may start")
        supervisor.settle()
        supervisor.run(job(tmp_path, "spent"), deadline_s=30)
        assert supervisor.run(job(tmp_path), deadline_s=30).result.status is Status.OK


def test_a_measurement_waits_for_the_start_of_the_next_spare(tmp_path):
    with Supervisor(counting(tmp_path), Spare.ALWAYS) as supervisor:
        supervisor.settle()
        supervisor.run(job(tmp_path, "spent"), deadline_s=30)
        supervisor.run(job(tmp_path, samples=2), deadline_s=30)
        assert starts(tmp_path) == 3


def test_a_spare_that_does_not_start_is_done_without(tmp_path):
    plugin = altered(tmp_path, f"os.mkdir({str(tmp_path / 'the first alone')!r})")
    before = _children()
    with Supervisor(plugin, Spare.ALWAYS) as supervisor:
        assert supervisor.run(job(tmp_path, samples=2), deadline_s=30).result.status is Status.OK
        assert len(_children() - before) == 1


def test_a_device_for_one_process_never_has_two(tmp_path):
    with Supervisor(counting(tmp_path), Spare.NEVER) as supervisor:
        assert supervisor.run(job(tmp_path, "spent"), deadline_s=30).result.status is Status.UNSAFE
        supervisor.settle()
        assert supervisor.run(job(tmp_path), deadline_s=30).result.status is Status.OK
        assert starts(tmp_path) == 2


def test_a_plugin_says_when_its_spare_stands_ready():
    device = NumpyDevice()
    slow = type("SlowDevice", (NumpyDevice,), {"slow_start": True})()
    assert spare_for(device, device.describe()) is Spare.AFTER_A_LOSS
    assert spare_for(slow, device.describe()) is Spare.ALWAYS
    assert spare_for(slow, replace(device.describe(), exclusive=True)) is Spare.NEVER


@pytest.mark.parametrize("used", [False, True])
def test_a_child_that_is_killed_from_outside_between_jobs_is_replaced(tmp_path, used):
    before = _children()
    with Supervisor(scale.DEVICE) as supervisor:
        supervisor.prepare()
        if used:
            supervisor.run(job(tmp_path), deadline_s=30)
        (child,) = _children() - before
        child.kill()
        _wait_for_death(child)
        assert supervisor.run(job(tmp_path), deadline_s=30).result.status is Status.OK


def test_a_spare_that_is_killed_from_outside_is_replaced(tmp_path):
    before = _children()
    with Supervisor(scale.DEVICE, Spare.ALWAYS) as supervisor:
        supervisor.settle()
        pid = who(supervisor, tmp_path)
        (spare,) = (process for process in _children() - before if process.pid != pid)
        spare.kill()
        _wait_for_death(spare)
        assert supervisor.run(job(tmp_path, "spent"), deadline_s=30).result.status is Status.UNSAFE
        assert supervisor.run(job(tmp_path), deadline_s=30).result.status is Status.OK


def test_a_job_whose_child_is_killed_from_outside_is_run_once_more(tmp_path):
    with Supervisor(scale.DEVICE) as supervisor:
        assert supervisor.run(job(tmp_path, "killed_once"), deadline_s=30).result.status is Status.OK
        result = supervisor.run(job(tmp_path, "killed"), deadline_s=30).result
        assert result.status is Status.CRASH
        assert "died by SIGKILL: a person ended it" in result.message


def test_a_flood_of_words_is_read_and_dropped(tmp_path):
    with Supervisor(scale.DEVICE) as supervisor:
        assert supervisor.run(job(tmp_path, "flood"), deadline_s=60).result.status is Status.OK
        result = supervisor.run(job(tmp_path, "flood_and_crash"), deadline_s=60).result
        assert result.status is Status.CRASH
        assert result.message.endswith("the end of the flood")
        assert len(result.message) < 3000


def test_last_words_are_those_of_the_job_that_died(tmp_path):
    with Supervisor(scale.DEVICE) as supervisor:
        supervisor.run(job(tmp_path, "print"), deadline_s=30)
        assert "a million lines" not in supervisor.run(job(tmp_path, "crash"), deadline_s=30).result.message


@pytest.mark.parametrize("behaviour", ["garbage", "endless_line"])
def test_garbage_among_the_replies_is_a_crash(supervisor, tmp_path, behaviour):
    result = supervisor.run(job(tmp_path, behaviour), deadline_s=30).result
    assert result.status is Status.CRASH
    assert "wrote something that is no result" in result.message
    assert supervisor.run(job(tmp_path), deadline_s=30).result.status is Status.OK


def test_what_a_child_says_unasked_is_not_taken_for_the_next_answer(supervisor, tmp_path):
    supervisor.run(job(tmp_path, "forged"), deadline_s=30)
    assert supervisor.run(job(tmp_path, "spent"), deadline_s=30).result.status is Status.UNSAFE


def test_a_device_that_is_gone_is_told_with_the_advice_of_its_plugin(tmp_path):
    with Supervisor(scale.DEVICE) as supervisor:
        before = who(supervisor, tmp_path)
        with pytest.raises(DeviceError, match=r"failed at job 2 .*fallen off the bus: reset it .*`evo doctor`"):
            supervisor.run(job(tmp_path, "lost"), deadline_s=30)
        assert who(supervisor, tmp_path) != before


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("raise DeviceError('no GPU: load the driver')", "did not start: DeviceError: no GPU: load the driver"),
        ("raise OSError('libcuda.so.1 is missing')", "did not start: OSError: libcuda.so.1 is missing"),
        ("print('driver says no', file=sys.stderr, flush=True); os._exit(7)", "exit code 7; its last words: driver"),
    ],
)
def test_preparations_that_fail_are_told(tmp_path, statement, words):
    with (
        Supervisor(altered(tmp_path, statement)) as supervisor,
        pytest.raises(DeviceError, match=re.escape(words)),
    ):
        supervisor.prepare()


@pytest.mark.parametrize("rounds", [2, pytest.param(50, marks=pytest.mark.long)])
def test_crashes_and_time_outs_leave_nothing_behind(monkeypatch, tmp_path, rounds):
    pids = tmp_path / "pids"
    monkeypatch.setenv("CHILD_PID_FILE", str(pids))
    monkeypatch.setattr("evaluators.supervisor.CLEARED_S", 0.0)  # so that the dying are buried later
    scratch = Scratch()
    with Supervisor(scale.DEVICE, Spare.ALWAYS) as supervisor:
        seen = []
        for _ in range(1 + rounds):  # the first makes what is made once
            for behaviour in ("crash", "spent", "hang"):
                with scratch.folder(1 << 12) as folder:
                    supervisor.run(job(folder, behaviour), deadline_s=0.5)
            for pid in map(int, pids.read_text().split()):
                assert not _alive(pid)
            supervisor.settle()
            seen.append(_footprint(scratch))
    scratch.close()
    assert seen[-1] == seen[0]


def _footprint(scratch: Scratch) -> tuple[int, ...]:
    us = psutil.Process()
    files = sum(1 for home, _ in scratch._homes.values() for _ in home.rglob("*"))
    return us.num_fds(), us.num_threads(), len(us.children(recursive=True)), files


def who(supervisor: Supervisor, folder: Path) -> int:
    """Return the id of the process that answers."""
    return int(supervisor.run(job(folder, "who"), deadline_s=30).result.message)


def altered(folder: Path, preparation: str, more: str = "") -> str:
    """Return the path of a plug-in like the NumPy device that prepares itself by a statement."""
    text = Path(scale.DEVICE).read_text()
    plugin = folder / "altered.py"
    plugin.write_text(text.replace("        pass\n", f"        {preparation}\n", 1) + more)
    return str(plugin)


def counting(folder: Path) -> str:
    """Return the path of a plug-in that notes every start of a child."""
    return altered(folder, f"open({str(folder / 'starts')!r}, 'a').write('x')")


def starts(folder: Path) -> int:
    return len((folder / "starts").read_text())


def _wait_for_death(process: psutil.Process) -> None:
    handle = os.pidfd_open(process.pid)
    assert select.select([handle], [], [], 10)[0]
    os.close(handle)


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
