"""Issue tokens for `kubectl create token`: the subresource `token` of ServiceAccounts."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from kardinal_local.plane.apply import Writer, track_update
from kardinal_local.plane.builtin import BuiltinType
from kardinal_local.plane.clock import Clock
from kardinal_local.plane.documents import JsonObject, timestamp
from kardinal_local.plane.errors import Cause
from kardinal_local.plane.kinds import Kind
from kardinal_local.plane.security.accounts import ISSUER, Accounts
from kardinal_local.plane.statuses import bad_request, conflict, invalid, not_found
from kardinal_local.plane.storage import Committed, Entry

__all__ = ["TOKEN_REQUEST", "TokenRequests"]

_LIFETIME = 3600
_SHORTEST, _LONGEST = 600, 1 << 32
_GROUP = "authentication.k8s.io"
_TYPE = BuiltinType(_GROUP, "v1", "TokenRequest")
TOKEN_REQUEST = Kind(_GROUP, "v1", "TokenRequest", "tokenrequests", "tokenrequest", "", stored=False, typed=_TYPE)
_BINDABLE = {"Pod": "pods", "Secret": "secrets"}


class TokenRequests:
    """Answers them."""

    def __init__(self, store: Committed, accounts: Accounts, *, clock: Clock) -> None:
        self._store = store
        self._accounts = accounts
        self._clock = clock

    def answer(self, kind: Kind, document: JsonObject, *, namespace: str, name: str, manager: str) -> JsonObject:
        """The request with a token in its status."""
        metadata = document.get("metadata") or {}
        for key, expected in (("name", name), ("namespace", namespace)):
            if metadata.get(key) not in (None, "", expected):
                explanation = f"must match the service account {key} if specified"
                raise invalid(TOKEN_REQUEST, name, [_wrong(f"metadata.{key}", f'"{metadata[key]}"', explanation)])
        account = self._store.get(kind.storage, namespace=namespace, name=name)
        if account is None:
            raise not_found(kind, name)
        spec = {key: value for key, value in (document.get("spec") or {}).items() if value is not None}
        seconds = spec.get("expirationSeconds", _LIFETIME)
        _check_lifetime(seconds)
        bound = self._bound(spec.get("boundObjectRef"), namespace=namespace, account=name)
        now = self._clock.now()
        lifetime = timedelta(seconds=seconds)
        audiences = spec.get("audiences") or [ISSUER]
        request: JsonObject = {
            "apiVersion": TOKEN_REQUEST.api_version,
            "kind": TOKEN_REQUEST.kind,
            "metadata": {
                "name": name,
                "namespace": namespace,
                "uid": account.uid,
                "creationTimestamp": timestamp(now),
            },
            "spec": {**spec, "expirationSeconds": seconds},
        }
        tracked = track_update(None, request, by=Writer(manager, now, "token", blank=_TYPE.blank), schema=_TYPE.schema)
        if tracked:
            request["metadata"]["managedFields"] = tracked
        request["spec"] = {"boundObjectRef": None, **request["spec"], "audiences": audiences}
        token = self._accounts.issue(account, audiences=audiences, lifetime=lifetime, bound=bound)
        return request | {"status": {"token": token, "expirationTimestamp": timestamp(now + lifetime)}}

    def _bound(self, reference: JsonObject | None, *, namespace: str, account: str) -> Entry | None:
        """The object whose end shall be the token's end too."""
        if reference is None:
            return None
        version, kind, name = reference.get("apiVersion", ""), reference.get("kind", ""), reference.get("name", "")
        plural = _BINDABLE.get(kind) if version == "v1" else None
        if plural is None:
            slash = "/" in version
            raise bad_request(f"cannot bind token to object of type {version if slash else f'/{version}'}, Kind={kind}")
        bindable = Kind("", "v1", kind, plural, kind.lower(), f"{kind}List")
        entry = self._store.get(plural, namespace=namespace, name=name)
        if entry is None:
            raise not_found(bindable, name)
        if kind == "Pod" and entry.decode().get("spec", {}).get("serviceAccountName") != account:
            raise bad_request(
                f'cannot bind token for serviceaccount "{account}" to pod running with different serviceaccount name.'
            )
        if reference.get("uid") not in (None, "", entry.uid):
            explanation = (
                f"the UID in the bound object reference ({reference['uid']}) does not match the UID in record. "
                "The object might have been deleted and then recreated"
            )
            raise conflict(bindable, name, explanation)
        return entry


def _check_lifetime(seconds: Any) -> None:
    if not isinstance(seconds, int):
        raise bad_request("expirationSeconds must be an integer")
    explanation = ""
    if seconds < _SHORTEST:
        explanation = "may not specify a duration less than 10 minutes"
    elif seconds > _LONGEST:
        explanation = "may not specify a duration larger than 2^32 seconds"
    if explanation:
        raise invalid(TOKEN_REQUEST, "", [_wrong("spec.expirationSeconds", str(seconds), explanation)])


def _wrong(field: str, value: str, explanation: str) -> Cause:
    return Cause("FieldValueInvalid", field, f"Invalid value: {value}: {explanation}")
