"""What the first wall refuses, in which words and at which line, and that honest kernels pass it."""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluators.inspection import (
    INCLUDES,
    Refusal,
    inspect_object,
    refuse_host_source,
    refuse_preprocessed,
    refuse_source,
)
from evo.records import Status

ROOT = Path(__file__).parents[2]
UNSAFE, UNSUPPORTED, BROKEN = Status.UNSAFE, Status.UNSUPPORTED, Status.COMPILE_ERROR


def one(refusals: tuple[Refusal, ...]) -> tuple[Status, int, str]:
    assert refusals, "nothing was refused"
    return refusals[0].status, refusals[0].line, refusals[0].found


SOURCES = [
    ('#include "/etc/hostname"', UNSAFE, 1, '#include "/etc/hostname"'),
    ("#include <../../etc/x.h>", UNSAFE, 1, "#include <../../etc/x.h>"),
    ('#include "~/x"', UNSAFE, 1, '#include "~/x"'),
    ('#define H "/etc/x"\n#include H', UNSAFE, 2, "#include H"),
    ("#include <iostream>", UNSUPPORTED, 1, "#include <iostream>"),
    ('#include "helpers.cuh"', UNSUPPORTED, 1, '#include "helpers.cuh"'),
    ("#include <cuda/../x>", UNSAFE, 1, "#include <cuda/../x>"),
    ('%:include "/etc/x"', UNSUPPORTED, 1, "%:"),
    ('??=include "/etc/x"', UNSAFE, 1, "??="),
    ('#inc\\\nlude "/etc/x"', UNSAFE, 1, '#include "/etc/x"'),
    ('int a;\n/* x */ # /**/ include /**/ "/etc/x"', UNSAFE, 2, '#include "/etc/x"'),
    ('/* a\n b */ #include "/etc/x"', UNSAFE, 2, '#include "/etc/x"'),
    ("#include_next <math.h>", UNSAFE, 1, "#include_next <math.h>"),
    ('#import "x"', UNSAFE, 1, '#import "x"'),
    ('#embed "/etc/x"', UNSAFE, 1, '#embed "/etc/x"'),
    ('\n#line 3 "stdio.h"', UNSAFE, 2, '#line 3 "stdio.h"'),
    ('# 3 "stdio.h"', UNSAFE, 1, '#3 "stdio.h"'),
    ('#if __has_include("/etc/x")\n#endif', UNSAFE, 1, "__has_include"),
    ('#if 1 && \\\n __has_embed("/etc/x")\n#endif', UNSAFE, 2, "__has_embed"),
    ('_Pragma("weak a=b")', UNSAFE, 1, "#pragma weak a=b"),
    ("#pragma redefine_extname a b", UNSAFE, 1, "#pragma redefine_extname a b"),
    ('#pragma GCC dependency "/etc/x"', UNSAFE, 1, '#pragma GCC dependency "/etc/x"'),
    ('const char* s = R"(\n)";', UNSUPPORTED, 1, 'R"'),
    ('const char* s = u8R"(\n)";', UNSUPPORTED, 1, 'u8R"'),
    ('// a \\  \n#include "/etc/x"', UNSAFE, 2, '#include "/etc/x"'),
    ('// a ??/\n#include "/etc/x"', UNSAFE, 1, "??/"),
    ('int a;\r#include "/etc/x"', UNSAFE, 1, "\\x0d"),
    ('int a;\x00\n#include "/etc/x"', UNSAFE, 1, "\\x00"),
    ("\n__global__ void k(const __grid_constant__ CUtensorMap m) {}", UNSUPPORTED, 2, "CUtensorMap"),
    ("int \\u0061;", BROKEN, 1, "\\"),
    ('a\n"abc\n', BROKEN, 2, '"'),
    ("/* never", BROKEN, 1, "/*"),
    ('#if 0\ndon\'t /*\n#endif\n#include "/etc/x"\n*/', BROKEN, 2, "'"),
]


@pytest.mark.parametrize(("source", "status", "line", "found"), SOURCES)
def test_sources_that_are_refused(source: str, status: Status, line: int, found: str) -> None:
    assert one(refuse_source(source)) == (status, line, found)
    message = refuse_source(source)[0].message
    assert message.startswith(f"line {line}: `")


@pytest.mark.parametrize(
    "source",
    [
        "",
        '#include "cuda_runtime.h"  // why\n#include <cuda_fp16.h>\n#include <cub/cub.cuh>',
        "#include <cooperative_groups/reduce.h>",
        '/* #include "/etc/x"\n#include "/etc/y"\n*/',
        '// #include "/etc/x"\n// don\'t\n// a \\\n#include "/etc/x" is still the comment',
        "int x = 1'000'000; char c = '\"'; char d = '\\''; float f = 1.e-3f; long h = 0x1'Fp3;",
        'const char* s = "/* \\" #include \\\\";',
        'printf("R"); printf("a ?? b: %d", x); f(L"R", u8"x");',
        "#define A(x) \\\n    x\\\n+ 1\n#undef A\n#if defined(B) && B > 3\n#elif 0\n#else\n#endif\n#error no, really",
        "#pragma unroll\n#pragma unroll 4\n#pragma once\n#pragma nv_diag_suppress 177\n#pragma GCC unroll 8",
        "#pragma\n#",
        "foo<::bar>(a::b); a ? b : c; x = a%b; y = a%2;",
        '#define UNROLL(n) _Pragma("unroll")\n#define U(x) _Pragma(#x)',
        "int a;\r\n#include <math.h>\r\n",
        "\ufeff// a mark of the byte order\n",
    ],
)
def test_honest_sources_pass(source: str) -> None:
    assert [str(refusal) for refusal in refuse_source(source)] == []


def test_the_kernels_of_this_repository_pass() -> None:
    kernels = [path for path in (ROOT / "benchmarks").rglob("*.cu") if "redteam" not in path.parts]
    for path in kernels:
        assert refuse_source(path.read_text()) == (), path


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ('int f(const char*) __asm__("sys" "tem");', '__asm__("system")'),
        ('void f() { asm volatile("\\n .incbin \\"x\\""); }', 'asm("\\n .incbin \\"x\\"")'),
        ('#define GO asm(".section .init_array")', 'asm(".section .init_array")'),
    ],
)
def test_hostile_assembly_is_seen_as_written(source: str, found: str) -> None:
    assert one(refuse_host_source(source)) == (UNSAFE, 1, found)
    assert refuse_source(source) == (), "assembly is for the GPU's compiler to judge"


def test_ptx_is_left_to_others_to_refuse() -> None:
    assert refuse_host_source('void f() { asm volatile("bar.sync 0;"); asm volatile("" ::: "memory"); }') == ()


@pytest.mark.parametrize("name", sorted(INCLUDES))
def test_every_header_of_the_list_is_accepted(name: str) -> None:
    assert refuse_source(f"#include <{name}>") == refuse_source(f'#include "{name}"') == ()


@settings(deadline=None)
@given(st.text(alphabet="#\\\n \"'/*<>%:?R(inclue)x", max_size=60))
def test_no_text_slips_a_private_file_past_gcc(text: str) -> None:
    """Whatever precedes it: what GCC takes for an include is refused, or the text is refused as doubtful."""
    source = text + '\n#include "/nonexistent/private"\n'
    if refuse_source(source):
        return
    done = subprocess.run(["g++", "-E", "-w", "-x", "c++", "-"], input=source.encode(), capture_output=True, timeout=20)
    assert b"/nonexistent/private" not in done.stderr


def preprocessed(source: str, tmp_path: Path) -> str:
    unit = tmp_path / "unit.cpp"
    ours = "#include <cmath>\n#define __align__(n) __attribute__((aligned(n)))\nnamespace u {"
    unit.write_text(f'{ours}\n#line 1 "k.cu"\n{source}\n#line 1 "tail"\n}}\n')
    command = ["g++", "-E", "-std=gnu++17", str(unit)]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout


PREPROCESSED = [
    ('int sys(const char*) __asm__("system");', UNSAFE, 1, '__asm__("system")'),
    ('\nextern "C" int sys(const char*) asm("sys" "tem");', UNSAFE, 2, 'asm("system")'),
    ('asm(".incbin \\"/etc/hostname\\"");', UNSAFE, 1, 'asm(".incbin \\"/etc/hostname\\"")'),
    ('void f() {\n asm(".incbin \\"/etc/hostname\\"");\n}', UNSAFE, 2, 'asm(".incbin \\"/etc/hostname\\"")'),
    ('#define A(a, b) a##b\nA(as, m)("nop");', UNSAFE, 2, 'asm("nop")'),
    ('#define A __a\n#define B(x, y) x##y\n#define C(x, y) B(x, y)\nint f() C(A, sm)("g");', UNSAFE, 4, '__asm("g")'),
    ('void f() { asm volatile("mov.u32 %0, %%laneid;" : "=r"(x)); }', UNSUPPORTED, 1, 'asm("mov.u32 %0, %%laneid;")'),
    ('void f() {\n if (1) __asm("bar.sync 0;");\n}', UNSUPPORTED, 2, '__asm("bar.sync 0;")'),
    ('void f() {\n asm volatile("" ::: "memory");\n}', UNSUPPORTED, 2, 'asm("")'),
    ('void f() { extern int g() asm("" "system"); }', UNSAFE, 1, 'asm("system")'),
    ("__attribute__((constructor(101))) void f() {}", UNSAFE, 1, "constructor"),
    ("[[gnu::__constructor__]] void f() {}", UNSAFE, 1, "__constructor__"),
    ('[[using gnu: aligned(4), ifunc("x")]] void f() {}', UNSAFE, 1, "ifunc"),
    ('int y __attribute__((aligned(8), __always_inline__,\n section("x")));', UNSAFE, 2, "section"),
    ('void g() __attribute__((weak, alias("f")));', UNSAFE, 1, "weak"),
    ("void f() { int a __attribute__((cleanup(g))); }", UNSAFE, 1, "cleanup"),
    ("#define P(x) _Pragma(#x)\nP(weak a = b)", UNSAFE, 2, "#pragma weak a = b"),
    ("void f() {}\n}\nint main() {", BROKEN, 2, "}"),
    ("#define CLOSE }\nvoid f() {}\nCLOSE namespace cuda_host {", BROKEN, 3, "}"),
    ("#define P(a, b) a##b\nP(%, >) int main() {}", UNSUPPORTED, 2, "%>"),
    ("void f() {", BROKEN, 1, "{"),
]


@pytest.mark.parametrize(("source", "status", "line", "found"), PREPROCESSED)
def test_preprocessed_text_that_is_refused(source: str, status: Status, line: int, found: str, tmp_path: Path) -> None:
    assert one(refuse_preprocessed(preprocessed(source, tmp_path), "k.cu")) == (status, line, found)


@pytest.mark.parametrize(
    "source",
    [
        "__align__(16) struct S { float a, b; };",
        "[[maybe_unused]] static int a[3];\n[[nodiscard]] __attribute__((always_inline, noinline)) int f();",
        "int a[2]; int b = a[[] { return 1; }()];",
        "#pragma unroll 4\nvoid f() { const char* s = \"asm { }\"; char c = '}'; }",
        "struct asmlike { int asm_, my_asm; };",
    ],
)
def test_honest_preprocessed_text_passes(source: str, tmp_path: Path) -> None:
    assert [str(refusal) for refusal in refuse_preprocessed(preprocessed(source, tmp_path), "k.cu")] == []


def test_headers_may_do_what_a_candidate_may_not(tmp_path: Path) -> None:
    text = preprocessed("int x;", tmp_path)
    assert "__asm" in text or "__attribute__" in text
    assert refuse_preprocessed(text, "k.cu") == ()


def compiled(source: str, tmp_path: Path, *options: str) -> Path:
    unit, result = tmp_path / "unit.cpp", tmp_path / "unit.o"
    unit.write_text(source)
    command = ["g++", "-std=gnu++17", "-O1", "-fno-exceptions", *options, "-c", str(unit), "-o", str(result)]
    subprocess.run(command, check=True, timeout=30, capture_output=True)
    return result


def inspected(source: str, tmp_path: Path, *options: str) -> tuple[Refusal, ...]:
    path = compiled(source, tmp_path, *options)
    return inspect_object(path, namespace="user", exports={"table"}, runtime=("_ZN7runtime",))


LABEL = 'extern "C" int system(const char*) __asm__("system");'
RESOLVER = 'extern "C" void g() {} extern "C" void* r() { return (void*)g; }'
UNIQUE = "template <class T> struct S { static int v; }; template <class T> int S<T>::v = 1;"
OBJECTS = [
    ('extern "C" int system(const char*); namespace user { int f() { return system("x"); } }', "system"),
    (LABEL + 'namespace user { int f() { return system("x"); } }', "system"),
    ("namespace user { int g() { volatile int a = 1; return a; } int x = g(); }", ".init_array"),
    ("namespace user { int n; __attribute__((constructor)) void g() { n = 1; } }", ".init_array"),
    ("namespace user { int n; __attribute__((destructor)) void g() { n = 1; } }", ".fini_array"),
    ('void g() {} __attribute__((section(".preinit_array"), used)) static void (*p)() = g;', ".preinit_array"),
    ('__attribute__((section(".ctors"), used)) static void (*p)() = nullptr;', ".ctors"),
    ('__attribute__((section("elsewhere"), used)) static int x = 3;', "elsewhere"),
    (RESOLVER + 'namespace user { void f() __attribute__((ifunc("r"))); }', "_ZN4user1fEv"),
    ('extern "C" void* memcpy(void* a, const void*, unsigned long) { return a; }', "memcpy"),
    ("int main() {}", "main"),
    ("namespace runtime { int barrier() { return 1; } }", "_ZN7runtime7barrierEv"),
    ("void* operator new(unsigned long) { return nullptr; }", "_Znwm"),
    (
        'extern "C" long write(int, const void*, long); namespace user { long f() { return write(1, "x", 1); } }',
        "write",
    ),
    (f"namespace user {{ {UNIQUE} int* f() {{ return &S<int>::v; }} }}", "_ZN4user1SIiE1vE"),
    ('namespace user { int f() { return __builtin_printf("%d", 3); } }', "printf"),
    ('extern "C" char** environ; namespace user { char* f() { return environ[0]; } }', "environ"),
]


@pytest.mark.parametrize(("source", "found"), OBJECTS)
def test_objects_that_are_refused(source: str, found: str, tmp_path: Path) -> None:
    refusals = inspected(source, tmp_path)
    assert found in [refusal.found for refusal in refusals]
    assert {refusal.status for refusal in refusals} <= {UNSAFE, UNSUPPORTED}


def test_a_function_that_is_only_declared_is_an_honest_mistake(tmp_path: Path) -> None:
    (refusal,) = inspected("namespace user { void f(); void g() { f(); } }", tmp_path)
    assert (refusal.status, refusal.found) == (BROKEN, "_ZN4user1fEv")


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("namespace user { void* f() { return __builtin_malloc(3); } }", "memory allocation in a kernel"),
        ("namespace user { int* f() { return new int[3]; } }", "`new` in a kernel"),
        ("namespace user { char big[3l << 30]; char* f() { return big; } }", "3072 MiB"),
    ],
)
def test_objects_that_this_device_cannot_run(source: str, words: str, tmp_path: Path) -> None:
    refusals = inspected(source, tmp_path, "-mcmodel=large")
    assert [refusal.status for refusal in refusals] == [UNSUPPORTED]
    assert words in refusals[0].message


@pytest.mark.parametrize(
    "source",
    [
        "#include <cmath>\nnamespace user { float f(float x) { return sinf(x) + powf(x, 3) + std::fma(x, x, x); } }",
        "#include <cstring>\nnamespace user { void f(char* a, char* b) { memcpy(a, b, *a); memset(a, 1, *b); } }",
        "namespace runtime { int barrier(); }\nnamespace user { int f() { return runtime::barrier(); } }",
        "namespace user { static thread_local float s[64]; float* f() { return s; } float table[3] = {1, 2}; }",
        "namespace user { __int128 f(__int128 a) { return a / 3; } }",
        "namespace user { template <class T> T g(T a) { return a; } int f(int a) { return g(a); } }",
        "namespace user { struct V { virtual int f() { return 1; } }; V v; int g(V* p) { return p->f(); } }",
        "extern const char* const table[]; const char* const table[] = {\"a\"};",
    ],
)  # fmt: skip
def test_honest_objects_pass(source: str, tmp_path: Path) -> None:
    assert [str(refusal) for refusal in inspected(source, tmp_path, "-g1", "-fno-gnu-unique")] == []


def test_a_damaged_object_is_refused(tmp_path: Path) -> None:
    path = compiled("namespace user { int f() { return 1; } }", tmp_path)
    whole = path.read_bytes()
    for start, end in ((0, 10), (0, 64), (0, len(whole) // 2), (1, len(whole))):
        path.write_bytes(whole[start:end])
        (refusal,) = inspect_object(path, namespace="user")
        assert refusal.status is UNSAFE
        assert "is no object file" in refusal.message


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled("namespace user { int f() { return 1; } }", tmp_path_factory.mktemp("sample"))


@pytest.mark.parametrize("offset", [2**62, 2**63, 2**64 - 1])
def test_a_table_beyond_all_memory_is_refused(sample: Path, offset: int) -> None:
    whole = bytearray(sample.read_bytes())
    struct.pack_into("<Q", whole, 40, offset)  # where the section table begins
    damaged = sample.with_name("beyond.o")
    damaged.write_bytes(whole)
    (refusal,) = inspect_object(damaged, namespace="user")
    assert (refusal.status, "is no object file" in refusal.message) == (UNSAFE, True)


def test_linked_files_and_gpu_code_are_no_objects(sample: Path) -> None:
    whole = bytearray(sample.read_bytes())
    struct.pack_into("<HH", whole, 16, 2, 190)  # e_type, e_machine: of a CUBIN
    linked = sample.with_name("linked.o")
    linked.write_bytes(whole)
    (refusal,) = inspect_object(linked, namespace="user")
    assert "not a relocatable ELF64 file" in refusal.message


@settings(deadline=None)
@given(edits=st.lists(st.tuples(st.floats(0, 1), st.integers(0, 2**32 - 1)), min_size=1, max_size=4))
def test_no_damage_raises(sample: Path, edits: list[tuple[float, int]]) -> None:
    whole = bytearray(sample.read_bytes())
    for place, value in edits:
        struct.pack_into("<I", whole, int(place * (len(whole) - 4)), value)
    damaged = sample.with_name("damaged.o")
    damaged.write_bytes(whole)
    for refusal in inspect_object(damaged, namespace="user"):
        assert refusal.status in (UNSAFE, UNSUPPORTED, BROKEN)
