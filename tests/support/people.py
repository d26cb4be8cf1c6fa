"""Requests of users beside the programs: the administrator impersonates them, so they need no credentials.

Answers are returned as they are, refusals included, because who is refused what is the subject of these tests.
"""

from __future__ import annotations

import io
import itertools
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import yaml

from kardinal.kube import PatchType, load_connection
from kardinal.objects import SERVICE_ACCOUNT, ResourceType
from tests.support.identities import RESOURCES
from tests.support.names import TEAM
from tests.support.world import World

__all__ = ["Answer", "People", "Person", "people_of"]

JsonObject = dict[str, Any]

_RBAC = "rbac.authorization.k8s.io"
_REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
_RULES = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"


@dataclass(frozen=True)
class Answer:
    """The status code and the body of one answer."""

    status: int
    body: JsonObject

    @property
    def message(self) -> str:
        return str(self.body.get("message", ""))


class Person:
    """One user; each method is one request."""

    def __init__(self, session: aiohttp.ClientSession, name: str, *, options: Mapping[str, Any]) -> None:
        self.name = name
        self._session = session
        self._options = options

    async def get(self, resource: ResourceType, name: str, namespace: str = TEAM) -> Answer:
        return await self._ask("GET", resource.path(namespace=namespace, name=name))

    async def create(self, resource: ResourceType, obj: JsonObject) -> Answer:
        return await self._ask("POST", resource.path(namespace=obj["metadata"].get("namespace")), obj)

    async def replace(self, resource: ResourceType, obj: JsonObject, *, subresource: str | None = None) -> Answer:
        metadata = obj["metadata"]
        path = resource.path(namespace=metadata["namespace"], name=metadata["name"], subresource=subresource)
        return await self._ask("PUT", path, obj)

    async def patch(
        self,
        resource: ResourceType,
        name: str,
        body: object,
        *,
        namespace: str = TEAM,
        subresource: str | None = None,
        kind: PatchType = PatchType.MERGE,
    ) -> Answer:
        path = resource.path(namespace=namespace, name=name, subresource=subresource)
        return await self._ask("PATCH", path, body, content_type=kind.value)

    async def apply(self, resource: ResourceType, obj: JsonObject, *, subresource: str | None = None) -> Answer:
        """Apply on the server's side, and take over the fields of others."""
        metadata = obj["metadata"]
        path = resource.path(namespace=metadata.get("namespace"), name=metadata["name"], subresource=subresource)
        query = f"?fieldManager={self.name}&force=true"
        return await self._ask("PATCH", path + query, obj, content_type=PatchType.APPLY.value)

    async def delete(self, resource: ResourceType, name: str, *, propagation: str = "Background") -> Answer:
        options = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": propagation}
        return await self._ask("DELETE", resource.path(namespace=TEAM, name=name), options)

    async def _ask(
        self, method: str, path: str, body: object = None, *, content_type: str = "application/json"
    ) -> Answer:
        headers = {"Impersonate-User": self.name, "Content-Type": content_type}
        data = None if body is None else io.BytesIO(orjson.dumps(body))
        async with self._session.request(method, path, data=data, headers=headers, **self._options) as answer:
            return Answer(answer.status, await answer.json(content_type=None))


class People:
    """The users of one API server, and what RBAC gives them."""

    def __init__(self, world: World, session: aiohttp.ClientSession, *, options: Mapping[str, Any]) -> None:
        self._world = world
        self._session = session
        self._options = options

    def __getitem__(self, name: str) -> Person:
        return Person(self._session, name, options=self._options)

    async def bind(self, name: str, role: str, *, namespace: str | None = TEAM) -> Person:
        """Bind a user to a ClusterRole, in a namespace or, without one, everywhere."""
        kind = "RoleBinding" if namespace else "ClusterRoleBinding"
        where = {"namespace": namespace} if namespace else {}
        binding = {
            "apiVersion": f"{_RBAC}/v1",
            "kind": kind,
            "metadata": {"name": f"{name.rpartition(':')[2]}-{role}", **where},
            "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": role},
            "subjects": [{"apiGroup": _RBAC, "kind": "User", "name": name}],
        }
        await self._world.client.apply(RESOURCES[kind], binding, field_manager="test", force=True)
        return self[name]

    async def role(self, name: str, *rules: JsonObject) -> None:
        """Make a ClusterRole."""
        role = {"apiVersion": f"{_RBAC}/v1", "kind": "ClusterRole", "metadata": {"name": name}, "rules": list(rules)}
        await self._world.client.apply(RESOURCES["ClusterRole"], role, field_manager="test", force=True)

    async def allowed(self, user: str, verb: str, resource: str, *, namespace: str = TEAM, name: str = "") -> bool:
        """Return whether RBAC allows this; `resource` is `plural.group` or `plural.group/subresource`."""
        qualified, _, subresource = resource.partition("/")
        plural, _, group = qualified.partition(".")
        asked = {
            "verb": verb,
            "group": group,
            "resource": plural,
            "subresource": subresource,
            "namespace": namespace,
            "name": name,
        }
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {"user": user, "groups": ["system:authenticated"], "resourceAttributes": asked},
        }
        async with self._session.post(_REVIEWS, json=review, **self._options) as answer:
            found: bool = (await answer.json())["status"]["allowed"]
        return found

    async def rules(self, user: str, namespace: str) -> dict[str, set[str]]:
        """Return all that RBAC allows a user in a namespace: `plural.group` or `plural.group/subresource` -> verbs."""
        review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview"}
        headers = {"Impersonate-User": user}
        body = review | {"spec": {"namespace": namespace}}
        async with self._session.post(_RULES, json=body, headers=headers, **self._options) as answer:
            rules = (await answer.json())["status"]["resourceRules"]
        found: dict[str, set[str]] = {}
        for rule in rules:
            assert not rule.get("resourceNames"), f"for some names only: {rule}"
            for group, resource in itertools.product(rule["apiGroups"], rule["resources"]):
                plural, slash, subresource = resource.partition("/")
                found.setdefault(f"{plural}.{group}{slash}{subresource}", set()).update(rule["verbs"])
        return found

    async def kubeconfig_of_account(self, name: str, directory: Path, *, namespace: str = TEAM) -> Path:
        """Make a ServiceAccount; returns a kubeconfig with a token of it, for a command that takes one."""
        metadata = {"name": name, "namespace": namespace}
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}
        await self._world.client.apply(SERVICE_ACCOUNT, account, field_manager="test", force=True)
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        path = SERVICE_ACCOUNT.path(namespace=namespace, name=name, subresource="token")
        async with self._session.post(path, json=request, **self._options) as answer:
            token = (await answer.json())["status"]["token"]
        document = yaml.safe_load(self._world.server.kubeconfig.read_text())
        document["users"] = [{"name": name, "user": {"token": token}}]
        for context in document["contexts"]:
            context["context"] |= {"user": name, "namespace": namespace}
        path_of_file = directory / f"kubeconfig.{name}"
        path_of_file.write_text(yaml.safe_dump(document))
        return path_of_file

    async def until_allowed(self, user: str, *asked: Sequence[str], namespace: str = TEAM) -> None:
        """Wait until RBAC, which follows its objects a moment later, allows each (verb, resource) or (…, name)."""

        async def all_allowed() -> bool:
            for verb, resource, *name in asked:
                if not await self.allowed(user, verb, resource, namespace=namespace, name="".join(name)):
                    return False
            return True

        await self._world.until(all_allowed)


@asynccontextmanager
async def people_of(world: World) -> AsyncIterator[People]:
    connection = await load_connection(world.server.kubeconfig)
    access = await connection.access()
    headers = {"Authorization": access.authorization} if access.authorization else {}
    async with aiohttp.ClientSession(connection.server, headers=headers) as session:
        yield People(world, session, options={"ssl": access.tls or True})
