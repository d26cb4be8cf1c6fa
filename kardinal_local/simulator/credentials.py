"""Read the credentials of a Pipeline's repository from `git.secretRef`, by the same rules as the agent.

A Secret is sent only to the hosts that it names itself (`kardinal.git.secret_hosts`). The simulator does not create
tokens of a GitHub App; the error about such a Secret says so.
"""

from __future__ import annotations

from kardinal.git import GitCredentials
from kardinal.git.secret_credentials import UnusableSecret, credentials_of
from kardinal.git.secret_hosts import refused_host
from kardinal.kube import Client, NotFound
from kardinal.objects import SECRET, JsonObject
from kardinal.objects.errors import KardinalError
from kardinal.objects.secrets import SecretValueError
from kardinal.promotion.api.pipeline import Git
from kardinal.tree.repository_url import RepositoryURL

__all__ = ["NoCredentials", "credentials_for"]


class NoCredentials(KardinalError):
    """The Secret does not exist, is not meant for the host, or has no credentials that Git can use."""


async def credentials_for(client: Client, url: RepositoryURL, git: Git, namespace: str) -> GitCredentials | None:
    """Return the credentials of a repository; None for a local repository, or without `git.secretRef`.

    Raises `NoCredentials`.
    """
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
