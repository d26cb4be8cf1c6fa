"""The pages of a Pipeline, an environment, a gate and a Bundle, on objects in every stage of a Bundle's life."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from kardinal.objects import JsonObject
from kardinal.promotion.api import Bundle, Pipeline
from kardinal.promotion.views.missing import NotThere
from kardinal.promotion.views.reading import PipelineObjects
from kardinal_controller.ui.documents import (
    NoGate,
    bundle_card,
    bundle_document,
    environment_document,
    gate_document,
    pipeline_document,
    pipeline_row,
)
from tests.support import objects as resources
from tests.translation.values import POLICIES, org_gate, pipeline, team_gate
from tests.ui.pipeline_objects import NAMESPACE, NOON, at, bundle, shown

COMMIT = "c0ffee" + "0" * 34
VERIFIED = {"state": "Verified", "verifiedAt": at(9), "healthy": True, "healthySince": at(9), "startedAt": at(8, 50)}
DIAMOND = pipeline(
    "dev",
    {"name": "eu", "dependsOn": ["dev"]},
    {"name": "us", "dependsOn": ["dev"]},
    {"name": "prod", "dependsOn": ["eu", "us"]},
    provider="gitea",
    url="https://git.example.com/acme/gitops",
)


def landed(hour: int, **fields: Any) -> JsonObject:
    """Return the entry of an environment in the status of a Bundle that was Verified there."""
    return {
        "state": "Verified",
        "startedAt": at(hour),
        "promotedAt": at(hour, 10),
        "verifiedAt": at(hour, 20),
        **fields,
    }


def went(name: str, *, created: int, phase: str = "Verified", tag: str = "1.0.0", **environments: JsonObject) -> Bundle:
    status = {"phase": phase, "observedGeneration": 1, "environments": environments}
    return bundle(name, status, created=at(created), artifacts=_image(tag))


def _image(tag: str) -> JsonObject:
    return {"images": [{"name": "app", "reference": f"ghcr.io/acme/my-app:{tag}"}]}


def behind(found: PipelineObjects) -> dict[str, int]:
    return {name: card.behind for name, card in pipeline_row(found, now=NOON).environments.items()}


def edges(found: PipelineObjects) -> dict[str, tuple[bool, str]]:
    return {key: (edge.open, edge.tone) for key, edge in pipeline_document(found, now=NOON).edges.items()}


# The DAG


def test_a_pipeline_without_a_bundle_shows_its_route() -> None:
    document = pipeline_document(shown(pipeline=DIAMOND), now=NOON)
    assert list(document.nodes) == ["environment/dev", "environment/eu", "environment/us", "environment/prod"]
    assert set(document.edges) == {
        "environment/dev→environment/eu",
        "environment/dev→environment/us",
        "environment/eu→environment/prod",
        "environment/us→environment/prod",
    }
    assert {edge.open for edge in document.edges.values()} == {False}
    assert document.shown is None
    assert document.bundles == {}


def test_a_pipeline_whose_environments_have_no_order_shows_them_all_the_same() -> None:
    loop = pipeline({"name": "a", "dependsOn": ["b"]}, {"name": "b", "dependsOn": ["a"]})
    document = pipeline_document(shown(pipeline=loop), now=NOON)
    assert list(document.nodes) == ["environment/a", "environment/b"]
    assert document.edges == {}


def test_the_dag_of_a_superseded_bundle_is_what_it_reached_and_the_rest_of_the_route() -> None:
    gates = [{"name": "soak", "namespace": POLICIES, "scope": "org", "result": "pass", "reason": "soaked"}]
    entries = {"dev": landed(8), "eu": landed(9, evidence={"policyGates": gates}), "us": {"state": "Failed"}}
    gone = bundle("app-1", {"phase": "Superseded", "environments": entries})
    document = pipeline_document(shown(gone, pipeline=DIAMOND, graph=False), now=NOON)
    assert {key: (edge.open, edge.tone) for key, edge in document.edges.items()} == {
        f"environment/dev→gate/eu/{POLICIES}/soak": (True, "ok"),
        f"gate/eu/{POLICIES}/soak→environment/eu": (True, "ok"),
        "environment/dev→environment/us": (True, "ok"),
        "environment/eu→environment/prod": (True, "ok"),
        "environment/us→environment/prod": (False, "bad"),
    }


def test_gates_stand_between_environments_and_close_their_edges() -> None:
    templates = [org_gate("hours", "schedule.hour < 9", applies_to="eu"), team_gate("ok", "true", applies_to="eu")]
    answers = {"hours": {"ready": False, "reason": "late"}, "ok": {"ready": True, "reason": "fine"}}
    found = shown(bundle(), pipeline=DIAMOND, steps={"dev": VERIFIED}, templates=templates, answers=answers)
    assert edges(found) == {
        f"environment/dev→gate/eu/{POLICIES}/hours": (True, "ok"),
        f"environment/dev→gate/eu/{NAMESPACE}/ok": (True, "ok"),
        f"gate/eu/{POLICIES}/hours→environment/eu": (False, "held"),
        f"gate/eu/{NAMESPACE}/ok→environment/eu": (True, "ok"),
        "environment/dev→environment/us": (True, "ok"),
        "environment/eu→environment/prod": (False, "held"),
        "environment/us→environment/prod": (False, "rest"),
    }


def test_lost_health_closes_the_edges_after_an_environment() -> None:
    found = shown(bundle(), pipeline=DIAMOND, steps={"dev": {**VERIFIED, "healthy": False}})
    assert edges(found)["environment/dev→environment/eu"] == (False, "warn")


def test_an_environment_that_is_left_out_lets_the_bundle_pass() -> None:
    found = shown(bundle(intent={"target": "eu"}), pipeline=DIAMOND, steps={"dev": VERIFIED})
    assert edges(found)["environment/us→environment/prod"] == (True, "rest")


def test_a_removed_environment_stays_in_the_dag_of_a_bundle_that_reached_it() -> None:
    old = went("app-1", created=8, dev=landed(8), qa=landed(9))
    document = pipeline_document(shown(old, graph=False), now=NOON)
    assert "environment/qa" in document.nodes
    qa = environment_document(shown(old, graph=False), "qa", now=NOON)
    assert qa.card.state.name == "Verified"
    assert qa.why is None


# Versions


def test_an_environment_is_behind_by_the_newer_bundles_that_a_first_environment_runs() -> None:
    bundles = [
        went("app-1", created=5, tag="1", dev=landed(5), staging=landed(5), prod=landed(5)),
        went("app-2", created=6, tag="2", phase="Superseded", dev=landed(6)),
        went("app-3", created=7, tag="3", phase="Failed", dev={"state": "Failed", "startedAt": at(7)}),
        went("app-4", created=8, tag="4", phase="Promoting", dev=landed(8), staging=landed(8)),
    ]
    found = shown(bundles[-1], others=bundles[:-1], graph=False)
    assert behind(found) == {"dev": 0, "staging": 0, "prod": 2}
    prod = pipeline_row(found, now=NOON).environments["prod"]
    assert (prod.version, prod.incoming) == ("1", "4")


def test_an_environment_that_was_rolled_back_is_behind_what_it_ran() -> None:
    one = went("app-1", created=5, tag="1", dev=landed(5), staging=landed(5), prod=landed(5))
    two = went("app-2", created=6, tag="2", dev=landed(6), staging=landed(6), prod=landed(6))
    rollback = {
        "environments": ["prod"],
        "of": {"name": "app-2", "uid": "2"},
        "restores": {"name": "app-1", "uid": "1"},
    }
    back = bundle(
        "back-1",
        {"phase": "Verified", "environments": {"prod": landed(7)}},
        created=at(7),
        artifacts=_image("1"),
        intent={"rollback": rollback},
    )
    assert behind(shown(back, others=[one, two], graph=False)) == {"dev": 0, "staging": 0, "prod": 1}


def test_a_rollback_of_a_first_environment_brings_no_version_of_its_own() -> None:
    one = went("app-1", created=5, tag="1", dev=landed(5), staging=landed(5), prod=landed(5))
    two = went("app-2", created=6, tag="2", dev=landed(6))
    restores = {"name": "app-1", "uid": "1"}
    rollback = {"environments": ["dev"], "of": {"name": "app-2", "uid": "2"}, "restores": restores}
    status = {"phase": "Verified", "environments": {"dev": landed(7)}}
    back = bundle("back-1", status, created=at(7), artifacts=_image("1"), intent={"rollback": rollback})
    assert behind(shown(back, others=[one, two], graph=False)) == {"dev": 1, "staging": 1, "prod": 1}


def test_configuration_and_images_are_counted_apart() -> None:
    image = went("app-1", created=5, tag="1", dev=landed(5), prod=landed(5))
    commit = {"repository": "https://git.example.com/acme/config", "sha": COMMIT}
    config = bundle(
        "config-1",
        {"phase": "Promoting", "environments": {"dev": landed(6)}},
        created=at(6),
        type="config",
        artifacts={"gitCommit": commit},
    )
    assert behind(shown(config, others=[image], graph=False)) == {"dev": 0, "staging": 0, "prod": 0}


def test_the_timeline_shows_where_each_bundle_is_and_what_runs_where() -> None:
    one = went("app-1", created=5, tag="1", dev=landed(5), staging=landed(5), prod=landed(5))
    two = bundle(created=at(8), name="app-2", artifacts=_image("2"))
    found = shown(two, others=[one], steps={"dev": VERIFIED, "staging": {"state": "HealthChecking"}})
    document = pipeline_document(found, now=NOON)
    assert [card.order for card in document.bundles.values()] == [0, 1]
    older, newer = document.bundles.values()
    assert {name: mark.name for name, mark in older.segments.items()} == dict.fromkeys(
        ("dev", "staging", "prod"), "Verified"
    )
    assert {name: mark.name for name, mark in newer.segments.items()} == {
        "dev": "Verified",
        "staging": "HealthChecking",
    }
    assert (older.runs_in, newer.runs_in) == (["staging", "prod"], ["dev"])
    assert bundle_card(one, found) == older


def test_the_timeline_is_bounded_and_has_the_bundle_that_is_shown() -> None:
    many = [went(f"app-{index:03}", created=8, dev=landed(8)) for index in range(130)]
    oldest = min(many, key=lambda each: each.metadata.name)
    found = shown(oldest, others=[each for each in many if each is not oldest], graph=False)
    document = pipeline_document(found, now=NOON)
    assert (len(document.bundles), document.more_bundles) == (100, 30)
    assert document.shown in document.bundles


# An environment


def test_the_steps_of_an_environment_have_their_times_and_those_to_come_are_pending() -> None:
    done = {"uses": "git-clone", "state": "Succeeded", "startedAt": at(9), "finishedAt": at(9, 1), "message": "fetched"}
    failed = {"uses": "kustomize-set-image", "state": "Failed", "startedAt": at(9, 1), "message": "no such image"}
    step = {"state": "Failed", "message": "no such image", "steps": [done, failed], "startedAt": at(9), "attempt": 2}
    document = environment_document(shown(bundle(), steps={"dev": step}), "dev", now=NOON)
    states = {number: (line.uses, line.state) for number, line in document.steps.items()}
    assert states == {
        "1": ("git-clone", "Succeeded"),
        "2": ("kustomize-set-image", "Failed"),
        "3": ("git-commit", "Pending"),
        "4": ("git-push", "Pending"),
        "5": ("health-check", "Pending"),
    }
    first = document.steps["1"].model_dump(mode="json", exclude_none=True)
    assert (first["startedAt"], first["finishedAt"], first["message"]) == (at(9), at(9, 1), "fetched")
    assert (document.attempt, document.error) == (2, "no such image")
    assert "kardinal retry app-1 --env dev" in document.commands


def test_a_step_that_is_tried_again_tells_its_failures_and_the_next_try() -> None:
    retry = {"attempts": 3, "lastError": "no route to host", "nextAt": at(12, 1)}
    step = {"state": "Promoting", "message": "will be tried again: no route to host", "retry": retry}
    document = environment_document(shown(bundle(), steps={"dev": step}), "dev", now=NOON)
    assert (document.retries, document.error) == (3, "no route to host")
    assert document.model_dump(mode="json")["nextTry"] == at(12, 1)


def test_the_history_of_an_environment_has_the_command_that_rolls_back() -> None:
    bundles = [
        went("app-1", created=5, tag="1", dev=landed(5, commit=COMMIT)),
        went("app-2", created=6, tag="2", phase="Failed", dev={"state": "Failed", "startedAt": at(6)}),
        went("app-3", created=7, tag="3", dev=landed(7)),
    ]
    document = environment_document(shown(bundles[-1], others=bundles[:-1], graph=False), "dev", now=NOON)
    assert [(past.bundle, past.state.name, past.rollback) for past in document.history] == [
        ("app-3", "Verified", ""),
        ("app-2", "Failed", ""),
        ("app-1", "Verified", "kardinal rollback my-app --env dev --to app-1"),
    ]
    commit = document.history[-1].commit
    assert commit is not None
    assert commit.url == f"https://git.example.com/acme/gitops/commit/{COMMIT}"


def test_the_drawer_links_the_pull_request_and_the_ci_run_and_shows_the_diff() -> None:
    run = "https://git.example.com/acme/shop/actions/runs/12"
    pull = {"number": 7, "url": "https://git.example.com/acme/gitops/pulls/7", "branch": "kardinal/x"}
    health = {"type": "argocd", "kind": "Application", "namespace": "argocd", "name": "my-app-dev"}
    step = {"state": "WaitingForMerge", "pullRequest": pull, "diff": "-a\n+b\n", "health": health}
    found = shown(bundle(provenance={"ciRunURL": run}), steps={"dev": step})
    document = environment_document(found, "dev", now=NOON)
    assert [(link.text, link.url) for link in document.links] == [
        ("Application argocd/my-app-dev", None),
        ("#7", pull["url"]),
        ("CI run", run),
    ]
    assert document.diff == "-a\n+b\n"
    linked = environment_document(found, "dev", now=NOON, argocd="https://argocd.example.com").links[0]
    assert linked.url == "https://argocd.example.com/applications/argocd/my-app-dev"


def test_an_unknown_environment_is_missing_with_the_names_of_others() -> None:
    with pytest.raises(NotThere, match=r"no environment nowhere\. It has: dev, staging, prod"):
        environment_document(shown(bundle()), "nowhere", now=NOON)


# A gate


def gated(expression: str, status: JsonObject) -> PipelineObjects:
    gate = org_gate("hours", expression, applies_to="staging", message="Ask #sre")
    return shown(bundle(), steps={"dev": VERIFIED}, templates=[gate], answers={"hours": status})


def test_a_gate_shows_what_it_saw_and_what_must_become_true() -> None:
    expression = '!schedule.isWeekend && schedule.hour >= 9 && schedule.hour < 17 && bundle.labels.go == "yes"'
    seen = [("schedule.isWeekend", "true"), ("schedule.hour", "20"), ("bundle.labels.go", "no")]
    past = [
        {"ready": True, "since": at(9), "reason": "schedule.hour = 9"},
        {"ready": False, "since": at(10), "reason": "schedule.hour = 17"},
    ]
    status = {
        "ready": False,
        "reason": "schedule.hour = 20",
        "lastEvaluatedAt": at(11),
        "nextTransitionAt": at(23),
        "values": [{"name": name, "value": value} for name, value in seen],
        "history": past,
    }
    document = gate_document(gated(expression, status), "staging", POLICIES, "hours", template=None, now=NOON)
    assert [(value.name, value.value, value.needed) for value in document.values] == [
        ("schedule.isWeekend", "true", "must be false"),
        ("schedule.hour", "20", "must be at least 9 and below 17"),
        ("bundle.labels.go", "no", 'must be "yes"'),
    ]
    assert [(answer.answer.name, answer.reason) for answer in document.history] == [
        ("FAIL", "schedule.hour = 17"),
        ("PASS", "schedule.hour = 9"),
    ]
    assert document.verdict.text == "FAIL: schedule.hour = 20"
    assert document.verdict.detail == document.message == "Ask #sre"
    assert document.owner == f"who may change PolicyGate {POLICIES}/hours"
    assert document.right_command == f"kubectl auth can-i patch policygates.kardinal.io/hours --namespace {POLICIES}"
    stored = document.model_dump(mode="json")
    assert stored["verdict"]["until"] == at(23)
    assert stored["recheckSeconds"] == 300


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        pytest.param(at(11, 2), at(11, 5), id="after its interval"),
        pytest.param(at(11, 5), None, id="unknown once the interval has passed"),
        pytest.param(at(12), None, id="unknown until time changes the answer"),
    ],
)
def test_next_look_of_a_gate_lies_ahead_or_is_not_known(now: str, expected: str | None) -> None:
    found = gated("schedule.hour < 9", {"ready": False, "lastEvaluatedAt": at(11), "nextTransitionAt": at(23)})
    moment = datetime.fromisoformat(now)
    document = gate_document(found, "staging", POLICIES, "hours", template=None, now=moment)
    assert document.model_dump(mode="json").get("nextLook") == expected


def test_a_row_counts_what_was_verified_in_a_day_by_quarters_of_an_hour() -> None:
    def record(moment: str) -> dict[str, str]:
        return {"state": "Verified", "verifiedAt": moment}

    newest = {"test": record(at(11, 44)), "staging": record(at(11, 59)), "prod": {"state": "Promoting"}}
    old = {"test": record("2020-01-01T00:00:00Z"), "prod": record(at(11, 45))}
    found = shown(
        bundle("app-2", {"phase": "Promoting", "environments": newest}),
        others=[bundle("app-1", {"phase": "Superseded", "environments": old})],
    )
    day = f"{NOON:%Y-%m-%dT}"
    assert pipeline_row(found, now=NOON).verified == {f"{day}11:30Z": 1, f"{day}11:45Z": 2}
    assert pipeline_row(found, now=NOON + timedelta(hours=24, minutes=50)).verified == {f"{day}11:45Z": 1}


def test_a_gate_shows_the_expression_of_today() -> None:
    found = gated("schedule.hour < 9", {"ready": False, "lastEvaluatedAt": at(11)})
    changed = resources.gate("hours", "schedule.hour < 10", namespace=POLICIES, recheckInterval="1m")
    document = gate_document(found, "staging", POLICIES, "hours", template=changed, now=NOON)
    assert document.expression == "schedule.hour < 10"
    assert document.recheck_seconds == 60
    broken = resources.gate("hours", "schedule.hour <", namespace=POLICIES)
    seen = {"ready": False, "values": [{"name": "schedule.hour", "value": "12"}]}
    (value,) = gate_document(gated("true", seen), "staging", POLICIES, "hours", template=broken, now=NOON).values
    assert value.needed is None


def test_a_gate_that_was_not_evaluated_is_pending() -> None:
    gate = org_gate("hours", "schedule.hour < 9", applies_to="staging")
    found = shown(bundle(), steps={"dev": VERIFIED}, templates=[gate])
    document = gate_document(found, "staging", POLICIES, "hours", template=None, now=NOON)
    assert document.verdict.text.startswith("PENDING: ")
    assert (document.values, document.history) == ([], [])
    assert (document.next_look, document.recheck_seconds) == (None, None)


def test_an_instance_that_only_claims_to_be_of_a_gate_is_not_shown() -> None:
    found = gated("schedule.hour < 9", {"ready": False, "reason": "late", "values": [{"name": "a", "value": "1"}]})
    (true,) = found.gates
    forged = true.model_copy(update={"metadata": true.metadata.model_copy(update={"name": "forged"})})
    only_forged = PipelineObjects(
        pipeline=found.pipeline,
        bundles=found.bundles,
        bundle=found.bundle,
        steps=found.steps,
        gates=[forged],
        graph=found.graph,
    )
    document = gate_document(only_forged, "staging", POLICIES, "hours", template=None, now=NOON)
    assert document.values == []
    assert document.gate.answer.name == "PENDING"


def test_an_unknown_gate_is_an_error() -> None:
    with pytest.raises(NoGate, match="no gate platform-policies/nothing stands before staging"):
        gate_document(gated("true", {}), "staging", POLICIES, "nothing", template=None, now=NOON)
    with pytest.raises(NotThere, match="no Bundle yet"):
        gate_document(shown(), "staging", POLICIES, "hours", template=None, now=NOON)


# A soak

SOAK = "bundle.upstreamSoakMinutes"


def soak_before_prod(
    eu: JsonObject,
    us: JsonObject,
    *,
    entries: JsonObject | None = None,
    expression: str = f"{SOAK} >= 30",
    **status: Any,
) -> JsonObject | None:
    """Return the soak that the gate before prod shows, at noon."""
    what = bundle("app-1", {"phase": "Promoting", "environments": entries or {}})
    found = shown(
        what,
        pipeline=DIAMOND,
        steps={"dev": VERIFIED, "eu": eu, "us": us},
        templates=[org_gate("soak", expression)],
        answers={"soak": {"ready": False, **status}},
    )
    gate = pipeline_document(found, now=NOON).nodes[f"gate/prod/{POLICIES}/soak"]
    assert gate.kind == "gate"
    drawer = gate_document(found, "prod", POLICIES, "soak", template=None, now=NOON)
    assert drawer.gate == gate
    return gate.soak.model_dump(mode="json", exclude_none=True) if gate.soak is not None else None


def test_the_soak_before_a_gate_is_the_shortest_of_what_is_before_it() -> None:
    longer = {**VERIFIED, "healthySince": at(11)}
    shorter = {**VERIFIED, "healthySince": at(11, 50), "healthyFor": "5m0s"}
    assert soak_before_prod(longer, shorter) == {"since": at(11, 45)}


def test_a_soak_that_does_not_grow_says_where_it_stands() -> None:
    unseen = {**VERIFIED, "healthy": False, "healthySince": None, "healthyFor": "5m0s"}
    assert soak_before_prod(VERIFIED, unseen) == {"seconds": 300}
    assert soak_before_prod({**VERIFIED, "healthySince": at(11, 58)}, unseen) == {"since": at(11, 58), "seconds": 300}
    replaced = {"us": {**VERIFIED, "replacedAt": at(9, 10)}}
    assert soak_before_prod(VERIFIED, VERIFIED, entries=replaced) == {"seconds": 600}


def test_a_soak_that_has_not_begun_says_why() -> None:
    assert soak_before_prod(VERIFIED, {"state": "HealthChecking"}) == {"unknown": "us is not Verified"}


def test_a_gate_that_reads_no_soak_shows_none() -> None:
    assert soak_before_prod(VERIFIED, VERIFIED, expression="schedule.hour < 9") is None
    saw = [{"name": "schedule.hour", "value": "12"}]
    assert soak_before_prod(VERIFIED, VERIFIED, values=saw) is None


# A Bundle


def test_a_bundle_shows_where_its_hours_went() -> None:
    evidence = {
        "approvedBy": ["jane"],
        "mergedBy": "joe",
        "durations": {"promoting": "60s", "waitingForMerge": "30m", "healthChecking": "5m"},
        "metrics": {"error-rate": 0.25},
        "policyGates": [{"name": "soak", "namespace": POLICIES, "scope": "org", "result": "pass", "reason": "ok"}],
    }
    entries = {
        "dev": landed(9),
        "staging": landed(10, prURL="https://git.example.com/acme/gitops/pulls/7", evidence=evidence, commit=COMMIT),
    }
    status = {"phase": "Promoting", "observedGeneration": 1, "environments": entries}
    document = bundle_document(shown(bundle("app-1", status), graph=False), now=NOON)
    assert list(document.environments) == ["dev", "staging"]
    staging = document.environments["staging"]
    times = staging.model_dump(mode="json", exclude_none=True)
    assert [times[name] for name in ("dueAt", "startedAt", "proposedAt", "landedAt", "verifiedAt")] == [
        at(9, 20),
        at(10),
        at(10, 1),
        at(10, 10),
        at(10, 20),
    ]
    assert [(person.name, person.did) for person in staging.people] == [("jane", "approved"), ("joe", "merged")]
    assert staging.metrics == {"error-rate": "0.25"}
    assert [gate.name for gate in staging.gates] == ["soak"]
    assert staging.pull_request is not None
    assert staging.pull_request.text == "#7"
    assert document.ahead == ["prod: WAITING: is about to start"]


def test_a_bundle_tells_its_origin_and_how_far_it_goes() -> None:
    digest = f"sha256:{'1' * 64}"
    tagged = "ghcr.io/acme/my-app:1.1.0"
    artifacts = {
        "images": [
            {"reference": tagged},
            {"reference": "ghcr.io/acme/b:2", "digest": digest},
            {"reference": "NOT VALID"},
        ],
        "charts": [{"repository": "https://charts.example.com", "name": "redis", "version": "19.0.1"}],
    }
    resolved = [{"reference": tagged, "digest": digest, "resolvedAt": at(8)}]
    request = {"id": "a", "action": "retry", "environment": "dev", "by": "jane"}
    found = bundle(
        "app-1",
        {"phase": "Promoting", "artifacts": resolved},
        artifacts=artifacts,
        intent={"target": "staging", "skip": ["dev"], "requests": [request]},
    )
    document = bundle_document(shown(found, graph=False), now=NOON)
    assert document.artifacts == {
        tagged: digest,
        "ghcr.io/acme/b:2": digest,
        "NOT VALID": "",
        "https://charts.example.com redis": "19.0.1",
    }
    assert document.intent == "target: staging; skip: dev; retry: dev by jane"


def test_a_bundle_that_has_ended_has_nothing_ahead() -> None:
    ended = went("app-1", created=8, phase="Superseded", dev=landed(8))
    assert bundle_document(shown(ended, graph=False), now=NOON).ahead == []


# All of them


HOSTILE = "<img src=x onerror=alert(1)>\u202e\x1b[31m"


def test_text_of_users_stays_text_and_is_never_a_link() -> None:
    found = bundle(
        "app-1",
        {"phase": "Promoting", "conditions": []},
        provenance={"author": HOSTILE, "commitSHA": HOSTILE, "ciRunURL": "javascript:alert(1)"},
    )
    pull = {"number": 7, "url": "javascript:alert(1)", "branch": "x"}
    step = {"state": "WaitingForMerge", "message": HOSTILE, "pullRequest": pull, "commit": HOSTILE, "diff": HOSTILE}
    gate = org_gate("hours", f"bundle.labels.go != '{HOSTILE[:20]}'", applies_to="staging", message=HOSTILE)
    way = pipeline(provider="git", url="https://git.example.com/acme/gitops")
    objects = shown(found, pipeline=way, steps={"dev": step}, templates=[gate])
    said = [
        pipeline_row(objects, now=NOON),
        pipeline_document(objects, now=NOON),
        environment_document(objects, "dev", now=NOON),
        bundle_document(objects, now=NOON),
    ]
    assert [urls for document in said if (urls := _urls(document.model_dump(mode="json", exclude_none=True)))] == []


def test_a_password_in_the_address_of_a_repository_is_not_shown() -> None:
    refused = Pipeline.model_validate(resources.pipeline("https://u:secret@git.example.com/a", provider="gitea"))
    assert "secret" not in pipeline_document(shown(pipeline=refused), now=NOON).model_dump_json()


def _urls(value: Any) -> list[str]:
    if isinstance(value, dict):
        own = [value["url"]] if "url" in value else []
        return own + [url for each in value.values() for url in _urls(each)]
    return [url for each in value for url in _urls(each)] if isinstance(value, list) else []
