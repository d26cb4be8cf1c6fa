"""Make the object of a resource from its template: the render, then the marks by which it is ours.

    metadata.namespace                  that of the owner
    metadata.ownerReferences            the owner, as the controller
    metadata.labels carto.run/…         owner, blueprint, resource, template, lifecycle
    metadata.annotations kardinal.io/…  `stamp`: the hash of the render; `inputs`: the hash of the inputs

The hash of the render does not cover the marks, so that another name of the blueprint is a change of labels, and not
another run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from kardinal.objects import JsonObject
from kardinal.objects.applied import content_hash
from kardinal.objects.errors import KardinalError
from kardinal.objects.naming import bounded
from kardinal_supplychain.api.fields import TEMPLATE_LIMIT
from kardinal_supplychain.api.kinds import DELIVERABLE, GROUP, VERSION, WORKLOAD
from kardinal_supplychain.api.templates import Lifecycle, TemplateSpec
from kardinal_supplychain.realize.interpolate import (
    DEPTH_LIMIT,
    OBJECT_LIMIT,
    InterpolationError,
    encoded_json,
    interpolate,
    is_deeper,
)

__all__ = [
    "ANNOTATION_INPUTS",
    "ANNOTATION_STAMP",
    "ResourcePlace",
    "RunnablePlace",
    "StampError",
    "StampPlace",
    "checked_render",
    "metadata_texts",
    "render_body",
    "render_template",
    "stamp_object",
]

ANNOTATION_STAMP = "kardinal.io/stamp"
"""On a stamped object: the hash of its render."""
ANNOTATION_INPUTS = "kardinal.io/inputs"
"""On a stamped object: the hash of the inputs that it was stamped with."""


class StampError(KardinalError):
    """A template from which no object can be made."""


class StampPlace(Protocol):
    """The place of an object among those of its owner."""

    @property
    def lifecycle(self) -> Lifecycle:
        """Return whether the object is changed, or made anew."""
        ...

    def labels(self, owner: JsonObject) -> dict[str, str]:
        """Return the labels of the object; values that are too long end in a hash."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourcePlace:
    """A resource of a blueprint, with the template that was chosen for it."""

    blueprint: str
    resource: str
    template_kind: str
    template: str
    lifecycle: Lifecycle

    def labels(self, owner: JsonObject) -> dict[str, str]:
        """Return the labels of the object that is stamped for an owner; values that are too long end in a hash."""
        metadata = owner["metadata"]
        words = {WORKLOAD.kind: ("workload", "supply-chain"), DELIVERABLE.kind: ("deliverable", "delivery")}
        owner_word, blueprint_word = words[owner["kind"]]
        labels = {
            f"{owner_word}-name": metadata["name"],
            f"{owner_word}-namespace": metadata["namespace"],
            f"{blueprint_word}-name": self.blueprint,
            "resource-name": self.resource,
            "template-kind": self.template_kind,
            "cluster-template-name": self.template,
            "template-lifecycle": self.lifecycle,
        }
        return {f"{GROUP}/{key}": bounded(value) for key, value in labels.items()}


@dataclass(frozen=True, slots=True)
class RunnablePlace:
    """A run of a Runnable, with the name of its ClusterRunTemplate."""

    template: str
    lifecycle: Lifecycle = "immutable"

    def labels(self, owner: JsonObject) -> dict[str, str]:
        """Return the labels of the run; values that are too long end in a hash."""
        labels = {"runnable-name": owner["metadata"]["name"], "run-template-name": self.template}
        return {f"{GROUP}/{key}": bounded(value) for key, value in labels.items()}


def render_template(spec: TemplateSpec, context: JsonObject) -> JsonObject:
    """Return the object that `spec.template` says, with its tags replaced. Raises `StampError`.

    A template with `spec.ytt` is rendered by `kardinal_supplychain.ytt` instead.
    """
    if spec.template is None:
        raise StampError("there is no spec.template")
    return render_body(spec.template, context)


def render_body(template: JsonObject, context: JsonObject) -> JsonObject:
    """Return a template with its tags replaced. Raises `StampError`."""
    try:
        size = len(encoded_json(template))
        if size > TEMPLATE_LIMIT:
            raise StampError(f"the template has {size:,} bytes, and at most {TEMPLATE_LIMIT:,} are allowed")
        rendered: JsonObject = interpolate(template, context)
    except InterpolationError as error:
        raise StampError(f"failed to recursively evaluate template: {error}") from None
    except ValueError as error:
        raise StampError(f"the object is not JSON: {error}") from None
    return checked_render(rendered)


def checked_render(rendered: JsonObject) -> JsonObject:
    """Return a render that is within the bounds of an object. Raises `StampError`."""
    try:
        size = len(encoded_json(rendered))
    except ValueError as error:
        raise StampError(f"the object is not JSON: {error}") from None
    if size > OBJECT_LIMIT:
        raise StampError(f"the object has {size:,} bytes, and at most {OBJECT_LIMIT:,} are allowed")
    if is_deeper(rendered, DEPTH_LIMIT):
        raise StampError(f"the object is nested deeper than {DEPTH_LIMIT} levels")
    return rendered


def stamp_object(rendered: JsonObject, *, owner: JsonObject, place: StampPlace, inputs: JsonObject) -> JsonObject:
    """Return the object with the marks of its owner and its place. Raises `StampError`."""
    for field in ("apiVersion", "kind"):
        if not isinstance(rendered.get(field), str) or not rendered[field]:
            raise StampError(f"the object has no {field}", remedy=f"Write {field} in the template")
    metadata = rendered.get("metadata")
    if not isinstance(metadata, dict):
        raise StampError("the object has no metadata", remedy="Write metadata.name in the template")
    _check_name(metadata, place.lifecycle)
    namespace = owner["metadata"]["namespace"]
    if metadata.get("namespace") not in (None, "", namespace):
        raise StampError("cannot set namespace in resource template")
    reference = {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"].get("uid", ""),
        "controller": True,
        "blockOwnerDeletion": True,
    }
    marks = {ANNOTATION_STAMP: content_hash(rendered), ANNOTATION_INPUTS: content_hash(inputs)}
    return {
        **rendered,
        "metadata": {
            **metadata,
            "namespace": namespace,
            "labels": {**metadata_texts(metadata, "labels"), **place.labels(owner)},
            "annotations": {**metadata_texts(metadata, "annotations"), **marks},
            "ownerReferences": [reference],
        },
    }


def _check_name(metadata: Mapping[str, Any], lifecycle: Lifecycle) -> None:
    name = metadata.get("name")
    if name is not None and not (isinstance(name, str) and name):
        raise StampError("metadata.name of the object is not a text")
    if name is not None:
        return
    if lifecycle == "mutable":
        raise StampError("the object has no metadata.name", remedy="Write one, or set lifecycle: immutable")
    if not isinstance(metadata.get("generateName"), str) or not metadata["generateName"]:
        raise StampError("the object has neither metadata.name nor metadata.generateName")


def metadata_texts(metadata: Mapping[str, Any], field: str) -> Mapping[str, str]:
    """Return the labels or annotations of a rendered object. Raises `StampError` if a value is not a text."""
    values = metadata.get(field) or {}
    if not isinstance(values, dict):
        raise StampError(f"metadata.{field} of the object is not a map")
    wrong = next((key for key, value in values.items() if not isinstance(value, str)), None)
    if wrong is not None:
        raise StampError(
            f"metadata.{field}[{wrong}] of the object is not a text",
            remedy="Add a text to the tag, or give the parameter a text as its value",
        )
    return values
