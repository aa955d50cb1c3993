"""The host device compiles CUDA sources, runs them on jobs, and says in words what is wrong with them."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from evaluators.host import HostDevice
from evo.errors import DeviceError
from evo.records import Binary, CompileRequest, Launch, LaunchPlan, Scalar, Status
from tests.support.corpus import Ran, run

ADD = """
extern "C" __global__ void add(const float* a, const float* b, float* c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] + b[i];
}
"""


def one(kernel: str, *args: str | int, grid: int = 1, block: int = 32, shared: int = 0) -> list[Launch]:
    return [Launch(kernel, (grid, 1, 1), (block, 1, 1), shared, args)]


def floats(count: int) -> np.ndarray:
    return np.arange(count, dtype=np.float32)


def build(source: str, *kernels: str, flavour: str = "plain", **defines: int) -> Binary:
    return HostDevice().compile(CompileRequest(source, kernels, defines, (), "", flavour))


def run_on_y(body: str, folder: Path, *, n: int = 32, flavour: str = "plain", before: str = "", **job: object) -> Ran:
    """Run a kernel `k(float* y, int n)` with the given body on one block of 32 threads."""
    source = f'{before}\nextern "C" __global__ void k(float* y, int n) {{ int t = threadIdx.x; {body} }}'
    return run(source, one("k", "y", n), {"y": floats(n)}, {"y": "out"}, folder, flavour, **job)


# --- compiling -------------------------------------------------------------------------------------------------------


def test_the_device_describes_the_processor() -> None:
    device = HostDevice().describe()
    assert device.kind == "host"
    assert device.fingerprint.startswith(f"host {device.name} ")
    assert device.l2_bytes >= 1 << 16


def test_a_missing_compiler_is_said_with_the_way_to_get_it() -> None:
    with pytest.raises(DeviceError, match=r"needs no-such-g\+\+.*apt install g\+\+"):
        HostDevice(compiler="no-such-g++").describe()


def test_a_second_build_comes_from_the_cache() -> None:
    first, second = build(ADD, "add"), build(ADD, "add")
    assert first.status is Status.OK
    assert second.seconds == 0.0
    assert (first.key, first.image) == (second.key, second.image)


def test_defines_and_flavours_make_other_programs() -> None:
    keys = {build(ADD, "add").key, build(ADD, "add", BX=4).key, build(ADD, "add", flavour="check").key}
    assert len(keys) == 3


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ('extern "C" __global__ void k(float* y) {\n    y[0] = nothing;\n}', "line 2: 'nothing' was not declared"),
        ('extern "C" __global__ void k(float* y) {\n\n    y[0] = 1.0f\n}', "line 3: expected ';'"),
        ("__global__ void other(float* y) {}", "names the kernel k, which the source does not define"),
        ('extern "C" __global__ int k(float* y) { return 1; }', "names a kernel that cannot be launched"),
        ("__global__ void k(float* y) {\n    __shared__ int s = 3;\n}", "line 2: a __shared__ variable cannot have"),
        (
            "__global__ void k(float* y) { __shared__ double s[9000]; s[int(y[1])] = 1; __syncthreads(); y[0] = s[1];}",
            "72000 bytes of static shared",
        ),
        (
            "__device__ float f(float);\n__global__ void k(float* y) { y[0] = f(1); }",
            "_ZN9cuda_user1fEf` is used, but nowhere defined",
        ),
    ],
)
def test_a_compile_error_names_the_candidates_own_line(source: str, words: str) -> None:
    binary = build(source, "k")
    assert binary.status is Status.COMPILE_ERROR
    assert words in binary.message
    assert "cuda_host" not in binary.message
    assert "unit.cpp" not in binary.message
    assert binary.image == b""


UNSUPPORTED = {
    'asm volatile("membar.gl;");': "inline PTX",
    "cub::Sum s;": "CUB, Thrust and CUTLASS",
    "y[0] = tex1Dfetch<float>(t, 0);": "textures and surfaces",
    "k<<<1, 1>>>(y);": "dynamic parallelism",
    "cooperative_groups::this_grid().sync();": "grid-wide synchronisation",
    "auto c = cooperative_groups::this_cluster();": "thread-block clusters",
    "__pipeline_memcpy_async(y, y, 4);": "asynchronous copies",
    "cuda::atomic_ref<float> r(*y);": "libcu++",
    "__nv_fp8_e4m3 q;": "fp8",
    "float* p = (float*)malloc(4);": "allocating memory on the device",
    "float* p = new float[4];": "allocating memory on the device",
    "cudaDeviceSynchronize();": "CUDA's host interface",
}


@pytest.mark.parametrize("statement", UNSUPPORTED)
def test_what_cannot_run_is_unsupported_with_its_line(statement: str) -> None:
    source = f"#include <cooperative_groups.h>\n__global__ void k(float* y) {{\n    {statement}\n}}"
    binary = build(source, "k")
    assert binary.status is Status.UNSUPPORTED, binary.message
    assert UNSUPPORTED[statement] in binary.message
    assert "line 3" in binary.message


@pytest.mark.parametrize(
    ("statement", "status", "words"),
    [
        ("y[0] = __vadd4(1, 2);", Status.UNSUPPORTED, "line 1: the host device does not know __vadd4"),
        ("__synchthreads();", Status.COMPILE_ERROR, "line 1: '__synchthreads' was not declared"),
        (
            "nvcuda::wmma::fragment<nvcuda::wmma::accumulator, 8, 8, 4, double> f; f.x[0] = 1;",
            Status.UNSUPPORTED,
            "line 1: the host device has no support for wmma shapes beyond",
        ),
    ],
)
def test_an_intrinsic_that_is_missing_here_is_told_from_a_misspelt_one(
    statement: str, status: Status, words: str
) -> None:
    binary = build(f"__global__ void k(float* y) {{ {statement} }}", "k")
    assert (binary.status, words in binary.message) == (status, True), binary.message


def test_words_in_comments_and_strings_are_no_code() -> None:
    source = '// asm("x") new float malloc(1) <<<\n/* cub::x */ __global__ void k(float* y) { printf("asm(<<<"); }'
    assert build(source, "k").status is Status.OK


def test_an_unknown_header_is_unsupported() -> None:
    binary = build("#include <cuda_fp8.h>\n" + ADD, "add")
    assert binary.status is Status.UNSUPPORTED
    assert "line 1: the host device has no support for the header <cuda_fp8.h>" in binary.message


def test_a_host_trick_in_the_text_is_refused_before_anything_is_compiled() -> None:
    binary = build('#include "/etc/hostname"\n' + ADD, "add")
    assert binary.status is Status.UNSAFE
    assert "line 1" in binary.message


def test_an_unknown_compiler_option_is_unsupported_and_those_for_a_gpu_are_ignored() -> None:
    request = CompileRequest(ADD, ("add",), {}, ("--use_fast_math", "-maxrregcount=32", "--fmad=false"), "")
    assert HostDevice().compile(request).status is Status.OK
    binary = HostDevice().compile(dataclasses.replace(request, options=("-fplugin=x.so",)))
    assert binary.status is Status.UNSUPPORTED
    assert "-fplugin=x.so" in binary.message


def test_static_shared_memory_is_counted_per_kernel() -> None:
    source = """
__global__ void a(int* y) { __shared__ int s[10]; s[threadIdx.x] = y[0]; __syncthreads(); y[1] = s[2]; }
template <int N, int M>
__global__ void b(int* y) { __shared__ char s[N]; s[threadIdx.x] = y[0]; __syncthreads(); y[1] = s[M]; }
"""
    resources = build(source, "a", "b<7, 2>").resources
    assert resources["a"].static_shared_bytes == 40
    assert resources["b<7, 2>"].static_shared_bytes == 7


# --- launching -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("launch", "words"),
    [
        (Launch("add", (1, 1, 1), (1025, 1, 1), 0, ("a", "b", "c", 8)), "has 1025 threads; allowed are 1 to 1024"),
        (Launch("add", (1, 1, 1), (0, 1, 1), 0, ("a", "b", "c", 8)), "has 0 threads"),
        (Launch("add", (1, 1, 1), (1, 1, 65), 0, ("a", "b", "c", 8)), "at most 64 in z"),
        (Launch("add", (1, 65536, 1), (1, 1, 1), 0, ("a", "b", "c", 8)), "1 to 65535 in y and z"),
        (Launch("add", (-1, 1, 1), (1, 1, 1), 0, ("a", "b", "c", 8)), "grid (-1, 1, 1) is not possible"),
        (Launch("add", (1, 1, 1), (1, 1, 1), 1 << 20, ("a", "b", "c", 8)), "1048576 bytes of dynamic and 0 of static"),
        (Launch("add", (1, 1, 1), (1, 1, 1), 0, ("a", "b", "c")), "takes 4 arguments, and the launch passes 3"),
        (
            Launch("add", (1, 1, 1), (1, 1, 1), 0, ("a", "b", "c", "a")),
            "passes the buffer a, and the kernel takes no pointer",
        ),
        (
            Launch("add", (1, 1, 1), (1, 1, 1), 0, ("a", "b", 3, 8)),
            "passes the 4-byte integer #3, and the kernel takes a pointer",
        ),
        (Launch("add", (1, 1, 1), (1, 1, 1), 0, ("a", "b", "c", "x")), "passes the 8-byte floating-point number x"),
    ],
)
def test_an_impossible_launch_says_the_limit_and_what_was_found(launch: Launch, words: str, tmp_path: Path) -> None:
    arrays = {name: floats(8) for name in "abc"}
    directions = {"a": "in", "b": "in", "c": "out"}
    ran = run(ADD, [launch], arrays, directions, tmp_path, scalars=[Scalar("x", "float64", 1.0)])
    assert ran.result.status is Status.BAD_LAUNCH
    assert words in ran.result.message


def test_scalars_arrive_as_the_kernel_declares_them(tmp_path: Path) -> None:
    source = (
        "__global__ void k(double* y, int a, long long b, float c, double d, unsigned char e, bool f) {\n"
        "    y[0] = a; y[1] = b; y[2] = c; y[3] = d; y[4] = e; y[5] = f;\n}"
    )
    scalars = [
        Scalar("b", "int64", 1 << 40),
        Scalar("c", "float32", 0.5),
        Scalar("d", "float64", 1e-300),
        Scalar("e", "uint8", 200),
        Scalar("f", "bool", 1),
    ]
    launch = one("k", "y", -3, "b", "c", "d", "e", "f", block=1)
    ran = run(source, launch, {"y": np.zeros(6)}, {"y": "out"}, tmp_path, scalars=scalars)
    assert ran.outputs["y"].tolist() == [-3, 1 << 40, 0.5, 1e-300, 200, 1]


def test_clusters_are_unsupported(tmp_path: Path) -> None:
    binary = build(ADD, "add")
    (tmp_path / "program").write_bytes(binary.image)
    from evo.records import Job

    plan = LaunchPlan(tuple(one("add", "a")), cluster=(2, 1, 1))
    assert HostDevice().run(Job(str(tmp_path), "program", plan, (), ())).status is Status.UNSUPPORTED


# --- memory ----------------------------------------------------------------------------------------------------------


def test_an_output_arrives_poisoned_with_nan_and_inputs_come_back_as_they_were(tmp_path: Path) -> None:
    arrays = {"x": floats(7), "y": np.zeros(5, np.float32), "h": np.zeros(5, np.float16), "d": np.zeros(5)}
    directions = {"x": "in", "y": "out", "h": "out", "d": "out"}
    source = "__global__ void k(const float* x) {}"
    ran = run(source, one("k", "x"), arrays, directions, tmp_path, seed=5)
    assert np.array_equal(ran.outputs["x"], arrays["x"])
    for name in "yhd":
        assert np.isnan(ran.outputs[name]).all()


def test_declared_zeroing_happens_before_the_first_launch(tmp_path: Path) -> None:
    source = "__global__ void k(int* y) { atomicAdd(y, 1); }"
    for flavour in ("plain", "check"):
        ran = run(source, one("k", "y"), {"y": np.zeros(3, np.int32)}, {"y": "out"}, tmp_path, flavour, zero=["y"])
        assert ran.outputs["y"].tolist() == [32, 0, 0]


@pytest.mark.parametrize("flavour", ["plain", "check"])
def test_a_write_to_an_input_is_unsafe_with_its_place(flavour: str, tmp_path: Path) -> None:
    source = "__global__ void k(float* x, float* y) {\n    y[threadIdx.x] = x[threadIdx.x];\n    x[5] = 1.0f;\n}"
    ran = run(
        source, one("k", "x", "y"), {"x": floats(32), "y": floats(32)}, {"x": "in", "y": "out"}, tmp_path, flavour
    )
    assert ran.result.status is Status.UNSAFE
    assert (
        "line 3: an input is written: block (0,0,0), thread (0,0,0) writes the input x at byte 20" in ran.result.message
    )


@pytest.mark.parametrize("index", [64, 65, 1000, 4_000_000, -64_000])
def test_the_plain_flavour_stops_at_the_pages_around_a_buffer(index: int, tmp_path: Path) -> None:
    ran = run_on_y(f"if (t == 3) y[{index}] = 1.0f;", tmp_path, n=64)
    assert ran.result.status is Status.UNSAFE
    assert f"thread (3,0,0) writes byte {4 * index} of y, which has 256 bytes" in ran.result.message
    assert "line 2" in ran.result.message


def test_the_plain_flavour_sees_a_write_into_the_slack_behind_a_buffer(tmp_path: Path) -> None:
    ran = run_on_y("if (t == 0) y[33] = 1.0f;", tmp_path, n=33)
    assert ran.result.status is Status.UNSAFE
    assert "of y, which has 132 bytes" in ran.result.message


def test_a_null_pointer_is_no_buffers_address(tmp_path: Path) -> None:
    ran = run_on_y("*(volatile float*)0 = 1.0f;", tmp_path)
    assert ran.result.status is Status.UNSAFE
    assert "which is no buffer's" in ran.result.message


@pytest.mark.parametrize("align", [4, 16, 64, 256])
def test_pointers_are_aligned_as_promised_and_when_asked_no_better(align: int, tmp_path: Path) -> None:
    source = "__global__ void k(const float* x, unsigned long long* y) { y[0] = (unsigned long long)x; }"
    arrays = {"x": floats(37), "y": np.zeros(1, np.uint64)}
    for tight in (False, True):
        ran = run(source, one("k", "x", "y"), arrays, {"x": "in", "y": "out"}, tmp_path, align=align, tight_align=tight)
        address = int(ran.outputs["y"][0])
        assert address % align == 0
        assert not tight or address % (2 * align) == align


def test_shared_memory_of_either_kind_is_separate_from_buffers(tmp_path: Path) -> None:
    source = (
        "extern __shared__ double all[];\n"
        "__global__ void k(float* y) {\n    extern __shared__ double all[];\n    __shared__ float s[32];\n"
        "    int t = threadIdx.x; all[t] = t; s[t] = 2 * t; __syncthreads();\n    y[t] = all[31 - t] + s[31 - t];\n}"
    )
    ran = run(source, one("k", "y", shared=256), {"y": floats(32)}, {"y": "out"}, tmp_path)
    assert np.array_equal(ran.outputs["y"], 3 * floats(32)[::-1])


# --- ends ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("flavour", ["plain", "check"])
def test_an_endless_loop_times_out_and_says_where(flavour: str, tmp_path: Path) -> None:
    source = "__global__ void k(volatile float* y) {\n    while (y[0] == y[0]) {\n    }\n}"
    ran = run(source, one("k", "y"), {"y": floats(4)}, {"y": "inout"}, tmp_path, flavour, timeout_s=0.2)
    assert ran.result.status is Status.TIMEOUT
    assert "line 2" in ran.result.message
    assert "block (0,0,0), thread (0,0,0) was still running after 200 ms" in ran.result.message


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("int d = n - 32; y[t] = 100 / d;", "divides an integer by zero"),
        ("if (t == 7) __trap();", "__trap() fails in block (0,0,0), thread (7,0,0)"),
        ("assert(t < 9);", "assert(t < 9) fails in block (0,0,0), thread (9,0,0)"),
    ],
)
def test_other_ends_are_crashes(body: str, words: str, tmp_path: Path) -> None:
    ran = run_on_y(body, tmp_path)
    assert ran.result.status is Status.CRASH
    assert words in ran.result.message


def test_a_deadlock_ends_at_once_and_names_who_waits_where(tmp_path: Path) -> None:
    ran = run_on_y("if (t < 16) __syncwarp(); else __syncthreads();", tmp_path, timeout_s=20.0)
    assert ran.result.status is Status.UNSAFE
    assert "can never go on" in ran.result.message
    assert "16 threads wait at __syncthreads() line 2" in ran.result.message
    assert "mask 0xffffffff, arrived 0x0000ffff" in ran.result.message


def test_a_launch_after_an_abandoned_one_starts_afresh(tmp_path: Path) -> None:
    assert run_on_y("if (t == 0) __syncwarp(); else __syncthreads();", tmp_path).result.status is Status.UNSAFE
    assert run_on_y("y[t] = t;", tmp_path).result.status is Status.OK


# --- timing ----------------------------------------------------------------------------------------------------------

COUNTER = """
__device__ int runs = 0;
__device__ int table[3] = {1, 2, 3};
__global__ void k(float* y, int* seen) {
    seen[0] = ++runs; seen[1] = table[1]++; y[0] += 1.0f;
}
"""


def test_each_timed_run_starts_from_the_same_state_and_is_clocked_twice(tmp_path: Path) -> None:
    arrays = {"y": floats(4), "seen": np.zeros(2, np.int32)}
    directions = {"y": "inout", "seen": "out"}
    launch = one("k", "y", "seen", block=1)
    ran = run(COUNTER, launch, arrays, directions, tmp_path, warmup=2, samples=7, flush_bytes=1 << 16, core=0)
    assert ran.result.status is Status.OK
    assert len(ran.result.samples_us) == len(ran.result.wall_us) == 7
    assert all(0 < inside <= outside for inside, outside in zip(ran.result.samples_us, ran.result.wall_us, strict=True))
    assert ran.outputs["seen"].tolist() == [1, 2]
    assert ran.outputs["y"].tolist() == [1.0, 1.0, 2.0, 3.0]


def test_a_fault_in_a_timed_run_is_told_like_any_other(tmp_path: Path) -> None:
    ran = run_on_y("y[n * 4096] = 1.0f;", tmp_path, samples=3)
    assert ran.result.status is Status.UNSAFE
    assert ran.result.samples_us == ()


@pytest.mark.parametrize("seed", [0, 1, 7, 123456789])
def test_every_block_runs_once_in_whatever_order(seed: int, tmp_path: Path) -> None:
    index = "blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z)"
    source = f"__global__ void k(int* y) {{ atomicAdd(&y[{index}], 1); }}"
    launch = [Launch("k", (7, 3, 2), (5, 2, 1), 0, ("y",))]
    ran = run(source, launch, {"y": np.zeros(42, np.int32)}, {"y": "inout"}, tmp_path, seed=seed)
    assert ran.outputs["y"].tolist() == [10] * 42


# --- what a kernel may call ------------------------------------------------------------------------------------------

INTEGERS = {
    "__popc(0xff0u)": 8,
    "__popcll(~0ull)": 64,
    "__clz(1)": 31,
    "__clz(0)": 32,
    "__clzll(1ll)": 63,
    "__ffs(8)": 4,
    "__ffs(0)": 0,
    "(int)(__brev(1u) >> 31)": 1,
    "(int)__byte_perm(0x33221100u, 0x77665544u, 0x0004u)": 0x00000044,
    "(int)__funnelshift_l(0x80000000u, 1u, 1)": 3,
    "(int)__funnelshift_r(2u, 1u, 1)": -(1 << 31) + 1,
    "__mulhi(1 << 30, 8)": 2,
    "(int)__umulhi(1u << 31, 4u)": 2,
    "__dp4a(0x01020304, 0x01010101, 5)": 15,
    "__dp4a((int)0xff000000, 0x01000000, 0)": -1,
    "__float2int_rn(2.5f)": 2,
    "__float2int_rz(-2.7f)": -2,
    "__float2int_ru(2.1f)": 3,
    "__float2int_rd(-2.1f)": -3,
    "__float2int_rz(1e20f)": 2147483647,
    "__float2int_rz(-1e20f)": -2147483648,
    "__float2int_rn(__int_as_float(0x7fc00000))": 0,
    "__float_as_int(1.0f)": 0x3F800000,
    "min(3, -4)": -4,
    "(int)max(3u, 4u)": 4,
    "(int)__saturatef(-3.0f)": 0,
    "(int)(4.0f * rsqrtf(4.0f))": 2,
    "(int)sizeof(float4) + (int)alignof(float4) + (int)sizeof(float3)": 44,
    "(int)dim3(3, 4).z": 1,
    "(int)make_int4(1, 2, 3, 4).w": 4,
    "(int)fminf(1.0f, __int_as_float(0x7fc00000))": 1,
}


def test_integer_and_bit_intrinsics_give_what_cuda_says(tmp_path: Path) -> None:
    rows = "".join(f"    y[{row}] = {expression};\n" for row, expression in enumerate(INTEGERS))
    source = f"__global__ void k(int* y) {{\n{rows}}}"
    for flavour in ("plain", "check"):
        y = np.zeros(len(INTEGERS), np.int32)
        ran = run(source, one("k", "y", block=1), {"y": y}, {"y": "out"}, tmp_path, flavour)
        assert dict(zip(INTEGERS, ran.outputs["y"].tolist(), strict=True)) == INTEGERS


def test_half_precision_rounds_as_numpy_does(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    special = [0.0, -0.0, 65504, 65519, 65520, 1e9, -1e9, 6e-8, 2.98e-8, 2.99e-8, 6.1e-5, np.inf, -np.inf, np.nan]
    x = np.array([*special, *(rng.standard_normal(498) * 10.0 ** rng.uniform(-9, 6, 498))], np.float32)
    source = """
#include <cuda_fp16.h>
#include <cuda_bf16.h>
__global__ void k(const float* x, half* h, float* back, float* b) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    h[i] = __float2half(x[i]);
    back[i] = __half2float(h[i]);
    b[i] = __bfloat162float(__float2bfloat16(x[i]));
}
"""
    arrays = {"x": x, "h": np.zeros(512, np.float16), "back": x, "b": x}
    directions = {"x": "in", "h": "out", "back": "out", "b": "out"}
    ran = run(source, one("k", "x", "h", "back", "b", grid=4, block=128), arrays, directions, tmp_path)
    with np.errstate(over="ignore"):
        want = x.astype(np.float16)
    assert np.array_equal(ran.outputs["h"], want, equal_nan=True)
    assert np.array_equal(ran.outputs["back"], want.astype(np.float32), equal_nan=True)
    finite = np.isfinite(x) & (np.abs(x) > 1e-30)
    assert np.abs(ran.outputs["b"][finite] / x[finite] - 1).max() <= 2.0**-8


def test_integer_wmma_is_exact(tmp_path: Path) -> None:
    source = """
#include <mma.h>
using namespace nvcuda::wmma;
__global__ void k(const signed char* A, int* C) {
    fragment<matrix_a, 16, 16, 16, signed char, row_major> a;
    fragment<matrix_b, 16, 16, 16, signed char, col_major> b;
    fragment<accumulator, 16, 16, 16, int> c;
    fill_fragment(c, 100000001);
    load_matrix_sync(a, A, 16);
    load_matrix_sync(b, A, 16);
    mma_sync(c, a, b, c);
    store_matrix_sync(C, c, 16, mem_row_major);
}
"""
    matrix = np.random.default_rng(0).integers(-128, 128, (16, 16)).astype(np.int8)
    arrays = {"A": matrix.ravel(), "C": np.zeros(256, np.int32)}
    ran = run(source, one("k", "A", "C"), arrays, {"A": "in", "C": "out"}, tmp_path)
    want = matrix.astype(np.int32) @ matrix.T.astype(np.int32) + 100000001
    assert np.array_equal(ran.outputs["C"].reshape(16, 16), want)
