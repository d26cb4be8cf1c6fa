"""An expression compiles or is refused, and names what it reads."""

from __future__ import annotations

import re
import time
from importlib.metadata import distribution
from pathlib import Path

import pytest

from kardinal import cel
from kardinal.cel import grammar


@pytest.mark.parametrize(
    ("source", "position", "message"),
    [
        ("", 0, "the expression is empty"),
        ("  ", 0, "the expression is empty"),
        ("a b", 2, "unexpected `b`"),
        ("a ==", 4, "the expression ends too early"),
        ("a @ b", 2, "unexpected character `@`"),
        ("1 + nope(2)", 4, "unknown function `nope`"),
        ("a.startWith('x')", 2, "unknown function `startWith` (did you mean `startsWith`?)"),
        ("size()", 0, "wrong number of arguments for `size`"),
        ("a.now()", 2, "wrong number of arguments for `now`"),
        ("has(a)", 4, "has() takes one field selection, as in `has(a.b)`"),
        ("xs.all(x)", 0, "all() takes a variable and an expression, as in `list.all(x, x.ok)`"),
        ("xs.all(x.y, true)", 8, "the first argument of all() must be a plain name"),
        ("for", 0, "`for` is a reserved word"),
        ("namespace.x", 0, "`namespace` is a reserved word"),
        ("Pod{name: 1}", 0, "message construction is not supported"),
        ("-1u", 0, "the number does not fit into 64 bits"),
        ("18446744073709551616u", 0, "the number does not fit into 64 bits"),
        (r"b'\q'", 2, "unknown escape in a string"),
        ("sets.contains(a, ?b)", 17, "unexpected `?`"),
        ("size(?a)", 5, "unexpected `?`"),
        ("a.?startsWith(b)", 2, "unexpected `?`"),
        ("a.?", 2, "unexpected `?`"),
        ("[?]", 1, "unexpected `?`"),
        ("math.greatest()", 0, "wrong number of arguments for `math.greatest`"),
        ("cel.bind(x, 1)", 0, "cel.bind() takes a variable, its value and an expression"),
        ("cel.bind(x.y, 1, 2)", 10, "the first argument of cel.bind() must be a plain name"),
        (r"'a\q'", 2, "unknown escape in a string"),
        ("'a\\'", 2, "unknown escape in a string"),
        ("9223372036854775808", 0, "the number does not fit into 64 bits"),
        ("(" * 65 + "1" + ")" * 65, 65, "the expression is nested deeper than 64 levels"),
        ("-" * 65 + "x", 65, "the expression is nested deeper than 64 levels"),
        ("1" + " + 1" * 70, 0, "the expression is nested deeper than 64 levels"),
        ("a" + ".b" * 70, 0, "the expression is nested deeper than 64 levels"),
        ("a" * 4097, 4096, "the expression is longer than 4096 bytes"),
        (f"'{'é' * 2048}'", 2050, "the expression is longer than 4096 bytes"),
    ],
)
def test_a_wrong_expression_is_refused_with_its_position(source: str, position: int, message: str) -> None:
    with pytest.raises(cel.CompileError) as caught:
        cel.compile(source)
    assert (caught.value.position, caught.value.message) == (position, message)


@pytest.mark.parametrize(
    ("source", "place"),
    [
        ("a ==", "column 5"),
        ("a &&\n  b ==", "line 2, column 7"),
        ("a.?b == 1 ||\n\td.`x/y`.?c.nope()", "line 2, column 13"),
        ("'? [?' == a.?b[?'c'] ? 1 : @", "column 28"),
        ("// a.?b\n{?'a': 1} @", "line 2, column 11"),
    ],
)
def test_an_error_says_its_line_and_column_in_the_text_as_it_was_written(source: str, place: str) -> None:
    with pytest.raises(cel.CompileError) as caught:
        cel.compile(source)
    assert str(caught.value) == f"{caught.value.message} (at {place})"
    with pytest.raises(cel.CompileError, match=re.escape(place)):
        cel.compile(source)


def test_a_place_is_shown_with_a_caret_below_it() -> None:
    source = "a &&\n\tb + nope(1)"
    with pytest.raises(cel.CompileError) as caught:
        cel.compile(source)
    assert caught.value.location.shown(source) == " b + nope(1)\n     ^"


def test_the_grammar_is_read_as_it_is() -> None:
    distributed = distribution("cel-python").locate_file("celpy/cel.lark")
    assert grammar.read_grammar() == Path(str(distributed)).read_text(encoding="utf-8")


def test_an_unfinished_string_is_looked_at_once() -> None:
    began = time.process_time()
    with pytest.raises(cel.CompileError):
        cel.compile('"' + '\\"' * 2047)
    assert time.process_time() - began < 1


def test_a_long_chain_of_conditions_is_no_nesting() -> None:
    cel.compile(" && ".join(["a.b"] * 500))
    cel.compile(" || ".join(["a.b"] * 500))


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("a.b.c", {"a.b.c"}),
        ('a["b"].c', {"a.b.c"}),
        ("a.l[0].x", {"a.l"}),
        ("a.l[b.i].x", {"a.l", "b.i"}),
        ("a.m.filter(x, x.y == b.z)", {"a.m", "b.z"}),
        ("prod.list.filter(prod, prod.x)", {"prod.list"}),
        ("prod.list.exists(prod, prod.x) && prod.y", {"prod.list", "prod.y"}),
        ("has(a.b.c)", {"a.b.c"}),
        ("a.name.startsWith(b.c)", {"a.name", "b.c"}),
        ("cel.bind(x, a.b, x.c + d)", {"a.b", "d"}),
        ("cel.bind(a, a.b, a.c)", {"a.b"}),
        ("a.`x.y/z`.b", {"a.x.y/z.b"}),
        ("[?a.?b, c]", {"a.b", "c"}),
        ("{?'k': a.?b}", {"a.b"}),
        ("a.transformMap(k, v, v == b.c)", {"a", "b.c"}),
        ("optional.of(a).hasValue() && time.now() > t", {"a", "t"}),
        ("{a.k: b.v}[c.x]", {"a.k", "b.v", "c.x"}),
        ("type(a.b) == string", {"a.b"}),
        ("map.metadata.name + list.spec", {"map.metadata.name", "list.spec"}),
        ("map.items.all(i, i.ok)", {"map.items"}),
        ("1 + 2", set()),
        ("a ? b : c", {"a", "b", "c"}),
    ],
)
def test_references_are_the_static_paths_from_free_names(source: str, expected: set[str]) -> None:
    assert {str(reference) for reference in cel.compile(source).references} == expected


def test_a_reference_is_soft_when_its_root_is_reached_by_an_optional_selector() -> None:
    assert cel.compile("a.?b.c.orValue(1)").references == {cel.Reference("a", ("b", "c"), soft=True)}
    assert cel.compile("a.b.?c.orValue(1)").references == {cel.Reference("a", ("b", "c"), soft=False)}
    assert cel.compile('a[?"b"].orValue(1)').references == {cel.Reference("a", ("b",), soft=True)}


def test_equal_texts_share_one_program() -> None:
    assert cel.compile("a.b == 1") is cel.compile("a.b == 1")


@pytest.mark.parametrize(
    ("source", "volatile"), [("now() > a", True), ("xs.all(x, x < time.now())", True), ("a", False)]
)
def test_volatile_means_that_time_alone_may_change_the_answer(source: str, volatile: bool) -> None:
    assert cel.compile(source).volatile is volatile
