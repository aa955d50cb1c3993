"""What somebody has of a workload when they ask for the rest: a description, and any of its parts as texts.

Only the files that were named are read here; what their texts mean is for the rooms beside this one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from evo.errors import WorkloadError

MOST_BYTES = 1 << 18
"""Of a part's text; the same as of a kernel."""


@dataclass(frozen=True)
class Supplied:
    """The parts that a person brings; "" stands for one that is missing.

    Attributes:
        description: what to compute, in a sentence or two.
        signature: a C signature with shapes, or YAML with `parameters`.
        reference: text of a reference.py.
        reference_kernel: text of a reference.cu.
        kernel: text of the initial kernel, with or without a launch header.
        cases: YAML: a list of cases, or a mapping with `cases`, and with what else of workload.yaml is known.
        files: name -> bytes of the `.npy` files that the cases name.
    """

    __pydantic_config__ = {"ser_json_bytes": "base64", "val_json_bytes": "base64"}  # noqa: RUF012

    description: str
    signature: str = ""
    reference: str = ""
    reference_kernel: str = ""
    kernel: str = ""
    cases: str = ""
    files: Mapping[str, bytes] = field(default_factory=dict)


def supplied(
    description: str,
    signature: str | None = None,
    reference: str | None = None,
    initial_kernel: str | None = None,
    input_cases: str | None = None,
) -> Supplied:
    """Read the parts that a person names.

    Args:
        description: what to compute.
        signature: a file, or the signature itself.
        reference: a .py or .cu file.
        initial_kernel: a .cu file.
        input_cases: a YAML file, with its `.npy` files beside it; or the YAML itself.

    Raises:
        WorkloadError: a file is missing or no text, or the description says nothing.
    """
    if not description.strip():
        raise WorkloadError("description: expected a sentence that says what to compute, found nothing")
    reference_text = _file("reference", reference, (".py", ".cu"))
    is_kernel = bool(reference) and Path(str(reference)).suffix == ".cu"
    return Supplied(
        description=" ".join(description.split()),
        signature=_file_or_text("signature", signature),
        reference="" if is_kernel else reference_text,
        reference_kernel=reference_text if is_kernel else "",
        kernel=_file("initial_kernel", initial_kernel, (".cu", ".cuh")),
        cases=_file_or_text("input_cases", input_cases),
        files=_arrays(input_cases),
    )


def _file(part: str, name: str | None, suffixes: tuple[str, ...]) -> str:
    if name is None:
        return ""
    if Path(name).suffix not in suffixes:
        raise WorkloadError(f"{part}: expected a file whose name ends in {' or '.join(suffixes)}, found {name!r}")
    return _text(part, Path(name))


def _file_or_text(part: str, given: str | None) -> str:
    if given is None:
        return ""
    looks_like_text = "\n" in given or "(" in given or ":" in given
    return given if looks_like_text and not _is_file(given) else _text(part, Path(given))


def _is_file(name: str) -> bool:
    try:
        return Path(name).is_file()
    except (OSError, ValueError):
        return False


def _text(part: str, path: Path) -> str:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise WorkloadError(f"{part}: expected a readable UTF-8 text, found {path}: {error}") from None
    if not text.strip() or len(text.encode()) > MOST_BYTES:
        raise WorkloadError(f"{part}: expected a text of 1 to {MOST_BYTES} bytes, found {path} of {len(text)}")
    return text


def _arrays(input_cases: str | None) -> dict[str, bytes]:
    """Return every `.npy` file beside a file of cases whose name the cases mention."""
    if input_cases is None or not _is_file(input_cases):
        return {}
    path = Path(input_cases)
    text = path.read_text(encoding="utf-8")
    return {file.name: file.read_bytes() for file in sorted(path.parent.glob("*.npy")) if file.name in text}
