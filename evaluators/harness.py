"""The child: reads jobs from its standard input, runs them on one device, writes results to its standard output.

One JSON line each way; answers are numbered. No expected value ever enters, and nothing here judges a result. The child
lives and dies with its parent: end-of-file on standard input kills its whole process group.
"""

from __future__ import annotations

import argparse
import os
import queue
import signal
import sys
import threading
from collections.abc import Callable
from typing import BinaryIO

from evaluators.device import DevicePlugin
from evo import plugins
from evo.errors import EvoError
from evo.records import Job, JobResult, LaunchPlan, Status, from_json, to_json

READY = b"ready\n"
"""The child's first line: what takes long is done, and the next line answers a job."""
FAILED = b"failed "
"""Begins the line that says, instead of `READY` or a result, that the system failed and not the candidate."""


def main(argv: list[str] | None = None) -> None:
    """Serve jobs until standard input ends."""
    parser = argparse.ArgumentParser(prog="python -m evaluators.harness")
    parser.add_argument("--device", required=True, help="name or .py path of the device plug-in")
    name = parser.parse_args(argv).device
    replies = _private_stdout()
    jobs = _watch(sys.stdin.buffer)
    try:
        device: DevicePlugin = plugins.resolve(plugins.DEVICES, name)()
        device.prepare()
        _rehearse()
    except Exception as error:  # a plug-in is foreign; who started this child must learn why there is none
        replies.write(_failed(error) + b"\n")
        sys.exit(1)
    replies.write(READY)
    replies.flush()
    serve(jobs.get, replies, device)


def _rehearse() -> None:
    """Read and write one record of each kind: the first of them builds its converter, which no job is to wait for."""
    from_json(Job, to_json(Job("", "", LaunchPlan(()), (), ())))
    to_json(JobResult(Status.OK))


def serve(next_line: Callable[[], bytes], replies: BinaryIO, device: DevicePlugin) -> None:
    """Answer every line with one line, and its number, until an empty one comes."""
    number = 0
    while line := next_line():
        number += 1
        replies.write(b"%d %s\n" % (number, answer(device, from_json(Job, line))))
        replies.flush()


def answer(device: DevicePlugin, job: Job) -> bytes:
    """Run one job; return its result as one line of JSON, or `FAILED` and the reason."""
    try:
        return to_json(device.run(job)).encode()
    except EvoError as error:
        return _failed(error)
    except Exception as error:  # a plug-in is foreign: its failure reaches the parent as words, its state is unknown
        message = f"the device failed: {type(error).__name__}: {error}"
        return to_json(JobResult(Status.CRASH, message, spent=True)).encode()


def _failed(error: Exception) -> bytes:
    return FAILED + f"{type(error).__name__}: {error}".replace("\n", " ").encode()


def _private_stdout() -> BinaryIO:
    """Keep the real standard output for replies alone: what libraries and kernels print goes to standard error."""
    sys.stdout.flush()
    private = os.dup(1)
    os.dup2(2, 1)
    return os.fdopen(private, "wb")


def _watch(stdin: BinaryIO) -> queue.Queue[bytes]:
    """Read lines in a thread, so that the parent's death is seen while a job runs."""
    lines: queue.Queue[bytes] = queue.Queue()

    def read() -> None:
        for line in stdin:
            lines.put(line)
        if os.getpgrp() == os.getpid():
            os.killpg(0, signal.SIGKILL)
        os._exit(0)

    threading.Thread(target=read, daemon=True).start()
    return lines


if __name__ == "__main__":
    main()
