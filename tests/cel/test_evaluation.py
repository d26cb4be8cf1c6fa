"""Expressions evaluate as the CEL specification says."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kardinal import cel
from tests.cel.corpus import tower

NOW = datetime(2026, 4, 9, 12, 0, tzinfo=UTC)  # a Thursday

SCOPE: dict[str, object] = {
    "dev": {
        "metadata": {"namespace": "shop", "labels": {"team/a": "blue"}},
        "spec": {"replicas": 3, "ratio": 3.0, "unset": None},
        "status": {
            "state": "Verified",
            "conditions": [{"type": "Ready", "status": "True"}, {"type": "Healthy", "status": "False"}],
        },
    },
    "xs": [3, 1, 2],
    "gate": {"status": {"lastEvaluatedAt": "2026-04-09T11:55:00Z"}},
}


def evaluate(source: str, scope: dict[str, object] = SCOPE) -> cel.Outcome:
    return cel.compile(source).evaluate(scope, now=NOW)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('dev.status.state == "Verified"', True),
        ("dev.spec.replicas", 3),
        ('dev.metadata.namespace + "/" + dev.metadata.labels["team/a"]', "shop/blue"),
        ('dev.status.conditions.exists(c, c.type == "Ready" && c.status == "True")', True),
        ('dev.status.conditions.all(c, c.status == "True")', False),
        ('dev.status.conditions.exists_one(c, c.type == "Ready")', True),
        ('dev.status.conditions.filter(c, c.status == "False").map(c, c.type)', ["Healthy"]),
        ("xs.map(x, x > 1, x * 10)", [30, 20]),
        ("dev.metadata.labels.exists(k, k.startsWith('team/'))", True),
        ("size(xs) == 3 && xs.size() == 3 && 'é'.size() == 1", True),
        ("2 in xs && !(7 in xs) && 'spec' in dev", True),
        ("xs[0] - xs[1] * 2 + 7 / 2 - 7 % 4", 1),
        ("-7 / 2 == -3 && -7 % 2 == -1", True),
        ("true ? 1 : 2", 1),
        ("has(dev.status.state) && !has(dev.status.nope)", True),
        ("dev.spec.unset == null", True),
        ("{'a': [1, 2.5, null, true], 'b': {'c': 'd'}}", {"a": [1, 2.5, None, True], "b": {"c": "d"}}),
        ("[1, 2] + [3]", [1, 2, 3]),
        ("type(1) == int && type('') == string && type(1) != type(1.0)", True),
        ("{1: 'mon', 2: 'tue'}[2]", "tue"),
        ("'\\u00e9\\x41\\n' + r'\\n' + '''a\" b'''", 'éA\n\\na" b'),
        ("0x10 == 16 && 1.5e3 == 1500.0 && .5 < 1.", True),
        ("int('42') + int(3.9) + int(timestamp('1970-01-01T00:00:05Z'))", 50),
        ("string(3) + string(3.0) + string(true) + string(2.5)", "33true2.5"),
        ("double('1.5') + double(1)", 2.5),
        ("bool('true')", True),
    ],
)
def test_the_core_of_the_language(source: str, expected: object) -> None:
    assert evaluate(source) == cel.Value(expected)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("' A,b '.trim().lowerAscii().split(',')", ["a", "b"]),
        ("'a-b-c'.replace('-', '_', 1)", "a_b-c"),
        ("['a', 'b'].join('/')", "a/b"),
        ("'kardinal'.substring(0, 4).upperAscii()", "KARD"),
        ("'kardinal'.indexOf('a') + 'kardinal'.lastIndexOf('a')", 7),
        ("'abc'.charAt(1)", "b"),
        ("'a:b:c'.split(':', 2)", ["a", "b:c"]),
        ("'v1.2.3'.matches('^v[0-9]+[.]')", True),
        ("'abc'.contains('b') && 'abc'.endsWith('c')", True),
    ],
)
def test_functions_on_strings(source: str, expected: object) -> None:
    assert evaluate(source) == cel.Value(expected)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("now()", "2026-04-09T12:00:00Z"),
        ("time.now() == now()", True),
        ('timestamp(gate.status.lastEvaluatedAt) > now() - duration("10m")', True),
        ("now() - timestamp(gate.status.lastEvaluatedAt)", "300s"),
        ("duration('1h30m') + duration('-0.5s')", "5399.5s"),
        ("now().getDayOfWeek()", 4),
        ("now().getHours('Europe/Zurich')", 14),
        ("now().getHours('-08:00')", 4),
        ("timestamp('2026-04-09T12:00:00+02:00')", "2026-04-09T10:00:00Z"),
        ("now().getMonth() == 3 && now().getDate() == 9 && now().getDayOfMonth() == 8", True),
        ("duration('90m').getHours() == 1 && duration('90m').getMinutes() == 90", True),
    ],
)
def test_time(source: str, expected: object) -> None:
    assert evaluate(source) == cel.Value(expected)


async def test_a_time_zone_can_be_looked_up_on_the_event_loop() -> None:
    assert evaluate("now().getHours('Australia/Eucla')") == cel.Value(20)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("dev.status.state == 5", False),
        ("1 == 1.0 && 1 < 2.5 && 2.5 > 1 && 1 in [1.0]", True),
        ("true == 1 || [1] == [true] || null == false", False),
        ("[1, {'a': 2}] == [1.0, {'a': 2.0}]", True),
        ("dev.spec.ratio == dev.spec.replicas", True),
    ],
)
def test_values_of_different_types_are_unequal_and_numbers_compare_by_value(source: str, expected: object) -> None:
    assert evaluate(source) == cel.Value(expected)


def test_integers_stay_exact_to_64_bits_and_doubles_stay_doubles() -> None:
    assert evaluate("9007199254740993 + 0") == cel.Value(9007199254740993)
    value = evaluate("dev.spec.ratio")
    assert isinstance(value, cel.Value)
    assert type(value.json) is float
    assert isinstance(evaluate("9223372036854775807 + 1"), cel.Failed)


@pytest.mark.parametrize(
    ("source", "path"),
    [
        ("dev.status.verifiedAt", "dev.status.verifiedAt"),
        ("dev.health.phase", "dev.health.phase"),
        ("uat.status.state == 'Verified'", "uat.status.state"),
        ("uat", "uat"),
        ("xs[5]", "xs[5]"),
        ('dev.metadata.labels["none"]', 'dev.metadata.labels["none"]'),
        ("dev.status.ready ? 1 : 2", "dev.status.ready"),
        ("dev.spec.unset.field", "dev.spec.unset.field"),
        ("has(dev.health.phase)", "dev.health"),
        ("has(dev.health.phase) && dev.health.phase == 'ok'", "dev.health"),
        ("{'a': dev.status.nope}", "dev.status.nope"),
        ("[dev.status.nope]", "dev.status.nope"),
        ("size(dev.status.nope)", "dev.status.nope"),
        ("xs.map(x, dev.status.nope)", "dev.status.nope"),
    ],
)
def test_absent_data_is_missing_and_names_the_path(source: str, path: str) -> None:
    assert evaluate(source) == cel.Missing(path)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("true || dev.nope", True),
        ("dev.nope || true", True),
        ("false && dev.nope", False),
        ("dev.nope && false", False),
        ("true ? 1 : dev.nope", 1),
        ("xs.exists(x, x / 0 == 1 || x == 2)", True),
        ("xs.exists(x, (x == 2 ? 1 : x / 0) == 1)", True),
        ("xs.all(x, (x == 2 ? 1 : x / 0) == 0)", False),
    ],
)
def test_a_term_that_decides_hides_the_failure_of_another(source: str, expected: object) -> None:
    assert evaluate(source) == cel.Value(expected)


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ("dev.status.state + 1", "type"),
        ("dev.status.state.nope", "type"),
        ("1 + 1.0", "type"),
        ("1 && true", "type"),
        ("true && 1", "type"),
        ("1 ? 2 : 3", "type"),
        ("xs.filter(x, x)", "type"),
        ("'a' < 1", "type"),
        ("1 in 2", "type"),
        ("dev.orValue(1)", "type"),
        ("1 / 0", "arithmetic"),
        ("timestamp('2026-04-09')", "conversion"),
        ("timestamp('2026-13-09T00:00:00Z')", "conversion"),
        ("duration('1 hour')", "conversion"),
        ("int('4x')", "conversion"),
        ("'a'.matches('[')", "conversion"),
        ("now().getHours('Mars/Olympus')", "conversion"),
        ("now() + duration('99999999h')", "arithmetic"),
        ("timestamp('0001-01-01T00:00:00Z').getHours('-08:00')", "arithmetic"),
        ("1.0 / 0.0", "unrepresentable"),
        ("type(1)", "unrepresentable"),
        ("{1: 2}", "unrepresentable"),
    ],
)
def test_data_that_does_not_fit_is_a_failure(source: str, kind: str) -> None:
    outcome = evaluate(source)
    assert isinstance(outcome, cel.Failed)
    assert outcome.kind == kind


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('dev.?status.?nope.orValue("n/a")', "n/a"),
        ("uat.?status.?state.orValue('none')", "none"),
        ("dev.status.?state.orValue('')", "Verified"),
        ("dev.status.?nope.hasValue()", False),
        ("dev[?'status'].?state.value()", "Verified"),
        ("xs[?9].orValue(0)", 0),
        ("dev.status.?nope", cel.OMIT),
        ("optional.none()", cel.OMIT),
        ("optional.of(1)", 1),
        ("dev.status.?state", "Verified"),
        ("{'a': dev.status.?nope, 'b': [dev.status.?nope, 1]}", {"b": [1]}),
    ],
)
def test_optionals(source: str, expected: object) -> None:
    assert evaluate(source) == cel.Value(expected)


def test_an_evaluation_leaves_its_scope_as_it_was_and_its_result_apart_from_it() -> None:
    scope: dict[str, Any] = {"a": {"m": {"k": [1]}}}
    outcome = evaluate("a.m", scope)
    assert isinstance(outcome, cel.Value)
    assert isinstance(outcome.json, dict)
    outcome.json["k"].append(2)
    assert scope == {"a": {"m": {"k": [1]}}}


@pytest.mark.parametrize(
    "source",
    [
        "big.all(a, big.all(b, big.all(c, true)))",
        "text.replace('', text)",
        "big.map(x, text).join()",
        "(" + " + ".join(["text"] * 20) + ") == ''",
        "big.exists(a, big.all(b, big.all(c, true))) || true",
    ],
)
def test_an_evaluation_is_bounded(source: str) -> None:
    outcome = evaluate(source, {"big": list(range(1000)), "text": "x" * 100_000})
    assert isinstance(outcome, cel.Failed)
    assert outcome.kind == "limit"


def test_data_nested_beyond_reason_is_a_failure_and_not_a_crash() -> None:
    deep: list[object] = []
    for _ in range(5000):
        deep = [deep]
    assert evaluate("deep", {"deep": deep}) == cel.Failed("limit", "the data is nested too deeply")


SECRET = "hunter2-c3VwZXJzZWNyZXQ"


@pytest.mark.parametrize(
    "source",
    [
        "s.data.password + 1",
        "s.data.password.nope",
        "s.data.password ? 1 : 2",
        "s.data.password && true",
        "s.data[s.data.password]",
        "s[s.data.password].x",
        "s.data.missing",
        "int(s.data.password)",
        "double(s.data.password)",
        "bool(s.data.password)",
        "timestamp(s.data.password)",
        "duration(s.data.password)",
        "now().getHours(s.data.password)",
        "'x'.matches('(' + s.data.password)",
        "s.data.password in 5",
        "[s.data.password].filter(x, x)",
        "{s.data.password: 1, s.data.password: 2}",
        "s.data.password.substring(99)",
        "s.data.password < 5",
        "-s.data.password",
        "[s.data.password].join(5)",
        "s.data.password.orValue('')",
        "uint(s.data.password)",
        "quantity(s.data.password)",
        "semver(s.data.password)",
        "base64.decode(s.data.password)",
        "json.unmarshal(s.data.password)",
        "string(bytes(s.data.password) + b'\\xff')",
        "'x'.find('(' + s.data.password)",
        "'x'.findAll('(' + s.data.password)",
        "'%d'.format([s.data.password])",
        "(s.data.password + '%q').format([1])",
        "'%s'.format([quantity('1')]) + s.data.password",
        "[s.data.password, 1].sort()",
        "[s.data.password, 1].sortBy(x, x)",
        "[s.data.password].sum()",
        "[s.data.password].slice(0, size(s.data.password))",
        "['a', 'b'].transformMapEntry(i, x, {s.data.password: x})",
        "math.greatest(s.data.password)",
        "[s.data.password].unwrapOpt()",
        "[?s.data.password]",
        "cel.bind(x, s.data.password, x + 1)",
        "s.data.password.lastIndexOf('x', 99)",
        "s.data.?password.optMap(x, x + 1)",
        "s.data.merge(s.data.password)",
        "s.data.password.indexOf(1)",
    ],
)
def test_no_message_holds_a_value(source: str) -> None:
    outcome = evaluate(source, {"s": {"data": {"password": SECRET}}})
    assert isinstance(outcome, cel.Missing | cel.Failed)
    assert SECRET not in repr(outcome)
    assert "hunter" not in repr(outcome)


@pytest.mark.parametrize(
    ("source", "location"),
    [
        ("dev.status.state + 1", "column 18"),
        ("dev.status.state == 'x' ||\n  xs[9] == 1", "line 2, column 3"),
        ("1 < 2 && int('x') == 1", "column 10"),
        ("'a'.substring(4)", "column 5"),
        ("xs.map(x, x / 0)", "column 13"),
        ("dev.nope.x", "column 1"),
    ],
)
def test_a_failure_says_where(source: str, location: str) -> None:
    outcome = evaluate(source)
    assert isinstance(outcome, cel.Missing | cel.Failed)
    assert str(outcome.location) == location
    if isinstance(outcome, cel.Failed):
        assert outcome.message == f"{outcome.reason} (at {location})"


def test_deep_towers_of_shared_lists_are_paid_for() -> None:
    for top in ("x27.flatten(99)", "x27.distinct()", "json.marshal(x27)", "'%s'.format([x27])", "x27 == x26", "x27"):
        outcome = evaluate(tower(top), {"some": [1, 2]})
        assert isinstance(outcome, cel.Failed)
        assert outcome.overran


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("[3, 1.5, 2u].sort()", [1.5, 2, 3]),
        ("'a'.split('', 2) + 'abc'.split('', 2) + ''.split('')", ["a", "a", "bc"]),
        ("optional.of(1).orValue(1 / 0) + optional.of(2).or(xs[99]).value()", 3),
        ("[1, 1.0, 1u, '1', true].distinct()", [1, "1", True]),
        ("sets.contains([{'a': [1, 2.0]}], [{'a': [1u, 2]}])", True),
        ("[0.0 / 0.0, 0.0 / 0.0].distinct().size()", 2),
        ("{1: 'a'}[1u] + {1u: 'b'}[1.0]", "ab"),
        ("[7, 8][dyn(1.0)]", 8),
        ("1u - 1u", 0),
        ("{true: 'a', 2: 'b'}[true]", "a"),
        ("1 in {true: 'a'} || {true: 'a'} == {1: 'a'}", False),
        ("['outer'].exists(xs, .xs == [3, 1, 2] && xs == 'outer')", True),
        ("type(now()) == google.protobuf.Timestamp", True),
        ("9223372036854775807 < 9223372036854775808.0", False),
        ("'%s'.format([double('NaN')])", "NaN"),
        ("b'\\xc3\\xa4' + b'a' == bytes('äa')", True),
        ("'a.b/c' == 'a.b/c' && {'x.y/z': 1}.`x.y/z` == 1", True),
        ("cel.bind(x, 1, cel.bind(x, x + 1, x * 10))", 20),
        ("[1, 2].exists(x, cel.bind(y, x, y == 2))", True),
        ("dev.?status.?nope.optMap(x, x).orValue('none')", "none"),
        ("{?'a': dev.?nope, ?'b': optional.of(1)}", {"b": 1}),
        ("base64.decode('aGk') == b'hi'", True),
        ("json.unmarshal('18446744073709551616') > 1.0", True),
    ],
)
def test_the_library_compares_as_the_language_does(source: str, expected: object) -> None:
    assert evaluate(source) == cel.Value(expected)


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ("1u - 2u", "arithmetic"),
        ("uint(-1)", "arithmetic"),
        ("int(-9223372036854775808.0)", "arithmetic"),
        ("duration('320000000000s')", "arithmetic"),
        ("duration('200000000000s') + duration('200000000000s')", "arithmetic"),
        ("lists.range(-1)", "limit"),
        ("{1: 'a', true: 'b'}", "type"),
        ("math.abs(-9223372036854775807 - 1)", "arithmetic"),
        ("[9223372036854775807, 1].sum()", "arithmetic"),
        ("1u + 1", "type"),
        ("[1, 'a'].sort()", "type"),
        ("[1, true].max()", "type"),
        ("[].min()", "type"),
        ("math.greatest([])", "type"),
        ("[?1]", "type"),
        ("{?'a': 1}", "type"),
        ("math.bitShiftLeft(1, -1)", "arithmetic"),
        ("'%.101f'.format([1.0])", "limit"),
        ("'%s'.format([])", "conversion"),
        ("'%s'.format([quantity('1')])", "type"),
        ("quantity('" + "1" * 65 + "')", "conversion"),
        ("semver('1.2." + "9" * 30 + "')", "conversion"),
        ("b'x'", "unrepresentable"),
        ("quantity('1')", "unrepresentable"),
        ("json.marshal(b'x')", "unrepresentable"),
    ],
)
def test_the_library_fails_by_class(source: str, kind: str) -> None:
    outcome = evaluate(source)
    assert isinstance(outcome, cel.Failed)
    assert outcome.kind == kind


def test_importing_the_environment_leaves_the_recursion_limit_and_the_library_alone() -> None:
    script = (
        "import sys; before = sys.getrecursionlimit(); from kardinal import cel; cel.compile('1 + 1');"
        "assert sys.getrecursionlimit() == before; assert 'celpy' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=30)


def test_the_next_flip_of_a_freshness_window_is_its_expiry() -> None:
    program = cel.compile('timestamp(gate.status.lastEvaluatedAt) > now() - duration("10m")')
    expiry = NOW + timedelta(minutes=5)
    assert program.volatile
    assert program.next_flip(SCOPE, now=NOW) == expiry
    assert program.evaluate(SCOPE, now=expiry - timedelta(microseconds=1)) == cel.Value(True)
    assert program.evaluate(SCOPE, now=expiry) == cel.Value(False)
    assert program.next_flip(SCOPE, now=expiry + timedelta(seconds=1)) is None


@pytest.mark.parametrize(
    ("source", "minutes"),
    [
        ("now() - timestamp(gate.status.lastEvaluatedAt) >= duration('30m')", 25),
        ("now() < timestamp('2026-04-09T13:00:00Z')", 60),
        ("timestamp('2026-04-09T13:00:00Z') <= now() || now() > timestamp('2026-04-09T12:30:00Z')", 30),
        ("gate.status.lastEvaluatedAt == 'x' && timestamp('2026-04-09T12:07:00Z') > now()", 7),
        ("now().getHours() >= 14", 120),
        ("now().getHours() >= 14 || now() > timestamp('2026-04-09T12:40:00Z')", 40),
        ("now().getHours() >= 9", 8 * 60),
        ("now().getSeconds() >= 9", 1),
        ("['2026-04-09T13:00:00Z'].all(t, timestamp(t) > now())", 1),
    ],
)
def test_the_next_flip_is_found_however_the_comparison_is_written(source: str, minutes: int) -> None:
    assert cel.compile(source).next_flip(SCOPE, now=NOW) == NOW + timedelta(minutes=minutes)


@pytest.mark.parametrize(
    "source",
    ["dev.spec.replicas > 2", "now() > timestamp('2026-01-01T00:00:00Z')", "timestamp(dev.status.nope) > now()"],
)
def test_no_flip_is_announced_where_time_changes_nothing(source: str) -> None:
    assert cel.compile(source).next_flip(SCOPE, now=NOW) is None


def test_a_strict_comparison_at_its_crossing_is_looked_at_right_behind_it() -> None:
    program = cel.compile("now() > timestamp('2026-04-09T12:00:00Z')")
    flip = program.next_flip({}, now=NOW)
    assert flip is not None
    assert program.evaluate({}, now=NOW) == cel.Value(False)
    assert program.evaluate({}, now=flip) == cel.Value(True)


def test_observed_lists_the_scalars_an_expression_reads_in_the_order_it_reads_them() -> None:
    program = cel.compile(
        "!schedule.isWeekend && bundle.soak >= 30 && bundle.soak < 90 && bundle.labels.all(l, l != x)"
    )
    scope = {"schedule": {"isWeekend": False}, "bundle": {"soak": 12, "labels": {}}}
    assert program.observed(scope) == [("schedule.isWeekend", False), ("bundle.soak", 12)]
