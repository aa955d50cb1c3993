from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evo import kernel as kernels
from mutators.extract import UNCHANGED, Extracted, kernel
from tests.support.mutation import FASTER, NAIVE

PARENTS = (NAIVE,)
HEADER, CODE = FASTER.split("*/\n", 1)
HEADER += "*/\n"


def taken(reply: str, finish_reason: str = "stop") -> Extracted:
    return kernel(reply, finish_reason, PARENTS)


def test_a_single_fence_gives_its_content() -> None:
    assert taken(f"I unrolled.\n\n```cuda\n{FASTER}```\nDone.").source == FASTER


@pytest.mark.parametrize("language", ["cuda", "c++", "cpp", "c", "cu", "", "CUDA"])
def test_any_language_word_of_c_will_do(language: str) -> None:
    assert taken(f"```{language}\n{FASTER}```").source == FASTER


def test_of_several_blocks_the_last_with_a_header_counts() -> None:
    other = FASTER.replace("unroll 4", "unroll 8")
    assert taken(f"First:\n```cuda\n{FASTER}```\nbetter:\n```cuda\n{other}```\n").source == other


def test_a_snippet_after_the_whole_file_does_not_win() -> None:
    snippet = 'extern "C" __global__ void gemm(const float* A) { }\n'
    assert taken(f"```cuda\n{FASTER}```\nThe heart of it:\n```cuda\n{snippet}```").source == FASTER


def test_diffs_and_foreign_languages_are_no_kernels() -> None:
    reply = f"```diff\n+{FASTER}```\n```python\nsource = '''{FASTER}'''\n```"
    assert taken(reply).source is None


def test_tilde_fences_and_longer_fences_are_read() -> None:
    assert taken(f"~~~cuda\n{FASTER}~~~").source == FASTER
    assert taken(f"`````cuda\n// ```\n{FASTER}`````").source == f"// ```\n{FASTER}"


def test_a_reply_that_is_only_the_file_is_the_file() -> None:
    assert taken(FASTER).source == FASTER


def test_prose_around_an_unfenced_kernel_is_left_out() -> None:
    assert taken(f"Here you are:\n\n{FASTER}\nIt reads each {{value}} once. Good luck!").source == FASTER


def test_a_missing_closing_fence_is_forgiven_when_the_kernel_is_whole() -> None:
    assert taken(f"```cuda\n{FASTER}").source == FASTER


def test_a_fence_inside_a_comment_of_the_kernel_does_not_cut_it() -> None:
    commented = FASTER.replace("{\n    int col", "{\n    /*\n```\n    */\n    int col")
    assert taken(f"```cuda\n{commented}```").source == commented


@pytest.mark.parametrize("cut", [0.4, 0.6, 0.9])
def test_a_reply_that_was_cut_off_gives_nothing(cut: float) -> None:
    reply = f"```cuda\n{FASTER[: int(len(FASTER) * cut)]}"
    assert taken(reply, "length") == Extracted(None, "the reply was cut off before its kernel was complete")


def test_a_kernel_in_two_fences_is_not_glued_together_with_its_fences() -> None:
    first, second = FASTER.split("        #pragma", 1)
    found = taken(f"```cuda\n{first}```\nand then\n```cuda\n        #pragma{second}```")
    assert found.source is None
    assert found.problem.startswith("the reply holds only part of a kernel")


def test_a_whole_kernel_before_the_cut_is_kept() -> None:
    assert taken(f"```cuda\n{FASTER}```\nAnd furth", "length").source == FASTER


@pytest.mark.parametrize(
    ("reply", "finish_reason", "problem"),
    [
        ("", "stop", "the reply is empty"),
        ("", "length", "the reply is empty: all its tokens went into reasoning"),
        ("Make it faster? Unroll the loop.", "stop", "the reply holds no __global__ function"),
        ("I cannot help with that.", "stop", "the reply is a refusal"),
        ("I’m sorry, but I can’t.", "stop", "the reply is a refusal"),
        ("```cuda\n__global__ void gemm(...) { // ... as before\n```", "stop", "the reply holds only part of a kernel"),
    ],
)
def test_why_there_is_no_kernel_is_said(reply: str, finish_reason: str, problem: str) -> None:
    found = taken(reply, finish_reason)
    assert found.source is None
    assert found.problem.startswith(problem)


@pytest.mark.parametrize(
    "same", [NAIVE, NAIVE.replace("    ", "\t"), f"// improved!\n{NAIVE}", NAIVE.replace("[16, 32]", "[16,32]")]
)
def test_the_parent_with_other_spacing_or_comments_is_unchanged(same: str) -> None:
    assert taken(f"```cuda\n{same}```") == Extracted(None, UNCHANGED)


def test_a_change_of_the_header_alone_is_a_change() -> None:
    changed = NAIVE.replace("[16, 32]", "[16, 32, 64]")
    assert taken(f"```cuda\n{changed}```").source == changed


def test_without_a_header_the_parents_is_kept_when_it_fits() -> None:
    code = CODE.replace("const float* A", "const float* __restrict__ left")
    found = taken(f"```cuda\n{code}```")
    assert found.source == HEADER + code
    assert kernels.parse(str(found.source)).header == kernels.parse(NAIVE).header
    assert found.note == "the reply had no launch header; the parent's was kept"


@pytest.mark.parametrize(
    ("code", "why"),
    [
        (CODE.replace("int K)", "int K, float* extra)"), "the parameters of 'gemm' were"),
        (CODE.replace("void gemm", "void gemm_tiled"), "there is no kernel 'gemm'"),
        (CODE.replace("float* C", "double* C"), "the parameters of 'gemm' were"),
    ],
)
def test_without_a_header_another_signature_is_refused_with_the_reason(code: str, why: str) -> None:
    found = taken(f"```cuda\n{code}```")
    assert found.source is None
    assert found.problem.startswith("the kernel has no launch header, and the parent's does not fit: ")
    assert why in found.problem


def test_a_header_in_a_block_of_its_own_is_joined_to_the_code() -> None:
    found = taken(f"Header:\n```\n{HEADER}```\nCode:\n```cuda\n{CODE}```")
    assert found.source == HEADER + CODE
    assert found.note == "the launch header stood in a block of its own"


def test_a_broken_header_is_passed_on_for_the_evaluator_to_explain() -> None:
    broken = FASTER.replace("tune:", "tuen:")
    assert taken(f"```cuda\n{broken}```").source == broken


def test_a_monstrous_kernel_is_refused() -> None:
    monster = FASTER + "// padding\n" * 30_000
    found = taken(f"```cuda\n{monster}```")
    assert found.source is None
    assert "at most 262144" in found.problem


def test_hard_spaces_and_invisible_characters_are_mended() -> None:
    assert taken("```cuda\n" + FASTER.replace("int col", "int\u00a0col\u202e") + "```").source == FASTER


@given(st.text(max_size=300), st.sampled_from(["stop", "length", "content_filter", ""]))
def test_no_reply_whatever_raises(reply: str, finish_reason: str) -> None:
    found = taken(reply, finish_reason)
    assert (found.source is None) == bool(found.problem)


@given(
    st.lists(st.sampled_from(["```", "~~~", "```cuda", "{", "}", "/* launch", "*/", CODE, HEADER, "\n"]), max_size=8)
)
def test_no_heap_of_pieces_raises(pieces: list[str]) -> None:
    found = taken("\n".join(pieces))
    assert (found.source is None) == bool(found.problem)
