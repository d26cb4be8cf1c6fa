"""Validate ConfigMaps, Secrets, persistent volumes and their claims, and quotas."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from typing import Final

from kardinal_local.plane.builtin.quantities import parse
from kardinal_local.plane.builtin.validation.faults import (
    Check,
    forbidden,
    immutable,
    invalid,
    one_of,
    required,
)
from kardinal_local.plane.documents import JsonObject
from kardinal_local.plane.errors import Cause
from kardinal_local.plane.schemas import causes

__all__ = ["CHECKS"]

_DATA_LIMIT: Final = 1 << 20
_KEY: Final = re.compile(r"[-._a-zA-Z0-9]+")
_KEY_HELP: Final = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  "
    "or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)
_SECRET_KEYS: Final = {
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
}
_ACCOUNT_NAME: Final = "kubernetes.io/service-account.name"
_ACCESS_MODES: Final = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_CLAIMS_CHANGE: Final = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims\n"
)


def _config_map(config: JsonObject, old: JsonObject | None) -> Iterator[Cause]:
    texts, bytes_ = config.get("data", {}), config.get("binaryData", {})
    for key in texts:
        yield from _key(f"data[{key}]", key)
        if key in bytes_:
            yield invalid(f"data[{key}]", key, "duplicate of key present in binaryData")
    for key in bytes_:
        yield from _key(f"binaryData[{key}]", key)
    size = sum(len(value.encode()) for value in texts.values()) + sum(map(_size, bytes_.values()))
    if size > _DATA_LIMIT:
        yield Cause("FieldValueTooLong", "[]", f"Too long: may not be more than {_DATA_LIMIT} bytes")
    # By default there are texts, if none.
    before = None if old is None else {"data": {}, **old}
    yield from _immutable({"data": {}, **config}, before, "data", "binaryData")


def _secret(secret: JsonObject, old: JsonObject | None) -> Iterator[Cause]:
    data, kind = secret.get("data", {}), secret["type"]
    for key in data:
        yield from _key(f"data[{key}]", key)
    if sum(map(_size, data.values())) > _DATA_LIMIT:
        yield Cause("FieldValueTooLong", "data", f"Too long: may not be more than {_DATA_LIMIT} bytes")
    missing = [key for key in _SECRET_KEYS.get(kind, ()) if key not in data]
    yield from (required(f"data[{key}]") for key in missing)
    if kind == "kubernetes.io/service-account-token":
        if not secret["metadata"].get("annotations", {}).get(_ACCOUNT_NAME):
            yield required(f"metadata.annotations[{_ACCOUNT_NAME}]")
    elif kind == "kubernetes.io/basic-auth":
        if "username" not in data and "password" not in data:
            yield from (required(f"data[{key}]") for key in ("username", "password"))
    elif kind in ("kubernetes.io/dockercfg", "kubernetes.io/dockerconfigjson") and not missing:
        yield from _json(_SECRET_KEYS[kind][0], data)
    if old is not None:
        yield from immutable("type", kind, old["type"])
    yield from _immutable(secret, old, "data")


def _json(key: str, data: JsonObject) -> Iterator[Cause]:
    """A value that must be JSON; of what is in it nothing may be told but where it goes wrong."""
    text = base64.b64decode(data[key] or "").decode(errors="replace")
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        found = (
            f"invalid character '{text[error.pos]}' looking for beginning of value"
            if text[error.pos :]
            else ("unexpected end of JSON input")
        )
        yield invalid(f"data[{key}]", "<secret contents redacted>", found)


def _key(path: str, key: str) -> Iterator[Cause]:
    if len(key) > 253:
        yield invalid(path, key, "must be no more than 253 characters")
    if not _KEY.fullmatch(key):
        yield invalid(path, key, _KEY_HELP)
    elif key in (".", "..") or key.startswith(".."):
        shown = f"must not be '{key}'" if key in (".", "..") else "must not start with '..'"
        yield invalid(path, key, shown)


def _size(encoded: str | None) -> int:
    return len(encoded) * 3 // 4 - encoded.count("=") if encoded else 0


def _immutable(document: JsonObject, old: JsonObject | None, *fields: str) -> Iterator[Cause]:
    """What was declared immutable stays as it is, and stays so."""
    if old is None or not old.get("immutable"):
        return
    detail = "field is immutable when `immutable` is set"
    if not document.get("immutable"):
        yield forbidden("immutable", detail)
    yield from (forbidden(field, detail) for field in fields if document.get(field) != old.get(field))


def _claim(claim: JsonObject, old: JsonObject | None) -> Iterator[Cause]:
    spec = claim["spec"]
    modes = spec.get("accessModes", [])
    if not modes:
        yield required("spec.accessModes", "at least 1 access mode is required")
    for mode in modes:
        yield from one_of("spec.accessModes", mode, _ACCESS_MODES)
    storage = spec["resources"].get("requests", {}).get("storage")
    if storage is None:
        yield required("spec.resources[storage]")
    elif parse(storage) <= 0:
        yield invalid("spec.resources[storage]", storage, "must be greater than zero")
    if old is not None and _fixed(spec) != _fixed(old["spec"]):
        yield forbidden("spec", _CLAIMS_CHANGE)


def _fixed(spec: JsonObject) -> JsonObject:
    return {key: value for key, value in spec.items() if key not in ("resources", "volumeAttributesClassName")}


def _volume(volume: JsonObject, old: JsonObject | None) -> Iterator[Cause]:
    spec = volume["spec"]
    modes, capacity = spec.get("accessModes", []), spec.get("capacity")
    if not modes:
        yield required("spec.accessModes")
    for mode in modes:
        yield from one_of("spec.accessModes", mode, _ACCESS_MODES)
    if not capacity:
        yield required("spec.capacity")
    if capacity is None or "storage" not in capacity or len(capacity) > 1:
        yield causes.not_supported("spec.capacity", capacity, ["storage"])
    plain = {"accessModes", "capacity", "claimRef", "mountOptions", "nodeAffinity", "persistentVolumeReclaimPolicy"}
    if not spec.keys() - plain - {"storageClassName", "volumeAttributesClassName", "volumeMode"}:
        yield required("spec", "must specify a volume type")


def _quota(quota: JsonObject, old: JsonObject | None) -> Iterator[Cause]:
    for name, amount in quota["spec"].get("hard", {}).items():
        if parse(amount) < 0:
            yield invalid(f"spec.hard[{name}]", amount, "must be greater than or equal to 0")


CHECKS: Final[dict[tuple[str, str], Check]] = {
    ("", "ConfigMap"): _config_map,
    ("", "PersistentVolume"): _volume,
    ("", "PersistentVolumeClaim"): _claim,
    ("", "ResourceQuota"): _quota,
    ("", "Secret"): _secret,
}
