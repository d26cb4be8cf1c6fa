"""The state that commands show of each environment for one Bundle."""

from __future__ import annotations

from typing import Any

import pytest

from kardinal.promotion.api import Bundle, Graph, Pipeline, PolicyGate, PromotionStep
from kardinal.promotion.translation.topology import NODE_KEY, Topology, describe_step, read_topology
from kardinal.promotion.views.environments import environment_states
from kardinal.promotion.views.gates import GateLine, gate_lines, recorded_gates
from tests.support.names import TEAM
from tests.support.objects import bundle, pipeline

PIPELINE = Pipeline.model_validate(pipeline("https://git.example.com/x", environments=["dev", "staging", "prod"]))
NEWER = "added to the Pipeline after the Bundle had started"


def _bundle(status: dict[str, Any] | None = None, **intent: Any) -> Bundle:
    return Bundle.model_validate({**bundle("my-app-1", intent=intent), "status": status or {}})


def _step(environment: str, state: str, **status: Any) -> PromotionStep:
    git = {"url": "https://git.example.com/x"}
    spec = {"pipeline": "my-app", "environment": environment, "bundleRef": "my-app-1", "path": "x", "git": git}
    steps = [{"uses": uses} for uses in ("git-clone", "git-push", "health-check")]
    return PromotionStep.model_validate({"spec": {**spec, "steps": steps}, "status": {"state": state, **status}})


def _graph(*environments: str) -> Topology:
    before = [(), *((name,) for name in environments)]
    nodes = [
        {"id": name, NODE_KEY: describe_step(name, upstreams)}
        for name, upstreams in zip(environments, before, strict=False)
    ]
    return read_topology({"spec": {"nodes": nodes}})


def _states(
    bundle: Bundle,
    *steps: PromotionStep,
    topology: Topology | None = None,
    gates: tuple[GateLine, ...] = (),
) -> dict[str, tuple[str, str]]:
    by_name = {step.spec.environment: step for step in steps}
    found = environment_states(PIPELINE, bundle, by_name, topology=topology, gates=gates)
    return {each.name: (each.state, each.message) for each in found}


def _gate(answer: Any, *, opens: str | None = None) -> GateLine:
    moment = PromotionStep.model_validate(_step("x", "Pending", startedAt=opens)).status.started_at if opens else None
    line: dict[str, Any] = {"environment": "staging", "namespace": "policies", "name": "soak", "scope": "org"}
    return GateLine(**line, answer=answer, detail="", opens_at=moment)


def test_environments_that_the_bundle_leaves_out_or_does_not_reach_say_so() -> None:
    states = _states(_bundle({"phase": "Promoting"}, target="staging", skip=["dev"]), _step("staging", "Promoting"))
    assert states == {
        "dev": ("Skipped", "the Bundle leaves it out (intent.skip)"),
        "staging": ("Promoting", ""),
        "prod": ("NotTargeted", "the Bundle goes up to staging"),
    }


def test_an_environment_that_is_newer_than_the_graph_says_so() -> None:
    states = _states(_bundle({"phase": "Promoting"}), _step("dev", "Verified"), topology=_graph("dev", "staging"))
    assert states["prod"] == ("NotTargeted", NEWER)


def test_a_superseded_bundle_keeps_what_it_reached() -> None:
    entries = {"dev": {"state": "Verified"}, "staging": {"state": "Failed"}, "prod": {"state": "Pending"}}
    assert _states(_bundle({"phase": "Superseded", "environments": entries})) == {
        "dev": ("Verified", ""),
        "staging": ("Failed", ""),
        "prod": ("NotReached", "the Bundle ended before: Superseded"),
    }


def test_an_environment_that_is_newer_than_a_graph_that_is_gone_says_so() -> None:
    status = {"phase": "Superseded", "environments": {"old": {"state": "Verified"}, "dev": {"state": "Verified"}}}
    states = _states(_bundle(status))
    assert states["prod"] == ("NotTargeted", NEWER)
    assert states["old"] == ("Verified", "")


def test_gates_of_a_graph_that_is_gone_are_those_of_the_evidence() -> None:
    seen = {"name": "soak", "namespace": "policies", "scope": "org", "evaluatedAt": "2026-03-03T10:00:00Z"}
    gates = [{**seen, "result": "pass", "reason": "soaked 45m of 30m"}, {"name": "quiet", "result": "fail"}]
    prod = {"state": "Verified", "evidence": {"policyGates": gates}}
    status = {"environments": {"dev": {"state": "Verified"}, "prod": prod}}
    soak, quiet = recorded_gates(_bundle(status), ["dev", "prod"])
    assert (soak.environment, soak.namespace, soak.name, soak.scope) == ("prod", "policies", "soak", "org")
    assert (soak.answer, soak.detail, soak.seen_at is not None) == ("PASS", "soaked 45m of 30m", True)
    assert (quiet.answer, quiet.detail) == ("FAIL", "no reason is kept")


def test_a_step_that_was_given_up_for_a_newer_bundle_has_not_failed() -> None:
    message = "superseded by a newer Bundle of my-app before anything was written"
    given_up = _step("dev", "Failed", message=message)
    assert _states(_bundle({"phase": "Superseded"}), given_up)["dev"] == ("Superseded", message)
    recorded = {"phase": "Superseded", "environments": {"dev": {"state": "Failed", "message": message}}}
    assert _states(_bundle(recorded))["dev"] == ("Superseded", message)
    assert _states(_bundle({"phase": "Promoting"}), given_up)["dev"] == ("Failed", message)


def test_environment_taken_over_by_a_newer_bundle_has_not_failed() -> None:
    message = "superseded by Bundle my-app-2 before anything was written"
    taken = {"state": "Superseded", "displacedBy": "my-app-2", "message": message}
    bundle = _bundle({"phase": "Promoting", "environments": {"dev": {"state": "Verified"}, "staging": taken}})
    states = _states(bundle, _step("dev", "Verified"), _step("staging", "Failed", message=message))
    assert states == {
        "dev": ("Verified", ""),
        "staging": ("Superseded", message),
        "prod": ("NotReached", "a newer Bundle has taken staging over before it"),
    }


def test_a_verification_outlives_a_step_that_is_made_again() -> None:
    status = {"phase": "Superseded", "environments": {"dev": {"state": "Verified"}}}
    assert _states(_bundle(status), _step("dev", "Failed"))["dev"] == ("Verified", "")
    under_way = {**status, "phase": "Promoting"}
    assert _states(_bundle(under_way), _step("dev", "Failed"))["dev"] == ("Failed", "")


def test_environments_after_a_failure_are_not_reached() -> None:
    states = _states(_bundle({"phase": "Promoting"}), _step("dev", "Failed"))
    assert states["staging"] == ("NotReached", "dev failed before it")
    assert states["prod"] == ("NotReached", "staging failed before it")


@pytest.mark.parametrize(
    ("gates", "state", "message"),
    [
        ((), "Waiting", "is about to start"),
        ((_gate("PASS"),), "Waiting", "is about to start"),
        ((_gate("PENDING"),), "Waiting", "waits for the answer of soak"),
        ((_gate("FAIL"),), "Blocked", "held by soak"),
        ((_gate("FAIL", opens="2026-03-03T10:00:00Z"),), "Waiting", "held by soak"),
    ],
)
def test_an_environment_waits_for_gates_and_is_blocked_by_those_that_time_does_not_open(
    gates: tuple[GateLine, ...], state: str, message: str
) -> None:
    states = _states(_bundle({"phase": "Promoting"}), _step("dev", "Verified"), gates=gates)
    assert states["staging"] == (state, message)
    assert states["prod"] == ("Waiting", "waits for staging")


def test_the_step_under_way_is_named_with_its_place_in_the_sequence() -> None:
    steps = {"dev": _step("dev", "Promoting", currentStep=1)}
    (dev, *_) = environment_states(PIPELINE, _bundle(), steps, topology=None, gates=())
    assert dev.progress == "git-push (2 of 3)"


def test_a_gate_that_was_never_evaluated_is_pending_and_shows_what_its_author_wrote() -> None:
    origin = {
        **{"namespace": "policies", "name": "soak", "scope": "org"},
        **{"pipeline": "my-app", "bundle": "my-app-1", "environment": "prod"},
    }
    metadata = {"name": "my-app-1-prod-soak", "namespace": TEAM}
    spec = {"expression": "false", "message": "half an hour, $${please}", "origin": origin}
    template = {"apiVersion": "kardinal.io/v1alpha1", "kind": "PolicyGate", "metadata": metadata, "spec": spec}
    graph = Graph.model_validate({"spec": {"nodes": [{"id": "soak", "template": template}]}})
    (missing,) = gate_lines(graph, [])
    (silent,) = gate_lines(graph, [PolicyGate.model_validate(template)])
    (closed,) = gate_lines(graph, [PolicyGate.model_validate({**template, "status": {"ready": False}})])
    assert [line.answer for line in (missing, silent, closed)] == ["PENDING", "PENDING", "FAIL"]
    assert missing.detail == "waits for the environment before it"
    assert silent.detail == "not evaluated yet"
    assert closed.message == "half an hour, ${please}"
    assert closed.owner == "who may change PolicyGate policies/soak"


@pytest.mark.parametrize(
    ("entry", "health"),
    [
        ({"healthy": True, "healthySince": "2026-03-03T10:00:00Z"}, ""),
        ({"healthy": False}, "Degraded"),
        ({"healthy": False, "healthyFor": "0s"}, "CannotBeSeen"),
    ],
)
def test_the_health_of_an_environment_outlives_its_step(entry: dict[str, Any], health: str) -> None:
    environments = {"dev": {"state": "Verified", "message": "why", **entry}}
    bundle = _bundle({"phase": "Promoting", "environments": environments})
    (dev, staging, _) = environment_states(PIPELINE, bundle, {}, topology=_graph("dev", "staging"), gates=())
    assert (dev.state, dev.health, dev.message) == ("Verified", health, "why")
    assert staging.message == ("waits until dev is healthy again" if health else "is about to start")
