"""The program of supply chains is allowed by deploy/supplychain what it does, and nothing else.

It stamps the example of examples/supply-chain for a tenant who has consented by the Role of tenant/. The log of the API
server is compared with the rules, in both directions.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from kardinal.kube import PatchType
from kardinal.objects import CUSTOM_RESOURCE_DEFINITION, DEPLOYMENT, SECRET, SERVICE_ACCOUNT, JsonObject, ResourceType
from kardinal_local.plane import LoggedRequest
from kardinal_local.stack import until_served
from kardinal_supplychain.api import kinds
from tests.supplychain.chains import (
    OUR_KINDS,
    RunningChains,
    blueprint,
    condition,
    definitions,
    deliverable,
    resource,
    template,
)
from tests.support.identities import RESOURCES, documents_of
from tests.support.names import TEAM
from tests.support.people import people_of
from tests.support.permissions import Permission, granted_to, needed_by
from tests.support.world import World

EXAMPLE = Path(__file__).parents[2] / "examples" / "supply-chain"
GIT_REPOSITORY = ResourceType("source.toolkit.fluxcd.io", "v1", "GitRepository", "gitrepositories")
IMAGE = ResourceType("kpack.io", "v1alpha2", "Image", "images")

SELDOM = {
    **{
        Permission(resource, verb): "a chain whose templates make it"
        for resource in (
            "bundles.kardinal.io",
            "configmaps",
            "jobs.batch",
            "ocirepositories.source.toolkit.fluxcd.io",
            "pipelineruns.tekton.dev",
            "services",
            "taskruns.tekton.dev",
        )
        for verb in ("list", "watch")
    },
    Permission("events.events.k8s.io", "get"): "an Event that was written by the process before this one",
    Permission("events.events.k8s.io", "patch"): "an Event that repeats itself",
    Permission("subjectaccessreviews.authorization.k8s.io", "create"): "a scrape of metrics",
    Permission("tokenreviews.authentication.k8s.io", "create"): "a scrape of metrics",
}
"""Rights that the walk does not need."""

REFUSED = {"secrets", f"{GIT_REPOSITORY.plural}.{GIT_REPOSITORY.group}"}
"""The kinds of a template that may not be watched, and of an owner whose account has not consented."""


def definition_of(kind: ResourceType) -> JsonObject:
    """Return a definition of a kind of another tool, which takes everything."""
    names = {"kind": kind.kind, "plural": kind.plural, "singular": kind.kind.lower(), "listKind": f"{kind.kind}List"}
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": kind.version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": CUSTOM_RESOURCE_DEFINITION.api_version,
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.plural}.{kind.group}"},
        "spec": {
            "group": kind.group,
            "names": names,
            "scope": "Namespaced",
            "versions": [{**version, "subresources": {"status": {}}}],
        },
    }


def consent() -> Iterator[JsonObject]:
    """Yield what a tenant applies in its namespace, and the rights that it gives to its account."""
    for document in documents_of("supplychain/tenant/namespace.yaml"):
        yield {**document, "metadata": {**document["metadata"], "namespace": TEAM}}
    yield {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "supply-chains", "namespace": TEAM},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "supply-chains"},
        "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": TEAM}],
    }
    rules = [
        {"apiGroups": [kind.group], "resources": [kind.plural], "verbs": ["create", "patch"]}
        for kind in (GIT_REPOSITORY, IMAGE, DEPLOYMENT)
    ]
    yield {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": {"name": "supply-chains", "namespace": TEAM},
        "rules": rules,
    }


@pytest.fixture
async def used(world: World) -> set[Permission]:
    """Return what the program asked of the API server during the walk."""
    granted = granted_to("supplychain")
    user = world.user("supplychain")
    asked: set[Permission] = set()

    def note(request: LoggedRequest) -> None:
        if request.user == user and not (request.code == 403 and request.resource in REFUSED):
            asked.update(needed_by(request, granted))

    subscription = world.audit.subscribe(note)
    await walk(world)
    subscription.close()
    return asked


async def walk(world: World) -> None:
    """Stamp the example for one Workload, refuse another one, and a template that makes a Secret."""
    wanted = [*definitions(), definition_of(GIT_REPOSITORY), definition_of(IMAGE)]
    for document in wanted:
        await world.client.create(CUSTOM_RESOURCE_DEFINITION, document)
    await until_served(world.client, {document["metadata"]["name"] for document in wanted})
    for document in consent():
        await world.client.apply(RESOURCES[document["kind"]], document, field_manager="test")
    stranger = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "stranger", "namespace": TEAM}}
    await world.client.create(SERVICE_ACCOUNT, stranger)
    async with people_of(world) as people:
        await people.until_allowed(world.user("supplychain"), ("impersonate", "serviceaccounts", "default"))
        await people.until_allowed(
            f"system:serviceaccount:{TEAM}:default",
            ("patch", f"{IMAGE.plural}.{IMAGE.group}"),
            ("patch", "deployments.apps"),
        )
        await people.until_allowed(world.user("supplychain"), ("watch", "images.kpack.io"), namespace="")
    await world.run(lambda client: RunningChains(client, clock=world.clock), identity="supplychain")
    for name in ("templates.yaml", "supply-chain.yaml", "workload.yaml"):
        for document in yaml.safe_load_all((EXAMPLE / name).read_bytes()):
            await apply(world, document)
    await world.until(lambda: world.find(GIT_REPOSITORY, "shop"))
    artifact = {"url": "http://source.example.com/shop.tar.gz", "revision": "main@sha1:0123456789"}
    await report(world, GIT_REPOSITORY, {"artifact": artifact})
    await world.until(lambda: world.find(IMAGE, "shop"))
    ready = {"type": "Ready", "status": "True"}
    await report(world, IMAGE, {"latestImage": "registry.example.com/apps/shop@sha256:1", "conditions": [ready]})
    await world.until(lambda: world.find(DEPLOYMENT, "shop"))
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "$(workload.metadata.name)$"}}
    await apply(world, template("secret", body, kind="ClusterTemplate"))
    stamped = resource("secret", kind="ClusterTemplate")
    await apply(world, blueprint(stamped, name="secrets", selector={"type": "secret"}))
    await apply(world, blueprint(stamped, name="secrets", kind="ClusterDelivery"))
    await apply(world, owner("stranger", type_="web", serviceAccountName="stranger"))
    await apply(world, owner("secret", type_="secret"))
    await apply(world, deliverable("secret"))
    runs = {"template": {**body, "metadata": {"generateName": "run-"}}}
    await apply(world, document_of("ClusterRunTemplate", "runs", runs))
    await apply(world, document_of("Runnable", "runs", {"runTemplateRef": {"name": "runs"}}))
    await world.settle()


def owner(name: str, *, type_: str, **spec: Any) -> JsonObject:
    document: JsonObject = yaml.safe_load((EXAMPLE / "workload.yaml").read_bytes())
    document["metadata"] |= {"name": name, "labels": {"type": type_}}
    document["spec"] |= spec
    return document


def document_of(kind: str, name: str, spec: JsonObject) -> JsonObject:
    return {"apiVersion": kinds.WORKLOAD.api_version, "kind": kind, "metadata": {"name": name}, "spec": spec}


async def apply(world: World, document: JsonObject) -> None:
    kind = OUR_KINDS[document["apiVersion"], document["kind"]]
    if kind.namespaced:
        document = {**document, "metadata": {**document["metadata"], "namespace": TEAM}}
    await world.client.apply(kind, document, field_manager="test")


async def report(world: World, kind: ResourceType, status: JsonObject) -> None:
    """Write the status of the object `shop`, as its controller would."""
    await world.client.patch(kind, "shop", TEAM, {"status": status}, kind=PatchType.MERGE, subresource="status")


async def submitted(world: World, name: str) -> tuple[str, str, str]:
    return condition((await world.get(kinds.WORKLOAD, name))["status"], "ResourcesSubmitted")


async def test_the_program_is_granted_what_it_uses_and_nothing_more(world: World, used: set[Permission]) -> None:
    granted = granted_to("supplychain")
    seldom = set(SELDOM) | {permission._replace(verb="list") for permission in used if permission.verb == "watch"}

    assert used - granted == set(), "it may not do what it does"
    assert granted - used - seldom == set(), "it is granted what it does not use"
    assert SELDOM.keys() - granted == set(), "it is not granted what it seldom needs"
    assert SELDOM.keys() & used == set(), "it does this on the walk, not seldom"

    assert (await submitted(world, "shop"))[0] == "True"
    assert (await submitted(world, "stranger"))[0] == "False"
    assert await world.find(GIT_REPOSITORY, "stranger") is None
    assert (await submitted(world, "secret"))[1] == "WatchForbidden"
    assert await world.find(SECRET, "secret") is None
