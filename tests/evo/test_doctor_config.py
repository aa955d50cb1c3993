"""`evo doctor --config FILE` says what a config's run lacks, and neither spends money nor tells a secret."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from evo import config as configs
from evo.commands import doctor, preflight, servers
from evo.commands.findings import Finding
from tests.support.openai_server import serve

EVO = Path(sys.executable).with_name("evo")
SECRET = "sk-doctor-7c1f0e9ab2d4"
KEYS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "AZURE_API_KEY", "OPENROUTER_API_KEY")
LACKING = {
    "gemm-agent": "no program 'claude' on PATH",
    "gemm-anthropic": "ANTHROPIC_API_KEY",
    "gemm-azure": "AZURE_API_KEY",
    "gemm-gemini": "GEMINI_API_KEY",
    "gemm-ollama": "nothing answers at http://localhost:11434",
    "gemm-openrouter": "OPENROUTER_API_KEY",
    "gemm-vllm": "nothing answers at http://localhost:8000/v1",
}
"""What each shipped config lacks on a bare machine; one that is not named here lacks OpenAI's key."""
WITHOUT = frozenset({"demo", "gemm-manual", "gemm-offline"})
"""Shipped configs that need neither key nor server."""
UNREACHABLE = frozenset({"gemm-azure", "gemm-ollama", "gemm-vllm"})
"""Those whose server a test machine does not have."""


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """No key, no agent and no network, but servers of this very test."""
    for name in list(os.environ):
        if any(word in name for word in ("_API_KEY", "_API_BASE", "_BASE_URL", "_proxy", "_PROXY")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    connect = socket.create_connection

    def refused(address: tuple[str, int], *more: object, **named: object) -> socket.socket:
        if address[0] not in ("127.0.0.1", "localhost"):
            raise OSError(f"{address[0]} is not to be reached from a test")
        return connect(address, *more, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(socket, "create_connection", refused)


def look(source: str, *overrides: str) -> list[Finding]:
    return list(preflight.look(configs.load(source, overrides)))


def missing(findings: list[Finding]) -> list[Finding]:
    return [finding for finding in findings if finding.state == "missing"]


def one(model: str) -> list[Finding]:
    """What there is to say of a config with this model."""
    return look(f"workload: gemm\ndevice: host\nmodels: [{model}]\n")


@pytest.mark.parametrize("name", configs.names())
def test_on_a_bare_machine_each_shipped_config_says_what_it_lacks(name: str) -> None:
    found = missing(look(name, "device=host"))
    if name in WITHOUT:
        assert found == []
        return
    assert found, f"{name} needs something of this machine"
    for finding in found:
        assert finding.name.startswith("models.")
        assert LACKING.get(name, "OPENAI_API_KEY") in finding.found
        assert finding.fix


@pytest.mark.parametrize("name", configs.names())
def test_with_its_key_each_shipped_config_of_a_provider_lacks_nothing(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in KEYS:
        monkeypatch.setenv(variable, SECRET)
    findings = look(name, "device=host")
    if name in UNREACHABLE or name == "gemm-agent":
        assert len(missing(findings)) == 1
    else:
        assert missing(findings) == []
    assert SECRET not in json.dumps([vars(finding) for finding in findings])
    priced = [finding for finding in findings if "for a million tokens in and out" in finding.found]
    assert len(priced) == (0 if name in WITHOUT | UNREACHABLE | {"gemm-agent"} else len(configs.load(name).models))


def test_a_key_is_named_and_its_value_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    (reached, known, budget) = look("gemm", "device=host")[2:]
    assert (reached.state, reached.found) == ("ok", "gpt-5-mini: through litellm; OPENAI_API_KEY is set")
    assert "prompts of 272,000 tokens" in known.found
    assert "$0.25 and $2.00 for a million tokens in and out" in known.found
    assert (budget.state, budget.found) == ("ok", "budget.cost_usd 2")


def test_a_server_that_has_the_model_is_told_from_one_that_has_not() -> None:
    with serve() as server:
        right = one(f'{{name: hosted_vllm/gpt-5-mini, api_base: "{server.url}"}}')
        wrong = one(f'{{name: hosted_vllm/qwen3, api_base: "{server.url}"}}')
        assert server.requests == [], "no model was asked anything"
    assert missing(right) == []
    assert any(finding.found.endswith("answers and has the model") for finding in right)
    (lacking,) = missing(wrong)
    assert "has no model 'qwen3'" in lacking.found
    assert "it has: gpt-5-mini" in lacking.fix


def test_ollama_says_which_models_are_pulled() -> None:
    with serve() as server:
        pulled = one(f'{{name: ollama/qwen2.5-coder, api_base: "{server.root}", reasoning_effort: null}}')
        absent = one(f'{{name: ollama/llama9, api_base: "{server.root}", reasoning_effort: null}}')
    assert missing(pulled) == []
    (lacking,) = missing(absent)
    assert lacking.fix.startswith(
        "get it with: ollama pull llama9; or give another 'name'; it has: qwen2.5-coder:latest"
    )


def test_a_model_without_a_known_price_is_told_with_what_limits_it() -> None:
    with serve() as server:
        model = f'{{name: hosted_vllm/gpt-5-mini, api_base: "{server.url}"}}'
        findings = one(model)
        limited = look(f"workload: gemm\ndevice: host\nmodels: [{model}]\nbudget: {{tokens: 100000}}\n")
    (budget,) = (finding for finding in findings if finding.name == "budget")
    assert (budget.state, missing(findings)) == ("optional", [])
    assert "its price is unknown" in budget.found
    assert "--tokens" in budget.fix
    assert [finding.state for finding in limited if finding.name == "budget"] == ["ok"]


def test_what_else_a_config_names_is_looked_for(tmp_path: Path) -> None:
    found = look(f"workload: {tmp_path}\ndevice: host\nmodels: []\noperators: {{rules: 1}}\n")
    assert [finding.name for finding in missing(found)] == ["workload"]
    assert missing(one("{client: command, name: cat, command: [cat]}")) == []


def test_a_provider_behind_a_proxy_is_not_knocked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")
    assert servers.unreachable("https://example.invalid/v1") == ""
    monkeypatch.delenv("https_proxy")
    assert "example.invalid:443" in servers.unreachable("https://example.invalid/v1")


@pytest.mark.parametrize(("name", "code"), [("gemm-anthropic", 3), ("gemm-offline", 0)])
def test_the_command_exits_with_3_when_something_is_missing_and_says_what_to_machines(
    name: str, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(doctor, "MACHINE", (doctor.python,))
    assert doctor.doctor(name, ["device=host"], as_json=True) == code
    findings = {finding["name"]: finding["state"] for finding in json.loads(capsys.readouterr().out)}
    models = {"models.0": "missing", "budget": "ok"} if code else {}
    assert findings == {"python": "ok", "workload": "ok", "device": "ok", **models}


def test_set_without_a_config_is_an_error(tmp_path: Path) -> None:
    done = subprocess.run([EVO, "doctor", "--set", "seed=1"], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (done.returncode, "name it with --config" in done.stderr) == (2, True)
