"""What callers of the sandbox rely on: how runs end, what is kept, that nothing outlives them, what it costs."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from evo import sandbox
from evo.errors import SandboxError
from evo.sandbox import launcher
from tests.support.programs import attacks, ends

LIMITS = sandbox.Limits(wall_s=20, cpu_s=10, memory_bytes=1 << 30, file_bytes=1 << 26)
HERE = Path(__file__).parents[2]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copy(attacks(), tmp_path / "attacks")
    return tmp_path


def test_this_machine_can_confine() -> None:
    assert sandbox.available() == ""


def test_a_program_runs_in_its_folder_with_an_empty_environment(folder: Path) -> None:
    done = sandbox.run([folder / "attacks", "environment"], folder=folder, limits=LIMITS, env={"A": "1", "B": "x y"})
    assert (done.returncode, done.stdout, done.signal, done.timed_out, done.reason) == (
        0,
        b"A=1\nB=x y\n",
        None,
        False,
        "",
    )
    assert sandbox.run([folder / "attacks", "environment"], folder=folder, limits=LIMITS).stdout == b""


def test_arguments_arrive_as_they_are(folder: Path) -> None:
    done = sandbox.run([folder / "attacks", "read", ""], folder=folder, limits=LIMITS)
    assert done.stdout.startswith(b"refused 2")


def test_a_program_writes_the_files_that_are_there(folder: Path) -> None:
    (folder / "out").touch()
    done = sandbox.run([folder / "attacks", "create", folder / "out"], folder=folder, limits=LIMITS)
    assert done.stdout == b"done\n"


def test_a_program_cannot_write_inputs_that_are_read_only(folder: Path) -> None:
    (folder / "in").write_text("x")
    (folder / "in").chmod(0o400)
    done = sandbox.run([folder / "attacks", "write", folder / "in"], folder=folder, limits=LIMITS)
    assert done.stdout.startswith(b"refused 13"), "even root is an ordinary user in there"


def test_read_only_paths_are_readable_and_not_writable(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    file = tmp_path_factory.mktemp("other") / "given"
    file.write_text("a text")

    def attempt(how: str) -> bytes:
        done = sandbox.run([folder / "attacks", how, file], folder=folder, limits=LIMITS, read_only=[file.parent])
        return done.stdout

    assert attempt("read") == b"a textdone\n"
    assert attempt("write").startswith(b"refused")
    assert attempt("truncating read").startswith(b"refused")
    assert file.read_text() == "a text"


@pytest.mark.parametrize("name", ["sleep", "close and sleep", "flood"])
def test_the_wall_clock_ends_a_program(folder: Path, name: str) -> None:
    limits = sandbox.Limits(wall_s=0.3, cpu_s=10, output_bytes=1000)
    begin = time.monotonic()
    done = sandbox.run([folder / "attacks", name], folder=folder, limits=limits)
    assert 0.3 <= time.monotonic() - begin < 3
    assert done.timed_out
    assert done.signal == signal.SIGKILL
    assert "time" in done.reason
    assert len(done.stdout) == (1000 if name == "flood" else 0)


@pytest.mark.parametrize(("name", "end"), [("loop", signal.SIGXCPU), ("stubborn loop", signal.SIGKILL)])
def test_cpu_time_ends_a_program(folder: Path, name: str, end: signal.Signals) -> None:
    limits = sandbox.Limits(wall_s=20, cpu_s=1)
    done = sandbox.run([folder / "attacks", name], folder=folder, limits=limits)
    assert not done.timed_out
    assert done.signal == end


@pytest.mark.parametrize(("name", "end"), [("abort", signal.SIGABRT), ("crash", signal.SIGSEGV)])
@pytest.mark.parametrize("may_exec", [False, True])
def test_a_crash_is_seen(folder: Path, name: str, end: signal.Signals, may_exec: bool) -> None:
    done = sandbox.run([folder / "attacks", name], folder=folder, limits=LIMITS, may_exec=may_exec)
    # Tools may not send signals, not even themselves: abort() then ends with a fault.
    assert done.signal in ({end, signal.SIGSEGV} if may_exec else {end})
    assert done.returncode == -done.signal


def test_start_talks_through_pipes(folder: Path) -> None:
    with sandbox.start([folder / "attacks", "echo"], folder=folder, limits=LIMITS) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for line in (b"one\n", b"two\n"):
            process.stdin.write(line)
            assert process.stdout.readline() == line
        assert sandbox.stop(process) == -signal.SIGKILL
        assert sandbox.stop(process) == -signal.SIGKILL


def test_descriptors_are_passed_and_no_others(folder: Path) -> None:
    read, write = os.pipe()
    os.set_inheritable(read, True)
    done = sandbox.run([folder / "attacks", "open files"], folder=folder, limits=LIMITS)
    with_pipe = sandbox.run([folder / "attacks", "open files"], folder=folder, limits=LIMITS, pass_fds=[write])
    os.close(read)
    os.close(write)
    assert int(done.stdout) - int(with_pipe.stdout) == 1


def test_a_program_is_pinned(folder: Path) -> None:
    core = max(os.sched_getaffinity(0))
    with sandbox.start([folder / "attacks", "sleep"], folder=folder, limits=LIMITS, core=core) as process:
        assert os.sched_getaffinity(process.pid) == {core}
        sandbox.stop(process)


def test_the_compiler_works_inside(folder: Path) -> None:
    (folder / "a.cpp").write_text(
        '#include <cstdio>\n#include <vector>\nint main() { std::vector<int> x(3); puts("hi"); }'
    )
    done = sandbox.run(["g++", "-O1", "a.cpp", "-o", "a"], folder=folder, limits=LIMITS, may_exec=True)
    assert (done.returncode, done.stderr) == (0, b"")
    (folder / "a").chmod(0o700)
    assert sandbox.run([folder / "a"], folder=folder, limits=LIMITS).stdout == b"hi\n"
    assert sorted(path.name for path in folder.iterdir()) == ["a", "a.cpp", "attacks"]


@pytest.mark.parametrize(
    "text",
    [
        '#include "/etc/passwd"',
        'asm(".incbin \\"/etc/passwd\\"");',
        '#if __has_include("/etc/passwd")\n#error it is there\n#endif',
    ],
)
def test_the_compiler_shows_no_file_of_the_machine(folder: Path, text: str) -> None:
    (folder / "a.cpp").write_text(text + "\n")
    done = sandbox.run(["g++", "-c", "a.cpp", "-o", "a.o"], folder=folder, limits=LIMITS, may_exec=True)
    object_file = folder / "a.o"
    assert b"root:" not in done.stderr + (object_file.read_bytes() if object_file.exists() else b"")
    assert b"it is there" not in done.stderr


def test_a_compile_that_eats_memory_ends(folder: Path) -> None:
    (folder / "a.cpp").write_text(
        "struct S { int v[1 << 28]; };\n"
        "constexpr S f() { S s{}; for (auto& v : s.v) v = 1; return s; }\n"
        "constexpr S s = f();\n"
    )
    limits = sandbox.Limits(wall_s=20, cpu_s=10, memory_bytes=300 << 20)
    options = ["-fconstexpr-ops-limit=2000000000", "-fconstexpr-loop-limit=2000000000"]
    done = sandbox.run(["g++", *options, "-c", "a.cpp"], folder=folder, limits=limits, may_exec=True)
    assert not done.timed_out
    assert b"memory" in done.stderr


def test_helpers_left_behind_die_with_the_run(folder: Path) -> None:
    script = "sleep 600 & echo $!; exit 3"
    done = sandbox.run(["sh", "-c", script], folder=folder, limits=LIMITS, may_exec=True)
    assert done.returncode == 3
    assert ends(int(done.stdout))


def test_a_timeout_kills_helpers_too(folder: Path) -> None:
    limits = sandbox.Limits(wall_s=0.5, cpu_s=5)
    done = sandbox.run(["sh", "-c", "sleep 600 & echo $!; wait"], folder=folder, limits=limits, may_exec=True)
    assert done.timed_out
    assert ends(int(done.stdout))


@pytest.mark.parametrize(
    ("may_exec", "argv"), [(False, ["./attacks", "sleep"]), (True, ["sh", "-c", "sleep 600 & echo $!; wait"])]
)
def test_nothing_survives_a_kill_of_the_parent(folder: Path, may_exec: bool, argv: list[str]) -> None:
    text = (
        "import sys; from evo import sandbox\n"
        f"import os; os.chdir({str(folder)!r})\n"
        f"p = sandbox.start({argv!r}, folder={str(folder)!r}, limits=sandbox.Limits(), may_exec={may_exec})\n"
        f"print(p.pid, int(p.stdout.readline()) if {may_exec} else p.pid, flush=True)\n"
        "sys.stdin.read()\n"
    )
    command = [sys.executable, "-c", text]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=HERE) as parent:
        assert parent.stdout is not None
        pids = [int(word) for word in parent.stdout.readline().split()]
        parent.kill()
    assert all(ends(pid) for pid in pids)


@pytest.fixture
def nobodys_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        shutil.copy(attacks(), Path(name) / "attacks")
        os.chown(name, 65534, 65534)
        yield Path(name)


@pytest.mark.skipif(os.getuid() != 0, reason="an ordinary user already")
def test_an_ordinary_user_is_confined_just_as_well(nobodys_folder: Path) -> None:
    text = f"""
import os, pathlib, platformdirs, selectors, shutil, subprocess, tempfile
from evo import sandbox
from evo.sandbox import launcher
os.setgroups([]); os.setgid(65534); os.setuid(65534)
os.environ.clear(); os.environ["PATH"] = "/usr/bin"; os.environ["XDG_CACHE_HOME"] = {str(nobodys_folder)!r}
assert sandbox.available() == "", sandbox.available()
folder = pathlib.Path({str(nobodys_folder)!r})
for name in ("nothing", "socket", "exec", "read"):
    print(sandbox.run([folder / "attacks", name, "/usr/bin/true"], folder=folder, limits=sandbox.Limits()).returncode)
print(sandbox.run(["g++", "--version"], folder=folder, limits=sandbox.Limits(), may_exec=True).returncode)
"""
    done = subprocess.run([sys.executable, "-c", text], cwd=HERE, capture_output=True, text=True, timeout=60)
    assert done.stderr == ""
    assert done.stdout.split() == ["0", "-31", "-31", "0", "0"]


def test_a_program_that_is_not_there_is_an_error(folder: Path) -> None:
    with pytest.raises(SandboxError, match="no such program"):
        sandbox.run([folder / "missing"], folder=folder, limits=LIMITS)
    (folder / "text").write_text("#!/bin/sh\necho hi\n")
    (folder / "text").chmod(0o700)
    with pytest.raises(SandboxError, match="cannot execute"):
        sandbox.run([folder / "text"], folder=folder, limits=LIMITS)


def test_a_machine_that_cannot_confine_runs_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reason = launcher._NOT_THERE["landlock"]
    monkeypatch.setattr(launcher, "missing", lambda: reason)
    assert sandbox.available() == reason
    with pytest.raises(SandboxError, match="use Linux 5"):
        sandbox.run([folder / "attacks", "nothing"], folder=folder, limits=LIMITS)


def test_a_cache_folder_that_others_can_write_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shared = tmp_path / "kernel-evo"
    shared.mkdir()
    shared.chmod(0o777)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert launcher._cache_folder() == tmp_path / f"kernel-evo-{os.getuid()}"


def test_starting_costs_less_than_three_milliseconds(folder: Path) -> None:
    def once(confined: bool) -> float:
        begin = time.perf_counter()
        if confined:
            sandbox.run([folder / "attacks", "nothing"], folder=folder, limits=LIMITS)
        else:
            subprocess.run([folder / "attacks", "nothing"], capture_output=True)
        return (time.perf_counter() - begin) * 1e3

    # The quickest of many: what else the machine does meanwhile is not the sandbox's cost.
    assert min(once(True) for _ in range(20)) - min(once(False) for _ in range(20)) < 3
