from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evo.memory import CLOSEST, TRIED, Memory

CELL = ("direct", "scalar", "1")
OTHER = ("shared", "scalar", "1")


def memory(*candidates: tuple[int, tuple[int, ...], float | None], islands: int = 1) -> Memory:
    found = Memory(islands, 1.0, CELL)
    for number, parents, ratio in candidates:
        found.add(number, parents, 0, ratio, OTHER)
    return found


def test_the_bar_is_the_fastest_parent_and_what_failed_counts_as_what_it_was_made_from():
    found = memory((1, (0,), 0.5), (2, (0, 1), None), (3, (2,), None), (4, (2,), 0.7))
    assert [found.bar(parents) for parents in [(0,), (0, 1), (2,), (3,), (4, 0)]] == [1.0, 0.5, 0.5, 0.5, 0.7]
    assert found.bar(()) == math.inf


def test_the_origin_is_the_nearest_right_ancestor():
    found = memory((1, (0,), 0.5), (2, (1, 0), None), (3, (2,), None))
    assert [found.origin(number) for number in range(4)] == [0, 1, 1, 1]


def test_only_what_has_a_score_has_a_cell():
    found = memory((1, (0,), 0.5), (2, (1,), None))
    assert [found.cell(number) for number in (0, 1, 2, 77)] == [CELL, OTHER, None, None]


def test_a_failure_is_told_of_its_own_ancestors_and_of_its_siblings():
    found = memory((1, (0,), 0.5), (2, (1,), None), (3, (1,), 0.6), (4, (2,), None), (5, (0,), 0.9))
    assert found.tried(4, 0, (4, 1)) == (2, 3, 5)


def test_many_children_leave_room_for_others():
    many = [(number, (0 if number % 2 else 1,), 0.5) for number in range(1, 101)]
    tried = memory(*many).tried(0, 0, ())
    assert len(tried) == TRIED
    assert tried[:CLOSEST] == tuple(range(99, 99 - 2 * CLOSEST, -2))
    assert {number for number in tried if number % 2 == 0}


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 9), st.booleans()), max_size=150),
    st.integers(0, 2),
    st.data(),
)
def test_attempts_are_few_known_distinct_and_not_shown_besides(entries, island, data):
    found = Memory(3, 1.0, CELL)
    for number, (home, back, right) in enumerate(entries, start=1):
        found.add(number, (max(0, number - 1 - back),), home, 0.5 if right else None, CELL)
    parent = data.draw(st.integers(0, len(entries)))
    shown = data.draw(st.sets(st.integers(0, len(entries)), max_size=4)) | {parent}
    tried = found.tried(parent, island, shown)
    assert len(set(tried)) == len(tried) <= TRIED
    assert not shown & set(tried)
    assert set(tried) <= set(range(len(entries) + 1))
    assert len(tried) >= min(TRIED, len([home for home, _, _ in entries if home == island]) - len(shown))


@pytest.mark.parametrize("change", [(2, (1,), 0, 0.4, CELL), (2, (0,), 0, 0.5, CELL), (2, (1,), 0, 0.5, OTHER)])
def test_the_digest_tells_memories_apart(change):
    one, other = memory((1, (0,), 0.5)), memory((1, (0,), 0.5))
    assert one.digest() == other.digest()
    one.add(2, (1,), 0, 0.5, CELL)
    other.add(*change)
    assert one.digest() != other.digest()
