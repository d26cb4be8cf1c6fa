"""A controller that is killed at any of its writes finishes a Graph, and makes no object twice."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random

import pytest

from kardinal.kube import Client, load_connection
from kardinal.objects import DEPLOYMENT, GRAPH, GRAPH_REVISION, SERVICE_ACCOUNT, JsonObject
from kardinal_local.plane import LocalPlane
from kardinal_local.plane.storage.entries import Change
from tests.resilience.lives.clock import FastClock
from tests.resilience.lives.observed import observe
from tests.resilience.lives.programs import Kills, Programs, processes
from tests.support.identities import ACCOUNTS, RESOURCES, SYSTEM_NAMESPACE
from tests.support.names import TEAM

__all__ = ["processes"]

KILLS = 15
NAMES = ["first", *(f"list-{number}" for number in range(4)), "middle", "last"]


@pytest.fixture
def clock() -> FastClock:
    """Return the time of the plane and of the controller."""
    return FastClock.start()


async def let_act(client: Client) -> None:
    """Make an account that may write Deployments, as which the controller may act."""
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "deployer", "namespace": TEAM}}
    await client.create(SERVICE_ACCOUNT, account)
    lent = {
        "apiGroups": [""],
        "resources": ["serviceaccounts"],
        "verbs": ["impersonate"],
        "resourceNames": ["deployer"],
    }
    writes = {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["*"]}
    for name, rule, holder in (
        ("lend", lent, {"name": ACCOUNTS["controller"], "namespace": SYSTEM_NAMESPACE}),
        ("writes", writes, {"name": "deployer", "namespace": TEAM}),
    ):
        metadata = {"name": name, "namespace": TEAM}
        group = "rbac.authorization.k8s.io"
        version = f"{group}/v1"
        role = {"apiVersion": version, "kind": "Role", "metadata": metadata, "rules": [rule]}
        reference = {"apiGroup": group, "kind": "Role", "name": name}
        subjects = [{"kind": "ServiceAccount", **holder}]
        binding = {"apiVersion": version, "kind": "RoleBinding", "metadata": metadata, "roleRef": reference}
        await client.create(RESOURCES["Role"], role)
        await client.create(RESOURCES["RoleBinding"], binding | {"subjects": subjects})


def deployment(identifier: str, after: str = "nothing", *, name: str = "", **modifiers: object) -> JsonObject:
    """Return a node that makes a Deployment of no pods; `after`: an expression that it reads."""
    labels = {"app": "x"}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "app", "image": "example.com/app:1"}]}}
    spec = {"replicas": 0, "selector": {"matchLabels": labels}, "template": pod}
    metadata = {"name": name or identifier, "annotations": {"example.com/after": after}}
    body = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}
    return {"id": identifier, "template": body, **modifiers}


def graph() -> JsonObject:
    nodes = [
        deployment("last", "${middle.metadata.uid}"),
        deployment("middle", "${string(size(items))}"),
        deployment("items", "${first.metadata.uid}", name="list-${item}", forEach="${['0', '1', '2', '3']}"),
        deployment("first"),
    ]
    metadata = {"name": "g", "namespace": TEAM}
    spec = {"serviceAccountName": "deployer", "nodes": nodes}
    return {"apiVersion": GRAPH.api_version, "kind": GRAPH.kind, "metadata": metadata, "spec": spec}


@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", range(2))
async def test_graph_is_finished_whenever_its_controller_is_killed(
    processes: None, prepared_plane: LocalPlane, clock: FastClock, tmp_path: Path, seed: int
) -> None:
    observed = observe(prepared_plane)(TEAM)
    created: Counter[tuple[str, str]] = Counter()

    def note(change: Change) -> None:
        if change.type == "ADDED" and change.entry.namespace == TEAM:
            created[change.entry.resource, change.entry.name] += 1

    prepared_plane._store.committed.listen(note)

    def is_ready() -> bool | None:
        status = (observed.get(GRAPH, "g") or {}).get("status") or {}
        nodes = status.get("nodes", ())
        return True if nodes and all(node["state"] == "Ready" for node in nodes) else None

    def is_gone() -> bool | None:
        return True if observed.get(GRAPH, "g") is None and not list(observed.all(DEPLOYMENT)) else None

    kills = Kills(KILLS, gap=2)
    async with Client(await load_connection(prepared_plane.kubeconfig), user_agent="kardinal-test") as client:
        await let_act(client)
        programs = Programs(
            prepared_plane, tmp_path, clock=clock, random=Random(seed), kills=kills, parts=("controller",)
        )
        async with programs:
            await client.create(GRAPH, graph())
            await observed.until(is_ready, "a Graph that is Ready", show=lambda: programs.log)
            at_rest = programs.killed
            await client.delete(GRAPH, "g", TEAM)
            await observed.until(is_gone, "the end of a Graph", show=lambda: programs.log)
    assert at_rest >= 5
    assert programs.bugs == []
    made = {key for key in created if key[0] in ("deployments.apps", "graphrevisions.experimental.kro.run")}
    assert made == {*(("deployments.apps", name) for name in NAMES), (_of(GRAPH_REVISION), "g-g00001")}
    assert {key: created[key] for key in made if created[key] != 1} == {}


def _of(resource: object) -> str:
    return f"{resource.plural}.{resource.group}"  # type: ignore[attr-defined]
