"""Under the policies of deploy/admission/ everything goes on that is not reserved for the controller.

Garbage collection, the deletion of namespaces and what users do to objects that are theirs, on a real API server.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from kardinal.graph.identity import APPLY_ORDER, GRAPH_LABEL
from kardinal.kube import PatchType
from kardinal.objects import GRAPH, NAMESPACE, ResourceType
from kardinal.promotion.api import names
from kardinal.promotion.kinds import BUNDLE, POLICY_GATE, PROMOTION_STEP
from tests.cli.conftest import Cli
from tests.support.names import POLICIES, TEAM, of_run
from tests.support.objects import bundle, gate, namespace, pipeline
from tests.support.people import Person
from tests.support.promoted import KINDS, Installation, graph, instance, owned_by, step
from tests.support.world import World

JsonObject = dict[str, Any]

EXAMPLES = Path(__file__).parents[2] / "examples"
COLLECTOR = "system:serviceaccount:kube-system:generic-garbage-collector"
OTHER = of_run("other")

MADE = {
    "step": (PROMOTION_STEP, "release-prod"),
    "instance": (POLICY_GATE, "release-prod-soak"),
    "Graph": (GRAPH, "release"),
}
METADATA = {
    "a label": {"labels": {"example.com/team": "shop"}},
    "a label that is not reserved": {"labels": {names.LABEL_PIPELINE: "my-app", names.LABEL_TYPE: "gate"}},
    "an annotation": {"annotations": {"example.com/note": "looked at", names.ANNOTATION_PIN: "true"}},
    "a finalizer": {"finalizers": ["example.com/wait"]},
    "no owner": {"ownerReferences": None},
    "another owner": {
        "ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "0-0-0"}],
    },
}


@pytest.mark.parametrize("metadata", METADATA.values(), ids=METADATA)
@pytest.mark.parametrize(("resource", "name"), MADE.values(), ids=MADE)
async def test_other_metadata_is_free(
    installed: Installation, resource: ResourceType, name: str, metadata: JsonObject
) -> None:
    answer = await installed.tenant.patch(resource, name, {"metadata": metadata})
    assert answer.status == 200, answer


@pytest.mark.parametrize(("resource", "name"), MADE.values(), ids=MADE)
async def test_a_write_that_changes_nothing_reserved_passes(
    installed: Installation, resource: ResourceType, name: str
) -> None:
    stored = await installed.stored(resource, name)

    answers = [
        await installed.tenant.replace(resource, stored),
        await installed.tenant.replace(resource, stored, subresource="status"),
    ]
    assert [answer.status for answer in answers] == [200, 200], answers


@pytest.mark.parametrize("propagation", ["Background", "Foreground"])
async def test_objects_of_a_bundle_are_deleted_with_it(installed: Installation, propagation: str) -> None:
    await _own_each_other(installed)

    answer = await installed.tenant.delete(BUNDLE, "release", propagation=propagation)

    assert answer.status == 200, answer
    for resource, name in ((BUNDLE, "release"), *MADE.values()):
        await installed.world.until(partial(_is_gone, installed.world, resource, name))


async def test_the_garbage_collector_needs_no_verb_of_ours(installed: Installation) -> None:
    """Its changes are made as its own user here; the one that runs has an administrator's credentials."""
    await _own_each_other(installed)
    collector = installed.people[COLLECTOR]
    await installed.people.until_allowed(COLLECTOR, ("patch", "promotionsteps.kardinal.io"))
    for resource, name in MADE.values():
        stored = await installed.stored(resource, name)
        metadata = stored["metadata"]
        (owner,) = metadata["ownerReferences"]
        for changed in (
            {"finalizers": ["foregroundDeletion"]},
            {"finalizers": None},
            {"ownerReferences": [{**owner, "blockOwnerDeletion": False}]},
            {"ownerReferences": None},
        ):
            answer = await collector.patch(resource, name, {"metadata": {"uid": metadata["uid"], **changed}})
            assert answer.status == 200, answer
        answer = await collector.delete(resource, name)
        assert answer.status == 200, answer


async def test_a_namespace_is_deleted_with_all_that_is_in_it(installed: Installation) -> None:
    world = installed.world
    there = {"namespace": OTHER}
    (_, release) = await world.apply(namespace(OTHER), bundle("release", namespace=OTHER))
    (owning,) = await world.apply(_in(graph("release", owned_by(release)), **there))
    waiting = {"finalizers": ["example.com/wait"]}
    await world.apply(
        pipeline("https://git.example.com/acme/gitops.git", provider="git", namespace=OTHER),
        _in(step("release-prod"), **there, **waiting, ownerReferences=[owned_by(owning)]),
        _in(instance("release-prod-soak"), **there, ownerReferences=[owned_by(owning)]),
    )
    await installed.people.bind("tenant", "test-tenant", namespace=OTHER)
    await installed.people.until_allowed("tenant", ("patch", "promotionsteps.kardinal.io"), namespace=OTHER)

    await world.client.delete(NAMESPACE, OTHER)
    ended = await installed.tenant.patch(
        PROMOTION_STEP, "release-prod", {"metadata": {"finalizers": None}}, namespace=OTHER
    )

    assert ended.status == 200, ended
    await world.until(lambda: _is_gone(world, NAMESPACE, OTHER))


@pytest.fixture
async def argo_cd(installed: Installation) -> Person:
    await installed.people.bind("argocd", "kardinal-policy-admin", namespace=POLICIES)
    found = await installed.people.bind("argocd", "kardinal-policy-admin")
    for where in (POLICIES, TEAM):
        await installed.people.until_allowed("argocd", ("patch", "policygates.kardinal.io"), namespace=where)
    return found


@pytest.mark.usefixtures("roles")
@pytest.mark.parametrize("where", [POLICIES, TEAM], ids=["org", "team"])
async def test_argo_cd_applies_gates(argo_cd: Person, where: str) -> None:
    template = gate(
        "no-weekends", "!schedule.isWeekend", namespace=where, labels={"app.kubernetes.io/instance": "gates"}
    )
    template["metadata"]["annotations"] = {"argocd.argoproj.io/tracking-id": f"gates:kardinal.io/PolicyGate:{where}/x"}

    created = await argo_cd.apply(POLICY_GATE, template)
    template["spec"]["expression"] = "!schedule.isWeekend && schedule.hour < 16"
    template["metadata"]["annotations"]["argocd.argoproj.io/sync-wave"] = "1"
    changed = await argo_cd.apply(POLICY_GATE, template)
    marked = {"metadata": {"annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}"}}}
    annotated = await argo_cd.patch(POLICY_GATE, "no-weekends", marked, namespace=where)
    assert [answer.status for answer in (created, changed, annotated)] == [201, 200, 200]


@pytest.mark.usefixtures("roles")
async def test_argo_cd_replaces_a_gate(argo_cd: Person) -> None:
    template = gate("no-weekends", "!schedule.isWeekend")
    answers = [
        await argo_cd.create(POLICY_GATE, template),
        await argo_cd.delete(POLICY_GATE, "no-weekends"),
        await argo_cd.create(POLICY_GATE, template),
    ]
    assert [answer.status for answer in answers] == [201, 200, 201], answers


async def test_graph_of_a_person_makes_graphs_with_its_marks(installed: Installation) -> None:
    [outer] = await installed.world.apply(graph("outer"))
    inner = graph("inner", owned_by(outer))
    inner["metadata"]["labels"] = {GRAPH_LABEL: "0123456789ab"}
    created = await installed.tenant.create(GRAPH, inner)
    changed = await installed.tenant.patch(GRAPH, "inner", {"metadata": {"annotations": {APPLY_ORDER: "1"}}})
    by_hand = graph("by-hand-too")
    by_hand["metadata"]["labels"] = {GRAPH_LABEL: "0123456789ab"}
    refused = await installed.tenant.create(GRAPH, by_hand)
    assert [answer.status for answer in (created, changed, refused)] == [201, 200, 403]


async def test_an_administrator_of_the_cluster_may_do_everything(installed: Installation) -> None:
    someone = await installed.people.bind("root", "cluster-admin", namespace=None)
    await installed.people.until_allowed("root", ("execute", "promotionsteps.kardinal.io"))
    (by_hand,) = await installed.world.apply(bundle("by-hand"))
    for resource, obj in (
        (GRAPH, graph("mended", owned_by(by_hand))),
        (PROMOTION_STEP, step("mended", shard="a")),
        (POLICY_GATE, instance("mended")),
    ):
        marks = {"metadata": {"annotations": {APPLY_ORDER: "1"}}}
        answers = [
            await someone.create(resource, obj),
            await someone.patch(resource, "mended", marks),
            await someone.patch(resource, "mended", {"status": {"observedGeneration": 1}}, subresource="status"),
        ]
        assert [answer.status for answer in answers] == [201, 200, 200], answers


@pytest.fixture
async def roles(installed: Installation) -> None:
    """Apply the roles for people."""
    for document in yaml.safe_load_all((EXAMPLES.parent / "deploy" / "roles.yaml").read_bytes()):
        await installed.people.role(document["metadata"]["name"], *document["rules"])


@pytest.mark.usefixtures("roles")
async def test_the_examples_are_applied_by_those_they_are_for(installed: Installation) -> None:
    world = installed.world
    people = installed.people
    examples = [doc for path in ("pipeline", "bundle", "gates") for doc in _documents(EXAMPLES / f"{path}.yaml")]
    places = {doc["metadata"]["namespace"] for doc in examples}
    await world.apply(*(namespace(place) for place in places))
    for place, verbs in (("default", "bundles"), ("platform-policies", "policygates")):
        role = "kardinal-developer" if place == "default" else "kardinal-policy-admin"
        await people.bind("dana", role, namespace=place)
        await people.until_allowed("dana", ("patch", f"{verbs}.kardinal.io"), namespace=place)

    for doc in examples:
        answer = await people["dana"].apply(KINDS[doc["kind"]], doc)
        assert answer.status in (200, 201), answer


@pytest.mark.usefixtures("commands", "roles")
async def test_a_promoter_pauses_and_resumes(installed: Installation) -> None:
    home = installed.world.new_directory("home")
    home.mkdir()
    account = f"system:serviceaccount:{TEAM}:promoter"
    kardinal = Cli(await installed.people.kubeconfig_of_account("promoter", home), home)
    await installed.people.bind(account, "kardinal-promoter")
    await installed.people.until_allowed(account, ("delete", "policygates.kardinal.io"))

    assert "paused" in await kardinal("pause", "my-app", "--reason", "release freeze")
    assert await installed.world.find(POLICY_GATE, "my-app-freeze")
    assert "resumed" in await kardinal("resume", "my-app")
    assert await installed.world.find(POLICY_GATE, "my-app-freeze") is None


async def _own_each_other(installed: Installation) -> None:
    """Give step and instance the owner that the engine gives them."""
    owner = owned_by(await installed.stored(GRAPH, "release"))
    for resource, name in (MADE["step"], MADE["instance"]):
        metadata = {"metadata": {"ownerReferences": [owner]}}
        await installed.world.client.patch(resource, name, TEAM, metadata, kind=PatchType.MERGE)


async def _is_gone(world: World, resource: ResourceType, name: str) -> bool:
    return await world.find(resource, name) is None


def _in(obj: JsonObject, **metadata: Any) -> JsonObject:
    return {**obj, "metadata": {**obj["metadata"], **metadata}}


def _documents(path: Path) -> list[JsonObject]:
    return list(yaml.safe_load_all(path.read_bytes()))
