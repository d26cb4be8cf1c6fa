"""The remote of a promotion: the repository of its PromotionStep, and the pull requests kept there.

Credentials are read at the moment they are needed, from the agent's own cluster, and handed on in an object that does
not show itself; nothing here keeps, logs or quotes them. The repositories behind are shared by all promotions.
"""

from __future__ import annotations

from dataclasses import dataclass

from kardinal.api import PromotionStep
from kardinal.api.pipeline import Git
from kardinal.git import Credentials, Repositories, Repository
from kardinal.kube import Client, NotFound
from kardinal.objects import SECRET
from kardinal.objects.secrets import SecretValueError, secret_text
from kardinal.runtime import Clock
from kardinal.scm import PullRequests, RequestObserver, local_pull_requests
from kardinal_agent.errors import StepFailed

__all__ = ["Remote", "Remotes"]

_TOKEN_USER = "git"  # noqa: S105 - hosts that take a token as the password ignore the name
_LOCAL = ("/", "file:")


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
        self, repositories: Repositories, *, secrets: Client, clock: Clock, on_request: RequestObserver
    ) -> None:
        self._repositories = repositories
        self._secrets = secrets
        self._clock = clock
        self._on_request = on_request

    async def open(self, step: PromotionStep) -> Remote:
        git = step.spec.git
        repository = self._repositories.open(git.url, await self._credentials(git, step.metadata.namespace))
        if git.provider != "local":
            return Remote(repository, None)
        return Remote(repository, local_pull_requests(repository, clock=self._clock, on_request=self._on_request))

    async def _credentials(self, git: Git, namespace: str) -> Credentials | None:
        if git.secret_ref is None or git.url.startswith(_LOCAL):
            return None
        name = git.secret_ref.name
        try:
            secret = await self._secrets.get(SECRET, name, namespace)
        except NotFound:
            raise _unusable(f"Secret {namespace}/{name} does not exist") from None
        try:
            username, password, token = (
                secret_text(secret, key).rstrip("\r\n") for key in ("username", "password", "token")
            )
        except SecretValueError as error:
            raise _unusable(str(error)) from None
        if username and password:
            return Credentials(username, password)
        if token:
            return Credentials(username or _TOKEN_USER, token)
        raise _unusable(f"Secret {namespace}/{name} has neither username and password nor token")


def _unusable(message: str) -> StepFailed:
    return StepFailed(
        "SecretUnusable",
        f"git.secretRef: {message}; create it in the agent's cluster with username and password, or token",
    )
