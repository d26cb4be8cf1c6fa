"""From a live object to outputs, previews, health and conditions."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kardinal_supplychain.api.templates import (
    DeploymentTemplateSpec,
    ImageTemplateSpec,
    SourceTemplateSpec,
    TemplateSpec,
)
from kardinal_supplychain.realize import conditions
from kardinal_supplychain.realize.conditions import Finding, TemplateName, ready, resources_submitted, words_of
from kardinal_supplychain.realize.context import SourceValue
from kardinal_supplychain.realize.health import judge_health
from kardinal_supplychain.realize.outputs import ConditionNotMet, DeploymentFailed, OutputMissing, read_outputs
from kardinal_supplychain.realize.preview import PREVIEW_LIMIT, preview_of

BODY: dict[str, Any] = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}}
INPUT = SourceValue("https://x", "main@sha1:1")


def live(status: Any = None, generation: int = 2) -> dict[str, Any]:
    return {**BODY, "metadata": {"name": "x", "namespace": "team", "generation": generation}, "status": status or {}}


def source() -> SourceTemplateSpec:
    paths = {"urlPath": "status.artifact.url", "revisionPath": "status.artifact.revision"}
    return SourceTemplateSpec.model_validate({"template": BODY, **paths})


def deployment(**fields: Any) -> DeploymentTemplateSpec:
    return DeploymentTemplateSpec.model_validate({"template": BODY, **fields})


def test_outputs_are_read_at_the_paths_of_the_template() -> None:
    found = live({"artifact": {"url": "u", "revision": "r"}})
    assert read_outputs(source(), found) == {"url": "u", "revision": "r"}
    image = ImageTemplateSpec.model_validate({"template": BODY, "imagePath": "status.latestImage"})
    assert read_outputs(image, live({"latestImage": {"any": ["json"]}})) == {"image": {"any": ["json"]}}
    assert read_outputs(TemplateSpec.model_validate({"template": BODY}), live()) == {}


def test_an_output_that_is_not_there_yet_names_its_path() -> None:
    with pytest.raises(OutputMissing) as missing:
        read_outputs(source(), live({"artifact": {"url": "u"}}))
    assert missing.value.path == "status.artifact.revision"
    assert str(missing.value) == "jsonpath returned empty list: status.artifact.revision"


MATCHES = {"observedMatches": [{"input": "spec.v", "output": "status.v"}]}
COMPLETION = {
    "observedCompletion": {
        "succeeded": {"key": 'status.conditions[?(@.type=="Succeeded")].status', "value": "True"},
        "failed": {"key": "status.failed", "value": "true"},
    }
}


def test_a_deployment_passes_its_input_on_once_its_fields_are_equal() -> None:
    spec = deployment(**MATCHES)
    passed = read_outputs(spec, {**live({"v": 1}), "spec": {"v": 1}}, deployment=INPUT)
    assert passed == {"url": "https://x", "revision": "main@sha1:1"}
    with pytest.raises(ConditionNotMet) as differ:
        read_outputs(spec, {**live({"v": "y"}), "spec": {"v": "x"}}, deployment=INPUT)
    assert str(differ.value) == "input [spec.v] and output [status.v] do not match: x != y"
    with pytest.raises(ConditionNotMet) as absent:
        read_outputs(spec, {**live(), "spec": {"v": "x"}}, deployment=INPUT)
    assert str(absent.value) == "could not find value on output [status.v]: jsonpath returned empty list: status.v"


def test_a_deployment_passes_its_input_on_once_it_says_that_it_succeeded() -> None:
    spec = deployment(**COMPLETION)
    done = {"observedGeneration": 2, "conditions": [{"type": "Succeeded", "status": "True"}]}
    assert read_outputs(spec, live(done), deployment=INPUT)["url"] == "https://x"
    with pytest.raises(ConditionNotMet, match="observedGeneration"):
        read_outputs(spec, live({**done, "observedGeneration": 1}), deployment=INPUT)
    with pytest.raises(ConditionNotMet, match="jsonpath returned empty list"):
        read_outputs(spec, live({"observedGeneration": 2}), deployment=INPUT)
    # Numbers and booleans are compared as text.
    with pytest.raises(DeploymentFailed, match=r"\[status\.failed\] was: true"):
        read_outputs(spec, live({**done, "failed": True}), deployment=INPUT)


def test_paths_of_a_deployment_take_the_place_of_its_input() -> None:
    spec = deployment(urlPath="status.url")
    assert read_outputs(spec, live({"url": "u"}), deployment=INPUT) == {"url": "u", "revision": "main@sha1:1"}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("https://example.com/a.tgz", "https://example.com/a.tgz\n"),
        ("main@sha1:1", "main@sha1:1\n"),
        ("true", '"true"\n'),
        ("1.5", '"1.5"\n'),
        ("null", '"null"\n'),
        ("", '""\n'),
        ("a: b", '"a: b"\n'),
        ("- a", '"- a"\n'),
        (True, "true\n"),
        (None, "null\n"),
        (3, "3\n"),
        (3.0, "3\n"),
        (3.5, "3.5\n"),
        ({}, "{}\n"),
        ([], "[]\n"),
        ({"b": 1, "a": [1, {"c": 2, "d": [3]}]}, "a:\n    - 1\n    - c: 2\n      d:\n        - 3\nb: 1\n"),
        ({"a": {"b": {"c": []}}}, "a:\n    b:\n        c: []\n"),
        ([["a", "b"], ["c"]], "- - a\n  - b\n- - c\n"),
        ("one\ntwo\n", "|\n    one\n    two\n"),
        ({"a": "one\ntwo"}, "a: |-\n    one\n    two\n"),
        ({"yes": "no"}, '"yes": "no"\n'),
        ("\x1b[0m", '"\\u001b[0m"\n'),
    ],
)
def test_a_preview_is_yaml_as_go_writes_it(value: Any, text: str) -> None:
    preview = preview_of(value)
    assert preview.text == text
    assert preview.digest == f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"
    assert preview.is_whole


def test_a_preview_is_cut_and_its_digest_is_of_the_whole() -> None:
    first = preview_of("ü" * 2_000 + "a")
    second = preview_of("ü" * 2_000 + "b")
    assert len(first.text.encode()) <= PREVIEW_LIMIT
    assert first.text == second.text
    assert first.digest != second.digest
    assert not first.is_whole


def health(rule: dict[str, Any] | None, status: Any, **others: Any) -> tuple[str, str, str]:
    fields = {"template": BODY, **({"healthRule": rule} if rule else {}), **others.pop("spec", {})}
    judged = judge_health(
        TemplateSpec.model_validate(fields),
        stamped=live(status),
        **{"template_kind": "ClusterImageTemplate", "has_outputs": False, **others},
    )
    return judged.status, judged.reason, judged.message


def condition(type_: str, status: str, message: str = "") -> dict[str, Any]:
    return {"conditions": [{"type": type_, "status": status, "message": message}]}


MULTI = {
    "multiMatch": {
        "healthy": {
            "matchConditions": [{"type": "Ready", "status": "True"}],
            "matchFields": [{"key": "status.phase", "operator": "In", "values": ["Done"]}],
        },
        "unhealthy": {
            "matchConditions": [{"type": "Failed", "status": "True"}],
            "matchFields": [
                {"key": "status.phase", "operator": "In", "values": ["Broken"], "messagePath": "status.why"},
            ],
        },
    }
}


@pytest.mark.parametrize(
    ("rule", "status", "others", "judged"),
    [
        (None, {}, {}, ("Unknown", "OutputNotAvailable", "")),
        (None, {}, {"has_outputs": True}, ("True", "OutputsAvailable", "")),
        (None, {}, {"template_kind": "ClusterTemplate"}, ("True", "AlwaysHealthy", "")),
        ({"alwaysHealthy": {}}, {}, {}, ("True", "AlwaysHealthy", "")),
        ({"singleConditionType": "Ready"}, condition("Ready", "True", "fine"), {}, ("True", "ReadyCondition", "fine")),
        ({"singleConditionType": "Ready"}, condition("Ready", "False"), {}, ("False", "ReadyCondition", "")),
        ({"singleConditionType": "Ready"}, condition("Ready", "Maybe"), {}, ("Unknown", "ReadyCondition", "")),
        ({"singleConditionType": "Ready"}, {}, {}, ("Unknown", "ReadyCondition", "")),
        ({"singleConditionType": "Ready"}, {"conditions": ["odd", 1]}, {}, ("Unknown", "ReadyCondition", "")),
        ({"singleConditionType": "Ready"}, {"conditions": "odd"}, {}, ("Unknown", "ReadyCondition", "")),
        (
            None,
            condition("Succeeded", "True"),
            {"spec": {"lifecycle": "tekton"}},
            ("True", "SucceededCondition", ""),
        ),
        (MULTI, {}, {}, ("Unknown", "NoMatchesFulfilled", "")),
        (MULTI, condition("Ready", "True"), {}, ("Unknown", "NoMatchesFulfilled", "")),
        (
            MULTI,
            {**condition("Ready", "True", "ok"), "phase": "Done"},
            {},
            ("True", "MatchedCondition", "condition status: True, message: ok"),
        ),
        (
            MULTI,
            {**condition("Ready", "True"), "phase": "Broken", "why": "no disk"},
            {},
            ("False", "MatchedField", "field value: Broken, message: no disk"),
        ),
        (
            MULTI,
            condition("Failed", "True", "x"),
            {},
            ("False", "MatchedCondition", "condition status: True, message: x"),
        ),
    ],
)
def test_the_health_of_an_object_follows_the_rule(
    rule: dict[str, Any] | None, status: Any, others: dict[str, Any], judged: tuple[str, str, str]
) -> None:
    assert health(rule, status, **others) == judged


def test_an_object_that_is_not_there_has_no_health() -> None:
    spec = TemplateSpec.model_validate({"template": BODY, "healthRule": {"alwaysHealthy": {}}})
    judged = judge_health(spec, template_kind="ClusterTemplate", stamped=None, has_outputs=False)
    assert (judged.status, judged.reason) == ("Unknown", "NoResource")


WORDS = words_of("Workload")
TEMPLATE = TemplateName("ClusterImageTemplate", "kpack")


@pytest.mark.parametrize(
    ("finding", "expected"),
    [
        (
            conditions.not_matched(WORDS, {}),
            ("SupplyChainReady", "WorkloadLabelsMissing", "workload has no labels to match to supply chain"),
        ),
        (
            conditions.not_matched(WORDS, {"b": "2", "a": "1"}),
            (
                "SupplyChainReady",
                "SupplyChainNotFound",
                "no supply chain found where full selector is satisfied by labels: map[a:1 b:2]",
            ),
        ),
        (
            conditions.matched_several(WORDS),
            (
                "SupplyChainReady",
                "MultipleSupplyChainMatches",
                "workload may only match a single supply chain's selector",
            ),
        ),
        (
            conditions.not_matched(words_of("Deliverable"), {}),
            ("DeliveryReady", "DeliverableLabelsMissing", "deliverable has no labels to match to delivery"),
        ),
        (
            conditions.matched_several(words_of("Deliverable")),
            ("DeliveryReady", "MultipleDeliveryMatches", "deliverable may only match a single delivery's selector"),
        ),
        (
            conditions.templates_not_found(["a", "b"]),
            ("TemplatesReady", "TemplatesNotFound", "did not find the template of the resource(s) [a, b]"),
        ),
        (
            conditions.stamp_failure("why", words=WORDS, blueprint="s", resource="r", template=TEMPLATE),
            (
                "ResourceSubmitted",
                "TemplateStampFailure",
                "unable to stamp object for resource [r] for template [ClusterImageTemplate/kpack] in supply chain "
                "[s]: why",
            ),
        ),
        (
            conditions.rejected("why", words=WORDS, blueprint="s", resource="r", stamped=live()),
            (
                "ResourceSubmitted",
                "TemplateRejectedByAPIServer",
                "unable to apply object [team/x] for resource [r] in supply chain [s]: why",
            ),
        ),
        (
            conditions.missing_value("status.url", plural="images.kpack.io", stamped=live(), health="Unknown"),
            (
                "ResourceSubmitted",
                "MissingValueAtPath",
                "waiting to read value [status.url] from object [images.kpack.io/x] in namespace [team]",
            ),
        ),
        (
            conditions.missing_value("p", plural="a.b", stamped=live(), health="True"),
            (
                "ResourceSubmitted",
                "MissingValueAtPath",
                "cannot read value [p] from healthy object [a.b/x] in namespace [team], contact Platform Eng",
            ),
        ),
        (
            conditions.missing_value("p", plural="a.b", stamped=live(), health="False"),
            (
                "ResourceSubmitted",
                "MissingValueAtPath",
                "cannot read value [p] from unhealthy object [a.b/x] in namespace [team], examine object, "
                "particularly whether it is receiving proper inputs",
            ),
        ),
        (
            conditions.condition_not_met("r", "why"),
            ("ResourceSubmitted", "ConditionNotMet", "resource [r] condition not met: why"),
        ),
        (
            conditions.waiting_for_input("url", "source"),
            ("ResourceSubmitted", "WaitingForInput", "waiting for output [url] of resource [source]"),
        ),
    ],
    ids=lambda value: value.reason if isinstance(value, Finding) else "",
)
def test_a_condition_has_the_reason_and_the_message_that_programs_read(
    finding: Finding, expected: tuple[str, str, str]
) -> None:
    assert (finding.type, finding.reason, finding.message) == expected


def found(status: Any, reason: str) -> Finding:
    return Finding("ResourceSubmitted", status, reason, f"because of {reason}")


def test_ready_is_the_last_that_is_false_or_the_first_that_is_unknown() -> None:
    assert ready([found("True", "A"), found("True", "B")]) == Finding("Ready", "True", "Ready")
    assert ready([found("Unknown", "A"), found("Unknown", "B"), found("True", "C")]).reason == "A"
    assert ready([found("False", "A"), found("Unknown", "B"), found("False", "C"), found("True", "D")]).reason == "C"


def test_submission_fails_with_the_first_resource_and_waiting_for_an_input_comes_last() -> None:
    assert resources_submitted([found("True", "A")]).reason == "ResourceSubmissionComplete"
    waiting = conditions.waiting_for_input("url", "source")
    summary = resources_submitted([found("True", "A"), waiting, found("Unknown", "B"), found("False", "C")])
    assert (summary.type, summary.status, summary.reason) == ("ResourcesSubmitted", "Unknown", "B")
    assert resources_submitted([found("True", "A"), waiting]).reason == "WaitingForInput"


def test_a_transition_is_a_change_of_the_status_and_conditions_keep_their_order() -> None:
    noon = datetime(2026, 4, 7, 12, tzinfo=UTC)
    first = conditions.with_conditions([], [found("True", "A"), Finding("Ready", "True", "Ready")], now=noon)
    later = noon + timedelta(minutes=5)
    again = conditions.with_conditions(first, [Finding("Ready", "True", "Other"), found("False", "A")], now=later)
    assert [each["type"] for each in again] == ["Ready", "ResourceSubmitted"]
    assert [each["lastTransitionTime"] for each in again] == ["2026-04-07T12:00:00Z", "2026-04-07T12:05:00Z"]
    assert conditions.with_conditions(again, [], now=later) == []
