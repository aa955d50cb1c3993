"""NVRTC without a GPU: what compiles, what a model hears when it does not, and that nothing is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from evaluators import nvrtc
from evaluators.nvrtc import process as nvrtc_process
from evaluators.nvrtc import stored
from evaluators.nvrtc.log import explain, resources
from evo.records import Binary, CompileRequest, Resources, Status
from tests.support.programs import ends

pytestmark = pytest.mark.skipif(not nvrtc.available(), reason="NVRTC is not installed (extra `nvrtc`)")

KERNEL = """extern "C" __global__ void k(float* x) {
    __shared__ float s[100];
    s[threadIdx.x] = x[0];
    __syncthreads();
    x[threadIdx.x] = s[99 - threadIdx.x];
}
"""


@pytest.fixture(scope="module", autouse=True)
def _results_of_these_tests_alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stored, "_folder", lambda: folder)
        yield


def build(
    source: str,
    kernels: tuple[str, ...] = ("k",),
    *,
    arch: str = "sm_90",
    options: tuple[str, ...] = (),
    defines: Mapping[str, int] | None = None,
    cubin: bool = True,
) -> Binary:
    return nvrtc.compile(CompileRequest(source, kernels, defines or {}, options, arch), cubin)


def test_a_kernel_becomes_machine_code_with_its_resources() -> None:
    binary = build(KERNEL)
    assert (binary.status, binary.message) == (Status.OK, "")
    assert binary.image.startswith(b"\x7fELF")
    used = binary.resources["k"]
    assert used.registers is not None
    assert 4 <= used.registers <= 40
    assert (used.spill_bytes, used.static_shared_bytes, used.local_bytes) == (0, 400, 0)


def test_spills_and_local_memory_are_seen() -> None:
    values = "".join(f"float a{i} = x[{i} * n];" for i in range(64))
    source = f"__global__ void k(float* x, int n) {{ {values} __syncthreads();"
    source += "".join(f"x[{i}] = a{i} * a{63 - i};" for i in range(64)) + "}"
    used = build(source, options=("--maxrregcount=24",)).resources["k"]
    assert used.registers is not None
    assert used.spill_bytes is not None
    assert used.registers <= 24
    assert used.spill_bytes > 0


def test_ptx_is_quicker_and_readable() -> None:
    assert b".target sm_90" in build(KERNEL, cubin=False).image


def test_templates_are_instantiated_by_name() -> None:
    source = "template <class T, int N> __global__ void k(T* x) { x[N] = 1; }"
    assert set(build(source, ("k<float, 3>", "k<int, 4>")).resources) == {"k<float, 3>", "k<int, 4>"}


@pytest.mark.parametrize("cubin", [True, False])
def test_a_launcher_learns_the_symbols_of_the_kernels(cubin: bool) -> None:
    source = (
        'extern "C" __global__ void a(float* x) {}\n__global__ void b(float* x) {}\n'
        "namespace n { template <class T, int N> __global__ void c(T* x) { x[N] = 1; } }"
    )
    binary = build(source, ("a", "b", "n::c<float, 3>"), cubin=cubin)
    assert binary.lowered == {"a": "a", "b": "_Z1bPf", "n::c<float, 3>": "_ZN1n1cIfLi3EEEvPT_"}
    assert all(symbol.encode() in binary.image for symbol in binary.lowered.values())
    assert build(source, ("a", "b", "n::c<float, 3>"), cubin=cubin) == replace(binary, seconds=0.0)


def test_what_the_assembler_refuses_is_said() -> None:
    source = '__global__ void k(float* x) { asm volatile("cp.async.wait_all;"); asm volatile("fly.me x;"); }'
    said = build(source, arch="sm_75").message.splitlines()
    assert "ptxas error   : Feature 'cp.async.wait_all' requires .target sm_80 or higher" in said
    assert "ptxas error   : Not a name of any known instruction: 'fly'" in said


def test_a_tunable_with_a_name_of_the_compilers_own_is_advised_against() -> None:
    assert (
        "hint: a tunable or a macro has a name that CUDA's own headers use" in build(KERNEL, defines={"T": 4}).message
    )


def test_defines_and_options_reach_the_compiler() -> None:
    source = "__global__ void k(float* x) { static_assert(TILE == 32); x[0] = x[1] * x[2] + x[3]; }"
    assert build(source, defines={"TILE": 32}).status is Status.OK
    assert build(source, defines={"TILE": 31}).status is Status.COMPILE_ERROR
    assert b"fma.rn" in build(source, defines={"TILE": 32}, cubin=False).image
    assert b"fma.rn" not in build(source, defines={"TILE": 32}, options=("--fmad=false",), cubin=False).image


@pytest.mark.parametrize("option", ["--include-path=/etc", "-I/etc", "--pch", "-DX=1", "--gpu-architecture=sm_80"])
def test_options_that_no_header_may_ask_for_are_a_mistake_of_the_caller(option: str) -> None:
    with pytest.raises(ValueError, match="not among the compiler options"):
        build(KERNEL, options=(option,))


def test_equal_programs_have_equal_keys() -> None:
    keys = {build(KERNEL).key, build(KERNEL, cubin=False).key, build(KERNEL + " ").key, build(KERNEL, arch="sm_80").key}
    assert len(keys) == 4
    assert build(KERNEL).key in keys


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ('extern "C" __global__ void k(float* x) {\n    itn i;\n}', 'line 2: error: identifier "itn" is undefined'),
        ("\n__global__ void k(float* x) { x[0] = INFINITY; }", "hint: write `#include <cmath>`"),
        ("__global__ void k(uint32_t* x) { x[0] = 1; }", "hint: write `#include <cstdint>`"),
        ("float f() { return 1; }\n__global__ void k(float* x) { x[0] = f(); }", "hint: write `__device__`"),
        ("__global__ void other(float* x) {}", "a kernel `k`, which the source does not define"),
        ("__global__ void k(float* x) { __shared__ float s[20000]; s[threadIdx.x] = 1; __syncthreads(); x[0] = s[1]; }",
         "too much shared data"),
        ("#include <cuda_fp16.h>\n__global__ void k(__half* x) { x[0] = __hadd(x[1], 1 / 0.0f, 2); }", "line 2: error"),
        ("#error this is no kernel\n", "line 1: catastrophic error: #error directive: this is no kernel"),
    ],
)  # fmt: skip
def test_errors_name_the_candidates_own_lines(source: str, words: str) -> None:
    binary = build(source)
    assert binary.status is Status.COMPILE_ERROR
    assert words in binary.message
    assert "/include/" not in binary.message
    assert binary.image == b""


def test_a_hundred_errors_are_cut_short() -> None:
    source = "".join(f"__global__ void k{i}(float* x) {{ x[0] = missing{i}; }}\n" for i in range(60))
    message = build(source, ()).message
    assert message.count(": error:") == 8
    assert "more errors)" in message


@pytest.mark.parametrize(
    "source",
    [
        '#include "/etc/hostname"\n',
        '#define H "/etc/hostname"\n#include H\n',
        "#include <../../../../../../etc/hostname>\n",
        '#if __has_include("/etc/hostname")\n#endif\n',
        '// \\ \n#include "/etc/hostname"\n',
    ],
)
def test_files_of_the_machine_are_refused_before_nvrtc_sees_them(source: str) -> None:
    binary = build(source + KERNEL)
    assert binary.status is Status.UNSAFE
    assert binary.message.startswith("line ")
    assert Path("/etc/hostname").read_text().strip() not in binary.message


def test_the_child_could_not_read_them_anyway() -> None:
    installation = nvrtc.find()
    assert installation is not None
    request = CompileRequest('#include "/etc/passwd"\n' + KERNEL, ("k",), {}, (), "sm_90")
    options = nvrtc._options(request, True, installation)
    answer = nvrtc_process.ask(installation, nvrtc._message(request, options, True, {}), 60)
    assert "could not open source file" in answer["log"] or "cannot open source file" in answer["log"]
    assert "root" not in answer["log"]


def test_an_architecture_that_is_too_old_is_named() -> None:
    binary = build(KERNEL, arch="sm_50")
    assert binary.status is Status.UNSUPPORTED
    assert "sm_50" in binary.message
    assert "sm_90" in binary.message


HEADERS = {
    "cooperative_groups.h": "auto b = cooperative_groups::this_thread_block(); b.sync(); "
    "x[0] = cooperative_groups::tiled_partition<32>(b).shfl_down(x[1], 1);",
    "cooperative_groups/reduce.h": "namespace cg = cooperative_groups; "
    "auto t = cg::tiled_partition<32>(cg::this_thread_block());"
    "x[0] = cg::reduce(t, x[1], cg::plus<float>());",
    "cuda_runtime.h": "x[0] = __ldg(x + 1);",
    "device_launch_parameters.h": "x[threadIdx.x] = 1;",
    "cuda_fp16.h": "x[0] = __half2float(__float2half(x[1]));",
    "cuda_bf16.h": "x[0] = __bfloat162float(__float2bfloat16(x[1]));",
    "cuda_pipeline.h": "__shared__ float s[64]; __pipeline_memcpy_async(s + threadIdx.x, x + threadIdx.x, 4); "
    "__pipeline_commit(); __pipeline_wait_prior(0); x[0] = s[threadIdx.x];",
    "mma.h": "nvcuda::wmma::fragment<nvcuda::wmma::accumulator, 16, 16, 16, float> c; "
    "nvcuda::wmma::fill_fragment(c, 0.f); nvcuda::wmma::store_matrix_sync(x, c, 16, nvcuda::wmma::mem_row_major);",
    "math_constants.h": "x[0] = CUDART_INF_F;",
    "cmath": "x[0] = std::sqrt(x[1]) + sqrtf(x[2]) + INFINITY + float(M_PI);",
    "math.h": "x[0] = fmaxf(x[1], -INFINITY); if (isnan(x[0])) x[0] = NAN;",
    "cstdint": "std::uint32_t a = 1; uint64_t b = UINT32_MAX; x[0] = a + b;",
    "stdint.h": "int8_t a = 1; x[0] = a;",
    "cfloat": "x[0] = -FLT_MAX + FLT_EPSILON;",
    "climits": "x[0] = INT_MAX;",
    "cstdio": 'printf("%f", x[0]);',
    "cassert": "assert(x[0] > 0);",
    "cstring": "memcpy(x, x + 32, 64);",
    "type_traits": "static_assert(std::is_same<int, std::remove_cv_t<const int>>::value && std::is_integral_v<int>);",
    "utility": "std::swap(x[0], x[1]); x[2] = std::move(x[3]);",
    "algorithm": "x[0] = std::max(std::min(x[1], x[2]), 1.0f);",
    "limits": "x[0] = std::numeric_limits<float>::infinity() + std::numeric_limits<int>::max();",
}


@pytest.mark.parametrize("header", HEADERS)
def test_headers_that_models_write_work(header: str) -> None:
    binary = build(f"#include <{header}>\n__global__ void k(float* x) {{ {HEADERS[header]} }}")
    assert (binary.status, binary.message) == (Status.OK, "")


def test_the_rest_of_the_library_comes_from_libcu() -> None:
    binary = build(
        "#include <tuple>\n__global__ void k(float* x) { std::tuple<int, float> t(1, x[1]); x[0] = std::get<1>(t); }"
    )
    installation = nvrtc.find()
    assert installation is not None
    assert binary.status is (Status.OK if installation.whole else Status.COMPILE_ERROR)


def test_a_compile_that_does_not_end_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    loops = "#pragma unroll\nfor (int i = 0; i < 30000; ++i)"
    source = f"__global__ void k(float* x) {{\n{loops} x[i] = sinf(x[i + 1]) * x[i];\n}}"
    monkeypatch.setattr(nvrtc, "TIMEOUT_S", 0.02)
    binary = build(source)
    assert binary.status is Status.TIMEOUT
    assert "unroll less" in binary.message
    monkeypatch.undo()
    assert build(KERNEL).status is Status.OK


def test_a_time_out_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvrtc, "TIMEOUT_S", 0)
    assert build(KERNEL + "// late").status is Status.TIMEOUT
    monkeypatch.undo()
    assert build(KERNEL + "// late").status is Status.OK


# --- what is kept on disk --------------------------------------------------------------------------------------------


def test_what_compiled_or_did_not_comes_from_disk_the_second_time() -> None:
    for source in (KERNEL + "// kept", KERNEL.replace("float* x", "flaot* x")):
        first, second = build(source), build(source)
        assert first.seconds > 0
        assert second.seconds == 0
        assert (second.status, second.image, second.message) == (first.status, first.image, first.message)


def test_another_process_finds_it_without_starting_the_compiler(tmp_path: Path) -> None:
    text = (
        "from evaluators import nvrtc\n"
        "from evaluators.nvrtc import process as nvrtc_process\n"
        "from evo.records import CompileRequest\n"
        f"binary = nvrtc.compile(CompileRequest({KERNEL!r}, ('k',), {{}}, (), 'sm_90'), True)\n"
        "print(binary.status, binary.resources['k'].registers, nvrtc_process.pool(nvrtc.find())._children)\n"
    )
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    done = [
        subprocess.run([sys.executable, "-c", text], env=environment, capture_output=True, text=True, timeout=60)
        for _ in range(2)
    ]
    assert "Child" in done[0].stdout, done[0].stderr
    assert done[1].stdout.split() == [*done[0].stdout.split()[:2], "set()"]
    assert {path.stat().st_mode & 0o077 for path in (tmp_path / "kernel-evo" / "nvrtc").iterdir()} == {0}


def toolkit(folder: Path, library: bytes, header: bytes) -> nvrtc.Installation:
    for name, content in (("lib/libnvrtc.so.13", library), ("include/cuda_fp16.h", b""), ("include/cuda.h", header)):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return nvrtc.Installation(folder / "lib" / "libnvrtc.so.13", (folder / "include",), False)


def test_a_result_belongs_to_the_content_of_library_and_headers_wherever_they_lie(tmp_path: Path) -> None:
    first = toolkit(tmp_path / "a", b"library", b"header")
    request = CompileRequest(KERNEL, ("k",), {}, (), "sm_90")

    def key(installation: nvrtc.Installation) -> str:
        return stored.key(request, nvrtc._options(request, True, installation), True, installation)

    assert key(toolkit(tmp_path / "b", b"library", b"header")) == key(first)
    assert key(toolkit(tmp_path / "c", b"Library", b"header")) != key(first)
    assert key(toolkit(tmp_path / "d", b"library", b"Header")) != key(first)


def test_a_library_that_was_replaced_is_read_again(tmp_path: Path) -> None:
    first = stored.identity(toolkit(tmp_path, b"library", b"header"))
    second = toolkit(tmp_path, b"another library", b"header")
    assert stored.identity(second) == first  # this process holds the old one still
    stored.identity.cache_clear()
    assert stored.identity(second) != first


# --- the children ----------------------------------------------------------------------------------------------------


def children() -> nvrtc_process.Pool:
    installation = nvrtc.find()
    assert installation is not None
    return nvrtc_process.pool(installation)


def test_a_child_that_died_is_replaced() -> None:
    with children().child() as child:
        child.describe()
        assert child.pid is not None
        os.killpg(child.pid, signal.SIGKILL)
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert build(KERNEL + "// after a death").status is Status.OK


def test_callers_at_once_get_a_child_each_up_to_the_number_of_cores() -> None:
    cores = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, sorted(cores)[:2])
        most = len(os.sched_getaffinity(0))
        with ThreadPoolExecutor(4) as threads:
            sources = [KERNEL + f"// at once {number}" for number in range(8)]
            assert [binary.status for binary in threads.map(build, sources)] == [Status.OK] * 8
        assert 1 <= len(children()._children) <= most
        lent = [children().child() for _ in range(most)]
        held = {lender.__enter__() for lender in lent}
        assert len(held) == most
        waiting = threading.Thread(target=build, args=(KERNEL + "// one too many",))
        waiting.start()
        for lender in lent:
            lender.__exit__(None, None, None)
        waiting.join(60)
        assert not waiting.is_alive()
    finally:
        os.sched_setaffinity(0, cores)


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two cores")
def test_a_child_keeps_to_the_cores_of_who_asks() -> None:
    build(KERNEL + "// on every core")
    cores = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(cores)})
        with children().child() as child:
            child.describe()
            assert child.pid is not None
            assert os.sched_getaffinity(child.pid) == {min(cores)}
    finally:
        os.sched_setaffinity(0, cores)


AT_ONCE = f"""
import os, signal, sys
from concurrent.futures import ThreadPoolExecutor
from evaluators import nvrtc
from evaluators.nvrtc import process as nvrtc_process
from evo.records import CompileRequest

def build(number):
    return nvrtc.compile(CompileRequest({KERNEL!r} + f"//{{number}}", ("k",), {{}}, (), "sm_90"), True).status

threads = ThreadPoolExecutor(2)
print(*threads.map(build, range(4)))
print(*(child.pid for child in nvrtc_process.pool(nvrtc.find())._children), flush=True)
if sys.argv[1] == "killed":
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("how", ["at its end", "killed"])
def test_no_files_and_no_processes_are_left_behind(tmp_path: Path, how: str) -> None:
    home, cache = tmp_path / "home", tmp_path / "cache"
    home.mkdir()
    environment = {**os.environ, "TMPDIR": str(home), "HOME": str(home), "XDG_CACHE_HOME": str(cache)}
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "-c", AT_ONCE, how],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    statuses, pids = done.stdout.splitlines()
    assert statuses == "ok ok ok ok"
    assert done.stderr == ""
    assert list(home.iterdir()) == []
    assert pids
    assert all(ends(int(pid)) for pid in pids.split())


# --- the log ---------------------------------------------------------------------------------------------------------


def test_the_log_of_ptxas_becomes_records() -> None:
    log = (
        "ptxas info    : Compiling entry function '_Z1av' for 'sm_90'\n"
        "ptxas info    : Function properties for _Z1av\n"
        "ptxas         .     256 bytes stack frame, 12 bytes spill stores, 8 bytes spill loads\n"
        "ptxas info    : Used 80 registers, used 0 barriers, 256 bytes cumulative stack size\n"
        "ptxas info    : Compiling entry function 'b' for 'sm_90'\n"
        "ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
        "ptxas info    : Used 12 registers, used 1 barriers, 400 bytes smem, 380 bytes cmem[0]\n"
    )
    assert resources(log, {"a": "_Z1av", "b": "b", "c": "c"}) == {
        "a": Resources(80, 20, 0, 256),
        "b": Resources(12, 0, 400, 0),
    }


def test_folders_are_taken_out_of_messages() -> None:
    log = (
        "/home/somebody/venv/include/cuda_fp16.hpp(12): error: no\n      static_assert(x);\n"
        '          detected during instantiation of "f" at line 7 of kernel.cu\n\n'
        '1 error detected in the compilation of "kernel.cu".\n'
    )
    message = explain(log, "kernel.cu")
    assert message.startswith("cuda_fp16.hpp(12): error: no")
    assert message.endswith("at line 7")
