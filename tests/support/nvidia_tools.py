"""Stand-ins for `ncu` and `compute-sanitizer` on PATH: they write what they are told to, and never start the replay.

`script(folder, name)` installs one; what it does stands in `<name>.json` beside it. Reports are of our own making, in
the form that the tools' manuals describe.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

_SCRIPT = """#!{python}
import json, pathlib, subprocess, sys, time
here = pathlib.Path(__file__)
told = json.loads(here.with_name(here.name + ".json").read_text())
argv = sys.argv[1:]
with here.with_name(here.name + ".calls").open("a") as calls:
    calls.write(json.dumps(argv) + "\\n")
option = lambda name: argv[argv.index(name) + 1] if name in argv else None
if "--import" in argv:
    print(told["csv"])
    sys.exit(told.get("import_code", 0))
job = json.loads(pathlib.Path(argv[-1]).read_text())
assert argv[-5:-2] == ["-P", "-m", "evaluators.replay"], argv
assert (pathlib.Path(job["folder"]) / job["image"]).exists()
if told.get("hang"):
    child = subprocess.Popen(["sleep", "600"], start_new_session=True)
    here.with_name("pids").write_text(str(child.pid))
    time.sleep(600)
log = told.get("logs", {{}}).get(option("--tool"), told.get("log", ""))
pathlib.Path(option("--log-file")).write_text(log)
if option("--export") and told.get("report"):
    pathlib.Path(option("--export") + ".ncu-rep").write_text(told["report"])
sys.exit(told.get("code", 0))
"""


def script(folder: Path, name: str, **told: Any) -> Path:
    """Install a stand-in; see the script for what it can be told."""
    path = folder / name
    path.write_text(_SCRIPT.format(python=sys.executable))
    path.chmod(0o755)
    (folder / f"{name}.json").write_text(json.dumps(told))
    return path


def calls(folder: Path, name: str) -> list[list[str]]:
    """Return the arguments of every call so far."""
    path = folder / f"{name}.calls"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def first_on_path(folder: Path) -> str:
    return f"{folder}{os.pathsep}{os.environ['PATH']}"


GEMM: dict[str, tuple[str, str]] = {
    "gpu__time_duration.sum": ("ns", "35,424"),
    "sm__throughput.avg.pct_of_peak_sustained_elapsed": ("%", "85.25"),
    "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed": ("%", "74.1"),
    "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed": ("%", "12.04"),
    "lts__throughput.avg.pct_of_peak_sustained_elapsed": ("%", "23.5"),
    "l1tex__throughput.avg.pct_of_peak_sustained_active": ("%", "74.9"),
    "dram__bytes_read.sum": ("byte", "2,101,248"),
    "dram__bytes_write.sum": ("byte", "1,536"),
    "l1tex__t_sector_hit_rate.pct": ("%", "1.5"),
    "lts__t_sector_hit_rate.pct": ("%", "94.2"),
    "sm__maximum_warps_per_active_cycle_pct": ("%", "50"),
    "sm__warps_active.avg.pct_of_peak_sustained_active": ("%", "46.7"),
    "launch__occupancy_limit_registers": ("block", "2"),
    "launch__occupancy_limit_shared_mem": ("block", "6"),
    "launch__occupancy_limit_warps": ("block", "4"),
    "launch__occupancy_limit_blocks": ("block", "32"),
    "launch__waves_per_multiprocessor": ("", "0.97"),
    "launch__registers_per_thread": ("register/thread", "96"),
    "launch__shared_mem_per_block": ("byte/block", "33,792"),
    "smsp__issue_active.avg.per_cycle_active": ("inst/cycle", "0.61"),
    "smsp__average_warps_issue_stalled_short_scoreboard_per_issue_active.ratio": ("inst", "3.8"),
    "smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio": ("inst", "2"),
    "smsp__average_warps_issue_stalled_long_scoreboard_pipe_l1tex_per_issue_active.ratio": ("inst", "2"),
    "smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio": ("inst", "4.2"),
    "smsp__average_warps_issue_stalled_selected_per_issue_active.ratio": ("inst", "1"),
    "sm__inst_executed_pipe_fma.avg.pct_of_peak_sustained_active": ("%", "61.2"),
    "sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_active": ("%", "62.5"),
    "sm__inst_executed_pipe_lsu.avg.pct_of_peak_sustained_active": ("%", "33"),
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum": ("", "4,000,000"),
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum": ("", "100,000"),
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum": ("", "3,100,000"),
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum": ("", "0"),
    "l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum": ("sector", "1,000"),
    "l1tex__t_sectors_pipe_lsu_mem_local_op_st.sum": ("sector", "500"),
    "sm__inst_executed_pipe_tensor.sum": ("inst", "n/a"),
}
"""Counter -> (unit, value) of a register-tiled GEMM with bank conflicts."""


def raw_page(*launches: tuple[str, dict[str, tuple[str, str]]], words: str = "") -> str:
    """Return what `ncu --import … --csv --page raw` prints for launches (kernel, counters)."""
    known = ["ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Context", "Stream", "Block Size"]
    names = list(dict.fromkeys(name for _, counters in launches for name in counters))
    units = {name: unit for _, counters in launches for name, (unit, _) in counters.items()}
    rows = [[*known, *names], ["" for _ in known] + [units[name] for name in names]]
    for number, (kernel, counters) in enumerate(launches):
        fixed = [str(number), "4711", "python3.12", "127.0.0.1", kernel, "1", "13", "(256, 1, 1)"]
        rows.append(fixed + [counters.get(name, ("", ""))[1] for name in names])
    return words + "".join(",".join(f'"{cell}"' for cell in row) + "\n" for row in rows)
