"""How prompts for a person, and the answers, lie in a folder: `3-0.prompt.md`, `3-0.reply.md`, an index. No store.

A prompt names itself by a hash of its request, so that answers find no other run. What is read is data: nothing in it
is obeyed.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from evo.errors import EvoError
from evo.records import ModelRequest, Mutate, to_json
from evo.store.rundir import write_atomic

MOST_ANSWER_BYTES = 4 << 20
"""A kernel has 64 KiB at most; what is larger than this by far is no answer, and would swell the database."""

INDEX = "README.md"
_TITLE = "# Prompts that wait for answers\n"
_PROMPT, _REPLY = ".prompt.md", ".reply.md"
_NAMED = re.compile(r"(\d{1,9})-(\d{1,4})\.reply\.md")
_HASH = re.compile(r"^Prompt \d+-\d+, ([0-9a-f]{16})\b", re.MULTILINE)


@dataclass(frozen=True)
class Prompt:
    """A request that a person is to answer, and the task that it belongs to."""

    task: Mutate
    request: ModelRequest

    @property
    def name(self) -> str:
        """What its files are called before the first dot."""
        return f"{self.task.id}-{self.request.step}"


@dataclass(frozen=True)
class Answer:
    """One file beside the prompts.

    Attributes:
        file: its name.
        task: that it answers; None where the name says none.
        step: request of the task.
        text: of the answer.
        problem: why it cannot be one; "" where it can.
        hash: of the prompt beside it; "" where there is none.
    """

    file: str
    task: int | None = None
    step: int = 0
    text: str = ""
    problem: str = ""
    hash: str = ""

    def foreign(self, request: ModelRequest) -> bool:
        """Whether the prompt beside it is another than this one."""
        return self.hash not in ("", _hash(request))


def write(out: Path, run: Path, prompts: Sequence[Prompt]) -> tuple[Prompt, ...]:
    """Write prompts and their index into a folder; return those that have no answer there yet.

    A prompt that is there already is left as it is, with whatever was written into it.

    Args:
        out: made when missing.
        run: folder of the run, for the commands that the index shows.
        prompts: to be written.

    Raises:
        EvoError: another prompt of the same name, or another index, is there.
        StoreError: something cannot be written.
    """
    _expect_ours(out, prompts)
    for prompt in prompts:
        file = out / f"{prompt.name}{_PROMPT}"
        if not file.exists():
            write_atomic(file, _page(prompt).encode())
    if prompts or (out / INDEX).exists():
        write_atomic(out / INDEX, _index(out, run, prompts).encode())
    return tuple(prompt for prompt in prompts if not _is_answered(out / f"{prompt.name}{_REPLY}"))


def _is_answered(reply: Path) -> bool:
    return reply.is_file() and reply.stat().st_size > 0


def read(folder: Path) -> list[Answer]:
    """Return what a folder holds besides prompts and index, answers in the order of tasks, the rest behind them.

    Raises:
        EvoError: there is no such folder.
    """
    if not folder.is_dir():
        raise EvoError(f"{folder}: expected the folder that `evo ask` wrote, found {_instead(folder)}")
    names = sorted(path.name for path in folder.iterdir())
    found = [_answer(folder, name) for name in names if not _known(name)]
    return sorted(found, key=lambda answer: (answer.task is None, answer.task, answer.step))


def _instead(folder: Path) -> str:
    return "a file" if folder.exists() else "nothing of that name"


def _known(name: str) -> bool:
    return name == INDEX or name.endswith(_PROMPT) or name.startswith(".")


# --- reading ------------------------------------------------------------------------------------------------------


def _answer(folder: Path, name: str) -> Answer:
    match = _NAMED.fullmatch(name)
    if match is None:
        return Answer(name, problem=f"answers are called TASK-STEP{_REPLY}, as each prompt says")
    task, step = int(match[1]), int(match[2])
    text, problem = _text(folder / name)
    return Answer(name, task, step, text, problem, _hash_beside(folder / f"{match[1]}-{match[2]}{_PROMPT}"))


def _text(file: Path) -> tuple[str, str]:
    """Return an answer's text, or what is wrong with it."""
    if file.is_symlink() or not file.is_file():  # a link in a folder from elsewhere could show the next prompt any file
        return "", "it is a link or a folder; put the answer itself there"
    try:
        size = file.stat().st_size
        if size > MOST_ANSWER_BYTES:
            return "", f"it has {size} bytes, and an answer has at most {MOST_ANSWER_BYTES}"
        text = file.read_bytes().decode("utf-8-sig").replace("\r\n", "\n")
    except OSError as error:
        return "", f"it cannot be read: {error.strerror}"
    except UnicodeDecodeError as error:
        return "", f"it is not UTF-8 text (byte {error.start}); save it as UTF-8"
    if "\0" in text:
        return "", "it is not text: it holds a byte 0"
    return (text, "") if text.strip() else ("", "it is empty")


def _hash_beside(prompt: Path) -> str:
    try:
        found = _HASH.search(prompt.read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return ""
    return found[1] if found else ""


def _hash(request: ModelRequest) -> str:
    return hashlib.sha256(to_json(request).encode()).hexdigest()[:16]


# --- writing ------------------------------------------------------------------------------------------------------


def _expect_ours(out: Path, prompts: Sequence[Prompt]) -> None:
    if out.exists() and not out.is_dir():
        raise EvoError(f"{out}: expected a folder for the prompts, found a file; name another with --out")
    index = out / INDEX
    if index.exists() and not index.read_text(encoding="utf-8", errors="replace").startswith(_TITLE):
        raise EvoError(f"{index}: is not an index of prompts, and would be overwritten; name another folder with --out")
    for prompt in prompts:
        file = out / f"{prompt.name}{_PROMPT}"
        if file.exists() and _hash_beside(file) != _hash(prompt.request):
            raise EvoError(f"{file}: is a prompt of another run or version; name another folder with --out")


def _page(prompt: Prompt) -> str:
    return "\n".join(_parts(prompt))


def _parts(prompt: Prompt) -> Iterator[str]:
    messages = prompt.request.messages
    bar = _bar([message.content for message in messages])
    yield f"Prompt {prompt.name}, {_hash(prompt.request)}\n"
    yield (
        f"The answer belongs into the file `{prompt.name}{_REPLY}` beside this one, as UTF-8 text: the whole of it is\n"
        "taken as the reply to the conversation below. Answer as the last message asks; nothing else is needed.\n"
    )
    for number, message in enumerate(messages, 1):
        yield f"{bar} message {number} of {len(messages)}: {message.role} {bar}\n"
        yield message.content.rstrip("\n") + "\n"
    yield f"{bar} end of the conversation {bar}\n"


def _bar(texts: Sequence[str]) -> str:
    """Return a bar that begins no line of the texts, so that none can look like the end of a message."""
    longest = max((len(bar) for text in texts for bar in re.findall(r"^=+", text, re.MULTILINE)), default=0)
    return "=" * max(12, longest + 1)


def _index(out: Path, run: Path, prompts: Sequence[Prompt]) -> str:
    rows = [
        f"| `{prompt.name}{_PROMPT}` | `{prompt.name}{_REPLY}` | {prompt.task.operator} | "
        f"{', '.join(map(str, prompt.task.parents))} |"
        for prompt in prompts
    ]
    return "\n".join(
        (
            _TITLE,
            "Each `.prompt.md` is one prompt, whole. Write its answer into the `.reply.md` of the same name, in any",
            "order, as many as you like. Then, where the run is:\n",
            f"    evo tell {run} {out}",
            f"    evo resume {run}\n",
            "| prompt | answer | operator | kernel |",
            "|---|---|---|---|",
            *rows,
            "",
        )
    )
