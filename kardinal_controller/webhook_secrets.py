"""The Secret that signs the deliveries of a Git host: which of its values is used, and what is wrong with it."""

from __future__ import annotations

from kardinal.api.names import CREDENTIALS_WEBHOOK, LABEL_CREDENTIALS
from kardinal.objects import JsonObject, labels_of
from kardinal.objects.secrets import SecretValueError, secret_value

__all__ = ["KEY", "webhook_secret"]

KEY = "webhookSecret"
_SHORTEST = 16
"""Bytes of a secret; a shorter one can be guessed, an empty one is none."""


def webhook_secret(secret: JsonObject) -> tuple[bytes, str]:
    """Return the secret in a Secret, or nothing and why it is not used."""
    if labels_of(secret).get(LABEL_CREDENTIALS) != CREDENTIALS_WEBHOOK:
        return b"", f"it has no label {LABEL_CREDENTIALS}={CREDENTIALS_WEBHOOK}"
    try:
        value = secret_value(secret, KEY).rstrip(b"\r\n")
    except SecretValueError as error:
        return b"", str(error)
    return (value, "") if len(value) >= _SHORTEST else (b"", f"{KEY} has less than {_SHORTEST} bytes")
