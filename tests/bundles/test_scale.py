"""The cost of a look at a Bundle beside those that were before."""

from __future__ import annotations

from kardinal.kube import Client, ClusterAccess, Connection
from kardinal.objects import JsonObject, key_of
from kardinal.promotion.kinds import BUNDLE, PIPELINE
from kardinal.promotion.translation.repository import Features
from kardinal.runtime import KeyMemory, Manager
from kardinal_controller.attestations import Attestations
from kardinal_controller.bundles.graphs import GraphKeeper
from kardinal_controller.bundles.observe import Observer
from kardinal_controller.caches import Caches
from kardinal_controller.expressions import ExpressionCompiler
from kardinal_controller.graphs.accounts import AccountRights
from tests.support.clock import VirtualClock
from tests.support.registry import REGISTRY
from tests.support.work import calls

ENVIRONMENTS = ("dev", "staging", "prod")


def verified(number: int) -> JsonObject:
    """Return a Bundle that has been promoted everywhere."""
    moment = "2026-03-03T10:00:00Z"
    entry = {"state": "Verified", "admittedAt": moment, "promotedAt": moment, "verifiedAt": moment}
    return {
        "apiVersion": BUNDLE.api_version,
        "kind": BUNDLE.kind,
        "metadata": {
            "name": f"b-{number}",
            "namespace": "team",
            "uid": f"u-{number}",
            "resourceVersion": str(number),
            "creationTimestamp": moment,
            "labels": {"kardinal.io/pipeline": "app"},
        },
        "spec": {"artifacts": {"images": [{"reference": f"ghcr.io/acme/app:1.0.{number}"}]}},
        "status": {
            "phase": "Verified",
            "pipeline": "app",
            "sequence": number,
            "graphRef": f"b-{number}",
            "environments": dict.fromkeys(ENVIRONMENTS, entry),
        },
    }


def observed(bundles: int) -> tuple[Observer, Caches]:
    """Return an observer of so many Bundles of one Pipeline."""
    clock = VirtualClock()
    client = Client(Connection(ClusterAccess("http://127.0.0.1:9")), user_agent="test")
    caches = Caches(Manager(client, clock=clock, name="test"))
    keeper = GraphKeeper(
        caches,
        client,
        clock=clock,
        features=Features(registry=REGISTRY),
        policy_namespaces=(),
        attestations=Attestations(client, namespace="kardinal-system"),
        expressions=ExpressionCompiler(),
        rights=AccountRights(client, clock=clock),
    )
    pipeline = {
        "apiVersion": PIPELINE.api_version,
        "kind": PIPELINE.kind,
        "metadata": {"name": "app", "namespace": "team", "uid": "p", "resourceVersion": "1"},
        "spec": {
            "git": {"url": "https://example.com/app.git"},
            "environments": [{"name": each} for each in ENVIRONMENTS],
        },
    }
    caches.pipelines.replace({key_of(pipeline): pipeline}, "1")
    caches.bundles.replace({key_of(each): each for each in map(verified, range(1, bundles + 1))}, "1")
    return Observer(caches, keeper, clock=clock, tags=None, memory=KeyMemory(caches.bundles)), caches


def cost(bundles: int) -> int:
    """Return the calls of a second look at the latest of so many Bundles."""
    observer, caches = observed(bundles)
    latest = caches.bundles.list("team")[-1]
    observer.observe(latest, write_by=None)
    return calls(lambda: observer.observe(latest, write_by=None))


def test_bundles_that_have_not_changed_are_not_read_again() -> None:
    each = (cost(110) - cost(10)) / 100
    # To find it, to place it and to see that it is the same; to read it takes as much again.
    assert each < 60


def test_a_bundle_that_has_changed_is_read_again() -> None:
    observer, caches = observed(3)
    first, _, latest = caches.bundles.list("team")
    assert [each.pinned for each in observer.observe(latest, write_by=None).siblings] == [False, False]
    pinned = {
        **first,
        "metadata": {**first["metadata"], "resourceVersion": "9", "annotations": {"kardinal.io/pin": "true"}},
    }
    caches.bundles.apply("MODIFIED", pinned)
    assert [each.pinned for each in observer.observe(latest, write_by=None).siblings] == [True, False]
