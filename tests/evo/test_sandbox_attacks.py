"""A hostile program does not get out, whatever it tries, and nothing of the machine has changed afterwards."""

from __future__ import annotations

import os
import platform
import shutil
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from evo import sandbox
from tests.support.programs import attacks

LIMITS = sandbox.Limits(wall_s=5, cpu_s=1, memory_bytes=256 << 20, file_bytes=1 << 20)
SECRET = "the content of a private file"

KILLED = [
    "exec",
    "execveat",
    "system",
    "fork",
    "vfork",
    "raw fork",
    "thread",
    "socket",
    "unix socket",
    "netlink",
    "socketpair",
    "ptrace",
    "kill",
    "tkill",
    "tgkill",
    "sigqueue",
    "pidfd",
    "read memory",
    "truncate",
    "mount",
    "unshare",
    "chroot",
    "bpf",
    "perf",
    "keyctl",
    "become root",
    "10 GB at once",
    "32-bit call",
    "x32 call",
]
REFUSED = [
    "setown",
    "async",
    "ioctl owner",
    "setpriority",
    "setaffinity",
    "prlimit",
    "setrlimit",
    "read",
    "write",
    "create",
    "truncating read",
    "chmod",
    "chown",
    "utime",
    "setxattr",
    "unlink",
    "rename",
    "symlink",
    "link",
    "mkdir",
    "mknod",
    "chdir",
    "io_uring",
    "memfd",
    "pdeathsig",
    "new session",
    "personality",
    "shared memory",
    "message queue",
    "10 GB hole",
]
TOOLS_MAY = {"exec", "system", "fork", "vfork", "raw fork", "thread", "chdir"}
"""What a compiler needs; it stays inside of the same walls."""
ON_A_PROCESS = {
    "kill",
    "tkill",
    "tgkill",
    "sigqueue",
    "pidfd",
    "ptrace",
    "setown",
    "ioctl owner",
    "setpriority",
    "setaffinity",
    "prlimit",
    "read memory",
}
NEW_FILE = {"create", "mkdir", "symlink", "link", "mknod"}
SHARED_IN_TOOLS = {"10 GB at once"}


@dataclass(frozen=True)
class Scene:
    """The attacker's folder, and what it must not touch: a private file and a process."""

    folder: Path
    canary: Path
    victim: subprocess.Popen[bytes]

    def run(self, name: str, *, may_exec: bool) -> sandbox.Completed:
        if name in ON_A_PROCESS:
            argument = str(self.victim.pid)
        elif name in ("exec", "execveat", "system"):
            argument = "/bin/true"
        elif name.startswith("10 GB"):
            argument = str(self.folder / "output")
        else:
            # Creating is what a compiler may do in its folder; so its attempts are made beside the canary.
            argument = str(self.canary) if name not in NEW_FILE else str(self.canary.parent / "new")
        program = self.folder / "attacks"
        return sandbox.run([program, name, argument], folder=self.folder, limits=LIMITS, may_exec=may_exec)

    def state(self) -> object:
        status = self.canary.stat()
        victim = self.victim.pid
        return (
            self.canary.read_text(),
            (status.st_mode, status.st_uid, status.st_mtime_ns, status.st_ctime_ns, status.st_ino),
            sorted(path.name for path in self.canary.parent.iterdir()),
            os.listxattr(self.canary),
            self.victim.poll(),
            os.getpriority(os.PRIO_PROCESS, victim),
            os.sched_getaffinity(victim),
            Path(f"/proc/{victim}/limits").read_text(),
        )


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    folder, outside = tmp_path / "inside", tmp_path / "outside"
    folder.mkdir()
    outside.mkdir()
    shutil.copy(attacks(), folder / "attacks")
    (folder / "output").touch()
    (outside / "canary").write_text(SECRET)
    with subprocess.Popen(["sleep", "600"]) as victim:
        yield Scene(folder, outside / "canary", victim)
        victim.kill()


@pytest.mark.parametrize("name", KILLED)
def test_an_attack_kills_the_program(scene: Scene, name: str) -> None:
    before = scene.state()
    done = scene.run(name, may_exec=False)
    # Kernels without 32-bit support answer its calls with a fault.
    assert done.signal in ({signal.SIGSYS, signal.SIGSEGV} if name == "32-bit call" else {signal.SIGSYS})
    assert "forbidden" in done.reason or name == "32-bit call"
    assert done.stdout == b""
    assert scene.state() == before


@pytest.mark.parametrize("name", REFUSED)
def test_an_attack_is_refused(scene: Scene, name: str) -> None:
    before = scene.state()
    done = scene.run(name, may_exec=False)
    assert done.stdout.startswith(b"refused")
    assert scene.state() == before


@pytest.mark.parametrize("name", sorted({*KILLED, *REFUSED} - TOOLS_MAY - SHARED_IN_TOOLS))
def test_tools_cannot_reach_beyond_their_folder_either(scene: Scene, name: str) -> None:
    before = scene.state()
    done = scene.run(name, may_exec=True)
    assert done.signal in (signal.SIGSYS, signal.SIGSEGV) or done.stdout.startswith(b"refused")
    assert SECRET.encode() not in done.stdout
    assert scene.state() == before


@pytest.mark.parametrize(
    "name",
    ["10 GB bit by bit", "10 GB shared", "10 GB of stacks", "10 GB of heap", "10 GB unprotected later"],
)
@pytest.mark.parametrize("may_exec", [False, True])
def test_memory_ends_at_its_limit(scene: Scene, name: str, may_exec: bool) -> None:
    done = scene.run(name, may_exec=may_exec)
    got_mib = int(done.stdout.removeprefix(b"got ").removesuffix(b" MiB\n"))
    assert got_mib << 20 <= LIMITS.memory_bytes


@pytest.mark.parametrize("may_exec", [False, True])
def test_a_file_ends_at_its_limit(scene: Scene, may_exec: bool) -> None:
    done = scene.run("10 GB file", may_exec=may_exec)
    assert done.signal == signal.SIGXFSZ
    assert "larger" in done.reason
    assert (scene.folder / "output").stat().st_size <= LIMITS.file_bytes


@pytest.mark.parametrize("path", ["/proc/self/environ", "/proc/self/mem", "/etc/passwd", "/etc/hostname", "/dev/zero"])
def test_a_program_reads_no_file_of_the_machine(scene: Scene, path: str) -> None:
    done = sandbox.run([scene.folder / "attacks", "read", path], folder=scene.folder, limits=LIMITS)
    assert done.stdout.startswith(b"refused 13")


def test_the_parents_environment_is_out_of_reach(scene: Scene) -> None:
    path = f"/proc/{os.getpid()}/environ"
    for may_exec in (False, True):
        done = sandbox.run(
            [scene.folder / "attacks", "read", path], folder=scene.folder, limits=LIMITS, may_exec=may_exec
        )
        assert done.stdout.startswith(b"refused")


@pytest.mark.parametrize("name", ["create", "mkdir", "symlink", "link", "mknod", "list"])
def test_a_program_makes_nothing_in_its_own_folder(scene: Scene, name: str) -> None:
    before = sorted(scene.folder.iterdir())
    target = scene.folder if name == "list" else scene.folder / "new"
    done = sandbox.run([scene.folder / "attacks", name, target], folder=scene.folder, limits=LIMITS)
    assert done.stdout.startswith(b"refused")
    assert sorted(scene.folder.iterdir()) == before


RESOLVER = 'extern "C" void* early() { attack(); return (void*)attack; }'
EARLY = {
    "a constructor": "__attribute__((constructor(101))) void early() { attack(); }",
    "an entry of .preinit_array": '__attribute__((section(".preinit_array"), used)) void (*entry)() = attack;',
    "an IFUNC resolver": RESOLVER + 'void other() __attribute__((ifunc("early"))); void (*entry)() = other;',
}
# socket(AF_INET, SOCK_STREAM, 0), without the C library's help: a resolver runs before it is ready.
ATTACK = """
static void attack() {
    long result;
    asm volatile("syscall" : "=a"(result) : "a"(41), "D"(2), "S"(1), "d"(0) : "rcx", "r11", "memory");
}
"""


@pytest.mark.skipif(platform.machine() != "x86_64", reason="written in x86-64 assembly")
@pytest.mark.parametrize("how", EARLY)
def test_no_code_of_a_program_runs_before_the_walls_stand(how: str, tmp_path: Path) -> None:
    (tmp_path / "early.cpp").write_text(f"{ATTACK}{EARLY[how]}\nint main() {{}}\n")
    subprocess.run(["g++", "early.cpp", "-o", "early"], cwd=tmp_path, check=True, timeout=60)
    done = sandbox.run([tmp_path / "early"], folder=tmp_path, limits=LIMITS)
    assert done.signal == signal.SIGSYS


def test_many_files_cannot_be_made_to_fill_the_disk(scene: Scene) -> None:
    before = sum(path.stat().st_size for path in scene.folder.iterdir())
    for _ in range(3):
        scene.run("10 GB file", may_exec=False)
        scene.run("create", may_exec=False)
    after = sum(path.stat().st_size for path in scene.folder.iterdir())
    assert after - before <= LIMITS.file_bytes
