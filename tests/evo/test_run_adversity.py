"""Runs that meet a full disk, no network, a closed terminal, Ctrl-C twice: the command line end to end."""

from __future__ import annotations

import json
import os
import pty
import shlex
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import psutil
import pytest

from evo.store import Store
from tests.support import instant_device, squares
from tests.support.processes import alive

BIN = Path(sys.executable).parent
EVO = BIN / "evo"
SMALL = ("--set", "tuning.trials=0", "--set", "timing.launches=5", "--set", "search.in_flight=2")
RUN = ("run", "-w", squares.NAME, "--model", "none", *SMALL)
INSTANT = (*RUN, "--device", str(Path(instant_device.__file__)))
"""Where the harness does not matter, verdicts that come at once make a test short."""
INTERRUPTED, UNUSABLE = 130, 4

BEGUN = "kernel 0 (initial): ok"
"""What a run says when its search begins: Ray and a harness are at work."""

LOOPBACK_UP = (
    "import fcntl, os, socket, struct, sys\n"
    "SIOCSIFFLAGS, IFF_UP = 0x8914, 1\n"
    "fcntl.ioctl(socket.socket(), SIOCSIFFLAGS, struct.pack('16sH14x', b'lo', IFF_UP))\n"
    "os.execv(sys.argv[1], sys.argv[1:])\n"
)

ON_THE_TERMINAL = (
    "import fcntl, os, sys, termios\nfcntl.ioctl(0, termios.TIOCSCTTY, 0)\nos.execv(sys.argv[1], sys.argv[1:])\n"
)
"""Makes standard input the terminal that the new session hangs on, and becomes the command."""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder from which the workload is found by its name."""
    squares.write(tmp_path)
    return tmp_path


@pytest.fixture
def begin(place: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start `evo` at the head of a process group of its own, as a shell does."""
    started = []

    def start(*arguments: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [EVO, *arguments],
            cwd=place,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def evo(*arguments: str, cwd: Path, within: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*within, EVO, *arguments], cwd=cwd, capture_output=True, text=True, check=False, timeout=120)


def until(process: subprocess.Popen[str], words: str) -> None:
    """Read what a run says until it says this."""
    assert process.stdout is not None
    said = []
    for line in process.stdout:
        said.append(line)
        if words in line:
            return
    raise AssertionError(f"{words!r} was never said: {said} {process.communicate()}")


def family(process: subprocess.Popen[str]) -> list[psutil.Process]:
    return psutil.Process(process.pid).children(recursive=True)


def ended(process: subprocess.Popen[str], relatives: list[psutil.Process]) -> tuple[str, str]:
    """Return what a run said at its end; nothing of it may be left five seconds later."""
    out, err = process.communicate(timeout=30)
    assert alive(relatives) == []
    return out, err


def namespace(*flags: str) -> tuple[str, ...]:
    """Return the command that runs another one in namespaces of its own, or skip the test."""
    unshare = shutil.which("unshare")
    if unshare is None:
        pytest.skip("unshare(1) is not installed")
    command = (unshare, "--map-root-user", *flags)
    tried = subprocess.run([*command, "true"], capture_output=True, text=True, check=False, timeout=30)
    if tried.returncode:
        pytest.skip(f"user namespaces are not permitted here: {tried.stderr.strip()}")
    return command


def check_whole(folder: Path) -> None:
    """The database is sound, and every stored answer belongs to what was asked."""
    with closing(sqlite3.connect(f"{folder.as_uri()}/evo.db?mode=ro", uri=True)) as database:
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    with Store.read(folder) as store:
        assert store.check() == ()


def check_resumes(place: Path, evaluations: int, folder: str = "results/run-001") -> None:
    """The run goes on where it stopped, and finishes; what was in flight is finished beyond a smaller budget."""
    with Store.read(place / folder) as store:
        before = store.events()
    done = evo("resume", folder, "--evaluations", str(evaluations), cwd=place)
    assert done.returncode == 0, done.stdout + done.stderr
    check_whole(place / folder)
    with Store.read(place / folder) as store:
        assert store.events()[: len(before)] == before
        assert len(store.evaluations()) > evaluations
        assert store.open_tasks() == []
        assert store.meta().stopped == "evaluations"
    assert (place / folder / "best.cu").exists()


# --- a full disk ----------------------------------------------------------------------------------------------


def on_a_small_disk(place: Path, kib: int, *commands: str) -> list[subprocess.CompletedProcess[str]]:
    """Run shell commands on a file system of `kib` KiB in the folder `small`; return how each ended.

    What it holds at the end is in the folder `kept`.
    """
    within = namespace("--mount")
    (place / "small").mkdir()
    lines = [f"mount -t tmpfs -o size={kib}k none small || exit 77"]
    for number, command in enumerate(commands):
        lines.append(f"{command} >{number}.out 2>{number}.err; echo $? >{number}.code")
    lines.append("cp -r small kept")
    done = subprocess.run([*within, "sh", "-c", "\n".join(lines)], cwd=place, check=False, timeout=240)
    if done.returncode == 77:
        pytest.skip("a tmpfs cannot be mounted in a user namespace here")
    assert done.returncode == 0
    texts = [[(place / f"{n}.{kind}").read_text() for kind in ("code", "out", "err")] for n in range(len(commands))]
    return [subprocess.CompletedProcess(c, int(t[0]), t[1], t[2]) for c, t in zip(commands, texts, strict=True)]


def shell(*arguments: str) -> str:
    return shlex.join([str(EVO), *arguments])


@pytest.mark.long
def test_a_run_stops_on_a_full_disk_and_goes_on_when_there_is_room(place):
    stopped, _, _, resumed = on_a_small_disk(
        place,
        4096,
        f"head -c {4096 - 280}k /dev/zero >small/ballast; " + shell(*INSTANT, "--results", "small"),
        "cp -r small/run-001 stopped",
        "rm small/ballast",
        shell("resume", "latest", "--results", "small", "--evaluations", "4"),
    )
    assert stopped.returncode == UNUSABLE
    assert "Traceback" not in stopped.stderr
    assert stopped.stderr.count("\n") == 1
    for words in ("small/run-001/evo.db", "full", "0 MB are free there. Make room", "evo resume small/run-001"):
        assert words in stopped.stderr
    check_whole(place / "stopped")
    assert resumed.returncode == 0, resumed.stdout + resumed.stderr
    finished = place / "kept" / "run-001"
    check_whole(finished)
    with Store.read(place / "stopped") as before, Store.read(finished) as after:
        assert after.events()[: len(before.events())] == before.events()
        assert len(before.evaluations()) >= 1
        assert len(after.evaluations()) == 5
        assert after.meta().stopped == "evaluations"


def test_a_report_that_does_not_fit_is_told_and_the_old_one_stays(place):
    write = "from pathlib import Path; from evo.store.rundir import write_atomic; write_atomic(Path('small/a'), {})"
    wrote, refused = on_a_small_disk(
        place,
        64,
        shlex.join([sys.executable, "-c", write.format("b'old'")]),
        shlex.join([sys.executable, "-c", write.format("bytes(2**20)")]),
    )
    assert wrote.returncode == 0, wrote.stderr
    assert "DiskFullError: small/a: cannot be written: No space left on device; 0 MB are free" in refused.stderr
    assert [path.read_text() for path in (place / "kept").iterdir()] == ["old"]


def test_a_run_that_has_no_room_to_begin_leaves_nothing_behind(place):
    (stopped,) = on_a_small_disk(place, 32, shell(*INSTANT, "--results", "small"))
    assert stopped.returncode == UNUSABLE
    assert "Make room; begin again" in stopped.stderr
    assert "resume" not in stopped.stderr
    assert list((place / "kept").iterdir()) == []


# --- an older version -----------------------------------------------------------------------------------------


@pytest.mark.long
def test_resume_brings_a_run_of_an_older_version_up_to_date(place):
    assert evo(*INSTANT, "--evaluations", "1", cwd=place).returncode == 0
    with closing(sqlite3.connect(place / "results" / "run-001" / "evo.db")) as database, database:
        database.execute("ALTER TABLE runs DROP COLUMN reference_finale")
        database.execute("ALTER TABLE runs DROP COLUMN reference")
        database.execute("DELETE FROM _sqlite_migrations WHERE name = '002_reference'")
    shown = evo("show", "latest", cwd=place)
    assert shown.returncode == UNUSABLE
    assert "of an older version; resume the run once" in shown.stderr
    assert evo("resume", "latest", cwd=place).returncode == 0
    assert evo("show", "latest", cwd=place).returncode == 0


# --- no network -----------------------------------------------------------------------------------------------


@pytest.mark.long
def test_an_offline_run_needs_loopback_alone(place):
    within = (*namespace("--net"), sys.executable, "-c", LOOPBACK_UP)
    done = evo(*INSTANT, "--evaluations", "2", cwd=place, within=within)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "stopped: evaluations" in done.stdout
    check_whole(place / "results" / "run-001")


def test_without_loopback_a_run_says_so_at_once(place):
    done = evo(*RUN, cwd=place, within=namespace("--net"))
    assert done.returncode == UNUSABLE
    assert "ip link set lo up" in done.stderr
    assert "Traceback" not in done.stderr


# --- results that cannot be written ---------------------------------------------------------------------------


@pytest.mark.parametrize("results", ["taken", "taken/results"])
def test_results_that_are_a_file_are_refused_before_anything_starts(place, results):
    (place / "taken").write_text("a file")
    done = evo(*RUN, "--results", results, cwd=place)
    check_refused(done, results)
    assert (place / "taken").read_text() == "a file"


@pytest.mark.parametrize("results", ["sealed", "sealed/results"])
def test_results_that_are_read_only_are_refused_before_anything_starts(place, results):
    (place / "sealed").mkdir()
    seal = 'mount --bind sealed sealed && mount -o remount,ro,bind sealed && exec "$@"'
    done = evo(*RUN, "--results", results, cwd=place, within=(*namespace("--mount"), "sh", "-c", seal, "sh"))
    check_refused(done, results)
    assert "Read-only file system" in done.stderr
    assert list((place / "sealed").iterdir()) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_results_without_permission_are_refused_before_anything_starts(place):
    (place / "sealed").mkdir(mode=0o500)
    check_refused(evo(*RUN, "--results", "sealed", cwd=place), "sealed")


def check_refused(done: subprocess.CompletedProcess[str], results: str) -> None:
    assert done.returncode == UNUSABLE
    assert done.stdout == ""
    assert done.stderr.startswith(f"error: {results}: expected a folder")
    assert "--results" in done.stderr


# --- signals --------------------------------------------------------------------------------------------------


def test_ctrl_c_stops_and_a_second_one_while_it_stops_ends_at_once(begin, place):
    process = begin(*RUN)
    until(process, BEGUN)
    relatives = family(process)
    os.killpg(process.pid, signal.SIGINT)
    until(process, "interrupted; stopping")
    relatives += family(process)
    os.killpg(process.pid, signal.SIGINT)
    _, err = ended(process, relatives)
    assert (process.returncode, err) == (INTERRUPTED, "")
    check_whole(place / "results" / "run-001")


@pytest.mark.long
def test_ctrl_c_while_ray_starts_leaves_a_run_that_can_be_resumed(begin, place):
    process = begin(*RUN)
    until(process, "results/run-001")
    while len(relatives := family(process)) < 3:
        assert process.poll() is None
    os.killpg(process.pid, signal.SIGINT)
    _, err = ended(process, relatives)
    assert (process.returncode, err) == (INTERRUPTED, "")
    check_resumes(place, evaluations=1)


@pytest.mark.long
@pytest.mark.parametrize(
    "number",
    [
        signal.SIGTERM,
        pytest.param(signal.SIGHUP, marks=pytest.mark.long),
        pytest.param(signal.SIGINT, marks=pytest.mark.long),
    ],
)
def test_a_signal_to_the_whole_group_stops_a_run_with_everything_stored(begin, place, number):
    process = begin(*INSTANT)
    until(process, BEGUN)
    relatives = family(process)
    os.killpg(process.pid, number)
    out, err = ended(process, relatives)
    assert (process.returncode, err) == (INTERRUPTED, "")
    assert "stopped: interrupted" in out
    folder = place / "results" / "run-001"
    check_whole(folder)
    with Store.read(folder) as store:
        assert store.meta().stopped == "interrupted"
    assert json.loads((folder / "summary.json").read_text())["stopped"] == "interrupted"


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_second_signal_of_any_kind_leaves_nothing_running_and_a_run_to_resume(begin, place, number):
    process = begin(*RUN)
    until(process, BEGUN)
    relatives = family(process)
    process.send_signal(number)
    until(process, "interrupted; stopping")
    relatives += family(process)
    process.send_signal(number)
    ended(process, relatives)
    check_resumes(place, evaluations=1)


@pytest.mark.long
def test_a_terminal_that_closes_stops_a_run_with_everything_stored(place):
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", ON_THE_TERMINAL, EVO, *RUN],
        cwd=place,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        env={**os.environ, "TERM": "xterm"},
    )
    os.close(theirs)
    shown = b""
    while b"kernel 0 (initial)" not in shown:
        shown += os.read(ours, 4096)
    relatives = family(process)
    os.close(ours)
    process.wait(timeout=30)
    assert alive(relatives) == []
    assert process.returncode == INTERRUPTED
    folder = place / "results" / "run-001"
    check_whole(folder)
    with Store.read(folder) as store:
        assert store.meta().stopped == "interrupted"
    assert (folder / "summary.json").exists()


@pytest.mark.long
@pytest.mark.parametrize("arguments", [(), pytest.param(("--json",), marks=pytest.mark.long)])
def test_a_reader_that_goes_away_stops_a_run(begin, place, arguments):
    process = begin(*INSTANT, *arguments)
    until(process, "run-001")
    process.stdout.close()
    while len(relatives := family(process)) < 5 and process.poll() is None:
        pass
    assert process.wait(timeout=60) == INTERRUPTED
    assert process.stderr.read() == ""
    assert alive(relatives) == []
    with Store.read(place / "results" / "run-001") as store:
        assert store.meta().stopped == "interrupted"
        assert store.check() == ()
