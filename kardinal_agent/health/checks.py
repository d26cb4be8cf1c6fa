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
from kardinal_agent.health.deadlines import Deadlines
from kardinal_agent.health.delegation import Delegated, delegate_of, delegated, together
from kardinal_agent.health.detection import Detected, deploys, detected, settled, source_of
from kardinal_agent.health.detector import Detection, Detector
from kardinal_agent.health.missing import with_hint
from kardinal_agent.health.namespaces import PIPELINES_FROM, HealthNamespaces
from kardinal_agent.health.refresh import Refreshes, Target, targets
from kardinal_agent.health.revisions import Revisions
from kardinal_agent.health.verdict import Absent, Adapter, Objects, Promotion, Verdict, Watched, progressing
from kardinal_agent.health.watching import Unreadable

__all__ = ["Finding", "HealthChecks"]

_LOOK_AGAIN = timedelta(seconds=30)
"""When to look again where nothing tells that there is something to see, such as a Secret that is put right."""

_STAGES = 2
"""How often what is seen leads to more that is looked at: from a Canary to its target, and from that to its pods."""

_INSTANT = 0.001
"""Seconds below which a timer has fired: sums of floats do not meet exactly."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A verdict, and when to look again even if nothing happens."""

    verdict: Verdict
    again: timedelta | None = None
    delegated: Delegated | None = None
    refreshable: Sequence[Target] = ()
    """The objects of a tool that has not seen the commit."""
    unreadable: bool = False
    """Whether something that is looked at cannot be read now."""
    needs_person: bool = False
    """Whether the verdict waits until a person acts, by its fixed words: those of objects say nothing of it."""
    absent: Absent | None = None
    """The object that the Pipeline names and that does not exist."""


class HealthChecks:
    """The proofs of one agent."""

    def __init__(
        self,
        adapters: Mapping[str, Adapter],
        namespaces: HealthNamespaces,
        clusters: Clusters,
        *,
        detector: Detector,
        refreshes: Refreshes,
        clock: Clock,
    ) -> None:
        self.revisions = Revisions(clock)
        self.refreshes = refreshes
        self.deadlines = Deadlines(clock)
        self._adapters = adapters
        self._namespaces = namespaces
        self._clusters = clusters
        self._detector = detector
        self._clock = clock
        self._healthy_since: dict[Key, float] = {}

    def refusal(self, step: PromotionStep) -> str | None:
        """Return why the proof that a PromotionStep asks for is not to be had, with its field; None when it is.

        Of one whose proof is still to be found only the delegate is known.
        """
        step = settled(step)
        for kind in dict.fromkeys(each for each in (step.spec.health.type, delegate_of(step)) if each is not None):
            adapter = self._adapters.get(kind)
            if adapter is None:
                return f"health.type: {kind!r} is not available in this version"
            for watched in adapter.watches(step):
                if problem := self._refused(step, watched):
                    return f"health.{kind}.namespace: {problem}"
        return None

    async def detect(self, step: PromotionStep) -> Detection:
        """Return what deploys the environment of a PromotionStep; raises `Unreadable` while that cannot be known."""
        return await self._detector.look(step)

    def concerned(self, namespace: JsonObject) -> Sequence[Key]:
        """Return the promotions that look into a Namespace."""
        return self._clusters.own.watchers_in(namespace["metadata"]["name"])

    def _refused(self, step: PromotionStep, watched: Watched) -> str | None:
        """Return why a namespace is not looked into; in another cluster its own rights decide that."""
        return self._namespaces.refusal(watched.namespace) if step.spec.health.cluster is None else None

    def release(self, key: Key) -> None:
        """Look at nothing for a promotion any more."""
        self._clusters.release(key)
        self.refreshes.forget(key)
        self.deadlines.forget(key)
        self._healthy_since.pop(key, None)

    async def check(self, step: PromotionStep, promotion: Promotion) -> Finding:
        """Return the verdict of the moment; its message is the one that the author of the Pipeline may read."""
        found, step = detected(step), settled(step)
        adapter, key = self._adapters.get(step.spec.health.type or ""), Key(step.metadata.namespace, step.metadata.name)
        if adapter is None:
            # A step that goes on has its proof found anew; of one that is Verified the status was changed.
            return Finding(progressing("the status does not say what proves the environment"), unreadable=True)
        try:
            finding = await self._judge(step, found, promotion, adapter, key)
        except Unreadable as error:
            self._healthy_since.pop(key, None)
            return Finding(progressing(str(error)), _LOOK_AGAIN, unreadable=True)
        verdict = finding.verdict
        if verdict.state != "healthy":
            self._healthy_since.pop(key, None)
            return finding
        now = self._clock.monotonic()
        left = adapter.confirm_seconds - (now - self._healthy_since.setdefault(key, now))
        if left > _INSTANT:
            unconfirmed = progressing(f"{verdict.message}; looks once more")
            return replace(finding, verdict=unconfirmed, again=timedelta(seconds=left))
        return finding

    async def _judge(
        self, step: PromotionStep, found: Detected | None, promotion: Promotion, adapter: Adapter, key: Key
    ) -> Finding:
        delegate = self._adapters[name] if (name := delegate_of(step)) is not None else None
        judges = [adapter] if delegate in (None, adapter) else [adapter, delegate]
        if found is not None and not self._namespaces.lets_in(found.key.namespace, reader=key.namespace):
            raise Unreadable(_not_let_in(found, reader=key.namespace))
        wanted = list(dict.fromkeys(each for judge in judges for each in judge.watches(step)))
        watches = await self._clusters.watches_of(step)
        objects = await watches.read(key, wanted)
        for _ in range(_STAGES):
            related = [each for judge in judges for each in judge.related(step, promotion, objects)]
            related += self._sources(found, objects, reader=key.namespace)
            if not (related := [each for each in dict.fromkeys(related) if each not in wanted]):
                break
            wanted += related
            for each in related:
                if problem := self._refused(step, each):
                    return Finding(progressing(problem))
            objects = await watches.read(key, wanted)
        if found is not None and (doubt := _doubt(step, found, objects)) is not None:
            raise Unreadable(doubt)
        verdict = adapter.judge(step, promotion, objects)
        absent = verdict.absent
        if delegate is not None and delegate is not adapter:
            other = delegate.judge(step, promotion, objects)
            absent, verdict = absent or other.absent, together(verdict, other)
        # One that was found and is gone is not misspelt.
        absent = absent if found is None else None
        others = self._others(step, absent)
        watches.keep(key, [*wanted, *others])
        if absent is not None:
            verdict = with_hint(verdict, absent, await watches.read(key, others))
        return Finding(
            self._told(step, verdict, wanted),
            delegated=delegated(step, delegate, objects) if delegate is not None else None,
            refreshable=targets(step, promotion, objects) if step.spec.health.cluster is None else (),
            needs_person=verdict.needs_person,
            absent=absent,
        )

    def _sources(self, found: Detected | None, objects: Objects, *, reader: str) -> Sequence[Watched]:
        """Return the source of an object of Flux that was found, where it may be looked at."""
        obj = objects.get(found.resource, *found.key) if found is not None and found.tool == "flux" else None
        source = source_of(obj) if obj is not None else None
        return [source] if source is not None and self._namespaces.lets_in(source.namespace, reader=reader) else []

    def _others(self, step: PromotionStep, absent: Absent | None) -> Sequence[Watched]:
        """Return what shows the names beside one that does not exist, where the author of the Pipeline may read them.

        Of another cluster no names are told: the author chooses its server.
        """
        if absent is None or step.spec.health.cluster is not None:
            return ()
        if not self._namespaces.quotes(absent.key.namespace, reader=step.metadata.namespace):
            return ()
        return (Watched(kind=absent.kind, namespace=absent.key.namespace, optional=True, names_only=True),)

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


def _not_let_in(found: Detected, *, reader: str) -> str:
    return (
        f"{found.title} was found to deploy the environment, and its namespace does not let Pipelines of {reader} in: "
        f"annotate {found.key.namespace} with {PIPELINES_FROM}: {reader}"
    )


def _doubt(step: PromotionStep, found: Detected, objects: Objects) -> str | None:
    """Return why an object that was found does not speak for the environment; one that is gone says so itself."""
    obj = objects.get(found.resource, *found.key)
    if obj is None or deploys(step, found.resource, obj, objects):
        return None
    place = f"{step.spec.path} of branch {step.spec.target_branch} of the repository"
    return f"{found.title} was found to deploy the environment, and does not read {place} now: correct it"
