"""Nsight Compute: its raw page is read, its refusals are said once and by name, and good candidates are profiled."""

from __future__ import annotations

import base64
from pathlib import Path

import psutil
import pytest

from evaluators import nsight, outside, replay
from evaluators.device import Setup
from evaluators.evaluator import Evaluator
from evaluators.nsight import counters
from evo import workload as workloads
from evo.config import Timing, Tuning
from evo.records import KernelProfile, Role, Status
from tests.support import nvidia_tools, scale
from tests.support.numpy_device import NumpyDevice
from tests.support.processes import alive

SIGNATURE = "void gemm<(int)32, float>(const float *, const float *, float *, int)"


def counted(**changes: tuple[str, str] | None) -> KernelProfile:
    """Read one launch; `changes` names counters by their first word."""
    told = dict(nvidia_tools.GEMM)
    for name, value in changes.items():
        key = next(known for known in told if known.startswith(name))
        told.pop(key) if value is None else told.update({key: value})
    (found,) = counters.read(nvidia_tools.raw_page((SIGNATURE, told)))
    return found


def test_the_raw_page_is_read_into_plain_numbers() -> None:
    found = counted()
    assert found.kernel == "gemm"
    assert found.duration_us == pytest.approx(35.424)
    assert (found.sm_pct, found.memory_pct, found.dram_pct) == (85.25, 74.1, 12.04)
    assert (found.l1_pct, found.l2_pct, found.l1_hit_pct, found.l2_hit_pct) == (74.9, 23.5, 1.5, 94.2)
    assert (found.dram_read_bytes, found.dram_written_bytes) == (2101248, 1536)
    assert (found.theoretical_occupancy_pct, found.achieved_occupancy_pct) == (50, 46.7)
    assert found.occupancy_limits == ("registers",)
    assert (found.waves, found.registers, found.shared_bytes, found.issue_pct) == (0.97, 96, 33792, 61)


def test_stalls_are_shares_of_all_waiting_without_what_issued_or_is_counted_twice() -> None:
    assert counted().stalls_pct == pytest.approx(
        {
            "a barrier of the block": 42,
            "shared memory or special functions": 38,
            "global, local or texture memory": 20,
        }
    )


def test_the_busiest_units_come_first_and_each_once() -> None:
    assert list(counted().pipes_pct.items()) == [("fma", 62.5), ("lsu", 33.0)]


def test_bank_conflicts_are_passes_over_passes_without_conflicts() -> None:
    assert counted().bank_conflict_ways == pytest.approx(4.1)
    assert counted(l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld=None).bank_conflict_ways is None


def test_local_memory_is_told_in_bytes() -> None:
    assert counted().local_bytes == 1500 * 32


@pytest.mark.parametrize(("unit", "value"), [("us", "35.424"), ("usecond", "35.424"), ("nsecond", "35,424")])
def test_durations_of_every_version_and_unit_are_microseconds(unit: str, value: str) -> None:
    assert counted(gpu__time_duration=(unit, value)).duration_us == pytest.approx(35.424)


def test_counters_that_are_missing_or_no_numbers_are_none() -> None:
    text = nvidia_tools.raw_page(("k(int)", {"sm__throughput.avg.pct_of_peak_sustained_elapsed": ("%", "nan%")}))
    assert counters.read(text) == (KernelProfile("k"),)


def test_dram_traffic_is_known_by_bytes_or_by_sectors() -> None:
    text = nvidia_tools.raw_page(("k(int)", {"dram__sectors_read.sum": ("sector", "1,000")}))
    assert counters.read(text) == (KernelProfile("k", dram_read_bytes=32000),)


def test_full_occupancy_has_no_limit() -> None:
    assert counted(sm__maximum_warps_per_active_cycle_pct=("%", "100")).occupancy_limits == ()


def test_launches_come_in_order_and_words_before_the_table_are_left_out() -> None:
    text = nvidia_tools.raw_page(
        ("fill(float *)", nvidia_tools.GEMM),
        ("ns::<unnamed>::add<4>(float *)", nvidia_tools.GEMM),
        words="==PROF== Connected to process 4711\n",
    )
    assert [launch.kernel for launch in counters.read(text)] == ["fill", "add"]


@pytest.mark.parametrize("text", ["", "==ERROR== nothing\n", '"ID","Kernel Name"\n', '"ID"\n"",\n"0","x"\n'])
def test_text_without_a_table_of_launches_gives_none(text: str) -> None:
    assert counters.read(text) == ()


# --- the tool ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", nvidia_tools.first_on_path(tmp_path))
    monkeypatch.setattr(NumpyDevice, "replays", True, raising=False)
    return tmp_path


def working(tools: Path, **told: object) -> None:
    page = nvidia_tools.raw_page(("scale(const float *, float *, int)", nvidia_tools.GEMM))
    nvidia_tools.script(tools, "ncu", **{"csv": page, "report": "a report", "log": "==PROF== fine\n", **told})


def profiled(mode: str, *sources: str) -> list:
    with Evaluator(NumpyDevice(), scale.setup(profile=mode)) as evaluator:
        return [evaluator.evaluate(number, source) for number, source in enumerate(sources)]


def test_a_right_kernel_is_profiled_on_its_slowest_case_and_the_report_comes_along(tools: Path) -> None:
    working(tools)
    (verdict,) = profiled("all", scale.kernel())
    assert verdict.status is Status.OK
    assert verdict.profile.case == "large"
    assert [kernel.kernel for kernel in verdict.profile.kernels] == ["scale"]
    assert base64.b64decode(verdict.profile.report) == b"a report"
    assert verdict.profile.problem == ""
    assert verdict.stage_seconds["profile"] > 0
    collect, read = nvidia_tools.calls(tools, "ncu")
    assert "--clock-control none --cache-control all" in " ".join(collect)
    assert "--profile-from-start off" in " ".join(collect)
    assert "--page raw" in " ".join(read)


def test_elites_are_those_near_the_best_so_far(tools: Path) -> None:
    working(tools)
    verdicts = profiled("elites", scale.kernel(), scale.kernel("fast"), scale.kernel("print"), scale.kernel("wrong"))
    assert [verdict.profile is not None for verdict in verdicts] == [True, True, False, False]


def test_without_the_key_nothing_is_profiled(tools: Path) -> None:
    working(tools)
    (verdict,) = profiled("none", scale.kernel())
    assert verdict.profile is None
    assert nvidia_tools.calls(tools, "ncu") == []


LASTING = {
    "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission\n": "NVreg_RestrictProfilingToAdminUsers=0",
    "==ERROR== Profiling failed because a driver resource was unavailable.\n": "dcgmi profile --pause",
    "==ERROR== Profiling is not supported on the following GPU\n": "install a newer one",
}


@pytest.mark.parametrize("said", LASTING)
def test_what_keeps_ncu_from_working_is_said_once_with_the_way_on(tools: Path, said: str) -> None:
    working(tools, log=said, code=1, report="")
    first, second = profiled("all", scale.kernel(), scale.kernel("fast"))
    assert (first.status, second.status) == (Status.OK, Status.OK)
    assert LASTING[said] in first.profile.problem
    assert "none is made from here on" in first.profile.problem
    assert second.profile is None
    assert len(nvidia_tools.calls(tools, "ncu")) == 1


def test_a_missing_ncu_is_said_once(tools: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outside, "find", lambda name: None)
    first, second = profiled("all", scale.kernel(), scale.kernel("fast"))
    assert "ncu is not on PATH" in first.profile.problem
    assert second.profile is None


def test_one_candidate_that_takes_too_long_is_killed_whole_and_the_next_one_is_tried(
    tools: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nsight, "TIMEOUT_S", 2.0)
    working(tools, hang=True)
    first, second = profiled("all", scale.kernel(), scale.kernel("fast"))
    assert "did not end within 2 s" in first.profile.problem
    assert "did not end within 2 s" in second.profile.problem
    pid = int((tools / "pids").read_text())
    assert not psutil.pid_exists(pid) or not alive([psutil.Process(pid)])


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ({"code": 3, "log": "==ERROR== the application stopped\n", "report": ""}, "exit code 3: ==ERROR== the appl"),
        ({"report": "", "log": "==WARNING== No kernels were profiled.\n"}, "wrote no report: ==WARNING== No kernels"),
        ({"csv": "what?"}, "holds no launch"),
        ({"import_code": 1, "csv": "broken"}, "does not read its own report: broken"),
    ],
)
def test_whatever_else_goes_wrong_costs_one_profile_and_is_told(tools: Path, told: dict, words: str) -> None:
    working(tools, **told)
    (verdict,) = profiled("all", scale.kernel())
    assert verdict.status is Status.OK
    assert words in verdict.profile.problem


def test_a_tool_is_found_in_a_toolkit_that_is_not_on_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bin").mkdir()
    made = nvidia_tools.script(tmp_path / "bin", "ncu-of-this-test")
    assert outside.find("ncu-of-this-test") is None
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    assert outside.find("ncu-of-this-test") == made


def test_a_replay_without_a_gpu_says_what_is_missing(tmp_path: Path) -> None:
    with Evaluator(NumpyDevice(), scale.setup()) as evaluator:
        lab = evaluator._lab
        with lab.laid_out(lab.anchor, lab.setup.workload.cases[0], 20.0) as job:
            ran = outside.run(replay.command(job), tmp_path, 60.0)
    assert ran.code == 1
    assert "there is no" in ran.words or "needs the package" in ran.words


@pytest.mark.gpu
def test_the_real_profiler_tells_what_bounds_a_gemm() -> None:
    from evaluators.cuda import CudaDevice

    workload = workloads.load("gemm")
    setup = Setup(workload, Timing(), Tuning(trials=0), seed=0, anchor=workload.initial, profile="all")
    with Evaluator(CudaDevice(), setup) as evaluator:
        verdict = evaluator.evaluate(0, workload.initial)
    assert verdict.status is Status.OK, verdict.message
    assert verdict.profile is not None
    assert verdict.profile.problem == ""
    assert len(base64.b64decode(verdict.profile.report)) > 10_000
    (kernel,) = verdict.profile.kernels
    missing = [name for name, value in vars(kernel).items() if value is None and name != "bank_conflict_ways"]
    assert missing == []
    assert kernel.kernel == "gemm"
    slowest = max(verdict.cases, key=lambda case: case.latency.median_us if case.latency else 0.0)
    assert slowest.latency is not None
    assert kernel.duration_us == pytest.approx(slowest.latency.median_us, rel=0.25)
    assert kernel.registers == verdict.resources["gemm"].registers
    assert sum(kernel.stalls_pct.values()) > 50
    assert kernel.pipes_pct


@pytest.mark.gpu
@pytest.mark.parametrize("name", workloads.names())
def test_the_first_kernel_of_every_workload_can_be_replayed(name: str) -> None:
    from evaluators.cuda import CudaDevice

    workload = workloads.load(name)
    setup = Setup(workload, Timing(), Tuning(trials=0), seed=0, anchor=workload.initial)
    with Evaluator(CudaDevice(), setup) as evaluator:
        lab = evaluator._lab
        for case in lab.cases(Role.CORRECTNESS, Role.PERFORMANCE):
            with lab.laid_out(lab.anchor, case, 60.0, lines=case.role is Role.CORRECTNESS) as job:
                ran = outside.run(replay.command(job), Path(job.folder), 60.0)
            assert (ran.code, ran.words) == (0, "")
