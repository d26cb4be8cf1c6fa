"""Deliveries of GitLab, with a secret token or a signature by the Standard Webhooks specification.

A webhook with a signing token (`whsec_…`) sends `webhook-signature`; one with a secret token sends `X-Gitlab-Token`.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from kardinal.scm.errors import WebhookRejected
from kardinal.scm.webhooks import Delivery, check_hmac, check_token, header_of, payload_of

__all__ = ["parse_webhook"]

_SIGNING_TOKEN = b"whsec_"
_MAX_SIGNATURES = 8
_MAX_NAME = 255
_FINISHED = frozenset({"success", "failed", "canceled", "skipped"})


def parse_webhook(headers: Mapping[str, str], body: bytes, secret: bytes) -> Delivery:
    """Check the signature if there is one, and otherwise the token, and parse the delivery.

    A right token does not replace a wrong signature.
    """
    signatures = header_of(headers, "webhook-signature")
    if signatures:
        _check_signatures(signatures, headers, body, secret)
    else:
        check_token(header_of(headers, "X-Gitlab-Token"), secret)
    return _event_of(payload_of(body), header_of(headers, "X-Gitlab-Event"))


def _check_signatures(signatures: str, headers: Mapping[str, str], body: bytes, secret: bytes) -> None:
    """Raise `WebhookRejected` unless one signature is `v1,` and the base64 of the HMAC-SHA256 of id, time and body."""
    identity = header_of(headers, "webhook-id")
    moment = header_of(headers, "webhook-timestamp")
    signed = f"{identity}.{moment}.".encode(errors="surrogateescape") + body
    key = _key(secret)
    *others, last = [_digest(one) for one in signatures.split()[:_MAX_SIGNATURES]] or [""]
    for digest in others:
        with suppress(WebhookRejected):
            check_hmac(digest, signed, key)
            return
    check_hmac(last, signed, key)


def _digest(signature: str) -> str:
    """Return a signature in the form that check_hmac takes; empty for another version."""
    version, _, encoded = signature.partition(",")
    with suppress(binascii.Error, ValueError):
        return base64.b64decode(encoded, validate=True).hex() if version == "v1" else ""
    return ""


def _key(secret: bytes) -> bytes:
    """Return the key of a signing token; for a damaged token, an empty key, which fails every check."""
    token = secret.strip()
    if not token.startswith(_SIGNING_TOKEN):
        return token
    try:
        return base64.b64decode(token.removeprefix(_SIGNING_TOKEN), validate=True)
    except binascii.Error:
        return b""


def _event_of(payload: Mapping[str, Any], event: str) -> Delivery:
    attributes = _mapping(payload.get("object_attributes"))
    project = _mapping(payload.get("project"))
    request = attributes if payload.get("object_kind") == "merge_request" else _mapping(payload.get("merge_request"))
    number = request.get("iid")
    ref = _text(payload.get("ref"), _MAX_NAME)
    commit = _mapping(request.get("last_commit")).get("id") or attributes.get("sha") or payload.get("after")
    edits = _mapping(payload.get("changes"))
    changed = attributes.get("action") == "update" and bool(attributes.get("oldrev") or edits.get("target_branch"))
    is_pipeline = payload.get("object_kind") == "pipeline"
    source = _text(request.get("source_branch"), _MAX_NAME)
    checked = (_text(attributes.get("sha"), 64), _text(attributes.get("ref"), _MAX_NAME), source)
    return Delivery(
        event=event[:64],
        repository=_text(project.get("git_http_url"), 2048),
        number=number if isinstance(number, int) and 0 < number < 2**53 else None,
        branch="" if is_pipeline else source or ref.removeprefix("refs/heads/"),
        commit=_text(commit, 64),
        proposed=request is attributes and (attributes.get("action") in ("open", "reopen") or changed),
        checked=tuple(filter(None, checked)) if is_pipeline and attributes.get("status") in _FINISHED else (),
    )


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: object, most: int) -> str:
    return value if isinstance(value, str) and len(value) <= most else ""
