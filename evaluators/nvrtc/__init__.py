"""Compile CUDA with NVRTC where its wheels are installed (extra `nvrtc`): the exact front end, without a GPU.

The compiler lives in a sandboxed child that is kept warm, since a candidate's text may crash it, hang it or fill the
memory. Nothing is executed, nothing is written to disk.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import importlib.util
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from evaluators.inspection import refuse_source
from evaluators.nvrtc import process
from evaluators.nvrtc.headers import small, whole
from evaluators.nvrtc.log import explain, resources
from evaluators.nvrtc.process import Installation
from evo import sandbox
from evo.errors import DeviceError
from evo.kernel.header import OPTIONS
from evo.records import Binary, CompileRequest, Status

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
_ARCH = re.compile(r"(?:sm|compute)_(\d+)[af]?")
_DEFINE = re.compile(r"[A-Za-z_]\w*")


def available() -> bool:
    """Return whether NVRTC is installed and can be confined here."""
    return find() is not None and sandbox.available() == ""


@functools.cache
def find() -> Installation | None:
    """Look for the wheels `nvidia-cuda-nvrtc` and `nvidia-cuda-runtime` (layouts of CUDA 13 and 12)."""
    spec = importlib.util.find_spec("nvidia")
    roots = [Path(root) for root in spec.submodule_search_locations or ()] if spec else []
    libraries = [path for root in roots for path in sorted(root.glob("*/lib/libnvrtc.so.*")) if "alt" not in path.name]
    includes = [path.parent for root in roots for path in root.glob("*/include/cuda_fp16.h")]
    if not libraries or not includes:
        return None
    cccl = [path / "cccl" for path in includes if (path / "cccl").is_dir()]
    return Installation(libraries[-1], (*includes, *cccl), whole=bool(cccl))


def compile(request: CompileRequest, cubin: bool) -> Binary:
    """Compile one program.

    Args:
        request: `flavour` is not looked at; `options` must be of `evo.kernel.header.OPTIONS`; `kernels` may be template
            instances, which are instantiated.
        cubin: True for machine code of `request.arch`, with resources; False for PTX, which is quicker.

    Returns:
        OK with the image and, for a CUBIN, each kernel's resources; else COMPILE_ERROR, UNSUPPORTED, UNSAFE or
        TIMEOUT with a message whose lines are the candidate's own. Its time-out is `TIMEOUT_S`.

    Raises:
        DeviceError: NVRTC is not installed.
        SandboxError: it cannot be confined here.
    """
    begin = time.monotonic()
    installation = find()
    if installation is None:
        raise DeviceError("NVRTC is not installed; pip install 'kernel-evo[nvrtc]'")
    options = _options(request, cubin, installation)
    key = _key(request, options, cubin)
    refused = refuse_source(request.source)
    if refused:
        return Binary(refused[0].status, key, message="\n".join(str(refusal) for refusal in refused[:5]))
    unknown = _unknown_arch(request.arch, process.describe(installation))
    if unknown:
        return Binary(Status.UNSUPPORTED, key, message=unknown)
    answer = process.ask(installation, _message(request, (*options, _SLIM), cubin, small()), TIMEOUT_S)
    if answer.get("code") == _COMPILATION and _LARGE_INCLUDES.search(request.source) and installation.whole:
        answer = process.ask(installation, _message(request, options, cubin, whole()), TIMEOUT_S)
    return replace(_binary(answer, key), seconds=time.monotonic() - begin)


def _binary(answer: Mapping[str, Any], key: str) -> Binary:
    if "failure" in answer:
        status = Status.TIMEOUT if answer["failure"] == "timeout" else Status.COMPILE_ERROR
        return Binary(status, key, message=_FAILURES[answer["failure"]])
    if answer["code"] != 0:
        return Binary(Status.COMPILE_ERROR, key, message=explain(answer["log"], NAME))
    used = resources(answer["log"], answer["lowered"])
    return Binary(Status.OK, key, base64.b64decode(answer["image"]), resources=used)


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
        *(f"--include-path={path}" for path in installation.includes),
        *(f"-D{name}={int(value)}" for name, value in sorted(request.defines.items())),
        *request.options,
    )


def _unknown_arch(arch: str, about: Mapping[str, Any]) -> str:
    number = _ARCH.fullmatch(arch)
    if number and int(number[1]) in about["archs"]:
        return ""
    known = ", ".join(f"sm_{known}" for known in about["archs"])
    return f"NVRTC {about['version']} does not compile for {arch!r}; it does for {known}"


def _key(request: CompileRequest, options: Sequence[str], cubin: bool) -> str:
    parts = (request.source, *request.kernels, "", *options, str(cubin))
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()
