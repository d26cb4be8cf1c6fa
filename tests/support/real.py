"""A real API server as the server of one world after another.

What it was when it started is the state it is put back to after each test: everything that came since is removed from
its store, and what was changed is restored. So tests that run one after the other on one server meet it as new, and
their controllers, which watch all namespaces, see nothing of each other; tests that run at once have a server each.

It is at rest when its own controllers are: no object outlives its owner, and every Deployment has got as far as it
gets. The trap is that these controllers do not report when they are done, so their work is read off the objects, and
reading takes from the machine what they need to get done: nothing is read twice between two writes.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import orjson
import yaml

import kardinal.objects
import kardinal.promotion.kinds
from kardinal.bounded.nesting import shallow
from kardinal.kube.selectors import matches
from kardinal.objects import SERVICE_ACCOUNT, ResourceType
from kardinal.runtime import Informer
from tests.support.administrator import Administrator
from tests.support.admission import enforce
from tests.support.exchange import RefusedRequest
from tests.support.identities import ACCOUNTS, RESOURCES, SYSTEM_NAMESPACE, rights
from tests.support.names import POLICIES, TEAM
from tests.support.objects import namespace
from tests.support.requests import FollowedLog
from tests.support.rollouts import WORKLOADS, Rollouts, end_all, hear_of_everything
from tests.support.store import Etcd

__all__ = ["RealServer"]

JsonObject = dict[str, Any]

_CUSTOM = (
    *("kardinal.io/", "experimental.kro.run/", "carto.run/"),
    # Of tools, in tests that serve their kinds.
    *("argoproj.io/", "kpack.io/", "kustomize.toolkit.fluxcd.io/", "source.toolkit.fluxcd.io/"),
    # In tests that install a kind of their own.
    "example.com/",
)
"""The place of custom resources; they alone are stored as JSON."""

_DEFINITIONS = "apiextensions.k8s.io/"
"""The place of the definitions of custom resources."""

_BUILT_IN = (
    _DEFINITIONS,
    *("configmaps/", "namespaces/", "secrets/", "serviceaccounts/"),
    *("roles/", "rolebindings/", "clusterrolebindings/"),
    *("replicasets/", "statefulsets/", "daemonsets/", "jobs/", "cronjobs/"),
    *WORKLOADS,
)
"""The places of the built-in kinds that programs watch, and that rollouts are read off."""

_LOOKED_AT = (*_CUSTOM, *_BUILT_IN)

_MADE_AGAIN = (*WORKLOADS, "replicasets/")
"""The objects that a controller makes anew before it has heard that they are no longer wanted."""

_RESTLESS = ("leases/", "masterleases/", "minions/", "ranges/", "peerserverleases/")
"""The objects that change by themselves and belong to no test."""

_LOOK_AGAIN = 0.005
"""Seconds."""
_TOKEN_SECONDS = 24 * 3600
_NEVER = -1


class RealServer:
    """An API server of the launcher, with everything kardinal needs in a cluster."""

    runs_workloads = True

    def __init__(self, kubeconfig: Path, directory: Path) -> None:
        self.kubeconfig = kubeconfig
        self.audit = FollowedLog(kubeconfig.with_name("audit.log"))
        self._directory = directory
        self._administrator = Administrator(kubeconfig)
        self._store = Etcd(kubeconfig.with_name("store-url").read_text())
        for document in (*rights(), namespace(TEAM), namespace(POLICIES)):
            self._administrator.apply(RESOURCES[document["kind"]], document)
        enforce(self._administrator)
        for identity in ACCOUNTS:
            self.kubeconfig_for(identity).write_text(self._kubeconfig_of(identity))
        self._start = {one.path: one for one in self._store.below("", values=True)}
        self.release()
        self._rollouts = Rollouts(self._administrator)
        self._looked = _NEVER
        self._custom: dict[str, JsonObject] = {}
        self._revisions: dict[str, int] = {}
        self._workloads: dict[str, int] = {}

    def kubeconfig_for(self, identity: str) -> Path:
        return self.kubeconfig if identity == "admin" else self._directory / f"kubeconfig.{identity}"

    def user(self, identity: str) -> str:
        if identity == "admin":
            return identity
        return f"system:serviceaccount:{SYSTEM_NAMESPACE}:{ACCOUNTS[identity]}"

    def writes(self) -> int:
        self.audit.catch_up()
        return self.audit.changes

    def requests(self) -> int:
        return self.audit.count()

    def moment(self) -> object:
        # Nothing changes there but by a request.
        return self.writes()

    def unrest(self) -> list[str]:
        # Once per write and not once per question: a world that waits for pods asks every millisecond.
        if (writes := self.writes()) != self._looked:
            self._look()
            self._looked = writes
        return [*_orphans(self._custom.values()), *self._rollouts.under_way(self._workloads)]

    def served(self, informer: Informer) -> Mapping[tuple[str, str], str]:
        prefix = _prefix(informer.resource, informer.namespace)
        assert prefix.startswith(_LOOKED_AT), f"nobody looks at {prefix}"
        here = [path for path in self._revisions if path.startswith(prefix)]
        if informer.labels and not prefix.startswith(_CUSTOM):
            # Of built-in kinds it is known where they are, and not their labels: those that are held are compared.
            chosen = {path for path in here if _key(path, informer.resource) in informer.revisions}
        elif informer.labels or informer.fields:
            documents = {path: self._custom.get(path) or _placed(path, informer.resource) for path in here}
            chosen = {
                path
                for path, document in documents.items()
                if matches(document, labels=informer.labels, fields=informer.fields)
            }
        else:
            chosen = set(here)
        return {_key(path, informer.resource): str(self._revisions[path]) for path in chosen}

    def reset(self) -> None:
        """Put everything back to how it was before the first test."""
        end_all(self._administrator)
        while any(path.startswith(_MADE_AGAIN) and "/heard" not in path for path in self._put_back()):
            hear_of_everything(self._administrator)
        self._put_back()
        while not self._caches_have_what_is_stored():
            time.sleep(_LOOK_AGAIN)
        self.audit.begin()
        self._looked = _NEVER

    def _put_back(self) -> Collection[str]:
        """Restore the store; returns where there was something that had to go."""
        now = {one.path: one.revision for one in self._store.below("") if not one.path.startswith(_RESTLESS)}
        changed = [
            one for path, one in self._start.items() if not path.startswith(_RESTLESS) and now.get(path) != one.revision
        ]
        gone = now.keys() - self._start.keys()
        known = {_folder(path) for path in self._start}
        self._store.write(
            # At once, or controllers would put others in the place of what goes first.
            clear=sorted({_folder(path) for path in gone} - known),
            delete=sorted(path for path in gone if _folder(path) in known),
            put=changed,
        )
        for one in self._store.below(*(one.path for one in changed), values=True) if changed else ():
            self._start[one.path] = one
        return gone

    def _caches_have_what_is_stored(self) -> bool:
        """Return whether a list and the watch that goes on from it tell all.

        What went in one transaction went at one revision. A list from a cache that has heard half of it already is of
        that revision, and a watch that begins there is never told of the other half.
        """
        stored = {one.path: str(one.revision) for one in self._store.below(*map(_prefix, _watched()))}
        for resource in _watched():
            prefix = _prefix(resource)
            try:
                found = self._administrator.cached(resource)
            except RefusedRequest:
                # A definition that was put back is served a moment later.
                return False
            cached = {
                prefix + "/".join(_key_of(resource, metadata)): metadata["resourceVersion"]
                for metadata in (obj["metadata"] for obj in found)
            }
            if cached != {path: revision for path, revision in stored.items() if path.startswith(prefix)}:
                return False
        return True

    def release(self) -> None:
        """Close what was opened for a test; the next request opens it again."""
        self._administrator.close()
        self._store.close()

    def close(self) -> None:
        self.release()
        self.audit.close()

    def _look(self) -> None:
        custom = self._store.below(*_CUSTOM, values=True)
        built_in = {one.path: one.revision for one in self._store.below(*_BUILT_IN)}
        self._custom = {one.path: orjson.loads(shallow(one.value, 128)) for one in custom}
        self._revisions = built_in | {one.path: one.revision for one in custom}
        self._workloads = {path: revision for path, revision in built_in.items() if path.startswith(WORKLOADS)}

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


def _folder(path: str) -> str:
    return path.partition("/")[0] + "/"


@cache
def _watched() -> list[ResourceType]:
    """Return the kinds that programs list and watch."""
    named = (*vars(kardinal.objects).values(), *vars(kardinal.promotion.kinds).values())
    kinds = dict.fromkeys(kind for kind in named if isinstance(kind, ResourceType))
    return [kind for kind in kinds if _prefix(kind).startswith(_LOOKED_AT)]


def _prefix(resource: ResourceType, namespace: str | None = None) -> str:
    # Custom resources are kept by group; of built-in kinds, those that tests watch are not.
    parts = [resource.group] if f"{resource.group}/" in (*_CUSTOM, _DEFINITIONS) else []
    return "/".join([*parts, resource.plural, *([namespace] if namespace else [])]) + "/"


def _key(path: str, resource: ResourceType) -> tuple[str, str]:
    *_, namespace, name = path.split("/")
    return (namespace if resource.namespaced else "", name)


def _placed(path: str, resource: ResourceType) -> JsonObject:
    """Return the name and namespace of an object as it would have them."""
    namespace, name = _key(path, resource)
    return {"metadata": {"name": name, "namespace": namespace}}


def _key_of(resource: ResourceType, metadata: JsonObject) -> tuple[str, ...]:
    return (metadata["namespace"], metadata["name"]) if resource.namespaced else (metadata["name"],)


def _orphans(documents: Collection[JsonObject]) -> Iterator[str]:
    """Yield what the garbage collector has yet to remove."""
    known = {document["metadata"]["uid"] for document in documents}
    for document in documents:
        metadata = document["metadata"]
        owners = metadata.get("ownerReferences", ())
        if owners and all(owner["apiVersion"].startswith(_CUSTOM) and owner["uid"] not in known for owner in owners):
            yield f"{document['kind']} {metadata['namespace']}/{metadata['name']} outlives its owner"
