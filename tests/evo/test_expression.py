from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evo.errors import ExpressionError, HeaderError
from evo.kernel.expression import LIMIT, MAX_DEPTH, Expression

ENV = {"M": 100, "N": 7, "BX": 32, "zero": 0}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1 + 2 * 3", 7),
        ("(1 + 2) * 3", 9),
        ("10 - 3 - 2", 5),
        ("2 * 7 // 4 % 3", 0),
        ("-7 // 2", -4),
        ("-7 % 4", 1),
        ("-N + M", 93),
        ("--N", 7),
        ("ceildiv(M, BX)", 4),
        ("ceildiv(-7, 2)", -3),
        ("min(M, N, 3)", 3),
        ("max(M, N)", 100),
        ("M > N", 1),
        ("M < N", 0),
        ("1 <= N <= 7", 1),
        ("1 <= N < 7 == 7", 0),
        ("not M == 100", 0),
        ("not not N", 1),
        ("M == 100 and N == 7 or zero", 1),
        ("zero or N", 1),
        ("zero and M // zero", 0),
        ("1 or M // zero", 1),
        ("  N\n+ 1 ", 8),
    ],
)
def test_an_expression_has_the_value_that_its_grammar_says(text: str, value: int):
    assert Expression.parse(text).evaluate(ENV) == value


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "column 1: expected a number, a name or '(', found the end"),
        ("1 +", "column 4: expected a number, a name or '(', found the end"),
        ("M N", "column 3: expected an operator or the end, found 'N'"),
        ("M / N", "column 3: expected an integer expression, found '/'; use // (floor division) or ceildiv(a, b)"),
        ("M && N", "use 'and'"),
        ("M || N", "use 'or'"),
        ("M ? 1 : 2", "use min, max"),
        ("M = 3", "use == to compare"),
        ("1.5", "found '.'; values are integers"),
        ("0x10", "expected a decimal integer, found '0x10'"),
        ("(M", "column 3: expected ')', found the end"),
        ("log2(M)", "expected a function, found 'log2'; known: ceildiv, max, min"),
        ("min(M)", "expected 2 to 16 arguments of min, found '1'"),
        ("ceildiv(M, N, 2)", "expected 2 arguments of ceildiv, found '3'"),
        ("__import__('os')", 'expected an integer expression, found "\'"'),
        ("M, N", "expected an operator or the end, found ','"),
        ("and", "expected a number, a name or '(', found 'and'"),
        ("(" * 40 + "1" + ")" * 40, f"expected at most {MAX_DEPTH} levels of nesting"),
        ("1+" * 600 + "1", "expected at most 1000 characters, found 1201"),
        ("1 + BXX", "unknown name 'BXX' at column 5; did you mean 'BX'?"),
        ("M // zero", "// by zero at column 3"),
        ("M % zero", "% by zero"),
        ("ceildiv(M, zero)", "ceildiv by zero at column 1"),
        ("9223372036854775808", "a value leaves the 64-bit range"),
        ("M * 4611686018427387904", "a value leaves the 64-bit range"),
        ("9" * 900, "a value leaves the 64-bit range"),
    ],
)
def test_a_wrong_expression_says_where_and_what_to_do(text: str, message: str):
    with pytest.raises(ExpressionError) as caught:
        Expression.parse(text, "file, line 3").evaluate(ENV)
    assert str(caught.value).startswith("file, line 3: ")
    assert message in str(caught.value)
    assert isinstance(caught.value, HeaderError)


def test_a_list_is_split_at_commas_outside_of_calls():
    parts = Expression.parse_list("ceildiv(N, BX) , max(1, M),3")
    assert [part.text for part in parts] == ["ceildiv(N, BX)", "max(1, M)", "3"]
    with pytest.raises(ExpressionError, match="at most 3 values"):
        Expression.parse_list("1, 2, 3, 4", most=3)


def test_names_are_all_that_evaluation_asks_for():
    assert Expression.parse("ceildiv(N, BX) > -M and not 3").names == {"N", "BX", "M"}


def test_canonical_text_ignores_spacing_and_needless_parentheses():
    assert Expression.parse("((a+b))*c").canonical == Expression.parse("( a  + b ) * (c)").canonical
    assert Expression.parse("a - (b - c)").canonical != Expression.parse("a - b - c").canonical


def test_an_expression_survives_pickling():
    expression = pickle.loads(pickle.dumps(Expression.parse("ceildiv(N, 2) + 1")))
    assert expression.evaluate(ENV) == 5


_leaves = st.one_of(st.integers(0, 50).map(str), st.sampled_from(["M", "N", "BX"]))


def _grown(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    binary = st.tuples(inner, st.sampled_from(["+", "-", "*", "<", "<=", "=="]), inner)
    logic = st.tuples(inner, st.sampled_from(["and", "or"]), inner)
    return st.one_of(
        binary.map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
        logic.map(lambda t: f"(0 != {t[0]} {t[1]} 0 != {t[2]})"),
        st.tuples(inner, inner).map(lambda t: f"min({t[0]}, {t[1]})"),
        inner.map(lambda t: f"(-{t})"),
        inner.map(lambda t: f"(not {t})"),
    )


@given(st.recursive(_leaves, _grown, max_leaves=12))
def test_values_are_those_of_python_arithmetic(text: str):
    # `eval` here is the oracle of the test; the product has its own parser.
    wanted = eval(text, {"__builtins__": {}, "min": min}, dict(ENV))
    expression = Expression.parse(text)
    assert expression.evaluate(ENV) == int(wanted)
    assert Expression.parse(expression.canonical).evaluate(ENV) == int(wanted)


@given(st.text(max_size=60))
def test_any_text_is_an_expression_or_an_expression_error(text: str):
    try:
        value = Expression.parse(text).evaluate(ENV)
    except ExpressionError:
        return
    assert -LIMIT < value < LIMIT
