from __future__ import annotations

import time

from hypothesis import given
from hypothesis import strategies as st

from mutators.fences import Block, blocks, clean, fence, line, outside

hostile = st.text(st.sampled_from("`~ \nab\r\x1b[0m*/#\u202e\u2028\x00é"), max_size=60)


@given(st.one_of(hostile, st.text(max_size=200)))
def test_whatever_is_quoted_stays_inside_its_fence(text: str) -> None:
    quoted = f"before\n{fence(text)}\nafter"
    (block,) = blocks(quoted)
    assert block.closed
    assert block.language == "text"
    assert block.text.strip("\n") == clean(text).strip("\n")
    assert outside(quoted) == "before\nafter"


@given(st.lists(st.tuples(st.sampled_from(["cuda", "cpp", ""]), hostile), max_size=4))
def test_several_quotations_are_read_back_in_order(parts: list[tuple[str, str]]) -> None:
    text = "\nprose\n".join(fence(content, language) for language, content in parts)
    assert [block.language for block in blocks(text)] == [language for language, _ in parts]


def test_terminal_escapes_and_bidirectional_overrides_are_taken_out() -> None:
    assert clean("a\x1b[31mred\x1b[0m \u202eback\u202c\x07\r\nnext\ttab") == "ared back\nnext\ttab"


def test_an_unclosed_block_reaches_to_the_end() -> None:
    assert blocks("say\n```cuda\nint x;\nint y;") == (Block("cuda", "int x;\nint y;\n", closed=False),)


def test_a_fence_inside_a_list_item_is_a_fence_and_its_indentation_is_not_content() -> None:
    assert blocks("1. do\n    ```cuda\n    int x;\n    ```\n2. more") == (Block("cuda", "int x;\n", closed=True),)


def test_a_shorter_fence_inside_a_longer_one_is_content() -> None:
    assert blocks("````\n```\ninside\n```\n````") == (Block("", "```\ninside\n```\n", closed=True),)


def test_inline_code_is_no_fence() -> None:
    assert blocks("```not a fence``` at all") == ()


def test_a_line_is_cut_at_a_word() -> None:
    assert line("one\n two\tthree\x07", 100) == "one two three"
    assert line("because " * 9, 20) == "because because …"
    assert line(" \n", 5) == ""


def test_long_lines_of_blanks_are_read_in_no_time() -> None:
    started = time.perf_counter()
    assert len(blocks("```" + " " * 1_000_000 + "x\n" + "`" * 1_000_000)) == 1
    assert time.perf_counter() - started < 2
