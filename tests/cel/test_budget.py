"""The cost of an evaluation is known from the expression and its data, and paid before it is done."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any

import pytest

from kardinal import cel
from kardinal.cel.prices import PRICES
from tests.cel.corpus import DEAR, data

NOW = datetime(2026, 4, 9, 12, 0, tzinfo=UTC)

FREE = {
    *("-", "*", "/", "%", "!", "now", "time.now", "size", "type", "dyn"),
    *("optional.of", "optional.none", "optional.ofNonZeroValue", "orValue", "or", "hasValue", "value"),
    *("first", "last", "sign", "major", "minor", "patch"),
    *(f"math.{name}" for name in ("abs", "ceil", "floor", "round", "trunc", "sign", "sqrt")),
    *(f"math.{name}" for name in ("isNaN", "isInf", "isFinite", "bitAnd", "bitOr", "bitXor", "bitNot")),
    *("math.bitShiftLeft", "math.bitShiftRight", "inWindow"),
}
"""Functions whose work does not grow with their operands: numbers have 64 bits, and a string is itself."""


def spent(source: str, scope: dict[str, Any]) -> int:
    budget = cel.Budget()
    cel.compile(source).evaluate(scope, now=NOW, budget=budget)
    return budget.limits.steps - budget.steps


def test_every_function_has_a_price_or_needs_none() -> None:
    assert set(cel.FUNCTIONS) == set(PRICES) | FREE
    assert not set(PRICES) & FREE


def test_the_cost_is_the_same_every_time() -> None:
    scope = data()
    again = data()
    assert [spent(source, scope) for source in DEAR.values()] == [spent(source, again) for source in DEAR.values()]


@pytest.mark.parametrize(
    "source",
    [
        "text.replace('a', 'b').size()",
        "text.split('').size()",
        "items.join()",
        "'z' in items",
        "text + text == text",
        "text < text",
        "text == text + ''",
        "items == items",
        "items + items == items",
        "text.contains('b')",
        "text.lastIndexOf('ab')",
        "text.matches('b')",
        "text.trim()",
        "text.upperAscii()",
        "items.map(i, i)",
        "items",
        "{text + '': 1}",
        "double(text + 'x')",
        "duration(text + 'x')",
        "bytes(text).size()",
        "base64.encode(bytes(text)).size()",
        "base64.decode(text).size()",
        "json.marshal(items).size()",
        "json.unmarshal('[' + text + ']')",
        "items.sort().size()",
        "items.isSorted()",
        "items.max()",
        "items.map(i, 1).sum()",
        "items.distinct()",
        "items.reverse().size()",
        "items.slice(1, 9).size()",
        "[items].flatten().size()",
        "items.indexOf('z')",
        "sets.contains(items, items)",
        "items.sortBy(i, i).size()",
        "math.greatest(items.map(i, 1))",
        "lists.range(items.size()).size()",
        "'%s'.format([items]).size()",
        "text.reverse().size()",
        "strings.quote(text).size()",
        "text.find('b')",
        "text.findAll('b')",
    ],
)
def test_the_cost_grows_with_the_operands(source: str) -> None:
    small, large = ({"text": "a" * size, "items": ["a"] * size} for size in (1_000, 3_000))
    assert spent(source, small) < spent(source, large)


def test_facts_about_a_node_cost_what_a_field_does() -> None:
    scope: dict[str, Any] = {"a": {"x": True}, "a.ready()": True, "dependencies()": [1] * 50}
    assert spent("a.ready()", scope) == spent("a.x", scope) > 0
    assert spent("a.ready().orValue(false)", scope) == spent("a.?x.orValue(false)", scope)
    assert spent("dependencies().all(d, d == 1)", scope) > 50


@pytest.mark.parametrize("source", ["1 + 1 == 2", "a.b.c == 'x' && a.n > 3", "'v1.2.3'.matches('^v[0-9]{1,3}[.]')"])
def test_usual_expressions_cost_little(source: str) -> None:
    assert spent(source, {"a": {"b": {"c": "x"}, "n": 4}}) < cel.STANDARD_LIMITS.steps / 50


def test_the_cost_of_merging_grows_with_the_maps() -> None:
    small, large = ({"m": {f"k{number}": 1 for number in range(size)}} for size in (1_000, 3_000))
    for source in ("m.merge({'a': 1}).size()", "['x'].transformMapEntry(i, x, m).size()"):
        assert spent(source, small) < spent(source, large)


def test_thousands_of_objects_can_be_looked_through() -> None:
    objects = [{"metadata": {"name": f"n{number}"}, "status": {"state": "Verified"}} for number in range(3_000)]
    source = "objects.all(o, o.status.state == 'Verified')"
    assert cel.compile(source).evaluate({"objects": objects}, now=NOW) == cel.Value(True)


def test_no_term_outweighs_an_overrun() -> None:
    source = "['x'].exists(a, big.all(b, b + b == b) || true) || true"
    outcome = cel.compile(source).evaluate({"big": ["y"] * 10_000}, now=NOW)
    assert isinstance(outcome, cel.Failed)
    assert outcome.overran


def test_evaluations_that_share_a_budget_overrun_together() -> None:
    program = cel.compile("few.map(a, few.map(b, a)).size() > 0")
    budget = cel.Budget()
    scope = {"few": list(range(50))}
    outcomes = [program.evaluate(scope, now=NOW, budget=budget) for _ in range(10)]
    assert outcomes[0] == cel.Value(True)
    assert outcomes[-1] == cel.Failed("limit", "the expression takes more than 100000 steps on its data")


def test_cpu_time_stops_an_evaluation_without_an_outcome() -> None:
    limits = cel.Limits(steps=100_000, memory=1 << 20, cpu=0.0)
    program = cel.compile("few.all(a, few.all(b, a + b >= 0))")
    scope = {"few": list(range(40))}
    with pytest.raises(cel.CpuTimeExceeded):
        program.evaluate(scope, now=NOW, budget=cel.Budget(limits))
    assert program.evaluate(scope, now=NOW) == cel.Value(True)


def test_cpu_time_between_two_evaluations_is_not_counted() -> None:
    limits = cel.Limits(steps=100_000, memory=1 << 20, cpu=0.05)
    program = cel.compile("few.all(a, few.all(b, a + b >= 0))")
    budget = cel.Budget(limits)
    scope = {"few": list(range(10))}
    while budget.steps > limits.steps // 2:
        assert program.evaluate(scope, now=NOW, budget=budget) == cel.Value(True)
    later = time.thread_time() + 2 * 0.05
    while time.thread_time() < later:
        pass
    while budget.steps > limits.steps // 4:
        assert program.evaluate(scope, now=NOW, budget=budget) == cel.Value(True)


def test_the_rules_of_a_crd_are_not_priced() -> None:
    assert cel.STANDARD.prices
    library = cel.Library(cel.FUNCTIONS, {})
    assert cel.compile("size(text.split(''))", library).evaluate({"text": "x" * 200_000}, now=NOW) == cel.Value(200_000)


def test_a_quarantine_holds_a_place_until_its_version_changes() -> None:
    quarantine: cel.Quarantine[str] = cel.Quarantine()
    quarantine.hold("one", ("text", 1), "too much")
    assert quarantine.held("one", ("text", 1)) == "too much"
    assert quarantine.held("one", ("text", 2)) is None
    assert quarantine.held("another", ("text", 1)) is None
