"""The command `redteam`: the kernels of the red team, judged by this machine's evaluator, and a table of what it found.

What is expected of a kernel, and whether a verdict is right, is decided in `evaluators.redteam`.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from evo.commands import output
from evo.errors import ConfigError, EvoError, did_you_mean
from evo.records import Status

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from evaluators.redteam import Court, Result, Sample

FAULTY = 1
INTERRUPTED = 130  # 128 + SIGINT, as shells have it


@dataclass(frozen=True)
class Row:
    """What became of one kernel: of all its turns up to the first that went wrong.

    Attributes:
        kernel: name.
        workload: name.
        kind: `cheat` or `honest`.
        trick: what it tries, or what is unusual about it.
        expected: statuses that are right on this device.
        found: of the last turn; None where it was not run.
        stage: where the last turn ended.
        seconds: wall time of all turns.
        fault: what is wrong with the verdict; "" where nothing is.
        message: of the last turn.
        skipped: why it was not run, or "".
    """

    kernel: str
    workload: str
    kind: str
    trick: str
    expected: tuple[Status, ...]
    found: Status | None = None
    stage: str = ""
    seconds: float = 0.0
    fault: str = ""
    message: str = ""
    skipped: str = ""


def redteam(name: str, only: Sequence[str], repeat: int, *, as_json: bool) -> int:
    """Judge the red team's kernels and say what came of it; return the exit code.

    Args:
        name: `auto` or a device plug-in.
        only: kernels; empty for all.
        repeat: how many times each is judged.
        as_json: write a JSON document instead of text.

    Raises:
        ConfigError: `only` names no kernel.
        DeviceError: there is no such device here. One that is lost on the way ends the table, and the code is its own.
    """
    from evaluators import redteam as team
    from evo.runner import devices

    samples = _chosen(team.samples(), only)
    name = devices.choose(name)
    core = devices.timing_core(name)
    rows: list[Row] = []
    ended: EvoError | KeyboardInterrupt | None = None
    with devices.kept_off(core), contextlib.closing(team.Court(devices.make(name), core)) as court:
        kind = court.kind
        try:
            for number, sample in enumerate(samples, 1):
                rows.append(_row(court, sample, repeat))
                _tell(rows[-1], f"[{number}/{len(samples)}]")  # what was said is in the table, whenever Ctrl-C comes
        except (EvoError, KeyboardInterrupt) as error:  # a lost GPU, or Ctrl-C: what was found until then is told
            ended = error
    faults = sum(bool(row.fault) for row in rows)
    if as_json:
        output.data({"device": kind, "faults": faults, "ended": _why(ended), "of": len(samples), "kernels": rows})
    else:
        output.show(_report(rows, kind, len(samples), _why(ended)))
    if isinstance(ended, EvoError):
        return ended.exit_code
    if ended is not None:
        return INTERRUPTED
    return FAULTY if faults else 0


def _why(ended: EvoError | KeyboardInterrupt | None) -> str:
    return "" if ended is None else str(ended) or "interrupted"


def _chosen(samples: Sequence[Sample], only: Sequence[str]) -> list[Sample]:
    known = {sample.name for sample in samples}
    for name in only:
        if name not in known:
            raise ConfigError(f"--only {name}: the red team has no such kernel{_near(name, known)}")
    return [sample for sample in samples if not only or sample.name in only]


def _near(name: str, known: set[str]) -> str:
    near = did_you_mean(name, known)
    return near if near.startswith("; did") else ""  # the whole list would be two hundred names


def _row(court: Court, sample: Sample, repeat: int) -> Row:
    """Judge one kernel, where it is for this device."""
    bare = _bare(sample, court.kind)
    spared = sample.spared(court.kind)
    return replace(bare, skipped=spared) if spared else _judged(bare, court, sample, repeat)


def _tell(row: Row, count: str) -> None:
    """Say on stderr how it goes."""
    found = "skipped, " + row.skipped if row.skipped else f"{row.found} in {row.seconds:.1f} s"
    fault = f"  WRONG: {row.fault}" if row.fault else ""
    print(f"{count} {row.kernel}: {found}{fault}", file=sys.stderr, flush=True)


def _bare(sample: Sample, kind: str) -> Row:
    honest = "honest" if sample.honest else "cheat"
    return Row(sample.name, sample.workload, honest, sample.trick, sample.statuses(kind))


def _judged(bare: Row, court: Court, sample: Sample, repeat: int) -> Row:
    seconds = 0.0
    for turn in range(1, repeat + 1):
        result = court.hear(sample, turn)
        seconds += result.seconds
        if result.fault:
            break
    return _filled(bare, result, seconds, "" if turn == 1 else f" (turn {turn})")


def _filled(bare: Row, result: Result, seconds: float, turn: str) -> Row:
    verdict = result.verdict
    return replace(
        bare,
        found=verdict.status,
        stage=verdict.stage,
        seconds=seconds,
        fault=result.fault + turn if result.fault else "",
        message=verdict.message,
    )


# --- saying -----------------------------------------------------------------------------------------------------


def _report(rows: Sequence[Row], kind: str, of: int, ended: str) -> Iterator[RenderableType]:
    from rich.text import Text

    yield _table(rows)
    faulty = [row for row in rows if row.fault]
    for row in faulty:
        yield Text(f"{row.kernel}: {row.fault}\n", style="red")
    run = [row for row in rows if not row.skipped]
    cheats = sum(row.kind == "cheat" for row in run)
    counts = f"{cheats} cheats and {len(run) - cheats} honest kernels on {kind}, {len(rows) - len(run)} skipped"
    if ended:
        yield Text(f"ended after {len(rows)} of {of} kernels: {ended}", style="bold yellow")
    if faulty:
        yield f"[bold red]{len(faulty)} verdicts are not as they must be[/bold red]: {counts}"
    else:
        every = "every verdict so far" if ended else "every verdict"
        yield f"[bold green]{every} is as it must be[/bold green]: {counts}"


def _table(rows: Sequence[Row]) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    made = Table(box=SIMPLE_HEAD, header_style="bold", pad_edge=False)
    for column in ("kernel", "workload", "trick", "expected", "found", "stage"):
        made.add_column(column, overflow="fold")
    made.add_column("seconds", justify="right")
    for row in rows:
        style = "dim" if row.skipped else "red" if row.fault else ""
        trick = f"honest: {row.trick}" if row.kind == "honest" else row.trick
        found = f"skipped: {row.skipped}" if row.skipped else f"{row.found}{' (wrong)' if row.fault else ''}"
        seconds = "" if row.skipped else f"{row.seconds:.1f}"
        expected = " or ".join(row.expected)
        cells = (row.kernel, row.workload, trick, expected, found, row.stage, seconds)
        made.add_row(*(Text(cell, style=style) for cell in cells))
    return made
