from __future__ import annotations

import os
from pathlib import Path

import pytest

from mutators import environment


@pytest.fixture(autouse=True)
def _restored(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "GROQ_API_KEY"):
        monkeypatch.setenv(name, "to be restored")
        monkeypatch.delenv(name)


def test_the_env_file_of_the_folder_is_read(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("# keys\nexport OPENAI_API_KEY='sk-from-file'\nGROQ_API_KEY=\"gsk\"\nEMPTY=\n")
    assert environment.load(tmp_path) == ("GROQ_API_KEY", "OPENAI_API_KEY")
    assert os.environ["OPENAI_API_KEY"] == "sk-from-file"
    assert "EMPTY" not in os.environ


def test_what_is_set_already_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-from-shell")
    (tmp_path / ".env").write_text("OPENAI_API_KEY=sk-from-file\n")
    assert environment.load(tmp_path) == ()
    assert os.environ["OPENAI_API_KEY"] == "sk-from-shell"


def test_a_variable_that_is_set_to_nothing_is_filled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "")
    (tmp_path / ".env").write_text("OPENAI_API_KEY=sk-from-file\n")
    assert environment.load(tmp_path) == ("OPENAI_API_KEY",)


def test_no_file_and_the_parents_file_are_both_nothing(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("OPENAI_API_KEY=sk-from-parent\n")
    (tmp_path / "run").mkdir()
    assert environment.load(tmp_path / "run") == ()


def test_what_providers_need_is_forwarded_and_nothing_else() -> None:
    variables = {
        "OPENAI_API_KEY": "a",
        "AZURE_API_VERSION": "b",
        "AWS_REGION_NAME": "c",
        "OLLAMA_API_BASE": "d",
        "HF_TOKEN": "e",
        "FIREWORKS_AI_TOKEN": "f",
        "HOME": "/root",
        "PATH": "/bin",
        "GROQ_API_KEY": "",
    }
    assert sorted(environment.forwarded(variables)) == [
        "AWS_REGION_NAME",
        "AZURE_API_VERSION",
        "FIREWORKS_AI_TOKEN",
        "HF_TOKEN",
        "OLLAMA_API_BASE",
        "OPENAI_API_KEY",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "Incorrect API key provided: sk-proj-abcdefghijklmnop",
        "Incorrect API key provided: sk-pro**********mnop.",
        "headers: {'Authorization': 'Bearer abcdefghijklmnop'}",
        "https://host/v1beta/models/x:generate?key=abcdefghijklmnop&alt=sse",
        "api_key=abcdefghijklmnop, model=x",
        "https://user:abcdefghijklmnop@proxy.example/v1",
        "gsk_abcdefghijklmnopqrst",
        "AIzaabcdefghijklmnopabcdefghijklmnopabc",
        "AKIAABCDEFGHIJKLMNOP",
        "Anthropic: sk-ant-api03-abcdefghijklmnop-AA",
        "{'x-api-key': 'abcdefghijklmnop', 'anthropic-version': '2023-06-01'}",
        "OpenRouter: sk-or-v1-abcdefghijklmnop",
        "Azure: {'api-key': 'abcdefghijklmnop'}",
        "api-key: abcdefghijklmnop",
        "Gemini: x-goog-api-key=abcdefghijklmnop",
        "headers={b'x-goog-api-key': b'abcdefghijklmnop'}",
        "POST /v1beta/models/gemini-2.5-pro:generateContent?key=abcdefghijklmnop",
        'vLLM: {"Authorization": "Bearer abcdefghijklmnop"}',
        "Authorization: Basic abcdefghijklmnop",
        "Ollama: 'authorization': 'abcdefghijklmnop'",
        "AZURE_API_KEY=abcdefghijklmnop",
        "hf_abcdefghijklmnopqrst",
        "xai-abcdefghijklmnopqrst",
    ],
)
def test_shapes_of_secrets_are_taken_out(text: str) -> None:
    cleaned = environment.redact(text, {})
    assert "mnop" not in cleaned.lower()
    assert "[redacted]" in cleaned


def test_values_of_secret_variables_are_taken_out_wherever_they_stand() -> None:
    variables = {
        "MY_PROVIDER_API_KEY": "hunter2hunter2",
        "AWS_SECRET_ACCESS_KEY": "hunter2hunter2/longer",
        "USER": "jo",
    }
    text = "jo sent hunter2hunter2/longer and hunter2hunter2"
    assert environment.redact(text, variables) == "jo sent [redacted] and [redacted]"


def test_ordinary_text_and_short_values_stay() -> None:
    text = "the task-based kernel of line 12 uses 4096 bytes; none left"
    assert environment.redact(text, {"SOME_KEY": "none", "API_KEY": ""}) == text


@pytest.mark.parametrize(
    "text",
    [
        "export OPENAI_API_KEY=…, or write OPENAI_API_KEY=… into the file .env of this folder",
        "expected api_key=None",
        "the key: expression, author: somebody-else",
        "needs a key for azure: AZURE_API_KEY is not set",
    ],
)
def test_words_about_keys_stay(text: str) -> None:
    assert environment.redact(text, {}) == text
