"""Read the key that signs the deliveries of a Git host from its Secret, and validate it."""

from __future__ import annotations

from kardinal.objects import JsonObject, labels_of
from kardinal.objects.secret_purposes import CREDENTIALS_WEBHOOK, LABEL_CREDENTIALS
from kardinal.objects.secrets import SecretValueError, secret_value

__all__ = ["KEY", "webhook_secret"]

KEY = "webhookSecret"
_SHORTEST = 16
"""The fewest bytes of a key; a shorter one can be guessed."""


def webhook_secret(secret: JsonObject) -> tuple[bytes, str]:
    """Return the key in a Secret and an empty text; or an empty key with the reason for which it is not used."""
    if labels_of(secret).get(LABEL_CREDENTIALS) != CREDENTIALS_WEBHOOK:
        return b"", f"it has no label {LABEL_CREDENTIALS}={CREDENTIALS_WEBHOOK}"
    try:
        value = secret_value(secret, KEY).rstrip(b"\r\n")
    except SecretValueError as error:
        return b"", str(error)
    return (value, "") if len(value) >= _SHORTEST else (b"", f"{KEY} has less than {_SHORTEST} bytes")
