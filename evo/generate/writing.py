"""Writes a workload's folder: what was supplied, derived and generated, as files to review and to change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from evo.generate.contract import Contract, with_cases


def write(folder: Path, contract: Contract, files: Mapping[str, str], generated: Sequence[str], trust: str) -> None:
    """Write workload.yaml and the other files; those that are there are replaced.

    Args:
        folder: of the workload; its `.npy` files are in it.
        contract: of the workload.
        files: name -> text of the others.
        generated: parts that a model wrote.
        trust: how they were checked.
    """
    of = {"generated": list(generated)} if generated else {}
    final = with_cases(contract, contract.workload.cases, folder, **of, trust=trust)
    (folder / "workload.yaml").write_text(final.text, encoding="utf-8")
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
