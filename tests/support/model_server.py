"""A real HTTP server on loopback that speaks OpenAI's, Anthropic's, Gemini's and Ollama's protocols, with faults.

For tests and measurements: `with serve() as server:` in a test, `python -m tests.support.openai_server PORT` as a
process of its own (it prints its base URL). Which protocol a request speaks follows from its path. It records every
request and keeps the provider's side of the books. Nothing of the product may enter.
"""

from __future__ import annotations

import contextlib
import http.server
import json
import re
import threading
import time
import zlib
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from tests.support import protocols
from tests.support.protocols import Answer, Protocol, Usage


@dataclass(frozen=True)
class Fault:
    """What goes wrong with one request.

    Attributes:
        kind: `status` (an HTTP error), `drop` (the connection closes without an answer), `cut` (it closes in the
            middle of the answer's body), `garbage` (200 with JSON that is no completion), `junk` (200 with a body that
            is no JSON), `slow` (the right answer after `delay_s`), `drip` (one byte of the answer each `delay_s`, so
            that no single read ever times out).
        status: HTTP status for kind `status`.
        headers: sent with the error, e.g. `Retry-After`.
        message: the error's text.
        code: the error's code, e.g. `insufficient_quota`.
        delay_s: for `slow` and `drip`.
    """

    kind: Literal["status", "drop", "cut", "garbage", "junk", "slow", "drip"] = "status"
    status: int = 500
    headers: Mapping[str, str] = field(default_factory=dict)
    message: str = "injected fault"
    code: str | None = None
    delay_s: float = 30.0


@dataclass(frozen=True)
class Recorded:
    """One request as it arrived; header names in lower case."""

    path: str
    body: dict[str, Any]
    headers: Mapping[str, str]

    @property
    def protocol(self) -> Protocol:
        """That it speaks."""
        return protocols.of_path(self.path)

    @property
    def authorization(self) -> str | None:
        """The header of that name."""
        return self.headers.get("authorization")

    @property
    def text(self) -> str:
        """All messages' text, in order."""
        return self.protocol.says(self.body)


@dataclass(frozen=True)
class Sent:
    """One completion whose last byte has left: when (Unix time, seconds), in answer to what, and its tokens."""

    at: float
    recorded: Recorded
    usage: Usage


@dataclass(frozen=True)
class Tally:
    """The provider's side of the books.

    Attributes:
        requests: that arrived, errors included.
        answered: completions that were sent whole.
        unfinished: answers that were owed and not sent whole, which a provider may charge for.
        input_tokens: of the completions that were sent whole.
        output_tokens: likewise, reasoning included.
        usd: their price.
    """

    requests: int
    answered: int
    unfinished: int
    input_tokens: int
    output_tokens: int
    usd: float


Replier = Callable[[Recorded], Answer]

_FENCED = re.compile(r"^(`{3,})[a-z]*\n(.*?)^\1", re.DOTALL | re.MULTILINE)
_VARIANT = re.compile(r"^__device__ inline unsigned variant\(\).*\n", re.MULTILINE)


class Server(http.server.ThreadingHTTPServer):
    """The server; `faults` are used up from the left, one a request. Prices are gpt-5-mini's, in USD per token.

    `most_at_once` is how many requests it has had at the same time.
    """

    daemon_threads = True
    block_on_close = False
    request_queue_size = 512  # hundreds of clients connect at once; the default of 5 makes them wait for seconds

    def __init__(self, port: int, reply: Replier, input_usd: float = 0.25e-6, output_usd: float = 2e-6) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.reply = reply
        self.input_usd, self.output_usd = input_usd, output_usd
        self.requests: list[Recorded] = []
        self.sent: list[Sent] = []
        self.unfinished = 0
        self.at_once = self.most_at_once = 0
        self.faults: deque[Fault] = deque()
        self.closing = threading.Event()
        self.lock = threading.Lock()

    @property
    def root(self) -> str:
        """The server's URL without a path: the `api_base` of all protocols but OpenAI's."""
        return f"http://127.0.0.1:{self.server_port}"

    @property
    def url(self) -> str:
        """The `api_base` of this server for OpenAI's protocol."""
        return f"{self.root}/v1"

    def tally(self) -> Tally:
        """Return the books as they stand."""
        with self.lock:
            tokens_in = sum(sent.usage.prompt for sent in self.sent)
            tokens_out = sum(sent.usage.output for sent in self.sent)
            usd = tokens_in * self.input_usd + tokens_out * self.output_usd
            return Tally(len(self.requests), len(self.sent), self.unfinished, tokens_in, tokens_out, usd)


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers one connection's requests, after the server's faults."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # with Nagle on, every answer takes 40 ms more
    server: Server

    def log_message(self, format: str, *arguments: object) -> None:
        """Stay silent: the tests read `requests` instead."""

    def do_GET(self) -> None:
        if self.path == "/api/tags":
            self._send(200, protocols.OLLAMA_TAGS)
            return
        self._send(200, {"object": "list", "data": [{"id": "gpt-5-mini", "object": "model"}]})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/api/show":
            self._send(200, protocols.OLLAMA_MODEL)
            return
        recorded = Recorded(self.path, body, {name.lower(): value for name, value in self.headers.items()})
        with self.server.lock:
            self.server.requests.append(recorded)
            self.server.at_once += 1
            self.server.most_at_once = max(self.server.most_at_once, self.server.at_once)
            fault = self.server.faults.popleft() if self.server.faults else None
        if fault is None:
            self._complete(recorded)
        else:
            self._fail(fault, recorded)

    def _complete(self, recorded: Recorded) -> None:
        answer = self.server.reply(recorded)
        spent = protocols.usage(recorded.protocol, recorded.body, answer)
        data = json.dumps(recorded.protocol.completion(recorded.path, recorded.body, answer, spent)).encode()
        self._end(owed=0)
        try:
            self._head(200, len(data))
            self.wfile.write(data[:-1])
            with self.server.lock:  # who has read the last byte finds it in the books
                self.wfile.write(data[-1:])
                self.server.sent.append(Sent(time.time(), recorded, spent))
        except OSError:  # the client has given up
            with self.server.lock:
                self.server.unfinished += 1

    def _end(self, owed: int) -> None:
        with self.server.lock:
            self.server.at_once -= 1
            self.server.unfinished += owed

    def _fail(self, fault: Fault, recorded: Recorded) -> None:
        match fault.kind:
            case "status":
                self._end(owed=0)
                self._send(
                    fault.status, recorded.protocol.error(fault.status, fault.message, fault.code), fault.headers
                )
            case "slow":
                self.server.closing.wait(fault.delay_s)
                self._complete(recorded)
            case _:
                self._end(owed=1)
                self._spoil(fault)

    def _spoil(self, fault: Fault) -> None:
        match fault.kind:
            case "drop":
                self.close_connection = True
            case "cut":
                self._part(b'{"id": "cut", "choi')
                self.close_connection = True
            case "garbage":
                self._send(200, {"nonsense": 1})
            case "junk":
                self._write(200, b"<html>a proxy's page</html>")
            case "drip":
                self._part(b"{")
                with contextlib.suppress(OSError):
                    while not self.server.closing.wait(fault.delay_s):
                        self.wfile.write(b" ")

    def _send(self, status: int, document: object, headers: Mapping[str, str] | None = None) -> None:
        self._write(status, json.dumps(document).encode(), headers)

    def _write(self, status: int, data: bytes, headers: Mapping[str, str] | None = None) -> None:
        with contextlib.suppress(OSError):  # the client may have given up
            self._head(status, len(data), headers)
            self.wfile.write(data)

    def _part(self, data: bytes) -> None:
        """Send the beginning of an answer that promises more."""
        with contextlib.suppress(OSError):
            self._head(200, 1_000_000)
            self.wfile.write(data)

    def _head(self, status: int, length: int, headers: Mapping[str, str] | None = None) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(length))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()


def say(text: str | None, **more: Any) -> Replier:
    """Return a replier that always gives this answer."""
    return lambda recorded: Answer(text, **more)


def echo_kernel(recorded: Recorded) -> Answer:
    """Answer with the request's last complete kernel and one unused device function, another for each request.

    Kernels that show how headers are written come before those that are to be changed.
    """
    kernels = [text for _, text in _FENCED.findall(recorded.text) if "__global__" in text and "launch" in text]
    if not kernels:
        return Answer("There is no kernel in the request.")
    number = zlib.crc32(recorded.text.encode())
    kernel = _VARIANT.sub("", kernels[-1])
    variant = f"__device__ inline unsigned variant() {{ return {number}u; }}\n"
    return Answer(f"The same kernel, marked.\n\n````cuda\n{kernel}{variant}````\n")


@contextlib.contextmanager
def serve(reply: Replier = echo_kernel, port: int = 0, **prices: float) -> Iterator[Server]:
    """Run a server in a thread until the block ends; `input_usd` and `output_usd` are prices of a token."""
    server = Server(port, reply, **prices)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.closing.set()
        server.shutdown()
        thread.join()
        server.server_close()
