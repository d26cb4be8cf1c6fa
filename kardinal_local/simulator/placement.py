"""Decide which namespace each object of an environment goes to (pure).

Environments of one Pipeline often render the same objects into the same namespace, each for a cluster of its own. Here
they share one, where they would overwrite each other: so everything goes to the namespace of the environment's name,
unless a kustomization names another one, the environment's `health` looks there too, and no other environment of the
Pipeline has that object there.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import orjson

from kardinal.api.pipeline import Environment
from kardinal.objects import JsonObject

__all__ = ["Item", "Placed", "place"]

_Identity = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Item:
    """An object as it was rendered; `digest` stands for its content."""

    body: JsonObject
    digest: str

    @classmethod
    def of(cls, body: JsonObject) -> Item:
        return cls(body, hashlib.sha256(orjson.dumps(body, option=orjson.OPT_SORT_KEYS)).hexdigest())


@dataclass(frozen=True, slots=True)
class Placed:
    """An object and its namespace; `note` says why that is not the one its manifest names."""

    environment: str
    item: Item
    namespace: str
    note: str | None = None


def place(environments: Sequence[Environment], rendered: Mapping[str, Iterable[Item]]) -> list[Placed]:
    """Place the objects that the environments of a Pipeline render to, by name of the environment."""
    owners: dict[_Identity, list[str]] = {}
    for environment in environments:
        for item in rendered.get(environment.name, ()):
            owners.setdefault(_identity(item, environment), []).append(environment.name)
    return [
        _placed(environment, item, owners)
        for environment in environments
        for item in rendered.get(environment.name, ())
    ]


def _placed(environment: Environment, item: Item, owners: Mapping[_Identity, Sequence[str]]) -> Placed:
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


def _identity(item: Item, environment: Environment) -> _Identity:
    metadata = item.body["metadata"]
    return item.body["kind"], metadata.get("namespace") or environment.name, metadata["name"]
