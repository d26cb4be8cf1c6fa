"""Set and validate object metadata by the rules that hold for every kind.

The server owns uid, creationTimestamp, generation, deletionTimestamp and resourceVersion; whatever a client sends in
them is replaced or refused. Names, labels and annotations are as strict as on a real cluster: an object accepted here
and refused there would be found out too late.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kardinal_local.plane.documents import JsonObject
from kardinal_local.plane.errors import Cause
from kardinal_local.plane.kinds import Kind
from kardinal_local.plane.metadata import METADATA_FIELDS, finalizer_causes, invalid, shared_causes
from kardinal_local.plane.naming import qualified_name_problems
from kardinal_local.plane.objects.names import STANDARD_FINALIZERS, finalizer_problems, name_rule

__all__ = ["keep_server_fields", "prune", "validate", "warnings"]

_SERVER_FIELDS = ("uid", "creationTimestamp", "generation", "deletionTimestamp", "deletionGracePeriodSeconds")
# Kinds and groups whose finalizers the real server's shared rules of built-in kinds do not reach.
_ANY_FINALIZER = frozenset(
    {
        "admissionregistration.k8s.io",
        "apiextensions.k8s.io",
        "coordination.k8s.io",
        "events",
        "poddisruptionbudgets.policy",
    }
)
_OPTIONAL: Final = ("generateName", "labels", "annotations", "finalizers", "ownerReferences")
_CHANGE, _OBJECT = "change", "object"
# What the kinds of the real server ask of changed metadata on their own account: about the change, unless said here.
_ASKED: Final = {
    **dict.fromkeys(("configmaps", "endpoints", "ingresses.networking.k8s.io"), (_CHANGE, _OBJECT)),
    **dict.fromkeys(("persistentvolumeclaims", "pods", "secrets", "serviceaccounts"), (_CHANGE, _OBJECT)),
    **dict.fromkeys(("controllerrevisions.apps", "ingressclasses.networking.k8s.io"), (_CHANGE, _OBJECT)),
    **dict.fromkeys(("jobs.batch", "namespaces", "storageclasses.storage.k8s.io"), (_OBJECT, _CHANGE)),
    **dict.fromkeys(("endpointslices.discovery.k8s.io", "limitranges"), (_OBJECT,)),
    **dict.fromkeys(("events", "poddisruptionbudgets.policy"), ()),
    "persistentvolumes": (_OBJECT, _OBJECT),
}
_ASKED_IN_GROUP: Final = {"rbac.authorization.k8s.io": (_OBJECT, _CHANGE), "admissionregistration.k8s.io": (_OBJECT,)}


def keep_server_fields(metadata: JsonObject, *, live: JsonObject) -> None:
    """Put back what a client may not change; who means an object of another uid is refused for it later."""
    meant = metadata.get("uid")
    for key in _SERVER_FIELDS:
        if key in live:
            metadata[key] = live[key]
        else:
            metadata.pop(key, None)
    if meant and "uid" in live:
        metadata["uid"] = meant


def prune(metadata: JsonObject) -> list[str]:
    """Drop fields that no metadata has, and what says nothing; the paths of the former."""
    unknown = [key for key in metadata if key not in METADATA_FIELDS]
    for key in unknown:
        del metadata[key]
    for key in hollow(metadata):
        del metadata[key]
    metadata.pop("selfLink", None)
    return [f"metadata.{key}" for key in unknown]


def hollow(metadata: JsonObject) -> list[str]:
    """Return the empty fields, which are not shown when an object is read."""
    return [key for key in _OPTIONAL if key in metadata and not metadata[key]]


def validate(kind: Kind, metadata: JsonObject, *, old: JsonObject | None) -> list[Cause]:
    """Everything that can be wrong with the metadata of an object of `kind`, be it new or changed."""
    if old is not None:
        return _of_change(kind, metadata, live=old["metadata"])
    return [
        *_name(kind, metadata.get("name", ""), prefix=metadata.get("generateName", "")),
        *_generation(metadata.get("generation", 0)),
        *shared_causes(metadata),
        *finalizer_causes(metadata),
        *_own_finalizers(kind, metadata.get("finalizers", [])),
    ]


def _of_change(kind: Kind, metadata: JsonObject, *, live: JsonObject) -> list[Cause]:
    """What is wrong is told as often as the real server finds it."""
    uid = metadata["uid"]
    other = [] if uid == live["uid"] else [invalid("metadata.uid", uid, "field is immutable")]
    shared = shared_causes(metadata)
    finalizers = finalizer_causes(metadata)
    own = list(_own_finalizers(kind, metadata.get("finalizers", [])))
    found = [*shared, *finalizers, *other, *shared]
    for subject in _ASKED.get(kind.qualified, _ASKED_IN_GROUP.get(kind.group, (_CHANGE,))):
        found += [*(() if subject == _OBJECT else other), *shared, *(finalizers if subject == _OBJECT else ()), *own]
    return found


def warnings(kind: Kind, metadata: JsonObject) -> list[str]:
    """What a custom object is warned of; the same finalizers of built-in kinds are refused."""
    if not kind.custom:
        return []
    found = []
    for finalizer in metadata.get("finalizers", []):
        problems = qualified_name_problems(finalizer)
        if "/" not in finalizer and finalizer not in STANDARD_FINALIZERS:
            path = " including a path (/)" if "." in finalizer else ""
            problems.append(
                f"prefer a domain-qualified finalizer name{path} to avoid accidental conflicts with other finalizer "
                "writers"
            )
        found += [f'metadata.finalizers: "{finalizer}": {problem}' for problem in problems]
    return found


def _name(kind: Kind, name: str, *, prefix: str) -> Iterator[Cause]:
    problems = name_rule(kind)
    if prefix:
        # A prefix may end in a dash, which the name made from it does not.
        tried = f"{prefix[:-2]}a" if len(prefix) > 1 and prefix.endswith("-") else prefix
        for problem in problems(tried):
            yield invalid("metadata.generateName", prefix, problem)
    if not name:
        yield Cause("FieldValueRequired", "metadata.name", "Required value: name or generateName is required")
        return
    for problem in problems(name):
        yield invalid("metadata.name", name, problem)


def _generation(generation: int) -> Iterator[Cause]:
    if generation < 0:
        yield invalid("metadata.generation", generation, "must be greater than or equal to 0")


def _own_finalizers(kind: Kind, finalizers: list[str]) -> Iterator[Cause]:
    """What most built-in kinds demand of finalizers beyond that."""
    if kind.custom or kind.qualified in _ANY_FINALIZER or kind.group in _ANY_FINALIZER:
        return
    for index, finalizer in enumerate(finalizers):
        for problem in finalizer_problems(finalizer)[len(qualified_name_problems(finalizer)) :]:
            yield invalid(f"metadata.finalizers[{index}]", finalizer, problem)
