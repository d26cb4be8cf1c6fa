"""The sources of the Bundle reconciler: every change that can change its decision, and as little else as possible.

A decision depends on the Bundle, its steps, its Graph, its Pipeline, the gates that stand before it, and the other
Bundles of its Pipeline. Each of them changes for many other reasons: the engine writes the nodes of a Graph into its
status, an agent the progress of a step. Predicates keep those changes from becoming runs that do nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import islice

from kardinal.objects import JsonObject, Key, key_of, labels_of
from kardinal.promotion.api.names import ANNOTATION_PIN, LABEL_PIPELINE, LABEL_TYPE, TYPE_FREEZE, TYPE_HOLD
from kardinal.promotion.policy.matching import is_template
from kardinal.runtime import Source, Watch
from kardinal.runtime.predicates import (
    changed,
    created,
    either,
    generation_changed,
    labels_changed,
    metadata_changed,
    status_changed,
)
from kardinal_controller.bundles.contenders import standings_of
from kardinal_controller.caches import (
    Caches,
    bundle_key,
    has_started,
    is_pending,
    needs_translation,
    pipeline_label,
)

__all__ = ["bundle_sources"]

_NEVER_SUPERSEDED = frozenset(["Verified", "Superseded"])
_UNDER_WAY = frozenset(["Promoting", "Failed"])

# The changes of a Bundle that other Bundles wait for: it is no longer pending, or it starts.
_rivalry = changed(lambda bundle: (is_pending(bundle), has_started(bundle), pipeline_label(bundle)))

# The changes of how far a Bundle is in each environment, and whether it may be superseded there.
_advance = changed(lambda bundle: (standings_of(bundle), _is_pinned(bundle), bundle.get("status", {}).get("phase")))


def bundle_sources(caches: Caches, *, policy_namespaces: Collection[str]) -> Sequence[Source]:
    """Return the sources of the controller of Bundles."""

    def siblings(bundle: JsonObject) -> Iterable[Key]:
        """Name the older Bundles of the Pipeline that the change may end or let start.

        No Bundle that waits may start while a newer one is pending. So in a backlog of any length only a change of the
        newest Bundle concerns the others. Bundles of the same second are ordered later, by the rules.
        """
        namespace = bundle["metadata"]["namespace"]
        label = pipeline_label(bundle)
        since = _created(bundle)
        pending = (other for other in reversed(caches.pending(namespace, label)) if _type(other) == _type(bundle))
        if not has_started(bundle) and any(_created(other) >= since for other in pending):
            return ()
        key = key_of(bundle)
        others = (other for other in caches.bundles_of(namespace, label) if _created(other) <= since)
        return (key_of(other) for other in others if key_of(other) != key and _may_be_superseded(other))

    def contenders(bundle: JsonObject) -> Iterable[Key]:
        """Name the other Bundles that are under way or unhealthy, and the last that waits to start.

        The progress of a Bundle in an environment concerns them: once it runs there, the health of an older Bundle
        there no longer counts. Of the Bundles that wait, the last most likely starts next; the others end then, or run
        again at the end of a head start.
        """
        namespace = bundle["metadata"]["namespace"]
        label = pipeline_label(bundle)
        key = key_of(bundle)
        started = caches.started(namespace, label)
        concerned = (other for other in started if _is_under_way(other) or _is_unhealthy(other))
        last = islice(reversed(caches.pending(namespace, label)), 1)
        return (key_of(other) for other in (*concerned, *last) if key_of(other) != key)

    def untranslated_of_pipeline(pipeline: JsonObject) -> Iterable[Key]:
        key = key_of(pipeline)
        return (key_of(bundle) for bundle in caches.bundles_of(*key) if needs_translation(bundle))

    def untranslated(gate: JsonObject) -> Iterable[Key]:
        """Name the Bundles that wait for a correction: the gate may be the correction, such as a permission to skip.

        A team gate concerns only the Bundles of its namespace.
        """
        namespace = gate["metadata"]["namespace"]
        return map(key_of, caches.untranslated("" if namespace in policy_namespaces else namespace))

    def under_way_of_pipeline(pipeline: JsonObject) -> Iterable[Key]:
        """Name the Bundles under way: their Graphs were made from the Pipeline as it was before."""
        started = caches.started(*key_of(pipeline))
        return (key_of(bundle) for bundle in started if _is_under_way(bundle))

    def paused(gate: JsonObject) -> Iterable[Key]:
        label = labels_of(gate).get(LABEL_PIPELINE, "")
        started = caches.started(gate["metadata"]["namespace"], label) if label else ()
        return (key_of(bundle) for bundle in started if _is_under_way(bundle))

    def under_way_beside(gate: JsonObject) -> Iterable[Key]:
        """Name the Bundles under way to which the gate may apply: their Graphs do not follow its change."""
        namespace = gate["metadata"]["namespace"]
        return map(key_of, caches.promoting("" if namespace in policy_namespaces else namespace))

    return [
        Watch(caches.bundles),
        Watch(caches.bundles, siblings, when=_rivalry & ~created),
        Watch(caches.bundles, contenders, when=_advance & ~created),
        Watch(caches.steps, lambda step: [bundle_key(step)], when=_step_progress),
        Watch(
            caches.graphs,
            when=metadata_changed("generation", "deletionTimestamp", "ownerReferences") | changed(_conditions),
        ),
        Watch(caches.pipelines, untranslated_of_pipeline, when=generation_changed),
        Watch(caches.pipelines, under_way_of_pipeline, when=generation_changed),
        Watch(caches.gates, untranslated, when=_concerns_templates & (generation_changed | labels_changed)),
        Watch(caches.gates, under_way_beside, when=_concerns_templates & (generation_changed | labels_changed)),
        Watch(caches.gates, paused, when=_concerns_standing & (generation_changed | labels_changed)),
    ]


_step_progress = status_changed(
    *("attempt", "state", "message", "preparedAt", "promotedAt", "verifiedAt", "commit", "prURL", "evidence"),
    *("healthy", "healthySince", "healthyFor"),
)

_concerns_templates = either(lambda gate: is_template(labels_of(gate)))
_concerns_standing = either(lambda gate: labels_of(gate).get(LABEL_TYPE) in (TYPE_FREEZE, TYPE_HOLD))


def _conditions(graph: JsonObject) -> object:
    """Return the conditions of a Graph without their times and messages."""
    conditions = graph.get("status", {}).get("conditions", ())
    return {condition["type"]: (condition["status"], condition.get("reason")) for condition in conditions}


def _may_be_superseded(bundle: JsonObject) -> bool:
    return bundle.get("status", {}).get("phase") not in _NEVER_SUPERSEDED and not _is_pinned(bundle)


def _is_under_way(bundle: JsonObject) -> bool:
    return bundle["status"].get("phase") in _UNDER_WAY


def _is_unhealthy(bundle: JsonObject) -> bool:
    entries = bundle["status"].get("environments") or {}
    return any(entry.get("healthy") is False for entry in entries.values())


def _is_pinned(bundle: JsonObject) -> bool:
    return (bundle["metadata"].get("annotations") or {}).get(ANNOTATION_PIN) == "true"


def _created(bundle: JsonObject) -> str:
    return str(bundle["metadata"]["creationTimestamp"])


def _type(bundle: JsonObject) -> object:
    return bundle["spec"].get("type")
