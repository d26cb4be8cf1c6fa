"""One request of a sequence, written down so that it can be asked of any server at any time.

A request that depends on what the server holds (a PUT of what was read) says how to change the object instead of
holding it: `edits` are laid over the object as that server answered it last. Everything else is data from the seed.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field, fields
from typing import Any

__all__ = ["MISSING", "PATCH_TYPES", "JsonObject", "Sequence", "Step", "edited"]

JsonObject = dict[str, Any]

MISSING = "$missing"
"""As the value of an edit: take the field away."""

PATCH_TYPES = {
    "json": "application/json-patch+json",
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "apply": "application/apply-patch+yaml",
}


@dataclass(frozen=True)
class Step:
    """What to ask: a create, update or delete, or a patch of one of the four types.

    `edits`: (path, value) pairs that turn the live object into the body of an update.
    `managers`: what an update does to `metadata.managedFields`: rename, apply, drop, empty, blank or broken.
    """

    verb: str
    body: Any = None
    subresource: str = ""
    query: dict[str, str] = field(default_factory=dict)
    edits: tuple[tuple[tuple[str, ...], Any], ...] = ()
    managers: str = ""

    def encoded(self) -> JsonObject:
        """As a corpus file has it: without what is not said."""
        return {one.name: value for one in fields(self) if (value := getattr(self, one.name))}

    @classmethod
    def decoded(cls, document: JsonObject) -> Step:
        edits = tuple((tuple(path), value) for path, value in document.get("edits", ()))
        return cls(**{**document, "edits": edits})


@dataclass(frozen=True)
class Sequence:
    """Requests for one object of one kind; `definition` is the CRD that brings the kind, if one does."""

    name: str
    collection: str
    base: JsonObject
    steps: tuple[Step, ...]
    definition: JsonObject | None = None

    @property
    def kind(self) -> str:
        return str(self.base["kind"])


def edited(base: JsonObject, step: Step) -> JsonObject:
    """The body of an update."""
    document = copy.deepcopy(base)
    for path, value in step.edits:
        _set(document, path, value)
    if step.managers:
        _rewrite_managers(document, step.managers)
    return document


def _set(document: JsonObject, path: tuple[str, ...], value: Any) -> None:
    parent: Any = document
    for part in path[:-1]:
        if not isinstance(parent.get(part), dict):
            parent[part] = {}
        parent = parent[part]
    if value == MISSING:
        parent.pop(path[-1], None)
    else:
        parent[path[-1]] = copy.deepcopy(value)


def _rewrite_managers(document: JsonObject, how: str) -> None:
    """The order of the entries depends on seconds, so they are told apart by what they are."""
    metadata = document.setdefault("metadata", {})
    entries = sorted(
        metadata.get("managedFields", ()),
        key=lambda entry: (entry["manager"], entry["operation"], entry.get("subresource", "")),
    )
    match how:
        case "empty":
            entries = []
        case "blank":
            entries = [{}]
        case "broken":
            entries = [{**entry, "fieldsType": "FieldsV9"} for entry in entries]
        case "rename":
            entries = [{**entry, "manager": "omega"} for entry in entries[:1]] + entries[1:]
        case "apply":
            entries = [{**entry, "operation": "Apply"} for entry in entries[:1]] + entries[1:]
        case "drop":
            entries = entries[1:]
    metadata["managedFields"] = entries
