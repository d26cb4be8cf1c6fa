"""Read the credentials of the repository that the simulator follows, from `git.secretRef` and by the agent's rules.

A Secret goes only to the hosts that it names itself (`kardinal.git.secret_hosts`), and to none before that is known.
The simulator mints no tokens: of a GitHub App it says so.
"""

from __future__ import annotations

from kardinal.api.pipeline import Git
from kardinal.api.repository_url import RepositoryURL
from kardinal.git import Credentials
from kardinal.git.secret_credentials import UnusableSecret, credentials_of
from kardinal.git.secret_hosts import refused_host
from kardinal.kube import Client, NotFound
from kardinal.objects import SECRET, JsonObject
from kardinal.objects.errors import KardinalError
from kardinal.objects.secrets import SecretValueError

__all__ = ["NoCredentials", "credentials_for"]


class NoCredentials(KardinalError):
    """A Secret that is missing, is not for the host, or has nothing that Git can use."""


async def credentials_for(client: Client, url: RepositoryURL, git: Git, namespace: str) -> Credentials | None:
    """Return what a repository at a host needs; None without a Secret. Raises `NoCredentials`."""
    if git.secret_ref is None or not url.host:
        return None
    name = git.secret_ref.name
    try:
        secret = await client.get(SECRET, name, namespace)
    except NotFound:
        raise NoCredentials(f"git.secretRef: Secret {namespace}/{name} does not exist: create it") from None
    if refusal := refused_host(secret, url.host):
        raise NoCredentials(f"git.secretRef: {refusal}")
    try:
        return credentials_of(secret, url.scheme)
    except (SecretValueError, UnusableSecret) as error:
        app = ": the simulator mints no tokens of a GitHub App, put one beside its key" if _is_app(secret) else ""
        raise NoCredentials(f"git.secretRef: {error}{app}") from None


def _is_app(secret: JsonObject) -> bool:
    return "appId" in (secret.get("data") or {})
