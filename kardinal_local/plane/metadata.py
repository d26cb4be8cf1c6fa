"""Validate labels, annotations, owner references and finalizers, wherever there is metadata.

An object has metadata, and so has every object that is embedded in another: the same is asked of both, in the words of
the real server. What a kind demands of its own metadata beyond that is in `objects.metadata`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import orjson

from kardinal_local.plane.documents import JsonObject
from kardinal_local.plane.errors import Cause
from kardinal_local.plane.naming import label_value_problems, qualified_name_problems

__all__ = ["METADATA_FIELDS", "finalizer_causes", "invalid", "shared_causes"]

METADATA_FIELDS: Final = frozenset(
    {
        *("name", "generateName", "namespace", "selfLink", "uid", "resourceVersion", "generation"),
        *("creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "labels", "annotations"),
        *("ownerReferences", "finalizers", "managedFields"),
    }
)
"""The fields of an object's metadata."""

ANNOTATIONS_LIMIT = 256 * 1024
_OWNER_FIELDS = ("apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion")


def shared_causes(metadata: JsonObject, *, at: str = "metadata") -> list[Cause]:
    """What is wrong with labels, annotations and owners; `at` is where the metadata is."""
    return [
        *_labels(metadata.get("labels", {}), f"{at}.labels"),
        *_annotations(metadata.get("annotations", {}), f"{at}.annotations"),
        *_owners(metadata.get("ownerReferences", []), f"{at}.ownerReferences"),
    ]


def finalizer_causes(metadata: JsonObject, *, at: str = "metadata") -> list[Cause]:
    """What is wrong with finalizers of any object."""
    field, finalizers = f"{at}.finalizers", metadata.get("finalizers", [])
    found = [
        invalid(field, finalizer, problem) for finalizer in finalizers for problem in qualified_name_problems(finalizer)
    ]
    if {"orphan", "foregroundDeletion"} <= set(finalizers):
        found.append(invalid(field, finalizers, "finalizer orphan and foregroundDeletion cannot be both set"))
    return found


def invalid(field: str, value: object, problem: str) -> Cause:
    """A field whose value is wrong, in the words of the real server."""
    return Cause("FieldValueInvalid", field, f"Invalid value: {orjson.dumps(value).decode()}: {problem}")


def _labels(labels: JsonObject, field: str) -> Iterator[Cause]:
    for key, value in labels.items():
        for problem in qualified_name_problems(key):
            yield invalid(field, key, problem)
        for problem in label_value_problems(value):
            yield invalid(field, value, problem)


def _annotations(annotations: JsonObject, field: str) -> Iterator[Cause]:
    for key in annotations:
        for problem in qualified_name_problems(key.lower()):
            yield invalid(field, key, problem)
    if sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items()) > ANNOTATIONS_LIMIT:
        yield Cause("FieldValueTooLong", field, f"Too long: may not be more than {ANNOTATIONS_LIMIT} bytes")


def _owners(owners: list[JsonObject], path: str) -> Iterator[Cause]:
    controller = ""
    for owner in owners:
        version = owner.get("apiVersion", "")
        if not version or version.count("/") > 1 or version.endswith("/"):
            yield invalid(f"{path}.apiVersion", version, "version must not be empty")
        for key in ("kind", "name", "uid"):
            if not owner.get(key):
                yield invalid(f"{path}.{key}", "", "must not be empty")
        if (version, owner.get("kind")) == ("v1", "Event"):
            yield invalid(path, _ordered(owner), "/v1, Kind=Event is disallowed from being an owner")
        if owner.get("controller") is True:
            name = f"{owner.get('kind', '')}/{owner.get('name', '')}"
            if controller:
                problem = (
                    'Only one reference can have Controller set to true. Found "true" in references for '
                    f"{controller} and {name}"
                )
                yield invalid(path, [_ordered(one) for one in owners], problem)
            else:
                controller = name


def _ordered(owner: JsonObject) -> JsonObject:
    return {key: owner[key] for key in _OWNER_FIELDS if key in owner}
