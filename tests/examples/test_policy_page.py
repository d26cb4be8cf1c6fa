"""The page on policy: its expressions have the answers beside them, and its gates are valid."""

from __future__ import annotations

import json
import re
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from kardinal.promotion.api import Bundle, PolicyGate
from kardinal.promotion.policy.calendar import Calendar, parse_holidays
from kardinal.promotion.policy.evaluate import fault
from kardinal.promotion.policy.recording import RecordedContext, evaluate_recorded
from tests.support import objects

PAGE = (Path(__file__).parents[2] / "docs" / "policy.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| `(.+?)` \| (open|closed) \|", PAGE, re.MULTILINE)
BLOCKS = dict[str, list[str]]()
for language, text in re.findall(r"```(\w+)\n(.*?)```", PAGE, re.DOTALL):
    BLOCKS.setdefault(language, []).append(text)
NOW = datetime(2026, 3, 3, 14, 30, tzinfo=UTC)


@pytest.mark.parametrize(("expression", "answer"), ROWS)
def test_expression_has_the_answer_beside_it(expression: str, answer: str) -> None:
    (data,) = map(json.loads, BLOCKS["json"])
    bundle = Bundle.model_validate(objects.bundle("app-1", tag="1.29.0"))
    calendar = Calendar("Europe/Zurich", frozenset[date]())
    context = RecordedContext(bundle, "prod", "auto", calendar, {**data, "schedule": {"isHoliday": None}}, NOW)
    found = evaluate_recorded(expression, context, now=NOW)
    assert ("open" if found.ready else "closed") == answer, found.reason
    assert "was not recorded" not in found.reason


def test_every_variable_of_the_data_has_an_example() -> None:
    (data,) = map(json.loads, BLOCKS["json"])
    assert all(any(variable in expression for expression, _ in ROWS) for variable in data)


def test_gates_and_holidays_of_the_page_are_valid() -> None:
    documents: list[dict[str, Any]] = [yaml.safe_load(text) for text in BLOCKS["yaml"]]
    kinds = [document["kind"] for document in documents]
    assert kinds == ["PolicyGate", "ConfigMap"]
    gate = PolicyGate.model_validate(documents[0])
    assert fault(gate.spec.expression) is None
    assert gate.spec.holidays == documents[1]["metadata"]["name"]
    assert parse_holidays(documents[1]["data"]["dates"]) == frozenset({date(2026, 12, 25), date(2026, 12, 26)})
