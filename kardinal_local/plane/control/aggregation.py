"""Aggregate ClusterRoles from others: `admin`, `edit`, `view`, and those that a person adds.

A role with an aggregationRule has the rules of all roles whose labels it selects. This is how the author of a CRD lets
everyone who may view things view its objects: a role with the label `aggregate-to-view`.
"""

from __future__ import annotations

from collections.abc import Iterator

from kardinal_local.plane.documents import JsonObject
from kardinal_local.plane.kinds import Registry
from kardinal_local.plane.objects import Objects, WriteOptions, parse_labels
from kardinal_local.plane.storage import Entry, Store

__all__ = ["CLUSTER_ROLES", "Aggregation"]

CLUSTER_ROLES = "clusterroles.rbac.authorization.k8s.io"
_MANAGER = "clusterrole-aggregation-controller"


class Aggregation:
    """Looks at one role at a time."""

    def __init__(self, store: Store, *, registry: Registry, objects: Objects) -> None:
        self._store = store
        self._registry = registry
        self._objects = objects

    def affected(self) -> Iterator[Entry]:
        """The roles that a change of any role may concern."""
        return (entry for entry in self._store.entries(CLUSTER_ROLES) if b'"aggregationRule"' in entry.raw)

    def reconcile(self, entry: Entry) -> None:
        document = entry.decode()
        kind = self._registry.stored(CLUSTER_ROLES)
        selectors = (document.get("aggregationRule") or {}).get("clusterRoleSelectors")
        if not selectors or kind is None:
            return
        rules = self._rules(entry.name, selectors)
        if rules == (document.get("rules") or []):
            return
        applied: JsonObject = {
            "apiVersion": kind.api_version,
            "kind": kind.kind,
            "metadata": {"name": entry.name},
            **({"rules": rules} if rules else {}),
        }
        options = WriteOptions(manager=_MANAGER)
        self._objects.apply(kind, applied, namespace="", name=entry.name, subresource="", force=True, options=options)

    def _rules(self, name: str, selectors: list[JsonObject]) -> list[JsonObject]:
        rules: list[JsonObject] = []
        for document in selectors:
            selector = parse_labels(",".join(_terms(document)))
            for entry in self._store.entries(CLUSTER_ROLES):
                if entry.name == name or not selector.matches(entry.labels):
                    continue
                for rule in entry.decode().get("rules") or ():
                    if rule not in rules:
                        rules.append(rule)
        return rules


def _terms(selector: JsonObject) -> Iterator[str]:
    """A selector as it stands in an object, in the words of a query."""
    for key, value in (selector.get("matchLabels") or {}).items():
        yield f"{key}={value}"
    for one in selector.get("matchExpressions") or ():
        key, values = one["key"], ",".join(one.get("values") or ())
        match one["operator"]:
            case "In":
                yield f"{key} in ({values})"
            case "NotIn":
                yield f"{key} notin ({values})"
            case "Exists":
                yield key
            case "DoesNotExist":
                yield f"!{key}"
