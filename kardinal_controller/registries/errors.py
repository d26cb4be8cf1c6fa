"""The error of registries. No message holds a value of a Secret, a token or what a registry sent as a body."""

from __future__ import annotations

from kardinal.objects.errors import KardinalError

__all__ = ["RegistryError"]


class RegistryError(KardinalError):
    """A registry that has not told the digest of a tag; says why, and what to do about it."""
