"""The error of registries. No message contains a value of a Secret, a token or the body of an answer."""

from __future__ import annotations

from kardinal.objects.errors import KardinalError

__all__ = ["RegistryError"]


class RegistryError(KardinalError):
    """A registry has not returned the digest of a tag; the message has the reason and the remedy."""
