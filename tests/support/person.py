"""What a person does with prompts on files: reads the kernel to change, and answers with a version of it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from pathlib import Path

_KERNEL = re.compile(r"^(`{3,})cuda\n(.*?)^\1", re.DOTALL | re.MULTILINE)


def answer(folder: Path, names: Iterable[str] | None = None) -> list[Path]:
    """Answer prompts (all without an answer by default) with a marked copy of their last kernel; return the files."""
    prompts = sorted(folder.glob("*.prompt.md")) if names is None else [folder / f"{name}.prompt.md" for name in names]
    made = []
    for prompt in prompts:
        reply = prompt.with_name(prompt.name.replace(".prompt.", ".reply."))
        if not reply.exists():
            reply.write_text(marked(prompt.read_text()))
            made.append(reply)
    return made


def marked(prompt: str) -> str:
    """Return an answer: the last kernel of a prompt with a mark of its own."""
    kernel = _KERNEL.findall(prompt)[-1][1]
    unmarked = re.sub(r"__device__ int mark_\w+;\n?", "", kernel)
    mark = hashlib.sha256(prompt.encode()).hexdigest()[:12]
    return f"A mark.\n\n````cuda\n{unmarked.rstrip()}\n__device__ int mark_{mark};\n````\n"
