"""What a run may still spend: sets money and tokens aside before a request leaves. No Ray, no clock.

The store keeps the books; this room knows the budget, and estimates what a request will cost.
"""

from __future__ import annotations

from evo.config import Budget, Config
from evo.records import ModelFacts, ModelRequest
from evo.store import Store
from evo.store.rows import Sent, Spent

FIRST_OUTPUT_TOKENS = 8000
"""Set aside for a reply while none has come: a kernel, and the reasoning of a medium effort before it."""
FIRST_INPUT_TOKENS = 8000
"""A prompt with two kernels and their verdicts; known exactly once a request is written."""
CHARACTERS_PER_TOKEN = 3
"""Code and numbers take more tokens than prose does (4 characters each): rather too much is set aside."""


class Ledger:
    """Says how much to set aside for a request, and whether there is room for another.

    Attributes:
        facts: of the config's models, in order; empty until somebody has asked.

    Args:
        store: keeps the books.
        config: names models and budget.
    """

    def __init__(self, store: Store, config: Config) -> None:
        self._store = store
        self._budget = config.budget
        self.facts: tuple[ModelFacts, ...] = store.meta().models or ()
        self._output_tokens = FIRST_OUTPUT_TOKENS

    def learn(self, facts: tuple[ModelFacts, ...]) -> None:
        """Take in what is known of the models, and store it: a resumed run goes on with the same."""
        self._store.set_models(facts)
        self.facts = facts

    def unlimited(self) -> tuple[str, ...]:
        """Return the models that no budget limits, though dollars have one: nobody knows the price of their calls."""
        if self._budget.cost_usd is None or self._budget.tokens is not None:
            return ()
        return tuple(facts.name for facts in self.facts if price_usd(facts, 1, 1) is None)

    def heard(self, output_tokens: int | None) -> None:
        """Take in how long a reply was; the longest one so far is what is set aside for the next."""
        self._output_tokens = max(self._output_tokens, output_tokens or 0)

    def reservation(self, model: int, request: ModelRequest) -> Sent:
        """Return what to set aside for a request."""
        characters = sum(len(message.content) for message in request.messages)
        tokens_in = characters // CHARACTERS_PER_TOKEN + 1
        facts = self.facts[model]
        tokens_out = min(self._output_tokens, facts.output_tokens or self._output_tokens)
        return Sent(request.task, request.step, model, price_usd(facts, tokens_in, tokens_out), tokens_in + tokens_out)

    def spent_up(self) -> str | None:
        """Return which budget is used up by what was billed and what may have been: `cost_usd`, `tokens` or None."""
        spent = self._store.spent()
        budget = self._budget
        if budget.cost_usd is not None and spent.cost_usd + spent.unsure_usd >= budget.cost_usd:
            return "cost_usd"
        if budget.tokens is not None and _tokens(spent) >= budget.tokens:
            return "tokens"
        return None

    def room(self) -> bool:
        """Whether what is set aside leaves room for one more request of the usual size."""
        spent, limit = self._store.spent(), self._budget
        usual = FIRST_INPUT_TOKENS + self._output_tokens
        if limit.tokens is not None and _tokens(spent) + usual > limit.tokens:
            return False
        dearest = max(
            (price_usd(facts, FIRST_INPUT_TOKENS, self._output_tokens) or 0.0 for facts in self.facts), default=0.0
        )
        return limit.cost_usd is None or spent.cost_usd + spent.unsure_usd + dearest <= limit.cost_usd


def reached(budget: Budget, elapsed_s: float, champion_ratio: float) -> str | None:
    """Return which budget of time or aim a run has reached: `minutes`, `target_speedup` or None.

    Args:
        budget: of the run.
        elapsed_s: worked on it, in all sittings.
        champion_ratio: the champion's latency relative to the anchor.
    """
    if budget.minutes is not None and elapsed_s >= 60 * budget.minutes:
        return "minutes"
    if budget.target_speedup is not None and champion_ratio * budget.target_speedup <= 1:
        return "target_speedup"
    return None


def price_usd(facts: ModelFacts, input_tokens: int, output_tokens: int) -> float | None:
    """Return what so many tokens cost; None where the model's price is unknown."""
    if facts.input_usd is None or facts.output_usd is None:
        return None
    return input_tokens * facts.input_usd + output_tokens * facts.output_usd


def _tokens(spent: Spent) -> int:
    return spent.input_tokens + spent.output_tokens + spent.unsure_tokens
