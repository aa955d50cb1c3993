"""The first look at a candidate, on a CPU and before any evaluator: header, text, exact front end, checker.

A plain function of its arguments, so that it can be a Ray task. Only a positive finding rejects: what the checker
cannot run or does not finish passes on as `skipped`, with the reason.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import replace

from evaluators import inspection, nvrtc
from evaluators.bench import Program, Shots, run_job
from evaluators.device import DevicePlugin, Screened
from evo import kernel as kernels
from evo import workload as workloads
from evo.errors import HeaderError
from evo.records import Case, Evaluation, Resources, Role, Status, Workload

CHECK_CASES = 3
"""The smallest correctness cases are checked: a fault that needs more shows there too, and checking is slow."""
CHECK_S = 10.0
"""Wall time for one case under the checker, which is up to 20 times slower than a plain run."""
