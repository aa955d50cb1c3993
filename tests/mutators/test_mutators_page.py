"""What `docs/mutators.md` shows is run as it stands."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
import yaml

from evo import config as configs
from evo import plugins
from evo.config import Model
from evo.errors import MutatorError
from evo.records import ModelRequest, Proposal
from mutators import models
from mutators.fences import blocks
from tests.support.mutation import FASTER, context

PAGE = (Path(__file__).parent.parent.parent / "docs" / "mutators.md").read_text(encoding="utf-8")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for block in blocks(PAGE):
        title = block.text.split("\n", 1)[0].removeprefix("# ")
        if title.endswith((".py", ".yaml")):
            (tmp_path / title).write_text(block.text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_shown_operator_and_client_make_a_proposal(folder: Path) -> None:
    config = configs.load(folder / "search.yaml")
    (name,) = config.operators
    operator = plugins.resolve(plugins.OPERATORS, name)()
    client = models.client(config.models[0])
    with pytest.raises(MutatorError, match="there is no such file"):
        client.check()
    (folder / "reply.md").write_text(f"Shorter:\n```cuda\n{FASTER}```", encoding="utf-8")
    client.check()
    request = operator.step(context(), ())
    assert isinstance(request, ModelRequest)
    reply = asyncio.run(client.complete(request))
    assert operator.step(context(), (reply,)) == Proposal(FASTER, "Shorter:")


def test_every_line_that_swaps_the_model_is_valid() -> None:
    lines = [line for line in blocks(PAGE)[0].text.splitlines() if line.strip()]
    assert len(lines) == 11
    for line in lines:
        (entry,) = yaml.safe_load(line)["models"]
        assert models.client(Model.model_validate_json(json.dumps(entry)))


def test_the_table_names_every_key() -> None:
    for key in Model.model_fields:
        assert key == "client" or f"| `{key}` |" in PAGE
