"""A run's folder: its number, and the files in it that are derived from the database and rebuilt when missing.

What is drawn or summed up (pictures, summaries) is the reports'. The database is only read here.
"""

from __future__ import annotations

import errno
import json
import os
import re
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import yaml

from evo.errors import StoreError
from evo.records import Role, to_json
from evo.store.database import disk_full
from evo.store.rows import Event
from evo.store.store import Store

_NAME = re.compile(r"run-(\d+)")


def new(results_dir: Path) -> Path:
    """Make the next run's folder, `run-NNN`, and return it; two that start at once get two.

    Args:
        results_dir: made when missing.

    Raises:
        StoreError: it is no folder, or nothing can be written there.
    """
    try:
        return _new(results_dir)
    except OSError as error:
        raise StoreError(
            f"{results_dir}: expected a folder that runs can be written into, found that {error.filename} cannot be "
            f"made: {error.strerror}. Name another with --results, or see that you may write there"
        ) from error


def _new(results_dir: Path) -> Path:
    results_dir.mkdir(parents=True, exist_ok=True)
    taken = (_NAME.fullmatch(path.name) for path in results_dir.iterdir())
    number = max((int(match[1]) for match in taken if match), default=0) + 1
    while True:
        folder = results_dir / f"run-{number:03}"
        try:
            folder.mkdir()
        except FileExistsError:
            number += 1
        else:
            return folder


def write_atomic(path: Path, content: bytes) -> None:
    """Write a file so that it holds the old content or the new, whatever happens; makes its folder when missing.

    Raises:
        StoreError: it cannot be written; the disk is full, for one.
    """
    try:
        _write_atomic(path, content)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise disk_full(path, f"cannot be written: {error.strerror}") from error
        raise StoreError(f"{path}: cannot be written: {error.strerror}; see that you may write there") from error


def _write_atomic(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o644)  # mkstemp's 0600 would hide results from the group that shares the folder
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def derive(store: Store, champion: int | None) -> None:
    """Write the files of a run that follow from its database; those that never change only where missing.

    `config.yaml`, `workload.json`, `kernels/<id>.cu`, `calls/<task>-<step>.json` and `requests/<case>.json` are
    written once, `best.cu` and `history.json` each time.

    Args:
        store: of the run, open for reading or writing.
        champion: id of the run's best candidate; None where the run has no result: then there is no `best.cu`, and
            what an earlier sitting wrote of it goes.
    """
    for name, content in _lasting(store):
        if not (store.folder / name).exists():
            write_atomic(store.folder / name, content.encode())
    history = [_event(event) for event in store.events()]
    write_atomic(store.folder / "history.json", _pretty(history).encode())
    if champion is None:
        for path in (store.folder / "best.cu", *store.folder.glob("requests/*.json")):
            path.unlink(missing_ok=True)
        return
    write_atomic(store.folder / "best.cu", kernel_source(store, champion).encode())
    for name, content in _requests(store, champion):
        write_atomic(store.folder / name, content.encode())


def kernel_source(store: Store, candidate: int) -> str:
    """Return a kernel as it is worth keeping: with its tuned launch rules where it was tuned."""
    evaluation = store.evaluation(candidate)
    return evaluation.source if evaluation and evaluation.source else store.candidate(candidate).source


def _lasting(store: Store) -> Iterator[tuple[str, str]]:
    meta = store.meta()
    yield "config.yaml", yaml.safe_dump(json.loads(meta.config.model_dump_json()), sort_keys=False)
    yield "workload.json", to_json(meta.workload)
    evaluations = store.evaluations()
    for candidate in store.candidates():
        evaluation = evaluations.get(candidate.id)
        if evaluation:
            yield f"kernels/{candidate.id}.cu", evaluation.source or candidate.source
    for call in store.calls():
        yield f"calls/{call.task}-{call.step}.json", _pretty(json.loads(to_json(call)))


def _requests(store: Store, champion: int) -> Iterator[tuple[str, str]]:
    """What it takes to run the best kernel again on one case: all the rest follows from the workload and the seed."""
    meta, evaluation = store.meta(), store.evaluation(champion)
    results = {result.case: result for result in evaluation.cases} if evaluation else {}
    for case in meta.workload.role(Role.PERFORMANCE):
        result = results.get(case.name)
        yield (
            f"requests/{case.name}.json",
            _pretty(
                {
                    "kernel": "best.cu",
                    "candidate": champion,
                    "workload": "workload.json",
                    "case": json.loads(to_json(case)),
                    "seed": meta.config.seed,
                    "device": json.loads(to_json(meta.device)),
                    "launch_config": dict(result.config) if result else {},
                    "latency_us": result.latency.median_us if result and result.latency else None,
                }
            ),
        )


def _event(event: Event) -> dict[str, Any]:
    return {
        "seq": event.seq,
        "at": event.at,
        "kind": event.kind,
        "task": event.task and asdict(event.task),
        "outcome": event.outcome and asdict(event.outcome),
    }


def _pretty(content: Any) -> str:
    return json.dumps(content, indent=1) + "\n"
