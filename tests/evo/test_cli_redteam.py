from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest

from evaluators import redteam as team
from evo import assets, sandbox
from evo.commands import redteam
from evo.errors import DeviceError

pytestmark = pytest.mark.skipif(sandbox.available() != "", reason=f"no sandbox: {sandbox.available()}")

EVO = Path(sys.executable).with_name("evo")
QUICK = ("--only", "grid_zero", "--only", "threads_none", "--only", "fork", "--only", "traps")


def evo(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [EVO, "redteam", "--device", "host", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


def test_a_table_says_what_was_expected_and_found_and_what_was_skipped():
    done = evo(*QUICK)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = {line.split()[0]: line for line in done.stdout.splitlines() if line.strip()}
    assert "bad_launch" in rows["grid_zero"]
    assert "screen" in rows["grid_zero"]
    assert "compile_error" in rows["fork"]
    assert "skipped: for cuda only" in rows["traps"]
    assert "every verdict is as it must be: 3 cheats and 0 honest kernels on host, 1 skipped" in done.stdout
    assert "[4/4]" in done.stderr


def test_machines_get_one_document():
    done = evo(*QUICK, "--json")
    found = json.loads(done.stdout)
    assert (found["device"], found["faults"], found["ended"], found["of"]) == ("host", 0, "", 4)
    kernels = {kernel["kernel"]: kernel for kernel in found["kernels"]}
    assert kernels["grid_zero"]["expected"] == ["bad_launch"]
    assert kernels["grid_zero"]["found"] == "bad_launch"
    assert kernels["traps"]["found"] is None


def test_an_unknown_kernel_is_named_with_the_nearest():
    done = evo("--only", "grid_zerro")
    assert done.returncode == 2
    assert "did you mean 'grid_zero'" in done.stderr


@pytest.fixture
def tampered(monkeypatch, tmp_path):
    """A red team of one kernel whose file is wrong about its verdict."""
    text = (assets.redteam_dir() / "grid_zero.cu").read_text()
    (tmp_path / "honest").mkdir()
    (tmp_path / "honest" / "odd.cu").write_text(text.replace("// Trick:", "// Honest:").replace("bad_launch", "ok"))
    (tmp_path / "cheat.cu").write_text(text.replace("bad_launch", "timeout"))
    monkeypatch.setattr(assets, "redteam_dir", lambda: tmp_path)


def test_an_unexpected_status_and_a_refused_honest_kernel_are_faults(tampered, capsys):
    assert redteam.redteam("host", (), 1, as_json=False) == redteam.FAULTY
    said = capsys.readouterr()
    assert "2 verdicts are not as they must be" in said.out
    assert "cheat: expected timeout, found bad_launch" in said.out
    assert "odd: expected ok, found bad_launch" in said.out
    assert said.err.count("WRONG") == 2


def test_repeating_ends_with_the_first_turn_that_goes_wrong(monkeypatch, capsys):
    turns: list[int] = []

    def fault(sample: team.Sample, *others: object) -> str:
        turns.append(len(turns) + 1)
        return "odd" if len(turns) == 2 else ""

    monkeypatch.setattr(team, "fault", fault)
    assert redteam.redteam("host", ("grid_zero",), 3, as_json=True) == redteam.FAULTY
    assert json.loads(capsys.readouterr().out)["kernels"][0]["fault"] == "odd (turn 2)"
    assert turns == [1, 2]


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [(KeyboardInterrupt(), 130, "interrupted"), (DeviceError("the GPU is lost"), 3, "the GPU is lost")],
)
def test_what_was_found_before_the_end_is_told(error, code, words, monkeypatch, capsys):
    judge = team.Court.judge

    def ends(court: team.Court, sample: team.Sample, *others: object, **more: object) -> object:
        if sample.name == "threads_none":
            raise error
        return judge(court, sample, *others, **more)

    monkeypatch.setattr(team.Court, "judge", ends)
    assert redteam.redteam("host", ("grid_zero", "threads_none"), 1, as_json=True) == code
    found = json.loads(capsys.readouterr().out)
    assert found["ended"] == words
    assert [kernel["kernel"] for kernel in found["kernels"]] == ["grid_zero"]


def test_ctrl_c_ends_it_with_its_code_and_a_table():
    # What runs the tests in the background may have told them to ignore Ctrl-C.
    listening = ["env", "--default-signal=INT"]
    command = [
        *listening,
        EVO,
        "redteam",
        "--device",
        "host",
        "--only",
        "grid_zero",
        "--only",
        "kahan",
        "--repeat",
        "500",
    ]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stderr is not None
    assert "grid_zero" in process.stderr.readline()  # the other goes on for long
    os.kill(process.pid, signal.SIGINT)
    begin = time.monotonic()
    out, err = process.communicate(timeout=60)
    assert time.monotonic() - begin < 30
    assert process.returncode == 130, err
    assert "ended after 1 of 2 kernels: interrupted" in out


def test_the_wheel_carries_the_kernels_where_an_installed_package_looks():
    pyproject = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    carried = pyproject["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    assert carried["benchmarks/redteam"] == "evo/data/redteam"
    assert (assets.redteam_dir() / "honest" / "kahan.cu").is_file()


def test_an_unknown_device_is_refused():
    done = subprocess.run([EVO, "redteam", "--device", "gpuu"], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2
    assert "gpuu" in done.stderr
