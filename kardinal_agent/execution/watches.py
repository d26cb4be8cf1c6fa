"""The changes of objects that cause a run, and of which promotions.

A promotion is run when its PromotionStep, its Graph or the phase of its Bundle changes; at every change of a gate that
can hold it or of the template of that gate; of the objects that prove its environment, and of the permission to read
them; and of its repository. Nothing is polled, and the agent's own status writes cause no run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from kardinal.objects import GRAPH, JsonObject, Key, controller_of, key_of
from kardinal.promotion.api import names
from kardinal.promotion.api.promotion_step import ENDED_STATES
from kardinal.runtime import Channel, Informer, Source, Watch
from kardinal.runtime.finalizers import has_finalizer
from kardinal.runtime.predicates import (
    changed,
    either,
    generation_changed,
    labels_changed,
    metadata_changed,
    status_changed,
)
from kardinal_agent.health import HealthChecks, pipelines_from

__all__ = ["is_under_way", "sources"]

_BY_BUNDLE = "bundle"
_VERIFIED_BY_BUNDLE = "verified-by-bundle"
_BY_CHECK = "check"
_BY_GATE = "gate"
_BY_GRAPH = "graph"
_BY_TEMPLATE = "template"


def sources(
    *,
    steps: Informer,
    graphs: Informer,
    bundles: Informer,
    gates: Informer,
    checks: Informer,
    health: HealthChecks,
    namespaces: Informer,
    pushed: Channel,
) -> Sequence[Source]:
    """Return the sources of events about promotions."""
    steps.index(_BY_BUNDLE, lambda step: _bundle_of(step) if is_under_way(step) else ())
    steps.index(_VERIFIED_BY_BUNDLE, lambda step: _bundle_of(step) if _is_verified(step) else ())
    steps.index(_BY_GRAPH, lambda step: _graph_of(step) if is_under_way(step) or _is_verified(step) else ())
    steps.index(_BY_GATE, lambda step: _gates_of(step) if is_under_way(step) else ())
    steps.index(_BY_CHECK, lambda step: _checks_of(step) if is_under_way(step) else ())
    gates.index(_BY_TEMPLATE, _template_of)

    def steps_behind(template: JsonObject) -> Iterable[Key]:
        instances = gates.by_index(_BY_TEMPLATE, str(key_of(template)))
        return [key_of(step) for gate in instances for step in steps.by_index(_BY_GATE, str(key_of(gate)))]

    def waiting_behind(gate: JsonObject) -> Iterable[Key]:
        behind = steps.by_index(_BY_GATE, str(key_of(gate)))
        return [key_of(step) for step in behind if _state(step) == "WaitingForMerge"]

    # The agent's own status writes leave generation and metadata as they were.
    return (
        Watch(steps, when=metadata_changed("generation", "deletionTimestamp", "labels", "ownerReferences")),
        # A host has said that another look is worth it.
        Watch(steps, when=changed(_woken) & either(is_under_way)),
        Watch(steps, when=changed(_is_to_be_settled) & either(_is_to_be_settled)),
        Watch(graphs, map=_steps_by(steps, _BY_GRAPH), when=metadata_changed("uid", "generation")),
        Watch(
            bundles,
            map=_steps_by(steps, _BY_BUNDLE),
            when=status_changed("phase", "graph") | _standing_changed | _digests_changed,
        ),
        # What is Verified is looked at until nothing that follows depends on it.
        Watch(
            bundles, map=_steps_by(steps, _VERIFIED_BY_BUNDLE), when=status_changed("phase", "graph") | _reach_changed
        ),
        Watch(gates, map=_steps_by(steps, _BY_GATE), when=_answer_changed | labels_changed | generation_changed),
        # Pull requests say why a gate is closed.
        Watch(gates, map=waiting_behind, when=status_changed("reason")),
        Watch(gates, map=steps_behind, when=metadata_changed("uid", "generation", "labels")),
        Watch(
            checks, map=_steps_by(steps, _BY_CHECK), when=generation_changed | status_changed("results", "conditions")
        ),
        Watch(namespaces, map=health.concerned, when=changed(pipelines_from)),
        pushed,
    )


_answer_changed = status_changed("ready", "observedGeneration", "templateUID", "templateGeneration", "nextTransitionAt")


def _entries(bundle: JsonObject, *fields: str) -> dict[str, list[Any]]:
    found = (bundle.get("status") or {}).get("environments") or {}
    return {name: [entry.get(field) for field in fields] for name, entry in found.items()}


_standing_changed = changed(
    lambda bundle: _entries(bundle, "attempt", "admittedAt", "displacedBy", "stopped", "healthy")
)
_digests_changed = changed(
    lambda bundle: [
        each.get("digest") or each.get("message") for each in (bundle.get("status") or {}).get("artifacts") or ()
    ]
)
_reach_changed = changed(lambda bundle: _entries(bundle, "attempt", "state", "promotedAt", "displacedBy", "replacedAt"))


def _steps_by(steps: Informer, index: str) -> Callable[[JsonObject], Iterable[Key]]:
    return lambda obj: [key_of(step) for step in steps.by_index(index, str(key_of(obj)))]


def is_under_way(step: JsonObject) -> bool:
    """Return whether a promotion has not ended, or is asked for another attempt."""
    attempt = (step.get("status") or {}).get("attempt")
    return _state(step) not in ENDED_STATES or step["spec"].get("attempt") != attempt


def _is_to_be_settled(step: JsonObject) -> bool:
    """Return whether a promotion has ended that may have a proposal left."""
    return has_finalizer(step, names.FINALIZER) and not is_under_way(step)


def _is_verified(step: JsonObject) -> bool:
    return bool(_state(step) == "Verified")


def _woken(step: JsonObject) -> Any:
    return (step["metadata"].get("annotations") or {}).get(names.ANNOTATION_WOKEN)


def _bundle_of(step: JsonObject) -> Iterable[str]:
    yield str(Key(step["metadata"]["namespace"], step["spec"]["bundleRef"]))


def _graph_of(step: JsonObject) -> Iterable[str]:
    owner = controller_of(step, GRAPH)
    return [str(Key(step["metadata"]["namespace"], owner.name))] if owner else []


def _template_of(gate: JsonObject) -> Iterable[str]:
    origin = gate["spec"].get("origin")
    return [str(Key(origin["namespace"], origin["name"]))] if origin else []


def _gates_of(step: JsonObject) -> Iterable[str]:
    spec = step["spec"]
    namespace = step["metadata"]["namespace"]
    pipeline = spec["pipeline"]
    standing = names.freeze_name(pipeline), names.hold_name(pipeline, spec["environment"])
    return {str(Key(namespace, name)) for name in (*spec.get("requiredGates", ()), *standing)}


def _checks_of(step: JsonObject) -> Iterable[str]:
    verify = step["spec"].get("verify") or {}
    return {str(Key(step["metadata"]["namespace"], name)) for name in verify.get("metrics", ())}


def _state(step: JsonObject) -> Any:
    return (step.get("status") or {}).get("state")
