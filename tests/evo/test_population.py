from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evo.population import (
    ADDITIONS_PER_MIGRATION,
    ELITES_PER_CELL,
    ELITES_PER_ISLAND,
    Elite,
    Island,
    Population,
    by_rank,
    cell_of,
    island_count,
)

ratios = st.floats(0.01, 100, allow_nan=False)
cells = st.tuples(st.sampled_from("ab"), st.sampled_from("cd"), st.sampled_from("ef"))


def grown(entries: list[tuple[int, float, str]], islands: int = 1) -> Population:
    """A population with candidates 1, 2, … of these (island, ratio, staging)."""
    population = Population.of(islands, 1.0, {})
    for number, (island, ratio, staging) in enumerate(entries, start=1):
        population = population.add(island, number, ratio, {"staging": staging})
    return population


@given(st.lists(st.tuples(ratios, cells), max_size=60))
def test_a_cell_keeps_its_fastest(entries: list[tuple[float, tuple[str, ...]]]) -> None:
    island = Island()
    for number, (ratio, cell) in enumerate(entries):
        island = island.add(Elite(ratio, number, cell))
    for cell in {cell for _, cell in entries}:
        best = sorted((ratio, number) for number, (ratio, known) in enumerate(entries) if known == cell)
        kept = [(elite.ratio, elite.candidate) for elite in island.cells[cell]]
        assert kept == best[:ELITES_PER_CELL]


def test_an_island_stays_bounded_when_every_candidate_opens_a_cell() -> None:
    island = Island()
    for number in range(3 * ELITES_PER_ISLAND):
        island = island.add(Elite(1 / (1 + number), number, (str(number),)))
    assert len(island.elites) == ELITES_PER_ISLAND
    assert island.elites[0].candidate == 3 * ELITES_PER_ISLAND - 1


def test_a_candidate_is_on_an_island_once() -> None:
    elite = Elite(0.5, 1, ("a", "b", "c"))
    assert Island().add(elite).add(elite).elites == (elite,)


def test_migration_sends_copies_of_the_fastest_round_the_ring() -> None:
    population = grown([(0, 0.1, "a"), (1, 0.2, "a"), (2, 0.3, "a")], islands=3).migrated()
    residents = [{elite.candidate for elite in island.elites} for island in population.islands]
    assert residents == [{0, 1, 3}, {0, 2, 1}, {0, 3, 2}]


def test_migration_comes_when_each_island_has_had_its_share_of_additions() -> None:
    one_short = [(0, 2.0, "a")] * (2 * ADDITIONS_PER_MIGRATION - 2)
    before = grown([(0, 0.5, "b"), *one_short], islands=2)
    assert 1 not in {elite.candidate for elite in before.islands[1].elites}
    after = before.add(0, 999, 3.0, {"staging": "c"})
    assert 1 in {elite.candidate for elite in after.islands[1].elites}


def test_adding_leaves_the_old_population_as_it_was() -> None:
    population = Population.of(2, 1.0, {})
    digest = population.digest()
    population.add(0, 1, 0.5, {})
    assert population.digest() == digest


@given(st.lists(st.tuples(st.integers(0, 1), ratios, st.sampled_from("abc")), max_size=30), st.integers(0, 99))
def test_draws_repeat_from_the_seed_and_stay_on_the_island(entries: list[Any], seed: int) -> None:
    population = grown(entries, islands=2)
    residents = {elite.candidate for elite in population.islands[1].elites}

    def draw() -> tuple[int, tuple[int, ...]]:
        rng = np.random.default_rng(seed)
        parent = population.parent(1, 0, rng)
        return parent, population.inspirations(1, parent, 2, rng)

    parent, inspirations = draw()
    assert (parent, inspirations) == draw()
    assert {parent, *inspirations} <= residents
    assert parent not in inspirations
    assert len(set(inspirations)) == len(inspirations) == min(2, len(residents) - 1)


def test_inspirations_come_from_other_cells_first() -> None:
    population = grown([(0, 0.5, "a"), (0, 0.6, "a"), (0, 0.7, "b"), (0, 0.8, "c")])
    for seed in range(50):
        drawn = population.inspirations(0, 1, 3, np.random.default_rng(seed))
        assert set(drawn) == {3, 4, 0}  # candidate 2 is the parent's own neighbour


def test_faster_candidates_and_the_champion_are_drawn_more_often() -> None:
    population = grown([(0, 0.5, "a"), (0, 0.7, "b"), (0, 0.9, "c")])
    drawn = Counter(population.parent(0, 77, np.random.default_rng(seed)) for seed in range(2000))
    assert drawn[1] > drawn[2] > drawn[3] > drawn[0] > 0
    assert 200 < drawn[77] < 400


def test_ranks_are_drawn_in_proportion_to_1_over_rank() -> None:
    rng = np.random.default_rng(1)
    drawn = Counter(by_rank("abc", rng) for _ in range(11_000))
    assert [drawn[letter] / 1000 for letter in "abc"] == pytest.approx([6, 3, 2], abs=0.3)


def test_automatic_islands_follow_the_budget() -> None:
    found = [island_count("auto", n) for n in (1, 60, 199, 200, 799, 800, 10_000)]
    assert found == [1, 1, 1, 2, 7, 8, 8]
    assert island_count(3, 10) == 3


def test_what_is_not_described_is_unknown() -> None:
    assert cell_of({"unit": "tensor", "colour": "red"}) == ("unknown", "tensor", "unknown")


@given(st.lists(st.tuples(ratios, st.sampled_from("ab")), min_size=1, max_size=20))
def test_the_digest_tells_populations_apart(entries: list[tuple[float, str]]) -> None:
    steps = [Population.of(1, 1.0, {})]
    for number, (ratio, staging) in enumerate(entries, start=1):
        steps.append(steps[-1].add(0, number, ratio, {"staging": staging}))
    assert len({population.digest() for population in steps}) == len(steps)


def test_partners_come_from_other_cells_of_the_island_first_then_of_the_next():
    population = grown([(0, 0.5, "a"), (0, 0.7, "b"), (1, 0.6, "c"), (1, 0.8, "b")], islands=2)
    home = cell_of({"staging": "a"})
    drawn = [population.partners(0, home, 2, np.random.default_rng(seed)) for seed in range(40)]
    assert {pair[0] for pair in drawn} == {0, 2}
    assert all(set(pair) == {0, 2} for pair in drawn)
    assert population.partners(0, home, 9, np.random.default_rng(0))[2] == 3
    assert len(population.partners(0, home, 9, np.random.default_rng(0))) == len(population.cells) - 1


def test_where_all_share_a_cell_there_is_no_partner():
    population = Population.of(3, 1.0, {})
    assert population.partners(0, cell_of({}), 1, np.random.default_rng(0)) == ()
    assert population.partners(0, None, 1, np.random.default_rng(0)) == (0,)
