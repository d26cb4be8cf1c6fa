"""The credentials of the user of a kubeconfig.

The first of these counts: an auth-provider, a token (that of a plugin takes the place of the user's own), a file
with a token, a name with a password. A client certificate is presented beside any of them.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass, field, replace
from pathlib import Path

from kardinal.kube import plugins
from kardinal.kube.contexts import Entry, Unusable

__all__ = ["Credentials", "read_credentials"]

PLUGIN_LIFETIME = 600.0
"""Seconds. A plugin may hand out client certificates, whose end no 401 announces: it is asked again now and then."""
TOKEN_FILE_LIFETIME = 60.0
"""Seconds. Who writes a token into a file replaces it before it ends."""

_PROVIDERS = ("gcp", "oidc")


@dataclass(frozen=True, slots=True)
class Credentials:
    """The result of one load of a user."""

    authorization: str | None = field(repr=False)
    """The header of that name."""
    certificate: Path | None
    key: Path | None
    lifetime: float | None
    """Seconds until it is worth loading again; None: only a 401 makes it so."""


def read_credentials(user: Entry, scratch: Path) -> Credentials:
    """Read files, and run a plugin or ask a provider if the user has one; embedded files go into `scratch`.

    Raises Unusable, and TimeoutError when a plugin does not answer in time.
    """
    plugin = user.settings.get("exec")
    if plugin:
        user = replace(user, settings={**user.settings, **plugins.run_plugin(plugin)})
    authorization, lifetime = _authorization(user)
    return Credentials(
        authorization=authorization,
        certificate=user.file("client-certificate", scratch),
        key=user.file("client-key", scratch),
        lifetime=PLUGIN_LIFETIME if plugin else lifetime,
    )


def _authorization(user: Entry) -> tuple[str | None, float | None]:
    """Return the header, and the seconds until it is worth loading again."""
    provider = user.settings.get("auth-provider")
    if isinstance(provider, dict) and provider.get("name") in _PROVIDERS:
        return plugins.ask_provider(user.settings), None
    if token := user.text("token"):
        return f"Bearer {token}", None
    if path := user.path("tokenFile"):
        if token := path.read_text().strip():
            return f"Bearer {token}", TOKEN_FILE_LIFETIME
        raise Unusable(f"{path} is empty: tokenFile of {user.title} must hold a token")
    name, password = user.text("username"), user.text("password")
    if name is not None and password is not None:
        return "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode(), None
    return None, None
