from __future__ import annotations

import pytest

from evo.records import Status
from evo.repairs import MOST_FAULT, MOST_WAITING, REPAIRABLE, Failure, Repairs, fault


def test_what_has_a_score_or_no_candidate_is_not_repairable():
    assert set(Status) - {Status.OK, Status.NO_PROPOSAL, Status.DUPLICATE, Status.UNSUPPORTED} == REPAIRABLE


def test_the_newest_wait_last_and_the_oldest_are_dropped():
    found = Repairs()
    for number in range(MOST_WAITING + 3):
        found = found.failed(Failure(number, 0, Status.CRASH))
    assert [failure.candidate for failure in found.waiting] == list(range(3, MOST_WAITING + 3))


def test_a_failure_leaves_the_queue_with_its_repair():
    first, second = Failure(1, 0, Status.CRASH), Failure(2, 0, Status.CRASH)
    found = Repairs().failed(first).failed(second).asked(second)
    assert (found.waiting, found.mutations, found.repairs) == ((first,), 1, 1)


def test_repairs_wait_until_three_mutations_have_paid_for_them():
    found = Repairs().asked(None)
    failures = [Failure(number, 0, Status.CRASH) for number in range(5)]
    for failure in failures:
        found = found.failed(failure)
    due = []
    for _ in range(12):
        due.append(found.due)
        found = found.asked(found.waiting[-1] if found.due else None)
    assert due == [True, False, True, False, False, True, False, False, True, False, False, True]


@pytest.mark.parametrize(
    ("stage", "message", "line"),
    [
        ("time", "", ""),
        ("compile", "line 12: x is undefined\nline 13: y is undefined", "compile: line #: x is undefined"),
        ("validate", "odd: y[311]: expected 1.25, found nan", "validate: odd: y[#]: expected #.#, found nan"),
    ],
)
def test_a_fault_is_the_first_line_without_its_numbers(stage, message, line):
    assert fault(stage, message) == line


def test_a_fault_is_short():
    assert len(fault("compile", "x" * 10_000)) < MOST_FAULT + 20
