"""Ask the adapter of a promotion for its verdict, and decide how much of it the author of the Pipeline may read.

Adapters judge objects. This module does the rest for all of them: the objects are watched from the first check to the
end of the promotion, some namespaces are never read, and texts of objects are quoted from permitted namespaces only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from kardinal.clock import Clock
from kardinal.objects import JsonObject, Key
from kardinal.promotion.api import PromotionStep
from kardinal.promotion.api.health_adapters import FLUX
from kardinal.runtime import KeyMemory
from kardinal.runtime.timers import remaining
from kardinal_agent.health.clusters import Clusters
from kardinal_agent.health.deadlines import Deadlines
from kardinal_agent.health.delegation import Delegated, delegate_of, delegated, together
from kardinal_agent.health.detection import Detected, deploys, detected, settled, source_of
from kardinal_agent.health.detector import Detection, Detector
from kardinal_agent.health.missing import with_hint
from kardinal_agent.health.namespaces import PIPELINES_FROM, HealthNamespaces
from kardinal_agent.health.refresh import Refreshable, Refreshes, targets
from kardinal_agent.health.revisions import Revisions
from kardinal_agent.health.verdict import (
    Adapter,
    Applied,
    MissingObject,
    PromotionFacts,
    Verdict,
    Watched,
    WatchedObjects,
    progressing,
)
from kardinal_agent.health.watching import HealthWatches, ObjectUnreadable

__all__ = ["CheckResult", "HealthChecks"]

_LOOK_AGAIN = timedelta(seconds=30)
"""The interval between checks where no event reports a change, for example of a Secret."""

_STAGES = 2
"""The depth of related objects: a Canary leads to its target, and the target to its pods."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """A verdict with the consequences for the caller."""

    verdict: Verdict
    again: timedelta | None = None
    delegated: Delegated | None = None
    refreshable: Sequence[Refreshable] = ()
    """The objects of a tool that has not read the commit yet, and may be asked to."""
    unreadable: bool = False
    """Whether an object that the verdict needs cannot be read at this moment."""
    needs_person: bool = False
    """Whether a person must act. Only the fixed words of a verdict decide that, never the texts of objects."""
    absent: MissingObject | None = None
    """The object that the Pipeline names and that does not exist."""


class HealthChecks:
    """The health checks of one agent."""

    def __init__(
        self,
        adapters: Mapping[str, Adapter],
        namespaces: HealthNamespaces,
        clusters: Clusters,
        *,
        detector: Detector,
        refreshes: Refreshes,
        clock: Clock,
        memory: KeyMemory,
    ) -> None:
        self.revisions = Revisions(clock)
        self.refreshes = refreshes
        self.deadlines = Deadlines(clock, memory)
        self._adapters = adapters
        self._namespaces = namespaces
        self._clusters = clusters
        self._detector = detector
        self._clock = clock
        self._healthy_since: dict[Key, float] = memory.map()

    def refusal(self, step: PromotionStep) -> str | None:
        """Return why the `health` of a PromotionStep cannot be checked, with the field; None when it can.

        Before the detection of a GitOps tool, only the delegate is known and examined.
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
        """Return the objects that deploy an environment; raises `ObjectUnreadable` if they are unknown so far."""
        return await self._detector.look(step)

    def concerned(self, namespace: JsonObject) -> Sequence[Key]:
        """Return the keys of the promotions that read objects in a Namespace."""
        return self._clusters.own.watchers_in(namespace["metadata"]["name"])

    def _refused(self, step: PromotionStep, watched: Watched) -> str | None:
        """Return why the namespace of `watched` is not read; in another cluster, only the rights there decide."""
        return self._namespaces.refusal(watched.namespace) if step.spec.health.cluster is None else None

    async def check(self, step: PromotionStep, promotion: PromotionFacts) -> CheckResult:
        """Return the current verdict, with the message that the author of the Pipeline may read."""
        found = detected(step)
        step = settled(step)
        adapter = self._adapters.get(step.spec.health.type or "")
        key = Key(step.metadata.namespace, step.metadata.name)
        if adapter is None:
            # A running promotion is detected again; in a Verified one, another writer has changed the status.
            return CheckResult(progressing("the status does not say what proves the environment"), unreadable=True)
        try:
            finding = await self._judge(step, found, promotion, adapter, key)
        except ObjectUnreadable as error:
            self._healthy_since.pop(key, None)
            return CheckResult(progressing(str(error)), _LOOK_AGAIN, unreadable=True)
        verdict = finding.verdict
        if verdict.state != "healthy":
            self._healthy_since.pop(key, None)
            return finding
        now = self._clock.monotonic()
        if left := remaining(adapter.confirm_seconds - (now - self._healthy_since.setdefault(key, now))):
            unconfirmed = progressing(f"{verdict.message}; looks once more")
            return replace(finding, verdict=unconfirmed, again=left)
        return finding

    async def _judge(
        self, step: PromotionStep, found: Detected | None, promotion: PromotionFacts, adapter: Adapter, key: Key
    ) -> CheckResult:
        delegate = self._adapters[name] if (name := delegate_of(step)) is not None else None
        judges = [adapter] if delegate in (None, adapter) else [adapter, delegate]
        watches = await self._clusters.watches_of(step)
        read = await self._read(step, found, promotion, judges, watches)
        if isinstance(read, str):
            return CheckResult(progressing(read))
        wanted, objects = read
        verdict = adapter.judge(step, promotion, objects)
        absent = verdict.absent
        if delegate is not None and delegate is not adapter:
            other = delegate.judge(step, promotion, objects)
            absent = absent or other.absent
            verdict = together(verdict, other)
        # The name of a detected object cannot be misspelt, so no other name is suggested.
        absent = absent if found is None else None
        others = self._others(step, absent)
        watches.keep(key, [*wanted, *others])
        if absent is not None:
            verdict = with_hint(verdict, absent, await watches.read(key, others))
        return CheckResult(
            self._told(step, verdict, wanted),
            delegated=delegated(step, delegate, objects) if delegate is not None else None,
            refreshable=targets(step, promotion, objects) if step.spec.health.cluster is None else (),
            needs_person=verdict.needs_person,
            absent=absent,
        )

    async def applied(self, step: PromotionStep, promotion: PromotionFacts) -> Applied | str:
        """Return what the tool of a Verified environment has applied, or in fixed words why that is unknown."""
        found = detected(step)
        step = settled(step)
        adapter = self._adapters.get(step.spec.health.type or "")
        if adapter is None:
            return "the status does not say what proves the environment"
        try:
            watches = await self._clusters.watches_of(step)
            read = await self._read(step, found, promotion, [adapter], watches)
        except ObjectUnreadable as error:
            return str(error)
        return read if isinstance(read, str) else adapter.applied(step, promotion, read[1])

    async def _read(
        self,
        step: PromotionStep,
        found: Detected | None,
        promotion: PromotionFacts,
        judges: Sequence[Adapter],
        watches: HealthWatches,
    ) -> tuple[list[Watched], WatchedObjects] | str:
        """Return what the adapters watch and the objects of it, or why a namespace of it is not read.

        Raises `ObjectUnreadable` if an object is unknown so far, or if the detected one no longer deploys the path.
        """
        key = Key(step.metadata.namespace, step.metadata.name)
        if found is not None and not self._namespaces.lets_in(found.key.namespace, reader=key.namespace):
            raise ObjectUnreadable(_not_let_in(found, reader=key.namespace))
        wanted = list(dict.fromkeys(each for judge in judges for each in judge.watches(step)))
        objects = await watches.read(key, wanted)
        for _ in range(_STAGES):
            related = [each for judge in judges for each in judge.related(step, promotion, objects)]
            related += self._sources(found, objects, reader=key.namespace)
            if not (related := [each for each in dict.fromkeys(related) if each not in wanted]):
                break
            wanted += related
            for each in related:
                if problem := self._refused(step, each):
                    return problem
            objects = await watches.read(key, wanted)
        if found is not None and (doubt := _doubt(step, found, objects)) is not None:
            raise ObjectUnreadable(doubt)
        return wanted, objects

    def _sources(self, found: Detected | None, objects: WatchedObjects, *, reader: str) -> Sequence[Watched]:
        """Return the GitRepository of a detected object of Flux, if its namespace may be read."""
        obj = objects.get(found.resource, *found.key) if found is not None and found.tool == FLUX.name else None
        source = source_of(obj) if obj is not None else None
        return [source] if source is not None and self._namespaces.lets_in(source.namespace, reader=reader) else []

    def _others(self, step: PromotionStep, absent: MissingObject | None) -> Sequence[Watched]:
        """Return the objects whose names are compared with a missing one, if the author of the Pipeline may read them.

        Names of another cluster are never shown, because the author chooses its server.
        """
        if absent is None or step.spec.health.cluster is not None:
            return ()
        if not self._namespaces.quotes(absent.key.namespace, reader=step.metadata.namespace):
            return ()
        return (Watched(kind=absent.kind, namespace=absent.key.namespace, optional=True, names_only=True),)

    def _told(self, step: PromotionStep, verdict: Verdict, watched: Sequence[Watched]) -> Verdict:
        """Return the verdict, with the details of objects only if the author of the Pipeline may read them."""
        if not verdict.details:
            return verdict
        reader = step.metadata.namespace
        elsewhere = step.spec.health.cluster is not None
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


def _doubt(step: PromotionStep, found: Detected, objects: WatchedObjects) -> str | None:
    """Return why a detected object does not deploy the environment any more; None if it does, or no longer exists."""
    obj = objects.get(found.resource, *found.key)
    if obj is None or deploys(step, found.resource, obj, objects):
        return None
    place = f"{step.spec.path} of branch {step.spec.target_branch} of the repository"
    return f"{found.title} was found to deploy the environment, and does not read {place} now: correct it"
