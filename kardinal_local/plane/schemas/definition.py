"""Validate one schema of a CRD, and report what is wrong in the order of the real server.

Whether it is structural comes first, then its defaults, then keyword by keyword, then its rules, which are compiled
only when the rest is sound. The verdict depends on nothing but the text, and a CRD is written far more often than its
schema changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Final

import orjson

from kardinal_local.plane.documents import JsonObject
from kardinal_local.plane.errors import Cause
from kardinal_local.plane.schemas.causes import forbidden, invalid
from kardinal_local.plane.schemas.declared import Inspection, Place
from kardinal_local.plane.schemas.defaults import default_causes
from kardinal_local.plane.schemas.formats import is_known
from kardinal_local.plane.schemas.internal import INTERNAL_NAMES, internal_schema
from kardinal_local.plane.schemas.structure import structure_causes, unusable

__all__ = ["schema_causes", "unknown_formats"]

_AT_ROOT: Final = (
    *("Description", "Type", "Format", "Title", "Maximum", "ExclusiveMaximum", "Minimum", "ExclusiveMinimum"),
    *("MaxLength", "MinLength", "Pattern", "MaxItems", "MinItems", "UniqueItems", "MultipleOf", "Required", "Items"),
    *("Properties", "ExternalDocs", "Example", "XPreserveUnknownFields", "XValidations"),
)


def schema_causes(schema: JsonObject, at: str, *, status: bool) -> tuple[Cause, ...]:
    """Why the server refuses a schema; `status` when the kind has a status subresource."""
    return _causes(orjson.dumps(schema), at, status=status)


@lru_cache(maxsize=256)
def _causes(text: bytes, at: str, *, status: bool) -> tuple[Cause, ...]:
    schema: JsonObject = orjson.loads(text)
    causes = list(_root_causes(schema, at)) if status else []
    if schema.get("nullable"):
        causes.append(forbidden(f"{at}.nullable", "nullable cannot be true at the root"))
    problem = unusable(schema)
    unsound: list[Cause] = []
    if problem is None:
        unsound = structure_causes(schema, at) or list(default_causes(schema, at))
    causes += unsound
    inspection = Inspection()
    inspection.inspect(schema, Place(at, root=True, ruled=problem is None and not unsound))
    causes += inspection.causes
    if not causes and problem is not None:
        causes.append(invalid(at, "", problem))
    return tuple(causes)


def _root_causes(schema: JsonObject, at: str) -> Iterator[Cause]:
    """A status subresource leaves little room at the root, so that the status can be judged apart."""
    for keyword, name in INTERNAL_NAMES.items():
        if not schema.get(keyword) and schema.get(keyword) is not False:
            continue
        if name == "Type" and schema["type"] != "object":
            words = (
                'only "object" is allowed as the type at the root of the schema if the status subresource is enabled'
            )
            yield invalid(f"{at}.type", schema["type"], words)
            return
        if name not in _AT_ROOT and schema.get(keyword):
            listed = f"[{' '.join(_AT_ROOT)}]"
            words = f"only {listed} fields are allowed at the root of the schema if the status subresource is enabled"
            yield Cause("FieldValueInvalid", at, f"Invalid value: {internal_schema(schema)}: {words}")
            return


def unknown_formats(schema: JsonObject) -> list[str]:
    """The formats the server does not know and warns of, in the order in which it comes upon them."""
    found: list[str] = []
    name = schema.get("format")
    if name and not is_known(schema.get("type") or "", name):
        found.append(name)
    for child in _children(schema):
        found += unknown_formats(child)
    return found


def _children(schema: JsonObject) -> Iterator[JsonObject]:
    if isinstance(schema.get("items"), dict):
        yield schema["items"]
    for keyword in ("allOf", "anyOf", "oneOf"):
        yield from schema.get(keyword) or ()
    if isinstance(schema.get("not"), dict):
        yield schema["not"]
    yield from (schema.get("properties") or {}).values()
    if isinstance(schema.get("additionalProperties"), dict):
        yield schema["additionalProperties"]
