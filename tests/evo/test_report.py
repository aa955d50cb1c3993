from __future__ import annotations

import dataclasses
import io
import json
import math
from pathlib import Path

import pytest
from rich.console import Console

from evo.records import REFERENCE_ID, Comparison, Mutate, Roofline, Status
from evo.report import heatmap, live, progress, show, style, summary, text
from evo.report.history import History
from tests.support import histories

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture(scope="module")
def search() -> History:
    return histories.history(20)


def finale(found: History, ratio: float = 0.4) -> History:
    cases = {"square 256": ratio, "tall 1024": ratio, "wide 1024": ratio}
    comparison = Comparison(
        found.champion, 0, Status.OK, ratio, ratio * 0.95, ratio * 1.05, 0.95, 14, True, cases
    )  # fmt: skip
    return dataclasses.replace(found, meta=dataclasses.replace(found.meta, finale=comparison))


def written(parts: object) -> str:
    stream = io.StringIO()
    terminal = Console(file=stream, width=160, highlight=False)
    for part in parts:  # type: ignore[attr-defined]
        terminal.print(part)
    return stream.getvalue()


# --- history and summary -------------------------------------------------------------------------------------------


def test_the_champion_is_the_winner_of_the_last_won_comparison(search):
    won = [comparison.challenger for comparison in search.comparisons.values() if comparison.promoted]
    assert search.champion == won[-1]
    assert search.champions == (0, *won)


def test_before_the_finale_the_speedup_is_the_product_of_the_won_comparisons(search):
    product = math.prod(1 / comparison.ratio for comparison in search.comparisons.values())
    speedup = search.speedup()
    assert speedup.factor == pytest.approx(product)
    assert speedup.low < speedup.factor < speedup.high
    assert "product of" in speedup.how


def test_the_finale_alone_decides_the_speedup(search):
    speedup = finale(search, 0.4).speedup()
    assert (speedup.factor, speedup.confidence) == (pytest.approx(2.5), 0.95)
    assert speedup.low == pytest.approx(1 / (0.4 * 1.05))
    assert speedup.cases["tall 1024"] == pytest.approx(2.5)


def test_a_finale_of_another_champion_does_not_count(search):
    older = dataclasses.replace(finale(search).meta.finale, challenger=search.champions[1])
    meta = dataclasses.replace(search.meta, finale=older)
    assert "product of" in dataclasses.replace(search, meta=meta).speedup().how


def test_the_summary_survives_json_with_initial_and_best_latencies_by_case(search):
    content = json.loads(summary.as_json(summary.summarise(finale(search))))
    assert content["initial"]["latencies"]["square 256"]["median_us"] == 1000
    assert content["best"]["candidate"] == search.champion
    assert content["speedup"]["factor"] == pytest.approx(2.5)
    assert content["evaluations"] == 20
    assert sum(content["statuses"].values()) == 20
    assert content["cost"]["cost_usd"] == 0.12
    assert content["versions"] == {"kernel-evo": "0.1.0"}
    assert content["seed"] == 1


@pytest.mark.parametrize(
    ("change", "doubt"),
    [
        (lambda found: found, "CPU-fast is not GPU-fast"),
        (lambda found: found, "was not measured again"),
        (lambda found: finale(found, 0.99), "contains 1"),
        (lambda found: dataclasses.replace(found, comparisons={}), "no kernel was proved faster"),
    ],
)
def test_doubts_are_told(search, change, doubt):
    assert any(doubt in told for told in summary.summarise(change(search)).doubts)


def beside(found: History, comparison: Comparison | None = None, status: Status = Status.OK) -> History:
    """The run with a workload that has a reference.cu, and with what became of it."""
    workload = dataclasses.replace(found.meta.workload, reference_kernel="// to beat")
    verdict = histories.verdict(REFERENCE_ID, status, (0.5, 0.5, 0.5))
    meta = dataclasses.replace(found.meta, workload=workload, reference=verdict, reference_finale=comparison)
    return dataclasses.replace(found, meta=meta)


def compared(found: History, ratio: float) -> Comparison:
    return dataclasses.replace(finale(found, ratio).meta.finale, champion=REFERENCE_ID)


def beside_vendor(found: History, comparison: Comparison) -> History:
    """The run with its champion measured beside baseline.py."""
    return dataclasses.replace(found, meta=dataclasses.replace(found.meta, baseline_finale=comparison))


def test_the_vendors_library_is_told_of_also_where_it_is_faster(search):
    assert summary.summarise(search).baseline is None
    slower = beside_vendor(finale(search, 0.4), compared(search, 1.6))
    found = summary.summarise(slower)
    assert found.baseline.speedup.factor == pytest.approx(1 / 1.6)
    assert any("vendor's library" in doubt for doubt in found.doubts)
    assert "baseline.py, the vendor's library: best is 0.6" in written(text.final(slower))
    broken = dataclasses.replace(compared(search, 1.6), ratio=None, status=Status.LAUNCH_ERROR, message="no CuPy")
    found = summary.summarise(beside_vendor(finale(search, 0.4), broken))
    assert found.baseline.speedup is None
    assert "launch error: no CuPy" in found.baseline.message


def test_without_a_reference_kernel_nothing_is_said_of_one(search):
    assert summary.summarise(search).reference is None
    assert "reference.cu" not in written(text.final(search))


def test_the_speedup_over_the_reference_is_that_of_its_own_comparison(search):
    found = summary.summarise(beside(finale(search, 0.4), compared(search, 0.8)))
    assert found.speedup.factor == pytest.approx(2.5)
    assert found.reference.speedup.factor == pytest.approx(1.25)
    assert found.reference.latencies["tall 1024"].median_us == 500
    assert found.reference.message == ""


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda found: dataclasses.replace(found, reference=None, reference_finale=None), "not measured yet"),
        (lambda found: dataclasses.replace(found, reference_finale=None), "not yet compared with the best kernel"),
        (
            lambda found: dataclasses.replace(
                found, reference_finale=dataclasses.replace(found.reference_finale, challenger=0)
            ),
            "not yet compared with the best kernel",
        ),
        (
            lambda found: dataclasses.replace(
                found,
                reference_finale=dataclasses.replace(
                    found.reference_finale, ratio=None, status=Status.CRASH, message="gone"
                ),
            ),
            "the comparison failed: crash: gone",
        ),
    ],
)
def test_a_figure_of_the_reference_that_is_missing_is_explained(search, change, message):
    whole = beside(search, compared(search, 0.8))
    found = dataclasses.replace(whole, meta=change(whole.meta))
    reference = summary.summarise(found).reference
    assert reference.speedup is None
    assert reference.message.startswith(message)
    assert message in written(text.final(found))


def test_a_reference_that_is_wrong_is_told_with_its_reason(search):
    found = beside(search, status=Status.WRONG_ANSWER)
    assert "reference.cu: not compared: wrong answer at validate: kernel -1: wrong_answer" in written(text.final(found))


def test_an_interval_over_the_reference_that_contains_1_is_a_doubt(search):
    doubt = "over reference.cu contains 1"
    close, clear = (beside(search, compared(search, ratio)) for ratio in (0.99, 1.5))
    assert any(doubt in told for told in summary.summarise(close).doubts)
    assert not any(doubt in told for told in summary.summarise(clear).doubts)


def test_the_table_and_one_sentence_show_the_reference(search):
    found = beside(finale(search, 0.4), compared(search, 0.8))
    shown = written(text.final(found))
    assert "reference.cu µs" in shown
    assert "reference.cu: 500 µs, best is 1.25× (1.19×–1.32×) as fast" in shown


def on_a_gpu(found: History) -> History:
    """The same search with a roofline for every timed case."""
    roofline = Roofline(100.0, "memory", 0.614, 0.614, 0.02, "fp32")
    evaluations = {
        number: dataclasses.replace(
            verdict,
            cases=tuple(dataclasses.replace(r, roofline=roofline) if r.latency else r for r in verdict.cases),
        )
        for number, verdict in found.evaluations.items()
    }
    return dataclasses.replace(found, evaluations=evaluations)


def test_on_a_gpu_the_efficiency_stands_in_table_and_summary(search):
    found = on_a_gpu(search)
    assert "of peak" in written(text.final(found))
    assert "61 % memory" in written(text.final(found))
    assert "61 % memory" in written(show.candidate(found, found.champion))
    told = json.loads(summary.as_json(summary.summarise(found)))["best"]["rooflines"]["tall 1024"]
    assert (told["binds"], told["efficiency"]) == ("memory", 0.614)


def test_on_the_host_there_is_no_word_of_it(search):
    assert "of peak" not in written(text.final(search))
    assert json.loads(summary.as_json(summary.summarise(search)))["best"]["rooflines"] == {}


def test_a_gpu_raises_no_doubt_about_a_cpu():
    assert summary.CPU_IS_NOT_GPU not in summary.summarise(histories.history(device="cuda")).doubts


# --- text ----------------------------------------------------------------------------------------------------------


def test_the_final_text_holds_diff_table_doubts_and_three_commands(search):
    shown = written(text.final(finale(search)))
    assert "-    int tile = 0;" in shown
    assert f"+    int tile = {search.champion};" in shown
    assert "tall 1024" in shown
    assert "2.5× as fast (95.0% interval 2.4× to 2.6×; interleaved comparison, 14 blocks)" in shown
    assert "CPU-fast is not GPU-fast" in shown
    for command in ("evo show", "evo verify", "evo resume"):
        assert f"{command} results/run-001" in shown


def test_a_run_that_found_nothing_says_so(search):
    nothing = dataclasses.replace(search, comparisons={})
    assert "No kernel was proved faster" in written(text.final(nothing))


def test_words_in_brackets_of_a_kernel_are_shown_as_they_are(search):
    odd = dataclasses.replace(search.candidates[1], note="use C[i] and [bold]")
    shown = written(show.candidate(dataclasses.replace(search, candidates={**search.candidates, 1: odd}), 1))
    assert "use C[i] and [bold]" in shown


def test_show_run_holds_the_lineage_from_the_initial_kernel_to_the_champion(search):
    shown = written([show.lineage(search)])
    path = [search.champion]
    while search.candidates[path[-1]].parents:
        path.append(search.candidates[path[-1]].parents[0])
    positions = [shown.index(f" {number} r" if number else "0 initial") for number in reversed(path)]
    assert positions == sorted(positions)


def test_show_candidate_holds_verdict_feedback_and_source(search):
    failed = next(number for number, found in search.evaluations.items() if found.status is not Status.OK)
    shown = written(show.candidate(search, failed))
    assert search.evaluations[failed].message in shown
    assert f"int tile = {failed};" in shown
    assert "expected 1, found 2" in shown


def test_a_candidate_is_told_to_machines_with_its_evaluation(search):
    told = show.candidate_as_data(search, search.champion)
    assert told["evaluation"]["status"] is Status.OK
    assert told["comparisons"][0]["challenger"] == search.champion


@pytest.mark.parametrize(
    ("factor", "words"), [(1.0, "1.00×"), (1.049, "1.05×"), (3.21, "3.2×"), (41.4, "41×"), (0.5, "0.50×")]
)
def test_factors_have_the_digits_that_matter(factor, words):
    assert style.times(factor) == words


# --- pictures ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("picture", [heatmap, progress])
@pytest.mark.parametrize("count", [0, 1, 20, 120])
def test_pictures_are_drawn_for_any_length_of_run(tmp_path, picture, count):
    png, svg = picture.draw(histories.history(count), tmp_path / "picture")
    assert png.read_bytes().startswith(PNG)
    assert "</svg>" in svg.read_text()


def test_the_same_run_gives_the_same_picture(tmp_path, search):
    first, second = (progress.draw(search, tmp_path / name)[1].read_text() for name in ("one", "two"))
    assert first == second


def test_the_heatmap_names_every_case_and_every_kind_of_failure(tmp_path, search):
    svg = heatmap.draw(search, tmp_path / "picture")[1].read_text()
    for case in histories.CASES:
        assert case.name in svg
    for status in set(search.statuses) - {Status.OK}:
        assert style.SHORT[status] in svg


def test_the_heatmap_of_a_long_run_keeps_every_champion():
    found = histories.history(200)
    columns = heatmap._columns(found)
    assert len(columns) == heatmap.MOST_COLUMNS
    assert set(found.champions) <= set(columns)


def test_progress_counts_evaluations_and_not_duplicates(search):
    again = search.events[-1].outcome
    duplicate = dataclasses.replace(again, status=Status.DUPLICATE, candidate=1, promoted=False)
    event = dataclasses.replace(search.events[-1], task=Mutate(999, "rules", -1, (0,)), outcome=duplicate)
    points, _ = progress.trace(dataclasses.replace(search, events=(*search.events, event)))
    assert [point.position for point in points] == list(range(1, 21))


def test_the_line_of_progress_rises_only_when_a_comparison_was_won(search):
    _, crowns = progress.trace(search)
    assert [crown.candidate for crown in crowns] == list(search.champions)


# --- live ----------------------------------------------------------------------------------------------------------


def tell(found: History, take: object) -> None:
    """Tell the events of a run as the runner does."""
    meta = found.meta
    take("started", folder=Path("results/run-001"), workload=meta.workload, device=meta.device, config=meta.config)
    take("initial", candidate=found.candidates[0], evaluation=found.evaluations[0])
    for event in found.events[1:]:
        take("asked", task=event.task)
        if isinstance(event.task, Mutate):
            number = event.outcome.candidate
            take("evaluated", candidate=found.candidates[number], evaluation=found.evaluations[number])
        else:
            take("compared", comparison=found.comparisons[event.task.id])
            take("champion", candidate=event.task.challenger, ratio=0.5)


def test_progress_ends_where_the_run_stands(search):
    state = live.Progress(clock=lambda: 0.0)
    tell(search, lambda kind, **facts: state.take(kind, facts))
    assert (state.evaluated, state.champion) == (20, search.champion)
    assert state.best == pytest.approx(search.factor(search.champion))
    assert dict(state.counts) == {str(status): count for status, count in search.statuses.items()}
    assert not state.open
    assert state.comparing == 0


def test_a_resumed_run_begins_where_the_last_sitting_ended(search):
    state = live.Progress(clock=lambda: 0.0)
    state.recall(search)
    assert (state.evaluated, state.champion, state.cost_usd) == (20, search.champion, 0.12)
    assert state.best == pytest.approx(search.factor(search.champion))


def test_plain_lines_tell_every_verdict_with_its_reason(search):
    lines: list[str] = []
    observer = live.PlainLines(lines.append, live.Progress(clock=lambda: 0.0))
    tell(search, observer.event)
    assert "CPU-fast is not GPU-fast" in lines[0]
    failed = [line for line in lines if "wrong answer" in line]
    assert failed
    assert all(": wrong answer – kernel" in line for line in failed)
    assert any("proved faster" in line for line in lines)


def test_json_lines_are_one_object_an_event(search):
    lines: list[str] = []
    tell(search, live.JsonLines(lines.append).event)
    told = [json.loads(line) for line in lines]
    assert told[0]["event"] == "started"
    assert told[0]["config"]["workload"] == "copy"
    assert {"evaluated", "compared", "champion"} <= {entry["event"] for entry in told}


def test_the_display_tells_what_became_of_the_reference(search):
    state = live.Progress(clock=lambda: 0.0)
    right, wrong = (histories.verdict(REFERENCE_ID, status, (0.5,) * 3) for status in (Status.OK, Status.WRONG_ANSWER))
    assert state.take("reference", {"evaluation": right}) == "reference.cu: ok, 500 µs"
    assert state.take("reference", {"evaluation": wrong}).startswith("reference.cu: wrong answer – kernel -1")
    line = state.take("reference_compared", {"comparison": compared(search, 0.8)})
    assert line == f"kernel {search.champion} measured beside reference.cu: 1.25×"


def test_an_event_that_the_display_does_not_know_is_passed_over():
    assert live.Progress(clock=lambda: 0.0).take("news_of_tomorrow", {"x": 1}) is None


def test_the_panel_shows_progress_counts_and_the_device(search):
    stream = io.StringIO()
    terminal = Console(file=stream, width=120, force_terminal=True)
    panel = live.Panel(terminal, live.Progress(clock=lambda: 0.0))
    tell(search, panel.event)
    terminal.print(panel._draw())
    shown = stream.getvalue()
    assert "20/60 · 0 in flight" in shown
    assert f"kernel {search.champion}" in shown
    assert "CPU-fast is not GPU-fast" in shown
