"""The PromotionStep controller: which events concern which promotions, and one attempt per event.

A promotion is woken by its own order, by the phase of its Bundle, by every gate that can hold it, by the Deployment
that speaks for it and by its repository. Nothing is polled, and its own status writes wake nobody: what a run has
written it knows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from pydantic import ValidationError

from kardinal.api import names
from kardinal.api.promotion_step import PromotionStepSpec
from kardinal.objects import JsonObject, Key, key_of
from kardinal.runtime import Change, Channel, Event, Informer, Result, Source, TerminalError, Watch
from kardinal_agent.execution.attempt import Attempt, Tools
from kardinal_agent.health import deployment_key

__all__ = ["PromotionReconciler", "sources"]

_BY_BUNDLE = "bundle"
_BY_GATE = "gate"
_BY_DEPLOYMENT = "deployment"

_ENDED = ("Verified", "Failed")


class PromotionReconciler:
    """Takes each promotion as far as it goes now."""

    def __init__(self, tools: Tools, *, steps: Informer, bundles: Informer) -> None:
        self._tools = tools
        self._steps = steps
        self._bundles = bundles

    async def reconcile(self, key: Key) -> Result:
        raw = self._steps.get(*key)
        if raw is None or not _is_under_way(raw):
            self._tools.wakes.release(key)
            self._tools.pace.forget(key)
            return Result()
        try:
            attempt = Attempt(self._tools, raw, self._bundles.get(key.namespace, raw["spec"]["bundleRef"]))
        except ValidationError as error:
            raise TerminalError(f"PromotionStep {key} or its Bundle cannot be read: {error}") from error
        return await attempt.run()


def sources(
    *, steps: Informer, bundles: Informer, gates: Informer, deployments: Informer, wakes: Channel
) -> Sequence[Source]:
    """Everything that can move a promotion."""
    steps.index(_BY_BUNDLE, lambda step: _bundle_of(step) if _is_under_way(step) else ())
    steps.index(_BY_GATE, lambda step: _gates_of(step) if _is_under_way(step) else ())
    steps.index(_BY_DEPLOYMENT, _deployment_of)
    return (
        Watch(steps, when=_ordered_anew),
        Watch(bundles, map=_steps_by(steps, _BY_BUNDLE), when=_phase_changed),
        Watch(gates, map=_steps_by(steps, _BY_GATE), when=_answer_changed),
        Watch(deployments, map=_steps_by(steps, _BY_DEPLOYMENT)),
        wakes,
    )


def _steps_by(steps: Informer, index: str) -> Callable[[JsonObject], Iterable[Key]]:
    return lambda obj: [key_of(step) for step in steps.by_index(index, str(key_of(obj)))]


def _is_under_way(step: JsonObject) -> bool:
    return _status(step, "state") not in _ENDED


def _bundle_of(step: JsonObject) -> Iterable[str]:
    yield str(Key(step["metadata"]["namespace"], step["spec"]["bundleRef"]))


def _gates_of(step: JsonObject) -> Iterable[str]:
    spec, namespace = step["spec"], step["metadata"]["namespace"]
    freeze = names.freeze_name(spec["pipeline"])
    return {str(Key(namespace, name)) for name in (*spec.get("requiredGates", ()), freeze)}


def _deployment_of(step: JsonObject) -> Iterable[str]:
    if _status(step, "state") != "HealthChecking":
        return
    try:
        yield str(deployment_key(PromotionStepSpec.model_validate(step["spec"])))
    except ValidationError:
        return


def _ordered_anew(event: Event) -> bool:
    """Not the writes of the agent itself: those leave generation and metadata as they were."""
    if event.change is not Change.UPDATED or event.old is None or event.new is None:
        return True
    return any(
        event.old["metadata"].get(field) != event.new["metadata"].get(field)
        for field in ("generation", "deletionTimestamp", "labels")
    )


def _phase_changed(event: Event) -> bool:
    return _changed(event, lambda bundle: _status(bundle, "phase"))


def _answer_changed(event: Event) -> bool:
    return _changed(event, lambda gate: (_status(gate, "ready"), gate["metadata"].get("labels")))


def _changed(event: Event, value: Callable[[JsonObject], Any]) -> bool:
    if event.old is None or event.new is None:
        return True
    return bool(value(event.old) != value(event.new))


def _status(obj: JsonObject, field: str) -> Any:
    return (obj.get("status") or {}).get(field)
