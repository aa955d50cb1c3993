"""The command line: every command's flags, and nothing else. What a command does is in `evo.commands`.

Nothing heavy is imported before a command runs, so that `evo --help` answers at once.
"""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, ParamSpec

import typer

from evo.errors import ConfigError, EvoError

P = ParamSpec("P")

INTERRUPTED = 130
FAULT = 70
"""EX_SOFTWARE of sysexits.h: a fault of the product itself, told apart from a rejected kernel."""

app = typer.Typer(
    name="evo",
    help="Search for the fastest CUDA kernel that is proved right. `evo demo` shows it in two minutes, without a GPU.",
    epilog="Exit codes: 0 done, 1 the kernel is rejected, 2 usage or input, 3 this machine lacks something, "
    "4 the run cannot be used, 5 prompts wait for a person, "
    "6 no kernel came of the run, 130 interrupted.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Json = Annotated[bool, typer.Option("--json", help="Write JSON for machines instead of text.")]
Results = Annotated[Path, typer.Option("--results", help="Folder that holds the runs' folders.")]
Set = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY.PATH=VALUE", help="Override any config key; repeatable.")
]
UseNsight = Annotated[
    bool, typer.Option("--use-nsight", help="Profile good kernels with Nsight Compute: profile=elites. GPU only.")
]
Seed = Annotated[int | None, typer.Option("--seed", min=0, help="Everything random follows from it.")]
Device = Annotated[str | None, typer.Option("--device", help="auto, host, or a device plug-in.")]
Evaluations = Annotated[
    int | None, typer.Option("--evaluations", min=1, help="Stop after this many candidates were judged.")
]
MaxIterations = Annotated[int | None, typer.Option("--max-iterations", min=1, hidden=True)]
Minutes = Annotated[float | None, typer.Option("--minutes", help="Stop after this long.")]
CostUsd = Annotated[float | None, typer.Option("--cost-usd", help="Stop after model calls for this many dollars.")]
Tokens = Annotated[int | None, typer.Option("--tokens", help="Stop after model calls of this many tokens.")]
Model = Annotated[
    str | None, typer.Option("--model", help="Any model that litellm knows, e.g. ollama/qwen3; none: offline rules.")
]
Workload = Annotated[str | None, typer.Option("--workload", "-w", help="Name or folder of a workload.")]
Kernel = Annotated[Path, typer.Argument(metavar="KERNEL.cu", help="A kernel file with its launch header.")]
Run = Annotated[str, typer.Argument(metavar="RUN", help="A run's folder, its name or number, or latest.")]

DEFAULT_RESULTS = Path("results")


def guarded(command: Callable[P, int]) -> Callable[P, None]:
    """Turn what a command returns or raises into an exit code, and an `EvoError` into one message."""

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            code = command(*args, **kwargs)
        except EvoError as error:
            from evo.commands import output

            output.fail(error, as_json=bool(kwargs.get("as_json")))
            code = error.exit_code
        except KeyboardInterrupt:
            code = INTERRUPTED
        except Exception:
            import traceback

            traceback.print_exc()
            code = FAULT
        raise typer.Exit(code)

    return run


@app.command()
@guarded
def demo(
    seed: Seed = None,
    results: Results = DEFAULT_RESULTS,
    as_json: Json = False,
) -> int:
    """Watch a textbook kernel become a faster one, on this machine's CPU, in about two minutes."""
    from evo.commands import searching

    return searching.run("demo", _overrides(seed=seed), results, as_json=as_json)


@app.command()
@guarded
def run(
    config: Annotated[
        str | None, typer.Argument(metavar="[CONFIG]", help="A YAML file, or the name of a shipped config.")
    ] = None,
    workload: Workload = None,
    evaluations: Evaluations = None,
    minutes: Minutes = None,
    cost_usd: CostUsd = None,
    tokens: Tokens = None,
    model: Model = None,
    seed: Seed = None,
    device: Device = None,
    use_nsight: UseNsight = False,
    set_: Set = None,
    results: Results = DEFAULT_RESULTS,
    max_iterations: MaxIterations = None,
    as_json: Json = False,
) -> int:
    """Search for a faster kernel, from a config or for a workload alone."""
    if config is None and workload is None:
        raise ConfigError("give a config (evo run configs/gemm.yaml) or a workload (evo run --workload gemm)")
    from evo.commands import searching

    overrides = _overrides(
        workload=workload if config is not None else None,
        seed=seed,
        device=device,
        budget_evaluations=evaluations or max_iterations,
        budget_minutes=minutes,
        budget_cost_usd=cost_usd,
        budget_tokens=tokens,
        profile="elites" if use_nsight else None,
    )
    source = config if config is not None else f"workload: {json.dumps(workload)}"
    return searching.run(source, [*_model(model), *overrides, *(set_ or ())], results, as_json=as_json)


@app.command()
@guarded
def resume(
    run: Run,
    evaluations: Evaluations = None,
    minutes: Minutes = None,
    cost_usd: CostUsd = None,
    tokens: Tokens = None,
    set_: Set = None,
    results: Results = DEFAULT_RESULTS,
    max_iterations: MaxIterations = None,
    as_json: Json = False,
) -> int:
    """Go on with a run that was stopped or killed; nothing that was paid for is asked again."""
    from evo.commands import searching

    overrides = _overrides(
        budget_evaluations=evaluations or max_iterations,
        budget_minutes=minutes,
        budget_cost_usd=cost_usd,
        budget_tokens=tokens,
    )
    return searching.resume(run, [*overrides, *(set_ or ())], results, as_json=as_json)


@app.command()
@guarded
def ask(
    run: Run,
    out: Annotated[Path, typer.Option("--out", help="Folder for the prompts; made when missing.")],
    count: Annotated[int, typer.Option("-n", "--count", min=1, help="So many, if there are.")] = 8,
    results: Results = DEFAULT_RESULTS,
    as_json: Json = False,
) -> int:
    """Write the prompts that wait for a person into files; needs no network, no key and no device."""
    from evo.commands import asking

    return asking.ask(run, count, out, results, as_json=as_json)


@app.command()
@guarded
def tell(
    run: Run,
    answers: Annotated[Path, typer.Argument(metavar="DIR", help="The folder of `evo ask`, with answers in it.")],
    results: Results = DEFAULT_RESULTS,
    as_json: Json = False,
) -> int:
    """Take the answers to prompts, as many as there are; `evo resume` evaluates them."""
    from evo.commands import asking

    return asking.tell(run, answers, results, as_json=as_json)


@app.command()
@guarded
def replay(
    run: Run,
    check: Annotated[bool, typer.Option("--check", help="Only check; write no folder.")] = False,
    results: Results = DEFAULT_RESULTS,
    as_json: Json = False,
) -> int:
    """Derive a run anew from its stored replies and evaluations; needs no key, no device and no network."""
    from evo.commands import replaying

    return replaying.replay(run, results, check=check, as_json=as_json)


@app.command("eval")
@guarded
def evaluate(
    kernel: Kernel,
    workload: Workload = None,
    compile_only: Annotated[
        bool, typer.Option("--compile-only", help="Ask NVRTC for registers, spills and shared memory; run nothing.")
    ] = False,
    arch: Annotated[
        str | None, typer.Option("--arch", help="With --compile-only: target; this machine's GPU, or sm_90a.")
    ] = None,
    seed: Seed = None,
    device: Device = None,
    set_: Set = None,
    as_json: Json = False,
) -> int:
    """Judge one kernel: compile, check, validate, time; or only compile it for a GPU that need not be here."""
    overrides = [*_overrides(seed=seed), *(set_ or ())]
    if compile_only:
        if device is not None or overrides:
            raise ConfigError("--compile-only runs nothing: --device, --seed and --set have no meaning beside it")
        from evo.commands import compiling

        return compiling.compile_only(kernel, workload, arch, as_json=as_json)
    if arch is not None:
        raise ConfigError("--arch goes with --compile-only: what is run is compiled for the device that runs it")
    if workload is None:
        raise ConfigError("give --workload NAME, or --compile-only, which needs none")
    from evo.commands import judging

    return judging.evaluate(kernel, workload, overrides, device=device or "auto", trials=0, out=None, as_json=as_json)


@app.command()
@guarded
def tune(
    kernel: Kernel,
    workload: Annotated[str, typer.Option("--workload", "-w", help="Name or folder of a workload.")],
    trials: Annotated[int, typer.Option("--trials", min=1, help="Launch configurations to try at most.")] = 64,
    out: Annotated[
        Path | None, typer.Option("--out", help="Where the tuned kernel goes; KERNEL.tuned.cu by default.")
    ] = None,
    seed: Seed = None,
    device: Device = None,
    set_: Set = None,
    as_json: Json = False,
) -> int:
    """Find one kernel's best launch configuration for each case, and write it into its header."""
    from evo.commands import judging

    overrides = [*_overrides(seed=seed), *(set_ or ())]
    target = out or kernel.with_suffix(".tuned.cu")
    return judging.evaluate(
        kernel, workload, overrides, device=device or "auto", trials=trials, out=target, as_json=as_json
    )


@app.command()
@guarded
def check(
    kernel: Kernel,
    workload: Workload = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of the inputs and the launch order.")] = 0,
    as_json: Json = False,
) -> int:
    """Find races, bounds and barrier faults in a CUDA kernel, without a GPU."""
    from evo.commands import judging

    return judging.check(kernel, workload, seed=seed, as_json=as_json)


@app.command()
@guarded
def redteam(
    device: Device = None,
    only: Annotated[
        list[str] | None, typer.Option("--only", metavar="NAME", help="This kernel alone; repeatable.")
    ] = None,
    repeat: Annotated[int, typer.Option("--repeat", min=1, help="Judge each kernel so many times.")] = 1,
    as_json: Json = False,
) -> int:
    """Try the evaluator with kernels that cheat and with honest ones; say which verdicts are not as they must be."""
    from evo.commands import redteam as room

    return room.redteam(device or "auto", only or (), repeat, as_json=as_json)


@app.command()
@guarded
def init(
    kernel: Kernel,
    out: Annotated[Path | None, typer.Option("--out", help="The new folder; workloads/KERNEL by default.")] = None,
    entry: Annotated[str | None, typer.Option("--entry", help="Which __global__ function, if several.")] = None,
    as_json: Json = False,
) -> int:
    """Write a workload folder for a kernel of yours; what was guessed is marked for review."""
    from evo.commands import judging

    return judging.init(kernel, out or Path("workloads") / kernel.stem, entry, as_json=as_json)


@app.command()
@guarded
def show(
    run: Annotated[str | None, typer.Argument(metavar="[RUN]", help="As for the other commands.")] = None,
    candidate: Annotated[int | None, typer.Argument(metavar="[ID]", help="A candidate of the run.")] = None,
    graph: Annotated[
        str | None, typer.Option("--graph", metavar="CONFIG", help="Show the data flow of a config instead of a run.")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", help="With --graph: draw it into this .svg or .png.")] = None,
    set_: Set = None,
    results: Results = DEFAULT_RESULTS,
    as_json: Json = False,
) -> int:
    """Show a run (status, islands, lineage), one candidate (source, verdict, diff), or the data flow of a config."""
    if (run is None) == (graph is None):
        raise ConfigError("name a run (evo show latest), or a config with --graph (evo show --graph gemm)")
    from evo.commands import listing

    if graph is not None:
        return listing.show_graph(graph, set_ or (), out, as_json=as_json)
    if run is None or out is not None or set_:
        raise ConfigError("--out and --set go with --graph CONFIG: a run has its picture already, graph.svg")
    return listing.show_run(run, candidate, results, as_json=as_json)


@app.command()
@guarded
def verify(
    run: Run,
    case: Annotated[str | None, typer.Option("--case", help="This case alone.")] = None,
    candidate: Annotated[int | None, typer.Option("--candidate", help="Another kernel than the best.")] = None,
    results: Results = DEFAULT_RESULTS,
    as_json: Json = False,
) -> int:
    """Run a stored result again and check it."""
    from evo.commands import judging

    return judging.verify(run, case, candidate, results, as_json=as_json)


@app.command()
@guarded
def export(
    run: Run,
    as_: Annotated[str, typer.Option("--as", metavar="KIND", help="cpp, cupy or torch.")],
    out: Annotated[Path, typer.Option("--out", help="The new folder.")],
    candidate: Annotated[int | None, typer.Argument(metavar="[CANDIDATE]", help="Instead of the best.")] = None,
    case: Annotated[
        list[str] | None, typer.Option("--case", metavar="NAME", help="With --as cpp: store this case; repeatable.")
    ] = None,
    arch: Annotated[str | None, typer.Option("--arch", help="Compile for sm_90a, say; by default for the GPU.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace files that are there.")] = False,
    results: Results = DEFAULT_RESULTS,
    as_json: Json = False,
) -> int:
    """Write a run's kernel as a C++ program, or as a Python package for CuPy or PyTorch."""
    from evo.commands import exporting

    return exporting.export(run, candidate, as_, out, case or (), arch, results, force=force, as_json=as_json)


@app.command()
@guarded
def workloads(as_json: Json = False) -> int:
    """List the workloads that can be named."""
    from evo.commands import listing

    return listing.workloads(as_json=as_json)


@app.command()
@guarded
def mutators(as_json: Json = False) -> int:
    """List the operators and model clients that a config can name."""
    from evo.commands import listing

    return listing.mutators(as_json=as_json)


@app.command()
@guarded
def doctor(
    config: Annotated[
        str | None, typer.Option("--config", help="Say what this config's run lacks: keys, servers, device, workload.")
    ] = None,
    set_: Set = None,
    as_json: Json = False,
) -> int:
    """Say what this machine has, what it lacks, and how to get it; with --config, before any money is spent."""
    if set_ and config is None:
        raise ConfigError("--set overrides a config: name it with --config")
    from evo.commands import doctor as room

    return room.doctor(config, set_ or (), as_json=as_json)


def main() -> None:
    """Run the command line."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a terminal without UTF-8 still gets every line
    app(prog_name="evo")


def _overrides(**values: str | float | None) -> list[str]:
    """Return `key.path=value` for the flags that were given; `budget_minutes` is the key `budget.minutes`."""
    given = {name.replace("budget_", "budget."): value for name, value in values.items() if value is not None}
    return [f"{key}={json.dumps(value)}" for key, value in given.items()]


def _model(name: str | None) -> tuple[str, ...]:
    if name is None:
        return ()
    from evo import config

    return config.overrides_for_model(name)


if __name__ == "__main__":
    main()
