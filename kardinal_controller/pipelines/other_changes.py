"""Write to the status of a Pipeline which environments may be changed without a Bundle, for example by hand.

This applies only to Pipelines with `git.statusOnOthers`: the agent shows the answers at their Git host, as commit
statuses of other pull requests. The answers come from the freeze of the Pipeline, the holds of its environments and the
present gates. The status is written when the answer changes, and at the moment at which time alone may change it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime

from kardinal.clock import Clock
from kardinal.objects import JsonObject, Key, key_of, labels_of
from kardinal.objects.text import cut
from kardinal.promotion.api import Pipeline, PolicyGate
from kardinal.promotion.api.names import freeze_name, hold_name
from kardinal.promotion.api.pipeline import HeldChange, OtherChanges
from kardinal.promotion.kinds import PIPELINE
from kardinal.promotion.policy.binding import Place, places_of
from kardinal.promotion.policy.changes import ChangeQuestions, binding_gates
from kardinal.promotion.policy.freshness import recheck_interval
from kardinal.promotion.policy.hold_gate import is_hold, why_held
from kardinal.promotion.policy.matching import GateTemplate, collect, is_freeze, is_instance
from kardinal.runtime import Result, Source, StatusWriter, Watch
from kardinal.runtime.predicates import changed, deleted, either, metadata_changed
from kardinal.tree.repository_url import InvalidRepositoryURL
from kardinal_controller.caches import Caches
from kardinal_controller.expressions import ExpressionCompiler
from kardinal_controller.gates import Calendars

__all__ = ["OtherChangesReconciler"]

REASON_LIMIT = 256
"""The maximum length of the reason for one environment, in characters; a host may cut it further."""


class OtherChangesReconciler:
    """Write `status.otherChanges` of Pipelines."""

    def __init__(
        self,
        caches: Caches,
        *,
        status: StatusWriter,
        clock: Clock,
        policy_namespaces: Collection[str],
        expressions: ExpressionCompiler,
        calendars: Calendars,
    ) -> None:
        self._caches = caches
        self._status = status
        self._clock = clock
        self._policy_namespaces = policy_namespaces
        self._expressions = expressions
        self._calendars = calendars

    def sources(self) -> Sequence[Source]:
        asked = metadata_changed("generation") | changed(_answer_of)
        return [
            Watch(self._caches.pipelines, when=asked & ~deleted),
            Watch(
                self._caches.gates,
                self._pipelines_of_gate,
                when=either(lambda gate: not is_instance(labels_of(gate)))
                & metadata_changed("uid", "generation", "labels"),
            ),
        ]

    async def reconcile(self, key: Key) -> Result:
        current = self._caches.pipelines.get(*key)
        if current is None or "deletionTimestamp" in current["metadata"]:
            return Result()
        pipeline = Pipeline.model_validate(current)
        if not pipeline.spec.git.status_on_others:
            unasked = {"other_changes": None, "woken_at": None}
            if all(getattr(pipeline.status, name) is None for name in unasked):
                return Result()
            status = pipeline.status.model_copy(update=unasked)
            await self._status.write(PIPELINE, current, status.to_json(), shared=True)
            return Result()
        gates = self._gates(key)
        await self._expressions.prepare([gate.spec.expression for gate in gates])
        now = self._clock.now()
        before = pipeline.status.other_changes
        held, until = await self._held(pipeline, gates, now=now)
        if not await self._stands(before, held, until, pipeline, gates):
            answer = OtherChanges(
                observed_generation=pipeline.metadata.generation, evaluated_at=now, until=until, held=held
            )
            status = pipeline.status.model_copy(update={"other_changes": answer})
            await self._status.write(PIPELINE, current, status.to_json(), shared=True)
        recheck = min((recheck_interval(gate.spec) for gate in gates), default=None)
        waits = [wait for wait in (recheck, until - now if until else None) if wait is not None]
        return Result(requeue_after=min(waits, default=None))

    async def _stands(
        self,
        before: OtherChanges | None,
        held: tuple[HeldChange, ...],
        until: datetime | None,
        pipeline: Pipeline,
        gates: Sequence[GateTemplate],
    ) -> bool:
        """Return whether the last answer is still right; its reasons may differ only by values that time changes."""
        if before is None or (before.observed_generation, before.until) != (pipeline.metadata.generation, until):
            return False
        if before.held == held:
            return True
        if [one.environment for one in before.held] != [one.environment for one in held]:
            return False
        # Evaluated again for the time of the last answer, unchanged gates give the same reasons.
        again, _ = await self._held(pipeline, gates, now=before.evaluated_at)
        return again == before.held

    async def _held(
        self, pipeline: Pipeline, gates: Sequence[GateTemplate], *, now: datetime
    ) -> tuple[tuple[HeldChange, ...], datetime | None]:
        """Return the environments held at `now`, and when time alone may change that. The gates must be compiled."""
        freeze = self._freeze(pipeline)
        questions = ChangeQuestions(now)
        held = []
        turns = list[datetime]()
        approvals = {environment.name: environment.approval for environment in pipeline.spec.environments}
        for place in _places(pipeline):
            asked = [(gate, approvals[place.environment]) for gate in binding_gates(gates, place)]
            answers = [
                questions.ask(
                    gate, place, approval=approval, calendar=await self._calendars.of(gate.namespace, gate.spec)
                )
                for gate, approval in asked
            ]
            turns += [answer.until for answer in answers if answer.until is not None]
            reasons = [*freeze, *self._hold(pipeline, place), *(answer.reason for answer in answers if answer.reason)]
            if reasons:
                held.append(HeldChange(environment=place.environment, reason=cut("; ".join(reasons), REASON_LIMIT)))
            # Each evaluation is short, but there may be many.
            await asyncio.sleep(0)
        return tuple(held), min(turns, default=None)

    def _gates(self, key: Key) -> Sequence[GateTemplate]:
        stored = self._caches.templates([*self._policy_namespaces, key.namespace])
        return collect(
            [PolicyGate.model_validate(gate) for gate in stored],
            pipeline=key.name,
            namespace=key.namespace,
            policy_namespaces=self._policy_namespaces,
        )

    def _freeze(self, pipeline: Pipeline) -> list[str]:
        name = freeze_name(pipeline.metadata.name)
        gate = self._caches.gates.get(pipeline.metadata.namespace, name)
        if gate is None or not is_freeze(labels_of(gate)):
            return []
        message = gate["spec"].get("message")
        return [f"held by a freeze of {pipeline.metadata.name}" + (f": {message}" if message else "")]

    def _hold(self, pipeline: Pipeline, place: Place) -> list[str]:
        name = pipeline.metadata.name
        environment = place.environment
        gate = self._caches.gates.get(pipeline.metadata.namespace, hold_name(name, environment))
        return [why_held(gate, name, environment)] if gate is not None and is_hold(gate, name, environment) else []

    def _pipelines_of_gate(self, gate: JsonObject) -> Iterable[Key]:
        namespace = gate["metadata"]["namespace"]
        bound = "" if namespace in self._policy_namespaces else namespace
        return map(key_of, self._caches.with_statuses_on_others(bound))


def _answer_of(pipeline: JsonObject) -> object:
    return (pipeline.get("status") or {}).get("otherChanges")


def _places(pipeline: Pipeline) -> Sequence[Place]:
    try:
        return places_of(pipeline)
    except InvalidRepositoryURL:
        return ()
