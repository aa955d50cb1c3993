from __future__ import annotations

import difflib
import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evo.workload import names
from mutators.edits import SCHEMA, Edit, apply, parse
from tests.support.mutation import FASTER, NAIVE


def block(search: str, replacement: str) -> str:
    return f"<<<<<<< SEARCH\n{search}=======\n{replacement}>>>>>>> REPLACE\n"


def pairs(reply: str) -> list[tuple[str, str]]:
    return [edit.readings[0] for edit in parse(reply).edits]


LINE = "        float sum = 0.0f;\n"
UNROLLED = f"{LINE}        #pragma unroll 4\n"

# --- reading ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "reply",
    [
        block(LINE, UNROLLED),
        f"It waits.\n\n```cuda\n{block(LINE, UNROLLED)}```\nDone.",
        f"```\n{block(LINE, UNROLLED)}",
        block(LINE, UNROLLED).replace("\n", "\r\n"),
        block(LINE, UNROLLED).replace("<<<<<<< SEARCH", "<<<<< SEARCH  ").replace("=======", "======="),
        "1. Unroll:\n" + "".join(f"   {row}\n" for row in block(LINE, UNROLLED).splitlines()),
        json.dumps({"note": "", "edits": [{"search": LINE, "replace": UNROLLED}]}),
        f"Here:\n```json\n{json.dumps({'edits': [{'search': LINE, 'replace': UNROLLED}]}, indent=1)}\n```",
        'Sure {really}: {"edits": [{"search": "' + LINE + '", "replace": ' + json.dumps(UNROLLED) + "}]}",
    ],
)
def test_edits_are_found_however_they_come(reply: str) -> None:
    assert pairs(reply) == [(LINE, UNROLLED)]
    assert parse(reply).problem == ""


def test_several_edits_keep_their_order_and_may_delete() -> None:
    reply = block("a\n", "b\n") + "and\n" + block("c\n", "")
    assert pairs(reply) == [("a\n", "b\n"), ("c\n", "")]


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        (block(LINE, UNROLLED) + "<<<<<<< SEARCH\nint", "edit 2 has no line `>>>>>>> REPLACE`: the reply was cut off"),
        ("<<<<<<< SEARCH\nint\n>>>>>>> REPLACE", "edit 1 has no line `=======` between search and replacement"),
        ('{"edits": [{"search": "int"}]}', "edit 1 is no object with the texts `search` and `replace`"),
        ('{"edits": [7]}', "edit 1 is no object with the texts `search` and `replace`"),
    ],
)
def test_what_is_wrong_with_the_form_is_said(reply: str, problem: str) -> None:
    assert parse(reply).problem == problem


@pytest.mark.parametrize("reply", ["", "Nothing to change.", '{"edits": []}', '{"edits": null}', "{" * 5000, "[1, 2]"])
def test_no_edits_are_no_edits(reply: str) -> None:
    assert parse(reply).edits == ()


def test_the_schema_is_one_that_strict_providers_take() -> None:
    items = SCHEMA["properties"]["edits"]["items"]
    for part in (SCHEMA, items):
        assert part["additionalProperties"] is False
        assert set(part["required"]) == set(part["properties"])


# --- applying -----------------------------------------------------------------------------------------------------


def edited(*edits: tuple[str, str], source: str = NAIVE) -> str | None:
    return apply(source, [Edit((edit,)) for edit in edits]).source


def problem(*edits: tuple[str, str], source: str = NAIVE) -> str:
    applied = apply(source, [Edit((edit,)) for edit in edits])
    assert applied.source is None
    return applied.problem


def test_lines_are_replaced_added_and_deleted() -> None:
    assert edited((LINE, UNROLLED)) == FASTER
    assert edited(("        #pragma unroll 4\n", ""), source=FASTER) == NAIVE
    assert edited((LINE.strip("\n"), UNROLLED.strip("\n"))) == FASTER


def test_a_part_of_a_line_will_do_where_it_is_there_once() -> None:
    assert edited(("[16, 32]", "[16, 32, 64]")) == NAIVE.replace("[16, 32]", "[16, 32, 64]")
    assert edited(("float sum = 0.0f;\n        for", "float sum = 1.0f;\n        for")) == NAIVE.replace("0.0f", "1.0f")


def test_blanks_at_the_ends_of_lines_do_not_count() -> None:
    assert edited((LINE, UNROLLED), source=NAIVE.replace(LINE, LINE.replace("\n", "  \n"))) == FASTER
    assert edited((LINE.replace("\n", " \t\n"), UNROLLED)) == FASTER


def test_edits_are_found_in_the_kernel_as_shown_in_any_order() -> None:
    assert edited(("if (row", "if (col"), ("int col = ", "int row = "), source="int col = 1;\nif (row) x;\n") == (
        "int row = 1;\nif (col) x;\n"
    )


def test_an_edit_that_matches_nothing_is_told_the_nearest_lines() -> None:
    text = problem(("        float sum = 0;\n        for (int k = 0; k < K; k++) {\n", "x\n"))
    assert text.startswith("Edit 1 of 1: its search matches nothing in the kernel. The nearest lines are:\n")
    assert "  11 |         float sum = 0.0f;\n" in text
    assert "  12 |         for (int k = 0; k < K; ++k)" in text


def test_an_edit_like_nothing_at_all_is_told_so() -> None:
    assert "nothing like it is there" in problem(("@@@@@@@@@@@@@@@@@@@@@@@@@@@@\n", "x\n"))


def test_an_edit_that_matches_often_is_told_every_line() -> None:
    source = "a;\nb;\na;\n" * 2
    assert problem(("a;\n", "c;\n"), source=source).startswith(
        "Edit 1 of 1: its search matches 4 times, at lines 1, 3, 4, 6."
    )
    assert "and 8 more" in problem(("a", "b"), source="a\n" * 20)


def test_an_empty_search_and_overlapping_edits_are_refused() -> None:
    assert "its search is empty" in problem(("\n", "x\n"))
    assert "Two edits change the same text, around line 11" in problem((LINE, "x\n"), (LINE, "y\n"))


def test_either_all_edits_are_applied_or_none_and_each_is_counted() -> None:
    assert problem((LINE, UNROLLED), ("nowhere in here\n", "x\n")).startswith("Edit 2 of 2:")
    assert apply(NAIVE, [Edit(((LINE, UNROLLED),))]).edits == 1
    many = problem(*[("nowhere in here\n", "x\n")] * 50)
    assert many.count("matches nothing") == 4
    assert "The edits from number 5 on were not looked at." in many


def test_lines_like_markers_inside_a_kernel_are_no_obstacle() -> None:
    marked = NAIVE.replace(LINE, f"/*\n=======\n*/\n{LINE}")
    reply = block(f"/*\n=======\n*/\n{LINE}", f"/*\n=======\n*/\n{UNROLLED}")
    applied = apply(marked, parse(reply).edits)
    assert applied.source == marked.replace(LINE, UNROLLED)


def test_a_kernel_with_foreign_line_ends_is_edited_as_it_was_shown() -> None:
    assert edited((LINE, UNROLLED), source=NAIVE.replace("\n", "\r\n")) == FASTER


# --- whatever comes -----------------------------------------------------------------------------------------------

lines = st.text(st.sampled_from("ab{}=<> ;/*`"), max_size=6)
kernels = st.lists(lines, min_size=1, max_size=14).map(lambda rows: "".join(f"{row.rstrip()}\n" for row in rows))


def _unique_hunks(before: str, after: str) -> list[tuple[str, str]] | None:
    """Edits that make `after` out of `before`: each difference with as many lines around it as make it unique."""
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    found = []
    for kind, i1, i2, j1, j2 in difflib.SequenceMatcher(a=old, b=new, autojunk=False).get_opcodes():
        if kind != "equal":
            found.append((i1, i2, j1, j2))
    for around in range(len(old) + 1):
        spans: list[tuple[int, int, int, int]] = []
        for i1, i2, j1, j2 in found:
            above, below = min(around, i1, j1), min(around, len(old) - i2, len(new) - j2)
            span = (i1 - above, i2 + below, j1 - above, j2 + below)
            if spans and span[0] <= spans[-1][1]:
                span = (spans[-1][0], span[1], spans[-1][2], span[3])
                spans.pop()
            spans.append(span)
        hunks = [("".join(old[a:b]), "".join(new[c:d])) for a, b, c, d in spans]
        rows = [row.rstrip() for row in before.splitlines()]
        if all(search.strip() and _count(rows, search) == 1 for search, _ in hunks):
            return hunks
    return None


def _count(rows: list[str], search: str) -> int:
    wanted = [row.rstrip() for row in search.removesuffix("\n").split("\n")]
    return sum(rows[at : at + len(wanted)] == wanted for at in range(len(rows)))


@given(kernels, kernels)
@settings(max_examples=200, deadline=None)
def test_edits_of_a_real_difference_make_the_second_kernel_out_of_the_first(before: str, after: str) -> None:
    before, after = before.rstrip("\n") + "\n", after.rstrip("\n") + "\n"
    hunks = _unique_hunks(before, after)
    if hunks is None:
        return
    assert apply(before, [Edit((hunk,)) for hunk in hunks]).source == after


@given(st.data())
@settings(max_examples=40, deadline=None)
def test_changed_lines_of_a_shipped_kernel_come_back_through_a_reply(data: st.DataObject) -> None:
    before = data.draw(st.sampled_from(SHIPPED))
    rows = before.splitlines(keepends=True)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(rows) - 1))
        rows[at : at + data.draw(st.integers(0, 2))] = data.draw(
            st.sampled_from([[], ["    int extra = 1;\n"], ["//\n"] * 2])
        )
    after = "".join(rows).rstrip("\n") + "\n"
    hunks = _unique_hunks(before, after)
    if not hunks:
        return
    reply = "Because.\n```cuda\n" + "\n".join(block(*hunk) for hunk in hunks) + "```\n"
    assert apply(before, parse(reply).edits).source == after
    asked = json.dumps({"note": "n", "edits": [{"search": a, "replace": b} for a, b in hunks]})
    assert apply(before, parse(asked).edits).source == after


def _shipped() -> list[str]:
    from pathlib import Path

    from evo import workload

    return [workload.load(name, cwd=Path("/")).initial for name in names(cwd=Path("/"))]


SHIPPED = _shipped()


@given(
    st.one_of(
        st.text(max_size=200),
        st.lists(
            st.sampled_from(
                [
                    "<<<<<<< SEARCH",
                    "=======",
                    ">>>>>>> REPLACE",
                    "```",
                    LINE,
                    NAIVE,
                    '{"edits": [',
                    "]}",
                    '"search": ""',
                    "{",
                ]
            ),
            max_size=12,
        ).map("\n".join),
    ),
    st.sampled_from([NAIVE, "", "\n\n", "=======\n"]),
)
def test_no_text_whatever_raises(reply: str, source: str) -> None:
    parsed = parse(reply)
    applied = apply(source, parsed.edits)
    assert (applied.source is None) == bool(applied.problem)


@pytest.mark.parametrize(
    "reply",
    [
        "<<<<<<< SEARCH\n" * 100_000,
        block("x\n", "y\n") * 40_000,
        "=" * 2_000_000,
        "<<<<<<< SEARCH\n" + "=======\n" * 200_000 + ">>>>>>> REPLACE\n",
        '{"edits": [' + '{"search": "x", "replace": ""},' * 60_000,
        "{" * 2_000_000,
        block(" ".join(["float"] * 100_000) + "\n", "y\n"),
    ],
    ids=["opened", "many", "long line", "dividers", "json cut off", "braces", "long search"],
)
def test_two_megabytes_are_read_in_a_moment(reply: str) -> None:
    started = time.perf_counter()
    apply(NAIVE * 300, parse(reply).edits)
    assert time.perf_counter() - started < 5
