"""The data flow of a config: nodes and edges as data, as text, and in a picture that says the same."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from evo import cli, config
from evo.report import graph, graph_picture
from tests.support import runs


def evo(*arguments: object) -> Result:
    return CliRunner().invoke(cli.app, [str(argument) for argument in arguments])


def made(**changes: Any) -> graph.Graph:
    return graph.graph(config.load(json.dumps({"workload": "gemm", **changes})))


def node(found: graph.Graph, name: str) -> graph.Node:
    return next(known for known in found.nodes if known.id == name)


def on(found: graph.Graph) -> set[tuple[str, str]]:
    return {(edge.source, edge.target) for edge in found.edges if edge.on}


# --- as data ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", config.names())
def test_every_config_that_ships_has_a_whole_graph(name: str) -> None:
    loaded = config.load(name)
    found = graph.graph(loaded)
    ids = [known.id for known in found.nodes]
    assert len(set(ids)) == len(ids)
    assert {known.group for known in found.nodes} == set(graph.GROUPS)
    assert {end for edge in found.edges for end in (edge.source, edge.target)} <= set(ids)
    assert all(edge.on <= (node(found, edge.source).on and node(found, edge.target).on) for edge in found.edges)
    assert graph.graph(loaded) == found
    for operator in loaded.used_operators:
        assert node(found, f"operators.{operator}").on


def test_a_kernel_passes_from_the_workload_to_the_report() -> None:
    reached, flows = {"workload"}, made().flows()
    for _ in graph.GROUPS:
        reached |= {target for (source, target), edge in flows.items() if edge.on and source in reached}
    assert reached == set(graph.GROUPS)
    assert ("store", "search") in flows


def test_no_model_is_reached_by_hidden_cases_or_the_reference() -> None:
    assert {target for source, target in on(made()) if source == "workload.hidden"} == {"evaluator.validate"}


def test_shares_are_those_of_the_weights() -> None:
    models = [{"name": "a", "weight": 3}, {"name": "b", "weight": 1}]
    found = made(operators={"rewrite": 3, "rules": 1, "repair": "auto", "edit": 0}, models=models)
    shares = {known.name: known.share for known in found.members("operators")}
    assert shares == {"rewrite": 0.75, "rules": 0.25, "repair": None, "edit": None}
    assert not node(found, "operators.edit").on
    assert [known.share for known in found.members("models")] == [0.75, 0.25]
    assert node(found, "operators.repair").note == "after a failure"


def test_offline_operators_ask_no_model() -> None:
    found = made(operators={"rewrite": 1, "rules": 1})
    assert ("operators.rewrite", "models.0") in on(found)
    assert ("operators.rules", "models.0") not in on(found)
    alone = made(operators={"rules": 1})
    assert not alone.is_on("models")
    assert not alone.is_on("tools")
    assert ("operators.rules", "screen.check") in on(alone)


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"tools": {"rounds": 0}}, "tools.compile"),
        ({"models": [{"name": "m", "tools": False}]}, "tools.compile"),
        ({}, "tools.counters"),
        ({"tuning": {"trials": 0}}, "evaluator.tune"),
        ({}, "evaluator.profile"),
        ({"search": {"credit": "off"}}, "search.credit"),
        ({"budget": {"cost_usd": None}}, "search.money"),
    ],
)
def test_what_a_config_turns_off_is_off(changes: dict[str, Any], name: str) -> None:
    assert not node(made(**changes), name).on


@pytest.mark.parametrize(
    ("changes", "name", "note"),
    [
        ({"device": "cuda", "profile": "elites"}, "evaluator.profile", "of good kernels"),
        ({"device": "cuda", "profile": "all"}, "tools.counters", "Nsight Compute"),
        ({"search": {"credit": "on"}}, "search.credit", "by gain and cost"),
        ({"budget": {"evaluations": 400}}, "search.population", "4 islands"),
        ({"budget": {"cost_usd": 3, "tokens": 5000}}, "search.money", "$3, 5,000 tokens"),
        ({"device": "host"}, "evaluator.device", "host"),
    ],
)
def test_what_a_config_turns_on_is_on(changes: dict[str, Any], name: str, note: str) -> None:
    found = node(made(**changes), name)
    assert (found.on, found.note) == (True, note)


def test_a_device_whose_kernels_need_no_checker_is_not_screened() -> None:
    device = str(Path(__file__).resolve().parents[1] / "support" / "instant_device.py")
    found = graph.graph(runs.config(device=device))
    assert not node(found, "screen.check").on
    assert node(found, "evaluator.device").note == "instant_device.py"


# --- as a picture -------------------------------------------------------------------------------------------------


def _crowded() -> graph.Graph:
    models = [{"name": "openrouter/meta-llama/llama-3.3-70b-instruct-with-a-long-name", "weight": w} for w in (1, 2, 3)]
    return made(models=models)


@pytest.mark.parametrize("found", [made(), made(operators={"rules": 1}), _crowded()])
def test_panels_stand_apart_and_within_the_picture(found: graph.Graph) -> None:
    panels, height = graph_picture.layout(found)
    assert set(panels) == set(graph.GROUPS)
    boxes = list(panels.values())
    for number, one in enumerate(boxes):
        assert one.x > 0 < one.y
        assert one.right < graph_picture.WIDTH
        assert one.top < height
        for other in boxes[number + 1 :]:
            assert one.right < other.x or other.right < one.x or one.top < other.y or other.top < one.y


def test_the_picture_is_the_same_each_time_and_names_what_is_in_it(tmp_path: Path) -> None:
    found = made()
    for name in ("one", "two"):
        graph_picture.draw(found, "Data flow of gemm", tmp_path / name)
    text = (tmp_path / "one.svg").read_text()
    assert text == (tmp_path / "two.svg").read_text()
    for words in (
        "Data flow of gemm",
        "crossover",
        "gpt-5-mini",
        "outcomes, once they are stored",
        *graph.GROUPS.values(),
    ):
        assert words in text
    assert (tmp_path / "one.png").read_bytes()[:4] == b"\x89PNG"


# --- the command --------------------------------------------------------------------------------------------------


def test_a_graph_is_shown_as_text_and_as_json() -> None:
    text = evo("show", "--graph", "gemm").stdout
    assert re.search(r"^Operators\n  +22% rewrite: asks a model$", text, re.MULTILINE)
    assert "  → Models: prompt\n" in text
    told = json.loads(evo("show", "--graph", "gemm", "--json", "--set", "tuning.trials=0").stdout)
    assert {"id": "evaluator.tune", "on": False}.items() <= next(
        known for known in told["nodes"] if known["id"] == "evaluator.tune"
    ).items()
    assert told["file"] is None


@pytest.mark.parametrize("name", ["flow.svg", "flow.png"])
def test_a_graph_is_drawn_into_a_file(tmp_path: Path, name: str) -> None:
    done = evo("show", "--graph", "gemm", "--out", tmp_path / name)
    assert done.stdout == f"written: {tmp_path / name}\n"
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "name a run"),
        (("latest", "--graph", "gemm"), "name a run"),
        (("latest", "--out", "flow.svg"), "go with --graph"),
        (("--graph", "gemm", "--out", "flow.gif"), "ends in .png or .svg"),
    ],
)
def test_what_cannot_be_meant_is_told(arguments: tuple[str, ...], words: str) -> None:
    done = evo("show", *arguments)
    assert done.exit_code == 2
    assert words in " ".join(done.stderr.split())
