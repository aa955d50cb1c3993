"""Every record that flows through the house, and the protocols of its plug-ins.

Records are frozen dataclasses of plain data: picklable, JSON-serialisable with `to_json`/`from_json`, without
behaviour beyond small derived properties. Units stand in the names (`latency_us`, `timeout_s`, `cost_usd`). Nothing
here imports anything of the house but `evo.errors`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal, Protocol, TypeVar, cast

_JSON_BYTES: Any = {"ser_json_bytes": "base64", "val_json_bytes": "base64"}

Dim3 = tuple[int, int, int]
Config = Mapping[str, int]
"""One launch configuration: tunable name -> value."""


class Status(StrEnum):
    """What became of a candidate. Everything but OK says why it has no score."""

    OK = "ok"
    NO_PROPOSAL = "no_proposal"
    DUPLICATE = "duplicate"
    BAD_LAUNCH = "bad_launch"
    UNSUPPORTED = "unsupported"
    COMPILE_ERROR = "compile_error"
    LAUNCH_ERROR = "launch_error"
    WRONG_ANSWER = "wrong_answer"
    UNSAFE = "unsafe"
    TIMEOUT = "timeout"
    CRASH = "crash"


class Role(StrEnum):
    """What a case is for: `hidden` ones are never shown to a model, only `performance` ones are scored."""

    CORRECTNESS = "correctness"
    PERFORMANCE = "performance"
    HIDDEN = "hidden"


class Direction(StrEnum):
    """How a kernel uses a parameter."""

    IN = "in"
    OUT = "out"
    INOUT = "inout"
    SCALAR = "scalar"


# --- workload ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Draw:
    """How an input is drawn from a seed.

    Attributes:
        kind: `normal` (mean `low`, deviation `high`), `uniform` (`low` ≤ x < `high`), `integers` (`low` ≤ x <
            `high`), `offsets` (whole numbers that never fall, from `low` to `high`: where the rows of a sparse matrix
            begin), `heavy_tailed` (normal times 10**uniform(low, high)), `one_hot` (one `high` in each row and
            `low` elsewhere, 1 and 0 by default), `constant` (`low` everywhere), `ramp` (low, low + 1, …), `file`
            (the `.npy` named by `file`).
        low: see `kind`; a number, or an expression over the case's dims.
        high: likewise.
        file: name of a `.npy` file of the workload folder, for kind `file`.
    """

    kind: str = "normal"
    low: float | str = 0.0
    high: float | str = 1.0
    file: str | None = None


@dataclass(frozen=True)
class Parameter:
    """One parameter of the kernel, in the order of its signature.

    Attributes:
        name: the name that headers and cases use.
        dtype: NumPy name, e.g. `float32`.
        direction: in, out, inout or scalar.
        shape: expressions over the case's dims, row-major; empty for a scalar.
        align: bytes of alignment promised for the pointer.
        value: for a scalar: an expression over the case's dims, or a number.
        draw: how an `in` or `inout` buffer is filled.
    """

    name: str
    dtype: str
    direction: Direction
    shape: tuple[str, ...] = ()
    align: int = 256
    value: str | None = None
    draw: Draw = field(default_factory=Draw)


@dataclass(frozen=True)
class Case:
    """One set of dims and inputs.

    Attributes:
        name: unique in the workload.
        role: correctness, performance or hidden.
        dims: dimension name -> value.
        draws: parameter name -> draw, where it differs from the parameter's own.
    """

    name: str
    role: Role
    dims: Mapping[str, int]
    draws: Mapping[str, Draw] = field(default_factory=dict)


@dataclass(frozen=True)
class Tolerance:
    """When an output counts as right: ``|got - want| <= budget * sqrt(terms) * u * scale + atol``.

    `u` is the unit roundoff of the output's dtype (2**-24 for float32); `scale` is the reference's error scale (the
    sum of magnitudes) where it returns one, else ``|want|``. Integers and `exact` must be equal. NaN must match NaN
    position by position, and infinities their sign.

    Attributes:
        exact: bit-equal values (±0 are equal).
        budget: multiples of the statistical error bound; 4 by default (Higham & Mary 2019: √K growth).
        terms: expression over dims: the number of additions behind one element.
        atol: absolute slack in the output's own units.
    """

    exact: bool = False
    budget: float = 4.0
    terms: str = "1"
    atol: float = 0.0


PARTS = ("signature", "reference", "kernel", "cases")
"""What a workload is made of besides its description; each is supplied, derived or generated."""
GENERATED_REFERENCE = "reference"


@dataclass(frozen=True)
class Workload:
    """A whole workload; carries its files' text, so that workers on other machines need no path.

    Attributes:
        name: folder name.
        description: one or two sentences for people and prompts.
        entry: name of the kernel function that a one-launch header launches.
        parameters: in the order of the signature.
        cases: all roles.
        tolerance: by output name; the key "" holds the default.
        deterministic: whether repeated launches must agree bit for bit.
        fast_math: whether fast-math options and intrinsics are permitted.
        flops: expression over dims: useful operations of a case.
        bytes_moved: expression over dims: compulsory traffic of a case in bytes.
        reference: text of reference.py.
        initial: text of initial.cu.
        baseline: text of baseline.py, or None.
        files: name -> bytes of the `.npy` files that draws name.
        reference_kernel: text of reference.cu, a right kernel that is to be beaten, or None; no model ever sees it.
        certified_floor: no right kernel can do with fewer operations or bytes than `flops` and `bytes_moved` say, so
            that one which is faster than the device's peaks allow is a fraud.
        generated: parts that a model wrote: `signature`, `reference`, `kernel`, `cases`. A reference among them runs
            in the sandbox, always.
        trust: how far the oracle can be trusted, in a sentence or two; "" where nobody has looked into it.
    """

    __pydantic_config__ = _JSON_BYTES

    name: str
    description: str
    entry: str
    parameters: tuple[Parameter, ...]
    cases: tuple[Case, ...]
    tolerance: Mapping[str, Tolerance]
    deterministic: bool
    fast_math: bool
    flops: str
    bytes_moved: str
    reference: str
    initial: str
    baseline: str | None = None
    files: Mapping[str, bytes] = field(default_factory=dict)
    reference_kernel: str | None = None
    certified_floor: bool = False
    generated: tuple[str, ...] = ()
    trust: str = ""

    def role(self, *roles: Role) -> tuple[Case, ...]:
        """Return the cases of these roles, in the folder's order."""
        return tuple(case for case in self.cases if case.role in roles)

    @property
    def dims(self) -> tuple[str, ...]:
        """Names of the dims, sorted."""
        return tuple(sorted({name for case in self.cases for name in case.dims}))

    @property
    def outputs(self) -> tuple[Parameter, ...]:
        """Parameters that the kernel writes."""
        return tuple(p for p in self.parameters if p.direction in (Direction.OUT, Direction.INOUT))


# --- launching and compiling --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Peaks:
    """Rates that a GPU reaches at best; 0 where nobody knows. Those of tensor cores are dense, with float32 sums.

    Attributes:
        dram_bytes_per_s: of its memory, read and written bytes together.
        fp32_flops_per_s: of float32 multiply-adds, which count twice.
        tf32_flops_per_s: of tensor cores, as the next two.
        fp16_flops_per_s: float16 products.
        bf16_flops_per_s: bfloat16 products.
    """

    dram_bytes_per_s: float = 0.0
    fp32_flops_per_s: float = 0.0
    tf32_flops_per_s: float = 0.0
    fp16_flops_per_s: float = 0.0
    bf16_flops_per_s: float = 0.0


@dataclass(frozen=True)
class Device:
    """What the machine that runs a kernel is and allows.

    Attributes:
        kind: plug-in name: `host`, `cuda`, …
        name: for people, e.g. `NVIDIA H200` or a CPU's model name.
        fingerprint: latencies are compared only between equal fingerprints.
        arch: compile target, e.g. `sm_90a` or `x86-64-native`.
        num_sms: multiprocessors (1 on the host device).
        max_threads_per_block: 1024 on every CUDA device so far.
        max_shared_bytes: most shared memory a block may ask for.
        l2_bytes: last-level cache.
        registers_per_sm: 32-bit registers; 0 where the notion is void.
        max_threads_per_sm: resident threads per multiprocessor (2048 on sm_80 and sm_90, 1536 on sm_86 and sm_89).
        max_blocks_per_sm: resident blocks per multiprocessor.
        uuid: of a GPU; two of a kind differ in it alone.
        exclusive: only one process may use it at a time.
        peaks: what its clocks and units allow in theory; None where no roofline is drawn.
    """

    kind: str
    name: str
    fingerprint: str
    arch: str
    num_sms: int = 1
    max_threads_per_block: int = 1024
    max_shared_bytes: int = 49152
    l2_bytes: int = 1 << 21
    registers_per_sm: int = 0
    max_threads_per_sm: int = 2048
    max_blocks_per_sm: int = 32
    uuid: str = ""
    exclusive: bool = False
    peaks: Peaks | None = None


@dataclass(frozen=True)
class Launch:
    """One kernel launch with numbers only. `args` are buffer, scalar or workspace names, or integers (int32)."""

    kernel: str
    grid: Dim3
    block: Dim3
    shared_bytes: int
    args: tuple[str | int, ...]


@dataclass(frozen=True)
class LaunchPlan:
    """Everything that runs inside the timed window for one case, resolved from a header.

    Attributes:
        launches: in order.
        workspaces: name -> bytes; they arrive poisoned.
        zero: buffers zeroed before the first launch, inside the window.
        defines: macro name -> value; another set of defines is another program.
        options: compiler options beyond the defaults, each from the allow-list.
        cooperative: whether every launch is cooperative.
        cluster: thread-block cluster, or None.
    """

    launches: tuple[Launch, ...]
    workspaces: Mapping[str, int] = field(default_factory=dict)
    zero: tuple[str, ...] = ()
    defines: Mapping[str, int] = field(default_factory=dict)
    options: tuple[str, ...] = ()
    cooperative: bool = False
    cluster: Dim3 | None = None


@dataclass(frozen=True)
class CompileRequest:
    """One program to build: `flavour` is a backend's own word (`plain` or `check` on the host device)."""

    source: str
    kernels: tuple[str, ...]
    defines: Mapping[str, int]
    options: tuple[str, ...]
    arch: str
    flavour: str = "plain"


@dataclass(frozen=True)
class Resources:
    """What the compiler says one kernel uses; None where it cannot say."""

    registers: int | None = None
    spill_bytes: int | None = None
    static_shared_bytes: int | None = None
    local_bytes: int | None = None


@dataclass(frozen=True)
class Binary:
    """The outcome of a `CompileRequest`. `image` is empty unless `status` is OK.

    Attributes:
        status: OK, COMPILE_ERROR, UNSUPPORTED, UNSAFE or TIMEOUT.
        key: hash of all that went in; names it in the cache.
        image: the program's bytes.
        message: for a model and a person: what is wrong, at which line of the candidate's own source.
        resources: kernel name -> resources.
        seconds: wall time of the build; 0 for a cache hit.
        lowered: kernel name, as the request spells it -> its symbol in the image, where the two may differ.
    """

    __pydantic_config__ = _JSON_BYTES

    status: Status
    key: str
    image: bytes = b""
    message: str = ""
    resources: Mapping[str, Resources] = field(default_factory=dict)
    seconds: float = 0.0
    lowered: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Finding:
    """One thing a checker found: `line` is 1-based in the candidate's own source, 0 where unknown.

    `advice` is worth knowing and no fault: it rejects nobody.
    """

    kind: str
    message: str
    line: int = 0
    other_line: int = 0
    count: int = 1
    advice: bool = False


@dataclass(frozen=True)
class Buffer:
    """One buffer of a job.

    Attributes:
        name: parameter or workspace name.
        dtype: NumPy name.
        nbytes: its exact size; one byte beyond is out of bounds.
        direction: IN (must come back unchanged), OUT (arrives poisoned) or INOUT.
        file: name of the raw file in the job's folder that holds its content; None means poisoned.
        align: the address is a multiple of this and, for hidden cases, of no larger power of two.
        key: names the content, so that a child may keep it; "" where it has no name.
    """

    name: str
    dtype: str
    nbytes: int
    direction: Direction
    file: str | None = None
    align: int = 256
    key: str = ""


@dataclass(frozen=True)
class Scalar:
    """One scalar argument; `value` is converted to `dtype`."""

    name: str
    dtype: str
    value: float | int


@dataclass(frozen=True)
class Call:
    """A function of the user's that a child calls where it would launch kernels.

    Attributes:
        source: Python that defines `baseline(inputs, dims) -> outputs`.
        dims: of the case.
        arrays: parameter -> shape and NumPy dtype.
        outputs: those of them that it returns.
    """

    source: str
    dims: Mapping[str, int]
    arrays: Mapping[str, tuple[tuple[int, ...], str]]
    outputs: tuple[str, ...]


@dataclass(frozen=True)
class Job:
    """One program on one case, in a child process that never sees an expected value.

    Every buffer lies in a file of `folder` named `<buffer>.in`; after the run the child leaves each buffer's bytes in
    `<buffer>.out` (inputs too: the parent compares them).

    Attributes:
        folder: scratch folder of this job.
        image: file name of the program in `folder`.
        plan: what to launch.
        buffers: parameters and workspaces.
        scalars: by value.
        warmup: untimed runs of the whole plan before the timed ones.
        samples: timed runs; 0 means run once, untimed (correctness).
        flush_bytes: size of the buffer written between samples to clear the caches; 0 for a hot measurement.
        seed: for the poison pattern and the order in which blocks and threads are started.
        core: CPU core to pin to, or None.
        timeout_s: the child's own limit; the parent's stands behind it.
        tight_align: give pointers exactly the promised alignment and no better.
        symbols: kernel -> its symbol in the image, where the two may differ.
        secret: other inputs, for one timed run that a kernel cannot tell from the rest; its outputs have memory of
            their own and are left in `<buffer>.secret`.
        secret_at: index of that run among the timed ones.
        call: what is run instead of a program.
        digest_key: a secret of the parent's: a child that no candidate can reach says with it, in few bytes, what the
            outputs hold.
        accepted: file of an output -> digest of bytes that the parent has found right: such a file need not be left.
    """

    folder: str
    image: str
    plan: LaunchPlan
    buffers: tuple[Buffer, ...]
    scalars: tuple[Scalar, ...]
    warmup: int = 0
    samples: int = 0
    flush_bytes: int = 0
    seed: int = 0
    core: int | None = None
    timeout_s: float = 10.0
    tight_align: bool = False
    symbols: Mapping[str, str] = field(default_factory=dict)
    secret: tuple[Buffer, ...] = ()
    secret_at: int = 0
    call: Call | None = None
    digest_key: int = 0
    accepted: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Conditions:
    """The state of a GPU while something was timed.

    Attributes:
        sm_clock_mhz: of the multiprocessors.
        memory_clock_mhz: of the memory.
        temperature_c: of the chip.
        power_w: drawn.
        slowed_by: why the clocks were held down: `power cap`, `thermal`, `hardware`; empty when they were not.
        others: processes of other people on the GPU.
        floor_us: what an empty kernel takes, measured the same way.
    """

    sm_clock_mhz: int
    memory_clock_mhz: int
    temperature_c: int
    power_w: float
    slowed_by: tuple[str, ...] = ()
    others: int = 0
    floor_us: float = 0.0


@dataclass(frozen=True)
class JobResult:
    """What a child reports of a `Job`; the parent believes only what it can check.

    Attributes:
        status: OK, BAD_LAUNCH, LAUNCH_ERROR, UNSAFE, TIMEOUT, CRASH or UNSUPPORTED.
        message: what is wrong and where, in words that a model can use.
        findings: of a `check` flavour or a guard page.
        samples_us: latency of each timed run, by the child's clock.
        wall_us: of each timed run, by the parent's clock (an upper bound of the child's); () where not taken.
        unchanged: inputs that a child which no candidate can reach has compared itself; they have no `.out`.
        digests: file of an output -> what it holds, or would hold; see `Job.digest_key`.
        doubts: why the latencies deserve distrust.
        conditions: of a GPU.
        spent: the child can run no further job (a sticky error of its CUDA context), so that another takes over. The
            result counts all the same: a child waits for its kernels, and so an error is told by the job that made it.
            CRASH alone leaves open who did it (a context that was broken on arrival): where the child had served other
            jobs, that job is run once more in a fresh one.
    """

    status: Status
    message: str = ""
    findings: tuple[Finding, ...] = ()
    samples_us: tuple[float, ...] = ()
    wall_us: tuple[float, ...] = ()
    unchanged: tuple[str, ...] = ()
    digests: Mapping[str, str] = field(default_factory=dict)
    doubts: tuple[str, ...] = ()
    conditions: Conditions | None = None
    spent: bool = False


# --- evaluations --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Latency:
    """A measured latency: the median with its 95 % interval, in microseconds.

    Attributes:
        median_us: the figure.
        low_us: lower end of the interval of the median.
        high_us: upper end.
        noise: interquartile range over the median.
        samples: how many were kept.
        doubts: why the figure deserves distrust; empty when it does not.
    """

    median_us: float
    low_us: float
    high_us: float
    noise: float
    samples: int
    doubts: tuple[str, ...] = ()


@dataclass(frozen=True)
class Roofline:
    """How near a case comes to what the device can do. Shares are of measured peaks and may exceed 1.

    Attributes:
        floor_us: less than this the device's theoretical peaks do not allow; 0 where they bound nothing.
        binds: the side that is nearest its peak: `memory`, `fp32`, or `tf32` or `fp16` of tensor cores; `latency` where
            launching is much of the time; "" where nothing was measured.
        efficiency: the greatest share; None where there is none.
        memory: share of the bandwidth; None for a hot measurement, which memory does not bound.
        compute: share of the arithmetic rate of `unit`; None where the workload counts no floating-point operations.
        unit: `fp32`, `tf32` or `fp16`: what the kernel computes with; "" where `compute` is None.
    """

    floor_us: float
    binds: str = ""
    efficiency: float | None = None
    memory: float | None = None
    compute: float | None = None
    unit: str = ""


@dataclass(frozen=True)
class CaseResult:
    """One case of one evaluation.

    Attributes:
        case: name.
        role: its role.
        status: OK, or why not.
        message: for a model; of a hidden case it never tells dims or values.
        error: largest error in units of the tolerance (1.0 is the limit); None where not compared.
        latency: of performance cases.
        anchor_us: median of the anchor kernel, measured around the candidate.
        config: the launch configuration that was used.
        conditions: of the GPU while it was timed.
        roofline: of a GPU's timed case.
    """

    case: str
    role: Role
    status: Status
    message: str = ""
    error: float | None = None
    latency: Latency | None = None
    anchor_us: float | None = None
    config: Config = field(default_factory=dict)
    conditions: Conditions | None = None
    roofline: Roofline | None = None


@dataclass(frozen=True)
class Trial:
    """One launch configuration tried on one case. `latency_us` is None where it failed or was abandoned."""

    case: str
    config: Config
    status: Status
    latency_us: float | None = None
    message: str = ""


@dataclass(frozen=True)
class KernelProfile:
    """What a profiler counted during one launch; None, or absent, where the device or the tool has no such counter.

    Attributes:
        kernel: its name, without parameters.
        duration_us: of the launch under the profiler, with cold caches.
        sm_pct: busiest pipe of the multiprocessors, in percent of its peak.
        memory_pct: busiest part of the memory system, in percent of its peak.
        dram_pct: throughput of the device memory, in percent of its peak.
        l2_pct: of the second-level cache.
        l1_pct: of the first-level cache and shared memory.
        dram_read_bytes: by the launch.
        dram_written_bytes: by the launch.
        l1_hit_pct: of the sectors asked for.
        l2_hit_pct: of the sectors asked for.
        theoretical_occupancy_pct: warps that fit a multiprocessor, of those that it can hold.
        achieved_occupancy_pct: warps that were there, on average.
        occupancy_limits: what keeps more blocks from a multiprocessor: `registers`, `shared memory`, `warps`, `blocks`.
        waves: blocks over blocks that run at once.
        registers: of a thread.
        shared_bytes: of a block.
        issue_pct: cycles in which a scheduler issued an instruction.
        stalls_pct: why warps waited, largest first -> share of all waiting.
        pipes_pct: unit of the multiprocessor, busiest first -> percent of its peak.
        bank_conflict_ways: passes that an access to shared memory took, over those that it needs; 1 is none.
        local_bytes: of local memory (spills, arrays of a thread) read and written.
    """

    kernel: str
    duration_us: float | None = None
    sm_pct: float | None = None
    memory_pct: float | None = None
    dram_pct: float | None = None
    l2_pct: float | None = None
    l1_pct: float | None = None
    dram_read_bytes: float | None = None
    dram_written_bytes: float | None = None
    l1_hit_pct: float | None = None
    l2_hit_pct: float | None = None
    theoretical_occupancy_pct: float | None = None
    achieved_occupancy_pct: float | None = None
    occupancy_limits: tuple[str, ...] = ()
    waves: float | None = None
    registers: int | None = None
    shared_bytes: int | None = None
    issue_pct: float | None = None
    stalls_pct: Mapping[str, float] = field(default_factory=dict)
    pipes_pct: Mapping[str, float] = field(default_factory=dict)
    bank_conflict_ways: float | None = None
    local_bytes: float | None = None


@dataclass(frozen=True)
class Profile:
    """What a profiler saw of one candidate on one case.

    Attributes:
        case: name of a performance case.
        kernels: one for each launch, in order.
        report: the tool's own file in base64, on its way to the run's folder; "" once it is there.
        file: its path in the run's folder.
        problem: why there is nothing of the above, and what to do about it.
    """

    case: str = ""
    kernels: tuple[KernelProfile, ...] = ()
    report: str = ""
    file: str = ""
    problem: str = ""


@dataclass(frozen=True)
class Evaluation:
    """The verdict on one candidate.

    Attributes:
        candidate: id in the store; 0 outside a run.
        status: OK or the first thing that went wrong.
        stage: where: `header`, `screen`, `compile`, `validate`, `tune`, `time`.
        message: what is wrong and where; "" when OK.
        source: the kernel with tuned `choose` rules written in; the candidate's own source when not tuned.
        score_us: geometric mean over performance cases of the median latency; None unless OK.
        ratio: geometric mean over performance cases of latency / anchor latency; the search ranks by it.
        cases: one result per case that ran, in order.
        trials: every launch configuration tried.
        findings: of the checker.
        resources: of the default variant.
        descriptors: cell coordinates: `staging`, `unit`, `outputs`.
        device: fingerprint.
        screen: `passed`, `skipped` (with the reason in `screen_note`) or `rejected`.
        screen_note: why it was skipped.
        doubts: about the whole verdict.
        stage_seconds: wall time by stage.
        profile: of a profiler, where one was asked for.
    """

    candidate: int
    status: Status
    stage: str = ""
    message: str = ""
    source: str = ""
    score_us: float | None = None
    ratio: float | None = None
    cases: tuple[CaseResult, ...] = ()
    trials: tuple[Trial, ...] = ()
    findings: tuple[Finding, ...] = ()
    resources: Mapping[str, Resources] = field(default_factory=dict)
    descriptors: Mapping[str, str] = field(default_factory=dict)
    device: str = ""
    screen: str = ""
    screen_note: str = ""
    doubts: tuple[str, ...] = ()
    stage_seconds: Mapping[str, float] = field(default_factory=dict)
    profile: Profile | None = None


@dataclass(frozen=True)
class Comparison:
    """Interleaved comparison of two kernels. Ratios are challenger latency / champion latency; below 1 is faster.

    Attributes:
        challenger: candidate id.
        champion: candidate id.
        status: OK, or why the challenger could not be compared.
        ratio: exp of the mean over cases of the log ratio.
        low: lower end of its bootstrap interval at `confidence`.
        high: upper end.
        confidence: of the interval, after correction for the number of looks and challengers.
        blocks: interleaved blocks measured.
        promoted: whether the challenger becomes champion.
        cases: case name -> ratio.
        message: what went wrong, or why it stopped.
    """

    challenger: int
    champion: int
    status: Status
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    confidence: float = 0.95
    blocks: int = 0
    promoted: bool = False
    cases: Mapping[str, float] = field(default_factory=dict)
    message: str = ""


REFERENCE_ID = -1
"""Stands for the workload's reference.cu in an evaluation or a comparison; no candidate has it."""
BASELINE_ID = -2
"""Stands for the workload's baseline.py in a comparison."""


# --- search -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Mutate:
    """Ask an operator for one new kernel.

    Attributes:
        id: position among the run's tasks, from 0.
        operator: plug-in name.
        model: index into the config's models; -1 for offline operators.
        parents: candidate ids; the first is the one to change.
        inspirations: candidate ids shown beside them.
        tried: candidate ids of earlier attempts, most telling first: a first parent that failed, children of the first
            parent, then others.
        island: where the child goes.
        inherited: index of the inherited kernel that this brings in, without any operator; -1 for every other task.
    """

    id: int
    operator: str
    model: int
    parents: tuple[int, ...]
    inspirations: tuple[int, ...] = ()
    tried: tuple[int, ...] = ()
    island: int = 0
    inherited: int = -1
    kind: Literal["mutate"] = "mutate"


@dataclass(frozen=True)
class Compare:
    """Compare a challenger with the champion; `number` counts the run's comparisons from 1 (for its α)."""

    id: int
    challenger: int
    champion: int
    number: int
    kind: Literal["compare"] = "compare"


Task = Mutate | Compare

INHERITED = "inherited"
"""Stands where the operator's name stands, in tasks and candidates that bring in a kernel of an earlier run."""


@dataclass(frozen=True)
class Inherited:
    """A kernel of an earlier run that a run begins with; `note` says which kernel of which run it was."""

    source: str
    note: str


@dataclass(frozen=True)
class Candidate:
    """One kernel of a run. `id` 0 is the initial kernel, whose `task` is -1."""

    id: int
    task: int
    source: str
    hash: str
    operator: str
    parents: tuple[int, ...]
    island: int
    note: str = ""


@dataclass(frozen=True)
class Outcome:
    """How a task ended: what the search is told, and nothing besides.

    Attributes:
        task: id of the task.
        candidate: id of the candidate it made, or None (no proposal).
        status: of the candidate or the comparison.
        ratio: of the evaluation; None without a score.
        descriptors: cell coordinates of the candidate.
        promoted: of a comparison.
        cost_usd: what the task's model calls cost, as far as their prices are known.
        unpriced_tokens: prompt and reply of those whose price nobody knows.
        fault: what went wrong in one line, stage first, so that two failures can be told apart; "" where nothing did.
    """

    task: int
    candidate: int | None
    status: Status
    ratio: float | None = None
    descriptors: Mapping[str, str] = field(default_factory=dict)
    promoted: bool = False
    cost_usd: float = 0.0
    unpriced_tokens: int = 0
    fault: str = ""

    @property
    def evaluated(self) -> bool:
        """Whether a mutation made a new candidate, so that it reached screening."""
        return self.candidate is not None and self.status not in (Status.NO_PROPOSAL, Status.DUPLICATE)

    @property
    def score(self) -> float | None:
        """The ratio of a candidate that is right; None for any other."""
        right = self.status is Status.OK and self.ratio is not None and 0 < self.ratio < math.inf
        return self.ratio if right else None


# --- mutators -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Traits:
    """What the search must know of an operator; class attributes of the plug-in, of the same names.

    Attributes:
        offline: it asks no model; its tasks carry `model` -1.
        parents: how many parents it needs, each of another cell.
        repairs: its parent is a candidate that failed.
    """

    offline: bool = False
    parents: int = 1
    repairs: bool = False


@dataclass(frozen=True)
class Tool:
    """A function that a model may call while it thinks.

    Attributes:
        name: a model calls it by this.
        description: what it gives, for the model.
        parameters: JSON schema of its arguments, an object.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True)
class ToolCall:
    """One call that a model asks for; `arguments` is JSON as the model wrote it, right or wrong."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True)
class ToolResult:
    """What a call came to, in words; `call` is the id of the `ToolCall`."""

    call: str
    name: str
    text: str


@dataclass(frozen=True)
class Message:
    """One chat message.

    Attributes:
        role: `system`, `user`, `assistant` or `tool`.
        content: its text.
        calls: of an assistant that asks for tools.
        call: of a tool's message: the id of the call that it answers.
    """

    role: str
    content: str
    calls: tuple[ToolCall, ...] = ()
    call: str = ""


@dataclass(frozen=True)
class ModelRequest:
    """What an operator wants to ask a model.

    Attributes:
        messages: the conversation so far, oldest first.
        tools: that the model may call.
        may_call: false once it has called enough: the tools are still named, and the model has to answer.
        schema: JSON schema of the answer, an object with a `title`; where the provider has structured output the answer
            obeys it, elsewhere it is left out, so that an operator reads both JSON and prose.
        task: which task asks; the runner fills it in.
        step: which request of the task, from 0; the runner fills it in.
    """

    messages: tuple[Message, ...]
    tools: tuple[Tool, ...] = ()
    may_call: bool = True
    schema: Mapping[str, Any] | None = None
    task: int = -1
    step: int = 0


@dataclass(frozen=True)
class ModelReply:
    """What a client brought back, committed before anything is done with it.

    Attributes:
        status: `ok`, or `error` with the reason in `error`.
        text: the reply.
        model: as the provider names it.
        input_tokens: prompt tokens; None where unknown.
        output_tokens: completion tokens, reasoning included.
        reasoning_tokens: of those.
        cost_usd: None where the price is unknown; 0 where no attempt brought anything that is charged for.
        latency_s: wall time, retries included.
        attempts: HTTP calls made.
        uncertain: those of them that ended without an answer after they were sent (time limit, cut connection), so that
            the provider may charge for them and nobody here knows.
        finish_reason: `stop`, `length`, …
        error: why there is no reply, without secrets.
        fatal: of an error: every further call of this model will end the same way (wrong key, no such model).
        calls: tools that the model wants called before it answers.
    """

    status: Literal["ok", "error"]
    text: str = ""
    model: str = ""
    input_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_tokens: int | None = None
    cost_usd: float | None = None
    latency_s: float = 0.0
    attempts: int = 1
    uncertain: int = 0
    finish_reason: str = ""
    error: str = ""
    fatal: bool = False
    calls: tuple[ToolCall, ...] = ()


@dataclass(frozen=True)
class ModelFacts:
    """What is known of a model; None where it is not.

    Attributes:
        name: as its provider spells it.
        window_tokens: of the prompt, at most.
        output_tokens: of one reply, reasoning included, at most.
        input_usd: for one prompt token.
        output_usd: for one token of a reply.
        tools: whether it can call functions.
        schema: whether its answers can be made to obey a JSON schema.
    """

    name: str = ""
    window_tokens: int | None = None
    output_tokens: int | None = None
    input_usd: float | None = None
    output_usd: float | None = None
    tools: bool = False
    schema: bool = False


@dataclass(frozen=True)
class Turn:
    """One reply of a model, and what the tools said that it called."""

    reply: ModelReply
    results: tuple[ToolResult, ...] = ()


@dataclass(frozen=True)
class ToolRequest:
    """Calls that have to be made before the model is asked again."""

    calls: tuple[ToolCall, ...]


@dataclass(frozen=True)
class Proposal:
    """What an operator made of it. `source` is None when there is nothing to evaluate, and `note` says why."""

    source: str | None
    note: str = ""


Step = ModelRequest | Proposal
"""What an operator does next; tools are between the model and the runner (`mutators.conversation`)."""


@dataclass(frozen=True)
class Relative:
    """A candidate as an operator sees it.

    Attributes:
        id: of the candidate.
        source: with tuned rules written in.
        evaluation: freed of hidden cases.
        listing: its machine code in words; "" where nobody looked, or where the model can look by itself.
    """

    id: int
    source: str
    evaluation: Evaluation | None
    listing: str = ""


@dataclass(frozen=True)
class Attempt:
    """An earlier candidate in brief, freed of hidden cases.

    Attributes:
        id: of the candidate.
        operator: that made it.
        parents: its own.
        note: what the operator said about its change.
        status: of its evaluation; None while it has none.
        stage: where it failed.
        message: why, in brief; "" where it did not.
        ratio: of its evaluation, where it has a score.
        parent_ratio: of its first parent's evaluation, where that has one.
    """

    id: int
    operator: str
    parents: tuple[int, ...]
    note: str = ""
    status: Status | None = None
    stage: str = ""
    message: str = ""
    ratio: float | None = None
    parent_ratio: float | None = None


@dataclass(frozen=True)
class MutationContext:
    """All that an operator may know.

    Attributes:
        task: what was asked.
        seed: for `numpy.random.default_rng`; offline operators draw from it alone.
        workload: without hidden cases and without reference text.
        device: that the kernel will run on.
        parents: as named by the task.
        inspirations: as named by the task.
        tried: as named by the task.
        model: that will be asked; how much it can read decides how much it is told.
    """

    task: Mutate
    seed: tuple[int, ...]
    workload: Workload
    device: Device
    parents: tuple[Relative, ...]
    inspirations: tuple[Relative, ...] = ()
    tried: tuple[Attempt, ...] = ()
    model: ModelFacts = ModelFacts()


# --- protocols of the plug-ins ------------------------------------------------------------------------------------


class Operator(Protocol):
    """An operator is a frozen dataclass in `mutators/operators/<name>.py`.

    What the search must know of it are class attributes (`Traits`): one that asks no model says
    `offline: ClassVar[bool] = True`, and a config may use it without any model.
    """

    def step(self, context: MutationContext, history: tuple[ModelReply, ...]) -> Step:
        """Return the next request, or the proposal. Pure: same arguments, same result.

        Args:
            context: all that may be known.
            history: the answers to this task's requests so far. Replies in which a model only calls tools are not among
                them: those are answered before the operator hears of them.
        """
        ...


class Client(Protocol):
    """One way to reach a model: a frozen dataclass in `mutators/clients/<name>.py`.

    One that knows its model also has `facts() -> ModelFacts`; without it the prompt is kept short, no tools are offered
    and the price is unknown.
    """

    def check(self) -> None:
        """Raise `MutatorError` with the ways on when the model cannot be reached at all (no key). No network."""
        ...

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Make one call. Never raises for what a provider does: that is a reply with status `error`."""
        ...


# --- JSON ---------------------------------------------------------------------------------------------------------

R = TypeVar("R")


@functools.cache
def _adapter(kind: Hashable) -> Any:
    from pydantic import TypeAdapter

    return TypeAdapter(cast(Any, kind))


def to_json(record: Any) -> str:
    """Serialise a record (or a tuple or mapping of records) to JSON text."""
    text: bytes = _adapter(cast(Hashable, type(record))).dump_json(record)
    return text.decode()


def from_json(kind: type[R], text: str | bytes) -> R:
    """Read a record back; raises `pydantic.ValidationError` when the text does not fit the type."""
    record: R = _adapter(cast(Hashable, kind)).validate_json(text)
    return record
