"""The steady-state loop: model calls, screening and evaluation overlap, and everything is stored before it is used.

One thread drives all of it. An `Open` task walks request → reply → candidate → screen → evaluation; each arrow is
committed before the next begins, so that a killed run goes on at the last arrow.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from evaluators import prescreen
from evaluators.device import Screened
from evo import repairs
from evo.config import Config
from evo.errors import DeviceError, RunError
from evo.records import (
    Candidate,
    Compare,
    Comparison,
    Evaluation,
    ModelReply,
    Mutate,
    Outcome,
    Proposal,
    Status,
)
from evo.runner import cluster
from evo.runner.asking import POLL_S, Asking, ToolResults
from evo.runner.crew import Crew, Seat
from evo.runner.ledger import reached
from evo.runner.mutation import candidate_hash
from evo.runner.observer import Observer
from evo.runner.opened import Open
from evo.runner.profiles import Profiles
from evo.search import Search
from evo.store import Store

INITIAL = Mutate(id=-1, operator="initial", model=-1, parents=())
"""The task that the initial kernel is evaluated under."""

# A candidate whose evaluator died gets a second one: it may have been the machine. Then it is the candidate.
TRIES = 2
PROMPTS = "prompts"
"""Why a run stops that cannot go on until a person has answered."""


@dataclass
class Loop:
    """One run's loop. Make it, `restore` what a store holds, then `work` until it returns why it stopped.

    Attributes:
        store: committed to before anything else happens.
        search: asked and told.
        asking: steps operators, asks models.
        crew: works on Ray.
        config: budgets and the number of tasks in flight.
        observer: hears of everything.
        interrupted: says whether somebody asked the run to stop now.
        clock: seconds of the run's whole life, earlier sittings included.
    """

    store: Store
    search: Search
    asking: Asking
    crew: Crew
    config: Config
    observer: Observer
    interrupted: Callable[[], bool]
    clock: Callable[[], float]
    _open: dict[int, Open] = field(default_factory=dict)
    _waiting: dict[Any, tuple[int, Seat | None]] = field(default_factory=dict)
    _queue: list[int] = field(default_factory=list)
    _profiles: Profiles = field(init=False)

    def __post_init__(self) -> None:
        self._profiles = Profiles(self.store.folder, self.observer)

    def restore(self) -> None:
        """Take up the tasks that were asked and never told; a reply that was paid for is never asked for again."""
        for found in self.store.open_tasks():
            opened = Open(found.task, found.turns, sent=found.sent, candidate=found.candidate)
            self._open[found.task.id] = opened
            self._go_on(opened)

    def work(self) -> str:
        """Run until a budget is used up, the search is exhausted, prompts wait for a person, or somebody interrupts.

        Returns:
            Which of these it was. Whatever ends the run, replies that are on their way are waited for and kept.
        """
        try:
            return self._work()
        except RunError:
            self._keep_replies()
            raise

    def _work(self) -> str:
        reason = None
        while not self.interrupted():
            reason = reason or self._exhausted()
            self._fill(mutate=reason is None)
            if not self._open:
                reason = reason or self.search.finished
                if reason is not None:
                    return reason
            if self._open and all(opened.prompt for opened in self._open.values()):
                return reason or PROMPTS
            self._seat_queue()
            self._collect()
        self.observer.event("interrupted", open=len(self._open))
        self._keep_replies()
        return "interrupted"

    def _keep_replies(self) -> None:
        self.asking.harvest({ref: self._open[number] for ref, (number, seat) in self._waiting.items() if seat is None})

    def evaluate_initial(self, candidate: Candidate) -> None:
        """Judge the initial kernel and start the search with it.

        Raises:
            RunError: it is not right; the message is the verdict.
        """
        opened = Open(INITIAL, candidate=candidate)
        self._open[INITIAL.id] = opened
        self._go_on(opened)
        while self._open and not self.interrupted():
            self._seat_queue()
            self._collect()

    def evaluate_now(self, number: int, source: str) -> Evaluation | None:
        """Judge a kernel outside the search; None when interrupted or the evaluator is lost."""
        found: Evaluation | None = self._now(lambda seat: self.crew.evaluate(seat, number, source, None))
        return None if found is None else self._profiles.keep(found)

    def compare_now(self, challenger: tuple[int, str], champion: tuple[int, str]) -> Comparison | None:
        """Compare two kernels (id, source) outside the search; None when interrupted or the evaluator is lost."""
        found: Comparison | None = self._now(lambda seat: self.crew.compare(seat, challenger, champion, 1))
        return found

    def _now(self, call: Callable[[Seat], Any]) -> Any:
        while (seat := self.crew.free_seat()) is None:
            if self.interrupted():
                return None
            self._collect()
        ref = call(seat)
        while not self.crew.ray.wait([ref], timeout=POLL_S)[0]:
            if self.interrupted():
                return None
            if time.monotonic() > seat.deadline:
                return self._gone(seat, "the evaluator no longer answers")
        try:
            result = self.crew.ray.get(ref)
        except self.crew.ray.exceptions.RayTaskError as error:
            return self._gone(seat, str(cluster.fault(error, "a measurement outside the search")))
        except self.crew.ray.exceptions.RayError as error:
            return self._gone(seat, str(error).splitlines()[0])
        self.crew.rise(seat)
        return result

    def _gone(self, seat: Seat, why: str) -> None:
        self.observer.event("evaluator_lost", task=None, message=why)
        self.crew.replace(seat)

    # --- asking -----------------------------------------------------------------------------------------------

    def _exhausted(self) -> str | None:
        reason = reached(self.config.budget, self.clock(), self.search.champion_ratio)
        reason = reason or self.asking.spent_up(self._open.values())
        if reason is not None:
            self.observer.event("draining", reason=reason, open=len(self._open))
        return reason

    def _fill(self, *, mutate: bool) -> None:
        """Ask for as much as may be in flight; with its budget used up, a run still decides who is champion."""
        while self._may_ask(mutate) and (task := self.search.ask()) is not None:
            self.store.add_task(task)
            self.observer.event("asked", task=task)
            self._open[task.id] = Open(task)
            self._go_on(self._open[task.id])

    def _may_ask(self, mutate: bool) -> bool:
        return (mutate and self.asking.may_begin(self._open.values())) or self.search.undecided

    # --- one arrow further ------------------------------------------------------------------------------------

    def _go_on(self, opened: Open) -> None:
        if isinstance(opened.task, Compare):
            self._queue.insert(0, opened.task.id)  # the champion decides what everybody else descends from
        elif opened.candidate is None:
            self._mutate(opened, opened.task)
        elif opened.screened is None:
            self._wait(self.crew.screen(opened.candidate.source), opened)
        elif opened.unlike:
            self._queue.append(opened.task.id)
        else:
            opened.twin = None
            self._tell_apart()

    def _mutate(self, opened: Open, task: Mutate) -> None:
        step = self.asking.next(opened, task)
        if isinstance(step, Proposal):
            opened.proposal = step
            self._register()
        elif isinstance(step, ModelReply):
            self._take_reply(opened, step)
        elif step is not None:
            self._wait(step, opened)

    def _register(self) -> None:
        """Make candidates of the proposals that are ready, or say that there is nothing to evaluate.

        In fixed order each waits for those of earlier tasks, so that ids, and which of two twins is the duplicate,
        follow from the seed alone.
        """
        for opened in list(self._open.values()):
            if not isinstance(opened.task, Mutate) or opened.candidate is not None:
                continue
            if opened.proposal is not None:
                self._propose(opened, opened.task, opened.proposal)
            elif self.config.search.order == "fixed":
                return

    def _propose(self, opened: Open, task: Mutate, proposal: Proposal) -> None:
        if proposal.source is None:
            self._no_candidate(opened, Status.NO_PROPOSAL, None, proposal.note)
            return
        digest = candidate_hash(proposal.source)
        known = self.store.find_by_hash(digest)
        if known is not None:
            note = f"the same as candidate {known}: {proposal.note}"
            self._no_candidate(opened, Status.DUPLICATE, known, note)
            return
        opened.candidate = Candidate(
            id=self.store.next_candidate(),
            task=task.id,
            source=proposal.source,
            hash=digest,
            operator=task.operator,
            parents=task.parents,
            island=task.island,
            note=proposal.note,
        )
        self.store.add_candidate(opened.candidate)
        self.observer.event("proposed", candidate=opened.candidate)
        self._go_on(opened)

    def _tell_apart(self) -> None:
        """Look whether screened candidates are programs that are known already, before they cost an evaluation.

        In fixed order each waits for the screening of those before it, as in `_register`.
        """
        for opened in list(self._open.values()):
            if not isinstance(opened.task, Mutate) or opened.unlike or opened.twin is not None:
                continue
            if opened.screened is not None:
                self._look_for_twin(opened, opened.screened)
            elif self.config.search.order == "fixed":
                return

    def _look_for_twin(self, opened: Open, screened: Screened) -> None:
        assert opened.candidate is not None
        if screened.code or screened.listing:
            self.store.add_code(opened.candidate.id, screened.code, screened.listing)
        if screened.code:
            opened.twin = self.store.find_by_code(screened.code, before=opened.candidate.id)
        if opened.twin is None:
            opened.unlike = True
            self._go_on(opened)
        else:
            twin = self.store.candidate(opened.twin)
            self._wait(self.crew.alike(opened.candidate.source, twin.source), opened)

    def _no_candidate(self, opened: Open, status: Status, candidate: int | None, note: str) -> None:
        outcome = Outcome(
            opened.task.id, candidate, status, cost_usd=opened.cost_usd, unpriced_tokens=opened.unpriced_tokens
        )
        self.store.tell(outcome)
        self.observer.event("no_proposal", task=opened.task, status=status, note=note)
        self._tell(outcome)

    # --- Ray --------------------------------------------------------------------------------------------------

    def _wait(self, ref: Any, opened: Open, seat: Seat | None = None) -> None:
        self._waiting[ref] = (opened.task.id, seat)

    def _seat_queue(self) -> None:
        while self._queue and (seat := self.crew.free_seat()) is not None:
            opened = self._open[self._queue.pop(0)]
            if isinstance(opened.task, Compare):
                pair = (opened.task.challenger, opened.task.champion)
                challenger, champion = ((number, self._tuned(number)) for number in pair)
                ref = self.crew.compare(seat, challenger, champion, opened.task.number)
            else:
                assert opened.candidate is not None
                ref = self.crew.evaluate(seat, opened.candidate.id, opened.candidate.source, opened.screened)
            self._wait(ref, opened, seat)

    def _tuned(self, candidate: int) -> str:
        evaluation = self.store.evaluation(candidate)
        assert evaluation is not None, "only evaluated candidates are compared"
        return evaluation.source

    def _collect(self) -> None:
        refs = [*self._waiting, *self.crew.opening]
        if not refs:
            return
        done, _ = self.crew.ray.wait(refs, num_returns=1, timeout=POLL_S)
        for wrong in self.crew.admit():
            self.observer.event("evaluator_lost", task=None, message=wrong)
        for ref in done:
            if ref in self._waiting:
                number, seat = self._waiting.pop(ref)
                self._receive(ref, self._open[number], seat)
        self._drop_overdue()

    def _receive(self, ref: Any, opened: Open, seat: Seat | None) -> None:
        try:
            result = self.crew.ray.get(ref)
        except self.crew.ray.exceptions.RayTaskError as error:
            fault = cluster.fault(error, f"task {opened.task.id}")
            if seat is None or not isinstance(fault, DeviceError):
                raise fault from error
            self._device_failed(opened, seat, fault)
            return
        except self.crew.ray.exceptions.RayError as error:
            self._lost(opened, seat, str(error).splitlines()[0])
            return
        if seat is not None:
            self.crew.rise(seat)
        self._take(opened, result)

    def _drop_overdue(self) -> None:
        overdue = [seat for seat in self.crew.seats if seat.ref is not None and time.monotonic() > seat.deadline]
        for seat in overdue:
            number, _ = self._waiting.pop(seat.ref)
            self._lost(self._open[number], seat, "the evaluator no longer answers")

    def _device_failed(self, opened: Open, seat: Seat, fault: DeviceError) -> None:
        """A device failed under a call: make the call again. It ends the run where no other device is left."""
        opened.failed += 1
        self.observer.event("evaluator_lost", task=opened.task, message=str(fault))
        self.crew.fail(seat, fault)
        if opened.failed < self.crew.patience:
            self._go_on(opened)
        else:
            self._take(opened, self._given_up(opened, str(fault)))

    def _lost(self, opened: Open, seat: Seat | None, why: str) -> None:
        """A process died under a call: put a new one in its place; the second time it is the call's fault."""
        opened.lost += 1
        self.observer.event("evaluator_lost", task=opened.task, message=why)
        if opened.worker is not None:
            reply = self.asking.lost(opened, why)
            self._take_reply(opened, reply) if reply is not None else self._go_on(opened)
            return
        if seat is not None:
            self.crew.replace(seat)
        if opened.lost < TRIES or opened.candidate is None:
            self._go_on(opened)
        else:
            self._take(opened, self._given_up(opened, why))

    def _given_up(self, opened: Open, why: str) -> Evaluation | Comparison:
        message = f"its evaluator was lost {opened.lost + opened.failed} times: {why}"
        if isinstance(opened.task, Compare):
            return Comparison(opened.task.challenger, opened.task.champion, Status.CRASH, message=message)
        assert opened.candidate is not None
        return Evaluation(opened.candidate.id, Status.CRASH, "evaluate", message, source=opened.candidate.source)

    # --- results ----------------------------------------------------------------------------------------------

    def _take(self, opened: Open, result: ModelReply | ToolResults | Screened | bool | Evaluation | Comparison) -> None:
        if isinstance(result, ModelReply):
            self._take_reply(opened, result)
        elif isinstance(result, tuple):
            self._take_results(opened, result)
        elif isinstance(result, bool):
            self._take_likeness(opened, alike=result)
        elif isinstance(result, Screened):
            self._take_screened(opened, result)
        elif isinstance(result, Evaluation):
            self._take_evaluation(opened, result)
        else:
            self._take_comparison(opened, result)

    def _take_reply(self, opened: Open, reply: ModelReply) -> None:
        self.asking.keep(opened, reply)
        self.observer.event("replied", task=opened.task, reply=reply)
        if reply.fatal:
            raise RunError(f"{reply.error}\nEverything so far is stored; mend it, then: evo resume {self.store.folder}")
        self._go_on(opened)

    def _take_results(self, opened: Open, results: ToolResults) -> None:
        self.asking.keep_results(opened, results)
        self.observer.event("tools_used", task=opened.task, results=results)
        self._go_on(opened)

    def _take_screened(self, opened: Open, screened: Screened) -> None:
        assert opened.candidate is not None
        self.observer.event("screened", candidate=opened.candidate, screened=screened)
        opened.screened = screened
        if screened.state != "rejected":
            self._go_on(opened)
            return
        rejected = prescreen.rejection(opened.candidate.id, opened.candidate.source, screened, self.crew.fingerprint)
        self._take_evaluation(opened, rejected)

    def _take_likeness(self, opened: Open, *, alike: bool) -> None:
        assert opened.candidate is not None
        twin, opened.twin, opened.unlike = opened.twin, None, True
        if not alike:
            self._go_on(opened)
            return
        message = f"the same machine code and launches as kernel {twin}, written in another way"
        source = opened.candidate.source
        self._take_evaluation(opened, Evaluation(opened.candidate.id, Status.DUPLICATE, "screen", message, source))

    def _take_evaluation(self, opened: Open, evaluation: Evaluation) -> None:
        assert opened.candidate is not None
        evaluation = self._profiles.keep(evaluation)
        outcome = Outcome(
            task=opened.task.id,
            candidate=opened.candidate.id,
            status=evaluation.status,
            ratio=evaluation.ratio,
            descriptors=evaluation.descriptors,
            cost_usd=opened.cost_usd,
            unpriced_tokens=opened.unpriced_tokens,
            fault=repairs.fault(evaluation.stage, evaluation.message),
        )
        if opened.task is INITIAL and evaluation.status is not Status.OK:
            where = f" ({evaluation.stage})" if evaluation.stage else ""
            raise RunError(f"the initial kernel is {evaluation.status}{where}: {evaluation.message}")
        self.store.add_evaluation_and_tell(evaluation, outcome)
        kind = "initial" if opened.task is INITIAL else "evaluated"
        self.observer.event(kind, candidate=opened.candidate, evaluation=evaluation)
        self._tell(outcome)

    def _take_comparison(self, opened: Open, comparison: Comparison) -> None:
        outcome = Outcome(
            task=opened.task.id,
            candidate=comparison.challenger,
            status=comparison.status,
            ratio=comparison.ratio,
            promoted=comparison.promoted,
        )
        self.store.add_comparison_and_tell(comparison, outcome)
        self.observer.event("compared", comparison=comparison)
        self._tell(outcome)
        if comparison.promoted:
            self.observer.event("champion", candidate=self.search.champion, ratio=self.search.champion_ratio)

    def _tell(self, outcome: Outcome) -> None:
        del self._open[outcome.task]
        if outcome.task == INITIAL.id:
            self.search.start(outcome)
        else:
            self.search.tell(outcome)
        self._tell_apart()  # in fixed order others may have waited for this one
