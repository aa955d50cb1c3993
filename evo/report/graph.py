"""The data flow of a config, as nodes and edges: what is asked of whom, what is off, and where everything ends up.

A pure function of the config and of what its plug-ins say of themselves; how it is drawn is `graph_picture`'s affair.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from evo import bandit, plugins
from evo.config import Config, Model, arms, traits
from evo.population import island_count

GROUPS = {
    "workload": "Workload",
    "search": "Search",
    "operators": "Operators",
    "models": "Models",
    "tools": "Tools",
    "screen": "Screening",
    "evaluator": "Evaluator",
    "store": "Store",
    "report": "Report",
}
"""Group of nodes -> its title; the order is that in which a kernel passes them."""


@dataclass(frozen=True)
class Node:
    """One part of the flow.

    Attributes:
        id: unique, `group.name`.
        name: for people.
        note: what the config says of it, in brief.
        on: whether this config uses it.
        share: of the tasks or calls of its group; None where there is no choice.
    """

    id: str
    name: str
    note: str = ""
    on: bool = True
    share: float | None = None

    @property
    def group(self) -> str:
        """The group that it belongs to."""
        return self.id.partition(".")[0]


@dataclass(frozen=True)
class Edge:
    """What flows from one node to another; it is on where both ends are."""

    source: str
    target: str
    carries: str
    on: bool = True


@dataclass(frozen=True)
class Graph:
    """All nodes, in the order of `GROUPS`, and all edges."""

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]

    def members(self, group: str) -> tuple[Node, ...]:
        """Return the nodes of a group."""
        return tuple(node for node in self.nodes if node.group == group)

    def is_on(self, group: str) -> bool:
        """Whether any node of a group is."""
        return any(node.on for node in self.members(group))

    def flows(self) -> dict[tuple[str, str], Edge]:
        """Return one edge for each pair of groups that something flows between."""
        drawn: dict[tuple[str, str], Edge] = {}
        for edge in self.edges:
            pair = (edge.source.partition(".")[0], edge.target.partition(".")[0])
            if pair[0] != pair[1] and (pair not in drawn or edge.on > drawn[pair].on):
                drawn[pair] = edge
        return drawn


def graph(config: Config) -> Graph:
    """Return the data flow of a config.

    Raises:
        PluginError: it names an operator or a device that does not exist.
    """
    nodes = tuple(
        node
        for part in (_workload, _search, _operators, _models, _tools, _screen, _evaluator, _store, _report)
        for node in part(config)
    )
    on = {node.id: node.on for node in nodes}
    edges = (Edge(source, target, carries, on[source] and on[target]) for source, target, carries in _flows(config))
    return Graph(nodes, tuple(edges))


def as_data(found: Graph) -> dict[str, Any]:
    """Return a graph as plain data, for `--json`."""
    nodes = [{**asdict(node), "group": node.group} for node in found.nodes]
    return {"nodes": nodes, "edges": [asdict(edge) for edge in found.edges]}


def lines(found: Graph) -> Iterator[str]:
    """Yield a graph as text: each group with its nodes, and what flows from it to which other."""
    flows = found.flows()
    for group, title in GROUPS.items():
        yield title if found.is_on(group) else f"{title} (off)"
        for node in found.members(group):
            share = "" if node.share is None else f"{node.share:4.0%} "
            yield f"  {share}{node.name}{f': {node.note}' if node.note else ''}{'' if node.on else ' (off)'}"
        for (source, target), edge in flows.items():
            if source == group and edge.on:
                yield f"  → {GROUPS[target]}: {edge.carries}"


# --- nodes --------------------------------------------------------------------------------------------------------


def _workload(config: Config) -> Iterator[Node]:
    yield Node("workload.workload", config.workload or "from a description", f"seed {config.seed}")
    yield Node("workload.shown", "shown cases", "correctness, performance")
    yield Node("workload.hidden", "hidden cases, reference", "never shown")


def _search(config: Config) -> Iterator[Node]:
    search, budget = config.search, config.budget
    islands = island_count(search.islands, budget.evaluations)
    yield Node("search.population", "population", _count(islands, "island"))
    yield Node("search.tasks", "tasks", f"{search.in_flight} in flight, order {search.order}")
    credit = bandit.switched_on(search.credit, budget.evaluations) and arms(config) > 1
    yield Node("search.credit", "credit", "by gain and cost", credit)
    minutes = "" if budget.minutes is None else f", {budget.minutes:g} min"
    yield Node("search.budget", "budget", f"{budget.evaluations} evaluations{minutes}")
    money = [] if budget.cost_usd is None else [f"${budget.cost_usd:g}"]
    money += [] if budget.tokens is None else [f"{budget.tokens:,} tokens"]
    yield Node("search.money", "money", ", ".join(money), bool(money))


def _operators(config: Config) -> Iterator[Node]:
    drawn = {name: weight for name, weight in config.operators.items() if weight != "auto"}
    total = sum(drawn.values())
    for name, weight in config.operators.items():
        automatic, on = weight == "auto", weight == "auto" or weight > 0
        offline = traits(name).offline
        note = "offline" if offline else "after a failure" if automatic else "asks a model"
        share = None if automatic or not on or drawn[name] == total else drawn[name] / total
        yield Node(f"operators.{name}", _short(name), note, on and (offline or bool(config.models)), share)


def _models(config: Config) -> Iterator[Node]:
    total = sum(model.weight for model in config.models)
    for index, model in enumerate(config.models):
        share = None if len(config.models) == 1 else model.weight / total
        yield Node(f"models.{index}", model.name, _reached(model), share=share)
    if not config.models:
        yield Node("models.none", "none", "no operator asks one", on=False)


def _reached(model: Model) -> str:
    effort = f", {model.reasoning_effort}" if model.reasoning_effort and model.client == "litellm" else ""
    behind = f", then {', '.join(model.fallbacks)}" if model.fallbacks else ""
    return f"{_short(model.client)}{effort}{behind}"


def _tools(config: Config) -> Iterator[Node]:
    called = any(model.tools is not False for model in config.models) and config.tools.rounds > 0
    yield Node("tools.compile", "compile", "resources, errors", called)
    yield Node("tools.disassemble", "disassemble", "SASS or PTX", called)
    yield Node("tools.counters", "counters", "Nsight Compute", called and config.profile != "none")


def _screen(config: Config) -> Iterator[Node]:
    screened = config.device == "auto" or getattr(_device(config), "prescreen", True)
    yield Node("screen.check", "host checker", "races, bounds, barriers", bool(screened))
    yield Node("screen.twins", "twins", "are judged once")


def _evaluator(config: Config) -> Iterator[Node]:
    tuning, timing = config.tuning, config.timing
    yield Node("evaluator.device", "device", _where(config))
    yield Node("evaluator.validate", "validate", "every case, by the reference")
    yield Node("evaluator.tune", "tune", f"{_count(tuning.trials, 'trial')} at most", tuning.trials > 0)
    caches = "cold caches" if timing.cold else "warm caches"
    yield Node("evaluator.time", "time", f"{timing.launches} launches after {timing.warmup}, {caches}")
    profiled = {"none": "", "elites": "of good kernels", "all": "of right kernels"}[config.profile]
    yield Node("evaluator.profile", "profile", profiled, config.profile != "none")
    yield Node("evaluator.compare", "compare", "challenger beside champion")


def _where(config: Config) -> str:
    if config.device == "auto":
        return "auto: the GPU, else this CPU"
    return _short(config.device) + ("" if config.ray.address == "local" else f" on {config.ray.address}")


def _store(config: Config) -> Iterator[Node]:
    yield Node("store.database", "evo.db", "all of it, before it is used")


def _report(config: Config) -> Iterator[Node]:
    yield Node("report.kernel", "best.cu")
    yield Node("report.summary", "summary.json")
    yield Node("report.pictures", "pictures")


# --- edges --------------------------------------------------------------------------------------------------------


def _flows(config: Config) -> Iterator[tuple[str, str, str]]:
    """Yield (source, target, what flows) of all that there is, on or off."""
    models = [f"models.{index}" for index in range(len(config.models))] or ["models.none"]
    for name in config.operators:
        operator = f"operators.{name}"
        yield "workload.shown", operator, "signature, shown cases"
        yield "search.tasks", operator, "parents, what was tried"
        if not traits(name).offline:
            yield from ((operator, model, "prompt") for model in models)
            yield from ((model, operator, "reply") for model in models)
        yield operator, "screen.check", "kernel"
    for model in models:
        for tool in ("compile", "disassemble", "counters"):
            yield model, f"tools.{tool}", _count(config.tools.rounds, "round")
            yield f"tools.{tool}", model, "results"
    yield "screen.check", "screen.twins", "kernel"
    yield "screen.twins", "evaluator.validate", "kernel"
    yield "workload.hidden", "evaluator.validate", "inputs and reference of all cases"
    yield "evaluator.device", "evaluator.validate", "outputs"
    yield "evaluator.validate", "evaluator.tune", "right kernel"
    yield "evaluator.tune", "evaluator.time", "launch configuration"
    yield "evaluator.time", "evaluator.profile", "good kernel"
    yield "search.tasks", "evaluator.compare", "challenger, champion"
    yield "evaluator.time", "store.database", "verdict, latencies"
    yield "evaluator.profile", "store.database", "counters"
    yield "evaluator.compare", "store.database", "comparison"
    yield "store.database", "search.population", "outcomes, once they are stored"
    for part in ("kernel", "summary", "pictures"):
        yield "store.database", f"report.{part}", "the run"


def _device(config: Config) -> Any:
    return plugins.resolve(plugins.DEVICES, config.device)


def _short(name: str) -> str:
    """Return a plug-in's name; of one in a file, the file's."""
    return name.rpartition("/")[2]


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
