from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

EVO = Path(sys.executable).with_name("evo")
QUICK = ("--set", "timing.launches=10", "--set", "timing.warmup=1")

COPY = """\
extern "C" __global__ void copy(const float* x, float* y, int N) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N) y[i] = x[i];
}
"""
TUNABLE = """\
/* launch
block: BX
grid: "ceildiv(N, BX)"
tune: {BX: [32, 64]}
defaults: {BX: 32}
*/
"""
REFERENCE = "def reference(inputs, dims):\n    return {'y': inputs['x'].astype('float64')}\n"


def evo(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([EVO, *arguments], cwd=cwd, capture_output=True, text=True, check=False, timeout=120)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a kernel and the workload that `evo init` makes of it, its reference written."""
    place = tmp_path_factory.mktemp("mine")
    (place / "copy.cu").write_text(COPY)
    done = evo("init", "copy.cu", cwd=place)
    assert done.returncode == 0, done.stderr
    assert "workload.yaml:" in done.stdout
    (place / "workloads" / "copy" / "reference.py").write_text(REFERENCE)
    workload = place / "workloads" / "copy" / "workload.yaml"
    workload.write_text(workload.read_text().replace('tolerance: {terms: "1"}', "tolerance: {exact: true}"))
    return place


def kernel(folder: Path, name: str, text: str) -> str:
    (folder / name).write_text(text)
    return name


def test_init_refuses_to_overwrite(folder):
    done = evo("init", "copy.cu", cwd=folder)
    assert done.returncode == 2
    assert "expected a new folder" in done.stderr


def test_a_right_kernel_is_ok_with_a_latency_for_each_performance_case(folder):
    done = evo("eval", "workloads/copy/initial.cu", "-w", "copy", "--json", *QUICK, cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    verdict = json.loads(done.stdout)
    assert verdict["status"] == "ok"
    timed = [case for case in verdict["cases"] if case["role"] == "performance"]
    assert all(case["latency"]["median_us"] > 0 for case in timed)
    assert 0.5 < verdict["ratio"] < 2


def test_a_warm_verdict_takes_less_than_three_seconds(folder):
    arguments = ("eval", "workloads/copy/initial.cu", "-w", "copy", *QUICK)
    evo(*arguments, cwd=folder)
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        evo(*arguments, cwd=folder)
        seconds.append(time.perf_counter() - start)
    # Three on an idle machine; the tests share theirs.
    assert min(seconds) < 6


def test_the_text_of_a_verdict_says_that_the_cpu_is_no_gpu(folder):
    done = evo("eval", "workloads/copy/initial.cu", "-w", "copy", *QUICK, cwd=folder)
    assert "CPU-fast is not GPU-fast" in done.stdout
    assert "as fast as the workload's first kernel" in done.stdout


@pytest.mark.parametrize(
    ("change", "status", "words"),
    [
        (("y[i] = x[i];", "y[i] = 2 * x[i];"), "wrong answer", "y"),
        (("i < N", "i <= N"), "unsafe", "line 8: out of bounds"),
        (("x[i];", "z[i];"), "compile error", "line 8"),
        (("y[i] = x[i];", "asm volatile(\"bar.sync 0;\");"), "unsupported", "inline PTX"),
    ],
)  # fmt: skip
def test_a_bad_kernel_is_rejected_with_what_is_wrong_and_where(folder, change, status, words):
    source = (folder / "workloads" / "copy" / "initial.cu").read_text().replace(*change)
    done = evo("eval", kernel(folder, "bad.cu", source), "-w", "copy", *QUICK, cwd=folder)
    assert done.returncode == 1
    assert done.stdout.startswith(status)
    assert words in done.stdout


def test_tune_writes_the_best_configuration_into_the_header(folder):
    done = evo("tune", kernel(folder, "tunable.cu", TUNABLE + COPY), "-w", "copy", *QUICK, cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "launch configurations tried" in done.stdout
    assert (folder / "tunable.tuned.cu").read_text().endswith(COPY)


def test_check_guesses_inputs_and_finds_a_fault_at_its_line(folder):
    done = evo("check", kernel(folder, "bound.cu", COPY.replace("i < N", "i <= N")), cwd=folder)
    assert done.returncode == 1
    assert "line 3: out of bounds" in done.stdout
    assert "guessed" in done.stdout


def test_check_prints_advice_and_leaves_with_success(folder):
    source = COPY.replace("if (i < N)", "if (i >= N) return;\n    __syncthreads();\n   ")
    name = kernel(folder, "advised.cu", source)
    done = evo("check", name, cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("passed")
    assert "advice (no fault): early-exit: line 4: block (" in done.stdout
    screened = json.loads(evo("check", name, "--json", cwd=folder).stdout)
    assert (screened["state"], screened["status"]) == ("passed", "ok")
    assert [(found["kind"], found["line"], found["advice"]) for found in screened["findings"]] == [
        ("early-exit", 4, True)
    ]


def test_check_passes_a_right_kernel(folder):
    done = evo("check", "copy.cu", "--json", cwd=folder)
    assert done.returncode == 0
    assert json.loads(done.stdout)["state"] == "passed"


def test_a_kernel_whose_inputs_cannot_be_guessed_is_told_to_bring_a_workload(folder):
    done = evo("check", kernel(folder, "none.cu", "int main() { return 0; }\n"), cwd=folder)
    assert done.returncode == 2
    assert "give --workload" in done.stderr
