"""The client `command`: any program that takes a prompt on its standard input and prints the answer, such as an agent.

The program is the user's own and runs with the user's rights and environment; what is confined here is its time, its
output and what it leaves running.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from evo.config import Model
from evo.errors import MutatorError
from evo.records import Message, ModelFacts, ModelReply, ModelRequest
from mutators import exchange
from mutators.environment import redact

MOST_STDERR = 2000
"""Bytes at the end of what a failing program says that are kept: the last lines tell why it ended."""

_DRAIN_S = 2.0
"""After its end a program's last output is in the pipes already; what takes longer comes from somebody else."""

_STARTER = """
import ctypes, os, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: nobody pays for an agent whose answer nobody awaits
if os.getppid() == int(sys.argv[1]):
    os.execv(sys.argv[2], sys.argv[2:])
"""
"""Becomes the program, which then dies with the worker, however that ends."""


@dataclass(frozen=True)
class Command:
    """Runs a program for each request, in a fresh and empty folder.

    Attributes:
        name: that reports call it by.
        command: the program and its arguments, e.g. `[claude, --print]`. It reads the prompt from standard input,
            prints nothing but the answer, and ends with 0.
        timeout_s: after which it is killed, with all that it has started.
        window_tokens: how long a prompt may be; None keeps it short.
    """

    name: str
    command: tuple[str, ...] = ()
    timeout_s: float = 300.0
    window_tokens: int | None = None

    def check(self) -> None:
        """Raise `MutatorError` when there is no such program, or no name for it."""
        if self.name == Model().name:
            raise MutatorError(
                f"the client 'command' needs a 'name', or reports would call the program {self.name}; e.g. name: agent"
            )
        self._program()

    def facts(self) -> ModelFacts:
        """Return what is known: neither a price nor tools."""
        return ModelFacts(self.name, window_tokens=self.window_tokens)

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Run the program once. What it costs nobody tells."""
        start = time.monotonic()
        try:
            argv = (self._program(), *self.command[1:])
        except MutatorError as error:
            return ModelReply("error", model=self.name, attempts=0, cost_usd=0.0, error=str(error), fatal=True)
        reply = await self._run(argv, rendered(request.messages).encode("utf-8", "replace"))
        return replace(reply, model=self.name, latency_s=time.monotonic() - start)

    async def _run(self, argv: tuple[str, ...], prompt: bytes) -> ModelReply:
        loop = asyncio.get_running_loop()
        with tempfile.TemporaryDirectory(prefix="evo-command-", ignore_cleanup_errors=True) as folder:
            starter = (sys.executable, "-I", "-S", "-c", _STARTER, str(os.getpid()))
            transport, program = await loop.subprocess_exec(
                lambda: _Program(loop), *starter, *argv, cwd=folder, start_new_session=True
            )
            try:
                return await self._answer(transport, program, prompt)
            finally:
                _kill_group(transport.get_pid())
                await _in_time(program.exited)  # so that the loop has reaped it before it ends itself
                transport.close()

    async def _answer(self, transport: asyncio.SubprocessTransport, program: _Program, prompt: bytes) -> ModelReply:
        stdin = transport.get_pipe_transport(0)
        assert isinstance(stdin, asyncio.WriteTransport)
        stdin.write(prompt)
        stdin.close()
        try:
            async with asyncio.timeout(self.timeout_s):
                await program.ended
        except TimeoutError:
            return self._failed(
                program, f"no answer within {self.timeout_s:g} s, so it was killed; give the model a larger 'timeout_s'"
            )
        _kill_group(transport.get_pid())  # what it has left behind may hold its output open
        await _in_time(program.drained)
        if program.too_much:
            return self._failed(
                program, f"it printed more than {exchange.MOST_REPLY_BYTES} bytes; it must print the answer alone"
            )
        if transport.get_returncode():
            return self._failed(program, f"{_ending(transport.get_returncode())}; run it by hand to see why")
        text = redact(exchange.storable(bytes(program.output).decode("utf-8", "replace"))).strip()
        if not text:
            return self._failed(program, "it printed nothing; it must print the answer to standard output")
        return ModelReply("ok", text=text, finish_reason="stop")

    def _failed(self, program: _Program, why: str) -> ModelReply:
        """An error after the start: the model behind the program may have been asked, and charge for it."""
        said = exchange.storable(bytes(program.errors).decode("utf-8", "replace")).strip()
        last = f". Its last words: {redact(said)}" if said else ""
        return ModelReply("error", uncertain=1, error=f"{self.command[0]}: {why}{last}")

    def _program(self) -> str:
        if not self.command:
            raise MutatorError(
                f"model {self.name!r}: the client 'command' needs a 'command': the program and its arguments, e.g. "
                "command: [claude, --print]"
            )
        found = shutil.which(self.command[0])
        if found is None:
            raise MutatorError(
                f"model {self.name!r}: there is no program {self.command[0]!r} on PATH, or it may not be run. Install "
                "it, or write its whole path as the first item of 'command'"
            )
        return os.path.abspath(found)


class _Program(asyncio.SubprocessProtocol):
    """What a program prints, up to the limits, and when it ends.

    `ended` is done when the program has exited or has printed too much, `drained` when its output is closed.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.ended: asyncio.Future[None] = loop.create_future()
        self.exited: asyncio.Future[None] = loop.create_future()
        self.drained: asyncio.Future[None] = loop.create_future()
        self.output = bytearray()
        self.errors = bytearray()
        self.too_much = False

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd == 2:
            self.errors = (self.errors + data)[-MOST_STDERR:]
            return
        self.too_much = self.too_much or len(self.output) + len(data) > exchange.MOST_REPLY_BYTES
        if self.too_much:
            _finish(self.ended)
            _finish(self.drained)
        else:
            self.output += data

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        if fd == 1:
            _finish(self.drained)

    def process_exited(self) -> None:
        _finish(self.exited)
        _finish(self.ended)


def rendered(messages: Sequence[Message]) -> str:
    """Return a conversation as one text; a line with the role stands before each message."""
    return "\n".join(f"===== {message.role} =====\n\n{message.content}\n" for message in exchange.plain(messages))


async def _in_time(future: asyncio.Future[None]) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_DRAIN_S):
            await future


def _finish(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def _ending(code: int | None) -> str:
    return f"it was ended by signal {-code}" if code is not None and code < 0 else f"it ended with {code}"


def _kill_group(pid: int) -> None:
    """Kill a program with all that it has started; it leads a process group of its own."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
