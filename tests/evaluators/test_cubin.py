"""What a CUBIN holds: every variable that outlives a launch is seen, and damage raises one error only."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluators import nvrtc
from evaluators.inspection import cubin
from evaluators.nvrtc import stored
from evo.records import CompileRequest, Status

pytestmark = pytest.mark.skipif(not nvrtc.available(), reason="NVRTC is not installed (extra `nvrtc`)")

KERNEL = 'extern "C" __global__ void k(int* x) '
ARCHS = ("sm_80", "sm_90a", "sm_100a")

VARIABLES = [
    ("__device__ int one;", "x[0] = one++;", {"one": 4}),
    ("__device__ int one = 7;", "x[0] = one++;", {"one": 4}),
    ("__device__ int one;", "x[0] = 1;", {"one": 4}),
    ("__device__ double one[100];", "x[0] = int(one[x[1]]++);", {"one": 800}),
    ("static __device__ int one;", "x[0] = one++;", {"one": 4}),
    ("namespace { __device__ int one; } __device__ int two;", "x[0] = one++;", {"two": 4, "oneE": 4}),
    ("namespace n { __device__ int one = 3; }", "x[0] = n::one++;", {"_ZN1n3oneE": 4}),
    ("template <int N> __device__ int one = N;", "x[0] = one<3>++ + one<4>++;", {"_Z3oneILi3EE": 4, "_Z3oneILi4EE": 4}),
    ("inline __device__ int one;", "x[0] = one++;", {"one": 4}),
    ("__device__ __attribute__((weak)) int one;", "x[0] = one++;", {"one": 4}),
    ("extern __device__ int one;", "x[0] = one++;", {"one": 4}),
    ("", "static int one; x[0] = one++;", {"_ZZ1kE3one": 4}),
    ("", "static __device__ int one = 5; x[0] = one++;", {"_ZZ1kE3one": 4}),
    ("", 'asm volatile("{ .global .u32 one; atom.global.add.u32 %0, [one], 1; }" : "=r"(x[0]));', {"one": 4}),
    ("const __device__ int one[2] = {1, 2};", "x[0] = one[x[1]];", {"one": 8}),
    ("", 'const char* one = "one"; x[0] = one[x[1]];', {"$str": 4}),
    ("", 'x[0] = printf("%d", x[1]);', {"$str": 3}),
]


@pytest.fixture(scope="module", autouse=True)
def _results_of_these_tests_alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stored, "_folder", lambda: folder)
        yield


def image(source: str, kernels: tuple[str, ...] = ("k",), arch: str = "sm_90a") -> bytes:
    binary = nvrtc.compile(CompileRequest(source, kernels, {}, (), arch), cubin=True)
    assert (binary.status, binary.message) == (Status.OK, "")
    return binary.image


def contents(before: str, body: str, arch: str = "sm_90a") -> cubin.Contents:
    return cubin.read(image(f"{before}\n{KERNEL}{{ {body} }}", arch=arch))


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize(("before", "body", "expected"), VARIABLES)
def test_every_variable_is_seen(before: str, body: str, expected: dict[str, int], arch: str) -> None:
    found = contents(before, body, arch)
    assert len(found.variables) == len(expected)
    for name, size in expected.items():
        (variable,) = [variable for variable in found.variables if name in variable.name]
        assert (variable.size, variable.managed) == (size, False)
        assert variable.section in found.sections
    assert sum(found.sections.values()) == sum(expected.values())
    assert found.constants == {}


@pytest.mark.parametrize("arch", ARCHS)
def test_each_instance_of_a_template_has_its_own_static(arch: str) -> None:
    source = "template <int N> __global__ void t(int* x) { static __device__ int s = N; x[0] = s++; }"
    found = cubin.read(image(source, ("t<4>", "t<5>"), arch))
    assert {variable.name for variable in found.variables} == {"_ZZ1tILi4EEvPiE1s", "_ZZ1tILi5EEvPiE1s"}


def test_a_name_in_inlined_assembly_never_stands_for_two_variables() -> None:
    body = 'asm volatile("{ .global .u32 one; atom.global.add.u32 %0, [one], 1; }" : "=r"(x[i]));'
    found = contents("", f'_Pragma("unroll") for (int i = 0; i < 3; ++i) {{ {body} }} int i = x[0]; {body}')
    assert len(found.variables) == 4
    assert found.sections == {".nv.global": 16}


@pytest.mark.parametrize("arch", ARCHS)
def test_sections_hold_more_than_their_variables_where_these_are_aligned(arch: str) -> None:
    before = "__device__ __align__(256) char one[3]; __device__ double two; __device__ char three = 1;"
    found = contents(before, "x[0] = one[0]++ + two++ + three++;", arch)
    assert found.variables == (
        cubin.Variable("one", 3, ".nv.global", 0),
        cubin.Variable("two", 8, ".nv.global", 8),
        cubin.Variable("three", 1, ".nv.global.init", 0),
    )
    assert found.sections == {".nv.global": 16, ".nv.global.init": 1}


@pytest.mark.parametrize("arch", ARCHS)
def test_managed_variables_are_marked(arch: str) -> None:
    before = "__managed__ int one; __device__ __managed__ int two = 4; __device__ int three;"
    found = contents(before, "x[0] = one++ + two++ + three++;", arch)
    assert {variable.name: variable.managed for variable in found.variables} == {"one": 1, "two": 1, "three": 0}


@pytest.mark.parametrize("arch", ARCHS)
def test_constants_are_apart(arch: str) -> None:
    found = contents(
        "__constant__ float one[16]; static __constant__ int two = 5; __constant__ char unused;",
        "x[0] = int(one[x[1]]) + two;",
        arch,
    )
    assert found == cubin.Contents((), {}, {"one": 64, "two": 4, "unused": 1}, frozenset())


@pytest.mark.parametrize("arch", ARCHS)
def test_shared_and_local_memory_do_not_outlive_a_launch(arch: str) -> None:
    body = "__shared__ int s[64]; int l[64]; for (int i = 0; i < 64; ++i) l[i] = s[i] = i * x[i]; __syncthreads();"
    found = contents("extern __shared__ int d[];", body + "d[x[0]] = l[x[1]]; x[2] = d[x[3]] + s[x[4]];", arch)
    assert found == cubin.Contents((), {}, {}, frozenset())


CALLS = [
    ("", "*(int**)x = (int*)malloc(x[0]);", {"malloc"}),
    ("", "free(*(int**)x);", {"free"}),
    ("", "*(int**)x = new int[x[0]];", {"malloc"}),
    ("", "delete *(int**)x;", {"free"}),
    ("", 'printf("%d", x[0]);', {"vprintf"}),
    ("#include <cassert>", "assert(x[0] > 3);", {"__assertfail"}),
    ('extern "C" __device__ void* __nv_aligned_device_malloc(size_t, size_t);',
     "*(void**)x = __nv_aligned_device_malloc(64, 256);", {"__cuda_syscall_aligned_malloc"}),
    ('extern "C" __device__ int cnpGetParameterBuffer(int);', "cnpGetParameterBuffer(3);", {"cnpGetParameterBuffer"}),
    ('extern "C" __device__ int cudaGraphLaunch(int);', "cudaGraphLaunch(3);", {"cudaGraphLaunch"}),
    ('extern "C" __device__ int __cuda_syscall_cnpv2LaunchDeviceV2(int);', "__cuda_syscall_cnpv2LaunchDeviceV2(3);",
     {"__cuda_syscall_cnpv2LaunchDeviceV2"}),
    ("__device__ __noinline__ int f(int n) { return n < 2 ? n : f(n - 1) + f(n - 2); }", "x[0] = f(x[1]);", set()),
    ("", "x[0] = int(sin(double(x[1])) / x[2] + pow(x[3], 2.5)); __syncthreads(); __trap();", set()),
]  # fmt: skip


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize(("before", "body", "expected"), CALLS)
def test_what_the_driver_must_provide_is_seen(before: str, body: str, expected: set[str], arch: str) -> None:
    assert contents(before, body, arch).calls == expected


# --- damage ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=ARCHS)
def sample(request: pytest.FixtureRequest) -> bytes:
    before = "__device__ int one = 3; __device__ double two[3]; __constant__ int three;"
    return image(f'{before}\n{KERNEL}{{ x[0] = one++ + two[1]++ + three; printf("%d", x[0]); }}', arch=request.param)


@settings(deadline=None)
@given(share=st.floats(0, 1, exclude_max=True))
def test_an_image_that_was_cut_short_is_no_cubin(sample: bytes, share: float) -> None:
    with pytest.raises(cubin.NotAnObject):
        cubin.read(sample[: int(share * len(sample))])


def test_an_image_without_its_last_byte_is_no_cubin(sample: bytes) -> None:
    with pytest.raises(cubin.NotAnObject, match="program headers lie beyond its end"):
        cubin.read(sample[:-1])


@settings(deadline=None, max_examples=300)
@given(edits=st.lists(st.tuples(st.floats(0, 1), st.binary(min_size=1, max_size=8)), min_size=1, max_size=4))
def test_damage_raises_nothing_else(sample: bytes, edits: list[tuple[float, bytes]]) -> None:
    damaged = bytearray(sample)
    for place, values in edits:
        start = int(place * (len(damaged) - len(values)))
        damaged[start : start + len(values)] = values
    assert_sound(bytes(damaged))


def assert_sound(damaged: bytes) -> None:
    try:
        found = cubin.read(damaged)
    except cubin.NotAnObject:
        return
    assert all(v.offset + v.size <= found.sections[v.section] for v in found.variables)


@settings(deadline=None, max_examples=300)
@given(data=st.data())
def test_damage_to_the_tables_raises_nothing_else(sample: bytes, data: st.DataObject) -> None:
    damaged = bytearray(sample)
    (start,) = struct.unpack_from("<Q", sample, 40)
    (count,) = struct.unpack_from("<H", sample, 60)
    fields = st.integers(start // 4 + 1, (start + 64 * count) // 4 - 2)
    for field in data.draw(st.lists(fields, min_size=1, max_size=3)):
        value = data.draw(st.one_of(st.integers(0, 64), st.integers(0, 2**64 - 1), st.just(2**63)))
        struct.pack_into("<Q", damaged, 4 * field, value)
    assert_sound(bytes(damaged))


@given(st.binary(max_size=200))
def test_other_files_are_no_cubins(content: bytes) -> None:
    with pytest.raises(cubin.NotAnObject):
        cubin.read(content)


def edited(sample: bytes, name: str, field: int, layout: str, value: int) -> bytes:
    """Change one field of a symbol: `field` is its offset in the symbol's entry."""
    table, size, _ = symbol_table(sample)
    for at in range(table, table + size, 24):
        if struct.unpack_from("<I", sample, at)[0] == name_of(sample, name):
            damaged = bytearray(sample)
            struct.pack_into(layout, damaged, at + field, value)
            return bytes(damaged)
    raise AssertionError(name)


def name_of(sample: bytes, name: str) -> int:
    strings = symbol_table(sample)[2]
    return sample.index(b"\0" + name.encode() + b"\0", strings) + 1 - strings


def symbol_table(sample: bytes) -> tuple[int, int, int]:
    """Return where it begins, its bytes, and where its names begin."""
    (start,), (count,) = struct.unpack_from("<Q", sample, 40), struct.unpack_from("<H", sample, 60)
    headers = [struct.unpack_from("<IIQQQQIIQQ", sample, start + 64 * index) for index in range(count)]
    table = next(header for header in headers if header[1] == 2)
    return table[4], table[5], headers[table[6]][4]


@pytest.mark.parametrize(
    ("field", "layout", "value", "words"),
    [
        (6, "<H", 0xFFF1, "the variable 'two' lies in no section"),
        (6, "<H", 0xFFF2, "the variable 'two' lies in no section"),
        (6, "<H", 900, "the variable 'two' lies in no section"),
        (8, "<Q", 1, "the variable 'two' lies beyond the end of '.nv.global'"),
        (16, "<Q", 25, "the variable 'two' lies beyond the end of '.nv.global'"),
        (16, "<Q", 2**64 - 1, "the variable 'two' lies beyond the end of '.nv.global'"),
    ],
)
def test_a_variable_outside_of_its_section_is_no_variable(
    sample: bytes, field: int, layout: str, value: int, words: str
) -> None:
    with pytest.raises(cubin.NotAnObject, match=words):
        cubin.read(edited(sample, "two", field, layout, value))


def test_a_name_that_stands_for_two_variables_is_refused(sample: bytes) -> None:
    with pytest.raises(cubin.NotAnObject, match="2 variables have the name 'two'"):
        cubin.read(edited(sample, "one", 0, "<I", name_of(sample, "two")))
