from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def tools(tmp_path):
    """A PATH with what every system has, and no Python and no compiler."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("bash", "dirname"):
        (folder / name).symlink_to(shutil.which(name))
    return folder


def setup(tools: Path, venv: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [ROOT / ".ci" / "setup", venv, "nvrtc"],
        env={"PATH": str(tools), **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def program(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(text)
    os.chmod(folder / name, 0o755)


def test_without_python_the_package_to_install_is_named(tools, tmp_path):
    done = setup(tools, tmp_path / "venv")
    assert done.returncode == 3
    assert "sudo apt-get install python3" in done.stderr


def test_a_python_that_does_not_run_is_passed_over(tools, tmp_path):
    program(tools, "python3.13", "#!/bin/sh\necho 'pyenv: no such version' >&2\nexit 127\n")
    program(tools, "python3.12", f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    done = setup(tools, tmp_path / "venv")
    assert done.returncode == 3
    assert "sudo apt-get install g++" in done.stderr


def test_without_the_venv_module_the_package_of_that_python_is_named(tools, tmp_path):
    script = f"#!/bin/sh\ncase \"$2\" in *ensurepip*) exit 1;; esac\nexec {sys.executable} \"$@\"\n"  # fmt: skip
    program(tools, "python3", script)
    done = setup(tools, tmp_path / "venv")
    assert done.returncode == 3
    assert f"sudo apt-get install python{sys.version_info[0]}.{sys.version_info[1]}-venv" in done.stderr


def test_without_a_compiler_nothing_is_downloaded(tools, tmp_path):
    done = setup(tools, tmp_path / "venv", PYTHON=sys.executable)
    assert done.returncode == 3
    assert not (tmp_path / "venv").exists()
