from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HEAVY = ("ray", "cupy", "litellm", "optuna", "matplotlib", "sqlite_utils", "tree_sitter", "numpy", "pydantic")


def test_the_layers_hold():
    tool = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([tool, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr


def test_importing_the_command_line_imports_nothing_heavy():
    code = f"import sys, evo, evo.cli; print([name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "[]"


def test_no_plugin_imports_its_heavy_library_before_it_is_used():
    code = (
        "import sys\n"
        "from evo import plugins\n"
        "for package in (plugins.OPERATORS, plugins.CLIENTS, plugins.DEVICES):\n"
        "    for name in plugins.available(package):\n"
        "        plugins.resolve(package, name)\n"
        "print([name for name in ('ray', 'litellm', 'optuna', 'cupy') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "[]"
