"""Attestations prove with which webhook token a Bundle was posted; only the controller can write them.

The creator of a Bundle can write any label, so labels prove nothing. An attestation is the annotation that the webhook
writes when it creates a Bundle: JSON with an HMAC under the controller's own key. The HMAC covers the Bundle
(namespace, name, Pipeline, type, artifacts, provenance and `intent.skip`) and the scope of the token. It is therefore
invalid on another Bundle, and on this Bundle after a change. The HMAC also covers the time of creation, which the API
server stamps: a Bundle that is deleted and created again under the same name is no longer attested.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import orjson

from kardinal.promotion.api import Bundle
from kardinal.promotion.api.names import ANNOTATION_ATTESTATION, LABEL_PIPELINE, label_value

__all__ = ["NOT_ATTESTED", "Attestation", "Attestor", "TokenScope"]

CREATION_TOLERANCE = timedelta(minutes=5)
"""The largest accepted difference between the webhook's time of creation and that of the API server."""
LIMIT = 16 * 1024
"""The maximum length of an attestation, in characters; a longer one is not read."""

_VERSION = 1


@dataclass(frozen=True, slots=True)
class TokenScope:
    """The part of a token's scope that gates can read: its name, and the environments it may list in `intent.skip`."""

    token: str
    may_skip: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        return {"token": self.token, "maySkip": list(self.may_skip)}


@dataclass(frozen=True, slots=True)
class Attestation:
    """The proven scope of a Bundle's token; or None, and `problem` is the reason why nothing is proven."""

    scope: TokenScope | None = None
    problem: str = ""


NOT_ATTESTED = Attestation(problem="the Bundle has no attestation: it was not posted to the webhook")
_CHANGED = Attestation(problem="the attestation does not fit the Bundle: it was copied, or the Bundle was changed")
_LATER = Attestation(problem="the attestation does not fit the Bundle: it was created again at another time")


class Attestor:
    """Write and verify attestations with one HMAC key."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def attest(self, bundle: Bundle, scope: TokenScope, *, now: datetime) -> str:
        """Return the value of the attestation annotation for `bundle`, which the webhook is about to create."""
        issued = int(now.timestamp())
        document = {**scope.to_json(), "issued": issued, "mac": self._mac(bundle, scope, issued)}
        return orjson.dumps(document).decode()

    def verify(self, bundle: Bundle) -> Attestation:
        """Return the scope that the annotation of `bundle` proves, or the reason why it proves none."""
        text = bundle.metadata.annotations.get(ANNOTATION_ATTESTATION)
        if text is None:
            return NOT_ATTESTED
        read = _read(text)
        if read is None:
            return _CHANGED
        scope, issued, mac = read
        if not hmac.compare_digest(mac.encode(), self._mac(bundle, scope, issued).encode()):
            return _CHANGED
        created = bundle.metadata.creation_timestamp
        if created is None or abs(created.timestamp() - issued) > CREATION_TOLERANCE.total_seconds():
            return _LATER
        return Attestation(scope)

    def _mac(self, bundle: Bundle, scope: TokenScope, issued: int) -> str:
        spec = bundle.spec
        # A pinned Bundle stays with `status.pipeline`; before that, its label names the Pipeline.
        pipeline = bundle.status.pipeline or bundle.metadata.labels.get(LABEL_PIPELINE, "")
        covered = {
            "version": _VERSION,
            "namespace": bundle.metadata.namespace,
            "name": bundle.metadata.name,
            "pipeline": label_value(pipeline),
            "type": spec.type,
            "artifacts": spec.artifacts.to_json(),
            "provenance": spec.provenance.to_json() if spec.provenance else None,
            "skip": sorted(spec.intent.skip),
            "issued": issued,
            **scope.to_json(),
        }
        text = orjson.dumps(covered, option=orjson.OPT_SORT_KEYS)
        return hmac.digest(self._key, text, hashlib.sha256).hex()


def _read(text: str) -> tuple[TokenScope, int, str] | None:
    """Parse an annotation into scope, time of issue (Unix seconds) and HMAC; None if it is malformed.

    Any user may have written the annotation, so nothing about its content is trusted here.
    """
    if len(text) > LIMIT:
        return None
    try:
        document = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    match document:
        case {"token": str(token), "maySkip": list(may_skip), "issued": int(issued), "mac": str(mac)} if all(
            isinstance(name, str) for name in may_skip
        ):
            return TokenScope(token, tuple(may_skip)), issued, mac
    return None
