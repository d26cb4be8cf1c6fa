"""The credentials of the user in a kubeconfig.

The first of these counts: an auth-provider; a token, where the token of a plugin replaces the user's own; a file with a
token; a name with a password. A client certificate is presented in addition to any of them.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass, field, replace
from pathlib import Path

from kardinal.kube import plugins
from kardinal.kube.contexts import ConfigEntry, Unusable

__all__ = ["UserCredentials", "read_credentials"]

PLUGIN_LIFETIME = 600.0
"""The interval in seconds at which an exec plugin is run again.

A plugin may return client certificates, whose expiry causes no answer 401.
"""
TOKEN_FILE_LIFETIME = 60.0
"""The interval in seconds at which a token file is read again; its writer replaces the token before it expires."""

_PROVIDERS = ("gcp", "oidc")


@dataclass(frozen=True, slots=True)
class UserCredentials:
    """The result of loading the credentials of a user once."""

    authorization: str | None = field(repr=False)
    """The value of the header `Authorization`."""
    certificate: Path | None
    key: Path | None
    lifetime: float | None
    """Seconds until the credentials should be loaded again; None: only after a 401."""


def read_credentials(user: ConfigEntry, scratch: Path) -> UserCredentials:
    """Read files, and run the plugin or ask the provider of the user; embedded files are written into `scratch`.

    Raises Unusable, and TimeoutError if a plugin does not answer in time.
    """
    plugin = user.settings.get("exec")
    if plugin:
        user = replace(user, settings={**user.settings, **plugins.run_plugin(plugin)})
    authorization, lifetime = _authorization(user)
    return UserCredentials(
        authorization=authorization,
        certificate=user.file("client-certificate", scratch),
        key=user.file("client-key", scratch),
        lifetime=PLUGIN_LIFETIME if plugin else lifetime,
    )


def _authorization(user: ConfigEntry) -> tuple[str | None, float | None]:
    """Return the header, and the seconds until the credentials should be loaded again."""
    provider = user.settings.get("auth-provider")
    if isinstance(provider, dict) and provider.get("name") in _PROVIDERS:
        return plugins.ask_provider(user.settings), None
    if token := user.text("token"):
        return f"Bearer {token}", None
    if path := user.path("tokenFile"):
        if token := path.read_text().strip():
            return f"Bearer {token}", TOKEN_FILE_LIFETIME
        raise Unusable(f"{path} is empty: tokenFile of {user.title} must hold a token")
    name = user.text("username")
    password = user.text("password")
    if name is not None and password is not None:
        return "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode(), None
    return None, None
