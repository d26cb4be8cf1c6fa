"""Protobuf bodies of typed clients: recorded from a real server, and built by hand."""

from __future__ import annotations

import base64
import contextlib
import struct as binary
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kardinal_local.plane.builtin import BUILTIN_KINDS, META, Field, schema_name, struct
from kardinal_local.plane.documents import JsonObject
from kardinal_local.plane.errors import UnsupportedProtobuf
from kardinal_local.plane.kinds import Kind
from kardinal_local.plane.security import REVIEW_KINDS
from kardinal_local.plane.wire.protobuf import decode

RECORDED_SECRET = (
    "azhzAAoMCgJ2MRIGU2VjcmV0EpkDCv0CCgFzEgAaB2RlZmF1bHQiACokM2FiMmVjMjgtNDU2Yi00ZTAyLTgxZTAtNWM0NDNmMDVhNjJjMgQ2OTkz"
    "OABCCAjBwIbYBhAASggIwcCG2AYQAFAAYgUKAWESAGoXCglOYW1lc3BhY2UaAXgiAXUqAnYxMAByA3gveYoBgAIKCHJlY29yZGVyEgZVcGRhdGUa"
    "AnYxIggIwcCG2AYQADIIRmllbGRzVjE60QEKzgF7ImY6ZGF0YSI6eyIuIjp7fSwiZjphIjp7fSwiZjplIjp7fX0sImY6aW1tdXRhYmxlIjp7fSwi"
    "ZjptZXRhZGF0YSI6eyJmOmFubm90YXRpb25zIjp7Ii4iOnt9LCJmOmEiOnt9fSwiZjpmaW5hbGl6ZXJzIjp7Ii4iOnt9LCJ2OlwieC95XCIiOnt9"
    "fSwiZjpvd25lclJlZmVyZW5jZXMiOnsiLiI6e30sIms6e1widWlkXCI6XCJ1XCJ9Ijp7fX19LCJmOnR5cGUiOnt9fUIAEgYKAWESAWISBQoBZRIA"
    "GgZPcGFxdWUoABoAIgA="
)
RECORDED_EVENT = (
    "azhzAAoZChBldmVudHMuazhzLmlvL3YxEgVFdmVudBK7AwrRAgoCZTISABoHZGVmYXVsdCIAKiRkZmE4ZmZmOS1iYjhlLTQyODAtOTU1MS01N2Rl"
    "MDNkNTY5YzEyBDY5OTQ4AEIICMHAhtgGEACKAYQCCghyZWNvcmRlchIGVXBkYXRlGhBldmVudHMuazhzLmlvL3YxIggIwcCG2AYQADIIRmllbGRz"
    "VjE6xwEKxAF7ImY6YWN0aW9uIjp7fSwiZjpldmVudFRpbWUiOnt9LCJmOm5vdGUiOnt9LCJmOnJlYXNvbiI6e30sImY6cmVnYXJkaW5nIjp7fSwi"
    "ZjpyZXBvcnRpbmdDb250cm9sbGVyIjp7fSwiZjpyZXBvcnRpbmdJbnN0YW5jZSI6e30sImY6c2VyaWVzIjp7Ii4iOnt9LCJmOmNvdW50Ijp7fSwi"
    "ZjpsYXN0T2JzZXJ2ZWRUaW1lIjp7fX0sImY6dHlwZSI6e319QgASCwil69zKBhCAlO86Gg8IBBILCKXr3MoGEICU7zoiBmMuaW8veCoBaTIBYToB"
    "ckIfCglDb25maWdNYXASB2RlZmF1bHQaAXgiACoAMgA6AFIBbloGTm9ybWFsYgQKABIAagByAHgAGgAiAA=="
)


KINDS = {(kind.api_version, kind.kind): kind for kind in (*BUILTIN_KINDS, *REVIEW_KINDS)}


def read(data: bytes) -> JsonObject:
    """The object that a body stands for."""
    document = decode(data)
    typed = KINDS[document["apiVersion"], document["kind"]].typed
    assert typed is not None
    read, unknown = typed.decode(document)
    assert unknown == []
    return read


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def field(number: int, value: Any) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def body(api_version: str, kind: str, *fields: bytes) -> bytes:
    meta = field(1, api_version) + field(2, kind)
    return b"k8s\0" + field(1, meta) + field(2, b"".join(fields)) + field(3, "") + field(4, "")


def named(name: str) -> bytes:
    return field(1, field(1, name) + field(2, "") + field(7, 0) + field(8, b""))


def test_a_secret_recorded_from_a_real_server_reads_as_its_json() -> None:
    secret = read(base64.b64decode(RECORDED_SECRET))
    managed = secret["metadata"].pop("managedFields")
    assert secret == {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": "s",
            "namespace": "default",
            "uid": "3ab2ec28-456b-4e02-81e0-5c443f05a62c",
            "resourceVersion": "6993",
            "creationTimestamp": "2026-11-21T13:44:33Z",
            "deletionTimestamp": "2026-11-21T13:44:33Z",
            "deletionGracePeriodSeconds": 0,
            "annotations": {"a": ""},
            "ownerReferences": [
                {"kind": "Namespace", "name": "x", "uid": "u", "apiVersion": "v1", "controller": False}
            ],
            "finalizers": ["x/y"],
        },
        "data": {"a": "Yg==", "e": ""},
        "type": "Opaque",
        "immutable": False,
    }
    assert managed[0]["fieldsV1"]["f:data"] == {".": {}, "f:a": {}, "f:e": {}}


def test_an_event_recorded_from_a_real_server_keeps_its_microseconds() -> None:
    event = read(base64.b64decode(RECORDED_EVENT))
    del event["metadata"]
    assert event == {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "eventTime": "2026-01-02T03:04:05.123456Z",
        "series": {"count": 4, "lastObservedTime": "2026-01-02T03:04:05.123456Z"},
        "reportingController": "c.io/x",
        "reportingInstance": "i",
        "action": "a",
        "reason": "r",
        "regarding": {"kind": "ConfigMap", "namespace": "default", "name": "x"},
        "note": "n",
        "type": "Normal",
        "deprecatedSource": {},
        "deprecatedFirstTimestamp": None,
        "deprecatedLastTimestamp": None,
    }


def test_a_namespace_as_kubectl_sends_it_has_no_empty_leftovers() -> None:
    sent = body("v1", "Namespace", named("dev"), field(2, b""), field(3, field(1, "")))
    assert read(sent) == {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": "dev", "labels": {"kubernetes.io/metadata.name": "dev"}},
        "spec": {},
        "status": {"phase": "Active"},
    }


def test_an_empty_value_behind_a_pointer_is_a_value() -> None:
    spec = field(1, "me") + field(2, 15) + field(5, 0)
    assert read(body("coordination.k8s.io/v1", "Lease", named("l"), field(2, spec)))["spec"] == {
        "holderIdentity": "me",
        "leaseDurationSeconds": 15,
        "leaseTransitions": 0,
    }


def test_delete_options_are_read_in_every_group() -> None:
    options = field(1, 0) + field(2, field(1, "uid-1")) + field(4, "Foreground") + field(5, "All")
    for group in ("v1", "apps/v1", "kardinal.io/v1alpha1"):
        assert decode(body(group, "DeleteOptions", options)) == {
            "apiVersion": group,
            "kind": "DeleteOptions",
            "gracePeriodSeconds": 0,
            "preconditions": {"uid": "uid-1"},
            "propagationPolicy": "Foreground",
            "dryRun": ["All"],
        }


def test_an_access_review_carries_groups_and_extra() -> None:
    attributes = field(1, "dev") + field(2, "get") + field(5, "secrets")
    extra = field(1, "scopes") + field(2, field(1, "a") + field(1, "b"))
    spec = field(1, attributes) + field(3, "jane") + field(4, "ops") + field(4, "devs") + field(5, extra)
    review = read(
        body("authorization.k8s.io/v1", "SubjectAccessReview", named(""), field(2, spec), field(3, field(1, 0)))
    )
    assert review["spec"] == {
        "resourceAttributes": {"namespace": "dev", "verb": "get", "resource": "secrets"},
        "user": "jane",
        "groups": ["ops", "devs"],
        "extra": {"scopes": ["a", "b"]},
    }
    assert review["status"] == {"allowed": False}


def test_a_negative_number_keeps_its_sign() -> None:
    options = decode(body("v1", "DeleteOptions", field(1, -1)))
    assert options["gracePeriodSeconds"] == -1


def test_an_unknown_field_is_named_and_never_dropped() -> None:
    with pytest.raises(UnsupportedProtobuf, match="unknown field 99 of ConfigMap") as refused:
        decode(body("v1", "ConfigMap", named("c"), field(99, "new")))
    assert refused.value.unknown_field


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"{}", "prefix"),
        (body("apps/v2", "Deployment", named("d")), "apps/v2, Kind=Deployment are not supported"),
        (body("v1", "ConfigMap", b"\x0a\xff"), "not a well-formed"),
        (body("v1", "ConfigMap", b"\x0d1234"), "not a well-formed"),
        (body("v1", "ConfigMap", field(1, 7)), "not a well-formed"),
        (body("v1", "ConfigMap", field(1, field(1, b"\xff"))), "not a well-formed"),
        (b"k8s\0\x0a", "not a well-formed"),
    ],
    ids=["json", "kind", "truncated", "wire type", "wrong shape", "no utf-8", "no envelope"],
)
def test_what_cannot_be_read_is_refused_and_is_no_unknown_field(data: bytes, words: str) -> None:
    with pytest.raises(UnsupportedProtobuf, match=words) as refused:
        decode(data)
    assert not refused.value.unknown_field


def encoded(type_: str, above: tuple[str, ...]) -> tuple[Any, Any]:
    """A value of a type with every field set, as protobuf and as JSON; a type is not put into itself."""
    if type_ in SAMPLES:
        return SAMPLES[type_]
    message, document = b"", JsonObject()
    for one in struct(type_).by_number.values():
        if one.type in above:
            continue
        sent, shown = encoded(one.type, (*above, one.type))
        message += tagged(one, sent)
        if one.empty == "~":
            document |= shown
        else:
            document[one.name] = [shown] if one.many == "[" else {"k": shown} if one.many == "{" else shown
    return message, document


def tagged(one: Field, sent: Any) -> bytes:
    if one.many == "{":
        sent = field(1, "k") + field(2, sent)
    if isinstance(sent, float):
        return varint(one.number << 3 | 1) + binary.pack("<d", sent)
    return field(one.number, sent)


CRDS = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1."
MOMENT = field(1, 1767323045) + field(2, 123456000)
SAMPLES: dict[str, tuple[Any, Any]] = {
    "string": ("text", "text"),
    "bool": (1, True),
    "int32": (-7, -7),
    "int64": (1 << 40, 1 << 40),
    "double": (0.5, 0.5),
    "bytes": (b"\xff", "/w=="),
    f"{META}Time": (MOMENT, "2026-01-02T03:04:05Z"),
    f"{META}MicroTime": (MOMENT, "2026-01-02T03:04:05.123456Z"),
    f"{META}FieldsV1": (field(1, b'{"f:a":{}}'), {"f:a": {}}),
    "io.k8s.api.authentication.v1.ExtraValue": (field(1, "a"), ["a"]),
    "io.k8s.api.authorization.v1.ExtraValue": (field(1, "a"), ["a"]),
    "io.k8s.apimachinery.pkg.api.resource.Quantity": (field(1, "2Gi"), "2Gi"),
    "io.k8s.apimachinery.pkg.runtime.RawExtension": (field(1, b'{"a":1}'), {"a": 1}),
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": (field(1, 1) + field(2, 0) + field(3, "25%"), "25%"),
    f"{CRDS}JSON": (field(1, b"[1]"), [1]),
    f"{CRDS}JSONSchemaPropsOrArray": (field(1, field(5, "string")), {"type": "string"}),
    f"{CRDS}JSONSchemaPropsOrBool": (field(1, 1), True),
    f"{CRDS}JSONSchemaPropsOrStringArray": (field(2, "a"), ["a"]),
}


@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: f"{kind.kind}.{kind.group}")
def test_every_field_of_every_kind_is_read(kind: Kind) -> None:
    name = schema_name(kind.group, kind.version, kind.kind)
    message, document = encoded(name, (name,))
    decoded = decode(body(kind.api_version, kind.kind, message))
    assert decoded == document | {"apiVersion": kind.api_version, "kind": kind.kind}
    assert kind.typed is not None
    kept, unknown = kind.typed.decode(decoded)
    assert unknown == []
    assert kept.keys() == decoded.keys() - {"stringData"}


@given(st.binary(max_size=60))
@settings(max_examples=60, deadline=None)
def test_no_bytes_make_the_decoder_fail_otherwise(data: bytes) -> None:
    with contextlib.suppress(UnsupportedProtobuf):
        assert decode(body("v1", "Secret", data))["kind"] == "Secret"
