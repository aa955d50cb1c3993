"""Disassembly: what a list of instructions says of loops, widths and lines, in SASS and in PTX, hostile text or not."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluators import disassembly, nvrtc
from evaluators.disassembly import nvdisasm, ptx, sass
from evaluators.disassembly.code import Access, Function, Instruction
from evaluators.disassembly.loops import find
from evo import kernel as kernels
from evo.records import CompileRequest, Status

FOLDER = Path(__file__).parent.parent / "golden" / "disassembly"
"""Kernels, and what nvdisasm 13.5 says of the machine code that NVRTC 13.5 makes of them."""
WITH_NVRTC = pytest.mark.skipif(not nvrtc.available(), reason="NVRTC is not installed (extra `nvrtc`)")


def golden(name: str) -> tuple[Function, ...]:
    return sass.read((FOLDER / f"{name}.sass").read_text(), nvrtc.NAME)


def listed(name: str, arch: str = "sm_90") -> disassembly.Listing:
    kernel = kernels.parse((FOLDER / f"{name}.cu").read_text())
    return disassembly.listing(CompileRequest(kernel.code, kernel.kernels, kernel.header.defaults, (), arch))


def accesses(function: Function) -> dict[tuple[str, str, int], int]:
    found = Counter(instruction.access for instruction in function.instructions if instruction.access)
    return {(access.space, access.kind, access.nbytes): count for access, count in found.items()}


def loops(function: Function) -> list[tuple[int, set[int]]]:
    """Depth and source lines of each loop."""
    return [
        (loop.depth, {function.instructions[index].line for index in loop.body} - {0})
        for loop in find(function.instructions)
    ]


SPREAD = {
    ("global", "load", 16): 1,
    ("local", "load", 4): 2,
    ("local", "store", 4): 1,
    ("shared", "store", 4): 1,
    ("global", "atomic", 4): 1,
    ("global", "store", 4): 1,
    ("global", "store", 2): 1,
}
SPREAD_LOOPS = [(2, {32}), (1, {30, 31, 32}), (1, {30, 31}), (1, {9, 20, 21, 22, 23})]


@pytest.mark.parametrize("arch", ["sm_75", "sm_90"])
def test_machine_code_says_its_widths_its_loops_and_their_lines(arch: str) -> None:
    spread, far = golden(f"spread.{arch}")
    assert (spread.name, spread.kernel, far.name, far.kernel) == ("spread", "spread", "_Z3farf", "spread")
    assert SPREAD.items() <= accesses(spread).items()
    assert accesses(spread)["global", "load", 2] == 12
    assert loops(spread) == SPREAD_LOOPS
    assert loops(far) == [(1, {13})]
    assert sum(instruction.multiply_adds for instruction in spread.instructions) == 14


def test_tensor_cores_matrix_loads_and_asynchronous_copies_are_seen() -> None:
    (tensor,) = golden("tensor.sm_100a")
    assert accesses(tensor) == {
        ("global", "asynchronous copy", 16): 1,
        ("shared", "load", 16): 2,
        ("global", "load", 4): 4,
        ("global", "store", 4): 1,
        ("global", "store", 8): 4,
    }
    assert {i.opcode for i in tensor.instructions if i.multiply_adds} == {"HMMA.16816.F32"}
    assert [depth for depth, _ in loops(tensor)] == [1]


@WITH_NVRTC
def test_without_nvdisasm_it_is_ptx_and_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvdisasm, "find", tuple)
    found = listed("spread")
    assert (found.status, found.language) == (Status.OK, "PTX")
    assert found.note.startswith("nvdisasm is not installed: pip install")
    by_name = {function.name: function for function in found.functions}
    assert by_name[found.symbols["spread"]].kernel == "spread"
    assert SPREAD.items() <= accesses(by_name["spread"]).items()
    assert loops(by_name["spread"]) == SPREAD_LOOPS
    assert (by_name["_Z3farf"].kernel, loops(by_name["_Z3farf"])) == ("", [(1, {13})])
    assert found.resources["spread"].local_bytes == 128


@WITH_NVRTC
def test_ptx_names_matrix_loads_and_asynchronous_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvdisasm, "find", tuple)
    (tensor,) = listed("tensor").functions
    assert accesses(tensor).items() >= {("global", "asynchronous copy", 16): 1, ("shared", "load", 16): 1}.items()
    assert sum(instruction.multiply_adds for instruction in tensor.instructions) == 1


@WITH_NVRTC
@pytest.mark.skipif(not nvdisasm.find(), reason="nvdisasm is not installed")
@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_90a", "sm_100a", "sm_120"])
def test_a_real_nvdisasm_is_read_for_every_generation(arch: str) -> None:
    found = listed("spread", arch)
    assert (found.language, found.note) == ("SASS", "")
    spread = found.functions[0]
    assert SPREAD.items() <= accesses(spread).items()
    assert loops(spread)[-1] == (1, {9, 20, 21, 22, 23})


@WITH_NVRTC
def test_an_nvdisasm_that_cannot_read_it_is_gone_round(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvdisasm, "find", lambda: (Path("/bin/false"),))
    found = listed("spread")
    assert found.language == "PTX"
    assert found.note.startswith("no nvdisasm of this machine can read the machine code")


@WITH_NVRTC
def test_what_does_not_compile_has_the_compilers_words() -> None:
    found = disassembly.listing(CompileRequest("__global__ void k() { itn i; }", ("k",), {}, (), "sm_90"))
    assert (found.status, found.functions) == (Status.COMPILE_ERROR, ())
    assert "line 1" in found.message


def test_a_jump_back_from_code_moved_out_of_the_way_is_no_loop() -> None:
    instructions = (
        Instruction("BRA.DIV", target=4),
        Instruction("SHFL"),
        Instruction("FADD"),
        Instruction("EXIT", ends=True),
        Instruction("WARPSYNC"),
        Instruction("BRA", target=2, ends=True),
    )
    assert find(instructions) == ()
    looping = (*instructions[:5], Instruction("BRA", target=0, ends=True))
    assert [loop.body for loop in find(looping)] == [(0, 4, 5)]


BRANCHES = st.lists(st.tuples(st.integers(0, 11) | st.none(), st.booleans()), min_size=1, max_size=12)


@given(BRANCHES)
def test_loops_are_the_back_edges_that_their_heads_dominate(branches: list[tuple[int | None, bool]]) -> None:
    count = len(branches)
    code = [
        Instruction("x", target=target if target is not None and target < count else None, ends=ends)
        for target, ends in branches
    ]
    follow = [
        {*([] if i.target is None else [i.target]), *([] if i.ends or index + 1 == count else [index + 1])}
        for index, i in enumerate(code)
    ]

    def reached(without: int | None) -> set[int]:
        seen: set[int] = set()
        stack = [0] if without != 0 else []
        while stack:
            index = stack.pop()
            if index not in seen:
                seen.add(index)
                stack += [other for other in follow[index] if other != without]
        return seen

    everything = reached(None)
    heads = {h for t in everything for h in follow[t] if h == t or t not in reached(h)}
    found = find(code)
    assert len(found) == len(heads)
    assert all(any(head in loop.body for loop in found) for head in heads)
    assert all(set(loop.body) <= everything for loop in found)


@given(st.text(alphabet=".{};:,$%@/*`()[]\"' \n\tabldst0123456789_VBRAPEXIT", max_size=400))
def test_no_text_makes_a_reader_fail(text: str) -> None:
    assembly = f".visible .entry k(\n.param .u64 a\n)\n{{\n{text}\nret;\n}}\n"
    for function in ptx.read(assembly, "kernel.cu"):
        find(function.instructions)
    machine = f'\t.section\t.text.k,"ax",@progbits\n        /*0000*/   EXIT ;\n{text}\n'
    for function in sass.read(machine, "kernel.cu"):
        find(function.instructions)


def test_widths_come_from_types_and_vectors() -> None:
    text = """.visible .entry k()
{
    ld.global.nc.L1::no_allocate.v4.u32 {%r1, %r2, %r3, %r4}, [%rd1];
    ld.global.v2.f64 {%d1, %d2}, [%rd1]; st.shared.u8 [%r1], %rs1;
    ld.shared::cta.bf16x2 %r1, [%r2]; ld.const.f32 %f1, [c]; ld.param.u64 %rd1, [p];
    @%p1 st.f32 [%rd1], %f1; cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1], 64, [%r2];
    red.global.add.f16x2 [%rd1], %r1; ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%r1, %r2}, [%r3];
}
"""
    (function,) = ptx.read(text, "kernel.cu")
    assert [instruction.access for instruction in function.instructions] == [
        Access("global", "load", 16),
        Access("global", "load", 16),
        Access("shared", "store", 1),
        Access("shared", "load", 4),
        None,
        None,
        Access("generic", "store", 4),
        Access("global", "asynchronous copy", 0),
        Access("global", "atomic", 4),
        Access("shared", "load", 8),
    ]


@pytest.mark.parametrize(
    ("listed_as", "access"),
    [
        ("LDG.E.128.CONSTANT R4, desc[UR6][R4.64]", Access("global", "load", 16)),
        ("LDG.E.ENL2.256 R4, R8, desc[UR6][R4.64]", Access("global", "load", 32)),
        ("STG.E.U8 desc[UR6][R2.64], R8", Access("global", "store", 1)),
        ("LDGSTS.E.BYPASS.LTC128B.128 [R1], desc[UR4][R2.64]", Access("global", "asynchronous copy", 16)),
        ("LDSM.16.MT88.4 R4, [R0]", Access("shared", "load", 16)),
        ("LDSM.16.M88 R4, [R0]", Access("shared", "load", 4)),
        ("STL.64 [R1], R2", Access("local", "store", 8)),
        ("UTMALDG.2D [UR8], [UR4]", Access("global", "asynchronous copy", 0)),
        ("LDC.64 R4, c[0x0][0x218]", None),
    ],
)
def test_widths_come_from_modifiers(listed_as: str, access: Access | None) -> None:
    text = f'\t.section\t.text.k,"ax",@progbits\n        /*0000*/                   {listed_as} ;\n'
    (function,) = sass.read(text, "kernel.cu")
    assert [instruction.access for instruction in function.instructions] == [access]


def test_instructions_that_never_run_or_only_move_a_constant_do_not_count() -> None:
    text = """\t.section\t.text.k,"ax",@progbits
        /*0000*/              @!PT LDS RZ, [RZ] ;
        /*0010*/                   HFMA2.MMA R10, -RZ, RZ, 0, 0 ;
        /*0020*/                   NOP;
"""
    (function,) = sass.read(text, "kernel.cu")
    assert [(i.opcode, i.multiply_adds) for i in function.instructions] == [("HFMA2.MMA", False)]
