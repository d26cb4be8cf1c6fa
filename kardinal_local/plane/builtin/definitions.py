"""The schemas of the built-in kinds, as the real server publishes them.

`schemas.jsonl` is generated from a real server's OpenAPI (`make builtins`): types, defaults, enumerations, required
fields, how lists and maps merge. Server-side apply, strategic merge and `kubectl explain` read it. It holds some three
hundred schemas of which a run meets a few dozen: the file is read when the server starts, a line is parsed when a kind
that needs it is used first.

In the file a schema refers to others by `$ref`, which is also how clients are given it; in memory the reference is the
schema itself, shared by all that refer to it. The trap: JSONSchemaProps refers to itself, so a schema is a graph, to be
walked along an object and never on its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import orjson

from kardinal_local.plane.documents import JsonObject

__all__ = ["META", "components", "object_meta", "schema", "schema_name", "with_metadata"]

META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1."
_OPAQUE: Final = frozenset({"io.k8s.apimachinery.pkg.runtime.RawExtension"})
"""What the real server owns as a whole though its OpenAPI does not say so."""
_PREFIX: Final = "#/components/schemas/"
_PACKAGES: Final = {
    "": "io.k8s.api.core",
    "apiextensions.k8s.io": "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions",
}


def _read() -> dict[str, bytes]:
    """The file by name, each line unparsed."""
    text = Path(__file__).with_name("schemas.jsonl").read_bytes()
    rows = (line.partition(b" ") for line in text.splitlines())
    return {name.decode(): source for name, _, source in rows}


_LINES: Final = _read()
_resolved: dict[str, JsonObject] = {}


def schema_name(group: str, version: str, kind: str) -> str:
    """What the schema of a kind is called."""
    return f"{_PACKAGES.get(group) or 'io.k8s.api.' + group.partition('.')[0]}.{version}.{kind}"


def schema(name: str) -> JsonObject:
    """A schema with every reference followed."""
    if name not in _resolved:
        fresh = {found: parsed for found, parsed in components([name]).items() if found not in _resolved}
        for opaque in _OPAQUE & fresh.keys():
            fresh[opaque]["x-kubernetes-map-type"] = "atomic"
        _resolved.update(fresh)
        for parsed in fresh.values():
            _link(parsed)
    return _resolved[name]


def components(names: Iterable[str]) -> dict[str, JsonObject]:
    """The schemas of some names and of everything they refer to, with their references left as they are."""
    found: dict[str, JsonObject] = {}
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = orjson.loads(_LINES[name])
            waiting.extend(_references(found[name]))
    return found


def object_meta() -> JsonObject:
    """The schema of `metadata`, which every kind has in common."""
    return schema(f"{META}ObjectMeta")


def with_metadata(source: JsonObject | None) -> JsonObject:
    """The schema of a whole object: that of its kind, and that of its metadata; without one, everything is allowed."""
    if source is None:
        return {"properties": {"metadata": object_meta()}, "x-kubernetes-preserve-unknown-fields": True}
    return {**source, "properties": {**source.get("properties", {}), "metadata": object_meta()}}


def _references(node: Any) -> Iterator[str]:
    if node.__class__ is dict:
        reference = node.get("$ref")
        if reference.__class__ is str:
            yield reference.removeprefix(_PREFIX)
        for value in node.values():
            yield from _references(value)


def _link(node: JsonObject) -> None:
    """Put the schemas that a node refers to in the place of their names.

    A shallow copy carries what the reference adds, such as a default. It shares `properties` with its original, which
    is therefore filled in place: the original may not be linked yet.
    """
    for holder in (node.get("properties", {}), node):
        for key, child in holder.items() if holder is not node else _nested(node):
            reference = child.get("$ref")
            if reference.__class__ is str:
                own = {keyword: value for keyword, value in child.items() if keyword != "$ref"}
                target = _resolved[reference.removeprefix(_PREFIX)]
                holder[key] = {**target, **own} if own else target
            else:
                _link(child)


def _nested(node: JsonObject) -> list[tuple[str, JsonObject]]:
    return [(key, node[key]) for key in ("items", "additionalProperties") if node.get(key).__class__ is dict]
