"""A search config: what every YAML key means, its default and limits, and how a file becomes a `Config`.

Strict: an unknown or inert key, a wrong type or an impossible value is a `ConfigError` that names file, line,
key path, what was expected, what was found and the nearest valid name. Nothing here reads a workload, a device or
an environment variable.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from evo import assets, document, invalid, plugins
from evo.document import Document, KeyPath
from evo.errors import ConfigError, PluginError, did_you_mean
from evo.records import Traits


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class Model(_Strict):
    """One model that LLM operators may use.

    `client` is a plug-in of `mutators/clients` (or a `.py` path), `name` is what the provider calls the model,
    `weight` is its share among the models, `api_base` is the URL of a server that speaks the provider's
    protocol, `timeout_s` bounds one call, and `attempts` is how often a failing call is made in all; after that the
    models named in `fallbacks` are asked, in order. `concurrency` is how many calls its provider gets at once.
    `window_tokens` (of a prompt), `output_tokens` (of a reply), `input_usd_per_million`, `output_usd_per_million` and
    `tools` (whether it can call functions) are for models of which litellm does not know them. `command` is the program
    with its arguments that the client of that name runs.
    """

    client: str = "litellm"
    name: str = "gpt-5-mini"
    reasoning_effort: Literal["minimal", "low", "medium", "high"] | None = "medium"
    weight: float = Field(default=1.0, gt=0)
    api_base: str | None = Field(default=None, pattern="^https?://")
    timeout_s: float = Field(default=300.0, gt=0)
    attempts: int = Field(default=4, ge=1, le=20)
    fallbacks: tuple[str, ...] = ()
    concurrency: int | None = Field(default=None, ge=1)
    window_tokens: int | None = Field(default=None, ge=1024)
    output_tokens: int | None = Field(default=None, ge=256)
    input_usd_per_million: float | None = Field(default=None, ge=0)
    output_usd_per_million: float | None = Field(default=None, ge=0)
    tools: bool | None = None
    command: tuple[str, ...] = ()


class Search(_Strict):
    """How parents are chosen.

    `islands: auto` is one per 100 evaluations, at most 8; `in_flight` is how many tasks run at once; with
    `order: fixed` task k sees exactly the records 0 … k − in_flight, so that a seed alone repeats a run. With `credit`
    operators and models that gain more for their cost are asked more often; `auto` is on above 200 evaluations.
    """

    islands: Annotated[int, Field(ge=1, le=64)] | Literal["auto"] = "auto"
    in_flight: int = Field(default=8, ge=1, le=256)
    order: Literal["arrival", "fixed"] = "arrival"
    credit: Literal["auto", "on", "off"] = "auto"


class Tools(_Strict):
    """What a model may look up while it thinks; `rounds` of calls before it has to answer, 0 for none."""

    rounds: int = Field(default=3, ge=0, le=20)


class Tuning(_Strict):
    """Launch tuning: `trials` configurations per candidate at most; 0 turns it off."""

    trials: int = Field(default=24, ge=0, le=10000)


class Timing(_Strict):
    """How latencies are taken: untimed warm-up launches, timed launches, caches flushed between (`cold`)."""

    warmup: int = Field(default=10, ge=0)
    launches: int = Field(default=100, ge=5)
    cold: bool = True


class Budget(_Strict):
    """When a run stops; whichever limit is reached first. None is no limit.

    `evaluations` counts candidates that reach screening; `tokens` are those of all model calls, for models whose price
    nobody knows; `idle` is how many tasks in a row may produce none.
    """

    evaluations: int = Field(default=60, ge=1)
    minutes: float | None = Field(default=30.0, gt=0)
    cost_usd: float | None = Field(default=2.0, gt=0)
    tokens: int | None = Field(default=None, ge=1)
    target_speedup: float | None = Field(default=None, gt=1)
    idle: int = Field(default=50, ge=1)


class Ray(_Strict):
    """Where Ray runs: `local` starts one on loopback for this run alone; else a running cluster's address."""

    address: str = Field(default="local", min_length=1)


Weight = Annotated[float, Field(ge=0)] | Literal["auto"]
"""How often an operator is drawn, relative to the others; `auto` for one that repairs: when a candidate has failed."""


OPERATORS: Mapping[str, Weight] = {
    "rewrite": 2.0,
    "edit": 3.0,
    "crossover": 1.0,
    "launch": 1.0,
    "explore": 1.0,
    "repair": "auto",
    "rules": 1.0,
}
"""Of a config that names none: mostly small steps, which are cheap and often right; offline rules cost nothing."""


class Config(_Strict):
    """A whole search config; `workload` alone is enough.

    `workload` is a name or a folder, `device` is `auto` or a plug-in of `evaluators`, `profile` says which right
    kernels Nsight Compute looks at (`elites`: those near the fastest so far), `operators` maps plug-ins of
    `mutators/operators` to their weights; one that repairs may have the weight `auto`: a candidate that failed gets a
    repair at once.
    """

    workload: str = Field(min_length=1)
    device: str = "auto"
    profile: Literal["none", "elites", "all"] = "none"
    seed: int = Field(default=0, ge=0)
    models: tuple[Model, ...] = (Model(),)
    operators: dict[str, Weight] = Field(default_factory=lambda: dict(OPERATORS))
    search: Search = Search()
    tools: Tools = Tools()
    tuning: Tuning = Tuning()
    timing: Timing = Timing()
    budget: Budget = Budget()
    ray: Ray = Ray()

    @property
    def used_operators(self) -> tuple[str, ...]:
        """Names of the operators that are not turned off, in the config's order."""
        return tuple(name for name, weight in self.operators.items() if weight == "auto" or weight > 0)


def load(source: str | Path, overrides: Sequence[str] = ()) -> Config:
    """Read a config strictly.

    Args:
        source: a YAML or JSON file, the name of a config that ships with the product, or the text itself.
        overrides: `key.path=value` each, the value in YAML; a list is reached by index (`models.0.name=x`).

    Raises:
        ConfigError: with one line for each thing that is wrong.
    """
    name, text = _read(source)
    read = document.parse(text, name)
    for override in overrides:
        read.override(override, _defaults())
    config = _validate(read)
    problems = [read.error(path, message) for path, message in _contradictions(config, read.data)]
    if problems:
        raise ConfigError("\n".join(problems))
    return _without_idle_defaults(config)


def dump(config: Config) -> str:
    """Return the whole config as YAML that `load` reads back to an equal one."""
    return yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False)


def names() -> tuple[str, ...]:
    """Return the names of the configs that ship with the product."""
    return tuple(sorted(path.stem for path in assets.configs_dir().glob("*.yaml")))


def overrides_for_model(name: str) -> tuple[str, ...]:
    """Return the overrides that `--model NAME` stands for; `none` is a search on offline rules alone."""
    if name == "none":
        return ("models=[]", "operators={rules: 1}", "budget.cost_usd=null")
    return (f"models=[{{name: {json.dumps(name)}}}]",)


def idle_profile(config: Config) -> str:
    """Say why the key `profile` would do nothing on the config's device, or return "" (also for `device: auto`)."""
    if config.profile == "none" or config.device == "auto":
        return ""
    if getattr(plugins.resolve(plugins.DEVICES, config.device), "replays", False):
        return ""
    return (
        f"would do nothing: Nsight Compute looks at NVIDIA GPUs, and the device is {config.device}; drop `profile` "
        "(--use-nsight), or take `device: cuda`"
    )


def traits(operator: str) -> Traits:
    """Return what the class of this operator says of itself.

    Raises:
        PluginError: there is no such operator, or it cannot be imported.
    """
    kind = plugins.resolve(plugins.OPERATORS, operator)
    said = {field.name: getattr(kind, field.name) for field in dataclasses.fields(Traits) if hasattr(kind, field.name)}
    return Traits(**said)


def arms(config: Config) -> int:
    """Return how many pairs of operator and model the search draws from; those of weight `auto` are not drawn."""
    drawn = [name for name in config.used_operators if config.operators[name] != "auto"]
    return sum(1 if traits(name).offline else len(config.models) for name in drawn)


# --- reading -------------------------------------------------------------------------------------------------


def _read(source: str | Path) -> tuple[str, str]:
    if isinstance(source, str) and ("\n" in source or ":" in source or source.strip().startswith("{")):
        return "config", source
    path = Path(source)
    shipped = assets.configs_dir() / f"{path.name.removesuffix('.yaml')}.yaml"
    for file in (path, shipped) if len(path.parts) == 1 else (path,):
        if file.is_file():
            return str(file), file.read_text(encoding="utf-8")
    raise ConfigError(f"{source}: no such file, and no config of that name{did_you_mean(str(source), names())}")


# --- checking ------------------------------------------------------------------------------------------------


def _defaults() -> dict[str, Any]:
    return {"models": [{}], "operators": dict(OPERATORS)}


def _validate(read: Document) -> Config:
    try:
        # Strict JSON mode takes a list for a tuple, and no other liberty.
        return Config.model_validate_json(json.dumps(read.data))
    except ValidationError as error:
        raise ConfigError("\n".join(invalid.sentences(error, read, _keys))) from error


def _keys(path: KeyPath) -> tuple[str, ...]:
    kinds: Mapping[str, type[_Strict]] = {
        "models": Model, "search": Search, "tools": Tools, "tuning": Tuning, "timing": Timing, "budget": Budget,
        "ray": Ray,
    }  # fmt: skip
    return tuple((kinds[str(path[0])] if path else Config).model_fields)


def _contradictions(config: Config, raw: Mapping[str, Any]) -> list[tuple[KeyPath, str]]:
    """Return what is well-formed but cannot be meant: names of nothing, and keys that would do nothing."""
    problems = _unknown_plugins(config)
    if problems:
        return problems
    problems = _bad_operators(config) or _idle_for_want_of_models(config, raw)
    if config.search.credit == "on" and arms(config) < 2:
        message = "would do nothing: there is one operator with one model; drop it, or name another"
        problems.append((("search", "credit"), message))
    idle = idle_profile(config)
    if idle:
        problems.append((("profile",), idle))
    islands, evaluations = config.search.islands, config.budget.evaluations
    if isinstance(islands, int) and islands > evaluations:
        message = f"expected at most budget.evaluations ({evaluations}), found {islands}: some would stay empty"
        problems.append((("search", "islands"), message))
    return problems


def _bad_operators(config: Config) -> list[tuple[KeyPath, str]]:
    """Return what keeps these operators from ever making, or repairing, a candidate."""
    said = {name: traits(name) for name in config.used_operators}
    misplaced = [name for name in said if config.operators[name] == "auto" and not said[name].repairs]
    if misplaced:
        message = 'expected a number of at least 0, found "auto", which is for operators that repair what failed'
        return [(("operators", name), message) for name in misplaced]
    if not any(not kind.repairs and kind.parents < 2 for kind in said.values()):
        message = "expected at least one operator with a weight above 0 that needs one kernel only, e.g. {rules: 1}"
        return [(("operators",), message)]
    writing = any(not kind.repairs and not kind.offline for kind in said.values())
    repairing = [name for name, kind in said.items() if kind.repairs and config.operators[name] != "auto"]
    if repairing and not writing:
        way = "drop it, or give an operator such as rewrite a weight"
        message = f"would do nothing: it repairs what a model wrote, and no other operator asks a model; {way}"
        return [(("operators", name), message) for name in repairing]
    return []


def _idle_for_want_of_models(config: Config, raw: Mapping[str, Any]) -> list[tuple[KeyPath, str]]:
    asking = _asking(config)
    if asking and not config.models:
        way = "name a model, or leave only offline operators ({rules: 1}; --model none does that)"
        return [(("operators", asking[0]), f"needs a model and `models` is empty; {way}")]
    if asking:
        return _idle_tools(config, raw)
    nobody = "would do nothing: no operator with a weight asks a model"
    given: list[tuple[KeyPath, Any, str]]
    given = [(("models",), raw.get("models"), "drop `models`, or give an operator such as rewrite a weight")]
    for section, key in (("budget", "cost_usd"), ("budget", "tokens"), ("tools", "rounds")):
        given.append(((section, key), dict(raw.get(section) or {}).get(key), "drop it"))
    return [(path, f"{nobody}; {way}") for path, value, way in given if value]


def _idle_tools(config: Config, raw: Mapping[str, Any]) -> list[tuple[KeyPath, str]]:
    if not dict(raw.get("tools") or {}).get("rounds") or not _without_tools(config):
        return []
    return [(("tools", "rounds"), "would do nothing: every model has `tools: false`; drop one of the two")]


def _without_tools(config: Config) -> bool:
    return all(model.tools is False for model in config.models)


def _unknown_plugins(config: Config) -> list[tuple[KeyPath, str]]:
    named: list[tuple[KeyPath, str, str]] = [
        *((("operators", name), plugins.OPERATORS, name) for name in config.operators),
        *((("models", index, "client"), plugins.CLIENTS, model.client) for index, model in enumerate(config.models)),
    ]
    if config.device != "auto":
        named.append((("device",), plugins.DEVICES, config.device))
    problems: list[tuple[KeyPath, str]] = []
    for path, package, name in named:
        try:
            plugins.resolve(package, name)
        except PluginError as error:
            problems.append((path, str(error)))
    return problems


def _asking(config: Config) -> list[str]:
    """Return the operators that cannot do without a model; one of weight `auto` is simply not used without any."""
    return [name for name in config.used_operators if config.operators[name] != "auto" and not traits(name).offline]


def _without_idle_defaults(config: Config) -> Config:
    """Drop the default model, its budget and tools where no operator asks one, so that a resolved config says so."""
    if _asking(config):
        return config.model_copy(update={"tools": Tools(rounds=0)}) if _without_tools(config) else config
    budget = config.budget.model_copy(update={"cost_usd": None})
    return config.model_copy(update={"models": (), "budget": budget, "tools": Tools(rounds=0)})
