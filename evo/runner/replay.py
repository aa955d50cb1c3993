"""Derives a run's lineage anew from its stored replies and evaluations. No key, no network, no device and no Ray.

The search is asked, operators are stepped, and what they make is hashed; only models and evaluators are replaced by
what is stored of them. It all goes through `Store` into a new folder, so that what comes out is a run like any other.
"""

from __future__ import annotations

import shutil
from collections import defaultdict, deque
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path

from evo.config import traits
from evo.errors import RunError
from evo.records import (
    Candidate,
    Compare,
    ModelFacts,
    ModelRequest,
    Mutate,
    Outcome,
    Proposal,
    Status,
    Task,
    ToolRequest,
    ToolResult,
    Turn,
    to_json,
)
from evo.runner.mutation import Mutations, candidate_hash
from evo.search import Search
from evo.store import Store
from evo.store.rows import Call, Event, Sent

_MOST_QUOTED = 120
"""Characters of a line that a message quotes."""


@dataclass(frozen=True)
class Lineage:
    """What was derived and is the same as stored: how many tasks and candidates, and which champion."""

    tasks: int
    candidates: int
    champion: int


def replay(run: Path, folder: Path) -> Lineage:
    """Derive a run anew in an empty folder.

    Args:
        run: folder of the run, which stands still; nothing in it is changed.
        folder: exists and holds no run.

    Raises:
        StoreError: no run is there, or it is damaged or of another version.
        RunError: it has not begun, or something comes out differently; the message names the task and what differs.
    """
    with Store.read(run) as source:
        meta = source.meta()
        if not source.events():
            raise RunError(
                f"{run}: has no history yet, its initial kernel was not judged; begin with: evo resume {run}"
            )
        if meta.search_version != Search.version:
            found = f"the run's search has version {meta.search_version}, this one is version {Search.version}"
            raise _different(source, "the search", found)
        with Store.create(
            folder,
            config=meta.config.model_copy(update={"budget": source.budgets()[0][1]}),
            workload=meta.workload,
            device=meta.device,
            initial=source.candidate(0),
            search_version=meta.search_version,
            versions=meta.versions,
            inherited=meta.inherited,
        ) as into:
            lineage = _Replay(source, into).all()
            _copy_ending(source, into)
            return lineage


def _copy_ending(source: Store, into: Store) -> None:
    """Copy what was measured when the search had ended, and profilers' reports."""
    meta = source.meta()
    if meta.finale is not None:
        into.set_finale(meta.finale)
    if meta.reference is not None:
        into.set_reference(meta.reference)
    if meta.reference_finale is not None:
        into.set_reference_finale(meta.reference_finale)
    if meta.baseline_finale is not None:
        into.set_baseline_finale(meta.baseline_finale)
    if meta.stopped is not None:
        into.stop(meta.stopped)
    if (source.folder / "profiles").is_dir():
        shutil.copytree(source.folder / "profiles", into.folder / "profiles")


class _Replay:
    """One derivation: what is stored of the run, and how far the new one has come."""

    def __init__(self, source: Store, into: Store) -> None:
        meta = source.meta()
        self._source, self._into, self._config = source, into, meta.config
        known = {name: traits(name) for name in meta.config.operators}
        self._search = Search(meta.config, known, len(meta.inherited))
        self._mutations = Mutations(into, meta.config, meta.workload, meta.device)
        self._facts = meta.models or tuple(ModelFacts() for _ in meta.config.models)
        self._budgets = deque(source.budgets()[1:])
        self._tasks: dict[int, Task] = {task.id: task for task in source.tasks()}
        self._candidates = {candidate.id: candidate for candidate in source.candidates()}
        self._by_task = {candidate.task: candidate for candidate in self._candidates.values()}
        self._evaluations, self._comparisons = source.evaluations(), source.comparisons()
        self._outcomes: dict[int, Outcome] = {}
        self._unsure: dict[tuple[int, int], list[Sent]] = defaultdict(list)
        for sent in source.unsure():
            self._unsure[sent.task, sent.step].append(sent)
        self._derived: set[int] = set()

    def all(self) -> Lineage:
        """Derive everything, in the order of the stored history."""
        self._into.set_models(self._facts)
        events = self._source.events()
        self._outcomes = {event.task.id: event.outcome for event in events if event.task and event.outcome}
        self._search.limit(self._into.meta().config.budget)
        for event in events:
            self._limit(event.seq)
            self._take(event)
        self._limit(events[-1].seq + 1)
        self._derive_open()
        return Lineage(len(self._tasks), len(self._candidates), self._search.champion)

    def _limit(self, seq: int) -> None:
        """Change the budget where the run's was changed before this event."""
        while self._budgets and self._budgets[0][0] < seq:
            _, budget = self._budgets.popleft()
            self._search.limit(budget)
            self._into.set_config(self._config.model_copy(update={"budget": budget}))

    def _take(self, event: Event) -> None:
        task, outcome = event.task, event.outcome
        if task is None:
            assert outcome is not None
            self._start(outcome)
        elif outcome is None:
            self._ask(task)
        elif isinstance(task, Compare):
            self._compare(task, outcome)
        else:
            self._mutate(task, outcome)

    # --- the search -------------------------------------------------------------------------------------------

    def _start(self, outcome: Outcome) -> None:
        initial = self._candidates[0]
        self._expect_same("the initial kernel's hash", initial.hash, candidate_hash(initial.source))
        self._copy_code(0)
        self._tell_evaluated(outcome, 0)
        self._search.start(outcome)

    def _ask(self, task: Task) -> None:
        asked = self._search.ask()
        self._expect(asked == task, f"task {task.id}", f"the run was asked {task}, this search asks {asked}")
        self._into.add_task(task)

    def _compare(self, task: Compare, outcome: Outcome) -> None:
        comparison = self._comparisons[task.id]
        what = f"task {task.id}, the comparison's outcome"
        told = (outcome.candidate, outcome.status, outcome.ratio, outcome.promoted)
        self._expect_same(what, told, (comparison.challenger, comparison.status, comparison.ratio, comparison.promoted))
        self._into.add_comparison_and_tell(comparison, outcome)
        self._search.tell(outcome)

    def _mutate(self, task: Mutate, outcome: Outcome) -> None:
        self._derive_candidates(-1 if outcome.candidate is None else outcome.candidate)
        self._derive(task)
        made = self._by_task.get(task.id)
        if made is None:
            self._into.tell(outcome)
        else:
            self._tell_evaluated(outcome, made.id)
        self._search.tell(outcome)

    def _tell_evaluated(self, outcome: Outcome, candidate: int) -> None:
        evaluation = self._evaluations[candidate]
        told = (outcome.candidate, outcome.status, outcome.ratio, dict(outcome.descriptors))
        found = (candidate, evaluation.status, evaluation.ratio, dict(evaluation.descriptors))
        self._expect_same(f"candidate {candidate}, the evaluation's outcome", told, found)
        self._into.add_evaluation_and_tell(evaluation, outcome)

    # --- the operators ----------------------------------------------------------------------------------------

    def _derive_candidates(self, last: int) -> None:
        """Derive candidates up to this one in the order of their ids: which of two twins comes first decides."""
        while (number := self._into.next_candidate()) <= last:
            task = self._tasks[self._candidates[number].task]
            assert isinstance(task, Mutate)
            self._derive(task)
            self._expect(
                self._into.next_candidate() > number, f"task {task.id}", f"made candidate {number}, and none now"
            )

    def _derive(self, task: Mutate) -> None:
        """Step a task's operator to its proposal, and make a candidate of that."""
        if task.id in self._derived:
            return
        self._derived.add(task.id)
        turns = self._converse(task)
        step, stored = self._mutations.step(task, turns, self._facts), self._by_task.get(task.id)
        if stored is not None:
            self._make(task, step, stored)
        elif (outcome := self._outcomes.get(task.id)) is not None:
            self._expect_no_candidate(task, step, outcome, asked=bool(turns))

    def _make(self, task: Mutate, step: object, stored: Candidate) -> None:
        what = f"task {task.id} (operator {task.operator})"
        if not isinstance(step, Proposal) or step.source is None:
            raise self._error(what, f"made candidate {stored.id}, and now {_words(step)}")
        made = Candidate(
            id=self._into.next_candidate(),
            task=task.id,
            source=step.source,
            hash=candidate_hash(step.source),
            operator=task.operator,
            parents=task.parents,
            island=task.island,
            note=step.note,
        )
        if made.source != stored.source:
            raise self._error(f"{what}, candidate {stored.id}", _difference(stored.source, made.source))
        self._expect_same(f"{what}, candidate {stored.id}", stored, made)
        self._into.add_candidate(made)
        self._copy_code(made.id)

    def _copy_code(self, candidate: int) -> None:
        """Copy what the compiler made of a candidate: models are told of it, and no compiler is asked here."""
        code = self._source.code(candidate)
        if any(code):
            self._into.add_code(candidate, *code)

    def _expect_no_candidate(self, task: Mutate, step: object, outcome: Outcome, *, asked: bool) -> None:
        what = f"task {task.id} (operator {task.operator})"
        source = step.source if isinstance(step, Proposal) else None
        if outcome.status is Status.DUPLICATE:
            twin = None if source is None else self._into.find_by_hash(candidate_hash(source))
            self._expect_same(f"{what}, the candidate that it repeats", outcome.candidate, twin)
            return
        nothing = isinstance(step, Proposal) and source is None
        # A budget that was used up in between ends a conversation that the operator would go on with.
        cut = isinstance(step, ModelRequest) and asked
        self._expect(nothing or cut, what, f"proposed nothing, and now {_words(step)}")

    def _converse(self, task: Mutate) -> tuple[Turn, ...]:
        """Put the operator's requests beside the stored ones, and take the stored replies."""
        turns: tuple[Turn, ...] = ()
        stored = self._source.turns(task.id)
        for call, turn in zip(self._source.calls(task.id), stored, strict=True):
            self._reply(task, turns, call)
            turns = (*turns, Turn(turn.reply))
            if turn.results:
                self._results(task, turns, turn.results)
                turns = (*turns[:-1], turn)
        return turns

    def _reply(self, task: Mutate, turns: tuple[Turn, ...], call: Call) -> None:
        what = f"task {task.id}, request {call.step} (operator {task.operator})"
        step = self._mutations.step(task, turns, self._facts)
        if not isinstance(step, ModelRequest):
            raise self._error(what, f"was asked, and now {_words(step)}")
        request = replace(step, task=task.id, step=len(turns))
        if to_json(request) != to_json(call.request):
            raise self._error(what, _request_difference(call.request, request))
        sent = self._unsure.pop((task.id, call.step), [])
        for one in sent if call.reply.uncertain or not sent else [*sent, sent[-1]]:
            self._into.add_sent(one)  # the reply settles the last of them
        self._into.add_reply(task.id, call.step, request, call.reply)

    def _results(self, task: Mutate, turns: tuple[Turn, ...], results: tuple[ToolResult, ...]) -> None:
        step = self._mutations.step(task, turns, self._facts)
        called = [call.id for call in step.calls] if isinstance(step, ToolRequest) else []
        what = f"task {task.id}, tools called after request {len(turns) - 1}"
        self._expect_same(what, [result.call for result in results], called)
        self._into.add_results(task.id, len(turns) - 1, results)

    # --- what had not ended -----------------------------------------------------------------------------------

    def _derive_open(self) -> None:
        """Derive the tasks that a stopped run left open, as far as they had come."""
        self._derive_candidates(max(self._candidates))
        for task in self._tasks.values():
            if isinstance(task, Mutate):
                self._derive(task)
        for sent in (one for rows in self._unsure.values() for one in rows):
            self._into.add_sent(sent)

    # --- differences ------------------------------------------------------------------------------------------

    def _expect_same(self, what: str, stored: object, now: object) -> None:
        self._expect(stored == now, what, f"was {stored}, and now is {now}")

    def _expect(self, fits: bool, what: str, difference: str) -> None:
        if not fits:
            raise self._error(what, difference)

    def _error(self, what: str, difference: str) -> RunError:
        return _different(self._source, what, difference)


def _different(source: Store, what: str, difference: str) -> RunError:
    wrote = source.meta().versions.get("kernel-evo", "another version")
    return RunError(
        f"{source.folder}: does not come out the same: {what}: {difference}\nkernel-evo {wrote} wrote the run; another "
        "version, with other prompts, operators or another search, derives another lineage"
    )


def _words(step: object) -> str:
    if isinstance(step, ModelRequest):
        return "a model would be asked"
    if isinstance(step, ToolRequest):
        return "tools would be called"
    assert isinstance(step, Proposal)
    return "a kernel is proposed" if step.source is not None else f"nothing is proposed: {step.note}"


def _request_difference(stored: ModelRequest, now: ModelRequest) -> str:
    for number, (before, after) in enumerate(zip_longest(stored.messages, now.messages), 1):
        if before is None or after is None:
            return f"had {len(stored.messages)} messages, and now has {len(now.messages)}"
        if before != after:
            where = f"message {number} of {len(stored.messages)} ({before.role})"
            return f"{where}, {_difference(before.content, after.content)}"
    fields = [name for name in ("tools", "may_call", "schema") if getattr(stored, name) != getattr(now, name)]
    return f"differs in {' and '.join(fields) or 'its place'}"


def _difference(stored: str, now: str) -> str:
    """Return the first line in which two texts differ, in words."""
    rows = zip_longest(stored.splitlines(), now.splitlines())
    for number, (before, after) in enumerate(rows, 1):
        if before != after:
            return f"line {number}: was {_quoted(before)}, and now is {_quoted(after)}"
    return "differs in roles, calls or line ends"


def _quoted(line: str | None) -> str:
    return "not there" if line is None else repr(line[:_MOST_QUOTED])
