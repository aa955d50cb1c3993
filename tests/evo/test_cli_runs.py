from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

EVO = Path(sys.executable).with_name("evo")
SMALL = ("--set", "tuning.trials=2", "--set", "timing.launches=5", "--set", "search.in_flight=2")
SQUARES = """\
extern "C" __global__ void squares(const float* x, float* y, int N) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N) y[i] = x[i] * x[i];
}
"""
REFERENCE = "def reference(inputs, dims):\n    return {'y': inputs['x'].astype('float64') ** 2}\n"


def evo(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([EVO, *arguments], cwd=cwd, capture_output=True, text=True, check=False, timeout=240)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder in which a search of two evaluations has run."""
    place = tmp_path_factory.mktemp("run")
    (place / "squares.cu").write_text(SQUARES)
    assert evo("init", "squares.cu", cwd=place).returncode == 0
    (place / "workloads" / "squares" / "reference.py").write_text(REFERENCE)
    done = evo("run", "-w", "squares", "--model", "none", "--evaluations", "2", *SMALL, cwd=place)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "CPU-fast is not GPU-fast" in done.stdout
    assert "Next" in done.stdout
    return place


def test_a_run_leaves_every_file_that_the_documentation_names(folder):
    run = folder / "results" / "run-001"
    names = (
        "evo.db", "best.cu", "summary.json", "history.json", "config.yaml", "workload.json", "heatmap.png",
        "heatmap.svg", "progress.png", "progress.svg", "kernels/0.cu",
    )  # fmt: skip
    for name in names:
        assert (run / name).stat().st_size > 0, name
    assert list((run / "requests").glob("*.json"))


@pytest.mark.parametrize("arguments", [("--device", "host"), ()])
def test_a_profile_where_no_gpu_is_refused_as_idle(folder, arguments):
    done = evo("run", "-w", "squares", "--model", "none", "--use-nsight", *arguments, *SMALL, cwd=folder)
    assert done.returncode == 2
    assert "profile: would do nothing: Nsight Compute looks at NVIDIA GPUs, and the device is host" in done.stderr
    done = evo("eval", "squares.cu", "-w", "squares", "--set", "profile=all", cwd=folder)
    assert (done.returncode, "profile: would do nothing" in done.stderr) == (2, True)


def test_the_summary_has_the_run_in_figures(folder):
    summary = json.loads((folder / "results" / "run-001" / "summary.json").read_text())
    assert summary["evaluations"] == 2
    assert summary["stopped"] == "evaluations"
    assert summary["initial"]["latencies"]
    assert summary["device"]["kind"] == "host"


def test_a_run_and_its_candidates_are_shown(folder):
    run = evo("show", "latest", cwd=folder)
    assert run.returncode == 0, run.stderr
    assert "Lineage" in run.stdout
    candidate = evo("show", "1", "0", cwd=folder)
    assert "kernel 0" in candidate.stdout
    assert "__global__" in candidate.stdout


def test_a_run_is_shown_to_machines(folder):
    told = json.loads(evo("show", "run-001", "--json", cwd=folder).stdout)
    assert told["candidates"][0]["id"] == 0
    one = json.loads(evo("show", "run-001", "0", "--json", cwd=folder).stdout)
    assert one["evaluation"]["status"] == "ok"


def test_an_unknown_candidate_is_an_error(folder):
    done = evo("show", "latest", "99", cwd=folder)
    assert done.returncode == 2
    assert "expected a candidate from 0 to" in done.stderr


def test_a_stored_result_verifies(folder):
    done = evo("verify", "latest", "--json", cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)["now"]["status"] == "ok"


def test_one_case_verifies_alone_and_an_unknown_one_is_told(folder):
    whole = json.loads((folder / "results" / "run-001" / "workload.json").read_text())
    case = whole["cases"][0]["name"]
    assert evo("verify", "latest", "--case", case, cwd=folder).returncode == 0
    done = evo("verify", "latest", "--case", f"{case}x", cwd=folder)
    assert done.returncode == 2
    assert f"did you mean '{case}'?" in done.stderr


@pytest.mark.long
def test_a_run_goes_on_with_a_larger_budget(folder):
    done = evo("resume", "latest", "--evaluations", "3", "--json", cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    events = [line for line in done.stdout.splitlines() if line.startswith('{"event"')]
    assert json.loads(events[0])["event"] == "started"
    summary = json.loads((folder / "results" / "run-001" / "summary.json").read_text())
    assert summary["evaluations"] == 3


def test_only_the_budget_of_a_run_may_change(folder):
    done = evo("resume", "latest", "--set", "seed=3", cwd=folder)
    assert done.returncode == 2
    assert "only budget.* may change" in done.stderr
