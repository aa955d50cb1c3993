"""The commands that list and show: `workloads`, `mutators`, `show`."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from evo import config as configs
from evo import plugins, workload
from evo.commands import folders, output
from evo.errors import EvoError
from evo.records import Role
from evo.report import graph, graph_picture, history, show, style


def workloads(*, as_json: bool) -> int:
    """List the workloads that can be named; return the exit code."""
    found = [_workload(name) for name in workload.names()]
    if as_json:
        output.data(found)
        return 0
    from rich.markup import escape

    for entry in found:
        cases = ", ".join(f"{count} {role}" for role, count in entry["cases"].items())
        output.show([f"[bold]{entry['name']}[/bold]  [dim]{cases}[/dim]\n  {escape(entry['description'])}"])
    output.show(["\n[dim]evo run --workload NAME searches; a folder of your own is named by its path[/dim]"])
    return 0


def mutators(*, as_json: bool) -> int:
    """List operators and model clients; return the exit code."""
    operators = [_plugin(plugins.OPERATORS, name) for name in plugins.available(plugins.OPERATORS)]
    for entry in operators:
        entry["offline"] = configs.traits(entry["name"]).offline
    clients = [_plugin(plugins.CLIENTS, name) for name in plugins.available(plugins.CLIENTS)]
    if as_json:
        output.data({"operators": operators, "clients": clients})
        return 0
    output.show(["[bold]Operators[/bold]  [dim](config key `operators`)[/dim]"])
    for entry in operators:
        how = "offline" if entry["offline"] else "asks a model"
        output.show([f"  [bold]{entry['name']}[/bold]  [dim]{how}[/dim]  {entry['summary']}"])
    output.show(["[bold]Model clients[/bold]  [dim](config key `models`, `client`)[/dim]"])
    for entry in clients:
        output.show([f"  [bold]{entry['name']}[/bold]  {entry['summary']}"])
    return 0


def show_run(name: str, candidate: int | None, results: Path, *, as_json: bool) -> int:
    """Show a run, or one of its candidates; return the exit code."""
    found = history.load(folders.find(name, results))
    if candidate is not None and candidate not in found.candidates:
        raise EvoError(f"{found.folder}: expected a candidate from 0 to {max(found.candidates)}, found {candidate}")
    if as_json:
        output.data(show.run_as_data(found) if candidate is None else show.candidate_as_data(found, candidate))
    else:
        output.show(show.run(found) if candidate is None else show.candidate(found, candidate))
    return 0


def show_graph(source: str, overrides: Sequence[str], out: Path | None, *, as_json: bool) -> int:
    """Show the data flow of a config, as text, as JSON, or in a picture; return the exit code.

    Args:
        source: a config's file, name or text.
        overrides: `key.path=value` each.
        out: where the picture goes; None draws none.
        as_json: write a JSON document instead of text.
    """
    found = graph.graph(configs.load(source, overrides))
    if out is not None:
        if out.suffix not in style.FORMATS:
            raise EvoError(f"{out}: expected a name that ends in {' or '.join(style.FORMATS)}, found {out.suffix!r}")
        style.write(graph_picture.picture(found, f"Data flow of {Path(source).name}"), out)
    if as_json:
        output.data({**graph.as_data(found), "file": out})
    elif out is not None:
        output.line(f"written: {out}")
    else:
        output.line("\n".join(graph.lines(found)))
    return 0


def _workload(name: str) -> dict[str, Any]:
    whole = workload.load(name)
    cases = {str(role): len(whole.role(role)) for role in Role}
    return {"name": whole.name, "description": " ".join(whole.description.split()), "cases": cases}


def _plugin(package: str, name: str) -> dict[str, Any]:
    documentation = inspect.getdoc(plugins.resolve(package, name)) or ""
    return {"name": name, "summary": documentation.split("\n\n")[0].replace("\n", " ")}
