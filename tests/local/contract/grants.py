"""Roles and bindings of one test, made without a recording."""

from __future__ import annotations

from typing import Any

from tests.local.contract.wire import Api

__all__ = ["RBAC", "allowed", "binding", "grant", "grant_everywhere", "role", "rule", "subject"]

RBAC = "rbac.authorization.k8s.io"
JsonObject = dict[str, Any]


def rule(*verbs: str, on: str, group: str = "", names: tuple[str, ...] = ()) -> JsonObject:
    """A rule for `on`: a resource, or several separated by spaces."""
    found: JsonObject = {"verbs": list(verbs), "apiGroups": [group], "resources": on.split()}
    return found | ({"resourceNames": list(names)} if names else {})


def subject(name: str, *, kind: str = "User", namespace: str = "") -> JsonObject:
    return {"kind": kind, "name": name} | ({"namespace": namespace} if namespace else {})


def role(name: str, *rules: JsonObject, kind: str = "Role", **members: Any) -> JsonObject:
    return {"apiVersion": f"{RBAC}/v1", "kind": kind, "metadata": {"name": name}, "rules": list(rules), **members}


def binding(name: str, to: str, *subjects: JsonObject, kind: str = "RoleBinding", role: str = "Role") -> JsonObject:
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": kind,
        "metadata": {"name": name},
        "roleRef": {"apiGroup": RBAC, "kind": role, "name": to},
        "subjects": list(subjects),
    }


async def grant(api: Api, user: str, *rules: JsonObject, who: JsonObject | None = None) -> None:
    """Rights of `user` in the namespace of the test, effective when this returns."""
    quiet = api.silent
    await _create(quiet, api.path("roles", group=RBAC), role(user, *rules))
    await _create(quiet, api.path("rolebindings", group=RBAC), binding(user, user, who or subject(user)))
    await api.until(lambda: allowed(api, user, rules[0], namespace=api.namespace))


async def grant_everywhere(api: Api, user: str, *rules: JsonObject) -> None:
    """Rights of `user` in the whole cluster; the name is of this test alone."""
    quiet = api.silent
    bound = binding(user, user, subject(user), kind="ClusterRoleBinding", role="ClusterRole")
    for plural, document in (("clusterroles", role(user, *rules, kind="ClusterRole")), ("clusterrolebindings", bound)):
        path = api.path(plural, group=RBAC, namespace=None)
        await _create(quiet, path, document)
        api.scope.made(f"{path}/{user}")
    await api.until(lambda: allowed(api, user, rules[0]))


async def allowed(api: Api, user: str, needed: JsonObject, *, namespace: str = "") -> bool:
    """Whether `user` may do the first thing that the rule `needed` speaks of."""
    asked = {
        "verb": needed["verbs"][0],
        "group": needed["apiGroups"][0],
        "resource": needed["resources"][0].partition("/")[0],
        "subresource": needed["resources"][0].partition("/")[2],
        "name": needed.get("resourceNames", [""])[0],
        "namespace": namespace,
    }
    path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    answer = await api.silent.post(path, {"spec": {"user": user, "resourceAttributes": asked}})
    return bool(answer.body["status"]["allowed"])


async def _create(api: Api, path: str, document: JsonObject) -> None:
    created = await api.post(path, document)
    assert created.status == 201, created.body
