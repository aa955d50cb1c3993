"""From a `CompileRequest` to a host program, in the sandbox: check the text, compile, check the object, link.

What a compiler says is trimmed to what the candidate's author can use. Nothing of the candidate runs here.
"""

from __future__ import annotations

import difflib
import re
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from evaluators import inspection
from evaluators.hostlib import symbols, translate
from evaluators.hostlib.tools import LIBRARY, Tools
from evaluators.inspection.refusal import Refusal
from evo import sandbox
from evo.records import Binary, CompileRequest, Resources, Status

MOST_STATIC_SHARED_BYTES = 49152
"""CUDA's limit for static shared memory (CUDA C++ Programming Guide, "Compute Capabilities")."""
_NAMESPACE = "cuda_user"
_EXPORTS = ("_ZN9cuda_host7kernelsE",)
_RUNTIME_SYMBOLS = ("_ZN9cuda_host", "_ZNK9cuda_host", "__tsan_", "__ubsan_")
_LIMITS = sandbox.Limits(wall_s=60.0, cpu_s=60.0, memory_bytes=3 << 30, file_bytes=256 << 20)
_MOST_MESSAGE = 4000

_IGNORED_OPTIONS = re.compile(
    r"-?-(use_fast_math|fmad=true|fmad=false|ftz=(true|false)|prec-(div|sqrt)=(true|false)|extra-device-vectorization"
    r"|maxrregcount=\d+|std=c\+\+(11|14|17|20)|restrict|dopt=on|split-compile=\d+|ptxas-options=\S+|Xptxas=\S+"
    r"|default-device|gen-opt-lto|generate-line-info|lineinfo|minimal|no-source-include)"
)
"""Options for a GPU's code generator. The host compiler keeps to IEEE arithmetic whatever they say."""


class _Stopped(Exception):
    """The build ends here, with this binary."""

    def __init__(self, status: Status, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


@dataclass(frozen=True)
class Builder:
    """Builds programs with one set of tools; holds no state."""

    tools: Tools

    def build(self, request: CompileRequest, key: str) -> Binary:
        """Build a program. Whatever a candidate does is a status of the binary.

        Raises:
            SandboxError: the machine cannot confine the compiler.
        """
        started = time.monotonic()
        try:
            image = self._build(request)
            resources = _resources(image, request.kernels)
        except translate.Refused as refused:
            return Binary(refused.status, key, message=str(refused), seconds=time.monotonic() - started)
        except _Stopped as stopped:
            return Binary(stopped.status, key, message=stopped.message, seconds=time.monotonic() - started)
        return Binary(Status.OK, key, image, resources=resources, seconds=time.monotonic() - started)

    def _build(self, request: CompileRequest) -> bytes:
        _stop_at(inspection.refuse_host_source(request.source))
        unroll = request.flavour == "plain"
        unit = translate.translate(request.source, request.kernels, request.defines, unroll=unroll)
        with tempfile.TemporaryDirectory(prefix="kernel-evo-build-") as name:
            folder = Path(name)
            (folder / "unit.cpp").write_text(unit)
            (folder / translate.FILE).write_text(request.source)  # the compiler quotes lines from it
            flags = (*self.tools.flags(request.flavour), *_own_options(request.options))
            self._preprocess(folder, flags)
            self._compile(folder, flags)
            self._inspect(folder, request.flavour)
            self._run(folder, self.tools.link(request.flavour, "unit.o", "program"))
            return (folder / "program").read_bytes()

    def _preprocess(self, folder: Path, flags: Sequence[str]) -> None:
        """Look at what macros hide before the assembler could see it."""
        preprocess = ("-E", "-fpch-preprocess", "unit.cpp", "-o", "unit.ii")
        self._run(folder, (self.tools.compiler, *flags, *preprocess))
        _stop_at(inspection.refuse_preprocessed((folder / "unit.ii").read_text(), translate.FILE))

    def _compile(self, folder: Path, flags: Sequence[str]) -> None:
        self._run(folder, (self.tools.compiler, *flags, "-c", "unit.cpp", "-o", "unit.o"))

    def _inspect(self, folder: Path, flavour: str) -> None:
        if flavour == "check":  # GCC's constructor that would start the sanitizer
            self._run(folder, ("objcopy", "-R", ".init_array.00099", "-R", ".rela.init_array.00099", "unit.o"))
        _stop_at(
            inspection.inspect_object(
                folder / "unit.o", namespace=_NAMESPACE, exports=_EXPORTS, runtime=_RUNTIME_SYMBOLS
            )
        )

    def _run(self, folder: Path, command: Sequence[str]) -> None:
        readable = (self.tools.folder, LIBRARY)
        done = sandbox.run(command, folder=folder, limits=_LIMITS, read_only=readable, may_exec=True)
        if done.timed_out:
            raise _Stopped(
                Status.TIMEOUT,
                f"the compiler did not end within {_LIMITS.wall_s:.0f} s; the source is too large for it",
            )
        if done.returncode:
            raise _Stopped(*_explain(done.stderr.decode(errors="replace"), done.reason))


def _stop_at(refusals: Sequence[Refusal]) -> None:
    if refusals:
        raise _Stopped(refusals[0].status, "\n".join(str(refusal) for refusal in refusals[:5]))


def _own_options(options: Sequence[str]) -> tuple[str, ...]:
    for option in options:
        if not _IGNORED_OPTIONS.fullmatch(option):
            raise _Stopped(Status.UNSUPPORTED, f"the host device has no use for the compiler option {option!r}")
    return ("-ffp-contract=off",) if any(option.endswith("fmad=false") for option in options) else ()


def _resources(image: bytes, kernels: Sequence[str]) -> dict[str, Resources]:
    variables = symbols.variables(image)
    used = {kernel: symbols.static_shared_bytes(variables, kernel) for kernel in kernels}
    for kernel, nbytes in used.items():
        if nbytes > MOST_STATIC_SHARED_BYTES:
            found = f"kernel {kernel} declares {nbytes} bytes of static shared memory"
            most = f"{MOST_STATIC_SHARED_BYTES} is the most (dynamic shared memory may be larger)"
            raise _Stopped(Status.COMPILE_ERROR, f"{found}; {most}")
    return {kernel: Resources(static_shared_bytes=nbytes) for kernel, nbytes in used.items()}


# --- what the compiler says --------------------------------------------------------------------------------------

_ERROR = re.compile(r"(?P<file>[^\s:]+):(?P<line>\d+):(?:\d+:)? (?:fatal )?error: (?P<text>.*)")
_OWN = re.compile(rf"{re.escape(translate.FILE)}:(\d+):")
_QUOTE = re.compile(r" +\d* \|")
_UNSUPPORTED = re.compile(r"host device: no (support for [\w ,-]+)")
_UNKNOWN = re.compile(
    rf"{re.escape(translate.FILE)}:(\d+):\d+: error: '(__\w+)' (?:was not declared|does not name a type)"
)
_KNOWN = ("__syncthreads", "__syncwarp", "__shfl_sync", "__shfl_xor_sync", "__shfl_down_sync", "__shfl_up_sync")
"""What people mean when they misspell: such a name is an error, and no intrinsic that is missing here."""
_UNDEFINED = re.compile(r"undefined reference to [`']([^']+)'")


def _explain(stderr: str, reason: str) -> tuple[Status, str]:
    """Return the status and the message for what a compiler or linker wrote."""
    if match := _UNSUPPORTED.search(stderr):
        return Status.UNSUPPORTED, f"{_first_own_line(stderr)}the host device has no {match[1].strip(' ;')}"
    stderr = _tidy(stderr)
    unknown = _UNKNOWN.search(stderr)
    if unknown and not difflib.get_close_matches(unknown[2], _KNOWN, cutoff=0.85):
        return Status.UNSUPPORTED, f"line {unknown[1]}: the host device does not know {unknown[2]}"
    errors = _own_errors(stderr)
    if not errors:
        undefined = sorted(set(_UNDEFINED.findall(stderr)))
        errors = [f"{name} is declared and used, but not defined" for name in undefined]
    if not errors:
        errors = [reason or stderr.strip()[-600:] or "the compiler failed without a word"]
    return Status.COMPILE_ERROR, "\n".join(errors)[:_MOST_MESSAGE]


def _first_own_line(stderr: str) -> str:
    match = _OWN.search(stderr)
    return f"line {match[1]}: " if match else ""


def _own_errors(stderr: str) -> list[str]:
    """Return each error with the candidate's line and the quoted source beneath it."""
    lines = stderr.splitlines()
    errors: list[str] = []
    caller = ""
    for index, line in enumerate(lines):
        match = _ERROR.match(line)
        if not match:
            caller = next(iter(_OWN.findall(line)), caller)
            continue
        if match["file"] == translate.TABLE:
            return errors or [_table_error(match["text"])]  # what follows it is a consequence
        elif match["file"] == translate.FILE:
            errors.append("\n".join((f"line {match['line']}: {match['text']}", *_quoted(lines[index + 1 :]))))
        else:
            errors.append(f"line {caller}: {match['text']}" if caller else match["text"])
    return errors


def _quoted(following: Sequence[str]) -> list[str]:
    quoted: list[str] = []
    for line in following[:3]:
        if not _QUOTE.match(line):
            break
        quoted.append(line)
    return quoted


def _table_error(text: str) -> str:
    missing = re.search(r"'(\w+)' (?:was not declared|is not a member|has not been declared)", text)
    if missing:
        return f"the launch header names the kernel {missing[1]}, which the source does not define"
    return f"the launch header names a kernel that cannot be launched: {text}"


def _tidy(text: str) -> str:
    for ours in (f"{_NAMESPACE}::", "::cuda_host::", "cuda_host::"):
        text = text.replace(ours, "")
    return text.replace("\u2018", "'").replace("\u2019", "'")
