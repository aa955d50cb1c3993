from __future__ import annotations

from pathlib import Path

import pytest

from evo import assets
from evo import config as configs
from evo.config import Model
from evo.errors import ConfigError, MutatorError, PluginError
from mutators import models, providers
from mutators.clients.litellm import LiteLLM

ECHO = """
from __future__ import annotations
from dataclasses import dataclass
from evo.records import ModelReply, ModelRequest

@dataclass(frozen=True)
class Echo:
    name: str = "echo"
    def check(self) -> None: ...
    async def complete(self, request: ModelRequest) -> ModelReply:
        return ModelReply("ok", text=request.messages[-1].content)
"""


@pytest.fixture
def echo(tmp_path: Path) -> str:
    path = tmp_path / "echo.py"
    path.write_text(ECHO)
    return str(path)


def test_a_models_keys_become_the_clients_fields() -> None:
    model = Model(
        name="groq/x", reasoning_effort="high", api_base="http://h:1/v1", timeout_s=7.0, attempts=2, weight=3.0
    )
    assert models.client(model) == LiteLLM("groq/x", "high", "http://h:1/v1", 7.0, 2)


def test_the_defaults_of_config_and_client_are_the_same() -> None:
    assert models.client(Model()) == LiteLLM()


def test_a_client_of_somebody_elses_gets_the_fields_that_it_has(echo: str) -> None:
    made = models.client(Model(client=echo, name="mine"))
    assert getattr(made, "name", None) == "mine"


def test_defaults_that_are_written_out_are_no_mistake(echo: str) -> None:
    written_out = Model(client=echo).model_dump()
    assert models.client(Model(**written_out))


def test_a_key_that_would_do_nothing_is_refused(echo: str) -> None:
    with pytest.raises(ConfigError, match=r"has no option 'api_base'.*Its options are: name"):
        models.client(Model(client=echo, api_base="http://h:1/v1"))


def test_a_misspelt_client_is_told_the_nearest() -> None:
    with pytest.raises(PluginError, match="did you mean 'litellm'"):
        models.client(Model(client="litelm"))


def test_every_model_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-x")
    monkeypatch.delenv("GROQ_API_KEY", raising=False)
    models.check([Model()])
    with pytest.raises(MutatorError, match="GROQ_API_KEY"):
        models.check([Model(), Model(name="groq/x")])


# --- the configs that ship ----------------------------------------------------------------------------------------

MISSING = {
    "gemm": "OPENAI_API_KEY",
    "gemm-anthropic": "ANTHROPIC_API_KEY",
    "gemm-gemini": "GEMINI_API_KEY",
    "gemm-azure": "AZURE_API_KEY",
    "gemm-openrouter": "OPENROUTER_API_KEY",
    "gemm-agent": "no program 'claude' on PATH",
    "gemm-vllm": "",
    "gemm-ollama": "",
    "gemm-manual": "",
}


@pytest.mark.parametrize(("name", "missing"), MISSING.items())
def test_the_config_of_each_provider_says_what_is_missing(
    name: str, missing: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    config = configs.load(name)
    for model in config.models:
        provider = providers.find(model.name)
        for variable in (*provider.keys, *provider.bases) if provider else ():
            monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    if not missing:
        models.check(config.models)
        return
    with pytest.raises(MutatorError, match=missing):
        models.check(config.models)


@pytest.mark.parametrize("name", MISSING)
def test_the_config_of_each_provider_is_the_default_but_for_two_lines(name: str) -> None:
    default, own = configs.load("gemm"), configs.load(name)
    changed = {key for key in type(own).model_fields if getattr(own, key) != getattr(default, key)}
    assert changed <= {"models", "search"}
    text = (assets.configs_dir() / f"{name}.yaml").read_text(encoding="utf-8")
    assert text.startswith("# ")
    assert "\nworkload: gemm\n" in text
