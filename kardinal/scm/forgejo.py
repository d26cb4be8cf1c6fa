"""Provider `forgejo`: the API of Gitea, from which Forgejo was forked, with its own headers for signed webhooks."""

from __future__ import annotations

from collections.abc import Mapping

from kardinal.scm.gitea import CAPABILITIES, authenticate, connect
from kardinal.scm.provider import Provider
from kardinal.scm.webhooks import Delivery, check_hmac, event_of, header_of, payload_of

__all__ = ["FORGEJO"]


def _parse_webhook(headers: Mapping[str, str], body: bytes, secret: bytes) -> Delivery:
    check_hmac(header_of(headers, "X-Forgejo-Signature"), body, secret)
    event = header_of(headers, "X-Forgejo-Event-Type") or header_of(headers, "X-Forgejo-Event")
    return event_of(payload_of(body), event)


FORGEJO = Provider(
    name="forgejo",
    capabilities=CAPABILITIES,
    connect=connect,
    authenticate=authenticate,
    parse_webhook=_parse_webhook,
)
