"""A real HTTP server on loopback that speaks the OpenAI chat-completions protocol, with faults on demand.

For tests and measurements: `with serve() as server:` in a test, `python -m tests.support.openai_server PORT` as a
process of its own (it prints its base URL). It records every request. Nothing of the product may enter.
"""

from __future__ import annotations

import contextlib
import http.server
import json
import re
import sys
import threading
import zlib
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass(frozen=True)
class Fault:
    """What goes wrong with one request.

    Attributes:
        kind: `status` (an HTTP error), `drop` (the connection closes without an answer), `garbage` (200 with JSON
            that is no completion), `slow` (the right answer after `delay_s`), `drip` (one byte of the answer each
            `delay_s`, so that no single read ever times out).
        status: HTTP status for kind `status`.
        headers: sent with the error, e.g. `Retry-After`.
        message: the error's text.
        code: the error's code, e.g. `insufficient_quota`.
        delay_s: for `slow` and `drip`.
    """

    kind: Literal["status", "drop", "garbage", "slow", "drip"] = "status"
    status: int = 500
    headers: Mapping[str, str] = field(default_factory=dict)
    message: str = "injected fault"
    code: str | None = None
    delay_s: float = 30.0


@dataclass(frozen=True)
class Answer:
    """One completion. Tokens default to a quarter of the characters; None leaves the whole usage out."""

    text: str | None
    finish_reason: str = "stop"
    reasoning_tokens: int = 64
    usage: bool = True


@dataclass(frozen=True)
class Recorded:
    """One request as it arrived."""

    path: str
    body: dict[str, Any]
    authorization: str | None

    @property
    def text(self) -> str:
        """All messages' text, in order."""
        return "\n".join(str(message["content"]) for message in self.body["messages"])


Replier = Callable[[Recorded], Answer]

_FENCED = re.compile(r"^(`{3,})[a-z]*\n(.*?)^\1", re.DOTALL | re.MULTILINE)
_VARIANT = re.compile(r"^__device__ inline unsigned variant\(\).*\n", re.MULTILINE)


class Server(http.server.ThreadingHTTPServer):
    """The server; `faults` are used up from the left, one a request."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, port: int, reply: Replier) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.reply = reply
        self.requests: list[Recorded] = []
        self.faults: deque[Fault] = deque()
        self.closing = threading.Event()
        self.lock = threading.Lock()

    @property
    def url(self) -> str:
        """The `api_base` of this server."""
        return f"http://127.0.0.1:{self.server_port}/v1"


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # with Nagle on, every answer takes 40 ms more
    server: Server

    def log_message(self, format: str, *arguments: object) -> None:
        """Stay silent: the tests read `requests` instead."""

    def do_GET(self) -> None:
        self._send(200, {"object": "list", "data": [{"id": "gpt-5-mini", "object": "model"}]})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        recorded = Recorded(self.path, body, self.headers.get("Authorization"))
        with self.server.lock:
            self.server.requests.append(recorded)
            fault = self.server.faults.popleft() if self.server.faults else None
        if fault is None:
            self._send(200, _completion(recorded, self.server.reply(recorded)))
        else:
            self._fail(fault, recorded)

    def _fail(self, fault: Fault, recorded: Recorded) -> None:
        match fault.kind:
            case "drop":
                self.close_connection = True
            case "garbage":
                self._send(200, {"nonsense": 1})
            case "slow":
                self.server.closing.wait(fault.delay_s)
                self._send(200, _completion(recorded, self.server.reply(recorded)))
            case "drip":
                self._drip(fault.delay_s)
            case "status":
                error = {"message": fault.message, "type": "injected", "code": fault.code}
                self._send(fault.status, {"error": error}, fault.headers)

    def _send(self, status: int, document: object, headers: Mapping[str, str] | None = None) -> None:
        data = json.dumps(document).encode()
        with contextlib.suppress(OSError):  # the client may have given up
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            for name, value in (headers or {}).items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

    def _drip(self, delay_s: float) -> None:
        with contextlib.suppress(OSError):
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", "1000000")
            self.end_headers()
            while not self.server.closing.wait(delay_s):
                self.wfile.write(b" ")


def _completion(recorded: Recorded, answer: Answer) -> dict[str, Any]:
    message = {"role": "assistant", "content": answer.text}
    document: dict[str, Any] = {
        "id": "chatcmpl-local",
        "object": "chat.completion",
        "created": 0,
        "model": recorded.body["model"],
        "choices": [{"index": 0, "message": message, "finish_reason": answer.finish_reason}],
    }
    if answer.usage:
        tokens_in, tokens_out = len(recorded.text) // 4 + 1, len(answer.text or "") // 4 + 1
        document["usage"] = {
            "prompt_tokens": tokens_in,
            "completion_tokens": tokens_out + answer.reasoning_tokens,
            "total_tokens": tokens_in + tokens_out + answer.reasoning_tokens,
            "completion_tokens_details": {"reasoning_tokens": answer.reasoning_tokens},
        }
    return document


def say(text: str | None, **more: Any) -> Replier:
    """Return a replier that always gives this answer."""
    return lambda recorded: Answer(text, **more)


def echo_kernel(recorded: Recorded) -> Answer:
    """Answer with the request's first complete kernel and one unused device function, another for each request."""
    kernels = [text for _, text in _FENCED.findall(recorded.text) if "__global__" in text and "launch" in text]
    if not kernels:
        return Answer("There is no kernel in the request.")
    number = zlib.crc32(recorded.text.encode())
    kernel = _VARIANT.sub("", kernels[0])
    variant = f"__device__ inline unsigned variant() {{ return {number}u; }}\n"
    return Answer(f"The same kernel, marked.\n\n````cuda\n{kernel}{variant}````\n")


@contextlib.contextmanager
def serve(reply: Replier = echo_kernel, port: int = 0) -> Iterator[Server]:
    """Run a server in a thread until the block ends."""
    server = Server(port, reply)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.closing.set()
        server.shutdown()
        thread.join()
        server.server_close()


if __name__ == "__main__":
    with serve(port=int(sys.argv[1]) if len(sys.argv) > 1 else 0) as running:
        print(running.url, flush=True)
        threading.Event().wait()
