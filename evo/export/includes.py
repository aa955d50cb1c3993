"""The standard headers that NVRTC lacks, as files: an exported kernel compiles as it did in the run."""

from __future__ import annotations

from collections.abc import Iterator

from evaluators.nvrtc import headers
from evo.export.folder import File


def files() -> Iterator[File]:
    """Return `include/`: the small headers, and in `include/whole/` those that stand for all of libcu++."""
    small = headers.small()
    for name, text in small.items():
        yield f"include/{name}", text.encode()
    for name, text in headers.whole().items():
        if small.get(name) != text:
            yield f"include/whole/{name}", text.encode()
