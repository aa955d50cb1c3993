"""What `doctor --config` looks at: whether a config's run could begin, and what it lacks, before any money is spent.

No model is asked anything, and no key's value leaves this room.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator

from evo import workload
from evo.commands import servers
from evo.commands.findings import Finding
from evo.commands.servers import Server
from evo.config import Config, Model
from evo.errors import EvoError
from evo.records import Client, ModelFacts, Role
from mutators import models, providers

MOST_NAMES = 8
"""Models of a server that are named where the right one is not among them."""


def look(config: Config) -> Iterator[Finding]:
    """Yield what there is to say of a config: workload, device, and each model."""
    yield _workload(config)
    yield _device(config)
    known: list[tuple[Model, ModelFacts]] = []
    for index, model in enumerate(config.models):
        name = f"models.{index}"
        found = list(_model(name, model))
        yield from found
        if any(finding.state == "missing" for finding in found):
            continue
        if facts := _facts(models.client(model)):
            known.append((model, facts))
            yield _known(name, model, facts)
    yield from _budget(config, known)


def _workload(config: Config) -> Finding:
    try:
        whole = workload.load(config.workload)
    except EvoError as error:
        return Finding("workload", "missing", str(error), "`evo workloads` lists those that can be named")
    cases = ", ".join(f"{len(whole.role(role))} {role}" for role in Role)
    return Finding("workload", "ok", f"{whole.name}: {cases} cases")


def _device(config: Config) -> Finding:
    from evo.runner import cluster, devices

    name = devices.choose(config.device)
    if config.ray.address != cluster.LOCAL and devices.gpus_each(name):
        return Finding("device", "ok", f"{name}, on the cluster at {config.ray.address}; not looked at from here")
    try:
        device = devices.make(name).describe()
    except EvoError as error:
        return Finding("device", "missing", str(error), "name another with --device, e.g. --device host")
    return Finding("device", "ok", f"{name}: {device.name}")


def _model(name: str, model: Model) -> Iterator[Finding]:
    """Yield whether a model can be reached."""
    try:
        client = models.client(model)
        client.check()
    except EvoError as error:
        first, _, rest = str(error).partition("\n")
        way_on = rest.strip() or "mend this entry of `models` (docs/mutators.md), or run with --model none"
        yield Finding(name, "missing", first, way_on)
        return
    yield Finding(name, "ok", f"{model.name}: {_reached(model)}")
    server = servers.of(model, os.environ) if model.client == "litellm" else None
    if server is not None:
        yield _server(name, model, server)


def _reached(model: Model) -> str:
    """Say by what a model is reached, once its client has no complaint."""
    if models.is_manual(model):
        return "a person answers: `evo ask` writes the prompts, `evo tell` takes the answers"
    if model.command:
        return f"the program {shutil.which(model.command[0])}"
    if model.client != "litellm":
        return f"the client {model.client} lacks nothing"
    return "through litellm; " + "; ".join(_key(name) for name in (model.name, *model.fallbacks))


def _key(model: str) -> str:
    provider = providers.find(model)
    if provider is None:
        return f"which key {model} needs is not known here"
    held = [variable for variable in provider.keys if os.environ.get(variable)]
    if held:
        return f"{held[0]} is set"
    return "no key is set, and none is needed" if provider.keys else f"{provider.name} has its credentials elsewhere"


def _server(name: str, model: Model, server: Server) -> Finding:
    """Say whether a server that is named answers, and has the model."""
    lacking = servers.unreachable(server.url)
    if lacking:
        start = "start it with: ollama serve" if server.kind == "ollama" else "start the server, or mend its 'api_base'"
        return Finding(name, "missing", f"{model.name}: nothing answers at {server.url} ({lacking})", start)
    there = servers.models(server)
    if there is None:
        return Finding(name, "ok", f"{model.name}: {server.url} answers; which models it has, it does not say")
    if servers.has(server, there):
        return Finding(name, "ok", f"{model.name}: {server.url} answers and has the model")
    listed = ", ".join(there[:MOST_NAMES]) + (", …" if len(there) > MOST_NAMES else "")
    pull = f"get it with: ollama pull {server.model}; or " if server.kind == "ollama" else ""
    fix = f"{pull}give another 'name'; it has: {listed or 'none'}"
    return Finding(name, "missing", f"{model.name}: {server.url} answers, but has no model {server.model!r}", fix)


# --- what is known of a model --------------------------------------------------------------------------------------


def _facts(client: Client) -> ModelFacts | None:
    ask = getattr(client, "facts", None)
    found: ModelFacts | None = ask() if ask is not None else None
    return found


def _known(name: str, model: Model, facts: ModelFacts) -> Finding:
    window, output = facts.window_tokens, facts.output_tokens
    tools = [word for word, there in (("tools", facts.tools), ("structured output", facts.schema)) if there]
    parts = [
        f"prompts of {window:,} tokens" if window else "prompts of unknown length",
        f"replies of {output:,}" if output else "replies of unknown length",
        _price(facts),
        " and ".join(tools) if tools else "no tools",
    ]
    said = f"{model.name}: {', '.join(parts)}"
    if window:
        return Finding(name, "ok", said)
    return Finding(
        name, "optional", said, "prompts are kept short; give the model its 'window_tokens' if it reads more"
    )


def _price(facts: ModelFacts) -> str:
    if facts.input_usd is None or facts.output_usd is None:
        return "price unknown"
    if not facts.input_usd and not facts.output_usd:
        return "no cost"
    return f"${facts.input_usd * 1e6:.2f} and ${facts.output_usd * 1e6:.2f} for a million tokens in and out"


def _budget(config: Config, known: list[tuple[Model, ModelFacts]]) -> Iterator[Finding]:
    """Yield whether the budget limits what the models cost."""
    if not config.models:
        return
    blind = [model.name for model, facts in known if facts.input_usd is None or facts.output_usd is None]
    limits = {"budget.cost_usd": config.budget.cost_usd, "budget.tokens": config.budget.tokens}
    set_ones = ", ".join(f"{name} {value:g}" for name, value in limits.items() if value is not None)
    if blind and config.budget.tokens is None:
        fix = "set budget.tokens (--tokens), or input_usd_per_million and output_usd_per_million of the model"
        yield Finding("budget", "optional", f"nothing limits what {', '.join(blind)} costs: its price is unknown", fix)
    else:
        yield Finding("budget", "ok", set_ones or "the models have no limit")
