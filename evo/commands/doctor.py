"""The command `doctor`: what this machine has, what it lacks, and how to get it. Nothing is changed or installed."""

from __future__ import annotations

import ctypes
import importlib.metadata
import importlib.util
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from evo import config as configs
from evo import sandbox
from evo.commands import output, preflight
from evo.commands.findings import Finding, State
from evo.config import Model
from evo.errors import DeviceError, EvoError, PluginError
from mutators import environment, models

if TYPE_CHECKING:
    from rich.console import RenderableType

    from evo.records import Device, Peaks

LACKING = 3
RAY_BYTES = 2 << 30  # an idle Ray takes some 750 MiB; candidates and compilers need the rest

_MARKS: Mapping[State, str] = {"ok": "[green]✓[/green]", "optional": "[yellow]–[/yellow]", "missing": "[red]✗[/red]"}


def doctor(source: str | None = None, overrides: Sequence[str] = (), *, as_json: bool) -> int:
    """Look at everything and say so; return the exit code.

    Args:
        source: a config's file or name, whose models, workload and device are looked at in place of the default model.
        overrides: of the config.
        as_json: write a JSON document instead of text.

    Raises:
        ConfigError: the config is wrong.
    """
    environment.load(Path.cwd())
    if source is None:
        on_gpu = (peaks,) if driver_cuda_version() is not None else ()
        findings = [look() for look in (*MACHINE, model, *on_gpu)]
    else:
        config = configs.load(source, overrides)
        findings = [*(look() for look in MACHINE), *preflight.look(config)]
    if as_json:
        output.data(findings)
    else:
        output.show(_lines(findings))
    return LACKING if any(finding.state == "missing" for finding in findings) else 0


def python() -> Finding:
    """Python and the machine."""
    return Finding("python", "ok", f"{platform.python_version()} at {sys.executable}, {platform.platform()}")


def compiler() -> Finding:
    """The C++ compiler that the host device and the checker need."""
    path = shutil.which("g++")
    if path is None:
        return Finding(
            "g++", "missing", "not found: kernels cannot run or be checked on the CPU", "apt-get install g++"
        )
    version = subprocess.run([path, "--version"], capture_output=True, text=True, check=False, timeout=10).stdout
    return Finding("g++", "ok", version.splitlines()[0] if version else path)


def confinement() -> Finding:
    """Whether foreign code can be confined."""
    lacking = sandbox.available()
    if lacking:
        return Finding(
            "sandbox", "missing", lacking, "Linux 5.13 or later with seccomp and Landlock; in a container, allow both"
        )
    return Finding("sandbox", "ok", "foreign code can be confined")


def cores() -> Finding:
    """CPU cores: one is kept free for timing."""
    count = len(os.sched_getaffinity(0))
    if count < 2:
        return Finding(
            "cores", "optional", "1: latencies on the host device will be noisy", "give it two or more cores"
        )
    return Finding("cores", "ok", f"{count}, one of which is kept free for timing")


def memory() -> Finding:
    """Memory for Ray and the candidates."""
    import psutil

    free = psutil.virtual_memory().available
    if free < RAY_BYTES:
        return Finding(
            "memory", "optional", f"{free / 2**30:.1f} GiB free: Ray may not start", "close something, or add memory"
        )
    return Finding("memory", "ok", f"{free / 2**30:.1f} GiB free")


def nvrtc() -> Finding:
    """NVIDIA's compiler, which needs no GPU."""
    from evaluators import nvrtc

    try:
        installation = nvrtc.find()
        if installation is None:
            fix = "pip install 'kernel-evo[nvrtc]', or set CUDA_HOME to the folder of a CUDA toolkit"
            return Finding("nvrtc", "optional", "not installed: only g++ reads kernels before they run", fix)
        if sandbox.available():
            return Finding("nvrtc", "optional", f"{installation.library}, but it cannot be confined: see sandbox")
        version = nvrtc.version()
    except DeviceError as error:
        fix = "mend that installation, or name another libnvrtc.so with KERNEL_EVO_NVRTC"
        return Finding("nvrtc", "missing", str(error), fix)
    found = f"{version} at {installation.library}"
    return Finding("nvrtc", "ok", f"{found}: CUDA's own front end, registers and spills without a GPU")


def gpu() -> Finding:
    """An NVIDIA driver, and the packages that use it."""
    version = driver_cuda_version()
    if version is None:
        return Finding(
            "gpu", "optional", "no NVIDIA driver: searches run on the host device, whose latencies are the CPU's"
        )
    major = version // 1000
    missing = [package for module, package in _GPU_PACKAGES.items() if not _is_there(module)]
    if missing:
        fix = f"pip install 'kernel-evo[cuda{min(max(major, 12), 13)}]'"
        return Finding("gpu", "optional", f"driver for CUDA {major}, but no {' and no '.join(missing)}", fix)
    return Finding("gpu", "ok", f"driver for CUDA {major}, with all that the device `cuda` needs")


_GPU_PACKAGES = {"cuda.bindings": "cuda-bindings", "pynvml": "nvidia-ml-py", "cupy": "CuPy"}


def _is_there(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # of the package around it
        return False


def peaks() -> Finding:
    """What the GPU could do in theory, and what it reaches; the first time that takes a few seconds."""
    try:
        device, reached, why = _peaks()
    except (EvoError, OSError, RuntimeError) as error:
        return Finding("peaks", "optional", *_split(f"not known: {error}"))
    theory = f"{device.name}: in theory {_rates(device.peaks)}"
    if reached is None:
        return Finding("peaks", "optional", f"{theory}; {why}", "run `evo doctor` again when the GPU is free")
    return Finding("peaks", "ok", f"{theory}; measured {_rates(reached)}")


def _peaks() -> tuple[Device, Peaks | None, str]:
    """Return the GPU, and what it reaches, or why that cannot be said: nobody else may measure beside us."""
    from evaluators.cuda import CudaDevice
    from evaluators.cudalib import lock

    plugin = CudaDevice()
    device = plugin.describe()
    try:
        with lock.hold(device.uuid, wait_s=0):
            return device, plugin.measured_peaks(device), ""
    except DeviceError as error:
        return device, None, str(error)


def _rates(of: Peaks | None) -> str:
    if of is None:
        return "unknown"
    rates = {
        "FP32": of.fp32_flops_per_s,
        "TF32": of.tf32_flops_per_s,
        "FP16": of.fp16_flops_per_s,
        "BF16": of.bf16_flops_per_s,
    }
    arithmetic = ", ".join(f"{name} {rate / 1e12:.3g}" for name, rate in rates.items() if rate)
    return f"{of.dram_bytes_per_s / 1e12:.3g} TB/s, {arithmetic} TFLOP/s"


def model() -> Finding:
    """Whether the default model can be reached; nothing is sent."""
    try:
        models.check([Model()])
    except PluginError as error:
        return Finding("model", "missing", str(error))
    except EvoError as error:
        return Finding("model", "optional", *_split(str(error)))
    return Finding("model", "ok", f"a key for {Model().name} is set")


def name_clash() -> Finding:
    """Another distribution on the package index is also called evo."""
    owners = set(importlib.metadata.packages_distributions().get("evo", ()))
    others = sorted(owners - {"kernel-evo"})
    if others:
        fix = f"pip uninstall {others[0]}, then pip install --force-reinstall kernel-evo"
        return Finding("name", "missing", f"the package evo also belongs to {', '.join(others)}", fix)
    on_path = shutil.which("evo")
    mine = Path(sys.executable).with_name("evo")
    if on_path is not None and mine.exists() and not os.path.samefile(on_path, mine):
        return Finding(
            "name", "optional", f"`evo` on the PATH is {on_path}, not {mine}", "use `kernel-evo`, or mend PATH"
        )
    return Finding("name", "ok", "no other package is called evo here")


def results() -> Finding:
    """Room for results in the present folder."""
    folder = Path.cwd()
    free = shutil.disk_usage(folder).free
    if not os.access(folder, os.W_OK):
        return Finding("results", "missing", f"{folder} cannot be written", "run evo in a folder of your own")
    return Finding("results", "ok", f"{folder / 'results'}, {free / 2**30:.0f} GiB free")


def _split(message: str) -> tuple[str, str]:
    first, _, rest = message.partition("\n")
    return first, rest.strip()


def driver_cuda_version() -> int | None:
    """Return the CUDA version of the NVIDIA driver as 1000 · major + 10 · minor, or None without one."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None
    version = ctypes.c_int()
    return version.value if driver.cuDriverGetVersion(ctypes.byref(version)) == 0 else None


MACHINE: tuple[Callable[[], Finding], ...] = (
    python, compiler, confinement, cores, memory, nvrtc, gpu, name_clash, results,
)  # fmt: skip
"""What every search needs."""


def _lines(findings: list[Finding]) -> Iterator[RenderableType]:
    from rich.text import Text

    for finding in findings:
        line = Text.from_markup(f"{_MARKS[finding.state]} [bold]{finding.name:<8}[/bold] ")
        line.append(finding.found)
        if finding.fix:
            line.append("".join(f"\n           → {row.strip()}" for row in finding.fix.splitlines()), style="cyan")
        yield line
