"""On a real API server, the policies of deploy/admission/ keep for the controller what only the controller may write.

Each attack names the policy that must refuse it, so that none is refused for another reason.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import pytest

from kardinal.graph.identity import APPLY_ORDER, GRAPH_LABEL
from kardinal.kube import PatchType
from kardinal.objects import GRAPH, GRAPH_REVISION, ResourceType
from kardinal.promotion.api import names
from kardinal.promotion.kinds import BUNDLE, PIPELINE, POLICY_GATE, PROMOTION_STEP
from tests.support.names import TEAM
from tests.support.objects import bundle, gate
from tests.support.people import Answer, Person
from tests.support.promoted import KINDS, REVISION, Installation, graph, instance, of_kind, owned_by, step

JsonObject = dict[str, Any]

STEPS = "kardinal-promotion-steps"
GATES = "kardinal-gate-instances"
GRAPHS = "kardinal-bundle-graphs"
MARKS = "kardinal-internal-marks"
STATUSES = "kardinal-statuses"

NODE_LABEL = f"prod.release.{TEAM}.internal.kro.run/type"
CONDITION = {"status": "True", "reason": "Said", "lastTransitionTime": "2026-01-01T00:00:00Z"}


def assert_refused(answer: Answer, policy: str) -> None:
    assert answer.status == 403, answer
    assert f"ValidatingAdmissionPolicy '{policy}'" in answer.message
    # Whom to ask, and what to do instead.
    assert "(verb execute on promotionsteps.kardinal.io" in answer.message
    assert "; " in answer.message


@dataclass(frozen=True)
class Patch:
    """A change that the tenant tries, and the policy that refuses it."""

    resource: ResourceType
    name: str
    body: Any
    policy: str
    kind: PatchType = PatchType.MERGE


def labels_of(resource: ResourceType, name: str, labels: JsonObject, policy: str) -> Patch:
    return Patch(resource, name, {"metadata": {"labels": labels}}, policy)


def annotations_of(resource: ResourceType, name: str, annotations: JsonObject, policy: str) -> Patch:
    return Patch(resource, name, {"metadata": {"annotations": annotations}}, policy)


SPEC_OF_STEP = "/spec/requiredGates"
PATCHES = {
    "a step without its gates": Patch(PROMOTION_STEP, "release-prod", {"spec": {"requiredGates": []}}, STEPS),
    "a step without its gates, by JSON patch": Patch(
        PROMOTION_STEP, "release-prod", [{"op": "remove", "path": SPEC_OF_STEP}], STEPS, PatchType.JSON
    ),
    "a step of another shard": labels_of(PROMOTION_STEP, "release-b", {names.LABEL_SHARD: "a"}, STEPS),
    "a step of no shard": labels_of(PROMOTION_STEP, "release-b", {names.LABEL_SHARD: None}, STEPS),
    "a step of another Bundle": labels_of(PROMOTION_STEP, "release-prod", {names.LABEL_BUNDLE: "other"}, STEPS),
    "a step of another environment": labels_of(PROMOTION_STEP, "release-prod", {names.LABEL_ENVIRONMENT: "dev"}, STEPS),
    "a step with the label of a gate": labels_of(PROMOTION_STEP, "release-prod", {names.LABEL_GATE: "x"}, STEPS),
    "an instance that is open": Patch(POLICY_GATE, "release-prod-soak", {"spec": {"expression": "true"}}, GATES),
    "an instance of another environment": labels_of(
        POLICY_GATE, "release-prod-soak", {names.LABEL_ENVIRONMENT: "dev"}, GATES
    ),
    "an instance that is a template": labels_of(POLICY_GATE, "release-prod-soak", {names.LABEL_BUNDLE: None}, GATES),
    "an instance that is an open template": Patch(
        POLICY_GATE,
        "release-prod-soak",
        {"metadata": {"labels": {names.LABEL_BUNDLE: None}}, "spec": {"expression": "true"}},
        GATES,
    ),
    "a template that is an instance": labels_of(POLICY_GATE, "template", {names.LABEL_BUNDLE: "release"}, GATES),
    "a template with the label of an instance": labels_of(POLICY_GATE, "template", {names.LABEL_GATE: "soak"}, GATES),
    "a Graph without its gates": Patch(GRAPH, "release", {"spec": {"nodes": [{"id": "prod"}]}}, GRAPHS),
    "a Graph that is disowned and changed": Patch(
        GRAPH, "release", {"metadata": {"ownerReferences": []}, "spec": {"nodes": [{"id": "prod"}]}}, GRAPHS
    ),
    "a step of another Graph": labels_of(PROMOTION_STEP, "release-prod", {GRAPH_LABEL: "ba9876543210"}, MARKS),
    "a step of no Graph": labels_of(PROMOTION_STEP, "release-prod", {GRAPH_LABEL: None}, MARKS),
    "a template that a Graph made": labels_of(POLICY_GATE, "template", {GRAPH_LABEL: "0123456789ab"}, MARKS),
    "a Bundle that is a node": labels_of(BUNDLE, "release", {NODE_LABEL: "node"}, MARKS),
    "a Pipeline with an order of deletion": annotations_of(PIPELINE, "my-app", {APPLY_ORDER: "999999"}, MARKS),
    "a Graph without an order of deletion": annotations_of(GRAPH, "release", {APPLY_ORDER: None}, MARKS),
    "a Graph with an order of deletion": annotations_of(GRAPH, "by-hand", {APPLY_ORDER: "9" * 5000}, MARKS),
}


@pytest.mark.parametrize("patch", PATCHES.values(), ids=PATCHES)
async def test_a_tenant_does_not_change_what_the_controller_made(installed: Installation, patch: Patch) -> None:
    before = await installed.stored(patch.resource, patch.name)

    answer = await installed.tenant.patch(patch.resource, patch.name, patch.body, kind=patch.kind)

    assert_refused(answer, patch.policy)
    assert await installed.stored(patch.resource, patch.name) == before


SPECS = {
    "step": (PROMOTION_STEP, "release-prod", {"requiredGates": []}, STEPS),
    "instance": (POLICY_GATE, "release-prod-soak", {"expression": "true"}, GATES),
    "Graph": (GRAPH, "release", {"nodes": [{"id": "prod"}]}, GRAPHS),
}


@pytest.mark.parametrize("way", ["apply", "replace"])
@pytest.mark.parametrize("kind", SPECS)
async def test_no_verb_of_an_update_passes(installed: Installation, kind: str, way: str) -> None:
    resource, name, spec, policy = SPECS[kind]
    before = await installed.stored(resource, name)
    changed = deepcopy(before)
    changed["spec"] |= spec
    changed["metadata"].pop("managedFields")

    answer = await (installed.tenant.apply if way == "apply" else installed.tenant.replace)(resource, changed)

    assert_refused(answer, policy)
    assert await installed.stored(resource, name) == before


def without_name(obj: JsonObject) -> JsonObject:
    metadata = {key: value for key, value in obj["metadata"].items() if key != "name"}
    return {**obj, "metadata": {**metadata, "generateName": "release-"}}


def plain(obj: JsonObject) -> JsonObject:
    """Return the object without any label."""
    return {**obj, "metadata": {key: value for key, value in obj["metadata"].items() if key != "labels"}}


def marked(obj: JsonObject, **metadata: JsonObject) -> JsonObject:
    return {**obj, "metadata": {**obj["metadata"], **metadata}}


CREATIONS = {
    "a step": (PROMOTION_STEP, marked(step("forged"), labels={names.LABEL_BUNDLE: "release"}), STEPS),
    "a step without labels": (PROMOTION_STEP, plain(step("forged")), STEPS),
    "a step with a generated name": (PROMOTION_STEP, without_name(plain(step(""))), STEPS),
    "an instance": (POLICY_GATE, instance("forged"), GATES),
    "an instance with a generated name": (POLICY_GATE, without_name(instance("")), GATES),
    "a gate with the label of a shard": (POLICY_GATE, gate("forged", "true", labels={names.LABEL_SHARD: "a"}), GATES),
    "a Bundle with a mark": (BUNDLE, marked(bundle("forged"), labels={GRAPH_LABEL: "0123456789ab"}), MARKS),
    "a Graph with the mark of a node": (GRAPH, marked(graph("forged"), labels={NODE_LABEL: "node"}), MARKS),
    "a gate with an order of deletion": (
        POLICY_GATE,
        marked(gate("forged", "true"), annotations={APPLY_ORDER: "9" * 5000}),
        MARKS,
    ),
    "a revision of a Graph": (
        GRAPH_REVISION,
        marked(of_kind(GRAPH_REVISION, "forged", REVISION), labels={"internal.kro.run/graph-name": "release"}),
        MARKS,
    ),
}


@pytest.mark.parametrize(("resource", "obj", "policy"), CREATIONS.values(), ids=CREATIONS)
async def test_a_tenant_does_not_create_what_the_controller_makes(
    installed: Installation, resource: ResourceType, obj: JsonObject, policy: str
) -> None:
    before = {found["metadata"]["name"] for found in await installed.world.objects(resource)}

    answers = [await installed.tenant.create(resource, obj)]
    if "name" in obj["metadata"]:
        answers.append(await installed.tenant.apply(resource, obj))

    for answer in answers:
        assert_refused(answer, policy)
    assert {found["metadata"]["name"] for found in await installed.world.objects(resource)} == before


async def test_a_tenant_does_not_create_a_graph_for_a_bundle(installed: Installation) -> None:
    forged = graph("forged", owned_by(installed.release))

    assert_refused(await installed.tenant.create(GRAPH, forged), GRAPHS)
    assert_refused(await installed.tenant.apply(GRAPH, forged), GRAPHS)
    assert await installed.world.find(GRAPH, "forged") is None


async def test_a_tenant_does_not_give_its_graph_to_a_bundle(installed: Installation) -> None:
    owners = {"metadata": {"ownerReferences": [owned_by(installed.release)]}}

    assert_refused(await installed.tenant.patch(GRAPH, "by-hand", owners), GRAPHS)
    assert "ownerReferences" not in (await installed.stored(GRAPH, "by-hand"))["metadata"]


async def test_a_tenant_does_not_change_a_graph_between_two_owners(installed: Installation) -> None:
    disowned = await installed.tenant.patch(GRAPH, "release", {"metadata": {"ownerReferences": []}})
    changed = await installed.tenant.patch(GRAPH, "release", {"spec": {"nodes": [{"id": "prod"}]}})
    assert (disowned.status, changed.status) == (200, 200), "a Graph that no Bundle owns is nothing to the controller"

    owners = {"metadata": {"ownerReferences": [owned_by(installed.release)]}}
    assert_refused(await installed.tenant.patch(GRAPH, "release", owners), GRAPHS)


NAMED = {
    "Pipeline": "my-app",
    "Bundle": "release",
    "PromotionStep": "release-a",
    "PolicyGate": "release-prod-soak",
    "Approval": "approval",
    "MetricCheck": "check",
    "Subscription": "subscription",
    "Graph": "release",
    "GraphRevision": "revision",
}


@pytest.mark.parametrize("way", ["patch", "apply", "replace"])
@pytest.mark.parametrize("kind", KINDS)
async def test_a_tenant_does_not_write_a_status(installed: Installation, kind: str, way: str) -> None:
    resource = KINDS[kind]
    name = NAMED[kind]
    before = await installed.stored(resource, name)
    said = {"observedGeneration": 99, "conditions": [{**CONDITION, "type": "Ready"}]}
    if way == "patch":
        answer = await installed.tenant.patch(resource, name, {"status": said}, subresource="status")
    elif way == "apply":
        obj = {"apiVersion": resource.api_version, "kind": kind, "metadata": {"name": name, "namespace": TEAM}}
        answer = await installed.tenant.apply(resource, {**obj, "status": said}, subresource="status")
    else:
        answer = await installed.tenant.replace(resource, {**before, "status": said}, subresource="status")

    assert_refused(answer, STATUSES)
    assert await installed.stored(resource, name) == before


async def test_a_status_that_an_object_brings_along_is_dropped(installed: Installation) -> None:
    verified = {"phase": "Verified", "environments": {"prod": {"state": "Verified"}}}
    created = await installed.tenant.create(BUNDLE, {**bundle("born-verified"), "status": verified})
    applied = await installed.tenant.apply(POLICY_GATE, {**gate("born-open", "false"), "status": {"ready": True}})
    patched = await installed.tenant.patch(BUNDLE, "release", {"status": verified})

    assert (created.status, applied.status, patched.status) == (201, 201, 200)
    for resource, name in ((BUNDLE, "born-verified"), (POLICY_GATE, "born-open"), (BUNDLE, "release")):
        assert "status" not in await installed.stored(resource, name)


@pytest.fixture
async def agent(installed: Installation) -> Person:
    """Return the agent of shard a, which may even change steps as far as RBAC is concerned."""
    shard = {"apiGroups": ["kardinal.io"], "resources": ["shards"], "resourceNames": ["a"], "verbs": ["serve"]}
    steps = {"apiGroups": ["kardinal.io"], "resources": ["promotionsteps", "pipelines/status"], "verbs": ["patch"]}
    await installed.people.role("test-shard-a", shard, steps)
    await installed.people.bind("agent", "kardinal-agent-control-plane", namespace=None)
    found = await installed.people.bind("agent", "test-shard-a", namespace=None)
    await installed.people.until_allowed(
        "agent", ("serve", "shards.kardinal.io", "a"), ("patch", "promotionsteps.kardinal.io/status")
    )
    return found


VERIFIED = {"status": {"state": "Verified", "healthy": True}}


async def test_an_agent_writes_the_status_of_its_shard(installed: Installation, agent: Person) -> None:
    labels = {"metadata": {"labels": {names.LABEL_SHARD: "b"}}}
    answer = await agent.patch(PROMOTION_STEP, "release-a", VERIFIED | labels, subresource="status")

    assert answer.status == 200, answer
    stored = await installed.stored(PROMOTION_STEP, "release-a")
    assert stored["status"]["state"] == "Verified"
    assert stored["metadata"]["labels"][names.LABEL_SHARD] == "a", "a write to the status moves no label"


@pytest.mark.parametrize("name", ["release-b", "release-prod", "release-mixed"])
async def test_an_agent_writes_no_status_of_another_shard(installed: Installation, agent: Person, name: str) -> None:
    assert_refused(await agent.patch(PROMOTION_STEP, name, VERIFIED, subresource="status"), STATUSES)
    assert "status" not in await installed.stored(PROMOTION_STEP, name)


@pytest.mark.parametrize("name", ["release-b", "release-prod", "release-mixed"])
async def test_an_agent_does_not_move_a_step_into_its_shard(installed: Installation, agent: Person, name: str) -> None:
    before = await installed.stored(PROMOTION_STEP, name)
    moved = {"metadata": {"labels": {names.LABEL_SHARD: "a"}}, "spec": {"shard": "a"}}

    assert_refused(await agent.patch(PROMOTION_STEP, name, moved), STEPS)
    assert await installed.stored(PROMOTION_STEP, name) == before


async def test_an_agent_keeps_a_step_by_its_finalizer_and_lets_it_go(installed: Installation, agent: Person) -> None:
    for finalizers in ([names.FINALIZER], []):
        answer = await agent.patch(PROMOTION_STEP, "release-a", {"metadata": {"finalizers": finalizers}})
        assert answer.status == 200, answer
        stored = await installed.stored(PROMOTION_STEP, "release-a")
        assert stored["metadata"].get("finalizers", []) == finalizers


async def test_a_tenant_serves_no_shard_by_a_role_of_its_namespace(installed: Installation) -> None:
    await installed.people.until_allowed("tenant", ("serve", "shards.kardinal.io", "a"))

    answer = await installed.tenant.patch(PROMOTION_STEP, "release-a", VERIFIED, subresource="status")
    assert_refused(answer, STATUSES)


@pytest.fixture
async def reporter(installed: Installation) -> Person:
    statuses = {"apiGroups": ["kardinal.io"], "resources": ["pipelines/status"], "verbs": ["patch"]}
    report = {"apiGroups": ["kardinal.io"], "resources": ["pipelines"], "verbs": ["report"]}
    await installed.people.role("test-reporter", statuses, report)
    found = await installed.people.bind("reporter", "test-reporter", namespace=None)
    await installed.people.until_allowed(
        "reporter", ("report", "pipelines.kardinal.io"), ("patch", "pipelines.kardinal.io/status")
    )
    status = {"observedGeneration": 1, "conditions": [{**CONDITION, "type": "Ready"}]}
    await installed.world.client.patch(PIPELINE, "my-app", TEAM, {"status": status}, subresource="status")
    return found


async def test_a_reporter_sets_conditions_of_the_repository(installed: Installation, reporter: Person) -> None:
    ready = {**CONDITION, "type": "Ready"}
    for reported in (["RepositoryReady"], ["RepositoryReady", "RepositoryReady-a"], []):
        conditions = [ready, *({**CONDITION, "type": one} for one in reported)]
        body = {"status": {"conditions": conditions}}
        answer = await reporter.patch(PIPELINE, "my-app", body, subresource="status")
        assert answer.status == 200, answer
        found = (await installed.stored(PIPELINE, "my-app"))["status"]["conditions"]
        assert [one["type"] for one in found] == ["Ready", *reported]


@pytest.mark.parametrize(
    "status",
    [
        {"conditions": [{**CONDITION, "type": "Ready", "status": "False"}]},
        {"conditions": [{**CONDITION, "type": "RepositoryReady"}]},
        {"conditions": None},
        {"observedGeneration": 99},
        {"observedGeneration": None},
    ],
    ids=["changed Ready", "dropped Ready", "dropped all", "changed generation", "dropped generation"],
)
async def test_a_reporter_writes_nothing_else(installed: Installation, reporter: Person, status: JsonObject) -> None:
    before = await installed.stored(PIPELINE, "my-app")

    answer = await reporter.patch(PIPELINE, "my-app", {"status": status}, subresource="status")
    assert_refused(answer, STATUSES)
    assert await installed.stored(PIPELINE, "my-app") == before


@pytest.mark.parametrize("field", ["labels", "annotations"])
async def test_a_tenant_cannot_have_the_server_go_through_many_keys(installed: Installation, field: str) -> None:
    """A policy that looks at each of them takes the API server seconds, and has a limit beyond which it refuses."""
    before = await installed.stored(PROMOTION_STEP, "release-prod")
    most = 1000 - len(before["metadata"].get(field, {}))
    many = {f"a{number:05}": "" for number in range(most)}

    enough = await installed.tenant.patch(PROMOTION_STEP, "release-prod", {"metadata": {field: many}})
    more = await installed.tenant.patch(PROMOTION_STEP, "release-prod", {"metadata": {field: {"more": ""}}})

    assert enough.status == 200, enough.message
    assert_refused(more, MARKS)


async def test_a_tenant_cannot_have_the_server_go_through_many_owners(installed: Installation) -> None:
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "x"}
    many = [owned_by(installed.release), *({**owner, "uid": f"{number}"} for number in range(1000))]

    enough = await installed.tenant.patch(GRAPH, "release", {"metadata": {"ownerReferences": many[:-1]}})
    more = await installed.tenant.patch(GRAPH, "release", {"metadata": {"ownerReferences": many}})

    assert enough.status == 200, enough.message
    assert_refused(more, GRAPHS)


async def test_object_with_many_keys_still_comes_to_its_end(installed: Installation) -> None:
    """Found among what was there before the policies: a finalizer that could not be removed would keep it for ever."""
    many = {"annotations": {f"a{number:05}": "" for number in range(2000)}, "finalizers": ["example.com/wait"]}
    await installed.world.client.patch(PROMOTION_STEP, "release-prod", TEAM, {"metadata": many})
    await installed.world.delete(PROMOTION_STEP, "release-prod")

    ended = await installed.tenant.patch(PROMOTION_STEP, "release-prod", {"metadata": {"finalizers": None}})

    assert ended.status == 200, ended.message
    assert await installed.world.find(PROMOTION_STEP, "release-prod") is None
