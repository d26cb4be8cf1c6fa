"""The ready gates: each opens for what its comment says, and for nothing else."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
import yaml

from kardinal.promotion.api import Bundle, PolicyGate
from kardinal.promotion.policy.calendar import Calendar, zone_problem
from kardinal.promotion.policy.evaluate import fault
from kardinal.promotion.policy.recording import RecordedContext, evaluate_recorded
from kardinal.promotion.policy.template_warnings import ignored_fields, label_mistakes

FOLDER = Path(__file__).parents[2] / "examples" / "gates"
GATES = {path.stem: PolicyGate.model_validate(yaml.safe_load(path.read_text())) for path in sorted(FOLDER.glob("*"))}
HOLIDAYS = frozenset({date(2026, 12, 25)})


def local(text: str, zone: str = "Europe/Zurich") -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).astimezone(UTC)


TUESDAY = local("2026-03-03T10:00")
LATE_FRIDAY = local("2026-03-06T23:30")
SATURDAY = local("2026-03-07T00:30")
ROLLBACK = {"environments": ["prod"], "of": {"name": "a", "uid": "1"}, "restores": {"name": "b", "uid": "2"}}
URGENT = {"rollback": {**ROLLBACK, "emergency": True}}
CI = {"ciRunURL": "https://ci.example.com/runs/7", "author": "alice"}


def staging(**fields: Any) -> dict[str, Any]:
    return {"upstream": {"staging": {"version": "1.29.0", "healthy": True, **fields}}}


def approved(*people: str) -> dict[str, Any]:
    return {"approvals": [{"approver": person, "at": "2026-03-03T08:00:00Z"} for person in people]}


def rate(status: str, age: float) -> dict[str, Any]:
    return {"metrics": {"success-rate": {"status": status, "value": 0.99, "ageSeconds": age}}}


def payments(version: str) -> dict[str, Any]:
    return {"contracts": {"payments": {"prod": {"version": version}}}}


CASES: dict[str, list[tuple[bool, dict[str, Any]]]] = {
    "no-weekends": [(True, {}), (True, {"now": LATE_FRIDAY}), (False, {"now": SATURDAY})],
    "office-hours": [
        (True, {}),
        (False, {"now": local("2026-03-03T08:59")}),
        (False, {"now": local("2026-03-06T10:00")}),
        # In summer as well: 15:30 in Zurich is 13:30 UTC.
        (True, {"now": local("2026-07-07T15:30")}),
        (False, {"now": local("2026-07-07T16:00")}),
    ],
    "no-friday-afternoons": [(True, {"now": local("2026-03-06T11:59")}), (False, {"now": LATE_FRIDAY}), (True, {})],
    "maintenance-window": [
        (True, {"now": local("2026-03-02T01:59", "America/New_York")}),
        (True, {"now": local("2026-03-01T22:00", "America/New_York")}),
        (False, {"now": local("2026-03-02T02:00", "America/New_York")}),
        (False, {}),
    ],
    "no-holidays": [
        (True, {}),
        (False, {"now": local("2026-12-25T00:00")}),
        (True, {"now": local("2026-12-26T00:00")}),
    ],
    "year-end-freeze": [
        (True, {}),
        (False, {"now": datetime(2026, 12, 31, tzinfo=UTC)}),
        (True, {"now": datetime(2027, 1, 4, tzinfo=UTC)}),
    ],
    "weekend-emergencies": [
        (True, {}),
        (False, {"now": datetime(2026, 3, 7, tzinfo=UTC)}),
        (True, {"now": datetime(2026, 3, 7, tzinfo=UTC), "intent": URGENT}),
    ],
    "soak-an-hour": [
        (True, {"bundle": {"upstreamSoakMinutes": 60.0}}),
        (False, {"bundle": {"upstreamSoakMinutes": 59.9}}),
        (False, {"bundle": {"upstreamSoakMinutes": None}}),
    ],
    "upstream-healthy": [(True, staging()), (False, staging(healthy=False)), (False, {"upstream": {}})],
    "upstream-same-version": [(True, staging()), (False, staging(version="1.30.0")), (False, {"upstream": {}})],
    "verified-for-a-day": [
        (True, staging(verifiedAt="2026-03-02T09:00:00Z")),
        (False, staging(verifiedAt="2026-03-02T09:00:01Z")),
        (False, {"upstream": {}}),
    ],
    "needs-payments-2": [(True, payments("2.0.1")), (False, payments("1.9.9")), (False, {"contracts": {}})],
    "no-downgrades": [
        (True, {"previousBundle": {}}),
        (True, {"previousBundle": {"version": "1.29.0"}}),
        (False, {"previousBundle": {"version": "1.30.0"}}),
        (True, {"previousBundle": {"version": "1.30.0"}, "intent": URGENT}),
    ],
    "releases-only": [(True, {}), (False, {"tag": "1.29.0-rc.1"}), (False, {"tag": "latest"})],
    "no-moved-tags": [
        (True, {"bundle": {"tagMoved": False}}),
        (False, {"bundle": {"tagMoved": True}}),
        (False, {"bundle": {"tagMoved": None}}),
    ],
    "change-ticket": [
        (True, {"bundle": {"labels": {"ticket": "CHG1234"}}}),
        (False, {"bundle": {"labels": {"ticket": "soon"}}}),
        (False, {"bundle": {"labels": {}}}),
    ],
    "built-by-ci": [
        (True, {"bundle": {"attested": {"token": "ci", "maySkip": []}}}),
        (False, {"bundle": {"attested": {}}}),
        (False, {"bundle": {"attested": {"token": "ci"}}, "provenance": {"ciRunURL": "https://evil.example.com/"}}),
    ],
    "two-approvals": [
        (True, approved("bob", "carol")),
        (False, approved("bob", "alice")),
        (False, approved()),
    ],
    "delegate-healthy": [
        (True, {"delegation": {"status": "Healthy"}}),
        (False, {"delegation": {"status": "Paused"}}),
        (False, {"delegation": {}}),
    ],
    "no-drift": [
        (True, {"previousBundle": {}, "targetDrift": {}}),
        (True, {"previousBundle": {"version": "1.28.4"}, "targetDrift": {"unreconciled": False}}),
        (False, {"previousBundle": {"version": "1.28.4"}, "targetDrift": {"unreconciled": True}}),
        (False, {"previousBundle": {"version": "1.28.4"}, "targetDrift": {}}),
    ],
    "success-rate": [(True, rate("Success", 10.0)), (False, rate("Failure", 10.0)), (False, rate("Success", 300.0))],
}


def test_there_are_twenty_one_and_each_has_cases() -> None:
    assert len(GATES) == 21
    assert GATES.keys() == CASES.keys()
    assert all({opens for opens, _ in cases} == {True, False} for cases in CASES.values())


@pytest.mark.parametrize("name", sorted(GATES))
def test_ready_gate_is_valid_and_without_warnings(name: str) -> None:
    gate = GATES[name]
    assert gate.metadata.name == name
    assert fault(gate.spec.expression) is None
    assert zone_problem(gate.spec.time_zone) is None
    assert [*ignored_fields(gate), *label_mistakes(gate)] == []
    assert gate.spec.message
    assert (FOLDER / f"{name}.yaml").read_text().startswith("# ")


@pytest.mark.parametrize(
    ("name", "opens", "given"),
    [(name, opens, given) for name, cases in CASES.items() for opens, given in cases],
)
def test_ready_gate_opens_for_what_its_comment_says(name: str, opens: bool, given: dict[str, Any]) -> None:
    gate = GATES[name]
    recorded = dict(given)
    now = recorded.pop("now", TUESDAY)
    image = {"name": "app", "reference": f"ghcr.io/acme/app:{recorded.pop('tag', '1.29.0')}"}
    spec = {
        "type": "image",
        "artifacts": {"images": [image]},
        "provenance": CI | recorded.pop("provenance", {}),
        "intent": recorded.pop("intent", {}),
    }
    bundle = Bundle.model_validate({"metadata": {"name": "app-1", "namespace": "default"}, "spec": spec})
    calendar = Calendar(gate.spec.time_zone, HOLIDAYS if gate.spec.holidays else None)
    context = RecordedContext(
        bundle, "prod", "auto", calendar, {"schedule": {"isHoliday": None}, "bundle": {}, **recorded}, now
    )
    answer = evaluate_recorded(gate.spec.expression, context, now=now)
    assert answer.ready is opens, answer.reason
    assert "was not recorded" not in answer.reason
