"""The sources of the Bundle reconciler: every change that can change its decision, and as little else as possible.

A decision depends on the Bundle, its steps, its Graph, its Pipeline, the gates that stand before it, and the other
Bundles of its Pipeline. Each of them changes for many other reasons: the engine writes the nodes of a Graph into its
status, an agent the progress of a step. Predicates keep those changes from becoming runs that do nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kardinal.objects import JsonObject, Key, key_of, labels_of
from kardinal.policy.matching import is_template
from kardinal.runtime import Source, Watch
from kardinal.runtime.predicates import (
    changed,
    either,
    generation_changed,
    labels_changed,
    metadata_changed,
    status_changed,
)
from kardinal_controller.caches import Caches, bundle_key, needs_translation, pipeline_label

__all__ = ["bundle_sources"]

_NEVER_SUPERSEDED = frozenset(["Verified", "Superseded"])


def bundle_sources(caches: Caches) -> Sequence[Source]:
    """Return the sources of the controller of Bundles."""

    def siblings(bundle: JsonObject) -> Iterable[Key]:
        """Name the other Bundles of the Pipeline that may still be superseded."""
        key = key_of(bundle)
        others = caches.bundles_of(key.namespace, pipeline_label(bundle))
        return (key_of(other) for other in others if key_of(other) != key and _phase(other) not in _NEVER_SUPERSEDED)

    def untranslated_of_pipeline(pipeline: JsonObject) -> Iterable[Key]:
        key = key_of(pipeline)
        return (key_of(bundle) for bundle in caches.bundles_of(*key) if needs_translation(bundle))

    def untranslated(gate: JsonObject) -> Iterable[Key]:
        """Name every Bundle that waits for a correction: the gate may be one, such as a permission to skip."""
        return map(key_of, caches.untranslated())

    return [
        Watch(caches.bundles),
        Watch(caches.bundles, siblings, when=status_changed("phase", "graphRef", "sequence", "pipeline")),
        Watch(caches.steps, lambda step: [bundle_key(step)], when=_step_progress),
        Watch(caches.graphs, when=metadata_changed("generation", "deletionTimestamp") | changed(_conditions)),
        Watch(caches.pipelines, untranslated_of_pipeline, when=generation_changed),
        Watch(caches.gates, untranslated, when=_concerns_templates & (generation_changed | labels_changed)),
    ]


_step_progress = status_changed("state", "message", "promotedAt", "verifiedAt", "commit", "prURL", "evidence")

_concerns_templates = either(lambda gate: is_template(labels_of(gate)))


def _conditions(graph: JsonObject) -> object:
    """Return the conditions of a Graph without their times and messages."""
    conditions = graph.get("status", {}).get("conditions", ())
    return {condition["type"]: (condition["status"], condition.get("reason")) for condition in conditions}


def _phase(bundle: JsonObject) -> object:
    return bundle.get("status", {}).get("phase")
