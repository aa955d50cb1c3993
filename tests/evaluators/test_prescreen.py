from __future__ import annotations

import pytest

from evaluators import nvrtc, prescreen
from evaluators.device import Screened
from evaluators.host import HostDevice
from evo import sandbox
from evo.records import Device, Role, Status
from tests.support import scale
from tests.support.numpy_device import NumpyDevice

pytestmark = pytest.mark.skipif(sandbox.available() != "", reason=f"no sandbox: {sandbox.available()}")

HOST = HostDevice().describe()
GPU = Device("cuda", "NVIDIA H200", "gpu-1", "sm_90")
BODY = "if (i < N) y[i] = 2.0f * x[i];"


def screen(body: str = BODY, device: Device = HOST, header: str = scale.HEADER, above: str = "") -> Screened:
    source = scale.kernel(header=header).replace(BODY, body).replace("// behaviour: ok", above)
    return prescreen.screen(source, scale.workload(), device, seed=0)


@pytest.mark.parametrize("device", [HOST, GPU], ids=["host", "gpu"])
def test_a_right_kernel_passes(device):
    screened = screen(device=device)
    assert (screened.status, screened.state, screened.message, screened.findings) == (Status.OK, "passed", "", ())
    assert screened.seconds > 0
    if nvrtc.available():
        assert (screened.resources["scale"].registers or 0) > 0


def test_a_header_without_sense_is_rejected():
    screened = screen(header=scale.HEADER.replace('"BX"', '"BX * 64"', 1))
    assert (screened.status, screened.state) == (Status.BAD_LAUNCH, "rejected")
    assert "2048" in screened.message


def test_an_include_that_is_not_allowed_is_rejected_with_its_line():
    screened = screen(above='#include "/etc/hostname"')
    assert (screened.status, screened.state) == (Status.UNSAFE, "rejected")
    assert "/etc/hostname" in screened.message
    assert screened.findings[0].line == scale.HEADER.count("\n") + 1


def test_a_compile_error_is_rejected_with_its_line():
    screened = screen(body="if (i < N) y[i] = 2.0f * nothing[i];")
    assert (screened.status, screened.state) == (Status.COMPILE_ERROR, "rejected")
    assert "nothing" in screened.message
    assert "line 10" in screened.message


@pytest.mark.parametrize("device", [HOST, GPU], ids=["host", "gpu"])
def test_a_finding_of_the_checker_is_rejected_on_every_device(device):
    screened = screen(body="if (i <= N) y[i] = 2.0f * x[min(i, N - 1)];", device=device)
    assert (screened.status, screened.state) == (Status.UNSAFE, "rejected")
    assert "line 10" in screened.message
    assert screened.findings[0].kind == "out-of-bounds"


@pytest.mark.parametrize("device", [HOST, GPU], ids=["host", "gpu"])
def test_advice_rejects_nobody_and_is_kept(device):
    screened = screen(body=f"if (i >= N) return; __syncthreads(); {BODY}", device=device)
    assert (screened.status, screened.state, screened.message) == (Status.OK, "passed", "")
    assert [(finding.kind, finding.line, finding.advice) for finding in screened.findings] == [("early-exit", 10, True)]


def test_a_wrong_answer_is_left_to_the_device():
    assert screen(body="if (i < N) y[i] = 3.0f * x[i];").state == "passed"


def test_what_does_not_end_is_passed_on_with_the_reason(monkeypatch):
    monkeypatch.setattr(prescreen, "CHECK_S", 0.3)
    screened = screen(body="volatile int on = 1; while (i == 3 && on) {}")
    assert (screened.status, screened.state) == (Status.OK, "skipped")
    assert screened.note.startswith("timeout: case 'ragged'")


@pytest.mark.parametrize(("role", "state"), [(Role.PERFORMANCE, "passed"), (Role.HIDDEN, "skipped")])
def test_a_workload_without_correctness_cases_passes_only_what_was_checked(role, state):
    workload = scale.workload(cases=scale.workload().role(role))
    screened = prescreen.screen(scale.kernel(), workload, HOST, seed=0)
    assert (screened.status, screened.state) == (Status.OK, state)
    assert screened.note == ("" if state == "passed" else "the checker had no case that is small enough for it")


def test_what_is_too_large_for_the_checker_is_not_called_checked(monkeypatch):
    monkeypatch.setattr(prescreen, "CHECK_WORK", 0)
    workload = scale.workload(cases=scale.workload().role(Role.PERFORMANCE))
    assert prescreen.screen(scale.kernel(), workload, HOST, seed=0).state == "skipped"


def test_what_the_checker_cannot_run_is_final_on_the_host_device_alone():
    header = scale.HEADER.replace("tune:", 'cluster: "1"\ntune:')
    on_host = screen(header=header)
    assert (on_host.status, on_host.state) == (Status.UNSUPPORTED, "rejected")
    assert "cluster" in on_host.message
    on_gpu = screen(header=header, device=GPU)
    assert (on_gpu.status, on_gpu.state) == (Status.OK, "skipped")
    assert "cluster" in on_gpu.note


def test_a_rejection_is_a_verdict():
    screened = screen(header="")
    verdict = prescreen.rejection(7, "source", screened, "host-1")
    assert (verdict.candidate, verdict.status, verdict.stage) == (7, Status.BAD_LAUNCH, "screen")
    assert verdict.message == screened.message
    assert (verdict.source, verdict.device, verdict.screen) == ("source", "host-1", "rejected")


def test_a_device_may_ask_for_no_screening():
    assert prescreen.applies_to(HostDevice())
    assert not prescreen.applies_to(NumpyDevice())
    assert prescreen.not_screened().state == "skipped"
