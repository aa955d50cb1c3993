"""What docs/export.md shows is what happens."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from typer.testing import CliRunner

from evo import cli
from evo import kernel as kernels
from evo import workload as workloads
from evo.config import Timing
from evo.export import Subject, cupy_package
from tests.support import exported

PAGE = Path(__file__).resolve().parents[2] / "docs" / "export.md"


def fences(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)


def test_the_commands_of_the_page_run(tmp_path, monkeypatch):
    exported.run_of(tmp_path, "gemm")
    monkeypatch.chdir(tmp_path)
    lines = [line.removeprefix("$ evo ") for fence in fences("console") for line in fence.splitlines()]
    assert len(lines) == 4
    for line in lines:
        shutil.rmtree(tmp_path / "harness", ignore_errors=True)
        shutil.rmtree(tmp_path / "fast_histogram", ignore_errors=True)
        words = ["run-001" if word == "run-003" else "0" if word == "17" else word for word in line.split()]
        done = CliRunner().invoke(cli.app, words)
        assert done.exit_code == 0, done.output


def test_the_python_of_the_page_fits_the_package():
    (text,) = fences("python")
    assert "from fast_histogram import histogram\n" in text
    whole = workloads.load("histogram")
    subject = Subject(kernels.parse(whole.initial), whole, exported.H200, Timing(), 0, "kernel 7 of run-001")
    adapter = dict(cupy_package.files(subject))["__init__.py"].decode()
    assert "def histogram(data, *, BINS):" in adapter
    assert "histogram(data, BINS=256)" in text
