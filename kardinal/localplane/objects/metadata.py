"""The rules of object metadata that hold for every kind.

The server owns uid, creationTimestamp, generation, deletionTimestamp and resourceVersion; whatever a client sends in
them is replaced or refused. Names, labels and annotations are as strict as on a real cluster: an object accepted here
and refused there would be found out too late.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator

from kardinal.localplane.documents import JsonObject
from kardinal.localplane.errors import Cause
from kardinal.localplane.kinds import Kind

__all__ = ["KNOWN_FIELDS", "generated_name", "keep_server_fields", "prune", "validate"]

KNOWN_FIELDS = frozenset(
    {
        "name",
        "generateName",
        "namespace",
        "selfLink",
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "labels",
        "annotations",
        "ownerReferences",
        "finalizers",
        "managedFields",
    }
)
ANNOTATIONS_LIMIT = 256 * 1024
_SERVER_FIELDS = ("uid", "creationTimestamp", "generation", "deletionTimestamp", "deletionGracePeriodSeconds")
_NAME_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_GENERATED_PREFIX = 58
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_LABEL_1035 = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_QUALIFIED = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?")

_SUBDOMAIN_HELP = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_LABEL_HELP = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    "an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
_LABEL_1035_HELP = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
    "'[a-z]([-a-z0-9]*[a-z0-9])?')"
)
_PATH_SEGMENT_KINDS = frozenset({"Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"})


def generated_name(prefix: str) -> str:
    """A name for `generateName`; uniqueness is the caller's to check."""
    suffix = "".join(random.SystemRandom().choices(_NAME_ALPHABET, k=5))
    return prefix[:_GENERATED_PREFIX] + suffix


def keep_server_fields(metadata: JsonObject, *, live: JsonObject) -> None:
    """Put back what a client may not change."""
    for key in _SERVER_FIELDS:
        if key in live:
            metadata[key] = live[key]
        else:
            metadata.pop(key, None)


def prune(metadata: JsonObject) -> list[str]:
    """Drop fields that no metadata has; their paths."""
    unknown = [key for key in metadata if key not in KNOWN_FIELDS]
    for key in unknown:
        del metadata[key]
    for key in ("labels", "annotations", "finalizers", "ownerReferences", "selfLink"):
        if key in metadata and not metadata[key]:
            del metadata[key]
    return [f"metadata.{key}" for key in unknown]


def validate(kind: Kind, metadata: JsonObject) -> list[Cause]:
    """Everything that can be wrong with the metadata of an object of `kind`."""
    return [
        *_shapes(metadata),
        *_name(kind, metadata.get("name", "")),
        *_labels(metadata.get("labels")),
        *_annotations(metadata.get("annotations")),
        *_owners(metadata.get("ownerReferences")),
        *_finalizers(metadata.get("finalizers")),
    ]


def _shapes(metadata: JsonObject) -> Iterator[Cause]:
    for key in ("name", "namespace", "generateName", "uid", "resourceVersion"):
        if not isinstance(metadata.get(key, ""), str):
            yield Cause("FieldValueTypeInvalid", f"metadata.{key}", "Invalid value: must be a string")
    for key in ("ownerReferences", "finalizers", "managedFields"):
        if not isinstance(metadata.get(key, []), list):
            yield Cause("FieldValueTypeInvalid", f"metadata.{key}", "Invalid value: must be a list")


def _name(kind: Kind, name: object) -> Iterator[Cause]:
    if not isinstance(name, str):
        return
    if not name:
        yield Cause("FieldValueRequired", "metadata.name", "Required value: name or generateName is required")
        return
    if kind.kind in _PATH_SEGMENT_KINDS:
        if name in {".", ".."} or "/" in name or "%" in name:
            yield Cause("FieldValueInvalid", "metadata.name", f'Invalid value: "{name}": may not contain "/" or "%"')
        return
    if kind.kind == "Namespace" and not kind.group:
        pattern, limit, help_text = _LABEL, 63, _LABEL_HELP
    elif kind.kind == "Service" and not kind.group:
        pattern, limit, help_text = _LABEL_1035, 63, _LABEL_1035_HELP
    else:
        pattern, limit, help_text = _SUBDOMAIN, 253, _SUBDOMAIN_HELP
    if len(name) > limit:
        yield Cause(
            "FieldValueInvalid", "metadata.name", f'Invalid value: "{name}": must be no more than {limit} characters'
        )
    elif not pattern.fullmatch(name):
        yield Cause("FieldValueInvalid", "metadata.name", f'Invalid value: "{name}": {help_text}')


def _labels(labels: object) -> Iterator[Cause]:
    if labels is None:
        return
    if not isinstance(labels, dict):
        yield Cause("FieldValueTypeInvalid", "metadata.labels", "Invalid value: must be an object")
        return
    for key, value in labels.items():
        if problem := _qualified_name_problem(key):
            yield Cause("FieldValueInvalid", "metadata.labels", f'Invalid value: "{key}": {problem}')
        if not isinstance(value, str):
            yield Cause("FieldValueTypeInvalid", f"metadata.labels[{key}]", "Invalid value: must be a string")
        elif len(value) > 63:
            yield Cause(
                "FieldValueInvalid",
                "metadata.labels",
                f'Invalid value: "{value}": must be no more than 63 characters',
            )
        elif not _LABEL_VALUE.fullmatch(value):
            yield Cause(
                "FieldValueInvalid",
                "metadata.labels",
                f'Invalid value: "{value}": a valid label must be an empty string or consist of alphanumeric '
                "characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  "
                "or 'my_value',  or '12345', regex used for validation is "
                "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
            )


def _annotations(annotations: object) -> Iterator[Cause]:
    if annotations is None:
        return
    if not isinstance(annotations, dict):
        yield Cause("FieldValueTypeInvalid", "metadata.annotations", "Invalid value: must be an object")
        return
    total = 0
    for key, value in annotations.items():
        if problem := _qualified_name_problem(key.lower()):
            yield Cause("FieldValueInvalid", "metadata.annotations", f'Invalid value: "{key}": {problem}')
        if not isinstance(value, str):
            yield Cause("FieldValueTypeInvalid", f"metadata.annotations[{key}]", "Invalid value: must be a string")
        else:
            total += len(key) + len(value)
    if total > ANNOTATIONS_LIMIT:
        yield Cause(
            "FieldValueTooLong", "metadata.annotations", f"Too long: may not be more than {ANNOTATIONS_LIMIT} bytes"
        )


def _owners(owners: object) -> Iterator[Cause]:
    if not isinstance(owners, list):
        return
    controllers = 0
    for index, owner in enumerate(owners):
        path = f"metadata.ownerReferences[{index}]"
        if not isinstance(owner, dict):
            yield Cause("FieldValueTypeInvalid", path, "Invalid value: must be an object")
            continue
        for key in ("apiVersion", "kind", "name", "uid"):
            if not isinstance(owner.get(key), str) or not owner[key]:
                yield Cause("FieldValueInvalid", f"{path}.{key}", 'Invalid value: "": must not be empty')
        controllers += owner.get("controller") is True
    if controllers > 1:
        yield Cause(
            "FieldValueInvalid",
            "metadata.ownerReferences",
            "Invalid value: Only one reference can have Controller set to true",
        )


def _finalizers(finalizers: object) -> Iterator[Cause]:
    if not isinstance(finalizers, list):
        return
    for index, finalizer in enumerate(finalizers):
        path = f"metadata.finalizers[{index}]"
        if not isinstance(finalizer, str):
            yield Cause("FieldValueTypeInvalid", path, "Invalid value: must be a string")
        elif problem := _qualified_name_problem(finalizer):
            yield Cause("FieldValueInvalid", path, f'Invalid value: "{finalizer}": {problem}')


def _qualified_name_problem(key: str) -> str | None:
    prefix, slash, name = key.rpartition("/")
    if slash and (len(prefix) > 253 or not _SUBDOMAIN.fullmatch(prefix)):
        return f"prefix part {_SUBDOMAIN_HELP}"
    if not name:
        return "name part must be non-empty"
    if len(name) > 63:
        return "name part must be no more than 63 characters"
    if not _QUALIFIED.fullmatch(name):
        return (
            "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
            "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
            "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
        )
    return None
