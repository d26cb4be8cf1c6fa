"""Whatever compiles can be evaluated against whatever data: the outcome is a value or a reason, never an exception."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from kardinal import cel
from tests.fuzz.inputs import fuzzed

NOW = datetime(2026, 4, 9, 12, 0, tzinfo=UTC)

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)

_OPERATORS = ["+", "-", "*", "/", "%", "==", "!=", "<", "<=", ">", ">=", "in", "&&", "||"]
_METHODS = ["size()", "startsWith('x')", "getHours()", "getHours('+01:00')", "split('')", "join()", "substring(1)"]
_MACROS = ["all", "exists", "exists_one", "filter", "map"]
_FUNCTIONS = ["string", "int", "double", "bool", "timestamp", "duration", "type", "size", "optional.of", "has"]
_ATOMS = [
    "a",
    "a.b",
    "a.?b",
    "a['c']",
    "a[0]",
    "a.b[?1]",
    "b.c",
    "true",
    "1",
    "-2.5",
    "'x'",
    "null",
    "now()",
    "[]",
    "{}",
]


def _grown(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.builds("({} {} {})".format, inner, st.sampled_from(_OPERATORS), inner),
        st.builds("({} ? {} : {})".format, inner, inner, inner),
        st.builds("{}({})".format, st.sampled_from(["!", "-", *_FUNCTIONS]), inner),
        st.builds("{}.{}".format, inner, st.sampled_from(_METHODS)),
        st.builds("{}.{}(x, {})".format, inner, st.sampled_from(_MACROS), inner | st.just("x")),
        st.builds("[{}, {}]".format, inner, inner),
        st.builds("{{'k': {}, 'l': {}}}".format, inner, inner),
    )


expressions = st.recursive(st.sampled_from(_ATOMS), _grown, max_leaves=8)


def refusal(text: str) -> cel.CompileError | None:
    """Return the error of a text that is no expression."""
    try:
        cel.compile(text)
    except cel.CompileError as error:
        return error
    return None


@fuzzed
@given(source=expressions, data=st.dictionaries(st.sampled_from("ab"), json_values, max_size=2))
def test_every_evaluation_has_an_outcome(source: str, data: dict[str, object]) -> None:
    if refusal(source) is None:
        program = cel.compile(source)
        outcome = program.evaluate(data, now=NOW)
        assert isinstance(outcome, cel.Value | cel.Missing | cel.Failed)
        program.next_flip(data, now=NOW)
        program.observed(data)


@fuzzed
@given(text=expressions | st.text(alphabet="ab.?[](){}'\"\\,:+-!&|<>=0 1ex\n", max_size=20))
def test_every_text_compiles_or_is_refused_at_a_place_inside_it(text: str) -> None:
    error = refusal(text)
    assert error is None or 0 <= error.position <= len(text)
