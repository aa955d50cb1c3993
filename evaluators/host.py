"""The host device: the CUDA source that a GPU would run, compiled by g++ and run on this machine's CPU.

Its latencies are the CPU's and say little about a GPU's; its answers and its checker's findings hold for both. This
module only joins the parts: `hostlib.translate` (text), `hostlib.build` (compiling), `hostlib.jobs` (running).
"""

from __future__ import annotations

import functools
import hashlib
import platform
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from evaluators.cache import Cache, private_folder
from evaluators.hostlib.build import Builder
from evaluators.hostlib.jobs import run_job
from evaluators.hostlib.tools import FLAVOURS, Tools, processor_name, tools
from evo.records import Binary, CompileRequest, Device, Job, JobResult, Status, to_json

if TYPE_CHECKING:
    from evaluators.device import EvaluatorLike, Setup

MOST_SHARED_BYTES = 101376
"""99 KiB per block: what GPUs of compute capability 8.6 and 8.9 allow, so that a kernel fits most GPUs."""


@dataclass(frozen=True)
class HostDevice:
    """Runs kernels on the CPU: flavour `plain` for results and latencies, `check`, up to 20 times slower, for faults.

    Attributes:
        compiler: name or path of g++ 11 or newer.
        cache_bytes: how much the built programs on disk may take.
    """

    compiler: str = "g++"
    cache_bytes: int = 512 << 20

    def describe(self) -> Device:
        """Say what this processor is.

        Raises:
            DeviceError: there is no compiler.
        """
        return _describe(self._tools().fingerprint)

    def compile(self, request: CompileRequest) -> Binary:
        """Build a program, or fetch it from the cache on disk. A bad candidate is a status of the binary.

        Raises:
            DeviceError: there is no compiler.
            SandboxError: the machine cannot confine it.
        """
        if request.flavour not in FLAVOURS:
            raise ValueError(f"flavour {request.flavour!r}: the host device builds {' and '.join(FLAVOURS)}")
        made = self._tools()
        key = _key(request, made)
        cache = Cache(private_folder(_cache_folder() / "programs"), self.cache_bytes)
        cached = cache.get(key)
        if cached is not None:
            return cached
        binary = Builder(made).build(request, key)
        if binary.status is not Status.TIMEOUT:
            cache.put(binary)
        return binary

    def prepare(self) -> None:
        """Do nothing: a program on a job has a process of its own."""

    def run(self, job: Job) -> JobResult:
        """Run a program on a job, in a sandboxed process of its own.

        Raises:
            SandboxError: the machine cannot confine it.
        """
        return run_job(job, self.describe())

    def evaluator(self, setup: Setup) -> EvaluatorLike:
        """Return an evaluator that judges kernels on this device."""
        from evaluators.evaluator import Evaluator

        return Evaluator(self, setup)

    def _tools(self) -> Tools:
        return tools(self.compiler, _cache_folder())


def _cache_folder() -> Path:
    import platformdirs

    return platformdirs.user_cache_path("kernel-evo") / "host"


def _key(request: CompileRequest, made: Tools) -> str:
    parts = (made.fingerprint, _rules(), to_json(request))
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:40]


@functools.cache
def _rules() -> str:
    """Return a hash of what decides between source and binary: a refusal must not outlive the rule behind it."""
    digest = hashlib.sha256()
    here = Path(__file__).parent
    for path in sorted(path for room in ("hostlib", "inspection") for path in (here / room).glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


@functools.cache
def _describe(fingerprint: str) -> Device:
    name = processor_name()
    machine = platform.machine()
    return Device(
        kind="host",
        name=name,
        fingerprint=f"host {name} {fingerprint}",
        arch=f"{machine}-native",
        max_shared_bytes=MOST_SHARED_BYTES,
        l2_bytes=_cache_bytes(level=2),
    )


def _cache_bytes(level: int) -> int:
    """Return the size of one core's cache: the last level is shared and can be larger than any flush could clear."""
    for index in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        if (index / "level").read_text().strip() == str(level):
            size = (index / "size").read_text().strip()
            return int(size.rstrip("KM")) * (1 << 20 if size.endswith("M") else 1 << 10)
    return 1 << 21
