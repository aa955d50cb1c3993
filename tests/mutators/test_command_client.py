"""Programs as models: real processes that answer, fail, hang, flood and leave children behind."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from evo import plugins
from evo.config import Model
from evo.errors import MutatorError
from evo.records import Message, ModelFacts, ModelReply, ModelRequest, ToolCall
from mutators import models
from mutators.clients.command import Command

REQUEST = ModelRequest((Message("system", "Be brief."), Message("user", "Say hello.")))

ECHO = "import sys; print(sys.stdin.read())"
CHILD = "import subprocess, sys, pathlib; child = subprocess.Popen(['sleep', '600']); \
pathlib.Path({path!r}).write_text(str(child.pid)); {then}"


def python(code: str, **options: float) -> Command:
    return Command("agent", (sys.executable, "-c", code), **{"timeout_s": 30.0, **options})


def ask(client: Command, request: ModelRequest = REQUEST) -> ModelReply:
    return asyncio.run(client.complete(request))


def test_it_is_made_from_a_config() -> None:
    made = models.client(Model(client="command", name="agent", command=("cat",), timeout_s=60.0))
    assert made == Command("agent", ("cat",), 60.0)
    assert plugins.resolve(plugins.CLIENTS, "command") is Command
    assert Command("agent", ("cat",), window_tokens=9000).facts() == ModelFacts("agent", window_tokens=9000)


def test_the_prompt_goes_in_and_the_answer_comes_out() -> None:
    reply = ask(python(ECHO))
    assert (reply.status, reply.model, reply.finish_reason, reply.attempts) == ("ok", "agent", "stop", 1)
    assert reply.text == "===== system =====\n\nBe brief.\n\n===== user =====\n\nSay hello."
    assert (reply.cost_usd, reply.input_tokens, reply.uncertain) == (None, None, 0)
    assert 0 < reply.latency_s < 30


def test_rounds_of_tools_are_told_in_words() -> None:
    calls = (ToolCall("a", "compile", "{}"),)
    said = (Message("assistant", "Let me see.", calls=calls), Message("tool", "32 registers", call="a"))
    text = ask(python(ECHO), ModelRequest((*REQUEST.messages, *said))).text
    assert "===== assistant =====\n\nLet me see.\n\nI call compile with {}" in text
    assert text.endswith("===== user =====\n\ncompile says:\n\n32 registers")


def test_a_megabyte_passes_both_ways() -> None:
    request = ModelRequest((Message("user", "ä" * 1_000_000),))
    assert ask(python(ECHO), request).text.endswith("ä" * 1_000_000)


def test_a_prompt_that_nobody_reads_is_no_fault() -> None:
    request = ModelRequest((Message("user", "x" * 1_000_000),))
    assert ask(python("print('Hello.')"), request).text == "Hello."


def test_it_runs_in_an_empty_folder_that_goes_away() -> None:
    reply = ask(python("import os; print(os.getcwd(), os.listdir()); open('left', 'w').write('x')"))
    folder, _, listing = reply.text.partition(" ")
    assert listing == "[]"
    assert not Path(folder).exists()


def test_what_is_no_text_is_mended() -> None:
    assert ask(python(r"import sys; sys.stdout.buffer.write(b'a\xff\x00b')")).text == "a\ufffd\ufffdb"


# --- what goes wrong ----------------------------------------------------------------------------------------------


def test_a_program_that_fails_says_why_without_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT_API_KEY", "hunter2hunter2")
    code = "import os, sys; print('half an answer'); sys.exit('no quota for ' + os.environ['AGENT_API_KEY'])"
    reply = ask(python(code))
    assert (reply.status, reply.text, reply.cost_usd, reply.uncertain) == ("error", "", None, 1)
    assert reply.error.endswith("it ended with 1; run it by hand to see why. Its last words: no quota for [redacted]")


def test_a_secret_that_it_prints_is_taken_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT_API_KEY", "hunter2hunter2")
    assert ask(python("import os; print('key', os.environ['AGENT_API_KEY'])")).text == "key [redacted]"


def test_only_the_end_of_a_long_complaint_is_kept() -> None:
    reply = ask(python("import sys; sys.exit('x' * 1_000_000 + 'the end')"))
    assert len(reply.error) < 3000
    assert reply.error.endswith("the end")


def test_a_program_that_prints_nothing_is_an_error() -> None:
    assert "it printed nothing" in ask(python("print()")).error


def test_a_program_that_is_killed_is_an_error() -> None:
    assert "it was ended by signal 9" in ask(python("import os; os.kill(os.getpid(), 9)")).error


def test_a_flood_ends_the_program() -> None:
    start = time.monotonic()
    reply = ask(python("while True: print('x' * 100_000)"))
    assert "it printed more than 4194304 bytes" in reply.error
    assert time.monotonic() - start < 20


def test_a_program_without_end_is_killed_with_its_children(tmp_path: Path) -> None:
    path = tmp_path / "pid"
    client = python(CHILD.format(path=str(path), then="child.wait()"), timeout_s=3.0)
    reply = ask(client)
    assert "no answer within 3 s, so it was killed" in reply.error
    assert (reply.status, reply.uncertain, reply.fatal) == ("error", 1, False)
    _until_gone(int(path.read_text()))


def test_a_child_that_stays_behind_delays_nothing(tmp_path: Path) -> None:
    path = tmp_path / "pid"
    reply = ask(python(CHILD.format(path=str(path), then="print('Hello.')")))
    assert reply.text == "Hello."
    assert reply.latency_s < 10
    _until_gone(int(path.read_text()))


def test_a_call_that_is_given_up_leaves_no_process(tmp_path: Path) -> None:
    path = tmp_path / "pid"

    async def give_up() -> None:
        call = asyncio.create_task(python(CHILD.format(path=str(path), then="child.wait()")).complete(REQUEST))
        while not path.exists() or not path.read_text():
            await asyncio.sleep(0.01)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await asyncio.sleep(0.1)  # the loop reaps what was killed

    asyncio.run(give_up())
    _until_gone(int(path.read_text()))


def _until_gone(pid: int) -> None:
    end = time.monotonic() + 10
    while _runs(pid):
        assert time.monotonic() < end
        time.sleep(0.01)


def _runs(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


# --- before the run -----------------------------------------------------------------------------------------------


def test_a_program_that_is_not_there_is_told_at_once() -> None:
    with pytest.raises(MutatorError, match=r"no program 'no-such-agent' on PATH.*Install it"):
        Command("agent", ("no-such-agent",)).check()
    reply = ask(Command("agent", ("no-such-agent",)))
    assert (reply.status, reply.fatal, reply.attempts, reply.cost_usd) == ("error", True, 0, 0.0)


def test_without_a_program_the_key_is_named() -> None:
    with pytest.raises(MutatorError, match=r"needs a 'command'.*command: \[claude, --print\]"):
        Command("agent").check()


def test_without_a_name_of_its_own_it_would_be_called_by_anothers() -> None:
    with pytest.raises(MutatorError, match="needs a 'name', or reports would call the program gpt-5-mini"):
        models.client(Model(client="command", command=("cat",))).check()


def test_a_program_of_the_wrong_format_says_so(tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.write_text("neither script nor binary")
    os.chmod(broken, 0o755)
    Command("agent", (str(broken),)).check()
    reply = ask(Command("agent", (str(broken),)))
    assert reply.status == "error"
    assert "Exec format error" in reply.error


def test_a_program_dies_with_whoever_asked_it(tmp_path: Path) -> None:
    path = tmp_path / "pid"
    code = (
        "import asyncio, sys\n"
        "from evo.records import Message, ModelRequest\n"
        "from mutators.clients.command import Command\n"
        f"client = Command('agent', ('sh', '-c', 'echo $$ > {path}; exec sleep 600'))\n"
        "asyncio.run(client.complete(ModelRequest((Message('user', 'x'),))))\n"
    )
    with subprocess.Popen([sys.executable, "-c", code]) as asker:
        while not path.exists() or not path.read_text().strip():
            assert asker.poll() is None
            time.sleep(0.01)
        asker.kill()
    _until_gone(int(path.read_text()))


def test_many_run_at_once() -> None:
    async def many() -> list[str]:
        client = Command("agent", ("sh", "-c", "sleep 0.5; cat"), 30.0)
        replies = await asyncio.gather(*(client.complete(REQUEST) for _ in range(32)))
        return [reply.status for reply in replies]

    start = time.monotonic()
    assert asyncio.run(many()) == ["ok"] * 32
    assert time.monotonic() - start < 10
