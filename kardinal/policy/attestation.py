"""Attestations: which token a Bundle was posted with, in a form that only the controller can write.

Labels of a Bundle say what its creator likes them to say. An attestation is an annotation that the webhook writes when
it creates a Bundle, with an HMAC under the controller's own key. It covers what the Bundle is (namespace, name,
Pipeline, type, artifacts, provenance and `intent.skip`) and the scope of the token, so that a copy is worth nothing on
another Bundle, nor on this one after a change. The time of the creation is covered, too: the API server stamps it, so
a Bundle that is deleted and made again under its name is not attested any more.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import orjson

from kardinal.api import Bundle
from kardinal.api.names import ANNOTATION_ATTESTATION, LABEL_PIPELINE, label_value

__all__ = ["NOT_ATTESTED", "Attestation", "Attestor", "Scope"]

CREATION_TOLERANCE = timedelta(minutes=5)
"""How far the clocks of the controller and of the API server may be apart."""
LIMIT = 16 * 1024
"""Characters of an attestation that are read."""

_VERSION = 1


@dataclass(frozen=True, slots=True)
class Scope:
    """The part of a token's scope that gates can read: its name, and what of `intent.skip` it may leave out."""

    token: str
    may_skip: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        return {"token": self.token, "maySkip": list(self.may_skip)}


@dataclass(frozen=True, slots=True)
class Attestation:
    """The scope that a Bundle is proven to have been posted with; without one, `problem` says why."""

    scope: Scope | None = None
    problem: str = ""


NOT_ATTESTED = Attestation(problem="the Bundle has no attestation: it was not posted to the webhook")
_CHANGED = Attestation(problem="the attestation does not fit the Bundle: it was copied, or the Bundle was changed")
_LATER = Attestation(problem="the attestation does not fit the Bundle: it was created again at another time")


class Attestor:
    """Writes and verifies attestations under one key."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def attest(self, bundle: Bundle, scope: Scope, *, now: datetime) -> str:
        """Return the annotation for a Bundle that is about to be created."""
        issued = int(now.timestamp())
        document = {**scope.to_json(), "issued": issued, "mac": self._mac(bundle, scope, issued)}
        return orjson.dumps(document).decode()

    def verify(self, bundle: Bundle) -> Attestation:
        """Return what the annotation of a Bundle proves."""
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

    def _mac(self, bundle: Bundle, scope: Scope, issued: int) -> str:
        spec = bundle.spec
        # The Pipeline that the Bundle is pinned to; until then the one that it names.
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


def _read(text: str) -> tuple[Scope, int, str] | None:
    """Return scope, time and HMAC of an annotation, which anyone may have written; None where it is not one."""
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
            return Scope(token, tuple(may_skip)), issued, mac
    return None
