"""Turn a document into an object of its kind, and report the fields that the kind does not have.

A built-in kind is a type: what does not fit it cannot be read, and is refused before anything else is looked at. Of
a custom kind only the metadata is one; the rest is judged later, by its schema. How a document is refused depends on
where it came from: it is a bad request when it is the body, an invalid patch when a patch made it of the live object.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import orjson

from kardinal_local.plane import statuses
from kardinal_local.plane.builtin import decode_metadata
from kardinal_local.plane.documents import JSON_NAMES, JsonObject
from kardinal_local.plane.errors import Cause, StatusError, Unreadable
from kardinal_local.plane.kinds import Kind
from kardinal_local.plane.metadata import METADATA_FIELDS

__all__ = ["Source", "unknown_fields", "unregistered"]

_NO_OBJECT = (
    "json: cannot unmarshal array into Go value of type "
    'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
)

_YAML = "yaml: unmarshal errors:"


@dataclass(frozen=True, slots=True)
class Source:
    """Where a document came from: a body, or a patch, of which `shown` is what a refusal repeats.

    `faults` are what was found so far: fields that its kind does not have, fields that a body repeats.
    `applied`: an apply made it, which leaves nulls where something lost all its content.
    `name`: of the object, as the URL has it.
    `emptied`: fields that were given as empty maps, which no object of a type keeps.
    `hollow`: an apply left fields of the metadata empty, which an object without a type keeps and does not show.
    """

    kind: Kind
    validation: str
    faults: tuple[str, ...] = ()
    shown: Any = None
    applied: bool = False
    name: str = ""
    emptied: JsonObject = field(default_factory=dict)
    hollow: bool = False

    @property
    def _converted(self) -> bool:
        """What a strategic patch made never was a text, and only such a patch is shown as one that is none."""
        return isinstance(self.shown, str)

    def read(self, document: Any) -> tuple[JsonObject, Source]:
        """The object that the document stands for, and its source with the faults of both."""
        if not isinstance(document, dict):
            # Only a JSON patch makes another thing of an object, and then a list.
            raise self._refusal(f"couldn't get version/kind; json parse error: {_NO_OBJECT}")
        if self.shown is not None:
            document = self._typed_again(document)
        try:
            read, unknown = self._decoded(document)
        except Unreadable as error:
            raise self._refusal(error.converted if self._converted else str(error)) from None
        # YAML is made JSON first, a strategic patch is merged first, and so their own faults are found first.
        early = tuple(fault for fault in self.faults if self._converted or fault.startswith(_YAML))
        late = tuple(fault for fault in self.faults if fault not in early)
        emptied = {key: value for key, value in document.items() if value == {} and key not in read}
        found = replace(self, faults=(*early, *unknown_fields(unknown), *late), emptied=emptied)
        if self.kind.typed is not None:
            found.judge()
        return read, found

    def _typed_again(self, document: JsonObject) -> JsonObject:
        """The document under the type of the URL, of which a patch may have made another or none."""
        kind = self.kind
        own = {"apiVersion": kind.api_version, "kind": kind.kind}
        if self._converted:
            return document | {key: said for key, said in own.items() if isinstance(document.get(key, ""), str | None)}
        for key in own:
            value = document.get(key)
            if value is not None and not isinstance(value, str):
                problem = f"json: cannot unmarshal {JSON_NAMES[type(value)]} into Go struct field .{key} of type string"
                raise self._refusal(f"couldn't get version/kind; json parse error: {problem}")
        version, found = document.get("apiVersion") or "", document.get("kind") or ""
        if not kind.custom:
            if not version:
                # What has no version is read as a type without any field.
                lost = replace(self, faults=unknown_fields(sorted(document.keys() - own.keys())))
                with statuses.warning(*lost.judge()):
                    raise statuses.bad_request(
                        f"the name of the object ({self.name} based on URL) was undeterminable: name must be provided"
                    )
            if version != kind.api_version or found not in ("", kind.kind):
                raise self._refusal(unregistered(version, found or kind.kind))
        elif not found:
            text = orjson.dumps(document, option=orjson.OPT_SORT_KEYS).decode()
            raise self._refusal(f"Object 'Kind' is missing in '{text}'")
        elif not version:
            problem = "Object 'apiVersion' is missing in 'object has no apiVersion field'"
            raise statuses.internal_error(problem)
        elif version != kind.api_version:
            cause = Cause("FieldValueInvalid", "apiVersion", f'Invalid value: "{version}": must be {kind.api_version}')
            group = version.rpartition("/")[0]
            raise statuses.invalid(replace(kind, group=group), _name(document), [cause])
        return document

    def judge(self, *more: str) -> tuple[str, ...]:
        """What to warn of for fields that were dropped or repeated; refuses them when asked to be strict."""
        found = (*self.faults, *more)
        if not found or self.validation == "Ignore":
            return ()
        if self.validation == "Strict":
            raise self._refusal(f"strict decoding error: {', '.join(found)}")
        return tuple(line.strip() for fault in found for line in fault.removeprefix(_YAML).splitlines() if line)

    def _decoded(self, document: JsonObject) -> tuple[JsonObject, list[str]]:
        if self.kind.typed is not None:
            return self.kind.typed.decode(document, converted=self._converted)
        if self.kind.validator is not None:
            document = self.kind.validator.read(document, _embedded_metadata)
        metadata = document.get("metadata")
        if not isinstance(metadata, dict):
            return document, []
        decoded, unknown = decode_metadata(metadata)
        if decoded.get("managedFields") == []:
            # An empty list, which resets the record of a built-in kind, is none in an object without a type.
            del decoded["managedFields"]
        return document | {"metadata": decoded}, unknown

    def _refusal(self, detail: str) -> StatusError:
        kind = self.kind
        if self.shown is None:
            return statuses.bad_request(
                f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: {detail}'
            )
        option = orjson.OPT_SORT_KEYS if kind.custom else None
        text = self.shown if isinstance(self.shown, str) else orjson.dumps(self.shown, option=option).decode()
        message = f"Invalid value: {orjson.dumps(text).decode()}: {detail}"
        return statuses.invalid_request(Cause("FieldValueInvalid", "patch", message))


def _embedded_metadata(metadata: Any) -> JsonObject:
    """The metadata of an object inside an object; what it has too much stays, for its schema to drop."""
    if metadata is None:
        return {}
    if not isinstance(metadata, dict):
        raise Unreadable(f"json: cannot unmarshal {JSON_NAMES[type(metadata)]} into Go value of type v1.ObjectMeta")
    decoded, _ = decode_metadata(metadata)
    return decoded | {key: value for key, value in metadata.items() if key not in METADATA_FIELDS}


def _name(document: JsonObject) -> str:
    metadata = document.get("metadata")
    return str(metadata.get("name", "")) if isinstance(metadata, dict) else ""


def unregistered(api_version: str, kind: str) -> str:
    """Return the error for an unknown type."""
    return f'no kind "{kind}" is registered for version "{api_version}" in scheme "pkg/runtime/scheme.go:111"'


def unknown_fields(paths: Iterable[str]) -> tuple[str, ...]:
    """The sentences about fields that a kind does not have."""
    return tuple(f"unknown field {orjson.dumps(path).decode()}" for path in paths)
