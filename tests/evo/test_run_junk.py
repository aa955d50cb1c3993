"""Models that return only junk: the run stops at its idle budget, says so first, and has no result."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import instant_device, junk_client, squares
from tests.support.openai_server import say, serve

EVO = Path(sys.executable).with_name("evo")
FRUITLESS = 6
IDLE = 6
PROVIDER_VARIABLES = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_API_BASE")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder from which the workload is found by its name."""
    squares.write(tmp_path)
    return tmp_path


def evo(place: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name not in PROVIDER_VARIABLES}
    return subprocess.run([EVO, *arguments], cwd=place, env=environment, capture_output=True, text=True, timeout=120)


def search(place: Path, model: str, evaluations: int = 20) -> None:
    """Write a config whose evaluator is instant, and whose one model is this."""
    (place / "search.yaml").write_text(
        "workload: squares\n"
        f"device: {Path(instant_device.__file__)}\n"
        f"models: [{model}]\n"
        "operators: {rewrite: 1}\n"
        "search: {in_flight: 3}\n"
        f"budget: {{evaluations: {evaluations}, idle: {IDLE}}}\n"
    )


def junk(kind: str) -> str:
    return f"{{client: {Path(junk_client.__file__)}, name: {kind}}}"


def conclusion(said: str) -> str:
    """The first line of the text at the end, which follows the lines that tell of the search."""
    lines = said.splitlines()
    stopped = next(number for number, line in enumerate(lines) if "stopped: " in line)
    return lines[stopped + 1]


def check_without_result(place: Path, done: subprocess.CompletedProcess[str], stopped: str) -> dict[str, object]:
    assert done.returncode == FRUITLESS, done.stdout + done.stderr
    folder = place / "results" / "run-001"
    summary = json.loads((folder / "summary.json").read_text())
    assert summary["stopped"] == stopped
    assert summary["nothing"] in conclusion(done.stdout)
    assert summary["best"] is None
    assert not (folder / "best.cu").exists()
    assert not list(folder.glob("requests/*"))
    assert list((folder / "calls").iterdir())
    return summary


def test_a_model_behind_litellm_that_writes_prose_ends_the_run_without_a_result(place: Path) -> None:
    with serve(say("I would rather write a poem about kernels.")) as server:
        search(place, f'{{api_base: "{server.url}", reasoning_effort: null}}')
        done = evo(place, "run", "search.yaml")
        tally = server.tally()
    summary = check_without_result(place, done, "idle")
    tasks = summary["statuses"]["no_proposal"]  # type: ignore[index]
    assert tasks >= IDLE
    expected = f"{tasks} tasks in a row gave nothing to evaluate ({tasks} replies without a new kernel)"
    assert conclusion(done.stdout) == f"No kernel came of this run: {expected}"
    assert summary["cost"]["cost_usd"] == pytest.approx(tally.usd)  # type: ignore[index]
    assert "results/run-001/calls" in done.stdout


@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "counted"),
    [("prose", "replies without a new kernel"), ("unchanged", "replies"), ("error", "failed calls")],
)
def test_what_holds_no_new_kernel_ends_the_run_at_its_idle_budget(place: Path, kind: str, counted: str) -> None:
    search(place, junk(kind))
    done = evo(place, "run", "search.yaml")
    check_without_result(place, done, "idle")
    assert counted in conclusion(done.stdout)
    more = evo(place, "resume", "latest", "--set", f"budget.idle={IDLE + 2}", "--json")
    assert more.returncode == FRUITLESS
    assert '"nothing": "No kernel came of this run' in more.stdout


@pytest.mark.long
def test_kernels_that_are_never_right_end_the_run_at_its_budget(place: Path) -> None:
    search(place, junk("broken"), evaluations=4)
    done = evo(place, "run", "search.yaml")
    check_without_result(place, done, "evaluations")
    assert "4 kernels judged and none right (4 bad launch)" in conclusion(done.stdout)


@pytest.mark.long
def test_always_the_same_wrong_kernel_is_judged_once(place: Path) -> None:
    search(place, junk("wrong"))
    done = evo(place, "run", "search.yaml")
    summary = check_without_result(place, done, "idle")
    assert summary["evaluations"] == 1
    assert "duplicates" in conclusion(done.stdout)


@pytest.mark.long
def test_always_the_same_right_kernel_is_a_result_and_ends_the_run_at_its_idle_budget(place: Path) -> None:
    search(place, junk("same"))
    done = evo(place, "run", "search.yaml")
    assert done.returncode == 0, done.stdout + done.stderr
    summary = json.loads((place / "results" / "run-001" / "summary.json").read_text())
    assert (summary["stopped"], summary["evaluations"], summary["nothing"]) == ("idle", 1, "")
    assert (place / "results" / "run-001" / "best.cu").exists()
