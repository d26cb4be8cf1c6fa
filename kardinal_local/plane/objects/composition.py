"""Reduce what a client sent to what its request may change (pure).

A request names an object twice, in its URL and in its body; it may have been made on the sight of an older state; and
each endpoint lets it change its own half only. Nothing here looks at the store.
"""

from __future__ import annotations

from dataclasses import replace

import orjson

from kardinal_local.plane import statuses
from kardinal_local.plane.apply import FieldSet, conforms
from kardinal_local.plane.builtin import BUILTIN_KINDS
from kardinal_local.plane.documents import JsonObject
from kardinal_local.plane.errors import Cause
from kardinal_local.plane.kinds import Kind
from kardinal_local.plane.objects.revisions import parse_precondition
from kardinal_local.plane.objects.typing import Source, unregistered

__all__ = [
    "check_preconditions",
    "check_type",
    "check_uid",
    "claimed",
    "content",
    "identify",
    "ignored_fields",
    "is_lossy",
    "refuse_identity",
    "refuse_new_finalizers",
    "require_type",
    "restricted",
    "same",
    "stored_form",
    "stored_size",
    "unchanged",
    "viewed",
    "without_status",
]

# Of the 254 that can be written.
LEVELS_AROUND = 24
_BUILT_IN = {(kind.api_version, kind.kind) for kind in BUILTIN_KINDS}
_DIRECTORIES = {"endpoints": "services/endpoints", "services": "services/specs"}
_REPORTED = frozenset({"metadata", "status"})
_ROOT = frozenset({"apiVersion", "kind", "metadata", "spec", "status"})


def viewed(kind: Kind, document: JsonObject) -> JsonObject:
    """A stored document in the spelling of `kind`."""
    return document if kind.view is None else kind.view.outward(document)


def stored_form(kind: Kind, document: JsonObject, *, applied: bool = False) -> JsonObject:
    """The document as it is kept: without the nulls that counted as changes; one that was `applied` may have more."""
    if applied and kind.validator is not None:
        document = kind.validator.filled(document)
    if kind.typed is not None:
        document = kind.typed.stored(document)
    return document if kind.view is None else kind.view.inward(document)


def is_lossy(kind: Kind, document: JsonObject, source: Source) -> bool:
    """Whether the document reads otherwise than it is written, so that a write of what it reads as changes it."""
    return source.hollow if kind.typed is None else kind.typed.stored(document) is not document


def stored_size(stored: JsonObject) -> int:
    """How large an object is; refused when there would be no room around it, in lists, events and rows."""
    room: object = stored
    for _ in range(LEVELS_AROUND):
        room = [room]
    try:
        return len(orjson.dumps(room)) - 2 * LEVELS_AROUND
    except orjson.JSONEncodeError:
        raise statuses.too_deep() from None


def identify(kind: Kind, document: JsonObject, *, namespace: str, name: str = "") -> JsonObject:
    """Check that the document is what the URL says, and complete it; its metadata."""
    require_type(kind, document)
    document["apiVersion"], document["kind"] = kind.api_version, kind.kind
    if document.get("metadata") is None:
        document["metadata"] = {}
    metadata = document["metadata"]
    if not isinstance(metadata, dict):
        raise statuses.bad_request("metadata must be an object")
    if not namespace:
        metadata.pop("namespace", None)
    elif (metadata.get("namespace") or namespace) != namespace:
        raise statuses.bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    else:
        metadata["namespace"] = namespace
    if name and not metadata.get("name"):
        raise statuses.bad_request(
            f"the name of the object ({name} based on URL) was undeterminable: name must be provided"
        )
    if name and metadata["name"] != name:
        raise statuses.bad_request(
            f"the name of the object ({metadata['name']}) does not match the name on the URL ({name})"
        )
    return metadata


def require_type(kind: Kind, document: JsonObject) -> None:
    """Refuse another type than the URL's. A built-in kind may leave its type out, a custom one may not."""
    api_version, found = str(document.get("apiVersion") or ""), str(document.get("kind") or "")
    if kind.custom:
        _check_custom_type(kind, document, api_version=api_version, found=found)
    elif api_version not in {"", kind.api_version} or found not in {"", kind.kind}:
        version = (api_version or kind.api_version).rpartition("/")[2]
        if (api_version or kind.api_version, found) in _BUILT_IN:
            package = (kind.group or "core").partition(".")[0]
            problem = f"converting ({version}.{found}) to ({package}.{kind.kind}): unknown conversion"
        else:
            problem = unregistered(api_version or kind.api_version, found or kind.kind)
        raise statuses.bad_request(
            f'{found or kind.kind} in version "{version}" cannot be handled as a {kind.kind}: {problem}'
        )


def _check_custom_type(kind: Kind, document: JsonObject, *, api_version: str, found: str) -> None:
    if api_version != kind.api_version:
        raise statuses.bad_request(
            f"the API version in the data ({api_version}) does not match the expected API version ({kind.api_version})"
        )
    if found != kind.kind:
        cause = Cause("FieldValueInvalid", "kind", f'Invalid value: "{found}": must be {kind.kind}')
        name = (document.get("metadata") or {}).get("name", "")
        raise statuses.invalid(replace(kind, kind=found), name, [cause])


def check_preconditions(kind: Kind, metadata: JsonObject, *, live: JsonObject, replaced: bool) -> None:
    name, version = live["name"], parse_precondition(str(metadata.get("resourceVersion") or ""))
    if replaced:
        check_uid(kind, metadata, live=live)
    if version is None and replaced and not kind.unconditional_update:
        cause = Cause(
            "FieldValueInvalid", "metadata.resourceVersion", "Invalid value: 0: must be specified for an update"
        )
        # The one refusal of an object that names the resource and not the kind.
        raise statuses.invalid(replace(kind, kind=kind.plural), name, [cause])
    if version is not None and version != int(live["resourceVersion"]):
        raise statuses.conflict(
            kind,
            name,
            "the object has been modified; please apply your changes to the latest version and try again",
        )


def check_uid(kind: Kind, metadata: JsonObject, *, live: JsonObject) -> None:
    """Refuse to replace another object of the name than was meant; one that is not there has no uid."""
    other = metadata.get("uid") or live["uid"]
    if other != live["uid"]:
        raise statuses.conflict(
            kind,
            live["name"],
            f"StorageError: invalid object, Code: 4, Key: {_key(kind, live)}, ResourceVersion: 0, AdditionalErrorMsg: "
            f"Precondition failed: UID in precondition: {other}, UID in object meta: {live['uid']}",
        )


def _key(kind: Kind, metadata: JsonObject) -> str:
    """Where the real server's store keeps an object, which it tells."""
    prefix = f"{kind.group}/{kind.plural}" if kind.custom else _DIRECTORIES.get(kind.plural, kind.plural)
    return "/".join(filter(None, ("/registry", prefix, metadata.get("namespace"), metadata["name"])))


def check_type(kind: Kind, configuration: JsonObject) -> None:
    """An applied configuration has to say what it is."""
    api_version, found = str(configuration.get("apiVersion") or ""), str(configuration.get("kind") or "")
    if (api_version, found) != (kind.api_version, kind.kind):
        group, _, version = api_version.rpartition("/")
        raise statuses.bad_request(f"invalid object type: {group}/{version}, Kind={found}")


def refuse_identity(kind: Kind, metadata: JsonObject, *, name: str) -> None:
    """An apply that creates cannot mean a particular object."""
    if metadata.get("uid"):
        raise statuses.conflict(
            kind,
            name,
            f"uid mismatch: the provided object specified uid {metadata['uid']}, and no existing object was found",
        )


def restricted(kind: Kind, document: JsonObject, *, live: JsonObject, subresource: str) -> JsonObject:
    """Keep of the document only what its endpoint may change."""
    if subresource == "status":
        changed = {**live, "metadata": _metadata_beside_status(kind, document["metadata"], live=live["metadata"])}
        changed.pop("status", None)
        if "status" in document:
            changed["status"] = document["status"]
        return changed
    if subresource == "finalize":
        return {**live, "spec": document["spec"]}
    if kind.status:
        document.pop("status", None)
        if "status" in live:
            document["status"] = live["status"]
    return document


def without_status(kind: Kind, document: JsonObject) -> JsonObject:
    """Return the document of a new object, whose status has not been reported yet."""
    if not kind.status:
        return document
    document = {key: value for key, value in document.items() if key != "status"}
    if kind.typed is not None:
        blank, _ = kind.typed.decode({})
        document["status"] = blank["status"]
    return document


def _metadata_beside_status(kind: Kind, metadata: JsonObject, *, live: JsonObject) -> JsonObject:
    """The metadata of an object whose status is written: which of it may change is a matter of the kind."""
    if kind.status_keeps is None:
        kept = {key: value for key, value in live.items() if key != "managedFields"}
        return kept | {key: metadata[key] for key in ("managedFields",) if key in metadata}
    kept = {key: value for key, value in metadata.items() if key not in kind.status_keeps}
    return kept | {key: live[key] for key in kind.status_keeps if key in live}


def claimed(
    kind: Kind, document: JsonObject, *, live: JsonObject, said: JsonObject, subresource: str
) -> JsonObject | None:
    """What an update is taken to have written: through /status also root fields it could not change.

    The endpoint of a custom kind ignores spec and metadata only; the real server claims the rest, and so do we. It also
    reads all that was sent: when that is no object of the kind, the record of who owns what is lost.
    """
    if subresource != "status" or not kind.custom:
        return document
    beside, known = ({key: one[key] for key in one if key not in _REPORTED} for one in (said, live))
    if same(beside, known):
        return document
    if kind.validator is not None:
        said = kind.validator.filled(said)
    if not conforms(said, schema=kind.schema):
        document["metadata"]["managedFields"] = []
        return None
    kept = {key: value for key, value in document.items() if key in _ROOT}
    return kept | {key: value for key, value in said.items() if key not in _ROOT}


def ignored_fields(kind: Kind, *, subresource: str) -> FieldSet:
    """What no write through this endpoint can claim, because the endpoint leaves it as it is."""
    if subresource != "status":
        return {"f:status": {}} if kind.status else {}
    if kind.status_keeps is None:
        return {"f:metadata": {}, "f:spec": {}}
    kept: FieldSet = {f"f:{key}": {} for key in sorted(kind.status_keeps)}
    return {"f:spec": {}, "f:metadata": kept} if kept else {"f:spec": {}}


def refuse_new_finalizers(kind: Kind, document: JsonObject, *, live: JsonObject) -> None:
    added = set(document["metadata"].get("finalizers") or ()) - set(live["metadata"].get("finalizers") or ())
    if added:
        listed = ", ".join(f'"{finalizer}"' for finalizer in sorted(added))
        cause = Cause(
            "FieldValueForbidden",
            "metadata.finalizers",
            "Forbidden: no new finalizers can be added if the object is being deleted, "
            f"found new finalizers []string{{{listed}}}",
        )
        # Two rules of the real server find it.
        raise statuses.invalid(kind, document["metadata"]["name"], [cause, cause])


def content(kind: Kind, document: JsonObject) -> JsonObject:
    """What metadata.generation counts changes of."""
    ignored = {"metadata", "status"} if kind.status else {"metadata"}
    counted = {key: value for key, value in document.items() if key not in ignored}
    if kind.annotated_generation:
        counted["metadata"] = document["metadata"].get("annotations") or {}
    return counted


def unchanged(document: JsonObject, live: JsonObject) -> bool:
    """Return whether nothing would change but the times of the last writes."""
    return same(_without_times(document), _without_times(live))


def _without_times(document: JsonObject) -> JsonObject:
    metadata = document["metadata"]
    claims = [{key: claim[key] for key in claim if key != "time"} for claim in metadata.get("managedFields") or ()]
    return {**document, "metadata": {**metadata, "managedFields": claims}}


def same(document: JsonObject, live: JsonObject) -> bool:
    # Python takes True and 1 for equal, JSON does not: the cheap comparison only says where the exact one is worth it.
    if document != live:
        return False
    option = orjson.OPT_SORT_KEYS
    return orjson.dumps(document, option=option) == orjson.dumps(live, option=option)
