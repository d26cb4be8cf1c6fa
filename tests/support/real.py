"""A real API server as the server of one world after another.

What it was when it started is the state it is put back to after each test: everything that came since is removed from
its store, and what was changed is restored. So tests that run one after the other on one server meet it as new, and
their controllers, which watch all namespaces, see nothing of each other; tests that run at once have a server each.

It is at rest when its own controllers are: no object outlives its owner, and every Deployment has got as far as it
gets. The trap is that these controllers tell nobody when they are done, so their work is read off the objects.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson
import yaml

from kardinal.api import DEPLOYMENT, SERVICE_ACCOUNT, ResourceType
from kardinal.kube.selectors import matches
from kardinal.runtime import Informer
from tests.support.administrator import Administrator
from tests.support.identities import ACCOUNTS, RESOURCES, SYSTEM_NAMESPACE, rights
from tests.support.objects import namespace
from tests.support.requests import FollowedLog
from tests.support.store import Etcd

__all__ = ["RealServer"]

JsonObject = dict[str, Any]

_POD = ResourceType("", "v1", "Pod", "pods")

_CUSTOM = ("kardinal.io/", "experimental.kro.run/")
"""Where custom resources are; they alone are stored as JSON."""

_BUILT_IN = ("configmaps/", "deployments/", "secrets/")
"""Where those built-in kinds are that programs watch."""

_RESTLESS = ("leases/", "masterleases/", "minions/", "ranges/", "peerserverleases/")
"""What moves by itself and belongs to no test."""

_TOKEN_SECONDS = 24 * 3600
_STUCK = {"ErrImagePull", "ImagePullBackOff"}


class RealServer:
    """An API server of the launcher, with everything kardinal needs in a cluster."""

    runs_workloads = True

    def __init__(self, kubeconfig: Path, directory: Path) -> None:
        self.kubeconfig = kubeconfig
        self.audit = FollowedLog(kubeconfig.with_name("audit.log"))
        self._directory = directory
        self._administrator = Administrator(kubeconfig)
        self._store = Etcd(kubeconfig.with_name("store-url").read_text())
        for document in (*rights(), namespace("platform-policies")):
            self._administrator.apply(RESOURCES[document["kind"]], document)
        for identity in ACCOUNTS:
            self.kubeconfig_for(identity).write_text(self._kubeconfig_of(identity))
        self._start = {one.path: one for one in self._store.below("", values=True)}
        self.release()
        self._custom: dict[str, JsonObject] = {}
        self._revisions: dict[str, int] = {}

    def kubeconfig_for(self, identity: str) -> Path:
        return self.kubeconfig if identity == "admin" else self._directory / f"kubeconfig.{identity}"

    def user(self, identity: str) -> str:
        if identity == "admin":
            return identity
        return f"system:serviceaccount:{SYSTEM_NAMESPACE}:{ACCOUNTS[identity]}"

    def moment(self) -> object:
        # Nothing changes there but by a request.
        self.audit.catch_up()
        return self.audit.changes

    def unrest(self) -> list[str]:
        self._look()
        return [*_orphans(self._custom.values()), *self._rollouts()]

    def served(self, informer: Informer) -> Mapping[tuple[str, str], str]:
        prefix = _prefix(informer.resource, informer.namespace)
        if informer.labels or informer.fields:
            chosen = {
                path
                for path, document in self._custom.items()
                if path.startswith(prefix) and matches(document, labels=informer.labels, fields=informer.fields)
            }
        else:
            chosen = {path for path in self._revisions if path.startswith(prefix)}
        return {_key(path, informer.resource): str(self._revisions[path]) for path in chosen}

    def reset(self) -> None:
        """Put everything back to how it was before the first test."""
        now = {one.path: one.revision for one in self._store.below("") if not one.path.startswith(_RESTLESS)}
        changed = [
            one for path, one in self._start.items() if not path.startswith(_RESTLESS) and now.get(path) != one.revision
        ]
        self._store.write(delete=sorted(now.keys() - self._start.keys()), put=changed)
        for one in self._store.below(*(one.path for one in changed), values=True) if changed else ():
            self._start[one.path] = one
        self.audit.begin()

    def release(self) -> None:
        """Close what was opened for a test; the next request opens it again."""
        self._administrator.close()
        self._store.close()

    def close(self) -> None:
        self.release()
        self.audit.close()

    def _look(self) -> None:
        custom = self._store.below(*_CUSTOM, values=True)
        self._custom = {one.path: orjson.loads(one.value) for one in custom}
        self._revisions = {one.path: one.revision for one in (*custom, *self._store.below(*_BUILT_IN))}

    def _rollouts(self) -> Iterator[str]:
        """The Deployments that are on their way."""
        if not any(path.startswith("deployments/") for path in self._revisions):
            return
        pods = self._administrator.items(_POD)
        for deployment in self._administrator.items(DEPLOYMENT):
            metadata = deployment["metadata"]
            if not _rolled_out(deployment, pods):
                yield f"Deployment {metadata['namespace']}/{metadata['name']} is rolling out"

    def _kubeconfig_of(self, identity: str) -> str:
        path = SERVICE_ACCOUNT.path(namespace=SYSTEM_NAMESPACE, name=ACCOUNTS[identity], subresource="token")
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest"}
        answer = self._administrator.post(path, request | {"spec": {"expirationSeconds": _TOKEN_SECONDS}})
        cluster = {"server": self._administrator.url, "certificate-authority": str(self._administrator.authority)}
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": identity, "cluster": cluster}],
            "users": [{"name": identity, "user": {"token": answer["status"]["token"]}}],
            "contexts": [{"name": identity, "context": {"cluster": identity, "user": identity}}],
            "current-context": identity,
        }
        text: str = yaml.safe_dump(document, sort_keys=False)
        return text


def _prefix(resource: ResourceType, namespace: str | None) -> str:
    # Custom resources are kept by group; of built-in kinds, those that tests watch are not.
    parts = [resource.group] if f"{resource.group}/" in _CUSTOM else []
    path = "/".join([*parts, resource.plural, *([namespace] if namespace else [])]) + "/"
    assert path.startswith((*_CUSTOM, *_BUILT_IN)), f"nobody looks at {path}"
    return path


def _key(path: str, resource: ResourceType) -> tuple[str, str]:
    *_, namespace, name = path.split("/")
    return (namespace if resource.namespaced else "", name)


def _orphans(documents: Collection[JsonObject]) -> Iterator[str]:
    """What the garbage collector has yet to remove."""
    known = {document["metadata"]["uid"] for document in documents}
    for document in documents:
        metadata = document["metadata"]
        owners = metadata.get("ownerReferences", ())
        if owners and all(owner["apiVersion"].startswith(_CUSTOM) and owner["uid"] not in known for owner in owners):
            yield f"{document['kind']} {metadata['namespace']}/{metadata['name']} outlives its owner"


def _rolled_out(deployment: JsonObject, pods: Iterable[JsonObject]) -> bool:
    """Whether nothing more will happen to it by itself: all is there, or what is missing is stuck."""
    status, wanted = deployment.get("status", {}), deployment["spec"]["replicas"]
    if status.get("observedGeneration") != deployment["metadata"]["generation"]:
        return False
    if all(status.get(field, 0) == wanted for field in ("replicas", "updatedReplicas", "availableReplicas")):
        return True
    labels = deployment["spec"]["selector"]["matchLabels"].items()
    own = [
        pod
        for pod in pods
        if pod["metadata"]["namespace"] == deployment["metadata"]["namespace"]
        and labels <= pod["metadata"].get("labels", {}).items()
    ]
    waiting = [pod for pod in own if not _ready(pod)]
    return (
        len(own) == status.get("replicas", 0) >= wanted
        and status.get("availableReplicas", 0) == len(own) - len(waiting)
        and bool(waiting)
        and all(_stuck(pod) for pod in waiting)
    )


def _ready(pod: JsonObject) -> bool:
    return any(one["type"] == "Ready" and one["status"] == "True" for one in pod["status"].get("conditions", ()))


def _stuck(pod: JsonObject) -> bool:
    """Whether it waits for what never comes: a node, or its image."""
    unscheduled = any(
        one["type"] == "PodScheduled" and one["status"] == "False" for one in pod["status"].get("conditions", ())
    )
    reasons = {
        container.get("state", {}).get("waiting", {}).get("reason")
        for container in pod["status"].get("containerStatuses", ())
    }
    return unscheduled or bool(reasons & _STUCK)
