"""The remote of a promotion: the repository of its PromotionStep, and the pull requests kept there.

Credentials are read at the moment they are needed, from the agent's own cluster, and handed on in an object that does
not show itself; nothing here keeps, logs or quotes them. The host is known before a Secret is read, and the Secret must
name it (`git_secrets`). The repositories behind are shared by all promotions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kardinal.api import PromotionStep
from kardinal.api.repository_url import RepositoryURL
from kardinal.git import Credentials, Repositories, Repository
from kardinal.kube import Client, Forbidden, NotFound
from kardinal.objects import SECRET, JsonObject
from kardinal.objects.secrets import SecretValueError
from kardinal.runtime import Clock
from kardinal.scm import PullRequests, RequestObserver, local_pull_requests
from kardinal_agent.errors import SecretUnreadable, StepFailed
from kardinal_agent.git_secrets import credentials_of, host_allowed, refused_host

__all__ = ["Remote", "RemoteRules", "Remotes"]


@dataclass(frozen=True, slots=True)
class RemoteRules:
    """The settings of an agent about remotes.

    `hosts`: globs of `host[:port]`, no other is contacted; empty for all. `namespaces`: where the Secrets of a
    namespace of the control plane are in the agent's own cluster, unless in the one of the same name.
    """

    hosts: Sequence[str] = ()
    namespaces: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Remote:
    """A repository and, where its provider has them, its pull requests."""

    repository: Repository
    pull_requests: PullRequests | None

    @property
    def proposals(self) -> PullRequests:
        """Return the pull requests of a provider that must have them; raises `StepFailed`."""
        if self.pull_requests is None:
            raise StepFailed(
                "NoPullRequests",
                "git.provider: git has no pull requests; use approval: auto without pr, or another one",
            )
        return self.pull_requests


class Remotes:
    """Opens the remote of a PromotionStep."""

    def __init__(
        self,
        repositories: Repositories,
        *,
        secrets: Client,
        clock: Clock,
        on_request: RequestObserver,
        rules: RemoteRules,
    ) -> None:
        self._repositories = repositories
        self._secrets = secrets
        self._clock = clock
        self._on_request = on_request
        self._rules = rules

    async def open(self, step: PromotionStep) -> Remote:
        git, namespace = step.spec.git, step.metadata.namespace
        url = self._repositories.parse(git.url)
        if url.host and not host_allowed(url.host, self._rules.hosts):
            raise StepFailed(
                "HostNotAllowed", f"git.url: {url.host} is none of the Git hosts that --allow-git-hosts permits"
            )
        credentials = None
        if git.secret_ref is not None and url.host:
            credentials = await self._credentials(git.secret_ref.name, namespace, url)
        repository = self._repositories.open(git.url, credentials)
        if git.provider != "local":
            return Remote(repository, None)
        return Remote(repository, local_pull_requests(repository, clock=self._clock, on_request=self._on_request))

    async def _credentials(self, name: str, namespace: str, url: RepositoryURL) -> Credentials:
        secret = await self._secret(name, self._rules.namespaces.get(namespace, namespace))
        if refusal := refused_host(secret, url.host):
            raise StepFailed("SecretNotForHost", f"git.secretRef: {refusal}")
        try:
            credentials = credentials_of(secret)
        except SecretValueError as error:
            raise _unusable(str(error)) from None
        if credentials is None:
            where = f"{secret['metadata']['namespace']}/{name}"
            raise _unusable(f"Secret {where} has neither username and password nor token")
        return credentials

    async def _secret(self, name: str, namespace: str) -> JsonObject:
        try:
            return await self._secrets.get(SECRET, name, namespace)
        except NotFound:
            raise _unusable(f"Secret {namespace}/{name} does not exist") from None
        except Forbidden:
            raise SecretUnreadable(
                f"git.secretRef: Secret {namespace}/{name} may not be read by this agent",
                remedy=f"Apply deploy/agent/secrets/namespace.yaml (of the controller: deploy/secrets/namespace.yaml) to "
                f"namespace {namespace}, with {name} among the names of its Role",
            ) from None


def _unusable(message: str) -> StepFailed:
    return StepFailed(
        "SecretUnusable",
        f"git.secretRef: {message}; create it in the agent's cluster with username and password, or token",
    )
