"""Seats: one for each free GPU, each with a GPU of its own; who may sit down, who is replaced, who is given up."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evo.errors import DeviceError
from evo.records import Device, Status
from evo.runner import crew as crews
from evo.runner import devices
from evo.runner.cluster import local_ray
from evo.runner.crew import Crew
from tests.support import scale
from tests.support.gpu_device import GpuDevice
from tests.support.instant_device import __file__ as INSTANT

GPU = str(Path(INSTANT).with_name("gpu_device.py"))


@pytest.fixture(scope="module")
def ray() -> Iterator[Any]:
    """A Ray that has two GPUs, of which the second is broken."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CUDA_VISIBLE_DEVICES", "4,7")
        patch.setenv("EVO_TEST_BROKEN", "7")
        with local_ray(num_cpus=2, num_gpus=2) as started:
            yield started


@pytest.fixture
def hire(ray: Any) -> Iterator[Callable[[str, Device], Crew]]:
    hired: list[Crew] = []

    def make(name: str, device: Device) -> Crew:
        until(lambda: ray.available_resources().get("GPU", 0) == 2)
        hired.append(Crew(ray, name, device, scale.setup(), (), 1))
        return hired[-1]

    yield make
    for crew in hired:
        crew.close()


@pytest.fixture
def crew(hire: Callable[[str, Device], Crew]) -> Crew:
    """Two GPUs at work."""
    made = hire(GPU, GpuDevice().describe())
    assert until_open(made) == []
    return made


def until(happens: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not happens():
        assert time.monotonic() < end
        time.sleep(0.02)


def until_open(crew: Crew) -> list[str]:
    """Let in who is ready until nobody is on the way; return what was wrong with somebody."""
    wrong = []
    end = time.monotonic() + 60
    while crew.opening:
        assert time.monotonic() < end
        crew.ray.wait(crew.opening, timeout=1)
        wrong += crew.admit()
    return wrong


def test_there_is_a_seat_for_each_gpu_and_each_sees_its_own_alone(ray, crew):
    found = ray.get([seat.actor.describe.remote() for seat in crew.seats])
    assert sorted(device.uuid for device in found) == ["GPU-4", "GPU-7"]


def test_a_device_that_is_no_gpu_has_one_seat_and_leaves_the_gpus_alone(ray, hire):
    crew = hire(INSTANT, Device("instant", "no device", "instant-1", "any"))
    until_open(crew)
    assert len(crew.seats) == 1
    assert ray.available_resources()["GPU"] == 2


def test_nobody_works_before_its_device_is_known(hire):
    crew = hire(GPU, GpuDevice().describe())
    assert crew.free_seat() is None
    until_open(crew)
    assert crew.free_seat() in crew.seats


def test_a_device_unlike_the_runs_is_refused_with_both_names_and_the_way_to_choose(hire):
    crew = hire(GPU, replace(GpuDevice().describe(), name="NVIDIA A100", fingerprint="a100"))
    with pytest.raises(DeviceError) as refused:
        until_open(crew)
    message = str(refused.value)
    assert "NVIDIA A100 (a100)" in message
    assert "GPU 4 (instant-1)" in message or "GPU 7 (instant-1)" in message
    assert "CUDA_VISIBLE_DEVICES=0,1" in message


def test_gpus_that_others_have_are_not_counted_and_none_left_is_an_error(ray, crew):
    with pytest.raises(DeviceError, match=r"found 0 of 2 that Ray knows.*nvidia-smi"):
        devices.evaluators(ray, GPU)


def test_a_replaced_actor_gets_the_same_gpu(ray, crew):
    seat = crew.seats[1]
    before = ray.get(seat.actor.describe.remote())
    crew.replace(seat)
    assert until_open(crew) == []
    assert ray.get(seat.actor.describe.remote()) == before


def test_a_device_that_fails_twice_in_a_row_is_given_up_and_the_last_one_raises(crew):
    fault = DeviceError("gone")
    first, second = crew.seats
    crew.fail(first, fault)
    assert crew.seats == [first, second]
    until_open(crew)
    crew.rise(first)  # a result lies between
    crew.fail(first, fault)
    crew.fail(first, fault)
    assert crew.seats == [second]
    crew.fail(second, fault)
    with pytest.raises(DeviceError, match="gone"):
        crew.fail(second, fault)


def test_a_broken_device_tells_so_while_the_other_works(ray, crew):
    by_gpu = {ray.get(seat.actor.describe.remote()).uuid: seat for seat in crew.seats}
    source = scale.kernel()
    assert ray.get(crew.evaluate(by_gpu["GPU-4"], 1, source, None)).status is Status.OK
    with pytest.raises(DeviceError, match="GPU 7 has fallen off the bus"):
        ray.get(crew.evaluate(by_gpu["GPU-7"], 1, source, None))


def test_an_actor_that_dies_while_it_starts_gets_a_second_chance_and_no_third(ray, hire):
    crew = hire(GPU, GpuDevice().describe())
    seat, other = crew.seats
    wrong: list[str] = []
    while seat in crew.seats:
        ray.kill(seat.actor)
        until(lambda: bool(ray.wait([seat.opening], timeout=0)[0]))
        wrong += crew.admit()
    assert len(wrong) == crews.FAILURES
    assert all("died while it started" in message for message in wrong)
    until_open(crew)
    assert crew.seats == [other]


class Sleeper:
    """An evaluator that never says what its device is."""

    def describe(self) -> None:
        time.sleep(3600)


def test_an_actor_that_is_never_ready_is_given_up_when_its_time_is_over(ray, hire, monkeypatch):
    sleeper = ray.remote(num_cpus=0)(Sleeper)
    monkeypatch.setattr(crews, "start_actor", lambda *_, **__: sleeper.remote())
    monkeypatch.setattr(crews, "START_DEADLINE_S", 0.0)
    crew = hire(GPU, GpuDevice().describe())
    with pytest.raises(DeviceError, match="not ready after"):
        until_open(crew)
