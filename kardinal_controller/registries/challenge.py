"""Parse the header `WWW-Authenticate` of a registry (pure): RFC 9110, section 11.6.1, and the token specification.

    WWW-Authenticate: Bearer realm="https://auth.docker.io/token",service="registry.docker.io"

The registry itself names its token service, so the caller must check where the URL leads.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlencode, urlsplit

from kardinal_controller.registries.errors import RegistryError

__all__ = ["Challenge", "read_challenge", "token_url"]

_LIMIT = 4096
"""The maximum length of a header that is parsed, in characters."""
_SCHEME = re.compile(r"\s*([A-Za-z]+)\s*")
_PARAMETER = re.compile(r'\s*+(?:,\s*+)?([A-Za-z_-]++)\s*+=\s*+(?:"((?:[^"\\]|\\.)*)"|([^\s",]+))')


@dataclass(frozen=True, slots=True)
class Challenge:
    """The authentication that a registry demands: `scheme` in lower case, with its parameters."""

    scheme: str
    parameters: Mapping[str, str] = field(default_factory=dict)


def read_challenge(header: str) -> Challenge:
    """Return the first challenge of a header; its scheme is empty if the header is malformed."""
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
    """Return the URL at which to request a token for reading one repository.

    For example `https://auth.docker.io/token?service=registry.docker.io&scope=repository%3Alibrary%2Fnginx%3Apull`.

    The scope is computed here and not taken from the challenge. Raises `RegistryError`.
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
