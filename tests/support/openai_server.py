"""The server of `model_server` under the name of the protocol that most tests speak; also a process of its own."""

from __future__ import annotations

import sys
import threading

from tests.support.model_server import (
    Fault,
    Recorded,
    Replier,
    Sent,
    Server,
    Tally,
    echo_kernel,
    say,
    serve,
)
from tests.support.protocols import Answer

__all__ = [
    "Answer", "Fault", "Recorded", "Replier", "Sent", "Server", "Tally", "echo_kernel", "say", "serve",
]  # fmt: skip

if __name__ == "__main__":
    with serve(port=int(sys.argv[1]) if len(sys.argv) > 1 else 0) as running:
        print(running.url, flush=True)
        threading.Event().wait()
