"""Prompts that wait for a person: which there are, more of them, and the answers. No Ray, no device and no key.

The run stands still meanwhile; its lock is held. How prompts and answers lie in files is `evo.runner.prompt_files`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from evo.config import traits
from evo.errors import RunError
from evo.records import ModelReply, ModelRequest, Mutate, Task, Turn
from evo.runner import prompt_files
from evo.runner.ledger import Ledger, reached
from evo.runner.mutation import Mutations
from evo.runner.prompt_files import Answer, Prompt
from evo.search import Search
from evo.store import Store
from mutators import models


@dataclass(frozen=True)
class Asked:
    """What `ask` wrote.

    Attributes:
        written: prompts that are in the folder now, answered ones excluded.
        waiting: how many wait in the run.
        short: why there are fewer than wanted; "" where there are not.
    """

    written: tuple[Prompt, ...]
    waiting: int
    short: str


class Fate(StrEnum):
    """What became of one file of answers."""

    TAKEN = "taken"
    KNOWN = "known"
    REFUSED = "refused"
    IGNORED = "ignored"


@dataclass(frozen=True)
class Heard:
    """One file, what became of it, and why, where that needs words."""

    file: str
    fate: Fate
    why: str = ""


@dataclass(frozen=True)
class Told:
    """What `tell` found, file by file, and the names of the prompts that still wait."""

    heard: tuple[Heard, ...]
    waiting: tuple[str, ...]

    def count(self, fate: Fate) -> int:
        """Return how many files ended so."""
        return sum(heard.fate is fate for heard in self.heard)

    @property
    def well(self) -> bool:
        """Whether an answer was taken, or all had been taken before."""
        answers = [heard.fate for heard in self.heard if heard.fate is not Fate.IGNORED]
        return Fate.TAKEN in answers or (bool(answers) and set(answers) == {Fate.KNOWN})


def ask(folder: Path, count: int, out: Path) -> Asked:
    """Write prompts of a run into a folder, asking the search for more tasks where too few wait.

    Args:
        folder: of the run.
        count: of the prompts wanted; the search may have no more.
        out: where they go; made when missing. Nothing in it is overwritten but its index.

    Raises:
        StoreError: there is no such run, it is in use, or another search version wrote it.
        RunError: no model of the run is a person, or it has not come so far.
        EvoError: the folder holds something else.
    """
    with _desk(folder) as desk:
        desk.fill(count)
        waiting = desk.waiting
        written = prompt_files.write(out, folder, waiting[:count])
        return Asked(written, len(waiting), desk.short if len(waiting) < count else "")


def tell(folder: Path, answers: Path) -> Told:
    """Store the answers that a folder holds, each in a transaction of its own; what cannot be taken is said.

    Args:
        folder: of the run.
        answers: as `ask` wrote it and somebody filled it.

    Raises:
        StoreError: there is no such run, it is in use, or another search version wrote it.
        RunError: no model of the run is a person, or it has not come so far.
        EvoError: there is no folder of answers.
    """
    found = prompt_files.read(answers)
    with _desk(folder) as desk:
        heard = tuple(desk.hear(answer) for answer in found)
        return Told(heard, tuple(prompt.name for prompt in desk.waiting))


@contextmanager
def _desk(folder: Path) -> Iterator[_Desk]:
    with Store.amend(folder) as store:
        yield _Desk(store)


class _Desk:
    """A run that stands still, with its prompts."""

    def __init__(self, store: Store) -> None:
        meta = store.meta()
        listed = meta.config.models
        self._persons = {index: model.name for index, model in enumerate(listed) if models.is_manual(model)}
        if not self._persons:
            names = ", ".join(model.name for model in listed) or "there are none"
            raise RunError(
                f"{store.folder}: expected a model with `client: manual`, which answers by hand, found none "
                f"({names}); prompts of other models are not written down: evo resume {store.folder}"
            )
        if not store.events() or meta.models is None:
            raise RunError(
                f"{store.folder}: stopped before its first task; this goes on until prompts wait: "
                f"evo resume {store.folder}"
            )
        self._store, self._config = store, meta.config
        known = {name: traits(name) for name in meta.config.operators}
        self._search = Search(meta.config, known, len(meta.inherited))
        store.replay(self._search)
        self._ledger = Ledger(store, meta.config)
        self._mutations = Mutations(store, meta.config, meta.workload, meta.device)
        self._tasks: dict[int, Task] = {task.id: task for task in store.tasks()}
        self._waiting: dict[int, Prompt] = {}
        for found in store.open_tasks():
            if found.candidate is None:
                self._look_at(found.task, found.turns)

    @property
    def waiting(self) -> list[Prompt]:
        """Prompts without an answer, in order."""
        return [self._waiting[task] for task in sorted(self._waiting)]

    @property
    def short(self) -> str:
        """Why the run asks for nothing more before it is resumed."""
        if self._spent():
            return "a budget is used up"
        most = self._config.search.in_flight
        if len(self._store.open_tasks()) >= most:
            return f"at most {most} tasks are open at once (search.in_flight)"
        return "the search asks for no more until it has heard what the open tasks came to"

    def _spent(self) -> bool:
        """Whether a budget is used up that the search does not keep itself."""
        elapsed_s, ratio = self._store.elapsed_s(), self._search.champion_ratio
        return bool(reached(self._config.budget, elapsed_s, ratio) or self._ledger.spent_up())

    def fill(self, count: int) -> None:
        """Ask for tasks until so many prompts wait; what is no prompt stays open until the run is resumed."""
        while len(self._waiting) < count and not self._spent() and (task := self._search.ask()) is not None:
            self._store.add_task(task)
            self._tasks[task.id] = task
            self._look_at(task, ())

    def _look_at(self, task: Task, turns: tuple[Turn, ...]) -> None:
        if not isinstance(task, Mutate) or task.model not in self._persons:
            return
        step = self._mutations.step(task, turns, self._ledger.facts)
        if isinstance(step, ModelRequest):
            self._waiting[task.id] = Prompt(task, replace(step, task=task.id, step=len(turns)))

    # --- answers ----------------------------------------------------------------------------------------------

    def hear(self, answer: Answer) -> Heard:
        """Store an answer, or say why not."""
        if answer.task is None:
            return Heard(answer.file, Fate.IGNORED, answer.problem)
        why = answer.problem or self._misplaced(answer.task)
        if why:
            return Heard(answer.file, Fate.REFUSED, why)
        turns = self._store.turns(answer.task)
        if answer.step < len(turns):
            return self._hear_again(answer, answer.task)
        prompt = self._waiting.get(answer.task)
        if prompt is None or prompt.request.step != answer.step:
            return Heard(answer.file, Fate.REFUSED, f"task {answer.task} waits for no such answer")
        if answer.foreign(prompt.request):
            return Heard(answer.file, Fate.REFUSED, _FOREIGN)
        self._take(prompt, answer.text)
        return Heard(answer.file, Fate.TAKEN)

    def _misplaced(self, number: int) -> str:
        task = self._tasks.get(number)
        if task is None:
            return f"this run has no task {number}; it may belong to another run"
        if not isinstance(task, Mutate):
            return f"task {number} is a comparison, which asks nobody; it may belong to another run"
        if task.model not in self._persons:
            asked = self._config.models[task.model].name if task.model >= 0 else "no model"
            return f"task {number} asks {asked}, not a person; it may belong to another run"
        return ""

    def _hear_again(self, answer: Answer, task: int) -> Heard:
        call = self._store.calls(task)[answer.step]
        if answer.foreign(call.request):
            return Heard(answer.file, Fate.REFUSED, _FOREIGN)
        if call.reply.text == answer.text:
            return Heard(answer.file, Fate.KNOWN, "taken before")
        return Heard(answer.file, Fate.REFUSED, "another answer was taken before, and that one counts")

    def _take(self, prompt: Prompt, text: str) -> None:
        task = prompt.task
        reply = ModelReply(
            "ok", text=text, model=self._persons[task.model], cost_usd=0.0, attempts=0, finish_reason="stop"
        )
        self._store.add_reply(task.id, prompt.request.step, prompt.request, reply)
        del self._waiting[task.id]
        self._look_at(task, self._store.turns(task.id))


_FOREIGN = "the prompt beside it is not this run's, or another version wrote it: ask again, into another folder"
