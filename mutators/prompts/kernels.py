"""Kernels in words: the one to change with its whole verdict, and others beside it."""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Sequence

from evo.errors import HeaderError
from evo.kernel import header_text
from evo.records import MutationContext, Relative, Status, Workload
from mutators import feedback
from mutators.fences import clean, fence
from mutators.fitting import Section
from mutators.prompts import priorities

MAX_OTHERS = 60_000
"""Characters of other kernels' sources in one prompt: about 20,000 tokens, half a cent at gpt-5-mini's price."""

_INTRODUCTION = "# Other kernels of this search\n\nTake what helps; say nothing about them."

_MOST_COMPARED = 3000
"""Lines of kernels whose difference is shown; `difflib` is quadratic in them."""

_CONTEXT_LINES = 3
"""Unchanged lines around each change, as `diff -u` shows them."""


def shown(relative: Relative) -> str:
    """Return a kernel's source as a prompt shows it: without the tuner's rules, which fit its own tunables only."""
    if "choose" not in relative.source:
        return relative.source
    try:
        located = header_text.locate(relative.source)
        return relative.source if located is None else header_text.write_choose(located, ())
    except HeaderError:
        return relative.source  # a broken header is shown as it is: its verdict says what is wrong


def spellings(relatives: Sequence[Relative]) -> tuple[str, ...]:
    """Return each kernel's source as shown, as given, and with the tuner's rules written in; those as shown first."""
    given = [relative.source for relative in relatives]
    tuned = [relative.evaluation.source for relative in relatives if relative.evaluation is not None]
    return tuple(dict.fromkeys(source for source in (*map(shown, relatives), *given, *tuned) if source))


def whole(relative: Relative, workload: Workload, title: str) -> tuple[Section, ...]:
    """Show a kernel that the answer is made from: its source, which cannot be left out, and its verdict."""
    source, name = shown(relative), f"kernel #{relative.id}"
    full = feedback.describe(relative.evaluation, source, workload)
    short = feedback.brief(relative.evaluation, source)
    verdict = f"Verdict: {feedback.verdict(relative.evaluation)}."
    return (
        Section(f"# {title} (#{relative.id})\n\n{fence(source, 'cuda')}", priorities.ESSENTIAL, name),
        Section(full, priorities.VERDICT, f"the verdict on {name}", (short, verdict)),
        Section(_listing(relative), priorities.LISTING, f"the machine code of {name}", ("",)),
    )


def _listing(relative: Relative) -> str:
    return f"What the compiler made of kernel #{relative.id}:\n\n{relative.listing}" if relative.listing else ""


def others(relatives: Sequence[Relative], workload: Workload) -> tuple[Section, ...]:
    """Show kernels of other parts of the search; sources as long as there is room."""
    sections, left = list[Section](), MAX_OTHERS
    for rank, other in enumerate(relatives):
        source = shown(other)
        told = f"## Kernel #{other.id}\n\n{feedback.describe(other.evaluation, source, workload)}"
        told = told if rank else f"{_INTRODUCTION}\n\n{told}"
        without = f"{told}\n\nIts {len(source)} characters of source are left out."
        forms: tuple[str, ...] = (without, "")
        if len(source) <= left:
            left -= len(source)
            forms = (f"{told}\n\n{fence(source, 'cuda')}", *forms)
        sections.append(Section(forms[0], priorities.OTHERS - rank, f"kernel #{other.id}", forms[1:]))
    return tuple(sections)


def difference(before: Relative, after: Relative) -> str:
    """Return what changed between two kernels, as `diff -u` shows it; "" where nothing did or most did."""
    old, new = (clean(shown(relative)).splitlines() for relative in (before, after))
    if max(len(old), len(new)) > _MOST_COMPARED or not (old and new):
        return ""
    lines = list(difflib.unified_diff(old, new, f"#{before.id}", f"#{after.id}", lineterm="", n=_CONTEXT_LINES))
    changed = sum(line.startswith(("+", "-")) for line in lines[2:])
    return fence("\n".join(lines), "diff") if 0 < changed <= (len(old) + len(new)) // 2 else ""


def origin(context: MutationContext) -> Relative | None:
    """Return the kernel that the first parent goes back to, where the context has one.

    That is its own parent, or else the first right kernel beside it: what was mended in vain was made from a kernel
    that had failed as well.
    """
    failed = context.parents[0]
    made_from = {parent for attempt in context.tried if attempt.id == failed.id for parent in attempt.parents}
    around = context.inspirations
    own = (relative for relative in around if relative.id in made_from)
    right = (relative for relative in around if relative.evaluation and relative.evaluation.status is Status.OK)
    return next(itertools.chain(own, right), None)
