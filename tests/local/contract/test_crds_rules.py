"""CEL rules: which of them a definition may hold, and what they say of an object."""

from __future__ import annotations

import pytest

from tests.local.contract.definitions import BOOLEAN, INTEGER, TEXT, definition, fields, items, rule, try_definition
from tests.local.contract.examples import JsonObject
from tests.local.contract.expressions import BROKEN, SAMPLE, SPEC, WORKING
from tests.local.contract.wire import Api

covers = pytest.mark.covers
RULES = "x-kubernetes-validations"


def ruled(*rules: JsonObject) -> JsonObject:
    return fields(spec={**SPEC, RULES: list(rules)})


@covers("crds", "create", "refusal")
@pytest.mark.parametrize("about", WORKING)
async def test_a_rule_says_what_its_expression_finds(api: Api, about: str) -> None:
    rules = [{"rule": text, "message": text} for text in WORKING[about]]
    await api.define(definition(api, ruled(*rules)))
    path = api.path("widgets", group=api.group)
    answer = await api.post(path, {**api.widget("a"), "spec": SAMPLE}, dryRun="All")
    assert answer.status == 422


@covers("crds", "create", "refusal")
async def test_a_rule_that_cannot_be_compiled_refuses_the_definition(api: Api) -> None:
    refused = await try_definition(api, definition(api, ruled(*({"rule": text, "message": "m"} for text in BROKEN))))
    assert refused.status == 422
    told = [field for _, field in refused.causes]
    assert [text for index, text in enumerate(BROKEN) if not any(f"[{index}]." in field for field in told)] == []


@covers("crds", "create", "refusal")
async def test_everything_beside_the_expression_is_checked_too(api: Api) -> None:
    bad: list[JsonObject] = [
        {"rule": ""},
        {"rule": "  "},
        {"rule": "true", "message": " "},
        {"rule": "true", "message": "a\nb"},
        {"rule": "true ||\nfalse"},
        {"rule": "true", "messageExpression": " "},
        {"rule": "true", "messageExpression": "self.foo"},
        {"rule": "true", "messageExpression": "self.i"},
        {"rule": "true", "reason": "Nothing"},
        {"rule": "true", "fieldPath": ".nope"},
        {"rule": "true", "fieldPath": "i"},
        {"rule": "true", "fieldPath": ".l[0]"},
        {"rule": "true", "fieldPath": " "},
        {"rule": "true", "optionalOldSelf": True},
        {"rule": "true", "optionalOldSelf": False},
        {"rule": "oldSelf.i == self.i", "optionalOldSelf": True},
    ]
    for one in bad:
        answer = await try_definition(api, definition(api, ruled(one)))
        assert answer.status == 422, one
    nothing = {"x-kubernetes-preserve-unknown-fields": True, **rule("self == 1")}
    assert (await try_definition(api, definition(api, fields(spec=fields(a=nothing))))).status == 422
    short = {**TEXT, "maxLength": 3, **rule("self == oldSelf")}
    keyless = items(short, maxItems=3)
    assert (await try_definition(api, definition(api, fields(spec=fields(a=keyless))))).status == 422


@covers("crds", "create", "refusal")
async def test_messages_reasons_and_paths_shape_the_refusal(api: Api) -> None:
    properties = fields(
        a=fields(x=INTEGER),
        m={"type": "object", "maxProperties": 3, "additionalProperties": {**INTEGER, **rule("self > 0")}},
        l=items({**INTEGER, **rule("self > 0", message=" not above zero ")}, maxItems=3),
        t={**TEXT, "maxLength": 9, **rule("self != 'bad'", reason="FieldValueDuplicate", message="twice")},
        b={**BOOLEAN, **rule("self", reason="FieldValueForbidden")},
    )
    rules: list[JsonObject] = [
        {
            "rule": "!has(self.a) || self.a.x > 0",
            "fieldPath": ".a.x",
            "reason": "FieldValueRequired",
            "message": "need x",
        },
        {"rule": "!has(self.a) || self.a.x > 1", "messageExpression": "self.a.x < 1 ? 'low' : 'one'", "message": "no"},
        {"rule": "!has(self.a) || self.a.x > 2", "messageExpression": "string(1 / self.a.x)", "message": "fallback"},
        {"rule": "!has(self.a) || self.a.x > 3", "messageExpression": "''", "message": " trimmed "},
        {"rule": "!has(self.t) || 1 / (self.t.size() - 3) > 0", "message": "divides"},
    ]
    await api.define(definition(api, fields(spec={**properties, RULES: rules})))
    path = api.path("widgets", group=api.group)
    tried: list[JsonObject] = [
        {"a": {"x": 0}},
        {"m": {"k": 0}},
        {"l": [1, 0]},
        {"t": "bad"},
        {"t": "good"},
        {"b": False},
    ]
    for spec in tried:
        await api.post(path, {**api.widget("a"), "spec": spec}, dryRun="All")


@covers("crds", "update", "refusal")
async def test_transition_rules_compare_with_what_was(api: Api) -> None:
    element = {
        **fields(k={**TEXT, "maxLength": 5}, v=INTEGER),
        "required": ["k"],
        **rule("!has(oldSelf.v) || self.v >= oldSelf.v", message="v falls"),
    }
    keyed = items(element, maxItems=3, **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]})
    spec = fields(
        fixed={**TEXT, "maxLength": 5, **rule("self == oldSelf", message="fixed")},
        keyed=keyed,
        once={
            **INTEGER,
            **rule("!oldSelf.hasValue() || oldSelf.value() == self", optionalOldSelf=True, message="once"),
        },
        new={**INTEGER, **rule("oldSelf.hasValue() || self < 5", optionalOldSelf=True, message="begins below 5")},
    )
    await api.define(definition(api, fields(spec=spec)))
    path = api.path("widgets", group=api.group)
    assert (await api.post(path, api.widget("a", new=7))).status == 422
    await api.post(path, api.widget("a", fixed="x", keyed=[{"k": "a", "v": 2}], once=1, new=1))
    at = f"{path}/a"
    for change, status in (
        ({"fixed": "y"}, 422),
        ({"fixed": None}, 200),
        ({"fixed": "z"}, 200),
        ({"keyed": [{"k": "b", "v": 1}, {"k": "a", "v": 1}]}, 422),
        ({"keyed": [{"k": "b", "v": 1}, {"k": "a", "v": 3}]}, 200),
        ({"once": 2}, 422),
        ({"new": 9}, 200),
    ):
        answer = await api.merge(at, {"spec": change})
        assert answer.status == status, change
