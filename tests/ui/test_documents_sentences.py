"""The need of a Pipeline and the reason, in a table: the sentences of `kardinal status` and `kardinal explain`."""

from __future__ import annotations

from typing import Any

import pytest

from kardinal.objects import JsonObject
from kardinal.promotion.api import Pipeline
from kardinal.promotion.steps.pull_request_text import waiting_message
from kardinal.promotion.translation.route import find_route
from kardinal.promotion.views.explanation import explanation_of
from kardinal.promotion.views.missing import no_bundle
from kardinal.promotion.views.reading import PipelineObjects
from kardinal.promotion.views.status import status_view
from kardinal_controller.ui.documents import environment_document, notices, pipeline_document, pipeline_row
from kardinal_controller.ui.model import Need, PipelineRow, Tone
from tests.translation.values import org_gate, pipeline
from tests.ui.pipeline_objects import NOON, at, bundle, shown

VERIFIED = {"state": "Verified", "verifiedAt": at(9), "healthy": True, "healthySince": at(9), "startedAt": at(8, 50)}
FAILING = {"state": "Failed", "message": "Deployment my-app cannot pull 1.1.0", "startedAt": at(9)}
PULL = "https://git.example.com/acme/gitops/pulls/7"
OPENED = {
    "state": "WaitingForMerge",
    "message": waiting_message(PULL),
    "pullRequest": {"number": 7, "url": PULL, "branch": "kardinal/x"},
    "startedAt": at(10),
}
HOURS = org_gate("hours", "schedule.hour < 9", applies_to="staging")
RELEASE = org_gate("release", "bundle.labels.go == 'yes'", applies_to="staging", message="Ask the team")
REVIEWED = pipeline(
    "dev", {"name": "staging", "approval": "pr-review"}, "prod", provider="gitea", url="https://git.example.com/a/b"
)


def closed(reason: str, **status: Any) -> JsonObject:
    return {"ready": False, "reason": reason, "lastEvaluatedAt": at(11), **status}


def lacking_agent(message: str) -> JsonObject:
    condition = {"type": "NoAgent", "status": "True", "reason": "NoAgent", "message": message}
    return {"message": message, "conditions": [{**condition, "lastTransitionTime": at(10)}]}


def held_step(reason: str, message: str) -> JsonObject:
    condition = {"type": "Held", "status": "True", "reason": reason, "message": message, "lastTransitionTime": at(10)}
    return {"state": "Promoting", "message": message, "conditions": [condition]}


def conditioned(phase: str, message: str, **status: Any) -> JsonObject:
    ready = {"type": "Ready", "status": "False", "reason": phase, "message": message, "lastTransitionTime": at(9)}
    return {"phase": phase, "observedGeneration": 1, "conditions": [ready], **status}


def unready() -> Pipeline:
    condition = {
        "type": "RepositoryReady",
        "status": "False",
        "reason": "Unauthorized",
        "message": "the token is refused",
    }
    found = pipeline(provider="gitea", url="https://git.example.com/a/b").to_json()
    return Pipeline.model_validate(
        {**found, "status": {"observedGeneration": 1, "conditions": [{**condition, "lastTransitionTime": at(9)}]}}
    )


SITUATIONS: dict[str, tuple[PipelineObjects, Need, Tone, str, dict[str, Any]]] = {
    "moves": (
        shown(bundle(), steps={"dev": {"state": "Promoting", "message": "pushes", "currentStep": 3}}),
        "moving",
        "move",
        "dev",
        {"detail": "step 4 of 5 · git-push", "command": "kardinal watch my-app"},
    ),
    "waits for a review": (
        shown(bundle(), pipeline=REVIEWED, steps={"dev": VERIFIED, "staging": OPENED}),
        "person",
        "you",
        "staging",
        {"link": {"text": "#7", "url": PULL}},
    ),
    "waits for its own merge": (
        shown(bundle(), steps={"dev": VERIFIED, "staging": OPENED}),
        "moving",
        "you",
        "staging",
        {"link": {"text": "#7", "url": PULL}},
    ),
    "cannot be merged": (
        shown(bundle(), steps={"dev": VERIFIED, "staging": {**OPENED, "message": "a review is required"}}),
        "person",
        "you",
        "staging",
        {"detail": "a review is required", "link": {"text": "#7", "url": PULL}},
    ),
    "failed": (
        shown(bundle(), steps={"dev": VERIFIED, "staging": FAILING}),
        "failed",
        "bad",
        "staging",
        {"command": "kardinal retry app-1 --env staging"},
    ),
    "is tried again": (
        shown(
            bundle(),
            steps={
                "dev": {
                    "state": "Promoting",
                    "message": "will be tried again: no route",
                    "retry": {"attempts": 3, "lastError": "no route", "nextAt": at(12, 5)},
                }
            },
        ),
        "moving",
        "move",
        "dev",
        {"until": at(12, 5)},
    ),
    "held by the clock": (
        shown(
            bundle(),
            steps={"dev": VERIFIED},
            templates=[HOURS],
            answers={"hours": closed("schedule.hour = 12 (threshold: < 9)", nextTransitionAt=at(23))},
        ),
        "held",
        "held",
        "staging",
        {"until": at(23), "detail": "hours: schedule.hour = 12 (threshold: < 9)", "command": "kardinal watch my-app"},
    ),
    "held by two clocks": (
        shown(
            bundle(),
            steps={"dev": VERIFIED},
            templates=[HOURS, RELEASE],
            answers={"hours": closed("12", nextTransitionAt=at(23)), "release": closed("3", nextTransitionAt=at(13))},
        ),
        "held",
        "held",
        "staging",
        {"until": at(23)},
    ),
    "not healthy before a closed gate": (
        shown(
            bundle(),
            steps={"dev": {**VERIFIED, "healthy": False, "message": "0 of 3 available"}},
            templates=[HOURS],
            answers={"hours": closed("12", nextTransitionAt=at(23))},
        ),
        "failed",
        "warn",
        "dev",
        {"until": None},
    ),
    "held by clock and label": (
        shown(
            bundle(),
            steps={"dev": VERIFIED},
            templates=[HOURS, RELEASE],
            answers={"hours": closed("12", nextTransitionAt=at(23)), "release": closed("no")},
        ),
        "held",
        "held",
        "staging",
        {"until": None, "detail": "hours: 12; release: no", "command": "kardinal explain my-app --env staging"},
    ),
    "a gate has not answered": (
        shown(bundle(), steps={"dev": VERIFIED}, templates=[HOURS]),
        "moving",
        "move",
        "",
        {},
    ),
    "no longer healthy": (
        shown(bundle(), steps={"dev": {**VERIFIED, "healthy": False, "message": "1 of 3 available"}}),
        "failed",
        "warn",
        "dev",
        {"command": "kardinal explain my-app --env dev"},
    ),
    "not served": (
        shown(
            bundle(),
            pipeline=pipeline(
                {"name": "dev", "shard": "eu"}, "prod", provider="gitea", url="https://git.example.com/a/b"
            ),
            steps={"dev": lacking_agent("no agent serves shard eu")},
        ),
        "failed",
        "warn",
        "dev",
        {"command": "kardinal-agent --shard=eu"},
    ),
    "paused": (
        shown(bundle(), steps={"dev": OPENED}, frozen="incident 12"),
        "person",
        "you",
        "",
        {"command": "kardinal resume my-app"},
    ),
    "held after a rollback": (
        shown(bundle(), steps={"dev": VERIFIED}, held=["staging"]),
        "person",
        "you",
        "staging",
        {"command": "kardinal resume my-app --env staging"},
    ),
    "held after a rollback further on": (
        shown(bundle(), steps={"dev": {"state": "HealthChecking"}}, held=["prod"]),
        "held",
        "you",
        "prod",
        {"command": "kardinal resume my-app --env prod"},
    ),
    "held by a gate before its push": (
        shown(bundle(), steps={"dev": held_step("Held", "held by gate hours")}),
        "held",
        "held",
        "dev",
        {"command": "kardinal explain my-app --env dev", "detail": "see what holds dev"},
    ),
    "a Secret is missing": (
        shown(bundle(), steps={"dev": held_step("Blocked", "Secret git does not exist")}),
        "failed",
        "warn",
        "dev",
        {"command": "kardinal explain my-app --env dev"},
    ),
    "a rollback is held by a gate": (
        shown(bundle("app-0"), steps={"dev": held_step("Held", "held by gate hours")}, held=["dev"]),
        "held",
        "held",
        "dev",
        {"command": "kardinal explain my-app --env dev"},
    ),
    "verified": (
        shown(bundle(status=conditioned("Verified", "all environments are Verified")), graph=False),
        "rest",
        "rest",
        "",
        {},
    ),
    "cannot be translated": (
        shown(bundle(status=conditioned("Failed", "spec.type: mixed needs a commit")), graph=False),
        "failed",
        "bad",
        "",
        {},
    ),
    "waits for its Graph": (
        shown(
            bundle(status={**conditioned("WaitingForGraph", "a person writes it"), "phase": "Available"}), graph=False
        ),
        "person",
        "you",
        "",
        {"command": "kardinal init --mode graph --from my-app --bundle app-1"},
    ),
    "may not skip": (
        shown(bundle(status=conditioned("SkipDenied", "no gate permits to skip staging")), graph=False),
        "failed",
        "bad",
        "",
        {},
    ),
    "superseded": (
        shown(bundle(status=conditioned("Superseded", "by app-2")), graph=False),
        "rest",
        "rest",
        "",
        {"command": "kardinal promote my-app --bundle app-1"},
    ),
    "the repository refuses": (shown(bundle(), pipeline=unready()), "failed", "bad", "", {}),
    "no Bundle": (
        shown(),
        "rest",
        "rest",
        "",
        {"command": "kardinal create bundle my-app --image REPOSITORY:TAG"},
    ),
}


def said_by_commands(objects: PipelineObjects, environment: str) -> set[str]:
    """Return the sentences of `kardinal explain` for an environment; of "", those of `kardinal status`."""
    if environment:
        return {f"{environment}: {explanation_of(objects, environment, failures={}).result}"}
    view = status_view(objects, now=NOON)
    said = {*view.notes, *(hold.message for hold in view.holds if not hold.environment)}
    if view.bundle is None:
        return {*said, no_bundle(view.pipeline).message}
    return {*said, f"{view.phase}: {view.message}" if view.message else view.phase}


@pytest.mark.parametrize("situation", SITUATIONS)
def test_the_row_says_what_is_needed_in_the_sentence_of_the_commands(situation: str) -> None:
    objects, need, tone, environment, fields = SITUATIONS[situation]
    row = pipeline_row(objects, now=NOON)
    assert row.why.text in said_by_commands(objects, environment)
    assert (row.need, row.why.tone) == (need, tone)
    said = row.why.model_dump(mode="json", exclude_none=True)
    assert {name: said.get(name) for name in fields} == fields


@pytest.mark.parametrize("situation", SITUATIONS)
def test_each_environment_says_what_kardinal_explain_says(situation: str) -> None:
    objects, *_ = SITUATIONS[situation]
    document = pipeline_document(objects, now=NOON)
    for node in document.nodes.values():
        if node.kind == "environment" and node.why is not None:
            name = node.card.name
            assert node.why.text == explanation_of(objects, name, failures={}).result
            assert environment_document(objects, name, now=NOON).why == node.why
        elif node.kind == "environment":
            assert objects.bundle is None or node.card.state.name == "Verified"


def _row(objects: PipelineObjects) -> PipelineRow:
    return pipeline_row(objects, now=NOON)


def test_environments_without_an_agent_become_one_notice_for_each_shard() -> None:
    served = _row(SITUATIONS["moves"][0])
    unserved = _row(SITUATIONS["not served"][0])
    assert notices([served]) == {}
    (notice,) = notices([served, unserved, unserved]).values()
    assert (notice.text, notice.detail) == ("No agent serves shard eu.", "2 environments wait.")
    assert notice.command == "kardinal-agent --shard=eu"
    assert notice.since == unserved.environments["dev"].no_agent_since


def test_an_environment_that_waits_for_health_tells_no_time_of_a_gate() -> None:
    document = pipeline_document(SITUATIONS["not healthy before a closed gate"][0], now=NOON)
    staging = document.nodes["environment/staging"]
    assert staging.kind == "environment"
    assert staging.why is not None
    assert (staging.why.text, staging.why.until) == ("HELD: dev is no longer healthy: 0 of 3 available", None)


def test_a_freeze_is_told_beside_what_was_under_way() -> None:
    objects = SITUATIONS["paused"][0]
    row = _row(objects)
    document = pipeline_document(objects, now=NOON)
    assert row.paused == document.paused == "incident 12"
    assert document.notices["paused"].command == "kardinal resume my-app"
    assert document.notices["paused"].since is not None
    dev = document.nodes["environment/dev"]
    assert dev.kind == "environment"
    assert dev.why is not None
    assert (dev.why.tone, dev.why.command) == ("you", "kardinal resume my-app")


def test_a_hold_of_a_rollback_is_told_above_the_dag() -> None:
    document = pipeline_document(SITUATIONS["held after a rollback"][0], now=NOON)
    assert document.notices["hold/staging"].text == "staging: version 2 is bad"


def test_a_failure_is_tried_again_whatever_holds_others() -> None:
    row = _row(shown(bundle(), steps={"dev": FAILING}, held=["dev"]))
    assert (row.need, row.why.tone, row.why.command) == ("failed", "bad", "kardinal retry app-1 --env dev")


def test_the_bundle_that_a_hold_lets_through_is_not_held() -> None:
    row = _row(shown(bundle("app-0"), steps={"dev": VERIFIED}, held=["staging"]))
    assert row.need == "moving"


def test_lost_health_of_an_older_bundle_is_told_while_a_newer_one_is_on_its_way() -> None:
    entry = {**VERIFIED, "healthy": False, "message": "1 of 3 available", "verifiedAt": at(7)}
    older = bundle("app-0", {"phase": "Verified", "environments": {"prod": entry}}, created=at(6))
    objects = shown(bundle(), steps={"dev": VERIFIED}, others=[older])
    card = _row(objects).environments["prod"]
    assert card.state.name == "Waiting"
    assert card.health is not None
    assert card.health.name == "Degraded"
    row = _row(objects)
    assert (row.need, row.why.tone) == ("failed", "warn")
    assert row.why.text.startswith("prod: Verified, ")
    assert row.why.text.endswith(": 1 of 3 available")
    assert row.why.command == "kardinal explain my-app --env prod"


def test_routes_of_situations_are_those_of_their_pipelines() -> None:
    objects = shown()
    rows = _row(objects).environments
    route = find_route(objects.pipeline, bundle()).upstreams
    assert {name: tuple(card.upstreams) for name, card in rows.items()} == dict(route)
