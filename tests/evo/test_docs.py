from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import BaseModel
from typer.main import get_command

from evo import cli, config, workload
from evo import kernel as kernels

ROOT = Path(__file__).resolve().parents[2]
PAGES = (
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "results" / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
)
COMMANDS = get_command(cli.app).commands  # type: ignore[attr-defined]


def fences(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)


def lines() -> list[tuple[str, str]]:
    shown = [(page, line) for page in PAGES for fence in fences(page, "console") for line in fence.splitlines()]
    return [(page.name, line.removeprefix("$ ")) for page, line in shown if line.startswith("$ ")]


def configs() -> list[tuple[str, str]]:
    return [(page.name, fence) for page in PAGES for fence in fences(page, "yaml") if fence.startswith("workload:")]


def flags(command: Any) -> set[str]:
    return {flag for parameter in command.params for flag in parameter.opts}


@pytest.mark.parametrize(("page", "line"), [entry for entry in lines() if entry[1].startswith("evo ")])
def test_commands_in_the_documentation_exist_with_their_flags(page, line):
    _, name, *rest = shlex.split(line, comments=True)
    assert name in COMMANDS, page
    given = {word.split("=")[0] for word in rest if word.startswith("--")}
    assert given <= flags(COMMANDS[name]), page


@pytest.mark.parametrize(("page", "line"), [entry for entry in lines() if entry[1].startswith("make ")])
def test_targets_in_the_documentation_are_in_the_makefile(page, line):
    target = shlex.split(line, comments=True)[1]
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE), page


@pytest.mark.parametrize(("page", "text"), configs())
def test_configs_in_the_documentation_load(page, text):
    assert config.load(text).workload


def test_the_documentation_shows_something_of_each():
    assert len(lines()) > 10
    assert len(configs()) > 3


def test_every_command_is_documented():
    text = (ROOT / "docs" / "cli.md").read_text()
    assert all(f"`evo {name}" in text for name in COMMANDS)


def test_every_exit_code_is_documented():
    from evo import errors
    from evo.commands import searching

    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.EvoError)]
    codes = {kind.exit_code for kind in kinds} | {0, 1, searching.FRUITLESS, *searching.EXIT_CODES.values(), cli.FAULT}
    table = re.findall(r"^\| (\d+) \|", (ROOT / "docs" / "cli.md").read_text(), re.MULTILINE)
    assert {int(code) for code in table} == codes


def keys(model: type[BaseModel], prefix: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, field in model.model_fields.items():
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            found |= keys(kind, f"{prefix}{name}.")
        else:
            found[prefix + name] = field
    return found


@pytest.mark.parametrize("model", [config.Config, config.Model])
def test_the_config_page_lists_every_key_with_its_default(model):
    rows = dict(re.findall(r"^\| `([\w.]+)` \| (.*?) \|", (ROOT / "docs" / "config.md").read_text(), re.MULTILINE))
    for name, field in keys(model).items():
        assert name in rows
        if name in ("workload", "models"):
            continue
        documented = yaml.safe_load(rows[name].strip("`"))
        default = field.get_default(call_default_factory=True)
        assert documented == (list(default) if isinstance(default, tuple) else default), name


def test_no_key_is_documented_that_does_not_exist():
    rows = re.findall(r"^\| `([\w.]+)` \| .*? \| ", (ROOT / "docs" / "config.md").read_text(), re.MULTILINE)
    assert set(rows) <= set(keys(config.Config)) | set(keys(config.Model))


def test_the_workload_of_the_documentation_loads_with_its_kernel(tmp_path):
    page = ROOT / "docs" / "workloads.md"
    texts = {
        "workload.yaml": next(fence for fence in fences(page, "yaml") if fence.startswith("# workload.yaml")),
        "reference.py": fences(page, "python")[0],
        "initial.cu": fences(page, "cuda")[0],
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    whole = workload.load(str(tmp_path))
    case = whole.cases[0]
    expected = workload.expected(whole, case, workload.draw_inputs(whole, case, 0))
    assert expected.values["y"].shape == (1000,)
    assert kernels.parse(whole.initial).config_for(case.dims) == {"BX": 256, "PER_THREAD": 1}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), target


def test_the_readme_says_what_runs_leave():
    text = (ROOT / "results" / "README.md").read_text()
    for name in ("evo.db", "best.cu", "summary.json", "history.json", "heatmap.png", "progress.png", "config.yaml"):
        assert name in text
