"""Strategic merge: lists that are maps, the directives that kubectl sends, and what cannot be merged."""

from __future__ import annotations

from typing import Any

import pytest

from tests.local.contract.manifests import manifest
from tests.local.contract.wire import Api

covers = pytest.mark.covers

STATEFUL_SET = manifest("statefulsets.apps")


def pod(**fields: Any) -> dict[str, Any]:
    """A patch of the pods of a StatefulSet, which no controller touches here."""
    return {"spec": {"template": {"spec": fields}}}


MERGED: dict[str, dict[str, Any]] = {
    "image": pod(containers=[{"name": "proxy", "image": "registry.example.com/proxy:2"}]),
    "one-more": pod(containers=[{"name": "third", "image": "third:1"}]),
    "in-another-order": pod(
        containers=[{"name": "proxy", "image": "proxy:3"}],
        **{"$setElementOrder/containers": [{"name": "proxy"}, {"name": "web"}]},
    ),
    "one-less": pod(containers=[{"name": "proxy", "$patch": "delete"}]),
    "none-but-these": pod(containers=[{"$patch": "replace"}, {"name": "only", "image": "only:1"}]),
    "replaced-object": {"spec": {"template": {"metadata": {"$patch": "replace", "labels": {"app": "web"}}}}},
    "env": pod(containers=[{"name": "web", "env": [{"name": "MODE", "value": None}, {"name": "NEW", "value": "1"}]}]),
    "env-deleted": pod(containers=[{"name": "web", "env": [{"name": "MODE", "$patch": "delete"}]}]),
    "port-of-another-protocol": pod(
        containers=[{"name": "web", "ports": [{"containerPort": 8080, "protocol": "UDP", "name": "u"}]}]
    ),
    "volume-of-another-source": pod(volumes=[{"name": "config", "emptyDir": {}, "$retainKeys": ["name", "emptyDir"]}]),
    "command": pod(initContainers=[{"name": "init", "command": ["false", "--really"]}]),
    "null": {"metadata": {"labels": None}, "spec": {"template": {"spec": {"serviceAccountName": None}}}},
    "finalizers": {"metadata": {"finalizers": ["example.com/b"]}},
    "finalizers-deleted": {"metadata": {"$deleteFromPrimitiveList/finalizers": ["example.com/a"]}},
    "finalizers-deleted-unless-there": {"metadata": {"$deleteFromPrimitiveList/finalizers": ["example.com/z"]}},
    "finalizers-null": {"metadata": {"$deleteFromPrimitiveList/finalizers": None}},
    "finalizers-in-another-order": {
        "metadata": {
            "finalizers": ["example.com/b"],
            "$setElementOrder/finalizers": ["example.com/b", "example.com/a"],
        }
    },
    "order-alone": pod(**{"$setElementOrder/containers": [{"name": "proxy"}, {"name": "web"}]}),
    "container-twice": pod(containers=[{"name": "web", "image": "web:1"}, {"name": "web", "image": "web:2"}]),
    "new-container-twice": pod(containers=[{"name": "new", "image": "new:1"}, {"name": "new", "image": "new:2"}]),
    "deleted-beside-replaced": pod(
        containers=[{"$patch": "replace"}, {"name": "only", "image": "only:1"}, {"name": "web", "$patch": "delete"}]
    ),
    "directive-below-what-is-new": pod(affinity={"nodeAffinity": {"$patch": "sometimes"}, "podAffinity": None}),
    "unknown-directive-beside": {"spec": {"$sometimes": 1, "replicas": 2}},
    "whole-number": {"spec": {"replicas": 2.0}},
    "number-without-room": {"spec": {"replicas": 4294967298}},
    "whole-port": pod(containers=[{"name": "web", "readinessProbe": {"httpGet": {"path": "/", "port": 80.0}}}]),
    "unknown-fields": {"zebra": 1, "spec": {"zebra": 1, "ape": 2, "template": {"cat": 1}}},
    "strategy": {"spec": {"updateStrategy": {"$retainKeys": ["type"], "type": "OnDelete"}}},
}


async def prepared(api: Api) -> str:
    metadata = {"name": "a", "finalizers": ["example.com/a"]}
    created = await api.silent.post(STATEFUL_SET.path(api), STATEFUL_SET.named("a", metadata=metadata))
    assert created.status == 201
    return STATEFUL_SET.path(api, "a")


@covers("patch", "patch", "success")
@pytest.mark.parametrize("case", MERGED)
async def test_a_strategic_patch_is_merged(api: Api, case: str) -> None:
    path = await prepared(api)
    answer = await api.strategic(path, MERGED[case], dryRun="All")
    await api.silent.merge(path, {"metadata": {"finalizers": None}})
    assert answer.status == 200, answer.body


REFUSED: dict[str, Any] = {
    "no-merge-key": pod(containers=[{"image": "a:1"}]),
    "unknown-directive": {"spec": {"$patch": "sometimes"}},
    "unknown-directive-below": pod(securityContext={"$patch": "sometimes"}),
    "unknown-directive-of-an-element": pod(containers=[{"name": "web", "$patch": "sometimes"}]),
    "element-order-is-no-list": pod(**{"$setElementOrder/containers": "web"}),
    "element-order-misses-one": pod(
        containers=[{"name": "third", "image": "a:1"}], **{"$setElementOrder/containers": [{"name": "web"}]}
    ),
    "retain-is-no-list": {"spec": {"updateStrategy": {"$retainKeys": "type"}}},
    "retain-misses-one": {"spec": {"updateStrategy": {"$retainKeys": ["type"], "rollingUpdate": {"partition": 1}}}},
    "list-for-a-map": {"spec": {"template": []}},
    "map-for-a-list": pod(containers={"name": "web"}),
    "text-for-a-number": {"spec": {"replicas": "two"}},
    "merge-as-a-directive": {"spec": {"$patch": "merge"}},
    "merge-as-a-directive-of-an-element": pod(containers=[{"name": "web", "$patch": "merge"}]),
    "deleted-without-merge-key": pod(containers=[{"$patch": "delete"}]),
    "order-without-merge-key": pod(
        containers=[{"name": "web", "image": "a:1"}], **{"$setElementOrder/containers": [{"image": "a:1"}]}
    ),
    "order-of-texts": pod(containers=[{"name": "web", "image": "a:1"}], **{"$setElementOrder/containers": ["web"]}),
    "order-of-no-field": {"metadata": {"$setElementOrder": ["a"]}},
    "deleted-of-no-field": {"metadata": {"$deleteFromPrimitiveList": ["a"]}},
    "several-types": {"metadata": {"finalizers": ["example.com/b", 1]}},
    "lists-in-a-list": {"metadata": {"finalizers": [["a"]]}},
    "texts-for-objects": pod(containers=["web"]),
    "fraction": {"spec": {"replicas": 2.5}},
    "several-of-another-type": {"spec": {"template": 3, "serviceName": 1, "replicas": "two"}},
    "several-of-another-type-below": pod(nodeName=4, volumes=3, containers=[{"name": "web", "image": 3}]),
    "nothing-but-a-replica": {"$patch": "replace", "spec": {"replicas": 2}},
    "nothing": {"$patch": "delete"},
    "no-object": [],
}


@covers("patch", "patch", "refusal")
@pytest.mark.parametrize("case", REFUSED)
async def test_what_cannot_be_merged_is_refused(api: Api, case: str) -> None:
    path = await prepared(api)
    answer = await api.strategic(path, REFUSED[case], dryRun="All")
    await api.silent.merge(path, {"metadata": {"finalizers": None}})
    assert answer.status >= 400, answer.body
