"""What the server knows about one kind: its names, its scope, its schema.

A built-in kind and one that a CRD brought are the same thing to the rest of the server. Where the real server's rules
differ, the difference has a name here (`custom`, `generation`, `unconditional_update`) instead of being asked for by
kind.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

from kardinal_local.plane import schemas
from kardinal_local.plane.documents import JsonObject
from kardinal_local.plane.errors import Cause
from kardinal_local.plane.kinds.subresource_types import FINALIZE, SCALE, STATUS, TOKEN, ScalePaths, Subresource
from kardinal_local.plane.tables import Column, builtin_columns, custom_columns

__all__ = ["Kind", "Typed", "View"]

_OWN_SUBRESOURCES = {"namespaces": (FINALIZE,), "serviceaccounts": (TOKEN,)}


class Typed(Protocol):
    """What a built-in kind has in place of a CRD's schema: a Go type, and code that knows it."""

    @property
    def schema(self) -> JsonObject: ...

    @property
    def blank(self) -> JsonObject:
        """The object before anything was said of it: to whom nothing was added, nothing of it is owned."""
        ...

    def stored(self, document: JsonObject) -> JsonObject:
        """The document as it is read again; the same one when that is no other."""
        ...

    def decode(self, document: JsonObject, *, converted: bool = False) -> tuple[JsonObject, list[str]]:
        """The document as an object of the kind, and the paths of fields that the kind does not have.

        `converted`: a strategic merge patch made it, so it never was a text.
        Raises `Unreadable` for what is no object of the kind at all.
        """
        ...

    def prepare(self, document: JsonObject, *, old: JsonObject | None) -> None:
        """Fill in and put back what is the server's to set. Changes nothing but `document` itself.

        Raises `Incomplete` where that contradicts what was asked for.
        """
        ...

    def problems(self, document: JsonObject, *, old: JsonObject | None) -> list[Cause]:
        """Everything for which the document must be refused."""
        ...

    def notes(self, document: JsonObject) -> tuple[str, ...]:
        """What the author of a good document should be told."""
        ...


@dataclass(frozen=True, slots=True)
class View:
    """How one kind is kept in the form of another, of some version (events of both groups are the same objects).

    `own`: the form is its own, and only what older schemas left in it is put right on the way out.
    """

    version: str
    inward: Callable[[JsonObject], JsonObject]
    outward: Callable[[JsonObject], JsonObject]
    own: bool = False


@dataclass(frozen=True)
class Kind:
    """One kind in one version of its group; `group` is empty for the core group.

    `custom`: brought by a CRD; strategic merge does not exist for it. `readable`: the versions that the CRD has.
    `generation`: metadata.generation counts its changes; `annotated_generation`: and those of its annotations.
    `unconditional_update`: a PUT may come without a resourceVersion.
    `created_by_update`: a PUT of what is not there creates it.
    `returns_deleted`: a deletion is answered with the object, not with a Status.
    `status_keeps`: the fields of metadata that a write to the status cannot change; None: all of them.
    `scale`: where its objects keep what their scale shows.
    `storage`: the collection its objects are kept in, `qualified` unless it shares another kind's.
    `stored`: False for reviews, which are answered and forgotten.
    `enforced`: False for what would have a say in other requests on a real server, and has none here.
    `selectable_fields`: what its objects may be selected by, besides name and namespace.
    `deprecation`: the warning for everyone who uses this version.
    `terminating`: its definition is being deleted, and no object may be created any more.
    """

    group: str
    version: str
    kind: str
    plural: str
    singular: str
    list_kind: str
    namespaced: bool = True
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    status: bool = False
    custom: bool = False
    readable: frozenset[str] = frozenset()
    generation: bool = False
    annotated_generation: bool = False
    unconditional_update: bool = True
    created_by_update: bool = False
    returns_deleted: bool = False
    status_keeps: frozenset[str] | None = None
    scale: ScalePaths | None = None
    shared_storage: str = ""
    stored: bool = True
    enforced: bool = True
    selectable_fields: tuple[str, ...] = ()
    deprecation: str = ""
    terminating: bool = False
    view: View | None = field(default=None, compare=False, repr=False)
    typed: Typed | None = field(default=None, compare=False, repr=False)
    custom_schema: JsonObject | None = field(default=None, compare=False, repr=False)
    column_definitions: tuple[JsonObject, ...] = field(default=(), compare=False, repr=False)

    @cached_property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @cached_property
    def qualified(self) -> str:
        """`plural.group`, as messages name a resource."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def verbs(self) -> tuple[str, ...]:
        """What can be done with its objects, in the order in which the real server says so."""
        if not self.stored:
            return ("create",)
        if self.custom:
            return ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
        # The router of the real server deletes namespaces one by one only.
        collection = () if self.qualified == "namespaces" else ("deletecollection",)
        return ("create", "delete", *collection, "get", "list", "patch", "update", "watch")

    @property
    def subresources(self) -> tuple[Subresource, ...]:
        """What hangs below its objects."""
        own = _OWN_SUBRESOURCES.get(self.qualified, ())
        found = (*own, *((STATUS,) if self.status else ()), *((SCALE,) if self.scale else ()))
        return found if self.custom else tuple(sorted(found, key=lambda one: one.name))

    @cached_property
    def storage_version(self) -> str:
        """The version in which its objects are kept."""
        return self.version if self.view is None else self.view.version

    @cached_property
    def storage(self) -> str:
        return self.shared_storage or self.qualified

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """What `kubectl get` prints."""
        if self.custom:
            return custom_columns(self.column_definitions)
        return builtin_columns(self.group, self.kind)

    @property
    def schema(self) -> JsonObject | None:
        """The OpenAPI v3 schema of its objects."""
        return self.custom_schema if self.typed is None else self.typed.schema

    @cached_property
    def validator(self) -> schemas.Validator | None:
        """What judges an object by the schema of its CRD."""
        return None if self.custom_schema is None else schemas.compile_validator(self.custom_schema, scale=self.scale)
