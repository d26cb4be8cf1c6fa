"""The schema of `metadata`, which every kind has in common."""

from __future__ import annotations

from typing import Final

from kardinal.localplane.builtin.builders import (
    anything,
    atomic,
    boolean,
    integer,
    keyed,
    listed,
    map_of,
    set_of,
    string,
    struct,
    time,
)
from kardinal.localplane.documents import JsonObject

__all__ = ["LABEL_SELECTOR", "OBJECT_META", "with_metadata"]

_OWNER = atomic(
    struct(
        "An object that this one belongs to.",
        needs=("apiVersion", "kind", "name", "uid"),
        apiVersion=string("API version of the owner."),
        blockOwnerDeletion=boolean("Whether the owner's foreground deletion waits for this object."),
        controller=boolean("Whether this owner is the one that manages the object."),
        kind=string("Kind of the owner."),
        name=string("Name of the owner."),
        uid=string("Identity of the owner."),
    )
)

_MANAGER: Final = struct(
    "The fields of one manager.",
    apiVersion=string("Version in which the fields are named."),
    fieldsType=string("FieldsV1."),
    fieldsV1=anything("The fields, as a tree."),
    manager=string("Name of the manager."),
    operation=string("Apply or Update."),
    subresource=string("The endpoint through which it wrote."),
    time=time("When its claim changed last."),
)

OBJECT_META: Final[JsonObject] = struct(
    "What every stored object carries: its name, its place, its labels and its history.",
    annotations=map_of(string(), "Notes that tools keep on an object; not for selection."),
    creationTimestamp=time("When the server stored the object first."),
    deletionGracePeriodSeconds=integer("Seconds that a graceful deletion may take.", bits=64),
    deletionTimestamp=time("When deletion was asked for; the object goes when its finalizers are gone."),
    finalizers=set_of(string(), "What has to be done before the object may go.", merge=True),
    generateName=string("A prefix from which the server makes a unique name when none is given."),
    generation=integer("Counts the desired states: grows when the spec changes.", bits=64),
    labels=map_of(string(), "Keys and values by which objects are selected."),
    managedFields=listed(_MANAGER, "Which manager set which fields, and when."),
    name=string("Unique in its namespace for its kind; cannot change."),
    namespace=string("The space in which the name is unique; empty for cluster-wide kinds."),
    ownerReferences=keyed(
        _OWNER, "Objects this one belongs to; it is collected when all are gone.", by=("uid",), merge="uid"
    ),
    resourceVersion=string("The server's version of this object, for optimistic concurrency and watches."),
    selfLink=string("No longer set."),
    uid=string("Identity in time and space, given by the server."),
)

LABEL_SELECTOR: Final[JsonObject] = atomic(
    struct(
        "Selects objects by their labels; all requirements must hold.",
        matchExpressions=listed(
            struct(
                "A requirement on one label.",
                needs=("key", "operator"),
                key=string("The label."),
                operator=string("In, NotIn, Exists or DoesNotExist."),
                values=listed(string(), "Values for In and NotIn."),
            ),
            "Requirements.",
        ),
        matchLabels=map_of(string(), "Labels that must have exactly these values."),
    )
)


def with_metadata(schema: JsonObject | None) -> JsonObject:
    """The schema of a whole object: that of its kind, and that of its metadata; without one, everything is allowed."""
    if schema is None:
        return {"properties": {"metadata": OBJECT_META}, "x-kubernetes-preserve-unknown-fields": True}
    return {**schema, "properties": {**schema.get("properties", {}), "metadata": OBJECT_META}}
