"""Promotions at a host without an API server: their steps run one by one, and a status that is kept in memory.

For what a step does at the host and in Git. That an agent runs the step, writes the status, and is woken, is shown by
the tests that have a `world`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from kardinal.git import GitRunner, Repositories, Repository
from kardinal.models.base import Condition
from kardinal.objects import JsonObject
from kardinal.promotion.api import Bundle, PromotionStep
from kardinal.promotion.api.evidence import GateResult
from kardinal.promotion.api.promotion_step import PromotionStepStatus
from kardinal.promotion.sources.edit_sources import Address
from kardinal.promotion.steps.declaration import Surroundings
from kardinal.promotion.steps.sequence import planned
from kardinal.runtime import Backoff, KeyMemory
from kardinal.scm import PROVIDERS, RepositoryHost
from kardinal.scm.http import HostSessions
from kardinal_agent.errors import classified
from kardinal_agent.execution import status as statuses
from kardinal_agent.execution.archived import unless_archived
from kardinal_agent.execution.proposals import take_back
from kardinal_agent.execution.retries import Again, GiveUp, RetryPolicy, after_failure
from kardinal_agent.execution.rules import current_index
from kardinal_agent.health import HealthChecks
from kardinal_agent.hosts.memory import HostMemory
from kardinal_agent.remotes import Remote
from kardinal_agent.steps import Done, StepContext, StepResult, effects
from kardinal_agent.steps.base import Wait
from tests.agent.hosted import hosted_step
from tests.agent.promotion_steps import BUNDLE_NAME
from tests.agent.sites import Site
from tests.support.clock import VirtualClock
from tests.support.fake_gitea import FakeGitea
from tests.support.names import POLICIES
from tests.support.objects import bundle
from tests.support.registry import REGISTRY
from tests.support.smart_server import PASSWORD, USER

__all__ = ["HostedPromotion", "NoObjects", "Promotions", "remote_of"]

_BACKOFF = Backoff(base=1.0, cap=300.0)
_EFFECTS = effects(REGISTRY.steps)
_PAUSE = timedelta(seconds=1)
_LOOKS = 100
"""More than any test waits for."""


class NoObjects:
    """A cache without objects."""

    def get(self, namespace: str, name: str) -> JsonObject | None:
        return None


@asynccontextmanager
async def remote_of(host: FakeGitea | Site, directory: Path, *, clock: VirtualClock) -> AsyncIterator[Remote]:
    """Open the pull requests of a host by its API, and its repository without a transfer; `directory` is a cache."""
    runner = GitRunner(workers=1)
    repositories = Repositories(directory, runner=runner, clock=clock, allow_local=True)
    provider = PROVIDERS[host.provider]
    assert provider.connect is not None
    async with HostSessions(clock=clock) as sessions:
        target = RepositoryHost(url=host.url, clock=clock, sessions=sessions)
        authenticator = provider.authenticate({"username": USER, "token": PASSWORD}, target)
        pulls = provider.connect(replace(target, authenticator=authenticator))
        try:
            yield Remote(repositories.open(host.repository.url), pulls, provider.capabilities, lambda: None)
        finally:
            await repositories.close()
            runner.close()


class Promotions:
    """The promotions of one agent at one host; time passes only between their looks."""

    def __init__(self, host: FakeGitea | Site, remote: Remote, clock: VirtualClock) -> None:
        self.host = host
        self.remote = remote
        self.clock = clock
        self.restart()

    def restart(self) -> None:
        """Forget what an agent remembers, as another process does."""
        self.memory = HostMemory(self.clock, backoff=_BACKOFF, memory=KeyMemory(NoObjects()))

    def begin(
        self, *, name: str = BUNDLE_NAME, status: PromotionStepStatus | None = None, **step: Any
    ) -> HostedPromotion:
        """Begin a promotion of a Bundle; `step` are the fields of `hosted_step`."""
        made = hosted_step(self.host, bundle=name, **step)
        made["metadata"]["uid"] = f"uid-{made['metadata']['name']}"
        parent = bundle(name)
        parent["metadata"]["uid"] = f"uid-{name}"
        return HostedPromotion(self, PromotionStep.model_validate(made), Bundle.model_validate(parent), status)

    async def proposed(self, **step: Any) -> HostedPromotion:
        """Begin a promotion, and let it wait for its pull request."""
        promotion = self.begin(**step)
        await promotion.go_on()
        assert promotion.waits
        return promotion


class HostedPromotion:
    """One promotion."""

    def __init__(
        self, promotions: Promotions, step: PromotionStep, bundle: Bundle, status: PromotionStepStatus | None
    ) -> None:
        self._promotions = promotions
        self.step = step
        self.bundle = bundle
        self.status = status or PromotionStepStatus(state="Pending")
        self.sequence = planned(step.spec.steps, REGISTRY.steps)
        self.announced: list[str] = []
        """The reasons of the Events so far."""
        self.holds: list[str] = []
        self.gates: list[GateResult] = []
        self.failed: GiveUp | None = None
        self._next: timedelta | None = None

    @property
    def waits(self) -> bool:
        """Return whether the pull request is waited for."""
        return self.status.state == "WaitingForMerge"

    @property
    def next(self) -> str:
        """Return the name of the step that runs next."""
        return self.sequence[self._index].name

    @property
    def landed(self) -> bool:
        """Return whether only the proof of the environment is left."""
        return self._index == len(self.sequence) - 1

    @property
    def message(self) -> str:
        return self.status.message or ""

    @property
    def held(self) -> tuple[str, str]:
        """Return status and reason of the condition Held; empty without it."""
        found = self.condition("Held")
        return (found.status, found.reason) if found is not None else ("", "")

    def condition(self, kind: str) -> Condition | None:
        return self.status.condition(kind)

    def answer(self, *, closed: str = "") -> None:
        """Have the gate `soak` answer: open, or `closed` for a reason."""
        self.holds = [f"held by gate soak: {closed}"] if closed else []
        result: Any = "fail" if closed else "pass"
        reason = closed or "soaked 45m of 30m"
        self.gates = [GateResult(name="soak", namespace=POLICIES, scope="org", result=result, reason=reason)]

    async def look(self) -> StepResult | Again | GiveUp:
        """Run the current step, and note its result as an agent does.

        Some time passes before, because a host is asked a limited number of questions at once.
        """
        clock = self._promotions.clock
        await clock.advance(_PAUSE)
        retry = self.status.retry
        assert retry is None or retry.next_at <= clock.now(), "an agent would wait for the time of the next try"
        index = self._index
        step = self.sequence[index]
        if not self.holds:
            self.status = statuses.released(self.status, now=clock.now(), reason=statuses.HELD)
        if (context := self._context()).proposes:
            self.status = self.status.model_copy(update={"proposal": context.proposal})
        self.status = statuses.entered(self.status, step, index, now=clock.now(), timeout=None)
        try:
            context = self._context()
            result = await unless_archived(_EFFECTS[step.name].run(context), context.remote)
        except Exception as error:
            return self._fail(error, step.name)
        now = clock.now()
        self._next = None
        if isinstance(result, Done):
            self.announced += [result.announcement.reason] if result.announcement else []
            self.status = statuses.succeeded(self.status, step, index, result, now=now)
            return result
        self._next = result.until - now if result.until is not None else None
        if result.location is not None:
            self.status = statuses.located(self.status, index, result.location)
        self.status = statuses.updated(self.status, result.update)
        self.status = statuses.paused(self.status, Wait(result.kind, result.message), now=now)
        return result

    def _fail(self, error: Exception, name: str) -> Again | GiveUp:
        """Note the failure of a step."""
        policy = RetryPolicy(name=name, backoff=_BACKOFF)
        now = self._promotions.clock.now()
        found = after_failure(self.status, classified(error), policy, now=now)
        if isinstance(found, GiveUp):
            self.failed = found
            self.status = statuses.failed(self.status, found.message, now=now)
            return found
        assert isinstance(found, Again)
        self.status = found.status
        self._next = found.delay
        return found

    async def lose(self) -> None:
        """Run the current step in a process that dies before it notes the result."""
        before = self.status
        await self.look()
        self.status = before
        self._promotions.restart()

    async def go_on(self) -> None:
        """Run steps until one waits or fails, or the change has landed."""
        while not self.landed and isinstance(await self.look(), Done):
            pass

    async def until(self, condition: Callable[[], Any]) -> None:
        """Let time pass from look to look until `condition` holds."""
        for _ in range(_LOOKS):
            if condition():
                return
            await self.pass_time(self._next if self._next is not None else timedelta(minutes=5))
            await self.go_on()
        raise AssertionError(f"not reached: {self.status}")

    async def pass_time(self, duration: timedelta) -> None:
        await self._promotions.clock.advance(duration)

    async def supersede(self, reason: str = "superseded by a newer Bundle of my-app") -> bool:
        """Take the proposal back; return whether its change has landed."""
        return await take_back(self._context(len(self.sequence) - 1), reason)

    @property
    def _index(self) -> int:
        return current_index(self.status, [each.declaration for each in self.sequence])

    def _context(self, index: int | None = None) -> StepContext:
        promotions = self._promotions

        async def remote() -> Remote:
            return promotions.remote

        return StepContext(
            step=self.step,
            bundle=self.bundle,
            status=self.status,
            sequence=self.sequence,
            index=self._index if index is None else index,
            metrics=dict,
            gates=lambda: self.gates,
            holds=lambda: list(self.holds),
            health=_NO_HEALTH,
            now=promotions.clock.now(),
            remote=remote,
            host_memory=promotions.memory,
            open_source=_no_source,
            surroundings=Surroundings(),
        )


_NO_HEALTH: HealthChecks = None  # type: ignore[assignment] # the proof is not run


async def _no_source(address: Address) -> Repository:
    raise AssertionError(f"{address.url}: no step of these tests reads another repository")
