"""A custom step: ask an HTTP endpoint whether the promotion may go on.

The request is repeated after a transient failure and after a restart of the agent, with the same `Idempotency-Key`, by
which the endpoint recognises a repetition. After an answer 202, its `Location` is kept in the status, so that a new
process asks there. Requests take a slot of their host and one of their namespace, so that a slow endpoint does not
occupy all workers.
"""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from ipaddress import ip_address
from urllib.parse import urlsplit

from kardinal.git.secret_hosts import host_of
from kardinal.git.shares import Lane, Shares
from kardinal.promotion.steps.custom import CustomConfig
from kardinal_agent.endpoints import Accepted, Completed, EndpointClient, EndpointCredentials, EndpointSecrets
from kardinal_agent.endpoints.answers import checked_location, read_answer
from kardinal_agent.endpoints.credentials import NO_CREDENTIALS
from kardinal_agent.endpoints.payload import body_of, headers_of, idempotency_key
from kardinal_agent.errors import StepFailed
from kardinal_agent.remotes import Queued
from kardinal_agent.steps.base import Done, StepContext, StepResult, Waiting

__all__ = ["CustomStep"]


class CustomStep:
    """The effect of every step without a declaration: a request to its endpoint."""

    def __init__(self, client: EndpointClient, secrets: EndpointSecrets, shares: Shares) -> None:
        self._client = client
        self._secrets = secrets
        self._shares = shares

    async def run(self, context: StepContext) -> StepResult:
        config = context.planned.config
        if not isinstance(config, CustomConfig):
            raise StepFailed("InvalidConfig", "config.url: is missing")
        lane = Lane(f"{host_of(config.url)} (step)", context.step.metadata.namespace)
        if not self._shares.take(lane):
            message = f"queued behind {self._shares.ahead(lane)} promotions, for a turn at {host_of(config.url)}"
            raise Queued(message, partial(self._shares.subscribe, lane))
        try:
            return await self._ask(context, config)
        finally:
            self._shares.give_back(lane)

    async def _ask(self, context: StepContext, config: CustomConfig) -> StepResult:
        credentials = await self._credentials(context, config)
        polled = self._polled(context, config)
        key = idempotency_key(context)
        now = context.now
        body = body_of(context, config) if polled is None else None
        headers = headers_of(config, credentials, key=key, body=body, now=now)
        method = "POST" if polled is None else "GET"
        reply = await self._client.request(method, polled or config.url, headers=headers, body=body)
        answer = read_answer(reply, url=config.url, polled=polled, secrets=credentials.hidden, now=now)
        return _result(answer, context, config)

    async def _credentials(self, context: StepContext, config: CustomConfig) -> EndpointCredentials:
        if config.secret_ref is None:
            return NO_CREDENTIALS
        host = host_of(config.url)
        namespace = context.step.metadata.namespace
        found = await self._secrets.read(config.secret_ref.name, namespace=namespace, host=host)
        if found.token and urlsplit(config.url).scheme != "https" and not _is_loopback(config.url):
            raise StepFailed("TokenWithoutTLS", f"config.url: a token is not sent to {host} without TLS; use https")
        return found

    def _polled(self, context: StepContext, config: CustomConfig) -> str | None:
        location = context.progress.location if context.progress is not None else None
        return checked_location(location, config.url) if location is not None else None


def _result(answer: Completed | Accepted, context: StepContext, config: CustomConfig) -> StepResult:
    host = host_of(config.url)
    if isinstance(answer, Accepted):
        message = f"{host} works on it: {answer.message}" if answer.message else f"{host} works on it"
        return Waiting(message, until=context.now + timedelta(seconds=answer.wait), location=answer.location)
    if not answer.success:
        raise StepFailed("StepRefused", answer.message or f"{host} says no, and does not say why")
    return Done(answer.message or f"{host} says yes", outputs=answer.outputs)


def _is_loopback(url: str) -> bool:
    name = urlsplit(url).hostname or ""
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return name == "localhost"
