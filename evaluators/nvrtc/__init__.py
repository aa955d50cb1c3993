"""Compile CUDA with NVRTC, of its wheels (extra `nvrtc`) or of a CUDA toolkit: the exact front end, without a GPU.

The compiler lives in sandboxed children that are kept warm, since a candidate's text may crash it, hang it or fill the
memory. Results are kept on disk. Nothing is executed.
"""

from __future__ import annotations

import base64
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from evaluators.inspection import refuse_source
from evaluators.nvrtc import process, stored
from evaluators.nvrtc.headers import small, whole
from evaluators.nvrtc.installation import MISSING, Installation, find
from evaluators.nvrtc.log import explain, resources
from evo import sandbox
from evo.errors import DeviceError
from evo.kernel.header import OPTIONS
from evo.records import Binary, CompileRequest, Status

__all__ = ["TIMEOUT_S", "Installation", "available", "compile", "find", "unknown_arch", "version"]

NAME = "kernel.cu"
"""Under this name the candidate's own lines go in the compiler's messages, before they are reworded."""

TIMEOUT_S = 60.0
_FAILURES = {
    "timeout": f"the CUDA compiler did not end within {TIMEOUT_S:.0f} s; unroll less, or use smaller templates",
    "crash": "the CUDA compiler itself crashed on this source, or ran out of memory; write it more simply",
}
_SLIM = "-D_CG_LIMIT_INCLUDED_DEPENDENCIES=1"
"""Keeps cooperative_groups.h from reading libcu++, which takes 1.3 s and which hardly any kernel needs."""
_LARGE_INCLUDES = re.compile(
    r"include\s*[<\"](cooperative_groups|algorithm|array|functional|initializer_list|limits|tuple|type_traits|utility)\b"
)
_COMPILATION = 6
_ARCH = re.compile(r"(?:sm|compute)_(\d+)([af]?)")
_SUFFIXES_FROM = {"": 0, "a": 90, "f": 100}
"""Architectures that have features of their own (a), or of their family (f)."""
_DEFINE = re.compile(r"[A-Za-z_]\w*")


def available() -> bool:
    """Return whether NVRTC is installed and can be confined here."""
    return find() is not None and sandbox.available() == ""


def compile(request: CompileRequest, cubin: bool) -> Binary:
    """Compile one program.

    Args:
        request: `flavour` `lineinfo` adds the lines that tools name, and changes no instruction; another is not looked
            at; `options` must be of `evo.kernel.header.OPTIONS`; `kernels` may be template instances, which are
            instantiated.
        cubin: True for machine code of `request.arch`, with resources; False for PTX, which is quicker.

    Returns:
        OK with the image, the kernels' symbols and, for a CUBIN, each kernel's resources; else COMPILE_ERROR,
        UNSUPPORTED, UNSAFE or TIMEOUT with a message whose lines are the candidate's own. Its time-out is `TIMEOUT_S`.
        What was compiled before, by any process of this user, comes from disk within a millisecond or two; then
        `seconds` is 0.

    Raises:
        DeviceError: NVRTC is not installed, or cannot be loaded.
        SandboxError: it cannot be confined here.
    """
    begin = time.monotonic()
    installation = _installed()
    options = _options(request, cubin, installation)
    key = stored.key(request, options, cubin, installation)
    results = stored.results()
    known = results.get(key)
    if known is not None:
        return known
    refused = refuse_source(request.source)
    if refused:
        return Binary(refused[0].status, key, message="\n".join(str(refusal) for refusal in refused[:5]))
    unknown = unknown_arch(request.arch)
    if unknown:
        return Binary(Status.UNSUPPORTED, key, message=unknown)
    answer = _ask(request, options, cubin, installation)
    binary = replace(_binary(answer, key), seconds=time.monotonic() - begin)
    if answer.get("code") in (0, _COMPILATION):  # else a time-out, or a want of memory: it may go better next time
        results.put(binary)
    return binary


def version() -> str:
    """Return NVRTC's version, e.g. `13.0`; raises `DeviceError` where there is none or it cannot be loaded."""
    return str(process.describe(_installed())["version"])


def unknown_arch(arch: str) -> str:
    """Return why NVRTC does not compile for an architecture, or ""; raises as `version` does."""
    about = process.describe(_installed())
    number = _ARCH.fullmatch(arch)
    if number and int(number[1]) in about["archs"] and int(number[1]) >= _SUFFIXES_FROM[number[2]]:
        return ""
    known = ", ".join(f"sm_{known}" for known in about["archs"])
    return f"NVRTC {about['version']} does not compile for {arch!r}; it does for {known}"


def _installed() -> Installation:
    installation = find()
    if installation is None:
        raise DeviceError(MISSING)
    return installation


def _ask(request: CompileRequest, options: Sequence[str], cubin: bool, installation: Installation) -> Mapping[str, Any]:
    answer = process.ask(installation, _message(request, (*options, _SLIM), cubin, small()), TIMEOUT_S)
    if answer.get("code") == _COMPILATION and _LARGE_INCLUDES.search(request.source) and installation.whole:
        answer = process.ask(installation, _message(request, options, cubin, whole()), TIMEOUT_S)
    return answer


def _binary(answer: Mapping[str, Any], key: str) -> Binary:
    if "failure" in answer:
        status = Status.TIMEOUT if answer["failure"] == "timeout" else Status.COMPILE_ERROR
        return Binary(status, key, message=_FAILURES[answer["failure"]])
    if answer["code"] != 0:
        return Binary(Status.COMPILE_ERROR, key, message=explain(answer["log"], NAME))
    lowered = {kernel: symbol for kernel, symbol in answer["lowered"].items() if symbol}
    image = base64.b64decode(answer["image"])
    return Binary(Status.OK, key, image, resources=resources(answer["log"], lowered), lowered=lowered)


def _message(
    request: CompileRequest, options: Sequence[str], cubin: bool, headers: Mapping[str, str]
) -> dict[str, Any]:
    return {
        "source": request.source,
        "name": NAME,
        "headers": dict(headers),
        "kernels": list(request.kernels),
        "options": list(options),
        "image": "CUBIN" if cubin else "PTX",
    }


def _options(request: CompileRequest, cubin: bool, installation: Installation) -> tuple[str, ...]:
    """Return NVRTC's options for a request; raise `ValueError` for one that no header could have asked for."""
    for option in request.options:
        if option.partition("=")[0] not in OPTIONS:
            raise ValueError(f"{option!r} is not among the compiler options that a header may ask for")
    for name in request.defines:
        if not _DEFINE.fullmatch(name):
            raise ValueError(f"{name!r} is no name for a macro")
    arch = request.arch if cubin else request.arch.replace("sm_", "compute_")
    standard = () if any(option.startswith("--std") for option in request.options) else ("--std=c++17",)
    return (
        f"--gpu-architecture={arch}",
        *standard,
        *(("--ptxas-options=-v",) if cubin else ()),
        *(("--generate-line-info",) if request.flavour == "lineinfo" else ()),
        *(f"--include-path={path}" for path in installation.includes),
        *(f"-D{name}={int(value)}" for name, value in sorted(request.defines.items())),
        *request.options,
    )
