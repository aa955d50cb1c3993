"""The text that g++ sees keeps the candidate's lines, and only what macros cannot do is rewritten."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluators.hostlib import symbols, translate
from evo.records import Status

PIECES = [
    "\n",
    "int x = 1;",
    "// comment // more",
    "/* two\nlines */",
    'const char* s = "a // b";',
    "extern __shared__ float s[];",
    "  extern  __shared__ __align__(16)\n unsigned char raw[];",
    "#include <cuda_fp16.h>\n",
    "#pragma unroll\nfor (;;) {}",
    "{",
    "}",
    "'\\''",
]


def body(unit: str) -> str:
    """Return the candidate's part of a translation unit."""
    start = unit.index(f'#line 1 "{translate.FILE}"\n') + len(f'#line 1 "{translate.FILE}"\n')
    return unit[start : unit.index(f'\n#line 1 "{translate.TABLE}"')]


@given(st.lists(st.sampled_from(PIECES), max_size=30))
def test_a_translation_keeps_every_line_where_it_was(pieces: list[str]) -> None:
    source = "\n".join(pieces)
    assert body(translate.translate(source, ["k"], {})).count("\n") == source.count("\n")


@given(st.text(alphabet="ab\"'/*\\\n ", max_size=60))
def test_blanking_keeps_length_and_lines(text: str) -> None:
    blanked = translate.blank(text)
    assert len(blanked) == len(text)
    assert [i for i, c in enumerate(blanked) if c == "\n"] == [i for i, c in enumerate(text) if c == "\n"]


@pytest.mark.parametrize(
    ("declaration", "reference"),
    [
        ("extern __shared__ float s[];", "float (&s)[] = *reinterpret_cast<float (*)[]>"),
        ("extern __shared__ __align__(16) unsigned char s[];", "unsigned char (&s)[]"),
        ("extern volatile __shared__ int s[];", "volatile int (&s)[]"),
        ("extern __shared__ float s[][33];", "float (&s)[][33] = *reinterpret_cast<float (*)[][33]>"),
        ("extern __shared__ Pair<int, 4> s[];", "Pair<int, 4> (&s)[]"),
    ],
)
def test_dynamic_shared_memory_becomes_a_reference(declaration: str, reference: str) -> None:
    inside = translate.translate(f"void k() {{ {declaration} }}", ["k"], {})
    assert reference in inside
    assert "static " + reference.split(" = ")[0] in translate.translate(declaration, ["k"], {})


@pytest.mark.parametrize(
    ("pragma", "count"),
    [("unroll", 16), ("unroll 4", 4), ("unroll (8)", 8), ("unroll TM", 3), ("unroll UNKNOWN", 16), ("unroll 1", 1)],
)
def test_unrolling_is_said_in_gccs_way(pragma: str, count: int) -> None:
    source = f"void k() {{\n#pragma {pragma}\n    for (;;) {{}} }}"
    assert f"#pragma GCC unroll {count}\n" in translate.translate(source, ["k"], {"TM": 3})


def test_unrolling_before_anything_but_a_loop_is_dropped() -> None:
    assert "GCC unroll" not in translate.translate("void k() {\n#pragma unroll\n    int x; }", ["k"], {})


def test_tunables_are_defined_behind_our_headers() -> None:
    unit = translate.translate("void k() {}", ["k"], {"BX": 32})
    assert unit.index("cuda_host.hpp") < unit.index("#define BX 32") < unit.index("void k()")


@pytest.mark.parametrize("name", ["k; system(0)", "k)", "", "1k", "k<f()>"])
def test_a_launched_name_that_is_no_name_is_refused(name: str) -> None:
    with pytest.raises(translate.Refused) as caught:
        translate.translate("void k() {}", [name], {})
    assert caught.value.status is Status.COMPILE_ERROR


@pytest.mark.parametrize(
    ("kernel", "owner"), [("gemm", "gemm"), ("gemm<64, 4>", "gemm"), ("ns::gemm<float>", "gemm"), ("other", "none")]
)
def test_shared_variables_are_counted_for_the_kernel_that_declares_them(kernel: str, owner: str) -> None:
    found = (symbols.Variable("tile", "gemm", True, 0, 400), symbols.Variable("table", "", False, 0, 80))
    assert symbols.static_shared_bytes(found, kernel) == (400 if owner == "gemm" else 0)
