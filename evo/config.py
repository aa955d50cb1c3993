"""The schema of a search config: what every YAML key means, its default, its limits.

Strict: an unknown key, a wrong type or an impossible value is a `ConfigError` that names file, key path, what was
expected and the nearest valid name. Nothing here reads a workload, a device or an environment variable.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Model(_Strict):
    """One model that LLM operators may use."""

    client: str = "litellm"
    name: str = "gpt-5-mini"
    reasoning_effort: Literal["minimal", "low", "medium", "high"] | None = "medium"
    weight: float = Field(1.0, gt=0)
    api_base: str | None = None
    timeout_s: float = Field(300.0, gt=0)
    attempts: int = Field(4, ge=1, le=20)


class Search(_Strict):
    """How parents are chosen."""

    islands: int | Literal["auto"] = "auto"
    in_flight: int = Field(8, ge=1, le=256)
    order: Literal["arrival", "fixed"] = "arrival"


class Tuning(_Strict):
    """Launch tuning: `trials` configurations per candidate at most; 0 turns it off."""

    trials: int = Field(24, ge=0, le=10000)


class Timing(_Strict):
    """How latencies are taken: untimed warm-up launches, timed launches, caches flushed between (`cold`)."""

    warmup: int = Field(10, ge=0)
    launches: int = Field(100, ge=5)
    cold: bool = True


class Budget(_Strict):
    """When a run stops; whichever limit is reached first. None is no limit.

    `evaluations` counts candidates that reach screening; `idle` is how many consecutive tasks may produce none.
    """

    evaluations: int = Field(60, ge=1)
    minutes: float | None = Field(30.0, gt=0)
    cost_usd: float | None = Field(2.0, gt=0)
    target_speedup: float | None = Field(None, gt=1)
    idle: int = Field(50, ge=1)


class Ray(_Strict):
    """Where Ray runs: `local` starts one on loopback for this run alone."""

    address: str = "local"


class Config(_Strict):
    """A whole search config; `workload` alone is enough."""

    workload: str
    device: str = "auto"
    seed: int = Field(0, ge=0)
    models: tuple[Model, ...] = (Model(),)
    operators: dict[str, float] = Field(default_factory=lambda: {"rewrite": 3.0, "rules": 1.0})
    search: Search = Search()
    tuning: Tuning = Tuning()
    timing: Timing = Timing()
    budget: Budget = Budget()
    ray: Ray = Ray()
