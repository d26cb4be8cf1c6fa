"""The programs are allowed what they do, and nothing else.

A walk is made as in a cluster: a controller, an agent of its own for the shard of prod, a pull request, gates, a Bundle
from CI, one that is superseded, one that goes by history limit. What the API server logged is compared with the rules
of deploy/, in both directions.
"""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import Any

import aiohttp
import orjson
import pytest

from kardinal.objects import GRAPH
from kardinal.promotion.kinds import BUNDLE, PROMOTION_STEP
from kardinal_controller.program import ControlPlane
from kardinal_local.plane import LoggedRequest
from kardinal_local.rights import OWN_RIGHTS, RIGHTS, SUPPLY_CHAIN_RIGHTS
from tests.support.identities import RESOURCES, SYSTEM_NAMESPACE, TEST_EXECUTOR, documents_of, shipped_rights
from tests.support.names import DEV, POLICIES, PROD, STAGING, TEAM
from tests.support.objects import bundle, environment, gate, pipeline
from tests.support.people import People, people_of
from tests.support.permissions import Permission, granted_to, needed_by, virtual
from tests.support.programs import start_agent, start_controller, start_simulator
from tests.support.repository import IMAGE, GitRepository
from tests.support.reviewer import merge_pull_request, open_pull_requests
from tests.support.webhook import sign, webhook_secret
from tests.support.world import World

_TOOLS = {
    Permission(resource, verb): "an environment that this kind speaks for"
    for resource in (
        "applications.argoproj.io",
        "rollouts.argoproj.io",
        "kustomizations.kustomize.toolkit.fluxcd.io",
        "helmreleases.helm.toolkit.fluxcd.io",
        "gitrepositories.source.toolkit.fluxcd.io",
        "canaries.flagger.app",
        "replicasets.apps",
    )
    for verb in ("list", "watch")
}

SELDOM = {
    "controller": {
        **_TOOLS,
        **{Permission("approvals.kardinal.io", verb): "an Approval that is posted" for verb in ("create", "delete")},
        Permission("approvals.kardinal.io", "get"): "an external answer that is posted again",
        Permission("approvals.kardinal.io/status", "patch"): "an Approval that is posted",
        Permission("configmaps", "get"): "the holidays of a gate",
        **{
            Permission("customresourcedefinitions.apiextensions.k8s.io", verb): "a Graph with a kind of others"
            for verb in ("list", "watch")
        },
        Permission("events.events.k8s.io", "get"): "an Event that was written by the process before this one",
        Permission("events.events.k8s.io", "patch"): "an Event that repeats itself",
        Permission("graphs.experimental.kro.run", "get"): "a Graph that is there before the informer has seen it",
        Permission("graphrevisions.experimental.kro.run", "delete"): "a Graph that was revised more often than is kept",
        Permission("graphrevisions.experimental.kro.run/status", "patch"): "a Graph with objects outside its namespace",
        Permission("subjectaccessreviews.authorization.k8s.io", "create"): "a scrape of metrics",
        Permission("tokenreviews.authentication.k8s.io", "create"): "a scrape of metrics",
    },
    "agent": {
        **_TOOLS,
        Permission("events.events.k8s.io", "get"): "an Event that was written by the process before this one",
        Permission("events.events.k8s.io", "patch"): "an Event that repeats itself",
        Permission("secrets", "get"): "a repository that asks for credentials",
        Permission("subjectaccessreviews.authorization.k8s.io", "create"): "a scrape of metrics",
        Permission("tokenreviews.authentication.k8s.io", "create"): "a scrape of metrics",
    },
}
"""Rights that the walk does not need; `list` is how every informer begins on an older server."""

SHARD = ("ClusterRole", "kardinal-shard-prod")

ONCE = {
    "controller": {
        Permission("secrets", "create", SYSTEM_NAMESPACE): "the first controller of a cluster makes the key",
        Permission("secrets", "get", SYSTEM_NAMESPACE): "every other one finds it",
    },
}
"""Rights that a walk may need, by what there was before it."""


METRIC_CHECK = {
    "provider": {"type": "prometheus", "address": "https://prometheus.example.com"},
    "query": "up",
    "successCondition": "> 0",
}


@pytest.fixture
async def as_shipped(world: World) -> None:
    """Leave the programs what deploy/ gives them where it is strictest, which the worlds of other tests do not.

    Secrets by the Role of one namespace, and an agent that may write the statuses of its shard alone.
    """
    for name in ("kardinal-controller-secrets", "kardinal-agent-secrets", f"test-kardinal-agent-{TEST_EXECUTOR}"):
        await world.client.delete(RESOURCES["ClusterRoleBinding"], name)
    for role in (*documents_of("secrets/namespace.yaml"), *documents_of("agent/secrets/namespace.yaml")):
        metadata = {**role["metadata"], "namespace": TEAM}
        await world.client.apply(RESOURCES[role["kind"]], {**role, "metadata": metadata}, field_manager="test")
    [shard] = [role for role in shipped_rights() if (role["kind"], role["metadata"]["name"]) == SHARD]
    rules = [{**rule, "resourceNames": [PROD]} for rule in shard["rules"]]
    await world.client.apply(RESOURCES["ClusterRole"], {**shard, "rules": rules}, field_manager="test", force=True)
    async with people_of(world) as people:
        await people.bind(world.user("agent"), shard["metadata"]["name"], namespace=None)
        await people.until_allowed(world.user("agent"), ("serve", "shards.kardinal.io", PROD), namespace="")
        await people.until_allowed(world.user("controller"), ("get", "secrets", "kardinal-webhook"))
        await world.until(partial(_refused, people, world.user("agent"), "execute", "promotionsteps.kardinal.io"))
        await world.until(partial(_refused, people, world.user("controller"), "get", "secrets"))


async def _refused(people: People, user: str, verb: str, resource: str) -> bool:
    return not await people.allowed(user, verb, resource, namespace=SYSTEM_NAMESPACE, name="another")


@pytest.fixture
async def used(world: World, repository: GitRepository, as_shipped: None) -> dict[str, set[Permission]]:
    """Return what each program asked of the API server during the walk."""
    asked: dict[str, set[Permission]] = {identity: set() for identity in SELDOM}
    users = {world.user(identity): identity for identity in SELDOM}

    def note(request: LoggedRequest) -> None:
        if request.user in users:
            identity = users[request.user]
            asked[identity].update(needed_by(request, granted_to(identity)))

    subscription = world.audit.subscribe(note)
    await walk(world, repository)
    subscription.close()
    return asked


async def test_a_program_is_granted_what_it_uses_and_nothing_more(used: dict[str, set[Permission]]) -> None:
    for identity, reasons in SELDOM.items():
        granted = frozenset(permission for permission in granted_to(identity) if not virtual(permission))
        seldom = set(reasons) | set(ONCE.get(identity, ()))
        seldom |= {permission._replace(verb="list") for permission in used[identity] if permission.verb == "watch"}

        assert used[identity] - granted == set(), f"{identity} may not do what it does"
        assert granted - used[identity] - seldom == set(), f"{identity} is granted what it does not use"
        assert reasons.keys() - granted == set(), f"{identity} is not granted what it seldom needs"
        assert reasons.keys() & used[identity] == set(), f"{identity} does this on the walk, not seldom"


@pytest.mark.parametrize("role", sorted(RIGHTS | SUPPLY_CHAIN_RIGHTS))
def test_a_laptop_allows_what_a_cluster_does(role: str) -> None:
    assert list((RIGHTS | SUPPLY_CHAIN_RIGHTS)[role]) == shipped_rules("ClusterRole", role)


def test_a_laptop_allows_the_controller_in_its_own_namespace_what_a_cluster_does() -> None:
    assert list(OWN_RIGHTS) == shipped_rules("Role", "kardinal-controller")


def shipped_rules(kind: str, name: str) -> list[dict[str, Any]]:
    shipped = (*shipped_rights(), *documents_of("supplychain/cluster-wide/*.yaml"))
    [role] = [one for one in shipped if (one["kind"], one["metadata"]["name"]) == (kind, name)]
    rules: list[dict[str, Any]] = role["rules"]
    return rules


async def walk(world: World, repository: GitRepository) -> None:
    """Four Bundles on a Pipeline that uses what there is."""
    controller = await start_controller(world)
    await start_agent(world, shard=PROD)
    await start_simulator(world)
    await world.apply(
        webhook_secret(),
        gate("soak", "bundle.upstreamSoakMinutes >= 0.03", namespace=POLICIES),
        gate("no-hotfix", "!has(bundle.labels.hotfix)", applies_to=STAGING),
        gate("broken", "bundle.", applies_to="nowhere"),
        unavailable("MetricCheck", METRIC_CHECK),
        unavailable(
            "Subscription", {"pipeline": "my-app", "source": {"type": "image", "image": {"repository": IMAGE}}}
        ),
        pipeline(
            repository,
            environments=[DEV, STAGING, environment(PROD, approval="pr-review", shard=PROD)],
            historyLimit=1,
        ),
    )
    first = await post_bundle(world, controller, "1.1.0")
    await review(world, repository, first)
    await world.apply(bundle("second", tag="1.2.0"))
    await waits_for_merge(world, "second")
    await world.apply(bundle("third", tag="1.3.0"))
    await world.until(lambda: has_phase(world, "second", "Superseded"))
    await review(world, repository, "third")
    # What would be restored is kept: the first goes when the third is that.
    await world.apply(bundle("fourth", tag="1.4.0"))
    await review(world, repository, "fourth")
    await world.until(lambda: is_gone(world, first))
    # An object of the Graph that is deleted by hand comes back.
    await world.delete(PROMOTION_STEP, f"fourth-{DEV}")
    await world.until(lambda: world.find(PROMOTION_STEP, f"fourth-{DEV}"))
    await world.delete(GRAPH, "fourth")
    await world.settle()


async def review(world: World, repository: GitRepository, name: str) -> None:
    """Merge what the Bundle proposes for prod, and wait until it is there."""
    await waits_for_merge(world, name)
    [proposed] = [pull for pull in await open_pull_requests(world, repository) if pull.bundle == name]
    await merge_pull_request(world, repository, proposed.number)
    await world.until(lambda: has_phase(world, name, "Verified"), within=timedelta(minutes=30))


async def waits_for_merge(world: World, name: str) -> None:
    await world.wait_for(PROMOTION_STEP, f"{name}-{PROD}", lambda step: state_of(step) == "WaitingForMerge")


async def has_phase(world: World, name: str, phase: str) -> bool:
    found = await world.find(BUNDLE, name)
    return found is not None and found.get("status", {}).get("phase") == phase


async def is_gone(world: World, name: str) -> bool:
    return await world.find(BUNDLE, name) is None


def state_of(step: dict[str, Any]) -> str | None:
    state: str | None = step.get("status", {}).get("state")
    return state


def unavailable(kind: str, spec: dict[str, Any]) -> dict[str, Any]:
    """Return a kind that is served and not executed yet; its status says so."""
    metadata = {"name": kind.lower(), "namespace": TEAM}
    return {"apiVersion": "kardinal.io/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec}


async def post_bundle(world: World, controller: ControlPlane, tag: str) -> str:
    """Return what CI does after a build; returns the Bundle's name."""
    images = [{"name": "app", "reference": f"{IMAGE}:{tag}"}]
    body = orjson.dumps({"namespace": TEAM, "pipeline": "my-app", "artifacts": {"images": images}})
    async with aiohttp.ClientSession() as session:
        for age in (0, 60):  # CI retries, and signs again.
            headers = sign(body, clock=world.clock, idempotency_key="build-1", age=age)
            async with session.post(f"{controller.api_url}/api/v1/bundles", data=body, headers=headers) as answer:
                assert answer.status == 201, await answer.text()
                name: str = (await answer.json())["name"]
    return name
