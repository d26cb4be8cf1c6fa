"""The values of a Secret, which travel as base64.

Errors name the Secret and the key, never a value: they end in statuses, Events and logs.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from kardinal.objects.errors import KardinalError

__all__ = ["SecretValueError", "secret_text", "secret_value", "text_values"]


class SecretValueError(KardinalError):
    """A value of a Secret that cannot be read."""

    def __init__(self, secret: Mapping[str, Any], key: str, problem: str) -> None:
        metadata = secret.get("metadata") or {}
        name = "/".join(metadata[part] for part in ("namespace", "name") if metadata.get(part))
        super().__init__(f"key {key} of Secret {name or 'without a name'} {problem}")


def secret_value(secret: Mapping[str, Any], key: str) -> bytes:
    """Return the decoded value of `key`; empty when the Secret does not have it. Raises `SecretValueError`."""
    encoded = (secret.get("data") or {}).get(key) or ""
    try:
        return base64.b64decode(encoded, validate=True)
    except ValueError:
        raise SecretValueError(secret, key, "is not base64") from None


def secret_text(secret: Mapping[str, Any], key: str) -> str:
    """Return the value of `key` as text; empty when the Secret does not have it. Raises `SecretValueError`."""
    try:
        return secret_value(secret, key).decode()
    except UnicodeDecodeError:
        raise SecretValueError(secret, key, "is not text") from None


def text_values(secret: Mapping[str, Any]) -> dict[str, str]:
    """Return all values that are text; the others are left out."""
    values = {}
    for key in secret.get("data") or {}:
        with suppress(SecretValueError):
            values[key] = secret_text(secret, key)
    return values
