"""Properties of the search for the moment at which time alone changes a value."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from kardinal import cel
from kardinal.cel.thresholds import RECHECK_INTERVAL, SEARCHED
from kardinal.cel.values import duration_text, timestamp_text

EPOCH = datetime(2026, 4, 9, 12, 0, tzinfo=UTC)
INSTANT = timedelta(microseconds=1)
HOUR = timedelta(hours=1)

spans = st.timedeltas(-timedelta(days=2), timedelta(days=2)) | st.integers(-5, 5).map(HOUR.__mul__)
moments = spans.map(lambda span: EPOCH + span)
times = moments.map(lambda moment: f"timestamp('{timestamp_text(moment)}')") | st.just("timestamp(d.at)")
durations = spans.map(lambda span: f"duration('{duration_text(span)}')")
operators = st.sampled_from(["<", "<=", ">", ">=", "==", "!="])

comparisons = st.one_of(
    st.tuples(st.just("now()"), operators, times),
    st.tuples(times, operators, st.just("time.now()")),
    st.tuples(times.map("now() - {}".format), operators, durations),
    st.tuples(durations, operators, times.map("{} - now()".format)),
    st.tuples(st.tuples(times, durations).map(" + ".join), operators, st.just("now()")),
    st.tuples(durations.map("now() - {}".format), operators, durations.map("now() + {}".format)),
    st.tuples(times.map("now() - {}".format), operators, times.map("{} - now()".format)),
    st.tuples(times.map("now() - {0} + (now() - {0})".format), operators, durations),
).map(" ".join)
zones = st.sampled_from(["", "'Europe/Zurich'", "'Asia/Kathmandu'", "'Australia/Lord_Howe'", "'+02:07'"])
parts = st.tuples(st.sampled_from(["getHours", "getMinutes", "getDayOfWeek", "getDate"]), zones).map(
    lambda part: f"now().{part[0]}({part[1]})"
)
calendars = st.one_of(
    st.tuples(parts, operators, st.integers(0, 30).map(str)).map(" ".join),
    st.tuples(parts, parts).map(lambda both: f"{both[0]} in [1, {both[1]}]"),
    parts.map(lambda part: f"[8, 9, 17].exists(hour, hour == {part})"),
)
expressions = st.recursive(
    comparisons | calendars | st.sampled_from(["true", "d.flag", "d.nope == 1"]),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(lambda terms: f"({terms[0]} && {terms[1]})"),
        st.tuples(inner, inner).map(lambda terms: f"({terms[0]} || {terms[1]})"),
        inner.map("!({})".format),
        st.tuples(inner, inner, inner).map(lambda terms: f"({terms[0]} ? {terms[1]} : {terms[2]})"),
        st.tuples(inner, inner).map(lambda terms: f"({terms[0]}) == ({terms[1]})"),
    ),
    max_leaves=5,
)
scopes = st.fixed_dictionaries({"at": moments.map(timestamp_text), "flag": st.booleans()}).map(lambda data: {"d": data})


@settings(max_examples=80, deadline=None, derandomize=True, database=None)
@given(source=expressions, scope=scopes, now=moments, later=st.lists(st.floats(0, 1), min_size=1, max_size=6))
def test_a_value_stays_the_same_until_its_next_flip(
    source: str, scope: dict[str, object], now: datetime, later: list[float]
) -> None:
    program = cel.compile(source)
    value = program.evaluate(scope, now=now)
    flip = program.next_flip(scope, now=now)
    assert flip is None or flip > now
    end = flip or now + timedelta(days=30)
    between = [now + (end - now) * part for part in later] + [end - INSTANT]
    for moment in between:
        if now < moment < end:
            assert program.evaluate(scope, now=moment) == value, (moment, flip)


@settings(max_examples=40, deadline=None, derandomize=True, database=None)
@given(source=expressions, scope=scopes, now=moments, later=st.timedeltas(timedelta(0), timedelta(days=10)))
def test_every_value_is_seen_at_the_flips(
    source: str, scope: dict[str, object], now: datetime, later: timedelta
) -> None:
    program = cel.compile(source)
    seen = program.evaluate(scope, now=now)
    looked = now
    for _ in range(100):
        flip = program.next_flip(scope, now=looked)
        if flip is None or flip > now + later:
            break
        looked = flip
        seen = program.evaluate(scope, now=looked)
    else:
        return
    assert program.evaluate(scope, now=now + later) == seen


@settings(max_examples=40, deadline=None, derandomize=True, database=None)
@given(moment=moments, gap=spans, strict=st.booleans())
def test_the_flip_of_one_comparison_is_where_its_value_turns(moment: datetime, gap: timedelta, strict: bool) -> None:
    source = f"now() {'>' if strict else '>='} timestamp('{timestamp_text(moment)}')"
    program = cel.compile(source)
    now = moment - abs(gap)
    turn = moment + INSTANT if strict else moment
    assert program.evaluate({}, now=turn - INSTANT) == cel.Value(False)
    assert program.evaluate({}, now=turn) == cel.Value(True)
    # At the moment itself, the other kind of comparison turns right behind it.
    assert program.next_flip({}, now=now) == (moment if now < moment else moment + INSTANT)


QUARTER = timedelta(minutes=15)


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(hour=st.integers(0, 25), zone=zones.filter(lambda zone: "+" not in zone), now=moments)
def test_search_for_an_hour_finds_the_true_flip_within_its_bound(hour: int, zone: str, now: datetime) -> None:
    program = cel.compile(f"now().getHours({zone}) >= {hour}")
    budget = cel.Budget()
    value = program.evaluate({}, now=now, budget=budget)
    cost = budget.limits.steps - budget.steps
    flip = program.next_flip({}, now=now, budget=budget)
    assert flip is not None
    assert budget.limits.steps - budget.steps <= cost * (SEARCHED + 2)
    turned = [
        moment
        for step in range(1, SEARCHED + 1)
        if program.evaluate({}, now=(moment := now - (now - EPOCH) % QUARTER + step * QUARTER)) != value
    ]
    assert flip == (turned[0] if turned else now - (now - EPOCH) % QUARTER + SEARCHED * QUARTER)
    assert program.evaluate({}, now=flip - INSTANT) == value


def test_value_without_a_search_is_looked_at_again_after_a_minute() -> None:
    for source in ("[now(), timestamp(d.at)].max() > now()", "int(now()) % 2 == 0", "now().getSeconds() > 30"):
        program = cel.compile(source)
        assert program.next_flip({"d": {"at": "2026-04-09T12:00:00Z"}}, now=EPOCH) == EPOCH + RECHECK_INTERVAL
