"""What wakes the Bundle reconciler: every change that can change its answer, and as little else as possible.

A Bundle looks at its steps, its Graph, its Pipeline, the gates before its start and the other Bundles of its Pipeline.
Each of them changes for many reasons that no Bundle cares about: the engine writes the nodes of a Graph into its
status, an agent the progress of a step. Those are told apart here, where the event is, rather than by a run that does
nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from kardinal.objects import JsonObject, Key, key_of, labels_of
from kardinal.policy.matching import is_template
from kardinal.runtime import Event, Source, Watch
from kardinal_controller.caches import Caches, bundle_key, needs_translation, pipeline_label

__all__ = ["bundle_sources"]

_SETTLED = frozenset(["Verified", "Superseded"])

_STEP_FIELDS = ("state", "message", "promotedAt", "verifiedAt", "commit", "prURL", "evidence")


def bundle_sources(caches: Caches) -> Sequence[Source]:
    """The sources of the controller of Bundles."""

    def siblings(bundle: JsonObject) -> Iterable[Key]:
        """Those that may still give way to another one."""
        key = key_of(bundle)
        others = caches.bundles_of(key.namespace, pipeline_label(bundle))
        return (key_of(other) for other in others if key_of(other) != key and _phase(other) not in _SETTLED)

    def untranslated_of_pipeline(pipeline: JsonObject) -> Iterable[Key]:
        key = key_of(pipeline)
        return (key_of(bundle) for bundle in caches.bundles_of(*key) if needs_translation(bundle))

    def untranslated(gate: JsonObject) -> Iterable[Key]:
        """Whichever Bundle waits for a word of its author; a gate may be it."""
        return map(key_of, caches.untranslated())

    return [
        Watch(caches.bundles),
        Watch(caches.bundles, map=siblings, when=_differs(_standing)),
        Watch(caches.steps, map=lambda step: [bundle_key(step)], when=_differs(_step_progress)),
        Watch(caches.graphs, when=_differs(_graph_health)),
        Watch(caches.pipelines, map=untranslated_of_pipeline, when=_differs(_generation)),
        Watch(caches.gates, map=untranslated, when=_concerns_templates),
    ]


def _differs(aspect: Callable[[JsonObject], object]) -> Callable[[Event], bool]:
    """Let through what appears, goes, or changes in one aspect."""

    def differs(event: Event) -> bool:
        return event.old is None or event.new is None or aspect(event.old) != aspect(event.new)

    return differs


def _standing(bundle: JsonObject) -> object:
    """What decides which Bundle takes the place of which."""
    status = bundle.get("status", {})
    return status.get("phase"), status.get("graphRef"), status.get("sequence"), status.get("pipeline")


def _phase(bundle: JsonObject) -> object:
    return bundle.get("status", {}).get("phase")


def _step_progress(step: JsonObject) -> object:
    status = step.get("status", {})
    return [status.get(field) for field in _STEP_FIELDS]


def _graph_health(graph: JsonObject) -> object:
    conditions = graph.get("status", {}).get("conditions", ())
    verdicts = {condition["type"]: (condition["status"], condition.get("reason")) for condition in conditions}
    return _generation(graph), verdicts, "deletionTimestamp" in graph["metadata"]


def _generation(obj: JsonObject) -> object:
    return obj["metadata"].get("generation")


def _concerns_templates(event: Event) -> bool:
    sides = [obj for obj in (event.old, event.new) if obj is not None]
    return any(is_template(labels_of(obj)) for obj in sides) and _differs(_meaning)(event)


def _meaning(gate: JsonObject) -> object:
    return _generation(gate), labels_of(gate)
