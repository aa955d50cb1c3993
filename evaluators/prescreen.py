"""The first look at a candidate, on a CPU and before any evaluator: header, text, exact front end, checker.

A plain function of its arguments, so that it can be a Ray task. Only a positive finding rejects: what the checker
cannot run or does not finish passes on as `skipped`, with the reason.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from evaluators import inspection
from evaluators.bench import Bench, Outcome, Program, Shots
from evaluators.builder import request
from evaluators.cases import CaseCache
from evaluators.device import DevicePlugin, Screened
from evaluators.scratch import Scratch
from evaluators.supervisor import Reply
from evo import kernel as kernels
from evo import workload as workloads
from evo.errors import HeaderError
from evo.kernel import Kernel
from evo.records import Case, Config, Device, Evaluation, Finding, Job, LaunchPlan, Role, Status, Workload

HOST = "host"
CHECK_CASES = 3
"""The smallest correctness cases are checked: checking is slow, and a fault shows on small sizes."""
CHECK_WORK = 1e8
"""Operations or bytes of a timed case up to which it is checked too: beyond, its reference alone takes long."""
CHECK_TIMED_S = 0.1
"""Time for a timed case under the checker: a fault shows in the first blocks, and what was found until then counts."""
CHECK_S = 5.0
"""Time for one case under the checker, which is up to 20 times slower than a plain run of a few milliseconds."""
NVRTC_ARCH = "sm_90"
"""What the exact front end compiles for when the run's device is no GPU."""


def screen(source: str, workload: Workload, device: Device, seed: int) -> Screened:
    """Look at one candidate.

    On the host device a compile error of the checker's flavour, or something that it does not support, is final too:
    the device itself would say the same.

    Args:
        source: the kernel file.
        workload: its correctness cases are run.
        device: of the run.
        seed: of inputs and launch orders.
    """
    started = time.monotonic()
    seen = _screen(source, workload, device, seed)
    return replace(seen, seconds=time.monotonic() - started)


def applies_to(device: DevicePlugin) -> bool:
    """Whether candidates for this device are screened at all; see `DevicePlugin`."""
    return bool(getattr(device, "prescreen", True))


def not_screened() -> Screened:
    """Return what stands for a screening on a device that asks for none."""
    return Screened(Status.OK, state="skipped", note="this device's candidates are not screened")


def rejection(candidate: int, source: str, screened: Screened, fingerprint: str) -> Evaluation:
    """Return the verdict on a candidate that screening has rejected.

    Args:
        candidate: id in the store.
        source: the kernel file.
        screened: with state `rejected`.
        fingerprint: of the run's device.
    """
    return Evaluation(
        candidate,
        screened.status,
        stage="screen",
        message=screened.message,
        source=source,
        findings=screened.findings,
        resources=screened.resources,
        device=fingerprint,
        screen=screened.state,
        stage_seconds={"screen": screened.seconds},
    )


def _screen(source: str, workload: Workload, device: Device, seed: int) -> Screened:
    try:
        kernel = kernels.parse(source)
        shown = workload.role(Role.CORRECTNESS, Role.PERFORMANCE)
        plans = {case.name: kernel.plan(workload, case, device) for case in shown}
    except HeaderError as error:
        return _rejected(Status.BAD_LAUNCH, str(error))
    refusals = inspection.refuse_source(source)
    if refusals:
        findings = tuple(Finding("refused", refusal.message, refusal.line) for refusal in refusals)
        return _rejected(refusals[0].status, refusals[0].message, findings)
    seen = _front_end(kernel, plans[shown[0].name], device) if shown else Screened(Status.OK)
    if seen.state == "rejected":
        return seen
    checked = _check(kernel, _looks(kernel, workload, device), workload, device, seed)
    return replace(checked, resources=seen.resources)


def _rejected(status: Status, message: str, findings: tuple[Finding, ...] = ()) -> Screened:
    return Screened(status, message, findings, state="rejected")


def _skipped(note: str) -> Screened:
    return Screened(Status.OK, state="skipped", note=note)


# --- NVRTC ------------------------------------------------------------------------------------------------------


def _front_end(kernel: Kernel, plan: LaunchPlan, device: Device) -> Screened:
    """Compile with NVRTC where it is installed: its errors are those that a GPU run would meet."""
    from evaluators import nvrtc

    if not nvrtc.available():
        return Screened(Status.OK)
    arch = NVRTC_ARCH if device.kind == HOST else device.arch
    binary = nvrtc.compile(request(kernel, plan, arch), cubin=True)
    if binary.status is Status.COMPILE_ERROR:
        return _rejected(binary.status, binary.message)
    return Screened(Status.OK, resources=dict(binary.resources))


# --- the checker --------------------------------------------------------------------------------------------------

_Look = tuple[Case, Config]
"""A case, and the launch configuration that the checker runs it with."""


def check_config(kernel: Kernel, case: Case, config: Config, workload: Workload, device: Device, seed: int) -> Screened:
    """Run the checker on a configuration that tuning would choose: another configuration is another program.

    Args:
        kernel: that `screen` has let pass.
        case: for which it would be chosen; one too large for the checker is stood in for by the smallest that permits
            the configuration.
        config: of the launch.
        workload: see `screen`.
        device: of the run.
        seed: of inputs and launch orders.
    """
    seen_before = _looks(kernel, workload, device)
    looks = [(case, config)]
    if case.role is Role.PERFORMANCE and not _is_light(workload, case):
        known = any(config == seen for _, seen in seen_before)
        looks = [] if known else _stand_in(kernel, config, _smallest(workload), device)
    return _check(kernel, [look for look in looks if look not in seen_before], workload, device, seed)


def _check(kernel: Kernel, looks: Sequence[_Look], workload: Workload, device: Device, seed: int) -> Screened:
    """Run the `check` flavour up to the first fault; advice of all runs is kept."""
    from evaluators.host import HostDevice

    checker = HostDevice()
    scratch = Scratch()
    seen = _skipped("the checker had no case that is small enough for it")
    try:
        bench = Bench(workload, CaseCache(workload, seed), _in_process(checker), scratch)
        for look in looks:
            now = _check_case(kernel, look, workload, checker, bench, final=device.kind == HOST)
            now = replace(now, findings=together(now.findings, seen.findings))
            if now.state == "rejected" or (now.state == "skipped" and look[0].role is Role.CORRECTNESS):
                return now
            if now.state == "passed":  # else a timed case was too much, and the small ones stand
                seen = now
    finally:
        scratch.close()
    return seen


def together(found: Sequence[Finding], before: Sequence[Finding]) -> tuple[Finding, ...]:
    """Return the findings of a run, and behind them those of earlier runs that have another kind or place."""
    places = {(finding.kind, finding.line, finding.other_line) for finding in found}
    return (*found, *(known for known in before if (known.kind, known.line, known.other_line) not in places))


def _looks(kernel: Kernel, workload: Workload, device: Device) -> list[_Look]:
    """Return what the checker runs: small cases, and every configuration that a timed case chooses.

    A kernel may do at the timed sizes what it does nowhere else. Where those are too large for the checker, what they
    choose is checked on the smallest case that permits it.
    """
    small = _smallest(workload)
    timed = workload.role(Role.PERFORMANCE)
    light = [case for case in timed if _is_light(workload, case)]
    looks: list[_Look] = [(case, kernel.config_for(case.dims)) for case in (*small, *light)]
    for config in (kernel.config_for(case.dims) for case in timed):
        if not any(config == known for _, known in looks):
            looks += _stand_in(kernel, config, small, device)
    return looks


def _stand_in(kernel: Kernel, config: Config, small: Sequence[Case], device: Device) -> list[_Look]:
    return [(case, config) for case in small if kernel.satisfies(config, case.dims, device)][:1]


def _is_light(workload: Workload, case: Case) -> bool:
    return max(workloads.flops(workload, case), workloads.bytes_moved(workload, case)) <= CHECK_WORK


def _check_case(
    kernel: Kernel, look: _Look, workload: Workload, checker: DevicePlugin, bench: Bench, *, final: bool
) -> Screened:
    case, config = look
    facts = checker.describe()
    try:
        plan = kernel.plan(workload, case, facts, config)
    except HeaderError as error:
        return _skipped(f"the checker cannot launch it: {error}")
    binary = checker.compile(request(kernel, plan, facts.arch, "check"))
    if binary.status is not Status.OK:
        # What the host's compiler must not see (assembly, say) may be right on another device.
        return _rejected(binary.status, binary.message) if final else _skipped(_note(binary.status, binary.message))
    timeout_s = CHECK_TIMED_S if case.role is Role.PERFORMANCE else CHECK_S
    outcome = bench.run(Program(plan, binary.image), case, Shots(order=1, timeout_s=timeout_s))
    return _conclude(case, outcome, final)


def _conclude(case: Case, outcome: Outcome, final: bool) -> Screened:
    message = f"case {case.name!r}: {outcome.message}"
    if outcome.status is Status.UNSAFE or (final and outcome.status in (Status.UNSUPPORTED, Status.BAD_LAUNCH)):
        return _rejected(outcome.status, message, outcome.findings)
    if outcome.status in (Status.OK, Status.WRONG_ANSWER):  # answers are judged on the run's own device
        return Screened(Status.OK, findings=outcome.findings)
    return _skipped(_note(outcome.status, message))


def _note(status: Status, message: str) -> str:
    return f"{status}: {message}"


def _smallest(workload: Workload) -> list[Case]:
    cases = workload.role(Role.CORRECTNESS)
    return sorted(cases, key=lambda case: math.prod(case.dims.values()))[:CHECK_CASES]


def _in_process(checker: DevicePlugin) -> Callable[[Job, float], Reply]:
    """Run jobs right here: the checker confines the candidate itself, and a task has no time to start a harness."""

    def run(job: Job, deadline_s: float) -> Reply:
        started = time.monotonic()
        return Reply(checker.run(job), time.monotonic() - started)

    return run
