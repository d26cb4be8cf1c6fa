"""Ask the adapter of a promotion, and decide what its author is told.

Adapters judge; here is what they have in common: what they look at is watched from the first look to the end of the
promotion, into some namespaces they do not look at all, and what objects say is repeated from some of them only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from kardinal.api import PromotionStep
from kardinal.objects import JsonObject, Key
from kardinal.runtime import Clock
from kardinal_agent.health.clusters import Clusters
from kardinal_agent.health.namespaces import PIPELINES_FROM, HealthNamespaces
from kardinal_agent.health.revisions import Revisions
from kardinal_agent.health.verdict import Adapter, Promotion, Verdict, Watched, progressing
from kardinal_agent.health.watching import Unreadable

__all__ = ["Finding", "HealthChecks"]

_LOOK_AGAIN = timedelta(seconds=30)
"""When to look again where nothing tells that there is something to see, such as a Secret that is put right."""

_INSTANT = 0.001
"""Seconds below which a timer has fired: sums of floats do not meet exactly."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A verdict, and when to look again even if nothing happens."""

    verdict: Verdict
    again: timedelta | None = None


class HealthChecks:
    """The proofs of one agent."""

    def __init__(
        self, adapters: Mapping[str, Adapter], namespaces: HealthNamespaces, clusters: Clusters, *, clock: Clock
    ) -> None:
        self.revisions = Revisions(clock)
        self._adapters = adapters
        self._namespaces = namespaces
        self._clusters = clusters
        self._clock = clock
        self._healthy_since: dict[Key, float] = {}

    def refusal(self, step: PromotionStep) -> str | None:
        """Return why the proof that a PromotionStep asks for is not to be had, with its field; None when it is."""
        kind = step.spec.health.type or ""
        adapter = self._adapters.get(kind)
        if adapter is None:
            return f"health.type: {kind!r} is not available in this version"
        for watched in adapter.watches(step):
            if problem := self._refused(step, watched):
                return f"health.{kind}.namespace: {problem}"
        return None

    def concerned(self, namespace: JsonObject) -> Sequence[Key]:
        """Return the promotions that look into a Namespace."""
        return self._clusters.own.watchers_in(namespace["metadata"]["name"])

    def _refused(self, step: PromotionStep, watched: Watched) -> str | None:
        """Return why a namespace is not looked into; in another cluster its own rights decide that."""
        return self._namespaces.refusal(watched.namespace) if step.spec.health.cluster is None else None

    def release(self, key: Key) -> None:
        """Look at nothing for a promotion any more."""
        self._clusters.release(key)
        self._healthy_since.pop(key, None)

    async def check(self, step: PromotionStep, promotion: Promotion) -> Finding:
        """Return the verdict of the moment; its message is the one that the author of the Pipeline may read."""
        adapter = self._adapters[step.spec.health.type or ""]
        key = Key(step.metadata.namespace, step.metadata.name)
        try:
            verdict = await self._judge(step, promotion, adapter, key)
        except Unreadable as error:
            self._healthy_since.pop(key, None)
            return Finding(progressing(str(error)), _LOOK_AGAIN)
        if verdict.state != "healthy":
            self._healthy_since.pop(key, None)
            return Finding(verdict)
        now = self._clock.monotonic()
        left = adapter.confirm_seconds - (now - self._healthy_since.setdefault(key, now))
        if left > _INSTANT:
            return Finding(progressing(f"{verdict.message}; looks once more"), timedelta(seconds=left))
        return Finding(verdict)

    async def _judge(self, step: PromotionStep, promotion: Promotion, adapter: Adapter, key: Key) -> Verdict:
        wanted = list(adapter.watches(step))
        watches = await self._clusters.watches_of(step)
        objects = await watches.read(key, wanted)
        if related := [each for each in adapter.related(step, promotion, objects) if each not in wanted]:
            wanted += related
            for each in related:
                if problem := self._refused(step, each):
                    return progressing(problem)
            objects = await watches.read(key, wanted)
        watches.keep(key, wanted)
        return self._told(step, adapter.judge(step, promotion, objects), wanted)

    def _told(self, step: PromotionStep, verdict: Verdict, watched: Sequence[Watched]) -> Verdict:
        """Return the verdict with its details for those who may read them."""
        if not verdict.details:
            return verdict
        reader, elsewhere = step.metadata.namespace, step.spec.health.cluster is not None
        hidden = [each.namespace for each in watched if not self._namespaces.quotes(each.namespace, reader=reader)]
        if elsewhere or not hidden:
            return replace(verdict, message=verdict.details)
        if verdict.state == "healthy":
            return verdict
        verdict = replace(verdict, since=None)
        remedy = f"annotate namespace {hidden[0]} with {PIPELINES_FROM}: {reader} to see what it runs"
        return replace(verdict, message=f"{verdict.message} ({remedy})")
