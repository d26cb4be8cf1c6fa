"""A provider: what it can do, its pull requests, its webhooks and its credentials.

One module of `kardinal.scm` holds one `Provider`; packages of others add theirs by the entry point
`kardinal.providers`. A host is reached in two steps: `authenticate` turns the values of a Secret into an
`Authenticator`, which Git uses as well, and `connect` returns the pull requests of one repository.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from kardinal.git import Repository
from kardinal.runtime.clock import Clock
from kardinal.scm.addresses import RepositoryAddress
from kardinal.scm.base import PullRequests, RequestObserver
from kardinal.scm.errors import AccessDenied, UnsupportedProvider
from kardinal.scm.http.authentication import Authenticator
from kardinal.scm.http.sessions import HostSessions
from kardinal.scm.webhooks import Delivery
from kardinal.steps.capabilities import Capabilities

__all__ = ["Provider", "Target"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One repository, and the means to reach its pull requests.

    `repository` is what a provider with the capability `local` works on; a host needs `sessions` and `authenticator`.
    `authority`: certificates in PEM form, instead of those of the machine. `namespace`: the one in the control plane
    whose share of memory the host's answers take.
    """

    url: str
    clock: Clock
    repository: Repository | None = None
    sessions: HostSessions | None = None
    authenticator: Authenticator | None = None
    authority: str = ""
    namespace: str = ""
    on_request: RequestObserver | None = None

    def host_access(self) -> tuple[HostSessions, Authenticator]:
        """Return what a host needs; raises where it is missing."""
        if self.sessions is None:
            raise UnsupportedProvider(f"{self.url}: no HTTP sessions were given")
        if self.authenticator is None:
            raise AccessDenied(
                f"the pull requests of {self.url} need a credential",
                remedy="Name a Secret with a token in git.secretRef",
                transient=False,
            )
        return self.sessions, self.authenticator


def no_credentials(values: Mapping[str, str], target: Target) -> Authenticator | None:
    """Return None: the provider has no API to authenticate at."""
    return None


def host_of_repository(url: str) -> str:
    """Return `host[:port]` of the API that is at the repository's own host."""
    return RepositoryAddress.of(url).origin.partition("://")[2].lower().removesuffix(":443")


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """One provider.

    `authenticate(values of the Secret, target)` returns None where the values hold no credential. `api_host(url of the
    repository)` names the only host that these values may be sent to by `connect`, which is None for a provider without
    pull requests. `parse_webhook(headers, raw body, secret)` raises `WebhookRejected`; it is None
    for a provider that sends no webhooks.
    """

    name: str
    capabilities: Capabilities
    connect: Callable[[Target], PullRequests] | None = None
    authenticate: Callable[[Mapping[str, str], Target], Authenticator | None] = no_credentials
    api_host: Callable[[str], str] = host_of_repository
    parse_webhook: Callable[[Mapping[str, str], bytes, bytes], Delivery] | None = None
