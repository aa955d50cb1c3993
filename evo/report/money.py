"""What a run's model calls came to: billed, perhaps billed, and of unknown price. As data, and in words.

The figures are the store's; nothing is estimated here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass

from evo.records import Mutate
from evo.report.history import History
from evo.store.rows import Spent

MOST_PLACES = 16
"""Interrupted calls that a sentence names one by one; `summary.json` has them all."""


@dataclass(frozen=True)
class Interrupted:
    """One request that was sent and not answered: whether it was billed, its provider alone knows.

    Attributes:
        task: that asked.
        step: which request of the task.
        model: name in the config.
        usd: set aside for it; None where the price is unknown.
        tokens: set aside for it.
    """

    task: int
    step: int
    model: str
    usd: float | None
    tokens: int


@dataclass(frozen=True)
class Unpriced:
    """The answered calls of one model whose cost nobody knows; `known` says whether its price at least is."""

    model: str
    calls: int
    tokens: int
    known: bool


@dataclass(frozen=True)
class Cost(Spent):
    """All that was spent on models.

    Attributes:
        interrupted: what `unsure` counts, request by request; one that was tried several times stands here once.
        unpriced_models: what `unpriced` counts, model by model; calls that failed are among the interrupted instead.
        over: whether the run has stopped; before that, requests without an answer may still be in flight.
    """

    interrupted: tuple[Interrupted, ...] = ()
    unpriced_models: tuple[Unpriced, ...] = ()
    over: bool = True


def cost(history: History) -> Cost:
    """Return what a run has spent so far."""
    names = tuple(model.name for model in history.meta.config.models)
    interrupted = tuple(
        Interrupted(sent.task, sent.step, names[sent.model], sent.usd, sent.tokens) for sent in history.unsure
    )
    return Cost(
        **asdict(history.spent),
        interrupted=interrupted,
        unpriced_models=tuple(_unpriced(history, names)),
        over=history.meta.stopped is not None,
    )


def words(found: Cost) -> str:
    """Return the cost in one phrase, e.g. `9 model calls, 12,000 tokens, $0.12`."""
    if not found.calls and not found.unsure:
        return "no model calls"
    tokens = found.input_tokens + found.output_tokens
    calls = f"{_count(found.calls, 'model call')}, {tokens:,} tokens"
    if not found.unsure:
        return f"{calls}, ${found.cost_usd:.2f}"
    # A request of unknown price sets no dollars aside, so that the bound would be too low.
    priced = all(call.usd is not None for call in found.interrupted)
    limit = f"${found.unsure_usd:.2f}" if priced else f"{found.unsure_tokens:,} tokens"
    noun = "interrupted call" if found.over else "unanswered call"
    return f"{calls}, billed ${found.cost_usd:.2f}, up to {limit} in {_count(found.unsure, noun)}"


def doubts(found: Cost) -> tuple[str, ...]:
    """Return what makes the billed sum uncertain, one sentence each."""
    return (*map(_no_price, found.unpriced_models), *_interrupted(found))


def _no_price(of: Unpriced) -> str:
    figures = f"{_count(of.calls, 'call')}, {of.tokens:,} tokens"
    if of.known:
        return f"some replies of {of.model} do not say their tokens, so that their cost is unknown: {figures}"
    blind = "budget.cost_usd does not see them, budget.tokens would"
    return f"the price of {of.model} is unknown: {figures}; {blind}"


def _interrupted(found: Cost) -> Iterator[str]:
    if not found.interrupted or not found.over:
        return
    named = [f"task {call.task} step {call.step} ({call.model})" for call in found.interrupted[:MOST_PLACES]]
    more = len(found.interrupted) - len(named)
    rest = [f"and {more} more, which summary.json lists"] if more else []
    yield f"{_count(found.unsure, 'interrupted call')}, perhaps billed: {', '.join((*named, *rest))}"


def _unpriced(history: History, names: tuple[str, ...]) -> Iterator[Unpriced]:
    asked = {event.task.id: event.task.model for event in history.events if isinstance(event.task, Mutate)}
    facts = history.meta.models or ()
    unknown = [call for call in history.calls if call.reply.cost_usd is None and call.reply.status == "ok"]
    for index, name in enumerate(names):
        replies = [call.reply for call in unknown if asked.get(call.task) == index]
        tokens = sum((reply.input_tokens or 0) + (reply.output_tokens or 0) for reply in replies)
        priced = index < len(facts) and facts[index].input_usd is not None and facts[index].output_usd is not None
        if replies:
            yield Unpriced(name, len(replies), tokens, priced)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
