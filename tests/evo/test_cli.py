from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from evo import cli

EVO = Path(sys.executable).with_name("evo")
# The bound is generous, since the tests share their machine; an idle one takes some 0.3 s.
HELP_S = 1.5
COMMANDS = (
    "demo", "run", "resume", "ask", "tell", "replay", "eval", "tune", "check", "init", "show", "verify",
    "workloads", "mutators", "doctor",
)  # fmt: skip
LOOKED_AT = {"python", "g++", "sandbox", "cores", "memory", "nvrtc", "gpu", "model", "name", "results"}


def evo(*arguments: str, cwd: Path, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [EVO, *arguments], cwd=cwd, capture_output=True, text=True, check=False, timeout=120, env=env
    )  # fmt: skip


def test_help_names_every_command_and_is_quick(tmp_path):
    evo("--help", cwd=tmp_path)  # once, for the byte code
    times = []
    for _ in range(3):
        start = time.perf_counter()
        done = evo("--help", cwd=tmp_path)
        times.append(time.perf_counter() - start)
    assert all(command in done.stdout for command in COMMANDS)
    assert min(times) < HELP_S


def test_both_names_are_the_same_command():
    assert Path(sys.executable).with_name("kernel-evo").read_text() == EVO.read_text()


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("run",), 2, "give a config (evo run configs/gemm.yaml) or a workload (evo run --workload gemm)"),
        (("run", "gem"), 2, "gem: no such file, and no config of that name; did you mean 'gemm'?"),
        (("run", "--workload", "gem"), 2, "did you mean 'gemm'?"),
        (("run", "gemm", "--set", "search.islnds=2"), 2, "search.islnds: unknown key; did you mean 'islands'?"),
        (("run", "gemm", "--evaluations", "0"), 2, "--evaluations"),
        (("run", "gemm", "--minutes", "-1"), 2, "budget.minutes: expected a number above 0"),
        (("run", "gemm", "--device", "hots"), 2, "no device is called 'hots'; did you mean 'host'?"),
        (("resume", "nowhere"), 4, "nowhere: no such run"),
        (("show", "nowhere"), 4, "nowhere: no such run"),
        (("verify", "nowhere"), 4, "nowhere: no such run"),
        (("eval", "gone.cu", "--workload", "gemm"), 2, "gone.cu: expected a kernel's text (.cu)"),
        (("eval", "gone.cu"), 2, "--workload"),
        (("check", "gone.cu"), 2, "gone.cu: expected a kernel's text (.cu)"),
        (("init", "gone.cu"), 2, "gone.cu: expected a kernel's text (.cu)"),
        (("runn",), 2, "Did you mean 'run'?"),
    ],
)
def test_what_goes_wrong_is_one_message_and_an_exit_code(tmp_path, arguments, code, message):
    done = evo(*arguments, cwd=tmp_path)
    assert done.returncode == code
    assert message in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_machines_get_the_error_as_json(tmp_path):
    done = evo("run", "gem", "--json", cwd=tmp_path)
    assert done.returncode == 2
    error = json.loads(done.stdout)
    assert error["error"] == "ConfigError"
    assert error["exit_code"] == 2


def test_without_a_key_a_run_ends_at_once_with_the_three_ways_on(tmp_path):
    start = time.perf_counter()
    done = evo("run", "gemm", cwd=tmp_path, env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)})
    assert done.returncode == 3
    for way in ("OPENAI_API_KEY", "--model none", "--model ollama/"):
        assert way in done.stderr
    assert time.perf_counter() - start < 5
    assert not list(tmp_path.glob("results/*"))


def test_workloads_and_mutators_are_listed_for_machines(tmp_path):
    listed = json.loads(evo("workloads", "--json", cwd=tmp_path).stdout)
    assert {"gemm", "softmax", "scan"} <= {entry["name"] for entry in listed}
    known = json.loads(evo("mutators", "--json", cwd=tmp_path).stdout)
    offline = {entry["name"]: entry["offline"] for entry in known["operators"]}
    assert offline["rules"]
    assert not offline["rewrite"]
    assert "litellm" in {entry["name"] for entry in known["clients"]}


def test_doctor_looks_at_everything(tmp_path):
    done = evo("doctor", "--json", cwd=tmp_path)
    findings = {finding["name"]: finding for finding in json.loads(done.stdout)}
    assert set(findings) - {"peaks"} == LOOKED_AT  # which only a machine with a GPU has
    assert all(finding["fix"] for finding in findings.values() if finding["state"] == "missing")
    lacking = any(finding["state"] == "missing" for finding in findings.values())
    assert done.returncode == (3 if lacking else 0)


def test_flags_become_overrides_of_the_keys_they_are_named_after():
    assert cli._overrides(seed=3, budget_cost_usd=0.5, device=None) == ["seed=3", "budget.cost_usd=0.5"]
    assert cli._model(None) == ()
    assert cli._model("ollama/x") == ('models=[{name: "ollama/x"}]',)
