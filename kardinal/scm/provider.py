"""A provider: its capabilities, its pull requests, its webhooks and its credentials.

Each provider module of `kardinal.scm` defines one `Provider`; other packages add theirs by the entry point
`kardinal.providers`. A host is accessed in two steps: `authenticate` turns the values of a Secret into an
`HostAuthenticator`, which Git uses as well, and `connect` returns the pull requests of one repository.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from kardinal.clock import Clock
from kardinal.git import Repository
from kardinal.objects.capabilities import Capabilities
from kardinal.scm.addresses import RepositoryAddress
from kardinal.scm.base import PullRequests, RequestObserver
from kardinal.scm.errors import AccessDenied, UnsupportedProvider
from kardinal.scm.http.authentication import HostAuthenticator
from kardinal.scm.http.client import Host, HostClient
from kardinal.scm.http.sessions import HostSessions
from kardinal.scm.webhooks import Delivery

__all__ = ["Provider", "RepositoryHost"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RepositoryHost:
    """One repository, and the means to access its pull requests.

    A provider with the capability `local` works on `repository`; a host needs `sessions` and `authenticator`.
    `authority`: certificates in PEM, instead of those of the machine. `namespace`: the namespace of the control plane
    whose share of memory the host's answers take.
    """

    url: str
    clock: Clock
    repository: Repository | None = None
    sessions: HostSessions | None = None
    authenticator: HostAuthenticator | None = None
    authority: str = ""
    namespace: str = ""
    on_request: RequestObserver | None = None

    def host_access(self) -> tuple[HostSessions, HostAuthenticator]:
        """Return the sessions and the authenticator for a host; raises if one of them is missing."""
        if self.sessions is None:
            raise UnsupportedProvider(f"{self.url}: no HTTP sessions were given")
        if self.authenticator is None:
            raise AccessDenied(
                f"the pull requests of {self.url} need a credential",
                remedy="Name a Secret with a token in git.secretRef",
                transient=False,
            )
        return self.sessions, self.authenticator

    def client(self, host: Host) -> HostClient:
        """Return the client of a host's API with the credential of the repository."""
        sessions, authenticator = self.host_access()
        return HostClient(
            host,
            sessions=sessions,
            authenticator=authenticator,
            authority=self.authority,
            namespace=self.namespace,
            on_request=self.on_request,
        )


def no_credentials(values: Mapping[str, str], target: RepositoryHost) -> HostAuthenticator | None:
    """Return None, because the provider has no API."""
    return None


def host_of_repository(url: str) -> str:
    """Return `host[:port]` of an API at the repository's own host."""
    return RepositoryAddress.of(url).origin.partition("://")[2].lower().removesuffix(":443")


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """One provider.

    `authenticate(values of the Secret, target)` returns None if the values contain no credential. `api_host(url of the
    repository)` names the only host to which `connect` may send these values. `connect` is None for a provider without
    pull requests. `parse_webhook(headers, raw body, secret)` raises `WebhookRejected`; it is None for a provider
    without webhooks.
    """

    name: str
    capabilities: Capabilities
    connect: Callable[[RepositoryHost], PullRequests] | None = None
    authenticate: Callable[[Mapping[str, str], RepositoryHost], HostAuthenticator | None] = no_credentials
    api_host: Callable[[str], str] = host_of_repository
    parse_webhook: Callable[[Mapping[str, str], bytes, bytes], Delivery] | None = None
