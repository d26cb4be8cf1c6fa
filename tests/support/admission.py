"""The admission policies of deploy/ on a real API server, which takes a moment until it enforces them."""

from __future__ import annotations

import time
from typing import Any

from kardinal.promotion.api.names import LABEL_BUNDLE
from kardinal.promotion.kinds import POLICY_GATE
from tests.support.administrator import Administrator
from tests.support.identities import RESOURCES, admission
from tests.support.names import TEAM
from tests.support.objects import gate

__all__ = ["enforce"]

JsonObject = dict[str, Any]

_SECONDS = 30.0
_LOOK_AGAIN = 0.02
_USER = "test-policy-probe"
_RBAC = "rbac.authorization.k8s.io"
_LAST = "kardinal-gate-instances"


def enforce(administrator: Administrator) -> None:
    """Apply the policies, and return when a user who may create PolicyGates is refused by them.

    The server reads policies and bindings in the order of their creation, so the last one tells for all.
    """
    documents = sorted(admission(), key=lambda doc: bool(doc["metadata"]["name"] == _LAST))
    for document in documents:
        administrator.apply(RESOURCES[document["kind"]], document)
    for right in _rights_of_probe():
        administrator.apply(RESOURCES[right["kind"]], right)
    path = POLICY_GATE.path(namespace=TEAM)
    probe = gate("probe", "true", labels={LABEL_BUNDLE: "probe"})
    deadline = time.monotonic() + _SECONDS
    while _LAST not in administrator.refusal(f"{path}?dryRun=All", probe, user=_USER):
        if time.monotonic() > deadline:
            raise TimeoutError(f"the admission policies are not enforced after {_SECONDS:g} s")
        time.sleep(_LOOK_AGAIN)
    for right in _rights_of_probe():
        administrator.delete(RESOURCES[right["kind"]].path(name=right["metadata"]["name"]))


def _rights_of_probe() -> list[JsonObject]:
    head = {"apiVersion": f"{_RBAC}/v1", "metadata": {"name": _USER}}
    rule = {"apiGroups": [POLICY_GATE.group], "resources": [POLICY_GATE.plural], "verbs": ["create"]}
    return [
        {**head, "kind": "ClusterRole", "rules": [rule]},
        {
            **head,
            "kind": "ClusterRoleBinding",
            "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": _USER},
            "subjects": [{"apiGroup": _RBAC, "kind": "User", "name": _USER}],
        },
    ]
