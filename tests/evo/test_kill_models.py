"""Runs that are killed, interrupted or lose their mutator worker with sixteen calls in flight: no paid reply is lost.

The run is the command itself, litellm asks a provider in a process of its own, which knows what it was asked and when
the last byte of each answer had left.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import psutil
import pytest

from evo.store import Store
from tests.support import instant_device, numbered_rewrite, slow_provider, squares
from tests.support.slow_provider import Exchange, Provider

EVO = Path(sys.executable).with_name("evo")
IN_FLIGHT = 16
DELIVERED_S = 1.0
"""A reply whose last byte left so long before a kill has to be in the store."""
PROVIDER_VARIABLES = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_API_BASE")
INTERRUPTED = 130


class Sitting:
    """The command at work in a folder."""

    def __init__(self, place: Path, provider: Provider, *arguments: str) -> None:
        environment = {name: value for name, value in os.environ.items() if name not in PROVIDER_VARIABLES}
        self._provider, self.began = provider, time.time()
        self._said = (place / "said.txt").open("a+")
        self.process = subprocess.Popen(
            [EVO, *arguments], cwd=place, env=environment, stdout=self._said, stderr=subprocess.STDOUT,
            start_new_session=True,
        )  # fmt: skip

    def until_full(self) -> None:
        """Wait until the provider holds sixteen calls of this sitting."""
        deadline = time.monotonic() + 120
        while self._provider.in_flight(self.began) < IN_FLIGHT:
            assert self.process.poll() is None, self.said()
            assert time.monotonic() < deadline, self.said()
            time.sleep(0.005)

    def kill(self) -> float:
        """Kill the driver and all that it started, but the reaper, at once; return when."""
        family = psutil.Process(self.process.pid).children(recursive=True)
        at = time.time()
        self.process.kill()
        for process in family:
            try:
                if "sys.stdin.read()" not in " ".join(process.cmdline()):
                    process.kill()
            except psutil.NoSuchProcess:
                pass
        self.process.wait()
        return at

    def worker(self) -> psutil.Process:
        """The mutator worker."""
        family = psutil.Process(self.process.pid).children(recursive=True)
        (worker,) = (process for process in family if "MutatorWorker" in " ".join(process.cmdline()))
        return worker

    def finish(self, code: int = 0) -> None:
        assert self.process.wait(timeout=240) == code, self.said()

    def said(self) -> str:
        self._said.flush()
        self._said.seek(0)
        return self._said.read()

    def close(self) -> None:
        if self.process.poll() is None:
            self.kill()
        self._said.close()


@pytest.fixture
def place(tmp_path: Path) -> Path:
    squares.write(tmp_path)
    return tmp_path


@pytest.fixture
def provider(tmp_path: Path) -> Iterator[Provider]:
    with slow_provider.running(tmp_path) as made:
        yield made


@pytest.fixture
def begin(place: Path, provider: Provider) -> Iterator[Callable[..., Sitting]]:
    sittings: list[Sitting] = []

    def start(*arguments: str) -> Sitting:
        sittings.append(Sitting(place, provider, *arguments))
        return sittings[-1]

    yield start
    for sitting in sittings:
        sitting.close()


def config(place: Path, provider: Provider, evaluations: int) -> None:
    (place / "search.yaml").write_text(
        "workload: squares\n"
        f"device: {Path(instant_device.__file__)}\n"
        f'models: [{{api_base: "{provider.url}", reasoning_effort: null, timeout_s: 120}}]\n'
        f"operators: {{{Path(numbered_rewrite.__file__)}: 1}}\n"
        f"search: {{in_flight: {IN_FLIGHT}}}\n"
        f"budget: {{evaluations: {evaluations}, minutes: null, cost_usd: 100}}\n"
    )


def folder(place: Path) -> Path:
    return place / "results" / "run-001"


def settled(provider: Provider) -> list[Exchange]:
    """Return all exchanges, when the provider owes none any more."""
    deadline = time.monotonic() + 120
    while provider.in_flight():
        assert time.monotonic() < deadline
        time.sleep(0.1)
    return provider.exchanges()


def answers(place: Path) -> dict[tuple[int, int], int]:
    """Return which of the provider's answers each stored call holds, by task and step."""
    found = {}
    with Store.read(folder(place)) as store:
        for call in store.calls():
            if number := re.search(r"return (\d+)u; \}", call.reply.text):
                found[call.task, call.step] = int(number[1])
    return found


def check_books(place: Path, provider: Provider, kills: list[float]) -> None:
    """Nothing that was paid for is lost or asked for again, and the ledger knows what it cannot know."""
    exchanges = settled(provider)
    stored = answers(place)
    asked = Counter(one.request for one in exchanges)
    assert max(asked.values()) <= 2, "no request is sent more than twice"

    delivered = [one for one in exchanges if not _cut(one, kills)]
    assert all(one.whole for one in delivered)
    assert len(delivered) > IN_FLIGHT
    lost = [one for one in delivered if one.request not in stored or stored[one.request] != one.number]
    assert not lost, f"answers that had arrived and were not used: {lost}"
    repeated = [
        one for one in exchanges for first in delivered if one.request == first.request and one.number > first.number
    ]
    assert not repeated, f"answers that were asked for again: {repeated}"

    with Store.read(folder(place)) as store:
        told = Counter(event.task.id for event in store.events() if event.kind == "tell" and event.task)
        assert set(told.values()) == {1}
        assert store.open_tasks() == []
        spent, unsure = store.spent(), store.unsure()
    by_number = {one.number: one for one in exchanges}
    billed = sum(by_number[number].usd for number in stored.values())
    tally = sum(one.usd for one in exchanges)
    assert spent.cost_usd == pytest.approx(billed)
    assert -1e-9 <= tally - billed <= spent.unsure_usd

    unused = Counter(one.request for one in exchanges if stored.get(one.request) != one.number)  # type: ignore[arg-type]
    named = Counter((sent.task, sent.step) for sent in unsure)
    assert unused <= named, "a request without an answer is not named as interrupted"
    summary = json.loads((folder(place) / "summary.json").read_text())
    told_of = Counter((call["task"], call["step"]) for call in summary["cost"]["interrupted"])
    assert told_of == named
    assert sum(named.values()) <= IN_FLIGHT * len(kills)


def _cut(one: Exchange, kills: list[float]) -> bool:
    """Whether a kill came while it was asked, or within the second after its last byte."""
    assert one.over_at is not None
    return any(one.arrived_at <= at < one.over_at + DELIVERED_S for at in kills)


def kill_once(sitting: Sitting, wait_s: float) -> float:
    sitting.until_full()
    time.sleep(wait_s)
    sitting.until_full()
    return sitting.kill()


@pytest.mark.long
def test_after_a_kill_with_sixteen_calls_in_flight_no_reply_is_lost_or_asked_for_again(
    place: Path, provider: Provider, begin: Callable[..., Sitting]
) -> None:
    config(place, provider, 40)
    kills = [kill_once(begin("run", "search.yaml"), 4.0)]
    last = begin("resume", "latest")
    last.finish()
    check_books(place, provider, kills)
    said = " ".join(last.said().split())
    assert re.search(r"billed \$\d+\.\d\d, up to \$\d+\.\d\d in \d+ interrupted calls", said)


@pytest.mark.long
def test_twenty_kills_with_sixteen_calls_in_flight_lose_no_reply(
    place: Path, provider: Provider, begin: Callable[..., Sitting]
) -> None:
    config(place, provider, 400)
    waits = np.random.default_rng(16).uniform(0.0, 6.0, 20)
    kills = [kill_once(begin("run", "search.yaml"), waits[0])]
    kills += [kill_once(begin("resume", "latest"), wait) for wait in waits[1:]]
    with Store.read(folder(place)) as store:
        done = sum(candidate != 0 for candidate in store.evaluations())
    begin("resume", "latest", "--evaluations", str(done + 20)).finish()
    check_books(place, provider, kills)


@pytest.mark.long
def test_after_ctrl_c_the_replies_on_their_way_are_waited_for_and_used(
    place: Path, provider: Provider, begin: Callable[..., Sitting]
) -> None:
    config(place, provider, 24)
    sitting = begin("run", "search.yaml", "--json")
    sitting.until_full()
    sitting.process.send_signal(signal.SIGINT)
    sitting.finish(INTERRUPTED)
    (line,) = (line for line in sitting.said().splitlines() if '"harvesting"' in line)
    assert json.loads(line)["calls"] >= IN_FLIGHT - 1
    assert provider.in_flight() == 0
    stored = answers(place)
    assert sorted(stored.values()) == [one.number for one in provider.exchanges()]
    begin("resume", "latest").finish()
    check_books(place, provider, [])
    assert answers(place).items() >= stored.items()


@pytest.mark.long
def test_a_second_ctrl_c_leaves_at_once(place: Path, provider: Provider, begin: Callable[..., Sitting]) -> None:
    config(place, provider, 24)
    sitting = begin("run", "search.yaml", "--json")
    sitting.until_full()
    sitting.process.send_signal(signal.SIGINT)
    deadline = time.monotonic() + 30
    while '"harvesting"' not in sitting.said():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    at = time.time()
    sitting.process.send_signal(signal.SIGINT)
    sitting.finish(INTERRUPTED)
    assert time.time() - at < 5
    begin("resume", "latest").finish()
    check_books(place, provider, [at])


@pytest.mark.long
def test_a_mutator_worker_that_is_killed_takes_no_answer_along_that_had_arrived(
    place: Path, provider: Provider, begin: Callable[..., Sitting]
) -> None:
    config(place, provider, 40)
    sitting = begin("run", "search.yaml")
    sitting.until_full()
    time.sleep(4)
    sitting.until_full()
    at = time.time()
    sitting.worker().kill()
    sitting.finish()
    check_books(place, provider, [at])
    assert "worker died" in sitting.said()
