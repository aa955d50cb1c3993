from __future__ import annotations

import pytest

from evo import plugins
from evo.records import ModelReply, ModelRequest, Proposal, Relative, Status, to_json
from mutators.operators.rewrite import Rewrite
from tests.support.mutation import FASTER, NAIVE, accepted, context, rejected, replied

OPERATOR = Rewrite()


GOOD = replied(f"The loop was not unrolled.\nNow it is.\n\n```cuda\n{FASTER}```")


def test_it_is_found_by_its_name() -> None:
    assert plugins.resolve(plugins.OPERATORS, "rewrite") is Rewrite


def test_the_first_step_asks_with_rules_and_the_parents_feedback() -> None:
    request = OPERATOR.step(context(), ())
    assert isinstance(request, ModelRequest)
    assert [message.role for message in request.messages] == ["system", "user"]
    assert NAIVE in request.messages[1].content
    assert "0.750 times the anchor's latency" in request.messages[1].content


def test_a_long_explanation_is_cut_at_a_word() -> None:
    step = OPERATOR.step(context(), (replied("because " * 100 + f"\n```cuda\n{FASTER}```"),))
    assert isinstance(step, Proposal)
    assert step.note.endswith("because …")
    assert len(step.note) <= 302


def test_steps_are_pure_and_the_seed_alone_varies_the_direction() -> None:
    assert OPERATOR.step(context(), ()) == OPERATOR.step(context(), ())
    asked = {to_json(OPERATOR.step(context(seed=(0, task)), ())) for task in range(40)}
    assert len(asked) == 6


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        (replied("I would rather not."), "the reply holds no __global__ function"),
        (replied("", "length"), "the reply is empty: all its tokens went into reasoning"),
        (replied(f"```cuda\n{FASTER[:300]}", "length"), "the reply was cut off before its kernel was complete"),
        (replied(f"```cuda\n{FASTER.split('*/')[1].replace('gemm', 'mine')}```"), "the kernel has no launch header"),
    ],
)
def test_a_reply_without_a_kernel_is_asked_again_once(reply: ModelReply, problem: str) -> None:
    first = OPERATOR.step(context(), ())
    second = OPERATOR.step(context(), (reply,))
    assert isinstance(first, ModelRequest)
    assert isinstance(second, ModelRequest)
    assert second.messages[:2] == first.messages
    assert [message.role for message in second.messages[2:]] == ["assistant", "user"]
    assert second.messages[2].content
    assert problem in second.messages[3].content
    assert OPERATOR.step(context(), (reply, GOOD)) == Proposal(FASTER, "The loop was not unrolled. Now it is.")
    last = OPERATOR.step(context(), (reply, reply))
    assert isinstance(last, Proposal)
    assert last.source is None
    assert last.note.startswith(problem)


def test_the_parent_unchanged_is_noticed_under_the_tuners_rules_too() -> None:
    tuned = NAIVE.replace("*/", "choose:\n  - {when: 'M == 256', set: {BX: 32}}\n*/", 1)
    for reply in (NAIVE, tuned):
        step = OPERATOR.step(context(Relative(1, tuned, accepted(1, 1500.0))), (replied(f"```cuda\n{reply}```"),))
        assert step == Proposal(None, "returned the parent unchanged")


def test_a_rejected_parent_is_to_be_mended() -> None:
    parent = Relative(3, NAIVE, rejected(3, Status.COMPILE_ERROR, "compile", "line 8: error: expected ';'"))
    request = OPERATOR.step(context(parent), ())
    assert isinstance(request, ModelRequest)
    assert "was not accepted. Find the cause" in request.messages[1].content
    assert "line 8: error: expected ';'" in request.messages[1].content
