"""Choose the namespace that each object of an environment is applied to (pure).

Environments of one Pipeline often render the same objects into the same namespace, because each has its own cluster.
On the local plane they share one cluster, where they would overwrite each other. So an object is applied to the
namespace with the name of its environment. The namespace in the kustomization is used only if `health.resource` of the
environment names it as well, and no other environment of the Pipeline renders the same object into it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import orjson

from kardinal.objects import JsonObject
from kardinal.promotion.api.pipeline import Environment

__all__ = ["Placed", "RenderedItem", "place"]

_Identity = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class RenderedItem:
    """A rendered object; `digest` is the SHA-256 of its content, for comparison."""

    body: JsonObject
    digest: str

    @classmethod
    def of(cls, body: JsonObject) -> RenderedItem:
        return cls(body, hashlib.sha256(orjson.dumps(body, option=orjson.OPT_SORT_KEYS)).hexdigest())


@dataclass(frozen=True, slots=True)
class Placed:
    """An object with the namespace to apply it to; `note` is the reason if its manifest names another namespace."""

    environment: str
    item: RenderedItem
    namespace: str
    note: str | None = None


def place(environments: Sequence[Environment], rendered: Mapping[str, Iterable[RenderedItem]]) -> list[Placed]:
    """Return the rendered objects of all environments of a Pipeline with their namespaces.

    `rendered` has the objects by the name of their environment.
    """
    owners: dict[_Identity, list[str]] = {}
    for environment in environments:
        for item in rendered.get(environment.name, ()):
            owners.setdefault(_identity(item, environment), []).append(environment.name)
    return [
        _placed(environment, item, owners)
        for environment in environments
        for item in rendered.get(environment.name, ())
    ]


def _placed(environment: Environment, item: RenderedItem, owners: Mapping[_Identity, Sequence[str]]) -> Placed:
    kind, named, name = _identity(item, environment)
    if named == environment.name:
        return Placed(environment.name, item, named)
    others = [owner for owner in owners[kind, named, name] if owner != environment.name]
    looked_at = environment.health.resource.namespace if environment.health.resource else None
    if others:
        reason = f"{others[0]} renders {kind} {name} there as well"
    elif looked_at != named:
        reason = f"its health.resource.namespace is not {named}"
    else:
        return Placed(environment.name, item, named)
    note = (
        f"{environment.name}: the kustomization says namespace {named}; the simulator applies to {environment.name}, "
        f"because {reason}"
    )
    return Placed(environment.name, item, environment.name, note)


def _identity(item: RenderedItem, environment: Environment) -> _Identity:
    metadata = item.body["metadata"]
    return item.body["kind"], metadata.get("namespace") or environment.name, metadata["name"]
