"""What the runner tells whoever watches: a display, a log, a test. Nothing comes back."""

from __future__ import annotations

from typing import Any, Protocol


class Observer(Protocol):
    """Receives the run's events as they are committed.

    Kinds and their facts: `started` (folder, workload, device, config), `initial` (evaluation), `asked` (task),
    `prompt` (task; it waits for a person), `replied` (task, reply), `tools_used` (task, results), `proposed`
    (candidate), `screened` (candidate, screened), `evaluated` (candidate, evaluation), `no_proposal` (task, status,
    note), `compared` (comparison), `champion` (candidate, ratio), `not_profiled` (message), `evaluator_lost` (message),
    `unpriced` (models: names whose calls no budget limits), `draining` (reason, open), `interrupted` (open),
    `harvesting` (calls: replies that are waited for), `finale` (comparison), `reference` (evaluation),
    `reference_compared` (comparison), `baseline_compared` (comparison), `stopped` (result).
    """

    def event(self, kind: str, **facts: Any) -> None:
        """Take one event. Must return at once and raise nothing."""
        ...


class Silent:
    """An observer that looks away."""

    def event(self, kind: str, **facts: Any) -> None:
        """Do nothing."""
