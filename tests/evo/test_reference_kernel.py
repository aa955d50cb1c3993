"""A workload's reference.cu in real runs: judged and compared once the search has ended, and shown."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from evo.records import REFERENCE_ID, Evaluation, Status
from evo.store import Store

EVO = Path(sys.executable).with_name("evo")
SMALL = ("--set", "tuning.trials=2", "--set", "timing.launches=5", "--set", "search.in_flight=1")
SQUARES = """\
extern "C" __global__ void squares(const float* x, float* y, int N) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N) y[i] = x[i] * x[i];
}
"""
ANSWERS = "def reference(inputs, dims):\n    return {'y': inputs['x'].astype('float64') ** 2}\n"
IN_PRODUCTION = """\
/* launch
block: B
grid: "ceildiv(N, B)"
tune: {B: [64, 128]}
defaults: {B: 64}
*/
extern "C" __global__ void squares_in_production(const float* __restrict__ x, float* __restrict__ y, int N) {
    int i = blockIdx.x * B + threadIdx.x;
    if (i < N) y[i] = x[i] * x[i];
}
"""


def evo(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([EVO, *arguments], cwd=cwd, capture_output=True, text=True, check=False, timeout=240)


def searched(place: Path, reference_kernel: str) -> str:
    """Run a search of one evaluation on a workload with this reference.cu; return what it shows."""
    (place / "squares.cu").write_text(SQUARES)
    assert evo("init", "squares.cu", cwd=place).returncode == 0
    (place / "workloads" / "squares" / "reference.py").write_text(ANSWERS)
    (place / "workloads" / "squares" / "reference.cu").write_text(reference_kernel)
    done = evo("run", "-w", "squares", "--model", "none", "--evaluations", "1", *SMALL, cwd=place)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def summary(place: Path) -> Any:
    return json.loads((place / "results" / "run-001" / "summary.json").read_text())


def stored(place: Path) -> Evaluation | None:
    with contextlib.closing(Store.read(place / "results" / "run-001")) as store:
        return store.meta().reference


@pytest.fixture(scope="module")
def beside(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A folder in which a search with a right reference.cu has run, and what it showed."""
    place = tmp_path_factory.mktemp("right")
    return place, searched(place, IN_PRODUCTION)


def test_the_summary_holds_latencies_of_the_reference_and_the_speedup_over_it_with_its_interval(beside):
    found, whole = summary(beside[0])["reference"], summary(beside[0])
    assert (found["status"], found["message"]) == ("ok", "")
    assert found["latencies"].keys() == whole["initial"]["latencies"].keys() != set()
    for latency in found["latencies"].values():
        assert 0 < latency["low_us"] <= latency["median_us"] <= latency["high_us"]
    speedup = found["speedup"]
    assert 0 < speedup["low"] <= speedup["factor"] <= speedup["high"]
    assert speedup["cases"].keys() == found["latencies"].keys()


def test_the_reference_is_tuned_as_far_as_its_header_allows(beside):
    verdict = stored(beside[0])
    assert verdict is not None
    assert {trial.config["B"] for trial in verdict.trials} == {64, 128}


def test_the_end_of_a_run_and_show_say_how_the_best_stands_beside_the_reference(beside):
    place, shown = beside
    again = evo("show", "latest", cwd=place).stdout
    for text in (shown, again):
        assert "reference.cu µs" in text
        line = next(line for line in text.splitlines() if line.startswith("reference.cu:"))
        assert "µs, best is" in line
        assert line.endswith(") as fast")


def test_the_reference_is_no_candidate_and_freezes_into_the_folder(beside):
    run = beside[0] / "results" / "run-001"
    assert json.loads((run / "workload.json").read_text())["reference_kernel"] == IN_PRODUCTION
    with contextlib.closing(Store.read(run)) as store:
        assert all("in_production" not in candidate.source for candidate in store.candidates())
        assert REFERENCE_ID not in store.evaluations()


@pytest.mark.long
def test_a_resumed_run_compares_again_and_does_not_judge_the_reference_again(beside):
    place, _ = beside
    before = stored(place)
    done = evo("resume", "latest", "--evaluations", "2", "--json", cwd=place)
    assert done.returncode == 0, done.stdout + done.stderr
    kinds = [json.loads(line)["event"] for line in done.stdout.splitlines() if line.startswith('{"event"')]
    assert "reference_compared" in kinds
    assert "reference" not in kinds
    assert stored(place) == before


@pytest.mark.long
def test_a_wrong_reference_is_told_and_fails_no_run(tmp_path):
    shown = searched(tmp_path, IN_PRODUCTION.replace("x[i] * x[i]", "x[i] + x[i]"))
    found = summary(tmp_path)["reference"]
    assert found["status"] == Status.WRONG_ANSWER
    assert found["message"].startswith("not compared: wrong answer at validate: ")
    assert (found["latencies"], found["speedup"]) == ({}, None)
    assert summary(tmp_path)["stopped"] == "evaluations"
    assert "reference.cu: not compared: wrong answer at validate" in shown
