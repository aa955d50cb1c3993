"""Keys and other variables that model providers need: `.env` is read here, and secrets are taken out of texts.

The environment is the process's own; nothing here writes a file, and no value may leave but through `redact`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

_FORWARDED = re.compile(
    r"(_API_KEY|_API_BASE|_API_VERSION|_BASE_URL|_AUTH_TOKEN|_AD_TOKEN|_AI_TOKEN)$|"
    r"^(AWS|AZURE|VERTEXAI|GOOGLE|VERTEX)_|^HF_TOKEN$"
)
_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL", re.IGNORECASE)
_SHORTEST_SECRET = 8  # shorter values ("none", "dummy") stand in ordinary text and protect nothing

_SECRET_SHAPES = (
    # OpenAI, Anthropic, OpenRouter; also as providers print them, with stars in the middle
    re.compile(r"\bsk-[\w*-]{8,}"),
    re.compile(r"\b(?:gsk|xai|hf|pplx|ghp|github_pat)[_-][\w*-]{16,}"),
    re.compile(r"\bAIza[\w-]{30,}"),
    re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"),
    re.compile(r"(?i)\bbearer\s+[\w.~+/=*-]{8,}"),
    re.compile(r"(?i)(?<=[?&]key=)[^&\s'\"]+"),
    re.compile(r"(?<=://)[^/\s:@]+:[^/\s@]+(?=@)"),
)
# Headers and arguments of any provider, as errors quote them: Azure's and vLLM's keys have no shape of their own.
_SECRET_FIELD = re.compile(
    r"""((?:api[-_ ]?key|authorization|auth[-_]token)["']?\s*[:=]\s*(?:b?["'])?(?:bearer |basic )?)"""
    r"""[^\s"',)}&;]{8,}""",
    re.IGNORECASE,
)


def load(folder: Path) -> tuple[str, ...]:
    """Take the variables of `folder/.env` that are not set yet into this process's environment.

    What is set already wins, so that `OPENAI_API_KEY=… evo run …` does what it says. A missing file is no error.

    Args:
        folder: where `.env` is looked for; its parents are not.

    Returns:
        The names that were set, sorted.
    """
    from dotenv import dotenv_values

    path = folder / ".env"
    if not path.is_file():
        return ()
    found = {name: value for name, value in dotenv_values(path).items() if value}
    missing = {name: value for name, value in found.items() if not os.environ.get(name)}
    os.environ.update(missing)
    return tuple(sorted(missing))


def forwarded(environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the variables that a worker on another machine needs to reach the providers: keys, bases, regions."""
    variables = os.environ if environment is None else environment
    return {name: value for name, value in variables.items() if value and _FORWARDED.search(name)}


def redact(text: str, environment: Mapping[str, str] | None = None) -> str:
    """Return `text` with every secret replaced by ``[redacted]``.

    Secrets are the values of variables whose names say so, and whatever has the shape of a provider's key.

    Args:
        text: an error's text, for example, in which a library may quote a header or a URL.
        environment: the variables to look at; the process's own by default.
    """
    variables = os.environ if environment is None else environment
    values = {value for name, value in variables.items() if _SECRET_NAME.search(name)}
    for value in sorted(values, key=len, reverse=True):
        if len(value) >= _SHORTEST_SECRET:
            text = text.replace(value, "[redacted]")
    for shape in _SECRET_SHAPES:
        text = shape.sub("[redacted]", text)
    return _SECRET_FIELD.sub(r"\1[redacted]", text)
