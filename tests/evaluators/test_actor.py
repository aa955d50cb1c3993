from __future__ import annotations

import psutil
import pytest

from evaluators import actor
from evo.records import CompileRequest, Device, Status
from evo.runner.cluster import local_ray
from tests.support import scale
from tests.support.instant_device import __file__ as INSTANT
from tests.support.instant_device import draw

REQUEST = CompileRequest(scale.kernel(), ("scale",), {"BX": 32}, (), "any")


@pytest.fixture(scope="module")
def ray():
    with local_ray(num_cpus=3) as started:
        yield started


def test_a_compile_task_builds_with_the_device_of_that_name():
    assert actor.compile_task(scale.DEVICE, REQUEST).status is Status.OK


def test_a_screen_task_passes_on_what_a_device_does_not_want_screened():
    facts = Device("numpy", "NumPy", "numpy-1", "any")
    screened = actor.screen_task(scale.DEVICE, facts, scale.kernel("crash"), scale.workload(), 0)
    assert (screened.status, screened.state) == (Status.OK, "skipped")


@pytest.mark.parametrize("trials", [0, 4])
def test_an_actor_evaluates_and_compares_and_builds_through_ray_tasks(ray, trials):
    handle = actor.start_actor(scale.DEVICE, scale.setup(trials=trials))
    assert ray.get(handle.describe.remote()).kind == "numpy"
    right = ray.get(handle.evaluate.remote(3, scale.kernel(), None))
    assert (right.candidate, right.status) == (3, Status.OK)
    assert bool(right.trials) == bool(trials)
    wrong = ray.get(handle.evaluate.remote(4, scale.kernel("crash"), None))
    assert wrong.status is Status.CRASH
    ray.get(handle.close.remote())
    ray.kill(handle)


def test_an_actor_that_is_killed_takes_its_harness_along(ray):
    handle = actor.start_actor(scale.DEVICE, scale.setup())
    ray.get(handle.describe.remote())
    harnesses = _harnesses()
    assert harnesses
    ray.kill(handle)
    _, alive = psutil.wait_procs(harnesses, timeout=10)
    assert not alive


def test_an_actor_runs_a_plugin_that_brings_its_own_evaluator(ray):
    handle = actor.start_actor(INSTANT, scale.setup())
    first = ray.get(handle.evaluate.remote(1, scale.kernel(), None))
    again = ray.get(handle.evaluate.remote(1, scale.kernel(), None))
    assert first == again
    sources = [scale.kernel(name) for name in "abcdefgh"]
    slower, faster = max(sources, key=_ratio), min(sources, key=_ratio)
    assert ray.get(handle.compare.remote((1, faster), (2, slower), 1)).promoted
    assert not ray.get(handle.compare.remote((1, slower), (2, faster), 1)).promoted
    ray.kill(handle)


def _ratio(source: str) -> float:
    return draw(source, "ratio")


def _harnesses() -> list[psutil.Process]:
    found = []
    for process in psutil.Process().children(recursive=True):
        if "evaluators.harness" in process.cmdline() and scale.DEVICE in process.cmdline():
            found.append(process)
    return found
