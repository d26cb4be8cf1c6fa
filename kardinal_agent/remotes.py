"""The remote of a promotion: the repository of its PromotionStep, and the pull requests kept there.

Credentials are read from the agent's own cluster when they are needed, and passed on in an object whose text does not
contain them; they are never logged or quoted, and are kept only for a namespace that is being deleted. The host is
known before a Secret is read, and the Secret must name the host (`kardinal.git.secret_hosts`). The repositories are
shared by the promotions of a namespace.

The credential for the API of a host is made by the provider from the values of the Secret, and is sent only to the API
host that the provider names for the URL; the rules about hosts apply to that host as well.

A promotion with a remote repository may wait long for its host, so the running promotions have shares by host and
namespace. A promotion without a share gives up its worker, and is run again when a share may be free.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from kardinal.clock import Clock
from kardinal.git import BranchSubscription, GitCredentials, Repositories, Repository
from kardinal.git.secret_credentials import UnusableSecret, credentials_of, signer_of
from kardinal.git.secret_hosts import host_allowed, refused_host, refused_signing
from kardinal.git.shares import Lane, Shares
from kardinal.git.signing import SshSigner
from kardinal.kube import Client, Forbidden, NotFound
from kardinal.objects import SECRET, JsonObject, Key
from kardinal.objects.capabilities import Capabilities
from kardinal.objects.secrets import SecretValueError, text_values
from kardinal.promotion.api import PromotionStep
from kardinal.promotion.sources.edit_sources import Address
from kardinal.scm import Provider, PullRequests, RepositoryHost, RequestObserver
from kardinal.scm.http import HostAuthenticator, HostSessions
from kardinal.tree.repository_url import RepositoryURL
from kardinal_agent.errors import SecretNotFound, SecretUnreadable, StepFailed
from kardinal_agent.secret_memory import KeptSecrets, SecretVersions

__all__ = ["Queued", "Remote", "RemoteRules", "Remotes"]

_SSH_KEYS = "ssh-privatekey and known_hosts"


class Queued(Exception):
    """No share is free for this promotion; `subscribe` calls back when one may be."""

    def __init__(self, message: str, subscribe: Callable[[Callable[[], None]], BranchSubscription]) -> None:
        super().__init__(message)
        self.message = message
        self.subscribe = subscribe


@dataclass(frozen=True, slots=True)
class RemoteRules:
    """The settings of an agent about remotes.

    `hosts`: globs of the permitted `host[:port]`; empty for all hosts. `namespaces`: the namespace in the agent's own
    cluster by namespace of the control plane, for Secrets. Defaults to the namespace of the same name.
    """

    hosts: Sequence[str] = ()
    namespaces: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Remote:
    """A repository and, if its provider has them, its pull requests; the caller must `release` it after the run.

    Commits are signed by `signer`, if there is one.
    """

    repository: Repository
    pull_requests: PullRequests | None
    capabilities: Capabilities
    release: Callable[[], None]
    signer: SshSigner | None = None

    @property
    def proposals(self) -> PullRequests:
        """Return the pull requests; raises `StepFailed` for a provider without them."""
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
        shares: Shares,
        providers: Mapping[str, Provider],
        sessions: HostSessions,
        versions: SecretVersions,
        kept: KeptSecrets,
    ) -> None:
        self._repositories = repositories
        self._secrets = secrets
        self._clock = clock
        self._on_request = on_request
        self._rules = rules
        self._shares = shares
        self._providers = providers
        self._sessions = sessions
        self._versions = versions
        self._kept = kept

    async def open(self, step: PromotionStep, *, withdrawing: bool = False) -> Remote:
        """Return the remote of a PromotionStep; raises `Queued` if its host or its namespace has no free share.

        `withdrawing`: no commit is made, and a Secret that was deleted with its namespace is used once more.
        """
        git = step.spec.git
        namespace = step.metadata.namespace
        url = self._repositories.parse(git.url)
        provider = self._providers[git.provider]
        hosts = _hosts(provider, url)
        for host in hosts:
            self._check_allowed(host, "git.url")
        if git.secret_ref is None and url.scheme == "ssh":
            raise StepFailed("SecretMissing", f"git.secretRef: ssh needs a Secret with {_SSH_KEYS}")
        secret: JsonObject = {}
        if git.secret_ref is not None and url.host:
            needs = _needs(url.scheme)
            secret = await self._of_promotion(step, git.secret_ref.name, needs=needs, withdrawing=withdrawing)
            for host in hosts:
                if refusal := refused_host(secret, host):
                    raise StepFailed("SecretNotForHost", f"git.secretRef: {refusal}")
        target = self._target(provider, url, secret, namespace)
        field = "git.secretRef"
        credentials = await _credentials(secret, url.scheme, target.authenticator, field=field) if secret else None
        signing = None if withdrawing else git.signing_secret_ref
        signer = await self._signer(signing.name, namespace) if signing else None
        repository = self._repositories.open(git.url, credentials, owner=namespace)
        pull_requests = provider.connect(replace(target, repository=repository)) if provider.connect else None
        release = self._take_share(Lane(url.host, namespace)) if url.host else _nothing
        return Remote(repository, pull_requests, provider.capabilities, release, signer)

    def _target(self, provider: Provider, url: RepositoryURL, secret: JsonObject, namespace: str) -> RepositoryHost:
        """Return the repository at its host with the credential that the provider reads from the Secret."""
        values = text_values(secret)
        target = RepositoryHost(
            url=url.text,
            clock=self._clock,
            sessions=self._sessions,
            authority=values.get("ca.crt", ""),
            namespace=namespace,
            on_request=self._on_request,
        )
        return replace(target, authenticator=provider.authenticate(values, target))

    async def open_source(self, step: PromotionStep, address: Address) -> tuple[Repository, str]:
        """Return a repository that a promotion only reads, and its host, whose share the reading needs."""
        namespace = step.metadata.namespace
        parsed = self._repositories.parse(address.url)
        git = step.spec.git
        self._check_allowed(parsed.host, address.url)
        if address.secret is None and parsed.scheme == "ssh":
            raise StepFailed("SecretMissing", f"{address.field}: ssh needs a Secret with {_SSH_KEYS}")
        same_host = parsed.host == self.host_of(step)
        credentials = None
        if address.secret is not None and parsed.host:
            needs = _needs(parsed.scheme)
            secret = await self._secret(address.field, address.secret, namespace, needs=needs)
            if refusal := refused_host(secret, parsed.host):
                raise StepFailed("SecretNotForHost", f"{address.field}: {refusal}")
            # A provider mints tokens for its own host only.
            provider = self._providers[git.provider]
            target = self._target(provider, parsed, secret, namespace) if same_host else None
            authenticator = target.authenticator if target else None
            credentials = await _credentials(secret, parsed.scheme, authenticator, field=address.field)
        repository = self._repositories.open(address.url, credentials, owner=namespace)
        return repository, parsed.host

    def host_of(self, step: PromotionStep) -> str:
        """Return the host of `git.url`; empty for a local repository."""
        return self._repositories.parse(step.spec.git.url).host

    def share_of(self, host: str, step: PromotionStep) -> Callable[[], None]:
        """Take a share of a host for a PromotionStep; return the function that releases it. Raises `Queued`."""
        return self._take_share(Lane(host, step.metadata.namespace))

    def _check_allowed(self, host: str, place: str) -> None:
        if host and not host_allowed(host, self._rules.hosts):
            raise StepFailed(
                "HostNotAllowed", f"{place}: {host} is none of the Git hosts that --allow-git-hosts permits"
            )

    def _take_share(self, lane: Lane) -> Callable[[], None]:
        """Take a share; return the function that releases it."""
        if not self._shares.take(lane):
            message = f"queued behind {self._shares.ahead(lane)} promotions, for a turn at {lane.host}"
            raise Queued(message, partial(self._shares.subscribe, lane))
        return partial(self._shares.give_back, lane)

    async def _signer(self, name: str, namespace: str) -> SshSigner:
        field = "git.signingSecretRef"
        needs = "ssh-privatekey"
        secret = await self._secret(field, name, namespace, needs=needs)
        if refusal := refused_signing(secret):
            raise StepFailed("SecretNotForSigning", f"{field}: {refusal}")
        try:
            return signer_of(secret)
        except (SecretValueError, UnusableSecret) as error:
            raise _unusable(field, str(error), needs) from None

    async def _of_promotion(self, step: PromotionStep, name: str, *, needs: str, withdrawing: bool) -> JsonObject:
        hub = step.metadata.namespace
        key = Key(self._rules.namespaces.get(hub, hub), name)
        try:
            secret = await self._secret("git.secretRef", name, hub, needs=needs)
        except (SecretNotFound, SecretUnreadable):
            self._kept.forget(key)
            kept = self._kept.find(key) if withdrawing else None
            if kept is None:
                raise
            return kept
        if step.spec.approval == "pr-review" or step.spec.pr:
            self._kept.keep(key, secret)
        return secret

    def is_leaving(self, step: PromotionStep) -> bool:
        """Return whether the namespace of the Secrets is being deleted, so that a missing Secret does not come back."""
        return self._kept.is_leaving(self._rules.namespaces.get(step.metadata.namespace, step.metadata.namespace))

    async def _secret(self, field: str, name: str, hub_namespace: str, *, needs: str) -> JsonObject:
        namespace = self._rules.namespaces.get(hub_namespace, hub_namespace)
        try:
            secret = await self._secrets.get(SECRET, name, namespace)
        except NotFound:
            message = f"{field}: Secret {namespace}/{name} does not exist"
            raise SecretNotFound(message, remedy=f"Create it in the agent's cluster with {needs}") from None
        except Forbidden:
            raise SecretUnreadable(
                f"{field}: Secret {namespace}/{name} may not be read by this agent",
                remedy=f"Apply deploy/agent/secrets/namespace.yaml (for the controller deploy/secrets/namespace.yaml) "
                f"to namespace {namespace}, with {name} among the names of its Role",
            ) from None
        self._versions.note(Key(hub_namespace, name), secret)
        return secret


def _hosts(provider: Provider, url: RepositoryURL) -> Sequence[str]:
    """Return the hosts that get the Secret of a repository: its own, and that of the API."""
    if not url.host:
        return ()
    if provider.connect is None or provider.capabilities.local:
        return (url.host,)
    return tuple(dict.fromkeys((url.host, provider.api_host(url.text))))


def _needs(scheme: str) -> str:
    return _SSH_KEYS if scheme == "ssh" else "username and password, or token"


async def _credentials(
    secret: JsonObject, scheme: str, authenticator: HostAuthenticator | None, *, field: str
) -> GitCredentials:
    """Return the credentials for Git: the values of the Secret, or a token that the provider mints with them."""
    try:
        credentials = credentials_of(secret, scheme)
    except (SecretValueError, UnusableSecret) as error:
        if authenticator is None or scheme == "ssh":
            raise _unusable(field, str(error), _needs(scheme)) from None
        credentials = GitCredentials(authority=text_values(secret).get("ca.crt", ""))
    if authenticator is None or scheme == "ssh" or credentials.password:
        return credentials
    minted = await authenticator.credentials()
    return replace(minted, authority=credentials.authority, identity=authenticator.identity)


def _nothing() -> None:
    """Do nothing: a local repository has no share to release."""


def _unusable(field: str, message: str, needs: str) -> StepFailed:
    return StepFailed("SecretUnusable", f"{field}: {message}; create it in the agent's cluster with {needs}")
