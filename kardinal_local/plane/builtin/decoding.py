"""Decode a document as one of the Go types, as the real server does with every object of a built-in kind.

A real server has no objects of loose shape behind its built-in kinds: a body becomes a Go value and every answer is
made from that. So a number where a text belongs is no invalid field (422) but an unreadable body (400), null is the
same as nothing, an empty list is left out where its type says so and null where it does not, a time comes back in
UTC and an amount in its canonical spelling. Defaults belong to the same step: they are of a type, wherever it occurs.

A field that the type does not have is dropped and reported, in the order of the document. What a strategic merge patch
made never was a text: it is converted to the type, in the order of the type. The result shares nothing with the
document.
"""

from __future__ import annotations

import base64
import binascii
import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

from kardinal_local.plane.builtin import moments, quantities
from kardinal_local.plane.builtin.defaults import COMPUTED, DEFAULTS
from kardinal_local.plane.builtin.definitions import META, schema
from kardinal_local.plane.builtin.mismatches import Inlined, MapKey, Path, mismatch, no_text, report
from kardinal_local.plane.builtin.types import Field, Struct, struct
from kardinal_local.plane.documents import JsonObject
from kardinal_local.plane.errors import Unreadable

__all__ = ["blank", "decode", "decode_metadata"]

_CRDS: Final = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1."
_BASE64: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")

Read = Callable[[Any, Path, "_Walk"], Any]


@dataclass(slots=True)
class _Walk:
    """What one reading found; a bare one leaves the defaults out.

    `converted`: the document never was a text, and is converted: by the order of the type, and numbers by force.
    """

    unknown: dict[str, None] = field(default_factory=dict)
    bare: bool = False
    converted: bool = False


Make = Callable[[_Walk], Any]


@dataclass(frozen=True, slots=True)
class _Entry:
    """How one field is read; `drops`: an empty value is none."""

    step: str
    read: Read
    drops: bool


@dataclass(frozen=True, slots=True)
class _Shape:
    """A type ready for reading. `absent` makes what is written where nothing was given."""

    entries: dict[str, _Entry]
    absent: tuple[tuple[str, Make], ...]
    defaults: JsonObject
    computed: tuple[Callable[[JsonObject], None], ...]

    def read(self, value: JsonObject, path: Path, walk: _Walk) -> JsonObject:
        entries = self.entries
        result: JsonObject = {}
        for key, item in self._by_type(value) if walk.converted else value.items():
            entry = entries.get(key)
            if entry is None:
                walk.unknown[report((path, key))] = None
            elif item is not None:
                read = entry.read(item, (path, entry.step), walk)
                if read or not entry.drops:
                    result[key] = read
        for key, make in self.absent:
            if key not in result:
                result[key] = make(walk)
        if walk.bare:
            return result
        for key, default in self.defaults.items():
            if result.get(key) in (None, ""):
                result[key] = copy.deepcopy(default)
        for compute in self.computed:
            compute(result)
        return result

    def _by_type(self, value: JsonObject) -> Iterator[tuple[str, Any]]:
        yield from ((key, value[key]) for key in self.entries if key in value)
        yield from ((key, item) for key, item in value.items() if key not in self.entries)


def decode(name: str, document: JsonObject, *, converted: bool = False) -> tuple[JsonObject, list[str]]:
    """The document as a value of a type, and the paths of the fields that the type does not have.

    `converted`: it is what a strategic merge patch made of an object.
    """
    walk = _Walk(converted=converted)
    result = _shape(name).read(document, None, walk)
    return result, sorted(walk.unknown) if converted else list(walk.unknown)


@cache
def blank(name: str) -> JsonObject:
    """The empty value of a type, before any default; to be looked at only."""
    return _shape(name).read({}, None, _Walk(bare=True))


def decode_metadata(metadata: JsonObject) -> tuple[JsonObject, list[str]]:
    """The metadata of an object whose kind is no Go type, and the paths of fields that no metadata has."""
    result, unknown = decode(f"{META}ObjectMeta", metadata)
    return result, [f"metadata.{path}" for path in unknown]


@cache
def _shape(name: str) -> _Shape:
    type_ = struct(name)
    short = name.removeprefix("io.k8s.api.")
    published = {one.name: value for one in type_.fields if (value := _published(name, one)) is not None}
    return _Shape(
        entries={one.name: _Entry(_step(one), _reader(type_, one), _drops(one)) for one in type_.fields},
        absent=tuple((one.name, make) for one in type_.fields if (make := _absent(one)) is not None),
        defaults=published | DEFAULTS.get(short, {}),
        computed=COMPUTED.get(short, ()),
    )


def _step(one: Field) -> str:
    if not one.within:
        return one.name
    step = Inlined(one.name)
    step.within = one.within
    return step


def _published(name: str, one: Field) -> Any:
    """The default that OpenAPI gives a field; for a field that is no pointer an empty one says nothing."""
    default = schema(name).get("properties", {}).get(one.name, {}).get("default")
    return default if default or one.is_pointer else None


def _drops(one: Field) -> bool:
    """Whether an empty value is none; but an empty list of managers says that all of them shall go."""
    if one.name == "managedFields":
        return False
    if one.empty == "0":
        return True
    return one.empty == "?" and (one.many != "-" or one.is_scalar)


def _absent(one: Field) -> Make | None:
    """What makes the value of a field that was not given; None when it stays away."""
    if one.empty in "*0":
        return None
    if one.empty == "^" or (one.empty == "!" and (one.many != "-" or one.type == "bytes")):
        return _nothing
    if one.many != "-" or (one.empty == "?" and one.is_scalar):
        return None
    return _zero(one.type)


def _zero(type_: str) -> Make:
    """What makes the empty value of a type."""
    if type_ in _ZEROS:
        zero = _ZEROS[type_]
        return lambda walk: zero
    return lambda walk: _shape(type_).read({}, None, walk)


def _nothing(walk: _Walk) -> None:
    return None


def _reader(owner: Struct, one: Field) -> Read:
    read = _value_reader(owner.short_name, one.type, one.go_element)
    if one.many == "-":
        return read
    zero = _zero(one.type)
    name, go = owner.short_name, one.go_type

    def read_list(value: Any, path: Path, walk: _Walk) -> list[Any]:
        if value.__class__ is not list:
            raise mismatch(value, path, name, go, kind="slice")
        return [zero(walk) if item is None else read(item, (path, index), walk) for index, item in enumerate(value)]

    def read_map(value: Any, path: Path, walk: _Walk) -> JsonObject:
        if value.__class__ is not dict:
            raise mismatch(value, path, name, go, kind="map")
        return {
            key: zero(walk) if item is None else read(item, (path, MapKey(key)), walk) for key, item in value.items()
        }

    return read_list if one.many == "[" else read_map


def _value_reader(owner: str, type_: str, go: str) -> Read:
    if type_ in _SPECIAL:
        return _SPECIAL[type_](owner, go)
    if "." in type_:
        return _struct_reader(owner, type_, go)
    wanted = _SCALARS[type_]

    def read(value: Any, path: Path, walk: _Walk) -> Any:
        if value.__class__ is not wanted:
            raise mismatch(value, path, owner, go, kind=type_)
        return value

    return read


def _struct_reader(owner: str, type_: str, go: str) -> Read:
    def read(value: Any, path: Path, walk: _Walk) -> Any:
        if value.__class__ is not dict:
            raise mismatch(value, path, owner, go, kind="struct")
        return _shape(type_).read(value, path, walk)

    return read


def _integer(bits: int, kind: str = "") -> Callable[[str, str], Read]:
    least, most = -(1 << bits - 1), (1 << bits - 1) - 1

    def reader(owner: str, go: str) -> Read:
        def read(value: Any, path: Path, walk: _Walk) -> Any:
            if walk.converted and value.__class__ is float and value.is_integer():
                value = int(value)
            if value.__class__ is int and walk.converted and kind:
                # What has no room loses its upper bits.
                return (value - least) % (1 << bits) + least
            if value.__class__ is not int or not least <= value <= most:
                raise mismatch(value, path, owner, go, kind=kind)
            return value

        return read

    return reader


def _double(owner: str, go: str) -> Read:
    def read(value: Any, path: Path, walk: _Walk) -> Any:
        if value.__class__ not in (int, float):
            raise mismatch(value, path, owner, go, kind="float64")
        return value

    return read


def _bytes(owner: str, go: str) -> Read:
    def read(value: Any, path: Path, walk: _Walk) -> Any:
        if value.__class__ is not str:
            raise mismatch(value, path, owner, go, kind="slice")
        return base64.b64encode(_decoded(value)).decode()

    return read


def _decoded(text: str) -> bytes:
    """Base64 with line breaks, as Go reads it; an error names the byte at which reading stopped."""
    try:
        return base64.b64decode(text.replace("\n", "").replace("\r", ""), validate=True)
    except (binascii.Error, ValueError):
        problem = f"illegal base64 data at input byte {_stop(text)}"
        raise Unreadable(problem, converted=f"error decoding from json: {problem}") from None


def _stop(text: str) -> int:
    """Where Go stops reading base64."""
    letters = [(index, letter) for index, letter in enumerate(text) if letter not in "\r\n"]
    for position, (index, letter) in enumerate(letters):
        if letter in _BASE64:
            continue
        if letter != "=" or position % 4 < 2:
            return index
        end = position + (2 if position % 4 == 2 else 1)
        if end > len(letters):
            return len(text)
        if position % 4 == 2 and letters[position + 1][1] != "=":
            return letters[position + 1][0]
        return letters[end][0] if end < len(letters) else len(text)
    return len(text) - len(letters) % 4


def _spelled(spell: Callable[[str], str]) -> Callable[[str, str], Read]:
    """A type that reads itself from a text."""

    def reader(owner: str, go: str) -> Read:
        def read(value: Any, path: Path, walk: _Walk) -> Any:
            if value.__class__ is not str:
                raise no_text(value)
            try:
                return spell(value)
            except moments.MomentError as error:
                raise Unreadable(str(error)) from None

        return read

    return reader


def _quantity(owner: str, go: str) -> Read:
    def read(value: Any, path: Path, walk: _Walk) -> Any:
        text = value if value.__class__ is str else repr(value) if value.__class__ in (int, float) else "?"
        try:
            return quantities.canonical(text)
        except quantities.QuantityError as error:
            raise Unreadable(str(error)) from None

    return read


def _int_or_string(owner: str, go: str) -> Read:
    read_integer = _integer(32)(owner, "int32")

    def read(value: Any, path: Path, walk: _Walk) -> Any:
        return value if value.__class__ is str else read_integer(value, path, walk)

    return read


def _untouched(owner: str, go: str) -> Read:
    """Return a value that is not changed in place, and so need not be copied."""
    return lambda value, path, walk: value


def _as_it_is(owner: str, go: str) -> Read:
    return lambda value, path, walk: copy.deepcopy(value)


def _texts(owner: str, go: str) -> Read:
    read_text = _value_reader(owner, "string", "string")

    def read(value: Any, path: Path, walk: _Walk) -> Any:
        if value.__class__ is not list:
            raise mismatch(value, path, owner, go, kind="slice")
        return [read_text(item, path, walk) for item in value]

    return read


def _schema_or(*others: type) -> Callable[[str, str], Read]:
    """A JSON schema, or something simpler in its place; what is wrong below goes unnoticed."""

    def reader(owner: str, go: str) -> Read:
        def read(value: Any, path: Path, walk: _Walk) -> Any:
            shape = _shape(f"{_CRDS}JSONSchemaProps")
            if value.__class__ is dict:
                return shape.read(value, None, _Walk())
            if value.__class__ is list and list in others:
                return [shape.read(item, None, _Walk()) if item.__class__ is dict else item for item in value]
            if value.__class__ not in others:
                raise Unreadable("boolean or JSON schema expected")
            return value

        return read

    return reader


_SCALARS: Final[dict[str, type]] = {"string": str, "bool": bool}
_SPECIAL: Final[dict[str, Callable[[str, str], Read]]] = {
    "int32": _integer(32, "int32"),
    "int64": _integer(64, "int64"),
    "double": _double,
    "bytes": _bytes,
    f"{META}Time": _spelled(moments.time),
    f"{META}MicroTime": _spelled(moments.micro_time),
    f"{META}FieldsV1": _untouched,
    "io.k8s.api.authentication.v1.ExtraValue": _texts,
    "io.k8s.api.authorization.v1.ExtraValue": _texts,
    "io.k8s.apimachinery.pkg.api.resource.Quantity": _quantity,
    "io.k8s.apimachinery.pkg.runtime.RawExtension": _as_it_is,
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": _int_or_string,
    f"{_CRDS}JSON": _as_it_is,
    f"{_CRDS}JSONSchemaPropsOrArray": _schema_or(list),
    f"{_CRDS}JSONSchemaPropsOrBool": _schema_or(bool),
    f"{_CRDS}JSONSchemaPropsOrStringArray": _schema_or(list),
}
_ZEROS: Final[dict[str, Any]] = {
    "string": "",
    "bool": False,
    "int32": 0,
    "int64": 0,
    "double": 0,
    "bytes": None,
    f"{META}Time": None,
    f"{META}MicroTime": None,
    "io.k8s.apimachinery.pkg.api.resource.Quantity": "0",
    "io.k8s.apimachinery.pkg.runtime.RawExtension": None,
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": 0,
    f"{_CRDS}JSON": None,
}
