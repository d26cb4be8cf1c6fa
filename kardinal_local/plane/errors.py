"""The exceptions of the plane, as one hierarchy.

    LocalPlaneError
    ├── DirectoryInUse        a second process wants the same data directory
    ├── DirectoryUnusable     the data directory cannot be opened as one of ours
    ├── PortUnusable          the address to listen on is taken
    ├── StatusError           the answer to a request: becomes a `kind: Status` body
    │   └── StorageFailed     the file does not take a write
    │       └── StorageFull   for want of space
    ├── InvalidSchema         a CRD whose schema, rules or columns cannot be used
    ├── PatchError            a patch that cannot be read or applied
    ├── ApplyError            a server-side apply that makes no sense
    ├── ApplyConflict         fields owned by another manager
    ├── MalformedYaml         a body that is no YAML, or too much of it
    ├── Unreadable            a document that is no object of its kind
    ├── Incomplete            an object that the server cannot complete
    └── UnsupportedProtobuf   a protobuf body we cannot decode

Only `StatusError` crosses into HTTP; `handlers.api` maps the others to it in one place.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

__all__ = [
    "ApplyConflict",
    "ApplyError",
    "Cause",
    "DirectoryInUse",
    "DirectoryUnusable",
    "Incomplete",
    "InvalidSchema",
    "LocalPlaneError",
    "MalformedYaml",
    "PatchError",
    "PortUnusable",
    "StatusError",
    "StorageFailed",
    "StorageFull",
    "Unreadable",
    "UnsupportedProtobuf",
]


@dataclass(frozen=True, slots=True)
class Cause:
    """One reason for a refusal, as it stands in `details.causes` of a Status."""

    reason: str
    field: str
    message: str


class LocalPlaneError(Exception):
    """The root of the tree."""


class DirectoryInUse(LocalPlaneError):
    """Another process serves this data directory."""


class DirectoryUnusable(LocalPlaneError):
    """The data directory holds something this version cannot use."""


class PortUnusable(LocalPlaneError):
    """The plane cannot listen on the port it was given."""


class StatusError(LocalPlaneError):
    """A refusal with everything a `Status` body carries; some of the real server's carry empty details."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        *,
        details: Mapping[str, Any] | None = None,
        metadata: Mapping[str, Any] | None = None,
        retry_after: int | None = None,
        warnings: Iterable[str] = (),
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = None if details is None else dict(details)
        self.metadata = dict(metadata or {})
        self.retry_after = retry_after
        self.warnings = tuple(warnings)


class StorageFailed(StatusError):
    """A write that the file does not take; nothing of it was stored, and reads go on."""


class StorageFull(StorageFailed):
    """The same for want of space: writes go on once there is some."""

    def __init__(self, message: str) -> None:
        super().__init__(507, "InsufficientStorage", message, retry_after=1)


class InvalidSchema(LocalPlaneError):
    """A schema, its rules or its columns cannot be used; each cause names a field of the CRD."""

    def __init__(self, causes: Iterable[Cause]) -> None:
        self.causes = tuple(causes)
        super().__init__("; ".join(f"{cause.field}: {cause.message}" for cause in self.causes))


class PatchError(LocalPlaneError):
    """A patch cannot be read (400) or cannot be applied to this object (422)."""

    def __init__(self, code: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message


class ApplyError(PatchError):
    """A server-side apply request that is malformed or cannot be merged."""


class ApplyConflict(LocalPlaneError):
    """Other managers own fields of the applied configuration; several are told manager by manager."""

    def __init__(self, causes: Iterable[Cause]) -> None:
        self.causes = tuple(causes)
        if len(self.causes) == 1:
            super().__init__(f"{self.causes[0].message}: {self.causes[0].field}")
            return
        fields: dict[str, list[str]] = {}
        for cause in self.causes:
            fields.setdefault(cause.message.replace("conflict", "conflicts", 1), []).append(cause.field)
        parts = ("\n".join([f"{told}:", *(f"- {field}" for field in fields[told])]) for told in sorted(fields))
        super().__init__("\n".join(parts))


class Unreadable(LocalPlaneError):
    """A document that is no object of its kind, in the words of the real server.

    `converted`: in its words for a document that never was a text, where they are others.
    """

    def __init__(self, message: str, *, converted: str = "") -> None:
        super().__init__(message)
        self.converted = converted or message


class MalformedYaml(LocalPlaneError):
    """This is no YAML, or too much of it."""


class Incomplete(LocalPlaneError):
    """What the server would add to an object contradicts what its author said; nothing else of it is looked at."""

    def __init__(self, causes: Iterable[Cause]) -> None:
        self.causes = tuple(causes)
        super().__init__("; ".join(f"{cause.field}: {cause.message}" for cause in self.causes))


class UnsupportedProtobuf(LocalPlaneError):
    """A protobuf body of a kind, or with a field, that is not in the tables."""

    def __init__(self, message: str, *, unknown_field: bool = False) -> None:
        super().__init__(message)
        self.unknown_field = unknown_field
