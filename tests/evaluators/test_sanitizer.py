"""compute-sanitizer: its reports are read, a finalist with a fault is not promoted, and what is not there is said."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from evaluators import nvrtc, outside, sanitizer
from evaluators.device import Setup
from evaluators.evaluator import Evaluator
from evaluators.inspection import cubin
from evo.config import Timing, Tuning
from evo.records import Comparison, CompileRequest, Finding, Status
from tests.support import nvidia_tools, scale
from tests.support.numpy_device import NumpyDevice

CLEAN = "========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n"
RACE_FREE = "========= COMPUTE-SANITIZER\n========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)\n"

MEMCHECK = """\
========= COMPUTE-SANITIZER
========= Invalid __global__ write of size 4 bytes
=========     at scale(const float *, float *, int)+0x150 in kernel.cu:9
=========     by thread (40,0,0) in block (3,0,0)
=========     Address 0x7f2a3e000400 is out of bounds
=========     and is 1 bytes after the nearest allocation at 0x7f2a3e000000 of size 1,024 bytes
=========
========= Invalid __global__ write of size 4 bytes
=========     at scale(const float *, float *, int)+0x150 in kernel.cu:9
=========     by thread (41,0,0) in block (3,0,0)
=========     Address 0x7f2a3e000404 is out of bounds
=========
========= ERROR SUMMARY: 2 errors
"""
RACE = """\
========= COMPUTE-SANITIZER
========= Error: Race reported between Write access at sum(int *, int *)+0xf0 in kernel.cu:12
=========     and Read access at sum(int *, int *)+0xd0 in kernel.cu:14 [32 hazards]
=========     and Write access at sum(int *, int *)+0xf0 in kernel.cu:12 [4 hazards]
=========
========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)
"""
UNINITIALISED = """\
========= COMPUTE-SANITIZER
========= Uninitialized __global__ memory read of size 4 bytes
=========     at scale(const float *, float *, int)+0x70 in kernel.cu:11
=========     by thread (31,0,0) in block (1,0,0)
=========     Address 0x7f3c7ec000fc
=========
========= ERROR SUMMARY: 1 error
"""
BARRIER = """\
========= COMPUTE-SANITIZER
========= Barrier error detected. {reason}.
=========     at scale(const float *, float *, int)+0x8f0 in kernel.cu:20
=========     by thread (63,0,0) in block (0,0,0)
=========
========= ERROR SUMMARY: 1 error
"""


def test_accesses_at_one_place_are_one_finding_with_their_count() -> None:
    (found,) = sanitizer.read(MEMCHECK)
    assert (found.kind, found.line, found.count, found.advice) == ("memory", 9, 2, False)
    assert found.message == (
        "Invalid __global__ write of size 4 bytes, by thread (40,0,0) of block (3,0,0), the address is out of bounds"
    )


def test_a_race_names_both_lines_and_its_hazards() -> None:
    assert sanitizer.read(RACE) == (
        Finding(
            "race",
            "a race in shared memory between a write and a read of different threads, with no barrier in between",
            line=12,
            other_line=14,
            count=36,
        ),
    )


def test_a_race_of_one_warp_may_be_meant_and_is_advice() -> None:
    (found,) = sanitizer.read(RACE.replace("Error:", "Warning:"))
    assert found.advice
    assert sanitizer.read(RACE.replace("Error:", "Info:")) == ()


def test_an_uninitialised_read_is_a_fault() -> None:
    (found,) = sanitizer.read(UNINITIALISED)
    assert (found.kind, found.line, found.advice) == ("uninitialised", 11, False)


@pytest.mark.parametrize(
    ("reason", "advice"),
    [("Divergent thread(s) in block", True), ("Divergent thread(s) in warp", False), ("Invalid arguments", False)],
)
def test_a_barrier_that_not_all_threads_reach_is_advice_and_any_other_misuse_a_fault(reason: str, advice: bool) -> None:
    (found,) = sanitizer.read(BARRIER.format(reason=reason))
    assert (found.kind, found.line, found.advice) == ("barrier", 20, advice)


def test_lines_of_other_files_are_not_the_candidates() -> None:
    (found,) = sanitizer.read(MEMCHECK.replace("kernel.cu:9", "cooperative_groups.h:310"))
    assert found.line == 0


@pytest.mark.parametrize("text", ["", CLEAN, RACE_FREE, "Invalid __global__ write of size 4 bytes\n"])
def test_a_clean_report_and_a_kernels_own_words_hold_no_finding(text: str) -> None:
    assert sanitizer.read(text) == ()


# --- the finalist -----------------------------------------------------------------------------------------------------


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", nvidia_tools.first_on_path(tmp_path))
    monkeypatch.setattr(NumpyDevice, "replays", True, raising=False)
    return tmp_path


def install(folder: Path, **told: object) -> None:
    nvidia_tools.script(folder, "compute-sanitizer", **{"log": CLEAN, **told})


WON = Comparison(2, 1, Status.OK, ratio=0.5, blocks=20, promoted=True)


def confirmed(*comparisons: Comparison) -> list[Comparison]:
    with Evaluator(NumpyDevice(), scale.setup()) as evaluator:
        programs = evaluator._lab.programs(scale.kernel("fast"))
        return [evaluator._sanitizer.confirm(comparison, programs) for comparison in comparisons]


def test_a_clean_finalist_is_promoted_and_looked_at_by_four_tools_once(tools: Path) -> None:
    install(tools)
    assert confirmed(WON, WON) == [WON, WON]
    asked = [call[call.index("--tool") + 1] for call in nvidia_tools.calls(tools, "compute-sanitizer")]
    assert asked == list(sanitizer.TOOLS)


def test_a_comparison_that_nobody_won_starts_no_tool(tools: Path) -> None:
    install(tools)
    lost = Comparison(2, 1, Status.OK, ratio=1.01)
    assert confirmed(lost) == [lost]
    assert nvidia_tools.calls(tools, "compute-sanitizer") == []


@pytest.mark.parametrize(
    ("tool", "report", "words"),
    [
        ("memcheck", MEMCHECK, "line 9: Invalid __global__ write"),
        ("racecheck", RACE, "line 12 and 14: a race in shared memory"),
        ("initcheck", UNINITIALISED, "line 11: Uninitialized"),
        ("synccheck", BARRIER.format(reason="Invalid arguments"), "line 20: Barrier error detected. Invalid"),
    ],
)
def test_a_finalist_with_a_fault_is_not_promoted_and_the_message_says_why(
    tools: Path, tool: str, report: str, words: str
) -> None:
    install(tools, logs={tool: report}, code=0)
    with Evaluator(NumpyDevice(), scale.setup()) as evaluator:
        found = evaluator.compare((2, scale.kernel("fast")), (1, scale.kernel()), number=1)
    assert (found.status, found.promoted) == (Status.UNSAFE, False)
    assert words in found.message
    assert found.ratio == pytest.approx(0.5)


def test_advice_alone_promotes(tools: Path) -> None:
    install(tools, logs={"synccheck": BARRIER.format(reason="Divergent thread(s) in block")})
    (found,) = confirmed(WON)
    assert found.promoted


def test_a_missing_tool_is_said_once_and_promotes(tools: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outside, "find", lambda name: None)
    first, second = confirmed(WON, WON)
    assert first.promoted
    assert "compute-sanitizer is not installed" in first.message
    assert second == WON


def test_a_tool_that_takes_too_long_or_stumbles_promotes_and_says_so(
    tools: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tools, log="========= Error: Target application terminated before first instrumented API call\n", code=1)
    (found,) = confirmed(WON)
    assert found.promoted
    assert "memcheck could not look: Error: Target application terminated" in found.message
    monkeypatch.setattr(sanitizer, "TIMEOUT_S", 1.0)
    install(tools, hang=True)
    (found,) = confirmed(WON)
    assert found.promoted
    assert "synccheck did not end within 1 s" in found.message


def test_on_a_device_without_replays_nothing_is_asked(tools: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(NumpyDevice, "replays", False)
    install(tools)
    assert confirmed(WON) == [WON]
    assert nvidia_tools.calls(tools, "compute-sanitizer") == []


@pytest.mark.skipif(not nvrtc.available(), reason="needs NVRTC")
def test_line_numbers_change_no_instruction() -> None:
    source = 'extern "C" __global__ void twice(float* x, int n) {\n  int i = threadIdx.x;\n  if (i < n) x[i] *= 2;\n}\n'
    plain, lined = (
        nvrtc.compile(CompileRequest(source, ("twice",), {}, (), "sm_90a", flavour), cubin=True)
        for flavour in ("plain", "lineinfo")
    )
    assert (plain.status, lined.status) == (Status.OK, Status.OK)
    assert (b".debug_line" in plain.image, b".debug_line" in lined.image) == (False, True)
    assert _section(plain.image, b".text.twice") == _section(lined.image, b".text.twice")
    assert cubin.read(lined.image) == cubin.read(plain.image)


def _section(image: bytes, name: bytes) -> bytes:
    """Return a section of an ELF file of 64 bits: the header's fields e_shoff, e_shentsize, e_shnum, e_shstrndx."""
    (start,), (size, count, names) = struct.unpack_from("<Q", image, 40), struct.unpack_from("<3H", image, 58)
    rows = [struct.unpack_from("<2I4Q", image, start + number * size) for number in range(count)]
    text_at = rows[names][4]
    return next(
        image[at : at + nbytes]
        for named, _, _, _, at, nbytes in rows
        if image[text_at + named :].startswith(name + b"\0")
    )


SCALE = """\
/* launch
block: 256
grid: "ceildiv(N, 256)"
*/
extern "C" __global__ void scale(const float* x, float* y, int N) {
    __shared__ float s[256];
    int i = blockIdx.x * blockDim.x + threadIdx.x, t = threadIdx.x;
    s[t] = i < N ? x[i] : 0.0f;
    BODY
}
"""
RIGHT = "__syncthreads(); if (i < N) y[i] = 2 * s[t];"
FAULTS = {
    "one element behind": (RIGHT + " if (i == N) y[i] = 0;", "memory"),
    "reads what nobody wrote": ("if (i < N) y[i] = 2 * s[t] + (y[i] == 12345.0f);", "uninitialised"),
    "races": ("if (i < N) y[i] = 2 * s[t] + (s[(t + 64) % 256] == 12345.0f);", "race"),
    "none": (RIGHT, ""),
}


@pytest.mark.gpu
@pytest.mark.parametrize("name", FAULTS)
def test_the_real_tools_find_a_fault_and_its_line(name: str) -> None:
    from evaluators.cuda import CudaDevice

    body, kind = FAULTS[name]
    workload = scale.workload()
    setup = Setup(workload, Timing(), Tuning(trials=0), seed=0, anchor=workload.initial)
    with Evaluator(CudaDevice(), setup) as evaluator:
        looked = evaluator._sanitizer.look(evaluator._lab.programs(SCALE.replace("BODY", body)))
    assert looked.problems == ()
    assert [finding.kind for finding in looked.faults] == ([kind] if kind else [])
    assert all(9 in (finding.line, finding.other_line) for finding in looked.faults)
