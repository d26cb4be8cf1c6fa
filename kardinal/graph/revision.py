"""GraphRevisions: copies of the specs of a Graph that compiled.

While a Graph does not compile, the engine walks its newest revision instead: a typo must not stop the repair of objects
that were right before. Older revisions are kept for people who look back.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kardinal.graph.dialect import DIALECT_VERSION
from kardinal.objects import GRAPH_REVISION, JsonObject
from kardinal.objects.naming import bounded

__all__ = ["KEPT_REVISIONS", "OWNER_INDEX", "new_revision", "newest_first", "owner_uids", "revision_name"]

KEPT_REVISIONS = 5
"""Revisions that are kept besides the newest one."""

OWNER_INDEX = "graph-uid"

_GRAPH_NAME = "internal.kro.run/graph-name"
_GRAPH_GENERATION = "internal.kro.run/graph-generation"
_HASH = "internal.kro.run/hash"


def revision_name(graph: str, generation: int) -> str:
    return f"{graph}-g{generation:05d}"


def owner_uids(revision: JsonObject) -> Iterable[str]:
    """Return the uids of the Graphs that own `revision`. A Graph that was deleted and created again has another uid."""
    return (owner["uid"] for owner in revision["metadata"].get("ownerReferences", ()))


def newest_first(revisions: Sequence[JsonObject]) -> list[JsonObject]:
    return sorted(revisions, key=lambda revision: int(revision["spec"]["generation"]), reverse=True)


def new_revision(graph: JsonObject, *, content: str) -> JsonObject:
    """Return the GraphRevision of `graph`; `content` is the hash of its compiled nodes."""
    metadata = graph["metadata"]
    name = metadata["name"]
    generation = metadata["generation"]
    owner = {**{field: graph[field] for field in ("apiVersion", "kind")}, "name": name, "uid": metadata["uid"]}
    return {
        "apiVersion": GRAPH_REVISION.api_version,
        "kind": GRAPH_REVISION.kind,
        "metadata": {
            "name": revision_name(name, generation),
            "namespace": metadata["namespace"],
            "labels": {_GRAPH_NAME: bounded(name), _GRAPH_GENERATION: str(generation), _HASH: content},
            "ownerReferences": [{**owner, "controller": True}],
        },
        "spec": {
            "nodes": graph["spec"].get("nodes", []),
            "generation": generation,
            "hash": content,
            "dialectVersion": DIALECT_VERSION,
        },
    }
