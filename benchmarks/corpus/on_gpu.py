"""Show the corpus to a GPU: is the right right there too, and what does NVIDIA's compute-sanitizer find of the faulty?

    python benchmarks/corpus/on_gpu.py host checker.json                # anywhere: what the host checker says
    python benchmarks/corpus/on_gpu.py gpu checker.json results.json    # where a GPU is: everything else
    python benchmarks/corpus/on_gpu.py table results.json               # the tables again, as Markdown

Every kernel is built by CuPy's NVRTC and runs in a process of its own, with the inputs and launches of the tests, on
arrays that are each allocated by themselves. A right kernel, or one that is merely advised, runs with outputs poisoned,
in a fresh module each time, and is compared with the tests' answers. All kernels then run once under each tool of
compute-sanitizer; outputs are neither filled before nor read after, so that initcheck sees them as they are. A faulty
kernel runs bare as well: what a GPU itself notices.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from evaluators.nvrtc.headers import small
from tests.support import corpus
from tests.support.answers import ANSWERS, differences
from tests.support.corpus import Sample

KINDS = ("right", "advice", "faulty")
ANSWERED = ("right", "advice")  # kinds whose answers are compared
TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
LINES = "--generate-line-info"
REPEATS = 20  # launches of a kernel whose answers are compared, each in a fresh module
HANGS_S = 20  # a process that has not ended by then never will: the others take a few seconds
_SUMMARY = re.compile(r"ERROR SUMMARY: (\d+) error|RACECHECK SUMMARY: (\d+) hazard")
_MARKS = {"flagged": "yes", "silent": "–", "hangs": "hangs", "stopped": "GPU error", "broken": "tool failed"}


@dataclass(frozen=True)
class Ran:
    """One run of one kernel on the GPU, as it was.

    Attributes:
        answer: "" if it ran to its end and nothing was wrong, the error of the GPU or the wrong answer; None if it
            never ended.
        seconds: wall time of its process.
        log: what the tool said.
    """

    answer: str | None
    seconds: float
    log: str = ""


@dataclass(frozen=True)
class Heard:
    """What one checker said of one kernel.

    Attributes:
        state: `flagged` (by the checker), `silent`, `hangs`, `stopped` (by an error of the GPU, of which the checker
            says nothing) or `broken` (the checker itself failed).
        at_line: whether it names a line that is marked in the kernel.
    """

    state: str
    at_line: bool = False


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    host = verbs.add_parser("host", help="run the host checker on every kernel and store what it finds")
    host.add_argument("checker", type=Path, help="JSON file to write")
    gpu = verbs.add_parser("gpu", help="run right kernels and compute-sanitizer on the GPU, and compare")
    gpu.add_argument("checker", type=Path, help="JSON file that `host` wrote")
    gpu.add_argument("results", type=Path, help="JSON file to write")
    gpu.add_argument("--processes", type=int, default=8, help="kernels at a time")
    gpu.add_argument("--debug", action="store_true", help="build without optimisation (nvcc -G)")
    table = verbs.add_parser("table", help="print the tables of a JSON file that `gpu` wrote")
    table.add_argument("results", type=Path)
    child = verbs.add_parser("launch", help="one kernel in this process; `gpu` calls it")
    child.add_argument("kernel", type=Path)
    child.add_argument("cubin", type=Path)
    child.add_argument("answer", type=Path)
    child.add_argument("--names", type=json.loads, required=True)
    child.add_argument("--repeats", type=int, default=0)
    arguments = parser.parse_args()
    match arguments.verb:
        case "host":
            arguments.checker.write_text(json.dumps(ask_checker(), indent=1))
        case "gpu":
            about = {**describe(), "built with": "--device-debug" if arguments.debug else LINES}
            results = ask_gpu(about, json.loads(arguments.checker.read_text()), arguments.processes)
            arguments.results.write_text(json.dumps(results, indent=1))
            print(tables(results))
        case "table":
            print(tables(json.loads(arguments.results.read_text())))
        case "launch":
            launch(arguments)


# --- the host checker ---------------------------------------------------------------------------------------------


def ask_checker() -> dict[str, Any]:
    """Run every kernel in the `check` flavour; kind -> name -> status, findings and message."""
    return {kind: {sample.name: _checked(sample) for sample in corpus.samples(kind)} for kind in KINDS}


def _checked(sample: Sample) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        result = corpus.run_sample(sample, "check", Path(folder)).result
    findings = [[finding.kind, finding.line, finding.other_line] for finding in result.findings]
    return {"status": str(result.status), "findings": findings, "message": result.message}


# --- the GPU ------------------------------------------------------------------------------------------------------


def ask_gpu(about: Mapping[str, str], checker: Mapping[str, Any], processes: int) -> dict[str, Any]:
    """Run everything that needs the GPU; the result is `tables`' argument.

    Args:
        about: what `describe` returned, and NVRTC's option for line information as `built with`.
        checker: what `ask_checker` returned.
        processes: kernels at a time.
    """
    sanitizer = find_sanitizer()
    if not sanitizer:
        print("compute-sanitizer was not found (CUDA toolkit; PATH or CUDA_PATH): only the bare GPU runs.", flush=True)
    whats = ("bare", *(TOOLS if sanitizer else ()))
    results: dict[str, Any] = {"about": {**about, "sanitizer": _version(sanitizer)}}
    with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor(processes) as pool:
        folder = Path(name)
        runs = {}
        for kind in KINDS:
            for sample in corpus.samples(kind):
                names = build(sample, about["arch"], about["built with"], folder)
                runs[kind, sample.name] = [
                    pool.submit(run, sample, kind, names, what, sanitizer, folder) for what in whats
                ]
        for (kind, kernel), futures in runs.items():
            heard = {what: vars(future.result()) for what, future in zip(whats, futures, strict=True)}
            results.setdefault(kind, {})[kernel] = {"checker": checker[kind][kernel], **heard}
    return results


def describe() -> dict[str, str]:
    """Say what the GPU is; leave with a clear word where there is none."""
    try:
        import cupy

        count = cupy.cuda.runtime.getDeviceCount()
    except ImportError as error:
        sys.exit(f"error: CuPy is not installed ({error}); pip install 'kernel-evo[cuda13]'. Nothing was run.")
    except RuntimeError as error:
        sys.exit(f"error: there is no GPU that CUDA can use here ({error}). Nothing was run.")
    if not count:
        sys.exit("error: there is no GPU here. Nothing was run.")
    device = cupy.cuda.runtime.getDeviceProperties(0)
    driver = _output("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader", "--id=0")
    return {
        "date": time.strftime("%Y-%m-%d"),
        "gpu": device["name"].decode(),
        "arch": f"sm_{cupy.cuda.Device(0).compute_capability}",
        "driver": driver or "unknown",
        "nvrtc": "{}.{}".format(*cupy.cuda.nvrtc.getVersion()),
        "cupy": cupy.__version__,
    }


def build(sample: Sample, arch: str, lines: str, folder: Path) -> dict[str, str]:
    """Compile one kernel into `folder`; kernel -> its name in the CUBIN."""
    from cupy.cuda import nvrtc

    headers = {name.encode(): text.encode() for name, text in small().items()}
    program = nvrtc.createProgram(sample.source, f"{sample.name}.cu", tuple(headers.values()), tuple(headers))
    kernels = tuple(dict.fromkeys(row.kernel for row in sample.launches))
    for kernel in kernels:
        nvrtc.addNameExpression(program, kernel)
    includes = (f"--include-path={path}" for path in include_folders())
    # The last one keeps cooperative_groups.h from reading all of libcu++, which takes seconds.
    options = (f"--gpu-architecture={arch}", "--std=c++17", lines, *includes, "-D_CG_LIMIT_INCLUDED_DEPENDENCIES=1")
    try:
        nvrtc.compileProgram(program, options)
    except nvrtc.NVRTCError:
        sys.exit(f"error: {sample.name}.cu does not compile:\n{nvrtc.getProgramLog(program)}")
    (folder / f"{sample.name}.cubin").write_bytes(nvrtc.getCUBIN(program))
    return {kernel: nvrtc.getLoweredName(program, kernel) for kernel in kernels}


def include_folders() -> list[Path]:
    """Return CUDA's own headers: of the toolkit, else of the wheels."""
    toolkits = [Path(os.environ[name]) / "include" for name in ("CUDA_PATH", "CUDA_HOME") if os.environ.get(name)]
    wheels = [path for root in sys.path for path in Path(root or ".").glob("nvidia/*/include")]
    for path in (*toolkits, Path("/usr/local/cuda/include"), *wheels):
        if (path / "cuda_fp16.h").exists():
            return [path, path / "cccl"]
    sys.exit("error: no cuda_fp16.h: set CUDA_PATH to the CUDA toolkit, or pip install 'kernel-evo[nvrtc]'.")


def find_sanitizer() -> str:
    places = [Path(os.environ.get("CUDA_PATH", "/usr/local/cuda")) / room for room in ("bin", "compute-sanitizer")]
    return (
        shutil.which("compute-sanitizer", path=os.pathsep.join([os.environ.get("PATH", ""), *map(str, places)])) or ""
    )


def run(sample: Sample, kind: str, names: Mapping[str, str], what: str, sanitizer: str, folder: Path) -> Ran:
    """Run one kernel in a process of its own, under a tool or `bare`."""
    stem = folder / f"{sample.name}.{what}"
    log, answer = stem.with_suffix(f".{what}.log"), stem.with_suffix(f".{what}.txt")
    # Racecheck counts hazards of every severity then; it is the setting that finds most.
    more = ["--racecheck-report=all"] if what == "racecheck" else []
    tool = (
        [] if what == "bare" else [sanitizer, f"--tool={what}", *more, "--show-backtrace=device", f"--log-file={log}"]
    )
    kernel, cubin = corpus.CORPUS / kind / f"{sample.name}.cu", folder / f"{sample.name}.cubin"
    repeats = REPEATS if kind in ANSWERED and what == "bare" else 0
    verb = ["launch", kernel, cubin, answer, f"--names={json.dumps(dict(names))}", f"--repeats={repeats}"]
    begin = time.monotonic()
    errors = _wait([*tool, sys.executable, __file__, *map(str, verb)])
    seconds = round(time.monotonic() - begin, 2)
    said = log.read_text(errors="replace") if log.exists() else ""
    if answer.exists() or seconds >= HANGS_S:
        return Ran(answer.read_text() if answer.exists() else None, seconds, said)
    return Ran(f"the process died: {errors.strip()[-300:]}", seconds, said)


def _wait(argv: Sequence[str]) -> str:
    """Run a process, end it when it hangs; return its stderr."""
    with tempfile.TemporaryFile("w+", errors="replace") as errors:
        process = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors, start_new_session=True
        )
        try:
            process.wait(HANGS_S + 15)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        errors.seek(0)
        return errors.read()


def _output(*argv: str) -> str:
    try:
        return subprocess.run(argv, capture_output=True, text=True, timeout=30, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""


def _version(sanitizer: str) -> str:
    found = re.search(r"Version (\S+)", _output(sanitizer, "--version")) if sanitizer else None
    return found[1] if found else "none"


# --- one kernel, in a process of its own --------------------------------------------------------------------------


def launch(arguments: argparse.Namespace) -> None:
    """Launch a kernel and write "" or what went wrong; a kernel that never ends leaves no answer."""
    signal.alarm(HANGS_S)  # its default action needs no interpreter: this process may hang inside the driver
    import cupy

    cupy.cuda.set_allocator(None)  # no pool: the sanitizer sees each array's own end
    sample = corpus.load(arguments.kernel)
    image = arguments.cubin.read_bytes()
    try:
        if arguments.repeats:
            wrong = [text for _ in range(arguments.repeats) for text in _compared(sample, image, arguments.names)]
        else:
            _launch(sample, image, arguments.names)
            wrong = []
    except RuntimeError as error:
        wrong = [str(error).split("\n")[0]]
    arguments.answer.write_text(wrong[0] if wrong else "")


def _compared(sample: Sample, image: bytes, names: Mapping[str, str]) -> Iterator[str]:
    arrays = _launch(sample, image, names, poison=0xFF)
    got = {name: array.get() for name, array in arrays.items()}
    yield from differences(sample.name, sample.arrays, got) if sample.name in ANSWERS else ["it has no answer"]
    for name, direction in sample.directions.items():
        if direction == "in" and not np.array_equal(got[name], sample.arrays[name]):
            yield f"the input {name} was changed"


def _launch(sample: Sample, image: bytes, names: Mapping[str, str], poison: int | None = None) -> dict[str, Any]:
    """Load the module, fill the buffers, launch and wait; return the buffers."""
    import cupy

    module = cupy.cuda.function.Module()
    module.load(image)
    arrays = {name: cupy.empty(array.shape, array.dtype) for name, array in sample.arrays.items()}
    for name, array in arrays.items():
        if sample.directions[name] != "out":
            array.set(sample.arrays[name])
        elif poison is not None:
            array.data.memset(poison, array.nbytes)
    for row in sample.launches:
        args = tuple(arrays[arg] if isinstance(arg, str) else np.int32(arg) for arg in row.args)
        module.get_function(names[row.kernel])(row.grid, row.block, args, row.shared_bytes)
    cupy.cuda.runtime.deviceSynchronize()
    return arrays


# --- tables -------------------------------------------------------------------------------------------------------


def tables(results: Mapping[str, Any]) -> str:
    """Return what was found as Markdown."""
    tools = [tool for tool in TOOLS if tool in next(iter(results["faulty"].values()))]
    answered = {f"{kind}/{name}": row["bare"] for kind in ANSWERED for name, row in results.get(kind, {}).items()}
    wrong = {name: ran for name, ran in answered.items() if ran["answer"] != ""}
    false = {
        f"- `{name}`: {who}"
        for name, row in results["right"].items()
        for who, said in columns(name, (), row, tools).items()
        if said.state in ("flagged", "hangs", "broken") and who != "any tool"
    }
    return "\n".join(
        [
            ", ".join(f"{key} {value}" for key, value in results["about"].items()),
            f"\nKernels that gave the right answers {REPEATS} times out of {REPEATS}: "
            f"{len(answered) - len(wrong)} of {len(answered)}",
            *(f"- `{name}`: {'hangs' if ran['answer'] is None else ran['answer']}" for name, ran in wrong.items()),
            "\nRight kernels under the checkers, flagged or not finished: "
            f"{len(false)} of {len(results['right']) * (len(tools) + 1)}",
            *sorted(false),
            *_marked(results, "advice", tools),
            *_marked(results, "faulty", tools),
        ]
    )


def _marked(results: Mapping[str, Any], kind: str, tools: Sequence[str]) -> Iterator[str]:
    """Yield the table of the kernels of a kind whose lines are marked."""
    marks = {sample.name: sample.marks for sample in corpus.samples(kind)}
    rows = {name: row for name, row in results.get(kind, {}).items() if name in marks}
    heard = {name: columns(name, tuple(line for _, line in marks[name]), row, tools) for name, row in rows.items()}
    titles = ("host checker", "any tool", *tools, "bare GPU")
    yield "\n" + _line(["kernel", kind, *titles])
    yield _line(["---"] * (len(titles) + 2))
    for name, row in heard.items():
        yield _line([f"`{name}`", marks[name][0][0], *("line" if h.at_line else _MARKS[h.state] for h in row.values())])
    yield _line(["flagged", "", *(str(sum(row[who].state == "flagged" for row in heard.values())) for who in titles)])
    yield _line(["at a marked line", "", *(str(sum(row[who].at_line for row in heard.values())) for who in titles)])


def columns(name: str, lines: Sequence[int], row: Mapping[str, Any], tools: Sequence[str]) -> dict[str, Heard]:
    """Return what each checker said of one kernel; "any tool" is the best of the sanitizer's."""
    said = {tool: judge(name, lines, row[tool]) for tool in tools}
    best = max(said.values(), key=lambda heard: (heard.state == "flagged", heard.at_line), default=Heard("silent"))
    return {
        "host checker": judge_checker(lines, row["checker"]),
        "any tool": best,
        **said,
        "bare GPU": judge_bare(row["bare"]["answer"]),
    }


def judge_checker(lines: Sequence[int], said: Mapping[str, Any]) -> Heard:
    if said["findings"]:
        return Heard("flagged", any(place in lines for _, *places in said["findings"] for place in places))
    return Heard("silent" if said["status"] == "ok" else "broken")


def judge_bare(answer: str | None) -> Heard:
    return Heard("hangs" if answer is None else "stopped" if answer else "silent")


def judge(name: str, lines: Sequence[int], ran: Mapping[str, Any]) -> Heard:
    """Read a tool's log: its summary says whether it found anything."""
    summary = _SUMMARY.search(ran["log"])
    if summary and any(int(count or 0) for count in summary.groups()):
        places = {int(place) for place in re.findall(rf"\b{name}\.cu:(\d+)", ran["log"])}
        return Heard("flagged", any(line in places for line in lines))
    if ran["answer"] is not None and not summary:
        return Heard("broken")
    return judge_bare(ran["answer"])


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
