"""The child that runs a generated `reference.py` behind the sandbox's walls, one request after the other.

usage: confined_child.py MODULES STDLIB SOURCE_BYTES

Reads the reference's text, then requests, from stdin and answers on stdout; see `evo.workload.confined`. The walls are
the sandbox's. The audit hook (PEP 578) stands before them for the sake of its words: it knows what was tried.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from typing import Any, BinaryIO

_EVENTS = (
    ("socket.", "it opened a socket"),
    ("urllib.", "it opened a socket"),
    ("subprocess.", "it started a program"),
    ("os.system", "it started a program"),
    ("os.exec", "it started a program"),
    ("os.spawn", "it started a program"),
    ("os.posix_spawn", "it started a program"),
    ("os.startfile", "it started a program"),
    ("os.fork", "it started a program"),
    ("pty.spawn", "it started a program"),
    ("_thread.start", "it started a thread"),
    ("ctypes.", "it called native code through ctypes"),
    ("os.kill", "it sent a signal"),
    ("signal.pthread_kill", "it sent a signal"),
    ("os.remove", "it deleted a file"),
    ("os.rmdir", "it deleted a folder"),
    ("os.mkdir", "it made a folder"),
    ("os.rename", "it renamed a file"),
    ("os.link", "it made a link"),
    ("os.symlink", "it made a link"),
    ("os.truncate", "it wrote a file"),
    ("shutil.", "it copied or deleted files"),
    ("tempfile.", "it wrote a file"),
)
"""Beginnings of audit events, and what they mean."""
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


def main() -> None:
    """Answer until stdin ends."""
    modules, stdlib, size = sys.argv[1], sys.argv[2], int(sys.argv[3])
    sys.path[:] = [modules, stdlib, os.path.join(stdlib, "lib-dynload")]
    import numpy as np

    calling = importlib.import_module("calling")  # it lies beside this file here, and the house is out of sight

    requests, replies = _own_pipes()
    source = requests.read(size).decode()
    np.seterr(all="ignore")  # warnings would go nowhere
    sys.addaudithook(_Guard(replies, (modules, stdlib)))
    while line := requests.readline():
        request = json.loads(line)
        given: dict[str, Any] = dict(request["scalars"])
        for name, dtype, shape, nbytes in request["arrays"]:
            given[name] = np.frombuffer(requests.read(nbytes), dtype).reshape(shape)  # of bytes: read-only
        try:
            head, bodies = _answer(np, calling.call(source, given, request["dims"]))
        except calling.Failed as failed:
            head = {"failed": [failed.text, failed.line, failed.called, failed.defined]}
            bodies = []
        except MemoryError:
            head, bodies = {"broke": "memory"}, []
        _send(replies, head, bodies)


def _own_pipes() -> tuple[BinaryIO, BinaryIO]:
    """Take stdin and stdout away from the reference, which may print."""
    requests, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    for fd in (0, 1, 2):
        os.dup2(os.open(os.devnull, os.O_RDWR), fd)
    return requests, replies


def _answer(np: Any, returned: Any) -> tuple[dict[str, Any], list[bytes]]:
    """Return the head of an answer, and the bytes of its arrays: of each output one, or two with its scale."""
    if not isinstance(returned, dict):
        return {"returned": type(returned).__name__}, []
    outputs, bodies = [], []
    for name, value in returned.items():
        pair = value if isinstance(value, tuple) and len(value) == 2 else (value,)
        arrays = [np.ascontiguousarray(np.asarray(part)) for part in pair]
        plain = all(array.dtype.kind in "fiub" for array in arrays)
        outputs.append([str(name), [[array.dtype.str if plain else "O", np.shape(array)] for array in arrays]])
        bodies += [array.tobytes() for array in arrays] if plain else []
    return {"outputs": outputs}, bodies


def _send(replies: BinaryIO, head: dict[str, Any], bodies: list[bytes]) -> None:
    replies.write(json.dumps(head).encode() + b"\n")
    for body in bodies:
        replies.write(body)
    replies.flush()


class _Guard:
    """Ends the process at the first thing that a reference has no business with, and says what it was."""

    def __init__(self, replies: BinaryIO, readable: tuple[str, ...]) -> None:
        self.replies, self.readable = replies, readable

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            said = self._opened(*arguments)
        else:
            said = next((words for start, words in _EVENTS if event.startswith(start)), "")
        if said:
            _send(self.replies, {"broke": said}, [])
            os._exit(1)

    def _opened(self, path: object, mode: object, flags: object) -> str:
        if isinstance(path, int):
            return ""
        name = os.fsdecode(path) if isinstance(path, str | bytes) else str(path)
        if isinstance(flags, int) and flags & _WRITING:
            return f"it wrote a file: {name[:200]!r}"
        # NumPy and the standard library load parts of theirs late; of an error in the text Python looks for the line.
        if name.startswith(self.readable) or name == "reference.py":
            return ""
        return f"it read a file: {name[:200]!r}"


if __name__ == "__main__":
    main()
