"""An expression compiles or is refused, and names what it reads."""

from __future__ import annotations

import pytest

from kardinal import cel


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
        ("b'x'", 0, "bytes literals are not supported"),
        (r"'a\q'", 2, "unknown escape in a string"),
        ("'a\\'", 2, "unknown escape in a string"),
        ("9223372036854775808", 0, "the number does not fit into 64 bits"),
        ("(" * 65 + "1" + ")" * 65, 65, "the expression is nested deeper than 64 levels"),
        ("-" * 65 + "x", 65, "the expression is nested deeper than 64 levels"),
        ("1" + " + 1" * 70, 0, "the expression is nested deeper than 64 levels"),
        ("a" + ".b" * 70, 0, "the expression is nested deeper than 64 levels"),
        ("a" * 4097, 4096, "the expression is longer than 4096 characters"),
    ],
)
def test_a_wrong_expression_is_refused_with_its_position(source: str, position: int, message: str) -> None:
    with pytest.raises(cel.CompileError) as caught:
        cel.compile(source)
    assert (caught.value.position, caught.value.message) == (position, message)


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
