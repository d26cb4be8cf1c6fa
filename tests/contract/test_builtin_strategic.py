"""Strategic merge: lists that are maps, the directives that kubectl sends, and what cannot be merged."""

from __future__ import annotations

from typing import Any

import pytest

from tests.contract.manifests import manifest
from tests.contract.wire import Api

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
    "no-object": [],
}


@covers("patch", "patch", "refusal")
@pytest.mark.parametrize("case", REFUSED)
async def test_what_cannot_be_merged_is_refused(api: Api, case: str) -> None:
    path = await prepared(api)
    # What is no object of the kind any more is refused in the words of another decoder.
    loose = "loose" if case.startswith(("list-for", "map-for", "text-for")) else ""
    answer = await api.strategic(path, REFUSED[case], message=loose, dryRun="All")
    await api.silent.merge(path, {"metadata": {"finalizers": None}})
    assert answer.status >= 400, answer.body
