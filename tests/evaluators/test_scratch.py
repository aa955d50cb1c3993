from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

from evaluators import scratch
from evaluators.scratch import Scratch


def test_a_job_folder_is_fresh_and_is_gone_afterwards():
    made = Scratch()
    with made.folder(1000) as first, made.folder(1000) as second:
        assert first != second
        (first / "file").write_text("x")
    assert not first.exists()
    assert not second.exists()
    made.close()
    assert not first.parent.exists()


def test_a_job_too_large_for_memory_goes_to_disk(monkeypatch, tmp_path):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    made = Scratch()
    with made.folder(1 << 60) as folder:
        assert tmp_path in folder.parents
    made.close()


def test_folders_of_dead_processes_are_swept_and_those_of_living_ones_are_not(monkeypatch, tmp_path):
    monkeypatch.setattr(scratch, "YOUNG_S", -1.0)
    monkeypatch.setattr(scratch, "MEMORY", tmp_path)
    living = Scratch()
    with living.folder(10) as folder:
        orphan = _orphan(tmp_path)
        assert orphan.exists()
        scratch.sweep(tmp_path)
        assert not orphan.exists()
        assert folder.exists()
    living.close()


def _orphan(base: Path) -> Path:
    """Return the folder that a process leaves when it is killed."""
    script = textwrap.dedent(f"""
        import os, pathlib, signal
        from evaluators import scratch
        scratch.MEMORY = pathlib.Path({str(base)!r})
        with scratch.Scratch().folder(10) as folder:
            print(folder.parent, flush=True)
            os.kill(os.getpid(), signal.SIGKILL)
    """)
    done = subprocess.run(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, env=os.environ, check=False
    )
    return Path(done.stdout.strip())
