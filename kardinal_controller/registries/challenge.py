"""Read the header `WWW-Authenticate` of a registry (pure): RFC 9110, section 11.6.1, and the token specification.

A registry names its token service itself, so the answer is the word of the registry: where it may lead is decided by
who reads it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlencode, urlsplit

from kardinal_controller.registries.errors import RegistryError

__all__ = ["Challenge", "read_challenge", "token_url"]

_LIMIT = 4096
"""Characters of a header that are read."""
_SCHEME = re.compile(r"\s*([A-Za-z]+)\s*")
_PARAMETER = re.compile(r'\s*,?\s*([A-Za-z_-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s",]+))')


@dataclass(frozen=True, slots=True)
class Challenge:
    """The demand of a registry: `scheme` in lower case, with its parameters."""

    scheme: str
    parameters: Mapping[str, str] = field(default_factory=dict)


def read_challenge(header: str) -> Challenge:
    """Return the first challenge of a header; one without a scheme where it cannot be read."""
    header = header[:_LIMIT]
    scheme = _SCHEME.match(header)
    if scheme is None:
        return Challenge("")
    parameters: dict[str, str] = {}
    position = scheme.end()
    while (found := _PARAMETER.match(header, position)) is not None:
        value = found[3] if found[2] is None else re.sub(r"\\(.)", r"\1", found[2])
        parameters.setdefault(found[1].lower(), value)
        position = found.end()
    return Challenge(scheme[1].lower(), parameters)


def token_url(challenge: Challenge, *, registry: str, path: str) -> str:
    """Return the URL at which the token service is asked for a token that reads one repository.

    The scope is ours and not that of the challenge. Raises `RegistryError`.
    """
    realm = challenge.parameters.get("realm", "")
    try:
        parts = urlsplit(realm)
        usable = bool(parts.hostname) and parts.username is None and not parts.fragment and (parts.port or 1) > 0
    except ValueError:
        usable = False
    if not usable or parts.scheme not in ("https", "http") or not realm.isascii() or not realm.isprintable():
        raise RegistryError(f"registry {registry} names no token service that can be asked")
    service = challenge.parameters.get("service")
    query = {**({"service": service} if service else {}), "scope": f"repository:{path}:pull"}
    return f"{realm}{'&' if parts.query else '?'}{urlencode(query)}"
