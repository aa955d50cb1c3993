"""Start and stop Ray: quiet, on loopback, with a private token, and with nothing left behind after kill -9.

Ray itself offers no switch for some of this, so a few of its private functions are replaced
(`tests/evo/test_cluster.py` fails when a new Ray version moves them).
"""

from __future__ import annotations

import contextlib
import functools
import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from evaluators import scratch
from evo.errors import EvoError, RunError

# Everything that Ray starts inherits this variable or keeps a log open in the folder that it names (some of Ray's
# processes overwrite their environment with their title), so that the reaper knows it, also when the driver dies in
# the middle of starting Ray.
MARK = "EVO_RAY_FOLDER"

LOCAL = "local"
"""The `ray.address` that means a Ray of our own."""

# The reaper waits for end-of-file on its standard input (the driver is gone, however it went) and kills what bears
# the driver's mark. Three rounds, since a process may be forking while the first one passes.
_REAPER = """
import os, shutil, sys, time
sys.stdin.read()
mark, driver, *folders = sys.argv[1:]
spared = {str(os.getpid()), driver}
def marked(process):
    with open(process + "/environ", "rb") as environ:
        if mark.encode() in environ.read().split(bytes(1)):
            return True
    links = [process + "/fd/" + name for name in os.listdir(process + "/fd")]
    targets = [os.readlink(link) for link in links]
    return any(target.startswith(folder + "/") for target in targets for folder in folders)
for _ in range(3):
    for name in os.listdir("/proc"):
        try:
            if name.isdigit() and name not in spared and marked("/proc/" + name):
                os.kill(int(name), 9)
        except OSError:
            pass
    time.sleep(0.3)
for folder in folders:
    shutil.rmtree(folder, ignore_errors=True)
"""

OBJECT_STORE_BYTES = 256 << 20
KNOCK_S = 10.0
LOOPBACK_TIMEOUT_S = 5.0


@contextlib.contextmanager
def local_ray(num_cpus: int, num_gpus: int = 0) -> Iterator[Any]:
    """Run a Ray of our own for the length of the block and yield the `ray` module.

    Args:
        num_cpus: how many CPU tasks may run at once.
        num_gpus: how many GPUs actors may claim.

    Raises:
        RunError: Ray does not start.
    """
    _expect_loopback()
    _prepare_environment()
    import ray

    _patch(ray)
    # Socket paths are limited to 107 bytes, so the folder's name is short.
    folder = tempfile.mkdtemp(prefix="evo-", dir="/tmp")
    # What is killed cannot remove its scratch files, so that those get folders that go with the run.
    ours = {MARK: folder, "TMPDIR": tempfile.mkdtemp(prefix="evo-")}
    if os.access(scratch.MEMORY, os.W_OK):
        ours[scratch.MEMORY_VARIABLE] = tempfile.mkdtemp(prefix="evo-", dir=scratch.MEMORY)
    reaper = _start_reaper(list(ours.values()))
    try:
        with _environment(ours):
            with _handlers_kept():
                _init(ray, num_cpus, num_gpus, folder)
            yield ray
    finally:
        with _deaf():
            ray.shutdown()
            _finish(reaper)


def _expect_loopback() -> None:
    """Ray's processes talk over loopback; without it Ray would try for minutes before it gives up.

    Raises:
        RunError: nothing can be connected to there.
    """
    try:
        with socket.create_server(("127.0.0.1", 0)) as server:
            socket.create_connection(server.getsockname(), timeout=LOOPBACK_TIMEOUT_S).close()
    except OSError as error:
        raise RunError(
            f"Ray does not start: expected a network interface for 127.0.0.1, found none that works ({error}). "
            "Bring it up with: ip link set lo up"
        ) from error


@contextlib.contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Set variables for the length of the block; what is started in it inherits them."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextlib.contextmanager
def _handlers_kept() -> Iterator[None]:
    """Put back what signals did before: Ray sets handlers of its own, which would end a run halfway."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def _deaf() -> Iterator[None]:
    """Put Ctrl-C off: the end takes a second or two, and Ray that is stopped halfway ends this process with code 1."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _init(ray: Any, num_cpus: int, num_gpus: int, folder: str) -> None:
    try:
        ray.init(
            num_cpus=num_cpus,
            num_gpus=num_gpus,
            include_dashboard=False,
            log_to_driver=False,
            logging_level="ERROR",
            configure_logging=False,
            object_store_memory=OBJECT_STORE_BYTES,
            _node_ip_address="127.0.0.1",
            _temp_dir=folder,
        )
    except Exception as error:
        raise RunError(f"Ray does not start: {error}. `evo doctor` says what this machine lacks.") from error


@contextlib.contextmanager
def joined_ray(address: str) -> Iterator[Any]:
    """Join a running cluster for the length of the block and yield the `ray` module.

    Raises:
        RunError: no cluster answers at `address`, or it is one for Ray Client, whose driver is on no machine of it.
    """
    if address.startswith("ray://"):
        raise RunError(
            f"ray.address: expected HOST:PORT or auto, found {address!r}; run evo on a machine of the cluster itself"
        )
    _knock(address)
    import ray

    _hush()
    try:
        with _handlers_kept():
            ray.init(address=address, log_to_driver=False, logging_level="ERROR", configure_logging=False)
    except Exception as error:
        raise RunError(f"No Ray cluster answers at ray.address {address!r}: {error}") from error
    try:
        yield ray
    finally:
        ray.shutdown()


def _knock(address: str) -> None:
    """See whether anything listens there: Ray itself would try for minutes before it says that nothing does."""
    host, _, port = address.rpartition(":")
    if not port.isdecimal():
        return  # auto, or what Ray itself refuses at once
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=KNOCK_S).close()
    except (OSError, OverflowError) as error:
        way = "`ray status` on a machine of the cluster tells whether it runs; `ray.address: local` needs none"
        raise RunError(f"No Ray cluster answers at ray.address {address!r}: {error}; {way}") from error


def _prepare_environment() -> None:
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    # MemTotal grows with use on some virtual machines, and the monitor would kill workers for it.
    os.environ["RAY_memory_monitor_refresh_ms"] = "0"  # noqa: SIM112 (Ray reads it in this very case)
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    # Without these, Ray writes a token to ~/.ray with mode 0644.
    os.environ["RAY_AUTH_MODE"] = "token"
    os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))


def _patch(ray: Any) -> None:
    import ray._private.services as services
    from ray._raylet import Config  # type: ignore[attr-defined]  # a compiled module

    # "127.0.0.1" would be swapped for the machine's own address, and Ray would listen on all interfaces.
    services.resolve_ip_for_localhost = lambda host: host
    _hush()
    # Ctrl-C, a terminal that closes and timeout(1) signal the whole process group; Ray is to outlive them, until the
    # run has stored what it has.
    services.ConsolePopen = functools.partial(subprocess.Popen, start_new_session=True)
    # RAY_* variables are read once, at import, and somebody may have imported ray before us.
    Config.initialize("")


def _hush() -> None:
    """Keep "(raylet) A worker died" off stdout, where it would go even with log_to_driver=False."""
    import ray._private.worker as worker

    worker.print_to_stdstream = lambda *args, **kwargs: None


def _start_reaper(folders: Sequence[str]) -> subprocess.Popen[bytes]:
    """Start the reaper of a run; the first of its folders is the mark."""
    return subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", _REAPER, f"{MARK}={folders[0]}", str(os.getpid()), *folders],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        env={},
    )


def _finish(reaper: subprocess.Popen[bytes]) -> None:
    """Let the reaper see end-of-file: it sweeps what `ray.shutdown` left, and the folders."""
    assert reaper.stdin is not None
    reaper.stdin.close()
    reaper.wait()


def fault(error: Any, where: str) -> EvoError:
    """Return what a `RayTaskError` means to a person: the error that was raised on purpose, or a fault of ours.

    Args:
        error: from Ray, with the worker's own error as its cause.
        where: it happened, e.g. "task 5".
    """
    if isinstance(error.cause, EvoError):
        return error.cause
    return RunError(f"{where} met a fault of the product itself, not of a kernel: {error}")
